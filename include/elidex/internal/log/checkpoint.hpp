// A checkpoint: all rows of a store in one file, written while transactions run, so that the log
// before it can be removed.
//
//   checkpoint_writer checkpoint(log);           // before the scan
//   // in any order, without a lock on the store as a whole
//   for (each table) for (each row) checkpoint.add_row(table, key, row, stamp);
//   checkpoint.finish();                         // without it no file is left behind
//
//   checkpoint_writer backup(log, other.get());  // the same into another directory, with the log
//
// The rows may be read at different moments, so the file may hold a state that the store never had
// (a fuzzy checkpoint). The caller guarantees:
// - add_row() gets a row that a commit has installed, with that commit's stamp, and both are read
//   atomically.
// - The scan meets every row that is present from its beginning to its end.
//
// Thread-safety: a checkpoint belongs to one thread. Other threads commit meanwhile.
// Lifetime: the log outlives the checkpoint, and is closed after it.
// Errors: after an error the log continues as before. A checkpoint that cannot be written, on a
// full disk for example, has removed nothing.
//   std::system_error      From the files, or because the log has failed. From the constructor with
//                          std::errc::operation_in_progress, while another checkpoint of this log
//                          is written.
//   std::invalid_argument  From add_row(): a stamp of a group that has not begun.
//   std::length_error      From add_row().
//   std::bad_alloc
//
// Implementation notes
// Why recovery is right. Let B be the commit group after durable_group() when the checkpoint
// begins. Let C be the current group when finish() is called. Consider a recovery that ends with
// group D, and a key.
// - D >= C, because finish() waits for durable_group() >= C before it gives the file its name.
//   Everything that the scan can have seen, rows or their absence, had a group <= C <= D. So the
//   file has nothing of a transaction that the log has lost.
// - Let s be the stamp of the key's last change up to D. If its group is >= B, the change is in the
//   log, which is kept from B on. Recovery applies it after all older ones of the log. If the file
//   has a row of the key, the row's stamp is <= s, because s is the last one up to D. So the change
//   replaces it.
// - If the group of s is < B, the change was installed before the scan began: durable_group() is
//   published after the end of all commits of its groups. Nothing has changed the key since then,
//   up to D. So the scan saw the row, or its absence, and the log from B on has no entry of the
//   key.
// Recovery skips changes of the log that are older than the file's row, because the scan came later
// and the row has a larger stamp. Changes that are older than an erase that the scan has seen bring
// the row back for a moment. The erase follows in the log, because its group is >= B like theirs.
//
// How the file is made: it is written under another name, synced and renamed, and the directory is
// synced. A crash before that leaves a file that recovery ignores and the next log removes. Then
// the writer removes older checkpoints, and the segments whose entries are all of groups before B.
// It never removes the segment that is being written. So the checkpoint begins another segment
// first, and only a short one (log_writer.cpp) may stay with old entries.
//
// A backup is a checkpoint in another directory, and a copy of the log from B on (backup.hpp). The
// copy begins after the wait for durable_group() >= C, so it has all of the log up to C, and D >= C
// for whoever opens the copy. The log's own directory does not change. No checkpoint can remove a
// segment during the copy, because this one is still being written.
//
// Sources: the argument is Silo's of recovery by the larger TID. Silo keeps erases as absent
// records. Here the log's order replaces them. Fuzzy checkpoints: Zheng et al., "Fast Databases
// with Fast Durability and Recovery Through Multicore Parallelism" (SiloR), OSDI 2014.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <system_error>

#include "elidex/internal/log/redo_log.hpp"

namespace elidex::internal {

class block_file;

struct finished_checkpoint {
  std::uint64_t number = 0;
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;  // of the file
  std::uint64_t removed_segments = 0;
  // Why older files have stayed, if some have. The next checkpoint tries again.
  std::error_code removal;
};

// While it exists, no checkpoint of the log is written, and no file of its directory is removed.
// The constructor throws what that of checkpoint_writer throws.
class checkpoint_pause {
 public:
  explicit checkpoint_pause(redo_log& log);
  ~checkpoint_pause();
  checkpoint_pause(const checkpoint_pause&) = delete;
  checkpoint_pause& operator=(const checkpoint_pause&) = delete;

 private:
  redo_log& log_;
};

class checkpoint_writer {
 public:
  // With `backup`, an empty directory, everything is written there.
  explicit checkpoint_writer(redo_log& log, log_directory* backup = nullptr);
  ~checkpoint_writer();
  checkpoint_writer(const checkpoint_writer&) = delete;
  checkpoint_writer& operator=(const checkpoint_writer&) = delete;

  void add_row(std::uint32_t table, std::string_view key, std::string_view row,
               std::uint64_t stamp);

  // Also waits for the end of a group. To be called once. A backup's bytes include the log.
  finished_checkpoint finish();

 private:
  log_directory& directory() const;
  void write_block();
  void remove_older(finished_checkpoint& report);

  redo_log& log_;
  log_directory* const backup_;
  std::uint64_t number_ = 0;
  std::uint64_t first_group_ = 0;    // B
  std::uint64_t first_segment_ = 0;  // the first that has groups from B on
  std::uint64_t rows_ = 0;
  byte_buffer rows_of_block_;
  row_writer row_writer_;
  end_counts counts_;
  std::unique_ptr<internal::block_file> file_;
  bool named_ = false;  // the file has its name
};

}  // namespace elidex::internal
