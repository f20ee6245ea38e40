// Calls the function that a caller passed to scan() or for_each() for one record.
//
//   if (!visits_on(fn, key, value)) return;   // fn wants no more records
//
// Errors: what the function throws.
#pragma once

#include <concepts>
#include <type_traits>

namespace elidex::internal {

// Returns false if fn returned false. A function that returns nothing sees all records.
template <class Fn, class Key, class Value>
bool visits_on(Fn& fn, Key&& key, Value&& value) {
  static_assert(std::is_invocable_v<Fn&, Key, Value>,
                "a visitor takes a key and a value: const references, or views of strings");
  if constexpr (!std::is_invocable_v<Fn&, Key, Value>) {
    return false;
  } else if constexpr (std::is_void_v<std::invoke_result_t<Fn&, Key, Value>>) {
    fn(static_cast<Key&&>(key), static_cast<Value&&>(value));
    return true;
  } else {
    static_assert(std::same_as<std::invoke_result_t<Fn&, Key, Value>, bool>,
                  "a visitor returns nothing, or a bool that tells whether it wants more");
    return fn(static_cast<Key&&>(key), static_cast<Value&&>(value));
  }
}

}  // namespace elidex::internal
