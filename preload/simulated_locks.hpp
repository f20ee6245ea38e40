// The interposed locks for programs on the simulated machine.
//
// Thread-safety: elided_functions() is called once, before the program has threads.
#pragma once

#include "preload/pthread_functions.hpp"

namespace elidex::preload {

// Returns functions whose sections run as hardware regions where they can, and that call those of
// `machine` otherwise.
pthread_functions elided_functions(const pthread_functions& machine) noexcept;

}  // namespace elidex::preload
