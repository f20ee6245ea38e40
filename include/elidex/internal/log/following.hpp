// Keeps tables up to date with a directory that another process writes.
//
//   following it(open_log_directory("bank", directory_use::follow), clock, tables, {}, {});
//   it.found();                       // what the directory had
//   it.catch_up([](std::size_t) {});  // applies what has become durable since
//
// Thread-safety: the constructor runs before any other thread has the tables. catch_up() runs in
// one thread at a time. Other threads may read snapshots of the tables meanwhile, and must not
// write.
// Errors: log_error and std::system_error (log_reader.hpp), schema_mismatch, std::bad_alloc. After
// an error of catch_up() the tables have whole batches only, and each later call throws the same
// error.
//
// Implementation notes
// A batch of the log (redo_log.hpp) is applied as one transaction of this process, so a snapshot
// has all of a batch or nothing. A batch has whole transactions, and everything that they have
// seen. So every snapshot is a state that the writer had, and that survives its crash.
//
// The batches of the log are newer than all rows that the constructor loaded: it has applied the
// log at least as far as the checkpoint reaches. So the stamps of the transactions that apply them
// are this process's own, from its clock, which begins behind the groups of the directory.
//
// A writer that opens the directory with other columns, or with a new index for rows that are
// there, puts the result into a checkpoint and not into the log. The checkpoint has its name before
// any entry follows. So catch_up() first reads what it is going to apply, and then looks for a
// newer checkpoint. If its catalog has changed, it throws schema_mismatch and applies nothing.
// An index that the writer adds while it runs is in the log like any table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "elidex/internal/log/loading.hpp"
#include "elidex/internal/log/log_reader.hpp"
#include "elidex/internal/txn/commit_clock.hpp"
#include "elidex/internal/txn/transaction_context.hpp"

namespace elidex::internal {

class following {
 public:
  // Rows of tables that are not in `tables` go to a table from `make`. Without `make`, and for the
  // names in `dropped`, they are skipped. `dropped` outlives this object. Throws
  // schema_mismatch if a table of `tables` is an index that the directory does not have, although
  // it has rows to index.
  following(std::unique_ptr<log_directory> directory, commit_clock& clock,
            std::span<table_base* const> tables, std::span<const std::string> dropped,
            const loading::table_maker& make);

  const recovered_log& found() const noexcept { return found_; }
  // Applies the batches that have become durable. After each of them it calls absent(n) with the
  // number of records that have become absent. Returns the number of changed rows.
  std::uint64_t catch_up(const std::function<void(std::size_t)>& absent);

 private:
  class batch;

  std::uint64_t apply_batch(const std::function<void(std::size_t)>& absent);
  void check_catalog();
  void check_indexes(batch& changes) const;

  const std::unique_ptr<log_directory> directory_;
  commit_clock& clock_;
  const loading::table_maker make_;
  loading into_;
  log_reader reader_;
  recovered_log found_;
  std::vector<const table_base*> indexes_;  // of the program
  transaction_context::memory notes_;
  int attempts_ = 0;  // of the batch that is next
  std::exception_ptr failure_;
};

}  // namespace elidex::internal
