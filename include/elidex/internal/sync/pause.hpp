// Tells the CPU that the caller waits in a loop.
//
//   while (!ready.load()) cpu_pause();
//
// A pause lets a hyperthread sibling run, saves power and softens the memory-order flush when the
// loop ends. Inside a hardware region it aborts on some CPUs, so wait outside of regions.
// Paper 001 section 3.3.2 relies on that abort for HLE.
//
// Thread-safety: any thread. A pause orders no memory access.
// Errors: nothing throws.
#pragma once

#if defined(ELIDEX_SIMULATED)
// The simulated machine defines it. It spends time and lets other cores run.
extern "C" void elidex_sim_pause() noexcept;
#endif

namespace elidex::internal {

inline void cpu_pause() noexcept {
#if defined(ELIDEX_SIMULATED)
  elidex_sim_pause();
#elif defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb");  // waits some ten cycles, where `yield` is a no-op on today's Arm servers
#elif defined(__arm__)
  asm volatile("yield");
#endif
}

}  // namespace elidex::internal
