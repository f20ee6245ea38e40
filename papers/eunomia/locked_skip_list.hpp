// A skip list with a lock on every link: the FGLock-SkipList of paper 003.
//
//   locked_skip_list<std::uint64_t, std::uint64_t> list;
//   list.upsert(7, 70);
//   auto value = list.get(7);                                          // takes no lock
//   list.scan(0, 10, [](std::uint64_t key, std::uint64_t value) { ... });  // weakly consistent
//
// Each level is a list of its own with short cuts to it: a node comes in level by level from the
// bottom, goes out from the top, and is at any moment a correct (if lower) node. So no operation
// holds the locks of more than one level.
//
// Locks: bit 0 of a link locks this link, which is unlocked by the store of its new value. Besides,
// each node has a version lock: held while the node comes in or goes out and while its value is
// written; obsolete once it has gone out.
//
// A node that goes out of a level leaves its link there turned backwards, to its predecessor: a
// search that stands on it reads a smaller key, goes there, and forward again.
//
// Invariants
//   * Keys ascend along the links of the nodes that are in a level. A link that leads to a smaller
//     key belongs to a node that has left this level; the link never changes again.
//   * A node is in level i + 1 only while it is in level i. A thread that holds its node lock finds
//     the node in all of its levels or (obsolete) in none.
//   * At no moment are two nodes with one key in level 0, and so in no level: a second one comes in
//     at the bottom, when the first one has left everything above it.
//
// Order of locks: the node lock of the node that comes in or goes out; then links from smaller to
// larger keys, one in the former case, two adjacent ones in the latter. A thread that
// holds a link waits only for a link further right. A thread that waits for a node lock holds
// nothing.
//
// Linearization points
//   a key comes in, goes out   the store to its predecessor's link at level 0, made under that
//                              link's lock
//   searches                   the load of the last link at level 0. It led to a key that is not
//                              smaller, so the node it belongs to had not been turned backwards.
//                              Either it was in the list, and the link's target its successor; or
//                              its eraser stood between taking it out and turning it: then both the
//                              link in front of it and its own were locked, so that its target was
//                              still the predecessor's successor.
//   get of a key that is there that load, or, where the value was written or the node went out
//   between it and the load
//                              of the value, the load of the value or the moment before the node
//                              went out: a value is written only under the node lock of a node that
//                              is in the list
//   insert of a key that is there   as get
//   upsert, update that write  their store of the value, under the node lock
//   erase that finds the node obsolete   the moment at which the other one took it out, which was
//                                        after our search
//   An operation that begins after a change has returned must see the change. Searches take no
//   lock, so this needs a fence after the change: make_visible(), and epoch_pin at the beginning of
//   the next operation. scan is not linearizable: it reports every key that is there all the time,
//   none that never was, in ascending order.
//
// Why a node that has been turned backwards leads to no reused memory. A search reaches a node on
// some level, and looks only at its links there and below. A node that was in that level after the
// search pinned its epoch leaves it, and the levels below, later; what its links are turned to is,
// at that moment, in the list, hence retired after the pin.
//
// From: Pugh, "Concurrent maintenance of skip lists" (1990). Deviations: the lock is in the link;
// the lock on a node's height has a version, so that wide values are read without a lock; an
// overwrite takes the node's lock, not the predecessor's link.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <type_traits>
#include <utility>

#include "elidex/internal/memory/counters.hpp"
#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/memory/memory_name.hpp"
#include "elidex/internal/memory/retire_list.hpp"
#include "elidex/internal/sync/parking.hpp"
#include "elidex/internal/sync/version_lock.hpp"
#include "elidex/internal/tree/range_collector.hpp"
#include "elidex/internal/tree/value_change.hpp"
#include "papers/eunomia/skip_list_node.hpp"

namespace elidex::papers {

using namespace internal;

// Key: an integer type. Value: a trivially copyable type.
//
// Thread-safety: every function but constructor and destructor may be called from any thread at any
// time, and all are linearizable except scan(), size(), empty(), memory_bytes() and stats().
//
// Errors: std::bad_alloc from insert(), upsert(), erase(), the constructor, and from the first call
// of a thread; the list is then unchanged.
template <std::integral Key, class Value, unsigned BitsPerLevel = 2>
class locked_skip_list {
  static_assert(std::is_trivially_copyable_v<Value>);
  struct record {
    version_lock lock;
    internal::field<Value> value;
  };
  using link = std::atomic<std::uintptr_t>;
  using node = papers::leveled_node<Key, record, link>;
  // The nodes before a key, on the levels that a search has been on.
  struct path {
    std::array<node*, papers::skip_levels> before;
    unsigned height = 0;
  };

 public:
  using key_type = Key;
  using mapped_type = Value;
  using key_argument = Key;
  using value_argument = const Value&;
  static constexpr bool scans_are_snapshots = false;

  locked_skip_list()
      : head_(node::make(pools_.allocate(papers::skip_levels), papers::skip_levels, Key{})) {
    internal::name_memory(this, sizeof(*this), "list");
  }
  locked_skip_list(const locked_skip_list&) = delete;
  locked_skip_list& operator=(const locked_skip_list&) = delete;

  // The value of `key`, if it is there.
  std::optional<Value> get(key_argument key) const {
    const epoch_pin pinned;
    node* const found = find(key);
    return found == nullptr ? std::nullopt : std::optional(value_of(*found));
  }
  bool contains(key_argument key) const {
    const epoch_pin pinned;
    return find(key) != nullptr;
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
  // key was there. fn(Value&) must not use the list and should be short: others who want the key
  // wait for it. It runs once. If it throws, the exception comes out of update() and the value
  // stays.
  template <value_change<Value> Fn>
  bool update(key_argument key, Fn&& fn) {
    const epoch_pin pinned;
    node* const found = find(key);
    if (found == nullptr) return false;
    const node_guard guard(found->payload.lock);
    if (guard.is_obsolete()) return false;
    Value value = found->payload.value.template load<true>();
    fn(value);
    found->payload.value.template store<true>(value);
    make_visible();
    return true;
  }

  // Removes `key`; says whether it was there.
  bool erase(key_argument key) {
    const epoch_pin pinned;
    retire_list_.reserve();
    const bool erased = erase_with_reservation(key);
    retire_list_.unreserve();
    if (erased) size_.add(-1);
    return erased;
  }

  // Calls fn(key, value) for up to `limit` keys from `from` on, in ascending order, and returns how
  // many there were. Every key that was there from beginning to end is reported unless the limit
  // cuts it off; others may be. fn runs outside of all locks and may use the list.
  template <class Fn>
  std::size_t scan(key_argument from, std::size_t limit, Fn&& fn) const {
    return papers::scan_in_parts<scan_part>(
        from, limit,
        [&](Key at, std::size_t most, scan_part& part) { return collect(at, most, part); }, fn);
  }

  std::size_t size() const noexcept { return size_.count(); }
  bool empty() const noexcept { return size() == 0; }

  // Everything obtained from the system for nodes and free nodes, in bytes.
  std::size_t memory_bytes() const noexcept {
    return pools_.reserved_bytes() + retire_list_.reserved_bytes();
  }
  skip_list_stats stats() const noexcept {
    return {.restarts = restarts_.sum(),
            .nodes = pools_.blocks_in_use(),
            .retired_objects = retire_list_.pending()};
  }

  // Frees what was erased before this call, as far as no reader was in the way, now instead of at
  // the next erasures.
  void reclaim() noexcept { retire_list_.sweep_all(); }

 private:
  friend papers::spare_node<locked_skip_list>;
  struct entry {
    Key key;
    Value value;
  };
  using scan_part = internal::staging_buffer<entry, std::max(sizeof(entry), std::size_t{2048})>;
  class node_guard {
   public:
    explicit node_guard(version_lock& lock) noexcept : lock_(lock), was_(lock.lock()) {}
    ~node_guard() {
      if (was_.is_obsolete()) {
        lock_.unlock_unchanged(was_);
      } else {
        lock_.unlock();
      }
    }
    node_guard(const node_guard&) = delete;
    node_guard& operator=(const node_guard&) = delete;
    bool is_obsolete() const noexcept { return was_.is_obsolete(); }

   private:
    version_lock& lock_;
    version_lock::token was_;
  };

  static constexpr bool value_is_one_word =
      sizeof(Value) == 1 || sizeof(Value) == 2 || sizeof(Value) == 4 || sizeof(Value) == 8;
  static constexpr std::uintptr_t locked_bit = 1;

  node* new_node(Key key, const Value& value) {
    const unsigned height = levels_.draw();
    node* const made = node::make(pools_.allocate(height), height, key);
    made->payload.value.template store<true>(value);
    return made;
  }
  void free_node(node* n) noexcept { pools_.deallocate(n, n->height); }
  static void destroy_node(void* list, void* n) noexcept {
    static_cast<locked_skip_list*>(list)->free_node(static_cast<node*>(n));
  }

  // --- links ---

  static node* target(std::uintptr_t word) noexcept {
    return reinterpret_cast<node*>(word & ~locked_bit);
  }
  static std::uintptr_t word_of(node* n) noexcept { return reinterpret_cast<std::uintptr_t>(n); }
  static node* follow(node* n, unsigned level) noexcept {
    // acquire: pairs with the release in unlock_link(): what the target was made with is visible.
    return target(n->link(level).load(std::memory_order_acquire));
  }
  // Returns where the link leads.
  static node* lock_link(link& l) noexcept {
    std::uintptr_t seen = 0;
    const auto is_locked = [&] {
      seen = l.load(std::memory_order_relaxed);  // relaxed: only a hint for the next line
      // acquire: pairs with the release in unlock_link().
      return (seen & locked_bit) != 0 ||
             !l.compare_exchange_strong(seen, seen | locked_bit, std::memory_order_acquire,
                                        std::memory_order_relaxed);
    };
    if (is_locked()) internal::wait_while<internal::looks::often>(&l, is_locked);
    return target(seen);
  }
  // Searches don't look at locks: a store that still waits in this core's buffer when its operation
  // returns would be missed by a search that begins then. (retire() has such a fence for erase().)
  static void make_visible() noexcept {
    std::atomic_thread_fence(std::memory_order_seq_cst);  // pairs with the one in epoch_pin
  }
  // Gives the link its new target, and unlocks it.
  static void unlock_link(link& l, node* to) noexcept {
    l.store(word_of(to), std::memory_order_release);  // pairs with the acquires above
    internal::wake_waiters(&l);
  }

  bool is_before(const node* n, Key key) const noexcept { return n == head_ || n->key < key; }

  // From `at`, which is before `key` and has this level, to the last node before `key`; `next` is
  // what its link led to.
  node* walk(node* at, Key key, unsigned level, node*& next) const noexcept {
    while ((next = follow(at, level)) != nullptr && is_before(next, key)) at = next;
    return at;
  }

  // The first node whose key is not less, as it was when the last link was read.
  node* search(Key key, path& way) const noexcept {
    node* at = head_;
    node* next = nullptr;
    way.height = height();
    for (unsigned level = way.height; level-- > 0;)
      way.before[level] = at = walk(at, key, level, next);
    return next;
  }
  // The hint of the height was too small for a node of this one: from the head, then.
  void raise(path& way, unsigned height) const noexcept {
    for (; way.height < height; ++way.height) way.before[way.height] = head_;
  }
  node* find(Key key) const noexcept {
    node* at = head_;
    node* next = nullptr;
    for (unsigned level = height(); level-- > 0;) at = walk(at, key, level, next);
    return next != nullptr && next->key == key ? next : nullptr;
  }

  // The same as walk(), with the link of the result locked.
  node* walk_and_lock(node* at, Key key, unsigned level, node*& next) noexcept {
    for (;;) {
      at = walk(at, key, level, next);
      next = lock_link(at->link(level));
      if (next == nullptr || !is_before(next, key)) return at;
      restarts_.add(1);
      unlock_link(at->link(level), next);
      at = next;
    }
  }

  // The highest height so far: searches begin there. A value that is too small makes them slower,
  // never wrong.
  // relaxed: only a hint
  unsigned height() const noexcept { return height_.load(std::memory_order_relaxed); }
  void raise_height(unsigned to) noexcept {
    unsigned seen = height();
    // relaxed: only a hint
    while (seen < to && !height_.compare_exchange_weak(seen, to, std::memory_order_relaxed)) {
    }
  }

  // --- operations; the caller is pinned ---

  Value value_of(node& n) const noexcept {
    if constexpr (value_is_one_word) {
      return n.payload.value.template load<true>();
    } else {
      for (;;) {
        const auto seen = n.payload.lock.read();
        const Value value = n.payload.value.template load<true>();
        if (n.payload.lock.validate(seen)) return value;
        restarts_.add(1);
      }
    }
  }

  // Whether the node was still in the list.
  static bool overwrite_value(node& n, const Value& value) noexcept {
    const node_guard guard(n.payload.lock);
    if (guard.is_obsolete()) return false;
    n.payload.value.template store<true>(value);
    make_visible();
    return true;
  }

  // Without `overwrite`, a value that is there already is copied to *there, unless that is null.
  bool insert_or_overwrite(Key key, const Value& value, bool overwrite, Value* there = nullptr) {
    papers::spare_node<locked_skip_list> spare(*this);
    for (;;) {
      const epoch_pin pinned;
      path way;
      node* found = search(key, way);
      if (found == nullptr || found->key != key) {
        spare.provide(key, value);
        found = link_in(*spare.get(), way);
        if (found == nullptr) {
          spare.take();
          size_.add(1);
          return true;
        }
      }
      if (!overwrite) {
        if (there != nullptr) *there = value_of(*found);
        return false;
      }
      if (overwrite_value(*found, value)) return false;
      restarts_.add(1);
    }
  }

  // Null when it has come in; otherwise the node that has its key already.
  node* link_in(node& added, path& way) noexcept {
    const unsigned height = added.height;
    raise(way, height);
    node* next = nullptr;
    node* at = walk_and_lock(way.before[0], added.key, 0, next);
    if (next != nullptr && next->key == added.key) {
      unlock_link(at->link(0), next);
      return next;
    }
    // no thread unlinks it before it is in all its levels
    const node_guard guard(added.payload.lock);
    for (unsigned level = 0;;) {
      // relaxed: ordered by the release below
      added.link(level).store(word_of(next), std::memory_order_relaxed);
      unlock_link(at->link(level), &added);
      if (++level == height) break;
      at = walk_and_lock(way.before[level], added.key, level, next);
    }
    raise_height(height);
    make_visible();
    return nullptr;
  }

  bool erase_with_reservation(Key key) noexcept {
    path way;
    node* const found = search(key, way);
    if (found == nullptr || found->key != key) return false;
    const auto was = found->payload.lock.lock();
    if (was.is_obsolete()) {
      found->payload.lock.unlock_unchanged(was);
      return false;
    }
    raise(way, found->height);
    for (unsigned level = found->height; level-- > 0;) {
      node* next = nullptr;
      node* const at = walk_and_lock(way.before[level], key, level, next);
      node* const behind = lock_link(found->link(level));
      // Out of the level, then turned, and only then may others come in or go out around it: until
      // then a search that stands on the node is told the truth.
      // pairs with follow()
      at->link(level).store(word_of(behind) | locked_bit, std::memory_order_release);
      unlock_link(found->link(level), at);
      unlock_link(at->link(level), behind);
    }
    found->payload.lock.unlock_obsolete();
    retire_list_.retire(found, &destroy_node);
    return true;
  }

  // A part of a scan; returns where the next one begins, if there is more.
  std::optional<Key> collect(Key from, std::size_t limit, scan_part& part) const {
    const epoch_pin pinned;
    path way;
    node* at = search(from, way);
    const Key* last = nullptr;
    while (at != nullptr && part.size() < limit) {
      // A key that is not larger than the last one: we stood on a node that has been turned
      // backwards.
      if (at != head_ && (last == nullptr ? at->key >= from : at->key > *last)) {
        if (!part.push({at->key, value_of(*at)})) return at->key;
        last = &at->key;
      }
      at = follow(at, 0);
    }
    return std::nullopt;
  }

  papers::leveled_pools<node> pools_;
  node* const head_;
  std::atomic<unsigned> height_{1};
  alignas(64) papers::level_generator<BitsPerLevel> levels_;
  alignas(64) internal::busy_counter size_;
  mutable internal::rare_counter restarts_;
  // destroyed first: what is in it gives its memory back to the pools
  retire_list retire_list_{this};
};

}  // namespace elidex::papers
