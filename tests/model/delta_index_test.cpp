// The Delta Storage Index beside std::map, and what its dictionary promises about IDs.
#include <gtest/gtest.h>

#include <array>
#include <barrier>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "support/delta_indexes.hpp"
#include "support/policies_under_test.hpp"
#include "support/random_seed.hpp"
#include "support/samples.hpp"

namespace elidex::testing {

using namespace internal;
using namespace papers;

namespace {

using u64 = std::uint64_t;

template <class Value>
Value value_for(u64 n) {
  return sample<Value>::of(n);
}

// What the index differs in from `expected`, by looking up, by its IDs and by scans; empty if in
// nothing.
template <class Index, class Value>
std::string difference(const Index& index, const std::map<Value, typename Index::id_type>& expected,
                       u64 values, random_numbers& random) {
  if (index.size() != expected.size()) return "size";
  for (u64 n = 0; n < values; ++n) {
    const auto wanted = expected.find(value_for<Value>(n));
    const auto id = index.find(value_for<Value>(n));
    if (id.has_value() != (wanted != expected.end())) return "find";
    if (id && *id != wanted->second) return "the ID found";
  }
  for (const auto& [value, id] : expected) {
    if (id >= index.id_bound()) return "id_bound";
    if (index.view(id).get() != value) return "view";
  }
  bool equal = true;
  auto at = expected.begin();
  const auto compare = [&](const auto& value, auto id) {
    equal = equal && at != expected.end() && at->first == value && at->second == id;
    if (at != expected.end()) ++at;
  };
  if (index.scan_all(compare) != expected.size() || !equal) return "scan_all";
  const Value from = value_for<Value>(random.below(values));
  const std::size_t limit = random.below(40);
  at = expected.lower_bound(from);
  const auto rest = static_cast<std::size_t>(std::distance(at, expected.end()));
  if (index.scan(from, limit, compare) != std::min(limit, rest) || !equal) return "scan";
  return "";
}

template <class Index>
class DeltaIndex : public ::testing::Test {};
using indexes = ::testing::Types<
    delta_index<u64, unsynchronized, tiny_original>,
    delta_index<u64, unsynchronized, tiny_friendly>, delta_index<u64, coarse_mutex, tiny_original>,
    delta_index<u64, coarse_shared, tiny_friendly>, delta_index<u64, coarse_elided, tiny_original>,
    delta_index<u64, coarse_elided, tiny_friendly>, delta_index<u64, coarse_hle, tiny_original>,
    delta_index<std::uint16_t, coarse_elided_noretry, tiny_friendly>,
    delta_index<u64, optimistic, tiny_together>, delta_index<u64, optimistic>,
    delta_index<std::string, unsynchronized, tiny_original>,
    delta_index<std::string, coarse_elided, tiny_friendly>,
    delta_index<std::string, optimistic, tiny_friendly>, delta_index<std::string, optimistic>,
    keyed_delta_index<u64>, keyed_delta_index<std::uint16_t>, keyed_delta_index<std::string>>;
TYPED_TEST_SUITE(DeltaIndex, indexes);

TYPED_TEST(DeltaIndex, DoesWhatAMapDoes) {
  using value = typename TypeParam::value_type;
  constexpr u64 values = 3'000;
  random_numbers random(seed_or(1));
  TypeParam index;
  std::map<value, typename TypeParam::id_type> expected;
  const int operations = repetitions(20'000);
  for (int i = 0; i < operations; ++i) {
    const value v = value_for<value>(random.below(values));
    const auto [id, is_new] = index.find_or_add(v);
    const auto [at, added] = expected.emplace(v, id);
    ASSERT_EQ(is_new, added);
    ASSERT_EQ(id, at->second);
    if (i % (operations / 10) == 0) {
      ASSERT_EQ(difference(index, expected, values, random), "");
    }
  }
  ASSERT_EQ(difference(index, expected, values, random), "");
}

// Ascending and descending, so that splits at both edges come.
TYPED_TEST(DeltaIndex, TakesValuesInOrder) {
  using value = typename TypeParam::value_type;
  constexpr u64 values = 1'000;
  random_numbers random(seed_or(1));
  for (const bool ascending : {true, false}) {
    std::set<value> ordered;
    for (u64 n = 0; n < values; ++n) ordered.insert(value_for<value>(n));
    TypeParam index;
    std::map<value, typename TypeParam::id_type> expected;
    const auto add = [&](const value& v) { expected.emplace(v, index.find_or_add(v).id); };
    if (ascending) {
      for (auto v = ordered.begin(); v != ordered.end(); ++v) add(*v);
    } else {
      for (auto v = ordered.rbegin(); v != ordered.rend(); ++v) add(*v);
    }
    ASSERT_EQ(difference(index, expected, values, random), "");
  }
}

TEST(DeltaIndexOfExtremes, KeepsThem) {
  delta_index<u64, optimistic> numbers;
  for (const u64 v : {u64{0}, ~u64{0}, u64{1}, ~u64{0} - 1})
    EXPECT_TRUE(numbers.find_or_add(v).is_new);
  for (const u64 v : {u64{0}, ~u64{0}, u64{1}, ~u64{0} - 1})
    EXPECT_FALSE(numbers.find_or_add(v).is_new);
  EXPECT_EQ(numbers.scan(0, 10, [](u64, std::uint32_t) {}), 4U);

  delta_index<std::string, optimistic> strings;
  const std::array<std::string, 4> all{"", std::string(1, '\0'), std::string(65536, 'x'),
                                       "\xff\xff\xff\xff\xff\xff\xff\xff\xff"};
  for (const std::string& s : all) EXPECT_TRUE(strings.find_or_add(s).is_new);
  for (const std::string& s : all) EXPECT_EQ(strings.view(strings.find(s).value()).get(), s);
  EXPECT_THROW(strings.find_or_add(std::string(65537, 'x')), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(strings.find(std::string(65537, 'x'))), std::invalid_argument);
  EXPECT_EQ(strings.size(), all.size());
}

// IDs of one byte: each is given once, then new values are refused, and nothing is lost.
template <class Index>
void expect_ids_to_run_out() {
  Index index;
  std::map<u64, std::uint8_t> expected;
  std::set<std::uint8_t> ids;
  u64 v = 0;
  try {
    for (; v < 1'000; ++v) {
      const auto added = index.find_or_add(v * 3);
      expected.emplace(v * 3, added.id);
      ASSERT_TRUE(ids.insert(added.id).second) << "ID " << +added.id << " given twice";
    }
    FAIL() << "255 IDs for 1000 values";
  } catch (const std::length_error& error) {
    EXPECT_STREQ(error.what(), "elidex: a dictionary may have at most 255 values");
  }
  EXPECT_EQ(v, 255U);
  EXPECT_THROW(index.find_or_add(1), std::length_error);
  EXPECT_FALSE(index.find(1).has_value());
  random_numbers random(1);
  EXPECT_EQ(difference(index, expected, 500, random), "");
  EXPECT_EQ(index.find_or_add(0).id, expected.at(0));  // what is there stays welcome
}

TEST(DeltaIndexIds, RunOutWithAnError) {
  using tiny_id = std::uint8_t;
  expect_ids_to_run_out<delta_index<u64, coarse_mutex, tiny_original, tiny_id>>();
  expect_ids_to_run_out<delta_index<u64, coarse_elided, tiny_friendly, tiny_id>>();
  expect_ids_to_run_out<delta_index<u64, optimistic, tiny_together, tiny_id>>();
  expect_ids_to_run_out<delta_index<u64, optimistic, tiny_friendly, tiny_id>>();
  expect_ids_to_run_out<keyed_delta_index<u64, tiny_id>>();
}

// Threads that live at the same time append to parts of their own (paper 001, section 5.2.1).
template <class Index>
void expect_parts_of_their_own() {
  constexpr unsigned threads = 4;
  Index index;
  std::array<std::set<unsigned>, threads> parts;
  std::barrier all_live(threads);
  std::vector<std::jthread> running;
  for (unsigned t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      all_live.arrive_and_wait();
      for (u64 v = 0; v < 100; ++v) parts[t].insert(index.find_or_add(v * threads + t).id % 16);
      all_live.arrive_and_wait();
    });
  }
  running.clear();
  std::set<unsigned> all;
  for (const auto& of_thread : parts) {
    EXPECT_EQ(of_thread.size(), 1U);
    all.insert(of_thread.begin(), of_thread.end());
  }
  EXPECT_EQ(all.size(), threads);
}

TEST(DeltaIndexIds, SayWhoseDictionaryItIs) {
  expect_parts_of_their_own<delta_index<u64, optimistic>>();
  expect_parts_of_their_own<delta_index<u64, coarse_elided, tiny_friendly>>();
  expect_parts_of_their_own<keyed_delta_index<u64>>();
}

}  // namespace
}  // namespace elidex::testing
