#pragma once
// A process that commits rows until SIGKILL ends it, and what the store must then have.
//
//   // in a child process:
//   write_until_killed(*find_store("lmdb"), {.setup = .., .commits = 100, .acknowledged = "acks"});
//   // afterwards, in the parent:
//   const recovered found = compare_recovered(read_all(*session), settings);
//
// The process appends `rows` rows and starts several threads. Each inserts rows with keys of its
// own, one in a transaction, and counts each acknowledged commit in a file that both processes map.
// The thread that counts commit number `commits` kills the process, while the others commit.
//
// At level sync each acknowledged commit must be there. At each level, the rows of a thread that
// are there must be its first ones, and at most one of them was not acknowledged.
//
// Thread-safety: functions without state. Errors: std::system_error, and what the store throws.

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/stores/consistency.hpp"
#include "bench/stores/store.hpp"

namespace elidex::bench::stores {

inline constexpr unsigned killed_threads = 4;
/// Rows of one transaction of a load.
inline constexpr std::uint64_t load_batch = 1'000;

struct killed_settings {
  store_setup setup;
  std::uint64_t commits = 500;
  std::string acknowledged;  // the file
};

/// The settings as flags of a program: "--store", "lmdb", and so on.
[[nodiscard]] std::vector<std::string> words_of(const std::string& store,
                                                const killed_settings& settings);

/// Inserts rows 0 to rows - 1.
void load_rows(session& into, std::uint64_t rows);

[[noreturn]] void write_until_killed(const store_info& info, const killed_settings& settings);

struct recovered {
  std::uint64_t acknowledged = 0;  // commits, those of the load not included
  std::uint64_t lost = 0;          // of them
  std::vector<std::string> violations = {};
};

[[nodiscard]] recovered compare_recovered(const contents& found, const killed_settings& settings);

}  // namespace elidex::bench::stores
