#pragma once
// Binds the calling thread to one core that the process may use: the number-th, counted around.
// Otherwise threads that are created together may share a core for a whole round, and meet nobody.

#include <pthread.h>
#include <sched.h>

namespace elidex::bench {

inline void stay_on_a_core(unsigned number) {
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return;
  unsigned left = number % static_cast<unsigned>(CPU_COUNT(&usable));
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &usable) || left-- != 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    pthread_setaffinity_np(pthread_self(), sizeof one, &one);
    return;
  }
}

}  // namespace elidex::bench
