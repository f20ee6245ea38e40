// The hash table under a hash_map, with keys and values as codec.hpp has them.
//
//   hash_index<std::uint64_t, std::uint64_t> index;
//   index.upsert(7, 70);
//
// Guarantees, complexity and errors: those of hash_map.hpp. Memory: the table doubles when its keys
// fill more than fill_percent_max of its slots, and halves when they fill less than
// fill_percent_min and that gives memory back. It grows and shrinks in place.
// std::bad_alloc comes from
//   * the constructor, reserve() and for_each(),
//   * every function that changes the table (without strings and objects, only insert(), upsert(),
//     get_or_insert() and compute()),
//   * every function that returns a std::string,
//   * the first call of a thread.
// A table that cannot grow for lack of memory continues with longer chains. The destructor,
// reclaim(), size(), empty(), memory_bytes() and stats() never throw.
//
// Implementation notes
// A bucket is a pair of cache lines: seven 8-byte keys and values, one byte of each key's hash, and
// a word that holds lock, version and level. A look-up reads one bucket and validates its version.
// It writes nothing. A look-up of a number reads only addresses that stay mapped, so it needs no
// pin, and the processor starts the next look-up while this one waits for memory. An upsert() or
// update() of a present key does the same, and then locks the bucket at the version that it read.
// The table doubles by appending as many buckets as it has. Writers then split the old buckets one
// by one, and move about half of the keys to the new bucket. Other operations continue. A reader
// waits for at most one split. The table halves in the same way, by merges. The proofs:
// internal/hash/hash_table.hpp (growing and shrinking), internal/hash/hash_bucket.hpp (reading).
//
// Invariants
//   * those of hash_table.hpp: at each moment one bucket has all keys of a hash.
//   * A bucket's blocks are full except the last one (hash_bucket.hpp). No block except the bucket
//     itself is empty.
//   * A chained block is reused only as a chained block of this map, so a late reader may still
//     read its fields.
//
// Lock order: the holder of a bucket's lock takes no other lock, except a merge of two buckets
// (hash_table.hpp). Memory is obtained before the lock and freed after it.
//
// Linearization points
//   get, contains      the load of the bucket's word, by look(). The validation proves that the
//                      bucket then held what was read from it; its level proves that it was then
//                      the bucket of the key.
//   changes            the try_lock() of the bucket. It succeeds only at the version that was read,
//                      so the bucket is still that of the key, and the key lies where it was
//                      found. Others that look for one of its keys wait until the unlock, and see
//                      the change.
//   operations that    as get, for example an insert() of a key that is present
//   change nothing
//   Splits and merges of buckets change no contents. Why one thread's operations take effect in
//   their order: hash_bucket.hpp.
//
// Sources: internal/hash/hash_table.hpp, internal/hash/hash_bucket.hpp. Fingerprints as in
// internal/tree/key_search.hpp.
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
#include "elidex/internal/memory/counters.hpp"
#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/memory/retire_list.hpp"
#include "elidex/internal/tree/codec.hpp"
#include "elidex/internal/tree/value_change.hpp"
#include "elidex/internal/visitor.hpp"

namespace elidex::internal {

// The parameters of a table. Only tests change them.
struct hash_index_rules {
  // the maximum number of slots in a block (8-byte keys and values reach it)
  static constexpr unsigned slots_max = 7;
  static constexpr unsigned first_level = 1;  // two buckets, for up to ten keys: a map may be small
  // chosen: at most one key in 11 lies in a chained block
  static constexpr unsigned fill_percent_max = 75;
  // chosen: half of it after a shrink is far below fill_percent_max
  static constexpr unsigned fill_percent_min = 15;
  // True: a table of any size shrinks, and wipes what it cannot give back.
  static constexpr bool wipes_discarded = false;
  // chosen: buckets that a thread splits after one access to the shared cursor
  static constexpr unsigned buckets_per_turn = 8;
  static constexpr bool checks_coverage = true;   // false: a planted bug
  static constexpr bool validates = true;         // false: a planted bug
  static constexpr bool locks_overwrites = true;  // false: a planted bug
  static constexpr bool waits_for_turns = true;   // false: a planted bug
};

// Counts since construction. Each is exact when no operation runs.
struct hash_index_stats {
  std::int64_t restarts = 0;  // attempts discarded because another thread changed the bucket
  std::int64_t splits = 0;    // of buckets
  std::int64_t merges = 0;    // likewise
  std::size_t buckets = 0;    // including buckets that have received no keys yet
  std::size_t chained_blocks = 0;
  std::size_t retired_objects = 0;  // blobs that wait for their epoch
};

// Hash: a function object that returns 64 well-mixed bits for a key (hash_mix.hpp). Threads call it
// at the same time. Rules: for tests.
template <class Key, class Value, class Hash = default_hash<Key>, class Rules = hash_index_rules>
class hash_index {
  using keys = key_codec<Key>;
  using values = value_codec<Value>;
  using key_slot = typename keys::slot;
  using value_slot = typename values::slot;
  using block = hash_block<key_slot, value_slot, Rules::slots_max>;
  using table = hash_table<block, Rules>;
  using bucket_ref = typename table::bucket_ref;
  using tags = block_tags;

 public:
  using key_type = Key;
  using mapped_type = Value;
  using hasher = Hash;
  using key_argument = typename keys::argument;
  using value_argument = typename values::argument;

  explicit hash_index(Hash hash = Hash(), const memory_options& options = {})
      : hash_(std::move(hash)), memory_(options) {
    name_memory(this, sizeof(*this), "hash_map");
  }
  ~hash_index();
  hash_index(const hash_index&) = delete;
  hash_index& operator=(const hash_index&) = delete;

  // Returns the value of `key`, or std::nullopt.
  [[gnu::always_inline]] inline std::optional<Value> get(key_argument key) const;
  bool contains(key_argument key) const;

  // Looks up many keys, in any order: found[i] becomes the value of wanted[i], or std::nullopt.
  // Each look-up is linearizable by itself. Together they are not a snapshot. The look-ups overlap
  // their cache misses. Throws std::invalid_argument if `found` is shorter than `wanted`, before
  // any look-up. Throws as get() does for a key that is too long. Other elements of `found` may
  // have been set then.
  void multi_get(std::span<const key_argument> wanted, std::span<std::optional<Value>> found) const;

  // Lets the key's bucket arrive for an operation that follows soon.
  void prefetch(key_argument key) const noexcept { table_.first_look(hash_(key)).prefetch(); }

  // Adds `key` if it is absent. Returns whether it added the key.
  bool insert(key_argument key, value_argument value) {
    return insert_or_overwrite(key, value, false);
  }

  // Adds `key`, or overwrites its value. Returns whether it added the key.
  [[gnu::always_inline]] inline bool upsert(key_argument key, value_argument value) {
    if constexpr (is_plain) {
      const auto overwrite = [&value](block& in, unsigned slot) { in.set_value(slot, value); };
      if (change_once(wanted(key), overwrite)) [[likely]]
        return false;
    }
    return insert_or_overwrite(key, value, true);
  }

  // Returns the value of `key` and whether it added the key. If the key is absent, adds it with the
  // value that make() returns. The operation is atomic. make() must not use the map, and should
  // be short: other operations on the bucket wait for it. If make() throws, get_or_insert()
  // passes the exception on and adds nothing. Not for values that are strings.
  template <class Make>
  std::pair<Value, bool> get_or_insert(key_argument key, Make&& make)
    requires(!values::owns_objects);

  // Calls fn(value) for the value of `key` and stores the result, as one atomic step. Returns
  // whether the key is present. fn(Value&) must not use the map, and should be short: other
  // operations on the bucket wait for it. It may run more than once when Value is std::string. Only
  // its last run has an effect on the value. If fn throws, update() passes the exception on and the
  // value stays.
  template <value_change<Value> Fn>
  bool update(key_argument key, Fn&& fn);

  // As map_face::compute().
  template <class Fn>
  bool compute(key_argument key, Fn&& fn);
  // As map_face::visit().
  template <class Fn>
  bool visit(key_argument key, Fn&& fn) const;

  // Removes `key`. Returns whether the key was present.
  bool erase(key_argument key);
  // Removes `key` if pred(value) is true for its value, as one atomic step, for values that are
  // objects. pred() holds no lock and may run more than once.
  template <class Pred>
  bool erase_if(key_argument key, Pred&& pred)
    requires(values::owns_objects);
  // Removes `key` and returns its object, for values that are objects. Waits until no other thread
  // can see the object. Throws std::logic_error, with nothing removed, if the caller is pinned.
  std::optional<Value> extract(key_argument key)
    requires(values::owns_objects && !values::makes_objects);

  // Calls fn(key, value) for each record, in no particular order, and returns the number of calls.
  // fn may return false to end the visit. The visit is weakly consistent. A key that is present
  // during the whole call is visited exactly once. A key that is inserted or erased during the call
  // is visited at most once. Each value is one that the key had during the call. fn runs without
  // locks, and may use and change the map. With string keys or values, no map of the process frees
  // memory while fn runs. So fn should not block.
  template <class Fn>
  std::size_t for_each(Fn&& fn) const;

  // Grows the table so that `many` keys fit without further growth. The table then shrinks no
  // further than that until the next reserve(). Other threads may use the map during the call.
  // Throws std::bad_alloc if memory runs out. The growth until then stays. If the table would be
  // larger than the system's memory, reserve() throws at once and grows nothing.
  void reserve(std::size_t many);

  // Returns the number of keys. Exact when no operation runs.
  std::size_t size() const noexcept { return size_.count(); }
  bool empty() const noexcept { return size() == 0; }

  // Returns the bytes obtained from the system for the table, chained and free blocks, and blobs.
  std::size_t memory_bytes() const noexcept;
  hash_index_stats stats() const noexcept;

  // Frees the memory of earlier erasures now, instead of at the next erasures. Keeps memory that a
  // reader may still reach.
  void reclaim() noexcept { retire_list_.sweep_all(); }

 private:
  static constexpr bool owns_blobs = keys::owns_blobs || values::owns_objects;
  static constexpr bool is_plain = keys::compares_in_place && !values::owns_objects;
  struct no_pin {};
  // Only blobs are freed while the map lives.
  using pin = std::conditional_t<owns_blobs, epoch_pin, no_pin>;
  using search_key = typename keys::search_key;

  // The key of a look-up, and its hash.
  struct wanted_key {
    search_key key;
    std::uint64_t hash;
    std::uint8_t print() const noexcept { return tags::print_of(hash); }
  };
  enum class finding : std::uint8_t { present, absent, torn };
  // Where a key lies. For an absent key: the last block of the chain.
  struct spot {
    block* in = nullptr;
    unsigned slot = 0;
  };
  struct record {
    key_slot key;
    value_slot value;
  };
  class operation;

  wanted_key wanted(key_argument key) const { return {keys::search_key_of(key), hash_(key)}; }
  std::uint64_t hash_of(const key_slot& key) const noexcept {
    const typename keys::view view(key);
    return hash_(view.get());
  }

  static finding find(const bucket_ref& home, const wanted_key& wanted, spot& where) noexcept;
  static bool still_valid(const bucket_ref& home) noexcept {
    return !Rules::validates || home.bucket->lock.validate(home.seen);
  }
  // look_at() and look_once() return `torn` if the caller must use look_up().
  [[gnu::always_inline]] inline finding look_at(const block& in, packed_level here,
                                                const wanted_key& wanted,
                                                std::optional<value_slot>& value) const noexcept
    requires(keys::compares_in_place);
  [[gnu::always_inline]] inline finding look_once(const wanted_key& wanted,
                                                  std::optional<value_slot>& value) const noexcept;
  [[gnu::noinline]] finding look_up(const wanted_key& wanted,
                                    std::optional<value_slot>& value) const noexcept;
  // The argument is passed by value: a variable whose address is passed on lies in memory.
  [[gnu::noinline]] std::optional<Value> get_with_patience(wanted_key which) const;

  // Calls change(block, slot) under the bucket's lock for the place of a present key. Returns
  // false, with nothing changed, if the caller must do it the long way.
  template <class Change>
  [[gnu::always_inline]] inline bool change_once(const wanted_key& wanted, Change&& change)
    requires(is_plain);
  bool insert_or_overwrite(key_argument key, value_argument value, bool overwrite);
  bool erase(key_argument key, operation& op);
  template <class Fn>
  bool compute_in_place(key_argument key, Fn& fn);
  template <class Fn>
  bool compute_aside(key_argument key, Fn& fn);

  // The bucket for a hash, split up to the table's level.
  bucket_ref home_to_change(std::uint64_t hash) noexcept;
  static bool is_full(const block& last) noexcept { return last.tags().count() == block::slots; }
  static void append(block& last, const record& added, std::uint8_t print) noexcept;
  static void chain(block& last, block& added_block, const record& added,
                    std::uint8_t print) noexcept;
  static void add(block& last, operation& op, const record& added, std::uint8_t print,
                  bool full) noexcept;
  void note_added(std::uint64_t hash, bool bucket_was_full) noexcept;
  static block* remove(block& home, const spot& where) noexcept;

  void split(const bucket_ref& p) noexcept;
  bool merge(std::uint64_t index, unsigned level) noexcept;
  static void move_chain(block& from, block& to, block*& unused) noexcept;
  void free_chain(block* first) noexcept;
  void divide_bucket(block& low, block& high, unsigned bit) const noexcept;
  block* divide_chain(block& low, block& high, unsigned bit) const noexcept;
  void help() noexcept {
    if (table_.needs_help()) [[unlikely]] {
      table_.help([this](const bucket_ref& p) { split(p); },
                  [this](std::uint64_t index, unsigned level) { return merge(index, level); });
    }
  }
  // Whether so many keys are too many for a table of a level.
  static bool is_too_full(std::size_t keys_in_it, unsigned level) noexcept {
    const std::uint64_t slots = (table::low_bits(level) + 1) * block::slots;
    return keys_in_it >
           slots / 100 * Rules::fill_percent_max + slots % 100 * Rules::fill_percent_max / 100;
  }
  bool is_too_full(std::size_t keys_in_it) const noexcept {
    return is_too_full(keys_in_it, table_.level());
  }
  void grow_if_full(std::uint64_t hash) noexcept;
  void note_removed(std::uint64_t hash) noexcept;
  void shrink_if_sparse() noexcept;
  // Whether a change looks at the size. To sum up a counter's parts takes cache lines from other
  // threads, so in a large table only one change in `one_in` does. `any` differs between changes.
  bool looks_at_size(std::uint64_t any, std::uint64_t one_in) const noexcept {
    constexpr unsigned small_level = 10;  // chosen
    return any % one_in == 0 || table_.level() <= small_level;
  }

  template <class Fn>
  bool visit_bucket(std::uint64_t residue, unsigned level, std::vector<record>& buffer, Fn& fn,
                    std::size_t& count) const;

  void free_objects() noexcept;
  static void destroy_key(void* map, void* b) noexcept;
  static void destroy_value(void* map, void* object) noexcept;

  [[no_unique_address]] Hash hash_;
  memory_source memory_;
  table table_{memory_};
  std::atomic<unsigned> kept_level_{0};  // by reserve()
  block_pool blocks_{sizeof(block), "chained block", sizeof(block), memory_};
  // Not on a cache line that readers need.
  alignas(64) busy_counter size_;
  rare_counter blob_bytes_;
  mutable rare_counter restarts_;
  rare_counter splits_;
  rare_counter merges_;
  // Destroyed first, because its objects count in the map's figures.
  retire_list retire_list_{this};
};

}  // namespace elidex::internal

#include "elidex/internal/hash/hash_index_impl.hpp"

namespace elidex::internal {

// The common instances are compiled once, in src/hash_map.cpp.
extern template class hash_index<std::uint64_t, std::uint64_t>;
extern template class hash_index<std::string, std::uint64_t>;
extern template class hash_index<std::string, std::string>;

}  // namespace elidex::internal
