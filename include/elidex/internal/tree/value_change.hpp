// What the maps' update() takes: a function of `Value&`, or of `auto&`, that changes the value
// where it stands.
//
// One that would also take a temporary works on a copy of its own, and changes nothing: a mistake
// that compiles.
#pragma once

#include <concepts>

namespace elidex::internal {

template <class Fn, class Value>
concept value_change = std::invocable<Fn&, Value&> && !std::invocable<Fn&, Value>;

}  // namespace elidex::internal
