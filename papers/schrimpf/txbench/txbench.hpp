#pragma once
// txbench: three tables, transactions that sum a range of one and, some of them, then update rows
// of the next; clients that think in between.
//
//   elidex::basic_database<elidex::db::two_phase_locking<>> db;
//   txbench::store s(db, {.think_time = std::chrono::microseconds(100)});
//   s.load();
//   txbench::client c(s, seed);                     // one for each thread
//   c.step();                                       // thinks, then one transaction
//   c.took(txbench::kind::read_update).commit.mean();
//   s.missing(clients);                             // 0: no update was lost
//
//   // or in two parts, where the client's own work is not to be timed
//   const txbench::request& r = c.draw();
//   c.run(r);
//   // afterwards: what each row may be, from the seeds and steps of all clients
//   txbench::expected want(s);
//   want.add(seed, steps);
//   // empty: all rows are there, with as many updates and texts that were written there
//   want.violations();
//
// A read-only transaction sums the values of 100 rows behind a random key. A read-update
// transaction does the same and then changes a text in 20 random rows of the next table. The time
// of a transaction's function, of its commit and of both is kept, of the attempt that committed
// (both: from the first attempt).
//
// Thread-safety: a client belongs to one thread; store as its database, load(), missing() and
// expected while no client works. Errors: std::invalid_argument for settings that cannot be; what
// the database throws. From: paper 004 section 5.2 (after Jung, Han, Fekete et al.). Deviations:
// texts have a fixed size; a row counts its updates, so that lost ones are seen; the 20 rows are
// updated in the keys' order, in which InnoDB finds them; think time stands for the network between
// client and server.

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "bench/workload/random.hpp"
#include "elidex/database.hpp"

namespace elidex::bench::txbench {

using namespace internal;

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
      throw std::invalid_argument(
          "txbench: it takes tables larger than what is read and updated, and at most 100 %");
  }
};

using text = std::array<char, 16>;

struct item {
  std::int64_t value;
  std::uint64_t updates;
  std::array<text, 10> texts;
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
  double deviation() const noexcept {
    return many_ < 2 ? 0 : std::sqrt(squares_ / static_cast<double>(many_ - 1));
  }

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

// What a transaction is to do.
struct request {
  kind what;
  std::size_t from;    // the table that is read; the next one is updated
  std::uint64_t key;   // rows behind it are summed
  std::size_t column;  // of the texts
  text written;
  std::vector<std::uint64_t> keys;  // that are updated, ascending
};

// The default policy for the pages of rows (page_latches.hpp): no latches.
struct no_pages {
  void search(std::size_t, std::uint64_t) const noexcept {}
  void read(std::size_t, std::uint64_t) const noexcept {}
  void write(std::size_t, std::uint64_t) const noexcept {}
};

template <class Database, class Pages = no_pages>
class store {
 public:
  using table = typename Database::template table<std::uint64_t, item>;

  // Throws std::invalid_argument.
  store(Database& in, const settings& wanted, Pages in_pages = {})
      : db(in), is((wanted.check(), wanted)), pages(std::move(in_pages)) {
    for (std::size_t i = 0; i < tables; ++i) {
      all[i] = &db.template create_table<std::uint64_t, item>("txbench_" + std::to_string(i + 1));
    }
  }

  Database& db;
  const settings is;
  Pages pages;
  std::array<table*, tables> all{};

  void load(std::uint64_t seed = 1) {
    constexpr std::uint64_t at_once = 100;
    random_bits random(seed);
    for (table* const one : all) {
      for (std::uint64_t key = 0; key < is.rows_each(); key += at_once) {
        db.transact([&](auto& t) {
          for (std::uint64_t k = key; k < std::min(key + at_once, is.rows_each()); ++k) {
            t.upsert(*one, k, loaded_row(random, k));
          }
        });
      }
    }
  }

  static constexpr std::int64_t value_of(std::uint64_t key) noexcept {
    return static_cast<std::int64_t>(key % 1'000);
  }
  static void draw(random_bits& random, text& into) noexcept {
    for (char& letter : into) letter = static_cast<char>('a' + random.below(26));
  }
  static item loaded_row(random_bits& random, std::uint64_t key) noexcept {
    item row{.value = value_of(key), .updates = 0, .texts = {}};
    for (text& one : row.texts) draw(random, one);
    return row;
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
  client(Store& in, std::uint64_t seed) : in_(in), random_(seed) {
    request_.keys.reserve(in.is.rows_updated);
  }

  // Throws std::logic_error if what it reads is wrong.
  void step() {
    if (in_.is.think_time.count() > 0) std::this_thread::sleep_for(in_.is.think_time);
    run(draw());
  }

  // The next request: a function of the seed and of how many there were.
  const request& draw() {
    request& r = request_;
    r.what = random_.below(100) < in_.is.read_only_pct ? kind::read_only : kind::read_update;
    r.from = random_.below(tables);
    r.key = random_.below(in_.is.rows_each() - in_.is.rows_read);
    r.column = random_.below(std::tuple_size_v<decltype(item::texts)>);
    r.keys.clear();
    if (r.what == kind::read_update) {
      Store::draw(random_, r.written);
      while (r.keys.size() < in_.is.rows_updated) {
        const std::uint64_t one = random_.below(in_.is.rows_each());
        const auto place = std::lower_bound(r.keys.begin(), r.keys.end(), one);
        if (place == r.keys.end() || *place != one) r.keys.insert(place, one);
      }
    }
    return r;
  }

  // Throws std::logic_error if what it reads is wrong.
  void run(const request& r) {
    std::int64_t sum = 0;
    const clock::time_point start = clock::now();
    clock::time_point began;
    clock::time_point done;
    in_.db.transact(in_.is.level, [&](auto& t) {
      began = clock::now();
      sum = 0;
      in_.pages.search(r.from, r.key + 1);
      for (std::uint64_t row = 0; row < in_.is.rows_read; row += rows_of_fetch)
        in_.pages.read(r.from, r.key + 1 + row);
      t.scan(*in_.all[r.from], r.key + 1, r.key + 1 + in_.is.rows_read,
             [&](std::uint64_t, const item& row) {
               sum += row.value;
               return true;
             });
      const std::size_t to = (r.from + 1) % tables;
      for (const std::uint64_t one : r.keys) {
        in_.pages.search(to, one);
        t.update(*in_.all[to], one, [&](item& row) {
          row.texts[r.column] = r.written;
          ++row.updates;
        });
        in_.pages.write(to, one);
      }
      done = clock::now();
    });
    const clock::time_point end = clock::now();
    std::int64_t expected_sum = 0;
    for (std::uint64_t k = r.key + 1; k <= r.key + in_.is.rows_read; ++k)
      expected_sum += Store::value_of(k);
    if (sum != expected_sum)
      throw std::logic_error("txbench: a sum of values that never change is wrong");
    rows_updated_ += r.keys.size();
    times& mine = took_[static_cast<std::size_t>(r.what)];
    mine.query.add(done - began);
    mine.commit.add(end - done);
    mine.both.add(end - start);
  }

  const times& took(kind what) const noexcept { return took_[static_cast<std::size_t>(what)]; }
  std::uint64_t rows_updated() const noexcept { return rows_updated_; }

 private:
  using clock = std::chrono::steady_clock;

  // InnoDB fetches the rows of a range in groups of eight (MYSQL_FETCH_CACHE_SIZE, from memory).
  static constexpr std::uint64_t rows_of_fetch = 8;

  Store& in_;
  random_bits random_;
  request request_{};
  std::array<times, kinds> took_;
  std::uint64_t rows_updated_ = 0;
};

// What the rows may be behind a run: how often each was updated, and the texts that were written to
// each of its columns.
template <class Store>
class expected {
 public:
  explicit expected(Store& of, std::uint64_t load_seed = 1) : of_(of), load_seed_(load_seed) {}

  // A client of that seed, all of whose steps were committed.
  void add(std::uint64_t seed, std::uint64_t steps) {
    client<Store> again(of_, seed);
    for (std::uint64_t i = 0; i < steps; ++i) {
      const request& r = again.draw();
      for (const std::uint64_t key : r.keys) {
        changes& here = rows_[{(r.from + 1) % tables, key}];
        ++here.updates;
        here.texts.emplace_back(r.column, r.written);
      }
    }
  }

  // One line for each kind of violation and table.
  [[nodiscard]] std::vector<std::string> violations() {
    random_bits random(load_seed_);
    std::vector<std::string> found;
    for (std::size_t i = 0; i < tables; ++i) {
      std::uint64_t rows = 0;
      std::uint64_t values = 0;
      std::uint64_t counts = 0;
      std::uint64_t texts = 0;
      of_.db.read_only([&](auto& t) {
        t.scan(*of_.all[i], std::uint64_t{0}, ~std::uint64_t{0},
               [&](std::uint64_t key, const item& row) {
                 const item was = Store::loaded_row(random, key);
                 const auto at = rows_.find({i, key});
                 const changes* const changed = at == rows_.end() ? nullptr : &at->second;
                 if (key == rows) ++rows;
                 if (row.value != was.value) ++values;
                 if (row.updates != (changed == nullptr ? 0 : changed->updates)) ++counts;
                 for (std::size_t c = 0; c < row.texts.size(); ++c) {
                   if (!may_be(row.texts[c], c, was.texts[c], changed)) ++texts;
                 }
                 return true;
               });
      });
      const auto tell = [&](std::uint64_t many, const char* what) {
        if (many != 0)
          found.push_back("txbench: table " + std::to_string(i + 1) + ": " + std::to_string(many) +
                          what);
      };
      tell(rows > of_.is.rows_each() ? rows - of_.is.rows_each() : of_.is.rows_each() - rows,
           " rows are missing or too many");
      tell(values, " rows have another value than was loaded");
      tell(counts, " rows have another number of updates than were committed");
      tell(texts, " texts were not written to their row and column last by anybody");
    }
    return found;
  }

 private:
  struct changes {
    std::uint64_t updates = 0;
    std::vector<std::pair<std::size_t, text>> texts;
  };

  // Of several writers, any may have been the last one.
  static bool may_be(const text& now, std::size_t column, const text& loaded,
                     const changes* changed) {
    bool written = false;
    if (changed != nullptr) {
      for (const auto& [where, what] : changed->texts) {
        if (where != column) continue;
        if (what == now) return true;
        written = true;
      }
    }
    return !written && now == loaded;
  }

  Store& of_;
  const std::uint64_t load_seed_;
  std::map<std::pair<std::size_t, std::uint64_t>, changes> rows_;
};

}  // namespace elidex::bench::txbench
