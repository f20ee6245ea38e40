// Which locks the calling thread elides in the region that it is in.
//
//   region_locks& here = region_locks::of_this_thread<Htm>();
//   here.announce(&lock, counters);        // in lock(), before the region begins; withdraw() if none does
//   here.add(&other);                      // in lock(), inside a region
//   switch (here.remove(&lock)) { ... }    // in unlock(), inside a region: was it elided, or taken?
//
// Drop-in locks must know this exactly: programs unlock in any order, unlock what they took before the region began, and
// unlock what nobody holds. What is written inside the region is rolled back with it.
//
// The lock that a region begins with is announced outside of it, because a line that a region has written must stay in the
// L1, and would be pushed out by a section that reads much (papers/004 figures 3.1 and 3.2).
//
// It also makes one region of all nested sections: only the first lock begins a level of the hardware's nesting, of which
// there are seven (papers/004 figure 3.8), and the last to go commits it.
//
// Invariants: between regions nothing is announced and the list is empty.
//
// Thread-safety: an object belongs to one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace elidex {

class lock_counters;

class region_locks {
 public:
  // Chosen: deeper nests take their locks.
  static constexpr std::size_t locks_max = 16;

  enum class removal : std::uint8_t {
    not_there,    // it was taken, or is not held
    others_left,  // the region goes on
    last          // the region is to commit; then withdraw()
  };

  // A list for each kind of machine, so that scripted tests have their own.
  template <class Htm>
  static region_locks& of_this_thread() noexcept {
    static constinit thread_local region_locks list;
    return list;
  }

  // What a region began with.
  struct beginning {
    const void* lock;         // null: no region of ours has
    lock_counters* counters;  // of that lock
  };

  void announce(const void* lock, lock_counters& counters) noexcept {
    first_ = lock;
    counters_of_first_ = &counters;
    first_has_left_ = false;
  }
  beginning withdraw() noexcept {
    const beginning began{first_, counters_of_first_};
    first_ = nullptr;
    return began;
  }

  bool empty() const noexcept { return added_ == 0 && !first_is_here(); }

  bool contains(const void* lock) const noexcept {
    for (std::size_t i = 0; i < added_; ++i) {
      if (locks_[i] == lock) return true;
    }
    return first_is_here() && first_ == lock;
  }

  // False: there is no room.
  bool add(const void* lock) noexcept {
    if (added_ == locks_max) return false;
    locks_[added_++] = lock;
    return true;
  }

  // The latest entry of that lock.
  removal remove(const void* lock) noexcept {
    for (std::size_t i = added_; i-- > 0;) {
      if (locks_[i] != lock) continue;
      for (std::size_t next = i + 1; next < added_; ++next) locks_[next - 1] = locks_[next];
      --added_;
      return empty() ? removal::last : removal::others_left;
    }
    if (!first_is_here() || first_ != lock) return removal::not_there;
    if (added_ == 0) return removal::last;  // nothing is written: it ends with the region
    first_has_left_ = true;
    return removal::others_left;
  }

 private:
  bool first_is_here() const noexcept { return first_ != nullptr && !first_has_left_; }

  const void* first_ = nullptr;
  lock_counters* counters_of_first_ = nullptr;
  bool first_has_left_ = false;
  std::size_t added_ = 0;
  std::array<const void*, locks_max> locks_{};
};

}  // namespace elidex
