// The ordered map to use.
//
//   elidex::ordered_map<std::uint64_t, std::uint64_t> map;          // or <std::string, ...>: keys as std::string_view
//   map.upsert(7, 70);
//   if (auto value = map.get(7)) ...
//   map.update(7, [](std::uint64_t& v) { ++v; });                   // atomic
//   map.multi_get(keys, values);                                    // many look-ups that wait for memory together
//   map.bulk_load(sorted);                                          // into an empty map, all at one moment
//   map.scan(5, 100, [](std::uint64_t key, std::uint64_t value) { ... });
//
// For integer keys with trivially copyable values it is Eunomia's B+tree with keys apart from values
// (index/scattered_btree.hpp, index/keys_apart_leaf.hpp): readers write nothing, and two updates meet only if their values
// lie on the same pair of cache lines. Where hardware transactions commit it uses them, elsewhere optimistic versions;
// map_regions::hardware or map_regions::optimistic, given to the constructor, forces one of the two, and regions() says which.
//
// If key, value or both are byte strings it is a B+tree under optimistic lock coupling (index/btree.hpp), where writers of the
// same leaf meet.
//
// The functions above, cursor(), size(), memory_bytes() and reclaim(), their thread-safety and their errors stand in those
// headers, and are the same in both. Why these trees and these node sizes: docs/PERFORMANCE.md.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "elidex/index/btree.hpp"
#include "elidex/index/region_choosing_map.hpp"

namespace elidex {

namespace detail {

using ordered_map_shape = packed_node_bytes<1152, 1024>;

template <class Key, class Value>
struct ordered_map_of {
  static_assert(std::integral<Key> || std::same_as<Key, std::string>, "keys are integers or std::string");
  static_assert(std::is_trivially_copyable_v<Value> || std::same_as<Value, std::string>,
                "values are trivially copyable or std::string");
  using type = btree<Key, Value, optimistic, node_bytes<1024, 1024>>;
};
template <std::integral Key, class Value>
  requires std::is_trivially_copyable_v<Value>
struct ordered_map_of<Key, Value> {
  using type = region_choosing_map<Key, Value, ordered_map_shape>;
};

}  // namespace detail

template <class Key, class Value>
using ordered_map_base = typename detail::ordered_map_of<Key, Value>::type;

template <class Key, class Value>
class ordered_map : public ordered_map_base<Key, Value> {
 public:
  using base = ordered_map_base<Key, Value>;
  using base::base;
  ordered_map() = default;
};

// The common instances are compiled once, in src/ordered_map.cpp.
extern template class scattered_btree<std::uint64_t, std::uint64_t, optimistic, detail::ordered_map_shape, no_control>;
extern template class scattered_btree<std::uint64_t, std::uint64_t, htm_split_regions, detail::ordered_map_shape,
                                      no_control>;
extern template class btree<std::string, std::uint64_t, optimistic, node_bytes<1024, 1024>>;
extern template class btree<std::string, std::string, optimistic, node_bytes<1024, 1024>>;

}  // namespace elidex
