// A skip list that stays fast where many threads want the same keys: the Euno-SkipList of paper
// 003.
//
//   euno_skip_list<std::uint64_t, std::uint64_t, htm_split_regions> list;
//   list.upsert(7, 70);
//   list.update(7, [](std::uint64_t& v) { ++v; });
//   list.scan(0, 10, [](std::uint64_t key, std::uint64_t value) { ... });
//
// A skip list under one hardware region (skip_list.hpp) is searched anew from the top whenever
// somebody writes to a line that the search has seen, and 83 % of such conflicts are at its two
// lowest levels (section 3.2). Here a node of three levels or more, one in 16, heads a segment:
// itself and all lower nodes up to the next one of that kind. It has a tower, which holds the links
// from the third level on and all that is known of the segment. An operation looks for the segment
// in an upper region, which sees towers alone, and does its work in a lower region, which begins at
// the segment's first node. If the lower one aborts, it begins there again.
//
// Three of the paper's four principles can be left out (Parts), for experiments:
//   split regions      always; see split_regions.hpp
//   partitioned        towers lie on cache lines of their own, and a link has its target's key
//                      beside it. So a search reads no line of a node that it does not visit.
//                      Otherwise all that is known of a node lies densely together
//   conflict control   a hot segment has a segment_control: changes of one key come one after the
//                      other, and requests for keys that are not there don't come at all
//   adaptive           a segment gets one when an operation's lower region has aborted
//                      Parts::hot_after times, and loses it when it has become quiet
//                      (segment_control.hpp)
//
// What belongs to which region: a tower's links to the upper one, nodes (links of the two lowest
// levels and values) to the lower one. A key comes in or goes out with a tower in both; otherwise
// in the lower one. A tower's sequence number and control change only in a lower region or in both,
// and always together: first the control, then the number.
//
// Invariants
//   * Keys ascend on each level; a level's nodes are in every level below.
//   * A segment has the keys from its tower's (the head's: from the least) up to the next tower's.
//     Its sequence number changes when that range shrinks, when its tower goes, and when its
//     control changes. When it grows, no change is needed: who has come for a key is still right.
//   * conflict_control's, with the segment in place of the leaf. A segment keeps its control when
//     it is split: the marks of the keys that have left are false positives. The one to which
//     another segment falls loses it, since it has no marks for the new keys.
//
// Linearization points
//   every operation, scan too   its lower region (or both): the number is the one that its upper
//                               region has seen, so the segment is still the one for the key. The
//                               scan goes on through level 0, all of which belongs to the lower
//                               region, as long as its one region lasts
//   get, contains, update, erase of a key without a mark   the reading of the mark. The number,
//                                                          read again behind it, is
//                               still the same: so the control was then the segment's own, and the
//                               key would have had a mark. The upper region read the number before
//                               the control, and a fence between, so that a new number is never
//                               believed together with an old control.
//
// Memory: set aside before a region. A node without tower is seen in lower regions alone, so it can
// be used again at once. Towers and controls are held between the regions: an operation pins its
// epoch, and they wait on the retire list.
//
// Order of locks: a slot's lock bit, a segment's auxiliary lock, upper, lower. A thread in a region
// waits for neither of the first two.
//
// Deviations from the paper, which says little on its skip list:
//   * The sequence number is a segment's. Conflict control, its allocation on demand and the
//     auxiliary locks are ours.
//   * The list's height is a hint that only grows. It is read outside of regions, so that it causes
//     no conflict.
//   * Readers take no lock bit. A reader disturbs only a writer between its store and its commit.
//     Queueing would cost both of them more than that abort.
//   * The policy `optimistic` is not offered. A search in a lower region reads the links of one
//     segment and the first node of the next one. A version of each segment would not cover that.
//     With a version of each node it would be another algorithm.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include "elidex/internal/memory/block_pool.hpp"
#include "elidex/internal/memory/counters.hpp"
#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/memory/memory_name.hpp"
#include "elidex/internal/memory/retire_list.hpp"
#include "elidex/internal/sync/auxiliary_locks.hpp"
#include "elidex/internal/sync/backoff.hpp"
#include "elidex/internal/sync/split_regions.hpp"
#include "elidex/internal/tree/node_operation.hpp"
#include "elidex/internal/tree/range_collector.hpp"
#include "elidex/internal/tree/value_change.hpp"
#include "papers/eunomia/segment_control.hpp"
#include "papers/eunomia/skip_list_node.hpp"

namespace elidex::papers {

using namespace internal;

// Which of the paper's principles a list follows.
struct euno_skip_parts {
  static constexpr bool partitioned = true;
  static constexpr bool controls_conflicts = true;
  // In place of "leaf" read "segment", and in place of "split" the insertion of a tower.
  static constexpr auxiliary_lock_use locks_segment_for = auxiliary_lock_use::conflicts;
  using control = segment_control;
  static constexpr std::uint64_t hot_after = 2;  // chosen: one abort may be chance
  // chosen: as long as a control's cost is well spread
  static constexpr unsigned requests_per_period = 1024;
  static constexpr unsigned conflicts_to_stay = 16;  // chosen: 1.5 %
};

// A link that knows where it leads: who need not go there reads no line of the target.
template <class Key, class Target>
struct keyed_link {
  Target* to = nullptr;
  Key target_key{};

  keyed_link() = default;
  explicit keyed_link(Target* t) noexcept : to(t), target_key(t->key) {}
  Key key() const noexcept { return target_key; }
};
template <class Key, class Target>
struct plain_link {
  Target* to = nullptr;

  plain_link() = default;
  explicit plain_link(Target* t) noexcept : to(t) {}
  Key key() const noexcept { return to->key; }
};

// All of a node that belongs to the lower region.
template <class Key, class Value, bool Partitioned>
struct euno_skip_record {
  using link = std::conditional_t<Partitioned, keyed_link<Key, euno_skip_record>,
                                  plain_link<Key, euno_skip_record>>;
  const Key key;
  const std::uint8_t height;
  std::array<link, 2> next{};
  Value value;
};

// All that belongs to the upper region, of a node that heads a segment.
template <class Key, class Record, class Sequence, class Control, bool Partitioned>
class euno_skip_tower {
 public:
  using link = std::conditional_t<Partitioned, keyed_link<Key, euno_skip_tower>,
                                  plain_link<Key, euno_skip_tower>>;

  euno_skip_tower(Key k, Record* f, unsigned levels) noexcept : key(k), first(f) {
    for (unsigned level = 0; level < levels; ++level)
      ::new (static_cast<void*>(links() + level)) link;
  }
  link& next(unsigned level) noexcept { return links()[level]; }

  const Key key;
  Record* const first;
  Sequence sequence;
  std::atomic<Control*> control{nullptr};

 private:
  link* links() noexcept { return std::launder(reinterpret_cast<link*>(this + 1)); }
};

// Key: an integer type. Value: a trivially copyable type. Sync: split_regions of any lock.
//
// Thread-safety: every function but constructor and destructor may be called from any thread at any
// time, and all are linearizable except size(), empty(), memory_bytes() and stats(), which are
// exact when no operation runs.
//
// Errors: std::bad_alloc from insert(), upsert(), erase(), scan(), the constructor, and from the
// first call of a thread; the list is then unchanged.
template <std::integral Key, class Value, class Sync, class Parts = euno_skip_parts,
          unsigned BitsPerLevel = 2>
class euno_skip_list {
  static_assert(std::is_trivially_copyable_v<Value>);
  using control = typename Parts::control;
  using node = papers::euno_skip_record<Key, Value, Parts::partitioned>;
  using tower =
      papers::euno_skip_tower<Key, node, typename Sync::sequence, control, Parts::partitioned>;
  using node_link = typename node::link;
  using tower_link = typename tower::link;
  using op_status = internal::op_status;
  static constexpr unsigned low_levels = 2;  // those of the lower region
  static constexpr unsigned high_levels = papers::skip_levels - low_levels;

  static constexpr std::size_t round_up(std::size_t bytes, std::size_t to) noexcept {
    return (bytes + to - 1) / to * to;
  }
  struct layout {
    static constexpr std::size_t tower_at =
        round_up(sizeof(node), Parts::partitioned ? block_pool::block_alignment : alignof(tower));
    static constexpr std::size_t bytes(unsigned height) noexcept {
      return height <= low_levels
                 ? sizeof(node)
                 : tower_at + sizeof(tower) + (height - low_levels) * sizeof(tower_link);
    }
    static constexpr std::size_t head_bytes() noexcept { return offsetof(node, value); }
  };

  // Where an upper region has led to.
  struct segment_ref {
    tower* at;
    typename Sync::sequence::token seen;
    control* controller;  // the segment's control, if it has one
  };

 public:
  using key_type = Key;
  using mapped_type = Value;
  using sync_policy = Sync;
  using key_argument = Key;
  using value_argument = const Value&;

  euno_skip_list() : head_(tower_of(make_node(papers::skip_levels, Key{}, Value{}))) {
    internal::name_memory(this, sizeof(*this), "list");
  }
  euno_skip_list(const euno_skip_list&) = delete;
  euno_skip_list& operator=(const euno_skip_list&) = delete;

  // The value of `key`, if it is there.
  std::optional<Value> get(key_argument key) const {
    const epoch_pin pinned;
    std::optional<Value> result;
    on_segment<purpose::look>(key, [&](const segment_ref& from) noexcept {
      result.reset();
      if (const node* const found = find(from, key)) result.emplace(found->value);
      return op_status::yes;
    });
    return result;
  }
  bool contains(key_argument key) const {
    const epoch_pin pinned;
    return on_segment<purpose::look>(key, [&](const segment_ref& from) noexcept {
             return find(from, key) != nullptr ? op_status::yes : op_status::no;
           }) == op_status::yes;
  }

  // Adds `key` unless it is there; says whether it added it.
  bool insert(key_argument key, value_argument value) {
    return insert_or_overwrite(key, value, false);
  }

  // Adds `key` or overwrites its value; says whether it added it.
  bool upsert(key_argument key, value_argument value) {
    return insert_or_overwrite(key, value, true);
  }

  // Adds `key` with `value` if it is absent. Returns the value that `key` has then, and whether it
  // added the key.
  std::pair<Value, bool> insert_or_get(key_argument key, value_argument value) {
    Value there = value;
    const bool added = insert_or_overwrite(key, value, false, &there);
    return {there, added};
  }

  // Replaces the value v of `key` by what fn(v) makes of it, as one atomic step; says whether the
  // key was there. fn(Value&) must not use the list, and should be short; it may run more than
  // once, with effects only of the last time. If it throws, the exception comes out of update() and
  // the value stays.
  template <value_change<Value> Fn>
  bool update(key_argument key, Fn&& fn) {
    const epoch_pin pinned;
    std::exception_ptr thrown;
    const op_status s = on_segment<purpose::change>(key, [&](const segment_ref& from) noexcept {
      node* const found = find(from, key);
      if (found == nullptr) return op_status::no;
      Value value = found->value;
      try {
        fn(value);
      } catch (...) {
        thrown = std::current_exception();
        return op_status::threw;
      }
      found->value = value;
      return op_status::yes;
    });
    if (s == op_status::threw) std::rethrow_exception(thrown);
    return s == op_status::yes;
  }

  // Removes `key`; says whether it was there.
  bool erase(key_argument key);

  // Calls fn(key, value) for up to `limit` keys from `from` on, in ascending order, and returns how
  // many there were. All of them were in the list at one moment, with no other key between them. fn
  // runs after that moment, outside of all locks, and may use the list.
  template <class Fn>
  std::size_t scan(key_argument from, std::size_t limit, Fn&& fn) const;

  std::size_t size() const noexcept { return size_.count(); }
  bool empty() const noexcept { return size() == 0; }

  // Everything obtained from the system for nodes, controls and free ones, in bytes.
  std::size_t memory_bytes() const noexcept {
    return pools_.reserved_bytes() + control_pool_.reserved_bytes() +
           retire_list_.reserved_bytes() + auxiliary_locks_.memory_bytes();
  }
  skip_list_stats stats() const noexcept {
    return {.restarts = restarts_.sum(),
            .nodes = pools_.blocks_in_use(),
            .retired_objects = retire_list_.pending(),
            .controls = control_pool_.blocks_in_use()};
  }

  // Frees what was erased before this call, as far as no reader was in the way, now instead of at
  // the next erasures.
  void reclaim() noexcept { retire_list_.sweep_all(); }

  // The policy's state, for the locks' statistics.
  const Sync& sync() const noexcept { return sync_; }

 private:
  friend papers::spare_node<euno_skip_list>;
  struct entry {
    Key key;
    Value value;
  };
  using scan_buffer = internal::staging_buffer<entry, 4096>;
  enum class purpose : std::uint8_t { look, change, remove, add, scan };

  // The nodes before a key on all levels.
  struct path {
    std::array<tower*, high_levels> above{};
    tower* segment = nullptr;
    std::array<node*, low_levels> before{};
  };
  // What a removal has unlinked, null where nothing.
  struct removed {
    node* unlinked = nullptr;
    std::array<control*, 2> controls{};
  };

  // --- memory ---

  static bool has_tower(const node& n) noexcept { return n.height > low_levels; }
  static tower* tower_of(node* n) noexcept {
    return std::launder(
        reinterpret_cast<tower*>(reinterpret_cast<std::byte*>(n) + layout::tower_at));
  }
  node* make_node(unsigned height, Key key, const Value& value) {
    void* const memory = pools_.allocate(height);
    auto* const made = ::new (memory)
        node{.key = key, .height = static_cast<std::uint8_t>(height), .value = value};
    if (has_tower(*made)) {
      ::new (static_cast<std::byte*>(memory) + layout::tower_at)
          tower(key, made, height - low_levels);
    }
    return made;
  }
  node* new_node(Key key, const Value& value) { return make_node(levels_.draw(), key, value); }
  void free_node(node* n) noexcept { pools_.deallocate(n, n->height); }
  static void destroy_node(void* list, void* n) noexcept {
    static_cast<euno_skip_list*>(list)->free_node(static_cast<node*>(n));
  }
  static void destroy_control(void* list, void* c) noexcept {
    static_cast<const euno_skip_list*>(list)->control_pool_.deallocate(c);
  }

  // The levels of towers in use so far. A value that is too small makes searches slower, never
  // wrong; it is raised before a tower can be seen, so that a region that sees one and asks here
  // knows of all its levels.
  unsigned high_levels_used() const noexcept {
    // relaxed: ordered by the region that saw the tower
    return high_levels_used_.load(std::memory_order_relaxed);
  }
  void raise_levels(unsigned to) noexcept {
    unsigned seen = high_levels_used();
    // relaxed: ordered by the region, as above.
    while (seen < to &&
           !high_levels_used_.compare_exchange_weak(seen, to, std::memory_order_relaxed)) {
    }
  }

  // --- in the upper region ---

  segment_ref locate(Key key, unsigned levels) const noexcept {
    tower* at = head_;
    for (unsigned level = levels; level-- > 0;) {
      for (tower_link next = at->next(level); next.to != nullptr && next.key() <= key;
           next = at->next(level)) {
        at = next.to;
      }
    }
    segment_ref result{at, at->sequence.read(), nullptr};
    if constexpr (Parts::controls_conflicts) {
      // pairs with the release in invalidate()
      std::atomic_thread_fence(std::memory_order_acquire);
      // pairs with the release in set_control()
      result.controller = at->control.load(std::memory_order_acquire);
    }
    return result;
  }

  // --- in the lower region ---

  bool still_valid(const segment_ref& from) const noexcept {
    // relaxed: the control changes in lower regions only, ordered by the region.
    return from.at->sequence.validate(from.seen) &&
           (!Parts::controls_conflicts ||
            from.at->control.load(std::memory_order_relaxed) == from.controller);
  }

  // The first node whose key is not less, and the nodes before it on the lower levels.
  static node_link lower_bound(node* at, Key key, std::array<node*, low_levels>& before) noexcept {
    node_link next;
    for (unsigned level = low_levels; level-- > 0;) {
      while ((next = at->next[level]).to != nullptr && next.key() < key) at = next.to;
      before[level] = at;
    }
    return next;
  }
  static node* if_equal(const node_link& next, Key key) noexcept {
    return next.to != nullptr && next.key() == key ? next.to : nullptr;
  }
  bool is_first(const segment_ref& from, Key key) const noexcept {
    return from.at->key == key && from.at != head_;
  }
  node* find(const segment_ref& from, Key key) const noexcept {
    if (is_first(from, key)) return from.at->first;
    std::array<node*, low_levels> before;
    return if_equal(lower_bound(from.at->first, key, before), key);
  }

  static void link_low(node& added, const std::array<node*, low_levels>& before) noexcept {
    for (unsigned level = 0; level < std::min<unsigned>(added.height, low_levels); ++level) {
      added.next[level] = before[level]->next[level];
      before[level]->next[level] = node_link(&added);
    }
  }
  static void unlink_low(const node& old, const std::array<node*, low_levels>& before) noexcept {
    for (unsigned level = 0; level < std::min<unsigned>(old.height, low_levels); ++level) {
      before[level]->next[level] = old.next[level];
    }
  }

  op_status try_put(const segment_ref& from, Key key, const Value& value, bool overwrite,
                    Value* there, papers::spare_node<euno_skip_list>& spare) noexcept {
    std::array<node*, low_levels> before;
    node* const found = is_first(from, key)
                            ? from.at->first
                            : if_equal(lower_bound(from.at->first, key, before), key);
    if (found != nullptr) {
      if (overwrite) found->value = value;
      if (there != nullptr) *there = found->value;
      return op_status::no;
    }
    if (spare.get() == nullptr) return op_status::need_memory;
    if (has_tower(*spare.get())) return op_status::restructured;
    link_low(*spare.take(), before);
    return op_status::yes;
  }

  op_status try_erase(const segment_ref& from, Key key, removed& result) noexcept {
    result = {};
    if (is_first(from, key)) return op_status::restructured;
    std::array<node*, low_levels> before;
    node* const found = if_equal(lower_bound(from.at->first, key, before), key);
    if (found == nullptr) return op_status::no;
    unlink_low(*found, before);
    result.unlinked = found;
    return op_status::yes;
  }

  // The marks of the segment's keys.
  std::uint64_t marks_of(tower* segment) const noexcept {
    std::uint64_t marks = segment == head_ ? 0 : control::bit(control::slot_of(segment->key));
    for (const node* n = segment->first->next[0].to; n != nullptr && !has_tower(*n);
         n = n->next[0].to) {
      marks |= control::bit(control::slot_of(n->key));
    }
    return marks;
  }

  static void set_control(tower& segment, control* to) noexcept {
    segment.control.store(to, std::memory_order_release);  // pairs with the acquire in locate()
    segment.sequence.invalidate();
  }

  // --- in both regions ---

  // The key's node, if it is there.
  node* find_path(Key key, path& way) const noexcept {
    tower* at = head_;
    for (unsigned level = high_levels_used(); level-- > 0;) {
      for (tower_link next = at->next(level); next.to != nullptr && next.key() < key;
           next = at->next(level)) {
        at = next.to;
      }
      way.above[level] = at;
    }
    way.segment = at;
    return if_equal(lower_bound(at->first, key, way.before), key);
  }

  op_status insert_or_overwrite_with_tower(Key key, const Value& value, bool overwrite,
                                           Value* there,
                                           papers::spare_node<euno_skip_list>& spare) noexcept {
    path way;
    if (node* const found = find_path(key, way); found != nullptr) {
      if (overwrite) found->value = value;
      if (there != nullptr) *there = found->value;
      return op_status::no;
    }
    way.segment->sequence.invalidate();  // those behind the new key have another segment now
    node* const added = spare.take();
    link_low(*added, way.before);
    tower* const top = tower_of(added);
    for (unsigned level = 0; level < added->height - low_levels; ++level) {
      top->next(level) = way.above[level]->next(level);
      way.above[level]->next(level) = tower_link(top);
    }
    return op_status::yes;
  }

  op_status erase_with_tower(Key key, removed& result) noexcept {
    result = {};
    path way;
    node* const old = find_path(key, way);
    if (old == nullptr) return op_status::no;
    if (!has_tower(*old)) return op_status::restart;  // another one, come in meanwhile
    tower* const top = tower_of(old);
    top->sequence.invalidate();
    for (unsigned level = 0; level < old->height - low_levels; ++level)
      way.above[level]->next(level) = top->next(level);
    unlink_low(*old, way.before);
    result.unlinked = old;
    if constexpr (Parts::controls_conflicts) {
      // relaxed: ordered by the region.
      result.controls = {top->control.load(std::memory_order_relaxed),
                         way.segment->control.load(std::memory_order_relaxed)};
      if (result.controls[1] != nullptr) set_control(*way.segment, nullptr);
    }
    return op_status::yes;
  }

  // --- the way through the regions; the caller is pinned ---

  template <purpose Why, class Body>
  op_status on_segment(Key key, Body&& body) const {
    for (backoff wait;; wait.once()) {
      const unsigned levels = high_levels_used();
      const segment_ref from = sync_.descend([&]() noexcept { return locate(key, levels); });
      op_status s;
      if (Parts::controls_conflicts && Why != purpose::scan && from.controller != nullptr) {
        s = controlled<Why>(from, key, body);
      } else if constexpr (Parts::controls_conflicts && Why != purpose::scan) {
        std::uint32_t aborts = 0;
        s = in_lower(from, body, aborts);
        if (s != op_status::restart && aborts >= Parts::hot_after) give_control(from);
      } else {
        s = in_lower(from, body);
      }
      if (s != op_status::restart) return s;
      restarts_.add(1);
    }
  }

  template <class Body>
  op_status in_lower(const segment_ref& from, Body& body) const {
    std::uint32_t ignored = 0;
    return in_lower(from, body, ignored);
  }
  template <class Body>
  op_status in_lower(const segment_ref& from, Body& body, std::uint32_t& aborts) const {
    const auto checked = [&]() noexcept {
      return still_valid(from) ? body(from) : op_status::restart;
    };
    if constexpr (Parts::locks_segment_for == auxiliary_lock_use::conflicts) {
      auxiliary_lock turn(auxiliary_locks_, from.at);
      return sync_.in_leaf(checked, aborts, turn);
    } else {
      return sync_.in_leaf(checked, aborts);
    }
  }

  template <purpose Why, class Body>
  op_status controlled(const segment_ref& from, Key key, Body& body) const {
    control& controller = *from.controller;
    const unsigned slot = control::slot_of(key);
    if (Why != purpose::add && !controller.is_marked(slot)) {
      return from.at->sequence.validate(from.seen) ? op_status::no : op_status::restart;
    }
    // A reader does not queue. It reads the record at the end of its region, when usually no thread
    // writes it.
    if constexpr (Why == purpose::look) return in_lower(from, body);

    const bool waited = controller.lock(slot);
    op_status s = op_status::restart;
    if constexpr (Why == purpose::remove) {
      bool shared = false;  // another key of the segment has this mark
      s = sync_.in_leaf([&]() noexcept {
        if (!still_valid(from)) return op_status::restart;
        const op_status done = body(from);
        if (done == op_status::yes) shared = (marks_of(from.at) & control::bit(slot)) != 0;
        return done;
      });
      if (s == op_status::yes && !shared) controller.clear_mark(slot);
    } else {
      if (Why == purpose::add && !controller.is_marked(slot)) controller.mark(slot);
      s = in_lower(from, body);
    }
    const bool quiet =
        controller.unlock(slot, waited, Parts::requests_per_period, Parts::conflicts_to_stay);
    if (quiet) take_control(from);
    return s;
  }

  // Both are for speed only: without memory they leave things as they are.
  void give_control(const segment_ref& from) const noexcept;
  void take_control(const segment_ref& from) const noexcept;

  // Without `overwrite`, a value that is there already is copied to *there, unless that is null.
  bool insert_or_overwrite(Key key, const Value& value, bool overwrite, Value* there = nullptr);

  mutable Sync sync_;
  papers::leveled_pools<layout> pools_;
  mutable block_pool control_pool_{sizeof(control), "control"};
  alignas(64) tower* const head_;
  std::atomic<unsigned> high_levels_used_{1};
  alignas(64) papers::level_generator<BitsPerLevel> levels_;
  alignas(64) internal::busy_counter size_;
  mutable internal::rare_counter restarts_;
  auxiliary_locks auxiliary_locks_;
  // destroyed first: what is in it gives its memory back to the pools
  mutable retire_list retire_list_{this};
};

template <std::integral Key, class Value, class Sync, class Parts, unsigned BitsPerLevel>
bool euno_skip_list<Key, Value, Sync, Parts, BitsPerLevel>::insert_or_overwrite(Key key,
                                                                                const Value& value,
                                                                                bool overwrite,
                                                                                Value* there) {
  const epoch_pin pinned;
  papers::spare_node<euno_skip_list> spare(*this);
  if (!overwrite) spare.provide(key, value);  // will be needed, but for duplicates
  for (;;) {
    const tower* segment = nullptr;
    op_status s = on_segment<purpose::add>(key, [&](const segment_ref& from) noexcept {
      segment = from.at;
      return try_put(from, key, value, overwrite, there, spare);
    });
    if (s == op_status::need_memory) {
      spare.provide(key, value);
      continue;
    }
    if (s == op_status::restructured) {
      raise_levels(spare.get()->height - low_levels);
      const auto body = [&]() noexcept {
        return insert_or_overwrite_with_tower(key, value, overwrite, there, spare);
      };
      std::unique_lock<ttas_lock> turn;
      if (Parts::locks_segment_for != auxiliary_lock_use::none && !sync_.in_region())
        turn = std::unique_lock(auxiliary_locks_.of(segment));
      s = sync_.whole_as_policy(body);
    }
    if (s == op_status::yes) size_.add(1);
    return s == op_status::yes;
  }
}

template <std::integral Key, class Value, class Sync, class Parts, unsigned BitsPerLevel>
bool euno_skip_list<Key, Value, Sync, Parts, BitsPerLevel>::erase(key_argument key) {
  const epoch_pin pinned;
  removed result;
  for (;;) {
    op_status s = on_segment<purpose::remove>(
        key, [&](const segment_ref& from) noexcept { return try_erase(from, key, result); });
    if (s == op_status::yes) {
      free_node(result.unlinked);
    } else if (s == op_status::restructured) {
      retire_list_.reserve();
      s = sync_.whole_as_policy([&]() noexcept { return erase_with_tower(key, result); });
      if (s == op_status::yes) {
        retire_list_.retire(result.unlinked, &destroy_node);
        for (control* const c : result.controls) {
          if (c != nullptr) retire_list_.retire(c, &destroy_control);
        }
      }
      retire_list_.unreserve();
      if (s == op_status::restart) continue;
    }
    if (s == op_status::yes) size_.add(-1);
    return s == op_status::yes;
  }
}

template <std::integral Key, class Value, class Sync, class Parts, unsigned BitsPerLevel>
template <class Fn>
std::size_t euno_skip_list<Key, Value, Sync, Parts, BitsPerLevel>::scan(key_argument from,
                                                                        std::size_t limit,
                                                                        Fn&& fn) const {
  if (limit == 0) return 0;
  scan_buffer entries;
  {
    const epoch_pin pinned;
    const auto collect = [&](const segment_ref& begin) noexcept {
      entries.clear();
      const node* at = nullptr;
      if (is_first(begin, from)) {
        at = begin.at->first;
      } else {
        std::array<node*, low_levels> before;
        at = lower_bound(begin.at->first, from, before).to;
      }
      for (; at != nullptr && entries.size() < limit; at = at->next[0].to) {
        if (!entries.push({at->key, at->value})) return op_status::need_memory;
      }
      return op_status::yes;
    };
    while (on_segment<purpose::scan>(from, collect) == op_status::need_memory) entries.grow();
  }
  for (const entry& e : entries.items()) fn(e.key, e.value);
  return entries.size();
}

template <std::integral Key, class Value, class Sync, class Parts, unsigned BitsPerLevel>
void euno_skip_list<Key, Value, Sync, Parts, BitsPerLevel>::give_control(
    const segment_ref& from) const noexcept {
  void* memory = nullptr;
  try {
    memory = control_pool_.allocate();
  } catch (const std::bad_alloc&) {
    return;
  }
  auto* const fresh = ::new (memory) control;
  const op_status s = sync_.in_leaf([&]() noexcept {
    if (!still_valid(from)) return op_status::restart;
    fresh->set_marks(marks_of(from.at));
    set_control(*from.at, fresh);
    return op_status::yes;
  });
  if (s != op_status::yes) control_pool_.deallocate(memory);
}

template <std::integral Key, class Value, class Sync, class Parts, unsigned BitsPerLevel>
void euno_skip_list<Key, Value, Sync, Parts, BitsPerLevel>::take_control(
    const segment_ref& from) const noexcept {
  try {
    retire_list_.reserve();
  } catch (const std::bad_alloc&) {
    return;
  }
  const op_status s = sync_.in_leaf([&]() noexcept {
    if (!still_valid(from)) return op_status::restart;
    set_control(*from.at, nullptr);
    return op_status::yes;
  });
  if (s == op_status::yes) retire_list_.retire(from.controller, &destroy_control);
  retire_list_.unreserve();
}

}  // namespace elidex::papers
