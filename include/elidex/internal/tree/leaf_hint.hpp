// A leaf that a thread has come to twice in a row, and the keys for which it is the one: the next
// request for such a key skips the way down. Keys that ascend, and hot neighbours, come to the same
// leaf again and again.
//
//   auto& mine = leaf_hint<Key, Leaf>::of_this_thread(tree_id);
//   if (mine.is_for(tree_id, key)) ... mine.leaf(), if its sequence number is still mine.sequence()
//   ...
//   else if (mine.came_again(tree_id, leaf)) mine.remember(...);
//
// Why the leaf is still the right one if its sequence number is the remembered one. The number
// changes whenever the stretch of keys for which a leaf is the one changes: in a split, a share and
// a merge, in all leaves that take part, and when a loaded tree takes the place of an empty leaf.
// It never comes twice at one address (region_sequence.hpp). So whoever sees the remembered number
// inside a region, or before a version that is validated afterwards, has the right leaf.
//
// Why the leaf may be touched at all.
//   * The tree is the one that is being used, so it lives: ids never come twice. Its pool keeps all
//     of its memory until it dies, and leaves only ever become leaves again.
//   * Under regions no more is needed for leaves without conflict controls, and only these are
//     remembered there (split_regions.hpp). Where readers race, the thread is pinned before it
//     reads the number, and reads nothing else unless it is the remembered one. A leaf's number
//     changes before the leaf is retired, as if it were unlinked by that: if the pin's fence comes
//     first, epochs keep the leaf; if not, the new number is seen (epoch.hpp). The reading of the
//     number itself is atomic, and so are the writes to it in all of the leaf's lives.
//
// The stretch of keys is read on a way down of its own, when the thread has come to the leaf a
// second time: a request for a random key pays no more than a comparison and a store.
//
// Thread-safety: one thread. A thread remembers one leaf of each of a few trees; where two have the
// same place, the last one has it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace elidex::internal {

// An id that no other tree of the process has or had. Defined in the library, so that trees made by
// different parts of a program differ too.
std::uint64_t new_tree_id() noexcept;

// The keys for which a leaf is the one.
template <class Key>
struct key_range {
  Key lowest;
  Key highest;
};

// Goes round at the type's end: a torn key may be any.
template <class Key>
Key key_before(Key key) noexcept {
  using number = std::make_unsigned_t<Key>;
  return static_cast<Key>(static_cast<number>(static_cast<number>(key) - 1U));
}

template <class Key, class Leaf>
class leaf_hint {
 public:
  static leaf_hint& of_this_thread(std::uint64_t tree) noexcept;

  Leaf* leaf() const noexcept { return leaf_; }
  std::uint64_t sequence() const noexcept { return sequence_; }

  bool is_for(std::uint64_t tree, Key key) const noexcept {
    return tree_ == tree && keys_.lowest <= key && key <= keys_.highest;
  }
  // Whether the last request that had to go down to a leaf came to this one, too.
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
  std::uint64_t tree_ = 0;  // 0: of none
  key_range<Key> keys_{};
  Leaf* leaf_ = nullptr;
  std::uint64_t sequence_ = 0;
  const Leaf* visited_ = nullptr;
  std::uint64_t visited_in_ = 0;
};

// Hidden, because tree numbers are those of one copy of the library: with GCC's default, two
// plug-ins with a copy each would share these leaves and not the numbers.
template <class Key, class Leaf>
[[gnu::visibility("hidden")]] inline thread_local constinit std::array<leaf_hint<Key, Leaf>, 4>
    leaves_of_this_thread{};

template <class Key, class Leaf>
leaf_hint<Key, Leaf>& leaf_hint<Key, Leaf>::of_this_thread(std::uint64_t tree) noexcept {
  auto& all = leaves_of_this_thread<Key, Leaf>;
  return all[tree % all.size()];
}

}  // namespace elidex::internal
