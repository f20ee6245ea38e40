#pragma once
// A workload over the table store on this machine's threads: a user for each, all at once for some
// seconds.
//
//   // loaded
//   native_run<tpcc::driven_company<basic_database<db::silo_commit>>> c({.size = {.warehouses =
//       2}}, seed, {});
//   run_outcome outcome = c.run({.threads = 2, .seconds = 5});
//
// A Driven workload has
//   database_type, settings, user
//   Driven(database, settings, seed)     makes the tables
//   shares(), load_share(i)              what is loaded by as many threads as there are CPUs, a
//                                        share at a time each
//   kinds()                              of transactions
//   make_user(number, seed)              one for each thread of a run, from 0; made by that thread
//   step(user)                           one transaction, as step_result
//   add(user)                            what the user did is to be found in the tables
//   check(outcome)                       whether it is: fills in violations and missing; called
//                                        when nobody works
//
// Users are pinned round robin over the CPUs. Each looks at the phase between two transactions and
// takes its own time, so the rate is exact however late the scheduler lets it see the change; the
// rate of a run is the sum of theirs.
//
// Thread-safety: one run at a time. Errors: an exception in a worker ends the run and comes out of
// run().

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <optional>
#include <thread>
#include <vector>

#include "bench/runner/machine.hpp"
#include "bench/runner/run_control.hpp"
#include "bench/table_store/workload.hpp"
#include "elidex/database.hpp"

namespace elidex::bench::table_store {

template <class Driven>
class native_run final : public loaded_workload {
 public:
  native_run(const typename Driven::settings& wanted, std::uint64_t seed, const kept_in& where)
      : driven_(db_, wanted, seed) {
    if (where.level != db::durability::none) db_.open(where.directory, {.level = where.level});
    const std::size_t shares = driven_.shares();
    std::atomic<std::size_t> next{0};
    std::vector<std::exception_ptr> failures(std::min(allowed_cpus().size(), shares));
    {
      std::vector<std::jthread> loaders;
      loaders.reserve(failures.size());
      for (std::exception_ptr& failure : failures) {
        loaders.emplace_back([&] {
          try {
            for (std::size_t i = next++; i < shares; i = next++) driven_.load_share(i);
          } catch (...) {
            failure = std::current_exception();
          }
        });
      }
    }
    rethrow(failures);
    db_.wait_durable();
  }

  run_outcome run(const run_settings& settings) override {
    const database_stats before = db_.stats();
    const lock_counts regions_before = regions();
    std::atomic<run_phase> phase{settings.warm_up_seconds > 0 ? run_phase::warm_up
                                                              : run_phase::measure};
    std::atomic<unsigned> ready{0};
    std::vector<worker> workers(settings.threads);
    std::vector<std::exception_ptr> failures(settings.threads);
    {
      const std::vector<int> cpus = allowed_cpus();
      std::vector<std::jthread> threads;
      threads.reserve(settings.threads);
      const stop_at_exit stop{phase};  // before the threads are joined
      for (unsigned i = 0; i < settings.threads; ++i) {
        threads.emplace_back([&, i] {
          pin_this_thread(cpus[i % cpus.size()]);
          ++ready;
          while (ready < settings.threads && phase != run_phase::stop) std::this_thread::yield();
          try {
            work(workers[i], workers[i].who.emplace(driven_.make_user(i, settings.seed + i)),
                 phase);
          } catch (...) {
            failures[i] = std::current_exception();
            phase = run_phase::stop;
          }
        });
      }
      run_the_clock(settings, phase);
      phase = run_phase::stop;
      threads.clear();
    }
    rethrow(failures);
    const database_stats after = db_.stats();

    run_outcome outcome;
    outcome.latency.resize(driven_.kinds());
    double time_ns = 0;
    double wait_ns = 0;
    for (const worker& one : workers) {
      std::uint64_t many = 0;
      for (std::size_t k = 0; k < outcome.latency.size(); ++k) {
        outcome.latency[k] += one.latency[k];
        many += one.latency[k].samples();
      }
      const double seconds = std::chrono::duration<double>(one.end - one.begin).count();
      if (seconds > 0) outcome.rate += static_cast<double>(many) / seconds;
      outcome.seconds = std::max(outcome.seconds, seconds);
      outcome.rolled_back += one.rolled_back;
      outcome.all_transactions += one.all;
      time_ns += seconds * 1e9;
      wait_ns += static_cast<double>(one.cpu_wait_ns);
      if (one.who) driven_.add(*one.who);
    }
    outcome.cpu_wait_pct = time_ns > 0 ? 100 * wait_ns / time_ns : 0;
    outcome.conflicts = after.conflicts - before.conflicts;
    outcome.regions = regions() - regions_before;
    driven_.check(outcome);
    return outcome;
  }

 private:
  struct alignas(128) worker {
    std::optional<typename Driven::user> who;
    std::vector<latency_histogram> latency;
    std::uint64_t rolled_back = 0;
    std::uint64_t all = 0;
    std::uint64_t cpu_wait_ns = 0;
    run_clock::time_point begin{};
    run_clock::time_point end{};
  };
  struct stop_at_exit {
    std::atomic<run_phase>& phase;
    ~stop_at_exit() { phase = run_phase::stop; }
  };

  static void rethrow(const std::vector<std::exception_ptr>& failures) {
    for (const std::exception_ptr& one : failures) {
      if (one) std::rethrow_exception(one);
    }
  }

  void work(worker& mine, typename Driven::user& who, const std::atomic<run_phase>& phase) {
    mine.latency.resize(driven_.kinds());
    bool measuring = false;
    const auto begin_measuring = [&] {
      measuring = true;
      for (auto& one : mine.latency) one.clear();
      mine.rolled_back = 0;
      mine.cpu_wait_ns = cpu_wait_ns();
      mine.begin = run_clock::now();
      return mine.begin;
    };
    auto before = run_clock::now();
    for (;;) {
      // relaxed: a flag without data behind it; partners are the stores in run().
      const run_phase now = phase.load(std::memory_order_relaxed);
      if (now == run_phase::stop) break;
      if (now == run_phase::measure && !measuring) before = begin_measuring();
      const step_result done = driven_.step(who);
      const auto after = run_clock::now();
      mine.latency[done.kind].record(
          static_cast<std::uint64_t>((after - before) / std::chrono::nanoseconds(1)));
      mine.rolled_back += done.rolled_back ? 1 : 0;
      ++mine.all;
      before = after;
    }
    if (!measuring) begin_measuring();  // nothing was measured
    mine.end = run_clock::now();
    mine.cpu_wait_ns = cpu_wait_ns() - mine.cpu_wait_ns;
  }

  static void run_the_clock(const run_settings& settings, std::atomic<run_phase>& phase) {
    using seconds_type = std::chrono::duration<double>;
    constexpr auto nap = std::chrono::milliseconds(50);
    const auto start = run_clock::now();
    const auto after = [&](double seconds) {
      return start + std::chrono::duration_cast<run_clock::duration>(seconds_type(seconds));
    };
    const double whole = settings.warm_up_seconds + settings.seconds;
    const auto until = [&](run_clock::time_point end) {
      for (auto now = run_clock::now(); now < end && phase != run_phase::stop;
           now = run_clock::now()) {
        std::this_thread::sleep_for(std::min<run_clock::duration>(nap, end - now));
        if (settings.tick)
          settings.tick(std::min(1.0, seconds_type(run_clock::now() - start).count() / whole));
      }
    };
    until(after(settings.warm_up_seconds));
    run_phase expected = run_phase::warm_up;
    phase.compare_exchange_strong(expected, run_phase::measure);
    until(after(whole));
  }

  lock_counts regions() {
    if constexpr (requires { db_.protocol().htm_counts(); }) {
      return db_.protocol().htm_counts();
    } else {
      return {};
    }
  }

  typename Driven::database_type db_;
  Driven driven_;
};

}  // namespace elidex::bench::table_store
