// A sorted map that any number of threads may read and change at once.
//
//   elidex::ordered_map<std::string, int> stock;
//   stock.upsert("pear", 3);
//   if (auto pears = stock.get("pear")) ...
//   stock.update("pear", [](int& n) { --n; });                          // atomic
//   stock.upsert_with("plum", 1, [](int& n) { ++n; });                  // count, in one call
//   stock.scan(elidex::prefix("p"), [](std::string_view key, int n) { ... });   // a snapshot
//   for (const auto& [key, n] : stock.range("a", "q")) ...
//
// Keys: integers, floating-point numbers, enumerations, strings, bytes, pairs, tuples and arrays of
// these, and types of your own (key_encoding.hpp). Values: any movable type. Strings are passed as
// std::string_view. Values that cannot be copied lack the operations that copy a value
// (docs/CONFORMANCE.md lists them). A value must not throw when it is moved: extract() would lose
// it. A value that is neither trivially copyable nor a string is an object of its own on the heap.
// update() and compute() replace it by a changed copy.
//
// Thread-safety: any thread may call any function at any time, except constructors, destructor,
// assignment, swap() and clear(). During these no other thread may use the map. A function that the
// map calls must not call them.
// Every operation on one key is linearizable. scan(), scan_n(), count(), front(), back(),
// lower_bound(), upper_bound(), floor() and ceiling() are snapshots, and linearizable too.
// multi_get(), multi_upsert(), multi_erase(), erase(bounds), bulk_load() into a map with keys,
// range() and cursors are linearizable step by step, not as a whole. multi_upsert() and
// multi_erase() may change different keys in another order than the given one. size(), empty(),
// memory_bytes() and stats() are exact when no operation runs.
// Complexity: O(log n) for each key. A scan adds O(1) for each record. bulk_load() into an empty
// map takes O(n).
// Iterator validity: cursors, ranges and their iterators stay valid while other threads insert and
// erase, even if they erase their key. The map must outlive them.
// Errors: std::bad_alloc, and what the caller's functions throw. An operation on one key then
// leaves the map unchanged. An operation on many keys keeps the changes that it made before. Other
// errors:
//   std::invalid_argument  a key of more than 64 KiB, a string value of 4 GiB or more, multi_get()
//                          with fewer results than keys, multi_upsert() with unequal numbers of
//                          keys and values, keys of bulk_load() that do not ascend
//   std::out_of_range      at() of an absent key
//   std::logic_error       extract() of a value that cannot be copied, called by a visitor.
//                          bulk_load() into an empty map that another thread fills meanwhile
// Memory: an empty map takes 40 bytes, and ten integer keys take 1.9 KB. memory_options.hpp chooses
// where the memory comes from, and limits it.
// fork(): a child has its own copy of the map. The child may use and destroy the copy if no other
// thread was inside a call of the map when the process forked. Otherwise a node or pool that such a
// thread had locked stays locked in the child. Another thread's idle cursor does no harm.
//
// Implementation notes
// internal/tree/ordered_tree.hpp: which tree it is. internal/tree/key_format.hpp: how keys are
// encoded. The tree is made by the first call that needs one.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "elidex/bounds.hpp"
#include "elidex/htm.hpp"
#include "elidex/internal/map_face.hpp"
#include "elidex/internal/tree/map_bounds.hpp"
#include "elidex/internal/tree/map_range.hpp"
#include "elidex/internal/tree/ordered_tree.hpp"
#include "elidex/key_encoding.hpp"
#include "elidex/memory_options.hpp"
#include "elidex/synchronization.hpp"

namespace elidex {

namespace internal {

// Makes the tree of an ordered_map.
template <class Tree>
struct tree_maker {
  synchronization which = synchronization::automatic;
  memory_options options = {};
  std::unique_ptr<Tree> operator()() const {
    if constexpr (std::constructible_from<Tree, synchronization, const memory_options&>) {
      return std::make_unique<Tree>(which, options);
    } else {
      return std::make_unique<Tree>(options);
    }
  }
};

template <class Key, class Value>
using tree_of_map =
    ordered_tree<typename map_key<Key>::tree_key, typename map_value<Value>::tree_value>;

template <class Key, class Value>
using ordered_map_face =
    map_face<Key, Value, tree_of_map<Key, Value>, tree_maker<tree_of_map<Key, Value>>>;

}  // namespace internal

// Counts since construction. Each is exact when no operation runs.
struct ordered_map_stats {
  std::int64_t restarts = 0;         // attempts discarded because another thread changed a node
  std::int64_t splits = 0;           // of leaves and inner nodes
  std::int64_t merges = 0;           // likewise
  std::int64_t redistributions = 0;  // full leaves that shared their records with a sibling
  std::size_t leaves = 0;            // nodes in use, retired ones included
  std::size_t inner_nodes = 0;
  std::size_t retired_objects = 0;  // unlinked memory that waits until no reader can reach it
};

// A sorted map. Guarantees and errors: at the top of this header. Operations on single keys:
// internal/map_face.hpp.
//
//   get(key), at(key), contains(key), visit(key, fn), multi_get(keys, found)
//   insert(key, value), upsert(key, value), insert_or_assign(key, value),
//   try_emplace(key, args...), get_or_insert(key, make), multi_upsert(keys, values)
//   update(key, fn), upsert_with(key, make, change), compute(key, fn)
//   erase(key), erase_if(key, pred), extract(key), multi_erase(keys), clear()
//   size(), empty(), memory_bytes(), reclaim()
template <class Key, class Value>
class ordered_map : public internal::ordered_map_face<Key, Value> {
  using face = internal::ordered_map_face<Key, Value>;
  using typename face::encoded;
  using typename face::keys;
  using typename face::values;
  using tree = internal::tree_of_map<Key, Value>;
  using choice = elidex::synchronization;  // hidden by the function of that name
  using which_keys = internal::map_bounds<Key>;
  using tree_bounds = decltype(std::declval<const which_keys&>().get());
  static constexpr bool chooses = std::constructible_from<tree, choice>;

 public:
  using typename face::key_argument;
  using typename face::value_argument;
  using record = std::pair<Key, Value>;
  // A part of the map: bounds, made by split().
  using part = which_keys;

  ordered_map() : ordered_map(choice::automatic) {}
  explicit ordered_map(const memory_options& options) : ordered_map(choice::automatic, options) {}
  explicit ordered_map(choice which, const memory_options& options = {})
      : face(internal::tree_maker<tree>{which, options}) {}
  ordered_map(std::initializer_list<record> records) : ordered_map() {
    for (const record& r : records) this->insert(r.first, r.second);
  }
  // The map that is moved from is empty, and can be used again.
  ordered_map(ordered_map&&) noexcept = default;
  ordered_map& operator=(ordered_map&&) noexcept = default;
  ~ordered_map() = default;
  // Exchanges the contents and options of two maps.
  void swap(ordered_map& other) noexcept { std::swap(*this, other); }
  friend void swap(ordered_map& a, ordered_map& b) noexcept { a.swap(b); }

  // --- ranges ---
  // Bounds are made by between(), from(), prefix() and the others of bounds.hpp, or by split().

  // Calls fn(key, value) for each key of a range, in ascending order, or in descending order of
  // bounds.descending(). fn may return false to end the scan. Returns the number of calls. The scan
  // is a snapshot: at one moment the map had exactly these keys and values in the range. fn runs
  // after that moment, holds no lock, and may use the map. The scan copies all records first, so
  // for a long range that fn may leave early, prefer range(). fn receives keys by value or
  // reference, and strings as std::string_views that are valid until it returns. If the map has
  // strings or objects, no map of the process frees memory while fn runs, so fn should not block.
  template <class Bounds, class Fn>
  std::size_t scan(const Bounds& which, Fn&& fn) const {
    static_assert(internal::bounds_of<Bounds, Key>, "scan() takes bounds, such as from(key)");
    return scan_range(which_keys(which), static_cast<std::size_t>(-1), fn);
  }
  // The same for the first n keys of the range, or the n keys from a key on.
  template <class Bounds, class Fn>
  std::size_t scan_n(const Bounds& which, std::size_t n, Fn&& fn) const {
    if constexpr (internal::bounds_of<Bounds, Key>) {
      return scan_range(which_keys(which), n, fn);
    } else if constexpr (internal::inexact_for<Bounds, Key>) {
      return scan_n(from(which), n, fn);
    } else {
      static_assert(std::convertible_to<const Bounds&, key_argument>,
                    "scan_n() takes bounds or a key");
      const encoded first(static_cast<key_argument>(which));
      return scan_tree(first.get(), n, decoding(fn));
    }
  }

  // Returns the number of keys in a range, as of one moment. Takes O(log size + keys).
  template <class Bounds>
  std::size_t count(const Bounds& which) const {
    static_assert(internal::bounds_of<Bounds, Key>,
                  "count() takes bounds, such as from(key): for one key, use contains()");
    return scan_tree(which_keys(which).get(), static_cast<std::size_t>(-1),
                     [](const auto&, const auto&) {});
  }

  // Returns the records of a range as a C++20 input range. A record is a std::pair<Key, Value>. If
  // the key or value is a std::string, the record has a std::string_view in its place, and for
  // bytes a span. Both are valid until the next step. Such a record converts to the pair. The walk
  // is weakly consistent. It visits each key that is present during the whole walk exactly once. It
  // may miss keys that are inserted or erased meanwhile. It never goes back. Between two steps it
  // holds no lock, and keeps no memory of the map alive.
  template <class Bounds>
  internal::map_range<ordered_map> range(const Bounds& which) const& {
    static_assert(values::can_be_copied, "range() copies the values: use scan()");
    static_assert(internal::bounds_of<Bounds, Key>, "range() takes bounds, or two keys");
    return {*this, which_keys(which)};
  }
  // The records with lower <= key < upper. Integers of any type are bounds, as for between().
  template <class Lower, class Upper>
  internal::map_range<ordered_map> range(const Lower& lower, const Upper& upper) const& {
    return range(
        bounds<std::decay_t<const Lower&>, std::decay_t<const Upper&>>(lower, false, upper, false));
  }
  internal::map_range<ordered_map> range(key_argument lower, key_argument upper) const& {
    using key = std::remove_cvref_t<key_argument>;
    return range(bounds<key>(lower, false, upper, false));
  }
  template <class... Bounds>
  void range(const Bounds&...) const&& = delete;  // the map must outlive the range

  // Divides the map into at most n parts with about as many keys each, for as many threads. The
  // parts are bounds for scan() and range(). Each key belongs to exactly one part, also a key that
  // is inserted later. Takes O(n + log size).
  std::vector<part> split(std::size_t n) const;

  // Removes the keys of a range. Returns their number. Each removal is atomic; the whole is not. A
  // key that is inserted meanwhile may stay.
  template <class Bounds>
    requires(!std::convertible_to<const Bounds&, key_argument>)
  std::size_t erase(const Bounds& which);
  using face::erase;

  // --- neighbours ---
  // Each returns a record, or std::nullopt if there is none.

  // Returns the record with the smallest key.
  std::optional<record> front() const { return first_of(elidex::all); }
  // Returns the record with the largest key.
  std::optional<record> back() const { return first_of(elidex::all.descending()); }
  // Returns the first key that is not less than `key`. The standard's lower_bound() returns an
  // iterator.
  std::optional<record> lower_bound(key_argument key) const {
    return first_of(elidex::from(own(key)));
  }
  // The same as lower_bound().
  std::optional<record> ceiling(key_argument key) const { return lower_bound(key); }
  // Returns the first key that is greater than `key`.
  std::optional<record> upper_bound(key_argument key) const {
    return first_of(elidex::above(own(key)));
  }
  // Returns the last key that is not greater than `key`.
  std::optional<record> floor(key_argument key) const {
    return first_of(elidex::up_to(own(key)).descending());
  }

  // --- loading ---

  // Adds records with ascending keys, given as pairs. Returns the number of added keys. A key that
  // the map has keeps its value. Into an empty map it is much faster than insert(), fills leaves to
  // fifteen sixteenths, and shows all records at one moment. If it throws, the map stays empty.
  // Into a map with keys, it inserts each record by itself. If it throws, the records inserted
  // before stay. Throws std::invalid_argument if the keys do not ascend, and std::logic_error if
  // the map was empty and another thread fills it meanwhile. It moves the values out of a container
  // that is passed as an rvalue, also if it throws.
  template <std::ranges::input_range Range>
  std::size_t bulk_load(Range&& sorted);

  // Obtains memory for the nodes of `many` keys, present keys included, and lets the system back it
  // with pages. Until the map has about that many keys, insertions then wait neither for memory nor
  // for page faults. The nodes of fewer than a few million random keys may need up to a quarter
  // more than that. It does not obtain memory for strings, or for values that are objects on the
  // heap. The memory stays with the map until clear() or destruction. Other threads may use the map
  // during the call. Throws std::bad_alloc if memory runs out or the map's options permit less. The
  // keys stay as they are.
  void reserve(std::size_t many) { this->table().reserve(many); }

  class cursor_type;
  // Returns a cursor without a position, for one thread at a time.
  cursor_type cursor() const&;
  void cursor() const&& = delete;  // the map must outlive the cursor

  // --- facts ---

  // Returns the counts of splits, merges, restarts and nodes.
  ordered_map_stats stats() const noexcept;
  // Returns how the map isolates its operations: hardware or optimistic. Only maps whose keys have
  // at most 64 bits, and whose values are trivially copyable and have at most 56 bytes, use
  // hardware.
  choice synchronization() const {
    if constexpr (chooses) {
      return this->table().synchronization();
    } else {
      return choice::optimistic;
    }
  }
  // Returns the counts of the map's hardware transactions, or zeros if it uses none.
  lock_counts htm_counts() const noexcept {
    if constexpr (chooses) {
      if (const tree* const made = this->table_if_made()) return made->htm_counts();
    }
    return {};
  }

 private:
  friend internal::map_range<ordered_map>;

  static auto own(key_argument key) { return static_cast<std::remove_cvref_t<key_argument>>(key); }

  // What scan() of the tree calls, for a visitor of the map.
  template <class Fn>
  static auto decoding(Fn& fn) {
    return [&fn](const typename tree::key_argument& key, const auto& value) -> decltype(auto) {
      return internal::visits_on(fn, keys::decoded(key), values::loaded(value));
    };
  }
  template <class Fn>
  std::size_t scan_range(const which_keys& which, std::size_t n, Fn& fn) const {
    return scan_tree(which.get(), n, decoding(fn));
  }
  // A map without a tree has no keys.
  template <class Fn>
  std::size_t scan_tree(const tree_bounds& which, std::size_t n, Fn&& fn) const {
    if (const tree* const made = this->table_if_made()) return made->scan(which, n, fn);
    if (which.lower) face::check(*which.lower);
    if (which.upper) face::check(*which.upper);
    return 0;
  }
  template <class Fn>
  std::size_t scan_tree(const typename tree::key_argument& first, std::size_t n, Fn&& fn) const {
    if (const tree* const made = this->table_if_made()) return made->scan(first, n, fn);
    face::check(first);
    return 0;
  }
  template <class Bounds>
  std::optional<record> first_of(const Bounds& which) const {
    static_assert(values::can_be_copied, "this copies the value: use scan_n()");
    std::optional<record> one;
    scan_tree(which_keys(which).get(), 1,
              [&](const typename tree::key_argument& key, const auto& value) {
                one.emplace(keys::owned(key), Value(values::loaded(value)));
              });
    return one;
  }
};

// A position in an ordered_map. Guarantees and errors: internal/tree/cursor.hpp.
template <class Key, class Value>
class ordered_map<Key, Value>::cursor_type {
 public:
  // Returns whether the cursor is at a key. The other functions need that, except the seeks.
  bool valid() const noexcept { return at_.valid(); }
  // Returns the key. A view is valid until the cursor moves.
  typename keys::view key() const { return keys::decoded(at_.key()); }
  // Returns a copy of the value, made when the cursor came to the key's leaf. Valid until the
  // cursor moves.
  decltype(auto) value() const noexcept {
    if constexpr (values::is_same) {
      return at_.value();
    } else {
      return values::loaded(at_.value());
    }
  }

  // Moves to the smallest key that is not less than `key`.
  void seek(key_argument key) { at_.seek(encoded(key).get()); }
  // Moves to the largest key that is less than `key`.
  void seek_before(key_argument key) { at_.seek_before(encoded(key).get()); }
  // Moves to the smallest key.
  void seek_first() { at_.seek_first(); }
  // Moves to the largest key.
  void seek_last() { at_.seek_last(); }
  // Moves to the next larger key. After the last one the cursor is not valid.
  void next() { at_.next(); }
  // Moves to the next smaller key. Before the first one the cursor is not valid.
  void prev() { at_.prev(); }

 private:
  friend ordered_map;
  explicit cursor_type(typename tree::cursor_type at) : at_(std::move(at)) {}
  typename tree::cursor_type at_;
};

template <class Key, class Value>
auto ordered_map<Key, Value>::cursor() const& -> cursor_type {
  static_assert(values::can_be_copied, "a cursor copies the values: use scan()");
  return cursor_type(this->table().cursor());
}

template <class Key, class Value>
template <class Bounds>
  requires(!std::convertible_to<const Bounds&, typename ordered_map<Key, Value>::key_argument>)
std::size_t ordered_map<Key, Value>::erase(const Bounds& which) {
  static_assert(internal::bounds_of<Bounds, Key>, "erase() takes a key or bounds");
  constexpr std::size_t at_once = 256;  // chosen
  which_keys left(which);
  std::size_t erased = 0;
  for (std::vector<Key> some;;) {
    some.clear();
    scan_tree(left.get(), at_once, [&](const typename tree::key_argument& key, const auto&) {
      some.push_back(Key(keys::owned(key)));
    });
    for (const Key& key : some) erased += this->erase(static_cast<key_argument>(key)) ? 1U : 0U;
    if (some.size() < at_once) return erased;
    left.continue_behind(some.back());
  }
}

template <class Key, class Value>
template <std::ranges::input_range Range>
std::size_t ordered_map<Key, Value>::bulk_load(Range&& sorted) {
  using given = std::ranges::range_reference_t<Range>;
  static_assert(
      requires(given r) {
        r.first;
        r.second;
      }, "bulk_load() takes pairs: key and value");
  // A container that the caller gives up.
  constexpr bool may_move = !std::is_lvalue_reference_v<Range> && !std::ranges::view<Range> &&
                            !std::ranges::borrowed_range<Range>;
  static_assert(values::can_be_copied || may_move || !std::is_lvalue_reference_v<given>,
                "bulk_load() copies the values: pass std::move(records)");
  std::size_t added = 0;
  // Calls add(encoded key, value) for each record.
  const auto for_each = [&](auto&& add) {
    const auto one = [&](key_argument key, value_argument value) {
      typename values::holder made(std::forward<value_argument>(value));
      const encoded code(key);
      added += add(code.get(), made) ? 1U : 0U;
    };
    internal::for_each_prefetched(sorted, [&](auto&& r) {
      if constexpr (may_move) {
        one(r.first, std::move(r.second));
      } else {
        // NOLINTNEXTLINE(bugprone-use-after-move): only the value is forwarded
        one(r.first, std::forward<decltype(r)>(r).second);
      }
    });
  };
  if (this->empty()) {
    this->table().bulk_fill([&](auto& loader) {
      for_each([&](const auto& key, auto&& value) {
        loader.add(key, value);
        return true;
      });
    });
    return added;
  }
  std::optional<typename keys::tree_key> last;
  for_each([&](const auto& key, auto&& value) {
    if (last && !(*last < key))
      throw std::invalid_argument("elidex: bulk_load: keys do not ascend");
    last = key;
    return this->table().insert(key, value);
  });
  return added;
}

template <class Key, class Value>
auto ordered_map<Key, Value>::split(std::size_t n) const -> std::vector<part> {
  std::vector<typename keys::tree_key> between;
  if (const tree* const made = this->table_if_made(); made != nullptr && n > 1)
    between = made->separators(n - 1);
  std::vector<part> parts;
  std::optional<typename keys::tree_key> lower;
  for (auto& next : between) {
    parts.push_back(part::of_tree_keys(lower, next));
    lower = std::move(next);
  }
  parts.push_back(part::of_tree_keys(lower, std::nullopt));
  return parts;
}

template <class Key, class Value>
ordered_map_stats ordered_map<Key, Value>::stats() const noexcept {
  const tree* const made = this->table_if_made();
  if (made == nullptr) return {};
  const internal::btree_stats s = made->stats();
  return {.restarts = s.restarts,
          .splits = s.splits,
          .merges = s.merges,
          .redistributions = s.redistributions,
          .leaves = s.leaves,
          .inner_nodes = s.inner_nodes,
          .retired_objects = s.retired_objects};
}

}  // namespace elidex
