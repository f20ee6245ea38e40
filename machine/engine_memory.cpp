// The engine's accesses to memory: what they cost, which transactions they abort, and the passing
// of time.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "machine/engine.hpp"
#include "machine/heap.hpp"
#include "machine/random.hpp"

namespace elidex::sim {
namespace {

std::uint64_t byte_mask(std::uint64_t address, std::uint64_t bytes) noexcept {
  const std::uint64_t ones =
      bytes >= line_bytes ? ~std::uint64_t{0} : (std::uint64_t{1} << bytes) - 1;
  return ones << address % line_bytes;
}

}  // namespace

// --- instructions, and the accesses that a thread does not wait for ---

namespace {
std::uint64_t no_counts[2] = {};
// A cycle has this many parts, so that a few instructions take part of one.
constexpr std::uint64_t instruction_parts = 1024;
// Intel optimization manual, Haswell: at most four a cycle.
constexpr std::uint64_t retired_per_cycle = 4;
// A load that is followed by an access this close behind the loaded value has loaded its address.
constexpr std::uint64_t node_bytes_max = 4096;
}  // namespace

std::uint64_t* counted_by_program = no_counts;

namespace {
// An access's place in the program -> the places of the loads that its address needs.
using dependences = std::unordered_map<std::uint32_t, std::vector<std::uint32_t>>;
const std::uint32_t* noted_begin = nullptr;
const std::uint32_t* noted_end = nullptr;

dependences all_dependences;  // empty until a machine with a window needs them

// Programs lie below 4 GiB (-no-pie).
std::uint32_t short_place(const void* place) noexcept {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uint64_t>(place));
}
}  // namespace

void note_dependences(const std::uint32_t* begin, const std::uint32_t* end) noexcept {
  noted_begin = begin;
  noted_end = end;
}

void engine::prepare_dependences() {
  if (machine_.window_instructions == 0 || !all_dependences.empty()) return;
  for (const std::uint32_t* at = noted_begin; at != noted_end; at += 2)
    all_dependences[at[0]].push_back(at[1]);
}

// The time of the instructions that the thread has executed since its last call of the machine.
void engine::charge_instructions() {
  const std::uint64_t executed = counted_by_program[0];
  const std::uint64_t branches = counted_by_program[1];
  if (executed == 0) return;
  counted_by_program[0] = counted_by_program[1] = 0;
  program_thread& me = *now_running_;
  me.instructions += executed;
  me.counts.instructions += executed;
  if (machine_.mispredicted_per_1000_branches != 0) mispredict(me, branches);
  if (machine_.instructions_per_100_cycles == 0) return;
  std::uint64_t parts = executed * (100 * instruction_parts) / machine_.instructions_per_100_cycles;
  if (machine_.shared_core_percent != 100) {
    const auto cores = static_cast<unsigned>(machine_.cores());
    for (unsigned n = me.cpu % cores; n < cpus_.size(); n += cores) {
      if (n != me.cpu && cpus_[n].runs != nullptr && cpus_[n].runs->is == state::able) {
        parts = parts * 100 / machine_.shared_core_percent;
        break;
      }
    }
  }
  parts += me.instruction_part;
  me.clock += parts / instruction_parts;
  me.instruction_part = parts % instruction_parts;
}

// The branch cannot be decided before the loads that are outstanding have arrived.
void engine::mispredict(program_thread& me, std::uint64_t branches) {
  while (branches > me.predicted_branches) {
    branches -= me.predicted_branches + 1;
    wait_for_loads(me);
    me.clock += machine_.misprediction_cycles;
    const double uniform = (static_cast<double>(next_random(me.random) >> 11) + 1) * 0x1p-53;
    me.predicted_branches = static_cast<std::uint64_t>(
        std::log(uniform) /
        std::log1p(-static_cast<double>(machine_.mispredicted_per_1000_branches) / 1000));
  }
  me.predicted_branches -= branches;
}

// Waits for the loads that are outstanding, and until what ran ahead of them has retired. Retiring
// is in order.
void engine::wait_for_loads(program_thread& me) {
  for (unsigned i = 0; i < me.miss_count;) {
    if (me.misses[i].write) {
      ++i;
    } else {
      const std::uint64_t behind = me.instructions - me.misses[i].issued;
      const std::uint64_t retired = me.misses[i].arrives + behind / retired_per_cycle;
      wait_for_miss(me, i);
      me.clock = std::max(me.clock, retired);
    }
  }
}

void engine::wait_for_miss(program_thread& me, unsigned which) {
  const outstanding_miss awaited = me.misses[which];
  me.misses[which] = me.misses[--me.miss_count];
  if (awaited.arrives <= me.clock) return;
  if (awaited.counted_in != nullptr) {
    awaited.counted_in->cycles += awaited.arrives - me.clock;
    if (me.tx.active()) me.tx.fetches.push_back({awaited.counted_in, me.clock, awaited.arrives});
  }
  me.clock = awaited.arrives;
}

// Waits for what the next access needs: its address, a place in the window behind the oldest access
// that is outstanding, and a place among these if it has to leave the core.
void engine::wait_for_dependences(program_thread& me, std::uint64_t address, bool write) {
  for (unsigned i = 0; i < me.miss_count;) {
    const outstanding_miss& m = me.misses[i];
    if (m.arrives <= me.clock || needs(me, m, address) ||
        me.instructions - m.issued > machine_.window_instructions) {
      wait_for_miss(me, i);
      i = 0;
    } else {
      ++i;
    }
  }
  if (me.miss_count != 0) wait_for_place(me, memory_.at(address), write);
}

// Whether the address of the access that is being made needs what the load has not brought yet: by
// its value, or by what the program has computed from it.
bool engine::needs(const program_thread& me, const outstanding_miss& m, std::uint64_t address) {
  if (m.write) return false;
  if (address - m.points_to < node_bytes_max) return true;
  if (me.place_in_program == nullptr) return false;
  const auto found = all_dependences.find(short_place(me.place_in_program));
  if (found == all_dependences.end()) return false;
  const std::uint32_t load = short_place(m.place_in_program);
  return std::any_of(found->second.begin(), found->second.end(),
                     [load](std::uint32_t needed) { return needed == load; });
}

// An access that leaves the core waits for a place among those that are outstanding.
void engine::wait_for_place(program_thread& me, const line& l, bool write) {
  if (!caches::needs_others(me.core, l, write)) return;
  while (me.miss_count >= machine_.window_misses) wait_for_first_miss(me);
  if (!write) return;
  while (stores_outstanding(me) >= machine_.window_stores) wait_for_first_store(me);
}

unsigned engine::stores_outstanding(const program_thread& me) noexcept {
  return static_cast<unsigned>(std::count_if(me.misses.begin(), me.misses.begin() + me.miss_count,
                                             [](const auto& m) { return m.write; }));
}

void engine::wait_for_first_miss(program_thread& me) {
  unsigned first = 0;
  for (unsigned i = 1; i < me.miss_count; ++i) {
    if (me.misses[i].arrives < me.misses[first].arrives) first = i;
  }
  wait_for_miss(me, first);
}

void engine::wait_for_first_store(program_thread& me) {
  const auto first = std::min_element(me.misses.begin(), me.misses.begin() + me.miss_count,
                                      [](const auto& a, const auto& b) {
                                        return a.write == b.write ? a.arrives < b.arrives : a.write;
                                      });
  wait_for_miss(me, static_cast<unsigned>(first - me.misses.begin()));
}

void engine::run_on_behind(program_thread& me, const outstanding_miss& miss) {
  me.misses[me.miss_count++] = miss;
  // An access that the core's own L2 serves has not waited for a place before.
  if (me.miss_count == me.misses.size()) wait_for_first_miss(me);
}

void engine::visit(std::uint64_t address, std::uint64_t bytes, bool write, bool atomic,
                   bool waits_for_line) {
  program_thread& me = *now_running_;
  // What lies on the thread's own stack would be in registers but for the compiler's bookkeeping of
  // atomics and the like: it costs nothing. A loop on an atomic there must let the others run all
  // the same.
  if (atomic || !me.has_on_stack(address)) {
    charge_access();
    wait_for_dependences(me, address, write);
    take_turn();
    wait_for_lines(me, address, bytes, write);
  }
  pending_write_ = {};
  waits_for_line_ = waits_for_line;
  touch_all(me, address, bytes, write);
}

void engine::visit_both(std::uint64_t first, bool write_first, std::uint64_t second,
                        std::uint64_t bytes) {
  program_thread& me = *now_running_;
  me.place_in_program = nullptr;
  charge_access();
  wait_for_dependences(me, first, write_first);
  wait_for_dependences(me, second, false);
  take_turn();
  wait_for_lines(me, first, bytes, write_first);
  wait_for_lines(me, second, bytes, false);
  pending_write_ = {};
  waits_for_line_ = false;
  touch_all(me, second, bytes, false);
  touch_all(me, first, bytes, write_first);
}

void engine::touch_all(program_thread& me, std::uint64_t address, std::uint64_t bytes, bool write) {
  const std::uint64_t end = address + bytes;
  for (;;) {
    const std::uint64_t next = (address / line_bytes + 1) * line_bytes;
    touch(me, address, std::min(end, next) - address, write);
    if (next >= end) return;
    address = next;
  }
}

void engine::touch(program_thread& me, std::uint64_t address, std::uint64_t bytes, bool write) {
  page& p = memory_.page_of(address);
  if (!p.mapped) page_fault(p, address);
  if (p.exempt) {
    if (me.awaits.of == &p.lines[address % page_bytes / line_bytes]) stop_waiting(me);
    me.clock += machine_.l1_cycles;
    return;
  }
  line& l = p.lines[address % page_bytes / line_bytes];
  const bool own_stack = me.has_on_stack(address);
  // HLE shows the thread another value than memory has: only loads and the store that ends it know
  // of that.
  const auto elided = reinterpret_cast<std::uint64_t>(me.tx.elided_word);
  if (write && elided != 0 && address < elided + sizeof(std::uint32_t) &&
      elided < address + bytes) {
    abort_myself({.why = abort_reason::elision, .address = address});
  }
  const bool taken = l.writer >= 0 && threads_[static_cast<std::size_t>(l.writer)].core != me.core;
  abort_others(me, l, address, bytes, write);
  if (write && address - stacks_begin < stacks_bytes) abort_owner_of_stack(me, address);
  if (me.tx.active()) {
    transaction::entry& e = me.tx.of(l, address);
    const std::uint64_t mask = byte_mask(address, bytes);
    if (write) {
      if (e.written == 0) {
        std::memcpy(e.before.data(), reinterpret_cast<const void*>(e.address), line_bytes);
        l.writer = static_cast<std::int16_t>(me.number);
        e.dirty_before = l.dirty && l.owner == static_cast<int>(me.core);
      }
      e.written |= mask;
    } else {
      if (e.read == 0) l.add_reader(me.number);
      e.read |= mask;
    }
  }
  if (own_stack) return;
  ++me.counts.accesses;
  if (me.miss_count != 0) wait_for_place(me, l, write);
  const access_cost cost = caches_.access(me.core, l, write, taken, me.clock);
  if (me.awaits.of == &l) stop_waiting(me);
  fetch_report* counted_in = nullptr;
  if (cost.outside) {
    counted_in = &fetches_[names_.place_of(address)];
    ++counted_in->accesses;
    counted_in->met_others += cost.met_others ? 1 : 0;
  }
  const std::uint64_t arrives = me.clock + cost.cycles;
  if (cost.cycles <= machine_.l1_cycles) {
    me.clock = arrives;
  } else {
    std::uint64_t points_to = 0;
    if (!write && bytes == sizeof points_to)
      std::memcpy(&points_to, reinterpret_cast<const void*>(address), sizeof points_to);
    run_on_behind(me,
                  {arrives, me.instructions, points_to, counted_in, me.place_in_program, write});
    if (waits_for_line_ || machine_.window_instructions == 0) wait_for_misses(me);
  }
  if (cost.left_l1 != nullptr) line_left_l1(me.core, *cost.left_l1);
}

// Requester wins: the access that is about to be made throws out whoever has the line in a way that
// it excludes.
void engine::abort_others(program_thread& me, line& l, std::uint64_t address, std::uint64_t bytes,
                          bool write) {
  if (l.writer >= 0 && l.writer != static_cast<int>(me.number)) {
    program_thread& victim = threads_[static_cast<std::size_t>(l.writer)];
    abort_for(victim, l, {address, bytes}, write);
  }
  if (!write) return;
  for (unsigned word = 0; word < l.readers.size(); ++word) {
    std::uint64_t left = l.readers[word];
    if (word == me.number / 64) left &= ~(std::uint64_t{1} << me.number % 64);
    for (; left != 0; left &= left - 1) {
      program_thread& victim =
          threads_[word * std::size_t{64} + static_cast<std::size_t>(__builtin_ctzll(left))];
      abort_for(victim, l, {address, bytes}, write);
    }
  }
}

void engine::abort_for(program_thread& victim, const line& l, address_range at, bool write) {
  abort_cause cause{.why = abort_reason::conflict, .address = at.begin, .write = write};
  cause.same_bytes = count_conflict(victim, l, at, write);
  abort_thread(victim, cause);
}

// A saved stack is put back whole: who writes into it ends the transaction that saved it.
void engine::abort_owner_of_stack(program_thread& me, std::uint64_t address) {
  const std::uint64_t owner = (address - stacks_begin) / stack_bytes;
  if (owner == me.number || owner >= threads_.size()) return;
  program_thread& victim = threads_[owner];
  if (victim.tx.active() && address >= victim.tx.back.rsp && address < victim.runs->stack_high) {
    abort_thread(victim, {.why = abort_reason::conflict, .address = address, .write = true});
  }
}

void engine::line_left_l1(unsigned core, line& l) {
  bool mine_too_large = false;
  abort_cause mine{abort_reason::write_capacity};
  const auto cores = static_cast<unsigned>(machine_.cores());
  for (auto n = static_cast<unsigned>(machine_.first_thread_on(core)); n < cpus_.size();
       n += cores) {
    if (cpus_[n].runs == nullptr) continue;
    program_thread& t = *cpus_[n].runs;
    if (!t.tx.active()) continue;
    abort_cause cause{abort_reason::write_capacity};
    if (l.writer != static_cast<int>(t.number)) {
      if (!l.in_read_set_of(t.number)) continue;
      bool& counted = t.tx.of(l, 0).in_read_table;
      if (counted) continue;  // it has left before
      counted = true;
      const std::uint64_t hash = (std::uint64_t{l.number} * 0x9e3779b97f4a7c15) >> 32;
      if (++t.read_table[hash & (machine_.read_table_sets - 1)] <= machine_.read_table_ways)
        continue;
      cause.why = abort_reason::read_capacity;
    }
    cause.address = t.tx.of(l, 0).address;
    if (&t == now_running_) {
      mine_too_large = true;
      mine = cause;
    } else {
      abort_thread(t, cause);
    }
  }
  if (mine_too_large) abort_myself(mine);
}

void engine::page_fault(page& p, std::uint64_t address) {
  program_thread& me = *now_running_;
  if (me.tx.active()) abort_myself({.why = abort_reason::page_fault, .address = address});
  p.mapped = true;
  me.clock += machine_.page_fault_cycles;
}

void engine::unmap(std::uint64_t from, std::uint64_t bytes) {
  for (std::uint64_t at = from; at < from + bytes; at += page_bytes)
    memory_.page_of(at).mapped = false;
}

void engine::exempt(std::uint64_t from, std::uint64_t bytes) {
  const std::uint64_t end = (from + bytes) / page_bytes * page_bytes;
  for (std::uint64_t at = (from + page_bytes - 1) / page_bytes * page_bytes; at < end;
       at += page_bytes) {
    memory_.page_of(at).exempt = true;
  }
}

void engine::warm_l3() {
  unsigned socket = 0;
  for (std::uint64_t at = arena_begin; at < heap::end(); at += page_bytes) {
    for (line& l : memory_.page_of(at).lines) caches_.warm(socket, l);
    socket = (socket + 1) % static_cast<unsigned>(machine_.sockets);
  }
}

void engine::start_counting() {
  unfriendly(0);
  ++ready_to_count_;
  if (!all_ready_to_count()) {
    wait(&ready_to_count_, "the others to start counting");
    return;
  }
  count_from_here();
}

// Of those that have not ended.
bool engine::all_ready_to_count() const noexcept {
  const auto alive =
      static_cast<unsigned>(std::count_if(threads_.begin(), threads_.end(), [](const auto& t) {
        return t.is == state::able || t.is == state::ready || t.is == state::waiting;
      }));
  return ready_to_count_ != 0 && ready_to_count_ >= alive;
}

void engine::count_from_here() {
  ready_to_count_ = 0;
  std::uint64_t latest = 0;
  for (const program_thread& t : threads_)
    latest = std::max(latest, t.is == state::free ? 0 : t.clock);
  counting_from_ = latest;
  for (program_thread& t : threads_) {
    t.clock = latest;
    t.counts = {};
  }
  caches_.reset_counts();
  conflicts_.clear();
  hot_spots_.clear();
  fetches_.clear();
  for (program_thread& t : threads_) t.tx.fetches.clear();  // they refer to what was cleared
  events_.clear();
  wake(&ready_to_count_, ~0u);
  for (program_thread& t : threads_) {
    t.clock = latest;
    t.counts.waiting_cycles = 0;  // they have waited for each other
    t.slice_began = std::min(t.slice_began, latest);
  }
  for (cpu& c : cpus_) c.free_at = std::min(c.free_at, latest);
  turn_ends_ = latest;
}

void* engine::allocate(std::size_t bytes, std::size_t alignment) {
  program_thread& me = *now_running_;
  charge_instructions();
  me.clock += machine_.allocate_cycles;
  // New pages come from the system, which a transaction cannot call.
  if (options_.schedule == nullptr && heap::would_grow(bytes, alignment, me.number)) {
    unfriendly(machine_.system_call_cycles);
  }
  void* const at = heap::allocate(bytes, alignment, me.number);
  if (me.tx.active() && at != nullptr) me.tx.allocated.push_back(at);
  return at;
}

void engine::free(void* at) {
  program_thread& me = *now_running_;
  charge_instructions();
  me.clock += machine_.allocate_cycles;
  if (me.tx.active()) {
    me.tx.to_free.push_back(at);
  } else {
    heap::free(at, me.number);
  }
}

// --- time ---

// Exponentially distributed: at random, independent of the last one.
void engine::expect_stray(program_thread& t) {
  const double uniform = (static_cast<double>(next_random(t.random) >> 11) + 1) * 0x1p-53;
  t.next_stray =
      t.clock + 1 +
      static_cast<std::uint64_t>(-std::log(uniform) *
                                 static_cast<double>(machine_.stray_interrupt_period_cycles));
  t.next_interrupt = std::min(t.next_timer, t.next_stray);
}

void engine::interrupt() {
  program_thread& me = *now_running_;
  if (me.gives_way) {  // the transaction that the interrupt has met is aborted
    if (me.tx.active()) abort_myself({abort_reason::interrupt});
    me.next_interrupt = std::min(me.next_timer, me.next_stray);
    give_way();
    return;
  }
  while (me.next_timer <= me.clock) me.next_timer += machine_.timer_period_cycles;
  if (me.next_stray <= me.clock) expect_stray(me);
  me.next_interrupt = std::min(me.next_timer, me.next_stray);
  me.clock += machine_.timer_cycles;
  if (slice_has_ended(me) && !me.holds_bucket) {
    me.gives_way = true;
    me.next_interrupt = me.clock;
  }
  if (me.tx.active()) abort_myself({abort_reason::interrupt});
}

void engine::spend(std::uint64_t cycles) {
  pending_write_ = {};
  charge_instructions();
  now_running_->clock += cycles;
  take_turn();
}

void engine::pause() {
  charge_instructions();
  // Intel lets a pause abort a transaction, and paper 001 section 3.3.2 relies on it.
  if (now_running_->tx.active()) abort_myself({abort_reason::system_call});
  now_running_->clock += machine_.pause_cycles;
  take_turn(options_.schedule != nullptr);
}

void engine::yield() {
  unfriendly(machine_.system_call_cycles);
  if (options_.schedule == nullptr) give_way();
  take_turn(options_.schedule != nullptr);
}

void engine::sleep(std::uint64_t cycles) {
  if (options_.schedule == nullptr) {
    unfriendly(0);
    program_thread& me = *now_running_;
    wait(&me.deadline, "a sleep", me.clock + machine_.system_call_cycles + cycles);
    take_turn();
    return;
  }
  unfriendly(machine_.system_call_cycles);
  now_running_->clock += cycles;
  take_turn(true);
}

void engine::unfriendly(std::uint64_t cycles) {
  pending_write_ = {};
  charge_instructions();
  wait_for_misses(*now_running_);
  if (now_running_->tx.active()) abort_myself({abort_reason::system_call});
  now_running_->clock += cycles;
}

// Whether the access uses the same bytes as the victim, and not only the same line.
bool engine::count_conflict(program_thread& victim, const line& l, address_range at, bool write) {
  const auto& lines = victim.tx.lines();
  const auto found =
      std::find_if(lines.begin(), lines.end(), [&](const auto& e) { return e.at == &l; });
  if (found == lines.end()) return false;
  const std::uint64_t theirs = write ? found->read | found->written : found->written;
  conflict_report& counted = conflicts_[names_.of(at.begin)];
  const bool same_bytes = (theirs & byte_mask(at.begin, at.bytes)) != 0;
  ++(same_bytes ? counted.true_sharing : counted.false_sharing);
  return same_bytes;
}

}  // namespace elidex::sim
