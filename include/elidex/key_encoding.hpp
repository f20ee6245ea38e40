// The keys of ordered_map, hash_map and column, and how a program adds a type of its own.
//
//   struct order_id { std::uint16_t venue; std::uint64_t number; };
//
//   template <>
//   struct elidex::key_encoding<order_id> {
//     using as = std::pair<std::uint16_t, std::uint64_t>;
//     static as encode(const order_id& id) { return {id.venue, id.number}; }
//     static order_id decode(const as& key) { return {key.first, key.second}; }
//   };
//
//   elidex::ordered_map<order_id, std::string> orders;  // ordered by venue, then by number
//
// Keys are
//   * integers of up to 128 bits, bool, enumerations, float and double,
//   * std::string and std::vector<std::byte>, compared as unsigned bytes,
//   * std::pair, std::tuple and std::array of keys, compared member by member,
//   * each type with a key_encoding, compared as its `as`, which is a key of another type.
//
// float and double: -0.0 and 0.0 are one key, which reads back as 0.0. All NaNs are one key. It is
// equal to itself, greater than infinity, and reads back as a quiet NaN.
// Strings are passed as std::string_view, vectors of bytes as std::span<const std::byte>. A key of
// more than 64 KiB throws std::invalid_argument from the function that takes it. In a pair, tuple
// or array each zero byte of a string counts twice, except in the last member.
//
// decode() must be the inverse of encode(). Both must not throw, and must always return the same
// result for the same argument. Any thread may call them at any time.
//
// Keys of a fixed size of at most 32 bytes lie in the nodes of a map. Other keys lie on the heap,
// and the nodes have their first 8 bytes.
#pragma once

namespace elidex {

// Specialize it for a type of your own, as above.
template <class Key>
struct key_encoding;

}  // namespace elidex
