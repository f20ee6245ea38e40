#pragma once
// Hash maps for tests: with scans, so that they stand beside std::map like the others; so small
// that every other insert splits something; and with planted bugs.

#include <concepts>
#include <cstdint>
#include <map>
#include <stdexcept>

#include "elidex/hash_map.hpp"

namespace elidex::testing {

using namespace internal;

// A scan is a for_each() put in order: no snapshot. Throws std::logic_error where a key comes
// twice.
template <class Map>
struct in_order : Map {
  static constexpr bool scan_is_of_the_test = true;
  template <class Fn>
  std::size_t scan(typename Map::key_argument from, std::size_t limit, Fn&& fn) const {
    std::map<typename Map::key_type, typename Map::mapped_type> all;
    Map::for_each([&](const auto& key, const auto& value) {
      if (!all.emplace(key, value).second) throw std::logic_error("for_each gave a key twice");
    });
    std::size_t count = 0;
    for (auto at = all.lower_bound(typename Map::key_type(from)); at != all.end() && count < limit;
         ++at, ++count) {
      fn(at->first, at->second);
    }
    return count;
  }
};

// Two records to a block, and a table that wants to grow with every third key, and to shrink even
// where that gives no memory back.
struct tiny_buckets : hash_index_rules {
  static constexpr unsigned slots_max = 2;
  static constexpr unsigned first_level = 1;
  static constexpr unsigned fill_percent_max = 40;
  static constexpr unsigned fill_percent_min = 20;
  static constexpr unsigned buckets_per_turn = 1;
  static constexpr bool wipes_discarded = true;
};
// Does not grow before its chains are long.
struct long_chains : tiny_buckets {
  static constexpr unsigned fill_percent_max = 400;
};

struct same_for_all {
  std::uint64_t operator()(std::uint64_t /*key*/) const noexcept { return 0x1234'5678'9ABC'DEF0u; }
};
// Keys that lie together stay together, all with one fingerprint.
struct no_hash {
  std::uint64_t operator()(std::uint64_t key) const noexcept { return key; }
};

// Gives memory back while other threads still merge buckets of it.
struct discards_early : tiny_buckets {
  static constexpr bool waits_for_turns = false;
};
// Looks at what is in a bucket and not at whether it is the key's, and takes what it has seen for
// true.
struct ignores_levels : tiny_buckets {
  static constexpr bool checks_coverage = false;
};
struct ignores_versions : tiny_buckets {
  static constexpr bool validates = false;
};
// Overwrites values without the bucket's lock.
struct overwrites_unlocked : tiny_buckets {
  static constexpr bool locks_overwrites = false;
};

}  // namespace elidex::testing
