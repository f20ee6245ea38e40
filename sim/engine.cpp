#include "sim/engine.hpp"

#include <cxxabi.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <sstream>

#include "sim/heap.hpp"

namespace elidex::sim {

engine* running = nullptr;

namespace {

constexpr std::size_t held_locks_max = 64;  // of a thread, remembered for reports

// Where libstdc++ keeps the calling thread's exceptions in flight; a transaction that is thrown away takes its own with
// it.
std::byte* exception_globals() noexcept {
  return reinterpret_cast<std::byte*>(abi::__cxa_get_globals());
}

std::uint64_t byte_mask(std::uint64_t address, std::uint64_t bytes) noexcept {
  const std::uint64_t ones = bytes >= line_bytes ? ~std::uint64_t{0} : (std::uint64_t{1} << bytes) - 1;
  return ones << address % line_bytes;
}

std::string hexadecimal(const void* at) {
  std::ostringstream out;
  out << at;
  return out.str();
}

}  // namespace

std::string_view to_string(abort_reason reason) noexcept {
  constexpr std::array<std::string_view, abort_reasons> names{"conflict",      "write capacity", "read capacity",
                                                              "explicit",      "timer",          "page fault",
                                                              "system call",   "nesting",        "elision"};
  return names[static_cast<std::size_t>(reason)];
}

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
    case abort_reason::timer:
    case abort_reason::page_fault:
    case abort_reason::system_call:
    case abort_reason::nesting:
    case abort_reason::elision:
      break;
  }
  return word;
}

engine::engine(const machine& which, const run_options& options, memory& where)
    : machine_(which), options_(options), memory_(where), caches_(machine_), threads_(which.hardware_threads()) {
  for (unsigned i = 0; i < machine_.hardware_threads(); ++i) {
    hardware_thread& t = threads_[i];
    t.number = i;
    t.core = i % static_cast<unsigned>(machine_.cores());
    // The cores' timers tick at different times.
    t.next_timer = machine_.timer_period_cycles +
                   (options_.seed * 7919 + i * 104729) % 997 * machine_.timer_period_cycles / 997;
  }
}

engine::~engine() = default;

// --- whose turn it is ---

bool engine::before(unsigned a, unsigned b) const noexcept {
  const std::uint64_t clock_a = threads_[a].clock;
  const std::uint64_t clock_b = threads_[b].clock;
  return clock_a != clock_b ? clock_a < clock_b : a < b;
}

void engine::sift_up(unsigned place) {
  for (; place > 0 && before(queue_[place], queue_[(place - 1) / 2]); place = (place - 1) / 2) {
    std::swap(queue_[place], queue_[(place - 1) / 2]);
    threads_[queue_[place]].place = place;
  }
  threads_[queue_[place]].place = place;
}

void engine::sift_down(unsigned place) {
  for (;;) {
    unsigned least = place;
    for (unsigned child = 2 * place + 1; child <= 2 * place + 2 && child < queue_.size(); ++child) {
      if (before(queue_[child], queue_[least])) least = child;
    }
    if (least == place) break;
    std::swap(queue_[place], queue_[least]);
    threads_[queue_[place]].place = place;
    place = least;
  }
  threads_[queue_[place]].place = place;
}

void engine::enqueue(hardware_thread& t) {
  t.is = state::able;
  queue_.push_back(t.number);
  sift_up(static_cast<unsigned>(queue_.size() - 1));
}

engine::hardware_thread& engine::dequeue() {
  hardware_thread& first = threads_[queue_.front()];
  queue_.front() = queue_.back();
  queue_.pop_back();
  if (!queue_.empty()) sift_down(0);
  return first;
}

void engine::moved(hardware_thread& t) {
  sift_up(t.place);
  sift_down(t.place);
}

// Lets others run until the current thread is the furthest behind again.
void engine::next_turn(bool waits) {
  hardware_thread& me = *now_running_;
  if (me.clock > options_.cycles_max) stop("no end after %llu cycles", options_.cycles_max);
  if (options_.schedule != nullptr) {
    hardware_thread& next = by_schedule(waits);
    if (&next != &me) go_on_with(next);
  } else if (!queue_.empty()) {
    enqueue(me);
    hardware_thread& next = dequeue();
    if (&next != &me) {
      go_on_with(next);
    } else {
      turn_ends_ = queue_.empty() ? ~std::uint64_t{0} : threads_[queue_.front()].clock + options_.quantum_cycles;
    }
  } else {
    turn_ends_ = ~std::uint64_t{0};
  }
}

engine::hardware_thread& engine::by_schedule(bool waits) {
  std::array<unsigned, hardware_threads_max> able;
  unsigned count = 0;
  for (const hardware_thread& t : threads_) {
    if (t.is == state::able) able[count++] = t.number;
  }
  return threads_[options_.schedule->choose(able.data(), count, now_running_->number, waits)];
}

// Saves the current thread and runs another one; returns when the current one's turn has come again.
void engine::go_on_with(hardware_thread& next) {
  hardware_thread& me = *now_running_;
  const address_range pending = pending_write_;
  now_running_ = &next;
  if (options_.schedule != nullptr) {
    turn_ends_ = 0;
  } else {
    turn_ends_ = queue_.empty() ? ~std::uint64_t{0} : threads_[queue_.front()].clock + options_.quantum_cycles;
  }
  pending_write_ = {};
  set_thread_pointer(next.runs->thread_pointer);
  elidex_sim_switch(me.runs->at, next.runs->at);
  // The compiler announces a copy as a write, then a read, and makes both behind the second call. If others had their
  // turn in between, the write that was announced first is still to come.
  for (std::uint64_t at = pending.begin; at < pending.begin + pending.bytes; at = (at / line_bytes + 1) * line_bytes) {
    const std::uint64_t end = std::min(pending.begin + pending.bytes, (at / line_bytes + 1) * line_bytes);
    line& l = memory_.at(at);
    if (!me.tx.active()) abort_others(me, l, at, end - at, true);
  }
  pending_write_ = pending;
}

// The current thread has ended or waits: somebody else, or nobody, goes on.
void engine::leave() {
  hardware_thread& me = *now_running_;
  hardware_thread* next = nullptr;
  if (options_.schedule != nullptr) {
    const bool any = std::any_of(threads_.begin(), threads_.end(), [](const auto& t) { return t.is == state::able; });
    if (any) next = &by_schedule(true);
  } else if (!queue_.empty()) {
    next = &dequeue();
  }
  // A thread that waits with a deadline and is not woken goes on when time has come that far.
  for (hardware_thread& t : threads_) {
    if (t.is != state::waiting || t.deadline == ~std::uint64_t{0}) continue;
    if (next != nullptr && next->clock <= t.deadline) continue;
    if (next != nullptr && next->is == state::able && options_.schedule == nullptr) enqueue(*next);
    t.timed_out = true;
    t.clock = std::max(t.clock, t.deadline);
    t.deadline = ~std::uint64_t{0};
    for (auto& [key, who] : waiting_) std::erase(who, t.number);
    t.is = state::able;
    next = &t;
  }
  if (next == nullptr) {
    const bool somebody_waits = std::any_of(threads_.begin(), threads_.end(), [](const auto& t) {
      return t.is == state::waiting;
    });
    if (somebody_waits) {
      running = nullptr;  // what follows allocates, which must not look like the program's doing
      stuck_ = "every thread waits for another one\n" + state_of_all();
    }
  }
  if (me.is == state::ended) ending_ = &me;
  if (next != nullptr && ending_ == nullptr) {
    go_on_with(*next);
    return;
  }
  now_running_ = next;
  set_thread_pointer(outside_thread_pointer_);
  elidex_sim_switch(me.runs->at, outside_);
}

void engine::stop(const char* format, std::uint64_t number) {
  running = nullptr;  // what follows allocates, which must not look like the program's doing
  std::array<char, 200> why;
  std::snprintf(why.data(), why.size(), format, static_cast<unsigned long long>(number));
  stuck_ = std::string(why.data()) + "\n" + state_of_all();
  hardware_thread& me = *now_running_;
  now_running_ = nullptr;
  set_thread_pointer(outside_thread_pointer_);
  elidex_sim_switch(me.runs->at, outside_);
  __builtin_unreachable();
}

std::string engine::state_of_all() const {
  std::ostringstream out;
  for (const hardware_thread& t : threads_) {
    if (t.is == state::free || t.is == state::ended) continue;
    out << "thread " << t.number << " at cycle " << t.clock << ": ";
    if (t.is == state::waiting) {
      out << "waits for " << t.why << ' ' << t.waits_for;
    } else {
      out << "runs";
    }
    if (t.tx.active()) {
      out << ", in a transaction of depth " << t.tx.depth << " begun at "
          << hexadecimal(reinterpret_cast<const void*>(t.tx.back.rip));
    }
    for (const void* const lock : t.held) out << ", holds " << hexadecimal(lock);
    out << '\n';
  }
  return out.str();
}

// --- running ---

int engine::start_thread(std::function<void()> body) {
  const auto place = std::find_if(threads_.begin(), threads_.end(), [](const auto& t) { return t.is == state::free; });
  if (place == threads_.end()) return -1;
  hardware_thread& t = *place;
  t.runs = std::make_unique<fiber>(t.number, [this, &t, run_body = std::move(body)] {
    try {
      run_body();
    } catch (...) {
      t.thrown = std::current_exception();
    }
    t.is = state::ended;
    wake(&t, ~0u);
    leave();
  });
  if (now_running_ != nullptr) t.clock = std::max(t.clock, now_running_->clock);
  t.next_timer = std::max(t.next_timer, t.clock + 1);
  if (options_.schedule != nullptr) {
    t.is = state::able;
  } else {
    enqueue(t);
    if (now_running_ != nullptr) turn_ends_ = std::min(turn_ends_, t.clock + options_.quantum_cycles);
  }
  return static_cast<int>(t.number);
}

report engine::run(const std::vector<std::function<void()>>& bodies) {
  for (const auto& body : bodies) {
    if (start_thread(body) < 0) {
      throw std::invalid_argument("the machine has " + std::to_string(threads_.size()) + " hardware threads, not " +
                                  std::to_string(bodies.size()));
    }
  }
  outside_thread_pointer_ = thread_pointer();
  if (options_.schedule != nullptr) {
    now_running_ = &threads_.front();
    now_running_ = bodies.empty() ? nullptr : &by_schedule(true);
  } else {
    now_running_ = queue_.empty() ? nullptr : &dequeue();
  }
  while (now_running_ != nullptr) {
    if (options_.schedule != nullptr) {
      turn_ends_ = 0;
    } else {
      turn_ends_ = queue_.empty() ? ~std::uint64_t{0} : threads_[queue_.front()].clock + options_.quantum_cycles;
    }
    pending_write_ = {};
    running = this;
    set_thread_pointer(now_running_->runs->thread_pointer);
    elidex_sim_switch(outside_, now_running_->runs->at);
    running = nullptr;
    if (ending_ != nullptr) {
      ending_->runs->end_host();
      ending_ = nullptr;
    }
    if (!stuck_.empty()) break;
  }
  for (hardware_thread& t : threads_) {
    if (t.thrown != nullptr) std::rethrow_exception(t.thrown);
  }
  return make_report();
}

report engine::make_report() {
  report r;
  r.stuck = stuck_;
  for (hardware_thread& t : threads_) {
    if (t.runs == nullptr) continue;
    t.counts.cycles = t.clock;
    r.cycles = std::max(r.cycles, t.clock);
    r.threads.push_back(t.counts);
  }
  for (unsigned core = 0; core < machine_.cores(); ++core) {
    const cache_counts& c = caches_.counts(core);
    r.l1_hits += c.l1;
    r.l2_hits += c.l2;
    r.l3_hits += c.l3;
    r.other_core_hits += c.other_core;
    r.dram_accesses += c.dram;
  }
  for (const auto& [name, counted] : conflicts_) {
    r.conflicts.push_back(counted);
    r.conflicts.back().where = process_names().text(name);
  }
  std::stable_sort(r.conflicts.begin(), r.conflicts.end(), [](const conflict_report& a, const conflict_report& b) {
    return a.true_sharing + a.false_sharing > b.true_sharing + b.false_sharing;
  });
  r.events = std::move(events_);
  return r;
}

// --- memory ---

void engine::visit(std::uint64_t address, std::uint64_t bytes, bool write) {
  hardware_thread& me = *now_running_;
  me.clock += machine_.instruction_cycles;
  take_turn();
  pending_write_ = {};
  const std::uint64_t end = address + bytes;
  for (;;) {
    const std::uint64_t next = (address / line_bytes + 1) * line_bytes;
    touch(me, address, std::min(end, next) - address, write);
    if (next >= end) return;
    address = next;
  }
}

void engine::touch(hardware_thread& me, std::uint64_t address, std::uint64_t bytes, bool write) {
  page& p = memory_.page_of(address);
  if (!p.mapped) page_fault(p);
  line& l = p.lines[address % page_bytes / line_bytes];
  ++me.counts.accesses;
  abort_others(me, l, address, bytes, write);
  if (write && address - stacks_begin < stacks_bytes) abort_owner_of_stack(me, address);
  if (me.tx.active()) {
    transaction::entry& e = me.tx.of(l, address);
    const std::uint64_t mask = byte_mask(address, bytes);
    if (write) {
      if (e.written == 0) {
        std::memcpy(e.before.data(), reinterpret_cast<const void*>(e.address), line_bytes);
        l.writer = static_cast<std::int16_t>(me.number);
      }
      e.written |= mask;
    } else {
      if (e.read == 0) l.add_reader(me.number);
      e.read |= mask;
    }
  }
  const access_cost cost = caches_.access(me.core, l, write, me.clock);
  me.clock += cost.cycles;
  if (cost.left_l1 != nullptr) line_left_l1(me.core, *cost.left_l1);
}

// Requester wins: the access that is about to be made throws out whoever has the line in a way that it excludes.
void engine::abort_others(hardware_thread& me, line& l, std::uint64_t address, std::uint64_t bytes, bool write) {
  if (l.writer >= 0 && l.writer != static_cast<int>(me.number)) {
    hardware_thread& victim = threads_[static_cast<std::size_t>(l.writer)];
    count_conflict(victim, l, address, bytes, write);
    abort_thread(victim, abort_reason::conflict, 0);
  }
  if (!write) return;
  for (unsigned word = 0; word < l.readers.size(); ++word) {
    std::uint64_t left = l.readers[word];
    if (word == me.number / 64) left &= ~(std::uint64_t{1} << me.number % 64);
    for (; left != 0; left &= left - 1) {
      hardware_thread& victim = threads_[word * std::size_t{64} + static_cast<std::size_t>(__builtin_ctzll(left))];
      count_conflict(victim, l, address, bytes, write);
      abort_thread(victim, abort_reason::conflict, 0);
    }
  }
}

// A saved stack is put back whole: who writes into it ends the transaction that saved it.
void engine::abort_owner_of_stack(hardware_thread& me, std::uint64_t address) {
  const std::uint64_t owner = (address - stacks_begin) / stack_bytes;
  if (owner == me.number || owner >= threads_.size()) return;
  hardware_thread& victim = threads_[owner];
  if (victim.tx.active() && address >= victim.tx.back.rsp && address < victim.runs->stack_high) {
    abort_thread(victim, abort_reason::conflict, 0);
  }
}

void engine::line_left_l1(unsigned core, line& l) {
  bool mine_too_large = false;
  abort_reason my_reason = abort_reason::write_capacity;
  for (unsigned n = core; n < threads_.size(); n += static_cast<unsigned>(machine_.cores())) {
    hardware_thread& t = threads_[n];
    if (!t.tx.active()) continue;
    abort_reason why = abort_reason::write_capacity;
    if (l.writer != static_cast<int>(n)) {
      if (!l.in_read_set_of(n)) continue;
      const std::uint64_t hash = (std::uint64_t{l.number} * 0x9e3779b97f4a7c15) >> 32;
      if (++t.read_table[hash & (machine_.read_table_sets - 1)] <= machine_.read_table_ways) continue;
      why = abort_reason::read_capacity;
    }
    if (&t == now_running_) {
      mine_too_large = true;
      my_reason = why;
    } else {
      abort_thread(t, why, 0);
    }
  }
  if (mine_too_large) abort_myself(my_reason);
}

void engine::page_fault(page& p) {
  hardware_thread& me = *now_running_;
  if (me.tx.active()) abort_myself(abort_reason::page_fault);
  p.mapped = true;
  me.clock += machine_.page_fault_cycles;
}

void engine::unmap(std::uint64_t from, std::uint64_t bytes) {
  for (std::uint64_t at = from; at < from + bytes; at += page_bytes) memory_.page_of(at).mapped = false;
}

void* engine::allocate(std::size_t bytes, std::size_t alignment) {
  hardware_thread& me = *now_running_;
  me.clock += machine_.allocate_cycles;
  // New pages come from the system, which a transaction cannot call.
  if (heap::would_grow(bytes, alignment, me.number)) unfriendly(machine_.system_call_cycles);
  bool grew = false;
  void* const at = heap::allocate(bytes, alignment, me.number, grew);
  if (me.tx.active() && at != nullptr) me.tx.allocated.push_back(at);
  return at;
}

void engine::free(void* at) {
  hardware_thread& me = *now_running_;
  me.clock += machine_.allocate_cycles;
  if (me.tx.active()) {
    me.tx.to_free.push_back(at);
  } else {
    heap::free(at, me.number);
  }
}

// --- time ---

void engine::timer() {
  hardware_thread& me = *now_running_;
  while (me.next_timer <= me.clock) me.next_timer += machine_.timer_period_cycles;
  me.clock += machine_.timer_cycles;
  if (me.tx.active()) abort_myself(abort_reason::timer);
}

void engine::spend(std::uint64_t cycles) {
  now_running_->clock += cycles;
  take_turn();
}

void engine::pause() {
  // Intel lets a pause abort a transaction, and papers/001 section 3.3.2 relies on it.
  if (now_running_->tx.active()) abort_myself(abort_reason::system_call);
  now_running_->clock += machine_.pause_cycles;
  take_turn(options_.schedule != nullptr);
}

void engine::yield() {
  unfriendly(machine_.system_call_cycles);
  take_turn(options_.schedule != nullptr);
}

void engine::sleep(std::uint64_t cycles) {
  unfriendly(machine_.system_call_cycles);
  spend(cycles);
}

void engine::unfriendly(std::uint64_t cycles) {
  if (now_running_->tx.active()) abort_myself(abort_reason::system_call);
  now_running_->clock += cycles;
}

// --- transactions ---

void engine::save_point(hardware_thread& me, const registers& back) {
  transaction& tx = me.tx;
  tx.depth = 1;
  tx.began = me.clock;
  tx.back = back;
  const auto* const from = reinterpret_cast<const std::byte*>(back.rsp);
  tx.stack.assign(from, reinterpret_cast<const std::byte*>(me.runs->stack_high));
  std::memcpy(tx.exception_globals.data(), exception_globals(), tx.exception_globals.size());
  ++me.counts.begun;
}

std::uint32_t engine::begin(const registers& back) {
  hardware_thread& me = *now_running_;
  me.clock += machine_.begin_cycles;
  take_turn();
  if (me.tx.active()) {
    if (me.tx.elided_word != nullptr) abort_myself(abort_reason::nesting);  // RTM inside HLE
    if (++me.tx.depth > machine_.nesting_max) abort_myself(abort_reason::nesting);
    return region_started;
  }
  save_point(me, back);
  return region_started;
}

void engine::commit() {
  hardware_thread& me = *now_running_;
  if (!me.tx.active()) stop("thread %llu commits outside of a transaction", me.number);
  me.clock += machine_.commit_cycles;
  take_turn();
  if (--me.tx.depth > 0) return;
  end_transaction(me, true, abort_reason::conflict);
}

void engine::abort(std::uint8_t code) {
  if (now_running_->tx.active()) abort_myself(abort_reason::explicit_, code);
}

std::uint32_t engine::begin_elision(const registers& back, std::uint32_t& word, std::uint32_t value) {
  hardware_thread& me = *now_running_;
  if (machine_.hle == 0) return 0;
  if (me.tx.active()) abort_myself(abort_reason::elision);  // inside RTM, or a second lock
  me.clock += machine_.begin_cycles;
  take_turn();
  save_point(me, back);
  visit(reinterpret_cast<std::uint64_t>(&word), sizeof word, false);
  me.tx.elided_before = word;
  me.tx.elided_now = value;
  me.tx.elided_word = &word;
  return region_started;
}

bool engine::end_elision(std::uint32_t& word, std::uint32_t value) {
  hardware_thread& me = *now_running_;
  if (me.tx.elided_word != &word) return false;
  if (value != me.tx.elided_before) abort_myself(abort_reason::elision);
  commit();
  return true;
}

void engine::end_transaction(hardware_thread& t, bool committed, abort_reason why) {
  for (const transaction::entry& e : t.tx.lines()) {
    e.at->remove_reader(t.number);
    if (e.written != 0) e.at->writer = -1;
  }
  const std::uint64_t lasted = t.clock - t.tx.began;
  t.counts.transactional_cycles += lasted;
  if (committed) {
    ++t.counts.committed;
    for (void* const at : t.tx.to_free) heap::free(at, t.number);
  } else {
    t.counts.aborted_cycles += lasted;
    ++t.counts.aborts[static_cast<std::size_t>(why)];
    for (void* const at : t.tx.allocated) heap::free(at, t.number);
  }
  if (options_.record_events) {
    events_.push_back({committed ? event::kind::commit : event::kind::abort, why,
                       static_cast<std::uint16_t>(t.number), t.tx.began, t.clock});
  }
  t.read_table.clear();
  t.tx.elided_word = nullptr;
  t.tx.clear();
}

// Undoes all but the registers and the stack; returns what begin() shall answer.
std::uint32_t engine::roll_back(hardware_thread& victim, abort_reason why, std::uint8_t code) {
  const std::uint32_t status = victim.tx.elided_word != nullptr ? 0 : status_word(why, code, victim.tx.depth > 1);
  for (const transaction::entry& e : victim.tx.lines()) {
    if (e.written == 0) continue;
    caches_.discard(victim.core, *e.at);
    const bool on_own_stack = e.address >= victim.runs->stack_low && e.address < victim.runs->stack_high;
    if (!on_own_stack) std::memcpy(reinterpret_cast<void*>(e.address), e.before.data(), line_bytes);
  }
  victim.clock = std::max(victim.clock, now_running_->clock) + machine_.abort_cycles;
  end_transaction(victim, false, why);
  return status;
}

void engine::abort_thread(hardware_thread& victim, abort_reason why, std::uint8_t code) {
  const registers back = victim.tx.back;
  const std::uint32_t status = roll_back(victim, why, code);
  // It stands in one of our calls, from which it will never return: its stack is free to be put back.
  std::memcpy(reinterpret_cast<void*>(back.rsp), victim.tx.stack.data(), victim.tx.stack.size());
  victim.runs->at = back;
  victim.runs->at.rax = status;
  const std::uint64_t here = thread_pointer();
  set_thread_pointer(victim.runs->thread_pointer);
  std::memcpy(exception_globals(), victim.tx.exception_globals.data(), victim.tx.exception_globals.size());
  set_thread_pointer(here);
  if (options_.schedule == nullptr) moved(victim);
}

void engine::abort_myself(abort_reason why, std::uint8_t code) {
  hardware_thread& me = *now_running_;
  pending_write_ = {};
  static registers back;
  back = me.tx.back;
  back.rax = roll_back(me, why, code);
  std::memcpy(exception_globals(), me.tx.exception_globals.data(), me.tx.exception_globals.size());
  restore_stack_and_go_on(back, reinterpret_cast<void*>(back.rsp), me.tx.stack.data(), me.tx.stack.size());
}

void engine::count_conflict(const hardware_thread& victim, const line& l, std::uint64_t address, std::uint64_t bytes,
                            bool write) {
  const auto& lines = const_cast<hardware_thread&>(victim).tx.lines();
  const auto found = std::find_if(lines.begin(), lines.end(), [&](const auto& e) { return e.at == &l; });
  if (found == lines.end()) return;
  const std::uint64_t theirs = write ? found->read | found->written : found->written;
  conflict_report& counted = conflicts_[process_names().of(address)];
  ++((theirs & byte_mask(address, bytes)) != 0 ? counted.true_sharing : counted.false_sharing);
}

memory_names& process_names() {
  static memory_names* const names = new memory_names;
  return *names;
}

unsigned memory_names::number_of(const std::string& text) {
  const auto found = std::find(texts_.begin(), texts_.end(), text);
  if (found != texts_.end()) return static_cast<unsigned>(found - texts_.begin());
  texts_.push_back(text);
  return static_cast<unsigned>(texts_.size() - 1);
}

void memory_names::add(std::uint64_t from, std::uint64_t bytes, const char* name, std::uint64_t block_bytes,
                       std::uint64_t head_bytes) {
  const std::string text(name);
  ranges_[from] = {from + bytes, number_of(text), number_of(text + " head"), block_bytes, head_bytes};
}

unsigned memory_names::of(std::uint64_t address) const noexcept {
  const auto above = ranges_.upper_bound(address);
  if (above == ranges_.begin()) return 0;
  const auto& [from, r] = *std::prev(above);
  if (address >= r.end) return 0;
  return r.head_bytes != 0 && (address - from) % r.block_bytes < r.head_bytes ? r.head : r.body;
}

// --- waiting ---

bool engine::wait(const void* key, const char* why, std::uint64_t deadline) {
  unfriendly(machine_.system_call_cycles);
  hardware_thread& me = *now_running_;
  me.waits_for = key;
  me.why = why;
  me.deadline = deadline;
  me.timed_out = false;
  me.is = state::waiting;
  waiting_[key].push_back(me.number);
  leave();
  me.is = state::able;
  me.waits_for = nullptr;
  return !me.timed_out;
}

unsigned engine::wake(const void* key, unsigned count) {
  const auto found = waiting_.find(key);
  if (found == waiting_.end()) return 0;
  unsigned woken = 0;
  while (woken < count && !found->second.empty()) {
    hardware_thread& t = threads_[found->second.front()];
    found->second.pop_front();
    t.clock = std::max(t.clock, now_running_->clock) + machine_.system_call_cycles;
    t.deadline = ~std::uint64_t{0};
    t.is = state::able;
    if (options_.schedule == nullptr) {
      enqueue(t);
      turn_ends_ = std::min(turn_ends_, t.clock + options_.quantum_cycles);
    }
    ++woken;
  }
  if (found->second.empty()) waiting_.erase(found);
  return woken;
}

void engine::note_lock(const void* lock, bool held) {
  std::vector<const void*>& list = now_running_->held;
  if (held) {
    if (list.size() < held_locks_max) list.push_back(lock);
  } else {
    const auto last = std::find(list.rbegin(), list.rend(), lock);
    if (last != list.rend()) list.erase(std::next(last).base());
  }
}

void engine::wait_for_end(unsigned thread) {
  hardware_thread& t = threads_[thread];
  while (t.is != state::ended) wait(&t, "the end of thread");
}

void engine::forget_thread(unsigned thread) noexcept {
  hardware_thread& t = threads_[thread];
  if (t.is == state::ended) t.is = state::free;
}

pthread_t engine::handle_of(unsigned thread) const noexcept {
  return threads_[thread].runs->host_handle();
}

int engine::thread_of(pthread_t handle) const noexcept {
  for (const hardware_thread& t : threads_) {
    if (t.runs != nullptr && t.is != state::free && ::pthread_equal(t.runs->host_handle(), handle) != 0) {
      return static_cast<int>(t.number);
    }
  }
  return -1;
}

thread_report report::total() const noexcept {
  thread_report sum;
  for (const thread_report& t : threads) {
    sum.cycles += t.cycles;
    sum.accesses += t.accesses;
    sum.begun += t.begun;
    sum.committed += t.committed;
    for (std::size_t i = 0; i < abort_reasons; ++i) sum.aborts[i] += t.aborts[i];
    sum.transactional_cycles += t.transactional_cycles;
    sum.aborted_cycles += t.aborted_cycles;
  }
  return sum;
}

}  // namespace elidex::sim
