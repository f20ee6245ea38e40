// Masstree for keys of one slice: a B+tree whose readers write nothing and whose leaves are changed
// by single stores.
//
//   masstree<std::uint64_t, std::uint64_t, optimistic> tree;
//   tree.insert(7, 70);
//   tree.update(7, [](std::uint64_t& v) { ++v; });
//   tree.scan(0, 10, [](std::uint64_t key, std::uint64_t value) { ... });
//
// A trie of B+trees, of which keys up to 8 bytes need one layer: that is what paper 003 compares
// Eunomia with. Its HTM-Masstree is this tree under coarse<elided<ttas_lock, dbx_budgets>>: one
// region for each operation, in which the bits of the versions are still written, but no thread
// waits for them.
//
// The protocol, in short. A node has a version word (masstree_version.hpp) of a lock, marks and
// counters. A reader takes a stable version, looks, and compares. Going down, it takes the child's
// version before it compares the node's: so the child was the right one at the version by which it
// will be judged. If the node has changed without losing keys, it looks again there; if it has lost
// keys (vsplit), it begins again at the root. In a leaf, from which keys only go to the right, it
// walks right instead, by next pointers and the leaves' lows. A writer finds the leaf like a
// reader, looks where the key is, locks the leaf, and has the right one unless vsplit has changed
// meanwhile. An insertion writes the key into a free slot and publishes it by one store of the
// permutation; a removal is one store of it, too. Readers need to be warned (a mark) only when a
// slot is used again that one of them may still look at, when a value is wider than a word, and
// when keys or children move.
//
// Invariants
//   * Keys in a node ascend. A node's low is the least key that may lie below it. Key i of an inner
//     node is the low of the leftmost leaf below its child i + 1.
//   * Leaves are linked in both directions, in the order of their keys. A leaf holds keys from its
//     low (which never changes) to the low of the next one, exclusively.
//   * No leaf is empty but the leftmost one, which is never removed. An inner node has at least one
//     child.
//   * A node that can be reached is not deleted; one that has left the tree stays so until its
//     memory is used again, two epochs later (internal/memory/epoch.hpp).
//
// Order of locks: a leaf, then its ancestors upward; each is waited for. A leaf's left neighbour is
// only tried: a thread that fails releases all locks and begins again. Scans that lock wait for
// leaves from left to right, and hold only leaves. No thread that holds an inner node waits for a
// leaf, and no thread that holds a lock waits for a stable version. So there is no cycle.
//
// Splitting and removing reach up as far as they must: all nodes that change are locked first, from
// below; then it is known what memory is needed, and nothing has changed if there is none. Then all
// are marked, then changed, then unlocked: as "inserting" where the range of a node's keys stays as
// it was, else as "splitting". Why a reader that is half the way down misses nothing: let key k
// belong below child c of node n before the change and elsewhere after it, and let the reader have
// gone from n to c. It compared n's version after it had taken c's. If n was not marked by then,
// nor was c unmarked again (nothing is, before all are marked): so c's version was taken before c
// was marked, and will be found changed in vsplit. If n was marked, the comparison failed and the
// reader didn't go.
//
// Removing an empty leaf. Its range goes to the leaf before it, so that no low changes. That leaf
// may be below another inner node; then the separator between the two, in the lowest ancestor that
// both have, becomes the low of what comes behind the removed leaf, and the nodes between that
// ancestor and the leaf have lost a part of their ranges: they are marked as splitting. Inner nodes
// left without children are removed along with the leaf.
//
// Linearization points
//   get, contains     found: the load of the value, if the key was still there, else the removal.
//                     The slot was not used again before the version was compared, so the value is
//                     the key's last. Not found: the load of the permutation
//   insert, erase     the store of the permutation; when a leaf is split or removed: the unlock
//                     that lets readers at it
//   upsert, update    of a key that is there: the store of the value; when it is wider than a word:
//                     the unlock
//   those that change nothing: any moment under the lock scan              masstree_range.hpp An
//   operation that begins after a change has returned must see the change. Readers do not wait for
//   locks, so this needs a fence after the change: make_visible(), and epoch_pin at the beginning
//   of the next operation. The original has no such fence. Under a coarse policy: the acquisition
//   of the lock, or the commit of the transaction.
//
// From: Mao, Kohler, Morris, "Cache craftiness for fast multicore key-value storage", EuroSys 2012,
// sections 4.3 to 4.6; paper 003 sections 6.1 and 6.2. Deviations:
//   * One layer: keys are integers, there are no suffixes.
//   * A split locks all the nodes that it needs before it changes any, instead of hand over hand:
//     memory comes first here.
//   * A root with one child is given up for it, so that a tree that was emptied is one leaf again.
//     Other inner nodes may keep one child for as long as that one lives: nothing is merged.
//   * The left neighbour of a leaf to be removed is locked instead of marked in its next pointer.
//   * Versions count all changes of a leaf, for scans that are snapshots. The paper's scans are
//     not.
//   * Insertions in descending order are not treated specially; ascending ones are.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include "elidex/internal/memory/block_pool.hpp"
#include "elidex/internal/memory/counters.hpp"
#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/memory/memory_name.hpp"
#include "elidex/internal/memory/retire_list.hpp"
#include "elidex/internal/sync/backoff.hpp"
#include "elidex/internal/sync/policies.hpp"
#include "elidex/internal/tree/node_operation.hpp"
#include "elidex/internal/tree/value_change.hpp"
#include "papers/eunomia/masstree_node.hpp"
#include "papers/eunomia/masstree_operation.hpp"
#include "papers/eunomia/masstree_range.hpp"

namespace elidex::papers {

using namespace internal;

// Counts since construction; each exact when no operation runs.
struct masstree_stats {
  std::int64_t restarts = 0;  // looks thrown away because another thread changed a node
  std::int64_t splits = 0;    // of leaves and inner nodes
  std::int64_t removals = 0;  // likewise
  std::size_t leaves = 0;     // nodes in use, retired ones included
  std::size_t inner_nodes = 0;
  std::size_t retired_objects = 0;  // unlinked nodes that wait for their epoch
};

// Width: keys in a node, 3 to 15. The paper's is 15.
//
// Thread-safety: that of the policy. unsynchronized: one thread at a time, const functions
// included. All others: every function but constructor and destructor may be called from any thread
// at any time, and all are linearizable except size(), empty(), memory_bytes() and stats(), which
// are exact when no operation runs.
//
// Errors: std::bad_alloc from any function that changes something (erase() too: what it unlinks is
// noted until no reader has it), from scans (their buffer), and from the first call of a thread;
// the tree is then unchanged. Destructor, reclaim(), size(), empty(), memory_bytes() and stats()
// never throw.
template <std::integral Key, class Value, class Sync, unsigned Width = 15>
class masstree {
  static_assert(std::is_trivially_copyable_v<Value>);
  static_assert(Width >= 3 && Width <= 15);

  using node = papers::masstree_node<Key, Sync, Width>;
  using leaf = papers::masstree_leaf<Key, Value, Sync, Width>;
  using inner = papers::masstree_inner<Key, Sync, Width>;
  using version = typename node::version_type;
  using token = typename version::token;
  using order = typename leaf::order;
  using operation = papers::masstree_operation<masstree>;
  using op_status = internal::op_status;

 public:
  using key_type = Key;
  using mapped_type = Value;
  using sync_policy = Sync;
  using key_argument = Key;
  using value_argument = const Value&;

  masstree();
  ~masstree() = default;  // nodes need no destruction; the pools give their memory back
  masstree(const masstree&) = delete;
  masstree& operator=(const masstree&) = delete;

  // The value of `key`, if it is there.
  std::optional<Value> get(Key key) const;
  bool contains(Key key) const { return get(key).has_value(); }

  // Adds `key` unless it is there; says whether it added it.
  bool insert(Key key, const Value& value) { return insert_or_overwrite(key, value, false); }

  // Adds `key` or overwrites its value; says whether it added it.
  bool upsert(Key key, const Value& value) { return insert_or_overwrite(key, value, true); }

  // Adds `key` with `value` if it is absent. Returns the value that `key` has then, and whether it
  // added the key.
  std::pair<Value, bool> insert_or_get(Key key, const Value& value);

  // Replaces the value v of `key` by what fn(v) makes of it, as one atomic step; says whether the
  // key was there. fn(Value&) must not use the tree, and should be short: other writers who want
  // the leaf wait for it. It may run more than once, with effects only of the last time, when
  // transactions abort. If it throws, the exception comes out of update() and the value stays.
  template <value_change<Value> Fn>
  bool update(Key key, Fn&& fn);

  // Removes `key`; says whether it was there.
  bool erase(Key key);

  // Calls fn(key, value) for up to `limit` keys from `from` on, in ascending order, and returns how
  // many there were. All of them were in the tree at one moment, with no other key between them. fn
  // runs after that moment, outside of all locks, and may use the tree. Buffers what it returns.
  template <class Fn>
  std::size_t scan(Key from, std::size_t limit, Fn&& fn) const;

  std::size_t size() const noexcept { return size_.count(); }
  bool empty() const noexcept { return size() == 0; }

  // Everything obtained from the system for nodes and free nodes, in bytes.
  std::size_t memory_bytes() const noexcept;
  masstree_stats stats() const noexcept;

  // Frees what was erased before this call, as far as no reader was in the way, now instead of at
  // the next erasures.
  void reclaim() noexcept { retire_list_.sweep_all(); }

  // The policy's state, for an elided lock's statistics.
  const Sync& sync() const noexcept { return sync_; }

 private:
  friend operation;
  friend papers::masstree_range<masstree>;

  static constexpr bool racing = Sync::readers_race;
  // Only racing readers can follow an address behind the region in which they found it.
  static constexpr bool defers_reclamation = racing;
  using pin = std::conditional_t<defers_reclamation, epoch_pin, internal::no_pin>;

  // Inner nodes above a leaf at most. Not even a tree of the smallest width gets there: a node must
  // take in two new children at least between two splits of it, so each level more takes twice as
  // many insertions.
  static constexpr unsigned levels_max = 64;

  // Inner nodes that the caller has locked, from below.
  class locked_path {
   public:
    void push(inner* n) noexcept { nodes_[depth_++] = n; }
    unsigned depth() const noexcept { return depth_; }
    inner* operator[](unsigned i) const noexcept { return nodes_[i]; }
    inner* top() const noexcept { return nodes_[depth_ - 1]; }
    void unlock() noexcept {
      for (unsigned i = 0; i < depth_; ++i) nodes_[i]->version.unlock();
    }

   private:
    unsigned depth_ = 0;
    std::array<inner*, levels_max> nodes_;  // not initialised beyond depth_
  };

  // The leaf for `key`, and a version at which it was that; false when a node on the way has lost
  // keys.
  bool find_leaf(Key key, leaf*& l, token& seen) const noexcept;
  // On from a leaf that has changed since `seen`, to the one that has taken over the key; false
  // when it is deleted.
  bool follow_splits(Key key, leaf*& l, token& seen) const noexcept;
  // The slot of `key` in its leaf, which is locked; nothing when the search must begin again.
  struct slot_ref {
    leaf* at = nullptr;
    order permuted = order::first_slots(0);
    unsigned position = 0;
    bool found = false;

    unsigned slot() const noexcept { return permuted.slot(position); }
  };
  bool lock_slot(Key key, slot_ref& where) const noexcept;
  // The node's parent, locked; null at the root. The caller holds the node.
  static inner* lock_parent(const node& n) noexcept;

  template <class Body>
  op_status run_shared(Body&& body) const;
  template <class Body>
  op_status run_exclusive(operation& op, Body&& body);

  bool insert_or_overwrite(Key key, const Value& value, bool overwrite);
  op_status try_get(Key key, std::optional<Value>& value) const noexcept;
  // `kept`, unless null, becomes the value of a key that is there and is not overwritten.
  op_status try_put(Key key, const Value& value, bool overwrite, operation& op,
                    Value* kept = nullptr) noexcept;
  op_status try_erase(Key key, operation& op, bool& removed_leaf) noexcept;
  template <class Fn>
  op_status try_update(Key key, Fn& fn, std::exception_ptr& thrown) noexcept;

  op_status split_and_insert(const slot_ref& where, Key key, const Value& value,
                             operation& op) noexcept;
  void link_upward(const locked_path& path, node* left, node* right, Key low, locked_path& made,
                   operation& op) noexcept;
  op_status remove_leaf(leaf& l, operation& op) noexcept;
  op_status remove_locked_leaf(leaf& before, leaf& l, operation& op) noexcept;
  op_status give_up_root(operation& op) noexcept;

  // Readers wait neither for a lock nor, mostly, for a mark: a store that is still in this core's
  // buffer when its operation returns would be missed by a reader who begins then.
  static void make_visible() noexcept {
    // pairs with the one in epoch_pin
    if constexpr (racing) std::atomic_thread_fence(std::memory_order_seq_cst);
  }

  void count_restart() const noexcept { restarts_.add(1); }

  [[no_unique_address]] mutable Sync sync_;
  std::atomic<node*> root_;
  block_pool leaf_pool_{sizeof(leaf), "leaf", leaf::head_bytes};
  block_pool inner_pool_{sizeof(inner), "inner", inner::head_bytes};
  alignas(64) internal::busy_counter size_;
  mutable internal::rare_counter restarts_;
  internal::rare_counter splits_;
  internal::rare_counter removals_;
  // destroyed first: what is in it gives its memory back to the pools
  retire_list retire_list_{this};
};

}  // namespace elidex::papers

#include "papers/eunomia/masstree_impl.hpp"
