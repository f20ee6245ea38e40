// The source of a map's memory, and a limit on it.
//
//   elidex::ordered_map<int, int> map(elidex::memory_options{.bytes_max = 100'000'000});
//   elidex::hash_map<int, int> small_pages(elidex::memory_options{.huge_pages = false});
//
// The options cover nodes, tables, and the bytes of string keys and string values. They do not
// cover other values that are objects on the heap (ordered_map.hpp). These objects and what they
// own come from operator new. So do the map's counters and its lists of retired memory, usually
// some tens of KB.
//
// bytes_max limits the bytes that the map requests for what the options cover. It does not count
// malloc's own overhead, which can add half again for short strings. memory_bytes() includes an
// estimate of this overhead, the objects on the heap, the counters and the lists. It does not
// include what values own. So it may exceed bytes_max.
//
// Thread-safety: options are values. The resource must be thread-safe.
// Lifetime: the resource must outlive every map that uses it. A map that is moved from keeps its
// options. The target of a move takes the source's options, and swap() exchanges them.
// Errors: an operation that needs more than bytes_max throws std::bad_alloc, as it does when the
// system's memory runs out. What the resource throws passes through. In both cases an operation on
// one key changes nothing. A hash_map whose table cannot grow continues with longer chains instead.
#pragma once

#include <cstddef>
#include <limits>
#include <memory_resource>

namespace elidex {

struct memory_options {
  // Maps ask the kernel for huge pages for pieces of memory of 2 MiB and more. With 10 M keys
  // random look-ups are then up to twice as fast, with 1 M keys there is little difference (`elidex
  // doctor` measures it). Without huge pages, resident memory grows in smaller steps. The option
  // has no effect on a resource.
  bool huge_pages = true;
  // Null means operator new, and mmap() for large tables.
  std::pmr::memory_resource* resource = nullptr;
  // The limit on the bytes requested, including those of free nodes and of retired memory.
  std::size_t bytes_max = std::numeric_limits<std::size_t>::max();
};

}  // namespace elidex
