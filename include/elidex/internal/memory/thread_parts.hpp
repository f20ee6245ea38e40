// Parts of an object that threads change at the same time. There is one part until the user finds
// that threads contend for it and calls spread(). From then on the threads are distributed over
// Count parts, each on a cache line of its own.
//
//   thread_parts<part, 16> parts_;
//   part& mine = parts_.mine();
//   if (another thread has changed it meanwhile) parts_.spread();   // mine() is another one now
//   parts_.for_each([&](const part& one) { sum += one.value; });
//
// So an object stays small while one thread uses it, and takes the memory for all parts only when
// threads contend.
//
// Thread-safety: all functions but constructor and destructor, from any thread. A part may have
// several users: a thread that called mine() before spread(), and threads that share a part because
// there are more of them than parts.
// Errors: none. Without memory for more parts, one part remains.
// From: Lea's LongAdder (Java 8), which adds cells in the same way.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <new>
#include <utility>

#include "elidex/internal/memory/epoch.hpp"

namespace elidex::internal {

template <class Part, std::size_t Count, std::size_t Alignment = 64>
class thread_parts {
 public:
  thread_parts() = default;
  thread_parts(const thread_parts&) = delete;
  thread_parts& operator=(const thread_parts&) = delete;
  ~thread_parts() { delete more_.load(); }

  Part& mine() noexcept {
    // acquire: pairs with the release in spread().
    many* const more = more_.load(std::memory_order_acquire);
    if (more == nullptr) return first_;
    return (*more)[this_thread_slot_or_0() % Count].part;
  }
  // The part that all threads had until spread().
  Part& first() noexcept { return first_; }

  [[gnu::noinline, gnu::cold]] void spread() noexcept {
    if (more_.load() != nullptr) return;
    many* const made = new (std::nothrow) many;
    many* expected = nullptr;
    // release: pairs with mine() and for_each().
    if (made != nullptr &&
        !more_.compare_exchange_strong(expected, made, std::memory_order_acq_rel)) {
      delete made;
    }
  }

  template <class Fn>
  void for_each(Fn&& fn) const {
    fn(first_);
    // acquire: pairs with the release in spread().
    const many* const more = more_.load(std::memory_order_acquire);
    if (more == nullptr) return;
    for (const padded& one : *more) fn(one.part);
  }

  template <class Fn>
  void for_each(Fn&& fn) {
    std::as_const(*this).for_each([&](const Part& one) { fn(const_cast<Part&>(one)); });
  }

  // What the further parts take, in bytes.
  std::size_t memory_bytes() const noexcept { return more_.load() == nullptr ? 0 : sizeof(many); }

 private:
  struct alignas(Alignment) padded {
    Part part{};
  };
  using many = std::array<padded, Count>;

  Part first_{};
  std::atomic<many*> more_{nullptr};
};

}  // namespace elidex::internal
