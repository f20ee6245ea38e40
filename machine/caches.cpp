#include "machine/caches.hpp"

#include <algorithm>

#include "machine/random.hpp"

namespace elidex::sim {

std::uint64_t caches::level::first_slot(const line& l) const noexcept {
  if ((sets_ & (sets_ - 1)) == 0) return (l.number & (sets_ - 1)) * ways_;
  // As the slices of a large L3: spread by a hash.
  const std::uint64_t hash = (std::uint64_t{l.number} * 0x9e3779b97f4a7c15) >> 32;
  return (hash * sets_ >> 32) * ways_;
}

bool caches::level::holds(const line& l) const noexcept {
  const std::uint64_t first = first_slot(l);
  for (std::uint64_t i = first; i < first + ways_; ++i) {
    if (slots_[i].at == &l) return true;
  }
  return false;
}

bool caches::level::touch(const line& l) noexcept {
  const std::uint64_t first = first_slot(l);
  for (std::uint64_t i = first; i < first + ways_; ++i) {
    if (slots_[i].at == &l) {
      slots_[i].used = ++clock_;
      return true;
    }
  }
  return false;
}

line* caches::level::put(line& l) noexcept {
  const std::uint64_t first = first_slot(l);
  slot* oldest = &slots_[first];
  for (std::uint64_t i = first; i < first + ways_; ++i) {
    slot& s = slots_[i];
    if (s.at == &l) {
      s.used = ++clock_;
      return nullptr;
    }
    if (s.used < oldest->used) oldest = &s;
  }
  line* const left = oldest->at;
  *oldest = {&l, ++clock_};
  return left;
}

void caches::level::drop(const line& l) noexcept {
  const std::uint64_t first = first_slot(l);
  for (std::uint64_t i = first; i < first + ways_; ++i) {
    if (slots_[i].at == &l) slots_[i] = {};
  }
}

caches::caches(const machine& which, std::uint64_t seed)
    : machine_(which),
      random_(seed),
      cores_per_socket_(static_cast<unsigned>(which.cores_per_socket)),
      l1_(which.cores(), level(which.l1_sets, which.l1_ways)),
      l2_(which.cores(), level(which.l2_sets, which.l2_ways)),
      l3_(which.sockets, level(which.l3_sets, which.l3_ways)),
      counts_(which.cores()) {}

std::uint64_t caches::cores_of_socket(unsigned socket) const noexcept {
  const std::uint64_t all =
      cores_per_socket_ == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << cores_per_socket_) - 1;
  return all << (socket * cores_per_socket_);
}

access_cost caches::access(unsigned core, line& l, bool write, bool taken, std::uint64_t now) {
  const std::uint64_t mine = std::uint64_t{1} << core;
  const bool have = (l.copies & mine) != 0;
  const bool in_l1 = have && l1_[core].touch(l);
  if (in_l1 && (!write || l.owner == static_cast<int>(core))) {
    l.dirty |= write;
    ++counts_[core].l1;
    return {std::max(machine_.l1_cycles, still_to_come(core, l, now)), nullptr};
  }

  std::uint64_t cycles = 0;
  const bool changes_hands = taken || takes_from_others(core, l, write);
  const std::uint64_t free = free_at(core, l, write);
  bool met_others = taken;
  if (have) {
    cycles = std::max(in_l1 ? machine_.l1_cycles : machine_.l2_cycles, still_to_come(core, l, now));
    if (!in_l1) l2_[core].touch(l);
    if (write && (l.copies & ~mine) != 0) {
      cycles += invalidate_others(core, l);
      met_others = true;
      ++counts_[core].other_core;
    } else {
      ++(in_l1 ? counts_[core].l1 : counts_[core].l2);
    }
  } else {
    met_others |= (l.owner >= 0 && l.dirty) || (write && l.copies != 0);
    cycles = fetch(core, l, write);
  }
  if (!have || met_others) cycles = with_jitter(cycles);
  // The line may still be busy in a run with a schedule and in an access to several lines
  // (engine_lines.cpp). Then the rest of the wait adds to the cost.
  if (free > now && (changes_hands || !have)) cycles += free - now;
  if (changes_hands) {
    l.busy_cycles = static_cast<std::uint16_t>(uniform_with_mean(machine_.line_busy_cycles));
    l.busy_until = now + cycles + l.busy_cycles;
  } else if (!have) {
    l.arrived_at = std::max(l.arrived_at, now + cycles);
  }

  if (write) drop_from_other_l3(socket_of(core), l);
  l.copies |= mine;
  if (write || l.copies == mine) l.owner = static_cast<std::int16_t>(core);
  l.dirty |= write;
  if (!have) fill_l2(core, l);
  return {cycles, in_l1 ? nullptr : fill_l1(core, l), !have || met_others, met_others};
}

// For how long a line that the core has taken from another one is still on its way. A thread meets
// such a line if it runs on behind its request, or after an abort.
std::uint64_t caches::still_to_come(unsigned core, const line& l,
                                    std::uint64_t now) const noexcept {
  const std::uint64_t from_now = now + l.busy_cycles;
  return l.owner == static_cast<int>(core) && l.busy_until > from_now ? l.busy_until - from_now : 0;
}

// Up to jitter_cycles more or fewer.
std::uint64_t caches::with_jitter(std::uint64_t cycles) noexcept {
  const std::uint64_t most = std::min(machine_.jitter_cycles, cycles);
  return most == 0 ? cycles : cycles - most + next_random(random_) % (2 * most + 1);
}

// From 0 to twice as many.
std::uint64_t caches::uniform_with_mean(std::uint64_t cycles) noexcept {
  return machine_.jitter_cycles == 0 ? cycles : next_random(random_) % (2 * cycles + 1);
}

// What it costs to bring a line to a core that has no copy.
std::uint64_t caches::fetch(unsigned core, line& l, bool write) {
  const unsigned here = socket_of(core);
  const auto here_bit = static_cast<std::uint8_t>(1u << here);
  std::uint64_t cycles = 0;
  if (l.owner >= 0) {
    const unsigned there = socket_of(static_cast<unsigned>(l.owner));
    if (l.dirty) {
      cycles = there == here ? machine_.dirty_near_cycles : machine_.dirty_far_cycles;
      ++counts_[core].other_core;
    } else {
      cycles = there == here ? machine_.l3_cycles : machine_.l3_far_cycles;
      ++counts_[core].l3;
    }
    l.owner = -1;
    l.dirty = false;
    fill_l3(there, l);
  } else if ((l.l3 & here_bit) != 0) {
    l3_[here].touch(l);
    cycles = machine_.l3_cycles;
    ++counts_[core].l3;
  } else if (l.l3 != 0 || l.copies != 0) {
    cycles = (l.copies & cores_of_socket(here)) != 0 ? machine_.l3_cycles : machine_.l3_far_cycles;
    ++counts_[core].l3;
  } else {
    cycles = machine_.dram_cycles;
    ++counts_[core].dram;
  }
  fill_l3(here, l);
  if (write && l.copies != 0) invalidate_others(core, l);  // the way there is paid for already
  return cycles;
}

// Takes all other copies away, and says what that costs who has one.
std::uint64_t caches::invalidate_others(unsigned core, line& l) noexcept {
  const std::uint64_t others = l.copies & ~(std::uint64_t{1} << core);
  const bool far = (others & ~cores_of_socket(socket_of(core))) != 0;
  for (std::uint64_t left = others; left != 0; left &= left - 1) {
    const auto other = static_cast<std::size_t>(__builtin_ctzll(left));
    l1_[other].drop(l);
    l2_[other].drop(l);
  }
  drop_from_other_l3(socket_of(core), l);
  l.copies &= std::uint64_t{1} << core;
  l.owner = -1;
  return far ? machine_.upgrade_far_cycles : machine_.upgrade_near_cycles;
}

void caches::drop_from_other_l3(unsigned socket, line& l) noexcept {
  const auto here = static_cast<std::uint8_t>(1u << socket);
  if ((l.l3 & ~here) == 0) return;
  for (unsigned other = 0; other < l3_.size(); ++other) {
    if (other != socket && (l.l3 >> other & 1) != 0) l3_[other].drop(l);
  }
  l.l3 &= here;
}

line* caches::fill_l1(unsigned core, line& l) {
  line* const left = l1_[core].put(l);
  if (left != nullptr && !l2_[core].holds(*left)) drop_copy(core, *left);
  return left;
}

void caches::fill_l2(unsigned core, line& l) {
  line* const left = l2_[core].put(l);
  if (left != nullptr && !l1_[core].holds(*left)) drop_copy(core, *left);
}

void caches::fill_l3(unsigned socket, line& l) {
  const auto bit = static_cast<std::uint8_t>(1u << socket);
  if ((l.l3 & bit) != 0) return;
  line* const left = l3_[socket].put(l);
  if (left != nullptr) left->l3 &= static_cast<std::uint8_t>(~bit);
  l.l3 |= bit;
}

void caches::drop_copy(unsigned core, line& l) {
  l.copies &= ~(std::uint64_t{1} << core);
  if (l.owner != static_cast<int>(core)) return;
  l.owner = -1;
  l.dirty = false;
  fill_l3(socket_of(core), l);
}

void caches::discard(unsigned core, line& l, bool dirty) noexcept {
  l1_[core].drop(l);
  if (machine_.aborted_lines_in_l2 != 0 && (l.copies >> core & 1) != 0) {
    l.dirty &= dirty;
    fill_l2(core, l);
    return;
  }
  l2_[core].drop(l);
  l.copies &= ~(std::uint64_t{1} << core);
  fill_l3(socket_of(core), l);  // where the value from before still is
  if (l.owner == static_cast<int>(core)) l.owner = -1;
  l.dirty = false;
}

}  // namespace elidex::sim
