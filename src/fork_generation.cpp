#include "elidex/internal/memory/fork_generation.hpp"

#include <cstddef>
#include <new>
#include <utility>

#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/sync/parking.hpp"

#if defined(__unix__) && !defined(ELIDEX_SIMULATED)
#  include <pthread.h>
#  define ELIDEX_HAS_FORK 1
#endif

namespace elidex::internal {

constinit std::atomic<std::uint64_t> generation_of_process{0};
constinit std::atomic<std::uint32_t> slot_of_forking_thread{no_forking_thread};

void abandon(std::thread&& thread) noexcept {
  alignas(std::thread) std::byte never_destroyed[sizeof(std::thread)];
  new (never_destroyed) std::thread(std::move(thread));
}

#if defined(ELIDEX_HAS_FORK)
namespace {

void in_child() {
  const thread_record* const mine = current_thread_record;
  for (const thread_record* r = first_thread_record(); r != nullptr; r = r->next) {
    // No record is const; its thread, the only one that writes to it, is not here.
    if (r != mine) const_cast<thread_record*>(r)->pinned_epoch.store(0);
  }
  slot_of_forking_thread.store(mine != nullptr ? mine->slot : no_forking_thread);
  parking::forget_sleepers();
  generation_of_process.fetch_add(1);
}

}  // namespace

bool watch_forks() noexcept {
  static const bool watched = ::pthread_atfork(nullptr, nullptr, in_child) == 0;
  return watched;
}
#else
bool watch_forks() noexcept {
  return true;
}
#endif

}  // namespace elidex::internal
