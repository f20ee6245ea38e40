// Every registered index does what std::map does, request by request, under the driver that the
// benchmarks use.

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string_view>

#include "bench/indexes/driven.hpp"
#include "bench/indexes/registry.hpp"
#include "bench/runner/runner.hpp"

namespace {

using namespace elidex::bench;

template <class Key>
class reference_map {
 public:
  bool read(key_arg<Key> key, index_value& value) {
    const auto found = map_.find(key);
    if (found == map_.end()) return false;
    value = found->second;
    return true;
  }
  bool insert(key_arg<Key> key, index_value value) {
    return map_.try_emplace(Key(key), value).second;
  }
  bool update(key_arg<Key> key, index_value value) {
    const auto found = map_.find(key);
    if (found == map_.end()) return false;
    found->second = value;
    return true;
  }
  bool modify(key_arg<Key> key, index_value delta) {
    const auto found = map_.find(key);
    if (found == map_.end()) return false;
    found->second += delta;
    return true;
  }
  bool erase(key_arg<Key> key) {
    const auto found = map_.find(key);
    if (found == map_.end()) return false;
    map_.erase(found);
    return true;
  }
  std::size_t scan(key_arg<Key> from, std::size_t limit, index_value& sum) {
    std::size_t count = 0;
    for (auto at = map_.lower_bound(from); at != map_.end() && count < limit; ++at, ++count)
      sum += at->second;
    return count;
  }

 private:
  std::map<Key, index_value, std::less<>> map_;
};

// What an index does that has no values: a key stands for itself, a string for its length.
template <class Key>
class reference_set {
 public:
  bool read(key_arg<Key> key, index_value& value) {
    if (!keys_.contains(key)) return false;
    value = value_of(key);
    return true;
  }
  bool insert(key_arg<Key> key, index_value) { return keys_.emplace(key).second; }
  std::size_t scan(key_arg<Key> from, std::size_t limit, index_value& sum) {
    std::size_t count = 0;
    for (auto at = keys_.lower_bound(from); at != keys_.end() && count < limit; ++at, ++count)
      sum += value_of(*at);
    return count;
  }

 private:
  static index_value value_of(std::string_view key) { return key.size(); }
  static index_value value_of(std::uint64_t key) { return key; }

  std::set<Key, std::less<>> keys_;
};

std::uint64_t key_for(std::uint64_t id, std::uint64_t) {
  return mix(id);
}
std::string key_for(std::uint64_t id, const std::string&) {
  // Shared prefixes, the empty key, NUL bytes, and lengths up to some hundred.
  if (id == 0) return {};
  std::string key(id % 7 == 0 ? 300 : id % 5, 'p');
  return key + std::string(id % 3, '\0') + std::to_string(id);
}

// A stream of all kinds of requests that the index has, over few keys, so that each meets present
// and absent ones, after `loaded` of them have been inserted. Only put is kept to present keys:
// where the key is absent, an index may insert it or not.
template <class Key>
request_stream<Key> every_request(const index_info& index, std::uint64_t ids = 600,
                                  std::uint64_t loaded = 0) {
  request_stream<Key> stream;
  std::set<std::uint64_t> present;
  random_bits bits(42);
  for (std::uint64_t id = 0; id < loaded; ++id) {
    stream.append(request_kind::insert, key_for(id, Key{}));
    present.insert(id);
  }
  for (int i = 0; i < 40'000; ++i) {
    const std::uint64_t id = bits.below(ids);
    const Key key = key_for(id, Key{});
    switch (bits.below(7)) {
      case 0:
      case 1:
        stream.append(request_kind::insert, key);
        present.insert(id);
        break;
      case 2:
        stream.append(request_kind::read, key);
        break;
      case 3:
        if (index.no_update.empty() && present.contains(id)) stream.append(request_kind::put, key);
        break;
      case 4:
        if (!index.no_update.empty()) break;
        stream.append(request_kind::modify, key);
        break;
      case 5:
        if (!index.no_erase.empty()) break;
        stream.append(request_kind::erase, key);
        present.erase(id);
        break;
      default:
        if (index.no_scan.empty())
          stream.append_scan(key, static_cast<std::uint32_t>(bits.below(50)));
    }
  }
  // What is left, read back, some at once.
  stream.set_keys_at_once(7);
  for (std::uint64_t id = 0; id < ids; ++id)
    stream.append(request_kind::read_many, key_for(id, Key{}));
  return stream;
}

template <class Key>
void expect_agreement(const std::vector<request_stream<Key>>& streams, const index_info& info) {
  const auto index = make_index<Key>(info);
  std::unique_ptr<any_index<Key>> reference = std::make_unique<driven<Key, reference_map<Key>>>();
  if (!info.no_update.empty()) reference = std::make_unique<driven<Key, reference_set<Key>>>();
  const run_outcome wanted = run_threads<Key>(*reference, streams, {.drain = true});
  const run_outcome seen = run_threads<Key>(*index, streams, {.drain = true});
  EXPECT_GT(wanted.misses, 0U);
  EXPECT_EQ(seen.misses, wanted.misses);
  EXPECT_EQ(seen.checksum, wanted.checksum);
}

class every_index : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!info().not_built.empty())
      GTEST_SKIP() << info().name << " is not built: " << info().not_built;
  }
  const index_info& info() const { return *find_index(GetParam()); }
};

TEST_P(every_index, agrees_with_std_map_on_integers) {
  ASSERT_NE(info().make_u64, nullptr);
  expect_agreement<std::uint64_t>({every_request<std::uint64_t>(info())}, info());
}

// Enough of them for trees of three levels.
TEST_P(every_index, agrees_with_std_map_on_many_integers) {
  expect_agreement<std::uint64_t>({every_request<std::uint64_t>(info(), 60'000, 50'000)}, info());
}

TEST_P(every_index, agrees_with_std_map_on_the_smallest_and_the_largest_integers) {
  request_stream<std::uint64_t> stream;
  for (const std::uint64_t key : {std::uint64_t{0}, std::uint64_t{1}, UINT64_MAX - 1, UINT64_MAX}) {
    for (const auto kind : {request_kind::read, request_kind::insert, request_kind::insert,
                            request_kind::put, request_kind::modify, request_kind::read}) {
      const bool update = kind == request_kind::put || kind == request_kind::modify;
      if (!update || info().no_update.empty()) stream.append(kind, key);
    }
    if (!info().no_scan.empty()) continue;
    for (const std::uint64_t from : {std::uint64_t{0}, key, UINT64_MAX}) {
      for (std::uint32_t limit = 0; limit < 6; ++limit) stream.append_scan(from, limit);
    }
  }
  expect_agreement<std::uint64_t>({stream}, info());
}

TEST_P(every_index, agrees_with_std_map_on_strings) {
  if (info().make_string == nullptr) GTEST_SKIP() << info().name << " has no string keys";
  expect_agreement<std::string>({every_request<std::string>(info())}, info());
}

// Threads that load disjoint keys, 16 with one call, and then all modify the same ones: nothing is
// lost.
TEST_P(every_index, loses_nothing_under_threads) {
  const unsigned threads = info().single_thread ? 1 : 4;
  const auto keys = random_keys(4000, 1);
  const auto index = info().make_u64();
  const auto load = make_streams(keys, {.what = find_workload("multi-upsert:16")}, threads);
  EXPECT_EQ(run_threads<std::uint64_t>(*index, load, {.drain = true}).misses, 0U);

  const auto sum_of_all = [&] {
    request_stream<std::uint64_t> reads;
    for (std::size_t i = 0; i < keys.size(); ++i) reads.append(request_kind::read, keys.at(i));
    const std::vector<request_stream<std::uint64_t>> streams{reads};
    const run_outcome outcome = run_threads<std::uint64_t>(*index, streams, {.drain = true});
    EXPECT_EQ(outcome.misses, 0U);
    return outcome.checksum;
  };
  const std::uint64_t before = sum_of_all();
  if (info().no_update.empty()) {
    const std::uint64_t each = 4000 / threads;  // a thread's values count from 1
    EXPECT_EQ(before, threads * each * (each + 1) / 2);
  }
  if (!info().no_update.empty()) {
    // All add the same keys: each is added once.
    request_stream<std::uint64_t> more;
    random_bits unused(1);
    for (std::uint64_t i = 0; i < 20'000; ++i)
      more.append(request_kind::insert, keys.fresh(0, i, unused));
    const std::vector<request_stream<std::uint64_t>> streams(threads, more);
    EXPECT_EQ(run_threads<std::uint64_t>(*index, streams, {.drain = true}).misses,
              (threads - 1) * 20'000U);
    EXPECT_EQ(sum_of_all(), before);
    return;
  }
  request_stream<std::uint64_t> increments;
  random_bits bits(3);
  for (int i = 0; i < 20'000; ++i)
    increments.append(request_kind::modify, keys.at(bits.below(bits.below(2) ? 8 : 4000)));
  const std::vector<request_stream<std::uint64_t>> streams(threads, increments);
  EXPECT_EQ(run_threads<std::uint64_t>(*index, streams, {.drain = true}).misses, 0U);
  EXPECT_EQ(sum_of_all(), before + threads * 20'000U);
}

// Two threads insert, so that nodes split and tables grow, while two others modify keys that are
// present. No change is lost with the node that it was made in.
TEST_P(every_index, loses_no_change_while_other_threads_insert) {
  if (info().single_thread || !info().no_update.empty())
    GTEST_SKIP() << info().name << " has no threads that modify values";
  constexpr std::size_t loaded = 2'000;
  constexpr std::size_t inserted = 20'000;  // by each thread that inserts
  const auto keys = random_keys(loaded + 2 * inserted, 1);
  request_stream<std::uint64_t> load;
  for (std::size_t i = 0; i < loaded; ++i) load.append(request_kind::insert, keys.at(i));
  request_stream<std::uint64_t> modify;
  random_bits bits(3);
  for (std::size_t i = 0; i < inserted; ++i)
    modify.append(request_kind::modify, keys.at(bits.below(loaded)));
  std::vector<request_stream<std::uint64_t>> streams(4, modify);
  for (std::size_t thread = 0; thread < 2; ++thread) {
    streams[thread] = {};
    for (std::size_t i = 0; i < inserted; ++i)
      streams[thread].append(request_kind::insert, keys.at(loaded + thread * inserted + i));
  }
  request_stream<std::uint64_t> read;
  for (std::size_t i = 0; i < loaded; ++i) read.append(request_kind::read, keys.at(i));

  const auto index = info().make_u64();
  const auto run = [&](const std::vector<request_stream<std::uint64_t>>& all) {
    const run_outcome outcome = run_threads<std::uint64_t>(*index, all, {.drain = true});
    EXPECT_EQ(outcome.misses, 0U);
    return outcome.checksum;
  };
  run({load});
  const std::uint64_t before = run({read});
  run(streams);
  EXPECT_EQ(run({read}), before + 2 * inserted);
}

// All threads come to the same keys: each is added once, and found afterwards.
TEST_P(every_index, stores_into_fronts) {
  const workload& what = *find_workload("eunomia:0.9:0.2:16");
  const unsigned threads = info().single_thread ? 1 : 4;
  if (why_not(info(), what, threads, key_type::u64)) {
    EXPECT_FALSE(info().no_update.empty());
    return;
  }
  const auto streams =
      make_streams(random_keys(16, 1), {.what = &what, .requests = 5'000}, threads);
  std::set<std::uint64_t> distinct;
  for (const auto& stream : streams) {
    for (request_cursor<std::uint64_t> at(stream); at.remaining() > 0;) {
      const auto [kind, key] = at.next();
      if (kind == request_kind::store) distinct.insert(key);
    }
  }
  const auto index = info().make_u64();
  const run_outcome outcome = run_threads<std::uint64_t>(*index, streams, {.drain = true});
  EXPECT_EQ(outcome.misses, 0U);
  EXPECT_EQ(outcome.added, distinct.size());
}

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const index_info& one : indexes()) names.emplace_back(one.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(registry, every_index, testing::ValuesIn(all_names()),
                         [](const auto& named) {
                           std::string name = named.param;
                           for (char& c : name) {
                             if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
                           }
                           return name;
                         });

TEST(registry, holds_the_names_of_the_design) {
  for (const char* name : {"btree/none",       "btree/mutex",
                           "btree/spin",       "btree/rw",
                           "btree/rtm",        "btree/rtm-noretry",
                           "btree/hle",        "btree/htm-dbx",
                           "btree/optimistic", "delta/none",
                           "delta/rw",         "delta/spin",
                           "delta/rtm",        "delta/rtm-noretry",
                           "delta/hle",        "delta-tuned/none",
                           "delta-tuned/rw",   "delta-tuned/spin",
                           "delta-tuned/rtm",  "delta-tuned/rtm-noretry",
                           "delta-tuned/hle",  "delta-tuned/optimistic",
                           "ordered_map",      "absl+mutex",
                           "std+shared_mutex", "tbb",
                           "libcds",           "congee",
                           "bplustree",        "hash_map",
                           "tbb-hash",         "libcds-hash",
                           "absl-hash+mutex",  "scc-tree",
                           "concurrent-map",   "scc-hash",
                           "dashmap",          "papaya"}) {
    EXPECT_NE(find_index(name), nullptr) << name;
  }
  EXPECT_NE(find_index("crossbeam-skiplist"), nullptr);
  const auto names = all_names();
  EXPECT_EQ(std::set(names.begin(), names.end()).size(), names.size());
  EXPECT_EQ(find_index("nonsense"), nullptr);
}

TEST(registry, says_what_an_index_cannot_do) {
  const auto why = [](const char* index, const char* what, unsigned threads) {
    return why_not(*find_index(index), *find_workload(what), threads, key_type::u64).value_or("");
  };
  EXPECT_EQ(why("btree/none", "a", 1), "");
  EXPECT_EQ(why("btree/none", "a", 2),
            "btree/none has no synchronisation: one thread only, or reads only");
  EXPECT_EQ(why("btree/none", "c", 2), "");
  EXPECT_EQ(why("delta/none", "insert-mix:0", 2), "");
  EXPECT_NE(why("delta/none", "insert-mix:1", 2), "");
  EXPECT_EQ(why("tbb", "a", 2), "");
  EXPECT_NE(why("tbb", "delete", 1), "");
  EXPECT_NE(why("libcds", "e", 1), "");
  EXPECT_EQ(why("absl+mutex", "e", 2), "");
  EXPECT_EQ(why("delta/rw", "insert-mix:5", 2), "");
  EXPECT_EQ(why("delta/rw", "mix:5", 2), "delta/rw has values and their IDs and nothing to update");

  const index_info absent{.name = "absent", .description = {}, .not_built = "no compiler"};
  EXPECT_EQ(why_not(absent, *find_workload("a"), 1, key_type::u64),
            "absent is not built: no compiler");
}

// Two indexes once had one factory, because their files named it alike.
TEST(Indexes, EachNameHasAFactoryOfItsOwn) {
  std::set<decltype(index_info::make_u64)> factories;
  for (const index_info& one : indexes()) {
    if (one.make_u64 == nullptr) continue;
    EXPECT_TRUE(factories.insert(one.make_u64).second) << one.name;
  }
}

}  // namespace
