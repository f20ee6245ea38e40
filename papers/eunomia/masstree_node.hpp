// The nodes of Masstree: leaves (the paper's border nodes), whose keys are found by way of a
// permutation, and inner nodes.
//
// What protects what
//   * A node's keys, children, values, permutation and `next` are changed by the holder of its
//     lock.
//   * A node's parent pointer belongs to the parent's lock, a leaf's `prev` to the lock of the leaf
//     that it points to.
//   * A leaf's `low` never changes: every key that was ever in it, or will be, is not less.
//   * An inner node's key i is the `low` of the leftmost leaf below child i + 1.
//
// Readers follow pointers before they know whether the node that held them has changed. So pointers
// are stored with release and loaded with acquire order. So a reader that follows a pointer finds
// the node as complete as it was when it was linked. And an inner node's count is loaded before the
// child, the same way: the child is then one that was there at that moment or later, and so cannot
// be reused while the reader is pinned.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "elidex/internal/sync/version_lock.hpp"
#include "elidex/internal/tree/key_search.hpp"
#include "papers/eunomia/masstree_version.hpp"

namespace elidex::papers {

using namespace internal;

// Which slots of a leaf are in use, and in which order: one word, so that one store of it inserts
// or removes a key. From the bottom: 4 bits count, then 4 bits for each slot, those in use in the
// order of their keys, then the free ones.
template <unsigned Width>
class permutation {
  static_assert(Width >= 1 && Width <= 15);
  using word_type = std::uint64_t;

 public:
  constexpr explicit permutation(word_type word) noexcept : word_(word) {}
  // The slots 0 to `count` - 1, in this order.
  static constexpr permutation first_slots(unsigned count) noexcept {
    word_type word = count;
    for (unsigned i = 0; i < Width; ++i) word |= word_type{i} << (4 * i + 4);
    return permutation(word);
  }

  constexpr word_type word() const noexcept { return word_; }
  constexpr unsigned count() const noexcept { return word_ & 15u; }
  // Of the key at `position`; position count() is the slot that insert() would take.
  constexpr unsigned slot(unsigned position) const noexcept {
    return word_ >> (4 * position + 4) & 15u;
  }

  // With the first free slot put at `position`.
  constexpr permutation inserted(unsigned position) const noexcept {
    const unsigned n = count();
    const word_type order = word_ >> 4;
    const word_type moved = order & below(n) & ~below(position);
    return made((order & below(position)) | word_type{slot(n)} << (4 * position) | moved << 4 |
                    (order & ~below(n + 1)),
                n + 1);
  }
  // With the slot at `position` made the last of the free ones: until all others are taken, readers
  // may still look at it.
  constexpr permutation removed(unsigned position) const noexcept {
    const word_type order = word_ >> 4;
    return made((order & below(position)) | (order >> 4 & ~below(position)) |
                    word_type{slot(position)} << (4 * (Width - 1)),
                count() - 1);
  }
  // With the slots from position `count` on made free.
  constexpr permutation shortened(unsigned count) const noexcept { return made(word_ >> 4, count); }

 private:
  static constexpr word_type below(unsigned position) noexcept {
    return (word_type{1} << (4 * position)) - 1;
  }
  static constexpr permutation made(word_type order, unsigned count) noexcept {
    return permutation(order << 4 | count);
  }

  word_type word_;
};

template <class Sync>
struct masstree_version_of {
  using type = masstree_version<Sync::readers_race>;
};
// A policy may bring its own; that is for tests, which plant bugs in one.
template <class Sync>
  requires requires { typename Sync::masstree_version; }
struct masstree_version_of<Sync> {
  using type = typename Sync::masstree_version;
};

template <class Key, class Sync, unsigned Width>
struct masstree_inner;

template <class Key, class Sync, unsigned Width>
struct masstree_node {
  using version_type = typename masstree_version_of<Sync>::type;
  using inner = masstree_inner<Key, Sync, Width>;
  static constexpr bool racing = Sync::readers_race;

  masstree_node(typename version_type::kind what, typename version_type::state at_first) noexcept
      : version(what, at_first) {}

  // Null at the root. acquire and release: pair with each other.
  inner* parent() const noexcept { return parent_.load(std::memory_order_acquire); }
  void set_parent(inner* p) noexcept { parent_.store(p, std::memory_order_release); }

  mutable version_type version;

 private:
  std::atomic<inner*> parent_{nullptr};
};

template <class Key, class Value, class Sync, unsigned Width>
struct masstree_leaf : masstree_node<Key, Sync, Width> {
  using node = masstree_node<Key, Sync, Width>;
  using order = permutation<Width>;
  using node::racing;
  // A value that one store changes needs no mark.
  static constexpr bool one_word_value =
      sizeof(Value) == 1 || sizeof(Value) == 2 || sizeof(Value) == 4 || sizeof(Value) == 8;

  masstree_leaf(Key low_key, typename node::version_type::state at_first) noexcept
      : node(node::version_type::kind::leaf, at_first), low(low_key) {}

  // acquire and release: pair with each other. A thread that sees a key's place sees
  // the key and the value.
  order permuted() const noexcept { return order(permutation_.load(std::memory_order_acquire)); }
  void permute(order p) noexcept { permutation_.store(p.word(), std::memory_order_release); }
  masstree_leaf* next() const noexcept { return next_.load(std::memory_order_acquire); }
  void set_next(masstree_leaf* l) noexcept { next_.store(l, std::memory_order_release); }
  masstree_leaf* prev() const noexcept { return prev_.load(std::memory_order_acquire); }
  void set_prev(masstree_leaf* l) noexcept { prev_.store(l, std::memory_order_release); }

  Key key(unsigned slot) const noexcept { return keys_[slot].template load<racing>(); }
  Value value(unsigned slot) const noexcept { return values_[slot].template load<racing>(); }

  unsigned rank(order p, Key k) const noexcept {
    return branchless_lower_bound<false>([&](unsigned i) { return key(p.slot(i)); }, p.count(), k);
  }
  bool holds(order p, unsigned position, Key k) const noexcept {
    return position < p.count() && key(p.slot(position)) == k;
  }

  // --- by the holder of the lock ---

  void insert(order p, unsigned position, Key k, const Value& v) noexcept {
    const unsigned slot = p.slot(p.count());
    // A thread with an older permutation may be looking for the key that was here.
    if ((unsigned{stale_slots_} >> slot & 1u) != 0) {
      this->version.mark_inserting();
      // of all slots: a thread that saw one of their keys will see a changed version
      stale_slots_ = 0;
    }
    keys_[slot].template store<racing>(k);
    values_[slot].template store<racing>(v);
    permute(p.inserted(position));
  }

  void overwrite(unsigned slot, const Value& v) noexcept {
    if constexpr (!one_word_value) this->version.mark_inserting();
    values_[slot].template store<racing>(v);
  }

  void remove(order p, unsigned position) noexcept {
    stale_slots_ = static_cast<std::uint16_t>(stale_slots_ | 1u << p.slot(position));
    permute(p.removed(position));
  }

  // Moves the keys from `position` on to a new leaf. The caller has marked a split.
  void move_tail(order p, unsigned position, masstree_leaf& to) noexcept {
    const unsigned moved = p.count() - position;
    for (unsigned i = 0; i < moved; ++i) {
      const unsigned slot = p.slot(position + i);
      to.keys_[i].template store<racing>(keys_[slot].template load<false>());
      to.values_[i].template store<racing>(values_[slot].template load<false>());
    }
    to.permute(order::first_slots(moved));
    permute(p.shortened(position));
    stale_slots_ = 0;
  }

  const Key low;

 private:
  // those free slots whose key was removed since the version last counted
  std::uint16_t stale_slots_ = 0;
  std::atomic<std::uint64_t> permutation_{order::first_slots(0).word()};
  std::atomic<masstree_leaf*> next_{nullptr};
  std::atomic<masstree_leaf*> prev_{nullptr};
  alignas(64) std::array<field<Key>, Width> keys_;
  std::array<field<Value>, Width> values_;

 public:
  static constexpr std::size_t head_bytes = 64;
};

template <class Key, class Sync, unsigned Width>
struct masstree_inner : masstree_node<Key, Sync, Width> {
  using node = masstree_node<Key, Sync, Width>;
  using node::racing;

  explicit masstree_inner(typename node::version_type::state at_first) noexcept
      : node(node::version_type::kind::inner, at_first) {}

  // acquire and release: pair with each other, see above.
  unsigned count() const noexcept { return count_.load(std::memory_order_acquire); }
  bool is_full() const noexcept { return count() == Width; }
  node* child(unsigned i) const noexcept { return children_[i].load(std::memory_order_acquire); }
  Key key(unsigned i) const noexcept { return keys_[i].template load<racing>(); }
  // The child below which `k` is, or belongs.
  unsigned index_of(Key k) const noexcept {
    return branchless_lower_bound<true>([&](unsigned i) { return key(i); }, count(), k);
  }

  // --- by the holder of the lock ---

  void set_key(unsigned i, Key k) noexcept { keys_[i].template store<racing>(k); }

  // Of a new root.
  void set_two_children(node* left, Key k, node* right) noexcept {
    adopt(0, left);
    set_key(0, k);
    adopt(1, right);
    set_count(1);
  }

  // Takes in `right` behind the child whose range it was split off.
  void insert(Key low, node* right) noexcept {
    const unsigned n = count();
    const unsigned position = index_of(low);
    for (unsigned i = n; i > position; --i) {
      set_key(i, key(i - 1));
      set_child(i + 1, child(i));
    }
    set_key(position, low);
    adopt(position + 1, right);
    set_count(n + 1);
  }

  // Likewise when there is no room: the upper half goes to the new node `to`. Returns the key that
  // parts the two.
  Key split_and_insert(Key low, node* right, masstree_inner& to) noexcept {
    const unsigned position = index_of(low);
    constexpr unsigned kept = (Width + 1) / 2;  // keys that stay
    // As if the node had room for one more.
    const auto key_of_all = [&](unsigned i) {
      return i < position ? key(i) : i == position ? low : key(i - 1);
    };
    const auto child_of_all = [&](unsigned i) {
      return i <= position ? child(i) : i == position + 1 ? right : child(i - 1);
    };
    const Key between = key_of_all(kept);
    to.adopt(0, child_of_all(kept + 1));
    for (unsigned i = kept + 1; i <= Width; ++i) {
      to.set_key(i - kept - 1, key_of_all(i));
      to.adopt(i - kept, child_of_all(i + 1));
    }
    to.set_count(Width - kept);
    if (position < kept) {
      for (unsigned i = kept - 1; i > position; --i) {
        set_key(i, key(i - 1));
        set_child(i + 1, child(i));
      }
      set_key(position, low);
      adopt(position + 1, right);
    }
    set_count(kept);
    return between;
  }

  // Takes out child `i`; its range goes to the child before it, or with the first child out of this
  // node. There is another.
  void remove(unsigned i) noexcept {
    const unsigned n = count();
    for (unsigned k = i == 0 ? 1 : i; k < n; ++k) set_key(k - 1, key(k));
    for (unsigned c = i + 1; c <= n; ++c) set_child(c - 1, child(c));
    set_count(n - 1);
  }

 private:
  // release: these pair with the acquire loads of count() and child().
  void set_count(unsigned n) noexcept {
    count_.store(static_cast<std::uint16_t>(n), std::memory_order_release);
  }
  void set_child(unsigned i, node* c) noexcept { children_[i].store(c, std::memory_order_release); }
  void adopt(unsigned i, node* c) noexcept {
    set_child(i, c);
    c->set_parent(this);
  }

  std::atomic<std::uint16_t> count_{0};
  std::array<field<Key>, Width> keys_;
  std::array<std::atomic<node*>, Width + 1> children_{};

 public:
  static constexpr std::size_t head_bytes = sizeof(node) + sizeof(std::uint64_t);
};

}  // namespace elidex::papers
