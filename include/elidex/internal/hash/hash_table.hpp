// A hash table of buckets that grows in place while threads read and write it: hash_map without
// keys.
//
//   // the bucket that has the keys of this hash, and its version
//   auto home = table.find_home(hash);
//   ... look ...  home.bucket->lock.validate(home.seen) / home.bucket->lock.try_lock(home.seen) ...
//   table.try_grow();    // twice as many buckets, whose keys follow one bucket at a time
//   table.try_shrink();  // half as many, likewise
//   table.help(split, merge);  // some of these; every writer does it now and then
//
// Thread-safety: all functions but constructor and destructor, from any thread.
// Errors: std::bad_alloc from the constructor. try_grow() returns growth::no_memory, and leaves the
// table as it was. Chains then grow longer, and the next insert tries again. try_shrink() cannot
// fail: what is not merged for lack of memory stays where it is.
//
// Implementation notes
// A growth adds a new segment of 2^n unborn buckets behind 2^n buckets, which makes 2^(n+1). When
// bucket i is split, its keys are divided between bucket i and bucket i + 2^n. No bucket ever
// moves. So there is no old table to reclaim, and no thread needs a pin. (A second table of twice
// the size would need both tables until the last key has moved and the last reader has left.) The
// price is one more address for each look-up, from a small array that stays in the cache.
//
// Invariants
//   * C (coverage): a born bucket i of level L holds exactly the keys with hash = i modulo 2^L, i <
//     2^L.
//   * Exactly one born bucket covers each hash. At the beginning these are the buckets of the first
//     segment. A split of i at level L leaves i the hashes with bit L clear, and gives those with
//     bit L set to i + 2^L, which was unborn. Both are then at level L + 1.
//   * A bucket is split under its lock. The other half is unborn until its content is complete. It
//     is born before the lock is released. So at no time do validated reads show a key in both
//     halves, or in neither.
//   * A bucket's level rises only while level_ is above it, and falls only while level_ is below
//     it. A thread that changes a level reads level_ under the bucket's lock. No bucket's level
//     exceeds level_, except during a shrink, when it may be level_ + 1. All segments up to these
//     levels are there.
//
// Why a reader is right. It believes what it has read from a bucket under two conditions. The
// bucket's version has not changed, and by C its level, which is part of the same word, tells that
// the bucket is the one for this hash. How the reader came to the bucket does not matter. A reader
// that
//   * finds an unborn bucket clears the index's highest bit. That leads to a bucket from which the
//     unborn one is to be split off, directly or in several steps. Bucket 0 is always born.
//   * finds a bucket that has been split further than expected takes as many bits of the hash as
//     the level tells.
//   * reads a bucket during its split finds it locked, and waits. Or it finds the version changed,
//     and begins again.
//   * has an old level_ begins at a bucket with a lower index, and continues as above. Two growths
//     in a row are no different from one.
//
// find_home() ends unless buckets are split and merged for ever. Unborn buckets lead down to the
// first born one among the hash's indices. A bucket with a higher level leads up in the same list.
//
// A shrink first lowers level_ from L to L - 1. Then each bucket i < 2^(L-1) of level L is merged
// with its other half, bucket i + 2^(L-1): under the locks of both, the keys move to bucket i. The
// other half is unborn again, and bucket i has level L - 1. Both are locked all the while, so no
// validated read shows a key in both halves, or in neither. Growing again before the end raises
// level_ back to L, and splits what was merged.
//
// When all are merged, the segment of level L has unborn buckets only, and none of them can be born
// before the table grows. Its pages go back to the system. Its addresses stay, because a late
// reader may look there, and finds zeros: an unborn bucket. The cursor gives each bucket to one
// turn, and a shrink begins only when no turn is open. So when the cursor is at its end, no turn is
// open, and no merge has failed, each bucket was merged in this shrink. After a failed merge the
// next try_shrink() begins the cursor again. A thread that sleeps in its turn delays shrinks, and
// nothing else. (In a forked child, the turns of the parent's other threads stay open, so the
// child's copy of the table may never shrink.)
//
// ABA: a reader that saw a bucket before a shrink must not find its word again afterwards, although
// discarded pages are zero. A bucket is split off from the same lower bucket each time, and is
// merged with it. A merge gives the lower bucket a count above those of both, and a bucket is born
// with a count above the lower one's. So counts never come again.
//
// An erase beside a split: both hold the bucket's lock, and find the bucket before. If the bucket
// was split meanwhile, its version has changed, and try_lock() fails. An unborn bucket is never
// locked.
//
// Who splits. A growth only publishes the segment. Every change first splits its own bucket if that
// lags behind. It then splits a few buckets that no thread has taken yet, by a shared cursor. So
// the work of one change is bounded, and all buckets are split after 2^n / buckets_per_turn
// changes. Changes of a value that find their bucket at the table's level do not count: they split
// nothing. No thread waits for more than one bucket's split. A split needs no memory
// (hash_index_impl.hpp), so it cannot fail halfway.
//
// Order of locks: a thread that holds a bucket's lock never waits for another one. A split locks
// the old bucket. The unborn bucket belongs to the thread that holds that lock. A merge locks the
// lower bucket, and then tries to lock the other one. If that fails, it unlocks the lower one and
// starts over.
//
// Sources: Litwin, "Linear hashing", VLDB 1980, for buckets that are split in place. Fagin et al.,
// "Extendible hashing", TODS 1979, for the level in each bucket. Shalev and Shavit's split-ordered
// lists (J. ACM 2006) reach the same for lists.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>

#include "elidex/internal/hash/hash_bucket.hpp"
#include "elidex/internal/memory/memory_name.hpp"
#include "elidex/internal/memory/memory_source.hpp"

namespace elidex::internal {

template <class Block, class Rules>
class hash_table {
 public:
  struct bucket_ref {
    Block* bucket;
    std::uint64_t index;
    bucket_lock::token seen;
  };

  explicit hash_table(memory_source& source) : source_(source) {
    add_segment(first_level);
    for (std::uint64_t i = 0; i <= low_bits(first_level); ++i)
      bucket_at(i).lock.be_born(first_level, {});
    set_level(first_level);
  }
  ~hash_table() {
    for (unsigned level = first_level; level <= level_max; ++level) {
      if (segment_of(level).load() == 0) break;
      void* const memory = &bucket_at(first_index(level));
      if ((discarded_.load() >> level & 1U) != 0) {
        source_.give_back_discarded(memory, segment_bytes(level));
      } else {
        source_.give_back_zeroed(memory, segment_bytes(level));
      }
    }
  }
  hash_table(const hash_table&) = delete;
  hash_table& operator=(const hash_table&) = delete;

  // The number of a hash's low bits that choose a bucket.
  unsigned level() const noexcept { return current_level().level(); }
  // The same for a thread that has locked a bucket in order to change its level. The load comes
  // after the lock in the single order of seq_cst operations. So if another thread looked at the
  // bucket before that, and after it had learned of a shrink, this thread learns of the shrink,
  // too.
  unsigned level_under_lock() const noexcept { return packed_level(level_.load()).level(); }
  std::uint64_t buckets() const noexcept { return std::uint64_t{1} << level(); }
  static constexpr std::uint64_t low_bits(unsigned level) noexcept {
    return (std::uint64_t{1} << level) - 1;
  }
  static constexpr unsigned level_max = bucket_lock::level_max;
  // Returns whether the system may have the memory that the table needs to reach a level.
  bool may_grow_to(unsigned wanted) const noexcept {
    std::size_t bytes = 0;
    for (unsigned i = first_level + 1; i <= wanted; ++i) {
      if (segment_of(i).load() == 0 || (discarded_.load() >> i & 1U) != 0)
        bytes += segment_bytes(i);
    }
    return bytes == 0 || source_.may_obtain(bytes);
  }

  // The level at which a look-up begins.
  packed_level current_level() const noexcept {
    // acquire: pairs with the store of try_grow()
    return packed_level(level_.load(std::memory_order_acquire));
  }
  // The bucket of a hash if it is at this level. So a token that is_unlocked_at(here) shows that it
  // is the bucket that has the keys of the hash.
  Block& bucket_for(std::uint64_t hash, packed_level here) const noexcept {
    return bucket_at(hash & here.mask());
  }
  // Returns the bucket whose keys include those of this hash, unlocked, and the version at which it
  // does.
  bucket_ref find_home(std::uint64_t hash) const noexcept {
    const packed_level here = current_level();
    const std::uint64_t index = hash & here.mask();
    Block& bucket = bucket_at(index);
    const bucket_lock::token seen = bucket.lock.look();
    if (seen.is_unlocked_at(here)) [[likely]]
      return {&bucket, index, seen};
    return find_home_from(index, hash);
  }
  // The bucket at which find_home() looks first.
  const Block& first_look(std::uint64_t hash) const noexcept {
    return bucket_for(hash, current_level());
  }

  Block& bucket_at(std::uint64_t index) const noexcept {
    const auto highest_bit =
        std::size_t{63} ^ static_cast<std::size_t>(std::countl_zero(index | low_bits(first_level)));
    // acquire: pairs with the release store of add_segment().
    const std::uintptr_t from = segments_[highest_bit].load(std::memory_order_acquire);
    return *reinterpret_cast<Block*>(from + index * sizeof(Block));
  }

  enum class growth : std::uint8_t { done, not_now, no_memory };

  // Doubles the number of buckets, unless the last growth is not finished or another thread grows
  // or shrinks the table.
  growth try_grow() noexcept {
    if (growing_.exchange(true)) return growth::not_now;
    const unsigned now = level();
    growth result = growth::not_now;
    if (!is_splitting() && now < bucket_lock::level_max) {
      try {
        if (!is_shrinking_) add_segment(now + 1);
        is_shrinking_ = false;
        set_level(now + 1);  // pairs with level(): a thread that reads it finds the segment
        cursor_.store(cursor_for(now, 0));
        result = growth::done;
      } catch (...) {
        result = growth::no_memory;
      }
    }
    end_growth();
    return result;
  }

  // Halves the number of buckets, or continues a shrink of which some merges have failed. Does
  // nothing while buckets remain to be split or merged, while another thread grows or shrinks the
  // table, or unless is_wanted(level_with_keys()) returns true.
  template <class IsWanted>
  void try_shrink(IsWanted&& is_wanted) noexcept {
    if (growing_.exchange(true)) return;
    const unsigned from = level_with_keys();
    if (is_merged()) {
      discard();
    } else if (!is_busy() && (is_shrinking_ || may_shrink_from(from)) && is_wanted(from)) {
      set_level(from - 1);
      is_shrinking_ = true;
      has_failed_.store(false);
      cursor_.store(merging_bit | cursor_for(from - 1, 0));
    }
    end_growth();
  }
  // Whether a shrink from this level can give memory back, as far as is known.
  bool may_shrink_from(unsigned level) const noexcept {
    const std::size_t bytes = segment_bytes(level);
    return level > first_level &&
           (Rules::wipes_discarded ||
            (bytes >= huge_page_bytes && bytes % huge_page_bytes == 0 && !keeps_pages_.load()));
  }
  // The level up to which buckets may be born.
  unsigned level_with_keys() const noexcept { return level() + (is_shrinking_.load() ? 1 : 0); }

  // Waits until try_grow() has returned in other threads.
  void wait_for_growth() const noexcept {
    const auto grows = [this] { return growing_.load(); };
    if (grows()) wait_while<looks::often>(&growing_, grows);
  }

  // Whether buckets remain to be split or merged that no thread has taken.
  bool needs_help() const noexcept {
    // relaxed: only a hint; pairs with the exchanges on the cursor, which decide.
    return has_more(cursor_.load(std::memory_order_relaxed));
  }
  bool is_splitting() const noexcept {
    const std::uint64_t cursor = cursor_.load();
    return has_more(cursor) && !is_merging(cursor);
  }
  // Splits or merges a few of them.
  //   split_one(bucket_ref)     locks the bucket, splits it once and unlocks it. It returns without
  //                             a split if the bucket or level() has changed.
  //   merge_one(index, level)   merges the bucket of this level with its other half. It returns
  //                             whether no bucket of that level is left there.
  template <class SplitOne, class MergeOne>
  void help(SplitOne&& split_one, MergeOne&& merge_one) noexcept {
    if (!has_more(cursor_.load())) return;
    ++open_turns_;
    const std::uint64_t taken = cursor_.fetch_add(Rules::buckets_per_turn);
    for (unsigned i = 0; i < Rules::buckets_per_turn && has_more(taken + i); ++i) {
      const std::uint64_t index = position_of(taken) + i;
      if (is_merging(taken)) {
        if (!merge_one(index, level_of(taken) + 1)) has_failed_.store(true);
      } else {
        split_from(level_of(taken), index, split_one);
      }
    }
    --open_turns_;
    if (is_merged()) [[unlikely]] {
      while (growing_.exchange(true)) wait_for_growth();
      if (is_merged()) discard();
      end_growth();
    }
  }

  std::size_t memory_bytes() const noexcept { return bytes_.load(); }

 private:
  static constexpr unsigned first_level = Rules::first_level;
  static_assert(first_level >= 1 && sizeof(std::uintptr_t) <= sizeof(std::uint64_t));

  void set_level(unsigned level) noexcept { level_.store(packed_level::of(level).word()); }

  // The first index of the segment that a growth to this level adds. The first segment begins at
  // bucket 0.
  static constexpr std::uint64_t first_index(unsigned level) noexcept {
    return level == first_level ? 0 : std::uint64_t{1} << (level - 1);
  }
  static constexpr std::size_t segment_bytes(unsigned level) noexcept {
    return ((std::uint64_t{1} << level) - first_index(level)) * sizeof(Block);
  }

  std::atomic<std::uintptr_t>& segment_of(unsigned level) noexcept { return segments_[level - 1]; }
  const std::atomic<std::uintptr_t>& segment_of(unsigned level) const noexcept {
    return segments_[level - 1];
  }

  // The segment may be there already, from before a shrink.
  void add_segment(unsigned level) {
    const std::size_t bytes = segment_bytes(level);
    if (segment_of(level).load() != 0) {
      if ((discarded_.load() >> level & 1U) == 0) return;
      source_.count_discarded(bytes);
      discarded_ &= ~(std::uint64_t{1} << level);
      bytes_ += bytes;
      return;
    }
    void* const memory = source_.obtain_zeroed(bytes);
    bytes_ += bytes;
    name_memory(memory, segment_bytes(level), "bucket", sizeof(Block), 16);
    // The address as if the segment began at bucket 0. release: pairs with bucket_at().
    segment_of(level).store(
        reinterpret_cast<std::uintptr_t>(memory) - first_index(level) * sizeof(Block),
        std::memory_order_release);
  }

  [[gnu::noinline]] bucket_ref find_home_from(std::uint64_t index,
                                              std::uint64_t hash) const noexcept {
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

  template <class SplitOne>
  void split_from(unsigned from_level, std::uint64_t index, SplitOne&& split_one) noexcept {
    for (;;) {
      const bucket_ref p = find_home_from(index, index);
      if (p.seen.level() > from_level || level() <= from_level) break;
      split_one(p);
    }
  }

  void end_growth() noexcept {
    growing_.store(false);
    wake_waiters(&growing_);
  }

  // Whether buckets remain to be split or merged, or some thread has not finished its turn.
  bool is_busy() const noexcept {
    return has_more(cursor_.load()) || (Rules::waits_for_turns && open_turns_.load() != 0);
  }

  // Whether a shrink has merged all buckets, and only has to give the memory back. A thread that
  // opens a turn meanwhile finds the cursor at its end, and merges nothing.
  bool is_merged() const noexcept {
    return is_shrinking_.load() && !is_busy() && !has_failed_.load();
  }
  // Gives the memory of the segment without born buckets back. The caller has set growing_.
  void discard() noexcept {
    const unsigned emptied = level_with_keys();
    const std::size_t bytes = segment_bytes(emptied);
    is_shrinking_ = false;
    if (source_.discard_pages(&bucket_at(first_index(emptied)), bytes)) {
      discarded_ |= std::uint64_t{1} << emptied;
      bytes_ -= bytes;
    } else {
      keeps_pages_ = true;
    }
    if constexpr (Rules::wipes_discarded) {
      for (std::uint64_t i = first_index(emptied); i <= low_bits(emptied); ++i) bucket_at(i).wipe();
    }
  }

  // The cursor: whether buckets are merged, the level that buckets are to leave (by a merge: to
  // reach), and the next bucket of it.
  static constexpr std::uint64_t merging_bit = std::uint64_t{1} << 63U;
  static constexpr bool is_merging(std::uint64_t cursor) noexcept {
    return (cursor & merging_bit) != 0;
  }
  static constexpr unsigned cursor_level_shift = 56;
  static constexpr std::uint64_t cursor_for(unsigned level, std::uint64_t position) noexcept {
    return std::uint64_t{level} << cursor_level_shift | position;
  }
  static constexpr unsigned level_of(std::uint64_t cursor) noexcept {
    return static_cast<unsigned>((cursor & ~merging_bit) >> cursor_level_shift);
  }
  static constexpr std::uint64_t position_of(std::uint64_t cursor) noexcept {
    return cursor & low_bits(cursor_level_shift);
  }
  static constexpr bool has_more(std::uint64_t cursor) noexcept {
    return position_of(cursor) >> level_of(cursor) == 0;
  }

  memory_source& source_;
  std::atomic<std::uint64_t> level_{0};  // a packed_level
  // By the highest bit of their buckets' indices.
  std::array<std::atomic<std::uintptr_t>, bucket_lock::level_max> segments_{};
  alignas(128) std::atomic<std::uint64_t> cursor_{cursor_for(0, 1)};
  std::atomic<bool> growing_{false};
  // Written by the thread that has set growing_.
  std::atomic<bool> is_shrinking_{false};
  std::atomic<std::uint64_t> discarded_{0};  // a bit for each segment
  std::atomic<bool> keeps_pages_{false};     // the source or the system does not take them
  std::atomic<std::size_t> bytes_{0};
  // By any thread.
  std::atomic<std::uint64_t> open_turns_{0};
  std::atomic<bool> has_failed_{false};
};

}  // namespace elidex::internal
