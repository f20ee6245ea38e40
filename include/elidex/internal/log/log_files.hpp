// The files of a log: one directory with files that only grow at their end. Tests put a faulty disk
// in its place.
//
//   std::error_code error;
//   // locked against other processes; throws
//   auto directory = open_log_directory("/var/lib/store");
//   auto file = directory->create("redo-00000001.log", error);
//   write_whole(*file, bytes, error);  // continues after short writes and EINTR
//   file->sync(error);
//
// Guarantees that the log relies on:
// - Bytes that were written before a sync() that succeeds survive a crash. Of bytes written since,
//   any part may survive, in any order. The file may have any length in between.
// - rename() replaces the other file at once.
// - create(), rename() and remove() survive a crash once sync() of the directory has succeeded.
//   Before that, each of them may or may not survive.
// - After a failed sync() nothing is known about the bytes written since the last one that
//   succeeded. On Linux the next sync() may report success although the pages are lost. So the log
//   never tries again.
//
// Thread-safety: a directory may be used from any thread, a file by one thread at a time.
// Errors: functions report errors by `error`, which they clear first. They throw only
// std::bad_alloc. write_some() and read_some() may do less than requested, and may fail with
// std::errc::interrupted. write_whole() and read_whole() continue then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <system_error>
#include <vector>

namespace elidex::internal {

class log_file {
 public:
  log_file() = default;
  log_file(const log_file&) = delete;
  log_file& operator=(const log_file&) = delete;
  virtual ~log_file() = default;

  // Appends a prefix of `bytes`. Returns its length, which is at least one without an error.
  virtual std::size_t write_some(std::span<const std::byte> bytes, std::error_code& error) = 0;
  // Reads from this offset on. Returns 0 at the file's end.
  virtual std::size_t read_some(std::uint64_t offset, std::span<std::byte> bytes,
                                std::error_code& error) = 0;
  virtual std::uint64_t size(std::error_code& error) = 0;
  virtual void sync(std::error_code& error) = 0;
};

class log_directory {
 public:
  log_directory() = default;
  log_directory(const log_directory&) = delete;
  log_directory& operator=(const log_directory&) = delete;
  virtual ~log_directory() = default;

  // Returns a file's name, or that of the directory, as messages have it: with the path.
  virtual std::string shown(const std::string& name = {}) const {
    return name.empty() ? "the log directory" : name;
  }

  // The names of all files, in any order, including files that are not the log's.
  virtual std::vector<std::string> names(std::error_code& error) = 0;
  // Makes a new, empty file to append to. Fails with std::errc::file_exists if the file exists.
  virtual std::unique_ptr<log_file> create(const std::string& name, std::error_code& error) = 0;
  // Opens an existing file, for reading and for sync().
  virtual std::unique_ptr<log_file> open(const std::string& name, std::error_code& error) = 0;
  virtual void rename(const std::string& from, const std::string& to, std::error_code& error) = 0;
  virtual void remove(const std::string& name, std::error_code& error) = 0;
  virtual void sync(std::error_code& error) = 0;
};

// write  Creates the directory if it does not exist (its parent must). The lock is exclusive.
// read   Needs no write permission: files are opened for reading only, and create(), rename() and
//        remove() fail with read_only_file_system. The lock is shared with other readers.
// follow As read, but without a lock: another process may write.
// extend As write, but the directory must exist.
enum class directory_use : std::uint8_t { write, read, follow, extend };

// Locks the directory until the result is destroyed, without a lock file. Throws std::system_error:
//   resource_unavailable_try_again  Another process or object holds the lock.
//   function_not_supported          The system is not POSIX, or is the simulated machine, which has
//                                   no files.
//   otherwise                       the system's error
std::unique_ptr<log_directory> open_log_directory(const std::string& path,
                                                  directory_use use = directory_use::write);

// Writes everything, or fails. After an error it is unknown how much was written.
inline void write_whole(log_file& file, std::span<const std::byte> bytes, std::error_code& error) {
  error.clear();
  while (!bytes.empty()) {
    const std::size_t written = file.write_some(bytes, error);
    if (error == std::errc::interrupted) continue;
    if (error) return;
    bytes = bytes.subspan(written);
  }
}

// Returns the number of bytes read. It is less than requested only at the file's end.
inline std::size_t read_whole(log_file& file, std::uint64_t offset, std::span<std::byte> bytes,
                              std::error_code& error) {
  error.clear();
  std::size_t done = 0;
  while (done < bytes.size()) {
    const std::size_t read = file.read_some(offset + done, bytes.subspan(done), error);
    if (error == std::errc::interrupted) continue;
    if (error || read == 0) break;
    done += read;
  }
  return done;
}

}  // namespace elidex::internal
