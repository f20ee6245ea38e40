// What keeps a database's tables in a folder: recovery when it is opened, the log while it runs,
// checkpoints.
//
//   // fills the tables
//   storage kept(open_log_folder("bank"), {.level = durability::sync}, epochs, tables);
//   redo_log::worker me(*kept.log());                      // transaction.hpp, log_with()
//   kept.checkpoint([&] { return tables; });
//
// The folder describes itself: table 0 of the log and of checkpoints is the catalog, a row for each
// table by its name, which says its number, the size of its rows, and its kind of keys. It is
// written before any row of that table, in the same epoch or an earlier one, and a group's entries
// come back in the order of tables, so recovery knows each row's table when it meets it. Numbers
// are the folder's: the program may make its tables in another order, and more of them.
//
// Rows are images of this machine's bytes; the fingerprint of the files says which order of bytes
// that is.
//
// Why recovery is right stands in recovery.hpp and checkpoint.hpp. Here: the row with the larger
// stamp stays, an erase leaves an absent record for the collections, and the clock goes on behind
// all epochs of the files.
//
// Thread-safety: the constructor alone, before anybody else has the tables; declare() and
// checkpoint() by any thread, declare() one at a time. Errors: log_error, std::system_error
// (recovery.hpp, redo_log.hpp, checkpoint.hpp), unknown_table, schema_mismatch, std::bad_alloc. If
// the constructor throws, the folder has what it had, and the tables have some of the rows.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "elidex/internal/log/checkpoint.hpp"
#include "elidex/internal/log/recovery.hpp"
#include "elidex/internal/log/redo_log.hpp"
#include "elidex/internal/txn/commit_clock.hpp"
#include "elidex/internal/txn/table.hpp"

namespace elidex::internal {

struct storage_options {
  // none: what the folder has is loaded, and nothing is written.
  durability level = durability::async;
  // The longest between two groups of commits that are written together; at level async a crash
  // loses so much, and one sync's time.
  std::chrono::microseconds epoch_time{10'000};
  std::size_t segment_bytes = std::size_t{64} << 20;  // of a file of the log, about
};

class storage {
 public:
  storage(std::unique_ptr<log_folder> folder, const storage_options& options, commit_clock& epochs,
          std::span<table_base* const> tables);

  // Null with level none: the constructor unlocks the directory before it returns.
  redo_log* log() noexcept { return log_ ? &*log_ : nullptr; }
  const recovered_log& found() const noexcept { return found_; }
  // A table that the folder does not have. Before anybody writes to it.
  void declare(table_base& made);
  // All rows, while transactions run. `tables` is asked when the checkpoint has begun: what is
  // declared later is in the log that it keeps. Throws std::system_error (operation_not_supported)
  // with level none.
  finished_checkpoint checkpoint(const std::function<std::vector<table_base*>()>& tables);

 private:
  class loading;

  std::unique_ptr<log_folder> folder_;  // null with level none
  commit_clock& epochs_;
  recovered_log found_;
  std::uint32_t tables_ = 0;  // numbers given
  std::optional<redo_log> log_;
  std::optional<redo_log::worker> catalog_;
};

}  // namespace elidex::internal
