// Every allocation of insertions, deletions, queries and merges fails once: the column stays as it
// was, and the same call comes through when it is tried again. This is also what a writer that dies
// in the middle of an insertion leaves behind.
#include <gtest/gtest.h>

#include <new>
#include <string>
#include <vector>

#include "elidex/column.hpp"
#include "support/column_model.hpp"
#include "support/failing_allocations.hpp"
#include "support/random_seed.hpp"
#include "support/samples.hpp"

namespace elidex::testing {
namespace {

using u64 = std::uint64_t;

template <class T>
class ColumnAllocationFailure : public ::testing::Test {};
using value_types = ::testing::Types<u64, double, std::string>;
TYPED_TEST_SUITE(ColumnAllocationFailure, value_types);

// Lets each allocation of call() fail in turn until it comes through; how often it failed.
template <class Call, class Check>
int through_failures(Call&& call, Check&& check) {
  for (int nth = 1;; ++nth) {
    {
      const failing_allocation armed(nth);
      try {
        call();
        return nth - 1;
      } catch (const std::bad_alloc&) {
        EXPECT_TRUE(failing_allocation::has_failed());
      }
    }
    check();
  }
}

TYPED_TEST(ColumnAllocationFailure, LeavesTheColumnUnchangedAndUsable) {
  constexpr u64 values = 300;
  random_numbers random(seed_or(1));
  const auto some = [](random_numbers& r) { return sample<TypeParam>::of(r.below(values)); };
  column<TypeParam> real;
  column_model<TypeParam> model;
  int failures = 0;
  int merge_failures = 0;
  for (int i = 0; i < 1'500; ++i) {
    const auto nothing_changed = [&] { ASSERT_EQ(real.get(model.rows.size()), std::nullopt); };
    if (random.below(5) == 0 && !model.rows.empty()) {
      const u64 row = random.below(model.rows.size());
      bool erased = false;
      failures += through_failures(
          [&] { erased = real.erase(row); },
          [&] { ASSERT_EQ(real.get(row).has_value(), model.rows[row].has_value()); });
      ASSERT_EQ(erased, model.rows[row].has_value());
      model.rows[row].reset();
    } else if (random.below(20) == 0) {
      std::vector<TypeParam> batch;
      for (u64 n = random.below(200); n > 0; --n) batch.push_back(some(random));
      u64 row = 0;
      failures += through_failures([&] { row = real.multi_insert(batch); }, nothing_changed);
      ASSERT_EQ(row, model.rows.size());
      model.rows.insert(model.rows.end(), batch.begin(), batch.end());
    } else {
      const TypeParam value = some(random);
      u64 row = 0;
      failures += through_failures([&] { row = real.insert(value); }, nothing_changed);
      ASSERT_EQ(row, model.rows.size());
      model.rows.emplace_back(value);
    }
    if (i % 100 == 50) {
      const TypeParam wanted = some(random);
      std::vector<u64> found;
      failures +=
          through_failures([&] { found = real.range(closed(wanted, wanted)); }, nothing_changed);
      ASSERT_EQ(found, model.rows_with(wanted));
      std::size_t distinct = 0;
      failures += through_failures([&] { distinct = real.distinct(); }, nothing_changed);
      ASSERT_EQ(distinct, model.rows_by_value().size());
    }
    if (i % 300 == 150) {
      merge_failures += through_failures(
          [&] { real.merge(); }, [&] { ASSERT_EQ(difference(real, model, random, some), ""); });
      ASSERT_EQ(difference(real, model, random, some), "");
    }
  }
  EXPECT_GT(failures, 20);
  EXPECT_GT(merge_failures, 20);
  ASSERT_EQ(difference(real, model, random, some), "");
}

}  // namespace
}  // namespace elidex::testing
