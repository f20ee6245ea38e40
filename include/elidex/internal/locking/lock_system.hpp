// InnoDB's lock system: locks of tables and records for two-phase locking, with implicit locks,
// queues and deadlock detection.
//
//   lock_system<> locks;  // <hle_latches>, ...: lock_latches.hpp
//   // one per thread or session, used again and again
//   lock_system<>::transaction t(locks);
//   t.begin();
//   t.lock_table(orders, lock_mode::intention_exclusive);
//   if (t.lock_record({.space = orders, .heap = 7, .page = 42}, lock_mode::exclusive) !=
//       lock_outcome::granted) undo();
//   t.end();                                                       // gives everything back
//
// lock_mode.hpp has modes, kinds and who waits for whom, lock_queue.hpp the objects and queues,
// lock_latches.hpp the latches that papers/004 section 4.2 varies.
//
// Implicit locks. Who has just written a record holds it exclusively without a lock object: the
// record names its writer, and as long as that transaction has not ended the record is locked. So
// every request for a record takes `writer`: the id, an atomic that has it, or a function that
// reads it; asked under the latch of the record's queue, perhaps several times, it may only read
// memory. If it names another transaction that has not ended, that one gets an explicit lock first.
// write_record() takes such a lock: where nobody else has or wants the record, it stores the id in
// the record's word and needs no object. An insert stores the id in a record that nobody can see
// yet. Nothing else may store ids there: in a record that others hold or wait for, they would lose
// what they have. Changes must be undone before end(), since end() ends the implicit locks too.
//
// Phantoms. A scan that must not see any takes next_key locks on the records it reads and a gap
// lock on what ends its range (lock_mode.hpp). Who inserts asks for insert_intention on the record
// behind the place. Between being granted and the insert itself nobody may lock that gap: the
// caller keeps its own latch of the place from before the request until then, asking with no time
// to wait, and if refused it waits without the latch and asks once more, as InnoDB does with its
// page latches. Then inherit_gap() gives the new record's gap to those who hold the old one; before
// a record is removed, its heir takes over.
//
// Invariants: those of lock_queue.hpp; and
// 1. A transaction waits for one lock at most.
// 2. A transaction's list has all its lock objects. Only while its id is set others add to it
//    (implicit locks, gaps); only its own thread takes out. end() takes id and list away together,
//    so nothing is added to a list that nobody will release.
// 3. What a latch protects changes in sections that neither allocate nor throw nor call the system,
//    so that they may be hardware regions: objects come from the transaction's spares, which are
//    filled before; wake-ups wait until after.
//
// Order of latches: those of queues, several of them in ascending order; then that of one
// transaction. The free lists' locks are taken alone. Callers may hold their own latches while they
// ask, but not while they wait.
//
//   a queue's latch   its locks; waits_in, outcome and next_to_wake of the transactions that wait
//                     there. One latch for all queues, or `shards` of them
//   all of them       the search for deadlocks
//   a transaction's   its id and its list of locks
//
// Nobody sleeps for ever. A waiting lock has somebody to wait for, granted or further ahead
// (lock_queue.hpp, 2): whoever makes that untrue, by leaving, grants it in the same section, and
// after it stores `awake` in the waiter's signal and wakes it. The waiter sets its signal to
// `asleep` in the section that queues it, so before anybody can decide, and sleeps only on that
// value; so no wake-up comes too early to be seen. The decider walks the list of whom to wake
// through the waiters themselves (next_to_wake): that is safe because a waiter does nothing else
// before it has seen `awake`, and by then the walker has read the link. So it remains that all whom
// it waits for leave: transactions that run end by themselves; those that wait, in turn, wait for
// somebody; and there is no cycle.
//
// Every cycle is found. Consider a cycle of waiting transactions, and of these the transaction L
// that was the last to store its waits_in, in the order that all sequentially consistent stores and
// loads have. It waits for M, the next one around. M held what L waits for, or stood ahead of L,
// when L was queued: had M got it later, M would have been running then, and begun to wait after L.
// So L, which looks at those it waits for after its own store and in the same section, sees that M
// waits, and searches. (Who sees nobody wait leaves the search out.) All others of the cycle were
// queued in sections that stored waits_in before L did, so when L takes their latches for its
// search those sections are over, and it sees all edges. Two things give a lock to a transaction
// that may wait. An implicit lock becomes explicit: then nobody but the one who asks begins to wait
// for its writer, because the record was locked before, only not on paper. And inherit_gap(): if it
// gives a lock to somebody who waits it searches from all who wait for the heir. That is enough: if
// the cycle's other edges are there, L searched before, and what it had seen is visible; if not, L
// is yet to search.
//
// Victim: of the cycle the transaction with the fewest locks and changes (add_changes()), the one
// that searches if it is among these. It is taken out of its queue, and is to roll back and end().
// Each loss in a row makes a transaction heavier, so that none is a victim for ever.
//
// Before a victim runs again, it calls wait_for_turn(): victims run again one at a time. Otherwise
// two of them may keep a third transaction waiting for ever: a gap lock does not wait for an
// insert's intention, so one of the two always holds the gap. And threads that contend for a few
// records would spend their time on deadlocks. A victim that waits for its turn holds no lock, so
// no transaction waits for it.
//
// Thread-safety: a lock_system from any thread; a transaction by one thread at a time. The caller's
// functions run under latches. Nothing here is to be called inside of a region of the caller's, but
// id().
//
// Errors: std::invalid_argument for a mode or kind that a table or record cannot have, a heap
// number from record_address::heap_numbers on, the page 2^64 - 1; std::logic_error outside of
// begin() and end(), or while a request waits; std::bad_alloc. All before anything has changed.
//
// From: papers/004 sections 4.1 and 4.2. Deviations:
// - The wait slots and their mutex (lock_sys->wait_mutex) are a futex for each transaction.
// - A transaction may upgrade its lock past somebody who waits for that very lock (lock_queue.hpp).
// - The victim is the cheapest of the whole cycle; MySQL 5.6 looks at two of it. The search has no
//   limit of depth.
// - A transaction's latch protects its list alone, not what it waits for.
// - Bitmaps have a fixed size. Objects of locks that have been granted after waiting, or given up
//   by unlock_record(), stay until the end.
// - An implicit lock is taken by write_record() in the section that checks for conflicts, where
//   InnoDB's page latch keeps others out.
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
  std::uint32_t transactions_max = 1024;  // that exist at a time
  // rounded up to a power of two, at least one for each shard
  std::uint32_t buckets = 1024;
  std::chrono::nanoseconds wait_timeout = std::chrono::seconds(50);  // as InnoDB has it
};

// As a time-out: none.
inline constexpr std::chrono::nanoseconds wait_for_ever = std::chrono::nanoseconds::max();

// Sums over all transactions that there have been.
struct lock_system_counts {
  std::uint64_t requests = 0;
  std::uint64_t held_already = 0;     // of these: as strong a lock was there, explicit or implicit
  std::uint64_t implicit = 0;         // granted without an object, by write_record()
  std::uint64_t granted_at_once = 0;  // with one (or, an insert's intention, without need of any)
  std::uint64_t waits = 0;
  std::uint64_t deadlocks = 0;    // victims
  std::uint64_t timeouts = 0;     // those refused without any wait too
  std::uint64_t conversions = 0;  // implicit locks made explicit
  std::uint64_t searches = 0;     // for cycles, with all latches
  std::uint64_t waited_ns = 0;
};

// Whose locks inherit_gap() copies.
enum class gap_heirs : std::uint8_t {
  of_the_gap,   // an insert splits it
  of_anything,  // the record is removed: its gap, and itself, become part of the next one's
};

template <class Latches = sharded_latches<>>
class lock_system {
  struct member;

 public:
  class transaction;

  explicit lock_system(const lock_system_options& options = {});
  // All transactions must be gone.
  ~lock_system();
  lock_system(const lock_system&) = delete;
  lock_system& operator=(const lock_system&) = delete;

  // Whether the transaction that begin() gave this id has not ended. An id that nobody has ever
  // had: false.
  bool is_active(lock_owner_id id);

  lock_system_counts counts() const;
  // What elided latches did, those of queues and transactions together; 0 for latches that don't
  // count.
  lock_counts latch_counts() const;
  std::size_t memory_bytes() const;
  // Checks the invariants of all queues, with all latches. For tests.
  bool is_consistent();

 private:
  using owner_latch = typename Latches::transaction_latch;

  struct member : lock_owner {
    alignas(std::max(std::size_t{64}, alignof(owner_latch))) owner_latch latch;
  };
  struct alignas(std::max(std::size_t{64}, alignof(typename Latches::system_latch))) shard {
    typename Latches::system_latch latch;
  };
  // What became of a request in its section.
  enum class step : std::uint8_t { held, implicit, granted, queued, queued_behind_waiter, refused };

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

  // How many locks are released in one section. Chosen: some 50 lines, which fit a region many
  // times, and no endless section where somebody has thousands.
  static constexpr std::uint32_t releases_per_section = 16;

  std::size_t bucket_index(const queue_name& name) const noexcept {
    // Fibonacci hashing: neighbouring pages and tables spread over all buckets.
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
  step decide(member& me, const lock_request& wanted, bool may_wait,
              std::atomic<lock_owner_id>* implicit_in);
  bool convert(member& me, const queue_name& name, std::uint32_t bit, lock_owner_id writer);
  void search_for_cycles(lock_owner& from, wake_list& woken) noexcept;
  struct inheritance {
    bool complete;  // otherwise the spares were used up
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
  deadlock_search search_;  // under all latches
  lock_pool pool_;
  std::unique_ptr<std::atomic<member*>[]> members_;

  futex_semaphore turn_of_victims_{1};  // one token: no victim has the turn

  std::mutex members_lock_;  // the two below
  std::uint32_t members_made_ = 0;
  lock_owner* free_members_ = nullptr;
};

// One transaction after the other.
template <class Latches>
class lock_system<Latches>::transaction {
 public:
  // Throws std::system_error (resource_unavailable_try_again) if there are transactions_max
  // already.
  explicit transaction(lock_system& system) : system_(system), me_(system.take_member()) {}
  // Ends what has not ended.
  ~transaction() {
    end();
    system_.give_back(me_);
  }
  transaction(const transaction&) = delete;
  transaction& operator=(const transaction&) = delete;

  // The new transaction's id, never 0 and never used before.
  lock_owner_id begin();
  // Gives all locks back, explicit and implicit, and grants who waited for them; nothing if there
  // is no transaction. A request that still waits is given up.
  void end() noexcept;
  // To be called between end() and begin(). After a transaction that was a victim: waits until no
  // other victim runs again, for `timeout` at most. Then this one has the turn until its next
  // end(). After any other transaction, and when called again: returns at once.
  void wait_for_turn(std::optional<std::chrono::nanoseconds> timeout = {}) noexcept;
  // 0: none.
  lock_owner_id id() const noexcept { return me_.own_id; }

  // They wait until the lock is granted, for so long at most; with 0 they never wait and never
  // become a victim. Without a time, options.wait_timeout.
  lock_outcome lock_table(std::uint32_t table, lock_mode mode,
                          std::optional<std::chrono::nanoseconds> timeout = {});
  template <class Writer = lock_owner_id>
  lock_outcome lock_record(const record_address& address, lock_mode mode,
                           lock_kind kind = lock_kind::record, const Writer& writer = {},
                           std::optional<std::chrono::nanoseconds> timeout = {});
  // An exclusive lock of the record, which becomes implicit where that is possible: then `writer`
  // is this transaction. After waiting it is explicit, and the word is left as it is.
  lock_outcome write_record(const record_address& address, std::atomic<lock_owner_id>& writer,
                            std::optional<std::chrono::nanoseconds> timeout = {});

  // The same in two steps: a request may return `waiting`, and wait() ends it.
  lock_outcome request_table(std::uint32_t table, lock_mode mode);
  template <class Writer = lock_owner_id>
  lock_outcome request_record(const record_address& address, lock_mode mode,
                              lock_kind kind = lock_kind::record, const Writer& writer = {});
  lock_outcome request_write(const record_address& address, std::atomic<lock_owner_id>& writer);
  // Until the request is decided, or for so long; a negative time or 0 gives it up unless it is
  // decided.
  lock_outcome wait(std::optional<std::chrono::nanoseconds> timeout = {});
  // Whether wait() would return at once. False without a request.
  bool is_decided() const noexcept { return waiting_ && me_.signal.load() == lock_owner::awake; }
  bool is_waiting() const noexcept { return waiting_; }

  // Gives a lock of the kind `record` back before the end, as READ COMMITTED may for records that
  // it has read in vain. Not for one that it has written: the record says so until the end. False:
  // there was none of this mode.
  bool unlock_record(const record_address& address, lock_mode mode);
  // Who holds a lock on the gap before `from` (or, gap_heirs::of_anything, on the record) gets one
  // on the gap before `to`. Throws std::bad_alloc; then some may have got theirs.
  void inherit_gap(const record_address& from, const record_address& to,
                   gap_heirs heirs = gap_heirs::of_the_gap);

  // Tells how much would have to be undone: who has changed more is less likely to be a victim.
  void add_changes(std::uint64_t count) noexcept {
    // relaxed, without a partner: a guess in any case; one writer.
    me_.changes.store(me_.changes.load(std::memory_order_relaxed) + count,
                      std::memory_order_relaxed);
  }
  // Lock objects: one for each page or table, mode and kind, at least.
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

}  // namespace elidex::internal

#include "elidex/internal/locking/lock_system_impl.hpp"
