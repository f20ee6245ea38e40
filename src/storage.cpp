#include "elidex/internal/log/storage.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <shared_mutex>
#include <stdexcept>
#include <utility>

#include "elidex/internal/log/log_writer.hpp"
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
                         ? "rows of varying length, keyed by "
                         : "rows of " + std::to_string(one.row_bytes) + " bytes, keyed by ";
  if (one.key_bytes == 0) {
    text += "strings";
  } else {
    text += one.key_is_signed != 0 ? "signed" : "unsigned";
    text += " integers of " + std::to_string(one.key_bytes) + " bytes";
  }
  if (!schema_text.empty()) text.append(" (").append(schema_text).append(")");
  return text;
}

// Whether a schema's text gives the offsets of columns: rows are the bytes of a C++ type. The last
// column's offset ends the text.
bool has_offsets(std::string_view schema_text) {
  const std::size_t mark = schema_text.rfind('@');
  if (mark == std::string_view::npos || mark + 1 == schema_text.size()) return false;
  return schema_text.find_first_not_of("0123456789", mark + 1) == std::string_view::npos;
}

[[noreturn]] void damaged(const std::string& why) {
  throw log_error(log_problem::damaged, "elidex: the log is damaged: " + why);
}

}  // namespace

// Entries become rows.
class storage::loading {
 public:
  static constexpr std::uint32_t numbers_max = 1U << 20;

  // `make`: null if there must be no other tables.
  loading(std::span<table_base* const> tables, std::span<const std::string> dropped,
          const table_maker* make)
      : tables_(tables.begin(), tables.end()), dropped_(dropped), make_(make) {}

  void operator()(const log_entry& entry) {
    if (entry.table == catalog_table) {
      meet(entry);
      return;
    }
    const auto& gone = dropped_numbers_;
    if (std::find(gone.begin(), gone.end(), entry.table) != gone.end()) return;
    if (entry.table >= by_number_.size() || by_number_[entry.table] == nullptr)
      damaged("a row of table " + std::to_string(entry.table) + ", which is not in its catalog");
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
  // Whether the directory's catalog differs from the program's tables, new tables apart.
  bool has_other_catalog() const noexcept {
    return !dropped_numbers_.empty() || !changed_.empty() || registered_;
  }
  // Moves the rows of tables whose columns have changed.
  void convert_rows() {
    for (changed_table& one : changed_) {
      const epoch_pin pinned;
      one.before->for_each_record([&](const record& there) { convert(one, there); });
      one.before.reset();
    }
  }

 private:
  using row_name = std::pair<std::uint32_t, std::string>;  // table and key
  static row_name name_of(const log_entry& entry) { return {entry.table, std::string(entry.key)}; }

  struct changed_table {
    table_base* now;
    std::unique_ptr<table_base> before;
    row_conversion conversion;
  };

  table_base& find_or_make(const table_description& said, const std::string& in_directory) {
    for (table_base* const one : tables_) {
      if (one->name() == said.name) return *one;
    }
    if (make_ == nullptr)
      throw unknown_table(said.name + ": the directory has this table, with " + in_directory +
                          " (expected create_table() or drop_table() before open())");
    tables_.push_back((*make_)(said));
    return *tables_.back();
  }
  // Returns the table for the directory's rows: `now`, or a table of the columns that they have.
  table_base& table_for(table_base& now, const description& said, std::string_view schema_text,
                        const std::string& in_directory) {
    const description here = describe(now);
    const bool same_keys =
        here.key_bytes == said.key_bytes && here.key_is_signed == said.key_is_signed;
    if (same_keys && here.row_bytes == said.row_bytes && now.schema_text() == schema_text)
      return now;
    // The program has registered the members of a type since then.
    if (same_keys && here.row_bytes == said.row_bytes && schema_text.empty() &&
        has_offsets(now.schema_text())) {
      registered_ = true;
      return now;
    }
    const std::string what = now.name() + ": the directory has " + in_directory +
                             ", the program has " + text(here, now.schema_text());
    const std::optional<schema> columns = now.columns_of_rows();
    if (!same_keys || schema_text.empty() || !columns)
      throw schema_mismatch(what + " (expected the same keys and rows)");
    const schema before = schema::of_directory(schema_text, said.row_bytes);
    try {
      changed_.push_back(
          {&now, now.make_with(before), row_conversion(before, *columns, now.changes())});
    } catch (const schema_mismatch& why) {
      throw schema_mismatch(what + ": " + why.what());
    }
    return *changed_.back().before;
  }
  void meet(const log_entry& entry) {
    description said{};
    if (entry.operation != log_operation::upsert || entry.row.size() < sizeof said)
      damaged("its catalog");
    std::memcpy(&said, entry.row.data(), sizeof said);
    const std::string_view schema_text = entry.row.substr(sizeof said);
    const std::string name(entry.key);
    const std::string in_directory = text(said, schema_text);
    if (said.number == catalog_table || said.number > numbers_max)
      damaged("the number of table " + name);
    if (said.number >= by_number_.size()) by_number_.resize(said.number + 1);
    if (std::find(dropped_.begin(), dropped_.end(), name) != dropped_.end()) {
      dropped_numbers_.push_back(said.number);
      return;
    }
    table_base& found =
        find_or_make({.name = name,
                      .row_bytes = said.row_bytes,
                      .key = {.bytes = said.key_bytes, .is_signed = said.key_is_signed != 0},
                      .schema_text = std::string(schema_text)},
                     in_directory);
    table_base& its = table_for(found, said, schema_text, in_directory);
    table_base*& place = by_number_[said.number];
    if (place != nullptr && place->name() != name) damaged("two tables with one number");
    place = &its;
    found.set_id(said.number);
  }
  void convert(changed_table& one, const record& there) {
    const record::seen_row before = there.read(buffer_);
    if (before.stamp.absent()) return;
    const std::span<const std::uint64_t> words = one.conversion(before.words);
    words_.assign(words.begin(), words.end());
    record* const row =
        one.now->get_or_create_by_bytes(one.before->key_bytes(there), words_.size());
    write(*row, before.stamp);
  }

  static bool is_older(const record& there, const log_entry& entry) {
    return commit_stamp(entry.stamp).time() < there.stamp().time();
  }
  void upsert(table_base& table, const log_entry& entry) {
    words_.resize(words_for(entry.row.size()));
    if (!entry.row.empty()) std::memcpy(words_.data(), entry.row.data(), entry.row.size());
    if (entry.row.size() % sizeof words_[0] != 0 || !table.is_row(words_))
      damaged("an invalid row of table " + table.name());
    record* const row = table.get_or_create_by_bytes(entry.key, words_.size());
    if (row == nullptr) damaged("an invalid key of table " + table.name());
    forget_changes(entry);
    if (is_older(*row, entry)) return;
    write(*row, commit_stamp(entry.stamp));
  }
  // Writes words_. No other thread has the table yet, so the former row's body is freed at once.
  void write(record& row, commit_stamp stamp) {
    std::unique_ptr<std::uint64_t[]> body;
    if (words_.size() > row.room()) {
      body = std::make_unique_for_overwrite<std::uint64_t[]>(words_.size());
      std::copy(words_.begin(), words_.end(), body.get());
    }
    row.lock();
    const std::unique_ptr<std::uint64_t[]> former(row.body().data());
    row.write(words_, body.release());
    row.unlock(stamp);
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
    write(*row, commit_stamp(entry.stamp));
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

  std::vector<table_base*> tables_;
  const std::span<const std::string> dropped_;
  std::vector<std::uint32_t> dropped_numbers_;
  const table_maker* const make_;
  std::vector<changed_table> changed_;
  bool registered_ = false;
  std::vector<table_base*> by_number_ = {nullptr};
  // Rows that the checkpoint has not, because they had been erased when it came to them: their
  // erase follows. Ascending; a few.
  std::vector<row_name> changed_before_erased_;
  std::vector<std::uint64_t> words_;  // the row that is written next
  std::vector<std::uint64_t> buffer_;
};

storage::storage(std::unique_ptr<log_directory> directory, const storage_options& options,
                 commit_clock& clock, std::span<table_base* const> tables,
                 std::span<const std::string> dropped, const table_maker& make)
    : limits_{.bytes = options.checkpoint_bytes, .time = options.checkpoint_time},
      directory_(std::move(directory)),
      clock_(clock) {
  std::vector<table_base*> all(tables.begin(), tables.end());
  const table_maker make_and_keep = [&](const table_description& said) {
    return all.emplace_back(make(said));
  };
  const bool changed = load(tables, dropped, make ? &make_and_keep : nullptr);
  clock_.begin_at(found_.first_group);
  if (options.level != durability::none) {
    log_.emplace(clock_, *directory_, found_,
                 redo_log_options{.level = options.level,
                                  .fingerprint = fingerprint,
                                  .group_time = options.group_time,
                                  .segment_bytes = options.segment_bytes,
                                  .compressed = options.compress});
    catalog_.emplace(*log_);
  } else {
    directory_.reset();
  }
  // Without a checkpoint the log declares new tables. With one, its catalog does: a new index that
  // the log declared would stay empty after a crash before the checkpoint has its name.
  for (table_base* const one : tables) {
    if (one->id() != catalog_table) continue;
    if (changed) {
      assign_number(*one);
    } else {
      declare(*one);
    }
  }
  if (changed && log_) checkpoint([&] { return all; });
}

bool storage::load(std::span<table_base* const> tables, std::span<const std::string> dropped,
                   const table_maker* make) {
  for (table_base* const one : tables) one->set_id(catalog_table);
  loading into(tables, dropped, make);
  found_ = recover_log(*directory_, fingerprint, std::ref(into));
  into.check_all_rows_were_there();
  bool changed = into.has_other_catalog();
  into.convert_rows();
  tables_ = into.numbers() - 1;
  for (const table_base* const one : tables) {
    if (one->id() != catalog_table || one->indexed() == nullptr || !one->indexed()->has_rows())
      continue;
    one->fill();
    changed = true;
  }
  return changed;
}

void storage::assign_number(table_base& made) {
  if (tables_ == loading::numbers_max)
    throw std::length_error("elidex: a directory takes at most 2^20 tables");
  made.set_id(++tables_);
}

void storage::declare(table_base& made) {
  assign_number(made);
  if (catalog_) {
    redo_log::commit entry(*catalog_);
    entry.upsert(catalog_table, made.name(), encode(made));
    entry.seal();
    const commit_clock::commit_phase phase(clock_);
    entry.keep(commit_stamp(clock_.now(), 0));
  }
}

finished_checkpoint storage::checkpoint(const table_list& tables) {
  redo_log& log = log_for("checkpoint()");
  const std::shared_lock open(closing_);
  const std::uint64_t written_before = log.written_bytes();
  std::unique_lock<std::mutex> turn = turn_of_caller();
  checkpoint_writer to(log);
  turn = {};
  write_all(to, tables);
  const finished_checkpoint finished = to.finish();
  if (automatic_) automatic_->note(finished, written_before);
  return finished;
}

redo_log& storage::log_for(const char* function) {
  if (log_) {
    log_->check_process();
    return *log_;
  }
  throw std::system_error(
      std::make_error_code(std::errc::operation_not_supported),
      std::string("elidex::database::") + function + ": level is none (expected async or sync)");
}

// A caller waits for the database's own checkpoint, but not for another caller's.
std::unique_lock<std::mutex> storage::turn_of_caller() {
  return automatic_ ? automatic_->wait_for_one() : std::unique_lock<std::mutex>();
}

void storage::write_all(checkpoint_writer& to, const table_list& tables) {
  const std::vector<table_base*> all = tables();
  // The oldest stamp there can be: the catalog's rows never change.
  for (const table_base* const one : all)
    to.add_row(catalog_table, one->name(), encode(*one), commit_stamp(1, 0).word());
  for (table_base* const one : all) one->write_rows(to);
}

finished_checkpoint storage::backup(const std::string& directory, const table_list& tables) {
  log_for("backup()");  // before the directory is made
  return backup(open_log_directory(directory), tables);
}

finished_checkpoint storage::backup(std::unique_ptr<log_directory> to, const table_list& tables) {
  redo_log& log = log_for("backup()");
  const std::shared_lock open(closing_);
  std::error_code error;
  const std::vector<std::string> there = files_in(*to, error);
  throw_if(error, "list", "the backup's directory");
  if (!there.empty())
    throw std::system_error(
        std::make_error_code(std::errc::directory_not_empty),
        "elidex::database::backup(): a directory with " + there.front() + " (expected none)");
  try {
    std::unique_lock<std::mutex> turn = turn_of_caller();
    checkpoint_writer copy(log, to.get());
    turn = {};
    write_all(copy, tables);
    return copy.finish();
  } catch (...) {
    remove_backup(*to);
    throw;
  }
}

std::vector<std::string> storage::files_in(log_directory& directory, std::error_code& error) {
  std::vector<std::string> names = directory.names(error);
  std::erase(names, ".");
  std::erase(names, "..");
  return names;
}

// The first segment goes first, and recovery refuses what is left without it. So no part of the
// files is taken for a backup, wherever this ends.
void storage::remove_backup(log_directory& from) noexcept {
  try {
    std::error_code error;
    std::vector<std::string> names = files_in(from, error);
    const auto others = std::partition(names.begin(), names.end(), [](const std::string& name) {
      return number_of(file_kind::segment, name).has_value();
    });
    std::sort(names.begin(), others);
    for (auto name = names.begin(); name != names.end() && !error; ++name) {
      if (name == others) from.sync(error);
      if (!error) from.remove(*name, error);
    }
  } catch (const std::bad_alloc&) {
    // The files stay as they are. Recovery refuses them, or they are whole.
  }
}

automatic_checkpoints::found_files storage::sizes_of_files() {
  const auto size_of = [&](const std::string& name) -> std::uint64_t {
    std::error_code error;
    const std::unique_ptr<log_file> file = directory_->open(name, error);
    const std::uint64_t size = error ? 0 : file->size(error);
    return error ? 0 : size;
  };
  automatic_checkpoints::found_files found;
  for (const recovered_log::segment& one : found_.segments)
    found.segment_bytes += size_of(name_of(file_kind::segment, one.number));
  if (found_.checkpoint != 0)
    found.checkpoint_bytes = size_of(name_of(file_kind::checkpoint, found_.checkpoint));
  return found;
}

void storage::write_checkpoints_by_itself(table_list tables) {
  if (!log_ || (limits_.bytes == 0 && limits_.time.count() <= 0)) return;
  automatic_.emplace(*log_, limits_, sizes_of_files(), [this, tables = std::move(tables)] {
    checkpoint_writer to(*log_);
    write_all(to, tables);
    return to.finish();
  });
}

automatic_checkpoints_report storage::automatic() const {
  return automatic_ ? automatic_->report() : automatic_checkpoints_report{};
}

void storage::close() {
  if (!log_) return;
  log_->check_process();
  const std::unique_lock closed(closing_);
  if (automatic_) automatic_->stop();
  log_->close();
}

}  // namespace elidex::internal
