#pragma once
// Whether a store has what its clients wrote, and nothing else.
//
//   const contents before = read_all(*session);
//   ...                                               // clients run
//   const contents after = read_all(*session);
//   find_violations(before, after, logs);             // empty: all is well
//
// What must be true behind a run:
// - each row is whole;
// - the keys are those of before, and those that were put;
// - a row that was put has the version of some client's last put of its key, and any other row has
//   its version of before;
// - if rows were incremented, the sum of all versions has grown by the number of increments, and no
//   version is less than before. A run has either puts or increments.
//
// So the check finds each lost insert and each lost increment. It finds a lost put if it was its
// client's last one of the row and no other client put the row.
//
// Thread-safety: pure functions.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bench/stores/store.hpp"

namespace elidex::bench::stores {

struct key_version {
  std::uint64_t key = 0;
  std::uint64_t version = 0;

  friend bool operator==(const key_version&, const key_version&) = default;
};

/// What one client has written.
struct write_log {
  explicit write_log(std::uint64_t writer) : writer_(writer) {}

  std::vector<key_version> puts = {};  // the last one of each key, and some earlier ones
  std::uint64_t increments = 0;

  void add_put(std::uint64_t key, std::uint64_t version) {
    puts.push_back({key, version});
    if (puts.size() >= puts_max_) drop_earlier_puts();
  }

  /// Greater than those before, and different from those of all other clients.
  [[nodiscard]] std::uint64_t next_version() noexcept {
    constexpr unsigned versions_bits = 32;
    return (writer_ << versions_bits) + ++versions_;
  }

 private:
  // Bounds the memory of a long run by the number of keys.
  void drop_earlier_puts();

  static constexpr std::size_t puts_max_at_first = std::size_t{1} << 20;
  std::size_t puts_max_ = puts_max_at_first;
  std::uint64_t writer_;
  std::uint64_t versions_ = 0;
};

/// All rows of a store in key order.
struct contents {
  std::vector<key_version> rows = {};
  std::uint64_t torn = 0;  // rows that are not whole
};

[[nodiscard]] contents read_all(session& from);

/// One sentence for each kind of violation, with how many there are.
[[nodiscard]] std::vector<std::string> find_violations(const contents& before,
                                                       const contents& after,
                                                       std::span<const write_log> logs);

}  // namespace elidex::bench::stores
