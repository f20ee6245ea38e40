// Random numbers that are the same on every host.
//
// Thread-safety: functions of their arguments only.
#pragma once

#include <cstdint>

namespace elidex::sim {

// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014).
inline std::uint64_t mixed(std::uint64_t x) noexcept {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

inline std::uint64_t next_random(std::uint64_t& state) noexcept {
  return mixed(state += 0x9e3779b97f4a7c15);
}

}  // namespace elidex::sim
