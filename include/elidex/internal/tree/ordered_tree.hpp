// The tree under an ordered_map: which one of the trees it is, by the types of key and value.
//
//   ordered_tree<std::uint64_t, std::uint64_t> tree;   // the keys and values of codec.hpp
//
// Guarantees and errors: those of the trees.
//
// Implementation notes
// Integer keys with small values: Eunomia's B+tree with leaves that keep keys apart from values
// (fixed_key_btree.hpp, separated_leaf.hpp). Readers write nothing that threads share. Two updates
// conflict only if their values lie on the same pair of cache lines. The tree uses hardware
// transactions where the CPU commits them, and optimistic versions elsewhere. A constructor
// argument forces one of the two.
// All others: a B+tree under optimistic lock coupling (btree.hpp). Writers of the same leaf wait
// for each other. Strings lie in the leaf, with values of at most 64 bytes (slotted_leaf.hpp).
// Why these trees and node sizes: docs/PERFORMANCE.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "elidex/htm.hpp"
#include "elidex/internal/tree/btree.hpp"
#include "elidex/internal/tree/fixed_key_btree.hpp"
#include "elidex/internal/tree/separated_leaf.hpp"
#include "elidex/internal/tree/tree_range.hpp"
#include "elidex/internal/tree/value_change.hpp"
#include "elidex/synchronization.hpp"

namespace elidex::internal {

template <class Key, class Value, class Shape>
class region_choosing_tree {
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
    friend region_choosing_tree;
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

  explicit region_choosing_tree(choice which = choice::automatic,
                                const memory_options& options = {}) {
    if (which == choice::automatic) {
      which = htm::capability().rtm_commits ? choice::hardware : choice::optimistic;
    }
    if (which == choice::hardware) {
      hardware_ = std::make_unique<hardware_tree>(options);
    } else {
      optimistic_.emplace(options);
    }
  }

  // Returns hardware or optimistic.
  choice synchronization() const noexcept {
    return optimistic_ ? choice::optimistic : choice::hardware;
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
  std::size_t multi_upsert(std::span<const Key> wanted, std::span<const Value> values) {
    return of_tree([&](auto& t) { return t.multi_upsert(wanted, values); });
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
  void reserve(std::size_t keys) {
    of_tree([&](auto& t) { t.reserve(keys); });
  }
  template <std::ranges::input_range Range>
  void bulk_load(Range&& sorted) {
    of_tree([&](auto& t) { t.bulk_load(sorted); });
  }
  template <class Fill>
  void bulk_fill(Fill&& fill) {
    of_tree([&](auto& t) { t.bulk_fill(fill); });
  }
  template <value_change<Value> Fn>
  bool update(Key key, Fn&& fn) {
    return of_tree([&](auto& t) { return t.update(key, fn); });
  }
  bool erase(Key key) {
    return of_tree([&](auto& t) { return t.erase(key); });
  }
  std::size_t multi_erase(std::span<const Key> wanted) {
    return of_tree([&](auto& t) { return t.multi_erase(wanted); });
  }
  template <class Fn>
  bool compute(Key key, Fn&& fn) {
    return of_tree([&](auto& t) { return t.compute(key, fn); });
  }
  template <class Fn>
  bool visit(Key key, Fn&& fn) const {
    return of_tree([&](const auto& t) { return t.visit(key, fn); });
  }
  template <class Fn>
  std::size_t scan(Key from, std::size_t limit, Fn&& fn) const {
    return of_tree([&](const auto& t) { return t.scan(from, limit, fn); });
  }
  template <class Fn>
  std::size_t scan(const tree_range<Key>& which, std::size_t limit, Fn&& fn) const {
    return of_tree([&](const auto& t) { return t.scan(which, limit, fn); });
  }
  std::vector<Key> separators(std::size_t wanted) const {
    return of_tree([&](const auto& t) { return t.separators(wanted); });
  }
  cursor_type cursor() const {
    return of_tree([](const auto& t) { return cursor_type(t.cursor()); });
  }

  std::size_t size() const noexcept {
    return of_tree([](const auto& t) { return t.size(); });
  }
  bool empty() const noexcept { return size() == 0; }
  std::size_t memory_bytes() const noexcept {
    const std::size_t inside = optimistic_ ? sizeof(optimistic_tree) : 0;
    return of_tree([&](const auto& t) { return sizeof(*this) - inside + t.memory_bytes(); });
  }
  fixed_key_btree_stats stats() const noexcept {
    return of_tree([](const auto& t) { return t.stats(); });
  }
  void reclaim() noexcept {
    of_tree([](auto& t) { t.reclaim(); });
  }

  // Returns the counts of the map's hardware transactions, or zeros if it uses none.
  lock_counts htm_counts() const noexcept {
    if (hardware_ == nullptr) return {};
    return hardware_->sync().upper_lock().stats() + hardware_->sync().lower_lock().stats();
  }

 private:
  template <class Fn>
  decltype(auto) of_tree(Fn&& fn) {
    return optimistic_ ? fn(*optimistic_) : fn(*hardware_);
  }
  template <class Fn>
  decltype(auto) of_tree(Fn&& fn) const {
    return optimistic_ ? fn(*optimistic_) : fn(std::as_const(*hardware_));
  }

  // One of the two. The second is apart, because the counts of its transactions take 9 KiB.
  std::optional<optimistic_tree> optimistic_;
  std::unique_ptr<hardware_tree> hardware_;
};

using ordered_tree_shape = packed_node_bytes<1152, 1024>;

template <class Key, class Value>
struct ordered_tree_of {
  using type = btree<Key, Value, optimistic, node_bytes<1024, 1024>>;
};
// Two values of this size and their lock fit on a pair of cache lines. With larger values, leaves
// would be half empty.
inline constexpr std::size_t packed_value_bytes_max = 56;

template <integer_key Key, plain_value Value>
  requires(sizeof(Value) <= packed_value_bytes_max)
struct ordered_tree_of<Key, Value> {
  using type = region_choosing_tree<Key, Value, ordered_tree_shape>;
};

template <class Key, class Value>
using ordered_tree = typename ordered_tree_of<Key, Value>::type;

// The common instances are compiled once, in src/ordered_map.cpp.
extern template class fixed_key_btree<std::uint64_t, std::uint64_t, optimistic, ordered_tree_shape,
                                      no_control>;
extern template class fixed_key_btree<std::uint64_t, std::uint64_t, htm_split_regions,
                                      ordered_tree_shape, no_control>;
extern template class btree<std::string, std::uint64_t, optimistic, node_bytes<1024, 1024>>;
extern template class btree<std::string, std::string, optimistic, node_bytes<1024, 1024>>;

}  // namespace elidex::internal
