// Calls the function that the caller passed to scan() for one row.
//
//   if (!call_visitor(fn, key, row)) return;   // fn wants no more rows
//
// The function receives references to const. Returns false if the function returned false. A
// function that returns nothing sees all rows.
// Errors: what the function throws.
#pragma once

#include <type_traits>

namespace elidex::internal {

template <class Fn, class Key, class Row>
bool call_visitor(Fn& fn, const Key& key, const Row& row) {
  if constexpr (std::is_void_v<std::invoke_result_t<Fn&, const Key&, const Row&>>) {
    fn(key, row);
    return true;
  } else {
    return static_cast<bool>(fn(key, row));
  }
}

}  // namespace elidex::internal
