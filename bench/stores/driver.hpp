#pragma once
// Compares stores on the same works: interleaved round by round, checked after each run, medians
// over the rounds.
//
//   const bench_result result = run_bench({.stores = {find_store("elidex"), find_store("lmdb")},
//                                          .works = {find_work("reads")}}, {});
//   result.runs[0].rate;                  // transactions a second
//   result.runs[0].ratio_to_best_peer;    // only stores of the same durability level are compared
//
// A level's stores are loaded once (once in each round, if the load is measured), and run the works
// one after the other. In each round of a work the stores take turns. Between two turns the driver
// waits for the background work of the store that has run, and writes the file system's pending
// data. After each run of a work that writes, it reads all rows and compares them with what was
// committed (consistency.hpp). In each round of commits at level sync the disk has a turn, too
// (group_commit.hpp).
//
// Thread-safety: none; it uses the whole machine. Errors: bad_input for a directory in which
// nothing can be made; what stores throw.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench/runner/latency.hpp"
#include "bench/stores/disk.hpp"
#include "bench/stores/store.hpp"
#include "bench/stores/works.hpp"

namespace elidex::bench::stores {

struct bench_options {
  std::vector<const store_info*> stores;
  std::vector<durability> levels{durability::sync};
  std::vector<const work_info*> works;
  std::vector<unsigned> threads{1};         // of requests
  std::vector<unsigned> commit_threads{1};  // of commits
  std::uint64_t rows = 10'000;
  std::size_t value_bytes = 100;
  unsigned rows_per_commit = 1;
  std::uint64_t recovery_commits = 500;
  double seconds = 1;  // a tenth of it more for the warm-up
  unsigned rounds = 3;
  std::uint64_t seed = 1;
  /// In which the run makes one of its own, and removes it. Empty: the system's for temporary
  /// files.
  std::string directory = {};
  /// Starts write_until_killed() in a process of its own: the program and its first arguments.
  /// words_of() follow (killed_writer.hpp). Needed for recovery.
  std::vector<std::string> killed_writer = {};
};

/// The median, the lowest and the highest round.
struct spread {
  std::vector<double> rounds = {};
  double median = 0;
  double low = 0;
  double high = 0;

  /// From `rounds`.
  void summarize();
};

struct bench_run {
  const store_info* what = nullptr;
  const level_info* level = nullptr;
  const work_info* work = nullptr;
  unsigned threads = 1;
  spread rate = {};  // transactions a second; of a load, rows
  /// Absent without a peer.
  std::optional<double> ratio_to_best_peer = {};
  latency_histogram latency = {};  // of single transactions
  std::uint64_t transactions = 0;
  std::uint64_t retries = 0;
  double cpu_wait_pct = 0;
  std::vector<std::string> violations = {};
};

/// Of reopen and recovery: from the begin of open() to the first row read.
struct opening {
  const store_info* what = nullptr;
  const level_info* level = nullptr;
  const work_info* work = nullptr;
  spread ns = {};
  std::uint64_t rows = 0;          // that the store had then, in the last round
  std::uint64_t acknowledged = 0;  // commits before the kill, in all rounds
  std::uint64_t lost = 0;          // of them
  std::vector<std::string> violations = {};
};

struct stored {
  const store_info* what = nullptr;
  const level_info* level = nullptr;
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;  // on disk, behind the load, settled and closed
};

/// What the disk allows with so many threads: commits a second.
struct commit_bound {
  unsigned threads = 1;
  spread rate = {};
};

struct bench_result {
  std::vector<bench_run> runs = {};
  std::vector<opening> openings = {};
  std::vector<stored> sizes = {};
  disk_facts disk = {};
  std::vector<commit_bound> bounds = {};  // of commits at level sync
};

struct bench_progress {
  double done = 0;  // 0 to 1
  std::string doing;
};

[[nodiscard]] bench_result run_bench(const bench_options& options,
                                     const std::function<void(const bench_progress&)>& progress);

}  // namespace elidex::bench::stores
