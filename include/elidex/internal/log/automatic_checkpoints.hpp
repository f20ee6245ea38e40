// Checkpoints that the database writes by itself: a thread writes one when the log has grown enough
// or when some time has passed.
//
//   automatic_checkpoints own(log, {.bytes = 256 << 20}, there, [&] { return write(); });
//   own.note(finished, bytes_before);  // another caller has written a checkpoint
//   own.ask();                         // one is due now
//   own.report().failure;              // why the last attempt failed, if it did
//   own.stop();                        // before the log is closed
//
// Thread-safety: any thread may call report(), note() and ask(). One thread calls stop() and
// destroys the object.
// Lifetime: the log outlives the object. After stop() has returned, no checkpoint is being written.
// Errors: the constructor throws std::system_error if there can be no thread. A checkpoint that
// fails has removed nothing (checkpoint.hpp). It is counted in report(), and the thread tries again
// later. The thread ends when the log fails.
// fork(): a child does not have the thread. Its destructor and stop() do nothing there.
//
// Implementation notes
// A checkpoint costs time for all rows, so the log must have grown by at least the size of the last
// one. So the checkpoints by size write at most as much as the log. The log that a restart reads is
// at most as long as the checkpoint, or as limits::bytes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>

#include "elidex/internal/log/checkpoint.hpp"
#include "elidex/internal/log/redo_log.hpp"

namespace elidex::internal {

// The counts of the checkpoints that the database has written by itself.
struct automatic_checkpoints_report {
  std::uint64_t written = 0;
  std::uint64_t failed = 0;
  finished_checkpoint last;  // the last one that was written
  std::error_code failure;   // of the last attempt; no error if it succeeded
};

class automatic_checkpoints {
 public:
  struct limits {
    std::uint64_t bytes = 0;            // by which the log must grow; 0: no checkpoints by size
    std::chrono::milliseconds time{0};  // from one to the next; 0: no checkpoints by time
  };
  // The directory's files before the log continued.
  struct found_files {
    std::uint64_t segment_bytes = 0;
    std::uint64_t checkpoint_bytes = 0;
  };

  automatic_checkpoints(redo_log& log, const limits& when, const found_files& there,
                        std::function<finished_checkpoint()> write);
  ~automatic_checkpoints();
  automatic_checkpoints(const automatic_checkpoints&) = delete;
  automatic_checkpoints& operator=(const automatic_checkpoints&) = delete;

  // Waits for a checkpoint that is being written. A second call does nothing.
  void stop();
  // Call it after a checkpoint by another caller. `written_before` is the value of
  // log.written_bytes() when that checkpoint began.
  void note(const finished_checkpoint& finished, std::uint64_t written_before);
  // Makes a checkpoint due, whatever the limits are.
  void ask() noexcept {
    asked_.store(true);
    log_.interrupt_wait();
  }
  automatic_checkpoints_report report() const;
  // Returns when no checkpoint of this object is being written. None begins while the result has
  // the lock.
  std::unique_lock<std::mutex> wait_for_one() { return std::unique_lock(writing_); }

 private:
  using clock = std::chrono::steady_clock;
  void run() noexcept;
  // Returns whether the log has enough for a checkpoint, or the time has come.
  bool wait_until_due();
  void write_one();

  redo_log& log_;
  const limits when_;
  const std::function<finished_checkpoint()> write_;
  const std::uint64_t made_in_ = fork_generation();
  std::mutex writing_;
  mutable std::mutex mutex_;    // protects the members below
  std::int64_t covered_bytes_;  // of the log, in terms of written_bytes(); negative: older segments
  std::uint64_t checkpoint_bytes_;
  clock::time_point last_ = clock::now();
  clock::time_point not_before_ = last_;  // after a failure
  automatic_checkpoints_report report_;
  std::atomic<bool> asked_{false};
  std::thread thread_;
};

}  // namespace elidex::internal
