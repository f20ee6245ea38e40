#include "elidex/internal/log/storage.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "elidex/internal/txn/errors.hpp"

namespace elidex::internal {
namespace {

constexpr std::uint32_t catalog_table = 0;
// Of what the catalog's rows and the images of rows mean: changes with either, and with the order
// of bytes. Chosen.
constexpr std::uint64_t fingerprint =
    std::endian::native == std::endian::little ? 0x656c'6964'6578'2031 : 1;

// A row of the catalog.
struct description {
  std::uint32_t number;
  std::uint32_t row_bytes;
  std::uint32_t key_bytes;  // 0: a string
  std::uint32_t key_is_signed;
};

description describe(const table_base& table) {
  return {.number = table.id(),
          .row_bytes = static_cast<std::uint32_t>(table.row_bytes()),
          .key_bytes = table.key_type_of().bytes,
          .key_is_signed = table.key_type_of().is_signed ? 1U : 0U};
}

// As the catalog has it: the numbers, then the text of the schema if there is one.
std::string encode(const table_base& table) {
  const description numbers = describe(table);
  std::string bytes(sizeof numbers, '\0');
  std::memcpy(bytes.data(), &numbers, sizeof numbers);
  return bytes + table.schema_text();
}

// What must be the same in the directory and in the program.
std::string text(const description& one, std::string_view schema_text) {
  std::string text = one.row_bytes == table_base::varying
                         ? "rows of varying length by "
                         : "rows of " + std::to_string(one.row_bytes) + " bytes by ";
  if (one.key_bytes == 0) {
    text += "strings";
  } else {
    text += one.key_is_signed != 0 ? "signed" : "unsigned";
    text += " integers of " + std::to_string(one.key_bytes) + " bytes";
  }
  if (!schema_text.empty()) text.append(" (").append(schema_text).append(")");
  return text;
}

[[noreturn]] void damaged(const std::string& why) {
  throw log_error(log_problem::damaged, "elidex: the log is damaged: " + why);
}

}  // namespace

// Entries become rows.
class storage::loading {
 public:
  static constexpr std::uint32_t numbers_max = 1U << 20;

  explicit loading(std::span<table_base* const> tables) : tables_(tables) {}

  void operator()(const log_entry& entry) {
    if (entry.table == catalog_table) {
      meet(entry);
      return;
    }
    if (entry.table >= by_number_.size() || by_number_[entry.table] == nullptr)
      damaged("a row of table " + std::to_string(entry.table) + ", which it has not");
    table_base& table = *by_number_[entry.table];
    const epoch_pin pinned;
    switch (entry.operation) {
      case log_operation::upsert:
        return upsert(table, entry);
      case log_operation::erase:
        return erase(table, entry);
      case log_operation::change:
        return change(table, entry);
    }
  }
  // Behind all entries.
  void check_all_rows_were_there() const {
    if (!changed_before_erased_.empty())
      damaged("a change of a row of table " +
              by_number_[changed_before_erased_.begin()->first]->name() + " that is not there");
  }
  std::uint32_t numbers() const noexcept { return static_cast<std::uint32_t>(by_number_.size()); }

 private:
  using row_name = std::pair<std::uint32_t, std::string>;  // table and key
  static row_name name_of(const log_entry& entry) { return {entry.table, std::string(entry.key)}; }

  void meet(const log_entry& entry) {
    description said{};
    if (entry.operation != log_operation::upsert || entry.row.size() < sizeof said)
      damaged("its catalog");
    std::memcpy(&said, entry.row.data(), sizeof said);
    const std::string in_directory = text(said, entry.row.substr(sizeof said));
    const std::string name(entry.key);
    table_base* found = nullptr;
    for (table_base* const one : tables_) {
      if (one->name() == name) found = one;
    }
    if (found == nullptr)
      throw unknown_table(name + ": the directory has such a table, with " + in_directory +
                          "; make it before open()");
    const std::string here = text(describe(*found), found->schema_text());
    if (here != in_directory)
      throw schema_mismatch(name + ": the directory has it with " + in_directory +
                            ", the program with " + here);
    if (said.number == catalog_table || said.number > numbers_max)
      damaged("the number of table " + name);
    if (said.number >= by_number_.size()) by_number_.resize(said.number + 1);
    table_base*& place = by_number_[said.number];
    if (place != nullptr && place != found) damaged("two tables with one number");
    place = found;
    found->set_id(said.number);
  }

  static bool is_older(const record& there, const log_entry& entry) {
    return commit_stamp(entry.stamp).time() < there.stamp().time();
  }
  void upsert(table_base& table, const log_entry& entry) {
    words_.resize(words_for(entry.row.size()));
    if (!entry.row.empty()) std::memcpy(words_.data(), entry.row.data(), entry.row.size());
    if (entry.row.size() % sizeof words_[0] != 0 || !table.is_row(words_))
      damaged("bytes that are no row of table " + table.name());
    record* const row = table.get_or_create_by_bytes(entry.key, words_.size());
    if (row == nullptr) damaged("bytes that are no key of table " + table.name());
    forget_changes(entry);
    if (is_older(*row, entry)) return;
    write(*row, entry);
  }
  // Writes words_. No other thread has the table yet, so the former row's body is freed at once.
  void write(record& row, const log_entry& entry) {
    std::unique_ptr<std::uint64_t[]> body;
    if (words_.size() > row.room()) {
      body = std::make_unique_for_overwrite<std::uint64_t[]>(words_.size());
      std::copy(words_.begin(), words_.end(), body.get());
    }
    row.lock();
    const std::unique_ptr<std::uint64_t[]> former(row.body());
    row.write(words_, body.release());
    row.unlock(commit_stamp(entry.stamp));
  }
  void erase(table_base& table, const log_entry& entry) {
    forget_changes(entry);
    record* const row = table.find_by_bytes(entry.key);
    if (row == nullptr || is_older(*row, entry)) return;
    row->lock();
    row->unlock(commit_stamp(entry.stamp).as_absent());
    table.note_absent(*row);
  }
  void change(table_base& table, const log_entry& entry) {
    record* const row = table.find_by_bytes(entry.key);
    if (row == nullptr || row->stamp().absent()) {
      remember_change(entry);
      return;
    }
    if (is_older(*row, entry)) return;
    const std::span<const std::uint64_t> before = row->read(buffer_).words;
    words_.assign(before.begin(), before.end());
    if (!apply_change(std::as_writable_bytes(std::span(words_)), entry) || !table.is_row(words_))
      damaged("a change that does not fit its row of table " + table.name());
    write(*row, entry);
  }
  void forget_changes(const log_entry& entry) {
    if (changed_before_erased_.empty()) return;
    const auto [first, behind] = std::equal_range(changed_before_erased_.begin(),
                                                  changed_before_erased_.end(), name_of(entry));
    changed_before_erased_.erase(first, behind);
  }
  void remember_change(const log_entry& entry) {
    row_name name = name_of(entry);
    const auto place =
        std::lower_bound(changed_before_erased_.begin(), changed_before_erased_.end(), name);
    if (place == changed_before_erased_.end() || *place != name)
      changed_before_erased_.insert(place, std::move(name));
  }

  const std::span<table_base* const> tables_;
  std::vector<table_base*> by_number_ = {nullptr};
  // Rows that the checkpoint has not, because they had been erased when it came to them: their
  // erase follows. Ascending; a few.
  std::vector<row_name> changed_before_erased_;
  std::vector<std::uint64_t> words_;  // the row that is written next
  std::vector<std::uint64_t> buffer_;
};

storage::storage(std::unique_ptr<log_directory> directory, const storage_options& options,
                 commit_clock& clock, std::span<table_base* const> tables)
    : directory_(std::move(directory)), clock_(clock) {
  for (table_base* const one : tables) one->set_id(catalog_table);
  loading into(tables);
  found_ = recover_log(*directory_, fingerprint, std::ref(into));
  into.check_all_rows_were_there();
  tables_ = into.numbers() - 1;
  for (const table_base* const one : tables) {
    if (one->id() == catalog_table && one->indexed() != nullptr && one->indexed()->has_rows())
      throw schema_mismatch(one->name() + ": the directory has rows of " + one->indexed()->name() +
                            " and no such index of them");
  }
  clock_.begin_at(found_.first_group);
  if (options.level != durability::none) {
    log_.emplace(clock_, *directory_, found_,
                 redo_log_options{.level = options.level,
                                  .fingerprint = fingerprint,
                                  .group_time = options.group_time,
                                  .segment_bytes = options.segment_bytes});
    catalog_.emplace(*log_);
  } else {
    directory_.reset();
  }
  for (table_base* const one : tables) {
    if (one->id() == catalog_table) declare(*one);
  }
}

void storage::declare(table_base& made) {
  if (tables_ == loading::numbers_max)
    throw std::length_error("elidex: a directory takes at most 2^20 tables");
  made.set_id(tables_ + 1);
  if (catalog_) {
    redo_log::commit entry(*catalog_);
    entry.upsert(catalog_table, made.name(), encode(made));
    entry.seal();
    const commit_clock::commit_phase phase(clock_);
    entry.keep(commit_stamp(clock_.now(), 0));
  }
  ++tables_;
}

finished_checkpoint storage::checkpoint(const std::function<std::vector<table_base*>()>& tables) {
  if (!log_)
    throw std::system_error(
        std::make_error_code(std::errc::operation_not_supported),
        "elidex::database::checkpoint(): level is none (expected async or sync)");
  checkpoint_writer to(*log_);
  const std::vector<table_base*> all = tables();
  // The oldest stamp there can be: the catalog's rows never change.
  for (const table_base* const one : all)
    to.add_row(catalog_table, one->name(), encode(*one), commit_stamp(1, 0).word());
  for (table_base* const one : all) one->write_rows(to);
  return to.finish();
}

}  // namespace elidex::internal
