// A skip list, written for one thread and run under one region per operation.
//
//   skip_list<std::uint64_t, std::uint64_t, coarse<posix_mutex>> list;
//   list.insert(7, 70);
//   list.update(7, [](std::uint64_t& v) { ++v; });
//   list.scan(0, 10, [](std::uint64_t key, std::uint64_t value) { ... });
//
// With an elided lock this is the HTM-SkipList of paper 003 (section 6.1): the whole operation is
// one hardware region, a node has its links densely in an array beside its one record, and the
// list's head says how high the highest node is (section 3.2 counts both among the causes of false
// conflicts). For what to use instead see euno_skip_list.hpp.
//
// Invariants
//   * On each level keys ascend, and level i + 1 holds some of the nodes of level i.
//   * height_ is the height of the highest node: no link of the head at that level or above leads
//     anywhere.
//
// Linearization points: the acquisition of the lock, or the commit of the transaction. Memory is
// allocated before a region and freed after it. It can be used again at once, because no thread
// keeps an address beyond its region.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "elidex/internal/memory/counters.hpp"
#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/memory/memory_name.hpp"
#include "elidex/internal/sync/policies.hpp"
#include "elidex/internal/tree/node_operation.hpp"
#include "elidex/internal/tree/range_collector.hpp"
#include "elidex/internal/tree/value_change.hpp"
#include "papers/eunomia/skip_list_node.hpp"

namespace elidex::papers {

using namespace internal;

// Key: an integer type. Value: a trivially copyable type. Sync: unsynchronized or coarse.
//
// Thread-safety: that of the policy. unsynchronized: one thread at a time, const functions
// included. coarse: every function but constructor and destructor may be called from any thread at
// any time, and all are linearizable except size(), empty(), memory_bytes() and stats(), which are
// exact when no operation runs.
//
// Errors: std::bad_alloc from insert(), upsert(), scan() and the constructor; the list is then
// unchanged.
template <std::integral Key, class Value, class Sync, unsigned BitsPerLevel = 2>
class skip_list {
  static_assert(std::is_trivially_copyable_v<Value>);
  static_assert(!Sync::readers_race, "one region protects all of it");
  struct node_link;
  using node = papers::leveled_node<Key, Value, node_link>;
  struct node_link {
    node* to = nullptr;
  };
  using op_status = internal::op_status;
  using predecessors = std::array<node*, papers::skip_levels>;

 public:
  using key_type = Key;
  using mapped_type = Value;
  using sync_policy = Sync;
  using key_argument = Key;
  using value_argument = const Value&;

  skip_list()
      : head_(
            node::make(pools_.allocate(papers::skip_levels), papers::skip_levels, Key{}, Value{})) {
    internal::name_memory(this, sizeof(*this), "list");
  }
  skip_list(const skip_list&) = delete;
  skip_list& operator=(const skip_list&) = delete;

  // The value of `key`, if it is there.
  std::optional<Value> get(key_argument key) const {
    std::optional<Value> result;
    sync_.shared([&] {
      result.reset();
      if (const node* const found = find(key)) result.emplace(found->payload);
      return op_status::yes;
    });
    return result;
  }
  bool contains(key_argument key) const {
    return sync_.shared([&] { return find(key) != nullptr; });
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
    std::exception_ptr thrown;
    const op_status s = sync_.exclusive([&]() noexcept {
      node* const found = find(key);
      if (found == nullptr) return op_status::no;
      Value value = found->payload;
      try {
        fn(value);
      } catch (...) {
        thrown = std::current_exception();
        return op_status::threw;
      }
      found->payload = value;
      return op_status::yes;
    });
    if (s == op_status::threw) std::rethrow_exception(thrown);
    return s == op_status::yes;
  }

  // Removes `key`; says whether it was there.
  bool erase(key_argument key) {
    node* const erased = sync_.exclusive([&]() noexcept { return unlink(key); });
    if (erased == nullptr) return false;
    free_node(erased);
    size_.add(-1);
    return true;
  }

  // Calls fn(key, value) for up to `limit` keys from `from` on, in ascending order, and returns how
  // many there were. All of them were in the list at one moment, with no other key between them. fn
  // runs after that moment, outside of all locks, and may use the list.
  template <class Fn>
  std::size_t scan(key_argument from, std::size_t limit, Fn&& fn) const {
    if (limit == 0) return 0;
    internal::staging_buffer<entry, 4096> entries;
    while (sync_.shared([&]() noexcept { return collect(from, limit, entries); }) ==
           op_status::need_memory)
      entries.grow();
    for (const entry& e : entries.items()) fn(e.key, e.value);
    return entries.size();
  }

  std::size_t size() const noexcept { return size_.count(); }
  bool empty() const noexcept { return size() == 0; }

  // Everything obtained from the system for nodes and free nodes, in bytes.
  std::size_t memory_bytes() const noexcept { return pools_.reserved_bytes(); }
  skip_list_stats stats() const noexcept { return {.nodes = pools_.blocks_in_use()}; }
  void reclaim() noexcept {}  // nothing ever waits

  // The policy's state, for an elided lock's statistics.
  const Sync& sync() const noexcept { return sync_; }

 private:
  friend papers::spare_node<skip_list>;
  struct entry {
    Key key;
    Value value;
  };

  node* new_node(Key key, const Value& value) {
    const unsigned height = levels_.draw();
    return node::make(pools_.allocate(height), height, key, value);
  }
  void free_node(node* n) noexcept { pools_.deallocate(n, n->height); }

  // --- inside a region ---

  // The first node whose key is not less.
  node* lower_bound(Key key) const noexcept {
    node* at = head_;
    node* next = nullptr;
    for (unsigned level = height_; level-- > 0;) {
      while ((next = at->link(level).to) != nullptr && next->key < key) at = next;
    }
    return next;
  }
  // The same, and where to link on each level.
  node* lower_bound(Key key, predecessors& before) const noexcept {
    node* at = head_;
    node* next = nullptr;
    for (unsigned level = height_; level-- > 0;) {
      while ((next = at->link(level).to) != nullptr && next->key < key) at = next;
      before[level] = at;
    }
    return next;
  }
  node* find(Key key) const noexcept {
    node* const at = lower_bound(key);
    return at != nullptr && at->key == key ? at : nullptr;
  }

  op_status try_put(Key key, const Value& value, bool overwrite, Value* there,
                    papers::spare_node<skip_list>& spare) noexcept {
    predecessors before;
    node* const at = lower_bound(key, before);
    if (at != nullptr && at->key == key) {
      if (overwrite) at->payload = value;
      if (there != nullptr) *there = at->payload;
      return op_status::no;
    }
    if (spare.get() == nullptr) return op_status::need_memory;
    node* const added = spare.take();
    const unsigned height = added->height;
    if (height > height_) {
      for (unsigned level = height_; level < height; ++level) before[level] = head_;
      height_ = height;
    }
    for (unsigned level = 0; level < height; ++level) {
      added->link(level) = before[level]->link(level);
      before[level]->link(level).to = added;
    }
    return op_status::yes;
  }

  node* unlink(Key key) noexcept {
    predecessors before;
    node* const at = lower_bound(key, before);
    if (at == nullptr || at->key != key) return nullptr;
    const unsigned height = at->height;
    for (unsigned level = 0; level < height; ++level) before[level]->link(level) = at->link(level);
    unsigned left = height_;
    while (left > 0 && head_->link(left - 1).to == nullptr) --left;
    if (left != height_) height_ = left;
    return at;
  }

  op_status collect(Key from, std::size_t limit,
                    internal::staging_buffer<entry, 4096>& entries) const noexcept {
    entries.clear();
    for (node* at = lower_bound(from); at != nullptr && entries.size() < limit;
         at = at->link(0).to) {
      if (!entries.push({at->key, at->payload})) return op_status::need_memory;
    }
    return op_status::yes;
  }

  // --- outside ---

  // Without `overwrite`, a value that is there already is copied to *there, unless that is null.
  bool insert_or_overwrite(Key key, const Value& value, bool overwrite, Value* there = nullptr) {
    papers::spare_node<skip_list> spare(*this);
    if (!overwrite) spare.provide(key, value);  // will be needed, but for duplicates
    for (;;) {
      const op_status s =
          sync_.exclusive([&]() noexcept { return try_put(key, value, overwrite, there, spare); });
      if (s == op_status::yes) size_.add(1);
      if (s != op_status::need_memory) return s == op_status::yes;
      spare.provide(key, value);
    }
  }

  [[no_unique_address]] mutable Sync sync_;
  papers::leveled_pools<node> pools_;
  // The head's line: every operation reads it, and it changes with the height.
  alignas(64) node* const head_;
  unsigned height_ = 0;
  alignas(64) papers::level_generator<BitsPerLevel> levels_;
  alignas(64) internal::busy_counter size_;
};

}  // namespace elidex::papers
