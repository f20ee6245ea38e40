#include "elidex/internal/memory/epoch.hpp"

#include <pthread.h>

#include <cerrno>
#include <chrono>
#include <new>
#include <thread>

#include "elidex/internal/memory/fork_generation.hpp"
#include "elidex/internal/memory/lasting_memory.hpp"
#include "elidex/internal/memory/memory_name.hpp"
#include "elidex/internal/sync/backoff.hpp"

namespace elidex::internal {

// --- threads ---

constinit thread_local thread_record* current_thread_record = nullptr;

namespace {

std::atomic<thread_record*> newest_record{nullptr};
std::atomic<std::uint32_t> slots_made{0};

// The key whose destructor returns a thread's record when the thread ends. A thread_local's
// destructor would run too early: later ones may still use the library. A key's destructor runs
// after all of them, and again if one of them registers the thread anew.
//
// The key is deleted with the static objects of the program or plug-in that contains the library. A
// thread that ends after a plug-in was unloaded must not call unmapped code. Threads that register
// later, while the process ends, keep their records.
class thread_exit_key {
 public:
  static void set(thread_record* record) {
    static const thread_exit_key key;
    if (is_deleted.load()) return;
    // EINVAL: another thread deletes the key at this moment.
    if (::pthread_setspecific(key.key_, record) == ENOMEM) throw std::bad_alloc();
  }

  thread_exit_key(const thread_exit_key&) = delete;
  thread_exit_key& operator=(const thread_exit_key&) = delete;

 private:
  thread_exit_key() {
    if (::pthread_key_create(&key_, [](void* record) {
          current_thread_record = nullptr;
          static_cast<thread_record*>(record)->give_back();
        }) != 0) {
      throw std::bad_alloc();
    }
  }
  ~thread_exit_key() {
    is_deleted.store(true);
    ::pthread_key_delete(key_);
  }

  static constinit std::atomic<bool> is_deleted;
  pthread_key_t key_{};
};
constinit std::atomic<bool> thread_exit_key::is_deleted{false};

// The free record with the lowest slot, so that the slots in use stay dense when many threads have
// come and gone.
thread_record* take_free_record() noexcept {
  for (;;) {
    thread_record* lowest = nullptr;
    // acquire: pairs with the publishing compare-exchange in register_this_thread().
    for (thread_record* r = newest_record.load(std::memory_order_acquire); r != nullptr;
         r = r->next) {
      // relaxed: only a hint; the exchange below decides.
      if (!r->in_use.load(std::memory_order_relaxed) &&
          (lowest == nullptr || r->slot < lowest->slot))
        lowest = r;
    }
    // acquire: pairs with the release in give_back(), so that the next owner sees pin_depth.
    if (lowest == nullptr || !lowest->in_use.exchange(true, std::memory_order_acquire))
      return lowest;
  }
}

}  // namespace

const thread_record* first_thread_record() noexcept {
  // acquire: pairs with the release compare-exchange that published the record.
  return newest_record.load(std::memory_order_acquire);
}

// relaxed: pairs with the fetch_add in register_this_thread(), which happens before all writes of
// that thread. So a caller that sees a thread's writes also sees its slot.
std::uint32_t thread_slots_made() noexcept {
  return slots_made.load(std::memory_order_relaxed);
}

thread_record& register_this_thread() {
  thread_record* record = take_free_record();
  if (record == nullptr) {
    record = ::new (lasting_memory(sizeof(thread_record), alignof(thread_record))) thread_record;
    name_memory(record, sizeof(*record), "thread's record");
    record->slot = slots_made.fetch_add(1);
    record->in_use.store(true);
    record->next = newest_record.load();
    while (!newest_record.compare_exchange_weak(record->next, record)) {
    }
  }
  try {
    thread_exit_key::set(record);
  } catch (...) {
    record->give_back();
    throw;
  }
  current_thread_record = record;
  return *record;
}

// --- epochs ---

namespace {

// Runs before any thread can be pinned. (Without memory for the handler, a child keeps the pins of
// its parent's threads.)
[[maybe_unused]] const bool forks_are_watched = watch_forks();

// Pins last for microseconds. A thread that stays pinned after the pauses is preempted or runs a
// caller's function. The end of a pin wakes no waiter.
void pause_or_sleep(backoff& wait) {
#if !defined(ELIDEX_SIMULATED)
  if (wait.is_spent()) {
    std::this_thread::sleep_for(std::chrono::microseconds(50));
    return;
  }
#endif
  wait.once();
}

}  // namespace

// Starts above 0, which means "not pinned".
constinit std::atomic<std::uint64_t> global_epoch{2};

std::uint64_t try_advance_epoch() noexcept {
  std::uint64_t epoch = global_epoch.load();
  std::atomic_thread_fence(std::memory_order_seq_cst);  // A in the argument of epoch.hpp
  for (const auto* record = first_thread_record(); record != nullptr; record = record->next) {
    // acquire: pairs with the release store of ~epoch_pin().
    const std::uint64_t pinned = record->pinned_epoch.load(std::memory_order_acquire);
    if (pinned != 0 && pinned != epoch) return epoch;
  }
  if (global_epoch.compare_exchange_strong(epoch, epoch + 1)) return epoch + 1;
  return epoch;  // another thread advanced it; the failed exchange has loaded the newer value
}

void wait_for_pins() noexcept {
  // Two epochs later, by the argument of epoch.hpp. Its last sentence proves that the writes made
  // under the pins are visible.
  const std::uint64_t ended = epoch_after_unlinking() + 2;
  backoff wait;
  for (std::uint64_t before = 0;;) {
    const std::uint64_t epoch = try_advance_epoch();
    if (epoch >= ended) return;
    if (epoch == before) pause_or_sleep(wait);  // a pinned thread delays the advance
    before = epoch;
  }
}

}  // namespace elidex::internal
