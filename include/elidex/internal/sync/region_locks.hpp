// The list of the locks that the calling thread elides in its current region.
//
//   auto& here = region_locks<held>::of_this_thread<Htm>();
//   here.announce({&lock, ...});         // in lock(), before the region begins
//   here.make_sure_of({&lock, ...});     // in the region; withdraw() if the region does not begin
//   here.add({&other, ...});             // in lock(), inside a region
//   switch (here.remove(&lock)) { ... }  // in unlock(), inside a region: was it elided, or taken?
//
// `Held` is the entry of a lock. It has the lock's address, `const void* lock`, and any other data
// of its user.
//
// Thread-safety: an object belongs to one thread.
// Errors: nothing throws.
//
// Implementation notes
// Invariants: between regions no lock is announced, and the list is empty.
//
// Drop-in locks need an exact list, because a program may unlock in any order. It may unlock a lock
// that it took before the region began, or a lock that no thread holds. An abort rolls back the
// entries that the region has written.
//
// The first lock is announced before the region begins. A line that a region has written must stay
// in the L1. A section that reads much would evict it (paper 004 figures 3.1 and 3.2). A
// signal handler may elide locks of its own between the announcement and the region's begin. It
// then withdraws the announcement that it finds. make_sure_of() repairs that.
//
// All nested sections form one region. Only the first lock begins a level of the hardware's
// nesting, which has seven levels (paper 004 figure 3.8). The last lock to leave commits it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace elidex::internal {

template <class Held>
class region_locks {
 public:
  // Chosen: programs rarely nest more than three locks. Sections that nest deeper take their locks.
  static constexpr std::size_t locks_max = 16;

  enum class removal : std::uint8_t {
    not_there,    // the lock was taken, or is not held
    others_left,  // the region continues
    last          // the caller commits the region, then calls withdraw()
  };

  // Each kind of machine has its own list, so scripted tests have their own.
  template <class Htm>
  static region_locks& of_this_thread() noexcept {
    static constinit thread_local region_locks list;
    return list;
  }

  void announce(const Held& first) noexcept {
    first_ = first;
    first_has_left_ = false;
  }
  // Removes and returns the announced entry. Its lock is null if no drop-in lock began the region.
  Held withdraw() noexcept {
    const Held began = first_;
    first_.lock = nullptr;
    return began;
  }
  void make_sure_of(const Held& first) noexcept {
    if (!first_is_here()) announce(first);
  }

  bool empty() const noexcept { return added_ == 0 && !first_is_here(); }
  bool contains(const void* lock) const noexcept { return find(lock) != nullptr; }
  bool began_with(const Held& held) const noexcept { return &held == &first_; }

  // Returns the latest entry of this lock, or null.
  const Held* find(const void* lock) const noexcept {
    for (std::size_t i = added_; i-- > 0;) {
      if (locks_[i].lock == lock) return &locks_[i];
    }
    return first_is_here() && first_.lock == lock ? &first_ : nullptr;
  }

  // Returns false if the list is full.
  bool add(const Held& held) noexcept {
    if (added_ == locks_max) return false;
    locks_[added_++] = held;
    return true;
  }

  // Removes the latest entry of this lock.
  removal remove(const void* lock) noexcept {
    const Held* const found = find(lock);
    if (found == nullptr) return removal::not_there;
    if (found == &first_) {
      if (added_ == 0) return removal::last;  // writes nothing: the entry ends with the region
      first_has_left_ = true;
      return removal::others_left;
    }
    --added_;
    for (auto at = static_cast<std::size_t>(found - locks_.data()); at < added_; ++at)
      locks_[at] = locks_[at + 1];
    return empty() ? removal::last : removal::others_left;
  }

  // Empties the list. For tests on machines that cannot roll back.
  void forget() noexcept {
    first_.lock = nullptr;
    added_ = 0;
  }

 private:
  bool first_is_here() const noexcept { return first_.lock != nullptr && !first_has_left_; }

  Held first_{};
  bool first_has_left_ = false;
  std::size_t added_ = 0;
  std::array<Held, locks_max> locks_{};
};

}  // namespace elidex::internal
