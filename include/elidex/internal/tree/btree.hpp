// A B+tree for keys and values of any kind, written once for all synchronization policies.
//
//   btree<std::uint64_t, std::uint64_t, optimistic> tree;
//   tree.insert(7, 70);
//   tree.update(7, [](std::uint64_t& v) { ++v; });
//   tree.scan(0, 10, [](std::uint64_t key, std::uint64_t value) { ... });
//
// Thread-safety: that of the policy. unsynchronized: one thread at a time, const functions
// included. All others: every function but constructor and destructor, from any thread at any time.
// Every operation is linearizable except size(), empty(), memory_bytes(), stats() and cursors
// (cursor.hpp). The first four are exact when no operation runs. multi_get() is not a snapshot.
// Complexity: O(log n) for one key. A scan adds O(1) for each record.
// Iterator validity: a cursor stays valid whatever other threads do (cursor.hpp).
// Errors: std::invalid_argument for a key of more than 64 KiB, a value of 4 GiB or more, or a
// result span of multi_get() that is too short. The tree is unchanged after std::bad_alloc, which
// comes from
//   * every function that changes something (erase() too, because the retire list records what it
//     unlinks),
//   * scans and cursors (for their buffer),
//   * functions that return a std::string,
//   * the first call of a thread.
// Destructor, reclaim(), size(), empty(), memory_bytes() and stats() never throw.
//
// Implementation notes
// The algorithm is optimistic lock coupling. An operation descends from node to node and remembers
// the versions of the parent and of the node. It validates everything that it reads. It locks a
// node by upgrading a remembered version, and begins again when that fails. Under a coarse policy
// the node locks and validations vanish. The rest is the ordinary B+tree of papers 001 (section
// 4.1) and 003 (section 2), inside one region per attempt.
//
// Invariants
//   * Keys in a node ascend. Child i of an inner node holds the keys k with key(i - 1) <= k <
//     key(i).
//   * All leaves have the same depth. A reachable node is not obsolete. A node that has left the
//     tree stays obsolete until its memory is used again, two epochs later
//     (internal/memory/epoch.hpp).
//   * Only the parent's lock and the node's own lock together allow splitting, merging or removing
//     a node.
//   * A separator in an inner node owns its bytes. It outlives the key from which it was made.
//   * Strings: all keys that can come to a node share the first bytes, as many as the node's prefix
//     length (key_prefix.hpp). Separators lie in the inner node itself, long ones in blobs
//     (slotted_inner_node.hpp). So do keys in leaves, if the shape has such leaves
//     (slotted_leaf.hpp).
//   * An inner node that is not full has room for one more separator of any length.
//
// Order of locks
// Parent, node, sibling, each by try_upgrade() or try_lock(), which never wait. An operation that
// fails to lock releases all its locks and begins again. Only range_collector waits for a lock with
// another one held. It locks from left to right.
//
// Linearization points
//   get, contains      The read of the leaf's version in enter(). The validation of the leaf proves
//                      that it then held what was read from it. The validation of the parent proves
//                      that it was then the leaf for the key.
//   insert, upsert, get_or_insert, update, erase
//                      If they change something: the try_upgrade() of the leaf. Every other
//                      operation on a key of the leaf waits until the unlock, and sees the change.
//                      If they change nothing: as get.
//   scan               range_collector.hpp
// One thread's operations take effect in their order. This needs a fence between a change and the
// reads of the next operation. Without it, two threads could each miss the other's last change, as
// with any store buffer. epoch_pin has the fence. Under a coarse policy the acquisition of the
// lock, or the commit of the transaction, is the fence.
//
// A descent of an insert splits each full inner node, so that a split never climbs. A descent of an
// erase merges each sparse inner node that fits into a sibling, left or right. Each split and merge
// is a region of its own that leaves the contents as they were. The operation then begins again. An
// inner node with a single child gets some of its sibling's children if the two do not fit into one
// node. So an erase finds a sibling for every leaf that it empties. Such a redistribution replaces
// a separator. A parent without room for a longer string is split first, by a descent that begins
// again and splits each full inner node. No leaf but the root is ever empty, and churn leaves no
// nodes behind. The exception are leaves that hold their keys: an empty one stays beside neighbours
// that would not fit behind a shorter prefix. An erase that leaves a leaf empty merges it with all
// neighbours that fit, so an emptied tree is one leaf. A region never allocates memory. A body that
// lacks memory returns op_status::need_memory and runs again once the memory is there
// (`operation`).
//
// Deviations from the papers' B+tree: leaves have no links to their neighbours. A scan continues
// through the parent by which it came, or descends again to the leaf's fence key. So a split locks
// no third node, and a backward scan is as easy as a forward one. Nodes are merged when they are
// sparse (a third full), not when they are half full.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "elidex/internal/memory/block_pool.hpp"
#include "elidex/internal/memory/counters.hpp"
#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/memory/memory_name.hpp"
#include "elidex/internal/memory/retire_list.hpp"
#include "elidex/internal/sync/backoff.hpp"
#include "elidex/internal/sync/policies.hpp"
#include "elidex/internal/tree/btree_inner.hpp"
#include "elidex/internal/tree/bulk_load.hpp"
#include "elidex/internal/tree/cursor.hpp"
#include "elidex/internal/tree/gathered_records.hpp"
#include "elidex/internal/tree/node_operation.hpp"
#include "elidex/internal/tree/range_collector.hpp"
#include "elidex/internal/tree/tree_range.hpp"
#include "elidex/internal/tree/value_change.hpp"

namespace elidex::internal {

template <class Key, class Value, class Sync, class Shape>
struct btree_leaf : btree_node<Sync> {
  using keys = key_codec<Key>;
  using key_argument = typename keys::argument;
  using key_slot = typename keys::slot;
  using value_slot = typename value_codec<Value>::slot;
  struct slot {
    field<key_slot> key;
    field<value_slot> value;
  };
  static constexpr bool racing = Sync::readers_race;
  static constexpr unsigned capacity = Shape::leaf_slots(sizeof(slot));
  static constexpr std::size_t head_bytes = sizeof(btree_node<Sync>);
  static constexpr bool holds_keys = false;  // longer strings lie in blobs
  static constexpr bool in_order = true;
  static constexpr std::size_t value_locks = 0;  // the leaf's lock is the values' lock too
  struct ordered_view {};                        // not needed
  using ordered_copy = gathered_records<key_slot, value_slot, capacity>;
  static constexpr std::size_t bytes_for_look_up =
      sizeof(btree_node<Sync>) + capacity * sizeof(slot);
  static_assert(capacity <= slots_max);

  btree_leaf() noexcept : btree_node<Sync>(0) {}

  template <class Fn>
  void for_each_value_lock(Fn&& /*fn*/) const noexcept {}
  template <class SearchKey>
  unsigned approach(const SearchKey& /*key*/) const noexcept {
    return no_slot;
  }

  unsigned used() const noexcept { return this->count(); }
  key_slot key(unsigned i) const noexcept { return keys::taken_out(stored_key(i), prefix.get()); }
  // The key as the node stores it, with its head behind the prefix.
  key_slot stored_key(unsigned i) const noexcept { return slots[i].key.template load<racing>(); }
  void store_key(unsigned i, const key_slot& k) noexcept { slots[i].key.template store<racing>(k); }
  std::uint64_t head(unsigned i) const noexcept {
    return slots[i].key.template load_word<racing>(0);
  }
  value_slot value(unsigned i) const noexcept { return slots[i].value.template load<racing>(); }
  void set_value(unsigned i, const value_slot& v) noexcept {
    slots[i].value.template store<racing>(v);
  }

  blob* blob_of(unsigned i) const noexcept { return keys::blob_of(stored_key(i)); }
  static bool needs_blob(const key_argument& key) noexcept { return keys::needs_blob(key); }
  static bool has_room(unsigned count, const key_argument& /*key*/) noexcept {
    return count < capacity;
  }
  // Where a split divides the leaf, which is full.
  static unsigned middle() noexcept { return capacity / 2; }
  auto separator_before(unsigned i) const noexcept {
    return typename keys::separator(key(i - 1), key(i));
  }
  // Worth merging after the erasure of one of so many records: a third full, chosen. The merged
  // leaf keeps room for a few inserts, so that it does not split again at once. One that counts 0
  // gives no records.
  static bool is_sparse_without_one(unsigned count) noexcept { return count <= capacity / 3 + 1; }
  template <class Parent>
  static bool fit_together(const btree_leaf& /*left*/, unsigned left_count,
                           const btree_leaf& /*right*/, unsigned right_count,
                           const Parent& /*parent*/) noexcept {
    return left_count + right_count <= capacity * 5 / 6 || left_count == 0 || right_count == 0;
  }
  // Of a new leaf.
  void copy_prefix(const btree_leaf& from) noexcept { prefix.set(from.prefix.get()); }
  // Before records of one come to the other.
  template <class Parent>
  void share_prefix(btree_leaf& right, const Parent& /*parent*/, unsigned /*index*/) noexcept {
    internal::share_prefix(*this, right);
  }

  // How many keys between these two fit.
  template <class Lowest, class Highest>
  static unsigned room_between(const Lowest& /*lowest*/, const Highest& /*highest*/) noexcept {
    return capacity;
  }
  // Of an empty leaf.
  void fill(const ordered_copy& records, unsigned first, unsigned last) noexcept {
    for (unsigned i = first; i < last; ++i) {
      store_key(i - first, keys::put_in(records.key(i), prefix.get()));
      set_value(i - first, records.value(i));
    }
    this->set_count(last - first);
  }
  void insert(unsigned position, const key_argument& key, blob* outside,
              const value_slot& v) noexcept {
    const unsigned n = this->count();
    for (unsigned i = n; i > position; --i) copy_slot(i, *this, i - 1);
    store_key(position, keys::put_in(keys::slot_of(key, outside), prefix.get()));
    set_value(position, v);
    this->set_count(n + 1);
  }
  void erase(unsigned position) noexcept {
    const unsigned n = this->count();
    for (unsigned i = position + 1; i < n; ++i) copy_slot(i - 1, *this, i);
    this->set_count(n - 1);
  }
  // Moves the slots from `first` on to the end of `to`, which has the same prefix.
  void move_tail(unsigned first, btree_leaf& to) noexcept {
    const unsigned n = this->count();
    const unsigned at = to.count();
    for (unsigned i = first; i < n; ++i) to.copy_slot(at + i - first, *this, i);
    to.set_count(at + n - first);
    this->set_count(first);
  }

  [[no_unique_address]] prefix_length<keys, racing> prefix;
  std::array<slot, capacity> slots;

 private:
  // The reading side is not racing: the caller holds the lock of `from`.
  void copy_slot(unsigned i, const btree_leaf& from, unsigned j) noexcept {
    slots[i].key.template store<racing>(from.slots[j].key.template load<false>());
    slots[i].value.template store<racing>(from.slots[j].value.template load<false>());
  }
};

// Memory can be reused at once after a region, unless a reader may still follow an address that it
// found inside. This is always possible with racing readers. It is also possible with blobs,
// because they are copied out after the region.
template <class Key, class Value, class Sync>
inline constexpr bool btree_defers_reclamation =
    Sync::readers_race || key_codec<Key>::owns_blobs || value_codec<Value>::owns_objects;

// Strings lie in the leaf itself if the shape has leaves for them, and values are small.
template <class Key, class Value, class Sync, class Shape>
struct leaf_of {
  using type = btree_leaf<Key, Value, Sync, Shape>;
};
template <class Value>
inline constexpr std::size_t value_slot_words =
    (sizeof(typename value_codec<Value>::slot) + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
inline constexpr std::size_t slotted_value_words_max = 8;
template <class Value, class Sync, class Shape>
  requires(value_slot_words<Value> <= slotted_value_words_max) &&
          requires { typename Shape::template slotted_leaf<value_slot_words<Value>>; }
struct leaf_of<std::string, Value, Sync, Shape> {
  using type =
      slotted_leaf<Value, Sync, typename Shape::template slotted_leaf<value_slot_words<Value>>>;
};

template <class Key, class Value, class Sync, class Shape>
using btree_inner_of =
    btree_inner<Key, Sync, Shape, typename leaf_of<Key, Value, Sync, Shape>::type,
                btree_defers_reclamation<Key, Value, Sync>>;

// Key: an integer type, or std::string (passed as std::string_view, compared as unsigned bytes, at
// most 64 KiB). Value: a plain_value, or std::string (passed as std::string_view).
template <class Key, class Value, class Sync, class Shape = paper_fan_out>
class btree : btree_inner_of<Key, Value, Sync, Shape> {
  using inner_levels = btree_inner_of<Key, Value, Sync, Shape>;
  using values = value_codec<Value>;
  using value_slot = typename values::slot;
  using operation = btree_operation<btree>;
  using op_status = internal::op_status;
  using typename inner_levels::inner;
  using typename inner_levels::key_slot;
  using typename inner_levels::keys;
  using typename inner_levels::leaf;
  using typename inner_levels::node;
  using typename inner_levels::node_lock;
  using typename inner_levels::position;
  using typename inner_levels::search_key;
  using typename inner_levels::side;
  using typename inner_levels::token;

 public:
  using key_type = Key;
  using mapped_type = Value;
  using sync_policy = Sync;
  using key_argument = typename keys::argument;
  using value_argument = typename values::argument;
  using cursor_type = internal::map_cursor<btree>;

  explicit btree(const memory_options& options = {});
  ~btree();
  btree(const btree&) = delete;
  btree& operator=(const btree&) = delete;

  // Returns the value of `key`, or std::nullopt.
  std::optional<Value> get(key_argument key) const;
  bool contains(key_argument key) const;

  // Looks up many keys, in any order: found[i] becomes the value of wanted[i], or std::nullopt.
  // Each look-up is linearizable by itself. Together they are not a snapshot. Throws
  // std::invalid_argument if `found` is shorter than `wanted`, before any look-up. Throws as get()
  // does for a key that is too long. Other elements of `found` may have been set then. Under
  // `optimistic` the look-ups wait for memory together instead of one after the other (group
  // prefetching: Chen, Ailamaki, Gibbons, Mowry, ICDE 2004). That is two to three times as fast
  // when the tree is larger than the caches.
  void multi_get(std::span<const key_argument> wanted, std::span<std::optional<Value>> found) const;

  // Adds `key` if it is absent. Returns whether it added the key.
  bool insert(key_argument key, value_argument value) {
    return insert_or_overwrite(key, value, false);
  }

  // Adds `key`, or overwrites its value. Returns whether it added the key.
  bool upsert(key_argument key, value_argument value) {
    return insert_or_overwrite(key, value, true);
  }

  // Returns the value of `key` and whether it added the key. If the key is absent, adds it with the
  // value that make() returns. The whole is one atomic step. make() must not use the tree, and
  // should be short: other operations on the leaf wait for it. It may run more than once when
  // transactions abort. If make() throws, get_or_insert() passes the exception on and adds nothing.
  // Not for values that are strings.
  template <class Make>
  std::pair<Value, bool> get_or_insert(key_argument key, Make&& make)
    requires(!values::owns_objects);
  // The same, except that make() receives the key as nodes store it, and may return nothing. Then
  // nothing is added, and std::nullopt is returned. A dictionary beside the map uses it
  // (internal/column/keyed_delta_index.hpp). Where leaves hold their keys, make() must not use what
  // it receives.
  template <class Make>
  std::optional<std::pair<Value, bool>> get_or_insert_if_made(key_argument key, Make&& make)
    requires(!values::owns_objects);

  // Fills the tree, which must be empty, with the records for which fill(loader) calls
  // loader.add(key, value). The keys must ascend. All records appear at one moment. Leaves are
  // nearly full afterwards. Throws std::invalid_argument if the keys do not ascend,
  // std::logic_error if the tree is not empty or another thread fills it meanwhile, std::bad_alloc,
  // and what fill() throws. After an exception the tree is as it was.
  template <class Fill>
  void bulk_fill(Fill&& fill) {
    internal::bulk_loader<btree> loader(*this);
    fill(loader);
    loader.publish();
  }

  // Calls fn(value) for the value of `key` and stores the result, as one atomic step. Returns
  // whether the key is present. fn(Value&) must not use the tree, and should be short: other
  // operations on the leaf wait for it. It may run more than once when transactions abort, or when
  // Value is std::string. Only its last run has an effect on the value. If fn throws, update()
  // passes the exception on and the value stays.
  template <value_change<Value> Fn>
  bool update(key_argument key, Fn&& fn);

  // Calls fn(value), where value is a std::optional<Value>&: the value of `key`, or empty.
  // Afterwards `key` has the value that fn left there, or is absent if fn left it empty. The whole
  // is one atomic step. Returns whether the key is present then. As for update(): fn must not use
  // the tree, should be short, and may run more than once. If fn throws, compute() passes the
  // exception on and changes nothing.
  template <class Fn>
  bool compute(key_argument key, Fn&& fn)
    requires Sync::readers_race;

  // Removes `key`. Returns whether the key was present.
  bool erase(key_argument key);

  // Removes `key` if pred(value) is true for its value, as one atomic step, for values that are
  // objects. pred() holds no lock and may run more than once.
  template <class Pred>
  bool erase_if(key_argument key, Pred&& pred)
    requires(values::owns_objects);

  // Removes `key` and returns its object, for values that are objects. Waits until no other thread
  // can see the object. Throws std::logic_error, with nothing removed, if the caller is pinned.
  std::optional<Value> extract(key_argument key)
    requires(values::owns_objects && !values::makes_objects);

  // Calls fn(value) for the value of `key`, and returns whether the key is present. fn receives a
  // reference to const, or a string_view, that is valid until it returns. No lock is held, but with
  // string keys or values no map of the process frees memory meanwhile.
  template <class Fn>
  bool visit(key_argument key, Fn&& fn) const;

  // Calls fn(key, value) for up to `limit` keys from `from` on, in ascending order. Returns their
  // number. The scan is a snapshot: at one moment all of these keys were in the tree, with no other
  // key between them. fn runs after that moment, outside of all locks, and may use the tree. The
  // scan buffers the records first. For long ranges prefer a cursor. fn receives strings as
  // string_views that are valid until fn returns. With string keys or values no map of the process
  // frees memory while fn runs, so fn should not block then.
  template <class Fn>
  std::size_t scan(key_argument from, std::size_t limit, Fn&& fn) const;

  // The same for a range of any kind. A visitor that returns false ends the scan. Returns the
  // number of calls.
  template <class Fn>
  std::size_t scan(const tree_range<key_argument>& which, std::size_t limit, Fn&& fn) const;

  // Returns at most `wanted` keys that divide the tree into parts of about the same size, in order.
  // Exact to a quarter, and not a snapshot.
  std::vector<typename inner_levels::owned_key> separators(std::size_t wanted) const;

  // Returns a cursor without a position. It stays valid while other threads insert and erase
  // (cursor.hpp).
  cursor_type cursor() const { return cursor_type(*this); }

  std::size_t size() const noexcept { return size_.count(); }
  bool empty() const noexcept { return size() == 0; }

  // All memory obtained from the system for keys, values, nodes and free nodes, in bytes.
  std::size_t memory_bytes() const noexcept;
  btree_stats stats() const noexcept;

  // Provides nodes for about so many keys in all, and touches them. Throws std::bad_alloc.
  void reserve(std::size_t many) { this->reserve_nodes(many); }
  // Frees now what was erased before this call, instead of at the next erasures. Memory that a
  // reader may still reach is kept.
  void reclaim() noexcept { retire_list_.sweep_all(); }

  // The policy's state, for the statistics of an elided lock.
  const Sync& sync() const noexcept { return sync_; }

 private:
  // `which` is a range, or the first key.
  template <class Which, class Fn>
  std::size_t scan_collected(const Which& which, std::size_t limit, Fn& fn) const;

  friend operation;
  friend internal::node_operation<btree>;
  friend internal::range_collector<btree>;
  friend internal::collected_range<btree>;
  friend internal::bulk_loader<btree>;
  friend cursor_type;

  using inner_levels::defers_reclamation;
  using inner_levels::descend_merging;
  using inner_levels::descend_splitting;
  using inner_levels::descend_to_leaf;
  using inner_levels::enter_child;
  using inner_levels::enter_root;
  using inner_levels::find_sibling;
  using inner_levels::inner_pool_;
  using inner_levels::leaf_pool_;
  using inner_levels::link_right_half;
  using inner_levels::look_up_together;
  using inner_levels::memory_;
  using inner_levels::merges_;
  using inner_levels::racing;
  using inner_levels::redistributions_;
  using inner_levels::restarts_;
  using inner_levels::root_;
  using inner_levels::run_changing;
  using inner_levels::splits_;
  using inner_levels::sync_;
  using typename inner_levels::pin;

  // The result of find() in a leaf.
  struct found_slot {
    unsigned count = 0;  // slots in the leaf
    unsigned rank = 0;   // keys less than the wanted one
    bool exact = false;  // slot `rank` holds the key
    bool torn = false;   // the leaf changed meanwhile
  };

  static found_slot find(const position& p, const search_key& key) noexcept;

  template <class Body>
  op_status run_shared(Body&& body) const;

  bool insert_or_overwrite(key_argument key, value_argument value, bool overwrite);
  op_status try_get(const search_key& key, std::optional<value_slot>& value) const noexcept;
  op_status try_put(const search_key& where, key_argument key, value_argument value, bool overwrite,
                    operation& op) noexcept;
  template <class Make>
  op_status try_get_or_insert(const search_key& where, key_argument key, Make& make, operation& op,
                              std::optional<Value>& value, std::exception_ptr& thrown) noexcept;
  template <class Decide>
  op_status try_erase(const search_key& key, operation& op, Decide&& decide) noexcept;
  template <class Fn>
  op_status try_update(const search_key& key, Fn& fn, std::exception_ptr& thrown) noexcept;
  op_status try_replace(const search_key& key, const value_slot& expected, value_argument value,
                        operation& op) noexcept;
  template <class Fn>
  bool compute_in_place(const search_key& where, key_argument key, Fn& fn);
  bool erase_same(const search_key& where, const value_slot& object, operation& op);
  template <class Fn>
  bool compute_aside(const search_key& where, key_argument key, Fn& fn);
  // Not inlined: GCC 12 would warn that a value may be missing which was just found to be there.
  [[gnu::noinline]] static typename values::holder holder_of(Value&& value) {
    return typename values::holder(std::move(value));
  }
  template <class Fn>
  op_status try_compute(const search_key& where, key_argument key, Fn& fn, operation& op,
                        std::exception_ptr& thrown) noexcept;

  [[gnu::noinline]] op_status split_leaf(position& p, unsigned insert_rank, operation& op) noexcept;
  op_status hand_to_left(position& p, operation& op) noexcept;
  template <class Decide>
  op_status erase_and_merge(position& p, unsigned rank, operation& op, Decide& decide) noexcept;
  static void take_out_right(position& left, leaf& right, operation& op) noexcept;
  void erased(const search_key& where, operation& op) noexcept;
  op_status try_drop_empty_leaf(const search_key& where, operation& op) noexcept;
  template <class Decide>
  op_status erase_and_merge(position& p, side where, unsigned rank, operation& op,
                            Decide& decide) noexcept;

  // Whether the destructor must free blobs one by one.
  static constexpr bool owns_single_objects =
      (keys::owns_blobs && !keys::blob_store::frees_all_itself) || values::owns_objects;
  void free_objects_below(node* n) noexcept;
  void free_key_blob(blob* b) noexcept {
    if constexpr (!keys::blob_store::frees_all_itself) internal::blob::destroy(b, memory_);
  }

  template <class Body>
  auto range_region(Body&& body) const {
    return sync_.shared(body);
  }
  template <class Body>
  auto changing_region(Body&& body) {
    return sync_.exclusive(body);
  }
  static void begin_life(leaf& /*made*/) noexcept {}
  static void end_life(leaf& /*old*/, operation& /*op*/) noexcept {}

  // Not on a cache line that readers need.
  alignas(64) busy_counter size_;
  busy_counter blob_bytes_;
  [[no_unique_address]] typename keys::blob_store key_blobs_;
  // Destroyed first, because its objects return their memory to the pools.
  retire_list retire_list_{this};
};

// --- bodies ---

template <class Key, class Value, class Sync, class Shape>
btree<Key, Value, Sync, Shape>::btree(const memory_options& options) : inner_levels(options) {
  // May throw on a thread's first use. The code below has no way to report an error.
  static_cast<void>(this_thread_slot());
  name_memory(this, sizeof(*this), "tree");
  root_.template store<racing>(::new (leaf_pool_.allocate()) leaf);
}

template <class Key, class Value, class Sync, class Shape>
btree<Key, Value, Sync, Shape>::~btree() {
  // Nodes need no destruction. The pools release their memory.
  if constexpr (owns_single_objects) free_objects_below(root_.template load<false>());
}

template <class Key, class Value, class Sync, class Shape>
void btree<Key, Value, Sync, Shape>::free_objects_below(node* n) noexcept {
  const unsigned count = n->count();
  if (n->is_leaf()) {
    const leaf& l = *static_cast<leaf*>(n);
    for (unsigned i = 0; i < count; ++i) {
      free_key_blob(l.blob_of(i));
      if constexpr (values::owns_objects) values::destroy(l.value(i), memory_);
    }
    return;
  }
  const inner& in = *static_cast<inner*>(n);
  for (unsigned i = 0; i <= count; ++i) {
    if constexpr (keys::owns_blobs) {
      if (i < count) free_key_blob(in.blob_of(i));
    }
    free_objects_below(in.child(i));
  }
}

// --- descending ---

template <class Key, class Value, class Sync, class Shape>
auto btree<Key, Value, Sync, Shape>::find(const position& p, const search_key& key) noexcept
    -> found_slot {
  const leaf& l = p.as_leaf();
  found_slot f;
  f.count = l.count();
  const auto still_valid = [&] { return p.still_valid(); };
  if constexpr (keys::compares_in_place) {
    inner_levels::template rank_in_node<false>(l, f.count, key, still_valid, f.rank);
    f.exact = f.rank < f.count && l.key(f.rank) == key;
  } else if constexpr (leaf::holds_keys) {
    f.torn = !l.template rank<false>(f.count, key, still_valid, f.rank, f.exact);
  } else {
    f.torn = !rank_by_heads<false>(l, f.count, key, still_valid, f.rank, f.exact);
  }
  return f;
}

// --- regions ---

template <class Key, class Value, class Sync, class Shape>
template <class Body>
auto btree<Key, Value, Sync, Shape>::run_shared(Body&& body) const -> op_status {
  for (backoff wait;; wait.once()) {
    const op_status s = sync_.shared(body);
    if (s != op_status::restart) return s;
    restarts_.add(1);
  }
}

// --- looking up ---

template <class Key, class Value, class Sync, class Shape>
auto btree<Key, Value, Sync, Shape>::try_get(const search_key& key,
                                             std::optional<value_slot>& value) const noexcept
    -> op_status {
  position p;
  if (!descend_to_leaf(key, p)) return op_status::restart;
  const found_slot f = find(p, key);
  if (f.exact) value.emplace(p.as_leaf().value(f.rank));
  if (f.torn || !p.still_valid()) return op_status::restart;
  return f.exact ? op_status::yes : op_status::no;
}

template <class Key, class Value, class Sync, class Shape>
ELIDEX_FLATTEN std::optional<Value> btree<Key, Value, Sync, Shape>::get(key_argument key) const {
  const search_key where = keys::search_key_of(key);
  [[maybe_unused]] const pin pinned;  // until the value is copied out
  std::optional<value_slot> slot;
  if (run_shared([&] { return try_get(where, slot); }) == op_status::no) return std::nullopt;
  return values::owned(*slot);
}

template <class Key, class Value, class Sync, class Shape>
bool btree<Key, Value, Sync, Shape>::contains(key_argument key) const {
  const search_key where = keys::search_key_of(key);
  [[maybe_unused]] const pin pinned;
  std::optional<value_slot> slot;
  return run_shared([&] { return try_get(where, slot); }) == op_status::yes;
}

template <class Key, class Value, class Sync, class Shape>
void btree<Key, Value, Sync, Shape>::multi_get(std::span<const key_argument> wanted,
                                               std::span<std::optional<Value>> found) const {
  if (found.size() < wanted.size())
    throw std::invalid_argument("elidex: multi_get: fewer values than keys (expected as many)");
  const auto read = [&](std::size_t i, const search_key& key, const position& p,
                        unsigned /*slot*/) {
    const found_slot f = find(p, key);
    if (f.torn) return false;
    if (!f.exact) {
      found[i].reset();
      return p.still_valid();
    }
    const value_slot slot = p.as_leaf().value(f.rank);
    if (!p.still_valid()) return false;
    found[i].reset();
    found[i].emplace(values::owned(slot));
    return true;
  };
  look_up_together(
      wanted.size(), [&](std::size_t i) { return keys::search_key_of(wanted[i]); }, read,
      [&](std::size_t i) { found[i] = get(wanted[i]); });
}

template <class Key, class Value, class Sync, class Shape>
template <class Fn>
bool btree<Key, Value, Sync, Shape>::visit(key_argument key, Fn&& fn) const {
  const search_key where = keys::search_key_of(key);
  [[maybe_unused]] const pin pinned;
  std::optional<value_slot> slot;
  if (run_shared([&] { return try_get(where, slot); }) == op_status::no) return false;
  fn(values::view(*slot));
  return true;
}

// --- inserting ---

template <class Key, class Value, class Sync, class Shape>
ELIDEX_FLATTEN bool btree<Key, Value, Sync, Shape>::insert_or_overwrite(key_argument key,
                                                                        value_argument value,
                                                                        bool overwrite) {
  const search_key where = keys::search_key_of(key);
  values::check(value);
  operation op(*this);
  if (!overwrite) {  // needed unless the key is a duplicate
    if constexpr (!leaf::holds_keys) static_cast<void>(op.has_key(key, keys::needs_blob(key)));
    static_cast<void>(op.has_value(value));
    op.provide();
  }
  const op_status s = run_changing(op, [&] {
    return sync_.exclusive([&] { return try_put(where, key, value, overwrite, op); });
  });
  if (s == op_status::yes) size_.add(1);
  return s == op_status::yes;
}

template <class Key, class Value, class Sync, class Shape>
auto btree<Key, Value, Sync, Shape>::try_put(const search_key& where, key_argument key,
                                             value_argument value, bool overwrite,
                                             operation& op) noexcept -> op_status {
  position p;
  if (const op_status s = descend_splitting(where, p, op); s != op_status::yes) return s;
  leaf& l = p.as_leaf();
  const found_slot f = find(p, where);
  if (f.torn) return op_status::restart;
  if (f.exact && !overwrite) return p.still_valid() ? op_status::no : op_status::restart;
  if (f.exact) {
    if (!op.has_value(value) || (values::owns_objects && !op.may_retire()))
      return op_status::need_memory;
    if (!l.lock.try_upgrade(p.seen)) return op_status::restart;
    op.retire_value(l.value(f.rank));
    l.set_value(f.rank, op.take_value(value));
    l.lock.unlock();
    return op_status::no;
  }
  if (!l.has_room(f.count, key)) return split_leaf(p, f.rank, op);
  const bool needs_blob = l.needs_blob(key);
  if (!op.has_key(key, needs_blob) || !op.has_value(value)) return op_status::need_memory;
  if (!l.lock.try_upgrade(p.seen)) return op_status::restart;
  l.insert(f.rank, key, op.take_key_blob(needs_blob), op.take_value(value));
  l.lock.unlock();
  return op_status::yes;
}

template <class Key, class Value, class Sync, class Shape>
template <class Make>
std::pair<Value, bool> btree<Key, Value, Sync, Shape>::get_or_insert(key_argument key, Make&& make)
  requires(!values::owns_objects)
{
  // NOLINTNEXTLINE(bugprone-unchecked-optional-access): the optional always has a value
  return *get_or_insert_if_made(
      key, [&](const key_slot& /*slot*/) { return std::optional<Value>(make()); });
}

template <class Key, class Value, class Sync, class Shape>
template <class Make>
std::optional<std::pair<Value, bool>> btree<Key, Value, Sync, Shape>::get_or_insert_if_made(
    key_argument key, Make&& make)
  requires(!values::owns_objects)
{
  const search_key where = keys::search_key_of(key);
  operation op(*this);
  std::optional<Value> value;
  std::exception_ptr thrown;
  const op_status s = run_changing(op, [&] {
    return sync_.exclusive([&] { return try_get_or_insert(where, key, make, op, value, thrown); });
  });
  if (s == op_status::threw) std::rethrow_exception(thrown);
  if (s == op_status::unmade) return std::nullopt;
  if (s == op_status::yes) size_.add(1);
  return std::pair(*value, s == op_status::yes);
}

template <class Key, class Value, class Sync, class Shape>
template <class Make>
auto btree<Key, Value, Sync, Shape>::try_get_or_insert(const search_key& where, key_argument key,
                                                       Make& make, operation& op,
                                                       std::optional<Value>& value,
                                                       std::exception_ptr& thrown) noexcept
    -> op_status {
  position p;
  if (const op_status s = descend_splitting(where, p, op); s != op_status::yes) return s;
  leaf& l = p.as_leaf();
  const found_slot f = find(p, where);
  if (f.torn) return op_status::restart;
  if (f.exact) {
    value.emplace(l.value(f.rank));
    return p.still_valid() ? op_status::no : op_status::restart;
  }
  if (!l.has_room(f.count, key)) return split_leaf(p, f.rank, op);
  const bool needs_blob = l.needs_blob(key);
  if (!op.has_key(key, needs_blob)) return op_status::need_memory;
  if (!l.lock.try_upgrade(p.seen)) return op_status::restart;
  try {
    value = make(op.key(key));
  } catch (...) {
    thrown = std::current_exception();
    l.lock.unlock_unchanged(p.seen);
    return op_status::threw;
  }
  if (!value) {
    l.lock.unlock_unchanged(p.seen);
    return op_status::unmade;
  }
  l.insert(f.rank, key, op.take_key_blob(needs_blob), *value);
  l.lock.unlock();
  return op_status::yes;
}

template <class Key, class Value, class Sync, class Shape>
auto btree<Key, Value, Sync, Shape>::split_leaf(position& p, unsigned insert_rank,
                                                operation& op) noexcept -> op_status {
  const bool is_root = p.parent == nullptr;
  if (!op.has_nodes(true, is_root ? 1 : 0)) return op_status::need_memory;
  if (!p.try_lock_parent_and_node()) return op_status::restart;
  leaf& left = p.as_leaf();

  // Ascending keys would leave half-full leaves behind. At the parent's right edge, split off one
  // key. A random key comes to that place about once in a parent's life.
  const unsigned count = left.count();
  const bool ascending = insert_rank == count && (is_root || p.index == p.parent->count());
  const unsigned middle = ascending ? count - 1 : left.middle();

  if constexpr (leaf::holds_keys) {
    if (ascending && !is_root && p.index > 0) {
      const op_status s = hand_to_left(p, op);
      if (s != op_status::no) return s;
    }
  }

  const auto separator = left.separator_before(middle);
  const std::size_t blob_bytes = inner::blob_bytes(separator.get(), p.parent);
  if (!op.has_separator(blob_bytes)) {
    p.unlock_both_unchanged();
    return op_status::need_memory;
  }
  leaf* const right = op.take_leaf();
  right->copy_prefix(left);
  left.move_tail(middle, *right);
  const auto between = op.template take_separator<inner>(separator.get(), blob_bytes);
  lengthen_prefixes(left, *right, p.parent, p.index, between);
  link_right_half(p, between, right, op);
  p.unlock_both();
  op.note_split();
  return op_status::restructured;
}

// A leaf at its parent's right edge has a short prefix, because the fence on its right is not
// visible. So fewer keys fill it than its left neighbour. This function moves as many records to
// that neighbour as have room there, but not the last one. The leaf and its parent are locked.
// Unless it returns no, it unlocks them.
template <class Key, class Value, class Sync, class Shape>
auto btree<Key, Value, Sync, Shape>::hand_to_left(position& p, operation& op) noexcept
    -> op_status {
  inner& parent = *p.parent;
  leaf& from = p.as_leaf();
  leaf& to = *static_cast<leaf*>(parent.child(p.index - 1));
  token seen{};
  if (!parent.can_replace() || !to.lock.try_lock(seen)) return op_status::no;
  // The prefix that the neighbour has when the separator behind it changes to this one.
  const auto prefix_before = [&](key_argument separator) {
    return p.index > 1 ? keys::in_common(parent.key(p.index - 2).view(), separator)
                       : parent.prefix();
  };
  // The last separator comes with the shortest prefix. What fits behind that one also fits behind
  // the one that is then chosen, unless that prefix itself takes too many bytes.
  const unsigned last = from.count() - 1;
  const unsigned moved =
      to.has_room_for_front_of(from, last, prefix_before(from.separator_before(last).get()));
  const auto separator = from.separator_before(std::max(moved, 1U));
  const unsigned prefix = prefix_before(separator.get());
  if (moved == 0 || to.has_room_for_front_of(from, moved, prefix) < moved) {
    to.lock.unlock_unchanged(seen);
    return op_status::no;
  }
  const std::size_t blob_bytes = inner::blob_bytes(separator.get(), &parent);
  const bool may_retire = op.may_retire();
  if (!op.has_separator(blob_bytes) || !may_retire) {
    to.lock.unlock_unchanged(seen);
    p.unlock_both_unchanged();
    return op_status::need_memory;
  }
  to.take_front_of(from, moved, prefix, separator.get());
  op.retire_key_blob(parent.blob_of(p.index - 1));
  parent.set_key(p.index - 1, op.template take_separator<inner>(separator.get(), blob_bytes));
  to.lock.unlock();
  p.unlock_both();
  op.note_redistribute();
  return op_status::restructured;
}

// --- updating ---

template <class Key, class Value, class Sync, class Shape>
template <value_change<Value> Fn>
ELIDEX_FLATTEN bool btree<Key, Value, Sync, Shape>::update(key_argument key, Fn&& fn) {
  const search_key where = keys::search_key_of(key);
  if constexpr (!values::owns_objects) {
    operation op(*this);
    std::exception_ptr thrown;
    const op_status s = run_changing(
        op, [&] { return sync_.exclusive([&] { return try_update(where, fn, thrown); }); });
    if (s == op_status::threw) std::rethrow_exception(thrown);
    return s == op_status::yes;
  } else {
    const auto if_present = [&](std::optional<Value>& value) {
      if (value) fn(*value);
    };
    return compute_aside(where, key, if_present);
  }
}

template <class Key, class Value, class Sync, class Shape>
template <class Fn>
auto btree<Key, Value, Sync, Shape>::try_update(const search_key& key, Fn& fn,
                                                std::exception_ptr& thrown) noexcept -> op_status {
  position p;
  if (!descend_to_leaf(key, p)) return op_status::restart;
  leaf& l = p.as_leaf();
  const found_slot f = find(p, key);
  if (f.torn) return op_status::restart;
  if (!f.exact) return p.still_valid() ? op_status::no : op_status::restart;
  if (!l.lock.try_upgrade(p.seen)) return op_status::restart;
  Value value = l.value(f.rank);
  try {
    fn(value);
  } catch (...) {
    thrown = std::current_exception();
    l.lock.unlock_unchanged(p.seen);
    return op_status::threw;
  }
  l.set_value(f.rank, value);
  l.lock.unlock();
  return op_status::yes;
}

template <class Key, class Value, class Sync, class Shape>
auto btree<Key, Value, Sync, Shape>::try_replace(const search_key& key, const value_slot& expected,
                                                 value_argument value, operation& op) noexcept
    -> op_status {
  position p;
  if (!descend_to_leaf(key, p)) return op_status::restart;
  leaf& l = p.as_leaf();
  const found_slot f = find(p, key);
  if (f.torn) return op_status::restart;
  if (!f.exact || l.value(f.rank) != expected)
    return p.still_valid() ? op_status::no : op_status::restart;
  if (!op.has_value(value) || !op.may_retire()) return op_status::need_memory;
  if (!l.lock.try_upgrade(p.seen)) return op_status::restart;
  op.retire_value(expected);
  l.set_value(f.rank, op.take_value(value));
  l.lock.unlock();
  return op_status::yes;
}

// --- computing ---

template <class Key, class Value, class Sync, class Shape>
template <class Fn>
bool btree<Key, Value, Sync, Shape>::compute(key_argument key, Fn&& fn)
  requires Sync::readers_race
{
  const search_key where = keys::search_key_of(key);
  if constexpr (values::owns_objects) {
    return compute_aside(where, key, fn);
  } else {
    return compute_in_place(where, key, fn);
  }
}

// fn runs under the leaf's lock. If it wants the key erased, it runs again under the locks that an
// erase needs.
template <class Key, class Value, class Sync, class Shape>
template <class Fn>
bool btree<Key, Value, Sync, Shape>::compute_in_place(const search_key& where, key_argument key,
                                                      Fn& fn) {
  operation op(*this);
  std::exception_ptr thrown;
  for (;;) {
    op_status s = run_changing(op, [&] {
      return sync_.exclusive([&] { return try_compute(where, key, fn, op, thrown); });
    });
    if (s == op_status::yes) {
      size_.add(1);
      return true;
    }
    if (s == op_status::erases) {
      s = run_changing(op, [&] {
        return sync_.exclusive([&] {
          return try_erase(where, op, [&](leaf& l, unsigned rank) {
            return compute_in_slot(l, rank, fn, thrown);
          });
        });
      });
      if (s == op_status::no) continue;  // another thread has erased the key
      if (s == op_status::yes) {
        erased(where, op);
        return false;
      }
    }
    if (s == op_status::threw) std::rethrow_exception(thrown);
    return s == op_status::changed;
  }
}

template <class Key, class Value, class Sync, class Shape>
template <class Fn>
auto btree<Key, Value, Sync, Shape>::try_compute(const search_key& where, key_argument key, Fn& fn,
                                                 operation& op, std::exception_ptr& thrown) noexcept
    -> op_status {
  position p;
  if (const op_status s = descend_splitting(where, p, op); s != op_status::yes) return s;
  leaf& l = p.as_leaf();
  const found_slot f = find(p, where);
  if (f.torn) return op_status::restart;
  const bool needs_blob = !f.exact && l.needs_blob(key);
  if (!f.exact) {
    if (!l.has_room(f.count, key)) return split_leaf(p, f.rank, op);
    if (!op.has_key(key, needs_blob)) return op_status::need_memory;
  }
  if (!l.lock.try_upgrade(p.seen)) return op_status::restart;
  std::optional<Value> value;
  const op_status s =
      f.exact ? compute_in_slot(l, f.rank, fn, thrown) : compute_absent(value, fn, thrown);
  if (s == op_status::yes) l.insert(f.rank, key, op.take_key_blob(needs_blob), *value);
  if (s == op_status::yes || s == op_status::changed) {
    l.lock.unlock();
  } else {
    l.lock.unlock_unchanged(p.seen);
  }
  return s;
}

// A region cannot make the new object. So this function reads, computes, and takes the result into
// the tree if the key's object is still the same. While the thread is pinned, an object's address
// is not used again. So the same address means the same value.
template <class Key, class Value, class Sync, class Shape>
template <class Fn>
bool btree<Key, Value, Sync, Shape>::compute_aside(const search_key& where, key_argument key,
                                                   Fn& fn) {
  operation op(*this);
  const epoch_pin pinned;
  for (;;) {
    std::optional<value_slot> old;
    static_cast<void>(run_shared([&] { return try_get(where, old); }));
    std::optional<Value> value;
    if (old) value.emplace(values::owned(*old));
    fn(value);
    if (!old && !value) return false;
    if (!value) {
      if (!erase_same(where, *old, op)) continue;
      return false;
    }
    typename values::holder made = holder_of(std::move(*value));
    values::check(made);
    operation adding(*this);  // its object is of this value
    const op_status s = run_changing(adding, [&] {
      return sync_.exclusive([&] {
        return old ? try_replace(where, *old, made, adding)
                   : try_put(where, key, made, false, adding);
      });
    });
    if (s != op_status::yes) continue;
    if (!old) size_.add(1);
    return true;
  }
}

// --- erasing ---

// Removes the key if its object is still the same. The caller is pinned.
template <class Key, class Value, class Sync, class Shape>
bool btree<Key, Value, Sync, Shape>::erase_same(const search_key& where, const value_slot& object,
                                                operation& op) {
  const op_status s = run_changing(op, [&] {
    return sync_.exclusive([&] {
      return try_erase(where, op, [&](leaf& l, unsigned rank) {
        return l.value(rank) == object ? op_status::erases : op_status::changed;
      });
    });
  });
  if (s != op_status::yes) return false;
  erased(where, op);
  return true;
}

// Like compute_aside(), with the object itself in place of a copy.
template <class Key, class Value, class Sync, class Shape>
template <class Pred>
bool btree<Key, Value, Sync, Shape>::erase_if(key_argument key, Pred&& pred)
  requires(values::owns_objects)
{
  const search_key where = keys::search_key_of(key);
  operation op(*this);
  const epoch_pin pinned;
  for (;;) {
    std::optional<value_slot> object;
    static_cast<void>(run_shared([&] { return try_get(where, object); }));
    if (!object || !pred(values::view(*object))) return false;
    if (erase_same(where, *object, op)) return true;
  }
}

template <class Key, class Value, class Sync, class Shape>
bool btree<Key, Value, Sync, Shape>::erase(key_argument key) {
  const search_key where = keys::search_key_of(key);
  operation op(*this);
  const op_status s = run_changing(op, [&] {
    return sync_.exclusive(
        [&] { return try_erase(where, op, [](leaf&, unsigned) { return op_status::erases; }); });
  });
  if (s == op_status::yes) erased(where, op);
  return s == op_status::yes;
}

template <class Key, class Value, class Sync, class Shape>
std::optional<Value> btree<Key, Value, Sync, Shape>::extract(key_argument key)
  requires(values::owns_objects && !values::makes_objects)
{
  refuse_if_pinned("elidex: extract() was called by a function that a map calls");
  const search_key where = keys::search_key_of(key);
  operation op(*this);
  op.keep_value();
  const op_status s = run_changing(op, [&] {
    return sync_.exclusive(
        [&] { return try_erase(where, op, [](leaf&, unsigned) { return op_status::erases; }); });
  });
  if (s != op_status::yes) return std::nullopt;
  erased(where, op);
  wait_for_pins();
  const std::unique_ptr<Value> mine = op.kept_value();
  return std::move(*mine);
}

// decide(leaf, rank) runs when the leaf is locked. If it returns something else than `erases`,
// nothing is erased, and try_erase() returns that. It may have changed the value.
template <class Key, class Value, class Sync, class Shape>
template <class Decide>
auto btree<Key, Value, Sync, Shape>::try_erase(const search_key& key, operation& op,
                                               Decide&& decide) noexcept -> op_status {
  position p;
  if (const op_status s = descend_merging(key, p, op); s != op_status::yes) return s;
  leaf& l = p.as_leaf();
  const found_slot f = find(p, key);
  if (f.torn) return op_status::restart;
  if (!f.exact) return p.still_valid() ? op_status::no : op_status::restart;
  if (p.parent != nullptr && l.is_sparse_without_one(f.count)) {
    const op_status s = erase_and_merge(p, f.rank, op, decide);
    if (s != op_status::no) return s;
  }
  if ((keys::owns_blobs || values::owns_objects) && !op.may_retire()) return op_status::need_memory;
  if (!l.lock.try_upgrade(p.seen)) return op_status::restart;
  if (const op_status s = decide(l, f.rank); s != op_status::erases) {
    l.lock.unlock();
    return s;
  }
  op.retire_key_blob(l.blob_of(f.rank));
  op.retire_value(l.value(f.rank));
  l.erase(f.rank);
  op.note_empty_leaf(p.parent != nullptr && l.used() == 0);
  l.lock.unlock();
  return op_status::yes;
}

template <class Key, class Value, class Sync, class Shape>
template <class Decide>
auto btree<Key, Value, Sync, Shape>::erase_and_merge(position& p, unsigned rank, operation& op,
                                                     Decide& decide) noexcept -> op_status {
  const op_status s = erase_and_merge(p, side::left, rank, op, decide);
  return s != op_status::no ? s : erase_and_merge(p, side::right, rank, op, decide);
}

template <class Key, class Value, class Sync, class Shape>
template <class Decide>
auto btree<Key, Value, Sync, Shape>::erase_and_merge(position& p, side where, unsigned rank,
                                                     operation& op, Decide& decide) noexcept
    -> op_status {
  position left;
  position right;
  if (const op_status s = find_sibling(p, where, left, right); s != op_status::yes) return s;
  leaf& l = left.as_leaf();
  leaf& r = right.as_leaf();
  // An emptied leaf goes whenever its neighbour fits. Torn counts do no harm: the upgrades validate
  // them.
  const auto remaining = [&](const leaf& in) {
    const unsigned n = in.count();
    return p.at == &in && n > 0 ? n - 1 : n;
  };
  if (!leaf::fit_together(l, remaining(l), r, remaining(r), *left.parent)) return op_status::no;
  if (!op.may_retire()) return op_status::need_memory;
  if (!left.try_lock_parent_and_node()) return op_status::restart;
  if (!r.lock.try_upgrade(right.seen)) {
    left.unlock_both_unchanged();
    return op_status::restart;
  }
  leaf& from = p.as_leaf();
  if (const op_status s = decide(from, rank); s != op_status::erases) {
    r.lock.unlock();
    left.unlock_both();
    return s;
  }
  op.retire_key_blob(from.blob_of(rank));
  op.retire_value(from.value(rank));
  from.erase(rank);
  l.share_prefix(r, *left.parent, left.index);
  r.move_tail(0, l);
  op.note_empty_leaf(l.used() == 0);
  take_out_right(left, r, op);
  return op_status::yes;
}

// Ends the merging of a leaf with the one behind it, whose records it has. All are locked.
template <class Key, class Value, class Sync, class Shape>
void btree<Key, Value, Sync, Shape>::take_out_right(position& left, leaf& right,
                                                    operation& op) noexcept {
  op.retire_key_blob(left.parent->blob_of(left.index));
  left.parent->erase(left.index);
  op.retire_leaf(&right);
  right.lock.unlock_obsolete();
  left.unlock_both();
  op.note_merge();
}

// After an erase. If it has left a leaf empty, the leaf goes now, and so do empty neighbours. Thus
// an emptied tree ends as one leaf.
template <class Key, class Value, class Sync, class Shape>
void btree<Key, Value, Sync, Shape>::erased(const search_key& where, operation& op) noexcept {
  size_.add(-1);
  if constexpr (leaf::holds_keys) {
    if (!op.left_empty_leaf()) return;
    try {
      operation after(*this);
      while (run_changing(after, [&] {
               return sync_.exclusive([&] { return try_drop_empty_leaf(where, after); });
             }) == op_status::changed) {
      }
    } catch (const std::bad_alloc&) {
      return;  // the leaf stays
    }
  }
}

template <class Key, class Value, class Sync, class Shape>
auto btree<Key, Value, Sync, Shape>::try_drop_empty_leaf(const search_key& where,
                                                         operation& op) noexcept -> op_status {
  position p;
  if (const op_status s = descend_merging(where, p, op); s != op_status::yes) return s;
  if (p.parent == nullptr || p.at->count() != 0)
    return p.still_valid() ? op_status::no : op_status::restart;
  for (const side which : {side::left, side::right}) {
    position left;
    position right;
    const op_status s = find_sibling(p, which, left, right);
    if (s == op_status::restart) return s;
    if (s == op_status::no) continue;
    leaf& l = left.as_leaf();
    leaf& r = right.as_leaf();
    if (!leaf::fit_together(l, l.count(), r, r.count(), *left.parent)) continue;
    if (!op.may_retire()) return op_status::need_memory;
    if (!left.try_lock_parent_and_node()) return op_status::restart;
    if (!r.lock.try_upgrade(right.seen)) {
      left.unlock_both_unchanged();
      return op_status::restart;
    }
    l.share_prefix(r, *left.parent, left.index);
    r.move_tail(0, l);
    take_out_right(left, r, op);
    return op_status::changed;
  }
  return op_status::no;
}

// --- ranges and facts ---

template <class Key, class Value, class Sync, class Shape>
template <class Fn>
std::size_t btree<Key, Value, Sync, Shape>::scan(key_argument from, std::size_t limit,
                                                 Fn&& fn) const {
  return scan_collected(from, limit, fn);
}

template <class Key, class Value, class Sync, class Shape>
template <class Fn>
std::size_t btree<Key, Value, Sync, Shape>::scan(const tree_range<key_argument>& which,
                                                 std::size_t limit, Fn&& fn) const {
  return scan_collected(which, limit, fn);
}

template <class Key, class Value, class Sync, class Shape>
template <class Which, class Fn>
std::size_t btree<Key, Value, Sync, Shape>::scan_collected(const Which& which, std::size_t limit,
                                                           Fn& fn) const {
  internal::collected_range<btree> range(*this, limit);
  const auto pass_on = [&] {
    return range.for_each([&](const auto& e) {
      const auto key = range.key(e);
      return visits_on(fn, key.get(), values::view(e.value));
    });
  };
  if constexpr (keys::owns_blobs || values::owns_objects) {
    [[maybe_unused]] const pin until_the_last_object_is_seen;
    range.collect(which);
    return pass_on();
  } else {
    {
      [[maybe_unused]] const pin pinned;
      range.collect(which);
    }
    return pass_on();
  }
}

template <class Key, class Value, class Sync, class Shape>
auto btree<Key, Value, Sync, Shape>::separators(std::size_t wanted) const
    -> std::vector<typename inner_levels::owned_key> {
  auto all = this->separators_of_nodes(wanted, [&](auto&& body) { return range_region(body); });
  if (all.size() < wanted) {  // few nodes
    all.clear();
    scan(tree_range<key_argument>{}, static_cast<std::size_t>(-1),
         [&](const key_argument& key, const auto&) { all.emplace_back(key); });
    if (!all.empty()) all.erase(all.begin());
  }
  this->thin_out(all, wanted);
  return all;
}

template <class Key, class Value, class Sync, class Shape>
std::size_t btree<Key, Value, Sync, Shape>::memory_bytes() const noexcept {
  return sizeof(*this) + this->node_bytes_reserved() + retire_list_.reserved_bytes() +
         key_blobs_.memory_bytes() + size_.memory_bytes() + blob_bytes_.memory_bytes() +
         static_cast<std::size_t>(std::max<std::int64_t>(blob_bytes_.sum(), 0));
}

template <class Key, class Value, class Sync, class Shape>
btree_stats btree<Key, Value, Sync, Shape>::stats() const noexcept {
  btree_stats s = this->node_stats();
  s.retired_objects = retire_list_.pending();
  return s;
}

}  // namespace elidex::internal
