// List, map and bank under explored interleavings; and planted bugs: a bank and a list whose lock
// does not lock, and the thesis's listing 3.10 as it stands, which goes on inside a lock that
// another thread holds.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "elidex/elided.hpp"
#include "elidex/internal/sync/spin_locks.hpp"
#include "papers/schrimpf/structures/chained_map.hpp"
#include "papers/schrimpf/structures/closed_bank.hpp"
#include "papers/schrimpf/structures/linked_list.hpp"
#include "schedule/explore.hpp"

namespace elidex::testing {
namespace {

using ::testing::HasSubstr;
using bodies_type = std::vector<std::function<void()>>;

// What check() throws, in words.
template <class Structure>
std::string what_is_wrong(const Structure& structure) {
  try {
    structure.check();
  } catch (const std::logic_error& error) {
    return error.what();
  }
  return "";
}

template <class Structure>
std::string unless_holds(const Structure& structure, std::vector<int> wanted) {
  if (std::string wrong = what_is_wrong(structure); !wrong.empty()) return wrong;
  std::vector<int> values;
  structure.for_each([&](int value) { values.push_back(value); });
  std::sort(values.begin(), values.end());
  return values == wanted ? "" : "the values are not those that were left";
}

// Neighbours go while others come at the end and a third looks for all of them.
template <class Lock>
struct list_program {
  bench::linked_list<Lock, bench::item_alignment::none> list;
  bool missed = false;

  list_program() {
    for (const int value : {1, 2, 3}) list.unsafe_insert(value);
  }
  bodies_type bodies() {
    return {[this] { missed |= !list.remove(2); },
            [this] {
              missed |= !list.remove(3);
              list.insert(4);
            },
            [this] {
              missed |= !list.contains(1);
              list.insert(5);
              missed |= !list.contains(5);
            }};
  }
  std::string verdict() const {
    return missed ? "a value was missed" : unless_holds(list, {1, 4, 5});
  }
};

template <class Lock>
struct map_program {
  bench::chained_map<Lock> map{1, bench::map_locks::per_bucket};
  bool missed = false;

  map_program() {
    for (const int value : {1, 2}) map.unsafe_insert(value);
  }
  bodies_type bodies() {
    return {[this] { missed |= !map.remove(2); },
            [this] {
              missed |= !map.insert(3);
              missed |= map.insert(1);
            },
            [this] {
              missed |= !map.insert(4);
              missed |= !map.contains(1);
            }};
  }
  std::string verdict() const {
    return missed ? "a value was missed" : unless_holds(map, {1, 3, 4});
  }
};

template <class Lock>
struct bank_program {
  bench::closed_bank<Lock> bank{2, 100};

  bodies_type bodies() {
    return bodies_type(3, [this] {
      bank.withdraw(0, 10);
      bank.deposit(1, 10);
    });
  }
  std::string verdict() const { return what_is_wrong(bank); }
};

template <class Lock>
class StructureSchedules : public ::testing::Test {};
using locks = ::testing::Types<std::mutex, bench::spin_loop, bench::hle_spin_loop,
                               elided<ttas_lock>, elided<ttas_lock, no_retry>, bench::nestable_hle>;
TYPED_TEST_SUITE(StructureSchedules, locks);

std::uint64_t schedules() {
  return static_cast<std::uint64_t>(300 * effort());
}

TYPED_TEST(StructureSchedules, ListsStayWhole) {
  EXPECT_EQ(explore<list_program<TypeParam>>(schedules()), "");
}
TYPED_TEST(StructureSchedules, MapsStayWhole) {
  EXPECT_EQ(explore<map_program<TypeParam>>(schedules()), "");
}
TYPED_TEST(StructureSchedules, BanksKeepTheirMoney) {
  EXPECT_EQ(explore<bank_program<TypeParam>>(schedules()), "");
}

// --- planted bugs ---

struct no_lock {
  void lock() {}
  void unlock() {}
};

TEST(StructureCanary, ABankWithoutLocksLosesMoney) {
  EXPECT_THAT(explore<bank_program<no_lock>>(100), HasSubstr("the lock does not work"));
}
TEST(StructureCanary, AListWithoutLocksBreaks) {
  EXPECT_NE(explore<list_program<no_lock>>(100), "");
}

// One thread holds `inner` for real, because a system call ends its elision; the other wants both.
template <class Lock>
struct nested_program {
  bench::own_lines<Lock> outer, inner;
  alignas(64) std::uint64_t counter = 0;

  bodies_type bodies() {
    return {[this] {
              const std::lock_guard guard(inner.lock);
              const std::uint64_t seen = counter;
              std::this_thread::yield();
              counter = seen + 1;
            },
            [this] {
              const std::lock_guard first(outer.lock);
              const std::lock_guard second(inner.lock);
              ++counter;
            }};
  }
  std::string verdict() const { return counter == 2 ? "" : "an increment is lost"; }
};

TEST(NestedElision, TheListingAsItStandsLosesUpdates) {
  EXPECT_THAT(explore<nested_program<bench::nestable_hle_as_listed>>(300),
              HasSubstr("an increment is lost"));
}
TEST(NestedElision, AbortingWhereALockIsHeldLosesNone) {
  EXPECT_EQ(explore<nested_program<bench::nestable_hle>>(10 * schedules()), "");
}

}  // namespace
}  // namespace elidex::testing
