// A bucket of hash_map's table: a cache line or two, with a lock, a version and a level in one
// word.
//
//   auto seen = bucket.lock.read();  // waits while a writer is inside, else writes nothing
//   ... tags(), key(i), value(i), next() of the bucket and of the blocks behind it ...
//   if (!bucket.lock.validate(seen)) restart;  // nothing read so far counts before this
//
// Thread-safety: loads from any thread, validated afterwards. Stores under the bucket's lock.
//
// Implementation notes
// A bucket's level L tells which keys belong to the bucket: those whose hash agrees with the
// bucket's index in the lowest L bits. The level lies in the same word as the version. So one
// validated read of a bucket tells its contents, and for which keys they are complete
// (hash_table.hpp). A bucket of level "unborn" has no keys of its own yet.
//
// The word: its lowest byte has the lock in bit 0 and the level + 1 (0: unborn) in the other bits.
// So one comparison of a byte finds both. The rest counts changes. These 56 bits do not wrap.
// Zeroed memory is a table of unborn buckets. A bucket may be born again after a shrink, even in
// memory that is zero again. Its count continues above each count that it has had (hash_table.hpp).
//
// Why a validated read is right: as in version_lock.hpp, with the same fences.
//
// Why one thread's operations take effect in their order. read() is a seq_cst load and try_lock() a
// seq_cst exchange, and hash_map needs no more. Suppose that two threads each change a bucket, then
// read the other's bucket, and both miss the change. Each change begins with an exchange, and each
// read begins with a load of the word. In the single order of all seq_cst operations, each load
// then precedes the other thread's exchange and follows its own thread's exchange. That is a cycle,
// so it cannot happen. Other maps have a fence in each operation for this (epoch_pin's). A fence
// would keep the processor from beginning the next look-up while this one waits for memory.
//
// A block holds up to `slots` records, without gaps. Their fingerprints and number lie in one word,
// the tags. When a bucket is full, blocks of the same shape are chained to it. A block that gets a
// successor gives up its last slot for the successor's address. So in every chain all blocks but
// the last one hold `slots_chained` records.
//
// Every field is read and written with relaxed atomics. A block that is not a bucket has an unused
// lock. While the block is free, its pool keeps a link there. So a late reader, which may still
// read the other fields, races with no writer.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "elidex/internal/sync/backoff.hpp"
#include "elidex/internal/sync/parking.hpp"
#include "elidex/internal/sync/version_lock.hpp"

#ifdef __SSE2__
#  include <emmintrin.h>
#endif

namespace elidex::internal {

// A level, and the mask of its low bits, in one word: a look-up needs both.
class packed_level {
 public:
  static constexpr unsigned level_max = 48;

  explicit constexpr packed_level(std::uint64_t word = 0) noexcept : word_(word) {}
  static constexpr packed_level of(unsigned level) noexcept {
    return packed_level(((std::uint64_t{1} << level) - 1) << 8U | byte_of(level));
  }
  // The lowest byte of a bucket's word at this level, unlocked.
  static constexpr std::uint8_t byte_of(unsigned level) noexcept {
    return static_cast<std::uint8_t>((level + 1) << 1U);
  }

  constexpr std::uint64_t word() const noexcept { return word_; }
  constexpr std::uint64_t mask() const noexcept { return word_ >> 8U; }
  constexpr std::uint8_t byte() const noexcept { return static_cast<std::uint8_t>(word_); }
  constexpr unsigned level() const noexcept { return unsigned{byte()} / 2 - 1; }

 private:
  std::uint64_t word_;
};

class bucket_lock {
 public:
  static constexpr unsigned level_max = packed_level::level_max;

  class token {
   public:
    bool is_born() const noexcept { return (word_ & level_bits) != 0; }
    unsigned level() const noexcept {
      return static_cast<unsigned>((word_ & level_bits) >> 1U) - 1;
    }
    bool is_unlocked_at(packed_level here) const noexcept {
      return static_cast<std::uint8_t>(word_) == here.byte();
    }

   private:
    friend bucket_lock;
    std::uint64_t word_ = 0;
  };

  // Reads the word without waiting. The bucket may be locked. Only for is_unlocked_at().
  [[nodiscard]] token look() const noexcept {
    token seen;
    seen.word_ = word_.load();
    return seen;
  }
  [[nodiscard]] token read() const noexcept {
    token seen = look();
    if ((seen.word_ & locked_bit) != 0) [[unlikely]]
      seen.word_ = wait_until_unlocked();
    return seen;
  }
  [[nodiscard]] bool validate(token seen) const noexcept {
    // acquire fence: pairs with the release fence of try_lock().
    std::atomic_thread_fence(std::memory_order_acquire);
    return word_.load(std::memory_order_relaxed) == seen.word_;  // relaxed: ordered by the fence
  }
  [[nodiscard]] bool try_lock(token seen) noexcept {
    if (!word_.compare_exchange_strong(seen.word_, seen.word_ | locked_bit)) return false;
    // pairs with the acquire fence of validate()
    std::atomic_thread_fence(std::memory_order_release);
    return true;
  }
  token lock() noexcept {
    for (backoff wait;; wait.once()) {
      const token seen = read();
      if (try_lock(seen)) return seen;
    }
  }

  void unlock(token seen) noexcept {
    // release: pairs with the load of look(), and with the next holder's exchange.
    word_.store(seen.word_ + one_change, std::memory_order_release);
    wake_waiters(&word_);
  }
  void unlock_at(token seen, unsigned level) noexcept { unlock_at(seen, level, {}); }
  // With a count above that of the other token, too.
  void unlock_at(token seen, unsigned level, token other) noexcept {
    word_.store(born_above(seen, other, level), std::memory_order_release);  // as above
    wake_waiters(&word_);
  }
  void unlock_unchanged(token seen) noexcept {
    word_.store(seen.word_, std::memory_order_release);  // pairs with look(), as above
    wake_waiters(&word_);
  }
  // As if the pages had been given back. For tests.
  void wipe() noexcept { word_.store(0); }
  void unlock_unborn(token seen) noexcept {
    word_.store((seen.word_ & ~level_bits) + one_change, std::memory_order_release);  // as above
    wake_waiters(&word_);
  }
  // Gives an unborn bucket, to which no other thread writes, its level, and a count above that of
  // the bucket from which it is split off. All that was written to the bucket before becomes
  // visible.
  void be_born(unsigned level, token from) noexcept {
    word_.store(born_above(from, {}, level), std::memory_order_release);  // pairs with look()
  }

 private:
  static constexpr std::uint64_t locked_bit = 1;
  static constexpr std::uint64_t level_bits = 0xFE;
  static constexpr std::uint64_t one_change = 0x100;

  // An unlocked word of this level.
  static std::uint64_t born_above(token one, token other, unsigned level) noexcept {
    const auto count = [](token t) { return t.word_ & ~(level_bits | locked_bit); };
    return (std::max(count(one), count(other)) + one_change) | packed_level::byte_of(level);
  }

  [[gnu::noinline]] std::uint64_t wait_until_unlocked() const noexcept {
    std::uint64_t word = 0;
    wait_while<looks::seldom>(&word_, [&] {
      word = word_.load();
      return (word & locked_bit) != 0;
    });
    return word;
  }

  std::atomic<std::uint64_t> word_{0};
};

// The fingerprints and the number of a block's records: a byte for each slot, the first one's
// lowest. The highest byte has the number, and whether another block follows. A free slot's byte is
// zero, and a fingerprint is at least 2, so that candidates() needs no number of records.
//
// Vector instructions compare the fingerprints where every CPU has them. A look-up that waits for
// its bucket keeps a register of the processor for each result of its instructions. The processor
// begins later look-ups until it has no register left, and it has as many again for vectors.
class block_tags {
 public:
  static constexpr unsigned slots_max = 7;
#ifdef __SSE2__
  using slot_set = std::uint32_t;
#else
  using slot_set = std::uint64_t;
#endif
  static constexpr std::uint8_t print_of(std::uint64_t hash) noexcept {
    return static_cast<std::uint8_t>(std::max<std::uint64_t>(hash >> print_shift, print_min));
  }

  explicit constexpr block_tags(std::uint64_t word = 0) noexcept : word_(word) {}
  constexpr std::uint64_t word() const noexcept { return word_; }

  constexpr unsigned count() const noexcept {
    return static_cast<unsigned>(word_ >> count_shift) & 0x7FU;
  }
  constexpr bool has_next() const noexcept { return (word_ & next_bit) != 0; }
  constexpr std::uint8_t print(unsigned slot) const noexcept {
    return static_cast<std::uint8_t>(word_ >> 8 * slot);
  }

  // A bit for each record that may have the fingerprint of this hash. This includes all records
  // that have it, and occasionally one that does not.
  slot_set candidates(std::uint64_t hash) const noexcept {
#ifdef __SSE2__
    __m128i print = _mm_srli_epi64(_mm_cvtsi64_si128(static_cast<long long>(hash)), print_shift);
    print = _mm_max_epu8(print, _mm_cvtsi32_si128(print_min));
    print = _mm_shufflelo_epi16(_mm_unpacklo_epi8(print, print), 0);
    const __m128i equal = _mm_cmpeq_epi8(_mm_cvtsi64_si128(static_cast<long long>(word_)), print);
    return static_cast<slot_set>(_mm_movemask_epi8(equal)) & 0x7FU;
#else
    // The record that does not have it: its byte differs by 1 and lies behind an equal one.
    constexpr std::uint64_t highest_bits = (ones << 7U) >> 8U;
    const std::uint64_t different = word_ ^ print_of(hash) * ones;
    return (different - ones) & ~different & highest_bits;
#endif
  }
  static unsigned first_slot(slot_set candidates) noexcept {
    return static_cast<unsigned>(std::countr_zero(candidates)) / bits_per_slot;
  }

  // Adds a fingerprint behind the last record.
  constexpr block_tags with(std::uint8_t print) const noexcept {
    return block_tags((word_ | std::uint64_t{print} << 8 * count()) + one_record);
  }
  constexpr block_tags without_last() const noexcept {
    return block_tags(without_print(count() - 1).word_ - one_record);
  }
  constexpr block_tags with_at(unsigned slot, std::uint8_t print) const noexcept {
    return block_tags(without_print(slot).word_ | std::uint64_t{print} << 8 * slot);
  }
  constexpr block_tags with_next() const noexcept { return block_tags(word_ | next_bit); }
  constexpr block_tags without_next() const noexcept { return block_tags(word_ & ~next_bit); }

 private:
#ifdef __SSE2__
  static constexpr unsigned bits_per_slot = 1;
#else
  static constexpr unsigned bits_per_slot = 8;
  static constexpr std::uint64_t ones = 0x0101'0101'0101'0101u;
#endif
  static constexpr unsigned print_shift = 56;
  static constexpr std::uint8_t print_min = 2;
  static constexpr unsigned count_shift = 56;
  static constexpr std::uint64_t one_record = std::uint64_t{1} << count_shift;
  static constexpr std::uint64_t next_bit = std::uint64_t{1} << 63U;

  constexpr block_tags without_print(unsigned slot) const noexcept {
    return block_tags(word_ & ~(std::uint64_t{0xFF} << 8 * slot));
  }

  std::uint64_t word_;
};

// The number of records in a block. Chosen so that a block wastes the fewest bytes of its lines.
struct block_shape {
  unsigned slots;
  std::size_t bytes;

  static constexpr std::size_t line_bytes = 64;

  static constexpr block_shape of(std::size_t record_bytes, std::size_t head_bytes,
                                  unsigned most) noexcept {
    block_shape best{};
    for (unsigned slots = std::min(4U, most); slots <= most; ++slots) {
      const std::size_t bytes =
          (head_bytes + slots * record_bytes + line_bytes - 1) / line_bytes * line_bytes;
      if (best.slots == 0 || bytes * best.slots <= best.bytes * slots) best = {slots, bytes};
    }
    return best;
  }
};

template <class KeySlot, class ValueSlot, unsigned SlotsMax = block_tags::slots_max>
class alignas(block_shape::line_bytes) hash_block {
  struct record {
    field<KeySlot> key;
    field<ValueSlot> value;
  };
  // The address of the next block lies in the last slot's key if the key is made of words.
  static constexpr bool next_takes_a_slot = sizeof(KeySlot) % sizeof(std::uint64_t) == 0;
  struct no_field {};
  using own_next = std::conditional_t<next_takes_a_slot, no_field, field<std::uint64_t>>;
  static constexpr std::size_t head_bytes = 16 + (next_takes_a_slot ? 0 : sizeof(std::uint64_t));

 public:
  static constexpr unsigned slots = block_shape::of(sizeof(record), head_bytes, SlotsMax).slots;
  static constexpr unsigned slots_chained = slots - (next_takes_a_slot ? 1 : 0);
  static_assert(slots_chained >= 1);

  block_tags tags() const noexcept { return block_tags(tags_.template load<true>()); }
  void set_tags(block_tags tags) noexcept { tags_.template store<true>(tags.word()); }

  KeySlot key(unsigned slot) const noexcept { return records_[slot].key.template load<true>(); }
  ValueSlot value(unsigned slot) const noexcept {
    return records_[slot].value.template load<true>();
  }
  void set_value(unsigned slot, const ValueSlot& value) noexcept {
    records_[slot].value.template store<true>(value);
  }
  void set(unsigned slot, const KeySlot& key, const ValueSlot& value) noexcept {
    records_[slot].key.template store<true>(key);
    set_value(slot, value);
  }

  // A racing reader may use the result as an address only after it has validated the version.
  hash_block* next() const noexcept {
    if constexpr (next_takes_a_slot) {
      return reinterpret_cast<hash_block*>(records_[slots - 1].key.template load_word<true>(0));
    } else {
      return reinterpret_cast<hash_block*>(next_.template load<true>());
    }
  }
  void set_next(hash_block* next) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(next);
    if constexpr (next_takes_a_slot) {
      std::array<std::uint64_t, sizeof(KeySlot) / sizeof(std::uint64_t)> words{};
      words[0] = address;
      records_[slots - 1].key.template store<true>(std::bit_cast<KeySlot>(words));
    } else {
      next_.template store<true>(address);
    }
  }

  // Prefetches the next block, if there is one. The address may be of no block, because nothing is
  // validated: a prefetch of any address is harmless.
  void prefetch_next() const noexcept {
    if (tags().has_next()) __builtin_prefetch(next());
  }

  // As if the pages had been given back. For tests.
  void wipe() noexcept {
    lock.wipe();
    set_tags(block_tags());
  }

  // Prefetches the block, at most four cache lines of it, or all of these but the first.
  void prefetch() const noexcept { prefetch_from(0); }
  void prefetch_rest() const noexcept { prefetch_from(block_shape::line_bytes); }

  bucket_lock lock;

 private:
  void prefetch_from(std::size_t begin) const noexcept {
    for (std::size_t at = begin;
         at < std::min<std::size_t>(sizeof(*this), 4 * block_shape::line_bytes);
         at += block_shape::line_bytes) {
      __builtin_prefetch(reinterpret_cast<const std::byte*>(this) + at);
    }
  }

  field<std::uint64_t> tags_;
  [[no_unique_address]] own_next next_;
  std::array<record, slots> records_;
};

}  // namespace elidex::internal
