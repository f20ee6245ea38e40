// The counts of each call site that takes locks. The key is the return address, not the lock. So
// the number of locks and their lifetimes do not matter.
//
//   site_counts& here = this_threads_counts().of(return_address, operation::mutex_lock);
//   here.add(count::calls, 1);
//
// Each thread counts in memory of its own, which comes from mmap and never from malloc, because
// programs lock inside malloc. When a thread ends, its counts stay, and the next new thread
// continues in the same memory.
//
// Thread-safety: this_threads_counts() and its result belong to the calling thread. Any thread may
// call for_each_site(), also in a signal handler. A signal handler that locks inside add() may lose
// a count.
//
// Implementation notes
// Invariants: each count has one writer. The `shared` counts, of threads that got no memory, are an
// exception: threads add to them atomically. Memory is never freed, so readers need no lock. They
// may see numbers of slightly different moments.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "elidex/htm.hpp"
#include "preload/interposed_locks.hpp"

namespace elidex::preload {

enum class count : std::uint8_t {
  calls,
  failed,     // no lock: EBUSY, ETIMEDOUT, EDEADLK ...
  contended,  // the lock was held by somebody else
  waited_ns,
  waited_ns_max,
  holds,  // sampled ones
  held_ns,
  held_ns_max,
  commits,  // regions that committed
  joined,   // locks that were part of another lock's region, and committed with it
  aborts,   // and the causes behind it, by htm::abort_cause
};
inline constexpr std::size_t count_kinds =
    static_cast<std::size_t>(count::aborts) + htm::abort_cause_count;

constexpr count aborts_by(htm::abort_cause cause) noexcept {
  return static_cast<count>(static_cast<std::size_t>(count::aborts) +
                            static_cast<std::size_t>(cause));
}

constexpr bool is_maximum(std::size_t kind) noexcept {
  return kind == static_cast<std::size_t>(count::waited_ns_max) ||
         kind == static_cast<std::size_t>(count::held_ns_max);
}

// Two cache lines.
class alignas(64) site_counts {
 public:
  static constexpr std::uint64_t unused = 0;
  // For places for which the thread has no room.
  static constexpr std::uint64_t elsewhere = 1;

  // Address and operation in one word: an address has 57 bits at most.
  static std::uint64_t key_of(const void* where, operation what) noexcept {
    return reinterpret_cast<std::uintptr_t>(where) << 5 | static_cast<std::uint64_t>(what) << 1 | 1;
  }
  static const void* where(std::uint64_t key) noexcept {
    return reinterpret_cast<const void*>(key >> 5);
  }
  static operation what(std::uint64_t key) noexcept {
    return static_cast<operation>(key >> 1 & 15);
  }

  std::uint64_t key() const noexcept {
    // no partner: the counts of a place mean something from 0 on
    return key_.load(std::memory_order_relaxed);
  }
  // Claims the entry for the place. Returns whether the entry is the place's, now or already.
  bool claim(std::uint64_t key) noexcept {
    std::uint64_t found = unused;
    // relaxed, no partner, as in key(). An exchange, because a signal handler may run in between.
    return key_.compare_exchange_strong(found, key, std::memory_order_relaxed) || found == key;
  }

  std::uint64_t get(count what) const noexcept {
    // no partner: only a number
    return numbers_[static_cast<std::size_t>(what)].load(std::memory_order_relaxed);
  }
  void add(count what, std::uint64_t amount) noexcept {
    std::atomic<std::uint64_t>& number = numbers_[static_cast<std::size_t>(what)];
    // relaxed, no partner: a count publishes nothing, and has one writer unless this is the shared
    // record.
    if (key() == elsewhere) {
      number.fetch_add(amount, std::memory_order_relaxed);  // no partner, as above
    } else {
      // no partner, as above
      number.store(number.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
    }
  }
  void raise(count what, std::uint64_t value) noexcept {
    std::atomic<std::uint64_t>& number = numbers_[static_cast<std::size_t>(what)];
    // relaxed, no partner, as in add().
    if (number.load(std::memory_order_relaxed) < value)
      number.store(value, std::memory_order_relaxed);
  }
  void clear() noexcept {
    // no partner, as in add()
    for (auto& number : numbers_) number.store(0, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> key_;
  std::array<std::atomic<std::uint64_t>, count_kinds> numbers_;
};
static_assert(sizeof(site_counts) == 128);

// How often the time that a lock is held is measured: once in about so many acquisitions of a
// thread. Chosen: reading the clock twice costs as much as two to three free locks.
inline constexpr std::uint32_t acquisitions_per_hold_sample = 64;

// All zero is its first state.
class thread_counts {
 public:
  // Chosen: the largest programs have some hundred places for each thread; the table fills three
  // quarters at most.
  static constexpr std::size_t places = 1024;
  static constexpr std::size_t probes_max = 32;

  site_counts& of(const void* where, operation what) noexcept;

  // The lock was taken here. Begins a sample if one is due.
  void taken(const void* lock, site_counts& here) noexcept {
    if (until_sample_ != 0) {
      --until_sample_;
    } else {
      until_sample_ = next_sample();
      begin_sample(lock, here);
    }
  }
  // Ends the lock's sample and returns the sample's place, or null if there is no sample.
  site_counts* released(const void* lock) noexcept {
    return samples_ == 0 ? nullptr : end_sample(lock);
  }
  // Begins a sample now.
  void begin_sample(const void* lock, site_counts& here) noexcept;

  const std::array<site_counts, places>& sites() const noexcept { return sites_; }

 private:
  friend class all_counts;

  // A lock that is held, and since when. Chosen: few are sampled at a time.
  struct sample {
    const void* lock;
    site_counts* here;
    std::uint64_t since_ns;
  };
  static constexpr std::uint32_t samples_max = 8;

  site_counts* end_sample(const void* lock) noexcept;

  // Drawn at random. A fixed count would always sample the same lock of a thread that uses several
  // in turn.
  std::uint32_t next_sample() noexcept {
    constexpr std::uint32_t mean = acquisitions_per_hold_sample - 1;
    // Numerical Recipes' generator, whose upper bits are the good ones
    drawn_ = drawn_ * 1'664'525 + 1'013'904'223;
    return mean / 2 + static_cast<std::uint32_t>(std::uint64_t{drawn_} * (mean + 1) >> 32);
  }

  std::atomic<thread_counts*> next_;
  std::atomic<bool> owned_;
  std::uint32_t until_sample_;
  std::uint32_t drawn_;
  std::uint32_t samples_;
  std::array<sample, samples_max> held_;
  std::array<site_counts, places> sites_;
};

// Call it once, before the first count, where malloc may be called. After false, the memory of
// threads that have ended is not used again.
bool prepare_counting() noexcept;

thread_counts* claim_counts() noexcept;

inline thread_local constinit thread_counts* counts_of_this_thread = nullptr;

// Returns null if there is no memory.
inline thread_counts* this_threads_counts() noexcept {
  thread_counts* const mine = counts_of_this_thread;
  return mine != nullptr ? mine : claim_counts();
}

// The counts of threads that got no memory.
site_counts& shared_counts() noexcept;

// In the child of a fork: there are no other threads, and everything counts from zero.
void begin_again_in_child() noexcept;

// Calls visit(counts) for each place of each thread, and for the shared record.
void for_each_site(void (*visit)(const site_counts&, void*), void* context) noexcept;

std::uint64_t now_ns() noexcept;

}  // namespace elidex::preload
