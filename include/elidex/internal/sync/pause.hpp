// Tells the CPU that the caller waits in a loop.
//
//   while (!ready.load()) cpu_pause();
//
// It lets a hyperthread sibling run, saves power and softens the memory-order flush when the loop
// ends. Inside a hardware region it aborts on some CPUs (papers/001 section 3.3.2 counts on that
// for HLE), so wait outside.
//
// Thread-safety: any thread. No memory order of its own.
#pragma once

#if defined(ELIDEX_SIMULATED)
// Supplied by the simulated machine: spends time, and lets other cores run.
extern "C" void elidex_sim_pause() noexcept;
#endif

namespace elidex::internal {

inline void cpu_pause() noexcept {
#if defined(ELIDEX_SIMULATED)
  elidex_sim_pause();
#elif defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // `yield` is a no-op on today's Arm servers; isb waits some ten cycles
#elif defined(__arm__)
  asm volatile("yield");
#endif
}

}  // namespace elidex::internal
