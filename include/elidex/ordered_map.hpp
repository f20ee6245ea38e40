// The ordered map to use.
//
//   // or <std::string, ...>: keys as std::string_view
//   elidex::ordered_map<std::uint64_t, std::uint64_t> map;
//   map.upsert(7, 70);
//   if (auto value = map.get(7)) ...
//   map.update(7, [](std::uint64_t& v) { ++v; });                   // atomic
//   map.multi_get(keys, values);  // many look-ups that wait for memory together
//   map.bulk_load(sorted);  // into an empty map, all at one moment
//   map.scan(5, 100, [](std::uint64_t key, std::uint64_t value) { ... });
//
// For integer keys with trivially copyable values of up to 56 bytes it is Eunomia's B+tree with
// keys apart from values (internal/tree/fixed_key_btree.hpp, internal/tree/separated_leaf.hpp):
// readers write nothing, and two updates meet only if their values lie on the same pair of cache
// lines. Where hardware transactions commit it uses them, elsewhere optimistic versions;
// map_regions::hardware or map_regions::optimistic, given to the constructor, forces one of the
// two, and regions() says which.
//
// For others it is a B+tree under optimistic lock coupling (internal/tree/btree.hpp), where writers
// of the same leaf meet; it has no bulk_load(), regions() and constructor's argument.
//
// What both promise; each function's own part stands at its declaration in those two headers:
//   thread-safety    any thread may call anything at any time, but for constructor and destructor.
//                    All is linearizable but size(), empty(), memory_bytes(), stats() and cursors.
//                    A scan is a snapshot, multi_get() is none
//   lifetime         keys and values are copied in and out. The string_views that a scan hands to
//                    its function are valid until that returns; a cursor's key() and value() until
//                    it moves. Not copyable, not movable
//   errors           std::bad_alloc: the map is as it was. std::invalid_argument: a key over 64
//                    KiB, multi_get() without enough room, bulk_load() of keys that don't ascend.
//                    std::logic_error: bulk_load() into a map that is not empty. What the caller's
//                    function throws comes out
//   fork()           a child has its own copy of the map. The child can use and destroy the copy if
//                    no other thread was inside a call of the map when the process forked.
//                    Otherwise a node or pool that such a thread had locked stays locked in the
//                    child. Cursors of other threads do not matter
// multi_get() takes a span of keys (of std::string_view for strings) and one of std::optional
// values, which become empty where there is no such key. Why these trees and these node sizes:
// docs/PERFORMANCE.md.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "elidex/internal/tree/btree.hpp"
#include "elidex/internal/tree/region_choosing_map.hpp"

namespace elidex {

namespace detail {

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
extern template class fixed_key_btree<std::uint64_t, std::uint64_t, optimistic,
                                      detail::ordered_map_shape, no_control>;
extern template class fixed_key_btree<std::uint64_t, std::uint64_t, htm_split_regions,
                                      detail::ordered_map_shape, no_control>;
extern template class btree<std::string, std::uint64_t, optimistic, node_bytes<1024, 1024>>;
extern template class btree<std::string, std::string, optimistic, node_bytes<1024, 1024>>;

}  // namespace elidex
