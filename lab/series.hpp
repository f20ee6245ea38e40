#pragma once
// Curves of a figure: what experiments give, simulated and native ones alike.

#include <string>
#include <utility>
#include <vector>

namespace elidex::lab {

struct series {
  std::string name;
  std::vector<std::pair<double, double>> points;
};

}  // namespace elidex::lab
