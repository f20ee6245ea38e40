// The modes of data locks, what they cover, and which requests have to wait for which locks:
// InnoDB's rules as functions that a compiler can evaluate.
//
//   static_assert(are_compatible(lock_mode::intention_exclusive, lock_mode::intention_shared));
//   static_assert(is_stronger_or_equal(lock_mode::exclusive, lock_mode::shared));
//   if (must_wait(lock_mode::exclusive, lock_kind::insert_intention, held.mode, held.kind)) ...
//
// Tables are locked in any of the four modes, records in shared or exclusive mode. A lock that
// names a record is of one of four kinds, since records also stand for the gap before them, into
// which others might insert phantoms:
//
//                       the record   the gap before it
//   record                  x                              "rec, not gap" in InnoDB: enough for
//                                                          READ COMMITTED
//   gap                                     x              keeps inserts out; two of them never
//                                                          wait for each other
//   next_key                x               x              what a scan takes that must not see
//                                                          phantoms
//   insert_intention                     (into it)         waits for others' locks on the gap;
//                                                          nobody waits for it
//
// The gap behind the last record of a page or table is named by a heap number that the caller keeps
// for that (InnoDB: the supremum, 1).
//
// Invariants: compatibility is symmetric; must_wait() is not: an insert waits for a gap lock, a gap
// lock for nothing.
//
// Thread-safety: pure functions.
//
// From: papers/004 section 4.1.1 and table 4.1. The kinds are InnoDB's own; the thesis does not
// describe them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace elidex::internal {

enum class lock_mode : std::uint8_t { intention_shared, intention_exclusive, shared, exclusive };
inline constexpr std::size_t lock_mode_count = 4;

enum class lock_kind : std::uint8_t { table, record, gap, next_key, insert_intention };

// What became of a request.
enum class lock_outcome : std::uint8_t {
  granted,  // the transaction has the lock, or had one as strong already
  waiting,  // it stands in the queue: only from the functions called request_...
  // waiting would have closed, or was part of, a cycle: the lock is not held; roll back
  deadlock_victim,
  // not granted in time: the lock is not held, those that were held before still are
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
// Whether the row allows all that the column does.
inline constexpr lock_mode_matrix stronger_modes{{
    {true, false, false, false},
    {true, true, false, false},
    {true, false, true, false},
    {true, true, true, true},
}};

constexpr bool of_modes(const lock_mode_matrix& matrix, lock_mode row, lock_mode column) noexcept {
  return matrix[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)];
}

// Whether two transactions may hold these on the same thing.
constexpr bool are_compatible(lock_mode one, lock_mode other) noexcept {
  return of_modes(compatible_modes, one, other);
}

// Whether who holds `held` need not ask for `wanted`.
constexpr bool is_stronger_or_equal(lock_mode held, lock_mode wanted) noexcept {
  return of_modes(stronger_modes, held, wanted);
}

constexpr bool covers_the_record(lock_kind kind) noexcept {
  return kind == lock_kind::record || kind == lock_kind::next_key;
}
constexpr bool covers_the_gap(lock_kind kind) noexcept {
  return kind == lock_kind::gap || kind == lock_kind::next_key;
}

// Whether a lock of the kind `held` covers what one of the kind `wanted` would. An insert's
// intention is covered by nothing: it asks about the locks of others.
constexpr bool covers(lock_kind held, lock_kind wanted) noexcept {
  if (wanted == lock_kind::insert_intention || held == lock_kind::insert_intention) return false;
  if (wanted == lock_kind::table || held == lock_kind::table) return wanted == held;
  return (covers_the_record(held) || !covers_the_record(wanted)) &&
         (covers_the_gap(held) || !covers_the_gap(wanted));
}

// Whether a request has to wait for another transaction's lock on the same table, or on the same
// record.
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

// What is stronger conflicts with at least as much.
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

// Table 4.1, row by row as it is printed there: X, IX, S, IS.
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
