// An object that its first user makes.
//
//   made_on_demand<tree, maker> tree_{maker{}};
//   tree_.get().insert(...);                       // makes it
//   if (const tree* made = tree_.if_made()) ...    // never makes it
//
// An empty map costs little until it is used, and maps can be moved although trees cannot.
//
// Thread-safety: get() and if_made() from any thread. Constructors, destructor, assignment and
// swap: one thread.
// Errors: get() throws what the maker throws, and then nothing is made.
#pragma once

#include <atomic>
#include <memory>
#include <utility>

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
    T* const made = if_made();
    if (made != nullptr) [[likely]]
      return *made;
    return make();
  }
  // Returns null if nothing has been made.
  T* if_made() const noexcept {
    return made_.load(std::memory_order_acquire);  // pairs with the exchange in make()
  }
  const Maker& maker() const noexcept { return maker_; }

 private:
  [[gnu::noinline]] T& make() const {
    std::unique_ptr<T> mine = maker_();
    T* made = nullptr;
    if (made_.compare_exchange_strong(made, mine.get())) made = mine.release();
    return *made;
  }

  mutable std::atomic<T*> made_{nullptr};
  [[no_unique_address]] Maker maker_;
};

}  // namespace elidex::internal
