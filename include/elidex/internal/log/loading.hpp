// Turns the entries of a log into rows of tables.
//
//   loading into(tables, {.dropped = names, .make = &make});
//   recover_log(directory, fingerprint, std::ref(into));
//   into.check_is_complete();
//   into.convert_rows();
//
// The rows go into the tables at once, or to a row_target that writes them in another way
// (following.hpp).
//
// Thread-safety: one thread. Without a target, no other thread may have the tables.
// Errors: log_error (damaged), unknown_table, schema_mismatch, std::bad_alloc. From convert_rows()
// also std::out_of_range and row_too_large.
//
// Implementation notes
// storage.hpp describes the catalog and the conversion of rows.
#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "elidex/internal/log/log_format.hpp"
#include "elidex/internal/txn/record.hpp"
#include "elidex/internal/txn/schema.hpp"
#include "elidex/internal/txn/schema_change.hpp"
#include "elidex/internal/txn/table.hpp"

namespace elidex::internal {

// Identifies the encoding of catalog rows and row images, and the byte order. Chosen.
inline constexpr std::uint64_t log_fingerprint =
    std::endian::native == std::endian::little ? 0x656c'6964'6578'2031 : 1;

// A table as the directory describes it.
struct table_description {
  std::string name;
  std::size_t row_bytes = 0;  // 0: rows vary in length
  key_type_info key{};
  bool is_unfinished = false;  // table_base::is_unfinished(), or the next one
  bool is_apart = false;       // table_base::is_apart()
  std::string schema_text;
};

// The table's row in the catalog.
std::string describe_for_catalog(const table_base& table);
// A row of the catalog without what an index gets or loses later: the flag of an index that is
// being built, and the number of its table, which earlier versions did not write.
std::string lasting_part(std::string_view row);

// Where the rows of entries go.
class row_target {
 public:
  virtual ~row_target() = default;
  // The row as the earlier entries have left it. Empty if there is no row. Valid until the next
  // call.
  virtual std::span<const std::uint64_t> row_of(const record& row) = 0;
  virtual void write(table_base& table, record& row, std::span<const std::uint64_t> words) = 0;
  virtual void erase(table_base& table, record& row) = 0;
  // Called instead of row_of() and write() if a change is of a row that is not there.
  [[noreturn]] virtual void miss(const table_base& table) = 0;
};

class loading {
 public:
  static constexpr std::uint32_t numbers_max = 1U << 20;
  // Returns a new table, which lives as long as the others.
  using table_maker = std::function<table_base*(const table_description&)>;

  struct rules {
    std::span<const std::string> dropped{};  // names of tables whose rows are skipped
    const table_maker* make = nullptr;       // makes a table that is not in `tables`
    // What happens without `make`: the table causes unknown_table, or its rows are skipped.
    bool skips_unknown = false;
    // Whether rows with other columns are converted, or cause schema_mismatch.
    bool converts = true;
  };
  loading(std::span<table_base* const> tables, const rules& how)
      : tables_(tables.begin(), tables.end()), how_(how) {}

  void operator()(const log_entry& entry);
  // The entries from now on go to `target`, and are newer than all rows.
  void continue_in(row_target& target) noexcept { target_ = &target; }

  // To be called after all entries of a directory. Throws log_error, or unknown_table for a table
  // that the program does not have.
  void check_is_complete() const;
  // Erases the rows of a table that is unfinished.
  static void clear(table_base& unfinished);
  // The program's tables, and those that were made.
  std::span<table_base* const> tables() const noexcept { return tables_; }
  // How many numbers the catalog has given, with 0.
  std::uint32_t numbers() const noexcept { return static_cast<std::uint32_t>(by_number_.size()); }
  // Whether the directory's catalog differs from the program's tables, apart from new tables.
  bool has_other_catalog() const noexcept {
    return !skipped_.empty() || !changed_.empty() || registered_;
  }
  // Moves the rows of tables whose columns have changed.
  void convert_rows();
  // Throws schema_mismatch if this row of a catalog, the log's or a checkpoint's, is not the one
  // that operator() got for the table of that number. Returns the number. Tables whose rows are
  // skipped do not matter.
  std::uint32_t check_unchanged(const log_entry& of_catalog, bool is_of_checkpoint) const;
  // Skips the rows of a table in a checkpoint's catalog if the program does not have the table, and
  // there is no `make`.
  void skip_if_unknown(const log_entry& of_catalog);
  // Throws schema_mismatch if the sorted numbers of a checkpoint's catalog lack a table that was
  // declared in a group before `first_group`.
  void check_all_in(std::span<const std::uint32_t> sorted, std::uint64_t first_group) const;

 private:
  using row_name = std::pair<std::uint32_t, std::string>;  // table and key
  struct changed_table {
    table_base* now;
    std::unique_ptr<table_base> before;
    row_conversion conversion;
  };
  struct catalog_row {
    std::string name;
    std::string row;
    bool is_unfinished = false;
    std::uint64_t group = 0;  // in which the table was declared
  };

  static row_name name_of(const log_entry& entry) { return {entry.table, std::string(entry.key)}; }
  static bool is_older(const record& there, const log_entry& entry) {
    return commit_stamp(entry.stamp).time() < there.stamp().time();
  }
  bool is_skipped(std::uint32_t number) const noexcept;
  void meet(const log_entry& entry);
  table_base* find_or_make(const table_description& said);
  table_base& table_for(table_base& now, const table_description& said,
                        const std::string& in_directory);
  void convert(changed_table& one, const record& there);
  void upsert(table_base& table, const log_entry& entry);
  void erase(table_base& table, const log_entry& entry);
  void change(table_base& table, const log_entry& entry);
  void write(table_base& table, record& row, const log_entry& entry);
  void write_at_once(record& row, commit_stamp stamp);
  void forget_changes(const log_entry& entry);
  void remember_change(const log_entry& entry);

  std::vector<table_base*> tables_;
  const rules how_;
  row_target* target_ = nullptr;
  std::vector<std::uint32_t> skipped_;  // numbers
  std::vector<std::uint32_t> unknown_;  // those that the program neither created nor dropped
  std::vector<changed_table> changed_;
  bool registered_ = false;
  std::vector<table_base*> by_number_ = {nullptr};
  std::vector<catalog_row> catalog_ = {{}};  // by number
  // Changed rows that are missing from the checkpoint because they were erased before it scanned
  // them. The log erases them later. Sorted.
  std::vector<row_name> changed_before_erased_;
  std::vector<std::uint64_t> words_;  // the row that is written next
  std::vector<std::uint64_t> buffer_;
};

}  // namespace elidex::internal
