// The engine's requests that wait for a line.
//
// A line that changes hands must arrive before it can be handed on: a snoop reaches a core only
// after the fill. Until line::busy_until, every request for the line that is not a hit waits, reads
// as well as writes. A request that takes copies away from other cores also waits until these
// copies have arrived (line::arrived_at). A wait reserves nothing: a request moves busy_until only
// when it is served, so a request that an abort ends during its wait delays no other, unless
// machine::requests_outlive_aborts keeps it (below). A hit waits only if the other thread of the
// core has the line in its write set.
//
// Order of service: the request that was issued first (machine::line_order has the alternatives).
// The threads that wait for a line form a list. One of them, the called one, is in the queue of
// turns, at the clock at which the line is free. The others are not. When a request has been
// served, or has been given up, the next one is called. So a request for a line with n waiters
// costs one turn and not n.
//
// With machine::requests_outlive_aborts a core cannot take a request back, as a CPU cannot. A
// request whose transaction is aborted keeps its place, and the line moves to that core when the
// request is served. If the thread asks for the line again before, the new request takes the old
// one's place. So a core has one request for a line.
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
  const line_wait request{.of = &l,
                          .began = me.clock,
                          .address = address,
                          .write = write,
                          .counted_in = &fetches_[names_.place_of(address)]};
  if (!take_over(me, l, request)) {
    std::int16_t* const last = link_to(l, -1);
    me.awaits = request;
    me.awaits.called = last == &l.first_waiter;
    *last = static_cast<std::int16_t>(me.number);
  }
  if (!me.awaits.called) wait_for_call(me, address);
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

void engine::wait_for_call(program_thread& me, std::uint64_t address) {
  me.is = state::waiting;
  me.waits_for = reinterpret_cast<const void*>(address);
  me.why = "the line of";
  leave();
  me.waits_for = nullptr;
}

// Ends the wait, served or not, and calls the next request.
void engine::stop_waiting(program_thread& t) {
  line& l = *t.awaits.of;
  if (t.clock > t.awaits.began) t.awaits.counted_in->cycles += t.clock - t.awaits.began;
  *link_to(l, static_cast<std::int16_t>(t.number)) = t.awaits.next;
  const bool was_called = t.awaits.called;
  t.awaits = {};
  if (was_called) call_next(l);
}

// Where the request's successor stands. Requests are threads, and behind these the abandoned ones.
std::int16_t* engine::link_of(std::int16_t request) noexcept {
  const auto n = static_cast<std::size_t>(request);
  return n < threads_.size() ? &threads_[n].awaits.next : &abandoned_[n - threads_.size()].next;
}

unsigned* engine::passes_of(std::int16_t request) noexcept {
  const auto n = static_cast<std::size_t>(request);
  return n < threads_.size() ? &threads_[n].awaits.passes : &abandoned_[n - threads_.size()].passes;
}

unsigned engine::core_of(std::int16_t request) const noexcept {
  const auto n = static_cast<std::size_t>(request);
  return n < threads_.size() ? threads_[n].core : abandoned_[n - threads_.size()].core;
}

// What refers to the request in the line's list; -1: its end.
std::int16_t* engine::link_to(line& l, std::int16_t request) noexcept {
  std::int16_t* link = &l.first_waiter;
  while (*link != request) link = link_of(*link);
  return link;
}

void engine::call_next(line& l) {
  if (l.first_waiter < 0) return;
  const auto chosen = static_cast<std::size_t>(next_served(l));
  if (chosen >= threads_.size()) {
    call(abandoned_[chosen - threads_.size()]);
    return;
  }
  program_thread& next = threads_[chosen];
  next.awaits.called = true;
  next.clock = std::max({next.clock, free_at(next, l, next.awaits.write), clock_now()});
  enqueue(next);
  turn_ends_ = std::min(turn_ends_, next.clock + options_.quantum_cycles);
}

// --- abandoned requests ---

std::int16_t engine::number_of(const abandoned_request& a) const noexcept {
  return static_cast<std::int16_t>(threads_.size() +
                                   static_cast<std::size_t>(&a - abandoned_.data()));
}

void engine::call(abandoned_request& next) noexcept {
  next.called = true;
  next.at = std::max({next.of->busy_until, next.of->arrived_at, clock_now()});
  first_abandoned_at_ = std::min(first_abandoned_at_, next.at);
  turn_ends_ = std::min(turn_ends_, next.at);
}

// The thread's transaction is aborted while its request waits for a line.
void engine::abandon(program_thread& t) {
  const auto unused = std::find_if(abandoned_.begin(), abandoned_.end(),
                                   [](const auto& a) { return a.of == nullptr; });
  if (unused == abandoned_.end()) return stop_waiting(t);  // also if the core takes it back
  line& l = *t.awaits.of;
  if (t.clock > t.awaits.began) t.awaits.counted_in->cycles += t.clock - t.awaits.began;
  *link_to(l, static_cast<std::int16_t>(t.number)) = number_of(*unused);
  *unused = {.of = &l,
             .thread = t.number,
             .core = t.core,
             .address = t.awaits.address,
             .write = t.awaits.write,
             .next = t.awaits.next,
             .passes = t.awaits.passes};
  if (t.awaits.called) call(*unused);
  t.awaits = {};
}

// A core asks for a line once. If it has asked before the abort, the new request takes that one's
// place. Returns whether it has.
bool engine::take_over(program_thread& me, line& l, const line_wait& request) {
  for (std::int16_t* link = &l.first_waiter; *link >= 0; link = link_of(*link)) {
    const auto n = static_cast<std::size_t>(*link);
    if (n < threads_.size() || abandoned_[n - threads_.size()].core != me.core) continue;
    abandoned_request& old = abandoned_[n - threads_.size()];
    *link = static_cast<std::int16_t>(me.number);
    me.awaits = request;
    me.awaits.next = old.next;
    me.awaits.called = old.called;
    me.awaits.passes = old.passes;
    old = {};
    return true;
  }
  return false;
}

// The called one whose line is free first, or null.
engine::abandoned_request* engine::next_abandoned() noexcept {
  abandoned_request* first = nullptr;
  for (abandoned_request& a : abandoned_) {
    if (a.of != nullptr && a.called && (first == nullptr || a.at < first->at)) first = &a;
  }
  first_abandoned_at_ = first == nullptr ? no_deadline : first->at;
  return first;
}

// Serves the abandoned requests whose turn comes before that of any thread.
void engine::serve_abandoned() {
  while (abandoned_request* const next = next_abandoned()) {
    const program_thread& me = *now_running_;
    if (me.is == state::able && me.clock < next->at) return;
    if (!queue_.empty() && threads_[queue_.front()].clock < next->at) return;
    if (const std::uint64_t free = std::max(next->of->busy_until, next->of->arrived_at);
        free > next->at) {
      next->at = free;  // an access to several lines did not wait for this one
      continue;
    }
    const abandoned_request served = *next;
    *link_to(*served.of, number_of(*next)) = served.next;
    *next = {};
    serve(served);
  }
}

// The line moves to the core, whose thread may have forgotten why. What other threads' transactions
// have of it is lost. Not modelled: a line that leaves the running thread's own L1 by this does not
// abort its transaction.
void engine::serve(const abandoned_request& request) {
  program_thread& me = *now_running_;
  line& l = *request.of;
  serving_at_ = request.at;
  asked_by_ = request.thread;
  const bool taken =
      l.writer >= 0 && threads_[static_cast<std::size_t>(l.writer)].core != request.core;
  bool mine_is_lost = false;
  const auto abort = [&](program_thread& victim) {
    if (victim.core == request.core) return;
    if (&victim == &me) {
      mine_is_lost = true;
    } else {
      abort_for(victim, l, {request.address, 1}, request.write);
    }
  };
  if (l.writer >= 0) abort(threads_[static_cast<std::size_t>(l.writer)]);
  for (unsigned word = 0; request.write && word < l.readers.size(); ++word) {
    for (std::uint64_t left = l.readers[word]; left != 0; left &= left - 1)
      abort(threads_[word * std::size_t{64} + static_cast<std::size_t>(__builtin_ctzll(left))]);
  }
  const access_cost cost = caches_.access(request.core, l, request.write, taken, request.at);
  call_next(l);
  if (cost.left_l1 != nullptr && request.core != me.core) line_left_l1(request.core, *cost.left_l1);
  serving_at_ = no_deadline;
  if (!mine_is_lost) {
    asked_by_ = nobody;
    return;
  }
  abort_cause cause{
      .why = abort_reason::conflict, .address = request.address, .write = request.write};
  cause.same_bytes = count_conflict(me, l, {request.address, 1}, request.write);
  me.clock = std::max(me.tx.began, request.at);
  if (me.queued) unqueue(me);
  me.is = state::able;
  turn_ends_ = end_of_turn();
  abort_myself(cause);
}

// Returns the waiting request to serve next, chosen by machine::line_order.
std::int16_t engine::next_served(const line& l) {
  if (machine_.line_order == machine::random_order) {
    std::uint64_t waiters = 0;
    for (std::int16_t one = l.first_waiter; one >= 0; one = *link_of(one)) ++waiters;
    std::int16_t chosen = l.first_waiter;
    for (std::uint64_t n = next_random(line_order_random_) % waiters; n > 0; --n)
      chosen = *link_of(chosen);
    return chosen;
  }
  constexpr unsigned passes_max = 64;  // chosen, so that no request waits for ever
  if (machine_.line_order == machine::same_socket_first && l.owner >= 0 &&
      (*passes_of(l.first_waiter))++ < passes_max) {
    const unsigned here = caches_.socket_of(static_cast<unsigned>(l.owner));
    for (std::int16_t one = l.first_waiter; one >= 0; one = *link_of(one)) {
      if (caches_.socket_of(core_of(one)) == here) return one;
    }
  }
  return l.first_waiter;
}

}  // namespace elidex::sim
