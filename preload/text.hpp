// Writes text to a file descriptor without malloc and stdio, as a signal handler must.
//
//   text_buffer out(2);
//   out << "calls " << right(count, 12) << '\n';  // written when full, by flush(), and at the end
//
// Thread-safety: belongs to one thread. errno may change.
#pragma once

#include <errno.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace elidex::preload {

// A short text in place.
class short_text {
 public:
  std::string_view view() const noexcept { return {chars_.data(), length_}; }
  short_text& operator<<(std::string_view text) noexcept {
    for (const char c : text) *this << c;
    return *this;
  }
  short_text& operator<<(char c) noexcept {
    if (length_ < chars_.size()) chars_[length_++] = c;
    return *this;
  }
  short_text& operator<<(std::uint64_t number) noexcept {
    std::array<char, 20> digits;
    std::size_t at = digits.size();
    do {
      digits[--at] = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    return *this << std::string_view(digits.data() + at, digits.size() - at);
  }

 private:
  std::size_t length_ = 0;
  std::array<char, 48> chars_;
};

inline short_text decimal(std::uint64_t number) noexcept {
  short_text text;
  return text << number;
}

inline short_text hexadecimal(std::uint64_t number) noexcept {
  short_text text;
  text << "0x";
  int shift = 60;
  while (shift > 0 && (number >> shift & 15) == 0) shift -= 4;
  for (; shift >= 0; shift -= 4) text << "0123456789abcdef"[number >> shift & 15];
  return text;
}

// Three digits and a unit: "12 ns", "4.56 us", "78.9 ms", "123 s".
inline short_text duration(std::uint64_t ns) noexcept {
  constexpr std::array<std::string_view, 4> units = {" ns", " us", " ms", " s"};
  std::size_t unit = 0;
  std::uint64_t hundredths = ns * 100;
  while (hundredths >= 99'950 && unit + 1 < units.size()) {
    hundredths = (hundredths + 500) / 1000;
    ++unit;
  }
  short_text text;
  if (unit == 0 || hundredths >= 9'995) {
    text << (hundredths + 50) / 100;
  } else if (hundredths >= 1000) {
    text << (hundredths + 5) / 100 << '.' << (hundredths + 5) / 10 % 10;
  } else {
    text << hundredths / 100 << '.' << hundredths / 10 % 10 << hundredths % 10;
  }
  return text << units[unit];
}

// Percent with one decimal.
inline short_text percent(std::uint64_t part, std::uint64_t whole) noexcept {
  const std::uint64_t tenths = whole == 0 ? 0 : (part * 1000 + whole / 2) / whole;
  short_text text;
  return text << tenths / 10 << '.' << tenths % 10 << " %";
}

class text_buffer {
 public:
  explicit text_buffer(int descriptor) noexcept : descriptor_(descriptor) {}
  text_buffer(const text_buffer&) = delete;
  text_buffer& operator=(const text_buffer&) = delete;

  text_buffer& operator<<(char c) noexcept {
    if (length_ == chars_.size()) flush();
    chars_[length_++] = c;
    return *this;
  }
  text_buffer& operator<<(std::string_view text) noexcept {
    for (const char c : text) *this << c;
    return *this;
  }
  text_buffer& operator<<(const short_text& text) noexcept { return *this << text.view(); }

  text_buffer& right(std::string_view text, std::size_t width) noexcept {
    for (std::size_t i = text.size(); i < width; ++i) *this << ' ';
    return *this << text;
  }
  text_buffer& right(const short_text& text, std::size_t width) noexcept {
    return right(text.view(), width);
  }
  text_buffer& left(std::string_view text, std::size_t width) noexcept {
    *this << text;
    for (std::size_t i = text.size(); i < width; ++i) *this << ' ';
    return *this;
  }

  void flush() noexcept {
    for (std::size_t done = 0; done < length_;) {
      const ssize_t written = ::write(descriptor_, chars_.data() + done, length_ - done);
      if (written > 0) {
        done += static_cast<std::size_t>(written);
      } else if (written == 0 || errno != EINTR) {
        failed_ = true;
        break;
      }
    }
    length_ = 0;
  }
  // Something could not be written.
  bool failed() const noexcept { return failed_; }

 private:
  int descriptor_;
  bool failed_ = false;
  std::size_t length_ = 0;
  std::array<char, 1024> chars_;  // a signal's stack may be small
};

}  // namespace elidex::preload
