// The concept of the functions that the maps' update() takes: a function of `Value&`, or of
// `auto&`, that changes the value in place.
//
// A function that also takes a temporary is rejected. It works on a copy of its own and changes
// nothing: a mistake that would otherwise compile.
#pragma once

#include <concepts>
#include <cstddef>

namespace elidex::internal {

template <class Fn, class Value>
concept value_change = std::invocable<Fn&, Value&> && !std::invocable<Fn&, Value>;
// The same for a function that also takes the index of the value's key among several.
template <class Fn, class Value>
concept change_of_many =
    std::invocable<Fn&, std::size_t, Value&> && !std::invocable<Fn&, std::size_t, Value>;

}  // namespace elidex::internal
