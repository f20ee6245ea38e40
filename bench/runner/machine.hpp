#pragma once
// What benchmarks need to know of the machine: the CPUs it may use, the memory that is free, the
// allocator's account.
//
//   std::vector<int> cpus = allowed_cpus();
//   const std::size_t before = allocated_bytes();
//
// Thread-safety: all functions may be called from any thread; allocated_bytes() is exact only while
// no other thread allocates.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace elidex::bench {

/// The CPUs of this process' affinity mask, ascending.
[[nodiscard]] std::vector<int> allowed_cpus();

/// The same CPUs, one of each core first, cores of one socket side by side. Equal to allowed_cpus()
/// where the kernel does not tell.
[[nodiscard]] std::vector<int> allowed_cpus_by_core();

/// Binds the calling thread to one CPU; without effect where the system refuses.
void pin_this_thread(int cpu);

/// How long the calling thread has been ready to run without a CPU since it started, in
/// nanoseconds; 0 where the kernel keeps no account. Growth during a run means that somebody else
/// used the machine.
[[nodiscard]] std::uint64_t cpu_wait_ns();

/// The kernel's load average over the last minute; empty where it is not known.
[[nodiscard]] std::optional<double> load_average();

/// MemAvailable of the kernel, further bounded by the control group; 0 where neither is known.
[[nodiscard]] std::size_t available_memory_bytes();

/// "jemalloc 5.3.0" where the program is linked with it, otherwise "glibc 2.36".
[[nodiscard]] std::string allocator_name();

/// Bytes handed out by that allocator and not given back, its rounding included.
[[nodiscard]] std::size_t allocated_bytes();

}  // namespace elidex::bench
