// The packed form of a row with columns (schema.hpp, row_members.hpp): its bytes, which the table
// keeps in words.
//
//   fixed part   for each column in order: a number in its own size, or four bytes with the offset
//                at which a text ends, counted from the first byte behind the nulls
//   nulls        a bit for each nullable column, from the lowest bit up; padded to whole bytes
//   texts        the bytes of each text, without gaps
//   zeros        up to the next multiple of eight bytes
//
// A null number is 0, a null text is empty.
//
//   packed_layout layout;
//   const packed_place a = layout.add(type, nullable);   // for each column, in order
//   layout.finish();                                     // layout.fixed_bytes
//
// Thread-safety: values.
// Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "elidex/internal/txn/record.hpp"

namespace elidex::internal {

// The types of columns. integer: std::int64_t. real: double. text: characters. bytes: any bytes.
enum class column_type : std::uint8_t {
  integer,
  real,
  text,
  bytes,
  boolean,
  int8,
  int16,
  int32,
  uint8,
  uint16,
  uint32,
  uint64,
  float32,
};

constexpr bool is_text(column_type type) noexcept {
  return type == column_type::text || type == column_type::bytes;
}
// Whether values are whole numbers. A boolean is 0 or 1.
constexpr bool is_integer(column_type type) noexcept {
  return !is_text(type) && type != column_type::real && type != column_type::float32;
}
constexpr bool is_signed_integer(column_type type) noexcept {
  return type == column_type::integer || type == column_type::int8 || type == column_type::int16 ||
         type == column_type::int32;
}
// The bytes of a number, or of a text's end.
constexpr std::size_t packed_bytes(column_type type) noexcept {
  switch (type) {
    case column_type::integer:
    case column_type::uint64:
    case column_type::real:
      return 8;
    case column_type::boolean:
    case column_type::int8:
    case column_type::uint8:
      return 1;
    case column_type::int16:
    case column_type::uint16:
      return 2;
    default:
      return 4;
  }
}

// Where a column is.
struct packed_place {
  static constexpr std::size_t not_nullable = SIZE_MAX;
  static constexpr std::size_t no_text = SIZE_MAX;
  std::size_t offset = 0;
  std::size_t null_bit = not_nullable;
  std::size_t end_of_text_before = no_text;  // an offset
};

struct packed_layout {
  std::size_t nulls_at = 0;
  std::size_t nulls = 0;        // how many columns may be null
  std::size_t fixed_bytes = 0;  // with the nulls
  std::size_t last_text = packed_place::no_text;

  constexpr packed_place add(column_type type, bool nullable) noexcept {
    packed_place place{.offset = nulls_at, .end_of_text_before = last_text};
    if (is_text(type)) last_text = nulls_at;
    if (nullable) place.null_bit = nulls++;
    nulls_at += packed_bytes(type);
    return place;
  }
  constexpr void finish() noexcept { fixed_bytes = nulls_at + (nulls + 7) / 8; }
  constexpr bool rows_vary() const noexcept { return last_text != packed_place::no_text; }
};

// The largest row of varying length, and the largest row of a table whose rows have one size.
inline constexpr std::size_t varying_row_bytes_max = std::size_t{16} << 20;
// Chosen: records lie in a pool's blocks, and a chunk then has at least 64 blocks.
inline constexpr std::size_t row_bytes_max = std::size_t{64} << 10;

// Reads of an image.
class packed_reader {
 public:
  packed_reader(const packed_layout& layout, std::span<const std::uint64_t> words) noexcept
      : layout_(layout), bytes_(reinterpret_cast<const std::byte*>(words.data())) {}

  template <class Number>
  Number number(const packed_place& at) const noexcept {
    Number value;
    std::memcpy(&value, bytes_ + at.offset, sizeof value);
    return value;
  }
  std::string_view text(const packed_place& at) const noexcept {
    const std::size_t begin = begin_of(at);
    return {reinterpret_cast<const char*>(bytes_ + layout_.fixed_bytes + begin),
            number<std::uint32_t>(at) - begin};
  }
  bool is_null(const packed_place& at) const noexcept {
    if (at.null_bit == packed_place::not_nullable) return false;
    return (std::to_integer<unsigned>(bytes_[layout_.nulls_at + at.null_bit / 8]) >>
                (at.null_bit % 8) &
            1U) != 0;
  }
  std::size_t begin_of(const packed_place& at) const noexcept {
    if (at.end_of_text_before == packed_place::no_text) return 0;
    std::uint32_t end = 0;
    std::memcpy(&end, bytes_ + at.end_of_text_before, sizeof end);
    return end;
  }

 private:
  const packed_layout& layout_;
  const std::byte* bytes_;
};

// Writes a row. The caller must zero the words first, and write the texts in column order.
class packed_writer {
 public:
  packed_writer(const packed_layout& layout, std::span<std::uint64_t> words) noexcept
      : layout_(layout), bytes_(reinterpret_cast<std::byte*>(words.data())) {}

  template <class Number>
  void number(const packed_place& at, Number value) noexcept {
    std::memcpy(bytes_ + at.offset, &value, sizeof value);
  }
  void text(const packed_place& at, std::string_view value) noexcept {
    if (!value.empty())
      std::memcpy(bytes_ + layout_.fixed_bytes + texts_, value.data(), value.size());
    texts_ += static_cast<std::uint32_t>(value.size());
    number(at, texts_);
  }
  void null(const packed_place& at) noexcept {
    bytes_[layout_.nulls_at + at.null_bit / 8] |= std::byte{1} << (at.null_bit % 8);
  }

 private:
  const packed_layout& layout_;
  std::byte* bytes_;
  std::uint32_t texts_ = 0;  // bytes written
};

}  // namespace elidex::internal
