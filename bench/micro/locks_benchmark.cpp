// What taking and leaving a lock costs when nobody else wants it.
#include <benchmark/benchmark.h>

#include <mutex>

#include "elidex/elided.hpp"
#include "elidex/internal/sync/spin_locks.hpp"
#include "papers/karnagel/hle_lock.hpp"
#include "papers/karnagel/posix_mutex.hpp"

namespace {

template <class Lock>
void lock_and_unlock(benchmark::State& state) {
  Lock lock;
  std::uint64_t guarded = 0;
  for (auto _ : state) {
    const std::lock_guard guard(lock);
    benchmark::DoNotOptimize(++guarded);
  }
}
BENCHMARK(lock_and_unlock<std::mutex>);
BENCHMARK(lock_and_unlock<elidex::papers::posix_mutex>);
BENCHMARK(lock_and_unlock<elidex::tas_lock>);
BENCHMARK(lock_and_unlock<elidex::ttas_lock>);
BENCHMARK(lock_and_unlock<elidex::papers::hle_lock>);
BENCHMARK(lock_and_unlock<elidex::elided<elidex::ttas_lock>>);

}  // namespace
