// A binary search among a few keys in order, without branches on keys.
#pragma once

namespace elidex::internal {

// Returns how many of `count` ascending keys are less than `wanted` (OrEqual: or equal to it).
// Conditional moves choose the halves, so that random keys cause no mispredictions.
template <bool OrEqual, class KeyAt, class Key>
unsigned branchless_lower_bound(KeyAt&& key_at, unsigned count, Key wanted) noexcept {
  const auto before = [&](unsigned i) {
    return OrEqual ? key_at(i) <= wanted : key_at(i) < wanted;
  };
  unsigned base = 0;
  unsigned length = count;
  while (length > 1) {
    const unsigned half = length / 2;
    base += before(base + half - 1) ? half : 0;
    length -= half;
  }
  return base + static_cast<unsigned>(length == 1 && before(base));
}

}  // namespace elidex::internal
