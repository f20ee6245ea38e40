// Epochs of commits: which transactions are done once and for all, so that they can be written to a log together.
//
//   elidex::log_epochs epochs;
//   elidex::log_epochs::member me(epochs);           // of one thread
//   const std::uint64_t epoch = me.enter();             // the commit's epoch
//   ... validate, log, install the writes ...
//   me.leave();
//   const std::uint64_t done = epochs.finish_current(); // elsewhere, by one thread: no commit of `done` or before runs any more
//
// One counter E, which only grows. A thread that enters writes E into its member and looks whether E is still that; so it has told its
// epoch before it acts on it. finish_current() sets E + 1 and then waits until no member shows E. These are four seq_cst accesses: the
// member's store and second load of E, the finisher's store of E + 1 and its look at the member. Of two threads that each store first
// and then load what the other has stored, one sees the other's store: the member sees E + 1 and enters that epoch instead, or the
// finisher sees the member and waits.
//
// Invariants: at most two epochs have commits that run, E and E - 1, because E + 1 comes only from a finish_current() that waited for E - 1.
// A thread that enters gets at least the epoch of every commit whose effects it has seen, since E only grows. What a transaction has
// seen it must therefore have seen before it enters, or check behind entering that nobody has changed it; and what it is to
// overwrite it must have locked before. Then the order of epochs agrees with the serial order (Silo's argument).
// A commit that is one hardware region compares current() inside of the region with its epoch, and enters anew if they differ: otherwise
// it could come behind a commit of the next epoch that wrote the same row.
//
// Thread-safety: enter() and leave() by one thread at a time per member, everything else by any thread; finish_current() by one
// at a time. enter() and leave() stand outside of regions. Errors: the constructors' std::bad_alloc and std::system_error of a mutex.
// Source: Tu et al., "Speedy Transactions in Multicore In-Memory Databases", SOSP 2013, section 4.1. Deviation: there a thread shows its
// epoch for the whole transaction and the counter may be one ahead of it; here for the commit only, and finishing waits for it.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

namespace elidex {

class log_epochs {
 public:
  // Threads enter by members; a member lives no longer than its epochs.
  class alignas(128) member {
   public:
    explicit member(log_epochs& of);
    ~member();
    member(const member&) = delete;
    member& operator=(const member&) = delete;

    // The epoch in which the caller now commits. Not nested.
    std::uint64_t enter() noexcept {
      std::uint64_t epoch = of_.epoch_.load(std::memory_order_relaxed);  // no partner: the load below decides
      for (;;) {
        inside_.store(epoch);
        const std::uint64_t now = of_.epoch_.load();
        if (now == epoch) return epoch;
        epoch = now;
      }
    }

    // Everything that the caller has done since enter() is visible to whoever finishes its epoch.
    void leave() noexcept {
      inside_.store(0, std::memory_order_release);  // pairs with the load in finish_current()
    }

   private:
    friend class log_epochs;
    std::atomic<std::uint64_t> inside_{0};  // 0: not inside
    log_epochs& of_;
    member* next_ = nullptr;  // with of_.mutex_
  };

  // The first epoch; at least 1.
  explicit log_epochs(std::uint64_t first = 1) noexcept : epoch_(first == 0 ? 1 : first) {}
  log_epochs(const log_epochs&) = delete;
  log_epochs& operator=(const log_epochs&) = delete;

  std::uint64_t current() const noexcept { return epoch_.load(); }

  // Ends the current epoch E and returns it, once all commits of E have left and what they did is visible to the caller. Waits for
  // them by pausing and yielding; not from inside a member of the caller's own.
  std::uint64_t finish_current();

  // Makes the current epoch at least that, as a recovered log asks. Nobody may be inside.
  void begin_at(std::uint64_t epoch) noexcept {
    if (epoch_.load() < epoch) epoch_.store(epoch);
  }

 private:
  alignas(128) std::atomic<std::uint64_t> epoch_;
  alignas(128) std::mutex mutex_;  // of the list
  member* first_ = nullptr;
};

}  // namespace elidex
