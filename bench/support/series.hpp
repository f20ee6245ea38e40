#pragma once
// Curves of a figure: what experiments give, simulated and native ones alike.

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace elidex::bench {

struct series {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

// Of several runs of one figure, point by point: the value that `choose` takes from the runs'
// values in ascending order.
template <class Choose>
[[nodiscard]] std::vector<series> over_runs(const std::vector<std::vector<series>>& runs,
                                            Choose choose) {
  std::vector<series> made = runs.front();
  for (std::size_t s = 0; s < made.size(); ++s) {
    for (std::size_t p = 0; p < made[s].points.size(); ++p) {
      std::vector<double> values;
      values.reserve(runs.size());
      for (const std::vector<series>& run : runs) values.push_back(run[s].points[p].second);
      std::sort(values.begin(), values.end());
      made[s].points[p].second = choose(values);
    }
  }
  return made;
}

[[nodiscard]] inline std::vector<series> medians(const std::vector<std::vector<series>>& runs) {
  return over_runs(runs, [](const std::vector<double>& ascending) {
    const std::size_t middle = ascending.size() / 2;
    return ascending.size() % 2 == 1 ? ascending[middle]
                                     : (ascending[middle - 1] + ascending[middle]) / 2;
  });
}

}  // namespace elidex::bench
