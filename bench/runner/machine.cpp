#include "bench/runner/machine.hpp"

#include <gnu/libc-version.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <compare>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <string>

// Present only where the program is linked with jemalloc.
extern "C" int mallctl(const char* name, void* old_value, size_t* old_bytes, void* new_value,
                       size_t new_bytes) __attribute__((weak));

namespace elidex::bench {
namespace {

std::size_t number_in(const char* file) {
  std::ifstream in(file);
  std::size_t number = 0;
  return in >> number ? number : 0;  // "max" reads as 0
}

}  // namespace

std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(static_cast<unsigned>(cpu), &set)) cpus.push_back(cpu);
    }
  }
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

std::vector<int> allowed_cpus_by_core() {
  struct place {
    std::size_t sibling = 0;  // how many CPUs of its core come before it
    std::size_t socket = 0;
    std::size_t core = 0;
    int cpu = 0;
    auto operator<=>(const place&) const = default;
  };
  std::vector<place> places;
  for (const int cpu : allowed_cpus()) {
    const std::string topology = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    place one{.socket = number_in((topology + "physical_package_id").c_str()),
              .core = number_in((topology + "core_id").c_str()),
              .cpu = cpu};
    // Without a topology all CPUs look like one core, and stay in ascending order.
    for (const place& other : places) {
      if (other.socket == one.socket && other.core == one.core) ++one.sibling;
    }
    places.push_back(one);
  }
  std::sort(places.begin(), places.end());
  std::vector<int> cpus;
  cpus.reserve(places.size());
  for (const place& one : places) cpus.push_back(one.cpu);
  return cpus;
}

void pin_this_thread(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
}

std::uint64_t cpu_wait_ns() {
  std::ifstream in("/proc/thread-self/schedstat");
  std::uint64_t running_ns = 0;
  std::uint64_t waiting_ns = 0;
  return in >> running_ns >> waiting_ns ? waiting_ns : 0;
}

std::optional<double> load_average() {
  double load = 0;
  if (getloadavg(&load, 1) != 1) return std::nullopt;
  return load;
}

std::size_t available_memory_bytes() {
  std::size_t bytes = 0;
  std::ifstream in("/proc/meminfo");
  for (std::string word; in >> word;) {
    if (word != "MemAvailable:") continue;
    in >> bytes;
    bytes *= 1024;
    break;
  }
  const std::size_t limit = number_in("/sys/fs/cgroup/memory.max");
  const std::size_t used = number_in("/sys/fs/cgroup/memory.current");
  if (limit > used) bytes = bytes == 0 ? limit - used : std::min(bytes, limit - used);
  return bytes;
}

std::string allocator_name() {
  if (mallctl != nullptr) {
    const char* version = nullptr;
    std::size_t bytes = sizeof(version);
    if (mallctl("version", static_cast<void*>(&version), &bytes, nullptr, 0) == 0 &&
        version != nullptr) {
      const std::string_view text(version);
      const char* huge_pages = nullptr;
      bytes = sizeof(huge_pages);
      const bool huge =
          mallctl("opt.thp", static_cast<void*>(&huge_pages), &bytes, nullptr, 0) == 0 &&
          huge_pages != nullptr && std::string_view(huge_pages) == "always";
      return "jemalloc " + std::string(text.substr(0, text.find('-'))) +
             (huge ? " with huge pages" : "");
    }
  }
  return std::string("glibc ") + gnu_get_libc_version();
}

std::size_t allocated_bytes() {
  if (mallctl != nullptr) {
    std::uint64_t epoch = 1;  // refreshes the statistics
    mallctl("epoch", nullptr, nullptr, &epoch, sizeof(epoch));
    std::size_t allocated = 0;
    std::size_t bytes = sizeof(allocated);
    if (mallctl("stats.allocated", &allocated, &bytes, nullptr, 0) == 0) return allocated;
  }
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

}  // namespace elidex::bench
