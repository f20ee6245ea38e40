// The modes and kinds of data locks, and which requests wait for which locks: InnoDB's rules as
// constexpr functions.
//
//   static_assert(are_compatible(lock_mode::intention_exclusive, lock_mode::intention_shared));
//   static_assert(is_stronger_or_equal(lock_mode::exclusive, lock_mode::shared));
//   if (must_wait(lock_mode::exclusive, lock_kind::insert_intention, held.mode, held.kind)) ...
//
// Tables are locked in any of the four modes, records in shared or exclusive mode. A record also
// names the gap before it, into which other transactions may insert phantoms. So a lock of a record
// has one of four kinds:
//
//   kind              covers the  covers the    use
//                     record      gap before
//   record            yes         no            "rec, not gap" in InnoDB: sufficient for READ
//                                               COMMITTED
//   gap               no          yes           Keeps inserts out. Two gap locks never wait for
//                                               each other.
//   next_key          yes         yes           for a scan that must not see phantoms
//   insert_intention  no          (into it)     Waits for other transactions' locks on the gap.
//                                               No request waits for it.
//
// The gap after the last record of a page or table has a heap number that the caller reserves for
// it (InnoDB: the supremum, 1).
//
// Thread-safety: pure functions.
// Errors: none.
//
// Implementation notes
// Invariants: compatibility is symmetric. must_wait() is not: an insert waits for a gap lock, and a
// gap lock waits for nothing.
//
// Source: paper 004 section 4.1.1 and table 4.1. The kinds are InnoDB's own. The thesis does not
// describe them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace elidex::internal {

enum class lock_mode : std::uint8_t { intention_shared, intention_exclusive, shared, exclusive };
inline constexpr std::size_t lock_mode_count = 4;

enum class lock_kind : std::uint8_t { table, record, gap, next_key, insert_intention };

// The outcome of a request.
enum class lock_outcome : std::uint8_t {
  granted,  // the transaction has the lock, or already had one as strong
  waiting,  // it is in the queue: only from the request_...() functions
  // Waiting would have closed a cycle, or was part of one. The lock is not held. Roll back.
  deadlock_victim,
  // The lock was not granted in time. It is not held. Locks that were held before are still held.
  timed_out
};

constexpr const char* to_string(lock_mode mode) noexcept {
  constexpr std::array<const char*, lock_mode_count> names{"IS", "IX", "S", "X"};
  return names[static_cast<std::size_t>(mode)];
}

constexpr const char* to_string(lock_outcome outcome) noexcept {
  constexpr std::array<const char*, 4> names{"granted", "waiting", "deadlock victim", "timed out"};
  return names[static_cast<std::size_t>(outcome)];
}

using lock_mode_matrix = std::array<std::array<bool, lock_mode_count>, lock_mode_count>;

// Rows and columns: IS, IX, S, X.
inline constexpr lock_mode_matrix compatible_modes{{
    {true, true, true, false},
    {true, true, false, false},
    {true, false, true, false},
    {false, false, false, false},
}};
// Whether the row's mode permits everything that the column's mode permits.
inline constexpr lock_mode_matrix stronger_modes{{
    {true, false, false, false},
    {true, true, false, false},
    {true, false, true, false},
    {true, true, true, true},
}};

constexpr bool of_modes(const lock_mode_matrix& matrix, lock_mode row, lock_mode column) noexcept {
  return matrix[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)];
}

// Whether two transactions may hold locks of these modes on the same thing.
constexpr bool are_compatible(lock_mode one, lock_mode other) noexcept {
  return of_modes(compatible_modes, one, other);
}

// Whether the holder of `held` need not ask for `wanted`.
constexpr bool is_stronger_or_equal(lock_mode held, lock_mode wanted) noexcept {
  return of_modes(stronger_modes, held, wanted);
}

constexpr bool covers_the_record(lock_kind kind) noexcept {
  return kind == lock_kind::record || kind == lock_kind::next_key;
}
constexpr bool covers_the_gap(lock_kind kind) noexcept {
  return kind == lock_kind::gap || kind == lock_kind::next_key;
}

// Whether a lock of the kind `held` covers one of the kind `wanted`. No lock covers an
// insert_intention: it asks about the locks of other transactions.
constexpr bool covers(lock_kind held, lock_kind wanted) noexcept {
  if (wanted == lock_kind::insert_intention || held == lock_kind::insert_intention) return false;
  if (wanted == lock_kind::table || held == lock_kind::table) return wanted == held;
  return (covers_the_record(held) || !covers_the_record(wanted)) &&
         (covers_the_gap(held) || !covers_the_gap(wanted));
}

// Whether a request waits for another transaction's lock on the same table or record.
constexpr bool must_wait(lock_mode wanted, lock_kind wanted_kind, lock_mode held,
                         lock_kind held_kind) noexcept {
  if (are_compatible(wanted, held)) return false;
  if (wanted_kind == lock_kind::table) return held_kind == lock_kind::table;
  if (wanted_kind == lock_kind::insert_intention) return covers_the_gap(held_kind);
  return covers_the_record(wanted_kind) && covers_the_record(held_kind);
}

constexpr bool is_symmetric(const lock_mode_matrix& matrix) noexcept {
  for (std::size_t row = 0; row < lock_mode_count; ++row) {
    for (std::size_t column = 0; column < lock_mode_count; ++column) {
      if (matrix[row][column] != matrix[column][row]) return false;
    }
  }
  return true;
}
static_assert(is_symmetric(compatible_modes));

// A stronger mode conflicts with at least as many modes.
constexpr bool strength_agrees_with_conflicts() noexcept {
  for (std::size_t strong = 0; strong < lock_mode_count; ++strong) {
    for (std::size_t weak = 0; weak < lock_mode_count; ++weak) {
      for (std::size_t other = 0; stronger_modes[strong][weak] && other < lock_mode_count;
           ++other) {
        if (compatible_modes[strong][other] && !compatible_modes[weak][other]) return false;
      }
    }
  }
  return true;
}
static_assert(strength_agrees_with_conflicts());

// Table 4.1 in its printed order: X, IX, S, IS.
static_assert(!are_compatible(lock_mode::exclusive, lock_mode::exclusive));
static_assert(!are_compatible(lock_mode::exclusive, lock_mode::intention_exclusive));
static_assert(!are_compatible(lock_mode::exclusive, lock_mode::shared));
static_assert(!are_compatible(lock_mode::exclusive, lock_mode::intention_shared));
static_assert(are_compatible(lock_mode::intention_exclusive, lock_mode::intention_exclusive));
static_assert(!are_compatible(lock_mode::intention_exclusive, lock_mode::shared));
static_assert(are_compatible(lock_mode::intention_exclusive, lock_mode::intention_shared));
static_assert(are_compatible(lock_mode::shared, lock_mode::shared));
static_assert(are_compatible(lock_mode::shared, lock_mode::intention_shared));
static_assert(are_compatible(lock_mode::intention_shared, lock_mode::intention_shared));

}  // namespace elidex::internal
