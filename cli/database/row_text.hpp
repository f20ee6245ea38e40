#pragma once
// Tables and rows as JSON lines (docs/DATABASE.md, "Tools").
//
//   {"table":"orders","key":"uint64","columns":[{"name":"note","type":"text","nullable":true}]}
//   {"key":7,"row":{"note":null}}
//
// JSON: text that is not UTF-8 is {"hex":"..."}. Bytes are a string of hexadecimal digits. Reals
// that JSON lacks are "NaN", "Infinity" and "-Infinity". A table of rows of a C++ type also has
// "layout" and "row_bytes", by which the directory knows it.
//
// Thread-safety: any thread.
// Errors: std::runtime_error with a reason, for JSON that does not fit its table.

#include <exception>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/database/stored_tables.hpp"

namespace elidex::cli {

[[nodiscard]] nlohmann::ordered_json table_json(const stored_tables::table& about);
[[nodiscard]] nlohmann::ordered_json row_json(const stored_key& key, const db::row& row);
[[nodiscard]] nlohmann::ordered_json key_json(const stored_key& key);
[[nodiscard]] nlohmann::ordered_json value_json(const db::row& row,
                                                const db::column_definition& column);

/// The columns as people read and write them: "customer uint64, code text(12), note text null".
[[nodiscard]] std::string text_of_columns(const db::schema& columns);
/// Throws bench::bad_input, which names --columns, for another text.
[[nodiscard]] db::schema columns_of_text(const std::string& text);

/// The columns that table_json() wrote, or that a person did.
[[nodiscard]] db::schema columns_of_json(const nlohmann::ordered_json& table);
/// A text, or {"hex": "..."}. The error message begins with `what`.
[[nodiscard]] std::string text_of_json(const std::string& what,
                                       const nlohmann::ordered_json& value);
/// Throws std::runtime_error: "WHAT (expected EXPECTED)".
[[noreturn]] void refuse(const std::string& what, const std::string& expected);
/// The error's message without the library's name in front.
[[nodiscard]] std::string reason_of(const std::exception& error);
[[nodiscard]] stored_key key_of_json(const nlohmann::ordered_json& key,
                                     const stored_tables::table& of);
void set_value(db::row& row, const db::column_definition& column,
               const nlohmann::ordered_json& value);
/// Sets the columns that the object has.
void set_values(db::row& row, const nlohmann::ordered_json& values, const stored_tables::table& of);
/// Columns that the object lacks are null, 0 or empty.
[[nodiscard]] db::row row_of_json(const nlohmann::ordered_json& row,
                                  const stored_tables::table& of);

}  // namespace elidex::cli
