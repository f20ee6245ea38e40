#include "cli/table.hpp"

#include <algorithm>

namespace elidex::cli {

std::string table::text() const {
  std::vector<std::size_t> widths;
  widths.reserve(columns_.size());
  for (const column& one : columns_) widths.push_back(one.title.size());
  for (const auto& cells : rows_) {
    for (std::size_t i = 0; i < cells.size(); ++i) widths[i] = std::max(widths[i], cells[i].size());
  }
  std::string all;
  const auto line = [&](const auto& cell_of, std::size_t count) {
    std::string one;
    for (std::size_t i = 0; i < count; ++i) {
      const std::string& cell = cell_of(i);
      const std::string padding(widths[i] - cell.size(), ' ');
      one += "  ";
      one += columns_[i].align == right ? padding + cell : cell + padding;
    }
    one.erase(one.find_last_not_of(' ') + 1);
    all += one + '\n';
  };
  line([&](std::size_t i) -> const std::string& { return columns_[i].title; }, columns_.size());
  for (const auto& cells : rows_) {
    line([&](std::size_t i) -> const std::string& { return cells[i]; }, cells.size());
  }
  return all;
}

}  // namespace elidex::cli
