// The word of a record: the time of its last commit, and its state.
//
//   bits 63..15  the commit group of that commit (commit_clock.hpp)
//   bits 14..3   a number within the group, larger than those of all records that the transaction
//                read or wrote
//   bit 2        dead: unlinked from its index, and freed soon. Never cleared.
//   bit 1        absent: erased, or inserted by a transaction that has not committed
//   bit 0        locked by a committing transaction
//
// Guarantee: the stamps of one record only grow, so an equal word means an unchanged record.
// Thread-safety: a value.
// Errors: none.
//
// Implementation notes
// The division of the bits makes the group numbers last. A million groups a second, each with a
// commit and a snapshot, use them up in 17 years. If the numbers of a group are used up, the clock
// advances.
// Source: Silo (Tu et al., SOSP 2013), section 4.2. Its "latest" bit is not needed, because older
// versions are linked from records that are never moved.
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
  constexpr commit_stamp(std::uint64_t group, std::uint64_t number) noexcept
      : word_((group << number_bits | number) << state_bits) {}

  constexpr std::uint64_t word() const noexcept { return word_; }
  constexpr std::uint64_t group() const noexcept { return word_ >> (number_bits + state_bits); }
  constexpr std::uint64_t number() const noexcept { return word_ >> state_bits & number_max; }
  constexpr bool locked() const noexcept { return (word_ & locked_bit) != 0; }
  constexpr bool absent() const noexcept { return (word_ & absent_bit) != 0; }
  constexpr bool dead() const noexcept { return (word_ & dead_bit) != 0; }

  constexpr commit_stamp as_locked() const noexcept { return commit_stamp(word_ | locked_bit); }
  constexpr commit_stamp as_absent() const noexcept { return commit_stamp(word_ | absent_bit); }
  constexpr commit_stamp as_dead() const noexcept {
    return commit_stamp(word_ | dead_bit | absent_bit);
  }
  // The group and number, without the state.
  constexpr std::uint64_t time() const noexcept { return word_ >> state_bits; }

  friend constexpr bool operator==(commit_stamp, commit_stamp) noexcept = default;

 private:
  static constexpr std::uint64_t locked_bit = 1;
  static constexpr std::uint64_t absent_bit = 2;
  static constexpr std::uint64_t dead_bit = 4;

  std::uint64_t word_ = absent_bit;
};

}  // namespace elidex::internal
