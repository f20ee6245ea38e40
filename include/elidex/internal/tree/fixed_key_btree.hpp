// An ordered index for keys of a fixed size that stays fast when many threads want the same few
// leaves.
//
//   fixed_key_btree<std::uint64_t, std::uint64_t, optimistic,
//       separated_fan_out<>> tree;
//   tree.insert(7, 70);
//
// It is papers/003's Euno-B+Tree, with the leaf and the control of leaves as parameters; with the
// paper's own: papers/eunomia/euno_btree.hpp.
//
// The four principles of papers/003 section 4.2, and where each is:
//   splitting regions      the policy's upper() leads to a leaf, its lower() works in it:
//                          at_leaf(). Between the two the leaf may be split or removed, which its
//                          sequence number tells (split_regions.hpp)
//   partitioned layout     the leaf, chosen by the Shape: separated_leaf.hpp, or the paper's
//   conflict control       conflict_control.hpp: at_controlled_leaf()
//   adaptive control       `Control`: a leaf gets its conflict control when its requests collide,
//                          and loses it when they don't any more: at_bare_leaf(), switch_on(),
//                          switch_off()
//
// Under `optimistic` there are no hardware regions: upper() is optimistic lock coupling down to the
// leaf (btree.hpp), and the lower region is the leaf's version for readers and its lock for
// writers. The leaf's version then takes the place of the sequence number.
//
// Splits and merges of nodes are operations of their own, in both regions, that leave the contents
// as they were (try_split, try_share, try_merge); an insert that finds its leaf full has it split,
// or share with a sibling, and begins again. Erasing balances later, too: it leaves the leaf as it
// is, and merges it afterwards once it is sparse (papers/003 section 5.3).
//
// Invariants
//   * those of btree.hpp for inner nodes. A leaf may be empty for a while.
//   * Everything that a leaf for a key was asked in one region was asked while it was the leaf for
//     that key: under split regions because the region validates the sequence number, which whoever
//     splits, merges or removes the leaf changes in both regions; under `optimistic` because the
//     lock's version is validated last.
//   * While a leaf has a conflict control and its sequence number stays, each of its keys has its
//     mark set: insert marks first, under the slot's lock bit; erase clears afterwards, under the
//     same bit, if no other key has the mark. What moves keys into a leaf (a merge) takes its
//     control away. What moves keys out of it (a split) clears their marks after the region and
//     before it lets go of the split lock. A request that has the new sequence number waits for
//     that lock before it looks at any mark (it has seen the number, so it sees the lock, which was
//     taken before): a mark that it finds is not about to be cleared. One that has the old number
//     marks in vain and begins again.
//   * A share moves records between two leaves without controls, of one parent, and the separator
//     between them, with the locks of both (and of the values) or in both regions. The separator
//     moves under the parent's lock as well, which is let go before the records move: who is sent
//     to either leaf by the new one waits for its lock. Splits do likewise. Who was sent to the
//     leaf that gives by the old separator finds its version, or its sequence number, changed. To
//     the leaf that takes nobody was sent for a key that comes.
//   * The keys for which a leaf is the one change together with its sequence number: so a thread
//     may come back to a leaf without the way down (leaf_hint.hpp).
//   * A leaf's control changes together with its sequence number, so that no request works under
//     the wrong assumption.
//   * Under split regions a request is not pinned between its regions: leaves are only ever reused
//     as leaves, with sequence numbers that never come again (split_regions.hpp). To use a control
//     it pins itself and then validates the sequence number: the control was the leaf's after the
//     pin, so it is not reused before the unpinning. Under `optimistic` a request is pinned as a
//     whole.
//
// Order of locks: split lock or a slot's lock bit, neither of which is waited for with the other
// one held, and both outside of regions; upper region; lower region; node, sibling by try_upgrade;
// locks of values, leaf by leaf; the parent, which is waited for (lock_parent_of_locked(); merges
// try for it first), because everybody on the way to another of its leaves waits meanwhile.
//
// Linearization points
//   split regions   the commit of the lower region, or the unlocking of its fallback lock; of a
//                   request that a clear mark sends away: the reading of the mark, when the
//                   sequence number is validated behind it
//   optimistic      get, contains and all that change nothing: the reading of the leaf's version in
//                   the upper region (a clear mark: the reading of the mark); changes: the
//                   try_upgrade() of the leaf
//   scan            range_collector.hpp, in both regions
//
// Deviations from papers/003 section 5: a split is a region of its own; scans sort in private
// memory instead of moving what they read to the reserved keys, so that reading never writes;
// leaves have no links (btree.hpp); see also conflict_control.hpp.
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
#include <ranges>
#include <span>
#include <stdexcept>
#include <type_traits>

#include "elidex/internal/memory/block_pool.hpp"
#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/memory/retire_list.hpp"
#include "elidex/internal/sync/backoff.hpp"
#include "elidex/internal/sync/random.hpp"
#include "elidex/internal/sync/sharded_counter.hpp"
#include "elidex/internal/sync/split_regions.hpp"
#include "elidex/internal/tree/btree_inner.hpp"
#include "elidex/internal/tree/btree_operation.hpp"
#include "elidex/internal/tree/bulk_load.hpp"
#include "elidex/internal/tree/conflict_control.hpp"
#include "elidex/internal/tree/controlled_leaf.hpp"
#include "elidex/internal/tree/cursor.hpp"
#include "elidex/internal/tree/leaf_hint.hpp"
#include "elidex/internal/tree/range_collector.hpp"
#include "elidex/internal/tree/value_change.hpp"

namespace elidex::internal {

// When a leaf gets a conflict control and when it loses it; all numbers are our choice, the paper
// has none.
struct control_bounds {
  // A leaf's suspicion grows by one with each abort or restart and shrinks by one with every 64th
  // request that met nobody: about one collision in 64 requests is tolerated. At this much it gets
  // a control.
  static constexpr std::uint32_t collisions_to_switch_on = 8;
  static constexpr std::uint64_t calm_requests = 64;
  // A control's period, and the least number of collisions in it that keeps the control.
  static constexpr unsigned requests_per_period = 512;
  static constexpr unsigned collisions_to_stay_on = 8;
};

// Leaves have a conflict control never, always, or as long as their requests collide.
struct no_control : control_bounds {
  static constexpr bool enabled = false;
  static constexpr bool adaptive = false;
};
struct always_control : control_bounds {
  static constexpr bool enabled = true;
  static constexpr bool adaptive = false;
};
struct adaptive_control : control_bounds {
  static constexpr bool enabled = true;
  static constexpr bool adaptive = true;
};

// Counts since construction; each exact when no operation runs.
struct fixed_key_btree_stats : btree_stats {
  std::int64_t controls_switched_on = 0;
  // by the contention detector; a merge takes controls away, too
  std::int64_t controls_switched_off = 0;
  std::size_t controls = 0;  // in use, retired ones included
};

// Key: an integer type. Value: a trivially copyable type. Sync: split_regions<Lock> or optimistic.
//
// Thread-safety: every function but constructor and destructor may be called from any thread at any
// time, and all are linearizable except size(), empty(), memory_bytes() and stats(), which are
// exact when no operation runs, and cursors (cursor.hpp).
//
// Errors: std::bad_alloc from functions that add or erase keys, from scans and cursors (their
// buffer), and from the first call of a thread; the tree is then unchanged. Destructor, reclaim(),
// size(), empty(), memory_bytes() and stats() never throw.
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
  using step = internal::step;
  using typename inner_levels::inner;
  using typename inner_levels::key_slot;
  using typename inner_levels::keys;
  using typename inner_levels::leaf;
  using typename inner_levels::node;
  using typename inner_levels::node_lock;
  using typename inner_levels::position;
  using typename inner_levels::probe;
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

  fixed_key_btree();
  // nodes and controls need no destruction; the pools give their memory back
  ~fixed_key_btree() = default;
  fixed_key_btree(const fixed_key_btree&) = delete;
  fixed_key_btree& operator=(const fixed_key_btree&) = delete;

  // The value of `key`, if it is there.
  std::optional<Value> get(Key key) const;
  bool contains(Key key) const { return get(key).has_value(); }

  // get() of many keys, in any order: found[i] becomes the value of wanted[i], if it is there. Each
  // look-up is linearizable by itself; together they are no snapshot. Where readers race, look-ups
  // wait for memory together instead of one after the other (group prefetching: Chen, Ailamaki,
  // Gibbons, Mowry, ICDE 2004), which is two to three times as fast when the tree is larger than
  // the caches. Throws std::invalid_argument if `found` is shorter than `wanted`.
  void multi_get(std::span<const Key> wanted, std::span<std::optional<Value>> found) const;

  // Adds `key` unless it is there; says whether it added it.
  bool insert(Key key, const Value& value) { return insert_or_overwrite(key, value, false); }

  // Adds `key` or overwrites its value; says whether it added it.
  bool upsert(Key key, const Value& value) { return insert_or_overwrite(key, value, true); }

  // The value of `key`, which becomes make()'s if it is not there, as one atomic step; second:
  // whether it was added. make() must not use the tree, and should be short: others who want the
  // leaf wait for it. It may run more than once when transactions abort. If it throws, the
  // exception comes out of get_or_insert() and nothing is added.
  template <class Make>
  std::pair<Value, bool> get_or_insert(Key key, Make&& make);
  // The same where make(slot), with the key as nodes have it, may give nothing: then nothing is
  // added, and nothing returned. For a dictionary beside the map
  // (internal/column/keyed_delta_index.hpp).
  template <class Make>
  std::optional<std::pair<Value, bool>> get_or_insert_if_made(Key key, Make&& make);

  // Fills the map, which must be empty, with the records of a range whose keys ascend; its elements
  // have a key as `first` and a value as `second`. All of them appear at one moment, and much
  // faster than by inserting them; leaves are nearly full afterwards. Throws std::invalid_argument
  // if the keys don't ascend, std::logic_error if the map is not empty or others have filled it
  // meanwhile, std::bad_alloc, and what the range throws; the map is then as it was.
  template <std::ranges::input_range Range>
  void bulk_load(Range&& sorted);

  // Replaces the value v of `key` by what fn(v) makes of it, as one atomic step; says whether the
  // key was there. fn(Value&) must not use the tree, and should be short. It may run more than
  // once, with effects only of the last time. If it throws, the exception comes out of update() and
  // the value stays.
  template <value_change<Value> Fn>
  bool update(Key key, Fn&& fn);

  // Removes `key`; says whether it was there.
  bool erase(Key key);

  // Calls fn(key, value) for up to `limit` keys from `from` on, in ascending order, and returns how
  // many there were. All of them were in the tree at one moment, with no other key between them. fn
  // runs after that moment, outside of all locks, and may use the tree. Buffers what it returns:
  // for long ranges prefer a cursor.
  template <class Fn>
  std::size_t scan(Key from, std::size_t limit, Fn&& fn) const;

  // A cursor that stands nowhere yet. Valid while others insert and erase; see cursor.hpp.
  cursor_type cursor() const { return cursor_type(*this); }

  std::size_t size() const noexcept { return size_.count(); }
  bool empty() const noexcept { return size() == 0; }

  // Everything obtained from the system for keys, values, nodes and free nodes, in bytes.
  std::size_t memory_bytes() const noexcept;
  fixed_key_btree_stats stats() const noexcept;

  // Frees what was erased before this call, as far as no reader was in the way, now instead of at
  // the next erasures.
  void reclaim() noexcept { retire_list_.sweep_all(); }

  // The policy's state, for an elided lock's statistics.
  const Sync& sync() const noexcept { return sync_; }

 private:
  friend operation;
  friend internal::node_operation<fixed_key_btree>;
  friend internal::range_collector<fixed_key_btree>;
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
  using inner_levels::lock_parent_of_locked;
  using inner_levels::look_up_together;
  using inner_levels::merges_;
  using inner_levels::racing;
  using inner_levels::restarts_;
  using inner_levels::root_;
  using inner_levels::run_changing;
  using inner_levels::shares_;
  using inner_levels::splits_;
  using inner_levels::sync_;
  // Records that a full leaf hands over, or it splits. Chosen: what the next few inserts would fill
  // again is not worth it.
  static constexpr unsigned shared_at_least = std::max(1U, leaf::capacity / 15);
  // See leaf_hint.hpp. Under regions nobody is pinned who comes back to a leaf, and a control may
  // be gone by then.
  static constexpr bool has_leaf_hints = Shape::has_leaf_hints && (racing || !Control::enabled);
  // Whether values have locks apart from the leaf's.
  static constexpr bool locks_values_apart = racing && leaf::value_locks != 0;

  // What the upper region has found.
  struct place {
    leaf* at = nullptr;
    token seen{};
    typename leaf::sequence_type::token sequence{};
    control* controlled_by = nullptr;

    bool is_still_right() const noexcept {
      if constexpr (racing) return at->lock.validate(seen);
      return at->sequence.validate(sequence);
    }
    // The same at the end of a region that has begun with it: only racing readers have to look
    // again.
    bool was_right() const noexcept { return !racing || is_still_right(); }
  };

  enum class request : std::uint8_t { look_up, put, erase };

  // How the lower region ended, and what its body has to tell those who run behind it.
  struct outcome {
    bool mark_is_free = false;  // of an erase: no other key of the leaf has the erased one's mark
    bool is_sparse = false;     // likewise: the leaf is worth merging
  };

  template <request What, class Body>
  step at_leaf(Key key, Body&& body) const;
  template <class Body>
  step at_bare_leaf(const place& p, Body&& body) const;
  template <class Body>
  step at_joined_leaf(const place& p, Body&& body) const;
  // Whether the operation is a part of a hardware region that the caller has begun.
  static bool joins_a_region() noexcept {
    if constexpr (requires { Sync::in_region(); }) {
      return Sync::in_region();
    } else {
      return false;
    }
  }
  template <request What, class Body>
  step at_controlled_leaf(const place& p, Key key, Body&& body) const;
  step come_to_leaf(Key key, place& p) const;
  step find_place(Key key, place& p) const noexcept;
  bool recall_place(Key key, place& p) const noexcept;
  void remember_if_again(Key key, const place& p) const noexcept;
  static place place_of(const position& at) noexcept;

  bool insert_or_overwrite(Key key, const Value& value, bool overwrite);
  step try_get(const place& p, Key key, std::optional<Value>& value) const noexcept;
  step try_read(const place& p, unsigned slot, std::optional<Value>& value) const noexcept;
  step try_put(const place& p, Key key, const Value& value, bool overwrite,
               bool known_absent) noexcept;
  template <class Make>
  step try_get_or_insert(const place& p, Key key, Make& make, bool known_absent,
                         std::optional<Value>& value, std::exception_ptr& thrown) noexcept;
  template <class Fn>
  step change_value(const place& p, unsigned slot, Fn&& fn) noexcept;
  step try_erase(const place& p, Key key, outcome& result) noexcept;

  void split(Key key, const place& p) const;
  void merge_if_sparse(Key key) noexcept;
  step try_split(Key key, operation& op, std::uint64_t nth_leaf, const control* locked,
                 std::uint64_t& kept_marks) noexcept;
  step try_share(const position& p, Key key, bool ascending, operation& op) noexcept;
  // Where a leaf that is filled by ascending keys is parted for the next one: before it, or at the
  // last record.
  static unsigned end_of_run(const typename leaf::ordered_copy& all, Key key) noexcept {
    return std::clamp(all.rank(key), 1U, all.count() - 1);
  }
  step try_replace_empty(node* new_root, operation& op) noexcept;
  step try_merge(Key key, operation& op) noexcept;
  static void lock_values(leaf& l) noexcept {
    l.for_each_value_lock([](node_lock& one) { one.lock(); });
  }
  static void unlock_values(leaf& l) noexcept {
    l.for_each_value_lock([](node_lock& one) { one.unlock(); });
  }
  void take_control_away(leaf& l, operation& op) noexcept;

  static void destroy_control(void* tree, void* c) noexcept {
    static_cast<fixed_key_btree*>(tree)->control_pool_.deallocate(c);
  }
  static std::uint64_t marks_of(const leaf& l) noexcept;
  void suspect(const place& p, std::uint32_t collisions) const noexcept;
  bool switch_on(const place& p) const noexcept;
  void switch_off(const place& p) const noexcept;

  template <class Body>
  auto range_region(Body&& body) const {
    return sync_.both(body);
  }

  const std::uint64_t id_ = new_tree_id();
  busy_counter size_;
  std::atomic<std::uint64_t> leaves_made_{1};
  mutable sharded_counter switched_on_;
  mutable sharded_counter switched_off_;
  mutable block_pool control_pool_{sizeof(control), "conflict control"};
  // By a hash of the leaf's address: how suspicious leaves without a control are. Where two
  // leaves have the same hash, one may get a control that it does not need.
  static constexpr std::size_t suspects = 256;
  alignas(64) mutable std::array<std::atomic<std::uint32_t>, suspects> suspicion_{};
  // destroyed first: what is in it gives its memory back to the pools
  mutable retire_list retire_list_{this};
};

}  // namespace elidex::internal

#include "elidex/internal/tree/fixed_key_btree_impl.hpp"
#include "elidex/internal/tree/fixed_key_btree_splits.hpp"
