// A file that holds disk space, so that a database can leave a full disk.
//
//   space_reserve directory(std::move(kept), 64 << 20, [&] { ... });  // in place of the directory
//   directory.refill();                                               // makes the file
//
// When the disk is full, the write that finds that out removes the file and tries again. Then the
// caller writes a checkpoint, which removes the log before it, and calls refill().
//
// Thread-safety: as log_directory. refill(): any thread, one at a time.
// Errors: as log_directory. What the reserve itself meets is no error: without it a full disk is
// what it is without this class.
//
// Implementation notes
// The file's bytes are random, because a file system may store zeros or compressed data in less.
// Writes of the log and of the file may meet on a disk that is nearly full. The log goes first:
// release() ends a refill() that is running. If a refill() has ended since the write began, the
// write tries again, because the file may have been what filled the disk.
// After a power failure the file may be there or not, and may have another size. The name is not
// one of the log's, so recovery ignores it.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>

#include "elidex/internal/log/log_files.hpp"

namespace elidex::internal {

class space_reserve final : public log_directory {
 public:
  static constexpr const char* name = "space.reserve";

  // `released` is called by the thread that has removed the file, in the middle of a write. It must
  // not throw, and must not use the directory.
  space_reserve(std::unique_ptr<log_directory> of, std::uint64_t bytes,
                std::function<void()> released);

  // Makes the file, if there is room and it is not there.
  void refill();
  // Removes the file, if `in` has one. Errors do not matter.
  static void remove_from(log_directory& in);

  std::string shown(const std::string& of) const override { return of_->shown(of); }
  std::vector<std::string> names(std::error_code& error) override;
  std::unique_ptr<log_file> create(const std::string& file, std::error_code& error) override;
  std::unique_ptr<log_file> open(const std::string& file, std::error_code& error) override;
  void rename(const std::string& from, const std::string& to, std::error_code& error) override;
  void remove(const std::string& file, std::error_code& error) override;
  void sync(std::error_code& error) override;

 private:
  class file;
  // Calls write(error), and again if it finds the disk full and there is room then.
  template <class Write>
  auto when_full_again(std::error_code& error, const Write& write);
  // Whether a write that failed may succeed now. `refills`: their number before it.
  bool release(std::uint64_t refills);
  bool is_whole();
  bool write_piece(std::uint64_t& written);

  const std::unique_ptr<log_directory> of_;
  const std::uint64_t bytes_;
  const std::function<void()> released_;
  std::mutex mutex_;  // protects the members below
  bool is_there_ = false;
  std::unique_ptr<log_file> filling_;      // while refill() writes
  std::atomic<std::uint64_t> refills_{0};  // that have begun, and those that have ended
};

}  // namespace elidex::internal
