#pragma once
// The figures of paper 004 section 3.3, each written once over a Runner (measurement.hpp):
// figure_3_16(run) and so on. x: threads, per cent of reads, or buckets, as in the figure; y:
// operations per millisecond of all threads together.
//
// From: paper 004 section 3.3, appendices C.7 and D.2.

#include <array>
#include <cstddef>
#include <string>
#include <vector>

#include "papers/schrimpf/structures/measurement.hpp"
#include "papers/schrimpf/structures/use_cases.hpp"

namespace elidex::bench {

// Where a figure has a fixed number of threads: that, or what there is.
template <class Runner>
unsigned threads_of(const Runner& run, unsigned wanted) {
  unsigned most = 1;
  for (const unsigned n : run.thread_counts()) {
    if (n <= wanted && n > most) most = n;
  }
  return most;
}

inline constexpr unsigned thesis_threads = 4;  // one for each core

template <class Runner>
std::vector<series> figure_3_12(const Runner& run) {
  curves all;
  const std::uint64_t operations = run.operations(5'000, 50'000);
  for_each_lock(run, [&]<class Lock>(const char* name) {
    all.add(name, 0,
            run.template measure<bank_use<Lock>>(threads_of(run, thesis_threads), operations,
                                                 typename bank_use<Lock>::settings{}));
  });
  return all.all();
}

template <class Runner>
std::vector<series> counters_by_threads(const Runner& run, std::size_t counters,
                                        counter_layout layout, counter_locks locks,
                                        std::uint64_t operations,
                                        std::uint64_t operations_in_turns) {
  curves all;
  for_each_lock(run, [&]<class Lock>(const char* name) {
    for (const unsigned threads : run.thread_counts()) {
      const bool in_turns = threads > thesis_threads;
      all.add(name, threads,
              run.template measure<counter_use<Lock>>(
                  threads, in_turns ? operations_in_turns : operations,
                  {.counters = counters, .layout = layout, .locks = locks}));
    }
  });
  return all.all();
}

// Of each thread, in the figures whose sections meet all the time or never.
template <class Runner>
std::uint64_t usual_increments(const Runner& run) {
  return run.operations(10'000, 100'000);
}

// Of each thread where threads take turns: enough for several turns of 3 ms.
template <class Runner>
std::uint64_t increments_in_turns(const Runner& run) {
  return run.operations(500'000, 500'000);
}

template <class Runner>
std::vector<series> figure_3_13(const Runner& run) {
  return counters_by_threads(run, 1, counter_layout::aligned, counter_locks::own,
                             usual_increments(run), usual_increments(run));
}
template <class Runner>
std::vector<series> figure_3_14(const Runner& run) {
  return counters_by_threads(run, run.cores(), counter_layout::unaligned, counter_locks::own,
                             usual_increments(run), increments_in_turns(run));
}
template <class Runner>
std::vector<series> figure_3_15(const Runner& run) {
  return counters_by_threads(run, run.cores(), counter_layout::aligned, counter_locks::own,
                             usual_increments(run), increments_in_turns(run));
}
// Long in a smoke run too: what becomes of HLE hangs on the first interrupt, after which all
// threads take the lock for real one after the other, and ten thousand increments end before any.
template <class Runner>
std::vector<series> figure_3_16(const Runner& run) {
  return counters_by_threads(run, run.cores(), counter_layout::aligned, counter_locks::global,
                             run.operations(100'000, 100'000), increments_in_turns(run));
}

// List and map have changed before the second that the thesis counts, and change during it.
template <class Use, class Runner>
measurement measure_for_the_second(const Runner& run, unsigned threads, std::uint64_t operations,
                                   typename Use::settings settings) {
  std::vector<measurement> at;
  for (const std::size_t age : run.ages()) {
    settings.age = age;
    at.push_back(run.template measure<Use>(threads, operations, settings));
  }
  return over_the_second(run.ages(), at);
}

template <item_alignment Alignment, class Runner>
std::vector<series> list_by_reads(const Runner& run, unsigned threads,
                                  const std::vector<unsigned>& read_pcts) {
  curves all;
  const std::uint64_t operations = run.operations(250, 1'000);
  for_each_lock(run, [&]<class Lock>(const char* name) {
    for (const unsigned reads : read_pcts) {
      all.add(name, reads,
              measure_for_the_second<list_use<Lock, Alignment>>(run, threads_of(run, threads),
                                                                operations, {.read_pct = reads}));
    }
  });
  return all.all();
}

template <class Runner>
std::vector<series> figure_3_17(const Runner& run) {
  return list_by_reads<item_alignment::cache_line>(run, 2, {0, 50, 100});
}
template <class Runner>
std::vector<series> figure_d_5(const Runner& run) {
  return list_by_reads<item_alignment::none>(run, thesis_threads, {0, 25, 50, 75, 100});
}
// The figure's own caption says two threads and unaligned; the text around it, four and aligned,
// which is taken.
template <class Runner>
std::vector<series> figure_d_6(const Runner& run) {
  return list_by_reads<item_alignment::cache_line>(run, thesis_threads, {0, 25, 50, 75, 100});
}

template <class Runner>
void add_map(curves& all, const Runner& run, const std::string& suffix, double x,
             std::size_t buckets, map_locks locks, std::size_t base_values,
             std::uint64_t operations) {
  for_each_lock(run, [&]<class Lock>(const char* name) {
    all.add(name + suffix, x,
            measure_for_the_second<map_use<Lock>>(
                run, threads_of(run, thesis_threads), operations,
                {.buckets = buckets, .locks = locks, .base_values = base_values}));
  });
}

// x: buckets.
template <class Runner>
std::vector<series> figure_3_18(const Runner& run) {
  curves all;
  for (const std::size_t buckets : {std::size_t{1}, std::size_t{10}, std::size_t{100}}) {
    add_map(all, run, "", static_cast<double>(buckets), buckets, map_locks::per_bucket, 1'000,
            buckets == 1 ? run.operations(100, 300) : run.operations(700, 2'000));
  }
  return all.all();
}

// x: 0 with a lock for each bucket, 1 with one for all.
inline constexpr double with_bucket_locks = 0;
inline constexpr double with_global_lock = 1;

template <class Runner>
std::vector<series> figure_3_19(const Runner& run) {
  curves all;
  const std::uint64_t operations = run.operations(1'500, 5'000);
  add_map(all, run, "", with_bucket_locks, 1'000, map_locks::per_bucket, 1'000, operations);
  add_map(all, run, "", with_global_lock, 1'000, map_locks::global, 1'000, operations);
  return all.all();
}

// x: buckets, under one lock.
template <class Runner>
std::vector<series> figure_c_10(const Runner& run) {
  curves all;
  for (const std::size_t buckets :
       {std::size_t{10}, std::size_t{100}, std::size_t{1'000}, std::size_t{10'000}}) {
    add_map(all, run, "", static_cast<double>(buckets), buckets, map_locks::global, 10'000,
            buckets < 1'000 ? run.operations(100, 300) : run.operations(700, 2'000));
  }
  return all.all();
}

}  // namespace elidex::bench
