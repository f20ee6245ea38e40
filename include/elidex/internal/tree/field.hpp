// A field of a node, which readers may read while a writer changes it.
//
//   field<std::uint64_t> key;
//   auto k = key.load<true>();   // racing: relaxed atomic loads, valid only after validation
//   auto k = key.load<false>();  // no thread may write meanwhile
//
// Thread-safety: racing loads may run beside a racing store by one writer.
//
// Implementation notes
// A value wider than a word is read and written word by word, so a racing load may be torn. A torn
// load returns some bits, without undefined behaviour, and the caller's validation discards them.
// Values are stored as words and not as their own type, because only words have atomic loads.
// Memory order: relaxed throughout. The version lock's fences order the accesses
// (version_lock.hpp).
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace elidex::internal {

template <std::size_t Bytes>
using widest_word = std::conditional_t<
    Bytes % 8 == 0, std::uint64_t,
    std::conditional_t<Bytes % 4 == 0, std::uint32_t,
                       std::conditional_t<Bytes % 2 == 0, std::uint16_t, std::uint8_t>>>;

template <class T>
class field {
  static_assert(std::is_trivially_copyable_v<T>);
  using word = widest_word<sizeof(T)>;
  using words = std::array<word, sizeof(T) / sizeof(word)>;

 public:
  template <bool Racing>
  T load() const noexcept {
    if constexpr (!Racing) {
      return std::bit_cast<T>(words_);
    } else {
      words copy;
      for (std::size_t i = 0; i < copy.size(); ++i) {
        // relaxed: pairs with the relaxed stores below; ordered by the version lock's fences.
        copy[i] = std::atomic_ref(const_cast<word&>(words_[i])).load(std::memory_order_relaxed);
      }
      return std::bit_cast<T>(copy);
    }
  }

  // Loads one of the words.
  template <bool Racing>
  word load_word(std::size_t i) const noexcept {
    if constexpr (!Racing) {
      return words_[i];
    } else {
      // relaxed: pairs with the relaxed stores below; ordered by the version lock's fences.
      return std::atomic_ref(const_cast<word&>(words_[i])).load(std::memory_order_relaxed);
    }
  }

  template <bool Racing>
  void store(const T& value) noexcept {
    const words copy = std::bit_cast<words>(value);
    if constexpr (!Racing) {
      words_ = copy;
    } else {
      for (std::size_t i = 0; i < copy.size(); ++i) {
        // relaxed: pairs with the relaxed loads above; ordered by the version lock's fences.
        std::atomic_ref(words_[i]).store(copy[i], std::memory_order_relaxed);
      }
    }
  }

 private:
  words words_;
};

}  // namespace elidex::internal
