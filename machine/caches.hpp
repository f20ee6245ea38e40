// The caches of a simulated machine and the protocol that keeps them coherent: what an access
// costs, and what it pushes out.
//
//   const access_cost c = caches.access(core, line, write, now);
//   core_clock += c.cycles;
//   if (c.left_l1 != nullptr) ...  // a line had to leave the core's L1: transactions want to know
//
// Private L1 and L2 per core, an L3 per socket; each set-associative, the least recently used line
// leaves first. A directory in the lines themselves (memory.hpp) says who has a copy and who owns
// it: MESI with one owner bit for modified and exclusive. A line that changes hands is busy for a
// while, and who comes meanwhile waits: so a hot line is handed on in order, and the more cores
// want it the slower all of them get.
//
// Simpler than hardware: the L3 holds copies but need not hold all (no back-invalidation), there is
// no prefetcher, no TLB and no store buffer.
//
// Thread-safety: one thread.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "machine/machine.hpp"
#include "machine/memory.hpp"

namespace elidex::sim {

struct cache_counts {
  std::uint64_t l1 = 0;  // accesses served by
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
  // of those: the line came from another core that had changed it, or was taken from others
  bool met_others = false;
};

class caches {
 public:
  explicit caches(const machine& which);

  access_cost access(unsigned core, line& l, bool write, std::uint64_t now);
  // An aborted transaction's writes are thrown away: the core has no copy any more.
  void discard(unsigned core, line& l) noexcept;

  // Puts a line into a socket's L3, as if it had been there before.
  void warm(unsigned socket, line& l) { fill_l3(socket, l); }
  void reset_counts() noexcept { std::fill(counts_.begin(), counts_.end(), cache_counts{}); }

  const cache_counts& counts(unsigned core) const noexcept { return counts_[core]; }

 private:
  class level {
   public:
    level(std::uint64_t sets, std::uint64_t ways) : ways_(ways), slots_(sets * ways), sets_(sets) {}
    bool holds(const line& l) const noexcept;
    // False: it is not there.
    bool touch(const line& l) noexcept;
    // Puts it in; returns what had to leave, or null.
    line* put(line& l) noexcept;
    // Takes it out, if it is there.
    void drop(const line& l) noexcept;

   private:
    struct slot {
      line* at = nullptr;      // null: empty,
      std::uint64_t used = 0;  // and then 0: the first to be taken
    };
    std::uint64_t first_slot(const line& l) const noexcept;

    std::uint64_t ways_;
    std::vector<slot> slots_;
    std::uint64_t sets_;
    std::uint64_t clock_ = 0;
  };

  unsigned socket_of(unsigned core) const noexcept { return core / cores_per_socket_; }
  std::uint64_t cores_of_socket(unsigned socket) const noexcept;
  std::uint64_t fetch(unsigned core, line& l, bool write);
  std::uint64_t invalidate_others(unsigned core, line& l) noexcept;
  void drop_from_other_l3(unsigned socket, line& l) noexcept;
  line* fill_l1(unsigned core, line& l);
  void fill_l2(unsigned core, line& l);
  void fill_l3(unsigned socket, line& l);
  void drop_copy(unsigned core, line& l);

  const machine& machine_;
  unsigned cores_per_socket_;
  std::vector<level> l1_;
  std::vector<level> l2_;
  std::vector<level> l3_;
  std::vector<cache_counts> counts_;
};

}  // namespace elidex::sim
