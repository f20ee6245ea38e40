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

/// Opens a file, and closes it at the end.
class open_file {
 public:
  open_file(const std::filesystem::path& at, int flags);
  ~open_file();
  open_file(const open_file&) = delete;
  open_file& operator=(const open_file&) = delete;
  [[nodiscard]] int get() const noexcept { return file_; }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
  int file_;
};

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
