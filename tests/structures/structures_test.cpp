// The data structures of paper 004 section 3.3 under every lock: list and map do what the standard
// containers do, alone and with four threads; the bank keeps its money; and each check notices a
// lock that does not lock.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <list>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <type_traits>
#include <vector>

#include "elidex/elided.hpp"
#include "elidex/htm.hpp"
#include "elidex/internal/sync/spin_locks.hpp"
#include "papers/karnagel/hle_lock.hpp"
#include "papers/karnagel/posix_mutex.hpp"
#include "papers/schrimpf/structures/measurement.hpp"
#include "papers/schrimpf/structures/use_cases.hpp"
#include "support/random_seed.hpp"

namespace elidex::bench {

using namespace papers;

namespace {

using elidex::testing::repetitions;
using elidex::testing::seed_or;

constexpr int threads = 4;

template <class Lock>
class Structures : public ::testing::Test {
 protected:
  void SetUp() override {
    if (std::is_same_v<Lock, elision_only> && !htm::enabled())
      GTEST_SKIP() << "no region commits here";
  }
};

using every_lock = ::testing::Types<std::mutex, posix_mutex, tas_lock, ttas_lock, hle_lock,
                                    spin_loop, hle_spin_loop, elided<ttas_lock>,
                                    elided<posix_mutex>, elision_only, nestable_hle>;
TYPED_TEST_SUITE(Structures, every_lock);

// What a thread throws fails the test.
template <class Body>
void on_all_threads(Body body) {
  std::atomic<int> thrown{0};
  {
    std::vector<std::jthread> running;
    for (int t = 0; t < threads; ++t) {
      running.emplace_back([&, t] {
        try {
          body(t);
        } catch (...) {
          ++thrown;
        }
      });
    }
  }
  EXPECT_EQ(thrown, 0);
}

template <class Structure>
std::vector<int> values_of(const Structure& structure) {
  std::vector<int> values;
  structure.for_each([&](int value) { values.push_back(value); });
  return values;
}

// --- against the standard containers, on one thread ---

template <class Lock, item_alignment Alignment>
void list_does_what_std_list_does() {
  linked_list<Lock, Alignment> list;
  std::list<int> model;
  random_bits random(seed_or(1));
  for (int i = 0; i < repetitions(20'000); ++i) {
    const int value = static_cast<int>(random.below(40));
    switch (random.below(3)) {
      case 0:
        if (model.size() > 60) break;
        list.insert(value);
        model.push_back(value);
        break;
      case 1: {
        const auto found = std::find(model.begin(), model.end(), value);
        ASSERT_EQ(list.remove(value), found != model.end());
        if (found != model.end()) model.erase(found);
        break;
      }
      default:
        ASSERT_EQ(list.contains(value),
                  std::find(model.begin(), model.end(), value) != model.end());
    }
  }
  ASSERT_NO_THROW(list.check());
  EXPECT_THAT(values_of(list), ::testing::ElementsAreArray(model));
  EXPECT_EQ(list.size(), model.size());
}

TYPED_TEST(Structures, AlignedListDoesWhatStdListDoes) {
  list_does_what_std_list_does<TypeParam, item_alignment::cache_line>();
}
TYPED_TEST(Structures, UnalignedListDoesWhatStdListDoes) {
  list_does_what_std_list_does<TypeParam, item_alignment::none>();
}

TYPED_TEST(Structures, MapDoesWhatStdSetDoes) {
  for (const map_locks locks : {map_locks::per_bucket, map_locks::global}) {
    chained_map<TypeParam> map(7, locks);
    std::set<int> model;
    random_bits random(seed_or(1));
    for (int i = 0; i < repetitions(20'000); ++i) {
      const int value = static_cast<int>(random.below(60));
      switch (random.below(3)) {
        case 0:
          ASSERT_EQ(map.insert(value), model.insert(value).second);
          break;
        case 1:
          ASSERT_EQ(map.remove(value), model.erase(value) == 1);
          break;
        default:
          ASSERT_EQ(map.contains(value), model.count(value) == 1);
      }
    }
    ASSERT_NO_THROW(map.check());
    EXPECT_THAT(values_of(map), ::testing::UnorderedElementsAreArray(model));
  }
}

// --- four threads ---

// Each thread has values of its own, so that it knows what it must find.
TYPED_TEST(Structures, ListKeepsEachThreadsValues) {
  linked_list<TypeParam, item_alignment::none> list;
  std::atomic<int> wrong{0};
  on_all_threads([&](int thread) {
    for (int i = 0; i < repetitions(2'000); ++i) {
      const int value = thread + threads * (i % 10);
      list.insert(value);
      if (!list.contains(value)) ++wrong;
      if (i % 2 == 0 && !list.remove(value)) ++wrong;
      if (i % 10 == 9) {
        for (int n = 1; n < 10; n += 2) {
          if (!list.remove(thread + threads * n)) ++wrong;
        }
      }
    }
  });
  EXPECT_EQ(wrong, 0);
  ASSERT_NO_THROW(list.check());
  EXPECT_EQ(list.size(), 0U);
}

TYPED_TEST(Structures, MapKeepsEachThreadsValues) {
  for (const map_locks locks : {map_locks::per_bucket, map_locks::global}) {
    chained_map<TypeParam> map(5, locks);
    std::atomic<int> wrong{0};
    on_all_threads([&](int thread) {
      for (int i = 0; i < repetitions(2'000); ++i) {
        const int value = thread + threads * (i % 20);
        const bool odd_round = (i / 20) % 2 == 1;
        if (odd_round ? !map.remove(value) : !map.insert(value)) ++wrong;
        if (map.contains(value) == odd_round) ++wrong;
      }
    });
    EXPECT_EQ(wrong, 0);
    ASSERT_NO_THROW(map.check());
  }
}

template <class Use>
void every_operation_counts(const typename Use::settings& settings, std::uint64_t operations) {
  Use use(settings, threads);
  on_all_threads([&](int thread) {
    auto worker =
        use.worker(static_cast<unsigned>(thread), thread_draws(static_cast<std::uint64_t>(thread)));
    for (std::uint64_t i = 0; i < operations; ++i) worker.operation();
  });
  ASSERT_NO_THROW(use.check(threads * operations));
}

TYPED_TEST(Structures, BankKeepsItsMoney) {
  // Few accounts, so that the threads meet.
  every_operation_counts<bank_use<TypeParam>>({.accounts = 3},
                                              static_cast<std::uint64_t>(repetitions(10'000)));
}

TYPED_TEST(Structures, NoIncrementIsLost) {
  using use = counter_use<TypeParam>;
  const auto operations = static_cast<std::uint64_t>(repetitions(10'000));
  every_operation_counts<use>({.counters = 1}, operations);
  every_operation_counts<use>({.counters = threads, .layout = counter_layout::unaligned},
                              operations);
  every_operation_counts<use>({.counters = threads, .locks = counter_locks::global}, operations);
}

TYPED_TEST(Structures, UseCasesOfListAndMapKeepTheirOrder) {
  const auto operations = static_cast<std::uint64_t>(repetitions(2'000));
  every_operation_counts<list_use<TypeParam, item_alignment::cache_line>>({.base_values = 20},
                                                                          operations);
  every_operation_counts<map_use<TypeParam>>({.buckets = 3, .base_values = 30}, operations);
  every_operation_counts<map_use<TypeParam>>(
      {.buckets = 3, .locks = map_locks::global, .base_values = 30}, operations);
}

// --- what the headers promise ---

TEST(SharedGenerator, DrawsTheThesissNumbers) {
  shared_generator numbers(shared_generator::order::none);
  EXPECT_EQ(numbers.below(100'000), 32'722U);
  EXPECT_EQ(numbers.below(100'000), 813U);
  EXPECT_EQ(numbers.below(1'000), 8'362U % 1'000U);
}

TEST(SharedGenerator, LosesNoNumberUnderItsMutex) {
  constexpr int draws = 2'000;
  shared_generator alone(shared_generator::order::none);
  std::vector<std::uint64_t> expected;
  for (int i = 0; i < draws * threads; ++i) expected.push_back(alone.below(100'000));
  std::ranges::sort(expected);

  shared_generator numbers(shared_generator::order::mutex);
  std::vector<std::vector<std::uint64_t>> drawn(threads);
  on_all_threads([&](int thread) {
    for (int i = 0; i < draws; ++i)
      drawn[static_cast<std::size_t>(thread)].push_back(numbers.below(100'000));
  });
  std::vector<std::uint64_t> all;
  for (const auto& some : drawn) all.insert(all.end(), some.begin(), some.end());
  std::ranges::sort(all);
  EXPECT_EQ(all, expected);
}

// The numbers of an operation follow each other, whatever other threads draw meanwhile. The state
// moves on with settle().
TEST(SharedGenerator, AnOperationsNumbersFollowEachOther) {
  shared_generator alone(shared_generator::order::none);
  std::vector<std::uint64_t> expected;
  for (int i = 0; i < 5; ++i) expected.push_back(alone.below(10'000));

  shared_generator numbers(shared_generator::order::none);
  thread_draws first(numbers);
  thread_draws second(numbers);
  EXPECT_EQ(first.below(10'000), expected[0]);
  EXPECT_EQ(second.below(10'000), expected[0]);
  second.settle();
  EXPECT_EQ(first.below(10'000), expected[1]);
  first.settle();
  EXPECT_EQ(second.below(10'000), expected[2]);
  second.settle();
  EXPECT_EQ(numbers.below(10'000), expected[3]);

  thread_draws by_itself(numbers, {}, false);
  EXPECT_EQ(by_itself.below(10'000), expected[4]);
  EXPECT_EQ(first.below(10'000), numbers.next(numbers.state()) % 10'000);
}

TEST(SharedGenerator, ChargesWhatItIsTold) {
  static std::uint64_t spent;
  spent = 0;
  const draw_cost costs{[](std::uint64_t cycles) { spent += cycles; }, 12, 40};
  shared_generator numbers(shared_generator::order::none);
  thread_draws shared(numbers, costs);
  thread_draws own(1, costs);
  for (int i = 0; i < 3; ++i) EXPECT_LT(shared.below(10) + own.below(10), 19U);
  shared.settle();
  EXPECT_EQ(spent, 6 * 52U);
  EXPECT_LT(own.below(1'000'000), shared_generator::modulus);
}

TEST(Counters, LieInOneLineOrInOneEach) {
  EXPECT_EQ(alignof(own_lines<spin_loop>), 64U);
  EXPECT_EQ(sizeof(own_lines<spin_loop>), 64U);
}

TEST(Bank, NoticesMoneyThatIsGone) {
  closed_bank<spin_loop> bank(3, 100);
  bank.withdraw(0, 30);
  EXPECT_THROW(bank.check(), std::logic_error);
  bank.deposit(2, 30);
  EXPECT_NO_THROW(bank.check());
  EXPECT_EQ(bank.balance(0), 70);
  EXPECT_EQ(bank.balance(2), 130);
}

TEST(Counters, NoticeALostIncrement) {
  shared_counters<spin_loop> counters(4, counter_layout::unaligned, counter_locks::own);
  for (std::size_t i = 0; i < 4; ++i) counters.increment(i);
  EXPECT_NO_THROW(counters.check(4));
  EXPECT_THROW(counters.check(5), std::logic_error);
}

// With an odd share of reads, insertions and removals are equally many too.
TEST(Sets, KeepTheirSizeWhateverTheShareOfReads) {
  struct counting {
    explicit counting(int* kept) : kept_(kept) {}
    void unsafe_insert(int) { ++*kept_; }
    void unsafe_remove(int) { --*kept_; }
    void insert(int) { ++*kept_; }
    void remove(int) { --*kept_; }
    [[nodiscard]] bool contains(int) const { return false; }
    void check() const {}
    int* kept_;
  };
  for (const unsigned reads : {0U, 25U, 75U}) {
    int kept = 0;
    set_use<counting> use({.base_values = 1'000, .value_range = 10, .read_pct = reads}, 1, &kept);
    auto worker = use.worker(0, thread_draws(1));
    for (int i = 0; i < 10'000; ++i) worker.operation();
    // a random walk of 10,000 steps: 3.5 standard deviations
    EXPECT_NEAR(kept, 1'000, 350) << reads;
  }
}

// The thesis's generator makes the list grow.
TEST(Sets, AgeAsTheThesissDo) {
  const auto size_at = [](unsigned reads, std::size_t age) {
    const list_use<spin_loop, item_alignment::none> use({.read_pct = reads, .age = age}, 4);
    use.check(0);
    return use.set().size();
  };
  EXPECT_EQ(size_at(50, 0), 100U);
  EXPECT_EQ(size_at(100, 100'000), 100U);
  EXPECT_GT(size_at(50, 100'000), 600U);
  EXPECT_LT(size_at(25, 100'000), 200U);
}

TEST(OverTheSecond, IsTheMeanOfWhatChanges) {
  // 100 operations a ms in the tenth of a second before, and in the second itself.
  EXPECT_NEAR(over_the_second({0}, {{.per_ms = 100}}).per_ms, 100, 1e-9);
  EXPECT_NEAR(over_the_second({0, 1'000}, {{.per_ms = 100}, {.per_ms = 100}}).per_ms, 100, 1e-9);
  // It has slowed down before the second begins.
  EXPECT_NEAR(over_the_second({0, 10'000}, {{.per_ms = 1'000}, {.per_ms = 50}}).per_ms, 50, 1);
  const transaction_shares half{.transactional_pct = 50, .aborted_pct = 10, .abort_rate_pct = 20};
  const measurement same = over_the_second({0, 5}, {{1, half}, {1, half}});
  ASSERT_TRUE(same.transactions);
  EXPECT_NEAR(same.transactions->transactional_pct, 50, 1e-9);
  EXPECT_NEAR(same.transactions->aborted_pct, 10, 1e-9);
  EXPECT_NEAR(same.transactions->abort_rate_pct, 20, 1e-9);
}

#if !defined(ELIDEX_SIMULATED)
TEST(ElisionOnly, SaysThatNothingCommits) {
  if (htm::enabled()) GTEST_SKIP() << "regions commit here";
  elision_only lock;
  EXPECT_THROW(lock.lock(), std::runtime_error);
}
#endif

TEST(NestableHle, HoldsSeveralAtOnce) {
  nestable_hle outer, inner;
  int value = 0;
  for (int i = 0; i < 100; ++i) {
    const std::lock_guard first(outer);
    const std::lock_guard second(inner);
    ++value;
  }
  EXPECT_EQ(value, 100);
}

}  // namespace
}  // namespace elidex::bench
