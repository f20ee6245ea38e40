// The interposed locks on the simulated machine: compiled for it, because the machine must see what
// they read and write. simulated_pthread.cpp calls them.
#include "preload/simulated_locks.hpp"

#include "elidex/htm.hpp"
#include "preload/interposed_functions.hpp"

namespace elidex::preload {

pthread_functions elided_functions(const pthread_functions& machine) noexcept {
  real = machine;
  return interposed<htm::native, no_counts>::functions();
}

}  // namespace elidex::preload
