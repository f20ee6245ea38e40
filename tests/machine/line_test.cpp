// Lines that several threads want at once: who is served when, whom a request aborts, and what is
// counted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <numeric>
#include <vector>

#include "elidex/htm.hpp"
#include "machine/regions.hpp"
#include "machine/simulation.hpp"

namespace elidex::sim {

namespace {

struct alignas(64) line_of_bytes {
  std::array<unsigned char, 64> bytes{};
  void write(std::size_t at) { *const_cast<volatile unsigned char*>(&bytes[at]) = 1; }
  unsigned char read(std::size_t at) const {
    return *const_cast<const volatile unsigned char*>(&bytes[at]);
  }
};

u64 fetching(const report& r) {
  u64 cycles = 0;
  for (const fetch_report& f : r.fetches) cycles += f.cycles;
  return cycles;
}

// Computes until the calling thread's clock is at `cycle`.
void compute_until(u64 cycle) {
  const u64 at = now();
  spend(cycle > at ? cycle - at : 0);
}

// The cycles of `what` at the calling thread's clock.
template <class Body>
u64 cycles_of(Body body) {
  const u64 from = now();
  body();
  return now() - from;
}

// Returns the cost of a write to a line that another core of the socket has changed, without
// waiters.
u64 cost_of_taking(const machine& m) {
  static cell taken;
  u64 cost = 0;
  run(m, {},
      {[&] { taken.value = 1; },
       [&] {
         spend(20'000);
         cost = cycles_of([&] { taken.value = 2; });
       }});
  return cost;
}

// Threads want one line at the same time, from `first` on, each a little later than the one before.
// Returns the order in which they got it.
std::vector<unsigned> order_of_service(const machine& m, unsigned threads, u64 seed = 1) {
  static cell wanted;
  wanted.value = 0;
  std::vector<u64> place(threads);
  bodies all(1, [] { wanted.value = 0; });  // on another core: the line is there
  for (unsigned i = 0; i < threads; ++i) {
    all.emplace_back([&place, i] {
      compute_until(20'000 + u64{10} * i);
      const u64 mine = wanted.value.fetch_add(1);
      place[i] = mine;
    });
  }
  run(m, {.seed = seed}, all);
  std::vector<unsigned> order(threads);
  for (unsigned i = 0; i < threads; ++i) order[place[i]] = i;
  return order;
}

TEST(Line, RequestsAreServedInTheOrderInWhichTheyWereIssued) {
  std::vector<unsigned> expected(15);
  std::iota(expected.begin(), expected.end(), 0u);
  EXPECT_EQ(order_of_service(here(), 15), expected);
}

TEST(Line, OtherOrdersOfServiceServeEachRequestOnceToo) {
  std::vector<unsigned> in_order(15);
  std::iota(in_order.begin(), in_order.end(), 0u);
  machine m = here();
  set_parameter(m, "line_order", machine::random_order);
  const std::vector<unsigned> at_random = order_of_service(m, 15);
  EXPECT_THAT(at_random, testing::UnorderedElementsAreArray(in_order));
  EXPECT_NE(at_random, in_order);
  EXPECT_EQ(order_of_service(m, 15), at_random);     // equal seeds, equal runs
  EXPECT_NE(order_of_service(m, 15, 2), at_random);  // other seeds, other orders

  // Threads 0 to 8 are on the first socket, with the line; 9 to 14 on the other.
  set_parameter(m, "line_order", machine::same_socket_first);
  EXPECT_EQ(order_of_service(m, 15), in_order);  // they come in that order anyway
}

TEST(Line, TheSameSocketFirstKeepsALineThere) {
  static cell wanted;
  const auto sockets_in_order = [](u64 line_order) {
    machine m = here();
    set_parameter(m, "line_order", line_order);
    set_parameter(m, "cores_filled_first", 0);  // threads 0 to 9 on one socket
    wanted.value = 0;
    std::array<bool, 19> far{};
    bodies all(1, [] { wanted.value = 0; });
    for (unsigned i = 1; i < 20; ++i) {
      all.emplace_back([&, i] {
        // Threads of both sockets in turn: 1, 10, 2, 11, ...
        compute_until(20'000 + u64{10} * (i < 10 ? 2 * i : 2 * (i - 9) + 1));
        const u64 mine = wanted.value.fetch_add(1);
        far[mine] = i >= 10;
      });
    }
    run(m, {}, all);
    unsigned changes = 0;
    for (std::size_t n = 1; n < far.size(); ++n)
      if (far[n] != far[n - 1]) ++changes;
    return changes;
  };
  EXPECT_GT(sockets_in_order(machine::first_issued), 10u);
  EXPECT_LE(sockets_in_order(machine::same_socket_first), 2u);
}

// Asks for the hot line in a region, in which it has read the flag before.
void ask_in_a_region(cell& hot, const cell& flag) {
  compute_until(19'000);
  region([&] {
    static_cast<void>(flag.value.load());
    compute_until(20'010);
    hot.value = 2;
  });
}
// Aborts that region while its request waits.
void abort_by_the_flag(cell& flag) {
  static_cast<void>(flag.value.load());
  compute_until(20'020);
  flag.value = 1;
}

TEST(Line, ARequestThatIsGivenUpDelaysNobody) {
  static cell hot;
  static cell flag;
  // Thread 2 waits for the hot line, behind thread 1, in a region that thread 3 aborts meanwhile.
  const auto last_waits = [](bool with_the_one_that_gives_up) {
    hot.value = flag.value = 0;
    u64 cost = 0;
    run_here({[] { hot.value = 0; },
              [] {
                compute_until(20'000);
                hot.value = 1;
              },
              [&] {
                if (with_the_one_that_gives_up) ask_in_a_region(hot, flag);
              },
              [] { abort_by_the_flag(flag); },
              [&] {
                compute_until(20'030);
                cost = cycles_of([] { hot.value = 3; });
              }});
    return cost;
  };
  EXPECT_EQ(last_waits(true), last_waits(false));
}

// Thread 1 has a region open on the hot line. Thread 2 waits for the line in a region that thread 3
// aborts meanwhile.
TEST(Line, ARequestThatOutlivesItsTransactionTakesTheLine) {
  static cell hot;
  static cell flag;
  const auto holder_commits = [](u64 outlive) {
    machine m = here();
    set_parameter(m, "requests_outlive_aborts", outlive);
    hot.value = flag.value = 0;
    bool committed = false;
    const report r = run(m, {.record_events = true},
                         {[] { hot.value = 0; },
                          [&] {
                            compute_until(20'000);
                            committed = region([] {
                                          hot.value = 1;
                                          spend(5'000);
                                        }).started();
                          },
                          [] { ask_in_a_region(hot, flag); }, [] { abort_by_the_flag(flag); }});
    EXPECT_EQ(r.stuck, "");
    EXPECT_EQ(r.total().aborts[static_cast<std::size_t>(abort_reason::conflict)], 1 + outlive);
    EXPECT_EQ(hot.value, committed ? 1U : 0U);
    for (const event& e : r.events) {
      if (e.what != event::kind::abort || e.thread != 1) continue;
      EXPECT_EQ(e.by, 2);
    }
    return committed;
  };
  EXPECT_TRUE(holder_commits(0));
  EXPECT_FALSE(holder_commits(1));
}

// Threads 1 to 8 write one line in regions, again until one commits. With abandoned requests all
// regions end, and each core has one request for the line at a time.
TEST(Line, AbandonedRequestsLoseNothing) {
  static cell hot;
  machine m = here();
  set_parameter(m, "requests_outlive_aborts", 1);
  set_parameter(m, "jitter_cycles", 5);
  for (const u64 window : {u64{0}, u64{192}}) {
    set_parameter(m, "window_instructions", window);
    for (u64 seed = 1; seed <= 10; ++seed) {
      hot.value = 0;
      const report r = run(m, {.seed = seed, .cycles_max = 100'000'000}, bodies(8, [] {
                             for (unsigned i = 0; i < 50; ++i) {
                               while (!region([] { hot.value = hot.value + 1; }).started()) {
                               }
                             }
                           }));
      ASSERT_EQ(r.stuck, "");
      EXPECT_EQ(hot.value, 8U * 50U);
      EXPECT_GT(r.total().aborted(), 0U);
      u64 fetching = 0;
      for (const fetch_report& f : r.fetches) fetching += f.cycles;
      EXPECT_LE(fetching, r.total().cycles);
    }
  }
}

TEST(Line, AHolderIsAbortedAfterTheLineHasArrived) {
  const machine m = here();
  const u64 taking = cost_of_taking(m);
  static cell hot;
  hot.value = 0;
  std::vector<event> events;
  const report r = run(m, {.record_events = true},
                       {[] { hot.value = 0; },
                        [] {
                          compute_until(20'000);
                          region([] {
                            hot.value = 1;
                            spend(100'000);
                          });
                        },
                        [] {
                          compute_until(20'100);
                          hot.value = 2;
                        }});
  const auto abort = std::find_if(r.events.begin(), r.events.end(),
                                  [](const event& e) { return e.what == event::kind::abort; });
  ASSERT_NE(abort, r.events.end());
  EXPECT_GE(abort->end_cycles, 20'000 + m.begin_cycles + taking);
  EXPECT_LE(abort->end_cycles, 20'000 + m.begin_cycles + taking + 2 * m.line_busy_cycles);
}

TEST(Line, ARegionThatCommitsBeforeTheLineMovesOnIsNotAborted) {
  static cell hot;
  hot.value = 0;
  bool committed = false;
  run_here({[] { hot.value = 0; },
            [&] {
              compute_until(20'000);
              committed = region([] { hot.value = 1; }).started();
            },
            [] {
              compute_until(20'050);
              hot.value = 2;
            }});
  EXPECT_TRUE(committed);
}

TEST(Line, ASharedCopyIsReadWithoutAWait) {
  static cell read_by_all;
  u64 slowest = 0;
  bodies all;
  for (unsigned i = 0; i < 8; ++i) {
    all.emplace_back([&, i] {
      static_cast<void>(read_by_all.value.load());
      compute_until(20'000 + i);
      slowest = std::max(slowest, cycles_of([] { static_cast<void>(read_by_all.value.load()); }));
    });
  }
  run_here(all);
  EXPECT_LE(slowest, 20u);
}

TEST(Line, AnAccessToTwoHotLinesEnds) {
  struct alignas(128) two_lines {
    std::array<unsigned char, 128> bytes{};
  };
  static two_lines both;
  const report r = run_here(bodies(16, [] {
    for (int i = 0; i < 50; ++i) {
      std::array<unsigned char, 16> copy{};
      std::memcpy(&both.bytes[56], copy.data(), copy.size());
      both.bytes[static_cast<std::size_t>(i % 2) * 64] = 1;
    }
  }));
  EXPECT_EQ(r.stuck, "");
}

// A wait ends where the access to the awaited line begins. What the access to another line costs is
// not a part of it.
TEST(Line, AWaitIsNotCountedTogetherWithAnotherLine) {
  constexpr unsigned threads = 8;
  static cell hot;
  static std::array<std::array<page_of_bytes, 16>, threads> cold;
  bodies all;
  for (unsigned t = 0; t < threads; ++t) {
    all.emplace_back([t] {
      for (const page_of_bytes& page : cold[t]) {
        for (std::size_t at = 0; at < page.bytes.size(); at += 64)
          std::memcpy(static_cast<void*>(&hot), &page.bytes[at], 8);
      }
    });
  }
  const report r = run_here(all);
  EXPECT_LE(fetching(r), r.total().cycles);
}

TEST(Line, AMoveWithinALineWaitsOnce) {
  static line_of_bytes hot;
  const auto cost_of_second = [](bool moves) {
    u64 cost = 0;
    bodies all(1, [] { hot.write(0); });
    for (unsigned i = 1; i < 8; ++i) {
      all.emplace_back([&cost, i, moves] {
        compute_until(20'000 + u64{10} * i);
        const u64 cycles = cycles_of([&] {
          if (i == 2 && moves) {
            std::memmove(&hot.bytes[0], &hot.bytes[32], 16);
          } else {
            hot.write(0);
          }
        });
        if (i == 2) cost = cycles;
      });
    }
    run_here(all);
    return cost;
  };
  EXPECT_LE(cost_of_second(true), cost_of_second(false) + 300);  // 983 over 225 if it queues twice
}

TEST(Line, AnInterruptOfAWaiterDelaysNobody) {
  static cell hot;
  const auto cost_of_last = [](u64 seed, bool another_waits, bool in_region) {
    machine m = here();
    set_parameter(m, "timer_period_cycles", 10'000);
    set_parameter(m, "timer_cycles", 2'000);
    u64 cost = 0;
    run(m, {.seed = seed},
        {[] { hot.value = 0; },
         [] {
           compute_until(60'000);
           hot.value = 1;
         },
         [=] {
           if (!another_waits) return;
           compute_until(60'010);
           if (in_region) {
             region([] { hot.value = 2; });
           } else {
             hot.value = 2;
           }
         },
         [&] {
           compute_until(60'060);
           cost = cycles_of([] { hot.value = 3; });
         }});
    return cost;
  };
  for (const bool in_region : {false, true}) {
    for (u64 seed = 1; seed <= 200; ++seed) {
      EXPECT_LE(cost_of_last(seed, true, in_region), cost_of_last(seed, false, in_region) + 1'500)
          << seed;
    }
  }
}

TEST(Line, MayLieInAPageThatIsExemptedMeanwhile) {
  static page_of_bytes page;
  bodies all(1, [] { *const_cast<volatile unsigned char*>(&page.bytes[0]) = 1; });
  for (unsigned i = 1; i < 6; ++i) {
    all.emplace_back([i] {
      compute_until(20'000 + u64{10} * i);
      *const_cast<volatile unsigned char*>(&page.bytes[0]) = 1;
    });
  }
  all.emplace_back([] {
    compute_until(20'200);
    exempt_pages(&page, sizeof page);
  });
  EXPECT_EQ(run_here(all).stuck, "");
}

TEST(Line, TheSameSocketFirstStarvesNobody) {
  static cell hot;
  constexpr u64 done = u64{1} << 63;
  hot.value = 0;
  machine m = here();
  set_parameter(m, "line_order", machine::same_socket_first);
  set_parameter(m, "cores_filled_first", 0);
  bodies all(10, [] {
    while ((hot.value.fetch_add(1) & done) == 0) {
    }
  });
  all.emplace_back([] {  // on the other socket
    compute_until(20'000);
    hot.value |= done;
  });
  EXPECT_EQ(run(m, {.cycles_max = 20'000'000}, all).stuck, "");
}

// Threads 0 and 4 share a core, and with it the line.
TEST(Line, TheOtherThreadOfTheCoreWaitsForTheArrivalToo) {
  static cell hot;
  const machine m = here("haswell-i7-4770");
  bool committed = false;
  run(m, {},
      {[&] {
         compute_until(20'000);
         committed = region([] { hot.value = 1; }).started();
       },
       [] { hot.value = 0; }, [] {}, [] {},
       [] {
         compute_until(20'035);
         hot.value = 2;
       }});
  EXPECT_TRUE(committed);
}

TEST(Line, TheOtherThreadOfTheCoreIsNoOtherCore) {
  static cell hot;
  name_memory(&hot, sizeof hot, "hot", 1, 0);
  const report r = run(here("haswell-i7-4770"), {},
                       {[] {
                          compute_until(20'000);
                          region([] {
                            hot.value = 1;
                            spend(100'000);
                          });
                        },
                        [] {}, [] {}, [] {},
                        [] {
                          compute_until(60'000);
                          hot.value = 2;
                        }});
  for (const fetch_report& f : r.fetches) {
    if (f.where == "hot") {
      EXPECT_EQ(f.met_others, 0u);
    }
  }
}

// Two threads take a line from each other in turn. Returns what each taking and the hit behind it
// cost.
std::vector<u64> costs_of_taking(const machine& m, u64 seed) {
  static cell taken;
  std::vector<u64> costs(400);
  const auto take_again_and_again = [&costs](u64 first) {
    for (u64 i = first; i < costs.size() / 2; i += 2) {
      compute_until(20'000 + 2'000 * i);
      costs[2 * i] = cycles_of([] { taken.value = 1; });
      costs[2 * i + 1] = cycles_of([] { taken.value = 2; });
    }
  };
  run(m, {.seed = seed}, {[&] { take_again_and_again(0); }, [&] { take_again_and_again(1); }});
  return costs;
}

TEST(Jitter, ChangesWhatLeavesTheCoreByAFewCyclesAndHitsNotAtAll) {
  machine m = here();
  const std::vector<u64> exact = costs_of_taking(m, 1);
  set_parameter(m, "jitter_cycles", 5);
  const std::vector<u64> shaken = costs_of_taking(m, 1);
  EXPECT_EQ(costs_of_taking(m, 1), shaken);  // equal seeds, equal runs
  EXPECT_NE(costs_of_taking(m, 2), shaken);
  ASSERT_EQ(shaken.size(), exact.size());
  std::array<int, 11> found{};
  for (std::size_t i = 4; i < exact.size(); ++i) {  // the first ones come from memory
    const int change = static_cast<int>(shaken[i]) - static_cast<int>(exact[i]);
    if (i % 2 == 1) {
      EXPECT_EQ(change, 0) << "a hit";
    } else {
      ASSERT_TRUE(change >= -5 && change <= 5) << change;
      ++found[static_cast<std::size_t>(change + 5)];
    }
  }
  // Some 18 of each of the eleven values.
  for (const int times : found) EXPECT_TRUE(times > 4 && times < 45) << times;
}

// Two threads write the same line in a region that then computes for so long. Returns whether both
// get through before one has been aborted 200 times.
bool both_commit(const machine& m, u64 computing) {
  static cell wanted;
  bool done = true;
  const auto write = [&] {
    compute_until(20'000);
    for (int tries = 0; tries < 200; ++tries) {
      if (region([&] {
            wanted.value = 1;
            spend(computing);
          }).started())
        return;
    }
    done = false;
  };
  run(m, {}, {write, write});
  return done;
}

// Without jitter two threads abort each other for ever as soon as a region takes longer than the
// other thread needs to come back. With jitter, threads that are only just too slow get through.
TEST(Jitter, EndsAnAbortInStepThatWouldNeverEnd) {
  machine m = here();
  u64 computing = 0;
  while (computing < 2'000 && both_commit(m, computing)) ++computing;
  ASSERT_LT(computing, 2'000u) << "no region is long enough";
  ASSERT_GT(computing, 10u);
  EXPECT_FALSE(both_commit(m, computing + 1));
  set_parameter(m, "jitter_cycles", 5);
  EXPECT_TRUE(both_commit(m, computing));
  EXPECT_TRUE(both_commit(m, computing + 1));
}

// Three threads increment one counter. While one has the line, the next one's request waits for it,
// so the line leaves before the commit each time. With jitter it stays for a random time.
TEST(Jitter, ThreeThreadsDoNotAbortEachOtherForEver) {
  constexpr u64 too_many = 5'000;
  const auto attempts_of = [](u64 jitter) {
    machine m = read_machine(ELIDEX_TEST_MACHINES "/haswell-i5-4670t.machine");
    set_parameter(m, "jitter_cycles", jitter);
    set_parameter(m, "commit_exposed_cycles", 31);
    static cell counter;
    u64 most = 0;
    const auto increment = [&] {
      for (int i = 0; i < 200; ++i) {
        u64 attempts = 1;
        while (!region([] { counter.value = counter.value + 1; }).started()) {
          if (++attempts == too_many) break;
        }
        most = std::max(most, attempts);
        spend(150);
      }
    };
    run(m, {}, {increment, increment, increment});
    return most;
  };
  EXPECT_EQ(attempts_of(0), too_many) << "they are never in step";
  EXPECT_LT(attempts_of(7), too_many / 10);
}

// Of what a writing commit costs, others can abort only the first part.
TEST(Jitter, SomeOfACommitCannotBeAborted) {
  const auto cycles_and_aborts = [](u64 exposed) {
    machine m = here();
    set_parameter(m, "commit_writes_cycles", 1'000);
    set_parameter(m, "commit_exposed_cycles", exposed);
    static line_of_bytes line;
    u64 took = 0;
    const report r = run(m, {},
                         {[&] {
                            line.write(0);
                            const u64 begin = now();
                            region([] { line.write(0); });
                            took = now() - begin;
                          },
                          [] {
                            spend(1'000);
                            line.write(1);
                          }});
    return std::pair(took, r.total().aborted());
  };
  EXPECT_EQ(cycles_and_aborts(1'000).second, 1U);
  EXPECT_EQ(cycles_and_aborts(0).second, 0U);
  EXPECT_GE(cycles_and_aborts(0).first, 1'000U);
}

// Threads make random accesses that wait for lines, inside and outside of regions, on several
// machines. No thread gets stuck, equal runs are equal, and fetches take no longer than the threads
// have run.
TEST(Line, RandomAccessesEndAndRepeat) {
  static std::array<line_of_bytes, 6> lines;
  const auto act = [](u64 random) {
    const auto pick = [&](unsigned shift) { return (random >> shift) % lines.size(); };
    unsigned char* const somewhere = &lines[0].bytes[(random >> 33) % 300];
    const unsigned char* const elsewhere = &lines[0].bytes[(random >> 40) % 300];
    switch ((random >> 57) % 6) {
      case 0:
        region([&] { std::memmove(somewhere, elsewhere, 70); });
        break;
      case 1:
        std::memmove(somewhere, elsewhere, 70);
        break;
      case 2:
        lines[pick(33)].write(0);
        break;
      case 3:
        static_cast<void>(lines[pick(33)].read(0));
        spend((random >> 20) % 200);
        break;
      default:
        region([&] {
          static_cast<void>(lines[pick(33)].read(1));
          static_cast<void>(lines[pick(40)].read(2));
          lines[pick(47)].write(3);
        });
    }
  };
  const auto check = [&](machine m, u64 quantum) {
    set_parameter(m, "timer_period_cycles", 20'000);
    set_parameter(m, "stray_interrupt_period_cycles", 20'000);
    bodies all;
    for (unsigned t = 0; t < m.hardware_threads(); ++t) {
      all.emplace_back([&act, t] {
        u64 random = t * 7'919;
        for (int i = 0; i < 60; ++i) {
          if (i == 20) start_counting();
          random = random * 6'364'136'223'846'793'005u + 1'442'695'040'888'963'407u;
          act(random);
        }
      });
    }
    const run_options options{.quantum_cycles = quantum, .cycles_max = 1'000'000'000};
    const report once = run(m, options, all);
    const report again = run(m, options, all);
    EXPECT_EQ(once.stuck, "");
    EXPECT_EQ(once.cycles, again.cycles);
    EXPECT_EQ(once.total().aborted(), again.total().aborted());
    EXPECT_LE(fetching(once), once.total().cycles) << m.name << ' ' << m.line_order;
  };
  for (const char* const which : {"haswell-ep-2x10", "icelake-sp-2x32", "haswell-i7-4770"}) {
    for (u64 line_order = 0; line_order < 3; ++line_order) {
      for (const u64 quantum : {u64{0}, u64{3'000}}) {
        machine simple = here(which);
        set_parameter(simple, "line_order", line_order);
        check(simple, quantum);
        // As shipped: a request outlives its transaction, and accesses overlap.
        machine shipped = read_machine(std::string(ELIDEX_TEST_MACHINES "/") + which + ".machine");
        set_parameter(shipped, "line_order", line_order);
        check(shipped, quantum);
      }
    }
  }
}

}  // namespace
}  // namespace elidex::sim
