// The bodies of lock_system.hpp, which includes this file.
#pragma once

#include "elidex/internal/locking/lock_system.hpp"

namespace elidex::internal {

// Who a caller says has written the record: an id, an atomic that has it, or a function that reads
// it.
template <class Writer>
lock_owner_id ask_writer(const Writer& writer) {
  if constexpr (std::is_invocable_v<const Writer&>) {
    return writer();
  } else if constexpr (requires { writer.load(); }) {
    return writer.load();
  } else {
    return static_cast<lock_owner_id>(writer);
  }
}

// futex_deadline::max(): never.
inline futex_deadline deadline_after(std::chrono::nanoseconds time) noexcept {
  const futex_deadline now = futex_deadline::clock::now();
  if (time > futex_deadline::max() - now) return futex_deadline::max();
  return now + std::chrono::duration_cast<futex_deadline::duration>(time);
}

template <class Latches>
lock_system<Latches>::lock_system(const lock_system_options& options)
    : options_(options),
      bucket_mask_(std::bit_ceil(std::max<std::size_t>(options.buckets, Latches::shards)) - 1),
      buckets_(std::make_unique<lock_bucket[]>(bucket_mask_ + 1)),
      members_(std::make_unique<std::atomic<member*>[]>(
          std::max<std::uint32_t>(options.transactions_max, 1))) {
  name_memory(buckets_.get(), (bucket_mask_ + 1) * sizeof(lock_bucket), "queues of locks");
}

template <class Latches>
lock_system<Latches>::~lock_system() {
  for (std::uint32_t i = 0; i < members_made_; ++i) delete members_[i].load();
}

// --- transactions ---

template <class Latches>
auto lock_system<Latches>::take_member() -> member& {
  const std::lock_guard guard(members_lock_);
  if (free_members_ != nullptr) {
    lock_owner* const one = free_members_;
    free_members_ = one->next_free;
    return static_cast<member&>(*one);
  }
  if (members_made_ >= std::max<std::uint32_t>(options_.transactions_max, 1)) {
    throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again),
                            "internal::lock_system: as many transactions as transactions_max says");
  }
  auto made = std::make_unique<member>();
  made->slot = members_made_;
  members_[members_made_++].store(made.get());
  return *made.release();
}

template <class Latches>
void lock_system<Latches>::give_back(member& one) noexcept {
  pool_.trim(one, 0);
  const std::lock_guard guard(members_lock_);
  one.next_free = free_members_;
  free_members_ = &one;
}

template <class Latches>
auto lock_system<Latches>::member_of(lock_owner_id id) noexcept -> member* {
  return id == 0 ? nullptr
                 : members_[id % std::max<std::uint32_t>(options_.transactions_max, 1)].load();
}

template <class Latches>
bool lock_system<Latches>::is_active(lock_owner_id id) {
  member* const one = member_of(id);
  if (one == nullptr) return false;
  const std::lock_guard guard(one->latch);
  return one->id == id;
}

template <class Latches>
lock_owner_id lock_system<Latches>::transaction::begin() {
  if (me_.own_id != 0)
    throw std::logic_error("internal::lock_system: begin() of a transaction that has not ended");
  const auto slots = std::max<std::uint32_t>(system_.options_.transactions_max, 1);
  const lock_owner_id id = ++me_.begun * slots + me_.slot;
  me_.changes.store(0);
  was_victim_ = false;
  {
    const std::lock_guard guard(me_.latch);
    me_.id = id;
  }
  return me_.own_id = id;
}

template <class Latches>
void lock_system<Latches>::transaction::end() noexcept {
  if (me_.own_id == 0) {
    give_turn_back();
    return;
  }
  if (waiting_) {
    give_up_waiting();
    end_of_wait();
  }
  lock_object* list = nullptr;
  {
    const std::lock_guard guard(me_.latch);
    me_.id = 0;
    list = me_.locks;
    me_.locks = nullptr;
    me_.lock_count.store(0);
  }
  me_.own_id = 0;
  while (list != nullptr) {
    wake_list woken;
    const std::size_t place = system_.shard_index(list->name);
    {
      const std::lock_guard guard(system_.shards_[place].latch);
      std::uint32_t released = 0;
      do {
        lock_object& lock = *list;
        list = lock.next_of_owner;
        if (lock.queued) {
          lock_bucket& bucket = system_.bucket_of(lock.name);
          bucket.remove(lock);
          bucket.grant_waiters(lock.name, woken);
        }
        push_spare(me_, lock);
      } while (++released < releases_per_section && list != nullptr &&
               system_.shard_index(list->name) == place);
    }
    woken.wake_all();
  }
  system_.pool_.trim(me_);
  if (!was_victim_) me_.losses = 0;
  give_turn_back();
}

template <class Latches>
void lock_system<Latches>::transaction::give_turn_back() noexcept {
  if (std::exchange(has_turn_, false)) system_.turn_of_victims_.release(1);
}

template <class Latches>
void lock_system<Latches>::transaction::wait_for_turn(
    std::optional<std::chrono::nanoseconds> timeout) noexcept {
  if (!std::exchange(was_victim_, false) || has_turn_) return;
  has_turn_ = system_.turn_of_victims_.try_acquire_until(
      deadline_after(timeout.value_or(system_.options_.wait_timeout)));
}

// --- what happens in sections ---

// False: the owner is not, or no longer, the transaction that was meant (0: any).
template <class Latches>
bool lock_system<Latches>::add_to_owner(lock_object& lock, member& owner, lock_owner_id if_still) {
  const std::lock_guard guard(owner.latch);
  if (owner.id == 0 || (if_still != 0 && owner.id != if_still)) return false;
  lock.next_of_owner = owner.locks;
  owner.locks = &lock;
  // relaxed, without a partner: written under the latch only, and read as a hint.
  owner.lock_count.store(owner.lock_count.load(std::memory_order_relaxed) + 1,
                         std::memory_order_relaxed);
  return true;
}

template <class Latches>
lock_object& lock_system<Latches>::take_spare(member& from, const lock_request& wanted) {
  lock_object& made = *pop_spare(from);
  made.owner = wanted.owner;
  made.name = wanted.name;
  made.mode = wanted.mode;
  made.kind = wanted.kind;
  made.waiting = false;
  made.set(wanted.bit);
  return made;
}

template <class Latches>
auto lock_system<Latches>::decide(member& me, const lock_request& wanted, bool may_wait,
                                  std::atomic<lock_owner_id>* implicit_in) -> step {
  lock_bucket& bucket = bucket_of(wanted.name);
  if (bucket.covering(wanted) != nullptr) return step::held;
  const bool held_up = bucket.is_held_up(wanted);
  if (held_up && !may_wait) return step::refused;
  if (!held_up) {
    // With anybody else in the queue, somebody may be waiting for a weaker lock of this
    // transaction, which it may give back.
    if (implicit_in != nullptr && bucket.is_alone(wanted)) {
      implicit_in->store(me.own_id);
      return step::implicit;
    }
    if (wanted.kind == lock_kind::insert_intention) return step::granted;
    if (lock_object* const similar = bucket.similar(wanted); similar != nullptr) {
      similar->set(wanted.bit);
      return step::granted;
    }
  }
  lock_object& made = take_spare(me, wanted);
  made.waiting = held_up;
  made.waited_for = wanted.bit;
  add_to_owner(made, me, me.own_id);
  bucket.push_back(made);
  if (!held_up) return step::granted;
  me.signal.store(lock_owner::asleep);
  me.waits_in.store(&made);  // before the next line: lock_system.hpp, "Every cycle is found"
  return bucket.waits_for_a_waiter(made) ? step::queued_behind_waiter : step::queued;
}

// True: the writer holds an explicit lock now, and did not before.
template <class Latches>
bool lock_system<Latches>::convert(member& me, const queue_name& name, std::uint32_t bit,
                                   lock_owner_id writer) {
  member* const owner = member_of(writer);
  if (owner == nullptr || owner == &me) return false;
  const lock_request due{owner, name, bit, lock_mode::exclusive, lock_kind::record};
  lock_bucket& bucket = bucket_of(name);
  if (bucket.covering(due) != nullptr) return false;
  if (lock_object* const similar = bucket.similar(due); similar != nullptr) {
    {
      const std::lock_guard guard(owner->latch);
      if (owner->id != writer) return false;
    }
    // it stays until its owner, who may have ended by now, gets the latch of this queue
    similar->set(bit);
    return true;
  }
  lock_object& made = take_spare(me, due);
  if (!add_to_owner(made, *owner, writer)) {
    push_spare(me, made);
    return false;
  }
  bucket.push_back(made);
  return true;
}

// Under all latches. Until nobody waits in a cycle through `from`, or `from` does not wait any
// more.
template <class Latches>
void lock_system<Latches>::search_for_cycles(lock_owner& from, wake_list& woken) noexcept {
  const auto find = [this](const queue_name& name) -> lock_bucket& { return bucket_of(name); };
  while (from.waits_in.load() != nullptr) {
    lock_owner* const victim = search_.victim_of_cycle(from, find);
    if (victim == nullptr) return;
    lock_object& waiting = *victim->waits_in.load();
    bucket_of(waiting.name).cancel(waiting, lock_outcome::deadlock_victim, woken);
  }
}

// --- requests ---

template <class Latches>
queue_name lock_system<Latches>::transaction::check(const record_address& address) {
  if (address.heap >= record_address::heap_numbers || address.page == queue_name::whole_table) {
    throw std::invalid_argument("internal::lock_system: no such record can be locked");
  }
  return {address.page, address.space};
}

template <class Latches>
lock_request lock_system<Latches>::transaction::record_request(const record_address& address,
                                                               lock_mode mode, lock_kind kind) {
  const bool fits = kind == lock_kind::insert_intention
                        ? mode == lock_mode::exclusive
                        : mode == lock_mode::shared || mode == lock_mode::exclusive;
  if (!fits || kind == lock_kind::table)
    throw std::invalid_argument("internal::lock_system: not a lock for a record");
  return {&me_, check(address), address.heap, mode, kind};
}

template <class Latches>
lock_request lock_system<Latches>::transaction::table_request(std::uint32_t table, lock_mode mode) {
  return {&me_, {queue_name::whole_table, table}, 0, mode, lock_kind::table};
}

template <class Latches>
template <class Writer>
lock_outcome lock_system<Latches>::transaction::request(const lock_request& wanted,
                                                        const Writer& writer, bool may_wait,
                                                        std::atomic<lock_owner_id>* implicit_in) {
  if (me_.own_id == 0 || waiting_) {
    throw std::logic_error(
        "internal::lock_system: a request outside of begin() and end(), or while one waits");
  }
  system_.pool_.fill(me_, 2);  // one for the caller, one for who has an implicit lock
  step taken = step::held;
  bool converted = false;
  {
    const std::lock_guard guard(system_.latch_of(wanted.name));
    const lock_owner_id written_by = covers_the_record(wanted.kind) ? ask_writer(writer) : 0;
    if (written_by != me_.own_id || wanted.kind != lock_kind::record) {
      converted = written_by != 0 && system_.convert(me_, wanted.name, wanted.bit, written_by);
      taken = system_.decide(me_, wanted, may_wait, implicit_in);
    }
  }
  counters::add(me_.counters.requests);
  if (converted) counters::add(me_.counters.conversions);
  switch (taken) {
    case step::held:
      counters::add(me_.counters.held_already);
      return lock_outcome::granted;
    case step::implicit:
      counters::add(me_.counters.implicit);
      return lock_outcome::granted;
    case step::granted:
      counters::add(me_.counters.granted_at_once);
      return lock_outcome::granted;
    case step::refused:
      counters::add(me_.counters.timeouts);
      return lock_outcome::timed_out;
    case step::queued:
    case step::queued_behind_waiter:
      break;
  }
  waiting_ = true;
  waits_at_ = wanted.name;
  counters::add(me_.counters.waits);
  if (taken == step::queued_behind_waiter) {
    counters::add(me_.counters.searches);
    wake_list woken;
    bool decided_here = false;
    {
      const all_latches guard(system_);
      if (me_.waits_in.load() != nullptr) {
        system_.search_for_cycles(me_, woken);
        decided_here = me_.waits_in.load() == nullptr;
      }
    }
    woken.wake_all();
    if (decided_here) return end_of_wait();
  }
  return lock_outcome::waiting;
}

template <class Latches>
template <class Writer>
lock_outcome lock_system<Latches>::transaction::request_and_wait(
    const lock_request& wanted, const Writer& writer,
    std::optional<std::chrono::nanoseconds> timeout, std::atomic<lock_owner_id>* implicit_in) {
  const std::chrono::nanoseconds time = timeout.value_or(system_.options_.wait_timeout);
  const lock_outcome at_once = request(wanted, writer, time > time.zero(), implicit_in);
  return at_once == lock_outcome::waiting ? wait(time) : at_once;
}

template <class Latches>
lock_outcome lock_system<Latches>::transaction::lock_table(
    std::uint32_t table, lock_mode mode, std::optional<std::chrono::nanoseconds> timeout) {
  return request_and_wait(table_request(table, mode), lock_owner_id{}, timeout);
}

template <class Latches>
lock_outcome lock_system<Latches>::transaction::request_table(std::uint32_t table, lock_mode mode) {
  return request(table_request(table, mode), lock_owner_id{}, true, nullptr);
}

template <class Latches>
template <class Writer>
lock_outcome lock_system<Latches>::transaction::lock_record(
    const record_address& address, lock_mode mode, lock_kind kind, const Writer& writer,
    std::optional<std::chrono::nanoseconds> timeout) {
  return request_and_wait(record_request(address, mode, kind), writer, timeout);
}

template <class Latches>
template <class Writer>
lock_outcome lock_system<Latches>::transaction::request_record(const record_address& address,
                                                               lock_mode mode, lock_kind kind,
                                                               const Writer& writer) {
  return request(record_request(address, mode, kind), writer, true, nullptr);
}

template <class Latches>
lock_outcome lock_system<Latches>::transaction::write_record(
    const record_address& address, std::atomic<lock_owner_id>& writer,
    std::optional<std::chrono::nanoseconds> timeout) {
  return request_and_wait(record_request(address, lock_mode::exclusive, lock_kind::record), writer,
                          timeout, &writer);
}

template <class Latches>
lock_outcome lock_system<Latches>::transaction::request_write(const record_address& address,
                                                              std::atomic<lock_owner_id>& writer) {
  return request(record_request(address, lock_mode::exclusive, lock_kind::record), writer, true,
                 &writer);
}

// --- waiting ---

// False: the time is up.
template <class Latches>
bool lock_system<Latches>::transaction::sleep_until_decided(
    std::chrono::nanoseconds for_so_long) noexcept {
  const auto is_asleep = [this] { return me_.signal.load() == lock_owner::asleep; };
  // Some microseconds, a short transaction's rest, and no yield: beside programs that compute, one
  // yield takes milliseconds, and who sleeps is back at once. Measured with 8 threads on 2 cores: 3
  // to 10 times as many transactions beside two such programs, 0.6 to 1.1 times alone.
  for (backoff between_looks; !between_looks.is_spent(); between_looks.once()) {
    if (!is_asleep()) return true;
  }
  const futex_deadline deadline = deadline_after(for_so_long);
  while (is_asleep()) {
    if (!futex_wait_until(me_.signal, lock_owner::asleep, deadline)) return !is_asleep();
  }
  return true;
}

// Afterwards the request is decided, one way or the other, and whoever decided it has let go of
// this transaction.
template <class Latches>
void lock_system<Latches>::transaction::give_up_waiting() {
  wake_list woken;
  {
    const std::lock_guard guard(system_.latch_of(waits_at_));
    if (lock_object* const waiting = me_.waits_in.load(); waiting != nullptr) {
      system_.bucket_of(waits_at_).cancel(*waiting, lock_outcome::timed_out, woken);
    }
  }
  woken.wake_all();
  sleep_until_decided(wait_for_ever);
}

template <class Latches>
lock_outcome lock_system<Latches>::transaction::wait(
    std::optional<std::chrono::nanoseconds> timeout) {
  if (!waiting_)
    throw std::logic_error("internal::lock_system: wait() without a request that waits");
  const std::chrono::nanoseconds time = timeout.value_or(system_.options_.wait_timeout);
  if (!is_decided()) {
    const auto began = std::chrono::steady_clock::now();
    if (time <= time.zero() || !sleep_until_decided(time)) give_up_waiting();
    const std::chrono::nanoseconds took = std::chrono::steady_clock::now() - began;
    counters::add(me_.counters.waited_ns, static_cast<std::uint64_t>(took.count()));
  }
  return end_of_wait();
}

template <class Latches>
lock_outcome lock_system<Latches>::transaction::end_of_wait() noexcept {
  waiting_ = false;
  if (me_.outcome == lock_outcome::deadlock_victim) {
    was_victim_ = true;
    ++me_.losses;
    counters::add(me_.counters.deadlocks);
  }
  if (me_.outcome == lock_outcome::timed_out) counters::add(me_.counters.timeouts);
  return me_.outcome;
}

// --- giving back, handing on ---

template <class Latches>
bool lock_system<Latches>::transaction::unlock_record(const record_address& address,
                                                      lock_mode mode) {
  const lock_request held = record_request(address, mode, lock_kind::record);
  bool found = false;
  wake_list woken;
  {
    const std::lock_guard guard(system_.latch_of(held.name));
    lock_bucket& bucket = system_.bucket_of(held.name);
    for (lock_object* l = bucket.first(); l != nullptr; l = l->next) {
      if (l->owner != &me_ || l->mode != mode || l->kind != held.kind ||
          !l->is_granted_on(held.name, held.bit))
        continue;
      l->clear(held.bit);
      found = true;
    }
    if (found) bucket.grant_waiters(held.name, woken);
  }
  woken.wake_all();
  return found;
}

template <class Latches>
auto lock_system<Latches>::inherit(member& me, const record_address& from, const record_address& to,
                                   gap_heirs heirs) -> inheritance {
  const queue_name from_page{from.page, from.space};
  const queue_name to_page{to.page, to.space};
  lock_bucket& heir = bucket_of(to_page);
  inheritance done{true, false};
  for (lock_object* l = bucket_of(from_page).first(); l != nullptr; l = l->next) {
    if (!l->is_granted_on(from_page, from.heap)) continue;
    if (!covers_the_gap(l->kind) && (heirs == gap_heirs::of_the_gap || !covers_the_record(l->kind)))
      continue;
    const lock_request due{l->owner, to_page, to.heap, l->mode, lock_kind::gap};
    if (heir.covering(due) != nullptr) continue;
    if (lock_object* const similar = heir.similar(due); similar != nullptr) {
      similar->set(to.heap);
    } else {
      if (me.spare == nullptr) return {false, done.to_who_waits};
      lock_object& made = take_spare(me, due);
      // it is ending, and l is about to go
      if (!add_to_owner(made, static_cast<member&>(*l->owner), 0)) {
        push_spare(me, made);
        continue;
      }
      heir.push_back(made);
    }
    if (l->owner->waits_in.load() != nullptr) done.to_who_waits = true;
  }
  return done;
}

template <class Latches>
void lock_system<Latches>::transaction::inherit_gap(const record_address& from,
                                                    const record_address& to, gap_heirs heirs) {
  const queue_name from_page = check(from);
  const queue_name to_page = check(to);
  if (from == to) return;
  const auto [first, last] =
      std::minmax({system_.shard_index(from_page), system_.shard_index(to_page)});
  inheritance done{false, false};
  bool to_who_waits = false;
  for (std::uint32_t spares = 8; !done.complete; spares *= 2) {
    system_.pool_.fill(me_, spares);
    {
      const std::lock_guard guard(system_.shards_[first].latch);
      std::unique_lock<typename Latches::system_latch> second;
      if (first != last) second = std::unique_lock(system_.shards_[last].latch);
      done = system_.inherit(me_, from, to, heirs);
    }
    to_who_waits |= done.to_who_waits;
  }
  if (!to_who_waits) return;
  wake_list woken;
  {
    const all_latches guard(system_);
    // A victim's lock leaves the queue, and others of it may be granted: so from the beginning each
    // time.
    for (bool again = true; again;) {
      again = false;
      for (lock_object* l = system_.bucket_of(to_page).first(); l != nullptr && !again;
           l = l->next) {
        if (!l->waiting || l->name != to_page || l->waited_for != to.heap) continue;
        lock_owner& waiter = *l->owner;
        system_.search_for_cycles(waiter, woken);
        again = waiter.waits_in.load() == nullptr;
      }
    }
  }
  woken.wake_all();
}

// --- numbers ---

template <class Latches>
template <class Visit>
void lock_system<Latches>::for_each_member(const Visit& visit) const {
  for (std::uint32_t i = 0; i < std::max<std::uint32_t>(options_.transactions_max, 1); ++i) {
    const member* const one = members_[i].load();
    if (one == nullptr) return;
    visit(*one);
  }
}

template <class Latches>
lock_system_counts lock_system<Latches>::counts() const {
  lock_system_counts sum;
  for_each_member([&sum](const member& one) {
    // relaxed, without a partner: counts publish nothing.
    const auto add = [](std::uint64_t& to, const std::atomic<std::uint64_t>& what) {
      to += what.load(std::memory_order_relaxed);  // as above, no partner
    };
    const lock_owner_counters& c = one.counters;
    add(sum.requests, c.requests);
    add(sum.held_already, c.held_already);
    add(sum.implicit, c.implicit);
    add(sum.granted_at_once, c.granted_at_once);
    add(sum.waits, c.waits);
    add(sum.deadlocks, c.deadlocks);
    add(sum.timeouts, c.timeouts);
    add(sum.conversions, c.conversions);
    add(sum.searches, c.searches);
    add(sum.waited_ns, c.waited_ns);
  });
  return sum;
}

template <class Latches>
lock_counts lock_system<Latches>::latch_counts() const {
  lock_counts sum;
  const auto add = [&sum](const auto& latch) {
    if constexpr (requires { latch.stats(); }) sum += latch.stats();
  };
  for (const shard& one : shards_) add(one.latch);
  for_each_member([&add](const member& one) { add(one.latch); });
  return sum;
}

template <class Latches>
std::size_t lock_system<Latches>::memory_bytes() const {
  std::size_t members = 0;
  for_each_member([&members](const member&) { ++members; });
  const std::size_t slots = std::max<std::uint32_t>(options_.transactions_max, 1);
  return sizeof *this + (bucket_mask_ + 1) * sizeof(lock_bucket) + slots * sizeof members_[0] +
         members * sizeof(member) + pool_.memory_bytes();
}

template <class Latches>
bool lock_system<Latches>::is_consistent() {
  const all_latches guard(*this);
  for (std::size_t i = 0; i <= bucket_mask_; ++i) {
    if (!buckets_[i].is_consistent()) return false;
  }
  return true;
}

}  // namespace elidex::internal
