// The simulated machine: what its transactions, caches and threads do. The program under test is
// this file itself, compiled for the machine.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <exception>
#include <filesystem>
#include <mutex>
#include <numeric>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "elidex/elided.hpp"
#include "elidex/htm.hpp"
#include "elidex/internal/sync/spin_locks.hpp"
#include "machine/memory.hpp"
#include "machine/regions.hpp"
#include "machine/simulation.hpp"

namespace elidex::sim {

using namespace internal;

namespace {

TEST(Region, AnAbortBringsMemoryStackAndRegistersBack) {
  cell shared;
  int seen_twice = 0;
  run_here({[&] {
    volatile int on_stack = 1;
    int in_register = 5;
    const htm::status entry = htm::begin();
    ++seen_twice;
    if (entry.started()) {
      shared.value = 7;
      on_stack = 2;
      in_register = 6;
      htm::abort<42>();
    }
    EXPECT_EQ(entry.code(), 42);
    EXPECT_TRUE(entry.is_explicit());
    EXPECT_EQ(shared.value, 0u);
    EXPECT_EQ(on_stack, 1);
    EXPECT_EQ(in_register, 5);
  }});
  EXPECT_EQ(seen_twice, 1);  // the first time was rolled back
}

TEST(Region, WhatIsCommittedStays) {
  cell shared;
  const report r = run_here({[&] { EXPECT_TRUE(region([&] { shared.value = 7; }).started()); }});
  EXPECT_EQ(shared.value, 7u);
  EXPECT_EQ(r.total().committed, 1u);
  EXPECT_EQ(r.total().committed_lines, 1u);
}

TEST(Region, NestsToSevenLevels) {
  run_here({[&] {
    const auto nested = [](int levels) {
      const htm::status entry = htm::begin();
      if (entry.started()) {
        for (int i = 1; i < levels; ++i) static_cast<void>(htm::begin());
        for (int i = 0; i < levels; ++i) htm::commit();
      }
      return entry;
    };
    EXPECT_TRUE(nested(7).started());
    const htm::status eighth = nested(8);
    EXPECT_FALSE(eighth.started());
    EXPECT_TRUE(eighth.is_nested());
  }});
}

TEST(Region, WritesBeyondTheFirstLevelCacheAbort) {
  static std::array<page_of_bytes, 16> memory;
  run_here({[&] {
    const auto write_lines = [](std::size_t lines, std::size_t apart) {
      const auto all = [=] {
        for (std::size_t i = 0; i < lines; ++i) {
          *const_cast<volatile unsigned char*>(&memory[0].bytes[0] + i * apart) = 1;
        }
      };
      all();
      return region(all);
    };
    EXPECT_TRUE(write_lines(400, 64).started());
    EXPECT_TRUE(write_lines(600, 64).is_capacity());
    EXPECT_TRUE(write_lines(8, 4096).started());
    const htm::status ninth = write_lines(9, 4096);  // nine lines for eight ways
    EXPECT_TRUE(ninth.is_capacity());
    EXPECT_FALSE(ninth.may_retry());
  }});
}

TEST(Region, ReadsMayExceedTheFirstLevelCache) {
  static std::array<page_of_bytes, 30> memory;
  run_here({[&] {
    u64 sum = 0;
    const htm::status entry = region([&] {
      for (const page_of_bytes& p : memory) {
        for (std::size_t i = 0; i < p.bytes.size(); i += 64)
          sum += *const_cast<const volatile unsigned char*>(&p.bytes[i]);
      }
    });
    EXPECT_TRUE(entry.started());
  }});
}

TEST(Region, APageFaultOrASystemCallAbortsWithoutAReason) {
  static page_of_bytes fresh;
  run_here({[&] {
    unmap_pages(&fresh, sizeof fresh);
    volatile unsigned char& byte = fresh.bytes[100];
    EXPECT_EQ(region([&] { byte = 1; }).word, 0u);
    EXPECT_EQ(region([&] { byte = 1; }).word, 0u);  // the abort has not mapped it
    byte = 2;
    EXPECT_TRUE(region([&] { byte = 1; }).started());
    EXPECT_EQ(region([] { std::this_thread::yield(); }).word, 0u);
  }});
}

TEST(Region, AnInterruptAborts) {
  machine m = here();
  set_parameter(m, "timer_period_cycles", 10'000);
  run(m, {}, {[] { EXPECT_EQ(region([] { spend(20'000); }).word, 0u); }});
}

TEST(Region, AllocationsAreUndoneAndFreesAreLate) {
  run_here({[] {
    int* const before = new int(1);
    delete new int(2);  // so that the free list has one
    int* made = nullptr;
    const htm::status entry = htm::begin();
    if (entry.started()) {
      made = new int(3);
      delete before;
      htm::abort<1>();
    }
    EXPECT_EQ(*before, 1);
    int* const again = new int(4);  // the block that the region had
    EXPECT_NE(again, before);
    delete again;
    delete before;
    static_cast<void>(made);
  }});
}

TEST(Region, AnExceptionThatIsThrownAwayLeavesNoTrace) {
  run_here({[] {
    const htm::status entry = htm::begin();
    if (entry.started()) {
      try {
        throw std::runtime_error("inside");
      } catch (const std::runtime_error&) {
        htm::abort<9>();
      }
    }
    EXPECT_EQ(std::uncaught_exceptions(), 0);
    EXPECT_EQ(std::current_exception(), nullptr);
    EXPECT_THROW(throw std::logic_error("outside"), std::logic_error);
  }});
}

TEST(Region, AStaticIsInitialisedForGood) {
  static const auto made = [] { return std::make_unique<int>(42); };
  run_here({[] {
    const auto value = []() -> int {
      static const std::unique_ptr<int> once = made();
      return *once;
    };
    int seen = 0;
    // the machine lets nobody begin that in a region
    EXPECT_FALSE(region([&] { seen = value(); }).started());
    EXPECT_EQ(value(), 42);
    EXPECT_TRUE(region([&] { seen = value(); }).started());
  }});
}

TEST(Region, AMutexIsUndoneWhole) {
  std::recursive_mutex mutex;
  const report r = run_here({[&] {
    mutex.lock();
    EXPECT_TRUE(region([&] {
                  mutex.unlock();
                  htm::abort<3>();
                }).is_explicit());
    mutex.lock();  // it is still this thread's
    mutex.unlock();
    mutex.unlock();
  }});
  EXPECT_EQ(r.stuck, "");
}

TEST(Region, EndsWithItsThread) {
  cell shared;
  const report r = run_here({[&] {
    if (htm::begin().started()) shared.value = 7;
  }});
  EXPECT_EQ(shared.value, 0u);
  EXPECT_EQ(r.total().aborted(), 1u);
}

// --- conflicts ---

// One thread holds a region open, the other touches what the region has.
template <class Inside, class Outside>
htm::status meet(Inside inside, Outside outside) {
  htm::status entry;
  cell at_work;
  run_here({[&] {
              entry = region([&] {
                inside();
                spend(100'000);
              });
            },
            [&] {
              spend(20'000);
              outside();
            }});
  return entry;
}

TEST(Conflict, APlainWriteEndsARegionThatHasReadTheLine) {
  cell shared;
  const htm::status entry = meet([&] { shared.value.load(); }, [&] { shared.value = 1; });
  EXPECT_EQ(entry.word, htm::status::conflict_bit | htm::status::retry_bit);
}

TEST(Conflict, APlainReadSeesNothingUncommitted) {
  cell shared;
  u64 seen = 99;
  const htm::status entry = meet([&] { shared.value = 1; }, [&] { seen = shared.value; });
  EXPECT_TRUE(entry.is_conflict());
  EXPECT_EQ(seen, 0u);
  EXPECT_EQ(shared.value, 0u);
}

TEST(Conflict, ReadersDoNotDisturbEachOther) {
  cell shared;
  EXPECT_TRUE(meet([&] { shared.value.load(); }, [&] { shared.value.load(); }).started());
}

TEST(Conflict, StringFunctionsAreSeen) {
  std::array<page_of_bytes, 2> both;
  const auto copy = [&] { std::memcpy(&both[0], &both[1], 1'000); };
  volatile unsigned char& far = both[0].bytes[900];
  EXPECT_TRUE(meet(copy, [&] { far = 1; }).is_conflict());
  unsigned char seen = 0;
  EXPECT_TRUE(meet([&] { seen = far; }, copy).is_conflict());
  static_cast<void>(seen);
}

// The compiler announces the write of a copy before the read, and makes both behind: other threads
// run in between.
TEST(Conflict, ACopyOfAStructureIsSeenWhenItIsMade) {
  struct wide {
    u64 a = 0, b = 0;
  };
  struct alignas(64) place {
    wide w;
  };
  place from, to;
  from.w = {1, 1};
  u64 torn = 0;
  run_here({[&] {
              for (int i = 0; i < 300; ++i) {
                u64 first = 0;
                u64 second = 0;
                if (region([&] {
                      first = *const_cast<volatile u64*>(&to.w.a);
                      spend(30);
                      second = *const_cast<volatile u64*>(&to.w.a);
                    }).started() &&
                    first != second) {
                  ++torn;
                }
              }
            },
            [&] {
              for (u64 i = 0; i < 300; ++i) {
                *const_cast<volatile u64*>(&from.w.a) = i;
                to.w = from.w;
                spend(i % 40);
              }
            }});
  EXPECT_EQ(torn, 0u);
}

// A region writes beside what the owner of a stack has there.
TEST(Conflict, AStackIsUndoneByTheByte) {
  run_here({[] {
    struct alignas(64) two_words {
      volatile u64 first = 0;
      volatile u64 second = 0;
    } mine;
    std::jthread other([&] {
      if (!htm::begin().started()) return;
      mine.first = 7;
      spend(100'000);
      htm::commit();
    });
    spend(50'000);
    mine.second = 5;  // throws the region out
    other.join();
    EXPECT_EQ(mine.first, 0u);
    EXPECT_EQ(mine.second, 5u);
  }});
}

TEST(Conflict, ReadsThatLeaveTheCacheAgainCountOnce) {
  static std::array<page_of_bytes, 9> memory;
  machine m = here();
  set_parameter(m, "read_table_sets", 1);
  set_parameter(m, "read_table_ways", 9);
  run(m, {}, {[] {
        EXPECT_TRUE(region([] {
                      for (int pass = 0; pass < 20; ++pass) {
                        for (const page_of_bytes& p : memory) {
                          static_cast<void>(
                              std::atomic_ref(const_cast<unsigned char&>(p.bytes[0])).load());
                        }
                      }
                    }).started());
      }});
}

TEST(Conflict, IsNamedByPlaceAndKind) {
  static std::array<cell, 2> named;
  name_memory(&named, sizeof named, "block", sizeof(cell), 4);
  const report r = run_here({[&] {
                               region([&] {
                                 named[1].value.load();
                                 spend(100'000);
                               });
                             },
                             [&] {
                               spend(20'000);
                               named[1].value = 3;
                             }});
  ASSERT_EQ(r.conflicts.size(), 1u);
  EXPECT_EQ(r.conflicts[0].where, "block head");
  EXPECT_EQ(r.conflicts[0].true_sharing, 1u);
}

// A search of a name passes ranges that lie in the range it looks for, and stops before all others.
TEST(Conflict, IsNamedByTheInnermostRange) {
  static std::array<cell, 8> named;
  name_memory(&named[5], sizeof(cell), "later", 1, 0);
  name_memory(&named[1], sizeof(cell), "inner", 1, 0);
  name_memory(&named[2], 2 * sizeof(cell), "deeper", 1, 0);
  name_memory(&named[2], sizeof(cell), "deepest", 1, 0);
  name_memory(&named[0], 7 * sizeof(cell), "outer", 1, 0);
  const std::vector<std::string> names{"outer", "inner", "deepest", "deeper",  //
                                       "outer", "later", "outer",   "other"};
  for (std::size_t i = 0; i < named.size(); ++i) {
    const report r = run_here({[&] {
                                 region([&] {
                                   named[i].value.load();
                                   spend(100'000);
                                 });
                               },
                               [&] {
                                 spend(20'000);
                                 named[i].value = 3;
                               }});
    ASSERT_EQ(r.conflicts.size(), 1u);
    EXPECT_EQ(r.conflicts[0].where, names[i]) << i;
  }
}

TEST(Fetch, IsNamedByPlaceAndLine) {
  struct alignas(64) line_of_bytes {
    std::atomic<std::uint32_t> value{0};
  };
  static std::array<line_of_bytes, 3> fetched_from;
  name_memory(&fetched_from, sizeof fetched_from, "lines", 1, 0);
  const report r = run_here({[&] { fetched_from[2].value = 1; },
                             [&] {
                               spend(20'000);
                               fetched_from[2].value = 2;
                             }});
  const auto found = std::find_if(r.fetches.begin(), r.fetches.end(),
                                  [](const fetch_report& f) { return f.where == "lines"; });
  ASSERT_NE(found, r.fetches.end());
  EXPECT_EQ(found->line, 2u);
  EXPECT_EQ(found->accesses, 2u);
  EXPECT_EQ(found->met_others, 1u);  // the second writer takes the line from the first
  EXPECT_GT(found->cycles, 0u);
}

// An abort ends the access that its victim waits for. What is left of the access takes no time.
TEST(Fetch, AccessesTakeNoLongerThanTheThreadsHaveRun) {
  cell shared;
  const report r = run_here(bodies(16, [&] {
    for (int i = 0; i < 100; ++i) region([&] { shared.value = shared.value + 1; });
  }));
  u64 fetching = 0;
  for (const fetch_report& f : r.fetches) fetching += f.cycles;
  EXPECT_GT(r.total().aborted(), 100u);  // or this test shows nothing
  EXPECT_LE(fetching, r.total().cycles);
}

// --- lines that several threads want ---

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

// What a write to a line costs that another core of the socket has changed, with nobody waiting.
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
                if (!with_the_one_that_gives_up) return;
                compute_until(19'000);
                region([] {
                  static_cast<void>(flag.value.load());
                  compute_until(20'010);
                  hot.value = 2;
                });
              },
              [] {
                static_cast<void>(flag.value.load());
                compute_until(20'020);
                flag.value = 1;
              },
              [&] {
                compute_until(20'030);
                cost = cycles_of([] { hot.value = 3; });
              }});
    return cost;
  };
  EXPECT_EQ(last_waits(true), last_waits(false));
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

// --- HLE ---

TEST(Elision, TheThreadSeesItsLockOthersDoNot) {
  alignas(64) std::atomic<std::uint32_t> word{0};
  cell data;
  alignas(64) std::uint32_t seen_inside = 9;
  alignas(64) std::uint32_t seen_outside = 9;
  const report r = run_here({[&] {
                               EXPECT_EQ(htm::hle_exchange_acquire(word, 1), 0u);
                               seen_inside = word.load();
                               data.value = 1;
                               spend(50'000);
                               htm::hle_store_release(word, 0);
                             },
                             [&] {
                               spend(10'000);
                               seen_outside = word.load();
                             }});
  EXPECT_EQ(seen_inside, 1u);
  EXPECT_EQ(seen_outside, 0u);
  EXPECT_EQ(r.total().committed, 1u);
}

TEST(Elision, AConflictTakesTheLockForReal) {
  alignas(64) std::atomic<std::uint32_t> word{0};
  cell data;
  alignas(64) std::uint32_t seen_outside = 9;
  const report r = run_here({[&] {
                               EXPECT_EQ(htm::hle_exchange_acquire(word, 1), 0u);
                               data.value = data.value + 1;
                               spend(50'000);
                               htm::hle_store_release(word, 0);
                             },
                             [&] {
                               spend(10'000);
                               data.value.load();
                               spend(5'000);
                               seen_outside = word.load();
                             }});
  EXPECT_EQ(seen_outside, 1u);
  EXPECT_EQ(word, 0u);
  EXPECT_EQ(data.value, 1u);
  EXPECT_EQ(r.total().aborted(), 1u);
}

TEST(Elision, NothingElseMayChangeTheWord) {
  alignas(64) std::atomic<std::uint32_t> word{0};
  run_here({[&] {
    EXPECT_EQ(htm::hle_exchange_acquire(word, 1), 0u);
    std::uint32_t expected = 1;
    // the region ends, and the lock is taken for real
    EXPECT_TRUE(word.compare_exchange_strong(expected, 1));
    htm::hle_store_release(word, 0);
  }});
  EXPECT_EQ(word, 0u);
}

// --- threads, locks, time ---

TEST(Threads, MutexesExclude) {
  std::mutex mutex;
  std::shared_mutex shared;
  volatile u64 counter = 0;
  volatile u64 other = 0;
  run_here(bodies(8, [&] {
    for (int i = 0; i < 200; ++i) {
      {
        const std::lock_guard guard(mutex);
        counter = counter + 1;
      }
      {
        const std::unique_lock guard(shared);
        other = other + 1;
      }
      const std::shared_lock reader(shared);
    }
  }));
  EXPECT_EQ(counter, 1'600u);
  EXPECT_EQ(other, 1'600u);
}

TEST(Threads, StartJoinWaitAndMeet) {
  run_here({[] {
    std::mutex mutex;
    std::condition_variable changed;
    bool ready = false;
    int woken = 0;
    std::barrier all(4);
    std::atomic<int> flag{0};
    {
      std::vector<std::jthread> threads;
      for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
          all.arrive_and_wait();
          flag.wait(0);
          std::unique_lock lock(mutex);
          changed.wait(lock, [&] { return ready; });
          ++woken;
        });
      }
      flag = 1;
      flag.notify_all();
      const std::lock_guard guard(mutex);
      ready = true;
      changed.notify_all();
    }
    EXPECT_EQ(woken, 4);
    std::unique_lock lock(mutex);
    EXPECT_FALSE(changed.wait_for(lock, std::chrono::milliseconds(1), [] { return false; }));
  }});
}

thread_local int own = 5;
TEST(Threads, HaveTheirOwnVariablesAndExceptions) {
  run_here(bodies(4, [] {
    EXPECT_EQ(own, 5);
    for (int i = 0; i < 50; ++i) {
      try {
        ++own;
        std::this_thread::yield();
        throw own;
      } catch (const int thrown) {
        EXPECT_EQ(thrown, 6 + i);
      }
    }
  }));
}

TEST(Threads, TimedWaitsEndInTimeBesideThreadsThatNeverBlock) {
  run_here({[] {
              std::mutex mutex;
              std::condition_variable changed;
              std::unique_lock lock(mutex);
              const auto begin = std::chrono::steady_clock::now();
              EXPECT_EQ(changed.wait_for(lock, std::chrono::microseconds(100)),
                        std::cv_status::timeout);
              EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::microseconds(110));
            },
            [] {
              for (int i = 0; i < 10'000; ++i) spend(100);
            }});
}

TEST(Threads, CallOnceAndThreadLocalDestructors) {
  static int destroyed = 0;
  struct counted {
    int n = 0;
    ~counted() { ++destroyed; }
  };
  run_here({[] {
    std::once_flag once;
    int calls = 0;
    {
      std::vector<std::jthread> threads;
      for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&] {
          static thread_local counted mine;
          ++mine.n;
          std::call_once(once, [&] { ++calls; });
        });
      }
    }
    EXPECT_EQ(calls, 1);
    EXPECT_EQ(destroyed, 4);
  }});
}

// At addresses that are the same in every run: what the program throws, and what a body has
// captured.
TEST(Threads, WhatTheyThrowAndCaptureLiesInTheProgramsMemory) {
  const auto in_program = [](const void* at) {
    return reinterpret_cast<u64>(at) - arena_begin < arena_bytes;
  };
  const void* thrown = nullptr;
  const void* captured = nullptr;
  std::exception_ptr kept;
  const std::array<u64, 8> many{};  // too many to lie in the function object itself
  run_here({[&, many] {
    captured = &many;
    try {
      throw std::runtime_error("a text that is too long for a short string");
    } catch (const std::exception& error) {
      thrown = &error;
      kept = std::current_exception();
    }
  }});
  EXPECT_TRUE(in_program(captured));
  EXPECT_TRUE(in_program(thrown));
  try {
    std::rethrow_exception(kept);
  } catch (const std::exception& error) {
    EXPECT_EQ(&error, thrown);
    EXPECT_STREQ(error.what(), "a text that is too long for a short string");
  }
}

TEST(Threads, AnExceptionOfABodyComesOutOfRun) {
  EXPECT_THROW(run_here({[] { throw std::runtime_error("from inside"); }}), std::runtime_error);
}

TEST(Threads, ClocksAndSleepsAreSimulated) {
  const report r = run_here({[] {
    const auto begin = std::chrono::steady_clock::now();
    std::this_thread::sleep_for(std::chrono::seconds(100));
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(100));
  }});
  EXPECT_GE(r.cycles, 230'000'000'000u);
}

TEST(Threads, ADeadlockStopsAndNamesTheLocks) {
  static std::array<std::mutex, 2> both;  // stays locked
  const auto take = [](int first) {
    return [first] {
      both[static_cast<std::size_t>(first)].lock();
      spend(10'000);
      both[static_cast<std::size_t>(1 - first)].lock();
    };
  };
  const report r = run_here({take(0), take(1)});
  EXPECT_THAT(r.stuck, ::testing::HasSubstr("thread 0"));
  EXPECT_THAT(r.stuck, ::testing::HasSubstr("thread 1"));
  EXPECT_THAT(r.stuck, ::testing::HasSubstr("waits for mutex"));
  EXPECT_THAT(r.stuck, ::testing::HasSubstr("holds"));
}

TEST(Threads, ALivelockStops) {
  static std::atomic<bool> never{false};
  const report r = run(here(), {.cycles_max = 1'000'000}, bodies(2, [] {
                         while (!never) {
                         }
                       }));
  EXPECT_THAT(r.stuck, ::testing::HasSubstr("no end after 1000000 cycles"));
}

TEST(Threads, TooManyAreRefused) {
  machine m = here();
  EXPECT_THROW(run(m, {}, bodies(m.hardware_threads() + 1, [] {})), std::invalid_argument);
}

}  // namespace
}  // namespace elidex::sim
