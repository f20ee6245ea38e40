// A lock whose critical sections run as hardware transactions. Threads that touch different data do
// not wait for each other.
//
//   elidex::elided<elidex::ttas_lock> lock;
//   { std::lock_guard guard(lock); ++table[i]; }
//   const int seen = lock.run([&] { return table[j]; });
//   std::cout << lock.stats() << '\n';
//
// lock() begins a transaction and only reads the underlying lock; unlock() commits. After an abort,
// control returns to lock(). lock() asks the retry policy (internal/sync/retry.hpp) whether to try
// again, and eventually takes the underlying lock. On a CPU that commits no transactions, lock()
// takes the lock at once, and the statistics count a fallback.
//
// Lock         has lock(), try_lock(), unlock() and is_locked() const. lock() must make is_locked()
//              true for other threads before the holder's first access to the protected data.
// RetryPolicy  decides how often to try again, by abort cause. `adaptive<...>` also switches
//              elision off for a while when most attempts abort.
// Htm          the machine: htm::native, or a scripted one in tests.
//
// A section may run several times. An abort undoes everything that the attempt wrote to memory. A
// system call aborts the transaction before it takes effect, and the section then runs with the
// lock held. So I/O inside a section is correct, but the section is not elided. Exceptions work as
// with any lock.
//
// Thread-safety: any thread may call any member at any time.
// Errors: lock(), try_lock() and run() throw what the underlying lock's functions throw.
// Size: about 4.6 KiB, nearly all of it statistics.
// Lifetime: the lock must outlive every call of unlock(), because unlock() updates statistics after
// it has released the lock. elidex::mutex may be destroyed earlier.
//
// Implementation notes
// Invariants:
// 1. A transaction reads the underlying lock first and aborts if the lock is held. So no
//    transaction commits while a thread holds the lock, and taking the lock aborts all of them.
// 2. No attempt begins while the lock is held (the lemming effect). lock() waits for the lock to be
//    free, for at most free_waits_max rounds. Then it queues for the lock.
// 3. lock() inside a transaction joins it: the transaction reads this lock, too, and each unlock()
//    ends one level, in any order. Nothing commits before the outermost level does. subscribe()
//    adds the lock to the transaction without a level.
// 4. try_lock() inside a transaction aborts it. There is no record of which locks the transaction
//    elides, so neither result could be correct.
// 5. unlock() commits only inside a transaction and only if the underlying lock is free. Every
//    other unlock() goes to the underlying lock. So an unlock() without a lock() has the same
//    effect as without elision.
// Lock order: as with the underlying lock. Waiting happens outside transactions only.
// Linearization points: of an elided section, its commit; of any other, that of the underlying
// lock.
// From: paper 001, sections 3.1 to 3.3. Deviations: budgets by abort cause instead of one number of
// retries; the wait for a free lock is bounded; the bounds of adaptation are ours, since the paper
// gives none.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <utility>

#include "elidex/htm.hpp"
#include "elidex/internal/memory/memory_name.hpp"
#include "elidex/internal/sync/elision.hpp"
#include "elidex/internal/sync/lock_stats.hpp"
#include "elidex/internal/sync/retry.hpp"
#include "elidex/internal/sync/spin_locks.hpp"

namespace elidex {

namespace internal {

// The state of `adaptive`: whether elision is off now, and the current window of acquisitions.
template <class RetryPolicy>
class elision_switch {
 public:
  bool is_off() const noexcept { return false; }
  void after_lock(bool, const RetryPolicy&, lock_counters&) noexcept {}
};

template <class Base>
class elision_switch<adaptive<Base>> {
 public:
  bool is_off() const noexcept {
    // relaxed, without a partner: a stale answer costs one attempt or one acquisition, never
    // correctness.
    return off_left_.load(std::memory_order_relaxed) != 0;
  }

  // Called right after each acquisition of the underlying lock. The held lock protects all fields
  // here. `gave_up` is true if aborts led to the acquisition.
  void after_lock(bool gave_up, const adaptive<Base>& policy, lock_counters& counters) noexcept {
    const adaptation_bounds& bounds = policy.adaptation;
    // relaxed, without a partner: written only under the lock, which the caller holds.
    const std::uint32_t off_left = off_left_.load(std::memory_order_relaxed);
    if (off_left != 0) {
      off_left_.store(off_left - 1, std::memory_order_relaxed);  // no partner, as in is_off()
      if (off_left == 1) begin_window(counters);
      return;
    }
    if (!gave_up || ++window_fallbacks_ < bounds.window_fallbacks) return;
    const std::uint64_t fallbacks = window_fallbacks_;
    const std::uint64_t commits = counters.read().commits - commits_before_window_;
    if (100 * fallbacks > bounds.fallback_pct_max * (fallbacks + commits) &&
        bounds.off_acquisitions != 0) {
      // no partner, as in is_off()
      off_left_.store(bounds.off_acquisitions, std::memory_order_relaxed);
      counters.count_off_period();
    }
    begin_window(counters);
  }

 private:
  void begin_window(const lock_counters& counters) noexcept {
    window_fallbacks_ = 0;
    commits_before_window_ = counters.read().commits;
  }

  std::atomic<std::uint32_t> off_left_{0};  // acquisitions until elision is tried again
  std::uint32_t window_fallbacks_ = 0;
  std::uint64_t commits_before_window_ = 0;
};

}  // namespace internal

// Locks to wrap, and retry policies.
using internal::adaptive;
using internal::dbx_budgets;
using internal::default_retry;
using internal::no_retry;
using internal::retry_budgets;
using internal::retry_policy;
using internal::tas_lock;
using internal::ttas_lock;

// The counts of an elided lock.
using internal::lock_counts;

// A lock that is elided where possible. Parameters, guarantees and errors: at the top of this
// header.
template <class Lock, retry_policy RetryPolicy = default_retry, class Htm = htm::native>
class elided {
  static_assert(
      requires(const Lock& lock) { lock.is_locked(); },
      "transactions must see whether the lock is held: is_locked()");

 public:
  elided() noexcept : elided(RetryPolicy()) {}
  explicit elided(const RetryPolicy& policy) noexcept : policy_(policy) {
    internal::name_memory(&lock_, sizeof lock_, "lock");
    internal::name_memory(&counters_, sizeof counters_, "lock's counters");
  }
  elided(const elided&) = delete;
  elided& operator=(const elided&) = delete;

  // Begins a critical section: starts a transaction, or takes the lock. Waits while another thread
  // holds the lock.
  void lock() {
    std::uint32_t ignored = 0;
    lock(ignored);
  }
  // The same. Adds to `aborts` the number of attempts that aborted before the one that runs the
  // section.
  void lock(std::uint32_t& aborts) { enter(aborts, internal::always_retry); }

  // Returns false if a thread holds the lock. Never waits. Elides a free lock if the policy allows
  // it, and otherwise tries to take the lock. Inside a transaction, try_lock() aborts the
  // transaction, and the outermost section runs again with its lock taken.
  bool try_lock() {
    if (Htm::test()) Htm::template abort<htm::code_nested_trylock>();
    std::uint32_t ignored = 0;
    const internal::entry result =
        try_to_elide(internal::while_held::give_up, ignored, internal::always_retry);
    if (result == internal::entry::elided) return true;
    if (result == internal::entry::held || !lock_.try_lock()) return false;
    after_lock(result);
    return true;
  }

  // Ends the caller's section: commits its transaction, or releases the lock.
  void unlock() {
    if (Htm::test() && !lock_.is_locked()) {
      Htm::commit();
      // Inside an outer transaction nothing has committed yet.
      if (!Htm::test()) counters_.count_commit();
      return;
    }
    lock_.unlock();
  }

  // Calls fn in a critical section and returns its result. fn may run several times: an abort
  // undoes everything that the attempt wrote to memory. The second form adds to `aborts` as lock()
  // does.
  template <class F>
  decltype(auto) run(F&& fn) {
    std::uint32_t ignored = 0;
    return run(std::forward<F>(fn), ignored);
  }
  template <class F>
  decltype(auto) run(F&& fn, std::uint32_t& aborts) {
    lock(aborts);
    const unlock_at_end guard{*this};
    return std::forward<F>(fn)();
  }

  // Adds this lock to the caller's transaction, which then commits only if no thread holds the
  // lock. Aborts the transaction if a thread holds it now. Cheaper than lock() and unlock(),
  // because it takes no nesting level. Outside a transaction it has no effect.
  void subscribe() const {
    if (Htm::test() && lock_.is_locked()) Htm::template abort<htm::code_lock_busy>();
  }

  // Like run(fn, aborts), for sections whose conflicts concern a part of the data that has a lock
  // of its own, such as a node. After the first abort by a conflict, run() locks `auxiliary` and
  // holds it until the section ends. So aborted threads retry one after the other, and seldom take
  // the elided lock, which would abort every transaction. Inside a transaction `auxiliary` is
  // ignored. The calling thread must not hold it, and its lock() must not throw.
  // From: Afek, Levy, Morrison, "Software-improved hardware lock elision", PODC 2014.
  template <class F, class Auxiliary>
  decltype(auto) run(F&& fn, std::uint32_t& aborts, Auxiliary& auxiliary) {
    std::unique_lock<Auxiliary> turn(auxiliary, std::defer_lock);
    const auto take_turn = [&turn](htm::status aborted) {
      if (aborted.cause() == htm::abort_cause::conflict && !turn.owns_lock()) turn.lock();
      return true;
    };
    enter(aborts, take_turn);
    const unlock_at_end guard{*this};  // ends before `turn` does
    return std::forward<F>(fn)();
  }

  // Like run(fn), but makes at most `attempts` (at least one) attempts as a transaction, and then
  // takes the lock. Attempts that find the lock held do not count; the policy bounds them.
  template <class F>
  decltype(auto) run_at_most(std::uint32_t attempts, F&& fn) {
    const auto try_again = [&attempts](htm::status aborted) {
      if (aborted.is_lock_busy()) return true;
      if (attempts <= 1) return false;
      --attempts;
      return true;
    };
    std::uint32_t ignored = 0;
    enter(ignored, try_again);
    const unlock_at_end guard{*this};
    return std::forward<F>(fn)();
  }

  // Returns whether the caller is in a transaction, of this lock or of another. A section that
  // begins there joins the transaction.
  static bool in_transaction() noexcept { return Htm::test(); }

  // Returns the counts. Acquisitions that joined an enclosing transaction are part of it and do not
  // count.
  lock_counts stats() const noexcept { return counters_.read(); }

  // Returns whether adaptation has switched elision off at this moment.
  bool elision_is_off() const noexcept { return switch_.is_off(); }

  // Returns the lock itself, for code that must hold it (to wait on a condition, for example). No
  // transaction commits while it is held.
  Lock& underlying() noexcept { return lock_; }

 private:
  struct unlock_at_end {
    elided& lock;
    ~unlock_at_end() { lock.unlock(); }
  };

  auto is_free() const noexcept {
    return [this] { return !lock_.is_locked(); };
  }

  template <class OnAbort>
  void enter(std::uint32_t& aborts, OnAbort& on_abort) {
    if (Htm::test()) {
      internal::join_region<Htm>(is_free());
      return;
    }
    internal::entry result = try_to_elide(internal::while_held::wait, aborts, on_abort);
    if constexpr (internal::leaves_convoys<RetryPolicy>) {
      if (result == internal::entry::waited_too_long) {
        // Waits in the lock's queue, and releases the lock at once. A convoy of threads that do so
        // ends. A convoy of threads that work under the lock may last.
        lock_.lock();
        lock_.unlock();
        result = try_to_elide(internal::while_held::wait, aborts, on_abort);
      }
    }
    if (result == internal::entry::elided) return;
    lock_.lock();
    after_lock(result);
  }

  template <class OnAbort>
  internal::entry try_to_elide(internal::while_held manner, std::uint32_t& aborts,
                               OnAbort& on_abort) noexcept {
    if (!Htm::enabled() || switch_.is_off()) return internal::entry::not_tried;
    htm::status ignored = internal::nothing_aborted;
    return internal::try_to_elide<Htm>(policy_, is_free(), manner, counters_, aborts, ignored,
                                       on_abort);
  }

  void after_lock(internal::entry result) noexcept {
    counters_.count_fallback();
    switch_.after_lock(result == internal::entry::out_of_retries, policy_, counters_);
  }

  // On its own cache line, because a write beside the lock would abort transactions. The next two
  // members change only while the lock is held.
  alignas(64) Lock lock_;
  internal::elision_switch<RetryPolicy> switch_;
  [[no_unique_address]] RetryPolicy policy_{};
  internal::lock_counters counters_;
};

}  // namespace elidex
