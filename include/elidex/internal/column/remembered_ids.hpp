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
// table is never full, and a caller that checks the guess never gets a wrong ID.
//
// The table begins small. It doubles when values replace each other and there are fewer than two
// places for each value. So it stays small if no value comes twice. A doubling moves nothing: half
// of the remembered IDs are then searched at other places, and are remembered again. If there are
// too many values for the largest table, the cache gives up and returns no more guesses.
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
    const std::size_t places = size_.load(std::memory_order_acquire);
    if (places == 0) return std::nullopt;
    const std::size_t place = newer_place(hash, places);
    // acquire: pairs with remember(): the value of this ID is written. Both loads come before the
    // comparisons, because no branch can be predicted.
    const std::uint64_t newer = places_[place].load(std::memory_order_acquire);
    const std::uint64_t older = places_[place + 1].load(std::memory_order_acquire);
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
    const std::size_t places = size_.load(std::memory_order_acquire);
    if (places == 0) {
      if (!given_up_.load()) grow(places_min, 0);
      return;
    }
    std::atomic<std::uint64_t>& newer = places_[newer_place(hash, places)];
    std::atomic<std::uint64_t>& older = places_[newer_place(hash, places) + 1];
    const std::uint64_t stored = (hash >> tag_shift << tag_shift) | static_cast<Id>(id + 1);
    // acquire: pairs with the stores below. The value of the ID that moves on is written.
    const std::uint64_t before = newer.load(std::memory_order_acquire);
    if (before == stored) return;
    // pairs with the store below; only compared
    const std::uint64_t lost = older.load(std::memory_order_relaxed);
    older.store(before, std::memory_order_release);  // pairs with guess()
    newer.store(stored, std::memory_order_release);  // pairs with guess()
    if (lost == 0 || lost == stored || !note_loss(places)) return;
    const std::size_t values = distinct();
    if (places >= places_for_each * values) return;
    if (places < places_max) {
      grow(2 * places, places);
    } else if (places < values) {
      given_up_.store(true);
      size_.store(0);
    }
  }

  std::size_t memory_bytes() const noexcept { return places_.memory_bytes(); }

 private:
  static_assert(sizeof(Id) <= 4);
  static constexpr unsigned tag_shift = 32;
  static constexpr Id nothing = 0;
  static std::size_t newer_place(std::uint64_t hash, std::size_t places) noexcept {
    return hash & (places - 2);
  }
  // Chosen: nearly no memory compared with an index. A quarter of the places is lost before the
  // table doubles.
  static constexpr std::size_t places_min = 256;
  // Measured, on a CPU with 1 MiB of second-level cache. For 100 thousand values a guess takes two
  // thirds of the time of a descent of the tree. For a million values, table and tree evict each
  // other from the cache, and a guess takes longer with any number of places.
  static constexpr std::size_t places_max = std::size_t{1} << 18;
  static constexpr std::size_t losses_share = 4;
  // Measured: with 1,000 values a guess finds nine of ten. One place for each value, without pairs,
  // found two of three.
  static constexpr std::size_t places_for_each = 2;

  // Counts a loss and returns whether there have been many. relaxed throughout: pairs with itself.
  // A loss that is not counted because another thread counts too only delays the doubling.
  bool note_loss(std::size_t places) noexcept {
    const std::size_t losses =
        (losses_.load(std::memory_order_relaxed) + 1) % (places / losses_share);
    losses_.store(losses, std::memory_order_relaxed);
    return losses == 0;
  }
  void grow(std::size_t wanted, std::size_t places) noexcept {
    try {
      places_.provide(wanted);
    } catch (const std::bad_alloc&) {
      return;
    }
    // release: pairs with guess(). Fails if another thread has doubled the table.
    size_.compare_exchange_strong(places, wanted, std::memory_order_release,
                                  std::memory_order_relaxed);
  }

  append_only_array<std::atomic<std::uint64_t>> places_{"remembered IDs"};
  std::atomic<std::size_t> size_{0};  // how many of the places are used, a power of two
  std::atomic<std::size_t> losses_{0};
  std::atomic<bool> given_up_{false};
};

}  // namespace elidex::internal
