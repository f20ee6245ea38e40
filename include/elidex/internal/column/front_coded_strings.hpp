// The main's dictionary of strings: ascending, different byte strings in little memory. Neighbours
// share their beginnings.
//
//   front_coded_strings::builder made;
//   for (std::string_view name : sorted) made.append(name);
//   const front_coded_strings names = std::move(made).finish();
//   names.get(7);                                                        // the eighth
//   names.lower_bound("b");                                              // how many are less
//   for (front_coded_strings::cursor at(names, 3); at.valid(); at.next()) use(at.value());
//
// Thread-safety: immutable once made. A cursor and a builder are for one thread each.
// Lifetime: a moved-from object may only be destroyed or assigned to. A cursor must not outlive its
// dictionary, or a move of it.
// Errors: the builder throws std::invalid_argument for a string that is not greater than the one
// before, std::length_error for one over string_bytes_max, and std::bad_alloc. After std::bad_alloc
// the builder may only be destroyed. get() and cursors throw std::bad_alloc.
//
// Implementation notes
// Layout of a block. A block has 16 strings. Its first string, the head, is stored whole. For each
// other string it stores the length of the prefix shared with its predecessor, and the rest:
//
//   shared[16]   rest[16]   the bytes of the head, of the first rest, of the second one, ...
//
// The lengths are bytes. They are four bytes each in a block with a length over 255. They lie
// together so that a search reads them without waiting for the bytes of the strings, most of which
// it does not need. From the length that the wanted string shares with a predecessor, the shared
// lengths alone tell where to compare next. The last block is filled up with lengths of zero.
//
// Layout of segments. 1024 blocks are a segment, allocated when its size is known. So nothing moves
// when a dictionary grows. A segment has, for each block, the position and four bytes of the head:
// those behind the common prefix of all heads of the segment. The dictionary has eight bytes for
// each segment: those behind the common prefix of all first heads. So a binary search reads heads
// only where these bytes are equal.
//
// (Front coding in blocks is old: Witten, Moffat and Bell, "Managing Gigabytes", 1999, section 4.1.
// The layout is ours.)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace elidex::internal {

class front_coded_strings {
 public:
  static constexpr std::size_t block_strings = 16;
  static constexpr std::size_t string_bytes_max = 65'536;

  class builder;
  class cursor;

  front_coded_strings() = default;

  std::size_t size() const noexcept { return size_; }
  // Requires i < size().
  std::string get(std::size_t i) const;
  // The number of the first string that is not less than `wanted` (lower_bound), or is greater
  // (upper_bound). size() if there is none. Bytes compare unsigned.
  std::size_t lower_bound(std::string_view wanted) const noexcept;
  std::size_t upper_bound(std::string_view wanted) const noexcept;
  std::size_t memory_bytes() const noexcept;

 private:
  static constexpr std::size_t segment_blocks = 1024;

  struct block_place {
    std::uint32_t key;  // of the head
    // its place in the segment's bytes, times two, plus one if its lengths take four bytes each
    std::uint32_t position;
  };
  struct segment {
    std::unique_ptr<block_place[]> blocks;
    std::unique_ptr<unsigned char[]> bytes;
    std::uint64_t key = 0;   // of the first head
    std::size_t shared = 0;  // by all heads
  };
  struct block_view;

  block_view block_at(std::size_t block) const noexcept;
  static block_view block_in(const segment& of, std::size_t block) noexcept;
  std::size_t block_for(std::string_view wanted) const noexcept;
  template <bool OrEqual>
  std::size_t rank(std::string_view wanted) const noexcept;

  std::vector<segment> segments_;
  std::size_t size_ = 0;
  std::size_t shared_ = 0;     // by the segments' first heads
  std::size_t allocated_ = 0;  // bytes, for the segments' content
};

class front_coded_strings::builder {
 public:
  // `next` must be greater than the string before.
  void append(std::string_view next);
  std::size_t size() const noexcept { return made_.size_; }
  front_coded_strings finish() &&;

 private:
  void end_block();
  void end_segment();

  front_coded_strings made_;
  std::string last_;
  std::array<std::uint32_t, block_strings> shared_{};  // of the block under construction
  std::array<std::uint32_t, block_strings> rest_{};
  std::vector<unsigned char> block_bytes_;
  std::vector<unsigned char> segment_bytes_;  // of the full blocks
  std::vector<block_place> places_;
};

// Moves upwards. A value is valid until the next call of next().
class front_coded_strings::cursor {
 public:
  // Requires from <= of.size().
  cursor(const front_coded_strings& of, std::size_t from);
  bool valid() const noexcept { return at_ < of_->size_; }
  // Both need valid().
  std::string_view value() const noexcept { return value_; }
  void next();

 private:
  void read();

  const front_coded_strings* of_;
  std::size_t at_;
  const unsigned char* lengths_ = nullptr;  // of the block
  const unsigned char* rest_ = nullptr;     // the bytes of the next string
  bool wide_ = false;
  std::string value_;
};

}  // namespace elidex::internal
