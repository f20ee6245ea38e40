#pragma once
// A column as simple as can be, and what a real one differs in from it.

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "elidex/column.hpp"
#include "support/random_seed.hpp"

namespace elidex::testing {

// As columns order values: NaN behind all others and equal to itself.
template <class T>
struct column_order {
  bool operator()(const T& a, const T& b) const {
    if constexpr (std::is_floating_point_v<T>) {
      if (a != a || b != b) return a == a && b != b;
    }
    return a < b;
  }
};
template <class T>
bool equal_in_columns(const T& a, const T& b) {
  return !column_order<T>()(a, b) && !column_order<T>()(b, a);
}

template <class T>
struct column_model {
  std::vector<std::optional<T>> rows;  // none: deleted

  std::vector<std::uint64_t> range(const T& lowest, const T& highest) const {
    std::vector<std::uint64_t> found;
    const column_order<T> before;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] && !before(*rows[i], lowest) && !before(highest, *rows[i])) found.push_back(i);
    }
    return found;
  }
  std::map<T, std::size_t, column_order<T>> rows_by_value() const {
    std::map<T, std::size_t, column_order<T>> counts;
    for (const auto& value : rows) {
      if (value) ++counts[*value];
    }
    return counts;
  }
};

// All functions that read, beside the model; empty if they agree. `value(random)` gives a value to
// ask for.
template <class Column, class T, class ValueOf>
std::string difference(const Column& column, const column_model<T>& model, random_numbers& random,
                       ValueOf&& value) {
  const auto counts = model.rows_by_value();
  std::size_t there = 0;
  for (std::size_t i = 0; i < model.rows.size(); ++i) {
    const std::optional<T> got = column.get(i);
    if (got.has_value() != model.rows[i].has_value())
      return "get: whether there is a row " + std::to_string(i);
    if (got && !equal_in_columns(*got, *model.rows[i]))
      return "get: the value of row " + std::to_string(i);
    if (got) ++there;
  }
  if (column.get(model.rows.size()) || column.get(~std::uint64_t{0}))
    return "a row that nobody inserted";
  if (column.size() != there) return "size";
  if (column.distinct() != counts.size()) return "distinct";
  for (int i = 0; i < 10; ++i) {
    const T a = value(random);
    const T b = value(random);
    if (column.find(a) != model.range(a, a)) return "find";
    if (column.count(a) != model.range(a, a).size()) return "count of one value";
    if (column.range(a, b) != model.range(a, b)) return "range";
    if (column.count(a, b) != model.range(a, b).size()) return "count";
    std::size_t limit = random.below(30);
    auto at = counts.lower_bound(a);
    bool equal = true;
    const std::size_t found = column.scan(a, limit, [&](const auto& v, std::size_t rows) {
      equal =
          equal && at != counts.end() && equal_in_columns(T(v), at->first) && rows == at->second;
      if (at != counts.end()) ++at;
    });
    if (!equal || (found < limit && at != counts.end()) || found > limit) return "scan";
  }
  auto at = counts.begin();
  bool equal = true;
  column.scan_all([&](const auto& v, std::size_t rows) {
    equal = equal && at != counts.end() && equal_in_columns(T(v), at->first) && rows == at->second;
    if (at != counts.end()) ++at;
  });
  return equal && at == counts.end() ? "" : "scan_all";
}

}  // namespace elidex::testing
