// The member functions of hash_map, included at the end of hash_map.hpp.
//
// Implementation notes
// The proof of correctness is in the header comments of hash_map.hpp and hash_table.hpp.
#pragma once

#include <algorithm>
#include <stdexcept>

#include "elidex/internal/sync/backoff.hpp"

namespace elidex {

// The memory that a change needs, obtained before the change, and the blobs that the change
// unlinks. The destructor hands these to the retire list.
template <class Key, class Value, class Hash, class Rules>
class hash_map<Key, Value, Hash, Rules>::operation {
 public:
  // Throws std::bad_alloc on a thread's first use. Later updates of the counters then cannot fail.
  explicit operation(hash_map& map) : map_(map) { static_cast<void>(internal::this_thread_slot()); }
  operation(const operation&) = delete;
  operation& operator=(const operation&) = delete;
  ~operation() {
    if (spare_ != nullptr) map_.blocks_.deallocate(spare_);
    if constexpr (owns_blobs) {
      for (internal::blob* b : {key_blob_, value_blob_}) {
        if (b != nullptr) destroy_blob(&map_, b);
      }
      for (internal::blob* b : retired_) {
        if (b != nullptr) map_.retire_list_.retire(b, &destroy_blob);
      }
      if (may_retire_) map_.retire_list_.unreserve();
    }
  }

  // Each of these throws std::bad_alloc, and may be called again.
  void provide_block() {
    if (spare_ == nullptr) spare_ = static_cast<block*>(map_.blocks_.allocate());
  }
  void provide_key(key_argument key) {
    if constexpr (keys::owns_blobs) {
      if (keys::needs_blob(key) && key_blob_ == nullptr) key_blob_ = made(key);
    }
  }
  void provide_value(value_argument value) {
    if constexpr (values::owns_blobs) {
      if (value_blob_ == nullptr) value_blob_ = made(value);
    }
  }
  void provide_retirement() {
    if constexpr (owns_blobs) {
      if (!may_retire_) map_.retire_list_.reserve();
      may_retire_ = true;
    }
  }

  bool has_block() const noexcept { return spare_ != nullptr; }
  block* take_block() noexcept { return std::exchange(spare_, nullptr); }
  void give_block(block* unused) noexcept { spare_ = unused; }
  record take_record(key_argument key, value_argument value) noexcept {
    return {keys::slot_of(key, keys::needs_blob(key) ? std::exchange(key_blob_, nullptr) : nullptr),
            take_value(value)};
  }
  value_slot take_value(value_argument value) noexcept {
    return values::slot_of(value, std::exchange(value_blob_, nullptr));
  }
  void retire(const record& gone) noexcept {
    if constexpr (keys::owns_blobs) retired_[0] = keys::blob_of(gone.key);
    retire_value(gone.value);
  }
  void retire_value(const value_slot& gone) noexcept {
    if constexpr (values::owns_blobs) retired_[1] = values::blob_of(gone);
  }

 private:
  internal::blob* made(std::string_view bytes) {
    internal::blob* const b = internal::heap_blobs::make(bytes);
    map_.blob_bytes_.add(static_cast<std::int64_t>(internal::blob::footprint_bytes(b->size())));
    return b;
  }

  hash_map& map_;
  block* spare_ = nullptr;
  internal::blob* key_blob_ = nullptr;
  internal::blob* value_blob_ = nullptr;
  std::array<internal::blob*, 2> retired_{};
  bool may_retire_ = false;
};

template <class Key, class Value, class Hash, class Rules>
void hash_map<Key, Value, Hash, Rules>::destroy_blob(void* map, void* b) noexcept {
  auto* const gone = static_cast<internal::blob*>(b);
  static_cast<hash_map*>(map)->blob_bytes_.add(
      -static_cast<std::int64_t>(internal::blob::footprint_bytes(gone->size())));
  internal::blob::destroy(gone);
}

template <class Key, class Value, class Hash, class Rules>
hash_map<Key, Value, Hash, Rules>::~hash_map() {
  if constexpr (owns_blobs) free_blobs();
}

template <class Key, class Value, class Hash, class Rules>
void hash_map<Key, Value, Hash, Rules>::free_blobs() noexcept {
  for (std::uint64_t i = 0; i < table_.buckets(); ++i) {
    const block* in = &table_.bucket_at(i);  // an unborn bucket is empty
    for (bool more = true; more;) {
      const tags t = in->tags();
      for (unsigned slot = 0; slot < t.count(); ++slot) {
        if constexpr (keys::owns_blobs) internal::blob::destroy(keys::blob_of(in->key(slot)));
        if constexpr (values::owns_blobs) internal::blob::destroy(values::blob_of(in->value(slot)));
      }
      more = t.has_next();
      if (more) in = in->next();
    }
  }
}

// --- looking up ---

template <class Key, class Value, class Hash, class Rules>
auto hash_map<Key, Value, Hash, Rules>::find(const bucket_ref& home, const wanted_key& wanted,
                                             spot& where) noexcept -> finding {
  for (block* in = home.bucket;;) {
    const tags t = in->tags();
    for (std::uint64_t left = t.candidates(wanted.print()); left != 0; left &= left - 1) {
      where = {in, tags::first_slot(left)};
      if constexpr (keys::compares_in_place) {
        if (in->key(where.slot) == wanted.key) return finding::present;
      } else {
        const auto order = keys::compare(in->key(where.slot), wanted.key, 0, wanted.key.head,
                                         [&] { return home.bucket->lock.validate(home.seen); });
        if (order == internal::comparison::equal) return finding::present;
        if (order == internal::comparison::torn) return finding::torn;
      }
    }
    if (!t.has_next()) {
      where.in = in;
      return finding::absent;
    }
    block* const next = in->next();
    if (!home.bucket->lock.validate(home.seen)) return finding::torn;  // else not an address
    in = next;
  }
}

// The short path that serves nearly every look-up. A processor that waits for a bucket continues
// with the next look-ups as long as it can buffer their effects, mainly stores. This function is
// inlined and calls no other function, so it has hardly any. Measured, 1 M keys: 39 instead of 57
// ns. `torn`: the caller must use look_up().
template <class Key, class Value, class Hash, class Rules>
auto hash_map<Key, Value, Hash, Rules>::look_once(const wanted_key& wanted,
                                                  std::optional<value_slot>& value) const noexcept
    -> finding {
  if constexpr (keys::compares_in_place) {
    const std::optional<bucket_ref> home = table_.find_home_at_once(wanted.hash);
    if (!home) [[unlikely]]
      return finding::torn;
    const block& in = *home->bucket;
    const tags t = in.tags();
    const std::uint64_t candidates = t.candidates(wanted.print());
    if (candidates == 0)
      return !t.has_next() && still_valid(*home) ? finding::absent : finding::torn;
    const unsigned slot = tags::first_slot(candidates);
    if (in.key(slot) != wanted.key) [[unlikely]]
      return finding::torn;
    value.emplace(in.value(slot));
    return still_valid(*home) ? finding::present : finding::torn;
  } else {
    return finding::torn;
  }
}

template <class Key, class Value, class Hash, class Rules>
auto hash_map<Key, Value, Hash, Rules>::look_up(const wanted_key& wanted,
                                                std::optional<value_slot>& value) const noexcept
    -> finding {
  for (internal::backoff wait;; wait.once()) {
    const bucket_ref home = table_.find_home(wanted.hash);
    spot where;
    const finding found = find(home, wanted, where);
    if (found == finding::present) value.emplace(where.in->value(where.slot));
    if (found != finding::torn && still_valid(home)) [[likely]]
      return found;
    restarts_.add(1);
  }
}

template <class Key, class Value, class Hash, class Rules>
std::optional<Value> hash_map<Key, Value, Hash, Rules>::get(key_argument key) const {
  const wanted_key which = wanted(key);
  // Without a pin, the blob of a key or value may be freed before it is read.
  if constexpr (owns_blobs) return get_with_patience(which);
  std::optional<value_slot> slot;
  const finding found = look_once(which, slot);
  if (found == finding::present) [[likely]]
    return values::owned(*slot);  // NOLINT(bugprone-unchecked-optional-access): present, so there
  if (found == finding::absent) return std::nullopt;
  return get_with_patience(which);
}

template <class Key, class Value, class Hash, class Rules>
std::optional<Value> hash_map<Key, Value, Hash, Rules>::get_with_patience(wanted_key which) const {
  [[maybe_unused]] const pin pinned;  // until the value is copied out
  std::optional<value_slot> slot;
  if (look_up(which, slot) == finding::absent) return std::nullopt;
  return values::owned(*slot);
}

template <class Key, class Value, class Hash, class Rules>
bool hash_map<Key, Value, Hash, Rules>::contains(key_argument key) const {
  const wanted_key which = wanted(key);
  std::optional<value_slot> slot;
  finding found = look_once(which, slot);
  if (found == finding::torn) [[unlikely]] {
    [[maybe_unused]] const pin pinned;
    found = look_up(which, slot);
  }
  return found == finding::present;
}

template <class Key, class Value, class Hash, class Rules>
void hash_map<Key, Value, Hash, Rules>::multi_get(std::span<const key_argument> wanted_keys,
                                                  std::span<std::optional<Value>> found) const {
  if (found.size() < wanted_keys.size())
    throw std::invalid_argument("elidex: multi_get: fewer values than keys (expected as many)");
  constexpr std::size_t together = 16;  // chosen: as many as a core's requests for memory
  std::array<wanted_key, together> which;
  for (std::size_t first = 0; first < wanted_keys.size(); first += together) {
    const std::size_t many = std::min(together, wanted_keys.size() - first);
    for (std::size_t i = 0; i < many; ++i) {
      which[i] = wanted(wanted_keys[first + i]);
      table_.first_look(which[i].hash).prefetch();
    }
    [[maybe_unused]] const pin pinned;
    for (std::size_t i = 0; i < many; ++i) {
      std::optional<value_slot> slot;
      finding one = look_once(which[i], slot);
      if (one == finding::torn) [[unlikely]]
        one = look_up(which[i], slot);
      found[first + i].reset();
      // NOLINTNEXTLINE(bugprone-unchecked-optional-access): present, so there
      if (one == finding::present) found[first + i].emplace(values::owned(*slot));
    }
  }
}

// --- changing ---

template <class Key, class Value, class Hash, class Rules>
auto hash_map<Key, Value, Hash, Rules>::home_to_change(std::uint64_t hash) noexcept -> bucket_ref {
  // The next exchange, on any bucket, waits until all stores of this change have their cache lines.
  // The prefetch lets these lines arrive together.
  table_.first_look(hash).prefetch();
  for (;;) {
    const bucket_ref home = table_.find_home(hash);
    if (home.seen.level() >= table_.level()) [[likely]]
      return home;
    split(home);
  }
}

// Appends the record to a block that has room.
template <class Key, class Value, class Hash, class Rules>
void hash_map<Key, Value, Hash, Rules>::append(block& last, const record& added,
                                               std::uint8_t print) noexcept {
  const tags t = last.tags();
  last.set(t.count(), added.key, added.value);
  last.set_tags(t.with(print));
}

// Puts the record into a new block behind the last one, which is full.
template <class Key, class Value, class Hash, class Rules>
void hash_map<Key, Value, Hash, Rules>::chain(block& last, block& added_block, const record& added,
                                              std::uint8_t print) noexcept {
  tags before = last.tags();
  tags behind;
  // The address takes the place of the last record, which moves to the new block.
  if constexpr (block::slots_chained < block::slots) {
    constexpr unsigned moved = block::slots - 1;
    added_block.set(0, last.key(moved), last.value(moved));
    behind = behind.with(before.print(moved));
    before = before.without_last();
  }
  added_block.set(behind.count(), added.key, added.value);
  added_block.set_tags(behind.with(print));
  last.set_next(&added_block);
  last.set_tags(before.with_next());
}

template <class Key, class Value, class Hash, class Rules>
void hash_map<Key, Value, Hash, Rules>::add(block& last, operation& op, const record& added,
                                            std::uint8_t print, bool full) noexcept {
  if (full) [[unlikely]] {
    chain(last, *op.take_block(), added, print);
  } else {
    append(last, added, print);
  }
}

template <class Key, class Value, class Hash, class Rules>
void hash_map<Key, Value, Hash, Rules>::note_added(std::uint64_t hash,
                                                   bool bucket_was_full) noexcept {
  size_.add(1);
  if (bucket_was_full) [[unlikely]]
    grow_if_full(hash);
  help_splitting();
}

// Removes a record and fills the gap with the chain's last record. Returns the last block if it has
// become empty.
template <class Key, class Value, class Hash, class Rules>
auto hash_map<Key, Value, Hash, Rules>::remove(block& home, const spot& where) noexcept -> block* {
  block* before = nullptr;
  block* last = &home;
  while (last->tags().has_next()) {
    before = last;
    last = last->next();
  }
  const unsigned from = last->tags().count() - 1;
  if (last != where.in || from != where.slot) {
    where.in->set(where.slot, last->key(from), last->value(from));
    where.in->set_tags(where.in->tags().with_at(where.slot, last->tags().print(from)));
  }
  last->set_tags(last->tags().without_last());
  if (from != 0 || before == nullptr) return nullptr;
  before->set_tags(before->tags().without_next());
  return last;
}

template <class Key, class Value, class Hash, class Rules>
bool hash_map<Key, Value, Hash, Rules>::insert_or_overwrite(key_argument key, value_argument value,
                                                            bool overwrite) {
  const wanted_key which = wanted(key);
  values::check(value);
  operation op(*this);
  [[maybe_unused]] const pin pinned;
  if constexpr (owns_blobs) {
    op.provide_key(key);
    op.provide_value(value);
    if (overwrite) op.provide_retirement();
  }
  for (internal::backoff wait;; wait.once()) {
    const bucket_ref home = home_to_change(which.hash);
    internal::bucket_lock& lock = home.bucket->lock;
    spot where;
    const finding found = find(home, which, where);
    if (found == finding::present && overwrite && lock.try_lock(home.seen)) {
      op.retire_value(where.in->value(where.slot));
      where.in->set_value(where.slot, op.take_value(value));
      lock.unlock(home.seen);
      help_splitting();
      return false;
    }
    if (found == finding::present && !overwrite && still_valid(home)) return false;
    if (found == finding::absent) {
      const bool full = is_full(*where.in);
      if (full) op.provide_block();
      if (lock.try_lock(home.seen)) {
        add(*where.in, op, op.take_record(key, value), which.print(), full);
        lock.unlock(home.seen);
        note_added(which.hash, full);
        return true;
      }
    }
    restarts_.add(1);
  }
}

template <class Key, class Value, class Hash, class Rules>
template <class Make>
std::pair<Value, bool> hash_map<Key, Value, Hash, Rules>::get_or_insert(key_argument key,
                                                                        Make&& make)
  requires(!values::owns_blobs)
{
  const wanted_key which = wanted(key);
  operation op(*this);
  [[maybe_unused]] const pin pinned;
  for (internal::backoff wait;; wait.once()) {
    const bucket_ref home = home_to_change(which.hash);
    internal::bucket_lock& lock = home.bucket->lock;
    spot where;
    const finding found = find(home, which, where);
    if (found == finding::present) {
      const value_slot value = where.in->value(where.slot);
      if (still_valid(home)) return {value, false};
    }
    if (found == finding::absent) {
      const bool full = is_full(*where.in);
      if (full) op.provide_block();
      op.provide_key(key);
      if (lock.try_lock(home.seen)) {
        std::optional<Value> value;
        try {
          value.emplace(make());
        } catch (...) {
          lock.unlock_unchanged(home.seen);
          throw;
        }
        add(*where.in, op, op.take_record(key, *value), which.print(), full);
        lock.unlock(home.seen);
        note_added(which.hash, full);
        return {*value, true};
      }
    }
    restarts_.add(1);
  }
}

template <class Key, class Value, class Hash, class Rules>
template <internal::value_change<Value> Fn>
bool hash_map<Key, Value, Hash, Rules>::update(key_argument key, Fn&& fn) {
  if constexpr (values::owns_blobs) {
    return update_string(key, fn);
  } else {
    const wanted_key which = wanted(key);
    // May throw on a thread's first use. The code below has no way to report an error.
    static_cast<void>(internal::this_thread_slot());
    [[maybe_unused]] const pin pinned;
    for (internal::backoff wait;; wait.once()) {
      const bucket_ref home = home_to_change(which.hash);
      internal::bucket_lock& lock = home.bucket->lock;
      spot where;
      const finding found = find(home, which, where);
      if (found == finding::absent && still_valid(home)) return false;
      if (found == finding::present && lock.try_lock(home.seen)) {
        Value value = where.in->value(where.slot);
        try {
          fn(value);
        } catch (...) {
          lock.unlock_unchanged(home.seen);
          throw;
        }
        where.in->set_value(where.slot, value);
        lock.unlock(home.seen);
        help_splitting();
        return true;
      }
      restarts_.add(1);
    }
  }
}

// Makes the new string outside the lock, from a value that must still be the same under the lock.
template <class Key, class Value, class Hash, class Rules>
template <class Fn>
bool hash_map<Key, Value, Hash, Rules>::update_string(key_argument key, Fn& fn) {
  const wanted_key which = wanted(key);
  for (internal::backoff wait;; wait.once()) {
    operation op(*this);
    op.provide_retirement();
    [[maybe_unused]] const pin pinned;
    const bucket_ref home = home_to_change(which.hash);
    internal::bucket_lock& lock = home.bucket->lock;
    spot where;
    const finding found = find(home, which, where);
    if (found == finding::absent && still_valid(home)) return false;
    if (found == finding::present) {
      const value_slot before = where.in->value(where.slot);
      if (still_valid(home)) {
        std::string value = values::owned(before);
        fn(value);
        values::check(value);
        op.provide_value(value);
        if (lock.try_lock(home.seen)) {
          op.retire_value(before);
          where.in->set_value(where.slot, op.take_value(value));
          lock.unlock(home.seen);
          help_splitting();
          return true;
        }
      }
    }
    restarts_.add(1);
  }
}

template <class Key, class Value, class Hash, class Rules>
bool hash_map<Key, Value, Hash, Rules>::erase(key_argument key) {
  const wanted_key which = wanted(key);
  operation op(*this);
  op.provide_retirement();
  [[maybe_unused]] const pin pinned;
  for (internal::backoff wait;; wait.once()) {
    const bucket_ref home = home_to_change(which.hash);
    internal::bucket_lock& lock = home.bucket->lock;
    spot where;
    const finding found = find(home, which, where);
    if (found == finding::absent && still_valid(home)) return false;
    if (found == finding::present && lock.try_lock(home.seen)) {
      if constexpr (owns_blobs) op.retire({where.in->key(where.slot), where.in->value(where.slot)});
      op.give_block(remove(*home.bucket, where));
      lock.unlock(home.seen);
      size_.add(-1);
      help_splitting();
      return true;
    }
    restarts_.add(1);
  }
}

// --- growing ---

// Called when a bucket was full, which is rare before the table is full. The sum of a sharded count
// reads dozens of cache lines, so in a large table most callers return at once.
template <class Key, class Value, class Hash, class Rules>
void hash_map<Key, Value, Hash, Rules>::grow_if_full(std::uint64_t hash) noexcept {
  constexpr unsigned small_level = 10;  // chosen
  constexpr std::uint64_t one_in = 8;   // chosen
  if (table_.level() > small_level && (hash >> 48U) % one_in != 0) return;
  if (is_too_full(size_.count())) static_cast<void>(table_.try_grow());
}

template <class Key, class Value, class Hash, class Rules>
void hash_map<Key, Value, Hash, Rules>::reserve(std::size_t many) {
  static_cast<void>(internal::this_thread_slot());
  unsigned level = table_.level();
  for (; is_too_full(many, level); ++level) {
    if (level == table::level_max) throw std::bad_alloc();
  }
  if (!table_.may_grow_to(level)) throw std::bad_alloc();
  while (is_too_full(many)) {
    if (table_.try_grow() == table::growth::no_memory) throw std::bad_alloc();
    table_.wait_for_growth();
    while (table_.is_splitting()) help_splitting();
  }
}

template <class Key, class Value, class Hash, class Rules>
void hash_map<Key, Value, Hash, Rules>::split(const bucket_ref& p) noexcept {
  if (!p.bucket->lock.try_lock(p.seen)) return;
  const unsigned bit = p.seen.level();
  block& high = table_.bucket_at(p.index | std::uint64_t{1} << bit);
  block* unused = nullptr;
  if (p.bucket->tags().has_next()) {
    unused = divide_chain(*p.bucket, high, bit);
  } else {
    divide_bucket(*p.bucket, high, bit);
  }
  high.lock.be_born(bit + 1);
  p.bucket->lock.unlock_at(p.seen, bit + 1);
  splits_.add(1);
  while (unused != nullptr) {
    block* const next = unused->next();
    blocks_.deallocate(unused);
    unused = next;
  }
}

template <class Key, class Value, class Hash, class Rules>
void hash_map<Key, Value, Hash, Rules>::divide_bucket(block& low, block& high,
                                                      unsigned bit) const noexcept {
  const tags all = low.tags();
  tags stay;
  tags go;
  for (unsigned slot = 0; slot < all.count(); ++slot) {
    const key_slot key = low.key(slot);
    if ((hash_of(key) >> bit & 1U) != 0) {
      high.set(go.count(), key, low.value(slot));
      go = go.with(all.print(slot));
    } else {
      if (stay.count() != slot) low.set(stay.count(), key, low.value(slot));
      stay = stay.with(all.print(slot));
    }
  }
  high.set_tags(go);
  low.set_tags(stay);
}

// Divides a chain between two buckets. Returns the unused blocks, linked.
//
// There are always enough blocks. Let r blocks be read, the bucket's own included, so that r - 1
// may be used again. They hold at most C (r - 1) + S records, where S is slots and C is
// slots_chained. A chain of n records needs no block behind its bucket if n <= S, else ceil((n - S)
// / C) of them.
//   * If one of the two chains needs none, the other needs at most r - 1.
//   * If both need some, with a and b records, they need at most (a + b - 2 S + 2 (C - 1)) / C <= r
//     + (C - S - 2) / C < r together, as C <= S: again r - 1 at most.
template <class Key, class Value, class Hash, class Rules>
auto hash_map<Key, Value, Hash, Rules>::divide_chain(block& low, block& high,
                                                     unsigned bit) const noexcept -> block* {
  std::array<block*, 2> last{&low, &high};
  block* unused = nullptr;
  for (block* from = &low; from != nullptr;) {
    const tags all = from->tags();
    std::array<record, block::slots> records;
    for (unsigned i = 0; i < all.count(); ++i) records[i] = {from->key(i), from->value(i)};
    block* const next = all.has_next() ? from->next() : nullptr;
    from->set_tags(tags());
    if (from != &low) from->set_next(std::exchange(unused, from));
    for (unsigned i = 0; i < all.count(); ++i) {
      block*& to = last[hash_of(records[i].key) >> bit & 1U];
      if (!is_full(*to)) {
        append(*to, records[i], all.print(i));
      } else {
        block* const taken = std::exchange(unused, unused->next());
        chain(*to, *taken, records[i], all.print(i));
        to = taken;
      }
    }
    from = next;
  }
  return unused;
}

// --- all of them ---

template <class Key, class Value, class Hash, class Rules>
template <class Fn>
std::size_t hash_map<Key, Value, Hash, Rules>::for_each(Fn&& fn) const {
  const unsigned level = table_.level();
  std::vector<record> buffer;
  std::size_t count = 0;
  for (std::uint64_t residue = 0; residue <= table::low_bits(level); ++residue)
    count += visit(residue, level, buffer, fn);
  return count;
}

// Visits the keys whose hashes agree with `residue` in the lowest `level` bits. They lie in one
// bucket, perhaps among others. If that bucket has been split further meanwhile, they also lie in
// the buckets that were split off. Each of these has one more set bit that then counts. So no hash
// is visited twice, whatever splits happen meanwhile.
template <class Key, class Value, class Hash, class Rules>
template <class Fn>
std::size_t hash_map<Key, Value, Hash, Rules>::visit(std::uint64_t residue, unsigned level,
                                                     std::vector<record>& buffer, Fn& fn) const {
  unsigned covered = 0;
  std::size_t count = 0;
  {
    [[maybe_unused]] const pin pinned;
    for (internal::backoff wait;; wait.once()) {
      buffer.clear();
      const bucket_ref home = table_.find_home(residue);
      covered = home.seen.level();
      bool whole = true;
      for (const block* in = home.bucket; in != nullptr && whole;) {
        const tags t = in->tags();
        for (unsigned i = 0; i < t.count(); ++i) buffer.push_back({in->key(i), in->value(i)});
        const block* const next = t.has_next() ? in->next() : nullptr;
        whole = home.bucket->lock.validate(home.seen);
        in = next;
      }
      if (whole) break;
      restarts_.add(1);
    }
    for (std::size_t i = 0; i < buffer.size(); ++i) {
      const record r = buffer[i];
      const typename keys::view key(r.key);
      if (covered < level && (hash_of(r.key) & table::low_bits(level)) != residue) continue;
      fn(key.get(), values::view(r.value));
      ++count;
    }
  }
  for (unsigned bit = level; bit < covered; ++bit) {
    count += visit(residue | std::uint64_t{1} << bit, bit + 1, buffer, fn);
  }
  return count;
}

template <class Key, class Value, class Hash, class Rules>
std::size_t hash_map<Key, Value, Hash, Rules>::memory_bytes() const noexcept {
  return sizeof(*this) + table_.memory_bytes() + blocks_.reserved_bytes() +
         retire_list_.reserved_bytes() +
         static_cast<std::size_t>(std::max<std::int64_t>(blob_bytes_.sum(), 0));
}

template <class Key, class Value, class Hash, class Rules>
hash_map_stats hash_map<Key, Value, Hash, Rules>::stats() const noexcept {
  return {.restarts = restarts_.sum(),
          .splits = splits_.sum(),
          .buckets = static_cast<std::size_t>(table_.buckets()),
          .chained_blocks = blocks_.blocks_in_use(),
          .retired_objects = retire_list_.pending()};
}

}  // namespace elidex
