#include "cli/database/row_csv.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "cli/csv/csv_text.hpp"
#include "cli/database/row_text.hpp"

namespace elidex::cli {
namespace {

using db::column_type;
using nlohmann::ordered_json;

constexpr const char* key_column = "key";

std::string text_cell(std::string_view text) {
  return text.empty() ? "\"\"" : csv_cell(text);  // an empty cell is null
}

std::string cell_of(const db::row& row, const db::column_definition& column) {
  if (row.is_null(column.name)) return {};
  if (column.type == column_type::text) return text_cell(row.text(column.name));
  const ordered_json value = value_json(row, column);
  return value.is_string() ? text_cell(value.get<std::string>()) : value.dump();
}

template <class Number>
std::optional<Number> number_of(std::string_view cell) {
  Number number{};
  const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
  if (error != std::errc() || end != cell.data() + cell.size()) return std::nullopt;
  return number;
}

// Returns the cell as a JSON number, or as a string if it is not a whole number.
ordered_json integer_json(const std::string& cell) {
  if (const auto number = number_of<std::uint64_t>(cell)) return *number;
  if (const auto number = number_of<std::int64_t>(cell)) return *number;
  return cell;
}

ordered_json json_of_cell(const db::column_definition& column, const std::string& cell) {
  switch (column.type) {
    case column_type::text:
    case column_type::bytes:
      return cell;
    case column_type::real:
    case column_type::float32:
      if (const auto number = number_of<double>(cell)) return *number;
      return cell;
    case column_type::boolean:
      if (cell == "true" || cell == "false") return cell == "true";
      return cell;
    default:
      return integer_json(cell);
  }
}

}  // namespace

std::string csv_header(const stored_tables::table& about) {
  std::string line = key_column;
  for (const db::column_definition& one : about.columns.columns())
    line += "," + text_cell(one.name);
  return line;
}

std::string csv_row(const stored_key& key, const db::row& row) {
  const auto* const text = std::get_if<std::string>(&key);
  std::string line = text != nullptr ? text_cell(*text) : key_json(key).dump();
  for (const db::column_definition& one : row.columns().columns()) line += "," + cell_of(row, one);
  return line;
}

csv_row_reader::csv_row_reader(const stored_tables::table& of, const csv_cells& header) : of_(of) {
  const auto& columns = of_.columns.columns();
  bool has_key = false;
  for (const auto& cell : header) {
    const std::string name = cell.value_or("");
    // The key is the first column of that name, because dump writes it first.
    if (name == key_column && !has_key) {
      has_key = true;
      key_ = columns_.size();
      columns_.push_back(nullptr);
      continue;
    }
    const auto found = std::find_if(columns.begin(), columns.end(),
                                    [&](const auto& one) { return one.name == name; });
    if (found == columns.end())
      refuse("column '" + name + "': unknown", "a column of table " + of_.name);
    if (std::find(columns_.begin(), columns_.end(), &*found) != columns_.end())
      refuse("column '" + name + "' twice", "each column once");
    columns_.push_back(&*found);
  }
  if (!has_key) refuse("a header without the column 'key'", "the column of the rows' keys");
}

std::pair<stored_key, db::row> csv_row_reader::row(const csv_cells& cells) const {
  if (cells.size() != columns_.size())
    refuse(std::to_string(cells.size()) + (cells.size() == 1 ? " cell" : " cells"),
           std::to_string(columns_.size()) + ", as in the header");
  const auto& key = cells[key_];
  if (!key) refuse("an empty cell as key", "a key; \"\" is the empty text");
  std::pair<stored_key, db::row> made(
      key_of_json(of_.key_type == "string" ? ordered_json(*key) : integer_json(*key), of_),
      db::row(of_.columns));
  for (std::size_t i = 0; i < cells.size(); ++i) {
    if (columns_[i] == nullptr) continue;
    const auto& cell = cells[i];
    set_value(made.second, *columns_[i], cell ? json_of_cell(*columns_[i], *cell) : ordered_json());
  }
  return made;
}

}  // namespace elidex::cli
