#include "cli/database/row_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "bench/support/bad_input.hpp"

namespace elidex::cli {
namespace {

using db::column_type;
using nlohmann::ordered_json;

constexpr const char* digits = "0123456789abcdef";

std::string hex_of(std::string_view bytes) {
  std::string text;
  text.reserve(2 * bytes.size());
  for (const char one : bytes) {
    const auto byte = static_cast<unsigned char>(one);
    text.push_back(digits[byte >> 4U]);
    text.push_back(digits[byte & 0xFU]);
  }
  return text;
}

std::string bytes_of_hex(const std::string& what, const std::string& text) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    unsigned value = 0;
    const auto [end, error] = std::from_chars(&text[i], &text[i] + 2, value, 16);
    if (error != std::errc() || end != &text[i] + 2) refuse(what, "hexadecimal digits");
    bytes.push_back(static_cast<char>(value));
  }
  if (text.size() % 2 != 0) refuse(what, "an even number of hexadecimal digits");
  return bytes;
}

bool is_utf8(const std::string& text) {
  try {
    static_cast<void>(ordered_json(text).dump());
    return true;
  } catch (const ordered_json::type_error&) {
    return false;
  }
}

ordered_json text_json(std::string_view text) {
  std::string value(text);
  if (is_utf8(value)) return value;
  return {{"hex", hex_of(text)}};
}
ordered_json real_json(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  return value;
}
double real_of_json(const std::string& what, const ordered_json& value) {
  if (value.is_number()) return value.get<double>();
  if (value == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (value == "Infinity") return std::numeric_limits<double>::infinity();
  if (value == "-Infinity") return -std::numeric_limits<double>::infinity();
  refuse(what, "a number, \"NaN\", \"Infinity\" or \"-Infinity\"");
}

std::string_view characters(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

constexpr const char* type_names =
    "integer, real, text, bytes, boolean, int8 to int32, uint8 to uint64 or float32";

std::optional<column_type> type_of_name(std::string_view name) {
  for (unsigned i = 0; i <= static_cast<unsigned>(column_type::float32); ++i) {
    const auto type = static_cast<column_type>(i);
    if (db::name_of(type) == name) return type;
  }
  return std::nullopt;
}

column_type type_of_json(const std::string& what, const ordered_json& name) {
  if (name.is_string()) {
    if (const auto type = type_of_name(name.get<std::string>())) return *type;
  }
  refuse(what + ": unknown \"type\"", type_names);
}

// One item of --columns.
db::column_definition column_of_text(std::string_view text) {
  const auto wrong = [&](const std::string& expected) {
    return bench::bad_input("--columns: '" + std::string(text) + "' (expected " + expected + ")");
  };
  db::column_definition column;
  std::string_view rest = text;
  if (rest.ends_with(" null")) {
    column.nullable = true;
    rest.remove_suffix(std::string_view(" null").size());
  }
  const std::size_t space = rest.rfind(' ');
  if (space == std::string_view::npos || space == 0) throw wrong("NAME TYPE, or NAME TYPE null");
  column.name = rest.substr(0, space);
  std::string_view type = rest.substr(space + 1);
  if (const std::size_t open = type.find('('); open != std::string_view::npos) {
    const char* const end = type.data() + type.size();
    const auto [behind, error] =
        std::from_chars(type.data() + open + 1, end, column.text_bytes_max);
    if (error != std::errc() || end - behind != 1 || *behind != ')')
      throw wrong("a number of bytes in parentheses");
    type = type.substr(0, open);
  }
  const auto known = type_of_name(type);
  if (!known) throw wrong(std::string("a type: ") + type_names);
  column.type = *known;
  return column;
}

}  // namespace

void refuse(const std::string& what, const std::string& expected) {
  throw std::runtime_error(what + " (expected " + expected + ")");
}

std::string text_of_json(const std::string& what, const ordered_json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object() && value.size() == 1 && value.contains("hex") && value["hex"].is_string())
    return bytes_of_hex(what, value["hex"].get<std::string>());
  refuse(what, "a string, or {\"hex\": \"...\"}");
}

std::string reason_of(const std::exception& error) {
  constexpr std::string_view library = "elidex: ";
  std::string_view text = error.what();
  if (text.starts_with(library)) text.remove_prefix(library.size());
  return std::string(text);
}

ordered_json value_json(const db::row& row, const db::column_definition& column) {
  if (row.is_null(column.name)) return nullptr;
  switch (column.type) {
    case column_type::text:
      return text_json(row.text(column.name));
    case column_type::bytes:
      return hex_of(characters(row.bytes(column.name)));
    case column_type::real:
    case column_type::float32:
      return real_json(row.real(column.name));
    case column_type::boolean:
      return row.integer(column.name) != 0;
    case column_type::uint64:
      return row.unsigned_integer(column.name);
    default:
      return row.integer(column.name);
  }
}

void set_value(db::row& row, const db::column_definition& column, const ordered_json& value) {
  const std::string what = "column " + column.name + ": wrong value";
  if (value.is_null()) {
    row.set(column.name, std::nullopt);
    return;
  }
  switch (column.type) {
    case column_type::text:
      row.set(column.name, std::string_view(text_of_json(what, value)));
      return;
    case column_type::bytes: {
      if (!value.is_string()) refuse(what, "a string of hexadecimal digits");
      const std::string bytes = bytes_of_hex(what, value.get<std::string>());
      row.set(column.name, std::as_bytes(std::span(bytes.data(), bytes.size())));
      return;
    }
    case column_type::real:
    case column_type::float32:
      row.set(column.name, real_of_json(what, value));
      return;
    case column_type::boolean:
      if (!value.is_boolean()) refuse(what, "true or false");
      row.set(column.name, value.get<bool>());
      return;
    default:
      break;
  }
  if (value.is_number_unsigned()) {
    row.set(column.name, value.get<std::uint64_t>());
  } else if (value.is_number_integer()) {
    row.set(column.name, value.get<std::int64_t>());
  } else {
    refuse(what, "a whole number");
  }
}

ordered_json key_json(const stored_key& key) {
  if (const auto* const text = std::get_if<std::string>(&key)) return text_json(*text);
  if (const auto* const number = std::get_if<std::int64_t>(&key)) return *number;
  return std::get<std::uint64_t>(key);
}

ordered_json table_json(const stored_tables::table& about) {
  ordered_json columns = ordered_json::array();
  for (const db::column_definition& one : about.columns.columns()) {
    ordered_json column{{"name", text_json(one.name)}, {"type", db::name_of(one.type)}};
    if (one.text_bytes_max != 0) column["bytes_max"] = one.text_bytes_max;
    if (one.nullable) column["nullable"] = true;
    columns.push_back(std::move(column));
  }
  ordered_json table{
      {"table", text_json(about.name)}, {"key", about.key_type}, {"columns", std::move(columns)}};
  const std::string& layout = about.columns.text();
  if (layout.empty() || layout.find(" @") != std::string::npos) {
    table["layout"] = text_json(layout);
    table["row_bytes"] = about.row_bytes;
  }
  return table;
}

ordered_json row_json(const stored_key& key, const db::row& row) {
  ordered_json values = ordered_json::object();
  for (const db::column_definition& one : row.columns().columns())
    values[one.name] = value_json(row, one);
  return {{"key", key_json(key)}, {"row", std::move(values)}};
}

std::string text_of_columns(const db::schema& columns) {
  std::string text;
  for (const db::column_definition& one : columns.columns()) {
    text += (text.empty() ? "" : ", ") + one.name + " " + db::name_of(one.type);
    if (one.text_bytes_max != 0) text += "(" + std::to_string(one.text_bytes_max) + ")";
    if (one.nullable) text += " null";
  }
  return text;
}

db::schema columns_of_text(const std::string& text) {
  std::vector<db::column_definition> columns;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string_view item = std::string_view(text).substr(begin, end - begin);
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    columns.push_back(column_of_text(item));
    begin = end + 1;
  }
  try {
    return db::schema(std::move(columns));
  } catch (const db::error& error) {
    throw bench::bad_input(std::string("--columns: ") + error.what());
  }
}

db::schema columns_of_json(const ordered_json& table) {
  if (table.contains("layout")) {
    if (!table.contains("row_bytes") || !table["row_bytes"].is_number_unsigned())
      refuse("\"row_bytes\"", "the size of a row, beside \"layout\"");
    return db::schema::of_directory(text_of_json("\"layout\"", table["layout"]),
                                    table["row_bytes"].get<std::size_t>());
  }
  if (!table.contains("columns") || !table["columns"].is_array())
    refuse("a table without \"columns\"", "a list of columns");
  std::vector<db::column_definition> columns;
  for (const ordered_json& one : table["columns"]) {
    if (!one.is_object() || !one.contains("name") || !one.contains("type"))
      refuse("a column", "an object with \"name\" and \"type\"");
    db::column_definition column;
    column.name = text_of_json("the name of a column", one["name"]);
    column.type = type_of_json("column " + column.name, one["type"]);
    if (one.contains("bytes_max")) {
      if (!one["bytes_max"].is_number_unsigned())
        refuse("column " + column.name + ": \"bytes_max\"", "a whole number that is not negative");
      column.text_bytes_max = one["bytes_max"].get<std::size_t>();
    }
    column.nullable = one.value("nullable", false);
    columns.push_back(std::move(column));
  }
  return db::schema(std::move(columns));
}

stored_key key_of_json(const ordered_json& key, const stored_tables::table& of) {
  if (of.key_type == "string") return text_of_json("a key of the wrong type", key);
  if (!key.is_number_integer()) refuse("a key of the wrong type", "a whole number");
  if (of.key_type.starts_with("uint")) {
    if (!key.is_number_unsigned())
      refuse("a key of the wrong type", "a whole number that is not negative");
    return key.get<std::uint64_t>();
  }
  if (key.is_number_unsigned() && key.get<std::uint64_t>() > INT64_MAX)
    refuse("a key of the wrong type", "a number of type " + of.key_type);
  return key.get<std::int64_t>();
}

void set_values(db::row& row, const ordered_json& values, const stored_tables::table& of) {
  if (!values.is_object()) refuse("\"row\"", "an object");
  const auto& columns = of.columns.columns();
  for (const auto& [name, value] : values.items()) {
    const auto found = std::find_if(columns.begin(), columns.end(),
                                    [&](const auto& column) { return column.name == name; });
    if (found == columns.end())
      refuse("column " + name + ": unknown", "a column of table " + of.name);
    set_value(row, *found, value);
  }
}

db::row row_of_json(const ordered_json& row, const stored_tables::table& of) {
  db::row made(of.columns);
  set_values(made, row, of);
  return made;
}

}  // namespace elidex::cli
