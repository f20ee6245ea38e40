// What the machine notes of each transaction for a timeline: who aborted it, on which line and why.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <memory>
#include <thread>

#include "elidex/htm.hpp"
#include "machine/regions.hpp"
#include "machine/simulation.hpp"

namespace elidex::sim {

namespace {

report timeline_of(const bodies& what) {
  return run(here(), {.record_events = true}, what);
}

TEST(Timeline, AConflictSaysWhoWhereAndHow) {
  static std::array<cell, 2> named;
  name_memory(&named, sizeof named, "timeline", sizeof(cell), 0);
  for (const bool write : {true, false}) {
    const report r = timeline_of({[&] {
                                    region([&] {
                                      named[1].value = 1;
                                      spend(100'000);
                                    });
                                  },
                                  [] { region([] {}); },
                                  [&] {
                                    spend(20'000);
                                    if (write) {
                                      named[1].value = 2;
                                    } else {
                                      named[1].value.load();
                                    }
                                  }});
    ASSERT_EQ(r.events.size(), 2u);
    EXPECT_EQ(r.events[0].what, event::kind::commit);
    EXPECT_EQ(r.events[0].thread, 1u);
    const event& abort = r.events[1];
    EXPECT_EQ(abort.what, event::kind::abort);
    EXPECT_EQ(abort.thread, 0u);
    EXPECT_EQ(abort.by, 2u);
    EXPECT_EQ(abort.cause.why, abort_reason::conflict);
    EXPECT_EQ(abort.cause.address, reinterpret_cast<u64>(&named[1]));
    EXPECT_TRUE(abort.fixed_address);  // of a static
    EXPECT_EQ(abort.where, "timeline");
    EXPECT_EQ(abort.line, 0u);  // of its block
    EXPECT_EQ(abort.cause.write, write);
    EXPECT_TRUE(abort.cause.same_bytes);
    EXPECT_LT(abort.end_cycles - abort.begin_cycles, 100'000u);
  }
}

TEST(Timeline, OtherBytesOfALineAreToldApart) {
  struct alignas(64) two_words {
    std::atomic<u64> first{0};
    std::atomic<u64> second{0};
  };
  static two_words both;
  const report r = timeline_of({[&] {
                                  region([&] {
                                    both.first = 1;
                                    spend(100'000);
                                  });
                                },
                                [&] {
                                  spend(20'000);
                                  both.second = 1;
                                }});
  ASSERT_EQ(r.events.size(), 1u);
  EXPECT_FALSE(r.events[0].cause.same_bytes);
  EXPECT_EQ(r.events[0].where, "other");  // nobody has named it
}

TEST(Timeline, AnAbortOfItsOwnNamesNoOther) {
  static page_of_bytes memory;
  const report r = timeline_of({[] {
    region([] { htm::abort<7>(); });
    region([] { std::this_thread::yield(); });
    unmap_pages(&memory, sizeof memory);
    region([] { *const_cast<volatile unsigned char*>(&memory.bytes[65]) = 1; });
  }});
  ASSERT_EQ(r.events.size(), 3u);
  for (const event& abort : r.events) EXPECT_EQ(abort.by, 0u);
  EXPECT_EQ(r.events[0].cause.why, abort_reason::explicit_);
  EXPECT_EQ(r.events[0].cause.code, 7u);
  EXPECT_EQ(r.events[0].cause.address, 0u);
  EXPECT_EQ(r.events[0].where, "");
  EXPECT_EQ(r.events[1].cause.why, abort_reason::system_call);
  EXPECT_EQ(r.events[2].cause.why, abort_reason::page_fault);
  EXPECT_EQ(r.events[2].cause.address, reinterpret_cast<u64>(&memory) + 65);
}

TEST(Timeline, ALineThatHasToLeaveTheCacheIsNamed) {
  static std::array<page_of_bytes, 9> memory;  // nine lines for eight ways
  name_memory(&memory, sizeof memory, "pages", sizeof(page_of_bytes), 0);
  const report r = timeline_of({[] {
    region([] {
      for (page_of_bytes& p : memory) *const_cast<volatile unsigned char*>(&p.bytes[128]) = 1;
    });
  }});
  ASSERT_EQ(r.events.size(), 1u);
  EXPECT_EQ(r.events[0].cause.why, abort_reason::write_capacity);
  EXPECT_EQ(r.events[0].where, "pages");
  EXPECT_EQ(r.events[0].line, 2u);
  EXPECT_EQ(r.events[0].cause.address, reinterpret_cast<u64>(&memory[0].bytes[128]));
}

// Memory of the system and of shared objects lies elsewhere in each run.
TEST(Timeline, SaysWhichAddressesAreTheSameInEveryRun) {
  const auto on_heap = std::make_unique<cell>();
  constexpr int access = PROT_READ | PROT_WRITE;
  void* const of_system = ::mmap(nullptr, 4096, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(of_system, MAP_FAILED);
  for (void* const place : {static_cast<void*>(on_heap.get()), of_system}) {
    auto* const word = static_cast<volatile u64*>(place);
    const report r = timeline_of({[&] {
                                    region([&] {
                                      *word = 1;
                                      spend(100'000);
                                    });
                                  },
                                  [&] {
                                    spend(20'000);
                                    *word = 2;
                                  }});
    ASSERT_EQ(r.events.size(), 1u);
    EXPECT_EQ(r.events[0].cause.address, reinterpret_cast<u64>(word));
    EXPECT_EQ(r.events[0].fixed_address, place != of_system);
  }
  ::munmap(of_system, 4096);
}

}  // namespace
}  // namespace elidex::sim
