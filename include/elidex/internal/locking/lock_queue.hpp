// The parts of a lock system: lock objects, their queues, and the wait-for relation between
// transactions. Latches and threads are the caller's: it holds the latch of each queue that it uses
// (lock_system.hpp).
//
//   lock_bucket bucket;
//   bucket.push_back(mine);                                  // granted, or with mine.waiting set
//   if (bucket.is_held_up(mine)) ...                         // does it have to wait?
//   bucket.remove(held); bucket.grant_waiters(name, woken);  // release
//   lock_owner* victim = search.victim_of_cycle(me, bucket_of);
//
// Thread-safety: none of its own.
// Errors: none.
//
// Implementation notes
// A bucket of the hash table is one list, in the order of arrival. It has all locks on the pages
// that hash to it. A granted lock object covers many records of one page, with one bit for each. A
// waiting one has only the bit of the record it waits for. A table has a queue of its own, in which
// every lock has bit 0. So the same functions serve both.
//
// Wait-for relation: a waiting lock W waits for a lock L of another transaction on the same record
// if must_wait(W, L) and
// - L is granted, anywhere in the list, or
// - L waits too, came before W, and does not itself wait for a lock that W's transaction holds on
//   this record.
// The exception lets a transaction upgrade its own lock while another transaction waits for that
// lock. In MySQL 5.6 the two form a deadlock. MySQL 8.0 has the exception, too. Granted locks count
// anywhere in the list, so a lock may be granted by setting a bit in an existing object.
//
// Invariants (is_consistent() of a bucket checks them):
// 1. Of two granted locks of different transactions on one record, the later one did not have to
//    wait for the earlier.
// 2. A waiting lock waits for at least one other lock. When the last of those leaves, the same
//    section grants the waiting one.
// 3. A transaction's waits_in is its one waiting lock, or null.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "elidex/internal/locking/lock_mode.hpp"
#include "elidex/internal/sync/futex.hpp"

namespace elidex::internal {

// Identifies a lock's holder. Unique for each begin() of a lock system's transactions. 0: none.
using lock_owner_id = std::uint64_t;

// Names a record: its table or table space, the page, and its number within the page.
struct record_address {
  // The most records of a page. Chosen: their bits take half a cache line of each lock object.
  static constexpr std::uint32_t heap_numbers = 256;

  std::uint32_t space = 0;
  std::uint32_t heap = 0;
  std::uint64_t page = 0;

  friend constexpr bool operator==(const record_address&, const record_address&) noexcept = default;
};

struct lock_object;

// A queue's name: a page, or a table under a page number that no record may have.
struct queue_name {
  static constexpr std::uint64_t whole_table = std::numeric_limits<std::uint64_t>::max();

  std::uint64_t page = 0;
  std::uint32_t space = 0;

  friend constexpr bool operator==(const queue_name&, const queue_name&) noexcept = default;
};

// What a transaction did. Only its own thread counts, so no other thread writes these lines.
struct lock_owner_counters {
  using counter = std::atomic<std::uint64_t>;
  counter requests{0};
  counter held_already{0};
  counter implicit{0};
  counter granted_at_once{0};
  counter waits{0};
  counter deadlocks{0};
  counter timeouts{0};
  counter conversions{0};
  counter searches{0};
  counter waited_ns{0};

  static void add(counter& to, std::uint64_t what = 1) noexcept {
    // relaxed, without a partner: one thread writes, and a count publishes nothing.
    to.store(to.load(std::memory_order_relaxed) + what, std::memory_order_relaxed);
  }
};

// A transaction's part in the queues. Its latch is in lock_system::member.
struct lock_owner {
  static constexpr std::uint32_t awake = 0;
  static constexpr std::uint32_t asleep = 1;

  // Protected by the transaction's latch.
  alignas(64) lock_owner_id id = 0;  // 0: no transaction now
  lock_object* locks = nullptr;      // all of them (not extended while id is 0)
  // Written under the transaction's latch. Read as a hint for the choice of a victim.
  std::atomic<std::uint32_t> lock_count{0};
  std::atomic<std::uint64_t> changes{0};

  // Protected by the latch of the queue that it waits in, or by those of all queues. Other
  // transactions read it to learn whether this one waits.
  alignas(64) std::atomic<lock_object*> waits_in{nullptr};
  lock_outcome outcome = lock_outcome::granted;
  // Used by the thread that decided the outcome, until that thread has stored `awake`.
  lock_owner* next_to_wake = nullptr;
  futex_word signal{awake};

  // Protected by the latches of all queues: the search for a cycle.
  std::uint64_t visited_by = 0;
  lock_owner* came_from = nullptr;
  lock_object* next_to_look_at = nullptr;
  bool behind_own = false;

  // Used by the transaction's own thread.
  alignas(64) lock_object* spare = nullptr;
  std::uint32_t spare_count = 0;
  std::uint32_t slot = 0;
  std::uint64_t begun = 0;  // how many transactions have used this object
  lock_owner_id own_id = 0;
  std::uint32_t losses = 0;  // how often it was a victim in a row (others read it while it waits)
  lock_owner* next_free = nullptr;
  lock_owner_counters counters;

  // Each loss doubles the weight of the losses.
  std::uint64_t weight() const noexcept {
    const std::uint64_t of_losses = (std::uint64_t{1} << std::min(losses, 32U)) - 1;
    // relaxed, without a partner: the choice of the cheapest victim is a guess in any case.
    return lock_count.load(std::memory_order_relaxed) + changes.load(std::memory_order_relaxed) +
           of_losses;
  }
};

// Two cache lines. A thread that holds any latch may read the members that do not change while the
// object is in a queue.
struct alignas(64) lock_object {
  static constexpr std::size_t words = record_address::heap_numbers / 64;

  lock_object* next = nullptr;
  lock_object* previous = nullptr;
  lock_object* next_of_owner = nullptr;  // under the owner's latch; also links spare objects
  lock_owner* owner = nullptr;
  queue_name name;
  std::uint32_t waited_for = 0;  // the only bit of a waiting lock
  lock_mode mode = lock_mode::intention_shared;
  lock_kind kind = lock_kind::table;
  bool waiting = false;
  bool queued = false;
  std::array<std::uint64_t, words> bits{};

  bool has(std::uint32_t bit) const noexcept { return (bits[bit / 64] >> bit % 64 & 1) != 0; }
  void set(std::uint32_t bit) noexcept { bits[bit / 64] |= std::uint64_t{1} << bit % 64; }
  void clear(std::uint32_t bit) noexcept { bits[bit / 64] &= ~(std::uint64_t{1} << bit % 64); }
  bool is_granted_on(const queue_name& where, std::uint32_t bit) const noexcept {
    return !waiting && name == where && has(bit);
  }
};

// Transactions with a decided outcome. wake_all() wakes them after the latch is released. With
// `at_once`, add() does (lock_latches.hpp, wakes_under_latch).
class wake_list {
 public:
  explicit wake_list(bool at_once) noexcept : at_once_(at_once) {}

  void add(lock_owner& one) noexcept {
    if (at_once_) {
      wake(one);
      return;
    }
    one.next_to_wake = first_;
    first_ = &one;
  }

  // To be called outside of all latches, because a system call would end an elided section.
  void wake_all() noexcept {
    while (first_ != nullptr) {
      lock_owner& one = *first_;
      first_ = one.next_to_wake;
      wake(one);
    }
  }

 private:
  // The owner may end as soon as its signal is stored, but its memory stays.
  static void wake(lock_owner& one) noexcept {
    one.signal.store(lock_owner::awake);
    futex_wake(one.signal, 1);
  }

  const bool at_once_;
  lock_owner* first_ = nullptr;
};

// A request that is no lock yet.
struct lock_request {
  lock_owner* owner;
  queue_name name;
  std::uint32_t bit;
  lock_mode mode;
  lock_kind kind;
};

// A bucket of the hash table. It has its own cache line, so that threads that lock different pages
// do not conflict.
class alignas(64) lock_bucket {
 public:
  lock_object* first() const noexcept { return first_; }

  void push_back(lock_object& lock) noexcept {
    lock.next = nullptr;
    lock.previous = last_;
    (last_ != nullptr ? last_->next : first_) = &lock;
    last_ = &lock;
    lock.queued = true;
    if (lock.waiting) ++waiting_;
  }

  void remove(lock_object& lock) noexcept {
    (lock.previous != nullptr ? lock.previous->next : first_) = lock.next;
    (lock.next != nullptr ? lock.next->previous : last_) = lock.previous;
    lock.queued = false;
    if (lock.waiting) --waiting_;
  }

  // Returns a granted lock of this owner that covers the request, or null.
  const lock_object* covering(const lock_request& wanted) const noexcept {
    for (const lock_object* l = first_; l != nullptr; l = l->next) {
      if (l->owner == wanted.owner && l->is_granted_on(wanted.name, wanted.bit) &&
          is_stronger_or_equal(l->mode, wanted.mode) && covers(l->kind, wanted.kind)) {
        return l;
      }
    }
    return nullptr;
  }

  // Returns a granted lock of this owner, mode and kind on the same page, for another bit, or null.
  lock_object* similar(const lock_request& wanted) const noexcept {
    for (lock_object* l = first_; l != nullptr; l = l->next) {
      if (l->owner == wanted.owner && !l->waiting && l->name == wanted.name &&
          l->mode == wanted.mode && l->kind == wanted.kind) {
        return l;
      }
    }
    return nullptr;
  }

  // Whether no other transaction has or wants a lock on this record.
  bool is_alone(const lock_request& wanted) const noexcept {
    for (const lock_object* l = first_; l != nullptr; l = l->next) {
      if (l->owner != wanted.owner && l->name == wanted.name && l->has(wanted.bit)) return false;
    }
    return true;
  }

  bool is_held_up(const lock_request& wanted) const noexcept {
    for (const lock_object* l = first_; l != nullptr; l = l->next) {
      if (holds_up(*l, wanted, false)) return true;
    }
    return false;
  }
  bool is_held_up(const lock_object& waiting) const noexcept {
    bool behind = false;
    return next_to_wait_for(waiting, first_, behind) != nullptr;
  }

  // Returns the first lock, at `from` or after it, that `waiting` waits for. `behind`: whether
  // `from` is after `waiting` in the list.
  lock_object* next_to_wait_for(const lock_object& waiting, lock_object* from,
                                bool& behind) const noexcept {
    const lock_request wanted{waiting.owner, waiting.name, waiting.waited_for, waiting.mode,
                              waiting.kind};
    for (lock_object* l = from; l != nullptr; l = l->next) {
      if (l == &waiting) {
        behind = true;
      } else if (holds_up(*l, wanted, behind)) {
        return l;
      }
    }
    return nullptr;
  }

  // Whether `waiting` waits for a transaction that waits itself. Then there may be a cycle.
  bool waits_for_a_waiter(const lock_object& waiting) const noexcept {
    bool behind = false;
    lock_object* l = next_to_wait_for(waiting, first_, behind);
    while (l != nullptr && l->owner->waits_in.load() == nullptr)
      l = next_to_wait_for(waiting, l->next, behind);
    return l != nullptr;
  }

  // To be called after a lock has left. Grants, in order, the locks that need not wait any more.
  // One pass is sufficient: a lock that is granted blocks those after it as much as before.
  void grant_waiters(const queue_name& name, wake_list& woken) noexcept {
    if (waiting_ == 0) return;
    for (lock_object* l = first_; l != nullptr; l = l->next) {
      if (!l->waiting || l->name != name || is_held_up(*l)) continue;
      l->waiting = false;
      --waiting_;
      decide(*l->owner, lock_outcome::granted, woken);
    }
  }

  // Removes a waiting lock and sets its owner's outcome. Grants locks that waited for it.
  void cancel(lock_object& waiting, lock_outcome why, wake_list& woken) noexcept {
    const queue_name name = waiting.name;  // the owner may use the object again once it is awake
    remove(waiting);
    waiting.waiting = false;
    decide(*waiting.owner, why, woken);
    grant_waiters(name, woken);
  }

  bool is_consistent() const noexcept {
    std::uint32_t waiting = 0;
    for (const lock_object* l = first_; l != nullptr; l = l->next) {
      if (!l->queued || l->owner == nullptr) return false;
      if (l->waiting) {
        ++waiting;
        if (l->owner->waits_in.load() != l || !is_held_up(*l)) return false;
      } else if (conflicts_with_granted(*l)) {
        return false;
      }
    }
    return waiting == waiting_;
  }

 private:
  static void decide(lock_owner& owner, lock_outcome outcome, wake_list& woken) noexcept {
    owner.waits_in.store(nullptr);
    owner.outcome = outcome;
    woken.add(owner);
  }

  bool holds_up(const lock_object& l, const lock_request& wanted, bool behind) const noexcept {
    if (l.owner == wanted.owner || l.name != wanted.name || !l.has(wanted.bit)) return false;
    if (!must_wait(wanted.mode, wanted.kind, l.mode, l.kind)) return false;
    return !l.waiting || (!behind && !waits_for_one_of(l, *wanted.owner));
  }

  bool waits_for_one_of(const lock_object& waiting, const lock_owner& owner) const noexcept {
    for (const lock_object* l = first_; l != nullptr; l = l->next) {
      if (l->owner == &owner && l->is_granted_on(waiting.name, waiting.waited_for) &&
          must_wait(waiting.mode, waiting.kind, l->mode, l->kind)) {
        return true;
      }
    }
    return false;
  }

  // Compares only with later locks, in both directions: an insert_intention may have been granted
  // before a gap lock, but not after it.
  bool conflicts_with_granted(const lock_object& l) const noexcept {
    for (const lock_object* other = l.next; other != nullptr; other = other->next) {
      if (other->owner == l.owner || other->waiting || other->name != l.name) continue;
      if (!must_wait(other->mode, other->kind, l.mode, l.kind) ||
          !must_wait(l.mode, l.kind, other->mode, other->kind)) {
        continue;
      }
      for (std::size_t word = 0; word < lock_object::words; ++word) {
        if ((l.bits[word] & other->bits[word]) != 0) return true;
      }
    }
    return false;
  }

  lock_object* first_ = nullptr;
  lock_object* last_ = nullptr;
  std::uint32_t waiting_ = 0;
};

// Searches for a cycle of waiting transactions. The caller holds the latches of all queues.
class deadlock_search {
 public:
  // Searches depth first from `start`, which waits. If a chain of waits leads back to `start`,
  // returns the lightest transaction of this cycle, and `start` if none is lighter. Otherwise
  // returns null. `bucket_of(queue_name)` finds a queue. The search visits each transaction once.
  // It allocates nothing, because the transactions hold its path.
  template <class BucketOf>
  lock_owner* victim_of_cycle(lock_owner& start, const BucketOf& bucket_of) noexcept {
    ++number_;
    enter(start, nullptr, bucket_of);
    for (lock_owner* at = &start; at != nullptr;) {
      const lock_object& waiting = *at->waits_in.load();
      lock_object* const found =
          bucket_of(waiting.name).next_to_wait_for(waiting, at->next_to_look_at, at->behind_own);
      if (found == nullptr) {
        at = at->came_from;
        continue;
      }
      at->next_to_look_at = found->next;
      lock_owner* const holder = found->owner;
      if (holder == &start) return cheapest(start, at);
      if (holder->waits_in.load() == nullptr || holder->visited_by == number_) continue;
      enter(*holder, at, bucket_of);
      at = holder;
    }
    return nullptr;
  }

 private:
  template <class BucketOf>
  void enter(lock_owner& one, lock_owner* from, const BucketOf& bucket_of) noexcept {
    one.visited_by = number_;
    one.came_from = from;
    one.next_to_look_at = bucket_of(one.waits_in.load()->name).first();
    one.behind_own = false;
  }

  static lock_owner* cheapest(lock_owner& start, lock_owner* last) noexcept {
    lock_owner* best = &start;
    std::uint64_t best_weight = start.weight();
    for (lock_owner* one = last; one != &start; one = one->came_from) {
      if (const std::uint64_t weight = one->weight(); weight < best_weight) {
        best = one;
        best_weight = weight;
      }
    }
    return best;
  }

  std::uint64_t number_ = 0;  // of this search (older marks are ignored)
};

}  // namespace elidex::internal
