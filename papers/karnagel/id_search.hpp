// How a node of the Delta Storage Index is searched: its keys are IDs, and what they stand for lies
// in the dictionary.
//
//   // compare(i): the node's i-th value with the one looked for
//   binary_search::rank<false>(count, compare, rank, exact);
//
// rank: how many of the node's values are less than the one looked for; OrEqual: or equal to it.
// exact: one is equal. Both return false, and have set nothing that counts, when a comparison was
// torn.
//
// Each comparison touches a line of the dictionary, anywhere in memory.
//   linear_search   the original: looks at half of a node's IDs. A CPU runs ahead into the next
//                   ones, so it waits less than it touches
//   binary_search   looks at five of thirty: what transactions want (paper 001, section 5.1.2).
//                   Each waits for the one before
#pragma once

#include "elidex/internal/tree/codec.hpp"

namespace elidex::papers {

struct linear_search {
  template <bool OrEqual, class Compare>
  static bool rank(unsigned count, Compare&& compare, unsigned& result, bool& exact) noexcept {
    exact = false;
    unsigned i = 0;
    for (; i < count; ++i) {
      const internal::comparison c = compare(i);
      if (c == internal::comparison::less) continue;
      if (c == internal::comparison::torn) return false;
      exact = c == internal::comparison::equal;
      break;
    }
    result = i + (OrEqual && exact ? 1 : 0);
    return true;
  }
};

struct binary_search {
  template <bool OrEqual, class Compare>
  static bool rank(unsigned count, Compare&& compare, unsigned& result, bool& exact) noexcept {
    exact = false;
    unsigned begin = 0;
    unsigned end = count;
    while (begin < end) {
      const unsigned middle = (begin + end) / 2;
      const internal::comparison c = compare(middle);
      if (c == internal::comparison::torn) return false;
      if (c == internal::comparison::equal) {
        exact = true;
        begin = middle + (OrEqual ? 1 : 0);
        break;
      }
      if (c == internal::comparison::less) {
        begin = middle + 1;
      } else {
        end = middle;
      }
    }
    result = begin;
    return true;
  }
};

}  // namespace elidex::papers
