// What containers call in the C++ library, compiled for the machine: it would not see the library's
// own work on their data. elidex-c++ links programs with these.
//
// The trees are the red-black trees of Cormen, Leiserson, Rivest and Stein, "Introduction to
// Algorithms". In the C++ library's layout a header node has the root as its parent, and the first
// and last node as its children. The header is red, and so differs from the root.
#include <bits/stl_tree.h>

#include <cmath>
#include <cstring>
#include <list>
#include <unordered_map>

namespace std {
namespace {

using node = _Rb_tree_node_base;

bool is_red(const node* x) {
  return x != nullptr && x->_M_color == _S_red;
}

// Puts `to` into the place that `from` has below its parent.
void replace(node* from, node* to, node& header) {
  if (header._M_parent == from) {
    header._M_parent = to;
  } else if (from->_M_parent->_M_left == from) {
    from->_M_parent->_M_left = to;
  } else {
    from->_M_parent->_M_right = to;
  }
  if (to != nullptr) to->_M_parent = from->_M_parent;
}

using child = node* node::*;
constexpr child left = &node::_M_left;
constexpr child right = &node::_M_right;
child other(child side) {
  return side == left ? right : left;
}

// Lets x go down to `side`; its child on the other side takes its place.
void rotate(node* x, child side, node& header) {
  node* const up = x->*other(side);
  x->*other(side) = up->*side;
  if (up->*side != nullptr) (up->*side)->_M_parent = x;
  replace(x, up, header);
  up->*side = x;
  x->_M_parent = up;
}

node* last_below(node* x, child side) {
  while (x->*side != nullptr) x = x->*side;
  return x;
}

// The next node to `side` in key order, or the header.
node* next(node* x, child side) {
  if (x->*side != nullptr) return last_below(x->*side, other(side));
  node* up = x->_M_parent;
  while (x == up->*side) {
    x = up;
    up = up->_M_parent;
  }
  // The header lies above the root and below it. From the root, the loop may pass through both.
  return x->*side != up ? up : x;
}

void repair_after_insert(node* x, node& header) {
  while (x != header._M_parent && is_red(x->_M_parent)) {
    node* const above = x->_M_parent->_M_parent;
    const child side = x->_M_parent == above->_M_left ? left : right;
    node* const uncle = above->*other(side);
    if (is_red(uncle)) {
      x->_M_parent->_M_color = uncle->_M_color = _S_black;
      above->_M_color = _S_red;
      x = above;
      continue;
    }
    if (x == x->_M_parent->*other(side)) {
      x = x->_M_parent;
      rotate(x, side, header);
    }
    x->_M_parent->_M_color = _S_black;
    above->_M_color = _S_red;
    rotate(above, other(side), header);
  }
  header._M_parent->_M_color = _S_black;
}

// x, which may be null, and its parent: on the way to x one black node is missing.
void repair_after_erase(node* x, node* parent, node& header) {
  while (x != header._M_parent && !is_red(x)) {
    const child side = x == parent->_M_left ? left : right;
    node* sibling = parent->*other(side);
    if (is_red(sibling)) {
      sibling->_M_color = _S_black;
      parent->_M_color = _S_red;
      rotate(parent, side, header);
      sibling = parent->*other(side);
    }
    if (!is_red(sibling->_M_left) && !is_red(sibling->_M_right)) {
      sibling->_M_color = _S_red;
      x = parent;
      parent = x->_M_parent;
      continue;
    }
    if (!is_red(sibling->*other(side))) {
      (sibling->*side)->_M_color = _S_black;
      sibling->_M_color = _S_red;
      rotate(sibling, other(side), header);
      sibling = parent->*other(side);
    }
    sibling->_M_color = parent->_M_color;
    parent->_M_color = _S_black;
    (sibling->*other(side))->_M_color = _S_black;
    rotate(parent, side, header);
    break;
  }
  if (x != nullptr) x->_M_color = _S_black;
}

}  // namespace

// Names and arguments are those by which the headers of the C++ library call these.
void _Rb_tree_insert_and_rebalance(const bool to_left, node* x, node* parent,
                                   node& header) noexcept {
  x->_M_parent = parent;
  x->_M_left = x->_M_right = nullptr;
  x->_M_color = _S_red;
  if (parent == &header) {
    header._M_parent = header._M_left = header._M_right = x;
  } else if (to_left) {
    parent->_M_left = x;
    if (header._M_left == parent) header._M_left = x;
  } else {
    parent->_M_right = x;
    if (header._M_right == parent) header._M_right = x;
  }
  repair_after_insert(x, header);
}

node* _Rb_tree_rebalance_for_erase(node* const gone, node& header) noexcept {
  if (header._M_left == gone) header._M_left = next(gone, right);
  if (header._M_right == gone) header._M_right = next(gone, left);
  const bool has_two = gone->_M_left != nullptr && gone->_M_right != nullptr;
  // Of two children the next node in key order takes the place: it has no left child.
  node* const moves = has_two ? last_below(gone->_M_right, left) : gone;
  node* const below = moves->_M_left != nullptr ? moves->_M_left : moves->_M_right;
  node* parent = moves->_M_parent;
  const _Rb_tree_color missing = moves->_M_color;
  replace(moves, below, header);
  if (has_two) {
    if (parent == gone) parent = moves;
    moves->_M_left = gone->_M_left;
    moves->_M_right = gone->_M_right;
    moves->_M_color = gone->_M_color;
    moves->_M_left->_M_parent = moves;
    if (moves->_M_right != nullptr) moves->_M_right->_M_parent = moves;
    replace(gone, moves, header);
  }
  if (header._M_parent == nullptr) {
    header._M_left = header._M_right = &header;
  } else if (missing == _S_black) {
    repair_after_erase(below, parent, header);
  }
  return gone;
}

node* _Rb_tree_increment(node* x) noexcept {
  return next(x, right);
}
const node* _Rb_tree_increment(const node* x) noexcept {
  return next(const_cast<node*>(x), right);
}
node* _Rb_tree_decrement(node* x) noexcept {
  // In front of the end, the header, comes the last node.
  if (x->_M_color == _S_red && x->_M_parent->_M_parent == x) return x->_M_right;
  return next(x, left);
}
const node* _Rb_tree_decrement(const node* x) noexcept {
  return _Rb_tree_decrement(const_cast<node*>(x));
}

// Any function will do: std::hash promises no particular one. It reads the bytes where the machine
// sees it.
size_t _Hash_bytes(const void* bytes, size_t count, size_t seed) {
  const auto* at = static_cast<const unsigned char*>(bytes);
  size_t hash = seed ^ count;
  for (; count != 0;) {
    size_t word = 0;
    const size_t part = count < sizeof word ? count : sizeof word;
    memcpy(&word, at, part);
    hash = (hash ^ word) * 0x9e3779b97f4a7c15;
    hash ^= hash >> 29;
    at += part;
    count -= part;
  }
  return hash;
}

namespace __detail {

// The number of buckets is a prime, and at least doubles (std::unordered_map and its kin).
size_t _Prime_rehash_policy::_M_next_bkt(size_t least) const {
  size_t prime = least < 2 ? 2 : least;
  const auto has_divisor = [](size_t n) {
    for (size_t d = 2; d * d <= n; ++d) {
      if (n % d == 0) return true;
    }
    return false;
  };
  while (has_divisor(prime)) ++prime;
  _M_next_resize = static_cast<size_t>(floor(static_cast<double>(prime) * _M_max_load_factor));
  return prime;
}

pair<bool, size_t> _Prime_rehash_policy::_M_need_rehash(size_t buckets, size_t elements,
                                                        size_t more) const {
  const size_t wanted = elements + more;
  if (wanted <= _M_next_resize) return {false, 0};
  constexpr size_t least = 11;  // of an empty container
  const double needed =
      static_cast<double>(_M_next_resize == 0 && wanted < least ? least : wanted) /
      _M_max_load_factor;
  if (needed < static_cast<double>(buckets)) {
    _M_next_resize = static_cast<size_t>(floor(static_cast<double>(buckets) * _M_max_load_factor));
    return {false, 0};
  }
  const size_t at_least = static_cast<size_t>(needed) + 1;
  return {true, _M_next_bkt(at_least > 2 * buckets ? at_least : 2 * buckets)};
}

void _List_node_base::_M_hook(_List_node_base* const behind) noexcept {
  _M_next = behind;
  _M_prev = behind->_M_prev;
  behind->_M_prev->_M_next = this;
  behind->_M_prev = this;
}

void _List_node_base::_M_unhook() noexcept {
  _M_prev->_M_next = _M_next;
  _M_next->_M_prev = _M_prev;
}

// Moves the nodes from `first` up to `last`, without it, in front of this one.
void _List_node_base::_M_transfer(_List_node_base* const first,
                                  _List_node_base* const last) noexcept {
  if (this == last || first == last) return;
  _List_node_base* const final = last->_M_prev;
  first->_M_prev->_M_next = last;
  last->_M_prev = first->_M_prev;
  first->_M_prev = _M_prev;
  final->_M_next = this;
  _M_prev->_M_next = first;
  _M_prev = final;
}

void _List_node_base::_M_reverse() noexcept {
  _List_node_base* at = this;
  do {
    std::swap(at->_M_next, at->_M_prev);
    at = at->_M_prev;
  } while (at != this);
}

void _List_node_base::swap(_List_node_base& a, _List_node_base& b) noexcept {
  const bool a_is_empty = a._M_next == &a;
  const bool b_is_empty = b._M_next == &b;
  const _List_node_base was_a = a;
  const _List_node_base was_b = b;
  const auto take = [](_List_node_base& into, const _List_node_base& nodes, bool empty) {
    into._M_next = empty ? &into : nodes._M_next;
    into._M_prev = empty ? &into : nodes._M_prev;
    into._M_next->_M_prev = &into;
    into._M_prev->_M_next = &into;
  };
  take(a, was_b, b_is_empty);
  take(b, was_a, a_is_empty);
}

}  // namespace __detail
}  // namespace std
