// A skip list without locks: the LockFree-SkipList of paper 003.
//
//   lock_free_skip_list<std::uint64_t, std::uint64_t> list;
//   list.upsert(7, 70);
//   list.update(7, [](std::uint64_t& v) { ++v; });
//   list.scan(0, 10, [](std::uint64_t key, std::uint64_t value) { ... });  // weakly consistent
//
// An erase marks the node's links, bit 0 of each, from the top to level 0. A marked link never
// changes again, so no thread links a node behind an erased one. A search that meets a marked node
// unlinks it from that level, by a compare-and-swap on its predecessor's link. So searches help,
// and end only between two nodes that are both unmarked.
//
// Invariants
//   * Keys ascend on each level. Links of a node are marked from the top down, and all of them
//     before level 0.
//   * A key is in the list when level 0 has an unmarked node with it that can be reached from the
//     head by level 0; of such nodes there is at most one.
//   * A node whose link at a level is not marked and that has been linked there is linked there:
//     only marked nodes are taken out.
//
// Linearization points
//   a key comes in       the compare-and-swap of its predecessor's link at level 0: it succeeds
//                        only while that is unmarked and leads to the successor that the search has
//                        found
//   a key goes out       the marking of its node's link at level 0
//   searches             absent: the load of the predecessor's unmarked link at level 0, which
//                        leads past the key. present: the load of the node's own link at level 0,
//                        unmarked
//   get, insert, update, upsert that read or write a value: the load or compare-and-swap of the
//   value, if the node is unmarked then; otherwise the moment before it was marked, all such
//   accesses in the order in which they happened. Each of them has found the node unmarked after
//   it began, so that this moment is within all of them; they are later than every access before
//   the mark; and one that ended before another began is earlier than it. So an erase needs not
//   look at values, and is before or after every update. scan is not linearizable: it reports
//   every key that is there all the time, none that never was, in ascending order.
//
// Values of up to a word are swapped in the node. Larger ones lie in a block of their own, which an
// update replaces: the swap of its address is what is said above of the value, and addresses are
// not reused while somebody is pinned who has seen them.
//
// Ownership of a node. A thread that adds a node may still be linking its upper levels while
// another thread erases it. Each of the two leaves when it is done. The second one to leave
// searches once more, which unlinks the node from every level, because no thread links it now and
// no level has an equal key in front of it. Then it retires the node.
//
// Memory orders: seq_cst where nothing is said, since all of it is swaps and loads, which cost no
// more on x86.
//
// From: Fraser, "Practical lock-freedom" (2004), section 4.3.3. Deviations: a key goes out by the
// mark at level 0, not by a null value, so that values need no spare bit pattern; no links are
// turned backwards: a failed swap searches again.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "elidex/internal/memory/block_pool.hpp"
#include "elidex/internal/memory/counters.hpp"
#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/memory/memory_name.hpp"
#include "elidex/internal/memory/retire_list.hpp"
#include "elidex/internal/tree/range_collector.hpp"
#include "elidex/internal/tree/value_change.hpp"
#include "papers/eunomia/skip_list_node.hpp"

namespace elidex::papers {

using namespace internal;

// What keeps the list right; tests break it.
struct lock_free_list_rules {
  static constexpr bool marks_before_unlinking = true;
  static constexpr bool keeps_equal_keys_apart = true;  // link_above()
  template <unsigned BitsPerLevel>
  using heights = papers::level_generator<BitsPerLevel>;
};

// Key: an integer type. Value: a trivially copyable type.
//
// Thread-safety: every function but constructor and destructor may be called from any thread at any
// time, and all are linearizable except scan(), size(), empty(), memory_bytes() and stats().
// Lock-free except for memory: the pools and the retire list take a mutex of the thread's shard.
//
// Errors: std::bad_alloc from insert(), upsert(), update() of large values, erase(), the
// constructor, and from the first call of a thread; the list is then unchanged.
template <std::integral Key, class Value, unsigned BitsPerLevel = 2,
          class Rules = lock_free_list_rules>
class lock_free_skip_list {
  static_assert(std::is_trivially_copyable_v<Value>);
  static constexpr bool value_in_word = sizeof(Value) <= sizeof(std::uint64_t);
  struct record {
    std::atomic<std::uint64_t> value;  // its bytes, or its address
    // who adds it and who erases it, as long as they are not done with it
    std::atomic<std::uint8_t> users_left;
  };
  using link = std::atomic<std::uintptr_t>;
  using node = papers::leveled_node<Key, record, link>;
  // The neighbours of a key, on the levels that a search has been on.
  struct path {
    std::array<node*, papers::skip_levels> before;
    std::array<node*, papers::skip_levels> after;
    unsigned height = 0;
  };

 public:
  using key_type = Key;
  using mapped_type = Value;
  using key_argument = Key;
  using value_argument = const Value&;
  static constexpr bool scans_are_snapshots = false;

  lock_free_skip_list()
      : head_(node::make(pools_.allocate(papers::skip_levels), papers::skip_levels, Key{})) {
    internal::name_memory(this, sizeof(*this), "list");
  }
  lock_free_skip_list(const lock_free_skip_list&) = delete;
  lock_free_skip_list& operator=(const lock_free_skip_list&) = delete;

  // The value of `key`, if it is there.
  std::optional<Value> get(key_argument key) const {
    const epoch_pin pinned;
    path way;
    const node* const found = find(key, way);
    return found == nullptr ? std::nullopt : std::optional(value_in(found->payload.value.load()));
  }
  bool contains(key_argument key) const {
    const epoch_pin pinned;
    path way;
    return find(key, way) != nullptr;
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
  // key was there. fn(Value&) must not use the list; it may run more than once, with effects only
  // of the last time. If it throws, the exception comes out of update() and the value stays.
  template <value_change<Value> Fn>
  bool update(key_argument key, Fn&& fn) {
    const epoch_pin pinned;
    path way;
    node* const found = find(key, way);
    if (found == nullptr) return false;
    replacement made(*this);
    std::uint64_t seen = found->payload.value.load();
    for (;;) {
      Value value = value_in(seen);
      fn(value);
      made.provide(value);
      if (found->payload.value.compare_exchange_strong(seen, made.word())) break;
      restarts_.add(1);
    }
    made.replaced(seen);
    return true;
  }

  // Removes `key`; says whether it was there.
  bool erase(key_argument key) {
    const epoch_pin pinned;
    path way;
    node* const found = find(key, way);
    if (found == nullptr) return false;
    const reservation room(retire_list_);
    for (unsigned level = found->height; level-- > 1;) found->link(level).fetch_or(marked_bit);
    if constexpr (Rules::marks_before_unlinking) {
      // another one was faster
      if ((found->link(0).fetch_or(marked_bit) & marked_bit) != 0) return false;
      leave(*found, way);
    } else {
      std::uintptr_t expected = word_of(found);
      if (!way.before[0]->link(0).compare_exchange_strong(expected, found->link(0).load()))
        return false;
    }
    size_.add(-1);
    return true;
  }

  // Calls fn(key, value) for up to `limit` keys from `from` on, in ascending order, and returns how
  // many there were. Every key that was there from beginning to end is reported unless the limit
  // cuts it off; others may be. fn may use the list.
  template <class Fn>
  std::size_t scan(key_argument from, std::size_t limit, Fn&& fn) const {
    return papers::scan_in_parts<scan_part>(
        from, limit,
        [&](Key at, std::size_t most, scan_part& part) { return collect(at, most, part); }, fn);
  }

  std::size_t size() const noexcept { return size_.count(); }
  bool empty() const noexcept { return size() == 0; }

  // Everything obtained from the system for nodes, large values and free ones, in bytes.
  std::size_t memory_bytes() const noexcept {
    return pools_.reserved_bytes() + value_pool_.reserved_bytes() + retire_list_.reserved_bytes();
  }
  skip_list_stats stats() const noexcept {
    return {.restarts = restarts_.sum(),
            .nodes = pools_.blocks_in_use() + value_pool_.blocks_in_use(),
            .retired_objects = retire_list_.pending()};
  }

  // Whether every level ascends and holds no erased node: so it is whenever no operation is under
  // way, and it must be asked only then.
  bool is_sound() const noexcept {
    for (unsigned level = 0; level < height(); ++level) {
      const node* before = nullptr;
      for (node* at = target(head_->link(level).load()); at != nullptr;
           at = target(at->link(level).load())) {
        if (is_marked(at->link(level).load()) || (before != nullptr && !(before->key < at->key)))
          return false;
        before = at;
      }
    }
    return true;
  }

  // Frees what was erased before this call, as far as no reader was in the way, now instead of at
  // the next erasures.
  void reclaim() noexcept { retire_list_.sweep_all(); }

 private:
  friend papers::spare_node<lock_free_skip_list>;
  struct entry {
    Key key;
    Value value;
  };
  using scan_part = internal::staging_buffer<entry, std::max(sizeof(entry), std::size_t{2048})>;

  class reservation {
   public:
    explicit reservation(retire_list& list) : retire_list_(list) { retire_list_.reserve(); }
    ~reservation() { retire_list_.unreserve(); }
    reservation(const reservation&) = delete;
    reservation& operator=(const reservation&) = delete;

   private:
    retire_list& retire_list_;
  };

  // A value on its way into a node, in place of another one.
  class replacement {
   public:
    explicit replacement(lock_free_skip_list& list) noexcept : list_(list) {}
    ~replacement() {
      if constexpr (!value_in_word) {
        if (block_ != nullptr) list_.value_pool_.deallocate(block_);
        if (reserved_) list_.retire_list_.unreserve();
      }
    }
    replacement(const replacement&) = delete;
    replacement& operator=(const replacement&) = delete;

    // Throws std::bad_alloc.
    void provide(const Value& value) {
      if constexpr (value_in_word) {
        word_ = 0;
        std::memcpy(&word_, &value, sizeof(Value));
      } else {
        if (!reserved_) {
          list_.retire_list_.reserve();
          reserved_ = true;
        }
        if (block_ == nullptr) block_ = list_.value_pool_.allocate();
        ::new (block_) Value(value);
        word_ = reinterpret_cast<std::uintptr_t>(block_);
      }
    }
    std::uint64_t word() const noexcept { return word_; }
    // It is in, and this was there before.
    void replaced(std::uint64_t old) noexcept {
      if constexpr (!value_in_word) {
        block_ = nullptr;
        list_.retire_list_.retire(reinterpret_cast<void*>(static_cast<std::uintptr_t>(old)),
                                  &destroy_value);
      }
    }
    // It is in a new node.
    void used() noexcept { block_ = nullptr; }

   private:
    lock_free_skip_list& list_;
    std::uint64_t word_ = 0;
    void* block_ = nullptr;
    bool reserved_ = false;
  };

  static constexpr std::uintptr_t marked_bit = 1;
  static node* target(std::uintptr_t word) noexcept {
    return reinterpret_cast<node*>(word & ~marked_bit);
  }
  static bool is_marked(std::uintptr_t word) noexcept { return (word & marked_bit) != 0; }
  static std::uintptr_t word_of(const node* n) noexcept {
    return reinterpret_cast<std::uintptr_t>(n);
  }

  static Value value_in(std::uint64_t word) noexcept {
    if constexpr (value_in_word) {
      std::array<std::byte, sizeof(Value)> bytes;
      std::memcpy(&bytes, &word, sizeof(Value));
      return std::bit_cast<Value>(bytes);
    } else {
      return *std::launder(reinterpret_cast<const Value*>(static_cast<std::uintptr_t>(word)));
    }
  }

  node* new_node(Key key, const Value& value) {
    replacement made(*this);
    made.provide(value);
    const unsigned height = levels_.draw();
    // Of a node with one level, its adder is done when it is in.
    const std::uint8_t users = height == 1 ? 1 : 2;
    node* const result = node::make(pools_.allocate(height), height, key, made.word(), users);
    made.used();
    return result;
  }
  void free_node(node* n) noexcept {
    if constexpr (!value_in_word) {
      value_pool_.deallocate(
          reinterpret_cast<void*>(static_cast<std::uintptr_t>(n->payload.value.load())));
    }
    pools_.deallocate(n, n->height);
  }
  static void destroy_node(void* list, void* n) noexcept {
    static_cast<lock_free_skip_list*>(list)->free_node(static_cast<node*>(n));
  }
  static void destroy_value(void* list, void* value) noexcept {
    static_cast<lock_free_skip_list*>(list)->value_pool_.deallocate(value);
  }

  // The highest height so far: searches begin there. A value that is too small makes them slower,
  // never wrong.
  unsigned height() const noexcept { return height_.load(); }
  void raise_height(unsigned to) noexcept {
    unsigned seen = height();
    while (seen < to && !height_.compare_exchange_weak(seen, to)) {
    }
  }

  // --- the caller is pinned ---

  // The neighbours of `key` on every level from `height` down: unmarked, and adjacent at the moment
  // at which the link between them was read. Takes out what it finds marked on its way.
  void search(Key key, path& way, unsigned height) const noexcept {
    way.height = height;
    while (!try_search(key, way)) restarts_.add(1);
  }
  bool try_search(Key key, path& way) const noexcept {
    node* at = head_;
    for (unsigned level = way.height; level-- > 0;) {
      std::uintptr_t from_at = at->link(level).load();
      if (is_marked(from_at)) return false;  // it was not when we came to it, a level higher
      node* next = target(from_at);
      while (next != nullptr) {
        const std::uintptr_t from_next = next->link(level).load();
        if (is_marked(from_next)) {
          std::uintptr_t expected = word_of(next);
          node* const behind = target(from_next);
          if (!at->link(level).compare_exchange_strong(expected, word_of(behind))) return false;
          next = behind;
        } else if (next->key < key) {
          at = next;
          next = target(from_next);
        } else {
          break;
        }
      }
      way.before[level] = at;
      way.after[level] = next;
    }
    return true;
  }
  node* find(Key key, path& way) const noexcept {
    search(key, way, height());
    node* const next = way.after[0];
    return next != nullptr && next->key == key ? next : nullptr;
  }

  // Without `overwrite`, a value that is there already is copied to *there, unless that is null.
  bool insert_or_overwrite(Key key, const Value& value, bool overwrite, Value* there = nullptr) {
    const epoch_pin pinned;
    papers::spare_node<lock_free_skip_list> spare(*this);
    for (;;) {
      path way;
      node* const found = find(key, way);
      if (found != nullptr) {
        if (!overwrite) {
          if (there != nullptr) *there = value_in(found->payload.value.load());
          return false;
        }
        replacement made(*this);
        made.provide(value);
        std::uint64_t seen = found->payload.value.load();
        while (!found->payload.value.compare_exchange_weak(seen, made.word())) restarts_.add(1);
        made.replaced(seen);
        return false;
      }
      spare.provide(key, value);
      if (spare.get()->height == 1) {
        if (link_bottom(*spare.get(), way)) {
          spare.take();
          break;
        }
      } else {
        const reservation room(retire_list_);  // for the case that it is erased while it comes in
        if (link_bottom(*spare.get(), way)) {
          link_above(*spare.take(), way);
          break;
        }
      }
      restarts_.add(1);
    }
    size_.add(1);
    return true;
  }

  bool link_bottom(node& added, path& way) noexcept {
    for (unsigned level = 0; level < added.height; ++level) {
      node* const next = level < way.height ? way.after[level] : nullptr;
      // relaxed: ordered by the swap below
      added.link(level).store(word_of(next), std::memory_order_relaxed);
    }
    std::uintptr_t expected = word_of(way.after[0]);
    return way.before[0]->link(0).compare_exchange_strong(expected, word_of(&added));
  }

  void link_above(node& added, path& way) noexcept {
    const unsigned height = added.height;
    raise_height(height);
    if (way.height < height) search(added.key, way, height);
    for (unsigned level = 1; level < height; ++level) {
      for (;;) {
        // Sets the node's own link first. Stops if an eraser has marked it, because no thread would
        // then unlink the node from this level.
        std::uintptr_t own = added.link(level).load();
        if (is_marked(own)) return leave(added, way);
        if (target(own) != way.after[level] &&
            !added.link(level).compare_exchange_strong(own, word_of(way.after[level]))) {
          return leave(added, way);
        }
        // Nor in front of a node with the same key: that one was erased while the search went on
        // below this level, and a search for its key would end here, before it, and leave it linked
        // when it is retired.
        const node* const next = way.after[level];
        std::uintptr_t expected = word_of(next);
        if ((!Rules::keeps_equal_keys_apart || next == nullptr || next->key != added.key) &&
            way.before[level]->link(level).compare_exchange_strong(expected, word_of(&added))) {
          break;
        }
        restarts_.add(1);
        search(added.key, way, height);
      }
    }
    leave(added, way);
  }

  // The adder of a node, or its eraser, is done with it. Needs a reservation.
  void leave(node& n, path& way) noexcept {
    if (n.payload.users_left.fetch_sub(1) != 1) return;
    search(n.key, way, std::max(height(), unsigned{n.height}));
    retire_list_.retire(&n, &destroy_node);
  }

  // A part of a scan; returns where the next one begins, if there is more.
  std::optional<Key> collect(Key from, std::size_t limit, scan_part& part) const {
    const epoch_pin pinned;
    path way;
    search(from, way, height());
    for (node* at = way.after[0]; at != nullptr && part.size() < limit;) {
      const std::uintptr_t next = at->link(0).load();
      if (!is_marked(next) && !part.push({at->key, value_in(at->payload.value.load())}))
        return at->key;
      at = target(next);
    }
    return std::nullopt;
  }

  mutable papers::leveled_pools<node> pools_;
  block_pool value_pool_{sizeof(Value), "value"};
  node* const head_;
  std::atomic<unsigned> height_{1};
  alignas(64) typename Rules::template heights<BitsPerLevel> levels_;
  alignas(64) internal::busy_counter size_;
  mutable internal::rare_counter restarts_;
  // destroyed first: what is in it gives its memory back to the pools
  retire_list retire_list_{this};
};

}  // namespace elidex::papers
