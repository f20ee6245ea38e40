// The delta's dictionary: every value once, in the order of arrival, with a number, its ID.
//
//   delta_dictionary<std::uint64_t, false, 1> values;   // one array, as in paper 001, section 2
//   delta_dictionary<std::uint64_t, true, 16> values;   // 16 of them, as in its section 5.2.1
//
// An entry never changes and never moves, so a thread that has an ID may read its value. The values
// are not sorted, so a search for a value needs an index (keyed_delta_index.hpp,
// papers/karnagel/delta_index.hpp).
//
// Thread-safety: size() and memory_bytes() from any thread. With Racing, all functions from any
// thread, under the rules below. Without Racing, regions must keep other threads out of append().
// Errors: make_room() throws std::bad_alloc, and no_ids_left when no ID is left.
//
// Implementation notes
// Parts. With one array for all threads, each appending thread writes the same counter and the same
// cache line. Transactions that have nothing else in common then abort each other. With one part
// for each core, a thread appends to its own part. An ID encodes part and position: id = position *
// Parts + part. Deviation: a thread's part follows from its slot (epoch.hpp), not from the
// core on which it runs. So the part stays the same while the thread moves.
//
// Appending is a step of a region. make_room() obtains memory before it. append() returns nothing
// if that memory was not enough. With Racing several threads may append to one part at once, with
// only a leaf of the index locked. A claim is then one compare-exchange of the part's counter.
// Other threads may take the room that a region has seen. Without Racing the region keeps other
// threads out.
//
// When no ID is left. IDs never become free again. So a thread that runs out of IDs and then finds
// the value absent may report this. A thread must look up the value again first, because another
// thread may have given the last ID to this value.
//
// Why a racing reader may follow an ID. The reader has read the ID from a node. The entry was
// written before the ID was stored under the leaf's lock. If the reader's version of the node is
// from after that unlock, the entry is visible. If not, the store was a change after that version.
// The reader may then read any value, and the validation discards it. A reader follows a string's
// address only after it has validated the node.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>

#include "elidex/internal/column/append_only_array.hpp"
#include "elidex/internal/column/blob_arena.hpp"
#include "elidex/internal/memory/memory_name.hpp"
#include "elidex/internal/sync/version_lock.hpp"
#include "elidex/internal/tree/codec.hpp"

namespace elidex::internal {

// Thrown by a dictionary without a free ID.
class no_ids_left : public std::length_error {
 public:
  explicit no_ids_left(std::size_t ids)
      : std::length_error("elidex: a dictionary may have at most " + std::to_string(ids) +
                          " values") {}
};

// Key: an unsigned integer type, or std::string.
template <class Key, bool Racing, unsigned Parts, class Id = std::uint32_t>
class delta_dictionary {
  static_assert(sizeof(Id) <= sizeof(std::uint32_t),
                "racing readers may follow any ID that nodes can hold");

 public:
  using keys = key_codec<Key>;
  using id_type = Id;
  using entry = typename keys::slot;
  static constexpr unsigned parts = Parts;
  static constexpr Id ids_max =
      std::numeric_limits<Id>::max();  // the greatest ID is one less: the last number is unused

  // --- of an entry ---

  // Compares the value of `id` with the search key. Returns torn if this thread cannot know the
  // entry yet.
  template <class StillValid>
  [[gnu::always_inline]] comparison compare(Id id, const typename keys::search_key& wanted,
                                            StillValid&& still_valid) const noexcept {
    const part& of = parts_[id % Parts];
    if constexpr (Racing) {
      const field<entry>* const at = of.entries.at(id / Parts);
      if (at == nullptr) return comparison::torn;
      return order(at->template load<true>(), wanted, still_valid);
    } else {
      return order(of.entries[id / Parts].template load<false>(), wanted, still_valid);
    }
  }

  // The entry of an ID that this thread has from a validated node, or by other synchronization.
  entry at(Id id) const noexcept {
    return parts_[id % Parts].entries[id / Parts].template load<Racing>();
  }

  // --- inside a region ---

  bool has_room(unsigned in) const noexcept { return used(parts_[in]) < room(in); }

  // Returns the new entry's ID, or nothing if other threads have taken the room that has_room() has
  // seen.
  std::optional<Id> append(unsigned in, const entry& value) noexcept {
    const std::size_t position = claim(in);
    if (position == no_position) return std::nullopt;
    parts_[in].entries[position].template store<Racing>(value);
    return static_cast<Id>(position * Parts + in);
  }

  // --- outside of regions ---

  // Returns `in`, or else the next part that still has IDs, if there is one.
  unsigned part_with_ids(unsigned in) const noexcept {
    for (unsigned tried = 0; tried < Parts; ++tried, in = (in + 1) % Parts) {
      if (used(parts_[in]) < positions_in(in)) break;
    }
    return in;
  }

  // Provides memory for one more entry, which other threads may take. Returns the part that has the
  // memory: `in`, unless its IDs are used up.
  unsigned make_room(unsigned in) {
    for (unsigned tried = 0; tried < Parts; ++tried, in = (in + 1) % Parts) {
      part& p = parts_[in];
      const std::size_t wanted = used(p) + 1;
      if (wanted > positions_in(in)) continue;
      p.entries.provide(wanted);
      return in;
    }
    throw no_ids_left(ids_max);
  }
  blob* make_string(unsigned in, std::string_view bytes) { return parts_[in].strings.make(bytes); }
  void take_back_string(unsigned in, blob* unwanted) noexcept {
    parts_[in].strings.destroy(unwanted);
  }

  // The number of entries. Exact when no thread appends.
  std::size_t size() const noexcept {
    std::size_t sum = 0;
    for (const part& p : parts_) sum += used(p);
    return sum;
  }
  // All IDs are below this bound.
  std::size_t id_bound() const noexcept {
    std::size_t bound = 0;
    for (unsigned i = 0; i < Parts; ++i) {
      const std::size_t positions = used(parts_[i]);
      if (positions != 0) bound = std::max(bound, (positions - 1) * Parts + i + 1);
    }
    return bound;
  }
  std::size_t memory_bytes() const noexcept {
    std::size_t sum = sizeof(*this);
    for (const part& p : parts_) sum += p.entries.memory_bytes() + p.strings.memory_bytes();
    return sum;
  }

 private:
  static constexpr std::size_t no_position = std::numeric_limits<std::size_t>::max();

  // What append() writes lies on other cache lines than what every comparison reads.
  struct alignas(128) part {
    append_only_array<field<entry>> entries{"dictionary"};
    blob_arena strings;
    alignas(128) std::atomic<std::size_t> used{0};
    part() noexcept { name_memory(&used, sizeof(used), "dictionary size"); }
  };

  // The positions of a part that have an ID, and those of them that have memory.
  static constexpr std::size_t positions_in(unsigned in) noexcept {
    return (ids_max - 1 - in) / Parts + 1;
  }
  static_assert(ids_max > Parts);
  std::size_t room(unsigned in) const noexcept {
    return std::min(parts_[in].entries.provided(), positions_in(in));
  }

  static std::size_t used(const part& p) noexcept {
    return p.used.load(
        // pairs with claim(); the leaf's lock publishes the entry
        std::memory_order_relaxed);
  }

  std::size_t claim(unsigned in) noexcept {
    part& p = parts_[in];
    std::size_t seen = used(p);
    if constexpr (Racing) {
      do {
        if (seen >= room(in)) return no_position;
        // relaxed: pairs with itself. The leaf's lock publishes the entry, not the counter.
      } while (!p.used.compare_exchange_weak(seen, seen + 1, std::memory_order_relaxed));
    } else {
      // pairs with used(); the region keeps other claims out
      p.used.store(seen + 1, std::memory_order_relaxed);
    }
    return seen;
  }

  template <class StillValid>
  static comparison order(const entry& value, const typename keys::search_key& wanted,
                          StillValid&& still_valid) noexcept {
    if constexpr (keys::compares_in_place) {
      return value < wanted    ? comparison::less
             : value == wanted ? comparison::equal
                               : comparison::greater;
    } else {
      return keys::compare(value, wanted, 0, wanted.head, still_valid);
    }
  }

  std::array<part, Parts> parts_;
};

}  // namespace elidex::internal
