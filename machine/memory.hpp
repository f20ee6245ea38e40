// Simulated memory: the state of caches and transactions for each 64-byte line that the program
// touches.
//
//   line& l = memory.at(address);
//   const page& p = memory.page_of(address);      // p.mapped: false until the first touch
//
// Thread-safety: one thread.
// Errors: process_memory() ends the process with a message if the system refuses the arena.
//
// Implementation notes
// The program's data lies at its own addresses in this process. This file has only the bookkeeping.
// The arena, at a fixed address, holds all data that must have equal addresses in every run (heap,
// stacks). Pages get physical frames in the order of their first use, mixed by the seed. So no
// result depends on where the system has put a page.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "machine/machine.hpp"

namespace elidex::sim {

inline constexpr std::uint64_t line_bytes = 64;
inline constexpr std::uint64_t page_bytes = 4096;

inline constexpr std::uint64_t arena_begin = 0x2000'0000'0000;
inline constexpr std::uint64_t arena_bytes = std::uint64_t{64} << 30;
inline constexpr std::uint64_t stacks_begin = arena_begin + arena_bytes;
inline constexpr std::uint64_t stack_bytes = std::uint64_t{1} << 20;
// At a stack's end, without access, if the system grants it.
inline constexpr std::uint64_t stack_guard_bytes = page_bytes;
inline constexpr std::uint64_t stacks_bytes = stack_bytes * threads_max;

struct line {
  // a bit for each core whose L1 or L2 holds it
  std::uint64_t copies = 0;
  // the clock from which the line may change hands again
  std::uint64_t busy_until = 0;
  // the clock at which the latest copy that was fetched without a change of hands arrives
  std::uint64_t arrived_at = 0;
  // a bit for each hardware thread that has it in its read set
  std::array<std::uint64_t, threads_max / 64> readers{};
  // the hardware thread that has it in its write set
  std::int16_t writer = -1;
  // the core that has the only copy
  std::int16_t owner = -1;
  bool dirty = false;  // whether the owner has written it
  // a bit for each socket whose L3 holds it
  std::uint8_t l3 = 0;
  // the hardware thread whose request for the line came first of those that wait, or -1
  std::int16_t first_waiter = -1;
  std::uint16_t busy_cycles = 0;  // between its arrival and busy_until
  std::uint32_t number = 0;       // its physical address / line_bytes, which selects its cache sets

  bool in_read_set_of(unsigned thread) const noexcept {
    return (readers[thread / 64] >> thread % 64 & 1) != 0;
  }
  void add_reader(unsigned thread) noexcept {
    readers[thread / 64] |= std::uint64_t{1} << thread % 64;
  }
  void remove_reader(unsigned thread) noexcept {
    readers[thread / 64] &= ~(std::uint64_t{1} << thread % 64);
  }
};

struct page {
  std::array<line, page_bytes / line_bytes> lines;
  bool mapped = true;   // false: the first touch is a page fault
  bool exempt = false;  // true: the caches ignore it
};

class memory {
 public:
  // Reserves the arena and the stacks. Ends the process with a message if the system refuses.
  memory();
  ~memory();
  memory(const memory&) = delete;
  memory& operator=(const memory&) = delete;

  // Begins a new run without any line. Arena pages from `fresh_from` on are not mapped yet.
  void reset(std::uint64_t seed, std::uint64_t fresh_from);

  page& page_of(std::uint64_t address) {
    const std::uint64_t n = address / page_bytes;
    if (n - first_arena_page < arena_pages) {
      page* const p = arena_[n - first_arena_page];
      if (p != nullptr) return *p;
    } else if (n < low_pages && low_[n] != nullptr) {
      return *low_[n];
    }
    return look_up(n);
  }
  line& at(std::uint64_t address) {
    return page_of(address).lines[address % page_bytes / line_bytes];
  }

 private:
  static constexpr std::uint64_t first_arena_page = arena_begin / page_bytes;
  static constexpr std::uint64_t arena_pages = (arena_bytes + stacks_bytes) / page_bytes;
  // where static data lies
  static constexpr std::uint64_t low_pages = (std::uint64_t{4} << 30) / page_bytes;

  page& look_up(std::uint64_t number);
  page& make(std::uint64_t number);
  void forget_all();

  page** arena_ = nullptr;
  page** low_ = nullptr;
  std::unordered_map<std::uint64_t, page*> elsewhere_;
  std::uint64_t seed_ = 0;
  std::uint64_t pages_made_ = 0;
  std::uint64_t fresh_from_ = 0;
};

// Returns whether this address has the same content in every run of a program. That is true in the
// arena, on a stack and in the program's own static data. Shared objects and the system's memory
// move.
bool lies_at_a_fixed_address(std::uint64_t address) noexcept;

// Returns the only instance of this process. The arena can be at its address only once.
memory& process_memory();

}  // namespace elidex::sim
