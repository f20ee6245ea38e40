// Calls the function that the caller passed to scan() for one row.
//
//   if (!call_visitor(fn, key, row)) return;   // fn wants no more rows
//
// Returns false if the function returned false. A function that returns nothing sees all rows.
// Errors: what the function throws.
#pragma once

#include <type_traits>
#include <utility>

namespace elidex::internal {

template <class Fn, class... Arguments>
bool call_visitor(Fn& fn, Arguments&&... arguments) {
  if constexpr (std::is_void_v<std::invoke_result_t<Fn&, Arguments...>>) {
    fn(std::forward<Arguments>(arguments)...);
    return true;
  } else {
    return static_cast<bool>(fn(std::forward<Arguments>(arguments)...));
  }
}

}  // namespace elidex::internal
