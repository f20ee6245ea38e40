// The locks that the calling thread holds by a region instead of for real, oldest first.
//
//   if (const elided_section* mine = sections.find(mutex)) { sections.remove(mine); if (sections.empty()) Htm::commit(); }
//
// Invariant: it isn't empty exactly while the thread is inside a region that interposed_locks.hpp began. It is written
// inside regions only: an abort empties it by itself.
//
// Thread-safety: belongs to one thread.
#pragma once

#include <array>
#include <cstdint>

#include "preload/glibc_locks.hpp"

namespace elidex::preload {

// Site is what the statistics want to know at the section's end.
template <class Site>
struct elided_section {
  const void* lock;
  lock_use use;
  Site site;
  bool began_region = false;
};

template <class Site>
class elided_sections {
 public:
  // Chosen: programs rarely nest more than three locks; whatever comes on top takes its lock for real, inside the region.
  static constexpr std::uint32_t capacity = 16;

  bool empty() const noexcept { return depth_ == 0; }
  bool full() const noexcept { return depth_ == capacity; }

  // The latest one of that lock, or null.
  const elided_section<Site>* find(const void* lock) const noexcept {
    for (std::uint32_t i = depth_; i > 0; --i) {
      if (all_[i - 1].lock == lock) return &all_[i - 1];
    }
    return nullptr;
  }

  bool holds(const void* lock) const noexcept { return find(lock) != nullptr; }

  // The first one is remembered as what the region began with, also when it has been removed.
  void push(const elided_section<Site>& one) noexcept {
    all_[depth_] = one;
    if (depth_ == 0) {
      all_[0].began_region = true;
      first_ = all_[0];
    }
    ++depth_;
  }

  const elided_section<Site>& first() const noexcept { return first_; }

  // `which` points into it. The others keep their order.
  void remove(const elided_section<Site>* which) noexcept {
    std::uint32_t at = static_cast<std::uint32_t>(which - all_.data());
    for (--depth_; at < depth_; ++at) all_[at] = all_[at + 1];
  }

  // For tests, on machines that cannot roll back.
  void clear() noexcept { depth_ = 0; }

 private:
  std::uint32_t depth_ = 0;
  elided_section<Site> first_{};
  std::array<elided_section<Site>, capacity> all_{};
};

}  // namespace elidex::preload
