// How nodes store keys and values in their slots. Nodes that hold strings themselves
// (slotted_node.hpp) store values in the same way.
//
//   key type       in the API         in a slot
//   integer        by value           the integer
//   wide_key       by value           the words
//   std::string    std::string_view   the head: 8 bytes of the key as a big-endian number
//                                     the tail, up to 8 bytes:   the first 7 and the length
//                                     the tail, longer strings:  the address of a blob of all bytes
//   value type     in the API         in a slot
//   trivial        const T&           the value
//   std::string    std::string_view   the address of a blob
//   others         std::unique_ptr&   the address of an object
//
// No thread changes such an object while a slot has its address.
//
// Most comparisons of strings end at the head, without leaving the node. Byte strings compare as
// unsigned bytes. A prefix comes before what it is a prefix of. NUL is a byte like any other.
//
// Errors: std::invalid_argument for a key of more than 64 KiB or a value of more than 2^32 - 1
// bytes. std::bad_alloc where a blob or a std::string is made.
//
// Implementation notes
// A node of strings has a prefix (key_prefix.hpp), which all of its keys have in common. The heads
// in its slots are the 8 bytes behind the prefix. put_in() gives a slot its head for a node.
// taken_out() gives a slot its head for any other place. The head of an inline key then holds the
// key again. The head of a blob then means nothing. A prefix is never 8 bytes long. So the last
// byte of an inline key of 8 bytes is always in its head.
//
// `compare(slot, search_key, ..., still_valid)` may have to follow an address from a slot that was
// read while a writer changed it. It calls still_valid() first. For a torn slot it returns `torn`
// and follows no address.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "elidex/internal/memory/memory_source.hpp"

namespace elidex::internal {

// An immutable byte string outside the nodes, for keys and values of any length. A blob is written
// before any node refers to it, and freed through the container's retire list. A reader that found
// its address in a validated node may read it as long as the reader is pinned.
class blob {
 public:
  static blob* make(std::string_view bytes, memory_source& source) {
    blob* const made = make_room(bytes.size(), source);
    made->fill(bytes);
    return made;
  }
  // A blob of `size` bytes that are not written yet.
  static blob* make_room(std::size_t size, memory_source& source) {
    return ::new (source.obtain(sizeof(blob) + size, alignof(blob)))
        blob(static_cast<std::uint32_t>(size));
  }
  // The same in memory of bytes_for(size) bytes that the caller owns. Such a blob must not be
  // destroyed.
  static blob* make_room_at(void* memory, std::size_t size) noexcept {
    return ::new (memory) blob(static_cast<std::uint32_t>(size));
  }
  // Rounded up to a multiple of the alignment.
  static constexpr std::size_t bytes_for(std::size_t size) noexcept {
    return (sizeof(blob) + size + alignof(std::uint32_t) - 1) / alignof(std::uint32_t) *
           alignof(std::uint32_t);
  }
  // Writes a blob that no reader knows yet. The blob must have exactly as many bytes.
  void fill(std::string_view bytes) noexcept {
    // an empty view may have no address
    if (!bytes.empty()) std::memcpy(data(), bytes.data(), bytes.size());
  }
  // Null is none.
  static void destroy(blob* b, memory_source& source) noexcept {
    if (b != nullptr) source.give_back(b, sizeof(blob) + b->size(), alignof(blob));
  }

  std::string_view view() const noexcept {
    return {reinterpret_cast<const char*>(this + 1), size_};
  }
  std::size_t size() const noexcept { return size_; }

  // The bytes that the system's allocator uses for a blob: 16-byte granules with an 8-byte header,
  // at least two of them, as in glibc.
  static constexpr std::size_t footprint_bytes(std::size_t size) noexcept {
    return std::max<std::size_t>((sizeof(blob) + size + 8 + 15) / 16 * 16, 32);
  }

 private:
  explicit blob(std::uint32_t size) noexcept : size_(size) {}
  char* data() noexcept { return reinterpret_cast<char*>(this + 1); }

  std::uint32_t size_;
};

// A store of blobs that allocates and frees each of them separately.
struct heap_blobs {
  static constexpr bool frees_all_itself = false;
  static blob* make(std::string_view bytes, memory_source& source) {
    return blob::make(bytes, source);
  }
  static blob* make_room(std::size_t size, memory_source& source) {
    return blob::make_room(size, source);
  }
  static void destroy(blob* b, memory_source& source) noexcept { blob::destroy(b, source); }
  static constexpr std::size_t footprint_bytes(std::size_t size) noexcept {
    return blob::footprint_bytes(size);
  }
  static constexpr std::size_t memory_bytes() noexcept { return 0; }
};

// The integers that keys can be. __int128 is integral with GNU extensions only.
template <class T>
concept integer_key =
    std::integral<T> && !std::same_as<T, bool> && sizeof(T) <= sizeof(std::uint64_t);

// A key of a fixed number of bytes, more than an integer has: big-endian words, the first one
// first. Zeros fill the last word.
template <std::size_t Words>
struct wide_key {
  std::array<std::uint64_t, Words> words;
  friend constexpr auto operator<=>(const wide_key&, const wide_key&) = default;
};
inline constexpr std::size_t wide_key_bytes_max = 32;

template <class T>
inline constexpr bool is_wide_key = false;
template <std::size_t Words>
inline constexpr bool is_wide_key<wide_key<Words>> = true;

// The values and rows that are copied as bytes into memory that has one already.
template <class T>
concept plain_value = std::is_trivially_copyable_v<T> && std::semiregular<T>;

// The longest key, in bytes. A longer one throws std::invalid_argument.
inline constexpr std::size_t key_bytes_max = std::size_t{64} << 10;

enum class comparison : std::uint8_t { less, equal, greater, torn };

template <class Key>
struct key_codec;

template <class Key>
  requires std::integral<Key> || is_wide_key<Key>
struct key_codec<Key> {
  using blob_store = heap_blobs;  // never used
  using argument = Key;
  using slot = Key;
  using search_key = Key;
  static constexpr bool owns_blobs = false;
  static constexpr bool compares_in_place = true;  // slots order by operator<
  static constexpr bool has_prefixes = false;

  static search_key search_key_of(argument key) noexcept { return key; }
  static search_key search_key_of_slot(slot s) noexcept { return s; }
  static bool needs_blob(argument) noexcept { return false; }
  static slot slot_of(argument key, blob*) noexcept { return key; }
  static blob* blob_of(slot) noexcept { return nullptr; }
  static slot put_in(slot s, unsigned /*prefix*/) noexcept { return s; }
  static slot taken_out(slot s, unsigned /*prefix*/) noexcept { return s; }
  static Key owned(slot s) { return s; }

  // A slot's key in the form that the API passes.
  struct view {
    explicit view(slot s) noexcept : key(s) {}
    argument get() const noexcept { return key; }
    Key key;
  };

  // The separator of two leaves: a key k with left < k <= right.
  struct separator {
    separator(slot, slot right) noexcept : key(right) {}
    argument get() const noexcept { return key; }
    slot key;
  };
};

template <>
struct key_codec<std::string> {
  static constexpr std::size_t inline_bytes = 8;
  using blob_store = heap_blobs;

  using argument = std::string_view;
  struct slot {
    std::uint64_t head;
    // odd: the first 7 bytes, then twice the length plus one; even: the blob's address
    std::uint64_t tail;
  };
  struct search_key {
    std::uint64_t head;
    std::size_t size;
    const char* data;  // read only if there are more than inline_bytes
  };
  static constexpr bool owns_blobs = true;
  static constexpr bool compares_in_place = false;
  static constexpr bool has_prefixes = true;

  static void check(argument key) {
    if (key.size() > key_bytes_max)
      throw std::invalid_argument("elidex: a key may have at most 65536 bytes");
  }
  static search_key search_key_of(argument key) {
    check(key);
    return search_key_of_stored(key);
  }
  // The same for a key that is stored already, so that its length is known to be allowed.
  static search_key search_key_of_stored(argument key) noexcept {
    return {head_of(key), key.size(), key.data()};
  }
  // The slot must have been taken out.
  static search_key search_key_of_slot(slot s) noexcept {
    if (is_inline(s)) return {s.head, inline_size(s), nullptr};
    return search_key_of_stored(blob_of(s)->view());
  }
  static bool needs_blob(argument key) noexcept { return key.size() > inline_bytes; }
  static slot slot_of(argument key, blob* b) noexcept {
    const std::uint64_t head = head_of(key);
    if (!needs_blob(key)) return {head, (head & ~length_byte) | (2 * key.size() + 1)};
    return {head, reinterpret_cast<std::uintptr_t>(b)};
  }
  // The slot's blob, or null where the key lies in the slot.
  static blob* blob_of(slot s) noexcept {
    return is_inline(s) ? nullptr : reinterpret_cast<blob*>(s.tail);
  }
  static std::string owned(slot s) { return std::string(view(s).get()); }

  // The slot must have been taken out, or made by slot_of().
  static slot put_in(slot s, unsigned prefix) noexcept {
    if (!is_inline(s)) return {head_behind(blob_of(s)->view(), prefix), s.tail};
    return {prefix < inline_bytes ? s.head << 8 * prefix : 0, s.tail};
  }
  static slot taken_out(slot s, unsigned prefix) noexcept {
    if (!is_inline(s)) return s;
    const std::uint64_t last_byte = prefix < inline_bytes ? s.head >> 8 * prefix & length_byte : 0;
    return {(s.tail & ~length_byte) | last_byte, s.tail};
  }

  static std::uint64_t head_behind(const search_key& p, unsigned prefix) noexcept {
    if (p.size <= inline_bytes) return prefix < inline_bytes ? p.head << 8 * prefix : 0;
    return prefix == 0 ? p.head : head_behind(argument(p.data, p.size), prefix);
  }

  // The length of the longest common prefix of two keys.
  static unsigned in_common(argument a, argument b) noexcept {
    const std::size_t shorter = std::min(a.size(), b.size());
    std::size_t common = 0;
    while (common < shorter && a[common] == b[common]) ++common;
    return static_cast<unsigned>(common);
  }
  // The longest prefix of at most `length` bytes that a node may have.
  static unsigned prefix_no_longer_than(unsigned length) noexcept {
    return length == inline_bytes
               ? length - 1
               : std::min<unsigned>(length, std::numeric_limits<std::uint16_t>::max());
  }

  // Compares a slot in a node, whose prefix has `prefix` bytes, with a search key that has the same
  // prefix. `head` is the search key's head behind the prefix.
  template <class StillValid>
  static comparison compare(slot s, const search_key& p, unsigned prefix, std::uint64_t head,
                            StillValid&& still_valid) noexcept {
    if (s.head != head) return s.head < head ? comparison::less : comparison::greater;
    // Heads are padded with zeros. So if two keys have equal heads, the one that ends in its head
    // is a prefix of the other.
    if (is_inline(s)) return order(inline_size(s), p.size);
    if (p.size <= inline_bytes) return comparison::greater;
    if (!still_valid()) return comparison::torn;
    argument key = blob_of(s)->view();
    argument wanted(p.data, p.size);
    key.remove_prefix(prefix);
    wanted.remove_prefix(prefix);
    const int sign = key.compare(wanted);  // as unsigned bytes: char_traits<char> guarantees it
    return sign < 0 ? comparison::less : sign > 0 ? comparison::greater : comparison::equal;
  }

  static comparison order(std::size_t a, std::size_t b) noexcept {
    return a < b ? comparison::less : a > b ? comparison::greater : comparison::equal;
  }

  class view {
   public:
    explicit view(slot s) noexcept
        : head_(big_endian(s.head)), blob_(blob_of(s)), size_(inline_size(s)) {}
    argument get() const noexcept {
      return blob_ != nullptr ? blob_->view()
                              : argument(reinterpret_cast<const char*>(&head_), size_);
    }

   private:
    std::uint64_t head_;
    const blob* blob_;
    std::size_t size_;
  };

  // The shortest prefix of the right key that is greater than the left one.
  class separator {
   public:
    separator(slot left, slot right) noexcept : right_(right) {
      const view left_view(left);
      const argument l = left_view.get();
      const argument r = right_.get();
      std::size_t common = 0;
      while (common < l.size() && l[common] == r[common]) ++common;
      size_ = common + 1;
    }
    argument get() const noexcept { return right_.get().substr(0, size_); }

   private:
    view right_;
    std::size_t size_;
  };

 private:
  static constexpr std::uint64_t length_byte = 0xFF;
  static bool is_inline(slot s) noexcept { return (s.tail & 1) != 0; }
  static std::size_t inline_size(slot s) noexcept {
    return static_cast<std::size_t>((s.tail & length_byte) >> 1);
  }
  static std::uint64_t big_endian(std::uint64_t v) noexcept {
    return std::endian::native == std::endian::little ? __builtin_bswap64(v) : v;
  }
  static std::uint64_t head_of(argument key) noexcept {
    std::uint64_t head = 0;
    if (!key.empty())
      std::memcpy(&head, key.data(), key.size() < inline_bytes ? key.size() : inline_bytes);
    return big_endian(head);
  }
  // The 8 bytes behind the prefix, with zeros behind the key's end. For a key longer than 8 bytes,
  // and a prefix of any length.
  static std::uint64_t head_behind(argument key, std::size_t prefix) noexcept {
    const std::size_t at = std::min(prefix, key.size() - inline_bytes);
    std::uint64_t head = 0;
    std::memcpy(&head, key.data() + at, inline_bytes);
    const std::size_t shorter = prefix - at;
    return shorter < inline_bytes ? big_endian(head) << 8 * shorter : 0;
  }
};

// The codec of a value tells
//   holder          what holds a new value until a function takes it as argument
//   owns_objects    slots have the addresses of objects
//   makes_objects   has_value() and take_value() of an operation make them (node_operation.hpp)
template <class Value>
struct value_codec;

template <plain_value Value>
struct value_codec<Value> {
  using argument = const Value&;
  using holder = Value;
  using slot = Value;
  using object = void;
  static constexpr bool owns_objects = false;
  static constexpr bool makes_objects = false;

  static void check(argument) noexcept {}
  static slot slot_of(argument value, object*) noexcept { return value; }
  static Value owned(const slot& s) { return s; }
  static const Value& view(const slot& s) noexcept { return s; }
};

template <>
struct value_codec<std::string> {
  using argument = std::string_view;
  using holder = std::string;
  using slot = blob*;
  using object = blob;
  static constexpr bool owns_objects = true;
  static constexpr bool makes_objects = true;

  static void check(argument value) {
    if (value.size() > std::numeric_limits<std::uint32_t>::max()) {
      throw std::invalid_argument("elidex: a value may have at most 4294967295 bytes");
    }
  }
  static object* make(argument value, memory_source& source) {
    return heap_blobs::make(value, source);
  }
  static void destroy(object* b, memory_source& source) noexcept { heap_blobs::destroy(b, source); }
  static std::size_t footprint_bytes(const object& b) noexcept {
    return heap_blobs::footprint_bytes(b.size());
  }
  static slot slot_of(argument, object* b) noexcept { return b; }
  static std::string owned(slot s) { return std::string(s->view()); }
  static std::string_view view(slot s) noexcept { return s->view(); }
};

// The argument is emptied when its object goes into a slot.
template <class Value>
  requires(!plain_value<Value>)
struct value_codec<Value> {
  static_assert(std::move_constructible<Value> && std::is_nothrow_destructible_v<Value>,
                "values are movable");
  using argument = std::unique_ptr<Value>&;
  class holder {
   public:
    explicit holder(Value&& value) : value_(std::make_unique<Value>(std::move(value))) {}
    operator argument() noexcept { return value_; }

   private:
    std::unique_ptr<Value> value_;
  };
  using slot = Value*;
  using object = Value;
  static constexpr bool owns_objects = true;
  static constexpr bool makes_objects = false;

  static void check(argument) noexcept {}
  static void destroy(object* o, memory_source& /*source*/) noexcept { delete o; }
  static constexpr std::size_t footprint_bytes(const object&) noexcept {
    return blob::footprint_bytes(sizeof(Value));
  }
  static slot slot_of(argument value, object*) noexcept { return value.release(); }
  static Value owned(slot s)
    requires std::copy_constructible<Value>
  {
    return *s;
  }
  static const Value& view(slot s) noexcept { return *s; }
};

}  // namespace elidex::internal
