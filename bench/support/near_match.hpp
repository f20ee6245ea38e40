#pragma once
// "Did you mean 'X'?": the name that a mistyped one was probably meant to be.
//
//   near_match("ordred_map", names);              // "ordered_map"
//   did_you_mean("ordred_map", names);            // " Did you mean 'ordered_map'?"
//   did_you_mean("nonsense", names);              // ""
//
// Thread-safety: pure functions.

#include <algorithm>
#include <cctype>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

namespace elidex::bench {

/// How many characters have to be inserted, removed, replaced or swapped with their neighbour;
/// upper and lower case are equal.
[[nodiscard]] inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  const auto equal = [](char x, char y) {
    return std::tolower(static_cast<unsigned char>(x)) ==
           std::tolower(static_cast<unsigned char>(y));
  };
  // Rows of the table of distances between the first i characters of a and the first j of b.
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min(
          {last[j] + 1, row[j - 1] + 1, last[j - 1] + (equal(a[i - 1], b[j - 1]) ? 0 : 1)});
      if (i > 1 && j > 1 && equal(a[i - 1], b[j - 2]) && equal(a[i - 2], b[j - 1])) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

/// The nearest name, the first of several; empty where each differs in more than a third of its
/// characters.
[[nodiscard]] inline std::string near_match(std::string_view text,
                                            const std::vector<std::string>& names) {
  std::string best;
  std::size_t best_distance = 0;
  for (const std::string& name : names) {
    const std::size_t distance = edit_distance(text, name);
    if (distance > std::max<std::size_t>(1, name.size() / 3) || distance >= name.size()) continue;
    if (best.empty() || distance < best_distance) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

/// A sentence with a blank before it, to end a message with; empty where no name is near, or the
/// text is one.
[[nodiscard]] inline std::string did_you_mean(std::string_view text,
                                              const std::vector<std::string>& names) {
  const std::string name = near_match(text, names);
  return name.empty() || name == text ? "" : " Did you mean '" + name + "'?";
}

}  // namespace elidex::bench
