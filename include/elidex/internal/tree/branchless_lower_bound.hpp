// How many of a few keys in order come before another one.
#pragma once

namespace elidex::internal {

// How many of `count` keys, which ascend, are less than `wanted` (OrEqual: or equal to it). Without
// branches on keys: the halves are taken by conditional moves, which no random key mispredicts.
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
