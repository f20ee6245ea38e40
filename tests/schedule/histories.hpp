#pragma once
// Plans of calls as programs for explore.hpp: each thread performs its own and notes when.

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "machine/simulation.hpp"
#include "support/linearizability.hpp"
#include "support/model.hpp"

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

// What the plans, performed on a map that held `before`, are wrong in: the history together with
// what is left of it.
template <class Map, class Plans>
std::string history_difference(const Map& map, const Plans& plans, const map_state& before) {
  std::vector<event> all;
  for (const auto& plan : plans) all.insert(all.end(), plan.begin(), plan.end());
  std::map<std::uint64_t, std::uint64_t> left;
  for (std::uint64_t key = 0; key < history_keys; ++key) {
    event e;
    e.what = call::get;
    e.key = key;
    e.got = map.get(key);
    e.begin = e.end = INT64_MAX;
    if (e.got) left.emplace(key, *e.got);
    all.push_back(e);
  }
  return linearizability(all).holds(before) ? content_difference(map, left) : "not linearizable";
}

}  // namespace elidex::testing
