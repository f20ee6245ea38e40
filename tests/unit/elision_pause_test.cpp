#include "elidex/internal/sync/elision_pause.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <thread>

namespace elidex {

using namespace internal;

namespace {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

constexpr htm::status conflict{htm::status::conflict_bit};
constexpr htm::status capacity{htm::status::capacity_bit};

void give_up(elision_pause& pause, htm::status why,
             std::uint32_t times = elision_pause::gave_up_window) {
  for (std::uint32_t i = 0; i < times; ++i) pause.gave_up(why);
}

// Asks as often as a lock that is used all the time.
steady_clock::duration time_until_off(elision_pause& pause) {
  const auto began = steady_clock::now();
  while (pause.is_on()) {
  }
  return steady_clock::now() - began;
}

// A window that takes a millisecond.
void failing_window(elision_pause& pause, htm::status why) {
  give_up(pause, why, elision_pause::gave_up_window - 1);
  std::this_thread::sleep_for(1ms);
  give_up(pause, why, 1);
}

TEST(ElisionPause, BeginsAfterAWindowWithoutCommits) {
  elision_pause pause;
  give_up(pause, capacity, elision_pause::gave_up_window - 1);
  EXPECT_FALSE(pause.is_on());
  give_up(pause, capacity, 1);
  EXPECT_TRUE(pause.is_on());
}

TEST(ElisionPause, LastsAMultipleOfTheWindowAndEnds) {
  elision_pause pause;
  failing_window(pause, conflict);
  EXPECT_GE(time_until_off(pause), 1ms * (elision_pause::windows_per_pause - 1));
  EXPECT_FALSE(pause.is_on());
}

TEST(ElisionPause, DoublesForCausesThatComeAgain) {
  elision_pause pause;
  failing_window(pause, capacity);
  time_until_off(pause);
  failing_window(pause, capacity);
  EXPECT_GE(time_until_off(pause), 2ms * (elision_pause::windows_per_pause - 1));
}

TEST(ElisionPause, DoesNotDoubleForConflictsNorAfterAWindowThatCommits) {
  const auto commit_a_window = [](elision_pause& pause) {
    give_up(pause, capacity, 1);
    for (int i = 0; i < 400; ++i) pause.committed();
    give_up(pause, capacity, elision_pause::gave_up_window - 1);
  };
  for (const bool by_conflicts : {true, false}) {
    elision_pause pause;
    // So many doublings would make a pause of a millisecond's window last 0.8 s.
    for (std::uint32_t i = 0; i < elision_pause::doublings_max; ++i) {
      give_up(pause, by_conflicts ? conflict : capacity);
      time_until_off(pause);
      if (!by_conflicts) commit_a_window(pause);
    }
    failing_window(pause, capacity);
    EXPECT_LT(time_until_off(pause), 400ms) << by_conflicts;
  }
}

TEST(ElisionPause, CommitsKeepElisionOn) {
  elision_pause pause;
  for (int window = 0; window < 20; ++window) {
    give_up(pause, capacity, 1);
    for (int i = 0; i < 400; ++i) pause.committed();
    give_up(pause, capacity, elision_pause::gave_up_window - 1);
    ASSERT_FALSE(pause.is_on()) << "window " << window;
  }
}

// Paper 001 still gains where three of four take the lock.
TEST(ElisionPause, AQuarterOfCommitsIsMostlyEnoughAndOneInAHundredIsNot) {
  constexpr int windows = 200;
  const auto pauses = [](std::uint32_t give_ups_per_commit) {
    int paused = 0;
    std::thread([&] {  // a thread of its own draws the same each time
      elision_pause pause;
      std::uint32_t since_commit = 0;
      for (int window = 0; window < windows; ++window) {
        for (std::uint32_t i = 0; i < elision_pause::gave_up_window; ++i) {
          give_up(pause, capacity, 1);
          if (++since_commit % give_ups_per_commit == 0) pause.committed();
        }
        if (pause.is_on()) ++paused;
        pause.forget();
      }
    })
        .join();
    return paused;
  };
  EXPECT_LE(pauses(3), windows / 40);
  EXPECT_GE(pauses(99), windows / 2);
}

TEST(ElisionPause, CommitsBeforeAWindowDoNotCount) {
  elision_pause pause;
  for (int i = 0; i < 4000; ++i) pause.committed();
  give_up(pause, capacity);
  EXPECT_TRUE(pause.is_on());
}

// A thread looks at the clock now and then: not always for the same one of the locks that it uses
// in turn.
TEST(ElisionPause, ThoseOfLocksThatAreUsedInTurnEndEachInTime) {
  for (const int first : {0, 1}) {
    std::thread([&] {
      elision_pause a_long_one, a_short_one;
      give_up(a_long_one, conflict, elision_pause::gave_up_window - 1);
      std::this_thread::sleep_for(20ms);
      give_up(a_long_one, conflict, 1);
      give_up(a_short_one, conflict);
      bool long_one_is_on = first == 0 || a_long_one.is_on();
      while (a_short_one.is_on()) long_one_is_on = a_long_one.is_on();
      EXPECT_TRUE(long_one_is_on) << "the short one ended with the long one";
    }).join();
  }
}

TEST(ElisionPause, ALockFindsItsRecordByItsAddress) {
  const std::uint64_t locks[2][8] = {};
  EXPECT_EQ(&elision_pause_of(&locks[0]), &elision_pause_of(&locks[0]));
  EXPECT_NE(&elision_pause_of(&locks[0]), &elision_pause_of(&locks[1]))
      << "neighbours should not share";
}

}  // namespace
}  // namespace elidex
