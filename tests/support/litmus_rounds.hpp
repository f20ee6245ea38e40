#pragma once
// Rounds of two tiny programs that run at the same time on two cores, so close together that what
// is in one core's store buffer is missed by the other.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "elidex/internal/sync/backoff.hpp"
#include "support/two_cores.hpp"

namespace elidex::testing {

using namespace internal;

// The compiler's builtins instead of std::atomic, because that one ignores the order it is given
// (and takes the strongest) where nothing is inlined; then a debug build would hide what these
// tests look for.
class unordered_variable {
 public:
  // relaxed, without a partner: what is under test must order these.
  int read() const { return __atomic_load_n(&value_, __ATOMIC_RELAXED); }
  void write(int value) { __atomic_store_n(&value_, value, __ATOMIC_RELAXED); }

 private:
  alignas(128) int value_ = 0;
};

// Lets the threads meet at ever other places: they begin a round a little apart, and between the
// steps of their programs they hurry on, or wait about as long as a round takes, or hand their core
// to the other one. Before a round it also stores to memory that is not in the near caches: stores
// leave a core in order, so those of the round wait behind them in the store buffer, and what a
// missing barrier does shows more often.
class dawdler {
 public:
  explicit dawdler(unsigned seed) : random_(seed), far_memory_(far_lines * words_per_line) {}

  void before_round() {
    mode_ = pick(4);
    step_pauses_ = pick(32);
    std::array<std::size_t, 4> far_words;
    for (std::size_t& word : far_words) word = pick(far_lines) * words_per_line;
    // Finer steps than a pause has: it takes some forty cycles, longer than the moment that
    // matters.
    for (std::size_t left = pick(1024); left > 0; --left) asm volatile("");
    for (const std::size_t word : far_words) ++far_memory_[word];
  }
  void between_steps() const {
    if (mode_ == 1) std::this_thread::yield();
    if (mode_ < 2) return;
    for (std::size_t left = step_pauses_; left > 0; --left) cpu_pause();
  }

 private:
  static constexpr std::size_t words_per_line = 16;
  // 4 MiB: more than an L2 holds
  static constexpr std::size_t far_lines = std::size_t{4 << 20} / 64;

  // The low bits of this generator are its worst.
  std::size_t pick(std::size_t below) { return random_() / 8 % below; }

  std::minstd_rand random_;
  std::vector<std::uint32_t> far_memory_;
  std::size_t mode_ = 0;  // of this round
  std::size_t step_pauses_ = 0;
};

// Both threads wait here for each other.
class meeting_point {
 public:
  void meet(unsigned number) {
    ++arrived_;
    for (unsigned looks = 0; arrived_.load() < 2 * number; ++looks) {
      if (looks < short_looks) {
        cpu_pause();
      } else {
        std::this_thread::yield();
      }
    }
  }

 private:
  // Not a backoff: its long pauses would let one thread leave microseconds after the other. Some
  // microseconds' worth, in case the other thread waits for this core.
  static constexpr unsigned short_looks = 500;

  alignas(128) std::atomic<unsigned> arrived_{0};
};

// Rounds from 1 on. In each, thread 0 and thread 1 call prepare(thread, round) at any time, then,
// together, act(thread, round, dawdler), and then thread 0 judge(round), whose true asks for
// another round. While it judges, thread 1 may prepare the next one.
template <class Prepare, class Act, class Judge>
void run_litmus(Prepare prepare, Act act, Judge judge) {
  meeting_point start;
  meeting_point finish;
  std::atomic<bool> stop{false};
  const std::array<std::size_t, 2> cores = two_cores();
  const auto play = [&](int thread) {
    stay_on(cores[static_cast<std::size_t>(thread)]);
    dawdler dawdle(static_cast<unsigned>(thread) + 1);
    for (unsigned round = 1;; ++round) {
      prepare(thread, round);
      start.meet(round);
      if (stop.load()) return;
      dawdle.before_round();
      act(thread, round, dawdle);
      finish.meet(round);
      if (thread == 0 && !judge(round)) stop.store(true);
    }
  };
  std::thread right(play, 1);
  std::thread left(play, 0);
  left.join();
  right.join();
}

}  // namespace elidex::testing
