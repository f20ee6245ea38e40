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
// Thread-safety: one thread. A thread remembers one leaf of each of a few trees. Of two trees with
// the same place in its table, the last one has it.
//
// Implementation notes
// Why the leaf is still the right one if its sequence number is the remembered one. The number
// changes whenever the leaf's key range changes. Splits, redistributions and merges change it in
// all leaves that take part. A bulk load changes it in the empty leaf that the loaded tree
// replaces. A number never comes twice at one address (region_sequence.hpp). So a thread has the
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
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace elidex::internal {

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

}  // namespace elidex::internal
