// Memory that is never freed, for objects that other threads and static objects may use until the
// process ends.
//
//   auto* record = ::new (lasting_memory(sizeof(thread_record), alignof(thread_record)))
//       thread_record;
//
// Thread-safety: both functions, from any thread.
// Errors: lasting_memory() throws std::bad_alloc.
//
// Implementation notes
// The first MiB is static data of the shared object or program that contains the library. Unloading
// a plug-in therefore frees it, without a destructor that could run too early. Further memory comes
// from the heap and stays allocated after unloading. A thread's record takes 128 bytes, and a
// lock's name about 5 KiB.
#pragma once

#include <cstddef>

namespace elidex::internal {

void* lasting_memory(std::size_t bytes, std::size_t alignment);

// Returns the number of unused bytes of the first MiB.
std::size_t lasting_bytes_left() noexcept;

}  // namespace elidex::internal
