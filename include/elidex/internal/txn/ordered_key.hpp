// Encodes keys of several parts as strings that sort in the order of the parts.
//
//   std::string key = ordered_key().add(std::int64_t{-5}).add("Ada").add(7u).take();
//   // the keys that begin with a part are a range, up to end_of_prefix()
//   key.starts_with(ordered_key().add(std::int64_t{-5}).take());
//
// Thread-safety: values.
// Errors: std::bad_alloc.
//
// Implementation notes
//   integer  A byte 01, then eight bytes, the highest first. Signed integers have their sign bit
//            inverted.
//   string   Its bytes, with 00 FF for a zero byte, then two zero bytes as the end. So no string's
//            image is a prefix of another's, and the following parts do not disturb the order.
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
  // The type is a part of the key: add(5) and add(5u) add different bytes.
  template <std::integral Integer>
    requires(sizeof(Integer) <= sizeof(std::uint64_t))
  ordered_key& add(Integer part) {
    auto image = static_cast<std::uint64_t>(part);  // sign-extends a negative one
    if constexpr (std::is_signed_v<Integer>) image ^= std::uint64_t{1} << 63;
    bytes_.push_back('\x01');  // so that some string lies after every prefix
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

  // Returns the string so far.
  const std::string& bytes() const noexcept { return bytes_; }
  // Moves the string out.
  std::string take() noexcept { return std::move(bytes_); }

 private:
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
