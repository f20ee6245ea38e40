// A redo log with group commit by epochs: what committed transactions have changed, on disk, some
// epochs at a time.
//
//   commit_clock epochs;
//   // recovery.hpp
//   redo_log log(epochs, *folder, found, {.level = durability::sync,
//       .fingerprint = schema});
//   redo_log::worker me(log);                // one for each thread
//   redo_log::commit commit(me);
//   commit.upsert(table, key, row);                         // may throw; nothing has happened then
//   commit.seal();                                       // the last thing that may throw
//   {
//     const commit_clock::commit_phase phase(epochs);
//     ... lock, read the epoch, validate: to give up, just leave ...
//     commit.keep(stamp);  // before or after the writes are installed
//     ... install the writes, release the locks ...
//   }
//   log.acknowledge(me, stamp.epoch());  // sync: returns when the transaction is durable
//
// How. A thread puts its records into a queue of its own (log_queue.hpp), within its commit phase.
// The logger's thread moves the clock on, waits until no commit phase of the epochs before it runs
// (commit_clock.hpp, completed()), takes from all queues the records up to the last completed epoch
// E, writes them and an end block that counts them, syncs the file, and publishes durable_epoch()
// == E. The epochs since the last time are a group, named by its last epoch; whoever else moves the
// clock on only makes groups of more epochs. No lock is taken by a commit. The next group ends
// after epoch_time, or at once if somebody waits: as many commits share a sync as come while the
// last one runs.
//
// Nothing of a group is missing: a record of epoch <= E was published before its commit phase
// ended, which completed() saw. Why one sync for a group and its end block is enough. The order in
// which a disk writes them means nothing, because the reader reads in the order of the file and
// takes a group only if the end block is whole, all blocks before it are, each by its checksum, and
// they are as many, and as long, as the end block counts. So after a crash within the sync a group
// is there whole or not at all, and durable_epoch() has not said a word of it yet; after the sync
// it is there. A transaction's entries have one epoch, so it is there whole or not at all; and the
// transactions whose effects it has seen have that epoch or an earlier one, so a recovered state is
// what a prefix of the serial order leaves.
//
// After a sync the logger writes a small block that says so, and does not sync it: with it, and
// with every later block, a reader knows that damage before it is no torn end (recovery.hpp).
//
// Segments. A file that has reached segment_bytes is followed by another at an epoch's end. The
// next one's header, synced with the folder before anything is written behind it, says up to which
// byte the one before counts; so an end that a crash has torn is cut off by the header of the
// segment that the recovered log begins, and no file is ever changed behind its end or overwritten.
//
// Of two commits that write the same key the later one has the larger stamp. A change of a row
// needs all earlier ones of that row: they are in a checkpoint's row with a stamp, and in the log
// behind that (recovery.hpp). What is installed is kept in the same commit phase, before it or
// after: a checkpoint relies on all effects of an epoch being there when the epoch is completed
// (checkpoint.hpp). A region that commits by itself has its commit phase around it, begun before
// the region reads its epoch: keep() comes behind the region.
//
// Errors. If writing or syncing fails, the log has failed for good: durable_epoch() stays, and
// commit's constructor, acknowledge(), wait_durable() and close() throw std::system_error with the
// first error's code. Nothing is tried again, because after a sync that failed the system may have
// dropped the pages (log_files.hpp). A transaction whose acknowledge() throws is installed, and
// durable or not: only a recovery knows. What was written half is no epoch, or an epoch whose
// success nobody had been told of. After close() commits and checkpoints throw
// std::errc::operation_canceled; everything is durable then.
//
// fork(). A child has no logger thread, and the files belong to the parent. In a child the
// constructors of worker and commit, wait_durable(), close() and checkpoints throw forked_child,
// and nothing is written. The destructor returns at once. It does not free the queues that the
// logger may have been working on.
//
// Levels: async: acknowledge() does not wait, but for queues over their limit; a crash loses the
// epochs after durable_epoch(): what was committed in the last epoch_time and during the sync that
// was running. sync: acknowledge() waits for durable_epoch(). (none: there is no log.)
//
// Thread-safety: a worker and its commits belong to one thread at a time; all else from any thread,
// outside of regions. A log outlives its workers, epochs and folder outlive the log. Source: Tu et
// al., "Speedy Transactions in Multicore In-Memory Databases", SOSP 2013, section 4.10: threads log
// to buffers of their own, epochs become durable together, recovery goes by the larger TID.
// Deviations: one logger instead of several; epochs end early when somebody waits instead of every
// 40 ms only; the end block instead of a separate file with the durable epoch, so one sync instead
// of two; records of all threads lie in one file by epochs, so recovery needs no table of what was
// erased.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>

#include "elidex/internal/log/log_files.hpp"
#include "elidex/internal/log/log_format.hpp"
#include "elidex/internal/log/log_queue.hpp"
#include "elidex/internal/log/recovery.hpp"
#include "elidex/internal/memory/fork_generation.hpp"
#include "elidex/internal/sync/futex.hpp"
#include "elidex/internal/txn/commit_clock.hpp"

namespace elidex::internal {

enum class durability : std::uint8_t { none, async, sync };

struct redo_log_options {
  durability level = durability::async;  // or sync
  std::uint64_t fingerprint = 0;         // of the schema
  // The longest that an epoch lasts. Chosen: a crash at level async loses that much and one sync's
  // time.
  std::chrono::microseconds epoch_time{10'000};
  // a segment is at least that long, but for the last one
  std::size_t segment_bytes = std::size_t{64} << 20;
  // A thread with more bytes than that to be written waits for them. Chosen.
  std::size_t worker_bytes_max = std::size_t{8} << 20;
};

class log_writer;

class redo_log {
 public:
  class worker;
  class commit;

  // Goes on where `found` ends, which recover_log() has just said of this folder: syncs what it
  // read, begins a segment, removes what was never finished. The clock goes on at found.first_epoch
  // at least; nobody may have committed by it yet. Throws std::system_error; the folder can then be
  // recovered as before. std::invalid_argument with level none.
  redo_log(commit_clock& epochs, log_folder& folder, const recovered_log& found,
           const redo_log_options& options);
  // As close(), but silent.
  ~redo_log();
  redo_log(const redo_log&) = delete;
  redo_log& operator=(const redo_log&) = delete;

  durability level() const noexcept { return options_.level; }
  commit_clock& epochs() const noexcept { return epochs_; }

  // Everything that was kept in this epoch or before survives a crash.
  std::uint64_t durable_epoch() const noexcept {
    // acquire: pairs with the release in publish(): what commits of this epoch installed is
    // visible.
    return durable_.load(std::memory_order_acquire);
  }

  // What the level demands after a commit, outside of it; see above. Throws std::system_error.
  void acknowledge(const worker& by, std::uint64_t epoch);

  // Returns when durable_epoch() >= epoch, which it brings about; throws std::system_error if that
  // will never be. Not from inside a commit.
  void wait_durable(std::uint64_t epoch);

  // Makes everything kept durable and ends the logger. Throws std::system_error if that failed, now
  // or before. A second call does nothing. No commit may be running.
  void close();

  // Throws forked_child in a child of the process that made the log.
  void check_process() const {
    if (is_parents()) [[unlikely]]
      throw_forked();
  }

  // Nothing if the log works; otherwise what it has failed of.
  std::error_code failure() const noexcept;

 private:
  friend class checkpoint_writer;
  friend class internal::log_writer;

  // A thread's place. Made once, given to the next worker when its worker ends, freed with the log.
  struct slot {
    internal::log_queue queue;
    bool in_use = true;  // with slots_mutex_
    std::unique_ptr<slot> next;
  };

  slot& take_slot();
  void run() noexcept;
  void finish_group();
  void publish(std::uint64_t epoch) noexcept;
  void fail(std::error_code error, const char* what) noexcept;
  bool is_parents() const noexcept { return made_in_ != fork_generation(); }
  [[noreturn]] static void throw_forked();
  [[noreturn]] void throw_failure() const;
  void check() const {
    check_process();
    // acquire: pairs with the release in fail(): the error's code is there.
    if (failed_.load(std::memory_order_acquire)) throw_failure();
  }

  commit_clock& epochs_;
  redo_log_options options_;
  const std::uint64_t made_in_ = fork_generation();
  std::unique_ptr<internal::log_writer> writer_;

  std::mutex slots_mutex_;
  std::unique_ptr<slot> slots_;  // the newest first

  alignas(128) std::atomic<std::uint64_t> durable_{0};
  std::atomic<std::uint64_t> wanted_{0};  // an epoch that somebody waits for
  futex_word work_{0};                    // counts reasons for the logger to look again
  futex_word progress_{0};                // counts reasons for waiters to look again
  std::atomic<bool> stop_{false};
  std::atomic<bool> failed_{false};
  std::error_code failure_;  // written before failed_
  std::string failure_text_;

  std::mutex closing_;
  std::thread logger_;
};

// What one thread logs with.
class redo_log::worker {
 public:
  // std::bad_alloc, std::system_error of a mutex, forked_child. Not from inside a commit.
  explicit worker(redo_log& log) : log_(log), slot_(log.take_slot()) {}
  // What was kept stays kept.
  ~worker();
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;

  redo_log& log() const noexcept { return log_; }

 private:
  friend class redo_log;
  friend class commit;
  redo_log& log_;
  slot& slot_;
  byte_buffer record_;  // of the commit under way
};

// A transaction's entries. They count only if keep() was called. One at a time of each worker.
class redo_log::commit {
 public:
  // Throws std::system_error if the log has failed, forked_child.
  explicit commit(worker& by) : worker_(by) {
    by.log_.check();
    by.record_.clear();
  }
  commit(const commit&) = delete;
  commit& operator=(const commit&) = delete;

  // Of several entries of one key in one transaction the last one counts, after the changes before
  // it. Throw std::bad_alloc or std::length_error (a key or row of 2 GiB); the entries so far stay.
  void upsert(std::uint32_t table, std::string_view key, std::string_view row) {
    append_entry(begun_record(), table, log_operation::put, key, row);
    ++entries_;
  }
  void erase(std::uint32_t table, std::string_view key) {
    append_entry(begun_record(), table, log_operation::erase, key, {});
    ++entries_;
  }
  // A put of `after` that logs only in which words the row differs from `before`: what is there
  // when this commits, or the entries before this one leave.
  void change(std::uint32_t table, std::string_view key, std::string_view before,
              std::string_view after) {
    append_change(begun_record(), table, key, before, after);
    ++entries_;
  }

  // No more entries. Throws std::bad_alloc or std::length_error (a transaction of 4 GiB).
  void seal() {
    if (entries_ != 0) worker_.slot_.queue.stage(worker_.record_.bytes(), entries_);
  }

  // Sealed, and in the commit phase in which the stamp's epoch was read. From now on the
  // transaction is a part of its epoch, whatever happens. Once.
  void keep(commit_stamp stamp) noexcept {
    if (entries_ != 0) worker_.slot_.queue.publish(stamp);
  }

 private:
  byte_buffer& begun_record() {
    if (worker_.record_.empty()) begin_record(worker_.record_);
    return worker_.record_;
  }

  worker& worker_;
  std::uint32_t entries_ = 0;
};

}  // namespace elidex::internal
