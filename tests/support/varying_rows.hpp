#pragma once
// Rows of varying length whose content shows whether they are whole.
//
//   t.insert(documents, 7, document::of(7, 5'000));
//   EXPECT_TRUE(t.get(documents, 7)->is_whole());

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "support/databases.hpp"

namespace elidex::testing {

struct document {
  std::uint64_t seed = 0;
  std::uint64_t length = 0;
  std::string text;

  static document of(std::uint64_t seed, std::size_t length) {
    document made{.seed = seed, .length = length, .text = std::string(length, '\0')};
    for (std::size_t i = 0; i < length; ++i) made.text[i] = character(seed, i);
    return made;
  }
  bool is_whole() const {
    if (text.size() != length) return false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] != character(seed, i)) return false;
    }
    return true;
  }
  friend bool operator==(const document&, const document&) = default;

  // The bytes of a row without its text.
  static constexpr std::size_t fixed_bytes = 8 + 8 + 4;

 private:
  static char character(std::uint64_t seed, std::size_t at) {
    return static_cast<char>('a' + (seed * 7 + at) % 26);
  }
};
ELIDEX_ROW(document, seed, length, text);

// Lengths of texts around the largest room of a record.
inline constexpr std::size_t longest_in_room =
    record_memory::room_max * sizeof(std::uint64_t) - document::fixed_bytes;
inline constexpr std::array<std::size_t, 8> lengths_around_room{
    0, 3, 40, 200, longest_in_room, longest_in_room + 1, 5'000, 100'000};

}  // namespace elidex::testing
