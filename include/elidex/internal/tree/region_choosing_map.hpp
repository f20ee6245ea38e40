// Eunomia's tree (fixed_key_btree.hpp) behind one face for both kinds of regions: hardware
// transactions or optimistic versions, chosen when the map is made.
//
// Every function passes on to the tree, which holds its thread-safety, errors and linearization. A
// choice costs one predictable branch.
#pragma once

#include <cstddef>
#include <optional>
#include <ranges>
#include <span>
#include <utility>
#include <variant>

#include "elidex/htm.hpp"
#include "elidex/internal/tree/fixed_key_btree.hpp"
#include "elidex/internal/tree/separated_leaf.hpp"
#include "elidex/internal/tree/value_change.hpp"

namespace elidex::internal {

enum class map_regions {
  automatic,  // hardware where htm::capability() says that regions commit, else optimistic
  hardware,   // where none commits each region takes its lock
  optimistic,
};

template <class Key, class Value, class Shape>
class region_choosing_map {
  using optimistic_tree = fixed_key_btree<Key, Value, optimistic, Shape, no_control>;
  using hardware_tree = fixed_key_btree<Key, Value, htm_split_regions, Shape, no_control>;

 public:
  using key_type = Key;
  using mapped_type = Value;
  using key_argument = Key;
  using value_argument = const Value&;

  // See cursor.hpp.
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

  explicit region_choosing_map(map_regions which = map_regions::automatic) {
    if (which == map_regions::automatic) {
      which = htm::capability().rtm_commits ? map_regions::hardware : map_regions::optimistic;
    }
    if (which == map_regions::hardware) {
      tree_.template emplace<hardware_tree>();
    } else {
      tree_.template emplace<optimistic_tree>();
    }
  }

  // What was chosen.
  map_regions regions() const noexcept {
    return std::holds_alternative<hardware_tree>(tree_) ? map_regions::hardware
                                                        : map_regions::optimistic;
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

  // What the hardware regions did; all zero for optimistic ones.
  lock_counts region_counts() const noexcept {
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

}  // namespace elidex::internal
