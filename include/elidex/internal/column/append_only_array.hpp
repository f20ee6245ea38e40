// An array that grows behind its end and never moves: element i may be used while others are added.
//
//   append_only_array<std::uint64_t> values("value");
//   values.provide(1000);                    // memory for elements 0 to 999; may throw
//   values.at(7)->...                        // an address that stays
//
// How: segments, four for each doubling of the whole, so that of a thousand elements and more at
// most a quarter lies idle; which segment element i is in follows from its number. Elements begin
// default-initialised. Who has written which element is the user's concern.
//
// Thread-safety: all functions but constructor and destructor. Whoever knows of an element because
// another thread told it (by a lock, or by a validated version) sees its segment. at() of an
// element whose memory this thread cannot know of yet gives null, never a wrong address.
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

  // Where element i lies; null where no memory for it is known here.
  T* at(std::size_t i) const noexcept {
    if (i >= elements_max) return nullptr;
    const place p = place_of(i);
    // acquire: pairs with the release store in provide(): its elements are constructed.
    T* const segment = segments_[p.segment].load(std::memory_order_acquire);
    return segment == nullptr ? nullptr : segment + p.offset;
  }
  // The same for one of the first provided() elements, as far as this thread knows of them.
  T& operator[](std::size_t i) const noexcept {
    const place p = place_of(i);
    // relaxed: who passes i has seen provided() cover it, or been told of it; that orders this
    // behind its partner, the store in provide().
    return segments_[p.segment].load(std::memory_order_relaxed)[p.offset];
  }

  // Calls fn(elements, i, count) for the elements from `first` to `last`, `count` of them one
  // behind the other from number i on. All of them as for operator[].
  template <class Fn>
  void for_each_stretch(std::size_t first, std::size_t last, Fn&& fn) const {
    while (first < last) {
      const place p = place_of(first);
      const std::size_t count = std::min(segment_elements(p.segment) - p.offset, last - first);
      fn(&(*this)[first], first, count);
      first += count;
    }
  }

  // Elements there is memory for.
  std::size_t provided() const noexcept {
    return provided_.load(std::memory_order_acquire);  // pairs with the release store in provide()
  }

  // Makes memory for at least so many elements. Throws std::bad_alloc and has then changed nothing
  // that counts.
  void provide(std::size_t wanted) {
    if (wanted <= provided()) return;
    const std::lock_guard guard(growing_);
    // relaxed, without a partner: changed under this mutex only.
    std::size_t have = provided_.load(std::memory_order_relaxed);
    while (have < wanted) {
      const place p = place_of(have);
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

  // Obtained from the system, in bytes.
  std::size_t memory_bytes() const noexcept { return provided() * sizeof(T); }

 private:
  struct place {
    std::size_t segment;
    std::size_t offset;
  };
  // Four segments of 64 elements, four of 128, and so on.
  static constexpr unsigned first_bits = 6;
  static constexpr unsigned last_bits = 40;  // elements of the last segments
  static constexpr std::size_t segments = std::size_t{4} * (last_bits + 1 - first_bits);
  // there is memory for more than these
  static constexpr std::size_t elements_max = std::size_t{1} << (last_bits + 2);

  static place place_of(std::size_t i) noexcept {
    const std::size_t shifted = i + (std::size_t{4} << first_bits);
    const auto bits =
        // of the offset; the two above it say which of four
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
