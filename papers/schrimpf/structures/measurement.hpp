#pragma once
// One measured run of a use case, and the figures as lists of such runs. Where it runs is the
// Runner's affair: simulated_runner (papers/schrimpf/experiments/structures.cpp) or native_runner
// (native_runner.hpp).
//
//   native_runner run(...);
//   std::vector<series> curves = figure_3_16(run);      // figures.hpp
//
// A Runner has
//   thread_counts()                          how many threads the figures' x axes have
//   cores()                                  how many counters "one for each core" means
//   regions_commit()                         whether to run the locks that need hardware
//                                            transactions
//   thesis_locks_only()                      to leave out elidex's own, which no claim is about
//   operations(few, many)                    of each thread: for a smoke run and for a full one
//   ages()                                   of list and map, in operations (over_the_second())
//   measure<Use>(threads, operations, settings)
//
// Thread-safety: one measurement at a time.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bench/support/series.hpp"
#include "elidex/elided.hpp"
#include "elidex/internal/sync/spin_locks.hpp"
#include "papers/schrimpf/structures/locks.hpp"

namespace elidex::bench {

// What counters of transactions say; the names are those of paper 004, tables 3.3 and 3.5.
struct transaction_shares {
  double transactional_pct = 0;  // of all cycles
  double aborted_pct = 0;        // of the transactional cycles
  double abort_rate_pct = 0;     // of the transactions begun
};

struct measurement {
  double per_ms = 0;  // operations of all threads together
  std::optional<transaction_shares> transactions = std::nullopt;
};

// The thesis lets its programs run for 100 ms and counts the operations of the second that follows.
// Meanwhile list and map grow. What cannot run for so long is measured for some moments: ages[i]
// operations after the beginning it makes at[i]. Between two ages, what it makes is drawn as a
// line; behind the last one it stays the same.
inline measurement over_the_second(const std::vector<std::size_t>& ages,
                                   const std::vector<measurement>& at) {
  constexpr int warm_up_ms = 100;
  constexpr int counted_ms = 1'000;
  double made = 0;
  measurement sum;
  transaction_shares shares;
  double transactional = 0;
  for (int ms = 0; ms < warm_up_ms + counted_ms; ++ms) {
    std::size_t next = 0;
    while (next + 1 < ages.size() && static_cast<double>(ages[next]) <= made) ++next;
    const std::size_t last = next == 0 ? 0 : next - 1;
    const double length = static_cast<double>(ages[next] - ages[last]);
    const double part =
        length == 0 ? 0 : std::clamp((made - static_cast<double>(ages[last])) / length, 0.0, 1.0);
    const auto between = [&](auto of) { return (1 - part) * of(at[last]) + part * of(at[next]); };
    const double per_ms = between([](const measurement& m) { return m.per_ms; });
    made += per_ms;
    if (ms < warm_up_ms) continue;
    sum.per_ms += per_ms / counted_ms;
    if (!at[0].transactions) continue;
    const double now =
        between([](const measurement& m) { return m.transactions->transactional_pct; });
    transactional += now;
    shares.transactional_pct += now / counted_ms;
    shares.aborted_pct +=
        now * between([](const measurement& m) { return m.transactions->aborted_pct; });
    shares.abort_rate_pct +=
        per_ms * between([](const measurement& m) { return m.transactions->abort_rate_pct; });
  }
  if (!at[0].transactions) return sum;
  shares.aborted_pct = transactional == 0 ? 0 : shares.aborted_pct / transactional;
  shares.abort_rate_pct /= sum.per_ms * counted_ms;
  sum.transactions = shares;
  return sum;
}

// What follows a lock's name where a series is about its transactions.
inline constexpr const char* transactional_cycles = ": transactional of all cycles, %";
inline constexpr const char* aborted_cycles = ": aborted of transactional cycles, %";
inline constexpr const char* abort_rate = ": aborted transactions, %";

// Curves by name, in the order of their first points: throughputs, then what counters say.
class curves {
 public:
  void add(const std::string& name, double x, const measurement& m) {
    point(throughputs_, name, x, m.per_ms);
    if (!m.transactions) return;
    point(counters_, name + transactional_cycles, x, m.transactions->transactional_pct);
    point(counters_, name + aborted_cycles, x, m.transactions->aborted_pct);
    point(counters_, name + abort_rate, x, m.transactions->abort_rate_pct);
  }
  [[nodiscard]] std::vector<series> all() const {
    std::vector<series> made = throughputs_;
    made.insert(made.end(), counters_.begin(), counters_.end());
    return made;
  }

 private:
  static void point(std::vector<series>& among, const std::string& name, double x, double y) {
    for (series& s : among) {
      if (s.name == name) return static_cast<void>(s.points.emplace_back(x, y));
    }
    among.push_back({name, {{x, y}}});
  }

  std::vector<series> throughputs_;
  std::vector<series> counters_;
};

// The locks of section 3.3 under the thesis's names, and elidex's own elided lock:
// each<Lock>(name).
template <class Runner, class Each>
void for_each_lock(const Runner& run, Each each) {
  each.template operator()<std::mutex>("POSIX");
  each.template operator()<spin_loop>("TAS");
  if (!run.regions_commit()) {
    each.template operator()<ttas_lock>(
        "ttas_lock");  // instead of the elided one, which would be this and its counters
    return;
  }
  each.template operator()<hle_spin_loop>("HLE");
  if (!run.thesis_locks_only()) each.template operator()<elided<ttas_lock>>("elided<ttas_lock>");
  each.template operator()<elision_only>("elision only");
}

}  // namespace elidex::bench
