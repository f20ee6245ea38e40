// A table of buckets that grows under its readers and writers: hash_map without keys.
//
//   // the bucket that has the keys of this hash, and its version
//   auto home = table.find_home(hash);
//   ... look ...  table.validate / home.bucket->lock.try_lock(home.seen) ...
//   table.try_grow();  // twice as many buckets; their keys follow one bucket at a time
//   table.help_splitting(split);  // some of these; every writer does it now and then
//
// The table grows where it stands. 2^n buckets become 2^(n+1) by a new segment of 2^n unborn ones
// behind them, and the keys of bucket i, when it is split, go on to be those of bucket i and of
// bucket i + 2^n. No bucket is ever moved or left behind, so there is no old table to be reclaimed,
// and nobody needs to be pinned. (A table twice as large, beside the old one, needs both of them
// until the last key has moved and the last reader has left.) What a look-up pays for it is one
// more address from a small array, which stays in the cache.
//
// Invariants
//   * C (coverage): a born bucket i of level L holds exactly the keys with hash = i modulo 2^L, i <
//     2^L.
//   * Every hash is covered by exactly one born bucket. At the beginning by those of the first
//     segment; and a split of i at level L gives i those with bit L clear and i + 2^L, which was
//     unborn, those with bit L set, both at level L + 1.
//   * A bucket is split under its lock. The other half is unborn until its content is complete, and
//     before the lock is let go of it is born: so at no time both, or neither, of the two can be
//     believed to have a key.
//   * Levels only rise, level_ as well; no bucket's level exceeds level_, and all segments up to
//     level_ are there.
//
// Why a reader is right: it believes what it has read from a bucket if the bucket's version stayed
// and its level, which is part of that word, says by C that the bucket is the one for this hash. It
// takes no interest in how it got there. A reader that
//   * meets an unborn bucket takes the index's highest bit away, which leads to one from which that
//     bucket is to be split off, directly or in several steps; bucket 0 is always born.
//   * meets a bucket that has been split further than it thought takes as many bits of the hash as
//     the level says.
//   * looks into a bucket while it is split finds it locked, and waits, or finds its version
//     changed, and begins again.
//   * knows an old level_ begins at a bucket with a lower index, and goes on as above; two growths
//     in a row are no different from one.
// find_home() ends: unborn buckets lead down to the first born one among the hash's indices, a
// bucket with a higher level leads to one above itself in the same list, and what is born stays so.
//
// Erasing against splitting: both hold the bucket's lock, and look for the bucket before; one that
// was split meanwhile has another version, so that try_lock() fails, and an unborn one is never
// locked.
//
// Who splits: growing only publishes the segment. Every change splits its own bucket first if that
// lags behind, and then some of those that nobody has taken yet, by a shared cursor: so the work of
// one change is bounded, all are done after 2^n / buckets_per_turn changes, and nobody ever waits
// for more than one bucket's split. A split needs no memory (hash_map_impl.hpp): nothing can fail
// in the middle.
//
// A failed allocation of a segment leaves the table as it was; chains grow longer and the next
// insert tries again.
//
// Order of locks: one bucket's only. A split locks the old bucket; the unborn one belongs to
// whoever holds that. Thread-safety: all functions but the destructor. Source: Litwin, "Linear
// hashing", VLDB 1980, for buckets that are split where they stand; the level in each bucket is
// that of Fagin et al., "Extendible hashing", TODS 1979. Shalev and Shavit's split-ordered lists
// (J. ACM 2006) reach the same for lists.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>

#include "elidex/internal/hash/hash_bucket.hpp"
#include "elidex/internal/memory/large_memory.hpp"
#include "elidex/internal/memory/memory_name.hpp"

namespace elidex::internal {

template <class Block, class Rules>
class hash_table {
 public:
  struct place {
    Block* bucket;
    std::uint64_t index;
    bucket_lock::token seen;
  };

  hash_table() {
    add_segment(first_level);
    for (std::uint64_t i = 0; i <= low_bits(first_level); ++i)
      bucket_at(i).lock.be_born(first_level);
    level_.store(first_level);
  }
  ~hash_table() {
    for (unsigned level = first_level; level <= level_.load(); ++level) {
      return_zeroed_memory(&bucket_at(first_index(level)), segment_bytes(level));
    }
  }
  hash_table(const hash_table&) = delete;
  hash_table& operator=(const hash_table&) = delete;

  // How many of a hash's low bits choose a bucket.
  unsigned level() const noexcept {
    return level_.load(std::memory_order_acquire);  // pairs with the release store of try_grow()
  }
  std::uint64_t buckets() const noexcept { return std::uint64_t{1} << level(); }
  static constexpr std::uint64_t low_bits(unsigned level) noexcept {
    return (std::uint64_t{1} << level) - 1;
  }

  // find_home() where one look is enough.
  std::optional<place> find_home_at_once(std::uint64_t hash) const noexcept {
    const unsigned here = level();
    const std::uint64_t index = hash & low_bits(here);
    Block& bucket = bucket_at(index);
    const bucket_lock::token seen = bucket.lock.look();
    if (!seen.is_unlocked_at(here)) [[unlikely]]
      return std::nullopt;
    return place{&bucket, index, seen};
  }
  // The bucket whose keys include those of this hash, unlocked, at the version in which it does.
  place find_home(std::uint64_t hash) const noexcept {
    const unsigned here = level();
    const std::uint64_t index = hash & low_bits(here);
    Block& bucket = bucket_at(index);
    const bucket_lock::token seen = bucket.lock.look();
    if (seen.is_unlocked_at(here)) [[likely]]
      return {&bucket, index, seen};
    return find_home_from(index, hash);
  }
  // Where find_home() will look first.
  const Block& first_look(std::uint64_t hash) const noexcept {
    return bucket_at(hash & low_bits(level()));
  }

  Block& bucket_at(std::uint64_t index) const noexcept {
    const auto segment = static_cast<unsigned>(std::bit_width(index | low_bits(first_level)));
    // acquire: pairs with the release store of add_segment().
    const std::uintptr_t from = segments_[segment].load(std::memory_order_acquire);
    return *reinterpret_cast<Block*>(from + index * sizeof(Block));
  }

  enum class growth : std::uint8_t { done, not_now, no_memory };

  // Makes room for twice as many, unless the last growth is not over or another thread is at it.
  growth try_grow() noexcept {
    if (growing_.exchange(true)) return growth::not_now;
    const unsigned now = level();
    growth result = growth::not_now;
    if (!is_splitting() && now < bucket_lock::level_max) {
      try {
        add_segment(now + 1);
        // release: pairs with level(): whoever reads this level finds the segment.
        level_.store(now + 1, std::memory_order_release);
        cursor_.store(cursor_for(now, 0));
        result = growth::done;
      } catch (const std::bad_alloc&) {
        result = growth::no_memory;
      }
    }
    growing_.store(false);
    wake_waiters(&growing_);
    return result;
  }

  // Until try_grow() of other threads has returned.
  void wait_for_growth() const noexcept {
    const auto grows = [this] { return growing_.load(); };
    if (grows()) wait_while<looks::often>(&growing_, grows);
  }

  // Whether there are buckets left to be split that nobody has taken.
  bool is_splitting() const noexcept {
    // relaxed: only a hint; pairs with the exchanges on the cursor, which decide.
    return has_more(cursor_.load(std::memory_order_relaxed));
  }
  // Splits a few of them. split_one(place, level) locks the bucket, splits it once and unlocks it,
  // or returns because it has changed.
  template <class SplitOne>
  void help_splitting(SplitOne&& split_one) noexcept {
    if (!has_more(cursor_.load())) return;
    const std::uint64_t taken = cursor_.fetch_add(Rules::buckets_per_turn);
    const unsigned from_level = level_of(taken);
    for (unsigned i = 0; i < Rules::buckets_per_turn && has_more(taken + i); ++i) {
      const std::uint64_t index = position_of(taken) + i;
      for (;;) {
        const place p = find_home_from(index, index);
        if (p.seen.level() > from_level) break;
        split_one(p);
      }
    }
  }

  std::size_t memory_bytes() const noexcept { return buckets() * sizeof(Block); }

 private:
  static constexpr unsigned first_level = Rules::first_level;
  static_assert(first_level >= 1 && sizeof(std::uintptr_t) <= sizeof(std::uint64_t));

  // The segment that a growth to this level adds; the first one begins at bucket 0.
  static constexpr std::uint64_t first_index(unsigned level) noexcept {
    return level == first_level ? 0 : std::uint64_t{1} << (level - 1);
  }
  static constexpr std::size_t segment_bytes(unsigned level) noexcept {
    return ((std::uint64_t{1} << level) - first_index(level)) * sizeof(Block);
  }

  void add_segment(unsigned level) {
    void* const memory = obtain_zeroed_memory(segment_bytes(level));
    name_memory(memory, segment_bytes(level), "bucket", sizeof(Block), 16);
    // As if it began at bucket 0. release: pairs with bucket_at().
    segments_[level].store(
        reinterpret_cast<std::uintptr_t>(memory) - first_index(level) * sizeof(Block),
        std::memory_order_release);
  }

  [[gnu::noinline]] place find_home_from(std::uint64_t index, std::uint64_t hash) const noexcept {
    for (;;) {
      Block& bucket = bucket_at(index);
      const bucket_lock::token seen = bucket.lock.read();
      if (!seen.is_born()) {
        index &= ~std::bit_floor(index);
        continue;
      }
      const std::uint64_t covered = hash & low_bits(seen.level());
      if (covered == index || !Rules::checks_coverage) return {&bucket, index, seen};
      index = covered;
    }
  }

  // The cursor: the level that is to be left, and the next bucket of it.
  static constexpr unsigned cursor_level_shift = 56;
  static constexpr std::uint64_t cursor_for(unsigned level, std::uint64_t position) noexcept {
    return std::uint64_t{level} << cursor_level_shift | position;
  }
  static constexpr unsigned level_of(std::uint64_t cursor) noexcept {
    return static_cast<unsigned>(cursor >> cursor_level_shift);
  }
  static constexpr std::uint64_t position_of(std::uint64_t cursor) noexcept {
    return cursor & low_bits(cursor_level_shift);
  }
  static constexpr bool has_more(std::uint64_t cursor) noexcept {
    return position_of(cursor) >> level_of(cursor) == 0;
  }

  std::atomic<unsigned> level_{0};
  std::array<std::atomic<std::uintptr_t>, bucket_lock::level_max + 1> segments_{};
  alignas(128) std::atomic<std::uint64_t> cursor_{cursor_for(0, 1)};
  std::atomic<bool> growing_{false};
};

}  // namespace elidex::internal
