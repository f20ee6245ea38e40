// Keys of several parts, as strings that are in the order of the parts.
//
//   std::string key = ordered_key().add(std::int64_t{-5}).add("Ada").add(7u).take();
//   // so a part's keys are a range, up to end_of_prefix()
//   key.starts_with(ordered_key().add(std::int64_t{-5}).take());
//
// Integers: a byte 01, then eight bytes, the highest first, signed ones with their sign turned.
// Strings: their bytes, a zero byte as two (00 FF), and two zero bytes as the end, so that no
// string's image begins another's and what follows does not disturb the order.
//
// Thread-safety: values. Errors: std::bad_alloc.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace elidex::internal {

class ordered_key {
 public:
  template <std::integral Integer>
  ordered_key& add(Integer part) {
    auto image = static_cast<std::uint64_t>(part);  // of a negative one: with ones in front
    if constexpr (std::is_signed_v<Integer>) image ^= std::uint64_t{1} << 63;
    bytes_.push_back('\x01');  // so that something lies behind every prefix
    for (int shift = 56; shift >= 0; shift -= 8)
      bytes_.push_back(static_cast<char>(image >> shift & 0xFF));
    return *this;
  }
  ordered_key& add(std::string_view part) {
    for (const char byte : part) {
      bytes_.push_back(byte);
      if (byte == '\0') bytes_.push_back('\xFF');
    }
    bytes_.append(2, '\0');
    return *this;
  }
  ordered_key& add(const char* part) { return add(std::string_view(part)); }
  ordered_key& add(const std::string& part) { return add(std::string_view(part)); }

  const std::string& bytes() const noexcept { return bytes_; }
  std::string take() noexcept { return std::move(bytes_); }

 private:
  std::string bytes_;
};

// Behind all strings that begin with this, which is not empty and has whole parts.
inline std::string end_of_prefix(std::string_view prefix) {
  std::string end(prefix);
  while (end.back() == '\xFF') end.pop_back();
  end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return end;
}

// The string whose image, as add() makes it, these bytes are.
inline std::string string_of_image(std::string_view image) {
  std::string part;
  image.remove_suffix(2);
  for (std::size_t i = 0; i < image.size(); ++i) {
    part.push_back(image[i]);
    if (image[i] == '\0') ++i;
  }
  return part;
}

}  // namespace elidex::internal
