#include "bench/stores/disk.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <system_error>
#include <vector>

#include "bench/support/cleanup.hpp"

namespace elidex::bench::stores {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const fs::path& at) {
  throw std::system_error(errno, std::generic_category(), at.string());
}

// The numbers of linux/magic.h.
std::string name_of_file_system(const fs::path& directory) {
  struct statfs about{};
  if (::statfs(directory.c_str(), &about) != 0) fail(directory);
  constexpr std::array<std::pair<std::uint32_t, const char*>, 6> known{{{0xEF53, "ext4"},
                                                                        {0x58465342, "xfs"},
                                                                        {0x9123683E, "btrfs"},
                                                                        {0x01021994, "tmpfs"},
                                                                        {0x794C7630, "overlayfs"},
                                                                        {0x6969, "nfs"}}};
  const auto type = static_cast<std::uint32_t>(about.f_type);
  for (const auto& [number, name] : known) {
    if (number == type) return name;
  }
  std::array<char, 16> text{};
  std::snprintf(text.data(), text.size(), "0x%x", type);
  return text.data();
}

double median_fsync_ns(const fs::path& directory) {
  constexpr std::size_t times = 20;
  constexpr std::size_t bytes = 4'096;
  const temporary_path made(directory / "fsync");
  const open_file file(made.path(), O_CREAT | O_WRONLY | O_CLOEXEC);
  const std::vector<char> block(bytes, 'x');
  std::vector<double> all;
  for (std::size_t i = 0; i < times; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    if (::write(file.get(), block.data(), bytes) != static_cast<ssize_t>(bytes) ||
        ::fsync(file.get()) != 0)
      fail(made.path());
    all.push_back(
        std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count());
  }
  std::nth_element(all.begin(), all.begin() + times / 2, all.end());
  return all[times / 2];
}

}  // namespace

open_file::open_file(const fs::path& at, int flags)
    : path_(at), file_(::open(at.c_str(), flags, 0600)) {
  if (file_ < 0) fail(at);
}
open_file::~open_file() {
  ::close(file_);
}

disk_facts disk_facts_of(const fs::path& directory) {
  return {.file_system = name_of_file_system(directory), .fsync_ns = median_fsync_ns(directory)};
}

std::uint64_t allocated_bytes_of(const fs::path& directory) {
  constexpr std::uint64_t block_bytes = 512;  // of st_blocks
  std::uint64_t sum = 0;
  for (const auto& one : fs::recursive_directory_iterator(directory)) {
    struct stat about{};
    if (::lstat(one.path().c_str(), &about) == 0 && S_ISREG(about.st_mode))
      sum += static_cast<std::uint64_t>(about.st_blocks) * block_bytes;
  }
  return sum;
}

void sync_file_system(const fs::path& directory) {
  const open_file at(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (::syncfs(at.get()) != 0) fail(directory);
}

}  // namespace elidex::bench::stores
