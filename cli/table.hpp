#pragma once
// Aligned columns for a terminal.
//
//   table out({{"index"}, {"Mops/s", table::right}});
//   out.row({"tbb", "1.20"}); out.gap(); std::fputs(out.text().c_str(), stdout);

#include <string>
#include <vector>

namespace elidex::cli {

class table {
 public:
  enum alignment : bool { left, right };
  struct column {
    std::string title;
    alignment align = left;
  };

  explicit table(std::vector<column> columns) : columns_(std::move(columns)) {}
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// An empty line before the next row.
  void gap() { rows_.emplace_back(); }
  [[nodiscard]] std::string text() const;

 private:
  std::vector<column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace elidex::cli
