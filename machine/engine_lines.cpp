// The engine's requests that wait for a line.
//
// A line that changes hands must arrive before it can be handed on: a snoop reaches a core only
// after the fill. Until line::busy_until, every request for the line that is not a hit waits, reads
// as well as writes. A request that takes copies away from other cores also waits until these
// copies have arrived (line::arrived_at). A wait reserves nothing: a request moves busy_until only
// when it is served, so a request that an abort ends during its wait delays nobody. A hit waits
// only if the other thread of the core has the line in its write set.
//
// Order of service: the request that was issued first (machine::line_order has the alternatives).
// The threads that wait for a line form a list. One of them, the called one, is in the queue of
// turns, at the clock at which the line is free. The others are not. When a request has been
// served, or has been given up, the next one is called. So a request for a line with n waiters
// costs one turn and not n.
//
// A request waits before it changes anything: other threads run meanwhile, and an abort may end it.
// An access to several lines waits for one after the other and then touches all of them. If one has
// become busy again by then, the caches add the rest of the wait to the clock. (Waiting for it once
// more might never end.)
#include <algorithm>

#include "machine/engine.hpp"
#include "machine/random.hpp"

namespace elidex::sim {

bool engine::must_wait(const program_thread& me, std::uint64_t address, bool write) {
  const page& p = memory_.page_of(address);
  if (p.exempt || me.has_on_stack(address)) return false;
  const line& l = p.lines[address % page_bytes / line_bytes];
  if (l.first_waiter < 0 && l.busy_until <= me.clock && l.arrived_at <= me.clock) return false;
  return (is_anothers(me, l) || caches::needs_others(me.core, l, write)) &&
         (l.first_waiter >= 0 || free_at(me, l, write) > me.clock);
}

// Returns whether the line is in the write set of another thread, maybe one of the same core.
bool engine::is_anothers(const program_thread& me, const line& l) {
  return l.writer >= 0 && l.writer != static_cast<int>(me.number);
}

// The clock from which the thread's request can be served, if it is not a hit.
std::uint64_t engine::free_at(const program_thread& me, const line& l, bool write) {
  return is_anothers(me, l) ? std::max(l.busy_until, l.arrived_at)
                            : caches::free_at(me.core, l, write);
}

void engine::wait_for_lines(program_thread& me, std::uint64_t address, std::uint64_t bytes,
                            bool write) {
  // With a schedule, clocks do not order the threads. There the caches add the wait to the clock.
  if (options_.schedule != nullptr) return;
  for (std::uint64_t at = address; at < address + bytes; at = (at / line_bytes + 1) * line_bytes) {
    if (me.awaits.of == &memory_.at(at)) continue;  // the second place of visit_both()
    if (must_wait(me, at, write)) wait_for_line(me, at, write);
  }
}

void engine::wait_for_line(program_thread& me, std::uint64_t address, bool write) {
  if (me.awaits.of != nullptr) stop_waiting(me);
  line& l = memory_.at(address);
  me.awaits = {.of = &l,
               .began = me.clock,
               .write = write,
               .counted_in = &fetches_[names_.place_of(address)]};
  if (l.first_waiter < 0) {
    l.first_waiter = static_cast<std::int16_t>(me.number);
    me.awaits.called = true;
  } else {
    line_wait* last = &threads_[static_cast<std::size_t>(l.first_waiter)].awaits;
    while (last->next >= 0) last = &threads_[static_cast<std::size_t>(last->next)].awaits;
    last->next = static_cast<std::int16_t>(me.number);
    me.is = state::waiting;
    me.waits_for = reinterpret_cast<const void*>(address);
    me.why = "the line of";
    leave();
    me.waits_for = nullptr;
  }
  // busy_until may have moved meanwhile: an access to several lines does not wait for each again.
  for (;;) {
    const std::uint64_t free = free_at(me, l, write);
    if (free <= me.clock) break;
    me.clock = free;
    // An interrupt that is due comes after the access: others wait for the line.
    if (me.clock > turn_ends_) next_turn(false);
  }
  me.awaits.counted_in->cycles += me.clock - me.awaits.began;
  if (me.tx.active()) me.tx.fetches.push_back({me.awaits.counted_in, me.awaits.began, me.clock});
  me.awaits.began = no_deadline;  // counted
}

// Ends the wait, served or not, and calls the next request.
void engine::stop_waiting(program_thread& t) {
  line& l = *t.awaits.of;
  if (t.clock > t.awaits.began) t.awaits.counted_in->cycles += t.clock - t.awaits.began;
  std::int16_t* link = &l.first_waiter;
  while (*link != static_cast<std::int16_t>(t.number))
    link = &threads_[static_cast<std::size_t>(*link)].awaits.next;
  *link = t.awaits.next;
  const bool was_called = t.awaits.called;
  t.awaits = {};
  if (!was_called || l.first_waiter < 0) return;
  program_thread& next = next_served(l);
  next.awaits.called = true;
  next.clock = std::max({next.clock, free_at(next, l, next.awaits.write), now_running_->clock});
  enqueue(next);
  turn_ends_ = std::min(turn_ends_, next.clock + options_.quantum_cycles);
}

// Returns the waiting request to serve next, chosen by machine::line_order.
engine::program_thread& engine::next_served(const line& l) {
  program_thread& first = threads_[static_cast<std::size_t>(l.first_waiter)];
  const auto after = [this](const program_thread& t) {
    return t.awaits.next < 0 ? nullptr : &threads_[static_cast<std::size_t>(t.awaits.next)];
  };
  if (machine_.line_order == machine::random_order) {
    std::uint64_t waiters = 0;
    for (const program_thread* t = &first; t != nullptr; t = after(*t)) ++waiters;
    program_thread* chosen = &first;
    for (std::uint64_t n = next_random(line_order_random_) % waiters; n > 0; --n)
      chosen = after(*chosen);
    return *chosen;
  }
  constexpr unsigned passes_max = 64;  // chosen, so that no request waits for ever
  if (machine_.line_order == machine::same_socket_first && l.owner >= 0 &&
      first.awaits.passes++ < passes_max) {
    const unsigned here = caches_.socket_of(static_cast<unsigned>(l.owner));
    for (program_thread* t = &first; t != nullptr; t = after(*t)) {
      if (caches_.socket_of(t->core) == here) return *t;
    }
  }
  return first;
}

}  // namespace elidex::sim
