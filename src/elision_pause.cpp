#include "elidex/internal/sync/elision_pause.hpp"

#include <algorithm>
#include <bit>
#include <chrono>

namespace elidex::internal {
namespace {

constexpr std::size_t records = 1024;  // chosen: far more than a program has hot locks

constinit std::array<elision_pause, records> table{};

// Never 0, which means "no pause".
std::uint64_t now_ns() noexcept {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return static_cast<std::uint64_t>(
             std::chrono::duration_cast<std::chrono::nanoseconds>(since).count()) |
         1;
}

bool comes_again(htm::abort_cause cause) noexcept {
  return cause == htm::abort_cause::capacity || cause == htm::abort_cause::interrupt ||
         cause == htm::abort_cause::other;
}

// Of one thread. Neither must be exact.
thread_local constinit std::uint32_t looks_left = 0;
thread_local constinit std::uint32_t random_state = 0x9e3779b9;

// Chooses one event in so many, at random. A fixed count would always choose the same lock of a
// thread that uses several in turn.
std::uint32_t draw() noexcept {
  random_state ^= random_state << 13;
  random_state ^= random_state >> 17;
  random_state ^= random_state << 5;
  return random_state;
}

}  // namespace

elision_pause& elision_pause_of(const void* lock) noexcept {
  // Fibonacci hashing: the upper bits of the product depend on all bits of the address.
  const std::uint64_t mixed = reinterpret_cast<std::uintptr_t>(lock) * 0x9e3779b97f4a7c15;
  return table[mixed >> (64 - std::bit_width(records - 1))];
}

void elision_pause::forget() noexcept {
  until_ns_.store(0);
  gave_up_.store(0);
  doublings_.store(0);
  commits_.store(0);
}

void forget_elision_pauses() noexcept {
  for (elision_pause& pause : table) pause.forget();
}

bool elision_pause::this_commit_is_sampled() noexcept {
  return draw() % commits_per_sample == 0;
}

bool elision_pause::is_over(std::uint64_t until) noexcept {
  if (looks_left > 0) {
    --looks_left;
    return false;
  }
  looks_left = acquisitions_per_look / 2 + draw() % acquisitions_per_look;
  if (now_ns() < until) return false;
  // relaxed, without a partner, here and below: see the header's invariants. The second
  // thread changes nothing.
  until_ns_.compare_exchange_strong(until, 0, std::memory_order_relaxed);
  return true;
}

void elision_pause::gave_up(htm::status last) noexcept {
  const std::uint32_t count = gave_up_.fetch_add(1, std::memory_order_relaxed) + 1;  // no partner
  if (count == 1) {
    window_began_ns_.store(now_ns(), std::memory_order_relaxed);  // no partner
    commits_.store(0, std::memory_order_relaxed);                 // no partner
  }
  if (count != gave_up_window) return;
  const std::uint64_t commits = commits_.load(std::memory_order_relaxed);  // no partner
  if (100 * std::uint64_t{count} > gave_up_pct_max * (count + commits)) {
    begin(last, now_ns());
  } else {
    doublings_.store(0, std::memory_order_relaxed);  // no partner
  }
  gave_up_.store(0, std::memory_order_relaxed);  // no partner
}

void elision_pause::begin(htm::status last, std::uint64_t now) noexcept {
  const std::uint64_t began = window_began_ns_.load(std::memory_order_relaxed);  // no partner
  const std::uint64_t window_ns = std::clamp<std::uint64_t>(now - began, 1, pause_ns_max);
  std::uint32_t doublings = 0;
  if (comes_again(last.cause())) {
    // no partner
    doublings = doublings_.load(std::memory_order_relaxed);
    // no partner
    doublings_.store(std::min(doublings + 1, doublings_max), std::memory_order_relaxed);
  }
  const std::uint64_t pause_ns =
      std::min((window_ns * windows_per_pause) << doublings, pause_ns_max);
  until_ns_.store((now + pause_ns) | 1, std::memory_order_relaxed);  // no partner
}

}  // namespace elidex::internal
