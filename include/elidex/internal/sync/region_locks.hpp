// Which locks the calling thread elides in the region that it is in.
//
//   auto& here = region_locks<held>::of_this_thread<Htm>();
//   here.announce({&lock, ...});  // in lock(), before the region begins; withdraw() if none does
//   here.make_sure_of({&lock, ...});       // and when it has begun
//   here.add({&other, ...});               // in lock(), inside a region
//   switch (here.remove(&lock)) { ... }  // in unlock(), inside a region: was it elided, or taken?
//
// `Held` is what is kept of a lock: its address, `const void* lock`, and what its owner likes.
//
// Drop-in locks must know this exactly: programs unlock in any order, unlock what they took before
// the region began, and unlock what nobody holds. What is written inside the region is rolled back
// with it.
//
// The lock that a region begins with is announced outside of it, because a line that a region has
// written must stay in the L1, and would be pushed out by a section that reads much (papers/004
// figures 3.1 and 3.2). A signal handler that elides locks of its own between the announcement and
// the region's begin withdraws what it finds: hence make_sure_of().
//
// It also makes one region of all nested sections: only the first lock begins a level of the
// hardware's nesting, of which there are seven (papers/004 figure 3.8), and the last to go commits
// it.
//
// Invariants: between regions nothing is announced and the list is empty.
//
// Thread-safety: an object belongs to one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace elidex::internal {

template <class Held>
class region_locks {
 public:
  // Chosen: programs rarely nest more than three locks. Deeper nests take theirs.
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

  void announce(const Held& first) noexcept {
    first_ = first;
    first_has_left_ = false;
  }
  // What the region began with; its lock is null if no region of ours has.
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

  // The latest entry of that lock, or null.
  const Held* find(const void* lock) const noexcept {
    for (std::size_t i = added_; i-- > 0;) {
      if (locks_[i].lock == lock) return &locks_[i];
    }
    return first_is_here() && first_.lock == lock ? &first_ : nullptr;
  }

  // False: there is no room.
  bool add(const Held& held) noexcept {
    if (added_ == locks_max) return false;
    locks_[added_++] = held;
    return true;
  }

  // The latest entry of that lock.
  removal remove(const void* lock) noexcept {
    const Held* const found = find(lock);
    if (found == nullptr) return removal::not_there;
    if (found == &first_) {
      if (added_ == 0) return removal::last;  // nothing is written: it ends with the region
      first_has_left_ = true;
      return removal::others_left;
    }
    --added_;
    for (auto at = static_cast<std::size_t>(found - locks_.data()); at < added_; ++at)
      locks_[at] = locks_[at + 1];
    return empty() ? removal::last : removal::others_left;
  }

  // For tests, on machines that cannot roll back.
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
