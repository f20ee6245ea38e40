// An object that its first user makes.
//
//   made_on_demand<tree, maker> tree_{maker{}};
//   tree_.get().insert(...);                       // makes it
//   if (const tree* made = tree_.if_made()) ...    // never makes it
//
// An empty map costs little until it is used, and maps can be moved although trees cannot.
//
// Thread-safety: get() and if_made() from any thread. Constructors, destructor, assignment and
// swap: one thread. While one thread makes the object, other callers of get() wait. So there is
// never a second object, whose memory would exceed the limit of a map's options.
// Errors: get() throws what the maker throws, and then nothing is made.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "elidex/internal/sync/backoff.hpp"
#include "elidex/internal/sync/parking.hpp"

namespace elidex::internal {

// Maker: a copyable function object that returns a std::unique_ptr<T>.
template <class T, class Maker>
class made_on_demand {
 public:
  explicit made_on_demand(Maker maker = {}) : maker_(std::move(maker)) {}
  made_on_demand(made_on_demand&& other) noexcept
      : made_(other.made_.exchange(nullptr)), maker_(other.maker_) {}
  made_on_demand& operator=(made_on_demand&& other) noexcept {
    if (this == &other) return *this;
    delete made_.exchange(other.made_.exchange(nullptr));
    maker_ = other.maker_;
    return *this;
  }
  ~made_on_demand() { delete if_made(); }

  T& get() const {
    T* const made = made_.load(std::memory_order_acquire);  // pairs with the store in become()
    if (is_made(made)) [[likely]]
      return *made;
    return make();
  }
  // Returns null if nothing has been made.
  T* if_made() const noexcept {
    T* const made = made_.load(std::memory_order_acquire);  // pairs with the store in become()
    return is_made(made) ? made : nullptr;
  }
  const Maker& maker() const noexcept { return maker_; }

 private:
  // In place of the object while a thread makes it. No object has this address.
  static T* being_made() noexcept { return reinterpret_cast<T*>(std::uintptr_t{1}); }

  static bool is_made(const T* one) noexcept {
    return reinterpret_cast<std::uintptr_t>(one) > 1;  // neither null nor being_made()
  }

  [[gnu::noinline]] T& make() const {
    for (;;) {
      T* now = nullptr;
      if (made_.compare_exchange_strong(now, being_made())) break;
      if (now != being_made()) return *now;
      backoff wait;
      wait_while<looks::often>(&made_, [this] { return made_.load() == being_made(); }, wait);
    }
    T* made = nullptr;
    try {
      made = maker_().release();
    } catch (...) {
      become(nullptr);
      throw;
    }
    become(made);
    return *made;
  }
  void become(T* made) const noexcept {
    made_.store(made);
    wake_waiters(&made_);
  }

  mutable std::atomic<T*> made_{nullptr};
  [[no_unique_address]] Maker maker_;
};

}  // namespace elidex::internal
