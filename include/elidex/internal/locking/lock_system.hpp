// InnoDB's lock system: table and record locks for two-phase locking, with implicit locks, queues
// and deadlock detection.
//
//   lock_system<> locks;  // <papers::hle_latches>, ...: lock_latches.hpp
//   // one per thread or session, used again and again
//   lock_system<>::transaction t(locks);
//   t.begin();
//   t.lock_table(orders, lock_mode::intention_exclusive);
//   if (t.lock_record({.space = orders, .heap = 7, .page = 42}, lock_mode::exclusive) !=
//       lock_outcome::granted) undo();
//   t.end();                                                       // releases all locks
//
// See lock_mode.hpp for modes, kinds and conflicts, lock_queue.hpp for the objects and queues, and
// lock_latches.hpp for the latches that paper 004 section 4.2 varies.
//
// Implicit locks. The last writer of a record holds it exclusively without a lock object. The
// record names its writer, and is locked until that transaction ends. So every request for a record
// takes `writer`: the id, an atomic that has it, or a function that reads it. A request reads
// `writer` under the latch of the record's queue, perhaps several times, so the function may only
// read memory. If `writer` names another running transaction, that one gets an explicit lock first.
// write_record() takes an implicit lock. If no other transaction has or wants the record, it stores
// the id in the record's word and needs no object. An insert stores the id in a record that is not
// visible yet. No other code may store ids there: transactions that hold or wait for the record
// would lose their locks. The caller must undo its changes before end(), because end() ends the
// implicit locks, too.
//
// Phantoms. A scan that must not see phantoms takes next_key locks on the records it reads
// (lock_mode.hpp). It takes a gap lock on the record that ends its range. An inserter asks for
// insert_intention on the record after the place. No transaction may lock that gap between the
// grant and the insert. So the caller holds its own latch of the place from before the request
// until then, and asks with a timeout of 0. If refused, it waits without the latch and asks again,
// as InnoDB does with its page latches. Then inherit_gap() gives the new record's gap to the
// holders of the old one. Before a record is removed, the next record inherits from it.
//
// Victims. The victim is the transaction of the cycle with the fewest locks and changes
// (add_changes()), and the searching one if it is among these. It leaves its queue, and its owner
// must roll back and call end(). Each loss in a row makes a transaction heavier, so that none is a
// victim for ever.
// Before a victim runs again, it calls wait_for_turn(): victims run again one at a time. Otherwise
// two of them may keep a third transaction waiting for ever. A gap lock does not wait for an
// insert_intention, so one of the two always holds the gap. Threads that contend for a few records
// would also spend their time on deadlocks. A victim that waits for its turn holds no lock, so no
// transaction waits for it.
//
// Thread-safety: a lock_system from any thread, a transaction by one thread at a time. The caller's
// functions run under latches. Inside a region of the caller's only id() may be called.
// Errors: each is thrown before anything has changed, except in inherit_gap() (see there).
//   std::invalid_argument  a mode or kind that a table or record cannot have, a heap number of at
//                          least record_address::heap_numbers, or the page 2^64 - 1
//   std::logic_error       a call outside of begin() and end(), or while a request waits
//   std::system_error      more than transactions_max transactions exist
//   std::bad_alloc
//
// Implementation notes
// Invariants: those of lock_queue.hpp, and
// 1. A transaction waits for at most one lock.
// 2. A transaction's list has all its lock objects. Other threads add to it only while its id is
//    set (implicit locks, gaps). Only its own thread removes. end() clears id and list together, so
//    no object is added to a list that will not be released.
// 3. State under a latch changes in sections that neither allocate nor throw nor make system calls
//    (except wakes_under_latch), so that they may be hardware regions. Objects come from the
//    transaction's spares, which are filled before. By default, wake-ups follow the section.
//
// Order of latches: those of queues, several of them in ascending order, then that of one
// transaction. The locks of the free lists are taken alone. Callers may hold their own latches
// during a request, but not during a wait.
//
//   a queue's latch      Protects its locks, and waits_in, outcome and next_to_wake of the
//                        transactions that wait there. There is one latch for all queues, or
//                        `shards` of them.
//   all queues' latches  Protect the search for deadlocks.
//   transaction's latch  Protects its id and its list of locks.
//
// No transaction sleeps for ever. A waiting lock waits for a lock that is granted or further ahead
// (lock_queue.hpp, invariant 2). The transaction that removes the last such lock grants the waiter
// in the same section. Afterwards it stores `awake` in the waiter's signal and wakes it.
// - The waiter sets its signal to `asleep` in the section that queues it, before any thread can
//   decide its request. It sleeps only on that value, so no wake-up is lost.
// - The deciding thread follows the list of waiters to wake through the waiters themselves
//   (next_to_wake). This is safe because a waiter does nothing else before it has seen `awake`, and
//   by then the thread has read the link.
// - It remains to show that every transaction that it waits for ends. Running transactions end by
//   themselves. Waiting ones wait for others in turn, and there is no cycle.
//
// Every cycle is found. Consider a cycle of waiting transactions. All sequentially consistent
// stores and loads have one order. Let L be the transaction of the cycle that stored its waits_in
// last, and M the one that L waits for.
// - M held the lock that L waits for, or was ahead of L, when L was queued. If M had got it later,
//   M would have been running then, and would have begun to wait after L. But L was the last.
// - L looks at those it waits for after its own store, in the same section. So it sees that M
//   waits, and searches. (A transaction that sees none of them wait skips the search.)
// - All others of the cycle were queued in sections that stored waits_in before L did. When L takes
//   their latches for its search, those sections are over, so L sees all edges.
// Two operations give a lock to a transaction that may wait:
// - An implicit lock becomes explicit. Then only the requester begins to wait for the writer,
//   because the record was locked before, only without an object.
// - inherit_gap(). If it gives a lock to a waiting transaction, it searches from every transaction
//   that waits for the heir. That is sufficient. If the cycle's other edges exist, L searched
//   before, and everything that L saw is visible. If not, L has yet to search.
//
// Source: paper 004 sections 4.1 and 4.2. Deviations:
// - The wait slots and their mutex (lock_sys->wait_mutex) are a futex for each transaction, unless
//   a policy adds them (lock_latches.hpp).
// - A transaction may upgrade its lock past a waiter for that lock (lock_queue.hpp).
// - The victim is the cheapest of the whole cycle. MySQL 5.6 compares two of its transactions. The
//   search has no depth limit.
// - A transaction's latch protects only its list, not the lock that it waits for.
// - Bitmaps have a fixed size. Lock objects that were granted after a wait, or released by
//   unlock_record(), stay until the end.
// - write_record() takes an implicit lock in the section that checks for conflicts, where InnoDB's
//   page latch keeps other threads out.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "elidex/internal/locking/lock_latches.hpp"
#include "elidex/internal/locking/lock_mode.hpp"
#include "elidex/internal/locking/lock_pool.hpp"
#include "elidex/internal/locking/lock_queue.hpp"
#include "elidex/internal/memory/memory_name.hpp"
#include "elidex/internal/sync/backoff.hpp"
#include "elidex/internal/sync/futex.hpp"
#include "elidex/internal/sync/futex_semaphore.hpp"
#include "elidex/internal/sync/lock_stats.hpp"

namespace elidex::internal {

struct lock_system_options {
  std::uint32_t transactions_max = 1024;  // that exist at the same time
  // Rounded up to a power of two, and at least one for each shard.
  std::uint32_t buckets = 1024;
  std::chrono::nanoseconds wait_timeout = std::chrono::seconds(50);  // as in InnoDB
};

// As a timeout: wait without limit.
inline constexpr std::chrono::nanoseconds wait_for_ever = std::chrono::nanoseconds::max();

// Sums over all transactions since the start.
struct lock_system_counts {
  std::uint64_t requests = 0;
  std::uint64_t held_already = 0;     // of these: already held as strong, explicit or implicit
  std::uint64_t implicit = 0;         // granted without an object, by write_record()
  std::uint64_t granted_at_once = 0;  // with an object (an insert_intention needs none)
  std::uint64_t waits = 0;
  std::uint64_t deadlocks = 0;    // victims
  std::uint64_t timeouts = 0;     // includes requests refused without a wait
  std::uint64_t conversions = 0;  // implicit locks made explicit
  std::uint64_t searches = 0;     // for cycles, with all latches
  std::uint64_t waited_ns = 0;
};

// The locks that inherit_gap() copies.
enum class gap_heirs : std::uint8_t {
  of_the_gap,   // an insert splits it
  of_anything,  // the record is removed: the next one takes over its gap and itself
};

template <class Latches = sharded_latches<>>
class lock_system {
  struct member;

 public:
  class transaction;

  explicit lock_system(const lock_system_options& options = {});
  // All transactions must have been destroyed.
  ~lock_system();
  lock_system(const lock_system&) = delete;
  lock_system& operator=(const lock_system&) = delete;

  // Whether the transaction of this id has not ended. Returns false for an id that begin() never
  // returned.
  bool is_active(lock_owner_id id);

  lock_system_counts counts() const;
  // Statistics of the elided latches of queues and transactions. 0 for latches without statistics.
  lock_counts latch_counts() const;
  std::size_t memory_bytes() const;
  // Checks the invariants of all queues, under all latches. For tests.
  bool is_consistent();

 private:
  using owner_latch = typename Latches::transaction_latch;

  struct member : lock_owner {
    alignas(std::max(std::size_t{64}, alignof(owner_latch))) owner_latch latch;
  };
  struct alignas(std::max(std::size_t{64}, alignof(typename Latches::system_latch))) shard {
    typename Latches::system_latch latch;
  };
  // The result of a request's section.
  enum class acquire_result : std::uint8_t {
    held,
    implicit,
    granted,
    queued,
    queued_behind_waiter,
    refused
  };

  // Locks all shards, in ascending order.
  class all_latches {
   public:
    explicit all_latches(lock_system& of) : of_(of) {
      for (shard& one : of_.shards_) one.latch.lock();
    }
    ~all_latches() {
      for (std::size_t i = Latches::shards; i-- > 0;) of_.shards_[i].latch.unlock();
    }
    all_latches(const all_latches&) = delete;
    all_latches& operator=(const all_latches&) = delete;

   private:
    lock_system& of_;
  };

  // The number of locks released in one section. Chosen: some 50 lines, a small part of a region's
  // capacity, and a short section even for an owner of thousands.
  static constexpr std::uint32_t releases_per_section = 16;

  std::size_t bucket_index(const queue_name& name) const noexcept {
    // Fibonacci hashing: adjacent pages and tables spread over all buckets.
    const std::uint64_t mixed =
        (name.page + (std::uint64_t{name.space} << 40)) * 0x9e3779b97f4a7c15u;
    return static_cast<std::size_t>((mixed ^ mixed >> 32) & bucket_mask_);
  }
  lock_bucket& bucket_of(const queue_name& name) noexcept { return buckets_[bucket_index(name)]; }
  std::size_t shard_index(const queue_name& name) const noexcept {
    return bucket_index(name) & (Latches::shards - 1);
  }
  auto& latch_of(const queue_name& name) noexcept { return shards_[shard_index(name)].latch; }

  member* member_of(lock_owner_id id) noexcept;
  member& take_member();
  void give_back(member& one) noexcept;
  bool add_to_owner(lock_object& lock, member& owner, lock_owner_id if_still);
  static lock_object& take_spare(member& from, const lock_request& wanted);
  acquire_result decide(member& me, const lock_request& wanted, bool may_wait,
                        std::atomic<lock_owner_id>* implicit_in);
  bool convert(member& me, const queue_name& name, std::uint32_t bit, lock_owner_id writer);
  void search_for_cycles(lock_owner& from, wake_list& woken) noexcept;
  struct inheritance {
    bool complete;  // false: the spares were used up
    bool to_who_waits;
  };
  inheritance inherit(member& me, const record_address& from, const record_address& to,
                      gap_heirs heirs);
  template <class Visit>
  void for_each_member(const Visit& visit) const;

  const lock_system_options options_;
  const std::size_t bucket_mask_;
  std::unique_ptr<lock_bucket[]> buckets_;
  std::array<shard, Latches::shards> shards_;
  [[no_unique_address]] typename Latches::wait_table waits_;
  deadlock_search search_;  // protected by all latches
  lock_pool pool_;
  std::unique_ptr<std::atomic<member*>[]> members_;

  futex_semaphore turn_of_victims_{1};  // one token: no victim has the turn

  std::mutex members_lock_;  // protects the two below
  std::uint32_t members_made_ = 0;
  lock_owner* free_members_ = nullptr;
};

// A sequence of transactions, one at a time.
template <class Latches>
class lock_system<Latches>::transaction {
 public:
  // Throws std::system_error (resource_unavailable_try_again) if transactions_max of them exist.
  explicit transaction(lock_system& system) : system_(system), me_(system.take_member()) {}
  // Ends the running transaction, if any.
  ~transaction() {
    end();
    system_.give_back(me_);
  }
  transaction(const transaction&) = delete;
  transaction& operator=(const transaction&) = delete;

  // Begins a transaction. Returns its id, which is never 0 and never used before.
  lock_owner_id begin();
  // Releases all locks, explicit and implicit, and grants the requests that waited for them. Gives
  // up a request that still waits. Does nothing without a transaction.
  void end() noexcept;
  // To be called between end() and begin(). After a transaction that was a victim, waits for at
  // most `timeout` until no other victim runs again. Then this one has the turn until its next
  // end(). In all other cases, and when called again, returns at once.
  void wait_for_turn(std::optional<std::chrono::nanoseconds> timeout = {}) noexcept;
  // 0: there is no transaction.
  lock_owner_id id() const noexcept { return me_.own_id; }

  // Wait until the lock is granted, for at most `timeout`, or options.wait_timeout by default. With
  // a timeout of 0 they never wait, and the transaction does not become a victim.
  lock_outcome lock_table(std::uint32_t table, lock_mode mode,
                          std::optional<std::chrono::nanoseconds> timeout = {});
  template <class Writer = lock_owner_id>
  lock_outcome lock_record(const record_address& address, lock_mode mode,
                           lock_kind kind = lock_kind::record, const Writer& writer = {},
                           std::optional<std::chrono::nanoseconds> timeout = {});
  // Takes an exclusive lock of the record. The lock is implicit if possible: then `writer` is this
  // transaction. After a wait the lock is explicit, and `writer` is unchanged.
  lock_outcome write_record(const record_address& address, std::atomic<lock_owner_id>& writer,
                            std::optional<std::chrono::nanoseconds> timeout = {});

  // The same in two steps: a request may return `waiting`, and wait() completes it.
  lock_outcome request_table(std::uint32_t table, lock_mode mode);
  template <class Writer = lock_owner_id>
  lock_outcome request_record(const record_address& address, lock_mode mode,
                              lock_kind kind = lock_kind::record, const Writer& writer = {});
  lock_outcome request_write(const record_address& address, std::atomic<lock_owner_id>& writer);
  // Waits until the request is decided, for at most `timeout`. With a negative timeout or 0, gives
  // up the request unless it is decided.
  lock_outcome wait(std::optional<std::chrono::nanoseconds> timeout = {});
  // Whether wait() would return at once. False without a request.
  bool is_decided() const noexcept { return waiting_ && me_.signal.load() == lock_owner::awake; }
  bool is_waiting() const noexcept { return waiting_; }

  // Releases a lock of the kind `record` before the end, as READ COMMITTED may for a record that it
  // read but does not need. Not for a record that the transaction has written: the record names its
  // writer until the end. Returns false if there was no such lock of this mode.
  bool unlock_record(const record_address& address, lock_mode mode);
  // Gives each holder of a lock on the gap before `from` a lock on the gap before `to`. With
  // gap_heirs::of_anything this includes the holders of locks on the record `from`. Throws
  // std::bad_alloc, and then some may have got theirs.
  void inherit_gap(const record_address& from, const record_address& to,
                   gap_heirs heirs = gap_heirs::of_the_gap);

  // Adds to the cost of a rollback. A transaction with more changes is less likely to be a victim.
  void add_changes(std::uint64_t count) noexcept {
    // relaxed, without a partner: a guess in any case, and one thread writes.
    me_.changes.store(me_.changes.load(std::memory_order_relaxed) + count,
                      std::memory_order_relaxed);
  }
  // The number of lock objects: at least one for each page or table, mode and kind.
  std::uint32_t lock_count() const noexcept {
    return me_.lock_count.load(std::memory_order_relaxed);  // no partner: a count publishes nothing
  }

 private:
  using counters = lock_owner_counters;

  static queue_name check(const record_address& address);
  lock_request record_request(const record_address& address, lock_mode mode, lock_kind kind);
  lock_request table_request(std::uint32_t table, lock_mode mode);
  template <class Writer>
  lock_outcome request(const lock_request& wanted, const Writer& writer, bool may_wait,
                       std::atomic<lock_owner_id>* implicit_in);
  template <class Writer>
  lock_outcome request_and_wait(const lock_request& wanted, const Writer& writer,
                                std::optional<std::chrono::nanoseconds> timeout,
                                std::atomic<lock_owner_id>* implicit_in = nullptr);
  bool sleep_until_decided(std::chrono::nanoseconds for_so_long) noexcept;
  void give_up_waiting();
  lock_outcome end_of_wait() noexcept;
  void give_turn_back() noexcept;

  lock_system& system_;
  member& me_;
  queue_name waits_at_;
  bool waiting_ = false;
  bool was_victim_ = false;
  bool has_turn_ = false;
};

// --- bodies ---

// Returns the writer that the caller named: by an id, an atomic that has it, or a function that
// reads it.
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

// Returns futex_deadline::max() for a time without limit.
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
                            "elidex::lock_system: as many transactions as transactions_max says");
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
    throw std::logic_error("elidex::lock_system: begin() of a transaction that has not ended");
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
    wake_list woken(Latches::wakes_under_latch);
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

// Returns false if the owner has ended, or is no longer the transaction `if_still` (0: any).
template <class Latches>
bool lock_system<Latches>::add_to_owner(lock_object& lock, member& owner, lock_owner_id if_still) {
  const std::lock_guard guard(owner.latch);
  if (owner.id == 0 || (if_still != 0 && owner.id != if_still)) return false;
  lock.next_of_owner = owner.locks;
  owner.locks = &lock;
  // relaxed, without a partner: written under the latch only, and read only as a hint.
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
                                  std::atomic<lock_owner_id>* implicit_in) -> acquire_result {
  lock_bucket& bucket = bucket_of(wanted.name);
  if (bucket.covering(wanted) != nullptr) return acquire_result::held;
  const bool held_up = bucket.is_held_up(wanted);
  if (held_up && !may_wait) return acquire_result::refused;
  if (!held_up) {
    // If another transaction is in the queue, it may wait for a weaker lock of this transaction,
    // which this one may release.
    if (implicit_in != nullptr && bucket.is_alone(wanted)) {
      implicit_in->store(me.own_id);
      return acquire_result::implicit;
    }
    if (wanted.kind == lock_kind::insert_intention) return acquire_result::granted;
    if (lock_object* const similar = bucket.similar(wanted); similar != nullptr) {
      similar->set(wanted.bit);
      return acquire_result::granted;
    }
  }
  lock_object& made = take_spare(me, wanted);
  made.waiting = held_up;
  made.waited_for = wanted.bit;
  add_to_owner(made, me, me.own_id);
  bucket.push_back(made);
  if (!held_up) return acquire_result::granted;
  me.signal.store(lock_owner::asleep);
  me.waits_in.store(&made);  // before the next line: lock_system.hpp, "Every cycle is found"
  return bucket.waits_for_a_waiter(made) ? acquire_result::queued_behind_waiter
                                         : acquire_result::queued;
}

// Returns true if the writer holds an explicit lock now, and did not before.
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
    // `similar` stays until its owner gets the latch of this queue. The owner may have ended by
    // now.
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

// To be called under all latches. Cancels victims until `from` is in no cycle, or waits no more.
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
    throw std::invalid_argument("elidex::lock_system: no such record can be locked");
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
    throw std::invalid_argument("elidex::lock_system: not a lock for a record");
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
        "elidex::lock_system: a request outside of begin() and end(), or while one waits");
  }
  system_.pool_.fill(me_, 2);  // one for the caller, one for an implicit holder
  acquire_result taken = acquire_result::held;
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
    case acquire_result::held:
      counters::add(me_.counters.held_already);
      return lock_outcome::granted;
    case acquire_result::implicit:
      counters::add(me_.counters.implicit);
      return lock_outcome::granted;
    case acquire_result::granted:
      counters::add(me_.counters.granted_at_once);
      return lock_outcome::granted;
    case acquire_result::refused:
      counters::add(me_.counters.timeouts);
      return lock_outcome::timed_out;
    case acquire_result::queued:
    case acquire_result::queued_behind_waiter:
      break;
  }
  waiting_ = true;
  waits_at_ = wanted.name;
  counters::add(me_.counters.waits);
  if (taken == acquire_result::queued_behind_waiter) {
    counters::add(me_.counters.searches);
    wake_list woken(Latches::wakes_under_latch);
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

// Returns false if the time is up.
template <class Latches>
bool lock_system<Latches>::transaction::sleep_until_decided(
    std::chrono::nanoseconds for_so_long) noexcept {
  const auto is_asleep = [this] { return me_.signal.load() == lock_owner::asleep; };
  // Spins for some microseconds, about the rest of a short transaction, without a yield. Beside
  // compute-bound programs a yield takes milliseconds, while a sleeper is back at once. Measured
  // with 8 threads on 2 cores: 3 to 10 times as many transactions beside two such programs, and 0.6
  // to 1.1 times alone.
  for (backoff between_looks; !between_looks.is_spent(); between_looks.once()) {
    if (!is_asleep()) return true;
  }
  const futex_deadline deadline = deadline_after(for_so_long);
  while (is_asleep()) {
    if (!futex_wait_until(me_.signal, lock_owner::asleep, deadline)) return !is_asleep();
  }
  return true;
}

// Afterwards the request is decided, and the thread that decided it does not touch this transaction
// any more.
template <class Latches>
void lock_system<Latches>::transaction::give_up_waiting() {
  wake_list woken(Latches::wakes_under_latch);
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
  if (!waiting_) throw std::logic_error("elidex::lock_system: wait() without a request that waits");
  const std::chrono::nanoseconds time = timeout.value_or(system_.options_.wait_timeout);
  if (!is_decided()) {
    const auto began = std::chrono::steady_clock::now();
    const std::size_t slot = system_.waits_.enter();
    if (time <= time.zero() || !sleep_until_decided(time)) give_up_waiting();
    system_.waits_.leave(slot);
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
  wake_list woken(Latches::wakes_under_latch);
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
      // The owner is ending, and will release l.
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
  wake_list woken(Latches::wakes_under_latch);
  {
    const all_latches guard(system_);
    // A victim's lock leaves the queue, and more locks may be granted. So each search starts from
    // the beginning.
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
