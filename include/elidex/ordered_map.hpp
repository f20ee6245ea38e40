// A sorted map that any number of threads may read and change at once.
//
//   elidex::ordered_map<std::uint64_t, std::uint64_t> map;   // or <std::string, ...>
//   map.upsert(7, 70);
//   if (auto value = map.get(7)) ...
//   map.update(7, [](std::uint64_t& v) { ++v; });             // atomic
//   map.multi_get(keys, values);                              // many look-ups at once
//   map.scan(5, 100, [](std::uint64_t key, std::uint64_t value) { ... });
//   auto c = map.cursor();
//   for (c.seek(5); c.valid(); c.next()) use(c.key(), c.value());
//
// Keys are integers or std::string (passed as std::string_view, compared as unsigned bytes).
// Values are trivially copyable types or std::string. The comment of the class lists the functions.
//
// Thread-safety: any thread may call any function at any time, except constructors and destructor.
// Every operation is linearizable except size(), empty(), memory_bytes(), stats() and cursors.
// A scan is a snapshot. multi_get() is not: each of its look-ups is linearizable by itself.
// Complexity: O(log n) for one key, and for each key of multi_get(). A scan adds O(1) for each
// entry. bulk_load() takes O(n).
// Iterator validity: a cursor stays valid while other threads insert and erase, even if they erase
// its key. The map must outlive it. A cursor's key() and value() are valid until the cursor moves.
// Lifetime: the map copies keys and values in and out. A std::string_view that scan() passes to its
// function is valid until the function returns. The map cannot be copied or moved.
// Errors: std::bad_alloc leaves the map unchanged. An exception from the caller's function passes
// through. Others:
//   std::invalid_argument  a key of more than 64 KiB, a value of 4 GiB or more, a result span of
//                          multi_get() that is too short, keys of bulk_load() that do not ascend
//   std::logic_error       bulk_load() into a map that is not empty
// fork(): a child has its own copy of the map. The child may use and destroy the copy if no other
// thread was inside a call of the map when the process forked. Otherwise a node or pool that such a
// thread had locked stays locked in the child. Another thread's idle cursor does no harm.
//
// Implementation notes
// Integer keys with small values: Eunomia's B+tree with leaves that keep keys apart from values
// (internal/tree/fixed_key_btree.hpp, internal/tree/separated_leaf.hpp). Readers write nothing that
// threads share. Two updates conflict only if their values lie on the same pair of cache lines. The
// map uses hardware transactions where the CPU commits them, and optimistic versions elsewhere. A
// constructor argument, synchronization::hardware or synchronization::optimistic, forces one of the
// two. synchronization() returns which one is in use.
// All others: a B+tree under optimistic lock coupling (internal/tree/btree.hpp). Writers of the
// same leaf wait for each other.
// Why these trees and node sizes: docs/PERFORMANCE.md.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "elidex/htm.hpp"
#include "elidex/internal/tree/btree.hpp"
#include "elidex/internal/tree/fixed_key_btree.hpp"
#include "elidex/internal/tree/separated_leaf.hpp"
#include "elidex/internal/tree/value_change.hpp"

namespace elidex {

// How a map isolates its operations. Only maps from integer keys to trivially copyable values of at
// most 56 bytes have this choice.
enum class synchronization {
  automatic,   // hardware if htm::capability().rtm_commits, otherwise optimistic
  hardware,    // hardware transactions; one that does not commit takes a lock
  optimistic,  // version locks; readers validate the version
};

namespace internal {

template <class Key, class Value, class Shape>
class region_choosing_map {
  using optimistic_tree = fixed_key_btree<Key, Value, optimistic, Shape, no_control>;
  using hardware_tree = fixed_key_btree<Key, Value, htm_split_regions, Shape, no_control>;
  using choice = elidex::synchronization;  // hidden by the function of that name

 public:
  using key_type = Key;
  using mapped_type = Value;
  using key_argument = Key;
  using value_argument = const Value&;

  // A cursor of either tree. Guarantees and errors: internal/tree/cursor.hpp.
  class cursor_type {
   public:
    bool valid() const noexcept {
      return of_either([](const auto& c) { return c.valid(); });
    }
    Key key() const noexcept {
      return of_either([](const auto& c) { return c.key(); });
    }
    const Value& value() const noexcept {
      return of_either([](const auto& c) -> const Value& { return c.value(); });
    }
    void seek(Key key) {
      of_either([&](auto& c) { c.seek(key); });
    }
    void seek_before(Key key) {
      of_either([&](auto& c) { c.seek_before(key); });
    }
    void seek_first() {
      of_either([](auto& c) { c.seek_first(); });
    }
    void seek_last() {
      of_either([](auto& c) { c.seek_last(); });
    }
    void next() {
      of_either([](auto& c) { c.next(); });
    }
    void prev() {
      of_either([](auto& c) { c.prev(); });
    }

   private:
    friend region_choosing_map;
    template <class Cursor>
    explicit cursor_type(Cursor cursor) : cursor_(std::move(cursor)) {}

    template <class Fn>
    decltype(auto) of_either(Fn&& fn) {
      return std::visit(fn, cursor_);
    }
    template <class Fn>
    decltype(auto) of_either(Fn&& fn) const {
      return std::visit(fn, cursor_);
    }
    std::variant<typename optimistic_tree::cursor_type, typename hardware_tree::cursor_type>
        cursor_;
  };

  explicit region_choosing_map(choice which = choice::automatic) {
    if (which == choice::automatic) {
      which = htm::capability().rtm_commits ? choice::hardware : choice::optimistic;
    }
    if (which == choice::hardware) {
      tree_.template emplace<hardware_tree>();
    } else {
      tree_.template emplace<optimistic_tree>();
    }
  }

  // Returns hardware or optimistic.
  choice synchronization() const noexcept {
    return std::holds_alternative<hardware_tree>(tree_) ? choice::hardware : choice::optimistic;
  }

  std::optional<Value> get(Key key) const {
    return of_tree([&](const auto& t) { return t.get(key); });
  }
  bool contains(Key key) const {
    return of_tree([&](const auto& t) { return t.contains(key); });
  }
  void multi_get(std::span<const Key> wanted, std::span<std::optional<Value>> found) const {
    of_tree([&](const auto& t) { t.multi_get(wanted, found); });
  }
  bool insert(Key key, const Value& value) {
    return of_tree([&](auto& t) { return t.insert(key, value); });
  }
  bool upsert(Key key, const Value& value) {
    return of_tree([&](auto& t) { return t.upsert(key, value); });
  }
  template <class Make>
  std::pair<Value, bool> get_or_insert(Key key, Make&& make) {
    return of_tree([&](auto& t) { return t.get_or_insert(key, make); });
  }
  // For the column's dictionary: make(key) returns an optional, and adds nothing if it is empty.
  template <class Make>
  std::optional<std::pair<Value, bool>> get_or_insert_if_made(Key key, Make&& make) {
    return of_tree([&](auto& t) { return t.get_or_insert_if_made(key, make); });
  }
  template <std::ranges::input_range Range>
  void bulk_load(Range&& sorted) {
    of_tree([&](auto& t) { t.bulk_load(sorted); });
  }
  template <value_change<Value> Fn>
  bool update(Key key, Fn&& fn) {
    return of_tree([&](auto& t) { return t.update(key, fn); });
  }
  bool erase(Key key) {
    return of_tree([&](auto& t) { return t.erase(key); });
  }
  template <class Fn>
  std::size_t scan(Key from, std::size_t limit, Fn&& fn) const {
    return of_tree([&](const auto& t) { return t.scan(from, limit, fn); });
  }
  cursor_type cursor() const {
    return of_tree([](const auto& t) { return cursor_type(t.cursor()); });
  }

  std::size_t size() const noexcept {
    return of_tree([](const auto& t) { return t.size(); });
  }
  bool empty() const noexcept { return size() == 0; }
  std::size_t memory_bytes() const noexcept {
    return of_tree([&](const auto& t) { return sizeof(*this) - sizeof(t) + t.memory_bytes(); });
  }
  fixed_key_btree_stats stats() const noexcept {
    return of_tree([](const auto& t) { return t.stats(); });
  }
  void reclaim() noexcept {
    of_tree([](auto& t) { t.reclaim(); });
  }

  // Returns the counts of the map's hardware transactions, or zeros if it uses none.
  lock_counts htm_counts() const noexcept {
    const auto* const tree = std::get_if<hardware_tree>(&tree_);
    return tree == nullptr ? lock_counts{}
                           : tree->sync().upper_lock().stats() + tree->sync().lower_lock().stats();
  }

 private:
  template <class Fn>
  decltype(auto) of_tree(Fn&& fn) {
    if (auto* const tree = std::get_if<optimistic_tree>(&tree_)) return fn(*tree);
    return fn(*std::get_if<hardware_tree>(&tree_));
  }
  template <class Fn>
  decltype(auto) of_tree(Fn&& fn) const {
    if (const auto* const tree = std::get_if<optimistic_tree>(&tree_)) return fn(*tree);
    return fn(*std::get_if<hardware_tree>(&tree_));
  }

  std::variant<std::monostate, optimistic_tree, hardware_tree> tree_;
};

using ordered_map_shape = packed_node_bytes<1152, 1024>;

template <class Key, class Value>
struct ordered_map_of {
  static_assert(integer_key<Key> || std::same_as<Key, std::string>,
                "keys are integers of at most 64 bits but not bool, or std::string");
  static_assert(plain_value<Value> || std::same_as<Value, std::string>,
                "values are std::string, or trivially copyable and default-constructible");
  using type = btree<Key, Value, optimistic, node_bytes<1024, 1024>>;
};
// Two values of this size and their lock fit on a pair of cache lines. With larger values, leaves
// would be half empty.
inline constexpr std::size_t packed_value_bytes_max = 56;

template <integer_key Key, plain_value Value>
  requires(sizeof(Value) <= packed_value_bytes_max)
struct ordered_map_of<Key, Value> {
  using type = region_choosing_map<Key, Value, ordered_map_shape>;
};

}  // namespace internal

template <class Key, class Value>
using ordered_map_base = typename internal::ordered_map_of<Key, Value>::type;

// A sorted map. Guarantees and errors: at the top of this header.
//
// Key: an integer type of at most 64 bits except bool, or std::string. Value: std::string, or a
// trivially copyable type that can be default-constructed and assigned.
//
//   get(key)                  returns the value, or std::nullopt
//   contains(key)             returns whether the key is present
//   multi_get(keys, values)   sets values[i] to the value of keys[i], or to std::nullopt. The
//                             arguments are spans; the values are std::optional<Value>
//   insert(key, value)        adds an absent key; returns whether it did
//   upsert(key, value)        adds or overwrites; returns whether the key was absent. Like the
//                             standard's insert_or_assign()
//   get_or_insert(key, make)  returns {value, was_added}. Adds an absent key with the value that
//                             make() returns. Not for std::string values. Like the standard's
//                             try_emplace(), with a function for the value
//   update(key, fn)           calls fn(Value&) atomically; returns whether the key is present
//   erase(key)                returns whether the key was present
//   scan(from, limit, fn)     calls fn(key, value) for up to `limit` keys >= from, ascending;
//                             returns their number. A snapshot. What fn returns is ignored
//   cursor()                  returns a cursor without a position, for one thread at a time. It
//                             has seek(key), to the first key >= `key`; seek_before(key), to the
//                             last key < `key`; seek_first(), seek_last(), valid(), key(),
//                             value(), next() and prev().
//                             It visits each key that is present during the whole walk exactly
//                             once, and may miss keys that are inserted or erased meanwhile
//   bulk_load(range)          fills an empty map from pairs with ascending keys
//   size(), empty(), memory_bytes(), stats()   exact when no operation runs
//   reclaim()                 frees erased memory now, if no reader can reach it
//
// Only for integer keys with trivially copyable values of at most 56 bytes: bulk_load(),
// synchronization(), htm_counts() and the constructor with a choice of synchronization.
//
// make() and the fn of update() must not use the map. They should be short, because other
// operations on the leaf wait for them. They may run more than once.
// The fn of scan() may use the map. With string keys or values, no map of the process frees memory
// while fn runs, so fn should not block.
template <class Key, class Value>
class ordered_map : public ordered_map_base<Key, Value> {
 public:
  using base = ordered_map_base<Key, Value>;
  using base::base;
  ordered_map() = default;
};

// The common instances are compiled once, in src/ordered_map.cpp.
extern template class internal::fixed_key_btree<std::uint64_t, std::uint64_t, internal::optimistic,
                                                internal::ordered_map_shape, internal::no_control>;
extern template class internal::fixed_key_btree<std::uint64_t, std::uint64_t,
                                                internal::htm_split_regions,
                                                internal::ordered_map_shape, internal::no_control>;
extern template class internal::btree<std::string, std::uint64_t, internal::optimistic,
                                      internal::node_bytes<1024, 1024>>;
extern template class internal::btree<std::string, std::string, internal::optimistic,
                                      internal::node_bytes<1024, 1024>>;

}  // namespace elidex
