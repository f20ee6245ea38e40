#include "machine/engine.hpp"

#include <algorithm>
#include <cstdio>
#include <sstream>

#include "machine/random.hpp"

namespace elidex::sim {

engine* running = nullptr;

namespace {

std::string hexadecimal(const void* at) {
  std::ostringstream out;
  out << at;
  return out.str();
}

}  // namespace

std::string_view to_string(abort_reason reason) noexcept {
  constexpr std::array<std::string_view, abort_reasons> names{
      "conflict",   "write capacity", "read capacity", "explicit", "interrupt",
      "page fault", "system call",    "nesting",       "elision"};
  return names[static_cast<std::size_t>(reason)];
}

engine::engine(const machine& which, const run_options& options, memory& where)
    : machine_(which),
      options_(options),
      memory_(where),
      caches_(machine_, mixed(options.seed)),
      threads_(options.schedule == nullptr ? threads_max : which.hardware_threads()),
      cpus_(options.cpus == 0 ? which.hardware_threads() : options.cpus),
      line_order_random_(options.seed),
      abandoned_(which.requests_outlive_aborts != 0 ? abandoned_max : 0) {
  if (machine_.cores() > 64 || machine_.hardware_threads() > threads_max) {
    throw std::invalid_argument("a machine takes up to 64 cores");
  }
  if (cpus_.size() > machine_.hardware_threads()) {
    throw std::invalid_argument("the machine has " + std::to_string(machine_.hardware_threads()) +
                                " hardware threads, not " + std::to_string(cpus_.size()));
  }
  if (options_.schedule != nullptr && options_.cpus != 0)
    throw std::invalid_argument("a schedule gives each thread a CPU (expected no cpus)");
  prepare_dependences();
  for (unsigned i = 0; i < threads_.size(); ++i) {
    program_thread& t = threads_[i];
    t.number = i;
    t.cpu = i % static_cast<unsigned>(cpus_.size());
    t.core = static_cast<unsigned>(machine_.core_of(t.cpu));
    t.random = (options_.seed * threads_max + i) * 0x9e3779b97f4a7c15;
    // The cores' timers tick at different times.
    t.next_timer = next_random(t.random) % machine_.timer_period_cycles;
    expect_stray(t);
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

void engine::push(program_thread& t) {
  t.queued = true;
  queue_.push_back(t.number);
  sift_up(static_cast<unsigned>(queue_.size() - 1));
}

void engine::enqueue(program_thread& t) {
  t.is = state::able;
  push(t);
}

engine::program_thread& engine::dequeue() {
  program_thread& first = threads_[queue_.front()];
  first.queued = false;
  queue_.front() = queue_.back();
  queue_.pop_back();
  if (!queue_.empty()) sift_down(0);
  return first;
}

void engine::moved(program_thread& t) {
  sift_up(t.place);
  sift_down(t.place);
}

void engine::unqueue(program_thread& t) {
  const unsigned hole = t.place;
  queue_[hole] = queue_.back();
  threads_[queue_[hole]].place = hole;
  queue_.pop_back();
  t.queued = false;
  if (hole < queue_.size()) moved(threads_[queue_[hole]]);
}

// Lets others run until the current thread is the furthest behind again.
void engine::next_turn(bool waits) {
  program_thread& me = *now_running_;
  ++steps_;
  if (me.clock > options_.cycles_max) stop("no end after %llu cycles", options_.cycles_max);
  if (first_abandoned_at_ != no_deadline) serve_abandoned();
  if (options_.schedule != nullptr) {
    program_thread& next = by_schedule(me.number, waits);
    if (&next != &me) go_on_with(next);
  } else if (!queue_.empty() && before(queue_.front(), me.number)) {
    program_thread& next = threads_[queue_.front()];
    next.queued = false;
    queue_.front() = me.number;
    me.queued = true;
    me.is = state::able;
    sift_down(0);
    go_on_with(next);
  } else {
    turn_ends_ = end_of_turn();
  }
}

engine::program_thread& engine::by_schedule(unsigned current, bool waits) {
  std::array<unsigned, threads_max> able;
  unsigned count = 0;
  for (const program_thread& t : threads_) {
    if (t.is == state::able) able[count++] = t.number;
  }
  return threads_[options_.schedule->choose(able.data(), count, current, waits)];
}

// Saves the current thread and runs another one; returns when the current one's turn has come
// again.
void engine::go_on_with(program_thread& next) {
  program_thread& me = *now_running_;
  const address_range pending = pending_write_;
  now_running_ = &next;
  turn_ends_ = end_of_turn();
  pending_write_ = {};
  set_thread_pointer(next.runs->thread_pointer);
  elidex_sim_switch(me.runs->at, next.runs->at);
  // The compiler announces a copy as a write, then a read, and makes both behind the second call.
  // If others had their turn in between, the write that was announced first is still to come.
  for (std::uint64_t at = pending.begin; at < pending.begin + pending.bytes;
       at = (at / line_bytes + 1) * line_bytes) {
    const std::uint64_t end =
        std::min(pending.begin + pending.bytes, (at / line_bytes + 1) * line_bytes);
    line& l = memory_.at(at);
    if (!me.tx.active()) abort_others(me, l, at, end - at, true);
  }
  pending_write_ = pending;
}

// The current thread has ended or waits: somebody else, or nobody, goes on.
void engine::leave() {
  charge_instructions();
  program_thread& me = *now_running_;
  if (first_abandoned_at_ != no_deadline) serve_abandoned();
  program_thread* next = nullptr;
  if (options_.schedule == nullptr) {
    if (!queue_.empty()) next = &dequeue();
  } else if (std::any_of(threads_.begin(), threads_.end(),
                         [](const auto& t) { return t.is == state::able; })) {
    next = &by_schedule(me.number, false);
  } else {
    // Time passes when nobody can do anything else.
    for (program_thread& t : threads_) {
      if (t.is != state::waiting || t.deadline == no_deadline) continue;
      if (next == nullptr || t.deadline < next->deadline) next = &t;
    }
  }
  if (next == nullptr) {
    const bool somebody_waits = std::any_of(threads_.begin(), threads_.end(),
                                            [](const auto& t) { return t.is == state::waiting; });
    if (somebody_waits) {
      running = nullptr;  // what follows allocates, which must not look like the program's doing
      stuck_ = "every thread waits for another one\n" + state_of_all();
    }
  }
  if (me.is == state::ended || me.is == state::free) ending_ = &me;
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
  program_thread& me = *now_running_;
  now_running_ = nullptr;
  set_thread_pointer(outside_thread_pointer_);
  elidex_sim_switch(me.runs->at, outside_);
  __builtin_unreachable();
}

std::string engine::state_of_all() const {
  std::ostringstream out;
  for (const program_thread& t : threads_) {
    if (t.is == state::free || t.is == state::ended) continue;
    out << "thread " << t.number << " at cycle " << t.clock << ": ";
    if (t.is == state::waiting) {
      out << "waits for " << t.why << ' ' << t.waits_for;
    } else if (t.is == state::ready) {
      out << "waits for a CPU";
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
  const auto place = std::find_if(threads_.begin(), threads_.end(),
                                  [](const auto& t) { return t.is == state::free; });
  if (place == threads_.end()) return -1;
  program_thread& t = *place;
  t.forgotten = false;
  t.runs = std::make_unique<fiber>(t.number, [this, &t, run_body = std::move(body)] {
    try {
      run_body();
    } catch (...) {
      t.thrown = std::current_exception();
    }
    // A thread's end is the system's affair.
    if (t.tx.active()) abort_myself({abort_reason::system_call});
    for (; !t.at_end.empty();) {
      const auto [destroy, object] = t.at_end.back();
      t.at_end.pop_back();
      destroy(object);
    }
    charge_instructions();
    wait_for_misses(t);
    t.is = t.forgotten ? state::free : state::ended;
    if (options_.schedule == nullptr) give_up_cpu(t);
    wake(&t, ~0u);
    if (all_ready_to_count()) count_from_here();
    leave();
  });
  t.stack_low = t.runs->stack_low;
  t.stack_bytes = t.runs->stack_high - t.runs->stack_low;
  if (now_running_ != nullptr) t.clock = std::max(t.clock, now_running_->clock);
  if (options_.schedule != nullptr) {
    put_on(t, t.cpu);
  } else {
    make_able(t, t.clock);
  }
  return static_cast<int>(t.number);
}

report engine::run(const std::vector<std::function<void()>>& bodies) {
  for (const auto& body : bodies) {
    // Not a copy: what the functions have captured is read by the program, so it must not lie in
    // the machine's memory.
    if (start_thread([&body] { body(); }) < 0) {
      throw std::invalid_argument("a run takes up to " + std::to_string(threads_.size()) +
                                  " threads, not " + std::to_string(bodies.size()));
    }
  }
  outside_thread_pointer_ = thread_pointer();
  if (options_.warm_l3) warm_l3();
  if (options_.schedule != nullptr) {
    now_running_ = bodies.empty() ? nullptr : &by_schedule(strategy::nobody, false);
  } else {
    now_running_ = queue_.empty() ? nullptr : &dequeue();
  }
  while (now_running_ != nullptr) {
    turn_ends_ = end_of_turn();
    pending_write_ = {};
    counted_by_program[0] = counted_by_program[1] = 0;  // of what ran outside
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
  for (program_thread& t : threads_) {
    if (t.thrown != nullptr) std::rethrow_exception(t.thrown);
  }
  return make_report();
}

report engine::make_report() {
  report r;
  r.stuck = stuck_;
  for (program_thread& t : threads_) {
    if (t.runs == nullptr) continue;
    t.counts.cycles = t.clock - counting_from_;
    r.cycles = std::max(r.cycles, t.counts.cycles);
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
    r.conflicts.back().where = names_.text(name);
  }
  std::stable_sort(r.conflicts.begin(), r.conflicts.end(),
                   [](const conflict_report& a, const conflict_report& b) {
                     return a.true_sharing + a.false_sharing > b.true_sharing + b.false_sharing;
                   });
  for (const auto& [code, counted] : hot_spots_) {
    r.hot_spots.push_back(counted);
    r.hot_spots.back().code = code;
  }
  for (const auto& [place, fetched] : fetches_) {
    r.fetches.push_back(fetched);
    r.fetches.back().where = names_.text(place.name);
    r.fetches.back().line = place.line;
  }
  std::stable_sort(
      r.fetches.begin(), r.fetches.end(),
      [](const fetch_report& a, const fetch_report& b) { return a.cycles > b.cycles; });
  r.events.reserve(events_.size());
  for (noted_event& noted : events_) {
    if (noted.what.cause.address != 0) {
      noted.what.where = names_.text(noted.name);
      noted.what.fixed_address = lies_at_a_fixed_address(noted.what.cause.address);
    }
    r.events.push_back(std::move(noted.what));
  }
  return r;
}

transaction_counts& transaction_counts::operator+=(const transaction_counts& other) noexcept {
  begun += other.begun;
  committed += other.committed;
  for (std::size_t i = 0; i < abort_reasons; ++i) aborts[i] += other.aborts[i];
  return *this;
}

thread_report report::total() const noexcept {
  thread_report sum;
  for (const thread_report& t : threads) {
    sum += t;
    sum.elided += t.elided;
    sum.cycles += t.cycles;
    sum.accesses += t.accesses;
    sum.instructions += t.instructions;
    sum.ready_cycles += t.ready_cycles;
    sum.waiting_cycles += t.waiting_cycles;
    sum.committed_lines += t.committed_lines;
    sum.transactional_cycles += t.transactional_cycles;
    sum.aborted_cycles += t.aborted_cycles;
    sum.aborting_cycles += t.aborting_cycles;
  }
  return sum;
}

}  // namespace elidex::sim
