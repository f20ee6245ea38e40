// The concept of the functions that the maps' update() takes: a function of `Value&`, or of
// `auto&`, that changes the value in place.
//
// A function that also takes a temporary is rejected. It works on a copy of its own and changes
// nothing: a mistake that would otherwise compile.
#pragma once

#include <concepts>

namespace elidex::internal {

template <class Fn, class Value>
concept value_change = std::invocable<Fn&, Value&> && !std::invocable<Fn&, Value>;

}  // namespace elidex::internal
