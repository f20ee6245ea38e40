// A redo log with group commit: it makes the changes of committed transactions durable, one batch
// of commit groups per fsync.
//
//   commit_clock clock;
//   // recovery.hpp
//   redo_log log(clock, *directory, found, {.level = durability::sync, .fingerprint = schema});
//   redo_log::worker me(log);                // one for each thread
//   redo_log::commit commit(me);
//   commit.upsert(table, key, row);          // if it throws, nothing has happened
//   {
//     const commit_clock::commit_phase phase(clock);
//     ... lock, read the group, validate: to give up, leave the scope ...
//     commit.keep(stamp);  // before or after the writes are installed
//     ... install the writes, release the locks ...
//   }
//   log.acknowledge(me, stamp.group());  // sync: returns when the transaction is durable
//
// Levels of durability:
//   async  acknowledge() waits only for queues above their limit. A crash loses the groups after
//          durable_group(): the commits of the last group_time and of the running sync.
//   sync   acknowledge() waits for durable_group().
//   none   There is no log.
//
// Thread-safety: a worker and its commits belong to one thread at a time. Everything else may be
// called from any thread, outside of regions.
// Lifetime: a log outlives its workers. The clock and the directory outlive the log.
// Errors: if a write or a sync fails, the log has failed for good, and durable_group() does not
// change any more. Then commit's constructor, acknowledge(), wait_durable() and close() throw
// std::system_error with the first error's code. Nothing is retried, because after a failed sync
// the system may have dropped the pages (log_files.hpp). A transaction whose acknowledge() throws
// is installed. Recovery drops a batch that is only partly on disk. It may restore a complete batch
// whose acknowledge() threw. After close() all commits are durable, and further commits and
// checkpoints throw std::errc::operation_canceled.
// fork(): a child has no logger thread, and the files belong to the parent. In a child the
// constructors of worker and commit, wait_durable(), close() and checkpoints throw forked_child,
// and nothing is written. The destructor returns at once. It does not free the queues that the
// logger may have been working on.
//
// Implementation notes
// How a batch is made. A thread makes its records in its own queue (log_queue.hpp), and publishes
// them within its commit phase. The logger repeats four steps:
// 1. It advances the clock, and waits until no commit phase of the earlier groups runs
//    (commit_clock.hpp, wait_for()).
// 2. It takes the records up to the last of these groups, E, from all queues.
// 3. It writes them, and an end block that counts them.
// 4. It syncs the file, and publishes durable_group() == E.
// The commit groups since the previous batch are one batch, named by its last group. A batch has
// several groups only if another thread, a snapshot's for example, advances the clock. A commit
// takes no lock. The next batch ends after group_time, or at once if a thread waits. So one sync
// serves all commits that arrive while the previous one runs.
//
// No record of a batch is missing: a record of a group <= E was published before its commit phase
// ended. wait_for() saw that end.
//
// Why one sync for a batch and its end block is sufficient. The order in which a disk writes them
// does not matter, because the reader reads in the order of the file. It takes a batch only if the
// end block and all blocks before it are whole, each by its checksum. Their number and length must
// also be those in the end block. So after a crash during the sync a batch is there whole or not at
// all, and durable_group() has not advanced to it. After the sync it is there. A transaction's
// entries have one group, so they are there together or not at all. The transactions whose effects
// it has seen have that group or an earlier one. So a recovered state is the result of a prefix of
// the serial order.
//
// After a sync the logger writes a small block that records it, and does not sync that block. This
// block, and every later one, tells a reader that damage before it is not a torn end
// (recovery.hpp).
//
// Segments. When a file has reached segment_bytes, the next segment begins after a batch.
// Its header contains the valid length of the previous one. The header is synced with the directory
// before anything is written behind it. So the header of the segment that a recovered log begins
// cuts off an end that a crash has torn. No file is ever changed behind its end or overwritten.
//
// Of two commits that write the same key the later one has the larger stamp. A change of a row
// needs all earlier changes of it. They are in a checkpoint's row with a stamp, and in the log
// after that (recovery.hpp). A transaction is kept in the commit phase in which it is installed,
// before or after the installation. A checkpoint relies on this: all effects of a group are
// installed when the group is completed (checkpoint.hpp). A region that commits by itself has its
// commit phase around it. The phase begins before the region reads its group, and keep() follows
// the region.
//
// Source: Tu et al., "Speedy Transactions in Multicore In-Memory Databases", SOSP 2013, section
// 4.10. Threads log to their own buffers, groups (Silo's epochs) become durable together, and
// recovery uses the larger TID. Deviations:
// - One logger instead of several.
// - Groups end early when a thread waits, instead of only every 40 ms.
// - An end block instead of a separate file with the durable group, so one sync instead of two.
// - The records of all threads lie in one file by groups, so recovery needs no table of erased
//   rows.
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
  // The longest time between two batches. At level async a crash may lose the transactions of this
  // time and of one fsync. Chosen.
  std::chrono::microseconds group_time{10'000};
  // The least length of every segment but the last.
  std::size_t segment_bytes = std::size_t{64} << 20;
  // A thread waits if more bytes than this are queued to be written. Chosen.
  std::size_t worker_bytes_max = std::size_t{8} << 20;
  compression compressed = compression::none;  // of segments and checkpoints
  bool keep_history = false;                   // checkpoints remove nothing
};

class log_writer;

class redo_log {
 public:
  class worker;
  class commit;

  // Continues the log at the end of `found`, the result of recover_log() for this directory. It
  // syncs what recovery read, begins a segment, and removes unfinished checkpoints. The clock
  // continues at found.first_group or later. No transaction may have committed by it yet. Throws
  // std::system_error, and the directory can then be recovered as before. Throws
  // std::invalid_argument with level none, or a compression that the library was built without.
  redo_log(commit_clock& clock, log_directory& directory, const recovered_log& found,
           const redo_log_options& options);
  // As close(), but reports no error.
  ~redo_log();
  redo_log(const redo_log&) = delete;
  redo_log& operator=(const redo_log&) = delete;

  durability level() const noexcept { return options_.level; }
  commit_clock& clock() const noexcept { return clock_; }

  // Everything that was kept in this group or before it survives a crash.
  std::uint64_t durable_group() const noexcept {
    // acquire: pairs with the release in publish(). The writes that commits of this group installed
    // are visible.
    return durable_.load(std::memory_order_acquire);
  }

  // Waits as the level requires after a commit, outside of its commit phase (see above). Throws
  // std::system_error.
  void acknowledge(const worker& by, std::uint64_t group);

  // Makes durable_group() reach `group`, and returns then. Throws std::system_error if it never
  // will. Not to be called from inside a commit.
  void wait_durable(std::uint64_t group);

  // Begins another segment, unless the present one is short, and returns then. So a checkpoint that
  // begins now can remove the present one. Throws what wait_durable() throws.
  void begin_new_segment();

  // The bytes that this log has written to segments.
  std::uint64_t written_bytes() const noexcept { return written_.load(); }
  // Returns when written_bytes() has reached `bytes`, at the deadline, or after interrupt_wait().
  // Returns false after end_wait(), or if the log has failed. One thread at a time: that of
  // automatic_checkpoints.hpp.
  static constexpr std::uint64_t no_bytes = ~std::uint64_t{0};  // never reached
  bool wait_until_written(std::uint64_t bytes, futex_deadline deadline);
  void end_wait() noexcept;
  void interrupt_wait() noexcept;

  // How fast the log is written. On a full disk it is slow until a checkpoint has removed a part of
  // it: a pause before each batch. While a checkpoint writes rows, which needs no batch, it can be
  // held. Commits that wait for the log then wait longer.
  enum class pace : std::uint32_t { normal, slow, held };
  void set_pace(pace wanted) noexcept;

  // Makes everything that was kept durable, and ends the logger. Throws std::system_error if that
  // failed now or earlier. A second call does nothing. No commit may be running.
  void close();

  // Throws forked_child in a child of the process that made the log.
  void check_process() const {
    if (is_parents()) [[unlikely]]
      throw_forked();
  }

  // No error if the log works, otherwise the reason for its failure.
  std::error_code failure() const noexcept;

 private:
  friend class checkpoint_writer;
  friend class checkpoint_pause;
  friend class internal::log_writer;

  // A thread's place. It goes to the next worker when its worker ends, and is freed with the log.
  struct slot {
    internal::log_queue queue;
    bool in_use = true;  // protected by slots_mutex_
    std::unique_ptr<slot> next;
  };

  slot& take_slot();
  void run() noexcept;
  void finish_batch();
  void wait_for_pace() noexcept;
  void wake_growth() noexcept;
  void publish(std::uint64_t group) noexcept;
  void fail(std::error_code error, const char* what) noexcept;
  bool is_parents() const noexcept { return made_in_ != fork_generation(); }
  [[noreturn]] static void throw_forked();
  [[noreturn]] void throw_failure() const;
  void check() const {
    check_process();
    // acquire: pairs with the release in fail(). The error's code is written.
    if (failed_.load(std::memory_order_acquire)) throw_failure();
  }

  commit_clock& clock_;
  redo_log_options options_;
  const std::uint64_t made_in_ = fork_generation();
  std::unique_ptr<internal::log_writer> writer_;

  std::mutex slots_mutex_;
  std::unique_ptr<slot> slots_;  // the newest first

  alignas(128) std::atomic<std::uint64_t> durable_{0};
  std::atomic<std::uint64_t> wanted_{0};  // a group that a thread waits for
  futex_word work_{0};                    // counts reasons for the logger to look again
  futex_word progress_{0};                // counts reasons for waiters to look again
  std::atomic<std::uint64_t> written_{0};
  std::atomic<std::uint64_t> wake_at_{no_bytes};  // the value of written_ that a thread waits for
  futex_word growth_{0};                          // counts reasons for that thread to look again
  std::atomic<bool> wait_ended_{false};
  std::atomic<bool> wait_interrupted_{false};
  std::atomic<std::uint32_t> pace_{static_cast<std::uint32_t>(pace::normal)};
  std::atomic<bool> new_segment_{false};  // begin_new_segment() waits for one
  std::atomic<bool> stop_{false};
  std::atomic<bool> failed_{false};
  std::error_code failure_;  // written before failed_
  std::string failure_text_;

  std::mutex closing_;
  bool closed_ = false;  // without a failure; guarded by closing_
  std::thread logger_;
};

// A thread's access to the log.
class redo_log::worker {
 public:
  // Throws std::bad_alloc, std::system_error of a mutex, or forked_child. Not to be called from
  // inside a commit.
  explicit worker(redo_log& log) : log_(log), slot_(log.take_slot()) {}
  // Transactions that were kept stay kept.
  ~worker();
  worker(const worker&) = delete;
  worker& operator=(const worker&) = delete;

  redo_log& log() const noexcept { return log_; }

 private:
  friend class redo_log;
  friend class commit;
  redo_log& log_;
  slot& slot_;
};

// A transaction's entries. They count only if keep() was called. A worker has at most one commit at
// a time.
class redo_log::commit {
 public:
  // Throws std::system_error if the log has failed, or forked_child.
  explicit commit(worker& by) : worker_(by) {
    by.log_.check();
    by.slot_.queue.begin();
  }
  commit(const commit&) = delete;
  commit& operator=(const commit&) = delete;

  // If a transaction has several entries of one key, the last one counts, after the changes before
  // it. Throw std::bad_alloc or std::length_error (a key or row of 2 GiB, or a transaction of 4
  // GiB). Then the previous entries stay.
  void upsert(std::uint32_t table, std::string_view key, std::string_view row) {
    internal::log_queue::staged_record record = begun_record();
    append_entry(record, table, log_operation::upsert, key, row);
    ++entries_;
  }
  void erase(std::uint32_t table, std::string_view key) {
    internal::log_queue::staged_record record = begun_record();
    append_entry(record, table, log_operation::erase, key, {});
    ++entries_;
  }
  // An upsert of `after` that logs only the words in which it differs from `before`. `before` is
  // the row at the commit, or the row that the previous entries leave.
  void change(std::uint32_t table, std::string_view key, std::string_view before,
              std::string_view after) {
    internal::log_queue::staged_record record = begun_record();
    append_change(record, table, key, before, after);
    ++entries_;
  }

  // To be called once, in the commit phase in which the stamp's group was read. From then on the
  // transaction is part of its group.
  void keep(commit_stamp stamp) noexcept {
    if (entries_ != 0) worker_.slot_.queue.publish(entries_, stamp);
  }

 private:
  internal::log_queue::staged_record begun_record() {
    internal::log_queue::staged_record record = worker_.slot_.queue.record();
    if (record.size() == 0) begin_record(record);
    return record;
  }

  worker& worker_;
  std::uint32_t entries_ = 0;
};

}  // namespace elidex::internal
