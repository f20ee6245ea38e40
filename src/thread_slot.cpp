#include "elidex/thread_slot.hpp"

namespace elidex::detail {
namespace {

std::atomic<thread_record*> newest_record{nullptr};
std::atomic<std::uint32_t> slots_made{0};

// Gives the record back when the thread ends. A thread_local destructor that runs later and uses the library
// registers once more and keeps that record for good: rare, and harmless but for the record's 128 bytes.
struct release_at_thread_exit {
  thread_record* record = nullptr;
  ~release_at_thread_exit() {
    if (record == nullptr) return;
    current_thread_record = nullptr;
    // release: pairs with the acquire exchange in register_this_thread(), so that the next owner sees pin_depth.
    record->in_use.store(false, std::memory_order_release);
  }
};
thread_local release_at_thread_exit release_guard;

}  // namespace

const thread_record* first_thread_record() noexcept {
  // acquire: pairs with the release compare-exchange that published the record.
  return newest_record.load(std::memory_order_acquire);
}

thread_record& register_this_thread() {
  thread_record* record = newest_record.load(std::memory_order_acquire);  // pairs with the publishing CAS below
  for (; record != nullptr; record = record->next) {
    // relaxed: only a hint; the exchange decides. acquire: pairs with the release store at thread exit.
    if (!record->in_use.load(std::memory_order_relaxed) && !record->in_use.exchange(true, std::memory_order_acquire)) {
      break;
    }
  }
  if (record == nullptr) {
    record = new thread_record;
    record->slot = slots_made.fetch_add(1);
    record->in_use.store(true);
    record->next = newest_record.load();
    while (!newest_record.compare_exchange_weak(record->next, record)) {
    }
  }
  current_thread_record = record;
  release_guard.record = record;
  return *record;
}

}  // namespace elidex::detail
