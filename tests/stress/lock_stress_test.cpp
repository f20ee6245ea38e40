// Mutual exclusion of every lock, with more threads than cores, for a fraction of a second each.
// The protected data is plain memory, so that ThreadSanitizer also proves that unlock happens
// before the next lock.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "elidex/elided.hpp"
#include "elidex/htm.hpp"
#include "elidex/internal/sync/spin_locks.hpp"
#include "elidex/mutex.hpp"
#include "elidex/shared_mutex.hpp"
#include "papers/karnagel/hle_lock.hpp"
#include "papers/karnagel/posix_mutex.hpp"

namespace elidex {

using namespace papers;

namespace {

using namespace std::chrono_literals;

constexpr auto stress_time = 120ms;

unsigned thread_count() {
  return std::max(8u, 2 * std::thread::hardware_concurrency());
}

// What the threads fight for. The real one is plain; the canary's is atomic, since its races are on
// purpose.
struct plain_cell {
  std::uint64_t value = 0;
  std::uint64_t get() const { return value; }
  void set(std::uint64_t next) { value = next; }
};
struct racing_cell {
  std::atomic<std::uint64_t> value{0};
  std::uint64_t get() const { return value.load(); }
  void set(std::uint64_t next) { value.store(next); }
};

struct fight_result {
  std::uint64_t sections = 0;  // as the threads counted them
  std::uint64_t counted = 0;   // as the protected data says
  std::uint64_t torn = 0;      // how often the two halves of the data disagreed
  std::uint64_t fewest = 0;    // sections of the thread that got the fewest

  bool violated() const { return counted != sections || torn != 0; }
};

// Threads enter sections through lock(), try_lock() and, where the lock has it, run(), and
// increment two cells that must agree whenever a section begins.
template <class Cell, class Lock>
fight_result fight(Lock& lock, std::chrono::milliseconds time) {
  std::array<Cell, 2> cells;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> torn{0};
  std::vector<std::uint64_t> sections(thread_count(), 0);
  std::vector<std::thread> threads;
  threads.reserve(thread_count());
  for (unsigned t = 0; t < thread_count(); ++t) {
    threads.emplace_back([&, t] {
      std::minstd_rand random(t + 1);
      std::uint64_t own = 0;
      const auto body = [&](bool dawdle) {
        const std::uint64_t before = cells[0].get();
        if (cells[1].get() != before) ++torn;
        cells[0].set(before + 1);
        // The holder loses its core while it holds the lock: the case in which spinning collapses.
        if (dawdle) std::this_thread::yield();
        cells[1].set(before + 1);
      };
      while (!stop.load()) {
        const auto choice = random() % 64;
        const bool dawdle = choice == 0;
        if (choice % 4 == 1) {
          if (!lock.try_lock()) continue;
          body(dawdle);
          lock.unlock();
        } else {
          if constexpr (requires { lock.run([] {}); }) {
            lock.run([&] { body(dawdle); });
          } else {
            const std::lock_guard guard(lock);
            body(dawdle);
          }
        }
        ++own;
      }
      sections[t] = own;
    });
  }
  std::this_thread::sleep_for(time);
  stop.store(true);
  for (std::thread& thread : threads) thread.join();

  fight_result result;
  result.counted = cells[0].get();
  result.torn = torn.load() + (cells[0].get() != cells[1].get() ? 1 : 0);
  result.fewest = *std::min_element(sections.begin(), sections.end());
  for (const std::uint64_t own : sections) result.sections += own;
  return result;
}

// A machine whose regions really take turns, and fail at random for every cause there is: with it
// the whole of elided runs in many threads, on any hardware. A region holds `turn`, and so does
// whoever holds the lock.
class turn_taking_htm {
 public:
  static bool enabled() noexcept { return true; }
  static bool test() noexcept { return depth_ > 0; }
  static htm::status begin() {
    if (depth_ > 0) {
      ++depth_;
      return {htm::status::started_word};
    }
    static constexpr std::array<htm::status, 6> aborts{
        htm::status{},
        htm::status{htm::status::conflict_bit},
        htm::status{htm::status::capacity_bit},
        htm::status{htm::status::debug_bit},
        htm::status::of_abort(7),
        htm::status::of_abort(htm::code_lock_busy),
    };
    const auto choice = random_() % 16;
    if (choice < aborts.size()) return aborts[choice];
    turn.lock();
    depth_ = 1;
    return {htm::status::started_word};
  }
  static void commit() {
    if (--depth_ == 0) turn.unlock();
  }
  template <std::uint8_t Code>
  static htm::status abort() {
    if (depth_ > 0) turn.unlock();
    depth_ = 0;
    return htm::status::of_abort(Code);
  }

  inline static std::mutex turn;

 private:
  inline static thread_local int depth_ = 0;
  inline static thread_local std::minstd_rand random_{
      static_cast<unsigned>(std::hash<std::thread::id>{}(std::this_thread::get_id()))};
};

class turn_taking_lock {
 public:
  void lock() {
    turn_taking_htm::turn.lock();
    held_.store(true);
  }
  bool try_lock() {
    if (!turn_taking_htm::turn.try_lock()) return false;
    held_.store(true);
    return true;
  }
  void unlock() {
    held_.store(false);
    turn_taking_htm::turn.unlock();
  }
  bool is_locked() const { return held_.load(); }

 private:
  std::atomic<bool> held_{false};
};

template <class Policy>
using turn_taking = elided<turn_taking_lock, Policy, turn_taking_htm>;

template <class Lock>
class LockStress : public testing::Test {};

using all_locks =
    testing::Types<tas_lock, ttas_lock, posix_mutex, basic_posix_mutex<held_flag>, hle_lock,
                   elided<ttas_lock>, elided<tas_lock, no_retry>, elided<ttas_lock, dbx_budgets>,
                   elided<posix_mutex>, turn_taking<no_retry>, turn_taking<retry_budgets>,
                   turn_taking<default_retry>, mutex, recursive_mutex, shared_mutex>;
TYPED_TEST_SUITE(LockStress, all_locks);

TYPED_TEST(LockStress, SectionsExcludeEachOther) {
  TypeParam lock;
  const fight_result result = fight<plain_cell>(lock, stress_time);
  EXPECT_EQ(result.counted, result.sections);
  EXPECT_EQ(result.torn, 0u);
  this->RecordProperty("sections", std::to_string(result.sections));
  this->RecordProperty("fewest_of_a_thread", std::to_string(result.fewest));
  if constexpr (requires { lock.stats(); }) {
    EXPECT_EQ(lock.stats().acquisitions(), result.sections);
  }
}

// Bounds so short that elision goes off and on all the time.
TEST(LockStress, AdaptationKeepsSectionsExclusiveAndCountsRight) {
  turn_taking<adaptive<no_retry>> lock(
      {{}, {.window_fallbacks = 2, .fallback_pct_max = 10, .off_acquisitions = 20}});
  const fight_result result = fight<plain_cell>(lock, stress_time);
  EXPECT_FALSE(result.violated());
  const lock_counts counts = lock.stats();
  EXPECT_EQ(counts.acquisitions(), result.sections);
  EXPECT_GT(counts.off_periods, 0u);
  EXPECT_GT(counts.commits, 0u);
  EXPECT_GT(counts.fallbacks, counts.off_periods * 20 / 2);
}

// A lock with the classic mistake: it looks and then takes, and another thread may do so in
// between.
class look_then_take_lock {
 public:
  void lock() {
    while (!try_lock()) std::this_thread::yield();
  }
  bool try_lock() {
    if (held_.load()) return false;
    thread_local std::minstd_rand random;
    if (random() / 8 % 16 == 0) std::this_thread::yield();
    held_.store(true);
    return true;
  }
  void unlock() { held_.store(false); }

 private:
  std::atomic<bool> held_{false};
};

TEST(LockStressCanary, TheSameFightFindsABrokenLock) {
  const auto give_up = std::chrono::steady_clock::now() + 20s;
  bool found = false;
  while (!found && std::chrono::steady_clock::now() < give_up) {
    look_then_take_lock lock;
    found = fight<racing_cell>(lock, 50ms).violated();
  }
  EXPECT_TRUE(found) << "a harness that misses this proves nothing";
}

}  // namespace
}  // namespace elidex
