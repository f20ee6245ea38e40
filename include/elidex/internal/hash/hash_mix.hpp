// The default hash function of hash_map.
//
//   std::uint64_t h = default_hash<std::uint64_t>{}(42);
//   std::uint64_t g = default_hash<std::string>{}("forty-two");
//
// Every bit of the hash depends on every bit of the key. The hash has no secret, so an adversary
// who chooses the keys can find keys that collide.
//
// Thread-safety: all of it.
// Errors: none.
//
// Implementation notes
// A table of 2^n buckets uses the lowest n bits, and the highest 8 as a fingerprint. So the hashes
// of keys that lie close together, or are multiples of one number, must look random. Integers:
// multiply, and fold the product's high half into its low half, twice. Strings: the same for 16
// bytes at a time.
// Source: the folded product is that of Wang Yi's wyhash. The constants are the first digits of the
// fractions of pi and e, made odd.
#pragma once

#include <concepts>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "elidex/internal/tree/codec.hpp"

namespace elidex::internal {

inline constexpr std::uint64_t hash_factor_1 = 0x243F'6A88'85A3'08D3u;
inline constexpr std::uint64_t hash_factor_2 = 0xB7E1'5162'8AED'2A6Bu;

// The two halves of the product of two words, xored.
constexpr std::uint64_t folded_product(std::uint64_t a, std::uint64_t b) noexcept {
#if defined(__SIZEOF_INT128__)
  __extension__ using two_words = unsigned __int128;
  const two_words product = static_cast<two_words>(a) * b;
  return static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64U);
#else
  constexpr std::uint64_t low_half = 0xFFFF'FFFFu;
  const std::uint64_t low = (a & low_half) * (b & low_half);
  const std::uint64_t middle_1 = (a >> 32U) * (b & low_half) + (low >> 32U);
  const std::uint64_t middle_2 = (a & low_half) * (b >> 32U) + (middle_1 & low_half);
  const std::uint64_t high = (a >> 32U) * (b >> 32U) + (middle_1 >> 32U) + (middle_2 >> 32U);
  return (a * b) ^ high;
#endif
}

inline std::uint64_t some_bytes(const char* from, std::size_t count) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, from, count);
  return word;
}

template <class Key>
struct default_hash;

template <std::integral Key>
struct default_hash<Key> {
  std::uint64_t operator()(Key key) const noexcept {
    using unsigned_key =
        std::make_unsigned_t<std::conditional_t<std::same_as<Key, bool>, std::uint8_t, Key>>;
    const auto word = static_cast<std::uint64_t>(static_cast<unsigned_key>(key));
    return folded_product(folded_product(word ^ hash_factor_2, hash_factor_1), hash_factor_2);
  }
};

template <>
struct default_hash<std::string> {
  std::uint64_t operator()(std::string_view key) const noexcept {
    std::uint64_t h = key.size() ^ hash_factor_2;
    const char* at = key.data();
    std::size_t left = key.size();
    for (; left > 16; left -= 16, at += 16) {
      h = folded_product(some_bytes(at, 8) ^ h, some_bytes(at + 8, 8) ^ hash_factor_1);
    }
    // 0 to 16 bytes are left. An empty view may have no address.
    const std::uint64_t first = left == 0 ? 0 : some_bytes(at, left < 8 ? left : 8);
    const std::uint64_t last = left <= 8 ? 0 : some_bytes(at + 8, left - 8);
    h = folded_product(first ^ h, last ^ hash_factor_1);
    return folded_product(h ^ hash_factor_1, hash_factor_2);
  }
};

template <std::size_t Words>
struct default_hash<wide_key<Words>> {
  std::uint64_t operator()(const wide_key<Words>& key) const noexcept {
    std::uint64_t h = Words ^ hash_factor_2;
    for (const std::uint64_t word : key.words) h = folded_product(word ^ h, hash_factor_1);
    return folded_product(h ^ hash_factor_1, hash_factor_2);
  }
};

}  // namespace elidex::internal
