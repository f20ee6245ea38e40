// What a thread's instructions cost, and the accesses that it does not wait for.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstring>

#include "elidex/htm.hpp"
#include "machine/regions.hpp"
#include "machine/simulation.hpp"

namespace elidex::sim {
namespace {

machine with_instructions(u64 per_100_cycles) {
  machine m = here();
  set_parameter(m, "instructions_per_100_cycles", per_100_cycles);
  return m;
}
machine with_window(u64 instructions) {
  machine m = with_instructions(400);
  set_parameter(m, "window_instructions", instructions);
  return m;
}

// Some instructions for each round: an addition, and what the loop takes.
void compute(unsigned rounds) {
  for (unsigned i = 0; i < rounds; ++i) asm volatile("" : "+r"(i));
}

template <class Body>
u64 cycles_on(const machine& m, Body body) {
  u64 cycles = 0;
  run(m, {}, {[&] {
        const u64 from = now();
        body();
        cycles = now() - from;
      }});
  return cycles;
}

constexpr unsigned rounds = 10'000;

TEST(Instructions, TakeTheTimeThatTheMachineSays) {
  const u64 slow = cycles_on(with_instructions(100), [] { compute(rounds); });
  const u64 fast = cycles_on(with_instructions(400), [] { compute(rounds); });
  EXPECT_GE(slow, 2 * rounds);
  EXPECT_LE(slow, 8 * rounds);
  EXPECT_NEAR(static_cast<double>(slow), 4.0 * static_cast<double>(fast), 10);
}

TEST(Instructions, AreCountedWhereTheyAreNotCharged) {
  machine m = here();
  ASSERT_EQ(m.instructions_per_100_cycles, 0U);
  const report few = run(m, {}, {[] { compute(rounds); }});
  const report many = run(m, {}, {[] { compute(2 * rounds); }});
  EXPECT_GE(few.total().instructions, 2 * rounds);
  EXPECT_NEAR(static_cast<double>(many.total().instructions),
              2.0 * static_cast<double>(few.total().instructions), 100);
  EXPECT_LT(cycles_on(m, [] { compute(rounds); }), rounds);
}

TEST(Instructions, OfTwoThreadsOfACoreTakeLonger) {
  machine m = with_instructions(100);
  set_parameter(m, "shared_core_percent", 50);
  const auto slowest = [&m](unsigned threads) {
    return run(m, {}, bodies(threads, [] { compute(rounds); })).cycles;
  };
  const u64 alone = slowest(1);
  EXPECT_NEAR(static_cast<double>(slowest(20)), static_cast<double>(alone), 100);  // a core each
  EXPECT_NEAR(static_cast<double>(slowest(21)), 2.0 * static_cast<double>(alone), 100);
}

// The order in which threads get cores changes which core is shared, not that one is.
TEST(Instructions, OfTwoThreadsOfACoreTakeLongerInAnyOrderOfCores) {
  machine m = with_instructions(100);
  set_parameter(m, "shared_core_percent", 50);
  set_parameter(m, "threads_per_core", 2);
  for (const u64 first : {u64{0}, u64{3}, u64{8}}) {
    set_parameter(m, "cores_filled_first", first);
    const u64 alone = run(m, {}, bodies(1, [] { compute(rounds); })).cycles;
    const report r = run(m, {}, bodies(22, [] { compute(rounds); }));
    // Threads 20 and 21 come to the machine when the first two have ended.
    for (unsigned t = 0; t < 20; ++t) {
      const bool shared = t < 2;
      EXPECT_NEAR(static_cast<double>(r.threads[t].cycles),
                  static_cast<double>(shared ? 2 * alone : alone), 200)
          << t << " with " << first;
    }
  }
}

// Lines that no core has.
struct far_lines {
  struct alignas(64) line_with_link {
    line_with_link* next = nullptr;
    u64 other = 0;
  };
  static constexpr unsigned count = 8;
  std::array<line_with_link, count> lines{};
  far_lines() {
    for (unsigned i = 0; i + 1 < count; ++i) lines[i].next = &lines[i + 1];
  }
};

u64 independent_loads(const machine& m) {
  static far_lines far;
  return cycles_on(m, [] {
    for (const auto& one : far.lines)
      static_cast<void>(*const_cast<const volatile u64*>(&one.other));
  });
}
u64 dependent_loads(const machine& m) {
  static far_lines far;
  return cycles_on(m, [] {
    auto* volatile first = &far.lines[0];
    for (auto* at = first; at != nullptr;
         at = *const_cast<far_lines::line_with_link* const volatile*>(&at->next)) {
    }
  });
}

TEST(Window, IndependentLoadsOverlap) {
  const u64 one = here().dram_cycles;
  EXPECT_GE(independent_loads(with_window(0)), far_lines::count * one);
  EXPECT_LT(independent_loads(with_window(192)), 2 * one);
}

TEST(Window, ALoadWaitsForItsAddress) {
  const u64 one = here().dram_cycles;
  EXPECT_GE(dependent_loads(with_window(0)), far_lines::count * one);
  EXPECT_GE(dependent_loads(with_window(192)), (far_lines::count - 1) * one);
}

// An address that is computed from a loaded value, which is no address itself.
u64 indexed_loads(const machine& m) {
  static far_lines far;
  for (unsigned i = 0; i < far_lines::count; ++i) far.lines[i].other = i + 1;
  return cycles_on(m, [lines = far.lines.data()] {
    u64 at = 0;
    for (unsigned i = 0; i < far_lines::count; ++i)
      at = *const_cast<const volatile u64*>(&lines[at].other);
    asm volatile("" ::"r"(at));
    std::atomic_thread_fence(std::memory_order_seq_cst);  // waits for the last one too
  });
}

TEST(Window, ALoadWaitsForItsIndex) {
  const u64 one = here().dram_cycles;
  EXPECT_GE(indexed_loads(with_window(192)), (far_lines::count - 1) * one);
  EXPECT_GE(indexed_loads(with_window(10'000)), (far_lines::count - 1) * one);
}

// As in a search without branches: what has been loaded decides where the next key lies.
TEST(Window, ALoadWaitsForWhatItsAddressIsComputedFrom) {
  static far_lines far;
  const u64 cycles = cycles_on(with_window(10'000), [lines = far.lines.data()] {
    u64 at = 0;
    for (unsigned i = 0; i + 1 < far_lines::count; ++i)
      at += 1 + (*const_cast<const volatile u64*>(&lines[at].other) & 1);
    asm volatile("" ::"r"(at));
  });
  EXPECT_GE(cycles, (far_lines::count - 2) * here().dram_cycles);
}

TEST(Window, HasSoManyInstructions) {
  static far_lines far;
  const auto with_work_between = [](u64 window) {
    return cycles_on(with_window(window), [] {
      for (const auto& one : far.lines) {
        static_cast<void>(*const_cast<const volatile u64*>(&one.other));
        compute(50);
      }
    });
  };
  EXPECT_GE(with_work_between(30), (far_lines::count - 1) * here().dram_cycles);
  EXPECT_LT(with_work_between(5000), 3 * here().dram_cycles);
}

TEST(Window, HasSoManyMisses) {
  machine m = with_window(1000);
  set_parameter(m, "window_misses", 2);
  EXPECT_GE(independent_loads(m), (far_lines::count / 2 - 1) * m.dram_cycles);
}

TEST(ACommit, TakesLongerIfTheTransactionHasWritten) {
  static cell read;
  static cell written;
  const auto cost_with = [](u64 cycles) {
    machine m = here();
    set_parameter(m, "commit_writes_cycles", cycles);
    return cycles_on(m, [] {
      for (unsigned i = 0; i < 10; ++i) {
        static_cast<void>(region([] { static_cast<void>(read.value.load()); }));
        static_cast<void>(region([] { written.value = 1; }));
      }
    });
  };
  EXPECT_EQ(cost_with(50), cost_with(0) + u64{10} * 50);
}

// Sixteen lines that a transaction has written, once more after its abort.
TEST(AnAbort, LeavesTheLinesWhereTheMachineSays) {
  static std::array<cell, 16> cells;
  static u64 spent_after_an_abort;
  const auto after_it_with = [](u64 in_l2) {
    machine m = here();
    set_parameter(m, "aborted_lines_in_l2", in_l2);
    run(m, {}, {[] {
          const auto write_all = [] {
            // relaxed, without a partner: the store alone matters.
            for (cell& c : cells) c.value.store(1, std::memory_order_relaxed);
          };
          write_all();
          const u64 begin = now();
          write_all();
          const u64 warm = now() - begin;
          static_cast<void>(region([&] {
            write_all();
            htm::abort<1>();
          }));
          const u64 again = now();
          write_all();
          spent_after_an_abort = now() - again - warm;
        }});
  };
  const machine m = here();
  after_it_with(0);
  EXPECT_GE(spent_after_an_abort, cells.size() * (m.l3_cycles - m.l1_cycles) / 2);
  after_it_with(1);
  EXPECT_LE(spent_after_an_abort, cells.size() * (m.l2_cycles - m.l1_cycles));
  EXPECT_GE(spent_after_an_abort, cells.size() * (m.l2_cycles - m.l1_cycles) / 2);
}

TEST(Window, HasSoManyStores) {
  const auto stores_with = [](u64 stores) {
    static far_lines far;
    machine m = with_window(1000);
    set_parameter(m, "window_stores", stores);
    return cycles_on(m, [] {
      for (auto& one : far.lines) *const_cast<volatile u64*>(&one.other) = 1;
      std::atomic_thread_fence(std::memory_order_seq_cst);
    });
  };
  EXPECT_GE(stores_with(2), (far_lines::count / 2 - 1) * here().dram_cycles);
  EXPECT_LE(stores_with(10), 3 * here().dram_cycles);
}

TEST(Window, ALongAccessHasSoManyMissesToo) {
  static std::array<unsigned char, 16 * 1024> bytes{};
  const auto search_with = [](u64 misses) {
    machine m = with_window(192);
    set_parameter(m, "window_misses", misses);
    return cycles_on(m, [] { asm volatile("" ::"r"(std::memchr(bytes.data(), 1, bytes.size()))); });
  };
  EXPECT_GE(search_with(1), 255 * here().dram_cycles);
  EXPECT_LE(search_with(16), 40 * here().dram_cycles);
}

TEST(Window, ALockedInstructionWaitsForWhatIsOutstanding) {
  static far_lines far;
  static cell near_by;
  const u64 cycles = cycles_on(with_window(192), [] {
    for (const auto& one : far.lines) {
      static_cast<void>(*const_cast<const volatile u64*>(&one.other));
      near_by.value.fetch_add(1);
    }
  });
  EXPECT_GE(cycles, far_lines::count * here().dram_cycles);
}

TEST(Window, ACommitWaitsForWhatIsOutstanding) {
  static far_lines far;
  const machine m = with_window(192);
  const u64 cycles = cycles_on(m, [] {
    for (auto& one : far.lines) {
      static_cast<void>(region([&] { *const_cast<volatile u64*>(&one.other) = 1; }));
    }
  });
  EXPECT_GE(cycles, far_lines::count * m.dram_cycles);
}

// Instructions retire in order, four a cycle: what ran ahead of a load retires after it.
TEST(Window, WhatRanAheadOfALoadRetiresBehindIt) {
  static far_lines far;
  static cell near_by;
  const auto load_and_compute = [](unsigned rounds_behind) {
    machine m = with_window(10'000);
    set_parameter(m, "dram_cycles", 5000);  // longer than all that is computed behind it
    return cycles_on(m, [rounds_behind] {
      static_cast<void>(*const_cast<const volatile u64*>(&far.lines[0].other));
      compute(rounds_behind);
      near_by.value.fetch_add(1);
    });
  };
  const u64 nothing = load_and_compute(0);
  const u64 much = load_and_compute(1000);  // at least 2000 instructions
  EXPECT_GE(much, nothing + 2000 / 4 - 10);
  EXPECT_LE(much, nothing + 4000 / 4 + 10);
}

TEST(Window, AMispredictedBranchWaitsForTheLoads) {
  static far_lines far;
  machine m = with_window(10'000);
  const auto loads_with_branches = [&m] {
    return cycles_on(m, [] {
      for (const auto& one : far.lines) {
        static_cast<void>(*const_cast<const volatile u64*>(&one.other));
        compute(100);
      }
    });
  };
  const u64 predicted = loads_with_branches();
  set_parameter(m, "mispredicted_per_1000_branches", 100);
  EXPECT_LT(predicted, 3 * m.dram_cycles);
  EXPECT_GE(loads_with_branches(), (far_lines::count - 1) * m.dram_cycles);
}

TEST(Instructions, MispredictedBranchesCostTheirCycles) {
  machine m = with_instructions(100);
  const u64 predicted = cycles_on(m, [] { compute(rounds); });
  set_parameter(m, "mispredicted_per_1000_branches", 100);
  set_parameter(m, "misprediction_cycles", 50);
  const u64 mispredicted = cycles_on(m, [] { compute(rounds); });
  EXPECT_NEAR(static_cast<double>(mispredicted - predicted), 0.1 * 50 * rounds,
              0.2 * 50 * rounds / 5);
}

// What a thread waits for is counted where the line is, and no time twice.
TEST(Window, WaitsSumUpToNoMoreThanTheRun) {
  static std::array<cell, 32> shared;
  for (const u64 window : {u64{0}, u64{192}}) {
    const report r = run(
        with_window(window), {}, bodies(16, [] {
          for (unsigned i = 0; i < 500; ++i) {
            for (unsigned at = 0; at < shared.size(); at += 4)
              shared[(at + i) % shared.size()].value.store(i);
            static_cast<void>(region([&] {
              shared[i % shared.size()].value.store(shared[(i + 7) % shared.size()].value.load());
            }));
          }
        }));
    u64 waited = 0;
    for (const fetch_report& f : r.fetches) waited += f.cycles;
    u64 all = 0;
    for (const thread_report& t : r.threads) all += t.cycles;
    EXPECT_LE(waited, all) << window;
    EXPECT_GT(waited, 0U);
  }
}

TEST(Window, EqualRunsAreEqual) {
  static std::array<cell, 4> shared;
  const auto once = [] {
    for (cell& c : shared) c.value = 0;
    return run(with_window(192), {.seed = 3}, bodies(8, [] {
                 for (unsigned i = 0; i < 300; ++i) {
                   static_cast<void>(region([&] {
                     cell& c = shared[i % shared.size()];
                     c.value.store(c.value.load() + 1);
                   }));
                 }
               }));
  };
  const report first = once();
  const report second = once();
  EXPECT_EQ(first.cycles, second.cycles);
  EXPECT_EQ(first.total().instructions, second.total().instructions);
  EXPECT_EQ(first.total().aborted(), second.total().aborted());
}

}  // namespace
}  // namespace elidex::sim
