#pragma once
// A column as simple as can be, and what a real one differs in from it.

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
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

  // The rows whose values a function wants.
  template <class Wants>
  std::vector<std::uint64_t> rows_that(const Wants& wants) const {
    std::vector<std::uint64_t> found;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] && wants(*rows[i])) found.push_back(i);
    }
    return found;
  }
  std::vector<std::uint64_t> rows_with(const T& wanted) const {
    return rows_that([&](const T& value) { return equal_in_columns(value, wanted); });
  }
  std::vector<std::uint64_t> rows_between(const T& lower, const T& upper) const {
    const column_order<T> before;
    return rows_that([&](const T& value) { return !before(value, lower) && before(value, upper); });
  }
  std::map<T, std::size_t, column_order<T>> rows_by_value() const {
    std::map<T, std::size_t, column_order<T>> counts;
    for (const auto& value : rows) {
      if (value) ++counts[*value];
    }
    return counts;
  }
};

// A range of values in both directions, beside the model. Empty if they agree.
template <class Column, class T, class Bounds, class Has>
std::string difference_in_range(const Column& column, const column_model<T>& model,
                                const Bounds& which, std::size_t limit, const Has& has) {
  const auto rows = model.rows_that(has);
  if (column.range(which) != rows) return "range";
  if (column.range(which.descending()) != rows) return "range, descending";
  if (column.count(which) != rows.size()) return "count";
  std::vector<std::pair<T, std::size_t>> expected;
  for (const auto& [value, its_rows] : model.rows_by_value()) {
    if (has(value)) expected.emplace_back(value, its_rows);
  }
  for (const bool descends : {false, true}) {
    const Bounds range = descends ? which.descending() : which;
    if (descends) std::reverse(expected.begin(), expected.end());
    bool equal = true;
    std::size_t at = 0;
    const auto compare = [&](const auto& value, std::size_t its_rows) {
      equal = equal && at < expected.size() && equal_in_columns(T(value), expected[at].first) &&
              its_rows == expected[at].second;
      ++at;
    };
    if (column.scan(range, compare) != expected.size() || !equal) return "scan";
    at = 0;
    const std::size_t most = std::min(limit, expected.size());
    if (column.scan_n(range, limit, compare) != most || !equal) return "scan_n";
    at = 0;
    const auto stops = [&](const auto& value, std::size_t its_rows) {
      compare(value, its_rows);
      return at < limit;
    };
    const std::size_t calls = expected.empty() ? 0 : std::max<std::size_t>(most, 1);
    if (column.scan(range, stops) != calls || !equal) return "scan that its visitor ends";
  }
  return "";
}

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
    const std::size_t limit = random.below(30);
    if (column.find(a) != model.rows_with(a)) return "find";
    if (column.count(a) != model.rows_with(a).size()) return "count of one value";
    if (column.range(a, b) != model.rows_between(a, b)) return "range(lower, upper)";
    if (column.count(a, b) != model.rows_between(a, b).size()) return "count(lower, upper)";
    const column_order<T> before;
    const auto has = [&](const bounds<T>& which, const T& v) {
      if (which.lower() &&
          (which.is_without_lower() ? !before(*which.lower(), v) : before(v, *which.lower())))
        return false;
      return !which.upper() ||
             (which.is_with_upper() ? !before(*which.upper(), v) : before(v, *which.upper()));
    };
    const std::array<bounds<T>, 7> all_kinds{between(a, b),
                                             closed(a, b),
                                             from(a),
                                             above(a),
                                             below(b),
                                             up_to(b),
                                             bounds<T>(a, true, b, true)};
    const bounds<T>& which = all_kinds[random.below(all_kinds.size())];
    const std::string found =
        difference_in_range(column, model, which, limit, [&](const T& v) { return has(which, v); });
    if (!found.empty()) return found;
    if constexpr (std::is_same_v<T, std::string>) {
      const std::string first = a.substr(0, random.below(a.size() + 1));
      const std::string wrong = difference_in_range(
          column, model, prefix(first), limit, [&](const T& v) { return v.starts_with(first); });
      if (!wrong.empty()) return wrong + " of a prefix";
    }
  }
  const std::string found =
      difference_in_range(column, model, all, 1'000'000, [](const T&) { return true; });
  return found.empty() ? "" : found + " of all";
}

}  // namespace elidex::testing
