// The caches of a simulated machine and their coherence protocol: the cost of an access, and the
// lines that it evicts.
//
//   const access_cost c = caches.access(core, line, write, taken, now);
//   core_clock += c.cycles;
//   if (c.left_l1 != nullptr) ...  // the core's L1 evicted a line, which may abort a transaction
//
// Thread-safety: one thread.
//
// Implementation notes
// Each core has a private L1 and L2, and each socket has an L3. All are set-associative and evict
// the least recently used line. A directory in the lines themselves (memory.hpp) records which
// cores have a copy and which core owns the line. The protocol is MESI, with one owner bit for
// modified and exclusive.
// A line that changes hands is busy until it has arrived, and for a while longer. free_at() is the
// clock from which a request can be served. The engine makes requests wait (engine_lines.cpp) and
// calls access() when a request is served.
//
// Simpler than hardware: the L3 holds copies but need not hold all lines (no back-invalidation).
// There is no prefetcher, no TLB and no store buffer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "machine/machine.hpp"
#include "machine/memory.hpp"

namespace elidex::sim {

struct cache_counts {
  // accesses that each cache served
  std::uint64_t l1 = 0;
  std::uint64_t l2 = 0;
  std::uint64_t l3 = 0;
  // lines that another core had changed, and writes to lines that others had read
  std::uint64_t other_core = 0;
  std::uint64_t dram = 0;
};

struct access_cost {
  std::uint64_t cycles;
  line* left_l1;         // null: none
  bool outside = false;  // not served by the core's own caches
  // Of those outside: another core had changed the line, or a write took it from other cores.
  bool met_others = false;
};

class caches {
 public:
  // `seed` seeds the jitter.
  explicit caches(const machine& which, std::uint64_t seed = 0);

  // `taken`: the access has just aborted a transaction that had written the line.
  access_cost access(unsigned core, line& l, bool write, bool taken, std::uint64_t now);
  // Returns whether the access is not a hit: the core has no copy, or a write must invalidate other
  // cores' copies.
  static bool needs_others(unsigned core, const line& l, bool write) noexcept {
    const std::uint64_t mine = std::uint64_t{1} << core;
    return (l.copies & mine) == 0 || (write && l.copies != mine);
  }
  // Returns the clock from which an access that is not a hit can be served: the end of the line's
  // last transfer. An access that takes copies away must also wait until they have arrived.
  static std::uint64_t free_at(unsigned core, const line& l, bool write) noexcept {
    return takes_from_others(core, l, write) ? std::max(l.busy_until, l.arrived_at) : l.busy_until;
  }
  // Returns whether the access takes the line, or the right to write it, from another core.
  static bool takes_from_others(unsigned core, const line& l, bool write) noexcept {
    const std::uint64_t mine = std::uint64_t{1} << core;
    if ((l.copies & mine) != 0) return write && l.copies != mine;
    return l.owner >= 0 || (write && l.copies != 0);
  }
  unsigned socket_of(unsigned core) const noexcept { return core / cores_per_socket_; }
  // Discards the writes of an aborted transaction. The core then has no copy of the line, or with
  // machine::aborted_lines_in_l2 the one from before in its L2. `dirty`: whether that one was.
  void discard(unsigned core, line& l, bool dirty) noexcept;

  // Puts a line into a socket's L3, as if it had been there before.
  void warm(unsigned socket, line& l) { fill_l3(socket, l); }
  void reset_counts() noexcept { std::fill(counts_.begin(), counts_.end(), cache_counts{}); }

  const cache_counts& counts(unsigned core) const noexcept { return counts_[core]; }

 private:
  class level {
   public:
    level(std::uint64_t sets, std::uint64_t ways) : ways_(ways), slots_(sets * ways), sets_(sets) {}
    bool holds(const line& l) const noexcept;
    // Returns false if the level does not hold the line.
    bool touch(const line& l) noexcept;
    // Inserts the line. Returns the evicted line, or null.
    line* put(line& l) noexcept;
    // Removes the line, if the level holds it.
    void drop(const line& l) noexcept;

   private:
    struct slot {
      line* at = nullptr;      // null if the slot is empty
      std::uint64_t used = 0;  // 0 if the slot is empty, so put() takes it first
    };
    std::uint64_t first_slot(const line& l) const noexcept;

    std::uint64_t ways_;
    std::vector<slot> slots_;
    std::uint64_t sets_;
    std::uint64_t clock_ = 0;
  };

  std::uint64_t cores_of_socket(unsigned socket) const noexcept;
  std::uint64_t with_jitter(std::uint64_t cycles) noexcept;
  std::uint64_t uniform_with_mean(std::uint64_t cycles) noexcept;
  std::uint64_t still_to_come(unsigned core, const line& l, std::uint64_t now) const noexcept;
  std::uint64_t fetch(unsigned core, line& l, bool write);
  std::uint64_t invalidate_others(unsigned core, line& l) noexcept;
  void drop_from_other_l3(unsigned socket, line& l) noexcept;
  line* fill_l1(unsigned core, line& l);
  void fill_l2(unsigned core, line& l);
  void fill_l3(unsigned socket, line& l);
  void drop_copy(unsigned core, line& l);

  const machine& machine_;
  std::uint64_t random_;
  unsigned cores_per_socket_;
  std::vector<level> l1_;
  std::vector<level> l2_;
  std::vector<level> l3_;
  std::vector<cache_counts> counts_;
};

}  // namespace elidex::sim
