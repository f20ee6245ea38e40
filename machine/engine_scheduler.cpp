// The engine's CPUs: which of the program's threads runs on which hardware thread.
//
// A CPU is a hardware thread of the machine that the program may use (run_options::cpus). A thread
// has a CPU from the moment at which it may run until it waits or ends. If there are more threads
// than CPUs, the others are ready: they wait in one queue, and a CPU that becomes free takes the
// first of them. A thread that has run for slice_cycles gives way at its next timer interrupt, if
// another one is ready.
//
// A thread returns to the CPU on which it ran last, unless another thread has taken that one. So
// with at most as many threads as CPUs each thread keeps its own.
//
// A transaction never outlasts its thread's time on a CPU: waiting aborts it, and so does the
// timer interrupt after which a thread gives way.
#include <algorithm>

#include "machine/engine.hpp"

namespace elidex::sim {

// Lets the thread run from `at` on, if a CPU is idle, or puts it into the queue.
void engine::make_able(program_thread& t, std::uint64_t at) {
  const int idle = idle_cpu_for(t);
  if (idle < 0) {
    t.clock = std::max(t.queued ? t.waits_since : t.clock, at);
    if (t.queued) unqueue(t);  // it has waited with a deadline
    t.is = state::ready;
    ready_.push_back(t.number);
    return;
  }
  // A thread that waits with a deadline is queued with the deadline's clock.
  const bool queued = t.queued;
  t.clock = std::max(queued ? t.waits_since : t.clock, at);
  if (cpu& mine = cpus_[static_cast<unsigned>(idle)]; queued && mine.ran_last == &t)
    mine.free_at = std::min(mine.free_at, at);
  put_on(t, static_cast<unsigned>(idle));
  if (queued) {
    moved(t);
  } else {
    push(t);
  }
  turn_ends_ = std::min(turn_ends_, t.clock + options_.quantum_cycles);
}

// Returns the number of an idle CPU, or -1.
int engine::idle_cpu_for(const program_thread& t) const noexcept {
  if (cpus_[t.cpu].runs == nullptr) return static_cast<int>(t.cpu);
  const auto idle =
      std::find_if(cpus_.begin(), cpus_.end(), [](const cpu& c) { return c.runs == nullptr; });
  return idle == cpus_.end() ? -1 : static_cast<int>(idle - cpus_.begin());
}

void engine::put_on(program_thread& t, unsigned number) {
  cpus_[number].runs = &t;
  const std::uint64_t from = std::max(t.clock, cpus_[number].free_at);
  const bool was_ready = t.is == state::ready;
  t.counts.ready_cycles += from - t.clock;
  t.clock = from;
  t.slice_began = from;
  t.cpu = number;
  t.core = static_cast<unsigned>(machine_.core_of(number));
  t.is = state::able;
  // The timer belongs to the CPU: it has interrupted others meanwhile.
  while (was_ready && t.next_timer <= t.clock) t.next_timer += machine_.timer_period_cycles;
  t.gives_way = false;
  t.next_interrupt = std::min(t.next_timer, t.next_stray);
}

// The running thread no longer needs its CPU, and the first ready thread gets it.
void engine::give_up_cpu(program_thread& me) {
  cpus_[me.cpu] = {.runs = nullptr, .ran_last = &me, .free_at = me.clock};
  if (ready_.empty()) return;
  program_thread& next = threads_[ready_.front()];
  ready_.pop_front();
  cpus_[me.cpu].free_at += machine_.context_switch_cycles;
  put_on(next, me.cpu);
  push(next);
  turn_ends_ = std::min(turn_ends_, next.clock + options_.quantum_cycles);
}

// For a thread whose wait has ended at its deadline: it is running already, but without a CPU.
void engine::take_cpu(program_thread& me) {
  if (const int idle = idle_cpu_for(me); idle >= 0) {
    put_on(me, static_cast<unsigned>(idle));
    return;
  }
  me.is = state::ready;
  ready_.push_back(me.number);
  leave();
}

// Lets the first ready thread run in place of the running one.
void engine::give_way() {
  program_thread& me = *now_running_;
  me.gives_way = false;
  if (ready_.empty()) return;
  if (me.clock > options_.cycles_max) stop("no end after %llu cycles", options_.cycles_max);
  me.is = state::ready;
  ready_.push_back(me.number);
  give_up_cpu(me);
  leave();
}

bool engine::slice_has_ended(const program_thread& me) const noexcept {
  return !ready_.empty() && me.clock - me.slice_began >= machine_.slice_cycles;
}

}  // namespace elidex::sim
