// How a key of any type becomes a key of a tree or of a hash table: an integer, a wide_key or a
// byte string, which has the same order.
//
//   using format = map_key<std::pair<std::uint32_t, double>>;
//   format::tree_key                  // wide_key<2>
//   const format::encoded key(k);     // key.get() goes to the tree
//   format::decoded(key.get())        // k again
//
// Thread-safety: all of it.
// Errors: std::bad_alloc where a byte string is made. The trees check the length of strings.
//
// Implementation notes
// key_format<Key> writes a key as bytes. The bytes of two keys compare as the keys do:
//   unsigned integers    big-endian
//   signed integers      with the sign bit flipped
//   float, double        the sign bit flipped, or all bits if it is set
//   bytes                as they are at the end of a key. Elsewhere 00 becomes 00 FF, and 00 00
//                        marks the end, so that a prefix comes first
//   pair, tuple, array   the members one after the other
// Integers, and what fits into one, skip the bytes.
// Sources: the escaped strings are those of FoundationDB's tuple layer.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "elidex/internal/tree/codec.hpp"
#include "elidex/key_encoding.hpp"

namespace elidex::internal {

#if defined(__SIZEOF_INT128__)
__extension__ using signed_128 = __int128;
__extension__ using unsigned_128 = unsigned __int128;
template <class T>
concept integer_128 = std::same_as<T, signed_128> || std::same_as<T, unsigned_128>;
#else
template <class T>
concept integer_128 = false;
#endif

template <class Key>
concept has_key_encoding = requires { typename key_encoding<Key>::as; };

// --- bytes ---

// A key as bytes while it is made: on the stack as long as it is short.
class key_bytes {
 public:
  void add(const char* from, std::size_t count) {
    if (long_.empty() && size_ + count <= short_.size()) {
      if (count != 0) std::memcpy(short_.data() + size_, from, count);
    } else {
      if (long_.empty()) long_.assign(short_.data(), size_);
      long_.append(from, count);
    }
    size_ += count;
  }
  std::string_view view() const noexcept {
    return long_.empty() ? std::string_view(short_.data(), size_) : std::string_view(long_);
  }

 private:
  std::array<char, 112> short_;
  std::size_t size_ = 0;
  std::string long_;
};

template <class Number>
void put_big_endian(char* to, Number number) noexcept {
  for (std::size_t i = sizeof(Number); i-- > 0; number = static_cast<Number>(number >> 7U >> 1U))
    to[i] = static_cast<char>(number);
}
template <class Number>
Number take_big_endian(const char* from) noexcept {
  Number number = 0;
  for (std::size_t i = 0; i < sizeof(Number); ++i)
    number = static_cast<Number>(number << 7U << 1U | static_cast<unsigned char>(from[i]));
  return number;
}

// A key's bytes. fixed_bytes: their number, or 0 if it depends on the key. `last`: whether the key
// is at the end of the whole key.
template <class Key>
struct key_format {
  static_assert(has_key_encoding<Key>,
                "this type cannot be a key: specialize elidex::key_encoding for it");
};

// What formats of a fixed size have in common. Format has fixed_bytes, put() and get().
template <class Format, class Key>
struct fixed_format {
  static void add(key_bytes& to, const Key& key, bool /*last*/) {
    std::array<char, Format::fixed_bytes> bytes;
    Format::put(bytes.data(), key);
    to.add(bytes.data(), bytes.size());
  }
  static Key take(std::string_view& from, bool /*last*/) {
    const Key key = Format::get(from.data());
    from.remove_prefix(Format::fixed_bytes);
    return key;
  }
};

// A number of Bits bits, as an unsigned one that has the same order.
template <class Key>
struct ordered_number;
template <class Key>
  requires std::integral<Key> || integer_128<Key>
struct ordered_number<Key> {
#if defined(__SIZEOF_INT128__)
  using type = typename std::conditional_t<
      integer_128<Key>, std::type_identity<unsigned_128>,
      std::make_unsigned<std::conditional_t<std::integral<Key> && !std::same_as<Key, bool>, Key,
                                            std::uint8_t>>>::type;
#else
  using type = std::make_unsigned_t<std::conditional_t<std::same_as<Key, bool>, std::uint8_t, Key>>;
#endif
  static constexpr bool is_signed = Key(-1) < Key(0);
  static constexpr type sign = is_signed ? type(1) << (8 * sizeof(type) - 1) : type(0);
  static constexpr type to(Key key) noexcept {
    return static_cast<type>(static_cast<type>(key) ^ sign);
  }
  static constexpr Key from(type number) noexcept {
    return static_cast<Key>(static_cast<type>(number ^ sign));
  }
};
template <class Key>
  requires std::is_enum_v<Key>
struct ordered_number<Key> {
  using underlying = ordered_number<std::underlying_type_t<Key>>;
  using type = typename underlying::type;
  static constexpr type to(Key key) noexcept {
    return underlying::to(static_cast<std::underlying_type_t<Key>>(key));
  }
  static constexpr Key from(type number) noexcept {
    return static_cast<Key>(underlying::from(number));
  }
};
template <std::floating_point Key>
  requires(std::numeric_limits<Key>::is_iec559 && sizeof(Key) <= sizeof(std::uint64_t))
struct ordered_number<Key> {
  using type = std::conditional_t<sizeof(Key) == 4, std::uint32_t, std::uint64_t>;
  static constexpr type sign = type{1} << (8 * sizeof(type) - 1);
  static constexpr type to(Key key) noexcept {
    if (key != key) key = std::numeric_limits<Key>::quiet_NaN();
    if (key == 0) key = 0;  // -0.0 too
    const type bits = std::bit_cast<type>(key);
    return (bits & sign) != 0 ? ~bits : bits | sign;
  }
  static constexpr Key from(type number) noexcept {
    return std::bit_cast<Key>((number & sign) != 0 ? number & ~sign : ~number);
  }
};

template <class Key>
concept numeric_key = requires { typename ordered_number<Key>::type; } && !has_key_encoding<Key>;

template <numeric_key Key>
struct key_format<Key> : fixed_format<key_format<Key>, Key> {
  using number = typename ordered_number<Key>::type;
  static constexpr std::size_t fixed_bytes = sizeof(number);
  static void put(char* to, const Key& key) noexcept {
    put_big_endian(to, ordered_number<Key>::to(key));
  }
  static Key get(const char* from) noexcept {
    return ordered_number<Key>::from(take_big_endian<number>(from));
  }
};

// Strings and vectors of bytes.
template <class Bytes>
struct bytes_format {
  static constexpr std::size_t fixed_bytes = 0;
  // View: Bytes, or what map_key passes in place of them.
  template <class View>
  static void add(key_bytes& to, const View& key, bool last) {
    std::string_view left(reinterpret_cast<const char*>(key.data()), key.size());
    if (last) return to.add(left.data(), left.size());
    for (;;) {
      const std::string_view before_zero = left.substr(0, left.find('\0'));
      to.add(before_zero.data(), before_zero.size());
      if (before_zero.size() == left.size()) break;
      to.add("\0\xff", 2);
      left.remove_prefix(before_zero.size() + 1);
    }
    to.add("\0\0", 2);
  }
  static Bytes take(std::string_view& from, bool last) {
    if (last) return owned(std::exchange(from, {}));
    std::string bytes;
    for (;;) {
      const std::size_t zero = from.find('\0');
      bytes.append(from.substr(0, zero));
      const bool escaped = from[zero + 1] != '\0';
      from.remove_prefix(zero + 2);
      if (!escaped) return owned(bytes);
      bytes.push_back('\0');
    }
  }
  static Bytes owned(std::string_view bytes) {
    const auto* const first = reinterpret_cast<const typename Bytes::value_type*>(bytes.data());
    return Bytes(first, first + bytes.size());
  }
};
template <>
struct key_format<std::string> : bytes_format<std::string> {};
template <>
struct key_format<std::vector<std::byte>> : bytes_format<std::vector<std::byte>> {};

// A key of several members.
template <class Key, class... Members>
struct members_format {
  static_assert(!has_key_encoding<Key>,
                "pairs, tuples and arrays have an order already: wrap the type to give it another");
  static constexpr bool is_fixed = ((key_format<Members>::fixed_bytes != 0) && ...);
  static constexpr std::size_t fixed_bytes =
      is_fixed ? (std::size_t{0} + ... + key_format<Members>::fixed_bytes) : 0;

  static void put(char* to, const Key& key) noexcept {
    std::apply(
        [&](const Members&... members) {
          ((key_format<Members>::put(to, members), to += key_format<Members>::fixed_bytes), ...);
        },
        key);
  }
  static Key get(const char* from) noexcept {
    return Key{next<Members>(from)...};  // braces: in order
  }
  static void add(key_bytes& to, const Key& key, bool last) {
    add_all(to, key, last, std::index_sequence_for<Members...>());
  }
  static Key take(std::string_view& from, bool last) {
    return take_all(from, last, std::index_sequence_for<Members...>());
  }

 private:
  template <std::size_t... I>
  static void add_all(key_bytes& to, const Key& key, bool last, std::index_sequence<I...>) {
    (key_format<Members>::add(to, std::get<I>(key), I + 1 == sizeof...(Members) && last), ...);
  }
  template <std::size_t... I>
  static Key take_all(std::string_view& from, bool last, std::index_sequence<I...>) {
    return Key{key_format<Members>::take(from, I + 1 == sizeof...(Members) && last)...};
  }
  template <class Member>
  static Member next(const char*& from) noexcept {
    const char* const mine = std::exchange(from, from + key_format<Member>::fixed_bytes);
    return key_format<Member>::get(mine);
  }
};
template <class First, class Second>
struct key_format<std::pair<First, Second>>
    : members_format<std::pair<First, Second>, First, Second> {};
template <class... Members>
  requires(sizeof...(Members) > 0)
struct key_format<std::tuple<Members...>> : members_format<std::tuple<Members...>, Members...> {};
template <class Element, class Indices>
struct array_format;
template <class Element, std::size_t... I>
struct array_format<Element, std::index_sequence<I...>> {
  template <std::size_t>
  using element = Element;
  using type = members_format<std::array<Element, sizeof...(I)>, element<I>...>;
};
template <class Element, std::size_t Size>
  requires(Size > 0)
struct key_format<std::array<Element, Size>>
    : array_format<Element, std::make_index_sequence<Size>>::type {};

template <has_key_encoding Key>
struct key_format<Key> {
  using encoding = key_encoding<Key>;
  using as = key_format<typename encoding::as>;
  static constexpr std::size_t fixed_bytes = as::fixed_bytes;
  static void put(char* to, const Key& key) noexcept { as::put(to, encoding::encode(key)); }
  static Key get(const char* from) noexcept { return encoding::decode(as::get(from)); }
  static void add(key_bytes& to, const Key& key, bool last) {
    as::add(to, encoding::encode(key), last);
  }
  static Key take(std::string_view& from, bool last) {
    return encoding::decode(as::take(from, last));
  }
};

// --- keys of trees ---

template <std::size_t Bytes>
using word_of_bytes = std::conditional_t<
    Bytes <= 1, std::uint8_t,
    std::conditional_t<Bytes <= 2, std::uint16_t,
                       std::conditional_t<Bytes <= 4, std::uint32_t, std::uint64_t>>>;

// The integer or wide_key with these bytes, and the reverse.
template <class TreeKey>
TreeKey key_of_bytes(const std::array<char, sizeof(TreeKey)>& bytes) noexcept {
  if constexpr (is_wide_key<TreeKey>) {
    TreeKey key;
    for (std::size_t i = 0; i < key.words.size(); ++i)
      key.words[i] = take_big_endian<std::uint64_t>(bytes.data() + 8 * i);
    return key;
  } else {
    return take_big_endian<TreeKey>(bytes.data());
  }
}
template <class TreeKey>
std::array<char, sizeof(TreeKey)> bytes_of_key(const TreeKey& key) noexcept {
  std::array<char, sizeof(TreeKey)> bytes;
  if constexpr (is_wide_key<TreeKey>) {
    for (std::size_t i = 0; i < key.words.size(); ++i)
      put_big_endian(bytes.data() + 8 * i, key.words[i]);
  } else {
    put_big_endian(bytes.data(), key);
  }
  return bytes;
}

// How a map passes keys on. `argument` is what its functions take, `view` what visitors get.
template <class Key>
struct map_key {
  using format = key_format<Key>;
  static constexpr std::size_t bytes = format::fixed_bytes;
  static constexpr bool is_word = bytes != 0 && bytes <= sizeof(std::uint64_t);
  static constexpr bool is_wide = !is_word && bytes != 0 && bytes <= wide_key_bytes_max;
  using tree_key =
      std::conditional_t<is_word, word_of_bytes<bytes>,
                         std::conditional_t<is_wide, wide_key<(bytes + 7) / 8>, std::string>>;
  using argument = const Key&;
  using view = Key;

  class encoded {
   public:
    explicit encoded(const Key& key) {
      if constexpr (is_word || is_wide) {
        std::array<char, sizeof(tree_key)> whole{};  // zeros behind the key
        format::put(whole.data(), key);
        key_ = key_of_bytes<tree_key>(whole);
      } else {
        format::add(key_, key, true);
      }
    }
    auto get() const noexcept {
      if constexpr (is_word || is_wide) {
        return key_;
      } else {
        return key_.view();
      }
    }

   private:
    std::conditional_t<is_word || is_wide, tree_key, key_bytes> key_;
  };

  static Key decoded(const typename key_codec<tree_key>::argument& from) {
    if constexpr (is_word || is_wide) {
      return format::get(bytes_of_key<tree_key>(from).data());
    } else {
      std::string_view left = from;
      return format::take(left, true);
    }
  }
  static Key owned(const typename key_codec<tree_key>::argument& from) { return decoded(from); }
};

// Integers are their own tree keys.
template <integer_key Key>
struct map_key<Key> {
  using format = key_format<Key>;
  using tree_key = Key;
  using argument = Key;
  using view = Key;
  class encoded {
   public:
    explicit encoded(Key key) noexcept : key_(key) {}
    Key get() const noexcept { return key_; }

   private:
    Key key_;
  };
  static Key decoded(Key from) noexcept { return from; }
  static Key owned(Key from) noexcept { return from; }
};

template <class Key>
  requires(numeric_key<Key> && !integer_key<Key> && sizeof(Key) <= sizeof(std::uint64_t))
struct map_key<Key> {
  using format = key_format<Key>;
  using tree_key = typename ordered_number<Key>::type;
  using argument = Key;
  using view = Key;
  class encoded {
   public:
    explicit encoded(Key key) noexcept : key_(ordered_number<Key>::to(key)) {}
    tree_key get() const noexcept { return key_; }

   private:
    tree_key key_;
  };
  static Key decoded(tree_key from) noexcept { return ordered_number<Key>::from(from); }
  static Key owned(tree_key from) noexcept { return decoded(from); }
};

// Strings and bytes pass through.
template <class Bytes, class View>
struct map_key_of_bytes {
  using format = key_format<Bytes>;
  using tree_key = std::string;
  using argument = View;
  using view = View;
  class encoded {
   public:
    explicit encoded(View key) noexcept : key_(key) {}
    std::string_view get() const noexcept {
      return {reinterpret_cast<const char*>(key_.data()), key_.size()};
    }

   private:
    View key_;
  };
  static View decoded(std::string_view from) noexcept {
    return View(reinterpret_cast<const typename Bytes::value_type*>(from.data()), from.size());
  }
  static Bytes owned(std::string_view from) { return format::owned(from); }
};
template <>
struct map_key<std::string> : map_key_of_bytes<std::string, std::string_view> {};
template <>
struct map_key<std::vector<std::byte>>
    : map_key_of_bytes<std::vector<std::byte>, std::span<const std::byte>> {};

}  // namespace elidex::internal
