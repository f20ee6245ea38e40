// Single operations on a map that fits into the caches: what the code path costs, without memory's
// share.
#include <benchmark/benchmark.h>

#include <cstdint>

#include "elidex/ordered_map.hpp"

namespace {

constexpr std::uint64_t key_count = 10'000;

using map = elidex::ordered_map<std::uint64_t, std::uint64_t>;

std::uint64_t next_key(std::uint64_t& state) {
  state = state * 6364136223846793005u + 1442695040888963407u;
  return (state >> 33) % key_count;
}

void get(benchmark::State& state) {
  map m;
  for (std::uint64_t k = 0; k < key_count; ++k) m.insert(k, k);
  std::uint64_t random = 1;
  for (auto _ : state) benchmark::DoNotOptimize(m.get(next_key(random)));
}
BENCHMARK(get);

void update(benchmark::State& state) {
  map m;
  for (std::uint64_t k = 0; k < key_count; ++k) m.insert(k, k);
  std::uint64_t random = 1;
  for (auto _ : state)
    benchmark::DoNotOptimize(m.update(next_key(random), [](std::uint64_t& v) { ++v; }));
}
BENCHMARK(update);

void insert_and_erase(benchmark::State& state) {
  map m;
  for (std::uint64_t k = 0; k < key_count; ++k) m.insert(2 * k, k);
  std::uint64_t random = 1;
  for (auto _ : state) {
    const std::uint64_t key = 2 * next_key(random) + 1;
    benchmark::DoNotOptimize(m.insert(key, key));
    benchmark::DoNotOptimize(m.erase(key));
  }
}
BENCHMARK(insert_and_erase);

}  // namespace
