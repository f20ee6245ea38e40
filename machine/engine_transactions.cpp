// The engine's transactions: begin, commit, abort; RTM and HLE.
#include <cxxabi.h>

#include <algorithm>
#include <cstring>

#include "machine/engine.hpp"
#include "machine/heap.hpp"

namespace elidex::sim {
namespace {

// Where libstdc++ keeps the calling thread's exceptions in flight; a transaction that is thrown
// away takes its own with it.
std::byte* exception_globals() noexcept {
  return reinterpret_cast<std::byte*>(abi::__cxa_get_globals());
}

abort_cause elision_of(const std::uint32_t& word) noexcept {
  return {.why = abort_reason::elision, .address = reinterpret_cast<std::uint64_t>(&word)};
}

}  // namespace

// Intel, "Software developer's manual" volume 1, section 16.3.5 (RTM abort status definition).
std::uint32_t status_word(abort_reason reason, std::uint8_t code, bool nested) noexcept {
  constexpr std::uint32_t bit_explicit = 1;
  constexpr std::uint32_t bit_retry = 2;
  constexpr std::uint32_t bit_conflict = 4;
  constexpr std::uint32_t bit_capacity = 8;
  constexpr std::uint32_t bit_nested = 32;
  std::uint32_t word = nested ? bit_nested : 0;
  switch (reason) {
    case abort_reason::conflict:
      return word | bit_conflict | bit_retry;
    case abort_reason::write_capacity:
    case abort_reason::read_capacity:
      return word | bit_capacity;
    case abort_reason::explicit_:
      return word | bit_explicit | static_cast<std::uint32_t>(code) << 24;
    case abort_reason::interrupt:
    case abort_reason::page_fault:
    case abort_reason::system_call:
    case abort_reason::nesting:
    case abort_reason::elision:
      break;
  }
  return word;
}

void engine::save_point(program_thread& me, const registers& back) {
  transaction& tx = me.tx;
  tx.depth = 1;
  tx.began = me.clock;
  tx.back = back;
  const auto* const from = reinterpret_cast<const std::byte*>(back.rsp);
  tx.stack.assign(from, reinterpret_cast<const std::byte*>(me.runs->stack_high));
  std::memcpy(tx.exception_globals.data(), exception_globals(), tx.exception_globals.size());
  me.last_code = reinterpret_cast<const void*>(back.rip);
  ++me.counts.begun;
}

std::uint32_t engine::begin(const registers& back) {
  program_thread& me = *now_running_;
  if (!has_rtm()) stop("thread %llu begins a transaction on a machine without RTM", me.number);
  pending_write_ = {};
  charge_instructions();
  me.clock += machine_.begin_cycles;
  take_turn();
  if (me.tx.active()) {
    if (me.tx.elided_word != nullptr) abort_myself({abort_reason::nesting});  // RTM inside HLE
    if (++me.tx.depth > machine_.nesting_max) abort_myself({abort_reason::nesting});
    return region_started;
  }
  save_point(me, back);
  return region_started;
}

void engine::commit() {
  program_thread& me = *now_running_;
  if (!me.tx.active()) stop("thread %llu commits outside of a transaction", me.number);
  pending_write_ = {};
  charge_instructions();
  wait_for_misses(me);
  const bool writes = me.tx.depth == 1 && me.tx.has_written();
  const std::uint64_t of_writes = writes ? machine_.commit_writes_cycles : 0;
  const std::uint64_t exposed = std::min(of_writes, machine_.commit_exposed_cycles);
  me.clock += machine_.commit_cycles + exposed;
  take_turn();
  if (--me.tx.depth > 0) return;
  end_transaction(me, nullptr);
  me.clock += of_writes - exposed;
}

void engine::abort(std::uint8_t code) {
  charge_instructions();
  if (now_running_->tx.active()) abort_myself({abort_reason::explicit_, code});
}

std::uint32_t engine::begin_elision(const registers& back, std::uint32_t& word,
                                    std::uint32_t value) {
  program_thread& me = *now_running_;
  if (machine_.hle == 0) return 0;
  pending_write_ = {};
  if (me.tx.active()) abort_myself(elision_of(word));  // inside RTM, or a second lock
  charge_instructions();
  me.clock += machine_.begin_cycles;
  take_turn();
  save_point(me, back);
  me.tx.elided_word = &word;
  ++me.counts.elided.begun;
  visit(reinterpret_cast<std::uint64_t>(&word), sizeof word, false, true);
  me.tx.elided_before = word;
  me.tx.elided_now = value;
  return region_started;
}

bool engine::end_elision(std::uint32_t& word, std::uint32_t value) {
  program_thread& me = *now_running_;
  if (me.tx.elided_word != &word) return false;
  if (value != me.tx.elided_before) abort_myself(elision_of(word));
  commit();
  return true;
}

void engine::end_transaction(program_thread& t, const abort_cause* aborted_for) {
  const bool committed = aborted_for == nullptr;
  for (const transaction::entry& e : t.tx.lines()) {
    e.at->remove_reader(t.number);
    if (e.written != 0) e.at->writer = -1;
    if (committed && !t.has_on_stack(e.address)) ++t.counts.committed_lines;
  }
  const std::uint64_t lasted = t.clock - t.tx.began;
  t.counts.transactional_cycles += lasted;
  const bool by_hle = t.tx.elided_word != nullptr;
  if (committed) {
    ++t.counts.committed;
    if (by_hle) ++t.counts.elided.committed;
    for (void* const at : t.tx.to_free) heap::free(at, t.number);
  } else {
    t.counts.aborted_cycles += lasted;
    ++t.counts.aborts[static_cast<std::size_t>(aborted_for->why)];
    if (by_hle) ++t.counts.elided.aborts[static_cast<std::size_t>(aborted_for->why)];
    hot_spot& here = hot_spots_[t.last_code];
    ++here.aborts;
    here.aborted_cycles += lasted;
    for (void* const at : t.tx.allocated) heap::free(at, t.number);
  }
  if (options_.record_events) note_event(t, aborted_for);
  t.read_table.clear();
  t.tx.elided_word = nullptr;
  t.tx.clear();
}

void engine::note_event(const program_thread& t, const abort_cause* aborted_for) {
  noted_event noted{{.what = aborted_for == nullptr ? event::kind::commit : event::kind::abort,
                     .thread = static_cast<std::uint16_t>(t.number),
                     .begin_cycles = t.tx.began,
                     .end_cycles = t.clock},
                    0};
  if (aborted_for != nullptr) {
    noted.what.cause = *aborted_for;
    noted.what.by =
        static_cast<std::uint16_t>(asked_by_ == nobody ? now_running_->number : asked_by_);
    if (aborted_for->address != 0) {
      const memory_names::place place = names_.place_of(aborted_for->address);
      noted.name = place.name;
      noted.what.line = place.line;
    }
  }
  events_.push_back(std::move(noted));
}

// Ends the victim's transaction now, even during one of its accesses. The remaining cycles of that
// access are not counted.
void engine::cut_short(program_thread& victim) noexcept {
  victim.clock = std::max(victim.tx.began, clock_now());
  const auto& fetches = victim.tx.fetches;
  for (auto last = fetches.rbegin(); last != fetches.rend() && last->end > victim.clock; ++last) {
    last->counted_in->cycles -= last->end - std::max(last->begin, victim.clock);
  }
  // At once: whoever is called next is put into the same queue.
  if (options_.schedule == nullptr && victim.queued) moved(victim);
}

// Undoes all but the registers and the stack; returns what begin() shall answer.
std::uint32_t engine::roll_back(program_thread& victim, const abort_cause& cause) {
  const bool nested = victim.tx.depth > 1;
  const bool elides = victim.tx.elided_word != nullptr;
  const std::uint32_t status = elides ? 0 : status_word(cause.why, cause.code, nested);
  for (const transaction::entry& e : victim.tx.lines()) {
    if (e.written == 0) continue;
    caches_.discard(victim.core, *e.at, e.dirty_before);
    const bool on_own_stack =
        e.address >= victim.runs->stack_low && e.address < victim.runs->stack_high;
    if (!on_own_stack) put_back(e);
  }
  victim.miss_count = 0;
  if (&victim != now_running_) cut_short(victim);
  if (victim.awaits.of != nullptr) abandon(victim);
  end_transaction(victim, &cause);
  victim.clock += machine_.abort_cycles;
  victim.counts.aborting_cycles += machine_.abort_cycles;
  return status;
}

// The bytes that it has written; others in the line may have been changed since by who owns them (a
// stack's owner, say).
void engine::put_back(const transaction::entry& e) {
  std::byte* const line_now = reinterpret_cast<std::byte*>(e.address);
  const auto restore = [&](std::byte* to, std::uint64_t bytes) {
    for (std::uint64_t left = bytes; left != 0; left &= left - 1) {
      const auto i = static_cast<std::size_t>(__builtin_ctzll(left));
      to[i] = e.before[i];
    }
  };
  restore(line_now, e.written);
  // Another region may have saved this very stack with the bytes in it that are undone now.
  const std::uint64_t owner = (e.address - stacks_begin) / stack_bytes;
  if (e.address < stacks_begin || owner >= threads_.size()) return;
  transaction& saved = threads_[owner].tx;
  if (!saved.active()) return;
  for (std::uint64_t i = 0; i < line_bytes; ++i) {
    const std::uint64_t at = e.address + i;
    const bool is_saved = at >= saved.back.rsp && at < saved.back.rsp + saved.stack.size();
    if ((e.written >> i & 1) != 0 && is_saved) saved.stack[at - saved.back.rsp] = e.before[i];
  }
}

void engine::abort_thread(program_thread& victim, const abort_cause& cause) {
  const registers back = victim.tx.back;
  const std::uint32_t status = roll_back(victim, cause);
  // It stands in one of our calls, from which it will never return: its stack is free to be put
  // back.
  std::memcpy(reinterpret_cast<void*>(back.rsp), victim.tx.stack.data(), victim.tx.stack.size());
  victim.runs->at = back;
  victim.runs->at.rax = status;
  const std::uint64_t here = thread_pointer();
  set_thread_pointer(victim.runs->thread_pointer);
  std::memcpy(exception_globals(), victim.tx.exception_globals.data(),
              victim.tx.exception_globals.size());
  set_thread_pointer(here);
  if (options_.schedule == nullptr) {
    if (victim.queued) {
      moved(victim);
    } else {
      enqueue(victim);  // its request was waiting for a line
    }
    turn_ends_ = std::min(turn_ends_, victim.clock + options_.quantum_cycles);
  }
}

void engine::abort_myself(const abort_cause& cause) {
  program_thread& me = *now_running_;
  pending_write_ = {};
  static registers back;
  back = me.tx.back;
  back.rax = roll_back(me, cause);
  asked_by_ = nobody;
  std::memcpy(exception_globals(), me.tx.exception_globals.data(), me.tx.exception_globals.size());
  restore_stack_and_go_on(back, reinterpret_cast<void*>(back.rsp), me.tx.stack.data(),
                          me.tx.stack.size());
}

}  // namespace elidex::sim
