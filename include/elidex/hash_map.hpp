// An unordered map that any number of threads may read and change at once.
//
//   elidex::hash_map<std::uint64_t, std::uint64_t> map;     // or <std::string, ...>
//   map.reserve(1'000'000);                                  // optional
//   map.upsert(7, 70);
//   if (auto value = map.get(7)) ...
//   map.update(7, [](std::uint64_t& v) { ++v; });            // atomic
//   map.get_or_insert(8, [] { return std::uint64_t{80}; });  // atomic; called only if 8 is absent
//   map.multi_get(keys, values);                             // many look-ups at once
//   map.for_each([](std::uint64_t key, std::uint64_t value) { ... });
//
// Thread-safety, linearizability, lifetime and errors: at the class below.
// Complexity: O(1) expected for one key.
// Memory: the table doubles when its keys fill more than fill_percent_max of its slots. 8-byte keys
// and values take 24 to 49 bytes each, and a few more for chained blocks. The table grows in place:
// there is never a second one. It does not shrink. Later keys use the slots that erase() empties.
// fork(): a child has its own copy of the map. The child may use and destroy the copy if no other
// thread was inside a call of the map when the process forked. Otherwise a bucket or pool that such
// a thread had locked stays locked in the child.
//
// Implementation notes
// A bucket is a pair of cache lines: seven 8-byte keys and values, one byte of each key's hash, and
// a word that holds lock, version and level. A look-up reads one bucket and validates its version.
// It writes nothing. A look-up of a number reads only memory that is never given back, so it needs
// no pin, and the processor starts the next look-up while this one waits for memory.
// The table doubles by adding as many buckets as it has. Each bucket's keys are then divided
// between the bucket and its new twin, one bucket at a time, by threads that change something.
// Nothing is stopped for that, and no reader waits for more than one division. The proofs:
// internal/hash/hash_table.hpp (growing), internal/hash/hash_bucket.hpp (reading).
//
// Invariants
//   * those of hash_table.hpp: at each moment one bucket has all keys of a hash.
//   * A bucket's blocks are full but for the last one (hash_bucket.hpp), and no block but the
//     bucket itself is empty.
//   * A block behind a bucket is only ever used again as such, in this map, so that its fields can
//     be read however late.
//
// Order of locks: a bucket's; inside it, none. Memory is obtained before and freed after.
//
// Linearization points
//   get, contains      the reading of the bucket's word in find_home(). The validation proves that
//                      the bucket then held what was read from it; its level proves that it was
//                      then the bucket of the key.
//   changes            the try_lock() of the bucket. Others that look for one of its keys wait
//                      until the unlock, and see the change.
//   changes of         as get (an insert() of a key that is present, for example)
//   nothing
//   Divisions of buckets change no contents. Why one thread's operations take effect in their
//   order: hash_bucket.hpp.
//
// Sources: internal/hash/hash_table.hpp, internal/hash/hash_bucket.hpp. Fingerprints as in
// internal/hash/fingerprints.hpp.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "elidex/internal/hash/hash_bucket.hpp"
#include "elidex/internal/hash/hash_mix.hpp"
#include "elidex/internal/hash/hash_table.hpp"
#include "elidex/internal/memory/block_pool.hpp"
#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/memory/retire_list.hpp"
#include "elidex/internal/sync/sharded_counter.hpp"
#include "elidex/internal/tree/codec.hpp"
#include "elidex/internal/tree/value_change.hpp"

namespace elidex {

using internal::default_hash;

// What could be otherwise; tests take tables that are always growing, and broken ones.
struct hash_map_rules {
  // of a block; so many there are for 8-byte keys and values
  static constexpr unsigned slots_max = 7;
  static constexpr unsigned first_level = 2;  // 4 buckets: an empty map is small
  // chosen: one key in 11 at most lies in a block behind its bucket
  static constexpr unsigned fill_percent_max = 75;
  // chosen: what is split with one look at the shared cursor
  static constexpr unsigned buckets_per_turn = 8;
  static constexpr bool checks_coverage = true;  // false: a planted bug
  static constexpr bool validates = true;        // false: a planted bug
};

// Counts since construction; each exact when no operation runs.
struct hash_map_stats {
  std::int64_t restarts = 0;  // attempts thrown away because another thread changed the bucket
  std::int64_t splits = 0;    // of buckets
  std::size_t buckets = 0;    // those whose keys are still with another one included
  std::size_t chained_blocks = 0;
  std::size_t retired_objects = 0;  // blobs that wait for their epoch
};

// Key: an integer type, or std::string (given as std::string_view, at most 64 KiB). Value: a
// trivially copyable type, or std::string (given as std::string_view). Values are stored in the
// table: for those of more than some hundred bytes, of which half is empty at times, take
// std::string. Hash: a function object that makes 64 good bits of a key; see hash_mix.hpp.
//
// Thread-safety: every function but constructor and destructor may be called from any thread at any
// time, and all are linearizable except for_each(), and size(), empty(), memory_bytes() and
// stats(), which are exact when no operation runs. Readers write nothing that is shared and wait
// only for whoever is changing the same bucket.
//
// Lifetime: keys and values are copied in and out. Not copyable, not movable. There are no
// iterators; what for_each() hands to its function is valid until that returns.
//
// Errors: std::invalid_argument for a key over 64 KiB. std::bad_alloc from constructor, from any
// function that changes something (for numbers: insert, upsert and get_or_insert), from reserve()
// and for_each(), where a std::string is returned, and from the first call of a thread: the map's
// content is then unchanged. A table that can't grow for want of memory goes on with longer chains.
// Destructor, reclaim(), size(), empty(), memory_bytes() and stats() never throw.
template <class Key, class Value, class Hash = default_hash<Key>, class Rules = hash_map_rules>
class hash_map {
  static_assert((std::integral<Key> && !std::same_as<Key, bool>) || std::same_as<Key, std::string>,
                "keys are integers or std::string");
  static_assert(std::is_trivially_copyable_v<Value> || std::same_as<Value, std::string>,
                "values are trivially copyable or std::string");
  using keys = internal::key_codec<Key>;
  using values = internal::value_codec<Value>;
  using key_slot = typename keys::slot;
  using value_slot = typename values::slot;
  using block = internal::hash_block<key_slot, value_slot, Rules::slots_max>;
  using table = internal::hash_table<block, Rules>;
  using place = typename table::place;
  using tags = internal::block_tags;

 public:
  using key_type = Key;
  using mapped_type = Value;
  using hasher = Hash;
  using key_argument = typename keys::argument;
  using value_argument = typename values::argument;

  explicit hash_map(Hash hash = Hash()) : hash_(std::move(hash)) {
    internal::name_memory(this, sizeof(*this), "hash_map");
  }
  ~hash_map();
  hash_map(const hash_map&) = delete;
  hash_map& operator=(const hash_map&) = delete;

  // The value of `key`, if it is there.
  [[gnu::always_inline]] inline std::optional<Value> get(key_argument key) const;
  bool contains(key_argument key) const;

  // get() of many keys, in any order: found[i] becomes the value of wanted[i], if it is there. Each
  // look-up is linearizable by itself; together they are no snapshot. Look-ups wait for memory
  // together. Throws std::invalid_argument if `found` is shorter than `wanted`, and as get() for a
  // key that is too long: others may have been set then.
  void multi_get(std::span<const key_argument> wanted, std::span<std::optional<Value>> found) const;

  // Adds `key` unless it is there; says whether it added it.
  bool insert(key_argument key, value_argument value) {
    return insert_or_overwrite(key, value, false);
  }

  // Adds `key` or overwrites its value; says whether it added it.
  bool upsert(key_argument key, value_argument value) {
    return insert_or_overwrite(key, value, true);
  }

  // The value of `key`, which becomes make()'s if it is not there, as one atomic step; second:
  // whether it was added. make() must not use the map, and should be short: others who want the
  // bucket wait for it. If it throws, the exception comes out of get_or_insert() and nothing is
  // added. Not for values that are strings.
  template <class Make>
  std::pair<Value, bool> get_or_insert(key_argument key, Make&& make)
    requires(!values::owns_blobs);

  // Replaces the value v of `key` by what fn(v) makes of it, as one atomic step; says whether the
  // key was there. fn(Value&) must not use the map, and should be short: others who want the bucket
  // wait for it. It may run more than once, with effects only of the last time, when Value is
  // std::string. If it throws, the exception comes out of update() and the value stays.
  template <internal::value_change<Value> Fn>
  bool update(key_argument key, Fn&& fn);

  // Removes `key`; says whether it was there.
  bool erase(key_argument key);

  // Calls fn(key, value) for the records, in no order, and returns how many. Weakly consistent: a
  // key that is there all the time comes exactly once, one that comes or goes meanwhile once or not
  // at all; a value is one that the key had meanwhile. fn runs outside of all locks and may use the
  // map, and change it. With string keys or values no map of the process gives memory back while fn
  // runs, so it should not block then.
  template <class Fn>
  std::size_t for_each(Fn&& fn) const;

  // Makes the table large enough for so many keys, now, so that it does not grow until there are
  // more. Others go on meanwhile.
  void reserve(std::size_t many);

  std::size_t size() const noexcept { return size_.count(); }
  bool empty() const noexcept { return size() == 0; }

  // Everything obtained from the system for the table, chained and free blocks, and blobs, in
  // bytes.
  std::size_t memory_bytes() const noexcept;
  hash_map_stats stats() const noexcept;

  // Frees what was erased before this call, as far as no reader was in the way, now instead of at
  // the next erasures.
  void reclaim() noexcept { retire_list_.sweep_all(); }

 private:
  static constexpr bool owns_blobs = keys::owns_blobs || values::owns_blobs;
  struct no_pin {};
  // Only blobs are ever freed while the map lives.
  using pin = std::conditional_t<owns_blobs, internal::epoch_pin, no_pin>;
  using probe = typename keys::probe;

  // What is looked for.
  struct wanted_key {
    probe key;
    std::uint64_t hash;
    std::uint8_t print() const noexcept { return print_of(hash); }
  };
  enum class finding : std::uint8_t { present, absent, torn };
  // Where a key lies; of an absent one the last block of the chain.
  struct spot {
    block* in = nullptr;
    unsigned slot = 0;
  };
  struct record {
    key_slot key;
    value_slot value;
  };
  class operation;

  static std::uint8_t print_of(std::uint64_t hash) noexcept {
    return static_cast<std::uint8_t>(hash >> 56U);
  }
  wanted_key wanted(key_argument key) const { return {keys::probe_of(key), hash_(key)}; }
  std::uint64_t hash_of(const key_slot& key) const noexcept {
    const typename keys::view view(key);
    return hash_(view.get());
  }

  static finding find(const place& home, const wanted_key& wanted, spot& where) noexcept;
  static bool still_valid(const place& home) noexcept {
    return !Rules::validates || home.bucket->lock.validate(home.seen);
  }
  [[gnu::always_inline]] inline finding look_once(const wanted_key& wanted,
                                                  std::optional<value_slot>& value) const noexcept;
  [[gnu::noinline]] finding look_up(const wanted_key& wanted,
                                    std::optional<value_slot>& value) const noexcept;
  // By value: what others have the address of lies in memory.
  [[gnu::noinline]] std::optional<Value> get_with_patience(wanted_key which) const;

  bool insert_or_overwrite(key_argument key, value_argument value, bool overwrite);
  template <class Fn>
  bool update_string(key_argument key, Fn& fn);

  // The bucket for a hash, on the table's level. Then those of the change that it comes with.
  place home_to_change(std::uint64_t hash) noexcept;
  static bool is_full(const block& last) noexcept { return last.tags().count() == block::slots; }
  static void append(block& last, const record& added, std::uint8_t print) noexcept;
  static void chain(block& last, block& added_block, const record& added,
                    std::uint8_t print) noexcept;
  static void add(block& last, operation& op, const record& added, std::uint8_t print,
                  bool full) noexcept;
  void note_added(std::uint64_t hash, bool bucket_was_full) noexcept;
  static block* remove(block& home, const spot& where) noexcept;

  void split(const place& p) noexcept;
  void divide_bucket(block& low, block& high, unsigned bit) const noexcept;
  block* divide_chain(block& low, block& high, unsigned bit) const noexcept;
  void help_splitting() noexcept {
    if (table_.is_splitting()) [[unlikely]]
      table_.help_splitting([this](const place& p) { split(p); });
  }
  bool is_too_full(std::size_t keys_in_it) const noexcept {
    return keys_in_it > table_.buckets() * block::slots / 100 * Rules::fill_percent_max +
                            table_.buckets() * block::slots % 100 * Rules::fill_percent_max / 100;
  }
  void grow_if_full(std::uint64_t hash) noexcept;

  template <class Fn>
  std::size_t visit(std::uint64_t residue, unsigned level, std::vector<record>& buffer,
                    Fn& fn) const;

  void free_blobs() noexcept;
  static void destroy_blob(void* map, void* b) noexcept;

  [[no_unique_address]] Hash hash_;
  table table_;
  internal::block_pool blocks_{sizeof(block), "chained block", sizeof(block)};
  internal::busy_counter size_;
  internal::sharded_counter blob_bytes_;
  mutable internal::sharded_counter restarts_;
  internal::sharded_counter splits_;
  internal::retire_list retire_list_{this};  // destroyed first: what is in it counts as the map's
};

}  // namespace elidex

#include "elidex/internal/hash/hash_map_impl.hpp"

namespace elidex {

// The common instances are compiled once, in src/hash_map.cpp.
extern template class hash_map<std::uint64_t, std::uint64_t>;
extern template class hash_map<std::string, std::uint64_t>;
extern template class hash_map<std::string, std::string>;

}  // namespace elidex
