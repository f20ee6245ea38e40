// The ordered map to use.
//
//   elidex::ordered_map<std::uint64_t, std::uint64_t> map;          // or <std::string, ...>: keys as std::string_view
//   map.upsert(7, 70);
//   if (auto value = map.get(7)) ...
//   map.update(7, [](std::uint64_t& v) { ++v; });                   // atomic
//   map.scan(5, 100, [](std::uint64_t key, std::uint64_t value) { ... });
//
// It is a B+tree under optimistic lock coupling (index/btree.hpp, which holds the functions, their thread-safety and
// their errors): readers write nothing, and wait only for a writer that is inside the very node they want, or for a scan
// that has come to locking it because its range is hot. Node sizes are measured: docs/PERFORMANCE.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "elidex/index/btree.hpp"

namespace elidex {

template <class Key, class Value>
using ordered_map_base = btree<Key, Value, optimistic, node_bytes<1024, 1024>>;

template <class Key, class Value>
class ordered_map : public ordered_map_base<Key, Value> {};

// The common instances are compiled once, in src/ordered_map.cpp.
extern template class btree<std::uint64_t, std::uint64_t, optimistic, node_bytes<1024, 1024>>;
extern template class btree<std::string, std::uint64_t, optimistic, node_bytes<1024, 1024>>;
extern template class btree<std::string, std::string, optimistic, node_bytes<1024, 1024>>;

}  // namespace elidex
