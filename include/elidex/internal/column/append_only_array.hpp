// An array that grows at its end and never moves its elements. Elements may be used while others
// are added.
//
//   append_only_array<std::uint64_t> values("value");
//   values.provide(1000);                    // memory for elements 0 to 999; may throw
//   values.at(7)->...                        // an address that stays
//
// Elements begin default-initialized. The user decides which thread writes which element.
//
// Thread-safety: all functions but constructor and destructor, from any thread. A thread that
// learns of an element from another thread (through a lock, or a validated version) sees the
// element's segment. at() returns null, never a wrong address, for an element whose memory this
// thread cannot know of yet.
// Errors: provide() throws std::bad_alloc.
//
// Implementation notes
// The array consists of segments, four for each doubling of the whole. So of a thousand elements or
// more at most a quarter is unused. An element's number determines its segment.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <memory>
#include <mutex>
#include <type_traits>

#include "elidex/internal/memory/large_memory.hpp"
#include "elidex/internal/memory/memory_name.hpp"

namespace elidex::internal {

template <class T>
class append_only_array {
  static_assert(std::is_nothrow_default_constructible_v<T> && std::is_trivially_destructible_v<T>);

 public:
  explicit append_only_array(const char* name = "array") noexcept : name_(name) {}
  ~append_only_array() {
    for (std::size_t i = 0; i < segments; ++i) {
      if (T* const segment = segments_[i].load())
        return_memory(segment, segment_elements(i) * sizeof(T));
    }
  }
  append_only_array(const append_only_array&) = delete;
  append_only_array& operator=(const append_only_array&) = delete;

  // The address of element i, or null if this thread knows of no memory for it.
  T* at(std::size_t i) const noexcept {
    if (i >= elements_max) return nullptr;
    const location p = location_of(i);
    // acquire: pairs with the release store in provide(): its elements are constructed.
    T* const segment = segments_[p.segment].load(std::memory_order_acquire);
    return segment == nullptr ? nullptr : segment + p.offset;
  }
  // The same for an element that is known to be among the first provided() elements.
  T& operator[](std::size_t i) const noexcept {
    const location p = location_of(i);
    // relaxed: the caller has seen that provided() covers i, or has learned of i from a thread that
    // has. That orders this load behind its partner, the store in provide().
    return segments_[p.segment].load(std::memory_order_relaxed)[p.offset];
  }

  // Calls fn(elements, i, count) for contiguous runs of the elements from `first` to `last - 1`. A
  // run has `count` elements, the first of which has number i. The conditions of operator[] apply
  // to all of them.
  template <class Fn>
  void for_each_stretch(std::size_t first, std::size_t last, Fn&& fn) const {
    while (first < last) {
      const location p = location_of(first);
      const std::size_t count = std::min(segment_elements(p.segment) - p.offset, last - first);
      fn(&(*this)[first], first, count);
      first += count;
    }
  }

  // The number of elements that have memory.
  std::size_t provided() const noexcept {
    return provided_.load(std::memory_order_acquire);  // pairs with the release store in provide()
  }

  // Provides memory for at least so many elements. Throws std::bad_alloc. The elements that had
  // memory before are then unchanged.
  void provide(std::size_t wanted) {
    if (wanted <= provided()) return;
    const std::lock_guard guard(growing_);
    // relaxed, without a partner: changed under this mutex only.
    std::size_t have = provided_.load(std::memory_order_relaxed);
    while (have < wanted) {
      const location p = location_of(have);
      const std::size_t elements = segment_elements(p.segment);
      void* const memory = obtain_memory(elements * sizeof(T));
      std::uninitialized_default_construct_n(static_cast<T*>(memory), elements);
      name_memory(memory, elements * sizeof(T), name_, sizeof(T));
      // pairs with at()
      segments_[p.segment].store(static_cast<T*>(memory), std::memory_order_release);
      have += elements;
      provided_.store(have, std::memory_order_release);  // pairs with provided()
    }
  }

  // The memory obtained from the system, in bytes.
  std::size_t memory_bytes() const noexcept { return provided() * sizeof(T); }

 private:
  struct location {
    std::size_t segment;
    std::size_t offset;
  };
  // Four segments of 64 elements, four of 128, and so on.
  static constexpr unsigned first_bits = 6;
  static constexpr unsigned last_bits = 40;  // elements of the last segments
  static constexpr std::size_t segments = std::size_t{4} * (last_bits + 1 - first_bits);
  // no computer has memory for more elements
  static constexpr std::size_t elements_max = std::size_t{1} << (last_bits + 2);

  static location location_of(std::size_t i) noexcept {
    const std::size_t shifted = i + (std::size_t{4} << first_bits);
    const auto bits =
        // of the offset; the two bits above tell which of the four segments
        static_cast<unsigned>(std::bit_width(shifted) - 3);
    return {std::size_t{4} * (bits - first_bits) + (shifted >> bits & 3),
            shifted & ((std::size_t{1} << bits) - 1)};
  }
  static std::size_t segment_elements(std::size_t segment) noexcept {
    return std::size_t{1} << (first_bits + segment / 4);
  }

  const char* const name_;
  std::array<std::atomic<T*>, segments> segments_{};
  std::atomic<std::size_t> provided_{0};
  std::mutex growing_;
};

}  // namespace elidex::internal
