// Where a map takes its memory from, and how much of it.
//
//   elidex::ordered_map<int, int> map(elidex::memory_options{.bytes_max = 100'000'000});
//   elidex::hash_map<int, int> small_pages(elidex::memory_options{.huge_pages = false});
//
// The options cover nodes, tables, and the bytes of string keys and string values. They do not
// cover other values that are objects on the heap (ordered_map.hpp): these and what they own come
// from operator new. Nor do they cover the lists of retired memory, some KB for each map.
//
// Thread-safety: options are values. The map's threads call the resource at the same time.
// Lifetime: the resource must outlive the map.
// Errors: an operation that would exceed bytes_max throws std::bad_alloc and changes nothing, as if
// the system's memory had run out. What the resource throws passes through.
#pragma once

#include <cstddef>
#include <limits>
#include <memory_resource>

namespace elidex {

struct memory_options {
  // Large maps ask the kernel for huge pages, on which random look-ups are about twice as fast.
  // Without them memory grows in smaller steps. A resource of your own decides for itself.
  bool huge_pages = true;
  // Null: operator new, and for large tables the kernel.
  std::pmr::memory_resource* resource = nullptr;
  // The most that the map may have at a time. Free nodes and retired memory count.
  std::size_t bytes_max = std::numeric_limits<std::size_t>::max();
};

}  // namespace elidex
