#pragma once
// txbench: three tables, transactions that sum a range of one and, some of them, then update rows of the next; clients that think in between.
//
//   elidex::basic_database<elidex::db::two_phase_locking<>> db;
//   txbench::store s(db, {.think_time = std::chrono::microseconds(100)});
//   s.load();
//   txbench::client c(s, seed);                     // one for each thread
//   c.step();                                       // thinks, then one transaction
//   c.took(txbench::kind::read_update).commit.mean();
//   s.missing(clients);                             // 0: no update was lost
//
// A read-only transaction sums the values of 100 rows behind a random key. A read-update transaction does the same and then changes a text in 20
// random rows of the next table. The time of a transaction's function, of its commit and of both is kept, of the attempt that committed (both: from
// the first attempt).
//
// Thread-safety: a client belongs to one thread; store as its database, load() and missing() while no client works.
// From: papers/004 section 5.2 (after Jung, Han, Fekete et al.). Deviations: texts have a fixed size; a row counts its updates, so that lost ones are
// seen; the 20 rows are updated in the keys' order, in which InnoDB finds them; think time stands for the network between client and server.

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include "elidex/database.hpp"
#include "lab/workload/random.hpp"

namespace elidex::lab::txbench {

inline constexpr std::size_t tables = 3;

struct settings {
  std::uint64_t rows = 100'000;  // in all tables together
  unsigned read_only_pct = 75;
  std::uint64_t rows_read = 100;
  std::uint64_t rows_updated = 20;
  isolation level = isolation::read_committed;
  std::chrono::nanoseconds think_time{0};

  std::uint64_t rows_each() const noexcept { return rows / tables; }
  void check() const {
    if (rows_each() <= rows_read || rows_each() < rows_updated || read_only_pct > 100)
      throw std::invalid_argument("txbench: it takes tables larger than what is read and updated, and at most 100 %");
  }
};

struct item {
  std::int64_t value;
  std::uint64_t updates;
  std::array<std::array<char, 16>, 10> texts;
};

enum class kind : std::uint8_t { read_only, read_update };
inline constexpr std::size_t kinds = 2;

// Mean and standard deviation of times in nanoseconds (Welford).
class spread {
 public:
  void add(std::chrono::nanoseconds one) noexcept {
    const auto x = static_cast<double>(one.count());
    ++many_;
    const double off = x - mean_;
    mean_ += off / static_cast<double>(many_);
    squares_ += off * (x - mean_);
  }
  std::uint64_t samples() const noexcept { return many_; }
  double mean() const noexcept { return mean_; }
  double deviation() const noexcept { return many_ < 2 ? 0 : std::sqrt(squares_ / static_cast<double>(many_ - 1)); }

 private:
  std::uint64_t many_ = 0;
  double mean_ = 0;
  double squares_ = 0;
};

struct times {
  spread query;
  spread commit;
  spread both;
};

template <class Database>
class store {
 public:
  using table = typename Database::template table<std::uint64_t, item>;

  // Throws std::invalid_argument.
  store(Database& in, const settings& wanted) : db(in), is((wanted.check(), wanted)) {
    for (std::size_t i = 0; i < tables; ++i) {
      all[i] = &db.template create_table<std::uint64_t, item>("txbench_" + std::to_string(i + 1));
    }
  }

  Database& db;
  const settings is;
  std::array<table*, tables> all{};

  void load(std::uint64_t seed = 1) {
    constexpr std::uint64_t at_once = 100;
    random_bits random(seed);
    for (table* const one : all) {
      for (std::uint64_t key = 0; key < is.rows_each(); key += at_once) {
        db.transact([&](auto& t) {
          for (std::uint64_t k = key; k < std::min(key + at_once, is.rows_each()); ++k) {
            item row{.value = value_of(k), .updates = 0, .texts = {}};
            for (auto& text : row.texts) draw(random, text);
            t.put(*one, k, row);
          }
        });
      }
    }
  }

  static constexpr std::int64_t value_of(std::uint64_t key) noexcept { return static_cast<std::int64_t>(key % 1'000); }
  static void draw(random_bits& random, std::array<char, 16>& text) noexcept {
    for (char& letter : text) letter = static_cast<char>('a' + random.below(26));
  }

  // Updates that the clients have made and the rows don't have.
  template <class Clients>
  [[nodiscard]] std::int64_t missing(const Clients& clients) {
    std::int64_t expected = 0;
    for (const auto& one : clients) expected += static_cast<std::int64_t>(one.rows_updated());
    return expected - db.read_only([&](auto& t) {
      std::int64_t there = 0;
      for (const table* const one : all) {
        t.scan(*one, std::uint64_t{0}, is.rows_each(), [&](std::uint64_t, const item& row) {
          there += static_cast<std::int64_t>(row.updates);
          return true;
        });
      }
      return there;
    });
  }
};

template <class Store>
class client {
 public:
  client(Store& in, std::uint64_t seed) : in_(in), random_(seed) {}

  // Throws std::logic_error if what it reads is wrong.
  void step() {
    if (in_.is.think_time.count() > 0) std::this_thread::sleep_for(in_.is.think_time);
    const kind what = random_.below(100) < in_.is.read_only_pct ? kind::read_only : kind::read_update;
    const std::size_t from = random_.below(tables);
    const std::uint64_t key = random_.below(in_.is.rows_each() - in_.is.rows_read);
    const std::size_t column = random_.below(std::tuple_size_v<decltype(item::texts)>);
    std::array<char, 16> text{};
    keys_.clear();
    if (what == kind::read_update) {
      Store::draw(random_, text);
      while (keys_.size() < in_.is.rows_updated) keys_.insert(random_.below(in_.is.rows_each()));
    }
    std::int64_t sum = 0;
    const clock::time_point start = clock::now();
    clock::time_point began;
    clock::time_point done;
    in_.db.transact(in_.is.level, [&](auto& t) {
      began = clock::now();
      sum = 0;
      t.scan(*in_.all[from], key + 1, key + 1 + in_.is.rows_read, [&](std::uint64_t, const item& row) {
        sum += row.value;
        return true;
      });
      for (const std::uint64_t one : keys_) {
        t.update(*in_.all[(from + 1) % tables], one, [&](item& row) {
          row.texts[column] = text;
          ++row.updates;
        });
      }
      done = clock::now();
    });
    const clock::time_point end = clock::now();
    std::int64_t expected = 0;
    for (std::uint64_t k = key + 1; k <= key + in_.is.rows_read; ++k) expected += Store::value_of(k);
    if (sum != expected) throw std::logic_error("txbench: a sum of values that never change is wrong");
    rows_updated_ += keys_.size();
    times& mine = took_[static_cast<std::size_t>(what)];
    mine.query.add(done - began);
    mine.commit.add(end - done);
    mine.both.add(end - start);
  }

  const times& took(kind what) const noexcept { return took_[static_cast<std::size_t>(what)]; }
  std::uint64_t rows_updated() const noexcept { return rows_updated_; }

 private:
  using clock = std::chrono::steady_clock;

  Store& in_;
  random_bits random_;
  std::set<std::uint64_t> keys_;
  std::array<times, kinds> took_;
  std::uint64_t rows_updated_ = 0;
};

}  // namespace elidex::lab::txbench
