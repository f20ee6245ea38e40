// Heads behind a prefix: what goes in comes out, and order is kept, whatever the prefix.
#include "elidex/internal/tree/key_prefix.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "elidex/internal/sync/policies.hpp"
#include "elidex/internal/tree/btree.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

using internal::blob;
using codec = internal::key_codec<std::string>;
using leaf = internal::btree_leaf<std::string, std::uint64_t, unsynchronized, fan_out<40, 40>>;

// A slot with the blob that it may have.
class made_slot {
 public:
  explicit made_slot(const std::string& key)
      : blob_(codec::needs_blob(key) ? blob::make(key, default_memory) : nullptr),
        slot_(codec::slot_of(key, blob_)) {}
  made_slot(const made_slot&) = delete;
  made_slot& operator=(const made_slot&) = delete;
  ~made_slot() { blob::destroy(blob_, default_memory); }
  codec::slot get() const { return slot_; }
  blob* outside() const { return blob_; }

 private:
  blob* blob_;
  codec::slot slot_;
};

// Short and long ones, with bytes that are like padding and like the greatest.
std::string some_key(std::mt19937_64& random, std::size_t bytes) {
  static constexpr char letters[] = {'\0', 'a', 'b', '\x7f', '\xff'};
  std::string key(bytes, ' ');
  for (char& c : key) c = letters[random() % std::size(letters)];
  return key;
}

std::uint64_t head_by_hand(const std::string& key, std::size_t prefix) {
  std::uint64_t head = 0;
  for (std::size_t i = prefix; i < prefix + 8; ++i) {
    head = head << 8 | (i < key.size() ? static_cast<unsigned char>(key[i]) : 0);
  }
  return head;
}

TEST(KeyPrefix, SlotsComeOutOfNodesAsTheyWere) {
  std::mt19937_64 random(1);
  for (std::size_t bytes = 0; bytes < 40; ++bytes) {
    for (int repeat = 0; repeat < 20; ++repeat) {
      const std::string key = some_key(random, bytes);
      const made_slot made(key);
      for (unsigned prefix = 0; prefix <= bytes; ++prefix) {
        if (prefix == 8) continue;  // no node has it
        const codec::slot stored = codec::put_in(made.get(), prefix);
        EXPECT_EQ(stored.head, head_by_hand(key, prefix));
        const codec::slot out = codec::taken_out(stored, prefix);
        EXPECT_EQ(codec::owned(out), key);
        EXPECT_EQ(codec::search_key_of_slot(out).head, head_by_hand(key, 0));
        EXPECT_EQ(codec::put_in(out, 0).head, head_by_hand(key, 0));
      }
    }
  }
}

TEST(KeyPrefix, HeadsOfProbesReadNothingBehindTheKey) {
  std::mt19937_64 random(2);
  for (std::size_t bytes = 0; bytes < 40; ++bytes) {
    const std::string key = some_key(random, bytes);
    // of its own: a sanitizer sees what lies behind
    const std::vector<char> exactly(key.begin(), key.end());
    const codec::search_key search_key = codec::search_key_of({exactly.data(), exactly.size()});
    for (unsigned prefix = 0; prefix < 60; ++prefix) {
      EXPECT_EQ(codec::head_behind(search_key, prefix), head_by_hand(key, prefix))
          << bytes << ' ' << prefix;
    }
    EXPECT_EQ(codec::head_behind(search_key, 65535), 0u);
  }
}

TEST(KeyPrefix, IsNeverOfEightBytes) {
  EXPECT_EQ(codec::prefix_no_longer_than(7), 7u);
  EXPECT_EQ(codec::prefix_no_longer_than(8), 7u);
  EXPECT_EQ(codec::prefix_no_longer_than(9), 9u);
  EXPECT_EQ(codec::prefix_no_longer_than(65'536), 65'535u);
}

TEST(KeyPrefix, WhatKeysHaveInCommon) {
  EXPECT_EQ(codec::in_common("", ""), 0u);
  EXPECT_EQ(codec::in_common("abc", "abd"), 2u);
  EXPECT_EQ(codec::in_common("abc", "abcd"), 3u);
  const std::string a = "https://www.gardener.org/meadow";
  const std::string b = "https://www.gardener.org/mead";
  EXPECT_EQ(codec::in_common(a, b), b.size());
}

TEST(KeyPrefix, RanksInANodeAreThoseOfTheWholeKeys) {
  std::mt19937_64 random(3);
  for (int repeat = 0; repeat < 3'000; ++repeat) {
    const std::string shared = some_key(random, random() % 20);
    std::set<std::string> keys;
    for (auto wanted = random() % 41; keys.size() < wanted;)
      keys.insert(shared + some_key(random, random() % 14));
    leaf node;
    std::vector<std::unique_ptr<made_slot>> slots;
    for (const std::string& key : keys) {
      slots.push_back(std::make_unique<made_slot>(key));
      node.insert(node.count(), key, slots.back()->outside(), 0);
    }
    for (int change = 0; change < 3; ++change) {
      internal::change_prefix(node, codec::prefix_no_longer_than(
                                        static_cast<unsigned>(random() % (shared.size() + 1))));
      for (int look = 0; look < 20; ++look) {
        const std::string wanted = shared + some_key(random, random() % 14);
        unsigned rank = 0;
        bool exact = false;
        const auto valid = [] { return true; };
        ASSERT_TRUE(internal::rank_by_heads<false>(node, node.count(), codec::search_key_of(wanted),
                                                   valid, rank, exact));
        EXPECT_EQ(rank, std::distance(keys.begin(), keys.lower_bound(wanted)));
        EXPECT_EQ(exact, keys.contains(wanted));
        ASSERT_TRUE(internal::rank_by_heads<true>(node, node.count(), codec::search_key_of(wanted),
                                                  valid, rank, exact));
        EXPECT_EQ(rank, std::distance(keys.begin(), keys.upper_bound(wanted)));
      }
      unsigned i = 0;
      for (const std::string& key : keys) EXPECT_EQ(codec::owned(node.key(i++)), key);
    }
  }
}

// A racing reader's length may fit to nothing: the rank is one of the node all the same, and no
// blob is followed.
TEST(KeyPrefix, TornReadersGetSomeRank) {
  leaf node;
  const made_slot a("a shared head, a");
  const made_slot b("a shared head, b");
  node.insert(0, "a shared head, a", a.outside(), 0);
  node.insert(1, "a shared head, b", b.outside(), 0);
  for (const unsigned torn : {3u, 8u, 15u, 16u, 17u, 65'535u}) {
    node.prefix.set(torn);
    for (const std::string wanted : {"", "a", "a shared", "a shared head, a", "z"}) {
      unsigned rank = 0;
      bool exact = false;
      if (internal::rank_by_heads<false>(
              node, 2, codec::search_key_of(wanted), [] { return false; }, rank, exact)) {
        EXPECT_LE(rank, 2u);
        EXPECT_FALSE(exact);
      }
    }
  }
}

}  // namespace
}  // namespace elidex::testing
