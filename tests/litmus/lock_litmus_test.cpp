// Outcomes that must not appear when two threads talk through a lock. The memory they touch is
// atomic and relaxed, so that only the lock orders it; two threads run a tiny program each, again
// and again, and the outcome of every round is judged. What a lock must forbid is what atomic
// sections in some order cannot give.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <random>
#include <thread>

#include "elidex/elided.hpp"
#include "elidex/internal/sync/backoff.hpp"
#include "elidex/internal/sync/spin_locks.hpp"
#include "elidex/mutex.hpp"
#include "elidex/shared_mutex.hpp"
#include "papers/karnagel/hle_lock.hpp"
#include "papers/karnagel/posix_mutex.hpp"
#include "support/litmus_rounds.hpp"
#include "support/two_cores.hpp"

namespace elidex {

using namespace internal;
using namespace papers;

namespace {

using namespace std::chrono_literals;
using testing::dawdler;
using testing::run_litmus;
using testing::two_cores;
using testing::unordered_variable;

struct world {
  unordered_variable x;
  unordered_variable y;
};

struct outcome {
  int left = 0;   // what the left program returned
  int right = 0;  // what the right one returned
  int x = 0;      // the variables afterwards
  int y = 0;
};

// Each thread writes its own variable and reads the other's: one must see the other's write.
struct store_buffering {
  template <class Lock>
  static int left(Lock& lock, world& memory, const dawdler&) {
    const std::lock_guard guard(lock);
    memory.x.write(1);
    return memory.y.read();
  }
  template <class Lock>
  static int right(Lock& lock, world& memory, const dawdler&) {
    const std::lock_guard guard(lock);
    memory.y.write(1);
    return memory.x.read();
  }
  static bool forbidden(const outcome& seen) { return seen.left == 0 && seen.right == 0; }
};

// Data written before the section that raises the flag is there after the section that saw the
// flag.
struct message_passing {
  template <class Lock>
  static int left(Lock& lock, world& memory, const dawdler& dawdle) {
    memory.x.write(1);
    dawdle.between_steps();
    const std::lock_guard guard(lock);
    memory.y.write(1);
    return 0;
  }
  template <class Lock>
  static int right(Lock& lock, world& memory, const dawdler& dawdle) {
    int flag = 0;
    {
      const std::lock_guard guard(lock);
      flag = memory.y.read();
    }
    dawdle.between_steps();
    return flag == 1 && memory.x.read() == 0 ? 1 : 0;
  }
  static bool forbidden(const outcome& seen) { return seen.right == 1; }
};

// Each thread reads one variable and then writes the other: at most one can have seen the other's
// write.
struct load_buffering {
  template <class Lock>
  static int left(Lock& lock, world& memory, const dawdler& dawdle) {
    const std::lock_guard guard(lock);
    const int seen = memory.x.read();
    dawdle.between_steps();
    memory.y.write(1);
    return seen;
  }
  template <class Lock>
  static int right(Lock& lock, world& memory, const dawdler& dawdle) {
    const std::lock_guard guard(lock);
    const int seen = memory.y.read();
    dawdle.between_steps();
    memory.x.write(1);
    return seen;
  }
  static bool forbidden(const outcome& seen) { return seen.left == 1 && seen.right == 1; }
};

// Both increment: none may be lost.
struct lost_update {
  template <class Lock>
  static int left(Lock& lock, world& memory, const dawdler& dawdle) {
    const std::lock_guard guard(lock);
    const int before = memory.x.read();
    dawdle.between_steps();
    memory.x.write(before + 1);
    return 0;
  }
  template <class Lock>
  static int right(Lock& lock, world& memory, const dawdler& dawdle) {
    return left(lock, memory, dawdle);
  }
  static bool forbidden(const outcome& seen) { return seen.x != 2; }
};

// One writes a pair, the other reads it: never half of it.
struct torn_pair {
  template <class Lock>
  static int left(Lock& lock, world& memory, const dawdler& dawdle) {
    const std::lock_guard guard(lock);
    memory.x.write(1);
    dawdle.between_steps();
    memory.y.write(1);
    return 0;
  }
  template <class Lock>
  static int right(Lock& lock, world& memory, const dawdler& dawdle) {
    const std::lock_guard guard(lock);
    const int x = memory.x.read();
    dawdle.between_steps();
    return x == memory.y.read() ? 0 : 1;
  }
  static bool forbidden(const outcome& seen) { return seen.right == 1; }
};

// Both write both variables, in opposite order: the pair that stays is one thread's.
struct two_writes_each {
  template <class Lock>
  static int left(Lock& lock, world& memory, const dawdler& dawdle) {
    const std::lock_guard guard(lock);
    memory.x.write(1);
    dawdle.between_steps();
    memory.y.write(1);
    return 0;
  }
  template <class Lock>
  static int right(Lock& lock, world& memory, const dawdler& dawdle) {
    const std::lock_guard guard(lock);
    memory.y.write(2);
    dawdle.between_steps();
    memory.x.write(2);
    return 0;
  }
  static bool forbidden(const outcome& seen) { return seen.x != seen.y; }
};

enum class until { time_is_up, forbidden_outcome };

// Runs rounds of `Shape` through one lock; returns how many had a forbidden outcome.
//
// Before a round each thread clears the variable that the other one will write first, so that this
// write misses the cache and stays in the store buffer for long: that makes outcomes of weak memory
// likely. Worlds take turns, so that one is cleared while the other is judged.
template <class Shape, class Lock>
unsigned forbidden_outcomes(until end, std::chrono::milliseconds time_max) {
  Lock lock;
  std::array<world, 2> worlds;
  outcome seen;
  unsigned found = 0;
  const auto deadline = std::chrono::steady_clock::now() + time_max;
  run_litmus(
      [&](int thread, unsigned round) {
        world& memory = worlds[round % 2];
        (thread == 0 ? memory.y : memory.x).write(0);
      },
      [&](int thread, unsigned round, const dawdler& dawdle) {
        world& memory = worlds[round % 2];
        if (thread == 0) {
          seen.left = Shape::left(lock, memory, dawdle);
        } else {
          seen.right = Shape::right(lock, memory, dawdle);
        }
      },
      [&](unsigned round) {
        seen.x = worlds[round % 2].x.read();
        seen.y = worlds[round % 2].y.read();
        if (Shape::forbidden(seen)) ++found;
        const bool enough = end == until::forbidden_outcome && found > 0;
        return !enough && std::chrono::steady_clock::now() < deadline;
      });
  return found;
}

template <class Lock>
class LockLitmus : public ::testing::Test {
 protected:
  template <class Shape>
  static unsigned forbidden() {
    return forbidden_outcomes<Shape, Lock>(until::time_is_up, 40ms);
  }
};

using all_locks =
    ::testing::Types<tas_lock, ttas_lock, posix_mutex, basic_posix_mutex<held_flag>, hle_lock,
                     elided<ttas_lock>, elided<tas_lock, no_retry>, elided<ttas_lock, dbx_budgets>,
                     elided<posix_mutex>, elided<basic_posix_mutex<held_flag>, retry_budgets>,
                     mutex, recursive_mutex, shared_mutex>;
TYPED_TEST_SUITE(LockLitmus, all_locks);

TYPED_TEST(LockLitmus, StoreBuffering) {
  EXPECT_EQ(this->template forbidden<store_buffering>(), 0u);
}
TYPED_TEST(LockLitmus, MessagePassing) {
  EXPECT_EQ(this->template forbidden<message_passing>(), 0u);
}
TYPED_TEST(LockLitmus, LoadBuffering) {
  EXPECT_EQ(this->template forbidden<load_buffering>(), 0u);
}
TYPED_TEST(LockLitmus, LostUpdate) {
  EXPECT_EQ(this->template forbidden<lost_update>(), 0u);
}
TYPED_TEST(LockLitmus, TornPair) {
  EXPECT_EQ(this->template forbidden<torn_pair>(), 0u);
}
TYPED_TEST(LockLitmus, TwoWritesEach) {
  EXPECT_EQ(this->template forbidden<two_writes_each>(), 0u);
}

// --- canaries: the harness must find what broken locks let through

// Excludes nobody.
struct open_door {
  void lock() {}
  void unlock() {}
};

// Looks and then takes, with a gap between.
class look_then_take_lock {
 public:
  void lock() {
    backoff wait;
    while (held_.load()) wait.once();
    thread_local std::minstd_rand random;
    if (random() / 8 % 8 == 0) std::this_thread::yield();
    held_.store(true);
  }
  void unlock() { held_.store(false); }

 private:
  std::atomic<bool> held_{false};
};

template <class Shape, class Lock>
bool is_found() {
  return forbidden_outcomes<Shape, Lock>(until::forbidden_outcome, 20s) > 0;
}

TEST(LockLitmusCanary, AnOpenDoorTearsPairs) {
  EXPECT_TRUE((is_found<torn_pair, open_door>()));
}
TEST(LockLitmusCanary, AnOpenDoorLosesUpdates) {
  EXPECT_TRUE((is_found<lost_update, open_door>()));
}
TEST(LockLitmusCanary, AnOpenDoorMixesWrites) {
  EXPECT_TRUE((is_found<two_writes_each, open_door>()));
}
TEST(LockLitmusCanary, LookThenTakeLosesUpdates) {
  EXPECT_TRUE((is_found<lost_update, look_then_take_lock>()));
}
TEST(LockLitmusCanary, LookThenTakeTearsPairs) {
  EXPECT_TRUE((is_found<torn_pair, look_then_take_lock>()));
}

// No interleaving gives this one, only a real store buffer.
TEST(LockLitmusCanary, AnOpenDoorShowsTheStoreBuffer) {
  const std::array<std::size_t, 2> cores = two_cores();
  if (cores[0] == cores[1]) GTEST_SKIP() << "one core has one store buffer";
  EXPECT_TRUE((is_found<store_buffering, open_door>()));
}

}  // namespace
}  // namespace elidex
