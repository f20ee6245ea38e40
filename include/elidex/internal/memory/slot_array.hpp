// An element for each thread slot (epoch.hpp). The elements of the first slots lie in the object,
// those of further slots on the heap.
//
//   slot_array<counter, 512> counters;
//   counter& mine = counters.provide(this_thread_slot());   // memory for this slot; may throw
//   counters[other].value;  // provide() was called for this slot or a higher one
//
// An element never moves, and lives as long as the array.
//
// Thread-safety: all functions but constructor and destructor, from any thread.
// Errors: provide() throws std::bad_alloc, and then nothing has changed. It cannot throw for one of
// the first slots.
// Complexity: O(1).
//
// Implementation notes
// Further slots are in pieces, each twice as long as the one before. A slot's number determines its
// piece. Unlike append_only_array.hpp, it keeps the first elements in the object, and supports
// alignments above 64 bytes.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <memory>
#include <new>
#include <utility>

namespace elidex::internal {

template <class T, std::size_t First>
class slot_array {
  static_assert(std::has_single_bit(First));

 public:
  slot_array() = default;
  slot_array(const slot_array&) = delete;
  slot_array& operator=(const slot_array&) = delete;
  ~slot_array() {
    for (const std::atomic<T*>& piece : more_) delete[] piece.load();
  }

  // Returns the element of a slot. Afterwards all lower slots have elements, too.
  T& provide(std::size_t slot) {
    if (slot < First) [[likely]]
      return first_[slot];
    return provide_more(slot);
  }
  // Returns null if there is no element for the slot yet.
  T* if_provided(std::size_t slot) noexcept {
    return const_cast<T*>(std::as_const(*this).if_provided(slot));
  }
  const T* if_provided(std::size_t slot) const noexcept {
    if (slot < First) [[likely]]
      return &first_[slot];
    const std::size_t which = piece_of(slot);
    if (which >= more_.size()) return nullptr;
    // acquire: pairs with the release in provide_more(): the elements are constructed.
    const T* const piece = more_[which].load(std::memory_order_acquire);
    return piece == nullptr ? nullptr : piece + (slot - first_slot_of(which));
  }
  // The caller has called provide() for this slot or a later one, or has learned from a thread that
  // has.
  const T& operator[](std::size_t slot) const noexcept {
    if (slot < First) [[likely]]
      return first_[slot];
    const std::size_t which = piece_of(slot);
    // acquire: pairs with the release in provide_more().
    return more_[which].load(std::memory_order_acquire)[slot - first_slot_of(which)];
  }

 private:
  // More slots than a process can have threads (2^22 on Linux).
  static constexpr std::size_t pieces = 16;

  // Piece k has First << k elements, from slot First << k on.
  static std::size_t piece_of(std::size_t slot) noexcept {
    return static_cast<std::size_t>(std::bit_width(slot / First)) - 1;
  }
  static std::size_t first_slot_of(std::size_t piece) noexcept { return First << piece; }

  [[gnu::noinline, gnu::cold]] T& provide_more(std::size_t slot) {
    const std::size_t last = piece_of(slot);
    if (last >= more_.size()) throw std::bad_alloc();
    for (std::size_t which = 0; which <= last; ++which) {
      std::atomic<T*>& piece = more_[which];
      if (piece.load() != nullptr) continue;
      auto made = std::make_unique<T[]>(First << which);
      T* expected = nullptr;
      // release: pairs with the acquire in if_provided().
      if (piece.compare_exchange_strong(expected, made.get(), std::memory_order_acq_rel))
        made.release();
    }
    return *if_provided(slot);
  }

  std::array<T, First> first_{};
  std::array<std::atomic<T*>, pieces> more_{};
};

}  // namespace elidex::internal
