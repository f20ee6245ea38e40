#pragma once
// The streams of eunomia:THETA (workload.hpp, "Fronts").
//
// Thread-safety: pure functions.

#include "bench/workload/workload.hpp"

namespace elidex::bench {

/// Returns the workload of a name of eunomia, eunomia-common, eunomia-grown, eunomia-apart,
/// eunomia-list or put, with its numbers, or null. Two calls with one name return the same object.
[[nodiscard]] const workload* find_front_workload(std::string_view name);

/// The key of one of a front's places, and the key below all others. A place has `place_keys` keys.
[[nodiscard]] constexpr std::uint64_t front_key(unsigned front, std::uint64_t place,
                                                unsigned in_place,
                                                unsigned place_keys = front_batch) noexcept {
  constexpr std::uint64_t first_front = 10;
  constexpr std::uint64_t places_max = 1'000'000;
  return ((first_front + front) * places_max + place) * place_keys + in_place;
}
inline constexpr std::uint64_t key_below_all_fronts = 1;

/// The stream of one thread, of `seed`.
[[nodiscard]] request_stream<std::uint64_t> make_front_stream(const stream_shape& shape,
                                                              unsigned thread, unsigned threads,
                                                              std::uint64_t seed);

}  // namespace elidex::bench
