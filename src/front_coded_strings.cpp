#include "elidex/internal/column/front_coded_strings.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace elidex::internal {
namespace {

constexpr std::size_t block_strings = front_coded_strings::block_strings;
constexpr std::uint32_t narrow_max = 255;

const unsigned char* bytes_of(std::string_view s) noexcept {
  return reinterpret_cast<const unsigned char*>(s.data());
}
const char* chars_at(const unsigned char* bytes) noexcept {
  return reinterpret_cast<const char*>(bytes);
}

// Returns how many of the first `count` bytes are equal.
std::size_t shared_length(const unsigned char* a, const unsigned char* b,
                          std::size_t count) noexcept {
  std::size_t same = 0;
  if constexpr (std::endian::native == std::endian::little) {
    while (count - same >= sizeof(std::uint64_t)) {
      std::uint64_t some_a;
      std::uint64_t some_b;
      std::memcpy(&some_a, a + same, sizeof some_a);
      std::memcpy(&some_b, b + same, sizeof some_b);
      const std::uint64_t differing = some_a ^ some_b;
      if (differing != 0) return same + static_cast<std::size_t>(std::countr_zero(differing)) / 8;
      same += sizeof some_a;
    }
  }
  while (same < count && a[same] == b[same]) ++same;
  return same;
}

std::size_t shared_length(std::string_view a, std::string_view b) noexcept {
  return shared_length(bytes_of(a), bytes_of(b), std::min(a.size(), b.size()));
}

// Returns the bytes from `skipped` on as a number, with zeros after the end. A lesser number means
// a lesser string. Equal numbers mean nothing.
template <class Key>
Key key_of(std::string_view s, std::size_t skipped) noexcept {
  std::array<unsigned char, sizeof(Key)> bytes{};
  if (s.size() > skipped)
    std::memcpy(bytes.data(), s.data() + skipped, std::min(sizeof(Key), s.size() - skipped));
  Key key = 0;
  for (const unsigned char byte : bytes) key = static_cast<Key>(key << 8 | byte);
  return key;
}

// Returns how many of `count` ascending keys are not greater than `wanted`. No branch depends on a
// key.
template <class Keys, class Key>
std::size_t keys_up_to(const Keys* keys, std::size_t count, Key wanted) noexcept {
  std::size_t from = 0;
  while (count > 1) {
    const std::size_t half = count / 2;
    from = keys[from + half - 1].key <= wanted ? from + half : from;
    count -= half;
  }
  return from + (count == 1 && keys[from].key <= wanted ? 1 : 0);
}

// Returns the last of `count` places with a head that is not greater than the wanted one. The head
// of the first place is not greater. Keys are compared first, and heads if keys are equal.
template <class Keys, class Key, class HeadIsGreater>
std::size_t last_up_to(const Keys* keys, std::size_t count, Key wanted,
                       HeadIsGreater&& head_is_greater) noexcept {
  std::size_t behind = keys_up_to(keys, count, wanted);
  if (behind <= 1) return 0;
  if (keys[behind - 1].key != wanted || !head_is_greater(behind - 1)) return behind - 1;
  std::size_t from = 0;  // its head is not greater
  --behind;              // its head is
  while (from + 1 < behind) {
    const std::size_t middle = from + (behind - from) / 2;
    if (keys[middle].key == wanted && head_is_greater(middle)) {
      behind = middle;
    } else {
      from = middle;
    }
  }
  return from;
}

// The lengths of a block, of one byte each.
class narrow_lengths {
 public:
  static constexpr std::size_t bytes = 2 * block_strings;
  explicit narrow_lengths(const unsigned char* at) noexcept : at_(at) {}
  std::size_t shared(std::size_t i) const noexcept { return at_[i]; }
  std::size_t rest(std::size_t i) const noexcept { return at_[block_strings + i]; }

 private:
  const unsigned char* at_;
};

// Lengths of four bytes each.
class wide_lengths {
 public:
  static constexpr std::size_t bytes = 2 * block_strings * sizeof(std::uint32_t);
  explicit wide_lengths(const unsigned char* at) noexcept : at_(at) {}
  std::size_t shared(std::size_t i) const noexcept { return nth(i); }
  std::size_t rest(std::size_t i) const noexcept { return nth(block_strings + i); }

 private:
  std::size_t nth(std::size_t i) const noexcept {
    std::uint32_t length;
    std::memcpy(&length, at_ + i * sizeof length, sizeof length);
    return length;
  }
  const unsigned char* at_;
};

// Returns how many of the block's `count` strings are less than `wanted` or equal to it. At least
// one is.
template <bool OrEqual, class Lengths>
std::size_t rank_in_block(const unsigned char* block, std::size_t count,
                          std::string_view wanted) noexcept {
  const Lengths lengths(block);
  const unsigned char* const looked_for = bytes_of(wanted);
  const unsigned char* bytes = block + Lengths::bytes;
  // bytes that the predecessor, which is less, has in common with `wanted`
  std::size_t matching = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t shared = lengths.shared(i);
    const std::size_t rest = lengths.rest(i);
    // The string equals its predecessor up to and including the byte that made the predecessor
    // less, or it is greater in a byte in which the predecessor equals `wanted`.
    if (shared > matching) {
      bytes += rest;
      continue;
    }
    if (shared < matching) return i;
    const std::size_t left = wanted.size() - matching;
    const std::size_t both = std::min(rest, left);
    const std::size_t same = shared_length(bytes, looked_for + matching, both);
    if (same < both) {
      if (bytes[same] > looked_for[matching + same]) return i;
    } else if (rest >= left) {
      return rest == left && OrEqual ? i + 1 : i;
    }
    matching += same;
    bytes += rest;
  }
  return count;
}

// Decodes the i-th string of a block from its end to its beginning, so that it writes each byte
// once.
template <class Lengths>
std::string string_in_block(const unsigned char* block, std::size_t i) {
  const Lengths lengths(block);
  const unsigned char* bytes = block + Lengths::bytes;
  for (std::size_t before = 0; before < i; ++before) bytes += lengths.rest(before);
  std::size_t missing = lengths.shared(i);
  std::string made(missing + lengths.rest(i), '\0');
  std::copy_n(bytes, lengths.rest(i), made.begin() + static_cast<std::ptrdiff_t>(missing));
  while (missing > 0) {
    --i;
    bytes -= lengths.rest(i);
    const std::size_t shared = lengths.shared(i);
    if (shared >= missing) continue;
    std::copy_n(bytes, missing - shared, made.begin() + static_cast<std::ptrdiff_t>(shared));
    missing = shared;
  }
  return made;
}

}  // namespace

struct front_coded_strings::block_view {
  const unsigned char* at;
  bool wide;

  std::string_view head() const noexcept {
    if (wide) return {chars_at(at + wide_lengths::bytes), wide_lengths(at).rest(0)};
    return {chars_at(at + narrow_lengths::bytes), narrow_lengths(at).rest(0)};
  }
};

auto front_coded_strings::block_in(const segment& of, std::size_t block) noexcept -> block_view {
  const std::uint32_t position = of.blocks[block].position;
  return {of.bytes.get() + position / 2, position % 2 != 0};
}

auto front_coded_strings::block_at(std::size_t block) const noexcept -> block_view {
  return block_in(segments_[block / segment_blocks], block % segment_blocks);
}

std::string front_coded_strings::get(std::size_t i) const {
  const block_view block = block_at(i / block_strings);
  return block.wide ? string_in_block<wide_lengths>(block.at, i % block_strings)
                    : string_in_block<narrow_lengths>(block.at, i % block_strings);
}

// Returns the last block with a head that is not greater than `wanted`, or the first block.
std::size_t front_coded_strings::block_for(std::string_view wanted) const noexcept {
  const std::string_view first = block_in(segments_.front(), 0).head();
  if (wanted <= first) return 0;
  // No head of a block is less than the first. A string that is greater, and lacks the prefix that
  // all heads share, is greater than all.
  std::size_t chosen = segments_.size() - 1;
  if (chosen > 0 && wanted.substr(0, shared_) == first.substr(0, shared_)) {
    chosen = last_up_to(segments_.data(), segments_.size(), key_of<std::uint64_t>(wanted, shared_),
                        [&](std::size_t i) { return block_in(segments_[i], 0).head() > wanted; });
  }
  const segment& in = segments_[chosen];
  const std::size_t blocks = std::min(
      segment_blocks, (size_ + block_strings - 1) / block_strings - chosen * segment_blocks);
  std::size_t block = blocks - 1;
  if (block > 0 && wanted.substr(0, in.shared) == block_in(in, 0).head().substr(0, in.shared)) {
    block = last_up_to(in.blocks.get(), blocks, key_of<std::uint32_t>(wanted, in.shared),
                       [&](std::size_t i) { return block_in(in, i).head() > wanted; });
  }
  return chosen * segment_blocks + block;
}

template <bool OrEqual>
std::size_t front_coded_strings::rank(std::string_view wanted) const noexcept {
  if (size_ == 0) return 0;
  const std::size_t block = block_for(wanted);
  const block_view view = block_at(block);
  const std::size_t before = block * block_strings;
  const std::size_t count = std::min(block_strings, size_ - before);
  return before + (view.wide ? rank_in_block<OrEqual, wide_lengths>(view.at, count, wanted)
                             : rank_in_block<OrEqual, narrow_lengths>(view.at, count, wanted));
}

std::size_t front_coded_strings::lower_bound(std::string_view wanted) const noexcept {
  return rank<false>(wanted);
}

std::size_t front_coded_strings::upper_bound(std::string_view wanted) const noexcept {
  return rank<true>(wanted);
}

std::size_t front_coded_strings::memory_bytes() const noexcept {
  return sizeof(*this) + segments_.capacity() * sizeof(segment) + allocated_;
}

void front_coded_strings::builder::append(std::string_view next) {
  if (next.size() > string_bytes_max)
    throw std::length_error("elidex: a string is too long for a dictionary");
  std::size_t shared = 0;
  if (made_.size_ > 0) {
    shared = shared_length(last_, next);
    // The first difference decides, or the length.
    if (shared == next.size() ||
        (shared < last_.size() && bytes_of(last_)[shared] > bytes_of(next)[shared])) {
      throw std::invalid_argument("elidex: strings of a dictionary must ascend");
    }
  }
  const std::size_t i = made_.size_ % block_strings;
  if (i == 0 && made_.size_ > 0) end_block();
  if (i == 0) shared = 0;
  block_bytes_.insert(block_bytes_.end(), bytes_of(next) + shared, bytes_of(next) + next.size());
  last_.replace(shared, std::string::npos, next.substr(shared));
  shared_[i] = static_cast<std::uint32_t>(shared);
  rest_[i] = static_cast<std::uint32_t>(next.size() - shared);
  ++made_.size_;
}

void front_coded_strings::builder::end_block() {
  if (places_.size() == segment_blocks) end_segment();
  const bool wide = std::max(std::ranges::max(shared_), std::ranges::max(rest_)) > narrow_max;
  // At most 16 Ki strings of 64 KiB and their lengths: twice the position fits.
  places_.push_back({0, static_cast<std::uint32_t>(segment_bytes_.size() * 2 + (wide ? 1 : 0))});
  for (const auto* lengths : {&shared_, &rest_}) {
    for (const std::uint32_t length : *lengths) {
      if (wide) {
        std::array<unsigned char, sizeof length> bytes;
        std::memcpy(bytes.data(), &length, sizeof length);
        segment_bytes_.insert(segment_bytes_.end(), bytes.begin(), bytes.end());
      } else {
        segment_bytes_.push_back(static_cast<unsigned char>(length));
      }
    }
  }
  segment_bytes_.insert(segment_bytes_.end(), block_bytes_.begin(), block_bytes_.end());
  block_bytes_.clear();
  shared_.fill(0);
  rest_.fill(0);
}

void front_coded_strings::builder::end_segment() {
  segment made;
  made.bytes = std::make_unique_for_overwrite<unsigned char[]>(segment_bytes_.size());
  std::ranges::copy(segment_bytes_, made.bytes.get());
  made.blocks = std::make_unique_for_overwrite<block_place[]>(places_.size());
  std::ranges::copy(places_, made.blocks.get());
  made.shared = shared_length(block_in(made, 0).head(), block_in(made, places_.size() - 1).head());
  for (std::size_t i = 0; i < places_.size(); ++i) {
    made.blocks[i].key = key_of<std::uint32_t>(block_in(made, i).head(), made.shared);
  }
  made_.segments_.push_back(std::move(made));
  made_.allocated_ += segment_bytes_.size() + places_.size() * sizeof(block_place);
  segment_bytes_.clear();
  places_.clear();
}

front_coded_strings front_coded_strings::builder::finish() && {
  if (made_.size_ > 0) {
    end_block();
    end_segment();
    auto& segments = made_.segments_;
    made_.shared_ =
        shared_length(block_in(segments.front(), 0).head(), block_in(segments.back(), 0).head());
    for (segment& each : segments)
      each.key = key_of<std::uint64_t>(block_in(each, 0).head(), made_.shared_);
    segments.shrink_to_fit();
  }
  return std::move(made_);
}

front_coded_strings::cursor::cursor(const front_coded_strings& of, std::size_t from)
    : of_(&of), at_(from) {
  if (!valid()) return;
  at_ -= from % block_strings;
  read();
  while (at_ < from) next();
}

void front_coded_strings::cursor::next() {
  ++at_;
  if (valid()) read();
}

void front_coded_strings::cursor::read() {
  const std::size_t i = at_ % block_strings;
  if (i == 0) {
    const block_view block = of_->block_at(at_ / block_strings);
    lengths_ = block.at;
    wide_ = block.wide;
    rest_ = block.at + (wide_ ? wide_lengths::bytes : narrow_lengths::bytes);
  }
  const std::size_t shared =
      wide_ ? wide_lengths(lengths_).shared(i) : narrow_lengths(lengths_).shared(i);
  const std::size_t rest =
      wide_ ? wide_lengths(lengths_).rest(i) : narrow_lengths(lengths_).rest(i);
  value_.replace(shared, std::string::npos, chars_at(rest_), rest);
  rest_ += rest;
}

}  // namespace elidex::internal
