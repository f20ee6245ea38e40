#include "cli/database/row_loader.hpp"

#include <istream>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "cli/database/row_csv.hpp"
#include "cli/database/row_text.hpp"

namespace elidex::cli {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t rows_at_once = 1'000;

std::string at_line(std::uint64_t line) {
  return "line " + std::to_string(line) + ": ";
}

// Collects rows of a table, and writes them in transactions.
class row_writer {
 public:
  explicit row_writer(stored_tables& into) : into_(into) {}

  void begin_table(const stored_tables::table& table) {
    write();
    table_ = &table;
  }
  const stored_tables::table* table() const noexcept { return table_; }
  void add(std::pair<stored_key, db::row> row) {
    list_.push_back(std::move(row));
    if (list_.size() == rows_at_once) write();
  }
  std::uint64_t finish() {
    write();
    into_.close();
    return rows_;
  }

 private:
  void write() {
    if (list_.empty()) return;
    into_.upsert(table_->name, list_);
    rows_ += list_.size();
    list_.clear();
  }

  stored_tables& into_;
  const stored_tables::table* table_ = nullptr;
  stored_tables::row_list list_;
  std::uint64_t rows_ = 0;
};

void begin_table(row_writer& rows, stored_tables& into, const ordered_json& read) {
  if (!read.contains("key") || !read["key"].is_string())
    throw std::runtime_error(
        "an incomplete table (expected \"table\", \"key\", which is a string, and \"columns\")");
  const std::string name = text_of_json("the name of a table", read["table"]);
  const auto key_type = read["key"].get<std::string>();
  const db::schema columns = columns_of_json(read);
  const stored_tables::table* table = into.find(name);
  if (table == nullptr) {
    table = &into.create(name, key_type, columns);
  } else if (table->columns != columns || table->key_type != key_type) {
    throw db::schema_mismatch(
        name + ": the directory has this table with other columns or keys (expected the same)");
  }
  rows.begin_table(*table);
}

void add_row(row_writer& rows, const ordered_json& read) {
  if (!read.is_object() || !read.contains("key") || !read.contains("row"))
    throw std::runtime_error(
        "neither a table nor a row (expected \"table\", or \"key\" and \"row\")");
  if (rows.table() == nullptr)
    throw std::runtime_error("a row before the first table (expected a table first)");
  rows.add({key_of_json(read["key"], *rows.table()), row_of_json(read["row"], *rows.table())});
}

}  // namespace

std::uint64_t load_json_lines(stored_tables& into, std::istream& from) {
  row_writer rows(into);
  std::uint64_t line = 0;
  for (std::string text; std::getline(from, text);) {
    ++line;
    if (text.empty()) continue;
    try {
      const ordered_json read = ordered_json::parse(text);
      if (read.is_object() && read.contains("table")) {
        begin_table(rows, into, read);
      } else {
        add_row(rows, read);
      }
    } catch (const ordered_json::exception&) {
      throw std::runtime_error(at_line(line) +
                               "not JSON of a dump (expected a line that 'elidex db dump' writes)");
    } catch (const std::exception& error) {
      throw std::runtime_error(at_line(line) + reason_of(error));
    }
  }
  return rows.finish();
}

std::uint64_t load_csv(stored_tables& into, const stored_tables::table& table, std::istream& from) {
  row_writer rows(into);
  rows.begin_table(table);
  std::optional<csv_row_reader> reader;
  read_csv_rows(from, [&](std::uint64_t line, const csv_cells& cells) {
    try {
      if (!reader) {
        reader.emplace(table, cells);
      } else {
        rows.add(reader->row(cells));
      }
    } catch (const std::exception& error) {
      throw std::runtime_error(at_line(line) + reason_of(error));
    }
  });
  if (!reader) throw std::runtime_error("no header (expected a first row with the columns' names)");
  return rows.finish();
}

}  // namespace elidex::cli
