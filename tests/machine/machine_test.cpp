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
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <type_traits>
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

// The compiler calls the machine neither where a call returns a structure, nor where it clears one.
struct word_pair {
  u64 a, b;
  friend bool operator==(const word_pair&, const word_pair&) = default;
};
struct number_pair {
  double a, b;
  friend bool operator==(const number_pair&, const number_pair&) = default;
};
struct word_and_byte {
  u64 a;
  unsigned char b;
  friend bool operator==(const word_and_byte&, const word_and_byte&) = default;
};
struct many_words {
  std::array<u64, 12> words;
  friend bool operator==(const many_words&, const many_words&) = default;
};
template <class Structure>
[[gnu::noinline]] Structure some(u64 n) {
  asm volatile("" : "+r"(n));
  if constexpr (std::is_same_v<Structure, many_words>) {
    return {{n, n + 1, 3, 4, n}};
  } else if constexpr (std::is_same_v<Structure, number_pair>) {
    return {static_cast<double>(n), 7};
  } else {
    return {n, 5};
  }
}
template <class Structure>
[[gnu::noinline]] void put(Structure& to, u64 n) {
  to = some<Structure>(n);
}
template <class Structure>
[[gnu::noinline]] void put_new(Structure* to, u64 n) {
  new (to) Structure(some<Structure>(n));
}
template <class Structure>
[[gnu::noinline]] void clear(Structure& of) {
  __builtin_memset(&of, 0, sizeof of);
}

template <class Structure>
void abort_undoes() {
  alignas(64) static Structure shared;
  const auto before = some<Structure>(1);
  shared = before;
  run_here({[&] {
    for (void (*const change)(Structure&) :
         {+[](Structure& s) { put(s, 7); }, +[](Structure& s) { put_new(&s, 7); },
          +[](Structure& s) { clear(s); }}) {
      const htm::status entry = region([&] {
        change(shared);
        htm::abort<1>();
      });
      EXPECT_EQ(entry.code(), 1);
      EXPECT_TRUE(shared == before);
      EXPECT_TRUE(region([&] { change(shared); }).started());
      EXPECT_FALSE(shared == before);
      shared = before;
    }
  }});
}

TEST(Region, AnAbortUndoesStructuresThatCallsReturn) {
  abort_undoes<word_pair>();
  abort_undoes<number_pair>();
  abort_undoes<word_and_byte>();
  abort_undoes<many_words>();
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
  const transaction_counts& elided = r.total().elided;
  EXPECT_EQ(elided.begun, 1u);
  EXPECT_EQ(elided.committed, 0u);
  EXPECT_EQ(elided.aborts[static_cast<std::size_t>(abort_reason::conflict)], 1u);
}

TEST(Elision, RegionsAreCountedApart) {
  alignas(64) std::atomic<std::uint32_t> word{0};
  const report r = run_here({[&] {
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(htm::hle_exchange_acquire(word, 1), 0u);
      htm::hle_store_release(word, 0);
    }
    if (htm::begin().started()) htm::commit();
  }});
  EXPECT_EQ(r.total().committed, 4u);
  EXPECT_EQ(r.total().elided.begun, 3u);
  EXPECT_EQ(r.total().elided.committed, 3u);
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
  EXPECT_THROW(run(m, {}, bodies(threads_max + 1, [] {})), std::invalid_argument);
  EXPECT_THROW(run(m, {.cpus = static_cast<unsigned>(m.hardware_threads()) + 1}, {[] {}}),
               std::invalid_argument);
}

}  // namespace
}  // namespace elidex::sim
