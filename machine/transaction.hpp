// The state of a hardware thread's transaction: the lines it has read and written, the data that an
// abort restores, and the return point of begin().
//
// Thread-safety: one thread.
//
// Implementation notes
// The machine detects a conflict when it happens, by marks in the lines (memory.hpp). The later
// access wins: the earlier transaction aborts at once, before the access is made. So memory never
// holds a value that a transaction must not see. Plain accesses abort transactions as well (strong
// isolation).
//
// A line is saved before its first write. An abort restores the bytes that were written. begin()
// saves the stack from its caller upward. Most data there is written without a call to the machine.
// The stack below begin()'s caller needs no restoring.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "machine/fiber.hpp"
#include "machine/memory.hpp"

namespace elidex::sim {

struct fetch_report;

class transaction {
 public:
  struct entry {
    line* at;
    std::uint64_t address;   // of the line's first byte
    std::uint64_t read = 0;  // a bit for each byte
    std::uint64_t written = 0;
    std::array<std::byte, line_bytes> before{};  // valid when written != 0
    bool in_read_table = false;                  // whether it has left the L1 before
    bool dirty_before = false;                   // whether the core had changed it before
  };

  bool active() const noexcept { return depth != 0; }

  // Returns the line's entry, and makes one if the line is new.
  entry& of(line& l, std::uint64_t address) {
    if (last_ < lines_.size() && lines_[last_].at == &l) return lines_[last_];
    std::size_t i = slot_of(l);
    for (; table_[i].at_end > lines_before_; i = (i + 1) & (table_.size() - 1)) {
      if (lines_[table_[i].at_end - lines_before_ - 1].at == &l)
        return lines_[last_ = table_[i].at_end - lines_before_ - 1];
    }
    lines_.push_back({&l, address / line_bytes * line_bytes});
    last_ = lines_.size() - 1;
    table_[i].at_end = lines_before_ + lines_.size();
    if (2 * lines_.size() > table_.size()) grow();
    return lines_[last_];
  }
  std::vector<entry>& lines() noexcept { return lines_; }
  bool has_written() const noexcept {
    return elided_word != nullptr ||
           std::any_of(lines_.begin(), lines_.end(), [](const entry& e) { return e.written != 0; });
  }

  void clear() noexcept {
    // The numbers in the table increase over all transactions. An entry that is not above this
    // number is old.
    lines_before_ += lines_.size();
    lines_.clear();
    depth = 0;
    last_ = 0;
    fetches.clear();
    allocated.clear();
    to_free.clear();
  }

  std::uint64_t depth = 0;
  std::uint64_t began = 0;  // cycles
  registers back;           // the return point of begin()
  std::vector<std::byte> stack;
  std::array<std::byte, 16> exception_globals{};

  std::uint32_t* elided_word = nullptr;  // HLE: the lock's word
  std::uint32_t elided_before = 0;       // its value in memory
  std::uint32_t elided_now = 0;          // the value that this thread sees

  // Accesses that the core's own caches did not serve, in order, with their begin and planned end.
  struct fetch {
    fetch_report* counted_in;
    std::uint64_t begin;
    std::uint64_t end;
  };
  std::vector<fetch> fetches;

  std::vector<void*> allocated;  // an abort frees these
  std::vector<void*> to_free;    // the commit frees these

 private:
  struct slot {
    std::uint64_t at_end = 0;  // lines_before_ + index + 1
  };
  std::size_t slot_of(const line& l) const noexcept {
    return (reinterpret_cast<std::uintptr_t>(&l) / sizeof(line)) & (table_.size() - 1);
  }
  void grow() {
    table_.assign(2 * table_.size(), {});
    for (std::size_t n = 0; n < lines_.size(); ++n) {
      std::size_t i = slot_of(*lines_[n].at);
      while (table_[i].at_end > lines_before_) i = (i + 1) & (table_.size() - 1);
      table_[i].at_end = lines_before_ + n + 1;
    }
  }

  std::vector<entry> lines_;
  std::vector<slot> table_ = std::vector<slot>(256);
  std::uint64_t lines_before_ = 0;
  std::size_t last_ = 0;
};

}  // namespace elidex::sim
