#pragma once
// Dependencies between recorded transactions, and a cycle of them if there is one.
//
//   dependency_graph after(history.size());
//   after.add(0, 1, dependency::ww);
//   after.cycle();                      // "cycle: T0 -ww-> T1 -rw-> T0", or empty
//
// ww: its write is overwritten by the other's; wr: its write is read by the other; rw: what it has
// read is overwritten by the other. A cycle is what no serial order could have given; which kinds
// it is made of says which anomaly it is (Adya 1999).

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace elidex::testing {

enum class dependency : std::uint8_t { ww, wr, rw };

class dependency_graph {
 public:
  explicit dependency_graph(std::size_t transactions) : after_(transactions) {}

  void add(std::size_t from, std::size_t to, dependency how) {
    if (from != to) after_[from].emplace(to, how);
  }

  // The first one found, in words; empty: none.
  std::string cycle() const {
    // Depth first; grey ones are on the way.
    enum class colour : std::uint8_t { white, grey, black };
    std::vector<colour> colours(after_.size(), colour::white);
    for (std::size_t root = 0; root < after_.size(); ++root) {
      if (colours[root] != colour::white) continue;
      std::vector<std::pair<std::size_t, std::map<std::size_t, dependency>::const_iterator>> way{
          {root, after_[root].begin()}};
      colours[root] = colour::grey;
      while (!way.empty()) {
        auto& [at, next] = way.back();
        if (next == after_[at].end()) {
          colours[at] = colour::black;
          way.pop_back();
          continue;
        }
        const std::size_t to = (next++)->first;
        if (colours[to] == colour::grey) {
          std::string found = "cycle:";
          bool on_it = false;
          for (const auto& [t, edge] : way) {
            on_it = on_it || t == to;
            if (!on_it) continue;
            const dependency kind = std::prev(edge)->second;
            found += " T" + std::to_string(t) +
                     (kind == dependency::ww   ? " -ww->"
                      : kind == dependency::wr ? " -wr->"
                                               : " -rw->");
          }
          return found + " T" + std::to_string(to);
        }
        if (colours[to] == colour::white) {
          colours[to] = colour::grey;
          way.emplace_back(to, after_[to].begin());
        }
      }
    }
    return "";
  }

 private:
  std::vector<std::map<std::size_t, dependency>> after_;
};

}  // namespace elidex::testing
