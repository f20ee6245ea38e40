// Nodes that hold their strings themselves, against std::map.
#include "elidex/internal/tree/slotted_node.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace elidex::testing {

using namespace internal;

namespace {

using codec = key_codec<std::string>;

using leaf_layout = slotted_layout<1000, 52, 1, 1, 128>;
using wide_leaf_layout = slotted_layout<2000, 40, 1, 5, 128>;
using inner_layout = slotted_layout<1504, 48, 2, 1, 32>;
using small_layout = slotted_layout<480, 4, 2, 1, 32>;

std::string some_bytes(std::mt19937_64& random, std::size_t bytes) {
  static constexpr char letters[] = {'\0', 'a', 'b', '\x7f', '\xff'};
  std::string made(bytes, ' ');
  for (char& c : made) c = letters[random() % std::size(letters)];
  return made;
}

// A node and what it should hold. Every key begins with `shared`.
template <class Node>
class modelled_node {
 public:
  modelled_node(std::string shared, std::uint64_t seed)
      : shared_(std::move(shared)), random_(seed) {}

  // Runs random operations. Returns what was wrong, or "".
  std::string run(int operations) {
    for (int i = 0; i < operations; ++i) {
      const std::string wrong = one_operation();
      if (!wrong.empty()) return wrong + " after " + std::to_string(i) + " operations";
    }
    return "";
  }

 private:
  struct record {
    std::uint64_t value;
    blob* outside;
  };
  using records = std::map<std::string, record>;
  using values = typename Node::values;

  static values values_of(std::uint64_t value) {
    values made;
    for (unsigned i = 0; i < Node::value_words; ++i) made[i] = value + i;
    return made;
  }
  std::string some_key() {
    const auto kind = random_() % 16;
    const std::size_t rest = kind == 0   ? (random_() % 64 == 0 ? 60'000 : 300)
                             : kind == 1 ? 60
                                         : random_() % (kind < 10 ? 6 : 40);
    return shared_ + some_bytes(random_, rest);
  }
  unsigned some_prefix() {
    static constexpr std::size_t lengths[] = {0, 1, 7, 8, 9, 15, 16, 17, 24, 127, 128};
    const std::size_t wanted =
        random_() % 2 == 0 ? lengths[random_() % std::size(lengths)] : random_() % 128;
    const std::size_t length = std::min<std::size_t>({wanted, shared_.size(), Node::prefix_max});
    return static_cast<unsigned>(length);
  }
  blob* blob_of(const std::string& key) {
    if (!Node::needs_blob(key.size(), node_.prefix())) return nullptr;
    blobs_.push_back(made_blob(blob::make(key, default_memory)));
    return blobs_.back().get();
  }

  std::string one_operation() {
    const auto what = random_() % 100;
    if (what < 50) {
      insert(some_key());
    } else if (what < 70 && !expected_.empty()) {
      erase();
    } else if (what < 80 && !expected_.empty()) {
      overwrite();
    } else if (what < 90) {
      change_prefix();
    } else if (what < 95) {
      const std::string wrong = split_and_merge();
      if (!wrong.empty()) return wrong;
    }
    const std::string wrong = difference(node_, count(), expected_);
    return !wrong.empty() ? wrong : wrong_rank();
  }
  unsigned count() const { return static_cast<unsigned>(expected_.size()); }
  unsigned rank_of(records::const_iterator at) const {
    return static_cast<unsigned>(std::distance(expected_.begin(), at));
  }

  void insert(const std::string& key) {
    if (expected_.contains(key)) return;
    blob* const outside = blob_of(key);
    const unsigned words = Node::words_for(key.size(), outside != nullptr, node_.prefix());
    if (!node_.has_room(count(), words)) return;
    const std::uint64_t value = random_();
    const unsigned i = rank_of(expected_.lower_bound(key));
    node_.insert(count(), i, codec::search_key_of(key), outside, values_of(value));
    expected_.emplace(key, record{value, outside});
  }
  void erase() {
    const auto at = std::next(expected_.begin(), static_cast<long>(random_() % expected_.size()));
    const unsigned i = rank_of(at);
    node_.erase(count(), i, i + 1);
    expected_.erase(at);
  }
  void overwrite() {
    const auto at = std::next(expected_.begin(), static_cast<long>(random_() % expected_.size()));
    at->second.value = random_();
    for (unsigned which = 0; which < Node::value_words; ++which)
      node_.set_value(rank_of(at), which, at->second.value + which);
  }
  void change_prefix() {
    const unsigned length = some_prefix();
    if (!node_.fits(count(), length)) return;
    node_.set_prefix(count(), codec::search_key_of(shared_), length);
  }
  // The halves get prefixes of their own. Then they become one node again, if they fit.
  std::string split_and_merge() {
    const unsigned middle = node_.middle(count());
    const Node before = node_;
    Node right;
    const unsigned length = some_prefix();
    const unsigned moved = count() - middle;
    const unsigned words_moved = node_.words_behind(length, middle, count());
    if (Node::prefix_words(length) + words_moved > Node::heap_words(moved)) return "";
    right.set_prefix(0, codec::search_key_of(shared_), length);
    right.append(0, node_, middle, count());
    node_.erase(count(), middle, count());
    const auto at = std::next(expected_.begin(), middle);
    std::string wrong = difference(node_, middle, records(expected_.begin(), at));
    if (wrong.empty()) wrong = difference(right, moved, records(at, expected_.end()));
    if (!wrong.empty()) return wrong + " in a half";
    const unsigned shorter = std::min(node_.prefix(), right.prefix());
    const unsigned words = Node::prefix_words(shorter) + node_.words_behind(shorter, 0, middle) +
                           right.words_behind(shorter, 0, moved);
    if (words > Node::heap_words(count())) {
      node_ = before;
      return "";
    }
    node_.set_prefix(middle, codec::search_key_of(shared_), shorter);
    node_.append(middle, right, 0, moved);
    return "";
  }

  static std::string difference(const Node& node, unsigned count, const records& expected) {
    unsigned i = 0;
    for (const auto& [key, record] : expected) {
      const slotted_key found = node.key(i);
      if (found.outside() != record.outside) return "another blob";
      if (found.view() != key) return "another key";
      for (unsigned which = 0; which < Node::value_words; ++which) {
        if (node.value(i, which) != record.value + which) return "another value";
      }
      ++i;
    }
    const unsigned used =
        Node::prefix_words(node.prefix()) + node.words_behind(node.prefix(), 0, count);
    if (used + node.free_words(count) != Node::heap_words(count)) {
      return "lost words";
    }
    return "";
  }
  std::string wrong_rank() {
    for (int look = 0; look < 4; ++look) {
      const bool present = look % 2 == 0 && !expected_.empty();
      const std::string wanted =
          present ? std::next(expected_.begin(), static_cast<long>(random_() % count()))->first
                  : some_key();
      unsigned rank = 0;
      bool exact = false;
      const auto valid = [] { return true; };
      const codec::search_key key = codec::search_key_of(wanted);
      if (!node_.template rank<false>(count(), key, valid, rank, exact)) return "torn";
      if (rank != rank_of(expected_.lower_bound(wanted))) return "a wrong lower bound";
      if (exact != expected_.contains(wanted)) return "a key lost, or one too many";
      if (!node_.template rank<true>(count(), key, valid, rank, exact)) return "torn";
      if (rank != rank_of(expected_.upper_bound(wanted))) return "a wrong upper bound";
    }
    return "";
  }

  struct destroy_blob {
    void operator()(blob* b) const { blob::destroy(b, default_memory); }
  };
  using made_blob = std::unique_ptr<blob, destroy_blob>;

  std::string shared_;
  std::mt19937_64 random_;
  Node node_;
  records expected_;
  std::deque<made_blob> blobs_;
};

template <class Layout, bool Racing, class Rules = slotted_rules>
std::string first_difference(int operations) {
  std::mt19937_64 random(7);
  for (const std::size_t shared : {0UL, 1UL, 6UL, 7UL, 8UL, 9UL, 16UL, 30UL, 127UL, 128UL, 200UL}) {
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      modelled_node<slotted_node<Layout, Racing, Rules>> node(some_bytes(random, shared), seed);
      const std::string wrong = node.run(operations);
      if (!wrong.empty()) return wrong + ", shared bytes " + std::to_string(shared);
    }
  }
  return "";
}

TEST(SlottedNode, LeavesAgreeWithAMap) {
  EXPECT_EQ((first_difference<leaf_layout, false>(3'000)), "");
  EXPECT_EQ((first_difference<leaf_layout, true>(1'000)), "");
  EXPECT_EQ((first_difference<wide_leaf_layout, true>(1'000)), "");
}

TEST(SlottedNode, InnerNodesAgreeWithAMap) {
  EXPECT_EQ((first_difference<inner_layout, false>(3'000)), "");
  EXPECT_EQ((first_difference<inner_layout, true>(1'000)), "");
  EXPECT_EQ((first_difference<small_layout, true>(3'000)), "");
}

struct drops_prefix : slotted_rules {
  static constexpr bool keeps_prefix = false;
};
struct copies_whole_words : slotted_rules {
  static constexpr bool copies_part_words = false;
};
struct counts_slots : slotted_rules {
  static constexpr bool full_counts_bytes = false;
};

TEST(SlottedNodeCanary, ALostPrefixIsFound) {
  EXPECT_NE((first_difference<inner_layout, true, drops_prefix>(1'000)), "");
  EXPECT_NE((first_difference<leaf_layout, true, drops_prefix>(1'000)), "");
}
TEST(SlottedNodeCanary, APrefixWithoutItsLastBytesIsFound) {
  EXPECT_NE((first_difference<inner_layout, true, copies_whole_words>(1'000)), "");
  EXPECT_NE((first_difference<leaf_layout, true, copies_whole_words>(1'000)), "");
}
TEST(SlottedNodeCanary, ANodeThatCountsOnlySlotsIsFound) {
  EXPECT_NE((first_difference<inner_layout, true, counts_slots>(1'000)), "");
  EXPECT_NE((first_difference<leaf_layout, true, counts_slots>(1'000)), "");
}

// What a racing reader may see in the worst case: a node of random bits. Sanitizers watch that no
// load leaves it, and no address is followed.
TEST(SlottedNode, ReadersOfRandomBitsStayInside) {
  using node_type = slotted_node<inner_layout, true>;
  std::mt19937_64 random(3);
  const std::string long_key = some_bytes(random, key_bytes_max);
  for (int round = 0; round < 3'000; ++round) {
    const auto node = std::make_unique<node_type>();
    std::array<std::uint64_t, sizeof(node_type) / 8> bits;
    for (std::uint64_t& word : bits)
      word = random() & (round % 2 == 0 ? ~0ULL : 0xFF03'FF03'FF03ULL);
    std::memcpy(static_cast<void*>(node.get()), bits.data(), sizeof(node_type));
    for (const std::string& wanted : {std::string(), std::string("a"), long_key}) {
      unsigned rank = 0;
      bool exact = false;
      if (node->rank<true>(48, codec::search_key_of(wanted), [] { return false; }, rank, exact)) {
        EXPECT_LE(rank, 48u);
      }
    }
    for (unsigned i = 0; i < 48; ++i) {
      const slotted_key key = node->key(i);
      if (key.outside() == nullptr) {
        EXPECT_LE(key.size(), 128u + 254u);
      }
      static_cast<void>(node->value(i, 0));
    }
    static_cast<void>(node->words_behind(5, 0, 48));
  }
}

}  // namespace
}  // namespace elidex::testing
