#include "preload/call_sites.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <time.h>

namespace elidex::preload {

using namespace internal;

namespace {

constinit std::atomic<thread_counts*> newest{nullptr};
constinit site_counts without_memory{};

// Keys from 32 on make pthread_setspecific call malloc (glibc's PTHREAD_KEY_2NDLEVEL_SIZE), which
// may be inside a lock.
constexpr pthread_key_t keys_without_malloc = 32;
constinit pthread_key_t key_of_thread_end = keys_without_malloc;

}  // namespace

// The state that all threads share.
class all_counts {
 public:
  static thread_counts* claim() noexcept {
    // acquire: pairs with the release in publish().
    for (thread_counts* one = newest.load(std::memory_order_acquire); one != nullptr;
         one = next(*one)) {
      bool owned = false;
      // acquire: pairs with the release in give_back(), so that the samples and the counts are the
      // last owner's final ones.
      if (one->owned_.compare_exchange_strong(owned, true, std::memory_order_acquire)) return one;
    }
    return publish();
  }

  static void give_back(thread_counts& mine) noexcept {
    mine.samples_ = 0;
    mine.owned_.store(false, std::memory_order_release);  // pairs with the acquire in claim()
  }

  static thread_counts* next(const thread_counts& one) noexcept {
    // no partner: written before the record was published
    return one.next_.load(std::memory_order_relaxed);
  }

  static void empty(thread_counts& one, bool owned) noexcept {
    for (site_counts& site : one.sites_) {
      if (site.key() != site_counts::unused) site.clear();
    }
    one.samples_ = 0;
    one.owned_.store(owned);
  }

 private:
  static thread_counts* publish() noexcept {
    void* const memory = ::mmap(nullptr, sizeof(thread_counts), PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    auto* const fresh = static_cast<thread_counts*>(memory);  // zero is its first state
    fresh->owned_.store(true, std::memory_order_relaxed);     // no partner: published below
    // no partner: the exchange decides
    thread_counts* before = newest.load(std::memory_order_relaxed);
    do {
      // no partner: published by the exchange
      fresh->next_.store(before, std::memory_order_relaxed);
      // release: pairs with the acquires in claim() and for_each_site().
    } while (!newest.compare_exchange_weak(before, fresh, std::memory_order_release,
                                           std::memory_order_relaxed));
    return fresh;
  }
};

namespace {

void at_thread_end(void* mine) {
  counts_of_this_thread = nullptr;  // a later lock gets a record again
  all_counts::give_back(*static_cast<thread_counts*>(mine));
}

}  // namespace

bool prepare_counting() noexcept {
  pthread_key_t key = 0;
  if (::pthread_key_create(&key, at_thread_end) != 0) return false;
  if (key >= keys_without_malloc) {
    ::pthread_key_delete(key);
    return false;
  }
  without_memory.claim(site_counts::elsewhere);
  key_of_thread_end = key;
  return true;
}

thread_counts* claim_counts() noexcept {
  thread_counts* const mine = all_counts::claim();
  if (mine == nullptr) return nullptr;
  counts_of_this_thread = mine;
  if (key_of_thread_end < keys_without_malloc) ::pthread_setspecific(key_of_thread_end, mine);
  return mine;
}

site_counts& shared_counts() noexcept {
  return without_memory;
}

site_counts& thread_counts::of(const void* where, operation what) noexcept {
  const std::uint64_t key = site_counts::key_of(where, what);
  std::size_t at = (key * 0x9e3779b97f4a7c15) >> 54;  // Fibonacci hashing, to 10 bits
  static_assert(places == 1024);
  for (std::size_t probe = 0; probe < probes_max; ++probe, at = (at + 1) % places) {
    if (sites_[at].key() == key || sites_[at].claim(key)) return sites_[at];
  }
  return without_memory;
}

void thread_counts::begin_sample(const void* lock, site_counts& here) noexcept {
  if (samples_ == samples_max) samples_ = 0;  // locks that another thread unlocks, or none
  held_[samples_] = {lock, &here, now_ns()};
  ++samples_;
}

site_counts* thread_counts::end_sample(const void* lock) noexcept {
  for (std::uint32_t i = samples_; i > 0; --i) {
    const sample one = held_[i - 1];
    if (one.lock != lock) continue;
    const std::uint64_t held_ns = now_ns() - one.since_ns;
    held_[i - 1] = held_[samples_ - 1];
    --samples_;
    one.here->add(count::holds, 1);
    one.here->add(count::held_ns, held_ns);
    one.here->raise(count::held_ns_max, held_ns);
    return one.here;
  }
  return nullptr;
}

void begin_again_in_child() noexcept {
  thread_counts* const mine = counts_of_this_thread;
  // acquire: pairs with the release in publish().
  for (thread_counts* one = newest.load(std::memory_order_acquire); one != nullptr;
       one = all_counts::next(*one)) {
    all_counts::empty(*one, one == mine);
  }
  without_memory.clear();
}

void for_each_site(void (*visit)(const site_counts&, void*), void* context) noexcept {
  // acquire: pairs with the release in publish().
  for (thread_counts* one = newest.load(std::memory_order_acquire); one != nullptr;
       one = all_counts::next(*one)) {
    for (const site_counts& site : one->sites()) {
      if (site.key() != site_counts::unused) visit(site, context);
    }
  }
  visit(without_memory, context);
}

std::uint64_t now_ns() noexcept {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace elidex::preload
