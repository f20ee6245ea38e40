// Keeps a database's tables in a directory: recovery when it is opened, then the log and
// checkpoints.
//
//   // fills the tables
//   storage kept(open_log_directory("bank"), {.level = durability::sync}, clock, tables, make);
//   redo_log::worker me(*kept.log());                      // transaction_context.hpp, log_with()
//   kept.checkpoint([&] { return tables; });
//   kept.write_checkpoints_by_itself([&] { return tables; });
//   kept.backup("copy", [&] { return tables; });
//   kept.close();
//
// Thread-safety: the constructor runs before any other thread has the tables. Any thread may call
// checkpoint() and backup(). Any thread may call declare(), one at a time.
// Errors: log_error and std::system_error (recovery.hpp, redo_log.hpp, checkpoint.hpp),
// unknown_table, schema_mismatch, std::length_error for more than 2^20 tables, std::bad_alloc.
// duplicate_key if two rows have the same value in a new unique index. std::out_of_range and
// row_too_large from the conversion of rows. If the constructor throws, the tables have some of the
// rows. database::open() describes what the directory then has.
//
// Implementation notes
// Rows whose columns have changed (schema_change.hpp) are loaded into a table of their own and
// converted when everything has been read. Rows of dropped tables are skipped, and new indexes are
// filled. Then a checkpoint stores the result. Its catalog has the new columns. Until the
// checkpoint has its name, the files are as before, because nothing has been logged: no transaction
// runs before the constructor returns. Afterwards recovery skips all older entries
// (checkpoint.hpp). So the table keeps its number.
//
// The directory describes itself. Table 0 of the log and of checkpoints is the catalog. It has a
// row for each table, by its name, with the table's number, the size of its rows and the type of
// its keys, and whether it is an unfinished index (indexed_table.hpp). This row is written before
// any row of that table, in the same group or an earlier one.
// A batch's entries come back in the order of tables, so recovery knows each row's table when it
// reads the row. Table numbers belong to the directory. The program may make its tables in another
// order, and may make more of them.
//
// Rows are images of this machine's bytes. The fingerprint of the files contains the byte order.
//
// Why recovery is right: recovery.hpp and checkpoint.hpp. This file's part: the row with the larger
// stamp stays. An erase leaves an absent record for collect(). The clock continues after all groups
// of the files.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <system_error>
#include <vector>

#include "elidex/internal/log/automatic_checkpoints.hpp"
#include "elidex/internal/log/checkpoint.hpp"
#include "elidex/internal/log/loading.hpp"
#include "elidex/internal/log/recovery.hpp"
#include "elidex/internal/log/redo_log.hpp"
#include "elidex/internal/txn/commit_clock.hpp"
#include "elidex/internal/txn/table.hpp"

namespace elidex::internal {

struct storage_options {
  // none: the directory is loaded, and nothing is written.
  durability level = durability::async;
  // The longest time between two commit groups. At level async a crash may lose the transactions of
  // this time and of one fsync.
  std::chrono::microseconds group_time{10'000};
  std::size_t segment_bytes = std::size_t{64} << 20;  // the approximate size of a segment
  // The database writes a checkpoint by itself when the log has grown by this many bytes since the
  // last one, and by at least the last one's size. 0: never.
  std::uint64_t checkpoint_bytes = std::uint64_t{1} << 30;
  // The same when the last one is older than this and something has been logged since. 0: never.
  std::chrono::milliseconds checkpoint_time{0};
  // How the log, checkpoints and backups that are written from this open() on are compressed. Files
  // that exist stay as they are, and each open() may choose another value. With zstd, open() throws
  // std::invalid_argument if the library was built without it. Such a library also refuses the
  // files (log_error, other_compression).
  compression compress = compression::none;
  // Whether a checkpoint keeps the files that it replaces, so that db::restore() can copy earlier
  // states. The directory then grows without limit. The first checkpoint without the option removes
  // them all.
  bool keep_history = false;
  // The size of a file that holds space in the directory, for a full disk. When the log or a
  // checkpoint finds the disk full, the file is removed, and the database writes a checkpoint by
  // itself, which removes the log before it. Then it makes the file again. open() makes it first,
  // and if the disk is already full, uses the one that is there. Until the checkpoint is written,
  // commits are slow, also at level async, and they wait while it writes rows. The file should have
  // room for a checkpoint (about the size of all rows), and at level async for 16 MiB of each
  // thread that commits. With keep_history a checkpoint removes nothing, so the space is gained
  // only once. 0: none. Then a full disk makes the log fail.
  std::uint64_t reserve_bytes = 0;
};

class space_reserve;

class storage {
 public:
  using table_maker = loading::table_maker;
  using table_list = std::function<std::vector<table_base*>()>;

  // `dropped`: names of tables to drop, if the directory has them.
  // `make` creates the directory's other tables that are not in `tables`. Without `make`, such a
  // table causes unknown_table.
  storage(std::unique_ptr<log_directory> directory, const storage_options& options,
          commit_clock& clock, std::span<table_base* const> tables,
          std::span<const std::string> dropped = {}, const table_maker& make = {});

  ~storage();
  storage(const storage&) = delete;
  storage& operator=(const storage&) = delete;

  // Null with level none: the constructor unlocks the directory before it returns.
  redo_log* log() noexcept { return log_ ? &*log_ : nullptr; }
  const recovered_log& found() const noexcept { return found_; }
  // Adds a table that the directory does not have. To be called before the first write to it.
  void declare(table_base& made);
  // Logs the table's row of the catalog, also when the table is now finished, or unfinished. As
  // declare(), one at a time. Returns the entry's commit group.
  std::uint64_t note_state(const table_base& changed);
  // Writes a checkpoint that has the tables `next` under their names, and not `former`
  // (column_change.hpp). Later ones have the same. Without a log nothing is written. Throws
  // std::system_error; then is_apart() of the former tables says whether the directory may have the
  // next ones by then.
  void change_places(std::span<table_base* const> former, std::span<table_base* const> next,
                     const table_list& tables);
  // Writes all rows, while transactions run. It calls `tables` after the checkpoint has begun: a
  // table that is declared later is in the log that is kept. Throws std::system_error
  // (operation_not_supported) with level none.
  finished_checkpoint checkpoint(const table_list& tables);
  // The same into another directory, with the log that belongs to it. The directory must be empty,
  // or not exist. After an error it is empty again, if its files can be removed.
  finished_checkpoint backup(const std::string& directory, const table_list& tables);
  finished_checkpoint backup(std::unique_ptr<log_directory> to, const table_list& tables);
  // Adds to a backup what has been logged since. Returns the number of bytes (backup.hpp).
  std::uint64_t update_backup(const std::string& directory);
  std::uint64_t update_backup(std::unique_ptr<log_directory> of);
  // Begins the checkpoints that the options ask for, if there is a log.
  void write_checkpoints_by_itself(table_list tables);
  automatic_checkpoints_report automatic() const;
  // Waits for checkpoints and backups that run, and ends them. Makes all commits durable, and ends
  // the log.
  void close();

 private:
  // Returns whether the directory's tables have changed.
  bool load(std::span<table_base* const> tables, std::span<const std::string> dropped,
            const table_maker* make);

  void assign_number(table_base& made);
  // Returns the log. Throws if the level is none, or in a child of fork().
  redo_log& log_for(const char* function);
  std::unique_lock<std::mutex> turn_of_caller();
  static void write_all(checkpoint_writer& to, const table_list& tables);
  automatic_checkpoints::found_files sizes_of_files();
  void leave_full_disk() noexcept;
  // Writes and finishes a checkpoint of this directory, and makes the reserve again.
  finished_checkpoint write(checkpoint_writer& to, const table_list& tables);

  const automatic_checkpoints::limits limits_;
  std::unique_ptr<log_directory> directory_;  // null with level none
  space_reserve* reserve_ = nullptr;          // the same, if it has one
  std::atomic<bool> is_full_{false};          // the reserve was used
  std::atomic<bool> automatic_ready_{false};
  commit_clock& clock_;
  recovered_log found_;
  std::uint32_t tables_ = 0;  // how many numbers are assigned
  std::optional<redo_log> log_;
  std::optional<redo_log::worker> catalog_;
  std::optional<automatic_checkpoints> automatic_;
  // Shared by callers of checkpoint() and backup(), so that close() waits for them.
  std::shared_mutex closing_;
};

}  // namespace elidex::internal
