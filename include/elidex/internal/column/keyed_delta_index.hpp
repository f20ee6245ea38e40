// An index over the delta's dictionary that holds the values themselves, not only their IDs.
//
//   keyed_delta_index<std::uint64_t> index;
//   auto [id, is_new] = index.find_or_add(42);
//
// Guarantees and errors: at the class below.
//
// Implementation notes
// The index is the tree of ordered_map. A look-up reads nodes only, not the dictionary. The paper's
// index (papers/karnagel/delta_index.hpp) does the same task, but waits for a cache line of the
// dictionary at each comparison. No order of comparisons avoids these waits (docs/PERFORMANCE.md).
// This index takes some more bytes for each value instead. Strings are not stored twice: tree and
// dictionary have the address of the same bytes.
//
// New values. The tree's get_or_insert_if_made() makes the ID while the leaf is locked. It appends
// the value to the calling thread's part of the dictionary (dictionary.hpp), and the tree stores
// the ID as the key's value. So no thread finds an ID before its entry is written, and each value
// has a single ID.
//
// Repeated values. A column gets most values many times. So find_or_add() first guesses the ID by
// the value's hash (remembered_ids.hpp), and checks whether the dictionary has the value there.
// That costs two cache lines instead of a descent of the tree.
//
// Linearization points: those of the tree (fixed_key_btree.hpp, btree.hpp). For a right guess: any
// moment of the call, because values are never erased.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "elidex/internal/column/blob_arena.hpp"
#include "elidex/internal/column/dictionary.hpp"
#include "elidex/internal/column/remembered_ids.hpp"
#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/tree/ordered_tree.hpp"

namespace elidex::internal {

// Strings whose bytes live as long as the tree.
struct arena_string;
template <>
struct key_codec<arena_string> : key_codec<std::string> {
  using blob_store = arena_blobs;
};

template <std::unsigned_integral Value>
std::uint64_t hash_of(Value value) noexcept {
  // Fibonacci hashing, twice: the high bits of a product depend on all bits of the value, and the
  // low bits do not.
  constexpr std::uint64_t golden = 0x9E3779B97F4A7C15ULL;
  const std::uint64_t product = value * golden;
  return (product >> 32 ^ product) * golden;
}
inline std::uint64_t hash_of(std::string_view value) noexcept {
  return std::hash<std::string_view>()(value);
}

template <class Value, class Id>
struct keyed_delta_tree {
  using type = region_choosing_tree<Value, Id, ordered_tree_shape>;
};
template <class Id>
struct keyed_delta_tree<std::string, Id> {
  using type = btree<arena_string, Id, optimistic, node_bytes<1024, 1024>>;
};

// Value: an unsigned integer type, or std::string (passed as std::string_view, compared as unsigned
// bytes, at most 64 KiB). Id: an unsigned integer type, which limits the number of values.
//
// Thread-safety: every function but constructor and destructor, from any thread at any time.
// find(), find_or_add() and scan() are linearizable. find_or_add_together() is linearizable for
// each value. size() and memory_bytes() are exact when no operation runs. view() may be called with
// any ID that this index has returned.
//
// Errors: std::bad_alloc from find_or_add() and scan(), and from the first call of a thread.
// std::length_error from find_or_add() when no ID is left for a new value. std::invalid_argument
// for a string of more than 64 KiB. The index is then unchanged. Errors of find_or_add_together():
// see there.
template <class Value, class Id = std::uint32_t>
class keyed_delta_index {
  static_assert(std::unsigned_integral<Value> || std::same_as<Value, std::string>);
  using tree = typename keyed_delta_tree<Value, Id>::type;
  using dictionary = delta_dictionary<Value, true, 16, Id>;
  using values = typename dictionary::keys;

 public:
  using value_type = Value;
  using value_argument = typename values::argument;
  using id_type = Id;

  keyed_delta_index() = default;
  // `which` is the tree's. A default-constructed index uses hardware transactions where the CPU
  // commits them. An index of strings is always optimistic.
  explicit keyed_delta_index(synchronization which)
    requires std::constructible_from<tree, synchronization>
      : tree_(which) {}
  keyed_delta_index(const keyed_delta_index&) = delete;
  keyed_delta_index& operator=(const keyed_delta_index&) = delete;

  // Returns the ID of `value`, or std::nullopt.
  std::optional<Id> find(value_argument value) const { return tree_.get(value); }

  struct added {
    Id id;
    bool is_new;
  };
  // Returns the ID of `value`. Adds the value if it is absent.
  added find_or_add(value_argument value);

  // Calls find_or_add() for each value: ids[i] becomes the ID of values[i]. There are at most
  // together_max values. The calls share the waiting for memory. After an exception some of the
  // values may have been added.
  static constexpr std::size_t together_max = 64;  // chosen: four groups of the tree's multi_get()
  using value_item = std::remove_cvref_t<value_argument>;
  void find_or_add_together(std::span<const value_item> given, Id* ids);

  // Calls fn(value, id) for up to `limit` values from `from` on, in ascending order. Returns their
  // number. The scan is a snapshot: at one moment all of these values were in the index, with no
  // other value between them. fn runs after that moment, outside of all locks, and may use the
  // index. The scan buffers the values first.
  template <class Fn>
  std::size_t scan(value_argument from, std::size_t limit, Fn&& fn) const {
    return tree_.scan(from, limit, fn);
  }
  // The same for the values of a range, in its direction.
  template <class Fn>
  std::size_t scan(const tree_range<value_argument>& which, std::size_t limit, Fn&& fn) const {
    return tree_.scan(which, limit, fn);
  }
  // The same for all values.
  template <class Fn>
  std::size_t scan_all(Fn&& fn) const {
    return tree_.scan(value_argument{}, std::numeric_limits<std::size_t>::max(), fn);
  }

  // The value of an ID. view(id).get() returns it in the form that functions take. A string is
  // valid as long as the index.
  typename values::view view(Id id) const noexcept {
    return typename values::view(dictionary_.at(id));
  }

  // The number of different values.
  std::size_t size() const noexcept { return dictionary_.size(); }
  // All IDs are below this bound. Some numbers below it may not be IDs.
  std::size_t id_bound() const noexcept { return dictionary_.id_bound(); }

  // All memory obtained from the system for values, nodes and free nodes, in bytes.
  std::size_t memory_bytes() const noexcept {
    return sizeof(*this) - sizeof(tree_) - sizeof(dictionary_) + tree_.memory_bytes() +
           dictionary_.memory_bytes() + remembered_.memory_bytes();
  }
  btree_stats stats() const noexcept { return tree_.stats(); }

 private:
  // Chosen: the tree is then larger than a second-level cache.
  static constexpr std::size_t values_beyond_caches = 50'000;

  std::optional<Id> guess(value_argument value, std::uint64_t hash) const noexcept {
    const auto found = remembered_.guess(hash);
    return found && view(*found).get() == value ? found : std::nullopt;
  }
  void remember(std::uint64_t hash, Id id) noexcept {
    remembered_.remember(hash, id, [&] { return size(); });
  }
  added find_or_add_in_tree(value_argument value, std::uint64_t hash);

  tree tree_;
  dictionary dictionary_;
  remembered_ids<Id> remembered_;
};

template <class Value, class Id>
auto keyed_delta_index<Value, Id>::find_or_add(value_argument value) -> added {
  const std::uint64_t hash = internal::hash_of(value);
  if (const auto guessed = guess(value, hash)) return {*guessed, false};
  return find_or_add_in_tree(value, hash);
}

template <class Value, class Id>
void keyed_delta_index<Value, Id>::find_or_add_together(std::span<const value_item> given,
                                                        Id* ids) {
  std::array<std::uint64_t, together_max> hashes;
  std::array<value_item, together_max> wanted;     // the values without a right guess
  std::array<std::uint8_t, together_max> numbers;  // their numbers in `given`
  std::size_t many = 0;
  for (std::size_t i = 0; i < given.size(); ++i) {
    hashes[many] = internal::hash_of(given[i]);
    if (const auto guessed = guess(given[i], hashes[many])) {
      ids[i] = *guessed;
    } else {
      wanted[many] = given[i];
      numbers[many++] = static_cast<std::uint8_t>(i);
    }
  }
  if (many == 0) return;
  // Brings the leaves into the cache. Ascending values share leaves, and need no help.
  std::array<std::optional<Id>, together_max> found;
  if (size() >= values_beyond_caches && !std::is_sorted(wanted.begin(), wanted.begin() + many))
    tree_.multi_get(std::span(wanted).first(many), found);
  for (std::size_t i = 0; i < many; ++i) {
    if (found[i]) {
      ids[numbers[i]] = *found[i];
      remember(hashes[i], *found[i]);
    } else {
      ids[numbers[i]] = find_or_add_in_tree(wanted[i], hashes[i]).id;
    }
  }
}

template <class Value, class Id>
auto keyed_delta_index<Value, Id>::find_or_add_in_tree(value_argument value, std::uint64_t hash)
    -> added {
  unsigned part = dictionary_.part_with_ids(this_thread_slot() % dictionary::parts);
  for (;;) {
    const auto got = tree_.get_or_insert_if_made(
        value,
        [&](const typename dictionary::entry& entry) { return dictionary_.append(part, entry); });
    if (got) {
      if (!got->second) remember(hash, got->first);
      return {got->first, got->second};
    }
    try {
      part = dictionary_.make_room(part);
    } catch (const internal::no_ids_left&) {
      if (const auto given_meanwhile = find(value)) return {*given_meanwhile, false};
      throw;
    }
  }
}

}  // namespace elidex::internal
