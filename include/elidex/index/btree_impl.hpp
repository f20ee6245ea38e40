// The bodies of btree.hpp; included at its end. Read that header first: it holds the argument for correctness.
#pragma once

namespace elidex {

template <class Key, class Value, class Sync, class Shape>
btree<Key, Value, Sync, Shape>::btree() {
  static_cast<void>(this_thread_slot());  // may throw on a thread's first use; what follows could not say so
  detail::name_memory(this, sizeof(*this), "tree");
  root_.template store<racing>(::new (leaf_pool_.allocate()) leaf);
}

template <class Key, class Value, class Sync, class Shape>
btree<Key, Value, Sync, Shape>::~btree() {
  // Nodes need no destruction; the pools give their memory back.
  if constexpr (keys::owns_blobs || values::owns_blobs) free_blobs_below(root_.template load<false>());
}

template <class Key, class Value, class Sync, class Shape>
void btree<Key, Value, Sync, Shape>::free_blobs_below(node* n) noexcept {
  const unsigned count = n->count();
  if (n->is_leaf()) {
    const leaf& l = *static_cast<leaf*>(n);
    for (unsigned i = 0; i < count; ++i) {
      detail::blob::destroy(keys::blob_of(l.key(i)));
      detail::blob::destroy(values::blob_of(l.value(i)));
    }
    return;
  }
  const inner& in = *static_cast<inner*>(n);
  for (unsigned i = 0; i <= count; ++i) {
    if (i < count) detail::blob::destroy(keys::blob_of(in.key(i)));
    free_blobs_below(in.child(i));
  }
}

// --- descending ---

template <class Key, class Value, class Sync, class Shape>
bool btree<Key, Value, Sync, Shape>::enter(position& p) const noexcept {
  p.seen = p.at->lock.read();
  // The node's version was read while the parent still pointed at it: the node is the right one at that version.
  return p.parent_lock->validate(p.parent_seen) && !p.seen.is_obsolete();
}

template <class Key, class Value, class Sync, class Shape>
bool btree<Key, Value, Sync, Shape>::enter_root(position& p) const noexcept {
  p.parent_lock = &root_lock_;
  p.parent = nullptr;
  p.index = 0;
  p.parent_seen = root_lock_.read();
  p.at = root_.template load<racing>();
  return root_lock_.validate(p.parent_seen) && enter(p);
}

template <class Key, class Value, class Sync, class Shape>
bool btree<Key, Value, Sync, Shape>::enter_child(position& p, unsigned index) const noexcept {
  p.parent = &p.as_inner();
  p.parent_lock = &p.parent->lock;
  p.parent_seen = p.seen;
  return enter_sibling(p, index);
}

template <class Key, class Value, class Sync, class Shape>
bool btree<Key, Value, Sync, Shape>::enter_sibling(position& p, unsigned index) const noexcept {
  p.index = index;
  p.at = p.parent->child(index);
  // Nothing may be followed before it is known to have been a child of the parent.
  if (!p.parent_lock->validate(p.parent_seen)) return false;
  detail::prefetch_bytes(p.at, p.parent->level == 1 ? sizeof(leaf) : sizeof(inner) / 2);
  return enter(p);
}

template <class Key, class Value, class Sync, class Shape>
bool btree<Key, Value, Sync, Shape>::descend_to_leaf(const probe& key, position& p) const noexcept {
  if (!enter_root(p)) return false;
  while (!p.at->is_leaf()) {
    const inner& in = p.as_inner();
    unsigned index = 0;
    if (!rank<true>(in, in.count(), key, [&] { return p.still_valid(); }, index) || !enter_child(p, index))
      return false;
  }
  return true;
}

template <class Key, class Value, class Sync, class Shape>
template <bool OrEqual, class Node, class StillValid>
bool btree<Key, Value, Sync, Shape>::rank(const Node& n, unsigned count, const probe& key,
                                          [[maybe_unused]] StillValid&& still_valid, unsigned& result) noexcept {
  if constexpr (keys::compares_in_place) {
    // Without branches: the halves are taken by conditional moves, which no random key mispredicts.
    const auto before = [&](unsigned i) { return OrEqual ? n.key(i) <= key : n.key(i) < key; };
    unsigned base = 0;
    unsigned length = count;
    while (length > 1) {
      const unsigned half = length / 2;
      base += before(base + half - 1) ? half : 0;
      length -= half;
    }
    result = base + static_cast<unsigned>(length == 1 && before(base));
    return true;
  } else {
    unsigned low = 0;
    unsigned high = count;
    while (low < high) {
      const unsigned middle = (low + high) / 2;
      const detail::comparison c = keys::compare(n.key(middle), key, still_valid);
      if (c == detail::comparison::torn) return false;
      if (c == detail::comparison::less || (OrEqual && c == detail::comparison::equal)) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    result = low;
    return true;
  }
}

template <class Key, class Value, class Sync, class Shape>
auto btree<Key, Value, Sync, Shape>::find(const position& p, const probe& key) noexcept -> found_slot {
  const leaf& l = p.as_leaf();
  found_slot f;
  f.count = l.count();
  if (!rank<false>(l, f.count, key, [&] { return p.still_valid(); }, f.rank)) {
    f.torn = true;
  } else if (f.rank < f.count) {
    if constexpr (keys::compares_in_place) {
      f.exact = l.key(f.rank) == key;
    } else {
      const auto c = keys::compare(l.key(f.rank), key, [&] { return p.still_valid(); });
      f.exact = c == detail::comparison::equal;
      f.torn = c == detail::comparison::torn;
    }
  }
  return f;
}

// --- regions ---

template <class Key, class Value, class Sync, class Shape>
template <class Body>
auto btree<Key, Value, Sync, Shape>::run_shared(Body&& body) const -> step {
  for (backoff wait;; wait.once()) {
    const step s = sync_.shared(body);
    if (s != step::restart) return s;
    restarts_.add(1);
  }
}

template <class Key, class Value, class Sync, class Shape>
template <class Body>
auto btree<Key, Value, Sync, Shape>::run_exclusive(operation& op, Body&& body) -> step {
  for (backoff wait;;) {
    step s;
    {
      [[maybe_unused]] const pin pinned;
      s = sync_.exclusive(body);
    }
    op.settle();
    switch (s) {
      case step::restart:
        restarts_.add(1);
        wait.once();
        break;
      case step::restructured:
        break;
      case step::need_memory:
        op.provide();
        break;
      default:
        return s;
    }
  }
}

// --- looking up ---

template <class Key, class Value, class Sync, class Shape>
auto btree<Key, Value, Sync, Shape>::try_get(const probe& key, std::optional<value_slot>& value) const noexcept
    -> step {
  position p;
  if (!descend_to_leaf(key, p)) return step::restart;
  const found_slot f = find(p, key);
  if (f.exact) value.emplace(p.as_leaf().value(f.rank));
  if (f.torn || !p.still_valid()) return step::restart;
  return f.exact ? step::yes : step::no;
}

template <class Key, class Value, class Sync, class Shape>
std::optional<Value> btree<Key, Value, Sync, Shape>::get(key_argument key) const {
  const probe where = keys::probe_of(key);
  [[maybe_unused]] const pin pinned;  // until the value is copied out
  std::optional<value_slot> slot;
  if (run_shared([&] { return try_get(where, slot); }) == step::no) return std::nullopt;
  return values::owned(*slot);
}

template <class Key, class Value, class Sync, class Shape>
bool btree<Key, Value, Sync, Shape>::contains(key_argument key) const {
  const probe where = keys::probe_of(key);
  [[maybe_unused]] const pin pinned;
  std::optional<value_slot> slot;
  return run_shared([&] { return try_get(where, slot); }) == step::yes;
}

// --- inserting ---

template <class Key, class Value, class Sync, class Shape>
bool btree<Key, Value, Sync, Shape>::put(key_argument key, value_argument value, bool overwrite) {
  const probe where = keys::probe_of(key);
  values::check(value);
  operation op(*this);
  if (!overwrite) {  // will be needed, but for duplicates
    static_cast<void>(op.has_key(key));
    static_cast<void>(op.has_value(value));
    op.provide();
  }
  const step s = run_exclusive(op, [&] { return try_put(where, key, value, overwrite, op); });
  if (s == step::yes) size_.add(1);
  return s == step::yes;
}

template <class Key, class Value, class Sync, class Shape>
auto btree<Key, Value, Sync, Shape>::try_put(const probe& where, key_argument key, value_argument value, bool overwrite,
                                             operation& op) noexcept -> step {
  position p;
  if (!enter_root(p)) return step::restart;
  while (!p.at->is_leaf()) {
    const inner& in = p.as_inner();
    const unsigned count = in.count();
    if (count == inner::capacity) return split_inner(p, op);
    unsigned index = 0;
    if (!rank<true>(in, count, where, [&] { return p.still_valid(); }, index) || !enter_child(p, index))
      return step::restart;
  }

  leaf& l = p.as_leaf();
  const found_slot f = find(p, where);
  if (f.torn) return step::restart;
  if (f.exact && !overwrite) return p.still_valid() ? step::no : step::restart;
  if (f.exact) {
    if (!op.has_value(value) || (values::owns_blobs && !op.may_retire())) return step::need_memory;
    if (!l.lock.try_upgrade(p.seen)) return step::restart;
    op.retire_value(l.value(f.rank));
    l.set_value(f.rank, op.take_value(value));
    l.lock.unlock();
    return step::no;
  }
  if (f.count == leaf::capacity) return split_leaf(p, f.rank, op);
  if (!op.has_key(key) || !op.has_value(value)) return step::need_memory;
  if (!l.lock.try_upgrade(p.seen)) return step::restart;
  l.insert(f.rank, op.take_key(key), op.take_value(value));
  l.lock.unlock();
  return step::yes;
}

template <class Key, class Value, class Sync, class Shape>
bool btree<Key, Value, Sync, Shape>::position::try_lock_parent_and_node() noexcept {
  if (!parent_lock->try_upgrade(parent_seen)) return false;
  if (at->lock.try_upgrade(seen)) return true;
  parent_lock->unlock_unchanged(parent_seen);
  return false;
}

template <class Key, class Value, class Sync, class Shape>
void btree<Key, Value, Sync, Shape>::position::unlock_both() noexcept {
  at->lock.unlock();
  parent_lock->unlock();
}

template <class Key, class Value, class Sync, class Shape>
void btree<Key, Value, Sync, Shape>::position::unlock_both_unchanged() noexcept {
  at->lock.unlock_unchanged(seen);
  parent_lock->unlock_unchanged(parent_seen);
}

template <class Key, class Value, class Sync, class Shape>
auto btree<Key, Value, Sync, Shape>::split_leaf(position& p, unsigned insert_rank, operation& op) noexcept -> step {
  const bool is_root = p.parent == nullptr;
  if (!op.has_nodes(true, is_root ? 1 : 0)) return step::need_memory;
  if (!p.try_lock_parent_and_node()) return step::restart;
  leaf& left = p.as_leaf();

  // Keys that arrive in ascending order would leave half-full leaves behind: at the parent's right edge, split off one
  // key. (A random key comes to that place once in a parent's life or so.)
  const bool ascending = insert_rank == leaf::capacity && (is_root || p.index == p.parent->count());
  const unsigned middle = ascending ? leaf::capacity - 1 : leaf::capacity / 2;

  const typename keys::separator separator(left.key(middle - 1), left.key(middle));
  if (!op.has_separator(separator.blob_bytes())) {
    p.unlock_both_unchanged();
    return step::need_memory;
  }
  leaf* const right = op.take_leaf();
  left.move_tail(middle, *right);
  link_right_half(p, op.take_separator(separator), right, op);
  p.unlock_both();
  op.note_split();
  return step::restructured;
}

template <class Key, class Value, class Sync, class Shape>
auto btree<Key, Value, Sync, Shape>::split_inner(position& p, operation& op) noexcept -> step {
  if (!op.has_nodes(false, p.parent == nullptr ? 2 : 1)) return step::need_memory;
  if (!p.try_lock_parent_and_node()) return step::restart;
  inner& left = p.as_inner();
  const unsigned middle = inner::capacity / 2;
  const key_slot separator = left.key(middle);
  inner* const right = op.take_inner(left.level);
  left.split(middle, *right);
  link_right_half(p, separator, right, op);
  p.unlock_both();
  op.note_split();
  return step::restructured;
}

// The parent has room: an inner node that is full is split before anything below it is looked at.
template <class Key, class Value, class Sync, class Shape>
void btree<Key, Value, Sync, Shape>::link_right_half(position& p, const key_slot& separator, node* right,
                                                     operation& op) noexcept {
  if (p.parent != nullptr) {
    p.parent->insert(p.index, separator, right);
    return;
  }
  inner* const root = op.take_inner(p.at->level + 1u);
  root->set_child(0, p.at);
  root->insert(0, separator, right);
  root_.template store<racing>(root);
}

// --- updating ---

template <class Key, class Value, class Sync, class Shape>
template <class Fn>
bool btree<Key, Value, Sync, Shape>::update(key_argument key, Fn&& fn) {
  const probe where = keys::probe_of(key);
  operation op(*this);
  if constexpr (!values::owns_blobs) {
    std::exception_ptr thrown;
    const step s = run_exclusive(op, [&] { return try_update(where, fn, thrown); });
    if (s == step::threw) std::rethrow_exception(thrown);
    return s == step::yes;
  } else {
    // The new blob must be made outside of the region, so: read, compute, and replace if it is still the same blob.
    // While pinned, a blob's address is not used again, so the same address means the same value.
    const epoch_pin pinned;
    for (;;) {
      std::optional<value_slot> old;
      if (run_shared([&] { return try_get(where, old); }) == step::no) return false;
      Value value = values::owned(*old);
      fn(value);
      values::check(value);
      operation replacement(*this);
      if (!replacement.has_value(value)) replacement.provide();
      const step s = run_exclusive(replacement, [&] { return try_replace(where, *old, value, replacement); });
      if (s == step::yes) return true;
    }
  }
}

template <class Key, class Value, class Sync, class Shape>
template <class Fn>
auto btree<Key, Value, Sync, Shape>::try_update(const probe& key, Fn& fn, std::exception_ptr& thrown) noexcept -> step {
  position p;
  if (!descend_to_leaf(key, p)) return step::restart;
  leaf& l = p.as_leaf();
  const found_slot f = find(p, key);
  if (f.torn) return step::restart;
  if (!f.exact) return p.still_valid() ? step::no : step::restart;
  if (!l.lock.try_upgrade(p.seen)) return step::restart;
  Value value = l.value(f.rank);
  try {
    fn(value);
  } catch (...) {
    thrown = std::current_exception();
    l.lock.unlock_unchanged(p.seen);
    return step::threw;
  }
  l.set_value(f.rank, value);
  l.lock.unlock();
  return step::yes;
}

template <class Key, class Value, class Sync, class Shape>
auto btree<Key, Value, Sync, Shape>::try_replace(const probe& key, const value_slot& expected, value_argument value,
                                                 operation& op) noexcept -> step {
  position p;
  if (!descend_to_leaf(key, p)) return step::restart;
  leaf& l = p.as_leaf();
  const found_slot f = find(p, key);
  if (f.torn) return step::restart;
  if (!f.exact || l.value(f.rank) != expected) return p.still_valid() ? step::no : step::restart;
  if (!op.may_retire()) return step::need_memory;
  if (!l.lock.try_upgrade(p.seen)) return step::restart;
  op.retire_value(expected);
  l.set_value(f.rank, op.take_value(value));
  l.lock.unlock();
  return step::yes;
}

// --- erasing ---

template <class Key, class Value, class Sync, class Shape>
bool btree<Key, Value, Sync, Shape>::erase(key_argument key) {
  const probe where = keys::probe_of(key);
  operation op(*this);
  const step s = run_exclusive(op, [&] { return try_erase(where, op); });
  if (s == step::yes) size_.add(-1);
  return s == step::yes;
}

template <class Key, class Value, class Sync, class Shape>
auto btree<Key, Value, Sync, Shape>::try_erase(const probe& key, operation& op) noexcept -> step {
  position p;
  if (!enter_root(p)) return step::restart;
  while (!p.at->is_leaf()) {
    const inner& in = p.as_inner();
    const unsigned count = in.count();
    if (p.parent == nullptr && count == 0) return collapse_root(p, op);
    if (p.parent != nullptr && count <= inner_sparse) {
      const step s = merge_inner(p, op);
      if (s != step::no) return s;
    }
    unsigned index = 0;
    if (!rank<true>(in, count, key, [&] { return p.still_valid(); }, index) || !enter_child(p, index))
      return step::restart;
  }

  leaf& l = p.as_leaf();
  const found_slot f = find(p, key);
  if (f.torn) return step::restart;
  if (!f.exact) return p.still_valid() ? step::no : step::restart;
  if (p.parent != nullptr && f.count <= leaf_sparse + 1) {
    const step s = erase_and_merge(p, f.rank, op);
    if (s != step::no) return s;
  }
  if ((keys::owns_blobs || values::owns_blobs) && !op.may_retire()) return step::need_memory;
  if (!l.lock.try_upgrade(p.seen)) return step::restart;
  op.retire_key(l.key(f.rank));
  op.retire_value(l.value(f.rank));
  l.erase(f.rank);
  l.lock.unlock();
  return step::yes;
}

// The node with its sibling on one side: no when there is none, restart when the parent has changed.
template <class Key, class Value, class Sync, class Shape>
auto btree<Key, Value, Sync, Shape>::find_sibling(const position& p, side where, position& left,
                                                  position& right) const noexcept -> step {
  const bool there = where == side::left ? p.index > 0 : p.index < p.parent->count();
  if (!there) return p.parent_lock->validate(p.parent_seen) ? step::no : step::restart;
  left = right = p;
  const bool entered = where == side::left ? enter_sibling(left, p.index - 1) : enter_sibling(right, p.index + 1);
  return entered ? step::yes : step::restart;
}

template <class Key, class Value, class Sync, class Shape>
auto btree<Key, Value, Sync, Shape>::erase_and_merge(position& p, unsigned rank, operation& op) noexcept -> step {
  const step s = erase_and_merge(p, side::left, rank, op);
  return s != step::no ? s : erase_and_merge(p, side::right, rank, op);
}

template <class Key, class Value, class Sync, class Shape>
auto btree<Key, Value, Sync, Shape>::erase_and_merge(position& p, side where, unsigned rank, operation& op) noexcept
    -> step {
  position left;
  position right;
  if (const step s = find_sibling(p, where, left, right); s != step::yes) return s;
  leaf& l = left.as_leaf();
  leaf& r = right.as_leaf();
  const unsigned remaining = l.count() + r.count() - 1;
  // An emptied leaf always goes. Torn counts do no harm: they are checked again by the upgrades.
  if (remaining > leaf_merged_max && p.at->count() != 1) return step::no;
  if (!op.may_retire()) return step::need_memory;
  if (!left.try_lock_parent_and_node()) return step::restart;
  if (!r.lock.try_upgrade(right.seen)) {
    left.unlock_both_unchanged();
    return step::restart;
  }
  leaf& from = p.as_leaf();
  op.retire_key(from.key(rank));
  op.retire_value(from.value(rank));
  from.erase(rank);
  r.move_tail(0, l);
  op.retire_key(left.parent->key(left.index));
  left.parent->erase(left.index);
  op.retire_leaf(&r);
  r.lock.unlock_obsolete();
  left.unlock_both();
  op.note_merge();
  return step::yes;
}

template <class Key, class Value, class Sync, class Shape>
auto btree<Key, Value, Sync, Shape>::merge_inner(position& p, operation& op) noexcept -> step {
  for (const if_full otherwise : {if_full::leave, if_full::share}) {
    // To share makes sense for a node with one child only: the leaf that it may be has no sibling.
    if (otherwise == if_full::share && p.at->count() != 0) break;
    for (const side where : {side::left, side::right}) {
      if (const step s = merge_inner(p, where, otherwise, op); s != step::no) return s;
    }
  }
  return step::no;
}

template <class Key, class Value, class Sync, class Shape>
auto btree<Key, Value, Sync, Shape>::merge_inner(position& p, side where, if_full otherwise, operation& op) noexcept
    -> step {
  position left;
  position right;
  if (const step s = find_sibling(p, where, left, right); s != step::yes) return s;
  inner& l = left.as_inner();
  inner& r = right.as_inner();
  const unsigned merged = l.count() + r.count() + 1;  // the separator comes down between them
  const bool fits = merged <= (p.at->count() == 0 ? inner::capacity : inner_merged_max);
  if (!fits && otherwise == if_full::leave) return step::no;
  if (fits && !op.may_retire()) return step::need_memory;
  if (!left.try_lock_parent_and_node()) return step::restart;
  if (!r.lock.try_upgrade(right.seen)) {
    left.unlock_both_unchanged();
    return step::restart;
  }
  if (fits) {
    l.append(left.parent->key(left.index), r, r.count() + 1);
    left.parent->erase(left.index);
    op.retire_inner(&r);
    r.lock.unlock_obsolete();
    op.note_merge();
  } else {
    left.parent->set_key(left.index, share_children(l, left.parent->key(left.index), r));
    r.lock.unlock();
  }
  left.unlock_both();
  return step::restructured;
}

// Parts the children of a node that has one and of its full sibling anew. Takes the separator between them and returns
// the new one.
template <class Key, class Value, class Sync, class Shape>
auto btree<Key, Value, Sync, Shape>::share_children(inner& left, const key_slot& between, inner& right) noexcept
    -> key_slot {
  constexpr unsigned half = inner::capacity / 2;
  if (left.count() == 0) {
    const key_slot separator = right.key(half - 1);
    left.append(between, right, half);
    right.drop_front(half);
    return separator;
  }
  const key_slot separator = left.key(half);
  node* const last = right.child(0);
  left.split(half, right);
  right.insert(right.count(), between, last);
  return separator;
}

template <class Key, class Value, class Sync, class Shape>
auto btree<Key, Value, Sync, Shape>::collapse_root(position& p, operation& op) noexcept -> step {
  if (!op.may_retire()) return step::need_memory;
  if (!p.try_lock_parent_and_node()) return step::restart;
  inner& old = p.as_inner();
  root_.template store<racing>(old.child(0));
  op.retire_inner(&old);
  old.lock.unlock_obsolete();
  p.parent_lock->unlock();
  return step::restructured;
}

// --- ranges and facts ---

template <class Key, class Value, class Sync, class Shape>
template <class Fn>
std::size_t btree<Key, Value, Sync, Shape>::scan(key_argument from, std::size_t limit, Fn&& fn) const {
  using collector = detail::range_collector<btree>;
  collector range(*this, limit);
  const auto collect = [&] { range.collect_forward(collector::start::at(keys::probe_of(from))); };
  const auto pass_on = [&] {
    for (const auto& e : range.entries()) {
      const typename keys::view key(e.key);
      fn(key.get(), values::view(e.value));
    }
  };
  if constexpr (keys::owns_blobs || values::owns_blobs) {
    [[maybe_unused]] const pin until_the_last_blob_is_seen;
    collect();
    pass_on();
  } else {
    {
      [[maybe_unused]] const pin pinned;
      collect();
    }
    pass_on();
  }
  return range.entries().size();
}

template <class Key, class Value, class Sync, class Shape>
std::size_t btree<Key, Value, Sync, Shape>::memory_bytes() const noexcept {
  return sizeof(*this) + leaf_pool_.reserved_bytes() + inner_pool_.reserved_bytes() + limbo_.reserved_bytes() +
         static_cast<std::size_t>(std::max<std::int64_t>(blob_bytes_.sum(), 0));
}

template <class Key, class Value, class Sync, class Shape>
btree_stats btree<Key, Value, Sync, Shape>::stats() const noexcept {
  btree_stats s;
  s.restarts = restarts_.sum();
  s.splits = splits_.sum();
  s.merges = merges_.sum();
  s.leaves = leaf_pool_.blocks_in_use();
  s.inner_nodes = inner_pool_.blocks_in_use();
  s.limbo_objects = limbo_.pending();
  return s;
}

}  // namespace elidex
