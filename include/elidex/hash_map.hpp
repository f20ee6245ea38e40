// An unordered map that any number of threads may read and change at once.
//
//   elidex::hash_map<std::string, int> words;
//   words.reserve(1'000'000);                                   // optional
//   words.upsert_with("plum", 1, [](int& n) { ++n; });          // count, in one call
//   if (auto plums = words.get("plum")) ...
//   words.for_each([](std::string_view word, int n) { ... });
//
// Keys and values: as for ordered_map.hpp. Hash: a function object that returns 64 well-mixed bits
// for a key. Equal keys must have equal hashes. Threads call it at the same time. It must not
// throw.
//
// Thread-safety: any thread may call any function at any time, except constructors, destructor,
// assignment, swap() and clear(). During these no other thread may use the map. A function that the
// map calls must not call them.
// Every operation on one key is linearizable. multi_get(), multi_upsert(), multi_erase() and
// for_each() are sequences of such operations. size(), empty(), memory_bytes() and stats() are
// exact when no operation runs. Readers write nothing that threads share. They wait only for a
// thread that changes the same bucket.
// Complexity: O(1) expected for each key. for_each() visits every bucket.
// Iterator validity: the map has no iterators.
// Errors: std::bad_alloc, and what the caller's functions throw. An operation on one key then
// leaves the contents unchanged. An operation on many keys keeps the changes that it made before.
// Other errors:
//   std::invalid_argument  a key of more than 64 KiB, a string value of 4 GiB or more, multi_get()
//                          with too few results, multi_upsert() with too few or many values
//   std::out_of_range      at() of an absent key
//   std::logic_error       extract() of a value that cannot be copied, called by a visitor
// A table that cannot grow for lack of memory continues with longer chains. The destructor,
// reclaim(), size(), empty(), memory_bytes() and stats() never throw.
// Memory: the table doubles when its keys fill more than 75 % of its slots. 8-byte keys and values
// take 24 to 49 bytes for each pair. The table grows in place, without a second table. It halves
// when its keys fill less than 15 % of its slots and half of it is 2 MiB or more. The pages go back
// to the system, unless they came from a memory resource. Later keys reuse the slots that erase()
// empties. Most slots may be empty, and trivially copyable values lie in them. So prefer
// std::string for values of more than a few hundred bytes. Ten integer keys take 1.5 KB.
// memory_options.hpp chooses where the memory comes from, and limits it.
// fork(): a child has its own copy of the map. The child may use and destroy the copy if no other
// thread was inside a call of the map when the process forked. Otherwise a bucket or pool that such
// a thread had locked stays locked in the child.
//
// Implementation notes
// internal/hash/hash_index.hpp: the table. internal/tree/key_format.hpp: how keys are encoded. The
// table is made by the first call that needs one.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <utility>

#include "elidex/internal/hash/hash_index.hpp"
#include "elidex/internal/map_face.hpp"
#include "elidex/key_encoding.hpp"
#include "elidex/memory_options.hpp"

namespace elidex {

namespace internal {

// Of any key: the hash of the key as the table has it.
template <class Key>
struct default_hash {
  std::uint64_t operator()(typename map_key<Key>::argument key) const {
    return default_hash<typename map_key<Key>::tree_key>{}(
        typename map_key<Key>::encoded(key).get());
  }
};

// A user's hash function, called for a key as the table has it.
template <class Key, class Hash>
struct hash_of_decoded {
  static_assert(std::is_invocable_r_v<std::uint64_t, const Hash&, typename map_key<Key>::view>,
                "the hash function takes a key, or a view of a string, and returns 64 bits");
  [[no_unique_address]] Hash hash;
  std::uint64_t operator()(
      const typename key_codec<typename map_key<Key>::tree_key>::argument& key) const {
    return hash(map_key<Key>::decoded(key));
  }
};

template <class Key, class Hash>
using table_hash =
    std::conditional_t<std::same_as<Hash, default_hash<Key>>,
                       default_hash<typename map_key<Key>::tree_key>, hash_of_decoded<Key, Hash>>;

template <class Key, class Value, class Hash>
using table_of_map = hash_index<typename map_key<Key>::tree_key,
                                typename map_value<Value>::tree_value, table_hash<Key, Hash>>;

// Makes the table of a hash_map.
template <class Table, class Hash>
struct table_maker {
  [[no_unique_address]] Hash hash;
  memory_options options;
  std::unique_ptr<Table> operator()() const { return std::make_unique<Table>(hash, options); }
};

template <class Key, class Value, class Hash>
using hash_map_face = map_face<Key, Value, table_of_map<Key, Value, Hash>,
                               table_maker<table_of_map<Key, Value, Hash>, table_hash<Key, Hash>>>;

}  // namespace internal

using internal::default_hash;

// Counts since construction. Each is exact when no operation runs.
struct hash_map_stats {
  std::int64_t restarts = 0;  // attempts discarded because another thread changed the bucket
  std::int64_t splits = 0;    // of buckets
  std::int64_t merges = 0;    // of buckets, when the table shrinks
  std::size_t buckets = 0;    // including buckets that have received no keys yet
  std::size_t chained_blocks = 0;
  std::size_t retired_objects = 0;  // unlinked memory that waits until no reader can reach it
};

// An unordered map. Guarantees and errors: at the top of this header. Operations on single keys:
// internal/map_face.hpp.
//
//   get(key), at(key), contains(key), visit(key, fn), multi_get(keys, found)
//   insert(key, value), upsert(key, value), insert_or_assign(key, value),
//   try_emplace(key, args...), get_or_insert(key, make), multi_upsert(keys, values)
//   update(key, fn), upsert_with(key, make, change), compute(key, fn)
//   erase(key), erase_if(key, pred), extract(key), multi_erase(keys), clear()
//   size(), empty(), memory_bytes(), reclaim()
template <class Key, class Value, class Hash = default_hash<Key>>
class hash_map : public internal::hash_map_face<Key, Value, Hash> {
  using face = internal::hash_map_face<Key, Value, Hash>;
  using typename face::keys;
  using typename face::values;
  using table_hash = internal::table_hash<Key, Hash>;
  using table_type = internal::table_of_map<Key, Value, Hash>;

 public:
  using hasher = Hash;
  using record = std::pair<Key, Value>;

  hash_map() : hash_map(Hash()) {}
  explicit hash_map(Hash hash) : hash_map(memory_options(), std::move(hash)) {}
  explicit hash_map(const memory_options& options, Hash hash = Hash())
      : face({table_hash_of(std::move(hash)), options}) {}
  hash_map(std::initializer_list<record> records) : hash_map() {
    for (const record& r : records) this->insert(r.first, r.second);
  }
  // The map that is moved from is empty, and can be used again.
  hash_map(hash_map&&) noexcept = default;
  hash_map& operator=(hash_map&&) noexcept = default;
  ~hash_map() = default;
  // Exchanges the contents and options of two maps.
  void swap(hash_map& other) noexcept { std::swap(*this, other); }
  friend void swap(hash_map& a, hash_map& b) noexcept { a.swap(b); }

  // Calls fn(key, value) for each record, in no particular order, and returns the number of calls.
  // fn may return false to end the visit. The visit is weakly consistent. A key that is present
  // during the whole call is visited exactly once. A key that is inserted or erased during the call
  // is visited at most once. Each value is one that the key had during the call. fn runs without
  // locks, and may use and change the map. If the map has strings or objects, no map of the process
  // frees memory while fn runs, so fn should not block.
  template <class Fn>
  std::size_t for_each(Fn&& fn) const {
    const table_type* const made = this->table_if_made();
    if (made == nullptr) return 0;
    return made->for_each([&fn](const auto& key, const auto& value) {
      return internal::visits_on(fn, keys::decoded(key), values::loaded(value));
    });
  }

  // Grows the table so that `many` keys fit without further growth. Until the next reserve(), the
  // table does not shrink below that size. Other threads may use the map during the call.
  // Throws std::bad_alloc if memory runs out. The growth until then stays. If the table would be
  // larger than the system's memory, reserve() throws at once and grows nothing.
  void reserve(std::size_t many) { this->table().reserve(many); }

  // Returns the counts of splits, merges, restarts and buckets.
  hash_map_stats stats() const noexcept {
    const table_type* const made = this->table_if_made();
    if (made == nullptr) return {};
    const internal::hash_index_stats s = made->stats();
    return {.restarts = s.restarts,
            .splits = s.splits,
            .merges = s.merges,
            .buckets = s.buckets,
            .chained_blocks = s.chained_blocks,
            .retired_objects = s.retired_objects};
  }

 private:
  static table_hash table_hash_of(Hash hash) {
    if constexpr (std::same_as<Hash, default_hash<Key>>) {
      return {};
    } else {
      return {std::move(hash)};
    }
  }
};

}  // namespace elidex
