// Locks under contention: how many sections a second so many threads get through, in rounds in
// which every lock has its turn. Writes JSON to standard output:
//
//   lock_contention [--seconds 0.1] [--rounds 7]
//   {"runs":[{"lock":"std::mutex","kind":"exclusive","writes_pct":100,"inside":4,"outside":50,
//       "threads":2,"mops":[..]},..]}
//
// A thread adds to `inside` words under the lock and then steps a random generator `outside` times.
// Threads run for a time, not for a number of sections: an unfair lock would otherwise end its
// rounds with one thread alone. Google Benchmark counts sections; so the loop is ours. Threads are
// spread over the cores and stay there.
#include <absl/synchronization/mutex.h>
#include <oneapi/tbb/mutex.h>
#include <oneapi/tbb/rw_mutex.h>
#include <oneapi/tbb/spin_mutex.h>
#include <oneapi/tbb/spin_rw_mutex.h>

#include <CLI/CLI.hpp>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <iostream>
#include <mutex>
#include <nlohmann/json.hpp>
#include <shared_mutex>
#include <string>
#include <thread>
#include <vector>

#include "bench/support/stay_on_a_core.hpp"
#include "elidex/elided.hpp"
#include "elidex/mutex.hpp"
#include "elidex/shared_mutex.hpp"

namespace {

struct shape {
  unsigned inside;
  unsigned outside;
  unsigned writes_pct;
  unsigned threads;
};

struct absl_mutex {
  absl::Mutex mutex;
  void lock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex.Lock(); }
  void unlock() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex.Unlock(); }
  void lock_shared() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex.ReaderLock(); }
  void unlock_shared() ABSL_NO_THREAD_SAFETY_ANALYSIS { mutex.ReaderUnlock(); }
};

struct alignas(128) thread_count {
  std::uint64_t sections = 0;
};

template <class Lock>
double millions_a_second(const shape& shape, std::chrono::duration<double> time) {
  static constexpr std::size_t words = 8;
  struct alignas(128) {
    Lock lock;
    alignas(64) std::array<volatile std::uint64_t, words> data{};
  } shared;
  std::atomic<bool> go{false};
  std::atomic<bool> stop{false};
  std::vector<thread_count> counts(shape.threads);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < shape.threads; ++t) {
    threads.emplace_back([&, t] {
      std::uint32_t random = t + 1;
      const auto step = [&] { random = random * 1'664'525 + 1'013'904'223; };
      const auto section = [&] {
        for (unsigned i = 0; i < shape.inside; ++i)
          shared.data[i % words] = shared.data[i % words] + 1;
      };
      std::uint64_t sections = 0;
      elidex::bench::stay_on_a_core(t);
      while (!go.load()) std::this_thread::yield();
      // relaxed, without a partner: when exactly the threads stop does not matter.
      while (!stop.load(std::memory_order_relaxed)) {
        step();
        if (random / 256 % 100 < shape.writes_pct) {
          shared.lock.lock();
          section();
          shared.lock.unlock();
        } else if constexpr (requires { shared.lock.lock_shared(); }) {
          shared.lock.lock_shared();
          std::uint64_t sum = 0;
          for (unsigned i = 0; i < shape.inside; ++i) sum += shared.data[i % words];
          asm volatile("" : : "r"(sum));
          shared.lock.unlock_shared();
        }
        for (unsigned i = 0; i < shape.outside; ++i) {
          step();
          asm volatile("" : : "r"(random));
        }
        ++sections;
      }
      counts[t].sections = sections;
    });
  }
  const auto began = std::chrono::steady_clock::now();
  go.store(true);
  std::this_thread::sleep_for(time);
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  double sum = 0;
  for (const thread_count& one : counts) sum += static_cast<double>(one.sections);
  return sum / took.count() / 1e6;
}

struct contender {
  std::string name;
  std::function<double(const shape&, std::chrono::duration<double>)> run;
};

const std::vector<contender> exclusive_locks{
    {"std::mutex", millions_a_second<std::mutex>},
    {"elidex::mutex", millions_a_second<elidex::mutex>},
    {"tbb::mutex", millions_a_second<tbb::mutex>},
    {"absl::Mutex", millions_a_second<absl_mutex>},
    {"tbb::spin_mutex", millions_a_second<tbb::spin_mutex>},
    {"elidex::ttas_lock", millions_a_second<elidex::ttas_lock>},
};
const std::vector<contender> shared_locks{
    {"std::shared_mutex", millions_a_second<std::shared_mutex>},
    {"elidex::shared_mutex", millions_a_second<elidex::shared_mutex>},
    {"tbb::rw_mutex", millions_a_second<tbb::rw_mutex>},
    {"absl::Mutex", millions_a_second<absl_mutex>},
    {"tbb::spin_rw_mutex", millions_a_second<tbb::spin_rw_mutex>},
};

}  // namespace

int main(int argc, char** argv) {
  double seconds = 0.1;
  unsigned rounds = 7;
  CLI::App app("Locks under contention");
  app.add_option("--seconds", seconds, "each run [0.1]")->check(CLI::PositiveNumber);
  app.add_option("--rounds", rounds, "[7]")->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);

  struct work {
    unsigned inside;
    unsigned outside;
  };
  nlohmann::ordered_json runs = nlohmann::ordered_json::array();
  const auto measure = [&](const std::vector<contender>& locks, const char* kind,
                           const shape& how) {
    std::vector<std::vector<double>> rates(locks.size());
    for (unsigned round = 0; round < rounds; ++round) {
      for (std::size_t i = 0; i < locks.size(); ++i) {
        rates[i].push_back(locks[i].run(how, std::chrono::duration<double>(seconds)));
      }
    }
    for (std::size_t i = 0; i < locks.size(); ++i) {
      runs.push_back({{"lock", locks[i].name},
                      {"kind", kind},
                      {"writes_pct", how.writes_pct},
                      {"inside", how.inside},
                      {"outside", how.outside},
                      {"threads", how.threads},
                      {"mops", rates[i]}});
    }
  };
  for (const auto [inside, outside] : {work{4, 0}, work{4, 50}, work{40, 200}, work{400, 400}}) {
    for (const unsigned threads : {1u, 2u, 8u, 32u})
      measure(exclusive_locks, "exclusive", {inside, outside, 100, threads});
  }
  for (const unsigned writes_pct : {0u, 10u, 50u}) {
    for (const unsigned threads : {1u, 2u, 8u})
      measure(shared_locks, "shared", {4, 50, writes_pct, threads});
  }
  std::cout << nlohmann::ordered_json{{"runs", runs}}.dump() << '\n';
}
