#pragma once
// Plans of calls as programs for explore.hpp: each thread performs its own and notes when.

#include <cstdint>
#include <functional>
#include <vector>

#include "sim/simulation.hpp"
#include "support/linearizability.hpp"

namespace elidex::testing {

template <class Map, class Plans>
std::vector<std::function<void()>> performing(Map& map, Plans& plans) {
  std::vector<std::function<void()>> all;
  for (auto& plan : plans) {
    all.emplace_back([&map, &plan] {
      for (event& e : plan) {
        const auto begin = static_cast<std::int64_t>(sim::steps());
        perform(map, e);
        e.begin = begin;
        e.end = static_cast<std::int64_t>(sim::steps());
      }
    });
  }
  return all;
}

}  // namespace elidex::testing
