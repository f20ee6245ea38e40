// What the library keeps for a process or thread, seen through one part of a program: C functions
// of a plug-in.
#pragma once

#include <cstdint>

// Visible even where all else of the plug-in is hidden.
#pragma GCC visibility push(default)
extern "C" {
// The calling thread's.
std::uint32_t state_slot();
// The calling thread is pinned until it calls state_unpin() with the result.
void* state_pin();
void state_unpin(void* pin);
// Whether the epoch moves twice, which another thread's pin prevents.
bool state_epochs_move();

// A recursive mutex that any part of the program may use.
void* state_new_lock();
void state_lock(void* lock);
void state_unlock(void* lock);

// A map of a type for which the library has no code compiled.
void* state_new_map();
void state_put(void* map, std::uint32_t key, std::uint32_t value);
std::int64_t state_get(void* map, std::uint32_t key);  // -1: not there
}
#pragma GCC visibility pop
