// The parts that both B+trees share: the common part of all nodes, inner nodes, the descent to a
// leaf, leaf hints (which skip the descent), and splits and merges of inner nodes.
//
//   position p;
//   // p.as_leaf() is the leaf for the key at the moment of its version p.seen
//   if (!descend_to_leaf(key, p)) restart;
//
// btree.hpp and fixed_key_btree.hpp use it. Leaf is derived from btree_node<Sync>.
// look_up_together() also needs its bytes_for_look_up and approach().
//
// All functions are parts of regions: they may run again, and allocate nothing. Exceptions:
// look_up_together() and run_changing() run regions. A function returns restart (or false) when
// another thread has changed a node on which it depends. It returns restructured when it has split
// or merged a node. The operation then begins again.
//
// A node's const functions may race with a writer if the policy's readers_race is true. Functions
// that change a node need its lock.
//
// Implementation notes
// Child i of an inner node holds the keys k with key(i - 1) <= k < key(i). A node never changes
// between leaf and inner node, not even when its memory is used again, because leaves and inner
// nodes come from separate pools. The proof of correctness is in the header comment of btree.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "elidex/internal/memory/block_pool.hpp"
#include "elidex/internal/memory/counters.hpp"
#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/memory/memory_name.hpp"
#include "elidex/internal/sync/backoff.hpp"
#include "elidex/internal/sync/version_lock.hpp"
#include "elidex/internal/tree/btree_node.hpp"
#include "elidex/internal/tree/codec.hpp"
#include "elidex/internal/tree/key_prefix.hpp"
#include "elidex/internal/tree/key_search.hpp"
#include "elidex/internal/tree/node_operation.hpp"
#include "elidex/internal/tree/slotted_inner_node.hpp"
#include "elidex/internal/tree/slotted_leaf.hpp"

// Marks a function into which all calls are inlined. The steps of an operation pass their state in
// structures, which then stay in registers. Calls that are made rarely are marked noinline. On the
// simulated machine, which counts instructions, code stays as its published figures knew it.
#if defined(ELIDEX_SIMULATED)
#  define ELIDEX_FLATTEN
#else
#  define ELIDEX_FLATTEN [[gnu::flatten]]
#endif

namespace elidex::internal {

// The number of a node's slots is fixed, as in the papers.
template <unsigned LeafSlots, unsigned InnerSlots>
struct fan_out {
  static_assert(LeafSlots >= 2 && InnerSlots >= 3);
  static constexpr bool summarizes_keys = false;  // of inner nodes, see summarized_keys
  static constexpr unsigned leaf_slots(std::size_t /*slot_bytes*/) { return LeafSlots; }
  static constexpr unsigned inner_slots(std::size_t /*key_bytes*/) { return InnerSlots; }
  using slotted_inner = slotted_inner_layout<InnerSlots, roomy_slotted_words(InnerSlots)>;
};

// A node has as many slots as fit into so many bytes.
template <std::size_t LeafBytes, std::size_t InnerBytes>
struct node_bytes {
  static constexpr std::size_t header_bytes = 16;
  static constexpr bool summarizes_keys = false;
  static constexpr unsigned leaf_slots(std::size_t slot_bytes) {
    const std::size_t slots = (LeafBytes - header_bytes) / slot_bytes;
    return slots < 4 ? 4 : static_cast<unsigned>(slots);
  }
  static constexpr unsigned inner_slots(std::size_t key_bytes) {
    const std::size_t slots =
        (InnerBytes - header_bytes - sizeof(void*)) / (key_bytes + sizeof(void*));
    return slots < 4 ? 4 : static_cast<unsigned>(slots);
  }
  // Half as large again: heads and separators lie in the node. Measured with 1536 bytes.
  using slotted_inner =
      slotted_inner_layout<InnerBytes * 3 / 64, (InnerBytes * 3 / 2 - 2 * header_bytes) / 8>;
  // Leaves of strings hold their keys, unless a split could lack room.
  template <unsigned ValueWords>
    requires(LeafBytes >= 1024)
  using slotted_leaf = slotted_leaf_layout<LeafBytes - header_bytes, ValueWords>;
};

// The papers' fan-out (001 section 4.1, 003 section 6.1).
using paper_fan_out = fan_out<16, 16>;

// Always inline: GCC assumes that a function which only prefetches has no effect, and drops its
// calls.
template <int Locality, std::size_t... Line>
[[gnu::always_inline]] inline void prefetch_lines(const char* first,
                                                  std::index_sequence<Line...> /*lines*/) noexcept {
  (__builtin_prefetch(first + 64 * Line, 0, Locality), ...);
}

// At most two KiB: in a larger node a search touches only a few lines.
inline constexpr std::size_t prefetch_max = 2048;
template <std::size_t Bytes, int Locality = 3>
[[gnu::always_inline]] inline void prefetch_bytes(const void* address) noexcept {
  constexpr std::size_t lines = (std::min(Bytes, prefetch_max) + 63) / 64;
  prefetch_lines<Locality>(static_cast<const char*>(address), std::make_index_sequence<lines>());
}
// Prefetches into the second-level cache, for memory that is needed after other work. The first
// level can wait for some twenty lines only. A thread that asks for more has to wait.
template <std::size_t Bytes>
[[gnu::always_inline]] inline void prefetch_bytes_for_later(const void* address) noexcept {
  prefetch_bytes<Bytes, 2>(address);
}

// A key outside of nodes, if keys of this kind exist there.
template <class Keys>
struct owned_key_of {
  using type = typename Keys::slot;
};
template <class Keys>
  requires requires(typename Keys::slot s) { Keys::owned(s); }
struct owned_key_of<Keys> {
  using type = decltype(Keys::owned(std::declval<typename Keys::slot>()));
};

// An inner node's keys in one array.
template <class KeySlot, bool Racing, unsigned Capacity>
class plain_inner_keys {
 public:
  KeySlot key(unsigned i) const noexcept { return keys_[i].template load<Racing>(); }
  void set_key(unsigned i, const KeySlot& k) noexcept { keys_[i].template store<Racing>(k); }

 private:
  std::array<field<KeySlot>, Capacity> keys_;
};

template <class KeySlot, bool Racing, unsigned Capacity, bool Summarized>
struct inner_keys_of {
  using type = plain_inner_keys<KeySlot, Racing, Capacity>;
};
template <std::integral KeySlot, bool Racing, unsigned Capacity>
struct inner_keys_of<KeySlot, Racing, Capacity, true> {
  using type = summarized_keys<KeySlot, Racing, Capacity>;
};

// An inner node whose keys have a fixed size. A slotted_inner_node has the same functions.
template <class Key, class Sync, class Shape>
struct btree_inner_node : btree_node<Sync> {
  using node = btree_node<Sync>;
  using keys = key_codec<Key>;
  using key_slot = typename key_codec<Key>::slot;
  using key_type = key_slot;  // a key outside of the node
  static constexpr bool racing = Sync::readers_race;
  static constexpr unsigned capacity = Shape::inner_slots(sizeof(key_slot));
  static_assert(capacity <= slots_max);
  using keys_type =
      typename inner_keys_of<key_slot, racing, capacity, Shape::summarizes_keys>::type;
  // Head, keys and children. Prefetched together, they cost a look-up one wait.
  static constexpr std::size_t bytes_for_look_up =
      sizeof(node) + sizeof(keys_type) + (capacity + 1) * sizeof(node*);

  explicit btree_inner_node(unsigned level_above_leaves) noexcept : node(level_above_leaves) {}

  key_slot key(unsigned i) const noexcept { return separators.key(i); }
  static blob* blob_of(unsigned /*i*/) noexcept { return nullptr; }
  void set_key(unsigned i, const key_slot& k) noexcept { separators.set_key(i, k); }
  static auto owned(const key_slot& k) { return keys::owned(k); }
  template <bool OrEqual>
  unsigned rank(unsigned count, const key_slot& wanted) const noexcept
    requires Shape::summarizes_keys && std::integral<key_slot>
  {
    return separators.template rank<OrEqual>(count, wanted);
  }
  node* child(unsigned i) const noexcept { return children[i].template load<racing>(); }
  void set_child(unsigned i, node* c) noexcept { children[i].template store<racing>(c); }

  bool is_full(unsigned count) const noexcept { return count == capacity; }
  // Whether a bulk load may add the key behind the last one.
  bool takes_in_bulk(const key_slot& /*key*/) const noexcept { return !is_full(this->count()); }
  // Worth merging.
  bool is_sparse(unsigned count) const noexcept { return count <= capacity / 3; }
  // Whether one node can take the children of both, which are children `index` and `index` + 1 of
  // their parent. Room for a few inserts stays, so that the node does not split again at once,
  // unless one of the two was empty.
  static bool fit_together(const btree_inner_node& left, const btree_inner_node& right,
                           const btree_inner_node& /*parent*/, unsigned /*index*/) noexcept {
    const unsigned merged = left.count() + right.count() + 1;  // the separator comes down
    const bool one_is_empty = left.count() == 0 || right.count() == 0;
    return merged <= (one_is_empty ? capacity : capacity * 5 / 6);
  }
  // The key that goes up to the parent when a full node is split, or gives children to an empty
  // sibling.
  unsigned middle() const noexcept { return capacity / 2; }
  template <side Receiver>
  unsigned middle_for(const btree_inner_node& /*receiver*/, const key_slot& /*between*/,
                      const btree_inner_node& /*parent*/) const noexcept {
    return Receiver == side::left ? capacity / 2 - 1 : capacity / 2;
  }
  // The bytes of the blob that a key needs in `parent` (null: in a new root).
  static std::size_t blob_bytes(const key_slot& /*key*/,
                                const btree_inner_node* /*parent*/) noexcept {
    return 0;
  }
  // Prefixes, which these keys do not have.
  void copy_prefix(const btree_inner_node& /*from*/) noexcept {}
  void share_prefix(const btree_inner_node& /*other*/, const key_slot& /*between*/,
                    const btree_inner_node& /*parent*/) noexcept {}

  // Inserts `right` behind child `position`, with `k` as the separator between them.
  void insert(unsigned position, const key_slot& k, node* right) noexcept {
    const unsigned n = this->count();
    for (unsigned i = n; i > position; --i) {
      copy_key(i, *this, i - 1);
      copy_child(i + 1, *this, i);
    }
    set_key(position, k);
    set_child(position + 1, right);
    this->set_count(n + 1);
  }
  // Removes key `position` and the child behind it.
  void erase(unsigned position) noexcept {
    const unsigned n = this->count();
    for (unsigned i = position + 1; i < n; ++i) {
      copy_key(i - 1, *this, i);
      copy_child(i, *this, i + 1);
    }
    this->set_count(n - 1);
  }
  // Moves the children behind key `middle` to the empty node `right`. Key `middle` itself goes to
  // neither node.
  void split(unsigned middle, btree_inner_node& right) noexcept {
    const unsigned n = this->count();
    right.copy_child(0, *this, middle + 1);
    for (unsigned i = middle + 1; i < n; ++i) {
      right.copy_key(i - middle - 1, *this, i);
      right.copy_child(i - middle, *this, i + 1);
    }
    right.set_count(n - middle - 1);
    this->set_count(middle);
  }
  // Appends `k` and the first `taken` children of `right`, which keeps them. Key `taken - 1` of
  // `right` goes to neither node.
  void append(const key_slot& k, const btree_inner_node& right, unsigned taken) noexcept {
    const unsigned n = this->count();
    set_key(n, k);
    copy_child(n + 1, right, 0);
    for (unsigned i = 1; i < taken; ++i) {
      copy_key(n + i, right, i - 1);
      copy_child(n + 1 + i, right, i);
    }
    this->set_count(n + taken);
  }
  // Removes the first `dropped` children and the keys behind them.
  void drop_front(unsigned dropped) noexcept {
    const unsigned n = this->count();
    copy_child(0, *this, dropped);
    for (unsigned i = dropped; i < n; ++i) {
      copy_key(i - dropped, *this, i);
      copy_child(i - dropped + 1, *this, i + 1);
    }
    this->set_count(n - dropped);
  }

  keys_type separators;
  std::array<field<node*>, capacity + 1> children;

 private:
  // The caller holds the lock of `from`.
  void copy_key(unsigned i, const btree_inner_node& from, unsigned j) noexcept {
    set_key(i, from.key(j));
  }
  void copy_child(unsigned i, const btree_inner_node& from, unsigned j) noexcept {
    children[i].template store<racing>(from.children[j].template load<false>());
  }
};

template <class Key, class Sync, class Shape, bool = key_codec<Key>::has_prefixes>
struct inner_node_of {
  using type = btree_inner_node<Key, Sync, Shape>;
};
template <class Key, class Sync, class Shape>
struct inner_node_of<Key, Sync, Shape, true> {
  using type = slotted_inner_node<Sync, typename Shape::slotted_inner>;
};

// Counts since construction. Each is exact when no operation runs.
struct btree_stats {
  std::int64_t restarts = 0;         // attempts discarded because another thread changed a node
  std::int64_t splits = 0;           // of leaves and inner nodes
  std::int64_t merges = 0;           // likewise
  std::int64_t redistributions = 0;  // full leaves redistributed with a sibling instead of split
  std::size_t leaves = 0;            // nodes in use, retired ones included
  std::size_t inner_nodes = 0;
  std::size_t retired_objects = 0;  // unlinked nodes and blobs that wait for their epoch
};

// Returns an id that no other tree of the process has or had. Defined in the library, so that trees
// made by different parts of a program differ, too.
std::uint64_t new_tree_id() noexcept;

// The range of the keys of a leaf.
template <class Key>
struct key_range {
  Key lowest;
  Key highest;
};

// The next smaller key. Wraps around at the type's end, because a torn key may have any value.
template <class Key>
Key key_before(Key key) noexcept {
  using number = std::make_unsigned_t<Key>;
  return static_cast<Key>(static_cast<number>(static_cast<number>(key) - 1U));
}

// A leaf hint: a leaf that a thread remembers together with its key range, so that the next request
// for such a key skips the descent.
//
//   auto& mine = leaf_hint<Key, Leaf>::of_this_thread(tree_id);
//   if (mine.is_for(tree_id, key)) ... mine.leaf(), if its sequence number is still mine.sequence()
//   ...
//   else if (mine.came_again(tree_id, leaf)) mine.remember(...);
//
// Ascending keys, and hot neighbours, come to the same leaf again and again.
//
// Used by one thread. A thread remembers one leaf of each of a few trees. Of two trees with
// the same entry in its table, the last one has it.
//
// Why the leaf is still the right one if its sequence number is the remembered one. The number
// changes whenever the leaf's key range changes. Splits, redistributions and merges change it in
// all leaves that take part. A bulk load changes it in the empty leaf that the loaded tree
// replaces. A number never comes twice at one address (region_sequence). So a thread has the
// right leaf if it sees the remembered number inside a region, or before a version that it
// validates afterwards.
//
// Why the leaf may be accessed at all.
//   * The tree is in use, so it lives: ids never come twice. Its pool keeps all of its memory until
//     the tree is destroyed, and leaves are only reused as leaves.
//   * Under regions, leaves without conflict controls need no more, and only these are remembered
//     there (split_regions.hpp).
//   * Where readers race, the thread is pinned before it reads the number. It reads nothing else
//     unless the number is the remembered one. A leaf's number changes before the leaf is retired,
//     so for epochs the change counts as the unlinking (epoch.hpp). If the pin's fence comes first,
//     epochs keep the leaf. If the change comes first, the thread sees the new number. The read of
//     the number itself is atomic, and so are the writes to it in all of the leaf's lives.
//
// A thread that comes to a leaf a second time reads the key range in a descent of its own. So a
// request for a random key costs only one more comparison and one store.
template <class Key, class Leaf>
class leaf_hint {
 public:
  static leaf_hint& of_this_thread(std::uint64_t tree) noexcept;

  Leaf* leaf() const noexcept { return leaf_; }
  std::uint64_t sequence() const noexcept { return sequence_; }

  bool is_for(std::uint64_t tree, Key key) const noexcept {
    return tree_ == tree && keys_.lowest <= key && key <= keys_.highest;
  }
  // Whether the thread's last descent came to this leaf, too.
  bool came_again(std::uint64_t tree, const Leaf* to) noexcept {
    if (visited_ == to && visited_in_ == tree) return true;
    visited_ = to;
    visited_in_ = tree;
    return false;
  }
  void remember(std::uint64_t tree, Leaf* leaf, std::uint64_t sequence,
                const key_range<Key>& keys) noexcept {
    tree_ = tree;
    leaf_ = leaf;
    sequence_ = sequence;
    keys_ = keys;
  }

 private:
  std::uint64_t tree_ = 0;  // 0: no tree
  key_range<Key> keys_{};
  Leaf* leaf_ = nullptr;
  std::uint64_t sequence_ = 0;
  const Leaf* visited_ = nullptr;
  std::uint64_t visited_in_ = 0;
};

// Hidden, because tree ids are unique only within one copy of the library. With GCC's default
// visibility, two plug-ins with a copy each would share these leaves, but not the ids.
template <class Key, class Leaf>
[[gnu::visibility("hidden")]] inline thread_local constinit std::array<leaf_hint<Key, Leaf>, 4>
    leaves_of_this_thread{};

template <class Key, class Leaf>
leaf_hint<Key, Leaf>& leaf_hint<Key, Leaf>::of_this_thread(std::uint64_t tree) noexcept {
  auto& all = leaves_of_this_thread<Key, Leaf>;
  return all[tree % all.size()];
}

// A leaf that knows from the key which few of its lines a look-up reads.
template <class Leaf, class Key>
concept fetches_leaf_by_key =
    requires(const Leaf* at, const Key& key) { Leaf::prefetch_for(at, key); };

// A leaf that has a lock for each part of its keys. The version of that lock then takes the place
// of the leaf's version for requests for one key.
template <class Leaf, class Key>
concept locks_keys_apart = requires(const Leaf& l, const Key& key) { l.lock_of(key); };

// DefersReclamation: other threads may still be on their way to a node when it is unlinked.
template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
class btree_inner {
 protected:
  static constexpr bool defers_reclamation = DefersReclamation;
  using pin = std::conditional_t<defers_reclamation, epoch_pin, no_pin>;
  using keys = key_codec<Key>;
  using node = btree_node<Sync>;
  using leaf = Leaf;
  using inner = typename inner_node_of<Key, Sync, Shape>::type;
  using inner_key = typename inner::key_type;  // a separator outside of nodes
  explicit btree_inner(const memory_options& options = {}) noexcept : memory_(options) {}

  using node_lock = typename Sync::node_lock;
  using token = typename node_lock::token;
  using key_slot = typename keys::slot;
  using search_key = typename keys::search_key;
  static constexpr bool racing = Sync::readers_race;

  // A leaf is sparse, and worth merging, at a third of its slots. The merged leaf keeps room for a
  // few inserts, so that it does not split again at once. Both bounds are chosen.
  static constexpr unsigned leaf_sparse = leaf::capacity / 3;
  static constexpr unsigned leaf_merged_max = leaf::capacity * 5 / 6;

  // The position of a descent: a node, its parent, and the versions of both under which the parent
  // pointed at the node.
  struct position {
    node_lock* parent_lock;  // of the parent, or root_lock_
    token parent_seen;
    inner* parent;   // null at the root
    unsigned index;  // which child of the parent
    node* at;
    token seen;

    inner& as_inner() const noexcept { return *static_cast<inner*>(at); }
    leaf& as_leaf() const noexcept { return *static_cast<leaf*>(at); }
    bool still_valid() const noexcept { return at->lock.validate(seen); }
    bool try_lock_parent_and_node() noexcept;
    void unlock_both() noexcept;
    void unlock_both_unchanged() noexcept;
  };

  // Steps down and sideways. Each returns false when a node on which it depends has changed. The
  // approach functions only find the node. enter() reads it, and should run when the node's memory
  // has had time to arrive.
  [[gnu::always_inline]] bool enter(position& p) const noexcept;
  // The same for the leaf to which a request for one key comes. Where the leaf locks keys apart,
  // p.seen becomes the version of the key's lock.
  [[gnu::always_inline]] bool enter_leaf_for(const search_key& key, position& p) const noexcept {
    p.seen = lock_in_leaf(p.as_leaf(), key).read();
    return p.parent_lock->validate(p.parent_seen) && !p.seen.is_obsolete();
  }
  // The lock whose version a request for one key validates.
  static node_lock& lock_in_leaf(const leaf& l, [[maybe_unused]] const search_key& key) noexcept {
    if constexpr (locks_keys_apart<leaf, search_key>) {
      return l.lock_of(key);
    } else {
      return l.lock;
    }
  }
  bool approach_root(position& p) const noexcept;
  [[gnu::always_inline]] bool approach_child(position& p, unsigned index) const noexcept;
  bool approach_child_for(const search_key& key, position& p, unsigned count) const noexcept;
  [[gnu::always_inline]] bool approach_sibling(position& p, unsigned index) const noexcept;
  [[gnu::always_inline]] bool enter_root(position& p) const noexcept;
  bool enter_child(position& p, unsigned index) const noexcept;
  [[gnu::always_inline]] bool enter_child_for(const search_key& key, position& p,
                                              unsigned count) const noexcept;
  bool enter_sibling(position& p, unsigned index) const noexcept;
  bool descend_to_leaf(const search_key& key, position& p) const noexcept;
  // The same, for integer keys. Also narrows `stretch` to the key range of the leaf.
  bool descend_to_leaf(const search_key& key, position& p, key_range<Key>& stretch) const noexcept;
  // Prefetches the leaf, or what a look-up of the key reads of it.
  [[gnu::always_inline]] static void prefetch_leaf_for(const search_key& key,
                                                       const node* at) noexcept {
    if constexpr (fetches_leaf_by_key<leaf, search_key>) {
      leaf::prefetch_for(static_cast<const leaf*>(at), key);
    } else {
      prefetch_bytes<sizeof(leaf)>(at);
    }
  }
  // The same for the child that approach_child_for() has found.
  [[gnu::always_inline]] static void prefetch_child_for(const search_key& key,
                                                        const position& p) noexcept {
    if (p.parent->level == 1) {
      prefetch_leaf_for(key, p.at);
    } else {
      prefetch_bytes<inner::bytes_for_look_up>(p.at);
    }
  }
  [[gnu::always_inline]] bool fetch_and_enter(position& p) const noexcept {
    if (p.parent->level == 1) {
      prefetch_bytes<sizeof(leaf)>(p.at);
    } else {
      prefetch_bytes<inner::bytes_for_look_up>(p.at);
    }
    return enter(p);
  }
  // Looks up `many` keys in groups. A group descends one level at a time: while one look-up waits
  // for a node's memory, others search their nodes.
  //   key_at(i)                            returns the i-th search key
  //   read(i, search_key, position, slot)  looks into the leaf (in `slot` first, unless it is
  //                                        no_slot) and returns whether it has found an answer. It
  //                                        may change the leaf
  //   otherwise(i)                         is called for look-ups without an answer, when nothing
  //                                        is pinned
  // An integer key that occurs twice is answered in the order of its occurrences.
  // Changes: the leaf is prefetched for a change.
  template <bool Changes = false, class KeyAt, class Read, class Otherwise>
  void look_up_together(std::size_t many, KeyAt&& key_at, Read&& read, Otherwise&& otherwise) const;
  // For a full leaf, which may give records to a sibling, or a sparse one.
  void prefetch_siblings(const position& p) const noexcept {
    if (p.parent == nullptr) return;
    position sibling = p;
    if (p.index < p.parent->count() && approach_sibling(sibling, p.index + 1))
      prefetch_bytes_for_later<sizeof(leaf)>(sibling.at);
    if (p.index > 0 && approach_sibling(sibling, p.index - 1))
      prefetch_bytes_for_later<sizeof(leaf)>(sibling.at);
  }
  // The size of a group. Measured (docs/PERFORMANCE.md).
  static constexpr unsigned look_ups_at_once = 16;
  using few_keys = std::uint32_t;  // a bit for each
  // Whether one of these keys is `key`.
  static bool is_among(std::span<const search_key> all, few_keys which,
                       const search_key& key) noexcept {
    for (; which != 0; which &= which - 1) {
      if (all[static_cast<unsigned>(std::countr_zero(which))] == key) return true;
    }
    return false;
  }
  static_assert(look_ups_at_once < 32);
  few_keys descend_to_leaves(std::span<const search_key> wanted,
                             position* positions) const noexcept;
  // Zero: the leaf knows which of its bytes.
  static constexpr std::size_t bytes_of_leaf_for_look_up = [] {
    if constexpr (fetches_leaf_by_key<leaf, search_key>) {
      return std::size_t{0};
    } else {
      return std::size_t{leaf::bytes_for_look_up};
    }
  }();
  template <std::size_t Bytes>
  bool step_down(const search_key& key, position& p) const noexcept;

  // Sets `result` to the number of the node's keys that are less than `key` (OrEqual: or equal to
  // it). Returns false when torn. A search key with a rank() of its own searches the node itself
  // (papers/karnagel/delta_index_node.hpp).
  template <bool OrEqual, class Node, class StillValid>
  static bool rank_in_node(const Node& n, unsigned count, const search_key& key,
                           StillValid&& still_valid, unsigned& result) noexcept;

  // Descends to the leaf for the key. Splits a full inner node on the way, or merges a sparse one.
  template <class Operation>
  op_status descend_splitting(const search_key& key, position& p, Operation& op) noexcept;
  template <class Operation>
  op_status descend_merging(const search_key& key, position& p, Operation& op) noexcept;

  // The search key of a key that lies in a node.
  static search_key search_key_of_slot(const key_slot& s) noexcept {
    return keys::search_key_of_slot(s);
  }
  static search_key search_key_of_slot(const slotted_key& k) noexcept
    requires(keys::has_prefixes)
  {
    return k.search_key();
  }

  template <class Operation>
  [[gnu::noinline]] op_status split_inner(position& p, Operation& op) noexcept;
  template <class Operation>
  void link_right_half(position& p, const inner_key& separator, node* right,
                       Operation& op) noexcept;
  bool lock_parent_of_locked(position& p, unsigned more, const node* right = nullptr) noexcept;
  using side = internal::side;
  enum class if_full : std::uint8_t { leave, redistribute };
  op_status find_sibling(const position& p, side where, position& left,
                         position& right) const noexcept;
  template <class Operation>
  op_status merge_inner(position& p, Operation& op) noexcept;
  template <class Operation>
  op_status merge_inner(position& p, side where, if_full otherwise, Operation& op) noexcept;
  template <side Receiver, class Operation>
  op_status redistribute_children(position& left, inner& right, Operation& op) noexcept;
  template <class Operation>
  static bool take_up(inner_key& separator, const inner* parent, Operation& op) noexcept;
  template <class Operation>
  op_status collapse_root(position& p, Operation& op) noexcept;

  // Returns at most `wanted` keys that divide the tree into parts with about as many inner nodes or
  // leaves each, in order. region(body) runs a region that only reads. Not a snapshot.
  using owned_key = typename owned_key_of<keys>::type;
  template <class Region>
  std::vector<owned_key> separators_of_nodes(std::size_t wanted, Region&& region) const;
  template <class Region>
  std::vector<owned_key> separators_down_to(unsigned lowest, Region&& region) const;
  // Leaves at most `wanted` of them, evenly.
  static void thin_out(std::vector<owned_key>& all, std::size_t wanted) {
    if (all.size() <= wanted) return;
    for (std::size_t i = 0; i < wanted; ++i) {
      const std::size_t from = (i + 1) * (all.size() + 1) / (wanted + 1) - 1;
      if (from != i) all[i] = std::move(all[from]);
    }
    all.resize(wanted);
  }

  // Runs attempt(), which runs a region, until the operation is done. Between attempts it obtains
  // the memory that the operation wants, and retires what the operation has unlinked.
  template <class Operation, class Attempt>
  op_status run_changing(Operation& op, Attempt&& attempt);

  // Provides nodes for so many keys, inserted in random order. Throws std::bad_alloc.
  void reserve_nodes(std::size_t many) {
    // Chosen: for 10 M keys of 64 bits these nodes take 19.3 bytes a key. A map without reserve()
    // takes 19.5 after as many random insertions.
    std::size_t percent = 83;
    if constexpr (requires { leaf::usual_percent; }) percent = leaf::usual_percent;
    const std::size_t leaves = many / std::max<std::size_t>(1, leaf::capacity * percent / 100) + 1;
    leaf_pool_.reserve(leaves);
    const std::size_t of_a_node = std::max(2U, inner::capacity * 70 / 100);
    // The levels above the lowest one are a geometric series.
    inner_pool_.reserve(leaves / (of_a_node - 1) + 1);
  }

  std::size_t node_bytes_reserved() const noexcept {
    return leaf_pool_.reserved_bytes() + inner_pool_.reserved_bytes() + restarts_.memory_bytes() +
           splits_.memory_bytes() + merges_.memory_bytes() + redistributions_.memory_bytes();
  }
  btree_stats node_stats() const noexcept;

  [[no_unique_address]] mutable Sync sync_;
  [[no_unique_address]] mutable node_lock root_lock_;
  field<node*> root_;
  mutable memory_source memory_;
  block_pool leaf_pool_{sizeof(leaf), "leaf", leaf::head_bytes, memory_};
  block_pool inner_pool_{sizeof(inner), "inner", sizeof(node), memory_};
  // On a cache line of their own. No thread writes the root's line except to replace the root.
  alignas(64) mutable rare_counter restarts_;
  rare_counter splits_;
  rare_counter merges_;
  rare_counter redistributions_;
};

template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
inline bool btree_inner<Key, Sync, Shape, Leaf, DefersReclamation>::enter(
    position& p) const noexcept {
  p.seen = p.at->lock.read();
  // The node's version was read while the parent still pointed at the node. So the node is the
  // right one at that version.
  return p.parent_lock->validate(p.parent_seen) && !p.seen.is_obsolete();
}

template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
bool btree_inner<Key, Sync, Shape, Leaf, DefersReclamation>::approach_root(
    position& p) const noexcept {
  p.parent_lock = &root_lock_;
  p.parent = nullptr;
  p.index = 0;
  p.parent_seen = root_lock_.read();
  p.at = root_.template load<racing>();
  return root_lock_.validate(p.parent_seen);
}

template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
inline bool btree_inner<Key, Sync, Shape, Leaf, DefersReclamation>::enter_root(
    position& p) const noexcept {
  return approach_root(p) && enter(p);
}

template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
inline bool btree_inner<Key, Sync, Shape, Leaf, DefersReclamation>::approach_child(
    position& p, unsigned index) const noexcept {
  p.parent = &p.as_inner();
  p.parent_lock = &p.parent->lock;
  p.parent_seen = p.seen;
  return approach_sibling(p, index);
}

template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
inline bool btree_inner<Key, Sync, Shape, Leaf, DefersReclamation>::approach_sibling(
    position& p, unsigned index) const noexcept {
  p.index = index;
  p.at = p.parent->child(index);
  // An address may be followed only when it is known to be the address of a child of the parent.
  if (!p.parent_lock->validate(p.parent_seen)) return false;
  return true;
}

template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
bool btree_inner<Key, Sync, Shape, Leaf, DefersReclamation>::enter_child(
    position& p, unsigned index) const noexcept {
  if (!approach_child(p, index)) return false;
  return fetch_and_enter(p);
}

template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
bool btree_inner<Key, Sync, Shape, Leaf, DefersReclamation>::enter_sibling(
    position& p, unsigned index) const noexcept {
  if (!approach_sibling(p, index)) return false;
  return fetch_and_enter(p);
}

template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
bool btree_inner<Key, Sync, Shape, Leaf, DefersReclamation>::approach_child_for(
    const search_key& key, position& p, unsigned count) const noexcept {
  unsigned index = 0;
  return rank_in_node<true>(
             p.as_inner(), count, key, [&] { return p.still_valid(); }, index) &&
         approach_child(p, index);
}

template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
inline bool btree_inner<Key, Sync, Shape, Leaf, DefersReclamation>::enter_child_for(
    const search_key& key, position& p, unsigned count) const noexcept {
  if (!approach_child_for(key, p, count)) return false;
  prefetch_child_for(key, p);
  return enter(p);
}

template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
bool btree_inner<Key, Sync, Shape, Leaf, DefersReclamation>::descend_to_leaf(
    const search_key& key, position& p) const noexcept {
  if (!enter_root(p)) return false;
  // Counts the levels, because a leaf's level is on a line that the request may not need.
  for (unsigned level = p.at->level; level > 0; --level) {
    if (!approach_child_for(key, p, p.as_inner().count())) return false;
    prefetch_child_for(key, p);
    if (level > 1 && !enter(p)) return false;
  }
  return enter_leaf_for(key, p);
}

// A node's keys change only with its version. So the bounds read on the way hold at the moment at
// which the leaf's version is read.
template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
bool btree_inner<Key, Sync, Shape, Leaf, DefersReclamation>::descend_to_leaf(
    const search_key& key, position& p, key_range<Key>& stretch) const noexcept {
  if (!enter_root(p)) return false;
  while (!p.at->is_leaf()) {
    const inner& from = p.as_inner();
    const unsigned count = from.count();
    unsigned index = 0;
    if (!rank_in_node<true>(from, count, key, [] { return true; }, index)) return false;
    if (index > 0) stretch.lowest = from.key(index - 1);
    if (index < count) stretch.highest = key_before(from.key(index));
    if (!enter_child(p, index)) return false;
  }
  return true;
}

template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
template <std::size_t Bytes>
bool btree_inner<Key, Sync, Shape, Leaf, DefersReclamation>::step_down(const search_key& key,
                                                                       position& p) const noexcept {
  if (p.parent != nullptr && !enter(p)) return false;  // enter_root() has entered the root
  if (!approach_child_for(key, p, p.as_inner().count())) return false;
  if constexpr (Bytes == 0) {
    prefetch_leaf_for(key, p.at);
  } else {
    prefetch_bytes<Bytes>(p.at);
  }
  return true;
}

// Descends until the leaves are prefetched. Returns the keys for which it did.
template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
auto btree_inner<Key, Sync, Shape, Leaf, DefersReclamation>::descend_to_leaves(
    std::span<const search_key> wanted, position* positions) const noexcept -> few_keys {
  position root;
  if (!enter_root(root)) return 0;
  const auto many = static_cast<unsigned>(wanted.size());
  for (unsigned i = 0; i < many; ++i) positions[i] = root;
  few_keys on_their_way = (few_keys{1} << many) - 1;
  for (unsigned level = root.at->level; level > 0; --level) {
    for (unsigned i = 0; i < many; ++i) {
      if ((on_their_way >> i & 1U) == 0) continue;
      const bool descends_further =
          level == 1 ? step_down<bytes_of_leaf_for_look_up>(wanted[i], positions[i])
                     : step_down<inner::bytes_for_look_up>(wanted[i], positions[i]);
      if (!descends_further) on_their_way &= ~(few_keys{1} << i);
    }
  }
  return on_their_way;
}

template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
template <bool Changes, class KeyAt, class Read, class Otherwise>
void btree_inner<Key, Sync, Shape, Leaf, DefersReclamation>::look_up_together(
    std::size_t many, KeyAt&& key_at, Read&& read, Otherwise&& otherwise) const {
  for (std::size_t first = 0; first < many; first += look_ups_at_once) {
    const auto together =
        static_cast<unsigned>(std::min<std::size_t>(many - first, look_ups_at_once));
    few_keys answered = 0;
    if constexpr (racing) {
      std::array<search_key, look_ups_at_once> search_keys;
      for (unsigned i = 0; i < together; ++i) search_keys[i] = key_at(first + i);
      std::array<position, look_ups_at_once> positions;
      std::array<unsigned, look_ups_at_once> slots;
      [[maybe_unused]] const pin pinned;
      few_keys arrived =
          descend_to_leaves(std::span(search_keys).first(together), positions.data());
      for (unsigned i = 0; i < together; ++i) {
        if ((arrived >> i & 1U) == 0) continue;
        position& p = positions[i];
        if (!enter_leaf_for(search_keys[i], p)) {
          arrived &= ~(few_keys{1} << i);
        } else {
          if constexpr (Changes) p.as_leaf().approach_free_slot();
          slots[i] = p.as_leaf().approach(search_keys[i]);
        }
      }
      for (unsigned i = 0; i < together; ++i) {
        if ((arrived >> i & 1U) == 0) continue;
        if constexpr (std::integral<search_key>) {
          const few_keys without_answer = ~answered & ((few_keys{1} << i) - 1);
          if (without_answer != 0 && is_among(search_keys, without_answer, search_keys[i]))
            continue;
        }
        if (read(first + i, search_keys[i], positions[i], slots[i])) answered |= few_keys{1} << i;
      }
    }
    for (unsigned i = 0; i < together; ++i) {
      if ((answered >> i & 1U) == 0) otherwise(first + i);
    }
  }
}

template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
template <bool OrEqual, class Node, class StillValid>
bool btree_inner<Key, Sync, Shape, Leaf, DefersReclamation>::rank_in_node(
    const Node& n, unsigned count, const search_key& key, [[maybe_unused]] StillValid&& still_valid,
    unsigned& result) noexcept {
  if constexpr (requires { key.template rank<OrEqual>(n, count, still_valid, result); }) {
    return key.template rank<OrEqual>(n, count, still_valid, result);
  } else if constexpr (keys::compares_in_place) {
    if constexpr (requires { n.template rank<OrEqual>(count, key); }) {
      result = n.template rank<OrEqual>(count, key);
    } else {
      result = branchless_lower_bound<OrEqual>([&](unsigned i) { return n.key(i); }, count, key);
    }
    return true;
  } else {
    bool exact = false;
    if constexpr (requires { n.prefix.get(); }) {
      return rank_by_heads<OrEqual>(n, count, key, still_valid, result, exact);
    } else {
      return n.template rank<OrEqual>(count, key, still_valid, result, exact);
    }
  }
}

template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
bool btree_inner<Key, Sync, Shape, Leaf,
                 DefersReclamation>::position::try_lock_parent_and_node() noexcept {
  if (!parent_lock->try_upgrade(parent_seen)) return false;
  if (at->lock.try_upgrade(seen)) return true;
  parent_lock->unlock_unchanged(parent_seen);
  return false;
}

template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
void btree_inner<Key, Sync, Shape, Leaf, DefersReclamation>::position::unlock_both() noexcept {
  at->lock.unlock();
  parent_lock->unlock();
}

template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
void btree_inner<Key, Sync, Shape, Leaf,
                 DefersReclamation>::position::unlock_both_unchanged() noexcept {
  at->lock.unlock_unchanged(seen);
  parent_lock->unlock_unchanged(parent_seen);
}

template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
template <class Operation, class Attempt>
auto btree_inner<Key, Sync, Shape, Leaf, DefersReclamation>::run_changing(Operation& op,
                                                                          Attempt&& attempt)
    -> op_status {
  for (backoff wait;;) {
    op_status s;
    {
      [[maybe_unused]] const pin pinned;
      s = attempt();
    }
    op.settle();
    switch (s) {
      case op_status::restart:
        restarts_.add(1);
        wait.once();
        break;
      case op_status::restructured:
        break;
      case op_status::need_memory:
        op.provide();
        break;
      default:
        return s;
    }
  }
}

template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
template <class Region>
auto btree_inner<Key, Sync, Shape, Leaf, DefersReclamation>::separators_of_nodes(
    std::size_t wanted, Region&& region) const -> std::vector<owned_key> {
  constexpr std::size_t enough = 4;  // chosen: parts then differ by a quarter
  unsigned root_level = 0;
  while (region([&] {
           position p;
           if (!enter_root(p)) return op_status::restart;
           root_level = p.at->level;
           return op_status::yes;
         }) != op_status::yes) {
  }
  std::vector<owned_key> all;
  for (unsigned level = root_level; level > 0; --level) {
    all = separators_down_to(level, region);
    if (all.size() / enough >= wanted) break;
  }
  return all;
}

template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
template <class Region>
auto btree_inner<Key, Sync, Shape, Leaf, DefersReclamation>::separators_down_to(
    unsigned lowest, Region&& region) const -> std::vector<owned_key> {
  std::vector<owned_key> all;
  const auto add = [&](const inner_key& k) {
    owned_key key = inner::owned(k);
    if (all.empty() || all.back() < key) all.push_back(std::move(key));
  };
  std::vector<inner_key> in_node(inner::capacity);
  std::optional<owned_key> begin;
  for (backoff wait;;) {
    [[maybe_unused]] const epoch_pin pinned;
    unsigned count = 0;
    std::optional<inner_key> fence;
    const op_status s = region([&] {
      count = 0;
      fence.reset();
      position p;
      if (!enter_root(p)) return op_status::restart;
      while (p.at->level > lowest) {
        const inner& in = p.as_inner();
        const unsigned many = in.count();
        unsigned index = 0;
        if (begin &&
            !rank_in_node<true>(
                in, many, keys::search_key_of(*begin), [&] { return p.still_valid(); }, index)) {
          return op_status::restart;
        }
        if (index < many) fence.emplace(in.key(index));
        // This validates `in` after the reading of the fence.
        if (!enter_child(p, index)) return op_status::restart;
      }
      if (p.at->level != lowest) return op_status::no;  // the tree has lost this level
      const inner& last = p.as_inner();
      count = last.count();
      for (unsigned i = 0; i < count; ++i) in_node[i] = last.key(i);
      return p.still_valid() ? op_status::yes : op_status::restart;
    });
    if (s == op_status::restart) {
      wait.once();
      continue;
    }
    for (unsigned i = 0; i < count; ++i) add(in_node[i]);
    if (!fence) return all;
    add(*fence);
    begin = all.back();
  }
}

template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
template <class Operation>
auto btree_inner<Key, Sync, Shape, Leaf, DefersReclamation>::descend_splitting(
    const search_key& key, position& p, Operation& op) noexcept -> op_status {
  if (!enter_root(p)) return op_status::restart;
  while (!p.at->is_leaf()) {
    const unsigned count = p.as_inner().count();
    if (p.as_inner().is_full(count)) return split_inner(p, op);
    if (!enter_child_for(key, p, count)) return op_status::restart;
  }
  return op_status::yes;
}

template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
template <class Operation>
auto btree_inner<Key, Sync, Shape, Leaf, DefersReclamation>::descend_merging(const search_key& key,
                                                                             position& p,
                                                                             Operation& op) noexcept
    -> op_status {
  if (!enter_root(p)) return op_status::restart;
  while (!p.at->is_leaf()) {
    const unsigned count = p.as_inner().count();
    if (p.parent == nullptr && count == 0) return collapse_root(p, op);
    if (op.makes_room_above() && p.as_inner().is_full(count)) return split_inner(p, op);
    if (p.parent != nullptr && p.as_inner().is_sparse(count)) {
      const op_status s = merge_inner(p, op);
      if (s != op_status::no) return s;
    }
    if (!enter_child_for(key, p, count)) return op_status::restart;
  }
  return op_status::yes;
}

template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
template <class Operation>
auto btree_inner<Key, Sync, Shape, Leaf, DefersReclamation>::split_inner(position& p,
                                                                         Operation& op) noexcept
    -> op_status {
  if (!op.has_nodes(false, p.parent == nullptr ? 2 : 1)) return op_status::need_memory;
  if (!p.try_lock_parent_and_node()) return op_status::restart;
  inner& left = p.as_inner();
  const unsigned middle = left.middle();
  inner_key separator = left.key(middle);
  if (!take_up(separator, p.parent, op)) {
    p.unlock_both_unchanged();
    return op_status::need_memory;
  }
  inner* const right = op.take_inner(left.level);
  right->copy_prefix(left);
  left.split(middle, *right);
  lengthen_prefixes(left, *right, p.parent, p.index, separator);
  link_right_half(p, separator, right, op);
  p.unlock_both();
  op.note_split();
  return op_status::restructured;
}

// Prepares a key of a node for the parent of that node (null: for a new root). A key that is too
// long there gets a blob, for which there may be no memory yet.
template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
template <class Operation>
bool btree_inner<Key, Sync, Shape, Leaf, DefersReclamation>::take_up(inner_key& separator,
                                                                     const inner* parent,
                                                                     Operation& op) noexcept {
  if constexpr (keys::has_prefixes) {
    if (separator.outside() != nullptr) return true;
    const std::size_t bytes = inner::blob_bytes(separator.view(), parent);
    if (bytes == 0) return true;
    if (!op.has_separator(bytes)) return false;
    separator = op.template take_separator<inner>(separator.view(), bytes);
  }
  return true;
}

// The parent has room, because a descent splits a full inner node before it looks below it.
// lock_parent_of_locked() also checks for room.
template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
template <class Operation>
void btree_inner<Key, Sync, Shape, Leaf, DefersReclamation>::link_right_half(
    position& p, const inner_key& separator, node* right, Operation& op) noexcept {
  if (p.parent != nullptr) {
    p.parent->insert(p.index, separator, right);
    return;
  }
  inner* const root = op.take_inner(p.at->level + 1u);
  root->set_child(0, p.at);
  root->insert(0, separator, right);
  root_.template store<racing>(root);
}

// Locks the parent of a node that the caller has locked. The parent comes last and is held briefly,
// because every descent to a node below it waits. The parent may have changed since the caller's
// descent. p.index becomes the node's index now. Returns false, with nothing locked, in three
// cases. The parent may not be the node's parent any more, may have no room for `more` children, or
// `right` may not be the node's sibling there. Waiting for the parent is safe with a leaf's lock
// held, because the holder of an inner node's lock waits for no leaf's lock.
template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
bool btree_inner<Key, Sync, Shape, Leaf, DefersReclamation>::lock_parent_of_locked(
    position& p, unsigned more, const node* right) noexcept {
  p.parent_seen = p.parent_lock->lock();
  if (p.parent == nullptr) {
    if (root_.template load<racing>() == p.at) return true;
  } else if (!p.parent_seen.is_obsolete()) {
    const unsigned count = p.parent->count();
    // Mostly the node has the same index as before.
    unsigned index = p.index <= count && p.parent->child(p.index) == p.at ? p.index : 0;
    while (index < count && p.parent->child(index) != p.at) ++index;
    const bool right_too =
        right == nullptr || (index < count && p.parent->child(index + 1) == right);
    if (p.parent->child(index) == p.at && right_too && count + more <= inner::capacity) {
      p.index = index;
      return true;
    }
  }
  p.parent_lock->unlock_unchanged(p.parent_seen);
  return false;
}

// Finds the node's sibling on one side. No: there is no sibling. Restart: the parent has changed.
template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
auto btree_inner<Key, Sync, Shape, Leaf, DefersReclamation>::find_sibling(
    const position& p, side where, position& left, position& right) const noexcept -> op_status {
  const bool there = where == side::left ? p.index > 0 : p.index < p.parent->count();
  if (!there) return p.parent_lock->validate(p.parent_seen) ? op_status::no : op_status::restart;
  left = right = p;
  const bool entered =
      where == side::left ? enter_sibling(left, p.index - 1) : enter_sibling(right, p.index + 1);
  return entered ? op_status::yes : op_status::restart;
}

template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
template <class Operation>
auto btree_inner<Key, Sync, Shape, Leaf, DefersReclamation>::merge_inner(position& p,
                                                                         Operation& op) noexcept
    -> op_status {
  for (const if_full otherwise : {if_full::leave, if_full::redistribute}) {
    // Redistribution makes sense only for a node with a single child: if that child is a leaf, the
    // leaf has no sibling.
    if (otherwise == if_full::redistribute && p.at->count() != 0) break;
    for (const side where : {side::left, side::right}) {
      if (const op_status s = merge_inner(p, where, otherwise, op); s != op_status::no) return s;
    }
  }
  return op_status::no;
}

template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
template <class Operation>
auto btree_inner<Key, Sync, Shape, Leaf, DefersReclamation>::merge_inner(position& p, side where,
                                                                         if_full otherwise,
                                                                         Operation& op) noexcept
    -> op_status {
  position left;
  position right;
  if (const op_status s = find_sibling(p, where, left, right); s != op_status::yes) return s;
  inner& l = left.as_inner();
  inner& r = right.as_inner();
  // Whether they fit is read without locks. The upgrades validate it.
  const bool fits = inner::fit_together(l, r, *left.parent, left.index);
  if (!fits && otherwise == if_full::leave) return op_status::no;
  if (fits && !op.may_retire()) return op_status::need_memory;
  if (!left.try_lock_parent_and_node()) return op_status::restart;
  if (!r.lock.try_upgrade(right.seen)) {
    left.unlock_both_unchanged();
    return op_status::restart;
  }
  if (!fits) {
    const op_status s = l.count() == 0 ? redistribute_children<side::left>(left, r, op)
                                       : redistribute_children<side::right>(left, r, op);
    if (s != op_status::yes) {
      r.lock.unlock_unchanged(right.seen);
      left.unlock_both_unchanged();
      return s;
    }
    r.lock.unlock();
  } else {
    const inner_key between = left.parent->key(left.index);
    l.share_prefix(r, between, *left.parent);
    l.append(between, r, r.count() + 1);
    left.parent->erase(left.index);
    op.retire_inner(&r);
    r.lock.unlock_obsolete();
    op.note_merge();
  }
  left.unlock_both();
  return op_status::restructured;
}

// Redistributes the children of a node that has a single one, the receiver, and of its full
// sibling. Returns another status than yes, with nothing changed, if the new separator needs memory
// or more room in the parent. In the second case the operation's next descent splits full nodes.
template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
template <side Receiver, class Operation>
auto btree_inner<Key, Sync, Shape, Leaf, DefersReclamation>::redistribute_children(
    position& left_at, inner& right, Operation& op) noexcept -> op_status {
  inner& left = left_at.as_inner();
  inner& parent = *left_at.parent;
  inner& receiver = Receiver == side::left ? left : right;
  inner& giver = Receiver == side::left ? right : left;
  const inner_key between = parent.key(left_at.index);
  const unsigned middle = giver.template middle_for<Receiver>(receiver, between, parent);
  inner_key separator = giver.key(middle);
  if constexpr (keys::has_prefixes) {
    // A descent that splits full nodes leaves room in the parent.
    if (!op.makes_room_above() && !parent.can_replace()) {
      op.make_room_above();
      return op_status::restructured;
    }
  }
  if (!take_up(separator, &parent, op)) return op_status::need_memory;
  receiver.share_prefix(giver, between, parent);
  if constexpr (Receiver == side::left) {
    left.append(between, right, middle + 1);
    right.drop_front(middle + 1);
  } else {
    node* const last = right.child(0);
    left.split(middle, right);
    right.insert(right.count(), between, last);
  }
  parent.set_key(left_at.index, separator);
  return op_status::yes;
}

template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
template <class Operation>
auto btree_inner<Key, Sync, Shape, Leaf, DefersReclamation>::collapse_root(position& p,
                                                                           Operation& op) noexcept
    -> op_status {
  if (!op.may_retire()) return op_status::need_memory;
  if (!p.try_lock_parent_and_node()) return op_status::restart;
  inner& old = p.as_inner();
  root_.template store<racing>(old.child(0));
  op.retire_inner(&old);
  old.lock.unlock_obsolete();
  p.parent_lock->unlock();
  return op_status::restructured;
}

template <class Key, class Sync, class Shape, class Leaf, bool DefersReclamation>
btree_stats btree_inner<Key, Sync, Shape, Leaf, DefersReclamation>::node_stats() const noexcept {
  btree_stats s;
  s.restarts = restarts_.sum();
  s.splits = splits_.sum();
  s.merges = merges_.sum();
  s.redistributions = redistributions_.sum();
  s.leaves = leaf_pool_.blocks_in_use();
  s.inner_nodes = inner_pool_.blocks_in_use();
  return s;
}

}  // namespace elidex::internal
