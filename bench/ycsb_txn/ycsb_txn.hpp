#pragma once
// YCSB with transactions of several keys: each reads or changes rows of different keys, and the
// changes can be counted afterwards.
//
//   elidex::database db;
//   ycsb_txn::store s(db, {.what = *find_mix("a"), .keys = 100'000}, seed);
//   s.load();  // or load_share() of each share, on several threads
//   ycsb_txn::client c(s, seed);                     // one for each thread
//   c.step();                                        // one transaction
//   c.increments();                                  // of those that committed
//   s.counted();  // what the table has of it: the same as all clients' increments together
//
// A row has ten fields of 100 bytes, as YCSB's. Each access of a transaction is a read of the whole
// row or a read-modify-write of one field, as the mix draws it: a 50 % reads, b 95 %, c reads only,
// f read-modify-writes only. A field begins with a number that counts its changes; the rest is a
// letter that follows from the number. So a lost change is missing in the sum, and half of a change
// is seen in the field.
//
// The keys of a transaction differ. Their ranks follow Zipf's law, and the hot ones are scattered
// over the table, as in YCSB. They are taken in the order in which they are drawn, so two-phase
// locking meets deadlocks. All is drawn before the transaction begins.
//
// Thread-safety: a client and key_draws belong to one thread each; load_share() of different shares
// may run side by side; counted() while no client works. Errors: std::invalid_argument for settings
// that cannot be; std::logic_error for a row that is gone; what the database throws. From: Cooper
// et al., "Benchmarking cloud serving systems with YCSB" (SoCC 2010); 16 accesses in a transaction,
// as Yu et al., "Staring into the abyss" (VLDB 2014), and others after them have it. Deviations:
// YCSB's a and b overwrite fields unread, here they are read and changed, so that they can be
// counted; f has no other reads than its changes'.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "bench/workload/random.hpp"
#include "bench/workload/zipf.hpp"
#include "elidex/database.hpp"

namespace elidex::bench::ycsb_txn {

using namespace internal;

struct mix {
  std::string_view name;
  unsigned read_pct;  // of the accesses; the others change
  std::string_view description;
};
inline constexpr std::array<mix, 4> mixes{{
    {"a", 50, "half reads, half read-modify-writes"},
    {"b", 95, "95 % reads, 5 % read-modify-writes"},
    {"c", 100, "reads only"},
    {"f", 0, "read-modify-writes only"},
}};
/// Null if there is none.
[[nodiscard]] constexpr const mix* find_mix(std::string_view name) noexcept {
  for (const mix& one : mixes) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

/// Chosen: drawing looks through what a transaction has drawn already.
inline constexpr std::uint32_t operations_max = 64;

struct settings {
  mix what = mixes[0];
  std::uint64_t keys = 100'000;
  std::uint32_t operations = 16;  // of a transaction
  double theta = 0.99;
  isolation level = isolation::serializable;

  void check() const {
    if (operations < 1 || operations > operations_max || operations > keys || theta < 0)
      throw std::invalid_argument(
          "YCSB: 1 to 64 operations in a transaction, no more than there are keys");
  }
};

inline constexpr std::size_t fields = 10;
inline constexpr std::size_t field_bytes = 100;

class row {
 public:
  row() noexcept {
    for (std::size_t f = 0; f < fields; ++f) set(f, 0);
  }
  [[nodiscard]] std::uint64_t count(std::size_t f) const noexcept {
    std::uint64_t n = 0;
    std::memcpy(&n, fields_[f].data(), sizeof n);
    return n;
  }
  void change(std::size_t f) noexcept { set(f, count(f) + 1); }
  [[nodiscard]] std::uint64_t changes() const noexcept {
    std::uint64_t sum = 0;
    for (std::size_t f = 0; f < fields; ++f) sum += count(f);
    return sum;
  }
  // Whether each field's letters are those of its number.
  [[nodiscard]] bool whole() const noexcept {
    for (std::size_t f = 0; f < fields; ++f) {
      const char letter = letter_of(count(f));
      if (std::any_of(fields_[f].begin() + sizeof(std::uint64_t), fields_[f].end(),
                      [&](char c) { return c != letter; }))
        return false;
    }
    return true;
  }

 private:
  static char letter_of(std::uint64_t n) noexcept { return static_cast<char>('a' + n % 26); }
  void set(std::size_t f, std::uint64_t n) noexcept {
    std::memcpy(fields_[f].data(), &n, sizeof n);
    std::memset(fields_[f].data() + sizeof n, letter_of(n), field_bytes - sizeof n);
  }

  std::array<std::array<char, field_bytes>, fields> fields_;
};

// Keys 0 to keys - 1, and which of them a transaction touches.
class key_draws {
 public:
  key_draws(const settings& of, std::uint64_t scattered_by)
      : ranks_(of.keys, of.theta), key_of_(of.keys, scattered_by), drawn_(of.operations) {}

  // Different ones, as many as the settings say; until the next call.
  const std::vector<std::uint64_t>& draw(random_bits& bits) {
    for (auto next = drawn_.begin(); next != drawn_.end();) {
      *next = key_of_(ranks_.draw(bits));
      if (std::find(drawn_.begin(), next, *next) == next) ++next;
    }
    return drawn_;
  }

 private:
  const zipf_ranks ranks_;
  const permutation key_of_;
  std::vector<std::uint64_t> drawn_;
};

template <class Database>
class store {
 public:
  // Throws std::invalid_argument.
  store(Database& in, const settings& wanted, std::uint64_t seed)
      : db(in), is((wanted.check(), wanted)), scattered_by(seed) {}

  Database& db;
  const settings is;
  const std::uint64_t scattered_by;
  typename Database::template table<std::uint64_t, row>& rows =
      db.template create_table<std::uint64_t, row>("usertable");

  void load() {
    for (std::size_t i = 0; i < shares(); ++i) load_share(i);
  }
  [[nodiscard]] std::size_t shares() const noexcept {
    return (is.keys + keys_of_share - 1) / keys_of_share;
  }
  void load_share(std::size_t i) {
    const std::uint64_t end = std::min<std::uint64_t>((i + 1) * keys_of_share, is.keys);
    for (std::uint64_t first = i * keys_of_share; first < end; first += at_once) {
      db.transact([&](auto& t) {
        for (std::uint64_t key = first; key < std::min(first + at_once, end); ++key)
          t.insert(rows, key, row());
      });
    }
  }

  struct contents {
    std::uint64_t rows = 0;
    std::uint64_t changes = 0;
    std::uint64_t torn = 0;  // rows
  };
  [[nodiscard]] contents counted() {
    return db.read_only([&](auto& t) {
      contents sum;
      t.scan(rows, std::uint64_t{0}, UINT64_MAX, [&](std::uint64_t, const row& one) {
        ++sum.rows;
        sum.changes += one.changes();
        sum.torn += one.whole() ? 0U : 1U;
        return true;
      });
      return sum;
    });
  }

 private:
  static constexpr std::uint64_t keys_of_share = 4096;
  static constexpr std::uint64_t at_once = 16;
};

enum class kind : std::uint8_t { reading, changing };  // whether all accesses are reads
inline constexpr std::array<std::string_view, 2> kind_names{"reading", "changing"};

template <class Store>
class client {
 public:
  client(Store& in, std::uint64_t seed) : in_(in), bits_(seed), keys_(in.is, in.scattered_by) {
    accesses_.resize(in.is.operations);
  }

  kind step() {
    draw();
    const std::uint64_t seen = in_.db.transact(in_.is.level, [&](auto& t) {
      std::uint64_t sum = 0;
      for (const access& one : accesses_) {
        if (!one.changed_field) {
          const std::optional<row> read = t.get(in_.rows, one.key);
          if (!read) throw std::logic_error("YCSB: a row is gone");
          sum += read->changes();
        } else if (!t.update(in_.rows, one.key, [&](row& r) { r.change(*one.changed_field); })) {
          throw std::logic_error("YCSB: a row is gone");
        }
      }
      return sum;
    });
    seen_ += seen;
    increments_ += changes_;
    return changes_ == 0 ? kind::reading : kind::changing;
  }

  // Of transactions that committed.
  [[nodiscard]] std::uint64_t increments() const noexcept { return increments_; }
  // The sum of what was read, so that reading is not optimised away.
  [[nodiscard]] std::uint64_t seen() const noexcept { return seen_; }

 private:
  struct access {
    std::uint64_t key = 0;
    std::optional<std::size_t> changed_field;
  };

  void draw() {
    const auto& keys = keys_.draw(bits_);
    changes_ = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      accesses_[i] = {keys[i], std::nullopt};
      if (bits_.below(100) < in_.is.what.read_pct) continue;
      accesses_[i].changed_field = bits_.below(fields);
      ++changes_;
    }
  }

  Store& in_;
  random_bits bits_;
  key_draws keys_;
  std::vector<access> accesses_;
  std::uint64_t changes_ = 0;
  std::uint64_t increments_ = 0;
  std::uint64_t seen_ = 0;
};

}  // namespace elidex::bench::ycsb_txn
