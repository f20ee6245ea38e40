#pragma once
// Records in JSON as CSV (RFC 4180), for spreadsheets.
//
//   // "index,aborts.conflict\ntbb,3"
//   csv_text(ordered_json::parse(R"([{"index": "tbb", "aborts": {"conflict": 3}}])"));
//
// Thread-safety: a function without state.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace elidex::cli {

/// A row for each record, a column for each field that any of them has. The names of nested fields
/// have dots: aborts.conflict, raw_mops.0. No newline at the end.
[[nodiscard]] std::string csv_text(const nlohmann::ordered_json& records);

/// The text as a cell, in quotes where it needs them. Nothing for an empty text.
[[nodiscard]] std::string csv_cell(std::string_view text);

}  // namespace elidex::cli
