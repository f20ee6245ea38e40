#include "cli/huge_page_effect.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "bench/workload/random.hpp"
#include "cli/flags.hpp"
#include "elidex/internal/memory/large_memory.hpp"

namespace elidex::cli {
namespace {

struct alignas(64) line {
  std::uint32_t next;
};

// Lines that lead to each other in one random cycle.
class random_cycle {
 public:
  random_cycle(std::size_t bytes, internal::pages size)
      : bytes_(bytes), lines_(static_cast<line*>(internal::obtain_zeroed_memory(bytes, size))) {
    // Sattolo's algorithm: a permutation that is a single cycle.
    std::vector<std::uint32_t> order(bytes / sizeof(line));
    std::iota(order.begin(), order.end(), 0U);
    bench::random_bits random(1);
    for (std::size_t i = order.size() - 1; i > 0; --i) std::swap(order[i], order[random.below(i)]);
    for (std::size_t i = 0; i < order.size(); ++i) lines_[i].next = order[i];
  }
  random_cycle(const random_cycle&) = delete;
  random_cycle& operator=(const random_cycle&) = delete;
  ~random_cycle() { internal::return_zeroed_memory(lines_, bytes_); }

  // Returns the nanoseconds of one read. Each round begins where the last one ended.
  double read() {
    constexpr std::uint32_t reads = 100'000;
    const auto begin = std::chrono::steady_clock::now();
    std::uint32_t at = at_;
    for (std::uint32_t i = 0; i < reads; ++i) at = lines_[at].next;
    at_ = at;
    const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
    return took.count() / reads;
  }

 private:
  std::size_t bytes_;
  line* lines_;
  volatile std::uint32_t at_ = 0;
};

}  // namespace

huge_page_effect measure_huge_pages(std::size_t bytes) {
  constexpr std::size_t rounds = 5;
  random_cycle with_small(bytes, internal::pages::small);
  random_cycle with_huge(bytes, internal::pages::huge);
  std::array<double, rounds> small{};
  std::array<double, rounds> huge{};
  for (std::size_t i = 0; i < rounds; ++i) {
    small[i] = with_small.read();
    huge[i] = with_huge.read();
  }
  std::sort(small.begin(), small.end());
  std::sort(huge.begin(), huge.end());
  return {bytes, small[rounds / 2], huge[rounds / 2]};
}

std::string to_text(const huge_page_effect& effect) {
  return "A random read within " + std::to_string(effect.bytes >> 20) + " MiB takes " +
         formatted("%.0f", effect.huge_ns) + " ns with huge pages, and " +
         formatted("%.0f", effect.small_ns) + " ns with small ones" +
         (effect.huge_ns < effect.small_ns * 0.9
              ? "."
              : ". So huge pages gain nothing here, or the kernel gives none.") +
         "\n";
}

}  // namespace elidex::cli
