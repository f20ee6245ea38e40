// The only file of the log that calls the system.
#include "elidex/internal/log/log_files.hpp"

#include "elidex/internal/memory/fork_generation.hpp"

#if defined(__unix__) && !defined(ELIDEX_SIMULATED)
#  include <dirent.h>
#  include <errno.h>
#  include <fcntl.h>
#  include <sys/file.h>
#  include <sys/stat.h>
#  include <unistd.h>
#  define ELIDEX_HAS_FILES 1
#endif

namespace elidex::internal {

#if defined(ELIDEX_HAS_FILES)
namespace {

std::error_code last_error() noexcept {
  return {errno, std::generic_category()};
}

// For calls that return a negative number if they fail; tries again those that a signal has
// interrupted.
template <class Call>
auto until_not_interrupted(Call&& call, std::error_code& error) {
  for (;;) {
    const auto result = call();
    if (result >= 0) {
      error.clear();
      return result;
    }
    if (errno != EINTR) {
      error = last_error();
      return result;
    }
  }
}

class descriptor {
 public:
  explicit descriptor(int number) noexcept : number_(number) {}
  ~descriptor() { ::close(number_); }
  descriptor(const descriptor&) = delete;
  descriptor& operator=(const descriptor&) = delete;
  int get() const noexcept { return number_; }

 private:
  int number_;
};

class system_file final : public log_file {
 public:
  explicit system_file(int number) noexcept : descriptor_(number) {}

  std::size_t write_some(std::span<const std::byte> bytes, std::error_code& error) override {
    const auto written = until_not_interrupted(
        [&] { return ::write(descriptor_.get(), bytes.data(), bytes.size()); }, error);
    // A result of 0 for some bytes is not an error by POSIX. A retry might never end.
    if (written == 0 && !bytes.empty()) error = std::make_error_code(std::errc::io_error);
    return written < 0 ? 0 : static_cast<std::size_t>(written);
  }

  std::size_t read_some(std::uint64_t offset, std::span<std::byte> bytes,
                        std::error_code& error) override {
    const auto read = until_not_interrupted(
        [&] {
          return ::pread(descriptor_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
        },
        error);
    return read < 0 ? 0 : static_cast<std::size_t>(read);
  }

  std::uint64_t size(std::error_code& error) override {
    struct stat status{};
    until_not_interrupted([&] { return ::fstat(descriptor_.get(), &status); }, error);
    return error ? 0 : static_cast<std::uint64_t>(status.st_size);
  }

  // Syncs the size too, as far as reading the bytes needs it.
  void sync(std::error_code& error) override {
    until_not_interrupted([&] { return ::fdatasync(descriptor_.get()); }, error);
  }

 private:
  descriptor descriptor_;
};

class system_directory final : public log_directory {
 public:
  system_directory(int number, std::string path, directory_use use) noexcept
      : descriptor_(number), path_(std::move(path)), use_(use) {}
  // A child of fork() shares the lock. Closing the descriptor releases the lock only after all
  // processes have closed it. So the process that locked releases it itself, and no other does.
  ~system_directory() override {
    if (use_ != directory_use::follow && made_in_ == fork_generation())
      ::flock(descriptor_.get(), LOCK_UN);
  }

  std::string shown(const std::string& name) const override {
    if (name.empty()) return path_;
    return path_.ends_with('/') ? path_ + name : path_ + "/" + name;
  }

  std::vector<std::string> names(std::error_code& error) override {
    std::vector<std::string> found;
    // A separate descriptor, because closedir() closes it and moves its position.
    const int number = open_at(".", O_RDONLY | O_DIRECTORY, error);
    if (error) return found;
    DIR* const stream = ::fdopendir(number);
    if (stream == nullptr) {
      error = last_error();
      ::close(number);
      return found;
    }
    const std::unique_ptr<DIR, int (*)(DIR*)> closer(stream,
                                                     [](DIR* open) { return ::closedir(open); });
    for (;;) {
      errno = 0;
      const dirent* const entry = ::readdir(stream);
      if (entry == nullptr) break;
      found.emplace_back(entry->d_name);
    }
    if (errno != 0) error = last_error();
    return found;
  }

  std::unique_ptr<log_file> create(const std::string& name, std::error_code& error) override {
    if (!may_write(error)) return nullptr;
    return file_or_null(open_at(name, O_RDWR | O_CREAT | O_EXCL | O_APPEND, error));
  }

  std::unique_ptr<log_file> open(const std::string& name, std::error_code& error) override {
    return file_or_null(open_at(name, is_writer() ? O_RDWR | O_APPEND : O_RDONLY, error));
  }

  void rename(const std::string& from, const std::string& to, std::error_code& error) override {
    if (!may_write(error)) return;
    until_not_interrupted(
        [&] { return ::renameat(descriptor_.get(), from.c_str(), descriptor_.get(), to.c_str()); },
        error);
  }

  void remove(const std::string& name, std::error_code& error) override {
    if (!may_write(error)) return;
    until_not_interrupted([&] { return ::unlinkat(descriptor_.get(), name.c_str(), 0); }, error);
  }

  void sync(std::error_code& error) override {
    until_not_interrupted([&] { return ::fsync(descriptor_.get()); }, error);
  }

 private:
  bool is_writer() const noexcept {
    return use_ == directory_use::write || use_ == directory_use::extend;
  }
  bool may_write(std::error_code& error) const {
    if (is_writer()) return true;
    error = std::make_error_code(std::errc::read_only_file_system);
    return false;
  }

  int open_at(const std::string& name, int flags, std::error_code& error) const {
    return until_not_interrupted(
        [&] { return ::openat(descriptor_.get(), name.c_str(), flags | O_CLOEXEC, 0644); }, error);
  }

  static std::unique_ptr<log_file> file_or_null(int number) {
    if (number < 0) return nullptr;
    try {
      return std::make_unique<system_file>(number);
    } catch (...) {
      ::close(number);
      throw;
    }
  }

  descriptor descriptor_;
  const std::string path_;
  const directory_use use_;
  const std::uint64_t made_in_ = fork_generation();
};

}  // namespace

std::unique_ptr<log_directory> open_log_directory(const std::string& path, directory_use use) {
  if (path.find('\0') != std::string::npos)
    throw std::system_error(std::make_error_code(std::errc::invalid_argument),
                            "elidex: the log directory's path has a zero byte (expected none)");
  std::error_code error;
  bool made = use == directory_use::write;
  if (made) until_not_interrupted([&] { return ::mkdir(path.c_str(), 0777); }, error);
  if (error == std::errc::file_exists) {
    made = false;
    error.clear();
  }
  if (error) throw std::system_error(error, "elidex: cannot create the log directory " + path);
  const int number = until_not_interrupted(
      [&] { return ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }, error);
  if (error) throw std::system_error(error, "elidex: cannot open the log directory " + path);
  std::unique_ptr<log_directory> directory;
  try {
    directory = std::make_unique<system_directory>(number, path, use);
  } catch (...) {
    ::close(number);
    throw;
  }
  if (use == directory_use::follow) return directory;
  const int lock = use == directory_use::read ? LOCK_SH : LOCK_EX;
  until_not_interrupted([&] { return ::flock(number, lock | LOCK_NB); }, error);
  if (error == std::errc::resource_unavailable_try_again)
    throw std::system_error(
        error,
        "elidex: a database, of this process or another one, has the directory open: " + path);
  if (error) throw std::system_error(error, "elidex: cannot lock the log directory " + path);
  if (use == directory_use::read) return directory;
  // The directory's own entry is in its parent. The process that created it may have crashed before
  // it synced the parent.
  const int parent = until_not_interrupted(
      [&] { return ::openat(number, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC); }, error);
  if (!error) {
    const descriptor closer(parent);
    until_not_interrupted([&] { return ::fsync(parent); }, error);
  }
  // If the parent cannot be read, a directory that existed before is still accepted.
  if (error && made)
    throw std::system_error(error, "elidex: cannot sync the directory that has " + path);
  return directory;
}

#else

std::unique_ptr<log_directory> open_log_directory(const std::string& path, directory_use) {
  throw std::system_error(std::make_error_code(std::errc::function_not_supported),
                          "elidex: no files here, not even " + path);
}

#endif

}  // namespace elidex::internal
