#pragma once
// What a run needs to know of the disk.
//
//   disk_facts_of(".").fsync_ns;    // 1.2e6
//   allocated_bytes_of("rows");     // what the directory takes of the disk
//
// Thread-safety: functions without state. Errors: std::system_error.

#include <cstdint>
#include <filesystem>
#include <string>

namespace elidex::bench::stores {

struct disk_facts {
  std::string file_system;  // "ext4"; a number in hexadecimal digits for an unusual one
  double fsync_ns = 0;      // the median time to append 4 KiB to a file and call fsync
};

/// Writes a small file into the directory, and removes it.
[[nodiscard]] disk_facts disk_facts_of(const std::filesystem::path& directory);

/// The blocks of all files below the directory.
[[nodiscard]] std::uint64_t allocated_bytes_of(const std::filesystem::path& directory);

/// Writes all pending data of the directory's file system to the disk.
void sync_file_system(const std::filesystem::path& directory);

}  // namespace elidex::bench::stores
