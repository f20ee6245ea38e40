// Which locks the calling thread elides in the region that it is in.
//
//   region_locks& here = region_locks::of_this_thread<Htm>();
//   here.add(&lock);                       // in lock(), inside the region
//   if (here.remove(&lock)) ...            // in unlock(): it was elided, not taken
//
// Drop-in locks must know this exactly: programs unlock in any order, unlock what they took before the region began, and
// unlock what nobody holds. Written inside the region, the list is rolled back with it, so it is empty outside.
//
// It also makes one region of all nested sections: only the first lock of the list begins a level of the hardware's nesting,
// of which there are seven (papers/004 figure 3.8), and the last to go commits it.
//
// Thread-safety: an object belongs to one thread.
#pragma once

#include <array>
#include <cstddef>

namespace elidex {

class region_locks {
 public:
  // Chosen: deeper nests take their locks.
  static constexpr std::size_t locks_max = 16;

  // A list for each kind of machine, so that scripted tests have their own.
  template <class Htm>
  static region_locks& of_this_thread() noexcept {
    static constinit thread_local region_locks list;
    return list;
  }

  bool empty() const noexcept { return size_ == 0; }

  bool contains(const void* lock) const noexcept {
    for (std::size_t i = 0; i < size_; ++i) {
      if (locks_[i] == lock) return true;
    }
    return false;
  }

  // False: there is no room.
  bool add(const void* lock) noexcept {
    if (size_ == locks_max) return false;
    locks_[size_++] = lock;
    return true;
  }

  // The latest entry of that lock; false if there is none.
  bool remove(const void* lock) noexcept {
    for (std::size_t i = size_; i-- > 0;) {
      if (locks_[i] != lock) continue;
      for (std::size_t next = i + 1; next < size_; ++next) locks_[next - 1] = locks_[next];
      --size_;
      return true;
    }
    return false;
  }

 private:
  std::size_t size_ = 0;
  std::array<const void*, locks_max> locks_{};
};

}  // namespace elidex
