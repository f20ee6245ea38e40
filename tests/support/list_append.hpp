#pragma once
// Recorded histories of transactions that append to lists and read them, and what is wrong with
// them.
//
// Every element is appended once in a run, so a list tells the order of its writers, and what a
// reader saw tells between which of them it stood. From that follow the dependencies: ww (the next
// element's writer comes after the one before), wr (a reader after the writer of the last element
// that it saw), rw (before the writer of the next one), and dependencies.hpp looks for a cycle. As
// Elle does it (Kingsbury and Alvaro, VLDB 2020).

#include <algorithm>
#include <cstdint>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "support/dependencies.hpp"

namespace elidex::testing {

using element = std::uint32_t;

struct list_observation {
  std::uint64_t key;
  std::vector<element> seen;
};

// One that has committed.
struct appending_transaction {
  std::vector<std::pair<std::uint64_t, element>> appends;
  std::vector<list_observation> reads;  // of lists as they were before its own appends
  int thread = 0;
  std::uint64_t began = 0;  // a clock of the run, which ticks at each of these moments
  std::uint64_t ended = 0;
};

// Writes a history with times as JSON lines, as other checkers read it (Elle's command line, adya).
inline void write_history(const std::vector<appending_transaction>& history, std::ostream& to) {
  std::map<std::uint64_t, std::string> lines;
  for (const appending_transaction& one : history) {
    std::string asked;
    std::string answered;
    const auto add = [](std::string& line, const std::string& part) {
      line += (line.empty() ? "" : ",") + part;
    };
    for (const list_observation& read : one.reads) {
      const std::string key = "[\"r\"," + std::to_string(read.key) + ",";
      std::string seen;
      for (const element e : read.seen) add(seen, std::to_string(e));
      add(asked, key + "null]");
      add(answered, key + "[" + seen + "]]");
    }
    for (const auto& [key, appended] : one.appends) {
      const std::string part =
          "[\"append\"," + std::to_string(key) + "," + std::to_string(appended) + "]";
      add(asked, part);
      add(answered, part);
    }
    const std::string who = "\"process\":" + std::to_string(one.thread) + ",\"f\":\"txn\",";
    lines[one.began] = "{\"type\":\"invoke\"," + who + "\"value\":[" + asked + "]}";
    lines[one.ended] = "{\"type\":\"ok\"," + who + "\"value\":[" + answered + "]}";
  }
  for (const auto& [time, line] : lines) to << line << '\n';
}

// The first cycle found, in words; empty: none. `finally` has all lists at the end.
inline std::string find_cycle(const std::vector<appending_transaction>& history,
                              const std::map<std::uint64_t, std::vector<element>>& finally) {
  std::map<element, std::size_t> writer;
  for (std::size_t t = 0; t < history.size(); ++t) {
    for (const auto& [key, one] : history[t].appends) writer[one] = t;
  }
  dependency_graph after(history.size());
  std::size_t appended = 0;
  for (const auto& [key, list] : finally) {
    appended += list.size();
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!writer.contains(list[i]))
        return "element " + std::to_string(list[i]) + " was appended by nobody who committed";
      if (i > 0) after.add(writer[list[i - 1]], writer[list[i]], dependency::ww);
    }
  }
  if (appended != writer.size()) return "an append is lost";
  for (std::size_t t = 0; t < history.size(); ++t) {
    for (const list_observation& read : history[t].reads) {
      const auto list = finally.find(read.key);
      const std::vector<element> all =
          list == finally.end() ? std::vector<element>() : list->second;
      if (read.seen.size() > all.size() ||
          !std::equal(read.seen.begin(), read.seen.end(), all.begin())) {
        return "what was read of list " + std::to_string(read.key) + " is no beginning of it";
      }
      if (!read.seen.empty()) after.add(writer[read.seen.back()], t, dependency::wr);
      if (read.seen.size() < all.size())
        after.add(t, writer[all[read.seen.size()]], dependency::rw);
    }
  }
  return after.cycle();
}

}  // namespace elidex::testing
