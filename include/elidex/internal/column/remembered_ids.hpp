// A guess at the ID of a value that has come before: by its hash, in one look, for who can check
// it.
//
//   remembered_ids<std::uint32_t> remembered;
//   if (auto id = remembered.guess(hash); id && value_of(*id) == value) return *id;
//   ... find it out ...
//   remembered.remember(hash, id, [&] { return values.size(); });
//
// A table of IDs, each with the hash's upper half, at the place that its lower half says; a later
// value takes the place of an earlier one. The upper half keeps nearly all wrong guesses back,
// which would cost a look at a value that is not the wanted one. So it is never full, and never
// wrong for who checks. It begins small and doubles as values push each other out, as long as there
// are more values than places: where nothing comes twice it stays small. Doubling moves nothing:
// half of what is remembered is then looked for elsewhere and comes again. Where values are too
// many for the largest table it gives up, and there are no guesses any more.
//
// Thread-safety: all functions but constructor and destructor. What the thread that remembered an
// ID had seen of its value is visible to whoever gets it as a guess. Errors: none; without memory
// it stays as small as it is.
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
    // acquire: pairs with remember(): the value of this ID is written.
    const std::uint64_t found = places_[hash & (places - 1)].load(std::memory_order_acquire);
    const auto id = static_cast<Id>(found);
    if (found >> tag_shift != hash >> tag_shift || id == nothing) return std::nullopt;
    return static_cast<Id>(id - 1);
  }

  // distinct(), asked for when values push each other out, says how many have IDs; none of these is
  // the greatest Id.
  template <class Distinct>
  void remember(std::uint64_t hash, Id id, Distinct&& distinct) noexcept {
    // pairs with grow(), as in guess()
    const std::size_t places = size_.load(std::memory_order_acquire);
    if (places == 0) {
      if (!given_up_.load()) grow(places_min, 0);
      return;
    }
    std::atomic<std::uint64_t>& place = places_[hash & (places - 1)];
    const std::uint64_t stored = (hash >> tag_shift << tag_shift) | static_cast<Id>(id + 1);
    // pairs with the store below; only compared
    const std::uint64_t before = place.load(std::memory_order_relaxed);
    if (before == stored) return;
    place.store(stored, std::memory_order_release);  // pairs with guess()
    if (before == 0 || !note_loss(places) || places >= distinct()) return;
    if (places < places_max) {
      grow(2 * places, places);
    } else {
      given_up_.store(true);
      size_.store(0);
    }
  }

  std::size_t memory_bytes() const noexcept { return places_.memory_bytes(); }

 private:
  static_assert(sizeof(Id) <= 4);
  static constexpr unsigned tag_shift = 32;
  static constexpr Id nothing = 0;
  // Chosen: nearly nothing beside an index, and a place in four lost before it doubles.
  static constexpr std::size_t places_min = 256;
  // Measured, on a CPU with 1 MiB of second-level cache: for 100 thousand values a guess takes two
  // thirds of the time of the way down the tree; for a million the table and the tree drive each
  // other out of the cache, and it takes longer with any number of places.
  static constexpr std::size_t places_max = std::size_t{1} << 18;
  static constexpr std::size_t losses_share = 4;

  // relaxed, all of it: pairs with itself. A loss that is not counted because another thread counts
  // too makes it grow later. Whether there have been many.
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
    // release: pairs with guess(). Fails where another thread has grown it.
    size_.compare_exchange_strong(places, wanted, std::memory_order_release,
                                  std::memory_order_relaxed);
  }

  append_only_array<std::atomic<std::uint64_t>> places_{"remembered IDs"};
  std::atomic<std::size_t> size_{0};  // how many of the places are used, a power of two
  std::atomic<std::size_t> losses_{0};
  std::atomic<bool> given_up_{false};
};

}  // namespace elidex::internal
