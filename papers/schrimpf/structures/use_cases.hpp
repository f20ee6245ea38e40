#pragma once
// What a thread does with each structure of paper 004 section 3.3: one operation after the other,
// drawn at random. The same classes run on the simulated machine and on real threads; who runs them
// is in measurement.hpp.
//
//   list_use<spin_loop, item_alignment::none> use({.read_pct = 50}, threads);
//   auto worker = use.worker(thread, thread_draws(use.generator()));    // one for each thread
//   worker.operation();                                                 // as often as wanted
//   use.check(operations);  // at the end of every run; throws std::logic_error
//
// Updates of list and map: each thread keeps a queue of the values that it inserted, and removes
// the oldest of them. The values that the structure begins with are dealt out to the queues.
//
// The size does not stay the same, as the thesis says it does: its generator draws the kind of an
// operation and then the value, and the two depend on each other. With half reads the list has some
// 1,300 items after 200,000 operations, and with updates only 900 (age of the settings).
//
// Thread-safety: a worker belongs to one thread; workers of one use run side by side.
//
// From: paper 004 section 3.3. Where the text leaves a detail open, as in the author's published
// programs: the queues' order, who owns the first values, the kinds of an operation, and which
// generator a program draws from. Deviations: none.

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "bench/workload/random.hpp"
#include "papers/schrimpf/structures/chained_map.hpp"
#include "papers/schrimpf/structures/closed_bank.hpp"
#include "papers/schrimpf/structures/linked_list.hpp"
#include "papers/schrimpf/structures/shared_counters.hpp"

namespace elidex::bench {

// What a draw costs beside its accesses to memory, for machines that charge nothing else. The
// modulus is a constant, so that the compiler multiplies; the bound is not, so that it divides.
struct draw_cost {
  void (*spend)(std::uint64_t cycles) = nullptr;  // null: nothing is charged
  std::uint64_t reduction_cycles = 0;
  std::uint64_t division_cycles = 0;

  void reduce() const { pay(reduction_cycles); }
  void divide() const { pay(division_cycles); }

 private:
  void pay(std::uint64_t cycles) const {
    if (spend != nullptr && cycles != 0) spend(cycles);
  }
};

// The thesis's generator (listing 3.11), which all threads of a program share:
// x -> (32719 x + 3) mod 32749. So no drawn number is above 32748.
class shared_generator {
 public:
  // What the thesis's programs do about threads that draw at the same time: nothing, as in
  // listing 3.11, or a POSIX mutex, as the published program of the list.
  enum class order : std::uint8_t { none, mutex };

  static constexpr std::uint64_t modulus = 32'749;

  explicit shared_generator(order how) noexcept : order_(how) {}
  shared_generator(const shared_generator&) = delete;
  shared_generator& operator=(const shared_generator&) = delete;

  [[nodiscard]] order how() const noexcept { return order_; }
  // relaxed, without partners: the threads' races for this word are what is wanted.
  [[nodiscard]] std::uint64_t state() const noexcept {
    return state_.load(std::memory_order_relaxed);
  }
  void set_state(std::uint64_t to) noexcept { state_.store(to, std::memory_order_relaxed); }
  [[nodiscard]] static std::uint64_t next(std::uint64_t state) noexcept {
    return (state * 32'719 + 3) % modulus;
  }

  // From any thread. Without an order, threads that read the same state draw the same number.
  [[nodiscard]] std::uint64_t below(std::uint64_t bound, const draw_cost& costs = {}) {
    if (order_ == order::none) return draw(bound, costs);
    const std::lock_guard guard(mutex_);
    return draw(bound, costs);
  }

 private:
  std::uint64_t draw(std::uint64_t bound, const draw_cost& costs) {
    const std::uint64_t before = state();
    costs.reduce();
    const std::uint64_t drawn = next(before);
    set_state(drawn);
    costs.divide();
    return drawn % bound;
  }

  order order_;
  alignas(64) std::atomic<std::uint64_t> state_{1};
  alignas(64) std::mutex mutex_;
};

// A thread's random numbers: from the generator that all threads share, or from one of its own.
//
// An operation draws its numbers one after the other, and then calls settle(). A core forwards what
// it has stored to its own next load, so the numbers of one operation come from one load of the
// shared state. Its stores to the line leave the core together, once it has the line. The divisions
// do not delay the next state, but the divider does one at a time. The simulated machine has no
// store buffer, so this class models the forwarding. `forwards` false: each draw loads, stores and
// divides by itself.
class thread_draws {
 public:
  explicit thread_draws(shared_generator& shared, const draw_cost& costs = {},
                        bool forwards = true) noexcept
      : shared_(&shared),
        costs_(costs),
        forwards_(forwards && shared.how() == shared_generator::order::none) {}
  // The same numbers at most, independent of other threads'.
  explicit thread_draws(std::uint64_t seed, const draw_cost& costs = {}) noexcept
      : own_(seed), costs_(costs) {}

  [[nodiscard]] std::uint64_t below(std::uint64_t bound) {
    if (shared_ == nullptr) {
      costs_.reduce();
      costs_.divide();
      return own_.below(std::min(bound, shared_generator::modulus));
    }
    if (!forwards_) return shared_->below(bound, costs_);
    if (drawn_ == 0) state_ = shared_->state();
    costs_.reduce();
    state_ = shared_generator::next(state_);
    ++drawn_;
    return state_ % bound;
  }

  // Call it after an operation's last draw.
  void settle() {
    if (drawn_ == 0) return;
    shared_->set_state(state_);
    for (; drawn_ != 0; --drawn_) costs_.divide();
  }

 private:
  shared_generator* shared_ = nullptr;
  random_bits own_{0};
  draw_cost costs_;
  bool forwards_ = false;
  std::uint64_t state_ = 0;  // of the shared generator, as this thread sees it
  unsigned drawn_ = 0;       // since the last settle()
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
    worker_type(bank_use& use, const thread_draws& draws) noexcept : use_(use), draws_(draws) {}
    void operation() {
      closed_bank<Lock>& bank = use_.bank_;
      if (draws_.below(100) < use_.settings_.read_pct) {
        const std::size_t of = draws_.below(bank.size());
        draws_.settle();
        seen_ += bank.balance(of);
        return;
      }
      const std::size_t from = draws_.below(bank.size());
      const std::size_t to = draws_.below(bank.size());
      const auto money = static_cast<std::int64_t>(draws_.below(transfer_max));
      draws_.settle();
      bank.withdraw(from, money);
      bank.deposit(to, money);
    }

   private:
    bank_use& use_;
    thread_draws draws_;
    std::int64_t seen_ = 0;  // so that reads are not for nothing
  };
  [[nodiscard]] worker_type worker(unsigned, const thread_draws& draws) { return {*this, draws}; }

  [[nodiscard]] shared_generator& generator() noexcept { return generator_; }

  void check(std::uint64_t) const { bank_.check(); }

 private:
  settings settings_;
  closed_bank<Lock> bank_;
  shared_generator generator_{shared_generator::order::none};
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
  [[nodiscard]] worker_type worker(unsigned thread, const thread_draws&) {
    return {*this, thread % counters_.size()};
  }

  void check(std::uint64_t operations) const { counters_.check(operations); }

 private:
  shared_counters<Lock> counters_;
};

// Ages at which list and map are measured. The fastest of the thesis's runs made 27 million
// operations.
inline const std::vector<std::size_t>& set_ages(bool full) {
  static const std::vector<std::size_t> few{0, 400'000};
  static const std::vector<std::size_t> many{0, 100'000, 400'000, 1'600'000};
  return full ? many : few;
}

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
  shared_generator::order draws = shared_generator::order::none;
  std::size_t age = 0;  // operations that were made before, by the threads in turn
};

template <class Set>
class set_use {
 public:
  template <class... Arguments>
  explicit set_use(const set_settings& wanted, unsigned threads, Arguments... of_the_set)
      : settings_(wanted), generator_(wanted.draws), set_(of_the_set...), dealt_(threads) {
    for (std::size_t i = 0; i < wanted.base_values; ++i) {
      const int value = static_cast<int>(generator_.below(wanted.value_range));
      set_.unsafe_insert(value);
      dealt_[i % threads].add(value);
    }
    thread_draws draws(generator_);
    for (std::size_t i = 0; i < wanted.age; ++i) {
      own_values& mine = dealt_[i % threads];
      const auto [kind, value] = draw(draws, mine);
      if (kind == operation_kind::insert) {
        set_.unsafe_insert(value);
        mine.add(value);
      } else if (kind == operation_kind::remove) {
        set_.unsafe_remove(value);
      }
    }
  }

  class worker_type {
   public:
    worker_type(set_use& use, unsigned thread, const thread_draws& draws)
        : use_(use), draws_(draws), inserted_(use.dealt_[thread]) {}
    void operation() {
      const auto [kind, value] = use_.draw(draws_, inserted_);
      switch (kind) {
        case operation_kind::insert:
          use_.set_.insert(value);
          inserted_.add(value);
          break;
        case operation_kind::remove:
          use_.set_.remove(value);
          break;
        case operation_kind::contains:
          found_ += use_.set_.contains(value) ? 1U : 0U;
          break;
      }
    }

   private:
    set_use& use_;
    thread_draws draws_;
    own_values inserted_;
    std::uint64_t found_ = 0;  // so that searches are not for nothing
  };
  [[nodiscard]] worker_type worker(unsigned thread, const thread_draws& draws) {
    return {*this, thread, draws};
  }
  [[nodiscard]] shared_generator& generator() noexcept { return generator_; }

  void check(std::uint64_t) const { set_.check(); }
  [[nodiscard]] const Set& set() const noexcept { return set_; }

 private:
  enum class operation_kind : std::uint8_t { insert, remove, contains };
  struct drawn {
    operation_kind kind;
    int value;
  };
  // Insertions and removals are equally many for an odd share of reads too. What is removed is
  // taken from `mine`.
  drawn draw(thread_draws& draws, own_values& mine) const {
    const unsigned of_each = (100 - settings_.read_pct) / 2;
    const std::uint64_t kind = draws.below(2UL * of_each + settings_.read_pct);
    const int value = static_cast<int>(draws.below(settings_.value_range));
    draws.settle();
    if (kind < of_each) return {operation_kind::insert, value};
    if (kind < 2UL * of_each && !mine.empty()) return {operation_kind::remove, mine.take_oldest()};
    return {operation_kind::contains, value};
  }

  set_settings settings_;
  shared_generator generator_;
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
    std::size_t age = 0;
  };
  static constexpr std::uint64_t value_range = 1'000;

  list_use(const settings& wanted, unsigned threads)
      : set_use<linked_list<Lock, Alignment>>({.base_values = wanted.base_values,
                                               .value_range = value_range,
                                               .read_pct = wanted.read_pct,
                                               .draws = shared_generator::order::mutex,
                                               .age = wanted.age},
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
    std::size_t age = 0;
  };

  map_use(const settings& wanted, unsigned threads)
      : set_use<chained_map<Lock>>({.base_values = wanted.base_values,
                                    .value_range = INT_MAX,
                                    .read_pct = wanted.read_pct,
                                    .age = wanted.age},
                                   threads, wanted.buckets, wanted.locks) {}
};

}  // namespace elidex::bench
