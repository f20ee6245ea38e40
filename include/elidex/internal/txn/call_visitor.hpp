// Calls the function that a scan was given, for one row. False: it wants no more rows. A function
// that returns nothing sees all rows.
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
