// What a column costs: insertions of values that are there beside ordered_map's get(), queries on
// packed IDs beside memcpy, merges, and how long a reader waits while one runs. `./dev columns`
// runs these.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "elidex/column.hpp"
#include "elidex/ordered_map.hpp"

namespace {

using u64 = std::uint64_t;
constexpr u64 many_rows = 10'000'000;

class random_numbers {
 public:
  u64 below(u64 bound) {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return (state_ >> 33) % bound;  // bounds are far below 2^31
  }

 private:
  u64 state_ = 1;
};

// The nth of some values in no order.
template <class T>
T nth_value(u64 n) {
  u64 mixed = (n + 1) * 0x9E3779B97F4A7C15U;
  mixed ^= mixed >> 32;
  if constexpr (std::is_same_v<T, std::string>) {
    return "value " + std::to_string(mixed);
  } else {
    return mixed;
  }
}
template <class T>
std::vector<T> nth_values(u64 count) {
  std::vector<T> all;
  for (u64 n = 0; n < count; ++n) all.push_back(nth_value<T>(n));
  return all;
}

// --- a duplicate's insertion beside ordered_map's get(), with so many different values ---

template <class T>
void ordered_map_get(benchmark::State& state) {
  const auto values = nth_values<T>(static_cast<u64>(state.range(0)));
  elidex::ordered_map<T, u64> map;
  for (const T& v : values) map.insert(v, 1);
  random_numbers random;
  for (auto _ : state) benchmark::DoNotOptimize(map.get(values[random.below(values.size())]));
  state.SetItemsProcessed(state.iterations());
}
template <class T>
void column_insert(benchmark::State& state) {
  const auto values = nth_values<T>(static_cast<u64>(state.range(0)));
  elidex::column<T> column;
  for (const T& v : values) column.insert(v);
  random_numbers random;
  for (auto _ : state) benchmark::DoNotOptimize(column.insert(values[random.below(values.size())]));
  state.SetItemsProcessed(state.iterations());
}
// the same number for both, so that as many values have come before
constexpr int duplicates = 2'000'000;
#define ELIDEX_DUPLICATES(what, type, name) \
  BENCHMARK(what<type>)                     \
      ->Name(name)                          \
      ->Arg(1'000)                          \
      ->Arg(100'000)                        \
      ->Arg(1'000'000)                      \
      ->Iterations(duplicates)
ELIDEX_DUPLICATES(ordered_map_get, u64, "column/duplicates/u64/ordered_map.get");
ELIDEX_DUPLICATES(column_insert, u64, "column/duplicates/u64/insert");
ELIDEX_DUPLICATES(ordered_map_get, std::string, "column/duplicates/string/ordered_map.get");
ELIDEX_DUPLICATES(column_insert, std::string, "column/duplicates/string/insert");

// --- queries of a main ---

// With so many different values, in one part.
elidex::column<u64>& merged_column(u64 distinct) {
  static std::map<u64, std::unique_ptr<elidex::column<u64>>> made;
  auto& one = made[distinct];
  if (one == nullptr) {
    one = std::make_unique<elidex::column<u64>>();
    random_numbers random;
    for (u64 i = 0; i < many_rows; ++i) one->insert(nth_value<u64>(random.below(distinct)));
    one->merge();
  }
  return *one;
}
void count_half(benchmark::State& state) {
  const auto& column = merged_column(static_cast<u64>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(column.count(elidex::up_to(~u64{0} / 2)));
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(many_rows));
}
BENCHMARK(count_half)
    ->Name("column/count")
    ->Arg(1'000)
    ->Arg(100'000)
    ->Arg(10'000'000)
    ->Unit(benchmark::kMicrosecond);

void get_row(benchmark::State& state) {
  const auto& column = merged_column(static_cast<u64>(state.range(0)));
  random_numbers random;
  for (auto _ : state) benchmark::DoNotOptimize(column.get(random.below(many_rows)));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(get_row)->Name("column/get")->Arg(1'000)->Arg(100'000)->Arg(10'000'000);

// Packed IDs of so many bits, more of them than caches hold.
void unpack(benchmark::State& state) {
  const auto bits = static_cast<unsigned>(state.range(0));
  std::vector<std::uint32_t> ids(many_rows);
  random_numbers random;
  for (auto& id : ids) id = static_cast<std::uint32_t>(random.below(u64{1} << bits));
  const auto packed = elidex::internal::packed_ids::pack(ids, bits);
  std::vector<std::uint32_t> out(elidex::internal::packed_ids::block_rows * 32);
  for (auto _ : state) {
    for (std::size_t row = 0; row + out.size() <= many_rows; row += out.size()) {
      packed.unpack(row, out.size(), out.data());
      benchmark::DoNotOptimize(out.data());
      benchmark::ClobberMemory();
    }
  }
  state.SetItemsProcessed(state.iterations() *
                          static_cast<std::int64_t>(many_rows / out.size() * out.size()));
}
BENCHMARK(unpack)
    ->Name("column/unpack/bits")
    ->Arg(5)
    ->Arg(12)
    ->Arg(17)
    ->Arg(24)
    ->Unit(benchmark::kMicrosecond);

void copy(benchmark::State& state) {
  const std::vector<std::uint32_t> ids(many_rows, 7);
  std::vector<std::uint32_t> out(elidex::internal::packed_ids::block_rows * 32);
  for (auto _ : state) {
    for (std::size_t row = 0; row + out.size() <= many_rows; row += out.size()) {
      std::memcpy(out.data(), ids.data() + row, out.size() * sizeof(ids[0]));
      benchmark::DoNotOptimize(out.data());
      benchmark::ClobberMemory();
    }
  }
  state.SetItemsProcessed(state.iterations() *
                          static_cast<std::int64_t>(many_rows / out.size() * out.size()));
}
BENCHMARK(copy)->Name("column/memcpy of 4 bytes")->Unit(benchmark::kMicrosecond);

// --- merges ---

// Of a delta of 10 M rows, or of a main of 10 M and a delta of a tenth of it.
template <class T>
void merge_delta(benchmark::State& state) {
  const auto values = nth_values<T>(static_cast<u64>(state.range(0)));
  for (auto _ : state) {
    elidex::column<T> column;
    random_numbers random;
    for (u64 i = 0; i < many_rows; ++i) column.insert(values[random.below(values.size())]);
    const auto begin = std::chrono::steady_clock::now();
    column.merge();
    state.SetIterationTime(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(many_rows));
}
BENCHMARK(merge_delta<u64>)
    ->Name("column/merge/u64")
    ->Arg(100'000)
    ->Arg(10'000'000)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(merge_delta<std::string>)
    ->Name("column/merge/string")
    ->Arg(100'000)
    ->Arg(1'000'000)
    ->UseManualTime()
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

// --- a reader beside merges ---

double percentile(std::vector<std::uint32_t>& ns, double percent) {
  const auto at =
      ns.begin() + static_cast<std::ptrdiff_t>(percent / 100 * static_cast<double>(ns.size() - 1));
  std::nth_element(ns.begin(), at, ns.end());
  return *at;
}

// Each get() by itself; quiet or beside a thread that merges 10 M rows again and again.
void get_beside_merges(benchmark::State& state) {
  const bool merging = state.range(0) != 0;
  elidex::column<u64> column;
  {
    random_numbers random;
    for (u64 i = 0; i < many_rows; ++i) column.insert(nth_value<u64>(random.below(1'000'000)));
  }
  column.merge();
  std::vector<std::uint32_t> taken;
  constexpr std::size_t samples = 5'000'000;
  taken.reserve(samples);
  for (auto _ : state) {
    std::atomic<bool> stop{false};
    std::thread merger([&] {
      while (merging && !stop.load()) {
        column.insert(7);
        column.merge();
      }
    });
    random_numbers random;
    while (taken.size() < samples) {
      const auto begin = std::chrono::steady_clock::now();
      benchmark::DoNotOptimize(column.get(random.below(many_rows)));
      const auto end = std::chrono::steady_clock::now();
      taken.push_back(static_cast<std::uint32_t>(
          std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count()));
    }
    stop.store(true);
    merger.join();
  }
  state.counters["ns_p50"] = percentile(taken, 50);
  state.counters["ns_p99"] = percentile(taken, 99);
  state.counters["ns_p999"] = percentile(taken, 99.9);
  state.counters["merges"] = static_cast<double>(column.stats().merges - 1);
}
BENCHMARK(get_beside_merges)
    ->Name("column/get beside merges")
    ->Arg(0)
    ->Arg(1)
    ->Iterations(1)
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
