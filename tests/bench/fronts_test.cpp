// The workloads of paper 003: the fronts of its released benchmark, and put.

#include "bench/workload/fronts.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "bench/workload/workload.hpp"

namespace {

using namespace elidex::bench;
using u64_stream = request_stream<std::uint64_t>;

u64_stream stream_of(std::string_view what, unsigned thread = 0, unsigned threads = 4,
                     std::uint64_t requests = 20'000) {
  return make_stream(random_keys(1000, 1), {.what = find_workload(what), .requests = requests},
                     thread, threads);
}

// The places of each front in the order in which a stream stores into them. Each place has all the
// keys of its batch, in order.
std::map<std::uint64_t, std::vector<std::uint64_t>> places_of(const u64_stream& stream) {
  std::map<std::uint64_t, std::vector<std::uint64_t>> places;
  unsigned in_batch = 0;
  for (request_cursor<std::uint64_t> at(stream); at.remaining() > 0;) {
    const auto [kind, key] = at.next();
    if (kind == request_kind::look) {
      EXPECT_EQ(key, key_below_all_fronts);
      EXPECT_EQ(in_batch, 0U);
      continue;
    }
    EXPECT_EQ(kind, request_kind::store);
    EXPECT_EQ(key % front_batch, in_batch);
    if (in_batch == 0)
      places[key / front_batch / 1'000'000].push_back(key / front_batch % 1'000'000);
    in_batch = (in_batch + 1) % front_batch;
  }
  EXPECT_EQ(in_batch, 0U);
  return places;
}

TEST(fronts, names_are_read_strictly) {
  const auto* const what = find_workload("eunomia:0.99");
  ASSERT_NE(what, nullptr);
  EXPECT_EQ(what, find_workload("eunomia:0.99"));
  EXPECT_EQ(what->name, "eunomia:0.99");
  EXPECT_EQ(what->distribution_name(), "zipf:0.99");
  EXPECT_EQ(what->fronts.read_share, 0.2);
  EXPECT_EQ(what->fronts.value_bytes, 100U);
  EXPECT_TRUE(what->drains());
  EXPECT_TRUE(what->loads());
  const auto* const text = find_workload("eunomia:0.5:0.5:8");
  ASSERT_NE(text, nullptr);
  EXPECT_EQ(text->fronts.theta, 0.5);
  EXPECT_EQ(text->fronts.read_share, 0.5);
  EXPECT_EQ(text->fronts.value_bytes, 8U);
  EXPECT_TRUE(find_workload("eunomia-common:0")->fronts.common_counters);
  EXPECT_TRUE(find_workload("eunomia-grown:1.2")->fronts.grown);
  const auto* const list = find_workload("eunomia-list:1");
  ASSERT_NE(list, nullptr);
  EXPECT_TRUE(list->fronts.interleaved);
  EXPECT_TRUE(list->fronts.hot_front);
  EXPECT_EQ(list->distribution_name(), "hot:1");
  ASSERT_NE(find_workload("put:0.9"), nullptr);
  EXPECT_EQ(find_workload("put:0.9")->distribution_name(), "zipf:0.9");
  for (const char* const wrong :
       {"eunomia", "eunomia:", "eunomia:1.3", "eunomia:-0.1", "eunomia:x",
        "eunomia:0.5:", "eunomia:0.5:1.1", "eunomia:0.5:0.2:0", "eunomia:0.5:0.2:4097",
        "eunomia:0.5:0.2:8:1", "eunomia:0.5:0.2:8 ", "eunomia-x:0.5", "eunomia-list:1.1",
        "eunomia:nan", "put:", "put:0.9:0.5", "put:1.21"})
    EXPECT_EQ(find_workload(wrong), nullptr) << wrong;
}

TEST(fronts, threads_have_counters_of_their_own_and_come_to_the_same_keys) {
  for (unsigned thread = 0; thread < 4; ++thread) {
    const auto places = places_of(stream_of("eunomia:0.5", thread));
    EXPECT_EQ(places.size(), front_count);
    for (const auto& [front, all] : places) {
      EXPECT_GE(front, 10U);
      EXPECT_LT(front, 10U + front_count);
      for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], i);
    }
  }
}

TEST(fronts, a_common_counter_gives_each_place_to_one_thread) {
  std::set<std::pair<std::uint64_t, std::uint64_t>> taken;
  for (unsigned thread = 0; thread < 4; ++thread) {
    for (const auto& [front, all] : places_of(stream_of("eunomia-common:0", thread))) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        EXPECT_EQ(all[i], i * 4 + thread);
        EXPECT_TRUE(taken.emplace(front, all[i]).second);
      }
    }
  }
}

TEST(fronts, a_grown_tree_s_counters_begin_behind_its_keys) {
  const auto grown = places_of(make_grown_stream<std::uint64_t>(*find_workload("eunomia-grown:0")));
  EXPECT_EQ(grown.size(), front_count);
  for (const auto& [front, all] : grown) EXPECT_EQ(all.size(), grown_places);
  for (const auto& [front, all] : places_of(stream_of("eunomia-grown:0")))
    EXPECT_EQ(all.front(), grown_places);
  EXPECT_EQ(make_grown_stream<std::uint64_t>(*find_workload("eunomia:0")).size(), 0U);
}

// The keys of all threads at the hot front, without a gap, each of one thread.
TEST(fronts, a_list_s_threads_interleave_at_the_hot_front) {
  constexpr unsigned threads = 4;
  constexpr std::uint64_t batches = 50;
  std::map<std::uint64_t, unsigned> owner;
  for (unsigned thread = 0; thread < threads; ++thread) {
    const u64_stream stream = stream_of("eunomia-list:1:0", thread, threads, batches * front_batch);
    for (request_cursor<std::uint64_t> at(stream); at.remaining() > 0;)
      EXPECT_TRUE(owner.emplace(at.next().key, thread).second);
  }
  EXPECT_EQ(owner.size(), batches * front_batch * threads);
  EXPECT_EQ(owner.rbegin()->first - owner.begin()->first, owner.size() - 1);
  for (const auto& [key, thread] : owner) EXPECT_EQ(key % threads, thread);
}

// Zipf's law chooses the front, as with eunomia; no two threads have a key in common.
TEST(fronts, threads_apart_come_to_the_same_places_with_keys_of_their_own) {
  constexpr unsigned threads = 4;
  std::map<std::uint64_t, unsigned> owner;
  std::map<std::uint64_t, std::size_t> keys;
  for (unsigned thread = 0; thread < threads; ++thread) {
    const u64_stream stream = stream_of("eunomia-apart:0.99:0", thread, threads, 40'000);
    for (request_cursor<std::uint64_t> at(stream); at.remaining() > 0;) {
      const std::uint64_t key = at.next().key;
      EXPECT_TRUE(owner.emplace(key, thread).second);
      EXPECT_EQ(key % threads, thread);
      ++keys[key / threads / front_batch / 1'000'000];
    }
  }
  EXPECT_EQ(keys.size(), front_count);
  // "The hottest tenth is accessed by 41 percent" of the requests.
  EXPECT_NEAR(static_cast<double>(keys.at(10) + keys.at(11)) / static_cast<double>(owner.size()),
              0.41, 0.02);
}

TEST(fronts, a_list_s_theta_is_the_share_of_the_hot_front) {
  const u64_stream stream = stream_of("eunomia-list:0.8:0", 0, 1, 400'000);
  std::map<std::uint64_t, std::size_t> keys;
  for (request_cursor<std::uint64_t> at(stream); at.remaining() > 0;)
    ++keys[at.next().key / front_batch / 1'000'000];
  EXPECT_EQ(keys.size(), front_count);
  EXPECT_NEAR(static_cast<double>(keys.at(20)) / static_cast<double>(stream.size()),
              0.8 + 0.2 / front_count, 0.02);
}

// Section 6.1: "with theta = 0.99 the hottest tenth is accessed by 41 percent". This holds for Zipf
// over 20 items.
TEST(fronts, the_hottest_tenth_has_the_papers_share) {
  const auto places = places_of(stream_of("eunomia:0.99:0", 0, 1, 400'000));
  std::size_t hottest = 0;
  std::size_t all = 0;
  for (const auto& [front, taken] : places) {
    all += taken.size();
    if (front < 12) hottest += taken.size();
  }
  EXPECT_NEAR(static_cast<double>(hottest) / static_cast<double>(all), 0.413, 0.015);
}

TEST(fronts, a_share_of_the_requests_looks) {
  const u64_stream stream = stream_of("eunomia:0.5:0.2", 0, 1, 400'000);
  std::size_t looks = 0;
  std::size_t stores = 0;
  for (request_cursor<std::uint64_t> at(stream); at.remaining() > 0;)
    ++(at.next().kind == request_kind::look ? looks : stores);
  const double batches = static_cast<double>(stores) / front_batch;
  EXPECT_NEAR(static_cast<double>(looks) / (static_cast<double>(looks) + batches), 0.2, 0.01);
  EXPECT_GE(stream.size(), 400'000U);
  EXPECT_LT(stream.size(), 400'000U + front_batch);
}

TEST(fronts, equal_seeds_give_equal_streams) {
  EXPECT_EQ(stream_of("eunomia:0.9"), stream_of("eunomia:0.9", 0, 8));
  EXPECT_NE(stream_of("eunomia:0.9"), stream_of("eunomia:0.9", 1));
}

TEST(put, names_keys_by_its_own_skew) {
  const u64_stream stream = stream_of("put:0.99", 0, 1, 20'000);
  EXPECT_EQ(stream.size(), 20'000U);
  const auto keys = random_keys(1000, 1);
  std::size_t upserts = 0;
  std::size_t hottest = 0;
  for (request_cursor<std::uint64_t> at(stream); at.remaining() > 0;) {
    const auto [kind, key] = at.next();
    EXPECT_TRUE(kind == request_kind::look || kind == request_kind::upsert);
    if (kind == request_kind::upsert) ++upserts;
    if (key == keys.at(0)) ++hottest;
  }
  EXPECT_NEAR(static_cast<double>(upserts), 10'000, 400);
  EXPECT_GT(hottest, 2'000U);
}

}  // namespace
