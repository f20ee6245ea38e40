// A cache that guesses the ID of a value by the value's hash, in one access. The caller checks the
// guess.
//
//   remembered_ids<std::uint32_t> remembered;
//   if (auto id = remembered.guess(hash); id && value_of(*id) == value) return *id;
//   ... find it out ...
//   remembered.remember(hash, id, [&] { return values.size(); });
//
// Thread-safety: all functions but constructor and destructor, from any thread. A thread that gets
// an ID as a guess sees what the remembering thread had seen of its value.
// Errors: none. Without memory the table keeps its size.
//
// Implementation notes
// The cache is a table of IDs, each with the upper half of its value's hash. The lower half gives
// a pair of places. A later value replaces the earlier one of the two that are there. The upper
// half rejects nearly all wrong guesses, each of which would cost a read of another value. So the
// table is never full, and a caller that checks the guess never gets a wrong ID. Measured with
// 1,000 values in random order: nine of ten guesses are right. With one place for each value, and
// without pairs, two of three were.
//
// The table begins small. It doubles when values replace each other and there are more values than
// pairs. So it stays small if no value comes twice. A doubling moves nothing: half of the
// remembered IDs are then searched at other places, and are remembered again. If there are too many
// values for the largest table, the cache gives up and returns no more guesses.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>

#include "elidex/internal/column/append_only_array.hpp"

namespace elidex::internal {

template <class Id>
class remembered_ids {
 public:
  std::optional<Id> guess(std::uint64_t hash) const noexcept {
    // acquire: pairs with the release store in grow(): its places have memory.
    const std::size_t pairs = size_.load(std::memory_order_acquire);
    if (pairs == 0) return std::nullopt;
    const pair& at = pairs_[hash & (pairs - 1)];
    // acquire: pairs with remember(): the value of this ID is written. Both loads come before the
    // comparisons, because no branch can be predicted.
    const std::uint64_t newer = at.newer.load(std::memory_order_acquire);
    const std::uint64_t older = at.older.load(std::memory_order_acquire);
    const std::uint64_t found = newer >> tag_shift == hash >> tag_shift ? newer : older;
    const auto id = static_cast<Id>(found);
    if (found >> tag_shift != hash >> tag_shift || id == nothing) return std::nullopt;
    return static_cast<Id>(id - 1);
  }

  // distinct() returns how many values have IDs. It is called when values replace each other. No ID
  // is the greatest Id.
  template <class Distinct>
  void remember(std::uint64_t hash, Id id, Distinct&& distinct) noexcept {
    // pairs with grow(), as in guess()
    const std::size_t pairs = size_.load(std::memory_order_acquire);
    if (pairs == 0) {
      if (!given_up_.load()) grow(pairs_min, 0);
      return;
    }
    pair& at = pairs_[hash & (pairs - 1)];
    const std::uint64_t stored = (hash >> tag_shift << tag_shift) | static_cast<Id>(id + 1);
    // acquire: pairs with the stores below. The value of the ID that moves on is written.
    const std::uint64_t before = at.newer.load(std::memory_order_acquire);
    if (before == stored) return;
    // pairs with the store below; only compared
    const std::uint64_t lost = at.older.load(std::memory_order_relaxed);
    at.older.store(before, std::memory_order_release);  // pairs with guess()
    at.newer.store(stored, std::memory_order_release);  // pairs with guess()
    if (lost == 0 || lost == stored || !note_loss(pairs)) return;
    const std::size_t values = distinct();
    if (pairs >= values) return;
    if (pairs < pairs_max) {
      grow(2 * pairs, pairs);
    } else if (2 * pairs < values) {
      given_up_.store(true);
      size_.store(0);
    }
  }

  std::size_t memory_bytes() const noexcept { return pairs_.memory_bytes(); }

 private:
  static_assert(sizeof(Id) <= 4);
  static constexpr unsigned tag_shift = 32;
  static constexpr Id nothing = 0;
  struct pair {
    std::atomic<std::uint64_t> newer{0};
    std::atomic<std::uint64_t> older{0};
  };
  // Chosen: nearly no memory compared with an index. A quarter of the places is lost before the
  // table doubles.
  static constexpr std::size_t pairs_min = 128;
  // Measured, on a CPU with 1 MiB of second-level cache. For 100 thousand values a guess takes two
  // thirds of the time of a descent of the tree. For a million values, table and tree evict each
  // other from the cache, and a guess takes longer with any number of places.
  static constexpr std::size_t pairs_max = std::size_t{1} << 17;
  static constexpr std::size_t losses_share = 2;  // of the pairs

  // Counts a loss and returns whether there have been many. relaxed throughout: pairs with itself.
  // A loss that is not counted because another thread counts too only delays the doubling.
  bool note_loss(std::size_t pairs) noexcept {
    const std::size_t losses =
        (losses_.load(std::memory_order_relaxed) + 1) % (pairs / losses_share);
    losses_.store(losses, std::memory_order_relaxed);
    return losses == 0;
  }
  void grow(std::size_t wanted, std::size_t pairs) noexcept {
    try {
      pairs_.provide(wanted);
    } catch (const std::bad_alloc&) {
      return;
    }
    // release: pairs with guess(). Fails if another thread has doubled the table.
    size_.compare_exchange_strong(pairs, wanted, std::memory_order_release,
                                  std::memory_order_relaxed);
  }

  append_only_array<pair> pairs_{"remembered IDs"};
  std::atomic<std::size_t> size_{0};  // how many of the pairs are used, a power of two
  std::atomic<std::size_t> losses_{0};
  std::atomic<bool> given_up_{false};
};

}  // namespace elidex::internal
