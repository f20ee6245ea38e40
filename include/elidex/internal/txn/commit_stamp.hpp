// The word of a record: when it was committed last, and in which state it is.
//
//   bits 63..15  the epoch of that commit (commit_clock.hpp)
//   bits 14..3   a number within the epoch, larger than those of all records that the transaction
//                read or wrote
//   bit 2        dead: unlinked from its index, and soon freed. Never cleared
//   bit 1        absent: inserted by nobody who has committed, or erased
//   bit 0        locked by a committing transaction
//
// Stamps of one record only grow, so an equal word means an unchanged record.
//
// The bits are shared out so that the epochs last: a million a second, each with a commit and a
// snapshot, use them up in 17 years. Where the numbers of an epoch do not suffice, the clock moves
// on.
//
// Thread-safety: a value. From: Silo (Tu et al., SOSP 2013), section 4.2; its "latest" bit isn't
// needed, because older versions hang on records that stay where they are.
#pragma once

#include <compare>
#include <cstdint>

namespace elidex::internal {

class commit_stamp {
 public:
  static constexpr unsigned state_bits = 3;
  static constexpr unsigned number_bits = 12;
  static constexpr std::uint64_t number_max = (std::uint64_t{1} << number_bits) - 1;

  constexpr commit_stamp() noexcept = default;
  constexpr explicit commit_stamp(std::uint64_t word) noexcept : word_(word) {}
  constexpr commit_stamp(std::uint64_t epoch, std::uint64_t number) noexcept
      : word_((epoch << number_bits | number) << state_bits) {}

  constexpr std::uint64_t word() const noexcept { return word_; }
  constexpr std::uint64_t epoch() const noexcept { return word_ >> (number_bits + state_bits); }
  constexpr std::uint64_t number() const noexcept { return word_ >> state_bits & number_max; }
  constexpr bool locked() const noexcept { return (word_ & locked_bit) != 0; }
  constexpr bool absent() const noexcept { return (word_ & absent_bit) != 0; }
  constexpr bool dead() const noexcept { return (word_ & dead_bit) != 0; }

  constexpr commit_stamp as_locked() const noexcept { return commit_stamp(word_ | locked_bit); }
  constexpr commit_stamp as_absent() const noexcept { return commit_stamp(word_ | absent_bit); }
  constexpr commit_stamp as_dead() const noexcept {
    return commit_stamp(word_ | dead_bit | absent_bit);
  }
  // The time alone, without the state.
  constexpr std::uint64_t time() const noexcept { return word_ >> state_bits; }

  friend constexpr bool operator==(commit_stamp, commit_stamp) noexcept = default;

 private:
  static constexpr std::uint64_t locked_bit = 1;
  static constexpr std::uint64_t absent_bit = 2;
  static constexpr std::uint64_t dead_bit = 4;

  std::uint64_t word_ = absent_bit;
};

}  // namespace elidex::internal
