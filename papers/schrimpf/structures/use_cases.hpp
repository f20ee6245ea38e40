#pragma once
// What a thread does with each structure of paper 004 section 3.3: one operation after the other,
// drawn at random. The same classes run on the simulated machine and on real threads; who runs them
// is in measurement.hpp.
//
//   list_use<spin_loop, item_alignment::none> use({.read_pct = 50}, threads);
//   auto worker = use.worker(thread, thread_draws(seed));    // one for each thread
//   worker.operation();                                      // as often as wanted
//   use.check(operations);  // at the end of every run; throws std::logic_error
//
// Idea of the updates of list and map: each thread keeps a queue of the values that it inserted,
// and removes the oldest of them. So what is to be removed is there, and the size stays about the
// same. The values that the structure begins with are dealt out to the queues.
//
// Thread-safety: a worker belongs to one thread; workers of one use run side by side.
//
// From: paper 004 section 3.3; where the text leaves a detail open, as in the author's published
// programs (the queues' order, who owns the first values). Deviation: each thread has a generator
// of its own, where the thesis's threads share the state of one and so meet between sections too;
// thread_draws can do that as well.

#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "bench/workload/random.hpp"
#include "papers/schrimpf/structures/chained_map.hpp"
#include "papers/schrimpf/structures/closed_bank.hpp"
#include "papers/schrimpf/structures/linked_list.hpp"
#include "papers/schrimpf/structures/shared_counters.hpp"

namespace elidex::bench {

// The state of the thesis's generator, which all its threads share without any order: x -> (32719 x
// + 3) mod 32749.
using shared_generator = std::atomic<std::uint64_t>;

// A thread's random numbers, and what drawing them costs where instructions take no time of their
// own.
class thread_draws {
 public:
  // Called for each division that the thesis's generator makes, twice a draw; null: nothing is.
  using cost = void (*)() noexcept;

  // Draws from `shared` where it is given, as the threads of the thesis do. Threads that read the
  // same state there draw the same number, and meet at the same place.
  explicit thread_draws(std::uint64_t seed, cost division = nullptr,
                        shared_generator* shared = nullptr) noexcept
      : bits_(seed), pay_(division), shared_(shared) {}

  [[nodiscard]] std::uint64_t below(std::uint64_t bound) noexcept {
    if (shared_ == nullptr) {
      pay();
      pay();
      return bits_.below(bound);
    }
    // relaxed, without partners: the threads' races for this word are what is wanted.
    const std::uint64_t before = shared_->load(std::memory_order_relaxed);
    pay();
    shared_->store((before * 32'719 + 3) % 32'749, std::memory_order_relaxed);
    // another thread's, it may be
    const std::uint64_t drawn = shared_->load(std::memory_order_relaxed);
    pay();
    return drawn % bound;
  }

 private:
  void pay() noexcept {
    if (pay_ != nullptr) pay_();
  }

  random_bits bits_;
  cost pay_;
  shared_generator* shared_;
};

// Section 3.3.1: a transfer between two accounts, or a look at one.
template <class Lock>
class bank_use {
 public:
  struct settings {
    std::size_t accounts = 10'000;
    unsigned read_pct = 50;
  };
  static constexpr std::int64_t money_of_each = 1'000;
  static constexpr std::int64_t transfer_max = 1'000;

  bank_use(const settings& wanted, unsigned)
      : settings_(wanted), bank_(wanted.accounts, money_of_each) {}

  class worker_type {
   public:
    worker_type(bank_use& use, thread_draws draws) noexcept : use_(use), draws_(draws) {}
    void operation() {
      closed_bank<Lock>& bank = use_.bank_;
      if (draws_.below(100) < use_.settings_.read_pct) {
        seen_ += bank.balance(draws_.below(bank.size()));
        return;
      }
      const std::size_t from = draws_.below(bank.size());
      const std::size_t to = draws_.below(bank.size());
      const auto money = static_cast<std::int64_t>(draws_.below(transfer_max));
      bank.withdraw(from, money);
      bank.deposit(to, money);
    }

   private:
    bank_use& use_;
    thread_draws draws_;
    std::int64_t seen_ = 0;  // so that reads are not for nothing
  };
  [[nodiscard]] worker_type worker(unsigned, thread_draws draws) { return {*this, draws}; }

  void check(std::uint64_t) const { bank_.check(); }

 private:
  settings settings_;
  closed_bank<Lock> bank_;
};

// Section 3.3.2: thread i counts up counter i modulo their number, as often as it can.
template <class Lock>
class counter_use {
 public:
  struct settings {
    std::size_t counters = 1;
    counter_layout layout = counter_layout::aligned;
    counter_locks locks = counter_locks::own;
  };

  counter_use(const settings& wanted, unsigned)
      : counters_(wanted.counters, wanted.layout, wanted.locks) {}

  class worker_type {
   public:
    worker_type(counter_use& use, std::size_t counter) noexcept : use_(use), counter_(counter) {}
    void operation() { use_.counters_.increment(counter_); }

   private:
    counter_use& use_;
    std::size_t counter_;
  };
  [[nodiscard]] worker_type worker(unsigned thread, thread_draws) {
    return {*this, thread % counters_.size()};
  }

  void check(std::uint64_t operations) const { counters_.check(operations); }

 private:
  shared_counters<Lock> counters_;
};

// The values of one thread that are in the structure, oldest first.
class own_values {
 public:
  void add(int value) { values_.push_back(value); }
  [[nodiscard]] bool empty() const noexcept { return values_.empty(); }
  [[nodiscard]] int take_oldest() {
    const int value = values_.front();
    values_.pop_front();
    return value;
  }

 private:
  std::deque<int> values_;
};

// What list and map have in common: a set that begins with some values, and three operations.
struct set_settings {
  std::size_t base_values = 0;
  std::uint64_t value_range = 0;  // values below it
  unsigned read_pct = 50;         // the rest: insertions and removals, half each
};

template <class Set>
class set_use {
 public:
  template <class... Arguments>
  explicit set_use(const set_settings& wanted, unsigned threads, Arguments... of_the_set)
      : settings_(wanted), set_(of_the_set...), dealt_(threads) {
    thread_draws draws(base_seed);
    for (std::size_t i = 0; i < wanted.base_values; ++i) {
      const int value = static_cast<int>(draws.below(wanted.value_range));
      set_.unsafe_insert(value);
      dealt_[i % threads].add(value);
    }
  }

  class worker_type {
   public:
    worker_type(set_use& use, unsigned thread, thread_draws draws)
        : use_(use), draws_(draws), inserted_(use.dealt_[thread]) {}
    void operation() {
      // Of 200, so that insertions and removals are equally many for an odd share of reads too:
      // else the set grows.
      const std::uint64_t kind = draws_.below(200);
      const int value = static_cast<int>(draws_.below(use_.settings_.value_range));
      const unsigned updates = 100 - use_.settings_.read_pct;
      if (kind < updates) {
        use_.set_.insert(value);
        inserted_.add(value);
      } else if (kind < 2UL * updates && !inserted_.empty()) {
        use_.set_.remove(inserted_.take_oldest());
      } else {
        found_ += use_.set_.contains(value) ? 1U : 0U;
      }
    }

   private:
    set_use& use_;
    thread_draws draws_;
    own_values inserted_;
    std::uint64_t found_ = 0;  // so that searches are not for nothing
  };
  [[nodiscard]] worker_type worker(unsigned thread, thread_draws draws) {
    return {*this, thread, draws};
  }

  void check(std::uint64_t) const { set_.check(); }

 private:
  static constexpr std::uint64_t base_seed = 2014;  // the same first values in every run

  set_settings settings_;
  Set set_;
  std::vector<own_values> dealt_;
};

// Section 3.3.3 and appendix D.2.
template <class Lock, item_alignment Alignment>
class list_use : public set_use<linked_list<Lock, Alignment>> {
 public:
  struct settings {
    unsigned read_pct = 50;
    std::size_t base_values = 100;
  };
  static constexpr std::uint64_t value_range = 1'000;

  list_use(const settings& wanted, unsigned threads)
      : set_use<linked_list<Lock, Alignment>>({.base_values = wanted.base_values,
                                               .value_range = value_range,
                                               .read_pct = wanted.read_pct},
                                              threads) {}
};

// Section 3.3.4 and appendix C.7.
template <class Lock>
class map_use : public set_use<chained_map<Lock>> {
 public:
  struct settings {
    std::size_t buckets = 100;
    map_locks locks = map_locks::per_bucket;
    std::size_t base_values = 1'000;
    unsigned read_pct = 50;
  };

  map_use(const settings& wanted, unsigned threads)
      : set_use<chained_map<Lock>>({.base_values = wanted.base_values,
                                    .value_range = INT_MAX,
                                    .read_pct = wanted.read_pct},
                                   threads, wanted.buckets, wanted.locks) {}
};

}  // namespace elidex::bench
