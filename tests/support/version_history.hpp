#pragma once
// Recorded histories of transactions that read and write rows whose versions are numbered, and what
// is wrong with them.
//
//   version_history history;             // one for each thread; joined afterwards
//   db.transact([&](auto& t) {
//     recording in(t, notes);            // reads and writes through it are noted
//     smallbank::write_check(in, bank, 1, 500);
//   });
//   history.push_back(notes);            // of the attempt that committed
//   find_cycle(history)                  // in words; empty: some serial order gives this history
//
// Each write is one number more than what the same transaction has read there, so the numbers are
// the order of the writes: two writers of one number have lost an update, and with the order of all
// writes known, each read tells its dependencies (dependencies.hpp). As Elle does it with registers
// whose order is known (Kingsbury and Alvaro, VLDB 2020).
//
// Thread-safety: none.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/dependencies.hpp"

namespace elidex::testing {

struct row_name {
  const void* table;
  std::uint64_t key;
  friend auto operator<=>(const row_name&, const row_name&) = default;
};

// One that has committed.
struct noted_transaction {
  // and the version seen; of rows that it has not written before
  std::set<std::pair<row_name, std::uint64_t>> reads;
  std::map<row_name, std::uint64_t> writes;

  void clear() {
    reads.clear();
    writes.clear();
  }
};
using version_history = std::vector<noted_transaction>;

// Stands for a transaction in front of code that uses get() and upsert() only. Rows without
// `changes` are not noted.
template <class Transaction>
class recording {
 public:
  recording(Transaction& in, noted_transaction& notes) : in_(in), notes_(notes) {}

  template <class Table>
  auto get(Table& table, std::uint64_t key) {
    auto row = in_.get(table, key);
    if constexpr (requires { row->changes; }) {
      const row_name name{&table, key};
      if (!notes_.writes.contains(name)) notes_.reads.emplace(name, row->changes);
    }
    return row;
  }
  template <class Table, class Row>
  void upsert(Table& table, std::uint64_t key, const Row& row) {
    notes_.writes[{&table, key}] = row.changes;
    in_.upsert(table, key, row);
  }

 private:
  Transaction& in_;
  noted_transaction& notes_;
};

// The first anomaly found.
inline std::string find_cycle(const version_history& history) {
  std::map<row_name, std::map<std::uint64_t, std::size_t>> writers;
  for (std::size_t t = 0; t < history.size(); ++t) {
    for (const auto& [row, version] : history[t].writes) {
      const auto [other, first] = writers[row].emplace(version, t);
      if (!first) {
        return "lost update: T" + std::to_string(other->second) + " and T" + std::to_string(t) +
               " both wrote version " + std::to_string(version) + " of row " +
               std::to_string(row.key);
      }
    }
  }
  dependency_graph after(history.size());
  for (const auto& [row, of] : writers) {
    std::uint64_t wanted = 1;  // 0 is the load's
    for (auto at = of.begin(); at != of.end(); ++at, ++wanted) {
      if (at->first != wanted)
        return "version " + std::to_string(wanted) + " of row " + std::to_string(row.key) +
               " was written by nobody";
      if (at != of.begin()) after.add(std::prev(at)->second, at->second, dependency::ww);
    }
  }
  for (std::size_t t = 0; t < history.size(); ++t) {
    for (const auto& [row, version] : history[t].reads) {
      const auto& of = writers[row];
      if (version > of.size())
        return "version " + std::to_string(version) + " of row " + std::to_string(row.key) +
               " was read, but not written";
      if (version > 0) after.add(of.at(version), t, dependency::wr);
      if (version < of.size()) after.add(t, of.at(version + 1), dependency::rw);
    }
  }
  return after.cycle();
}

}  // namespace elidex::testing
