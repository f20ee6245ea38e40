// A concurrent B+tree for integer keys and trivially copyable values, built for leaves that many
// threads want at once.
//
//   fixed_key_btree<std::uint64_t, std::uint64_t, optimistic, separated_fan_out<>> tree;
//   tree.insert(7, 70);
//
// The tree is the Euno-B+Tree of paper 003. The kind of leaf and the control of leaves are
// parameters. papers/eunomia/euno_btree.hpp has the paper's own leaf.
//
// Thread-safety: every function but constructor and destructor, from any thread at any time. Every
// operation is linearizable except size(), empty(), memory_bytes(), stats() and cursors
// (cursor.hpp). The first four are exact when no operation runs. multi_get() is not a snapshot.
// Complexity: O(log n) for one key. A scan adds O(1) for each record.
// Iterator validity: a cursor stays valid whatever other threads do (cursor.hpp).
// Errors: std::bad_alloc from functions that add or erase keys, from scans and cursors (for their
// buffer), and from the first call of a thread. The tree is then unchanged. Errors of multi_get()
// and bulk_load(): at the functions. Destructor, reclaim(), size(), empty(), memory_bytes() and
// stats() never throw.
//
// Implementation notes
// The four principles of paper 003 section 4.2, and where each is:
//   splitting regions     The policy's descend() leads to a leaf, its in_leaf() works in the leaf:
//                         at_leaf(). Between the two the leaf may be split or removed. The leaf's
//                         version (`optimistic`) or sequence number (split_regions.hpp) then
//                         differs.
//   partitioned layout    The leaf, chosen by the Shape: separated_leaf.hpp, or the paper's.
//   conflict control      conflict_control.hpp: at_controlled_leaf().
//   adaptive control      `Control`: a leaf gets its conflict control when its requests collide. It
//                         loses the control when they stop colliding: at_bare_leaf(), switch_on(),
//                         switch_off().
//
// Under `optimistic` the descent is optimistic lock coupling (btree.hpp). In the leaf, readers
// validate the leaf's version and writers hold its lock. Under split regions each of the two parts
// is a hardware region, and the leaf's sequence number takes the place of its version.
//
// Splits, redistributions and merges are operations of their own, under the policy's whole()
// (try_split(), try_redistribute(), try_merge()). They leave the contents as they were. An insert
// that finds its leaf full has the leaf split, or redistributed with a sibling, and begins again.
// An erase leaves its leaf as it is, and merges the leaf afterwards if it is sparse (paper 003
// section 5.3).
//
// Invariants
//   * Inner nodes: the invariants of btree.hpp. A leaf may be empty for a while.
//   * Everything that one region reads from the leaf for a key, it reads while that leaf is the one
//     for the key. Under `optimistic` the version of the leaf's lock is validated last. Under split
//     regions in_leaf() validates the sequence number first. A split, a merge and a removal change
//     the number under whole().
//   * While a leaf has a conflict control and its sequence number stays the same, each of its keys
//     has its mark set. An insert sets the mark first, under the slot's lock bit. An erase clears
//     the mark afterwards, under the same bit, if no other key of the leaf has that mark. A merge
//     moves keys into a leaf and takes the leaf's control away. A split moves keys out of a leaf.
//     It clears their marks after the region and before it releases the split lock. A request that
//     has the new sequence number sees the split lock, because the lock was taken before the number
//     changed. It waits for that lock before it looks at any mark, so a mark that it finds is not
//     about to be cleared. A request that has the old number marks in vain and begins again.
//   * A redistribution moves records between two leaves without controls, of one parent, and moves
//     the separator between them. It holds the locks of both leaves (and of the values), and runs
//     under whole(). The separator moves under the parent's lock as well. That lock is released
//     before the records move. An operation that the new separator routes to either leaf waits for
//     that leaf's lock. Splits do likewise, but under split regions they write the parent last. An
//     operation that the old separator routed to the giving leaf finds its version, or its sequence
//     number, changed. No operation can already be routed to the receiving leaf for a moved key.
//   * The key range of a leaf changes together with its sequence number. So a thread may return to
//     a leaf without a descent (leaf_hint).
//   * A leaf's control changes together with its sequence number, so that no request works under
//     the wrong assumption.
//   * Under split regions a request is not pinned between its regions. Leaves are only ever reused
//     as leaves, with sequence numbers that never come again (split_regions.hpp). To use a control,
//     a request pins itself and then validates the sequence number. The control was then the leaf's
//     after the pin, so its memory is not reused before the unpinning. Under `optimistic` a request
//     is pinned as a whole.
//
// Order of locks
// 1. Before any region: a slot's lock bit or nothing, then an auxiliary lock (only under split
//    regions), then the split lock. A thread holds one auxiliary lock at most. No thread waits for
//    the split lock with a lock bit held, or the reverse.
// 2. The region of descend().
// 3. The region of in_leaf().
// 4. The node, then its sibling, by try_upgrade().
// 5. The locks of values, leaf by leaf. Where these lock keys, too (bucketed_leaf.hpp), a request
//    for one key holds one of them without the leaf's lock, and then waits for nothing.
// 6. The parent, by lock_parent_of_locked(), which waits. The parent comes last and is held
//    briefly, because every operation on the way to another of its leaves waits meanwhile. A merge
//    instead tries for the parent before the node.
//
// Linearization points
//   split regions   The commit of in_leaf()'s region, or the unlocking of its fallback lock. For a
//                   request that a clear mark answers: the reading of the mark, if the sequence
//                   number is validated after it.
//   optimistic      get(), contains() and operations that change nothing: the reading of the leaf's
//                   version at the end of the descent. If a clear mark answers: the reading of the
//                   mark. Changes: the try_upgrade() of the leaf.
//                   Where values have locks of their own (separated_leaf.hpp), these two differ.
//                   A value that is read: the reading of its lock's version in try_read().
//                   A value that is replaced: the locking of its lock in change_value().
//                   Both validate the leaf's version afterwards.
//                   Where keys have locks of their own, see bucketed_leaf.hpp.
//   scan            range_collector.hpp, under whole().
//
// Deviations from paper 003 section 5: a split is a region of its own. Under regions, scans
// sort in private memory instead of moving what they read to the reserved keys. So they write
// nothing, and abort no reader.
// Leaves have no links (btree.hpp). See also conflict_control.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bitset>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <ranges>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "elidex/internal/memory/block_pool.hpp"
#include "elidex/internal/memory/counters.hpp"
#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/memory/retire_list.hpp"
#include "elidex/internal/sync/auxiliary_locks.hpp"
#include "elidex/internal/sync/backoff.hpp"
#include "elidex/internal/sync/random.hpp"
#include "elidex/internal/sync/split_regions.hpp"
#include "elidex/internal/tree/btree_inner.hpp"
#include "elidex/internal/tree/bulk_load.hpp"
#include "elidex/internal/tree/conflict_control.hpp"
#include "elidex/internal/tree/cursor.hpp"
#include "elidex/internal/tree/node_operation.hpp"
#include "elidex/internal/tree/range_collector.hpp"
#include "elidex/internal/tree/tree_range.hpp"
#include "elidex/internal/tree/value_change.hpp"

namespace elidex::internal {

// When a leaf gets a conflict control and when it loses it. All numbers are chosen: the paper gives
// none.
struct control_bounds {
  // The suspicion of a leaf grows by one with each abort or restart. It shrinks by one with every
  // 64th request that met no other. So about one collision in 64 requests is tolerated. A leaf
  // whose suspicion reaches this bound gets a control.
  static constexpr std::uint32_t collisions_to_switch_on = 8;
  static constexpr std::uint64_t calm_requests = 64;
  // The length of a control's period, and the least number of collisions in it that keeps the
  // control.
  static constexpr unsigned requests_per_period = 512;
  static constexpr unsigned collisions_to_stay_on = 8;
};

// When leaves have a conflict control: never, always, or while their requests collide.
struct no_control : control_bounds {
  static constexpr auxiliary_lock_use locks_leaf_for = auxiliary_lock_use::conflicts;
  static constexpr bool enabled = false;
  static constexpr bool adaptive = false;
};
struct always_control : control_bounds {
  static constexpr auxiliary_lock_use locks_leaf_for = auxiliary_lock_use::splits;
  static constexpr bool enabled = true;
  static constexpr bool adaptive = false;
};
struct adaptive_control : control_bounds {
  static constexpr auxiliary_lock_use locks_leaf_for = auxiliary_lock_use::splits;
  static constexpr bool enabled = true;
  static constexpr bool adaptive = true;
};

// Counts since construction. Each is exact when no operation runs.
struct fixed_key_btree_stats : btree_stats {
  std::int64_t controls_switched_on = 0;
  // by the contention detector (a merge takes controls away, too)
  std::int64_t controls_switched_off = 0;
  std::size_t controls = 0;  // in use, retired ones included
};

// Key: an integer type. Value: a trivially copyable type. Sync: split_regions<Lock> or optimistic.
template <std::integral Key, class Value, class Sync, class Shape, class Control = no_control>
class fixed_key_btree
    : btree_inner<Key, Sync, Shape, typename Shape::template leaf<Key, Value, Sync>, true> {
  static_assert(std::is_trivially_copyable_v<Value>);
  static_assert(Shape::has_controls || !Control::enabled);
  using inner_levels =
      btree_inner<Key, Sync, Shape, typename Shape::template leaf<Key, Value, Sync>, true>;
  using values = value_codec<Value>;
  using value_slot = Value;
  using operation = btree_operation<fixed_key_btree>;
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
  using control = typename leaf::control_type;
  using remembered = leaf_hint<Key, leaf>;
  using pin = std::conditional_t<Sync::readers_race, epoch_pin, internal::no_pin>;

 public:
  using key_type = Key;
  using mapped_type = Value;
  using sync_policy = Sync;
  using key_argument = Key;
  using value_argument = const Value&;
  using cursor_type = internal::map_cursor<fixed_key_btree>;

  explicit fixed_key_btree(const memory_options& options = {});
  // Nodes and controls need no destruction. The pools release their memory.
  ~fixed_key_btree() = default;
  fixed_key_btree(const fixed_key_btree&) = delete;
  fixed_key_btree& operator=(const fixed_key_btree&) = delete;

  // Returns the value of `key`, or std::nullopt.
  std::optional<Value> get(Key key) const;
  bool contains(Key key) const { return get(key).has_value(); }

  // Looks up many keys, in any order: found[i] becomes the value of wanted[i], or std::nullopt.
  // Each look-up is linearizable by itself. Together they are not a snapshot. Throws
  // std::invalid_argument if `found` is shorter than `wanted`. Where readers race, the look-ups
  // wait for memory together instead of one after the other (group prefetching: Chen, Ailamaki,
  // Gibbons, Mowry, ICDE 2004). That is two to three times as fast when the tree is larger than the
  // caches.
  void multi_get(std::span<const Key> wanted, std::span<std::optional<Value>> found) const;

  // Adds `key` if it is absent. Returns whether it added the key.
  bool insert(Key key, const Value& value) { return insert_or_overwrite(key, value, false); }

  // Adds `key`, or overwrites its value. Returns whether it added the key.
  bool upsert(Key key, const Value& value) { return insert_or_overwrite(key, value, true); }

  // Calls upsert(wanted[i], given[i]) for each i. `given` is as long as `wanted`. Returns how many
  // keys it added. Each call is atomic. Calls for different keys take effect in any order. Where
  // readers race, the calls wait for memory together, as in multi_get(). After std::bad_alloc some
  // of the calls have taken effect.
  std::size_t multi_upsert(std::span<const Key> wanted, std::span<const Value> given);

  // Returns the value of `key` and whether it added the key. If the key is absent, adds it with the
  // value that make() returns. The whole is one atomic step. make() must not use the tree, and
  // should be short: other operations on the leaf wait for it. It may run more than once when
  // transactions abort. If make() throws, get_or_insert() passes the exception on and adds nothing.
  template <class Make>
  std::pair<Value, bool> get_or_insert(Key key, Make&& make);
  // The same, except that make() receives the key as nodes store it, and may return nothing. Then
  // nothing is added, and std::nullopt is returned. A dictionary beside the map uses it
  // (internal/column/keyed_delta_index.hpp).
  template <class Make>
  std::optional<std::pair<Value, bool>> get_or_insert_if_made(Key key, Make&& make);

  // Fills the map, which must be empty, with the records of a range. The keys must ascend. An
  // element of the range has a key as `first` and a value as `second`. All records appear at one
  // moment. Loading is much faster than inserting, and leaves are nearly full afterwards. Throws
  // std::invalid_argument if the keys do not ascend, std::logic_error if the map is not empty or
  // another thread fills it meanwhile, std::bad_alloc, and what the range throws. After an
  // exception the map is as it was.
  template <std::ranges::input_range Range>
  void bulk_load(Range&& sorted) {
    bulk_fill([&](auto& loader) {
      for (const auto& record : sorted) loader.add(record.first, record.second);
    });
  }
  // The same for the records for which fill(loader) calls loader.add(key, value).
  template <class Fill>
  void bulk_fill(Fill&& fill);

  // Calls fn(value) for the value of `key` and stores the result, as one atomic step. Returns
  // whether the key is present. fn(Value&) must not use the tree, and should be short. It may run
  // more than once. Only its last run has an effect on the value. If fn throws, update() passes the
  // exception on and the value stays.
  template <value_change<Value> Fn>
  bool update(Key key, Fn&& fn);

  // Calls fn(value), where value is a std::optional<Value>&: the value of `key`, or empty.
  // Afterwards `key` has the value that fn left there, or is absent if fn left it empty. The whole
  // is one atomic step. Returns whether the key is present then. As for update(): fn must not use
  // the tree, should be short, and may run more than once. If fn throws, compute() passes the
  // exception on and changes nothing.
  template <class Fn>
  bool compute(Key key, Fn&& fn);

  // Removes `key`. Returns whether the key was present.
  bool erase(Key key);

  // Calls erase() for each key, in any order. Returns how many keys it removed. Waits for memory as
  // multi_upsert() does.
  std::size_t multi_erase(std::span<const Key> wanted);

  // Calls fn(value) for a copy of the value of `key`. Returns whether the key is present.
  template <class Fn>
  bool visit(Key key, Fn&& fn) const {
    const std::optional<Value> value = get(key);
    if (value) fn(*value);
    return value.has_value();
  }

  // Calls fn(key, value) for up to `limit` keys from `from` on, in ascending order. Returns their
  // number. The scan is a snapshot: at one moment all of these keys were in the tree, with no other
  // key between them. fn runs after that moment, outside of all locks, and may use the tree. The
  // scan buffers the records first. For long ranges prefer a cursor.
  template <class Fn>
  std::size_t scan(Key from, std::size_t limit, Fn&& fn) const;

  // The same for a range of any kind. A visitor that returns false ends the scan. Returns the
  // number of calls.
  template <class Fn>
  std::size_t scan(const tree_range<Key>& which, std::size_t limit, Fn&& fn) const;

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
  fixed_key_btree_stats stats() const noexcept;

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
  friend internal::node_operation<fixed_key_btree>;
  friend internal::range_collector<fixed_key_btree>;
  friend internal::collected_range<fixed_key_btree>;
  friend cursor_type;
  friend internal::bulk_loader<fixed_key_btree>;

  using inner_levels::defers_reclamation;
  using inner_levels::descend_merging;
  using inner_levels::descend_splitting;
  using inner_levels::descend_to_leaf;
  using inner_levels::enter_child;
  using inner_levels::enter_root;
  using inner_levels::enter_sibling;
  using inner_levels::find_sibling;
  using inner_levels::inner_pool_;
  using inner_levels::leaf_merged_max;
  using inner_levels::leaf_pool_;
  using inner_levels::leaf_sparse;
  using inner_levels::link_right_half;
  using inner_levels::lock_in_leaf;
  using inner_levels::lock_parent_of_locked;
  using inner_levels::look_up_together;
  using inner_levels::merges_;
  using inner_levels::racing;
  using inner_levels::redistributions_;
  using inner_levels::restarts_;
  using inner_levels::root_;
  using inner_levels::run_changing;
  using inner_levels::splits_;
  using inner_levels::sync_;
  // A full leaf that would hand over fewer records than this to a sibling splits instead. Chosen:
  // the next few inserts would fill a smaller gap again.
  static constexpr unsigned redistributed_at_least = std::max(1U, leaf::capacity / 15);
  // See leaf_hint. Under regions a thread that returns to a leaf is not pinned, and the leaf's
  // control may be freed by then.
  static constexpr bool has_leaf_hints = Shape::has_leaf_hints && (racing || !Control::enabled);
  // Whether keys and their values have locks apart from the leaf's, or only the values.
  static constexpr bool locks_keys_apart = internal::locks_keys_apart<leaf, Key>;
  static constexpr bool locks_values_apart = racing && leaf::value_locks != 0 && !locks_keys_apart;

  // Whether leaves consist of buckets (bucketed_leaf.hpp).
  static constexpr bool has_buckets =
      requires(leaf& l, unsigned& in) { l.hold_room_for(Key{}, in); };

  // How a request came to a leaf that locks keys apart.
  struct way_to_leaf {
    node_lock* lock = nullptr;  // of the key
    // Under this version the parent pointed at the leaf. Null: the leaf's sequence number led here.
    const node_lock* parent_lock = nullptr;
    token parent_seen{};
  };
  struct no_way {};

  // The leaf that the descent has found.
  struct leaf_ref {
    leaf* at = nullptr;
    token seen{};
    typename leaf::sequence_type::token sequence{};
    control* controlled_by = nullptr;
    [[no_unique_address]] std::conditional_t<locks_keys_apart, way_to_leaf, no_way> way{};

    // The lock whose version is `seen`.
    node_lock& lock() const noexcept {
      if constexpr (locks_keys_apart) {
        return *way.lock;
      } else {
        return at->lock;
      }
    }
    bool is_still_right() const noexcept {
      if constexpr (racing) return lock().validate(seen);
      return at->sequence.validate(sequence);
    }
    // Reads the version again. Returns whether the leaf is still the one for the key.
    bool renew() noexcept {
      if constexpr (locks_keys_apart) {
        seen = way.lock->read();
        return way.parent_lock != nullptr ? way.parent_lock->validate(way.parent_seen)
                                          : at->sequence.validate(sequence);
      } else {
        return false;
      }
    }
    // The same at the end of a region that began with is_still_right(). Only racing readers
    // validate again.
    bool was_right() const noexcept { return !racing || is_still_right(); }
  };

  enum class request : std::uint8_t { look_up, put, erase };

  // What the body of in_leaf() reports to the code after it.
  struct outcome {
    bool mark_is_free = false;  // after an erase: no other key of the leaf has the same mark
    bool is_sparse = false;     // after an erase: the leaf is worth merging
  };

  template <request What, class Body>
  op_status at_leaf(Key key, Body&& body) const;
  template <request What, class Body>
  op_status in_leaf(const leaf_ref& p, Body&& body, std::uint32_t& aborts) const;
  // The same without a count of aborts. Keys of one group abort each other, so it would not
  // show contention.
  template <request What, class Body>
  op_status in_leaf(const leaf_ref& p, Body&& body) const {
    std::uint32_t ignored = 0;
    return in_leaf<What>(p, body, ignored);
  }
  template <request What, class Body>
  op_status at_bare_leaf(const leaf_ref& p, Body&& body) const;
  template <class Body>
  op_status at_joined_leaf(const leaf_ref& p, Body&& body) const;
  // Whether the operation is a part of a hardware region that the caller has begun.
  static bool joins_a_region() noexcept {
    if constexpr (requires { Sync::in_region(); }) {
      return Sync::in_region();
    } else {
      return false;
    }
  }
  template <request What, class Body>
  op_status at_controlled_leaf(const leaf_ref& p, Key key, Body&& body) const;
  op_status come_to_leaf(Key key, leaf_ref& p) const;
  op_status find_leaf(Key key, leaf_ref& p) const noexcept;
  bool recall_leaf(Key key, leaf_ref& p) const noexcept;
  void remember_if_again(Key key, const leaf_ref& p) const noexcept;
  [[gnu::noinline]] void remember(Key key, const leaf_ref& p, remembered& mine) const noexcept;
  // Sets p in place: a copy would read with one vector load what was stored just before in parts,
  // and wait for the stores.
  static void refer_to(const position& at, Key key, leaf_ref& p) noexcept;

  bool remembers_leaf_of([[maybe_unused]] Key key) const noexcept {
    if constexpr (has_leaf_hints) {
      return remembered::of_this_thread(id_).is_for(id_, key);
    } else {
      return false;
    }
  }
  template <class Change, class Otherwise>
  void change_together(std::span<const Key> wanted, Change&& change, Otherwise&& otherwise);

  bool insert_or_overwrite(Key key, const Value& value, bool overwrite);
  op_status try_get(const leaf_ref& p, Key key, std::optional<Value>& value) const noexcept;
  op_status try_read(const leaf_ref& p, Key key, unsigned slot,
                     std::optional<Value>& value) const noexcept;
  op_status try_put(const leaf_ref& p, Key key, const Value& value, bool overwrite,
                    bool known_absent) noexcept;
  template <class Make>
  op_status try_get_or_insert(const leaf_ref& p, Key key, Make& make, bool known_absent,
                              std::optional<Value>& value, std::exception_ptr& thrown) noexcept;
  template <class Fn>
  op_status change_value(const leaf_ref& p, Key key, unsigned slot, Fn&& fn) noexcept;
  template <class Fn>
  op_status try_compute(const leaf_ref& p, Key key, Fn& fn, bool known_absent,
                        std::exception_ptr& thrown) noexcept;
  template <class Decide>
  op_status try_erase(const leaf_ref& p, Key key, outcome& result, Decide&& decide) noexcept;
  template <class Decide>
  op_status erase_if(Key key, Decide&& decide);

  [[gnu::noinline]] void split(Key key, const leaf_ref& p) const;
  [[gnu::noinline]] void merge_if_sparse(Key key) noexcept;
  op_status try_split(Key key, operation& op, std::uint64_t nth_leaf, const control* locked,
                      std::uint64_t& kept_marks) noexcept;
  op_status try_redistribute(const position& p, Key key, bool ascending, operation& op) noexcept;
  // Where to divide a leaf that ascending keys fill: before the next key, or at the last record.
  static unsigned end_of_run(const typename leaf::ordered_copy& all, Key key) noexcept {
    return std::clamp(all.rank(key), 1U, all.count() - 1);
  }
  // The first place from `middle` on behind which the records surely fit into an empty leaf.
  static unsigned surely_fits_behind(unsigned middle, unsigned count) noexcept {
    if constexpr (requires { leaf::certain_capacity; }) {
      return std::max(middle, count - std::min(count, leaf::certain_capacity));
    } else {
      return middle;
    }
  }
  void begin_life(leaf& made) noexcept { made.sequence.begin_life(leaves_made_.fetch_add(1)); }
  void end_life(leaf& old, operation& op) noexcept {
    take_control_away(old, op);
    old.sequence.invalidate();
  }
  template <class Body>
  auto changing_region(Body&& body) {
    return sync_.whole(body);
  }
  op_status try_merge(Key key, operation& op) noexcept;
  static void lock_values(leaf& l) noexcept {
    l.for_each_value_lock([](node_lock& one) { one.lock(); });
  }
  static void unlock_values(leaf& l) noexcept {
    l.for_each_value_lock([](node_lock& one) { one.unlock(); });
  }
  void take_control_away(leaf& l, operation& op) noexcept;

  // Locks what an insert of an absent key changes, and makes room for the key in `room`. Full or
  // restart: nothing is locked.
  static op_status lock_room(const leaf_ref& p, Key key, [[maybe_unused]] unsigned& room) noexcept {
    if (!p.lock().try_upgrade(p.seen)) return op_status::restart;
    op_status s;
    if constexpr (has_buckets) {
      s = p.at->hold_room_for(key, room);
    } else {
      s = p.at->make_room_for(key) ? op_status::yes : op_status::full;
    }
    if (s != op_status::yes) p.lock().unlock_unchanged(p.seen);
    return s;
  }
  // Making room may have moved keys, so the versions change.
  static void unlock_room(const leaf_ref& p, [[maybe_unused]] Key key,
                          [[maybe_unused]] unsigned room) noexcept {
    if constexpr (has_buckets) p.at->let_go_of_room(key, room);
    p.lock().unlock();
  }
  static void insert_in_room(const leaf_ref& p, Key key, const Value& value,
                             [[maybe_unused]] unsigned room) noexcept {
    if constexpr (has_buckets) {
      p.at->insert_in(room, key, value);
    } else {
      p.at->insert(key, value);
    }
    p.lock().unlock();
  }
  // Locks what an erase of the key in this slot changes. The key may move to another slot first.
  static bool lock_record(const leaf_ref& p, [[maybe_unused]] Key key,
                          [[maybe_unused]] unsigned& slot) noexcept {
    if (!p.lock().try_upgrade(p.seen)) return false;
    if constexpr (has_buckets) {
      if (p.at->hold(key, slot) == op_status::yes) return true;
      p.lock().unlock_unchanged(p.seen);
      return false;
    } else {
      lock_values(*p.at);
      return true;
    }
  }
  static void unlock_record(const leaf_ref& p, [[maybe_unused]] Key key,
                            [[maybe_unused]] unsigned slot) noexcept {
    if constexpr (has_buckets) {
      p.at->let_go(key, slot);
    } else {
      unlock_values(*p.at);
    }
    p.lock().unlock();
  }
  // Whether this slot is in use for the key. A slot that is not in use may still show the key.
  static bool has_key_in([[maybe_unused]] const leaf& l, [[maybe_unused]] unsigned slot,
                         [[maybe_unused]] Key key) noexcept {
    if constexpr (has_buckets) {
      return l.has_key_in(slot, key);
    } else {
      return true;
    }
  }
  static bool seems_sparse(const leaf& l, [[maybe_unused]] unsigned slot) noexcept {
    if constexpr (has_buckets) {
      return l.seems_sparse(slot);
    } else {
      return true;
    }
  }

  static void destroy_control(void* tree, void* c) noexcept {
    if constexpr (Control::enabled)
      static_cast<fixed_key_btree*>(tree)->controls_.pool.deallocate(c);
  }
  static std::uint64_t marks_of(const leaf& l) noexcept;
  void suspect(const leaf_ref& p, std::uint32_t collisions) const noexcept
    requires(Control::enabled);
  bool switch_on(const leaf_ref& p) const noexcept
    requires(Control::enabled);
  void switch_off(const leaf_ref& p) const noexcept
    requires(Control::enabled);

  template <class Body>
  auto range_region(Body&& body) const {
    return sync_.whole(body);
  }

  // What only trees with conflict controls have.
  struct control_state {
    rare_counter switched_on;
    rare_counter switched_off;
    block_pool pool{sizeof(control), "conflict control"};
    // The suspicion of leaves without a control, by a hash of the leaf's address. If two leaves
    // have the same hash, one of them may get a control that it does not need.
    static constexpr unsigned suspects_bits = 8;
    alignas(64) std::array<std::atomic<std::uint32_t>, 1U << suspects_bits> suspicion{};
  };
  struct no_control_state {};

  // Not on a cache line that readers need.
  alignas(64) busy_counter size_;
  std::atomic<std::uint64_t> leaves_made_{1};
  alignas(64) const std::uint64_t id_ = new_tree_id();
  [[no_unique_address]] mutable std::conditional_t<Control::enabled, control_state,
                                                   no_control_state> controls_;
  [[no_unique_address]] std::conditional_t<racing, no_auxiliary_locks, auxiliary_locks>
      auxiliary_locks_;
  // Destroyed first, because its objects return their memory to the pools.
  mutable retire_list retire_list_{this};
};

// --- operations ---

template <std::integral Key, class Value, class Sync, class Shape, class Control>
fixed_key_btree<Key, Value, Sync, Shape, Control>::fixed_key_btree(const memory_options& options)
    : inner_levels(options) {
  // May throw on a thread's first use. The code below has no way to report an error.
  static_cast<void>(this_thread_slot());
  name_memory(this, sizeof(*this), "tree");
  auto* const first = ::new (leaf_pool_.allocate()) leaf;
  first->sequence.begin_life(leaves_made_.fetch_add(1));
  root_.template store<racing>(first);
}

// --- to the leaf, and in the leaf ---

template <std::integral Key, class Value, class Sync, class Shape, class Control>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::find_leaf(Key key,
                                                                  leaf_ref& p) const noexcept
    -> op_status {
  position at;
  if (!descend_to_leaf(key, at)) return op_status::restart;
  refer_to(at, key, p);
  return op_status::yes;
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::come_to_leaf(Key key, leaf_ref& p) const
    -> op_status {
  if constexpr (has_leaf_hints) {
    if (recall_leaf(key, p)) return op_status::yes;
  }
  const op_status s = sync_.descend([&] { return find_leaf(key, p); });
  if constexpr (has_leaf_hints) {
    if (s == op_status::yes) remember_if_again(key, p);
  }
  return s;
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
void fixed_key_btree<Key, Value, Sync, Shape, Control>::refer_to(const position& at,
                                                                 [[maybe_unused]] Key key,
                                                                 leaf_ref& p) noexcept {
  p.at = &at.as_leaf();
  p.seen = at.seen;
  // The sequence number first: a reader that sees a number also sees whether the leaf has a control
  // under that number.
  if constexpr (racing) {
    p.sequence = {};
  } else {
    p.sequence = p.at->sequence.read();
  }
  // pairs with the release in switch_on()
  p.controlled_by = p.at->control.load(std::memory_order_acquire);
  if constexpr (locks_keys_apart)
    p.way = {&lock_in_leaf(*p.at, key), at.parent_lock, at.parent_seen};
}

// The remembered leaf, if `key` is in the leaf's range and nothing has changed that.
template <std::integral Key, class Value, class Sync, class Shape, class Control>
bool fixed_key_btree<Key, Value, Sync, Shape, Control>::recall_leaf(Key key,
                                                                    leaf_ref& p) const noexcept {
  const remembered& mine = remembered::of_this_thread(id_);
  if (!mine.is_for(id_, key)) return false;
  leaf& known = *mine.leaf();
  // This validation precedes all other reads of the leaf (leaf_hint).
  if (!known.sequence.validate(mine.sequence())) return false;
  p.at = &known;
  if constexpr (locks_keys_apart) p.way = {.lock = &lock_in_leaf(known, key)};
  p.seen = p.lock().read();
  p.sequence = known.sequence.read();
  if constexpr (Control::enabled) {
    // pairs with the release in switch_on()
    p.controlled_by = known.control.load(std::memory_order_acquire);
  }
  return p.sequence == mine.sequence();
}

// Called after a descent to the leaf.
template <std::integral Key, class Value, class Sync, class Shape, class Control>
void fixed_key_btree<Key, Value, Sync, Shape, Control>::remember_if_again(
    Key key, const leaf_ref& p) const noexcept {
  remembered& mine = remembered::of_this_thread(id_);
  if (mine.came_again(id_, p.at)) remember(key, p, mine);
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
void fixed_key_btree<Key, Value, Sync, Shape, Control>::remember(Key key, const leaf_ref& p,
                                                                 remembered& mine) const noexcept {
  key_range<Key> stretch{};
  typename leaf::sequence_type::token sequence{};
  const op_status s = sync_.descend([&] {
    stretch = {std::numeric_limits<Key>::min(), std::numeric_limits<Key>::max()};
    position at;
    if (!descend_to_leaf(key, at, stretch) || at.at != p.at) return op_status::no;
    sequence = p.at->sequence.read();
    return at.still_valid() ? op_status::yes : op_status::no;
  });
  if (s == op_status::yes) mine.remember(id_, p.at, sequence, stretch);
}

// Runs body(leaf_ref, known_absent, outcome) in the key's leaf until the body has done its work.
// Splits the leaf when the body reports that it is full.
template <std::integral Key, class Value, class Sync, class Shape, class Control>
template <typename fixed_key_btree<Key, Value, Sync, Shape, Control>::request What, class Body>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::at_leaf(Key key, Body&& body) const
    -> op_status {
  for (backoff wait;; wait.once()) {
    [[maybe_unused]] const pin pinned;
    leaf_ref p;
    op_status s = come_to_leaf(key, p);
    if (s == op_status::yes) {
      if (!Control::enabled || p.controlled_by == nullptr) {
        s = at_bare_leaf<What>(p, body);
      } else if (What == request::look_up && joins_a_region()) {
        s = at_joined_leaf(p, body);
      } else {
        s = at_controlled_leaf<What>(p, key, body);
      }
    }
    if (s == op_status::full) {
      split(key, p);
    } else if (s != op_status::restart) {
      return s;
    } else {
      restarts_.add(1);
    }
  }
}

// Runs the body under sync_.in_leaf(). Takes the leaf's auxiliary lock as Control says.
template <std::integral Key, class Value, class Sync, class Shape, class Control>
template <typename fixed_key_btree<Key, Value, Sync, Shape, Control>::request What, class Body>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::in_leaf(const leaf_ref& p, Body&& body,
                                                                std::uint32_t& aborts) const
    -> op_status {
  const auto checked = [&] { return p.is_still_right() ? body() : op_status::restart; };
  if constexpr (racing || Control::locks_leaf_for <= auxiliary_lock_use::splits) {
    return sync_.in_leaf(checked, aborts);
  } else if constexpr (Control::locks_leaf_for == auxiliary_lock_use::conflicts) {
    auxiliary_lock turn(auxiliary_locks_, p.at);
    return sync_.in_leaf(checked, aborts, turn);
  } else {
    auxiliary_lock turn(auxiliary_locks_, p.at);
    std::unique_lock<auxiliary_lock> auxiliary(turn, std::defer_lock);
    if (What != request::look_up && !joins_a_region()) auxiliary.lock();
    return sync_.in_leaf(checked, aborts);
  }
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
template <typename fixed_key_btree<Key, Value, Sync, Shape, Control>::request What, class Body>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::at_bare_leaf(const leaf_ref& p,
                                                                     Body&& body) const
    -> op_status {
  if constexpr (Control::enabled && !Control::adaptive) {
    if (switch_on(p)) return op_status::restart;
  }
  std::uint32_t aborts = 0;
  outcome ignored;
  op_status s = in_leaf<What>(p, [&] { return body(p, false, ignored); }, aborts);
  if constexpr (locks_keys_apart) {
    if (s == op_status::restart) [[unlikely]] {
      // Mostly another key of the same lock has changed. A descent would lead here once more.
      leaf_ref again = p;
      for (backoff wait; s == op_status::restart && again.renew(); wait.once())
        s = in_leaf<What>(again, [&] { return body(again, false, ignored); }, aborts);
    }
  }
  if constexpr (Control::adaptive) suspect(p, aborts + (racing && s == op_status::restart ? 1 : 0));
  return s;
}

// A look-up inside the caller's hardware region bypasses the leaf's control. No other thread would
// see a lock bit before that region commits, and waiting for a lock bit aborts the region. The
// region itself gives the same protection: a thread that changes the leaf meanwhile aborts the
// region.
template <std::integral Key, class Value, class Sync, class Shape, class Control>
template <class Body>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::at_joined_leaf(const leaf_ref& p,
                                                                       Body&& body) const
    -> op_status {
  std::uint32_t aborts = 0;
  outcome ignored;
  return sync_.in_leaf(
      [&] { return p.is_still_right() ? body(p, false, ignored) : op_status::restart; }, aborts);
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
template <typename fixed_key_btree<Key, Value, Sync, Shape, Control>::request What, class Body>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::at_controlled_leaf(const leaf_ref& p,
                                                                           Key key,
                                                                           Body&& body) const
    -> op_status {
  const epoch_pin pinned;  // before the control is known to be the leaf's, see `Invariants`
  if (!p.is_still_right()) return op_status::restart;
  control& guard = *p.controlled_by;
  const unsigned slot = control::slot_of(key);
  // Before the marks are read: the marks of the keys that the last split moved away are then
  // cleared. See `Invariants`.
  const bool met_split = guard.is_locked_for_split();
  if (met_split) guard.wait_for_split();
  auto entry = guard.lock(slot);
  entry.waited |= met_split;

  bool calm = false;  // no longer needs a control
  if constexpr (Control::adaptive) {
    const auto period =
        guard.count(entry.waited, next_random_of_this_thread(), Control::requests_per_period);
    calm = period.over && period.collisions < Control::collisions_to_stay_on;
  }

  op_status s;
  bool mark_is_free = false;
  if (!entry.marked && What != request::put) {
    s = p.is_still_right() ? op_status::no : op_status::restart;
  } else {
    if (!entry.marked) guard.mark(slot);
    std::uint32_t aborts = 0;
    outcome result;
    s = in_leaf<What>(p, [&] { return body(p, !entry.marked, result); }, aborts);
    mark_is_free =
        What == request::erase ? result.mark_is_free : !entry.marked && s != op_status::yes;
  }
  if (mark_is_free) {
    guard.unlock_and_clear_mark(slot);
  } else {
    guard.unlock(slot);
  }
  if constexpr (Control::enabled) {
    if (calm) switch_off(p);
  }
  return s;
}

// --- looking up ---

template <std::integral Key, class Value, class Sync, class Shape, class Control>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::try_get(
    const leaf_ref& p, Key key, std::optional<Value>& value) const noexcept -> op_status {
  return try_read(p, key, p.at->find(key), value);
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::try_read(
    const leaf_ref& p, [[maybe_unused]] Key key, unsigned slot,
    std::optional<Value>& value) const noexcept -> op_status {
  leaf& l = *p.at;
  if (slot == no_slot) return p.was_right() ? op_status::no : op_status::restart;
  if constexpr (locks_values_apart) {
    // A failed validation mostly means that another value on the line has changed. A descent would
    // lead here once more.
    for (;;) {
      const token values_seen = l.value_lock(slot).read();
      value.emplace(l.value(slot));
      if (l.value_lock(slot).validate(values_seen)) break;
      if (!p.is_still_right()) return op_status::restart;
    }
  } else if (locks_keys_apart && &l.value_lock(slot) != &p.lock()) {
    // The key is in another bucket than its home, where it may move while the home stays the same.
    const token values_seen = l.value_lock(slot).read();
    if (!has_key_in(l, slot, key)) return op_status::restart;
    value.emplace(l.value(slot));
    if (!l.value_lock(slot).validate(values_seen)) return op_status::restart;
  } else {
    value.emplace(l.value(slot));
  }
  return p.was_right() ? op_status::yes : op_status::restart;
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
ELIDEX_FLATTEN std::optional<Value> fixed_key_btree<Key, Value, Sync, Shape, Control>::get(
    Key key) const {
  std::optional<Value> value;
  const op_status s =
      at_leaf<request::look_up>(key, [&](const leaf_ref& p, bool /*known_absent*/,
                                         outcome& /*result*/) { return try_get(p, key, value); });
  // Not as a copy of the optional: that would read at once what was just stored in parts, and wait
  // for the stores.
  return s == op_status::yes ? std::optional<Value>(*value) : std::nullopt;
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
void fixed_key_btree<Key, Value, Sync, Shape, Control>::multi_get(
    std::span<const Key> wanted, std::span<std::optional<Value>> found) const {
  if (found.size() < wanted.size())
    throw std::invalid_argument("elidex: multi_get: fewer values than keys (expected as many)");
  const auto read = [&](std::size_t i, Key key, const position& at, unsigned slot) {
    leaf_ref p;
    refer_to(at, key, p);
    if (Control::enabled && p.controlled_by != nullptr) return false;
    if (slot == no_slot || p.at->key(slot) != key) slot = p.at->find(key);
    found[i].reset();
    return try_read(p, key, slot, found[i]) != op_status::restart;
  };
  look_up_together(
      wanted.size(), [&](std::size_t i) { return wanted[i]; }, read,
      [&](std::size_t i) { found[i] = get(wanted[i]); });
}

// --- changing ---

// Calls change(i, leaf_ref) for each key when the leaf's memory has arrived. change() returns
//   yes or no     it has done its work
//   full          there is no room
//   restructured  it has done its work, and the leaf is worth merging
//   restart       another thread has changed the leaf, or another key of the group
// In the last three cases otherwise(i) does what remains. It comes from the root.
template <std::integral Key, class Value, class Sync, class Shape, class Control>
template <class Change, class Otherwise>
void fixed_key_btree<Key, Value, Sync, Shape, Control>::change_together(std::span<const Key> wanted,
                                                                        Change&& change,
                                                                        Otherwise&& otherwise) {
  constexpr std::size_t group_max = inner_levels::look_ups_at_once;
  for (std::size_t first = 0; first < wanted.size(); first += group_max) {
    const auto group = wanted.subspan(first, std::min(wanted.size() - first, group_max));
    if (remembers_leaf_of(group.front()) && remembers_leaf_of(group.back())) {  // ascending keys
      for (std::size_t i = 0; i < group.size(); ++i) otherwise(first + i);
      continue;
    }
    const auto change_in_leaf = [&](std::size_t i, Key key, const position& at, unsigned) {
      leaf_ref p;
      refer_to(at, key, p);
      if (Control::enabled && p.controlled_by != nullptr) return false;
      const op_status s = change(first + i, p);
      if (s == op_status::full || s == op_status::restructured) inner_levels::prefetch_siblings(at);
      return s == op_status::yes || s == op_status::no;
    };
    inner_levels::template look_up_together<true>(
        group.size(), [&](std::size_t i) { return group[i]; }, change_in_leaf,
        [&](std::size_t i) { otherwise(first + i); });
  }
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
std::size_t fixed_key_btree<Key, Value, Sync, Shape, Control>::multi_upsert(
    std::span<const Key> wanted, std::span<const Value> given) {
  std::size_t added = 0;
  const auto put = [&](std::size_t i, const leaf_ref& p) {
    const op_status s =
        in_leaf<request::put>(p, [&] { return try_put(p, wanted[i], given[i], true, false); });
    if (s == op_status::yes) {
      size_.add(1);
      ++added;
    }
    return s;
  };
  change_together(wanted, put,
                  [&](std::size_t i) { added += upsert(wanted[i], given[i]) ? 1U : 0U; });
  return added;
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
std::size_t fixed_key_btree<Key, Value, Sync, Shape, Control>::multi_erase(
    std::span<const Key> wanted) {
  std::size_t erased = 0;
  std::bitset<inner_levels::look_ups_at_once> sparse;  // the group's leaves that are worth merging
  const auto take = [&](std::size_t i, const leaf_ref& p) {
    outcome result;
    const op_status s = in_leaf<request::erase>(p, [&] {
      return try_erase(p, wanted[i], result, [](leaf&, unsigned) { return op_status::erases; });
    });
    if (s != op_status::yes) return s;
    size_.add(-1);
    ++erased;
    if (!result.is_sparse) return s;
    sparse.set(i % sparse.size());
    return op_status::restructured;
  };
  change_together(wanted, take, [&](std::size_t i) {
    if (sparse.test(i % sparse.size())) {
      sparse.reset(i % sparse.size());
      merge_if_sparse(wanted[i]);
    } else {
      erased += erase(wanted[i]) ? 1U : 0U;
    }
  });
  return erased;
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
ELIDEX_FLATTEN bool fixed_key_btree<Key, Value, Sync, Shape, Control>::insert_or_overwrite(
    Key key, const Value& value, bool overwrite) {
  const op_status s =
      at_leaf<request::put>(key, [&](const leaf_ref& p, bool known_absent, outcome& /*result*/) {
        return try_put(p, key, value, overwrite, known_absent);
      });
  if (s == op_status::yes) size_.add(1);
  return s == op_status::yes;
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::try_put(const leaf_ref& p, Key key,
                                                                const Value& value, bool overwrite,
                                                                bool known_absent) noexcept
    -> op_status {
  leaf& l = *p.at;
  if (!known_absent) {
    const unsigned slot = l.find(key);
    if (slot != no_slot) {
      if (!overwrite) return p.was_right() ? op_status::no : op_status::restart;
      const op_status s = change_value(p, key, slot, [&](Value& v) { v = value; });
      return s == op_status::yes ? op_status::no : s;
    }
  }
  unsigned room = 0;
  if (const op_status s = lock_room(p, key, room); s != op_status::yes) return s;
  insert_in_room(p, key, value, room);
  return op_status::yes;
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
template <class Make>
std::pair<Value, bool> fixed_key_btree<Key, Value, Sync, Shape, Control>::get_or_insert(
    Key key, Make&& make) {
  // NOLINTNEXTLINE(bugprone-unchecked-optional-access): the optional always has a value
  return *get_or_insert_if_made(key, [&](Key /*slot*/) { return std::optional<Value>(make()); });
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
template <class Make>
std::optional<std::pair<Value, bool>>
fixed_key_btree<Key, Value, Sync, Shape, Control>::get_or_insert_if_made(Key key, Make&& make) {
  std::optional<Value> value;
  std::exception_ptr thrown;
  const op_status s =
      at_leaf<request::put>(key, [&](const leaf_ref& p, bool known_absent, outcome& /*result*/) {
        return try_get_or_insert(p, key, make, known_absent, value, thrown);
      });
  if (s == op_status::threw) std::rethrow_exception(thrown);
  if (s == op_status::unmade) return std::nullopt;
  if (s == op_status::yes) size_.add(1);
  return std::pair(*value, s == op_status::yes);
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
template <class Make>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::try_get_or_insert(
    const leaf_ref& p, Key key, Make& make, bool known_absent, std::optional<Value>& value,
    std::exception_ptr& thrown) noexcept -> op_status {
  leaf& l = *p.at;
  if (!known_absent) {
    const unsigned slot = l.find(key);
    if (slot != no_slot) {
      const op_status s = try_read(p, key, slot, value);
      return s == op_status::yes ? op_status::no : s;
    }
  }
  unsigned room = 0;
  if (const op_status s = lock_room(p, key, room); s != op_status::yes) return s;
  try {
    value = make(key);
  } catch (...) {
    thrown = std::current_exception();
    unlock_room(p, key, room);
    return op_status::threw;
  }
  if (!value) {
    unlock_room(p, key, room);
    return op_status::unmade;
  }
  insert_in_room(p, key, *value, room);
  return op_status::yes;
}

// Changes the value in the slot that was found in the leaf as it was at p. fn may throw.
template <std::integral Key, class Value, class Sync, class Shape, class Control>
template <class Fn>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::change_value(
    const leaf_ref& p, [[maybe_unused]] Key key, unsigned slot, Fn&& fn) noexcept -> op_status {
  leaf& l = *p.at;
  node_lock& lock = l.value_lock(slot);
  token seen = p.seen;
  if constexpr (locks_values_apart) {
    // Waits here instead of beginning again, because a descent would lead to this lock once more.
    // The wait cannot deadlock: this thread holds no node's lock, and the holder waits for no
    // slot's lock bit.
    seen = lock.lock();
    // A thread that moves values takes their locks, after the leaf's. If the leaf is unchanged, the
    // value stays in its slot.
    if (!p.is_still_right()) {
      lock.unlock_unchanged(seen);
      return op_status::restart;
    }
  } else if (locks_keys_apart && &lock != &p.lock()) {
    // As above. The key is not in its home, and is in this bucket as long as the home is unchanged.
    // But it may have moved within this bucket.
    seen = lock.lock();
    if (!has_key_in(l, slot, key) || !p.is_still_right()) {
      lock.unlock_unchanged(seen);
      return op_status::restart;
    }
  } else {
    if (!lock.try_upgrade(seen)) return op_status::restart;
  }
  Value value = l.value(slot);
  if constexpr (noexcept(fn(value))) {
    fn(value);
  } else {
    try {
      fn(value);
    } catch (...) {
      lock.unlock_unchanged(seen);
      return op_status::threw;
    }
  }
  l.set_value(slot, value);
  lock.unlock();
  return op_status::yes;
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
template <value_change<Value> Fn>
ELIDEX_FLATTEN bool fixed_key_btree<Key, Value, Sync, Shape, Control>::update(Key key, Fn&& fn) {
  std::exception_ptr thrown;
  const auto keeping_exceptions = [&](Value& value) {
    try {
      fn(value);
    } catch (...) {
      thrown = std::current_exception();
      throw;
    }
  };
  const op_status s = at_leaf<request::look_up>(
      key, [&](const leaf_ref& p, bool /*known_absent*/, outcome& /*result*/) {
        const unsigned slot = p.at->find(key);
        if (slot == no_slot) return p.was_right() ? op_status::no : op_status::restart;
        return const_cast<fixed_key_btree&>(*this).change_value(p, key, slot, keeping_exceptions);
      });
  if (s == op_status::threw) std::rethrow_exception(thrown);
  return s == op_status::yes;
}

// fn runs where update()'s does, or under the leaf's lock for an absent key. If it wants the key
// erased, it runs again under the locks that an erase needs.
template <std::integral Key, class Value, class Sync, class Shape, class Control>
template <class Fn>
bool fixed_key_btree<Key, Value, Sync, Shape, Control>::compute(Key key, Fn&& fn) {
  std::exception_ptr thrown;
  for (;;) {
    op_status s =
        at_leaf<request::put>(key, [&](const leaf_ref& p, bool known_absent, outcome& /*result*/) {
          return try_compute(p, key, fn, known_absent, thrown);
        });
    if (s == op_status::yes) {
      size_.add(1);
      return true;
    }
    if (s == op_status::erases) {
      s = erase_if(key,
                   [&](leaf& l, unsigned slot) { return compute_in_slot(l, slot, fn, thrown); });
      if (s == op_status::no) continue;  // another thread has erased the key
      if (s == op_status::yes) return false;
    }
    if (s == op_status::threw) std::rethrow_exception(thrown);
    return s == op_status::changed;
  }
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
template <class Fn>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::try_compute(
    const leaf_ref& p, Key key, Fn& fn, bool known_absent, std::exception_ptr& thrown) noexcept
    -> op_status {
  leaf& l = *p.at;
  const unsigned slot = known_absent ? no_slot : l.find(key);
  if (slot != no_slot) {
    bool erases = false;
    const op_status s = change_value(p, key, slot, [&](Value& v) {
      try {
        std::optional<Value> value(v);
        fn(value);
        erases = !value;
        if (value) v = *value;
      } catch (...) {
        thrown = std::current_exception();
        throw;
      }
    });
    if (s != op_status::yes) return s;
    return erases ? op_status::erases : op_status::changed;
  }
  unsigned room = 0;
  if (const op_status s = lock_room(p, key, room); s != op_status::yes) return s;
  std::optional<Value> value;
  const op_status s = compute_absent(value, fn, thrown);
  if (s == op_status::yes) {
    insert_in_room(p, key, *value, room);
  } else {
    unlock_room(p, key, room);
  }
  return s;
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
bool fixed_key_btree<Key, Value, Sync, Shape, Control>::erase(Key key) {
  return erase_if(key, [](leaf&, unsigned) { return op_status::erases; }) == op_status::yes;
}

// decide(leaf, slot) runs when the leaf and its values are locked. If it returns something else
// than `erases`, nothing is erased, and erase_if() returns that. It may have changed the value.
template <std::integral Key, class Value, class Sync, class Shape, class Control>
template <class Decide>
ELIDEX_FLATTEN auto fixed_key_btree<Key, Value, Sync, Shape, Control>::erase_if(Key key,
                                                                                Decide&& decide)
    -> op_status {
  bool is_sparse = false;
  const op_status s =
      at_leaf<request::erase>(key, [&](const leaf_ref& p, bool /*known_absent*/, outcome& result) {
        const op_status erased = try_erase(p, key, result, decide);
        is_sparse = result.is_sparse;
        return erased;
      });
  if (s != op_status::yes) return s;
  size_.add(-1);
  if (is_sparse) merge_if_sparse(key);
  return s;
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
template <class Decide>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::try_erase(const leaf_ref& p, Key key,
                                                                  outcome& result,
                                                                  Decide&& decide) noexcept
    -> op_status {
  leaf& l = *p.at;
  unsigned slot = l.find(key);
  if (slot == no_slot) return p.was_right() ? op_status::no : op_status::restart;
  if (!lock_record(p, key, slot)) return op_status::restart;
  if (const op_status s = decide(l, slot); s != op_status::erases) {
    unlock_record(p, key, slot);
    return s;
  }
  l.erase(slot);
  result.is_sparse = seems_sparse(l, slot) && l.used() <= leaf_sparse;
  if constexpr (Control::enabled) {
    result.mark_is_free = (marks_of(l) & control::mark_of(control::slot_of(key))) == 0;
  }
  unlock_record(p, key, slot);
  return op_status::yes;
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
template <class Fill>
void fixed_key_btree<Key, Value, Sync, Shape, Control>::bulk_fill(Fill&& fill) {
  internal::bulk_loader<fixed_key_btree> loader(*this);
  fill(loader);
  loader.publish();
}

// --- adaptive control ---

template <std::integral Key, class Value, class Sync, class Shape, class Control>
std::uint64_t fixed_key_btree<Key, Value, Sync, Shape, Control>::marks_of(const leaf& l) noexcept {
  std::uint64_t marks = 0;
  l.for_each_key([&](Key key) { marks |= control::mark_of(control::slot_of(key)); });
  return marks;
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
void fixed_key_btree<Key, Value, Sync, Shape, Control>::suspect(
    const leaf_ref& p, std::uint32_t collisions) const noexcept
  requires(Control::enabled)
{
  // relaxed, without a partner: the count is a guess, and a lost increment changes little.
  auto& suspicion = controls_.suspicion[address_hash<control_state::suspects_bits>(p.at)];
  if (collisions != 0 || Control::collisions_to_switch_on == 0) {
    if (suspicion.fetch_add(collisions, std::memory_order_relaxed) + collisions >=
        Control::collisions_to_switch_on) {
      suspicion.store(0, std::memory_order_relaxed);  // as above
      switch_on(p);
    }
  } else if (next_random_of_this_thread() % Control::calm_requests == 0) {
    const std::uint32_t was = suspicion.load(std::memory_order_relaxed);  // no partner, as above
    if (was != 0) suspicion.store(was - 1, std::memory_order_relaxed);    // no partner, as above
  }
}

// Gives the leaf a control unless the leaf has changed. Returns false when there is no memory for
// one.
template <std::integral Key, class Value, class Sync, class Shape, class Control>
bool fixed_key_btree<Key, Value, Sync, Shape, Control>::switch_on(const leaf_ref& p) const noexcept
  requires(Control::enabled)
{
  void* memory = nullptr;
  try {
    memory = controls_.pool.allocate();
  } catch (const std::bad_alloc&) {
    return false;  // the leaf stays without a control
  }
  auto* const made = ::new (memory) control;
  std::uint32_t aborts = 0;
  const op_status s = sync_.in_leaf(
      [&] {
        leaf& l = *p.at;
        if constexpr (racing) {
          // A request that has collided has seen an old version. Any leaf that is not obsolete will
          // do.
          const token now = l.lock.lock();
          // ordered by the lock
          if (now.is_obsolete() || l.control.load(std::memory_order_relaxed) != nullptr) {
            l.lock.unlock_unchanged(now);
            return op_status::no;
          }
        } else {
          // relaxed: ordered by the region.
          if (!p.is_still_right() || l.control.load(std::memory_order_relaxed) != nullptr)
            return op_status::no;
        }
        made->set_marks(marks_of(l));
        l.control.store(made, std::memory_order_release);  // pairs with the acquire in find_leaf()
        l.sequence.invalidate();
        l.lock.unlock();
        return op_status::yes;
      },
      aborts);
  if (s == op_status::yes) {
    controls_.switched_on.add(1);
  } else {
    controls_.pool.deallocate(memory);
  }
  return true;
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
void fixed_key_btree<Key, Value, Sync, Shape, Control>::switch_off(const leaf_ref& p) const noexcept
  requires(Control::enabled)
{
  try {
    retire_list_.reserve();
  } catch (const std::bad_alloc&) {
    return;  // the control stays
  }
  std::uint32_t aborts = 0;
  const op_status s = sync_.in_leaf(
      [&] {
        leaf& l = *p.at;
        if (!p.is_still_right() || !l.lock.try_upgrade(p.seen)) return op_status::no;
        // pairs with the acquire in find_leaf()
        l.control.store(nullptr, std::memory_order_release);
        l.sequence.invalidate();
        l.lock.unlock();
        return op_status::yes;
      },
      aborts);
  if (s == op_status::yes) {
    retire_list_.retire(p.controlled_by, &destroy_control);
    controls_.switched_off.add(1);
  }
  retire_list_.unreserve();
}

// --- ranges and facts ---

template <std::integral Key, class Value, class Sync, class Shape, class Control>
template <class Fn>
std::size_t fixed_key_btree<Key, Value, Sync, Shape, Control>::scan(Key from, std::size_t limit,
                                                                    Fn&& fn) const {
  return scan_collected(from, limit, fn);
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
template <class Fn>
std::size_t fixed_key_btree<Key, Value, Sync, Shape, Control>::scan(const tree_range<Key>& which,
                                                                    std::size_t limit,
                                                                    Fn&& fn) const {
  return scan_collected(which, limit, fn);
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
template <class Which, class Fn>
std::size_t fixed_key_btree<Key, Value, Sync, Shape, Control>::scan_collected(const Which& which,
                                                                              std::size_t limit,
                                                                              Fn& fn) const {
  internal::collected_range<fixed_key_btree> range(*this, limit);
  {
    [[maybe_unused]] const pin pinned;
    range.collect(which);
  }
  return range.for_each([&](const auto& e) { return visits_on(fn, e.key, e.value); });
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::separators(std::size_t wanted) const
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

template <std::integral Key, class Value, class Sync, class Shape, class Control>
std::size_t fixed_key_btree<Key, Value, Sync, Shape, Control>::memory_bytes() const noexcept {
  std::size_t controls = 0;
  if constexpr (Control::enabled) {
    controls = controls_.pool.reserved_bytes() + controls_.switched_on.memory_bytes() +
               controls_.switched_off.memory_bytes();
  }
  return sizeof(*this) + auxiliary_locks_.memory_bytes() + this->node_bytes_reserved() +
         size_.memory_bytes() + controls + retire_list_.reserved_bytes();
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
fixed_key_btree_stats fixed_key_btree<Key, Value, Sync, Shape, Control>::stats() const noexcept {
  fixed_key_btree_stats s;
  static_cast<btree_stats&>(s) = this->node_stats();
  s.retired_objects = retire_list_.pending();
  if constexpr (Control::enabled) {
    s.controls_switched_on = controls_.switched_on.sum();
    s.controls_switched_off = controls_.switched_off.sum();
    s.controls = controls_.pool.blocks_in_use();
  }
  return s;
}

// --- splits and merges of leaves ---

template <std::integral Key, class Value, class Sync, class Shape, class Control>
void fixed_key_btree<Key, Value, Sync, Shape, Control>::split(Key key, const leaf_ref& p) const {
  // A look-up never finds a leaf full, so the tree may be changed here.
  auto& tree = const_cast<fixed_key_btree&>(*this);
  struct split_lock {
    control* held;
    ~split_lock() {
      if (held != nullptr) held->unlock_after_split();
    }
  };
  prefetch_bytes<sizeof(leaf)>(p.at);
  constexpr bool in_turn = !racing && Control::locks_leaf_for != auxiliary_lock_use::none;
  std::unique_lock<ttas_lock> auxiliary;
  if constexpr (in_turn) {
    if (!joins_a_region()) {
      auxiliary = std::unique_lock(auxiliary_locks_.of(p.at));
      if (!p.is_still_right()) return;  // the leaf has changed meanwhile
    }
  }
  const epoch_pin pinned;  // as in at_controlled_leaf()
  control* const controlled_by = p.is_still_right() ? p.controlled_by : nullptr;
  if (controlled_by != nullptr && !controlled_by->try_lock_for_split()) {
    controlled_by->wait_for_split();  // for the thread that splits the leaf now
    return;
  }
  const split_lock unlock{controlled_by};
  operation op(tree);
  std::uint64_t nth_leaf = 0;
  std::uint64_t kept_marks = ~std::uint64_t{0};
  tree.run_changing(op, [&] {
    // Counted only where leaves have sequence numbers, and only for a new leaf: every split writes
    // this cache line.
    if (!std::is_empty_v<typename leaf::sequence_type> && op.has_spare_leaf())
      nth_leaf = tree.leaves_made_.fetch_add(1);
    const auto body = [&] { return tree.try_split(key, op, nth_leaf, controlled_by, kept_marks); };
    if constexpr (racing || in_turn) {
      return sync_.whole(body);
    } else {
      return sync_.whole_as_policy(body);
    }
  });
  if (controlled_by != nullptr) controlled_by->keep_marks(kept_marks);
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::try_split(
    Key key, operation& op, std::uint64_t nth_leaf, const control* locked,
    std::uint64_t& kept_marks) noexcept -> op_status {
  kept_marks = ~std::uint64_t{0};
  position p;
  if (const op_status s = descend_splitting(key, p, op); s != op_status::yes) return s;
  leaf& left = p.as_leaf();
  if (left.has_room_for(key)) return p.still_valid() ? op_status::yes : op_status::restart;
  bool ascending = false;
  if constexpr (Shape::redistributes_with_siblings) {
    ascending = left.continues_a_run(key);
    if (!op.has_spare_leaf()) {  // with a spare leaf, an earlier attempt found no sibling with room
      if (const op_status s = try_redistribute(p, key, ascending, op); s != op_status::no) return s;
    }
  }
  const bool is_root = p.parent == nullptr;
  if (!op.has_nodes(true, is_root ? 1 : 0)) return op_status::need_memory;
  if (!left.lock.try_upgrade(p.seen)) return op_status::restart;
  lock_values(left);
  if constexpr (locks_keys_apart) {  // only now nothing more can change
    if (left.has_room_for(key)) {
      unlock_values(left);
      left.lock.unlock_unchanged(p.seen);
      return op_status::yes;
    }
  }

  typename leaf::ordered_copy all;
  left.copy_in_order(all);
  const unsigned count = all.count();
  // Ascending keys would leave half-full leaves behind. Divide the leaf before the keys that come
  // next, or split off one key. At the parent's right edge, keys are assumed to ascend.
  ascending |= all.rank(key) == count && (is_root || p.index == p.parent->count());
  const unsigned middle = surely_fits_behind(ascending ? end_of_run(all, key) : count / 2, count);

  leaf* const right = op.take_leaf();
  right->sequence.begin_life(nth_leaf);
  right->fill(all, middle, count);
  if (!lock_parent_of_locked(p, 1)) {
    op.put_back_leaf(right);
    unlock_values(left);
    left.lock.unlock_unchanged(p.seen);
    return op_status::restart;
  }
  left.sequence.invalidate();
  // Under regions the parent is written last, because each later read of it aborts this region.
  if constexpr (!racing) left.keep(all, 0, middle);
  link_right_half(p, all.key(middle), right, op);
  p.parent_lock->unlock();
  if constexpr (racing) left.keep(all, 0, middle);
  if constexpr (Control::enabled) {
    // Since the split lock was taken, another leaf, with another control, may have become the one
    // for the key. relaxed: ordered by the region.
    if (left.control.load(std::memory_order_relaxed) == locked) kept_marks = marks_of(left);
  }
  unlock_values(left);
  left.lock.unlock();
  op.note_split();
  return op_status::yes;
}

// Redistributes the records of a full leaf evenly with a sibling that has room. So leaves are five
// sixths full after random inserts instead of two thirds (B*-trees: Knuth, TAOCP 3, section 6.2.4).
// No: there is no such sibling. A hot leaf never redistributes. Neither does the last child of a
// parent, which ascending keys fill. A leaf elsewhere that ascending keys fill gives its right
// sibling only the records behind `key`. So the records before `key` stay together, and keys that
// only seem to ascend do not get a leaf each.
template <std::integral Key, class Value, class Sync, class Shape, class Control>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::try_redistribute(const position& p, Key key,
                                                                         bool ascending,
                                                                         operation& op) noexcept
    -> op_status {
  if (p.parent == nullptr || p.index >= p.parent->count()) return op_status::no;
  for (const side where : {side::right, side::left}) {
    if (ascending && where == side::left) break;
    position left;
    position right;
    const op_status found = find_sibling(p, where, left, right);
    if (found == op_status::restart) return op_status::restart;
    if (found == op_status::no) continue;
    leaf& full = p.as_leaf();
    leaf& other = where == side::left ? left.as_leaf() : right.as_leaf();
    // relaxed, partner of the stores in switch_on() and switch_off(). The first use is a guess. The
    // use below is ordered by the leaf's lock or the region.
    const auto is_hot = [](const leaf& l) {
      return l.control.load(std::memory_order_relaxed) != nullptr;
    };
    if (full.used() < other.used() + 2 * redistributed_at_least || is_hot(full) || is_hot(other))
      continue;
    if (!left.at->lock.try_upgrade(left.seen)) return op_status::restart;
    if (!right.at->lock.try_upgrade(right.seen)) {
      left.at->lock.unlock_unchanged(left.seen);
      return op_status::restart;
    }
    prefetch_bytes<sizeof(leaf)>(&other);
    // The receiving leaf gets records behind its own. That needs no locks of values, unless they
    // are all that requests look at.
    lock_values(full);
    if constexpr (locks_keys_apart) lock_values(other);

    typename leaf::ordered_copy all;
    full.copy_in_order(all);
    const unsigned count = all.count();
    // Where the leaf locks keys apart, it may have changed until now.
    const bool is_full = count >= other.used() + 2 * redistributed_at_least;
    unsigned moved = 1;
    if (is_full) moved = ascending ? count - end_of_run(all, key) : (count - other.used()) / 2;
    const unsigned first = where == side::left || !is_full ? 0 : count - moved;
    const bool fits = is_full && !is_hot(full) && !is_hot(other) &&
                      other.has_room_for(all.key(first), all.key(first + moved - 1), moved);
    const bool goes = fits && lock_parent_of_locked(left, 0, right.at);
    if (goes) {
      full.sequence.invalidate();
      // Keeps the rule simple: the key range of the receiving leaf only grows.
      other.sequence.invalidate();
      left.parent->set_key(left.index, all.key(where == side::left ? moved : first));
      left.parent_lock->unlock();
      other.append(all, first, first + moved);
      const unsigned kept = where == side::left ? moved : 0;
      full.keep(all, kept, kept + count - moved);
    }

    if constexpr (locks_keys_apart) unlock_values(other);
    unlock_values(full);
    if (goes) {
      op.note_redistribute();
      right.at->lock.unlock();
      left.at->lock.unlock();
      return op_status::yes;
    }
    right.at->lock.unlock_unchanged(right.seen);
    left.at->lock.unlock_unchanged(left.seen);
    if (fits) return op_status::restart;
  }
  return p.still_valid() ? op_status::no : op_status::restart;
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
void fixed_key_btree<Key, Value, Sync, Shape, Control>::merge_if_sparse(Key key) noexcept {
  try {
    operation op(*this);
    run_changing(op, [&] { return sync_.whole([&] { return try_merge(key, op); }); });
  } catch (const std::bad_alloc&) {
    // The leaf stays sparse, or even empty, until keys are added to it and erased again.
  }
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::try_merge(Key key, operation& op) noexcept
    -> op_status {
  position p;
  if (const op_status s = descend_merging(key, p, op); s != op_status::yes) return s;
  const unsigned here = p.as_leaf().used();
  if (p.parent == nullptr || here > leaf_sparse)
    return p.still_valid() ? op_status::yes : op_status::restart;
  for (const side where : {side::left, side::right}) {
    position left;
    position right;
    const op_status found = find_sibling(p, where, left, right);
    if (found == op_status::restart) return op_status::restart;
    if (found == op_status::no) continue;
    leaf& l = left.as_leaf();
    leaf& r = right.as_leaf();
    // Torn counts do no harm: the upgrades validate them. An empty leaf always goes.
    if (l.used() + r.used() > leaf_merged_max && here != 0) continue;
    if (!op.may_retire()) return op_status::need_memory;
    if (!left.try_lock_parent_and_node()) return op_status::restart;
    if (!r.lock.try_upgrade(right.seen)) {
      left.unlock_both_unchanged();
      return op_status::restart;
    }
    lock_values(l);
    lock_values(r);

    typename leaf::ordered_copy all;
    typename leaf::ordered_copy more;
    l.copy_in_order(all);
    r.copy_in_order(more);
    if (more.count() != 0 &&
        !l.has_room_for(more.key(0), more.key(more.count() - 1), more.count())) {
      unlock_values(r);
      unlock_values(l);
      r.lock.unlock_unchanged(right.seen);
      left.unlock_both_unchanged();
      continue;  // the keys lie too far apart for one leaf
    }
    for (unsigned i = 0; i < more.count(); ++i) all.add(more.key(i), more.value(i));
    take_control_away(l, op);
    take_control_away(r, op);
    l.sequence.invalidate();
    r.sequence.invalidate();
    if (more.count() != 0) l.fill(all, 0, all.count());
    left.parent->erase(left.index);
    op.retire_leaf(&r);

    unlock_values(r);
    unlock_values(l);
    r.lock.unlock_obsolete();
    left.unlock_both();
    op.note_merge();
    return op_status::yes;
  }
  return p.still_valid() ? op_status::yes : op_status::restart;
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
void fixed_key_btree<Key, Value, Sync, Shape, Control>::take_control_away(leaf& l,
                                                                          operation& op) noexcept {
  // relaxed and release: ordered by the region, which excludes all other changes of the control.
  control* const taken = l.control.load(std::memory_order_relaxed);
  l.control.store(nullptr, std::memory_order_release);
  op.retire(taken, &destroy_control);
}

}  // namespace elidex::internal
