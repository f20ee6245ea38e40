// Records in hash buckets of two cache lines, so that a request reads one bucket and nothing else.
//
//   hashed_buckets<std::uint64_t, std::uint64_t, optimistic, 16> buckets;
//   buckets.insert(7, 70);
//   const unsigned slot = buckets.find(7);
//   if (slot != no_slot) use(buckets.value(slot));
//
// Thread-safety: const functions may race with one writer where the policy says so. Their results
// count only after validation. Functions that change a bucket need its lock, or one that excludes
// all writers and is validated by all readers. All run inside regions: they allocate nothing.
// Complexity: find() reads the key's home bucket. If that bucket once overflowed, find() also reads
// the buckets that took its keys.
// Errors: none. A function that finds no room changes nothing and returns false.
//
// Implementation notes
// One bucket, for 8-byte keys and values under `optimistic` (two cache lines, eight records):
//
//   | lock 8 | fingerprints 8 | rests 44 | info 4 | values 64 |
//
//   info: base 16 bits | away 8 | count 5 | lost 3
//
// A key is stored as its distance from the bucket's base: a fingerprint of eight bits and the other
// bits, the rest (as in packed_keys, separated_leaf.hpp, which explains the coding). The base is a
// multiple of 2^48, so 16 bits hold it. `lost` chooses the width of the rests. With none lost, a
// rest has 44 bits, and all keys lie within 2^52. With one slot lost it has 50 bits. With two lost
// it has 56 bits, which is enough for any keys. Each bucket has a frame (base and width) of its
// own. A key outside of the frame makes the bucket choose a new frame and encode its keys again.
// That changes only this bucket.
//
// Home: the bucket that the key's hash names. A key goes to another bucket if its home has no room
// for it. The home then notes the other bucket in `away`, which has one bit for each group of
// buckets. So a key is in its home or in a group whose bit is set there. A bit is cleared only when
// the buckets are filled or thinned out as a whole. The hash depends on the key only, so neither
// moves nor new frames change a key's home. The order in which a full home is relieved begins with
// its neighbour (home ^ 1), which lies in the same group.
//
// A racing reader may see an info, fingerprints and rests that do not belong together. It then
// computes some number, or a slot below the capacity.
//
// Order of arrival: a new key takes the slot behind the others. An erase puts the last record of
// the bucket in the free slot. So mostly the last slots hold the keys that came last.
//
// From: docs/decisions/speed-integers.md, section 2. A leaf of hash buckets whose overflow goes to
// any other bucket is ours. Fingerprints and frames: see packed_keys.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "elidex/internal/sync/version_lock.hpp"
#include "elidex/internal/tree/btree_inner.hpp"
#include "elidex/internal/tree/key_search.hpp"
#include "elidex/internal/tree/vector_unpack.hpp"

namespace elidex::internal {

// Each false plants a bug for a test.
struct bucket_rules {
  static constexpr bool encodes_again = true;    // the keys, when the frame changes
  static constexpr bool notes_away_keys = true;  // in their home
  static constexpr bool keeps_away_keys = true;  // noted when other keys leave
  static constexpr bool locks_others = true;     // buckets other than the home, when they change
};

// Keys as numbers without a sign, in the same order.
template <std::integral Key>
constexpr std::uint64_t rank_number(Key key) noexcept {
  using number = std::make_unsigned_t<Key>;
  constexpr number flip = std::is_signed_v<Key> ? number(number{1} << (8 * sizeof(Key) - 1)) : 0;
  return static_cast<number>(static_cast<number>(key) ^ flip);
}
template <std::integral Key>
constexpr Key key_of_rank(std::uint64_t ordered) noexcept {
  using number = std::make_unsigned_t<Key>;
  constexpr number flip = std::is_signed_v<Key> ? number(number{1} << (8 * sizeof(Key) - 1)) : 0;
  return static_cast<Key>(static_cast<number>(static_cast<number>(ordered) ^ flip));
}

// How a bucket of so many bytes is divided.
template <std::integral Key, class Value, class Sync, std::size_t Bytes>
struct bucket_layout {
  static constexpr unsigned key_bits = 8 * sizeof(Key);
  static constexpr unsigned full_rest_bits = key_bits - 8;
  // 44 of 56 bits: enough for a full leaf in a map of half a million random 8-byte keys.
  static constexpr unsigned planned_rest_bits = full_rest_bits * 11 / 14;
  static constexpr unsigned info_bits = 32;
  static constexpr unsigned count_max = 31;
  static constexpr unsigned lost_max = 7;
  static constexpr std::size_t lock_bytes =
      std::is_empty_v<typename Sync::node_lock> ? 0 : sizeof(typename Sync::node_lock);

  static constexpr std::size_t bytes_beside_rests(unsigned n) {
    return lock_bytes + (n + 7) / 8 * 8 + n * sizeof(field<Value>);
  }
  static constexpr std::size_t words_for(unsigned n) {
    return (n * planned_rest_bits + info_bits + 63) / 64;
  }
  static constexpr unsigned slots = [] {
    unsigned n = 1;
    while (n < count_max && bytes_beside_rests(n + 1) + 8 * words_for(n + 1) <= Bytes) ++n;
    return n;
  }();
  static_assert(slots >= 2, "a bucket must hold two records: smaller values or more bytes, please");
  static constexpr std::size_t words = (Bytes - bytes_beside_rests(slots)) / 8;
  static constexpr unsigned rest_room = words * 64 - info_bits;

  // The width of the rests when so many slots are lost.
  static constexpr std::array<std::uint8_t, lost_max + 1> rest_bits = [] {
    std::array<std::uint8_t, lost_max + 1> bits{};
    for (unsigned lost = 0; lost <= lost_max; ++lost) {
      bits[lost] = static_cast<std::uint8_t>(
          std::min(full_rest_bits, rest_room / std::max(1U, slots - std::min(lost, slots))));
    }
    return bits;
  }();
  static constexpr unsigned most_lost = [] {
    unsigned lost = 0;
    while (lost < lost_max && rest_bits[lost] < full_rest_bits) ++lost;
    return lost;
  }();
  static_assert(rest_bits[most_lost] == full_rest_bits && most_lost < slots,
                "a bucket must hold a key of any width");

  // A base is a multiple of this number.
  static constexpr unsigned base_shift = key_bits > 16 ? key_bits - 16 : 0;
  static_assert(8 + rest_bits[0] >= base_shift);
};

template <std::integral Key, class Value, class Sync, std::size_t Bytes = 128,
          class Rules = bucket_rules>
class alignas(64) hashed_bucket {
  using layout = bucket_layout<Key, Value, Sync, Bytes>;
  using distance = std::uint64_t;
  static constexpr bool racing = Sync::readers_race;
  using prints_type = fingerprints<racing, layout::slots>;

 public:
  static constexpr unsigned capacity = layout::slots;
  // Keys of any distance have room for so many.
  static constexpr unsigned certain_capacity = capacity - layout::most_lost;

  hashed_bucket() noexcept { store_info({}); }

  unsigned count() const noexcept { return info_now().count; }
  // The buckets that may hold keys of this home: a bit for each group.
  unsigned away() const noexcept { return info_now().away; }
  void set_away(unsigned groups) noexcept {
    info now = info_now();
    now.away = groups;
    store_info(now);
  }

  Key key(unsigned slot) const noexcept {
    const info now = info_now();
    return key_of(rest_at(slot, now.rest_bits()), prints_.at(slot), now.base());
  }
  Value value(unsigned slot) const noexcept { return values_[slot].template load<racing>(); }
  void set_value(unsigned slot, const Value& v) noexcept {
    values_[slot].template store<racing>(v);
  }
  // Calls fn(slot, key) for all keys.
  template <class Fn>
  void for_each_key(Fn&& fn) const noexcept {
    const info now = info_now();
    const unsigned bits = now.rest_bits();
    const std::uint64_t base = now.base();
    if constexpr (is_one_line) {
      if (vectors_of_this_cpu >= vector_instructions::avx512_vbmi) {
        std::array<std::uint64_t, vector_unpack::lane_count> numbers;
        vector_unpack::unpack_line(this, bits, base, hash_multiplier, numbers.data());
        for (unsigned slot = 0; slot < now.count; ++slot) fn(slot, key_of_rank<Key>(numbers[slot]));
        return;
      }
    }
    for (unsigned slot = 0; slot < now.count; ++slot)
      fn(slot, key_of(rest_at(slot, bits), prints_.at(slot), base));
  }

  // Returns the slot of the key, or no_slot.
  unsigned find(Key wanted) const noexcept { return find(wanted, info_now()); }
  // The same. Also sets `away` to away() as it was at that moment.
  unsigned find(Key wanted, unsigned& away) const noexcept {
    const info now = info_now();
    away = now.away;
    return find(wanted, now);
  }

  // How many keys from `lowest` to `highest` a bucket surely has room for.
  static unsigned room_between(Key lowest, Key highest) noexcept {
    return frame_for(rank_number(lowest), rank_number(highest)).slots();
  }
  bool has_room_for(Key key) const noexcept {
    info wanted = info_now();
    return finds_frame_for(key, wanted);
  }
  // The same, without another frame.
  bool has_easy_room_for(Key key) const noexcept {
    const info now = info_now();
    return now.count < now.slots() && lies_in(rank_number(key), now);
  }
  // Returns whether the key has room. Encodes the keys again if that makes room.
  bool make_room_for(Key key) noexcept {
    const info now = info_now();
    info wanted = now;
    if (!finds_frame_for(key, wanted)) return false;
    if (wanted.base_number != now.base_number || wanted.lost != now.lost) encode_again(wanted);
    return true;
  }
  // The key must be absent.
  bool insert(Key key, const Value& v) noexcept {
    if (!make_room_for(key)) return false;
    info now = info_now();
    set_key(now.count, key, now);
    set_value(now.count, v);
    ++now.count;
    store_info(now);
    return true;
  }
  // Moves the bucket's last record to this slot.
  void erase(unsigned slot) noexcept {
    info now = info_now();
    const unsigned last = now.count - 1;
    if (slot != last) {
      set_key(slot, key(last), now);
      set_value(slot, value(last));
    }
    now.count = last;
    store_info(now);
  }
  // Removes all records, and forgets the away keys.
  void clear() noexcept { store_info({}); }
  // Keeps the records whose keys are wanted, in their order of arrival. Chooses the best frame for
  // them if slots were lost.
  template <class IsWanted>
  void keep_if(IsWanted&& is_wanted) noexcept {
    info now = info_now();
    const unsigned before = now.count;
    now.count = 0;
    std::uint64_t lowest = ~std::uint64_t{0};
    std::uint64_t highest = 0;
    for_each_key([&](unsigned slot, Key k) {
      if (!is_wanted(k)) return;
      if (now.count != slot) {
        set_key(now.count, k, now);
        set_value(now.count, value(slot));
      }
      ++now.count;
      lowest = std::min(lowest, rank_number(k));
      highest = std::max(highest, rank_number(k));
    });
    if (now.count == before) return;
    if (now.count == 0) now.take({0, 0});
    store_info(now);
    if (now.lost == 0) return;
    now.take(frame_for(lowest, highest));
    encode_again(now);
  }

  [[no_unique_address]] mutable typename Sync::node_lock lock;

 private:
  // Where the keys of a bucket lie and how wide their rests are.
  struct frame {
    std::uint64_t base_number;
    unsigned lost;
    unsigned slots() const noexcept { return capacity - lost; }
  };
  struct info {
    std::uint64_t base_number = 0;
    unsigned away = 0;
    unsigned count = 0;
    unsigned lost = 0;

    std::uint64_t base() const noexcept { return base_number << layout::base_shift; }
    unsigned rest_bits() const noexcept { return layout::rest_bits[lost]; }
    unsigned slots() const noexcept { return capacity - std::min(lost, capacity); }
    void take(const frame& f) noexcept {
      base_number = f.base_number;
      lost = f.lost;
    }
  };
  // Whether lock, fingerprints, rests and info fill one cache line, as unpack_line() wants them.
  static constexpr bool is_one_line = layout::lock_bytes == vector_unpack::line_prints_byte &&
                                      layout::key_bits == 64 &&
                                      capacity <= vector_unpack::lane_count && layout::words == 6;
  static constexpr std::size_t info_word = layout::words - 1;
  static constexpr unsigned info_shift = 64 - layout::info_bits;

  info info_now() const noexcept {
    const std::uint64_t word = words_[info_word].template load<racing>() >> info_shift;
    info now;
    now.base_number = word & 0xFFFFU;
    now.away = static_cast<unsigned>(word >> 16U & 0xFFU);
    now.count = std::min(static_cast<unsigned>(word >> 24U & 0x1FU), capacity);
    now.lost = static_cast<unsigned>(word >> 29U & 7U);
    return now;
  }
  void store_info(const info& i) noexcept {
    const std::uint64_t packed = i.base_number | std::uint64_t{i.away} << 16U |
                                 std::uint64_t{i.count} << 24U | std::uint64_t{i.lost} << 29U;
    store_bits(info_word, ~std::uint64_t{0} << info_shift, packed << info_shift);
  }

  // The frame with the most slots that holds these two keys. Its keys lie in the middle if
  // possible. It never wraps around the end of the type.
  static frame frame_for(std::uint64_t lowest, std::uint64_t highest) noexcept {
    for (unsigned lost = 0; lost < layout::most_lost; ++lost) {
      const unsigned width = 8 + layout::rest_bits[lost];
      const std::uint64_t last = mask(width);
      const std::uint64_t highest_base = lowest >> layout::base_shift << layout::base_shift;
      if (highest - highest_base > last) continue;
      const std::uint64_t spare = last - (highest - lowest);
      const std::uint64_t wanted = lowest - std::min(lowest, spare / 2);
      const std::uint64_t least = highest - std::min(highest, last);
      const std::uint64_t rounded_up =
          (least + mask(layout::base_shift)) >> layout::base_shift << layout::base_shift;
      const std::uint64_t type_end = mask(layout::key_bits) - last;
      const std::uint64_t base = std::min(std::max(wanted, rounded_up), type_end);
      return {base >> layout::base_shift, lost};
    }
    return {0, layout::most_lost};
  }
  // Sets `wanted` to a frame in which the key has room beside the keys that are there.
  bool finds_frame_for(Key key, info& wanted) const noexcept {
    const std::uint64_t number = rank_number(key);
    if (wanted.count < wanted.slots() && lies_in(number, wanted)) return true;
    if (wanted.count >= capacity) return false;
    std::uint64_t lowest = number;
    std::uint64_t highest = number;
    for_each_key([&](unsigned /*slot*/, Key k) {
      lowest = std::min(lowest, rank_number(k));
      highest = std::max(highest, rank_number(k));
    });
    const frame best = frame_for(lowest, highest);
    if (wanted.count >= best.slots()) return false;
    wanted.take(best);
    return true;
  }
  static bool lies_in(std::uint64_t number, const info& i) noexcept {
    return distance_of(number, i.base()) >> 8U >> i.rest_bits() == 0;
  }
  void encode_again(const info& wanted) noexcept {
    std::array<Key, capacity> keys;
    for_each_key([&](unsigned slot, Key k) { keys[slot] = k; });
    store_info(wanted);
    if constexpr (Rules::encodes_again) {
      for (unsigned slot = 0; slot < wanted.count; ++slot) set_key(slot, keys[slot], wanted);
    }
  }

  unsigned find(Key wanted, const info& now) const noexcept {
    const distance d = distance_of(rank_number(wanted), now.base());
    const distance rest = d >> 8U;
    const unsigned bits = now.rest_bits();
    if (rest >> bits != 0) return no_slot;
    const unsigned slot = prints_.find(print_of(d), now.count,
                                       [&](unsigned at) { return rest_at(at, bits) == rest; });
    return slot == capacity ? no_slot : slot;
  }

  // Distances count within the type: a key before the base is far behind it.
  static distance distance_of(std::uint64_t number, std::uint64_t base) noexcept {
    return (number - base) & mask(layout::key_bits);
  }
  static Key key_of(distance rest, std::uint8_t print, std::uint64_t base) noexcept {
    return key_of_rank<Key>(base + (rest << 8U | (print ^ hash(rest))));
  }
  static constexpr std::uint64_t hash_multiplier = 0x9E37'79B9'7F4A'7C15u;  // the golden ratio's
  static std::uint8_t hash(distance rest) noexcept {
    return static_cast<std::uint8_t>((rest * hash_multiplier) >> 56U);
  }
  static std::uint8_t print_of(distance d) noexcept {
    return static_cast<std::uint8_t>(d) ^ hash(d >> 8U);
  }
  static constexpr std::uint64_t mask(unsigned bits) noexcept {
    return bits == 0 ? 0 : ~std::uint64_t{0} >> (64 - bits);
  }

  // A rest may lie across two words. A racing reader may compute a bit behind the end.
  distance rest_at(unsigned slot, unsigned bits) const noexcept {
    const unsigned first = slot * bits;
    const std::size_t word = std::min<std::size_t>(first / 64, info_word);
    const std::size_t next = std::min<std::size_t>(word + 1, info_word);
    const unsigned shift = first % 64;
    const std::uint64_t low = words_[word].template load<racing>() >> shift;
    const std::uint64_t high = words_[next].template load<racing>() << 1U << (63 - shift);
    return (low | high) & mask(bits);
  }
  void set_key(unsigned slot, Key key, const info& now) noexcept {
    const distance d = distance_of(rank_number(key), now.base());
    const unsigned bits = now.rest_bits();
    prints_.set(slot, print_of(d));
    const distance rest = d >> 8U;
    const unsigned first = slot * bits;
    const unsigned shift = first % 64;
    store_bits(first / 64, mask(bits) << shift, rest << shift);
    if (shift + bits > 64)
      store_bits(first / 64 + 1, mask(bits) >> (64 - shift), rest >> (64 - shift));
  }
  void store_bits(std::size_t word, std::uint64_t where, std::uint64_t what) noexcept {
    words_[word].template store<racing>((words_[word].template load<racing>() & ~where) | what);
  }

  prints_type prints_;
  // The rests, and the info in the upper half of the last word.
  std::array<field<std::uint64_t>, layout::words> words_{};
  std::array<field<Value>, capacity> values_;
};

// Buckets that take each other's keys. A slot's number is bucket * (slots of a bucket) + slot.
template <std::integral Key, class Value, class Sync, unsigned Buckets, std::size_t Bytes = 128,
          class Rules = bucket_rules>
class hashed_buckets {
  static_assert(std::has_single_bit(Buckets) && Buckets >= 2);

 public:
  using rules = Rules;
  using bucket = hashed_bucket<Key, Value, Sync, Bytes, Rules>;
  static_assert(sizeof(bucket) == Bytes);
  static constexpr unsigned count = Buckets;
  static constexpr unsigned slots_each = bucket::capacity;
  static constexpr unsigned capacity = Buckets * slots_each;
  // Keys of any distance have room for so many.
  static constexpr unsigned certain_capacity = Buckets * bucket::certain_capacity;

  static unsigned home_of(Key key) noexcept {
    constexpr unsigned shift = 64 - std::countr_zero(Buckets);
    return static_cast<unsigned>((static_cast<std::uint64_t>(key) * 0x9E37'79B9'7F4A'7C15u) >>
                                 shift);
  }
  const bucket& at(unsigned b) const noexcept { return buckets_[b]; }
  bucket& at(unsigned b) noexcept { return buckets_[b]; }
  bucket& of_slot(unsigned slot) noexcept { return buckets_[slot / slots_each]; }
  const bucket& of_slot(unsigned slot) const noexcept { return buckets_[slot / slots_each]; }

  Key key(unsigned slot) const noexcept { return of_slot(slot).key(slot % slots_each); }
  Value value(unsigned slot) const noexcept { return of_slot(slot).value(slot % slots_each); }
  void set_value(unsigned slot, const Value& v) noexcept {
    of_slot(slot).set_value(slot % slots_each, v);
  }
  template <class Fn>
  void for_each_key(Fn&& fn) const noexcept {
    for (unsigned b = 0; b < Buckets; ++b) {
      buckets_[b].for_each_key([&](unsigned slot, Key k) { fn(b * slots_each + slot, k); });
    }
  }
  unsigned used() const noexcept {
    unsigned n = 0;
    for (const bucket& one : buckets_) n += one.count();
    return n;
  }

  unsigned find(Key wanted) const noexcept {
    const unsigned home = home_of(wanted);
    unsigned away = 0;
    const unsigned slot = buckets_[home].find(wanted, away);
    if (slot != no_slot) return home * slots_each + slot;
    return away == 0 ? no_slot : find_away(wanted, home, away);
  }

  // Looks only in the key's home, and prefetches the other buckets in which the key may be.
  unsigned approach(Key wanted) const noexcept {
    const unsigned home = home_of(wanted);
    unsigned away = 0;
    const unsigned slot = buckets_[home].find(wanted, away);
    if (slot != no_slot) return home * slots_each + slot;
    prefetch_groups(away);
    return no_slot;
  }

  // Calls fn(bucket) for the buckets with room for an absent key, until fn returns true: the home
  // first, then those that need no other frame, then the others. Returns whether fn did.
  template <class Fn>
  bool any_with_room(Key key, Fn&& fn) const noexcept {
    const unsigned home = home_of(key);
    if (buckets_[home].has_room_for(key) && fn(home)) return true;
    for (const bool easy : {true, false}) {
      for (unsigned step = 1; step < Buckets; ++step) {
        const bucket& other = buckets_[home ^ step];
        if (other.has_easy_room_for(key) != easy) continue;
        if ((easy || other.has_room_for(key)) && fn(home ^ step)) return true;
      }
    }
    return false;
  }
  bool has_room_for(Key key) const noexcept {
    return any_with_room(key, [](unsigned /*b*/) { return true; });
  }
  // The key must be absent.
  bool insert(Key key, const Value& v) noexcept {
    return any_with_room(key, [&](unsigned b) {
      insert_in(b, key, v);
      return true;
    });
  }
  // Into this bucket, which must have room for it.
  void insert_in(unsigned b, Key key, const Value& v) noexcept {
    buckets_[b].insert(key, v);
    if (const unsigned home = home_of(key); home != b) note_away(home, b);
  }
  void erase(unsigned slot) noexcept { of_slot(slot).erase(slot % slots_each); }
  void clear() noexcept {
    for (bucket& one : buckets_) one.clear();
  }

  // How many keys from `lowest` to `highest` surely have room.
  static unsigned room_between(Key lowest, Key highest) noexcept {
    return Buckets * bucket::room_between(lowest, highest);
  }
  // Whether `more` absent keys from `lowest` to `highest` surely have room beside those that are
  // there. All of them together then have room in empty buckets, too.
  bool has_room_for(Key lowest, Key highest, unsigned more) const noexcept {
    for_each_key([&](unsigned /*slot*/, Key k) {
      lowest = std::min(lowest, k);
      highest = std::max(highest, k);
    });
    const unsigned each = bucket::room_between(lowest, highest);
    unsigned free = 0;
    unsigned there = 0;
    for (const bucket& one : buckets_) {
      const unsigned n = one.count();
      free += each - std::min(each, n);
      there += n;
    }
    return more <= free && there + more <= each * Buckets;
  }

  // Keeps the records whose keys are wanted. Then sends away keys home where there is room.
  template <class IsWanted>
  void keep_if(IsWanted&& is_wanted) noexcept {
    struct away_key {
      Key key;
      std::uint8_t bucket;
    };
    std::array<away_key, capacity> away;
    unsigned away_count = 0;
    for (unsigned b = 0; b < Buckets; ++b) {
      buckets_[b].keep_if([&](Key k) {
        if (!is_wanted(k)) return false;
        if (home_of(k) != b) away[away_count++] = {k, static_cast<std::uint8_t>(b)};
        return true;
      });
      buckets_[b].set_away(0);
    }
    for (unsigned i = 0; i < away_count; ++i) {
      bucket& from = buckets_[away[i].bucket];
      const unsigned home = home_of(away[i].key);
      const unsigned slot = from.find(away[i].key);
      if (buckets_[home].insert(away[i].key, from.value(slot))) {
        from.erase(slot);
      } else if constexpr (Rules::keeps_away_keys) {
        note_away(home, away[i].bucket);
      }
    }
  }

 private:
  static constexpr unsigned groups_max = 8;
  static constexpr unsigned group_size = std::max(1U, Buckets / groups_max);

  void note_away(unsigned home, unsigned in) noexcept {
    if constexpr (Rules::notes_away_keys)
      buckets_[home].set_away(buckets_[home].away() | 1U << in / group_size);
  }
  [[gnu::always_inline]] void prefetch_groups(unsigned groups) const noexcept {
    for (; groups != 0; groups &= groups - 1) {
      const unsigned group = static_cast<unsigned>(std::countr_zero(groups));
      prefetch_bytes<group_size * sizeof(bucket)>(&buckets_[group * group_size % Buckets]);
    }
  }
  [[gnu::noinline]] unsigned find_away(Key wanted, unsigned home, unsigned groups) const noexcept {
    prefetch_groups(groups);
    for (; groups != 0; groups &= groups - 1) {
      const unsigned first = static_cast<unsigned>(std::countr_zero(groups)) * group_size;
      for (unsigned b = first; b < first + group_size; ++b) {
        if (b == home) continue;
        const unsigned slot = find_in(buckets_[b % Buckets], wanted);
        if (slot != no_slot) return b * slots_each + slot;
      }
    }
    return no_slot;
  }

  // A key that is not found is surely absent: a bucket may move its records for another key.
  static unsigned find_in(const bucket& other, Key wanted) noexcept {
    for (;;) {
      const auto seen = other.lock.read();
      const unsigned slot = other.find(wanted);
      if (slot != no_slot || other.lock.validate(seen)) return slot;
    }
  }

  std::array<bucket, Buckets> buckets_;
};

}  // namespace elidex::internal
