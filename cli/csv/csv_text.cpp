#include "cli/csv/csv_text.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

namespace elidex::cli {
namespace {

using nlohmann::ordered_json;

// "/aborts/conflict", as flatten() names it, as "aborts.conflict".
std::string column_of(std::string pointer) {
  pointer.erase(0, 1);
  std::replace(pointer.begin(), pointer.end(), '/', '.');
  return pointer;
}

std::string cell_of(const ordered_json& row, const std::string& pointer) {
  const auto found = row.find(pointer);
  if (found == row.end() || found->is_null()) return {};  // flatten() makes null of an empty list
  return csv_cell(found->is_string() ? found->get<std::string>() : found->dump());
}

}  // namespace

std::string csv_cell(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char letter : text) quoted.append(letter == '"' ? 2 : 1, letter);
  return quoted + '"';
}

std::string csv_text(const ordered_json& records) {
  std::vector<ordered_json> rows;
  std::vector<std::string> pointers;
  for (const ordered_json& record : records) {
    rows.push_back(record.flatten());
    for (const auto& field : rows.back().items()) {
      if (std::find(pointers.begin(), pointers.end(), field.key()) == pointers.end())
        pointers.push_back(field.key());
    }
  }
  std::string text;
  const auto add = [&text](const std::string& cell, bool first) {
    if (!first) text += ',';
    text += cell;
  };
  for (const std::string& pointer : pointers)
    add(csv_cell(column_of(pointer)), &pointer == &pointers.front());
  for (const ordered_json& row : rows) {
    text += '\n';
    for (const std::string& pointer : pointers)
      add(cell_of(row, pointer), &pointer == &pointers.front());
  }
  return text;
}

}  // namespace elidex::cli
