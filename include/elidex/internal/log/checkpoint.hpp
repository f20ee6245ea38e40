// A checkpoint: all rows of a store in one file, written while transactions run, so that the log
// before it can be removed.
//
//   checkpoint_writer checkpoint(log);           // before the scan
//   // any order, no lock on the store as a whole
//   for (each table) for (each row) checkpoint.add_row(table, key, row, stamp);
//   checkpoint.finish();                                 // without it nothing is left behind
//
// The rows may be read at different moments, and what the file holds may have been the store's
// state at none (a fuzzy checkpoint). What add_row() gets must be what a commit has installed, with
// that commit's stamp, read atomically; the scan must meet every row that is there from its
// beginning to its end.
//
// Why recovery is right. Let B be the epoch behind durable_epoch() when the checkpoint begins, and
// C the current one when finish() is called. Take a recovery that ends with epoch D, and a key.
//   * D >= C, because finish() waits for durable_epoch() >= C before it gives the file its name. So
//     everything that the scan can have seen, rows or their absence, had an epoch <= C <= D: the
//     file has nothing of a transaction that the log has lost.
//   * Let s be the key's last change up to D. If its epoch is >= B it is in the log, which is kept
//     from B on, and is applied behind all older ones of the log; the file's row, if there is one,
//     has a stamp <= s, since s is the last one up to D, and gives way.
//   * If its epoch is < B it was installed before the scan began, because durable_epoch() comes
//     behind the end of all commits of its epochs; nothing has changed the key since, up to D, so
//     the scan saw the row, or that there is none, and the log from B on says nothing of the key.
// Changes of the log that are older than the file's row (the scan came later) find a row with a
// larger stamp and are left out. Ones that are older than an erase that the scan has seen bring the
// row back for a moment: the erase follows in the log, its epoch being >= B like theirs.
//
// How the file comes to be: under another name, synced, renamed, the folder synced; a crash before
// leaves a file that recovery does not look at and the next log removes. Then older checkpoints are
// removed, and segments whose entries are all of epochs before B: the segment that is being written
// never, so up to segment_bytes of them stay.
//
// Errors: std::system_error from the files, or because the log has failed;
// std::errc::operation_in_progress from the constructor while another checkpoint of this log is
// written; std::invalid_argument from add_row(): a stamp of an epoch that has not begun;
// std::length_error from add_row(), std::bad_alloc. The log goes on as before: a checkpoint that
// cannot be written, on a full disk say, has removed nothing. Thread-safety: one thread; others
// commit meanwhile. The log outlives it, and is closed behind it. Source: the argument is Silo's of
// recovery by the larger TID, with the erases that it keeps as absent records replaced by the log's
// order; fuzzy checkpoints: Zheng et al., "Fast Databases with Fast Durability and Recovery Through
// Multicore Parallelism" (SiloR), OSDI 2014.
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
  std::uint64_t bytes = 0;  // of its file
  std::uint64_t removed_segments = 0;
  // why older files have stayed, if some have; the next checkpoint tries again
  std::error_code removal;
};

class checkpoint_writer {
 public:
  explicit checkpoint_writer(redo_log& log);
  ~checkpoint_writer();
  checkpoint_writer(const checkpoint_writer&) = delete;
  checkpoint_writer& operator=(const checkpoint_writer&) = delete;

  void add_row(std::uint32_t table, std::string_view key, std::string_view row,
               std::uint64_t stamp);

  // Waits for an epoch's end, too. Once.
  finished_checkpoint finish();

 private:
  void write_block();
  void remove_older(finished_checkpoint& report);

  redo_log& log_;
  std::uint64_t number_ = 0;
  std::uint64_t first_epoch_ = 0;    // B
  std::uint64_t first_segment_ = 0;  // that has epochs from B on
  std::uint64_t rows_ = 0;
  byte_buffer rows_of_block_;
  end_counts counts_;
  std::unique_ptr<internal::block_file> file_;
  bool named_ = false;  // the file has its name
};

}  // namespace elidex::internal
