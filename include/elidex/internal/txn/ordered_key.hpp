// Encodes keys of several parts as strings that sort in the order of the parts.
//
//   std::string key = ordered_key().add(std::int64_t{-5}).add("Ada").add_descending(7u).take();
//   // the keys that begin with a part are a range, up to end_of_prefix()
//   key.starts_with(ordered_key().add(std::int64_t{-5}).take());
//
// Thread-safety: values.
// Errors: std::bad_alloc.
//
// Implementation notes
//   integer  A byte 01, then eight bytes, the highest first. Signed integers have their sign bit
//            inverted.
//   double   The same, of the number that key_format.hpp makes of it.
//   string   Its bytes, with 00 FF for a zero byte, then two zero bytes as the end. So no string's
//            image is a prefix of another's, and the following parts do not disturb the order.
//   descending  A byte 01, then the part with all bits inverted, without its own byte 01. Inverting
//            two images that are not prefixes of each other inverts their order.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "elidex/internal/tree/key_format.hpp"

namespace elidex::internal {

class ordered_key {
 public:
  // The type is a part of the key: add(5) and add(5u) add different bytes.
  template <std::integral Integer>
    requires(sizeof(Integer) <= sizeof(std::uint64_t))
  ordered_key& add(Integer part) {
    auto image = static_cast<std::uint64_t>(part);  // sign-extends a negative one
    if constexpr (std::is_signed_v<Integer>) image ^= std::uint64_t{1} << 63;
    return add_number(image);
  }
  // -0.0 and 0.0 are one key, and so are all NaNs, which are greater than infinity.
  ordered_key& add(double part) { return add_number(ordered_number<double>::to(part)); }
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
  // A part that sorts in the opposite order: greater values come first.
  template <class Part>
  ordered_key& add_descending(const Part& part) {
    const std::size_t begin = bytes_.size();
    if constexpr (!std::is_arithmetic_v<Part>) bytes_.push_back(first_byte);
    add(part);
    for (std::size_t i = begin + 1; i < bytes_.size(); ++i)
      bytes_[i] = static_cast<char>(~static_cast<unsigned char>(bytes_[i]));
    return *this;
  }

  // Returns the string so far.
  const std::string& bytes() const noexcept { return bytes_; }
  // Moves the string out.
  std::string take() noexcept { return std::move(bytes_); }

 private:
  // So that some string lies after every prefix.
  static constexpr char first_byte = '\x01';
  ordered_key& add_number(std::uint64_t image) {
    bytes_.push_back(first_byte);
    for (int shift = 56; shift >= 0; shift -= 8)
      bytes_.push_back(static_cast<char>(image >> shift & 0xFF));
    return *this;
  }

  std::string bytes_;
};

// Returns a string that is greater than all strings that begin with `prefix`. The prefix must have
// at least one part, and whole parts only.
inline std::string end_of_prefix(std::string_view prefix) {
  std::string end(prefix);
  while (end.back() == '\xFF') end.pop_back();
  end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return end;
}

// Returns the string that add() encoded as these bytes.
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
