// Readers of one node beside a writer: what they validate was there.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <thread>

#include "elidex/internal/tree/hashed_bucket.hpp"
#include "elidex/internal/tree/slotted_node.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

using u64 = std::uint64_t;

// A reader that validates sees the value of the key that it wanted, or rightly nothing.
TEST(RacingReaders, OfABucketSeeWholeRecordsIfTheyValidate) {
  using bucket = hashed_bucket<u64, u64, optimistic>;
  bucket one;
  constexpr std::array<u64, 4> keys{7, 1ULL << 50U, 1ULL << 57U, ~u64{0} - 3};
  one.insert(keys[0], keys[0]);  // stays
  std::atomic<bool> done = false;
  std::thread writer([&] {
    std::mt19937_64 random(5);
    for (int i = 0; i < 200'000; ++i) {
      const u64 k = keys[1 + random() % 3];
      one.lock.lock();
      if (const unsigned slot = one.find(k); slot != no_slot) {
        one.erase(slot);
      } else {
        one.insert(k, k);
      }
      one.lock.unlock();
    }
    done = true;
  });
  u64 seen = 0;
  bool all_right = true;
  while (!done || seen == 0) {
    for (const u64 k : keys) {
      const auto version = one.lock.read();
      const unsigned slot = one.find(k);
      const u64 value = slot == no_slot ? 0 : one.value(slot);
      if (!one.lock.validate(version)) continue;
      ++seen;
      all_right &= slot == no_slot ? k != keys[0] : value == k;
    }
  }
  writer.join();
  EXPECT_TRUE(all_right);
}

// A reader beside a writer that compacts: it reads some bytes, and never leaves the node. What it
// validates is a key that was there.
TEST(RacingReaders, OfASlottedNodeSeeKeysBesideCompactions) {
  slotted_node<slotted_layout<1504, 48, 2, 1, 32>, true> node;
  version_lock lock;
  std::atomic<unsigned> count{0};
  std::atomic<bool> done{false};
  const std::string shared = "https://www.gardener.org/";
  const auto key_at = [&](std::uint64_t n) { return shared + std::string(n % 23, 'x') + 'z'; };
  std::atomic<std::uint64_t> seen_keys{0};
  std::thread reader([&] {
    for (std::uint64_t n = 0; !done.load(); ++n) {
      const auto seen = lock.read();
      const unsigned many = count.load();
      unsigned rank = 0;
      bool exact = false;
      const auto valid = [&] { return lock.validate(seen); };
      const bool whole = node.rank<false>(many, key_codec<std::string>::search_key_of(key_at(n)),
                                          valid, rank, exact);
      const slotted_key key = node.key(rank < many ? rank : 0);
      if (!whole || !valid() || !exact) continue;
      EXPECT_EQ(key.view(), key_at(n));
      seen_keys.fetch_add(1);
    }
  });
  std::mt19937_64 random(1);
  std::map<std::string, int> expected;
  for (int i = 0; i < 20'000 || (seen_keys.load() == 0 && i < 2'000'000); ++i) {
    const std::string key = key_at(random());
    const auto at = expected.lower_bound(key);
    const auto rank = static_cast<unsigned>(std::distance(expected.begin(), at));
    static_cast<void>(lock.lock());
    const unsigned before = count.load();
    if (at != expected.end() && at->first == key) {
      node.erase(before, rank, rank + 1);
      expected.erase(at);
      count.store(before - 1);
    } else {
      node.insert(before, rank, key_codec<std::string>::search_key_of(key), nullptr, {1});
      expected.emplace(key, 1);
      count.store(before + 1);
    }
    if (i % 64 == 0) {
      node.set_prefix(count.load(), key_codec<std::string>::search_key_of(shared),
                      static_cast<unsigned>(random() % (shared.size() + 1)));
    }
    lock.unlock();
  }
  done.store(true);
  reader.join();
  EXPECT_GT(seen_keys.load(), 0u);
}

}  // namespace
}  // namespace elidex::testing
