#pragma once
// How many commits a second a disk allows if one sync serves all threads that wait: a program that
// only writes and syncs.
//
//   group_commit_of(".", {.threads = 64, .bytes = 140}).rate();  // 2.1e5
//
// Each thread hands over some bytes and sleeps until they are on the disk. One more thread writes
// what has been handed over, syncs the file, and wakes those that waited for it. So the rate
// includes the wake-ups, which a database needs too, and nothing else.
//
// Thread-safety: a function without state. Errors: std::system_error.

#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace elidex::bench::stores {

struct group_commit_settings {
  unsigned threads = 1;
  std::size_t bytes = 100;  // of a commit
  double seconds = 1;       // a tenth of it more for the warm-up
};

struct group_commit {
  std::uint64_t commits = 0;
  std::uint64_t syncs = 0;
  double seconds = 0;
  [[nodiscard]] double rate() const noexcept { return static_cast<double>(commits) / seconds; }
};

/// Writes into a file of its own in the directory, and removes it.
[[nodiscard]] group_commit group_commit_of(const std::filesystem::path& directory,
                                           const group_commit_settings& settings);

}  // namespace elidex::bench::stores
