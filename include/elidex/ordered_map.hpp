// A sorted map that any number of threads may read and change at once.
//
//   elidex::ordered_map<std::uint64_t, std::uint64_t> map;   // or <std::string, ...>
//   map.upsert(7, 70);
//   if (auto value = map.get(7)) ...
//   map.update(7, [](std::uint64_t& v) { ++v; });             // atomic
//   map.multi_get(keys, values);                              // many look-ups at once
//   map.scan(5, 100, [](std::uint64_t key, std::uint64_t value) { ... });
//   for (auto c = map.cursor(); ...)                          // internal/tree/cursor.hpp
//
// Keys are integers or std::string (passed as std::string_view, compared as unsigned bytes).
// Values are trivially copyable types or std::string. Each function is documented at its
// declaration: internal/tree/fixed_key_btree.hpp for integer keys with trivially copyable values of
// at most 56 bytes, internal/tree/btree.hpp for all others. Only the former has bulk_load().
//
// Thread-safety: every function but constructors and destructor, from any thread at any time.
// Every operation is linearizable except size(), empty(), memory_bytes(), stats() and cursors.
// A scan is a snapshot. multi_get() is not: each of its look-ups is linearizable by itself.
// multi_get() takes a span of keys and a span of std::optional values, which it empties where a key
// is absent.
// Complexity: O(log n) for one key; a scan adds O(1) for each entry.
// Lifetime: the map copies keys and values in and out. A std::string_view that scan() passes to its
// function is valid until the function returns; a cursor's key() and value() until the cursor
// moves. The map cannot be copied or moved.
// Errors: std::bad_alloc leaves the map unchanged. std::invalid_argument: a key of more than 64
// KiB, too little room for multi_get(), keys for bulk_load() that do not ascend. std::logic_error:
// bulk_load() into a map that is not empty. An exception from the caller's function passes through.
// fork(): a child has its own copy of the map. The child may use and destroy the copy if no other
// thread was inside a call of the map when the process forked. Otherwise a node or pool that such a
// thread had locked stays locked in the child. Cursors of other threads do not matter.
//
// Implementation notes
// Small values: Eunomia's B+tree with leaves that keep keys apart from values
// (internal/tree/fixed_key_btree.hpp, internal/tree/separated_leaf.hpp). Readers write nothing, and
// two updates meet only if their values lie on the same pair of cache lines. The map uses hardware
// transactions where the CPU commits them, and optimistic versions elsewhere. A constructor
// argument, map_regions::hardware or map_regions::optimistic, forces one of the two; regions()
// returns which one is in use.
// Other values: a B+tree under optimistic lock coupling (internal/tree/btree.hpp). Writers of the
// same leaf wait for each other.
// Why these trees and node sizes: docs/PERFORMANCE.md.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "elidex/internal/tree/btree.hpp"
#include "elidex/internal/tree/region_choosing_map.hpp"

namespace elidex {

namespace internal {

using ordered_map_shape = packed_node_bytes<1152, 1024>;

template <class Key, class Value>
struct ordered_map_of {
  static_assert((std::integral<Key> && !std::same_as<Key, bool>) || std::same_as<Key, std::string>,
                "keys are integers or std::string");
  static_assert(std::is_trivially_copyable_v<Value> || std::same_as<Value, std::string>,
                "values are trivially copyable or std::string");
  using type = btree<Key, Value, optimistic, node_bytes<1024, 1024>>;
};
// Two of them lie beside their lock on a pair of cache lines. Leaves of larger ones would be half
// empty.
inline constexpr std::size_t packed_value_bytes_max = 56;

template <std::integral Key, class Value>
  requires(std::is_trivially_copyable_v<Value> && sizeof(Value) <= packed_value_bytes_max &&
           !std::same_as<Key, bool>)
struct ordered_map_of<Key, Value> {
  using type = region_choosing_map<Key, Value, ordered_map_shape>;
};

}  // namespace internal

using internal::map_regions;

template <class Key, class Value>
using ordered_map_base = typename internal::ordered_map_of<Key, Value>::type;

template <class Key, class Value>
class ordered_map : public ordered_map_base<Key, Value> {
 public:
  using base = ordered_map_base<Key, Value>;
  using base::base;
  ordered_map() = default;
};

// The common instances are compiled once, in src/ordered_map.cpp.
extern template class internal::fixed_key_btree<std::uint64_t, std::uint64_t, internal::optimistic,
                                                internal::ordered_map_shape, internal::no_control>;
extern template class internal::fixed_key_btree<std::uint64_t, std::uint64_t,
                                                internal::htm_split_regions,
                                                internal::ordered_map_shape, internal::no_control>;
extern template class internal::btree<std::string, std::uint64_t, internal::optimistic,
                                      internal::node_bytes<1024, 1024>>;
extern template class internal::btree<std::string, std::string, internal::optimistic,
                                      internal::node_bytes<1024, 1024>>;

}  // namespace elidex
