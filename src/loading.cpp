#include "elidex/internal/log/loading.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/txn/errors.hpp"

namespace elidex::internal {
namespace {

// The numbers of a catalog's row.
struct description {
  std::uint32_t number;
  std::uint32_t row_bytes;
  std::uint32_t key_bytes;  // 0: a string
  std::uint32_t flags;
};
constexpr std::uint32_t signed_key_flag = 1;
constexpr std::uint32_t unfinished_flag = 2;
constexpr std::uint32_t apart_flag = 4;  // with unfinished_flag, for earlier versions
// Above the flags, which earlier versions read one by one: the number of the table that is indexed.
constexpr std::uint32_t flag_bits = 11;
static_assert(loading::numbers_max < 1U << (32 - flag_bits));

description numbers_of(const table_base& table) {
  return {.number = table.id(),
          .row_bytes = static_cast<std::uint32_t>(table.row_bytes()),
          .key_bytes = table.key_type_of().bytes,
          .flags = (table.key_type_of().is_signed ? signed_key_flag : 0) |
                   (table.is_unfinished() ? unfinished_flag : 0) |
                   (table.is_apart() ? unfinished_flag | apart_flag : 0) |
                   table.indexed_number() << flag_bits};
}

// What must be the same in the directory and in the program.
std::string text(std::size_t row_bytes, const key_type_info& key, std::string_view schema_text) {
  std::string text = row_bytes == table_base::varying
                         ? "rows of varying length, keyed by "
                         : "rows of " + std::to_string(row_bytes) + " bytes, keyed by ";
  if (key.bytes == 0) {
    text += "strings";
  } else {
    text += key.is_signed ? "signed" : "unsigned";
    text += " integers of " + std::to_string(key.bytes) + " bytes";
  }
  if (!schema_text.empty()) text.append(" (").append(schema::shown(schema_text)).append(")");
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

[[noreturn]] void changed(const std::string& table) {
  throw schema_mismatch(table +
                        ": the writer has changed, dropped or replaced this table (expected: "
                        "follow the directory with another database)");
}

// Reads a row of the catalog.
description parse(const log_entry& entry) {
  description said{};
  if (entry.operation != log_operation::upsert || entry.row.size() < sizeof said)
    damaged("a row of its catalog is too short, or was erased");
  std::memcpy(&said, entry.row.data(), sizeof said);
  if (said.number == catalog_table || said.number > loading::numbers_max)
    damaged("an invalid number of table " + std::string(entry.key));
  return said;
}

}  // namespace

std::string lasting_part(std::string_view row) {
  description said{};
  std::string lasting(row);
  if (row.size() < sizeof said) return lasting;
  std::memcpy(&said, row.data(), sizeof said);
  said.flags &= ((1U << flag_bits) - 1) & ~unfinished_flag;
  std::memcpy(lasting.data(), &said, sizeof said);
  return lasting;
}

// The numbers, then the text of the schema if there is one.
std::string describe_for_catalog(const table_base& table) {
  const description numbers = numbers_of(table);
  std::string bytes(sizeof numbers, '\0');
  std::memcpy(bytes.data(), &numbers, sizeof numbers);
  return bytes + table.schema_text();
}

void loading::operator()(const log_entry& entry) {
  if (entry.table == catalog_table) {
    meet(entry);
    return;
  }
  if (is_skipped(entry.table)) return;
  if (entry.table >= by_number_.size() || by_number_[entry.table] == nullptr) {
    // The writer of a directory that is followed has added an index to rows that were there.
    if (target_ != nullptr) changed("table " + std::to_string(entry.table));
    damaged("a row of table " + std::to_string(entry.table) + ", which is not in its catalog");
  }
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

void loading::check_is_complete() const {
  for (const std::uint32_t number : unknown_) {
    const catalog_row& said = catalog_[number];
    if (said.is_unfinished) continue;
    const description numbers = parse({.key = said.name, .row = said.row});
    throw unknown_table(
        said.name + ": the directory has this table, with " +
        text(numbers.row_bytes,
             {.bytes = numbers.key_bytes, .is_signed = (numbers.flags & signed_key_flag) != 0},
             std::string_view(said.row).substr(sizeof numbers)) +
        " (expected create_table() or drop_table() before open())");
  }
  if (!changed_before_erased_.empty())
    damaged("a change of a row of table " +
            by_number_[changed_before_erased_.begin()->first]->name() + " that is not there");
}

void loading::convert_rows() {
  for (changed_table& one : changed_) {
    const epoch_pin pinned;
    one.before->for_each_record([&](const record& there) { convert(one, there); });
    one.before.reset();
  }
}

std::uint32_t loading::check_unchanged(const log_entry& of_catalog, bool is_of_checkpoint) const {
  const std::uint32_t number = parse(of_catalog).number;
  if (number >= catalog_.size() || catalog_[number].name.empty() || is_skipped(number))
    return number;
  const catalog_row& known = catalog_[number];
  // A checkpoint of an earlier version has group 1 for all tables.
  const std::uint64_t group = group_of_stamp(of_catalog.stamp);
  if ((is_of_checkpoint && group != 1 && known.group != 1 && group != known.group) ||
      known.name != of_catalog.key || lasting_part(known.row) != lasting_part(of_catalog.row))
    changed(known.name);
  return number;
}

void loading::skip_if_unknown(const log_entry& of_catalog) {
  const std::uint32_t number = parse(of_catalog).number;
  const bool is_known = number < catalog_.size() && !catalog_[number].name.empty();
  const bool is_wanted = how_.make != nullptr ||
                         std::any_of(tables_.begin(), tables_.end(), [&](const table_base* one) {
                           return one->name() == of_catalog.key;
                         });
  if (!is_known && !is_wanted && !is_skipped(number)) skipped_.push_back(number);
}

void loading::check_all_in(std::span<const std::uint32_t> sorted, std::uint64_t first_group) const {
  for (std::uint32_t number = 1; number < catalog_.size(); ++number) {
    const catalog_row& known = catalog_[number];
    if (!known.name.empty() && known.group < first_group && !is_skipped(number) &&
        !std::binary_search(sorted.begin(), sorted.end(), number))
      changed(known.name);
  }
}

// --- The catalog ---

bool loading::is_skipped(std::uint32_t number) const noexcept {
  return std::find(skipped_.begin(), skipped_.end(), number) != skipped_.end();
}

// Returns null if the table's rows are skipped.
table_base* loading::find_or_make(const table_description& said) {
  const auto& gone = how_.dropped;
  if (said.is_apart || std::find(gone.begin(), gone.end(), said.name) != gone.end()) return nullptr;
  for (table_base* const one : tables_) {
    if (one->name() == said.name) return one;
  }
  if (how_.make == nullptr) return nullptr;
  tables_.push_back((*how_.make)(said));
  return tables_.back();
}

// Returns the table for the directory's rows: `now`, or a table of the columns that they have.
table_base& loading::table_for(table_base& now, const table_description& said,
                               const std::string& in_directory) {
  const key_type_info key = now.key_type_of();
  const bool same_keys = key.bytes == said.key.bytes && key.is_signed == said.key.is_signed;
  const bool same_size = now.row_bytes() == said.row_bytes;
  if (same_keys && same_size && now.schema_text() == said.schema_text) return now;
  // The program has registered the members of a type since then.
  if (same_keys && same_size && said.schema_text.empty() && has_offsets(now.schema_text())) {
    registered_ = true;
    return now;
  }
  const std::string what = now.name() + ": the directory has " + in_directory +
                           ", the program has " + text(now.row_bytes(), key, now.schema_text());
  const std::optional<schema> columns = now.columns_of_rows();
  if (!same_keys || said.schema_text.empty() || !columns || !how_.converts)
    throw schema_mismatch(what + " (expected the same keys and rows)");
  const schema before = schema::of_directory(said.schema_text, said.row_bytes);
  try {
    changed_.push_back(
        {&now, now.make_with(before), row_conversion(before, *columns, now.changes())});
  } catch (const schema_mismatch& why) {
    throw schema_mismatch(what + ": " + why.what());
  }
  return *changed_.back().before;
}

void loading::meet(const log_entry& entry) {
  const description numbers = parse(entry);
  if (target_ != nullptr) check_unchanged(entry, false);
  const table_description said{
      .name = std::string(entry.key),
      .row_bytes = numbers.row_bytes,
      .key = {.bytes = numbers.key_bytes, .is_signed = (numbers.flags & signed_key_flag) != 0},
      .is_unfinished = (numbers.flags & unfinished_flag) != 0,
      .is_apart = (numbers.flags & apart_flag) != 0,
      .schema_text = std::string(entry.row.substr(sizeof numbers))};
  const std::string in_directory = text(said.row_bytes, said.key, said.schema_text);
  if (numbers.number >= by_number_.size()) {
    by_number_.resize(numbers.number + 1);
    catalog_.resize(numbers.number + 1);
  }
  catalog_row& row = catalog_[numbers.number];
  const bool was_finished = !row.name.empty() && !row.is_unfinished;
  // The number may be that of a table that was dropped, whose rows were skipped.
  const bool is_known = row.name == said.name;
  row = {said.name, std::string(entry.row), said.is_unfinished,
         is_known ? row.group : group_of_stamp(entry.stamp)};
  table_base* const found = find_or_make(said);
  if (found == nullptr) {
    if (said.is_apart && by_number_[numbers.number] != nullptr)
      throw log_error(log_problem::left_behind,
                      "elidex: " + by_number_[numbers.number]->name() +
                          ": its columns were changed after the checkpoint of this directory "
                          "(expected: a backup that was made since then)");
    if (is_skipped(numbers.number)) return;
    skipped_.push_back(numbers.number);
    const auto& gone = how_.dropped;
    const bool is_dropped = std::find(gone.begin(), gone.end(), said.name) != gone.end();
    if (!is_dropped && !how_.skips_unknown) unknown_.push_back(numbers.number);
    return;
  }
  std::erase(skipped_, numbers.number);
  std::erase(unknown_, numbers.number);
  // The index that a follower reads was dropped, or the table was dropped and made again.
  if (target_ != nullptr && was_finished) changed(said.name);
  table_base& its = table_for(*found, said, in_directory);
  table_base*& place = by_number_[numbers.number];
  if (place != nullptr && place->name() != said.name) damaged("two tables with one number");
  place = &its;
  found->set_id(numbers.number);
  found->set_declared_in(row.group);
  found->set_unfinished(said.is_unfinished);
  found->set_indexed_number(numbers.flags >> flag_bits);
}

void loading::clear(table_base& unfinished) {
  const epoch_pin pinned;
  unfinished.for_each_record([&](const record& one) {
    record* const row = unfinished.find_by_bytes(unfinished.key_bytes(one));
    if (row == nullptr || row->stamp().absent()) return;
    row->unlock(row->lock().as_absent());
    unfinished.note_absent(*row);
  });
}

void loading::convert(changed_table& one, const record& there) {
  const record::seen_row before = there.read(buffer_);
  if (before.stamp.absent()) return;
  const row made = one.conversion.converted(before.words);
  words_.assign(made.words().begin(), made.words().end());
  record* const row = one.now->get_or_create_by_bytes(one.before->key_bytes(there), words_.size());
  write_at_once(*row, before.stamp);
}

// --- Rows ---

void loading::upsert(table_base& table, const log_entry& entry) {
  words_.resize(words_for(entry.row.size()));
  if (!entry.row.empty()) std::memcpy(words_.data(), entry.row.data(), entry.row.size());
  if (entry.row.size() % sizeof words_[0] != 0 || !table.is_row(words_))
    damaged("an invalid row of table " + table.name());
  record* const row = table.get_or_create_by_bytes(entry.key, words_.size());
  if (row == nullptr) damaged("an invalid key of table " + table.name());
  forget_changes(entry);
  write(table, *row, entry);
}

void loading::erase(table_base& table, const log_entry& entry) {
  forget_changes(entry);
  record* const row = table.find_by_bytes(entry.key);
  if (row == nullptr) return;
  if (target_ != nullptr) {
    target_->erase(table, *row);
    return;
  }
  if (is_older(*row, entry)) return;
  row->lock();
  row->unlock(commit_stamp(entry.stamp).as_absent());
  table.note_absent(*row);
}

void loading::change(table_base& table, const log_entry& entry) {
  record* const row = table.find_by_bytes(entry.key);
  const auto words_of = [&](const record& there) {
    return target_ != nullptr ? target_->row_of(there) : there.read(buffer_).words;
  };
  const std::span<const std::uint64_t> before =
      row != nullptr ? words_of(*row) : std::span<const std::uint64_t>();
  if (row == nullptr || before.empty()) {
    if (target_ != nullptr) target_->miss(table);
    remember_change(entry);
    return;
  }
  if (target_ == nullptr && is_older(*row, entry)) return;
  words_.assign(before.begin(), before.end());
  if (!apply_change(std::as_writable_bytes(std::span(words_)), entry) || !table.is_row(words_))
    damaged("a change that does not fit its row of table " + table.name());
  write(table, *row, entry);
}

// Writes words_, unless the row is newer than the entry.
void loading::write(table_base& table, record& row, const log_entry& entry) {
  if (target_ != nullptr) {
    target_->write(table, row, words_);
  } else if (!is_older(row, entry)) {
    write_at_once(row, commit_stamp(entry.stamp));
  }
}

// Writes words_. No other thread has the table yet, so the former row's body is freed at once.
void loading::write_at_once(record& row, commit_stamp stamp) {
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

void loading::forget_changes(const log_entry& entry) {
  if (changed_before_erased_.empty()) return;
  const auto [first, behind] = std::equal_range(changed_before_erased_.begin(),
                                                changed_before_erased_.end(), name_of(entry));
  changed_before_erased_.erase(first, behind);
}

void loading::remember_change(const log_entry& entry) {
  row_name name = name_of(entry);
  const auto place =
      std::lower_bound(changed_before_erased_.begin(), changed_before_erased_.end(), name);
  if (place == changed_before_erased_.end() || *place != name)
    changed_before_erased_.insert(place, std::move(name));
}

}  // namespace elidex::internal
