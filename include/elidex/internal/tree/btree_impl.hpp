// The bodies of btree.hpp; included at its end. Read that header first: it holds the argument for
// correctness.
#pragma once

namespace elidex::internal {

template <class Key, class Value, class Sync, class Shape>
btree<Key, Value, Sync, Shape>::btree() {
  // may throw on a thread's first use; what follows could not say so
  static_cast<void>(this_thread_slot());
  name_memory(this, sizeof(*this), "tree");
  root_.template store<racing>(::new (leaf_pool_.allocate()) leaf);
}

template <class Key, class Value, class Sync, class Shape>
btree<Key, Value, Sync, Shape>::~btree() {
  // Nodes need no destruction; the pools give their memory back.
  if constexpr (owns_single_blobs) free_blobs_below(root_.template load<false>());
}

template <class Key, class Value, class Sync, class Shape>
void btree<Key, Value, Sync, Shape>::free_blobs_below(node* n) noexcept {
  const unsigned count = n->count();
  if (n->is_leaf()) {
    const leaf& l = *static_cast<leaf*>(n);
    for (unsigned i = 0; i < count; ++i) {
      free_key_blob(l.key(i));
      internal::blob::destroy(values::blob_of(l.value(i)));
    }
    return;
  }
  const inner& in = *static_cast<inner*>(n);
  for (unsigned i = 0; i <= count; ++i) {
    if (i < count) free_key_blob(in.key(i));
    free_blobs_below(in.child(i));
  }
}

// --- descending ---

template <class Key, class Value, class Sync, class Shape>
auto btree<Key, Value, Sync, Shape>::find(const position& p, const probe& key) noexcept
    -> found_slot {
  const leaf& l = p.as_leaf();
  found_slot f;
  f.count = l.count();
  const auto still_valid = [&] { return p.still_valid(); };
  if constexpr (keys::compares_in_place) {
    inner_levels::template rank_in_node<false>(l, f.count, key, still_valid, f.rank);
    f.exact = f.rank < f.count && l.key(f.rank) == key;
  } else {
    f.torn = !rank_by_heads<false>(l, f.count, key, still_valid, f.rank, f.exact);
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

// --- looking up ---

template <class Key, class Value, class Sync, class Shape>
auto btree<Key, Value, Sync, Shape>::try_get(const probe& key,
                                             std::optional<value_slot>& value) const noexcept
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

template <class Key, class Value, class Sync, class Shape>
void btree<Key, Value, Sync, Shape>::multi_get(std::span<const key_argument> wanted,
                                               std::span<std::optional<Value>> found) const {
  if (found.size() < wanted.size())
    throw std::invalid_argument("elidex: multi_get: fewer values than keys");
  const auto read = [&](std::size_t i, const probe& key, const position& p, unsigned /*slot*/) {
    const found_slot f = find(p, key);
    if (f.torn) return false;
    if (!f.exact) {
      found[i].reset();
      return p.still_valid();
    }
    const value_slot slot = p.as_leaf().value(f.rank);
    if (!p.still_valid()) return false;
    found[i] = values::owned(slot);
    return true;
  };
  look_up_together(
      wanted.size(), [&](std::size_t i) { return keys::probe_of(wanted[i]); }, read,
      [&](std::size_t i) { found[i] = get(wanted[i]); });
}

// --- inserting ---

template <class Key, class Value, class Sync, class Shape>
bool btree<Key, Value, Sync, Shape>::insert_or_overwrite(key_argument key, value_argument value,
                                                         bool overwrite) {
  const probe where = keys::probe_of(key);
  values::check(value);
  operation op(*this);
  if (!overwrite) {  // will be needed, but for duplicates
    static_cast<void>(op.has_key(key));
    static_cast<void>(op.has_value(value));
    op.provide();
  }
  const step s = run_changing(op, [&] {
    return sync_.exclusive([&] { return try_put(where, key, value, overwrite, op); });
  });
  if (s == step::yes) size_.add(1);
  return s == step::yes;
}

template <class Key, class Value, class Sync, class Shape>
auto btree<Key, Value, Sync, Shape>::try_put(const probe& where, key_argument key,
                                             value_argument value, bool overwrite,
                                             operation& op) noexcept -> step {
  position p;
  if (const step s = descend_splitting(where, p, op); s != step::yes) return s;
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
template <class Make>
std::pair<Value, bool> btree<Key, Value, Sync, Shape>::get_or_insert(key_argument key, Make&& make)
  requires(!values::owns_blobs)
{
  return *get_or_insert_if_made(
      key, [&](const key_slot& /*slot*/) { return std::optional<Value>(make()); });
}

template <class Key, class Value, class Sync, class Shape>
template <class Make>
std::optional<std::pair<Value, bool>> btree<Key, Value, Sync, Shape>::get_or_insert_if_made(
    key_argument key, Make&& make)
  requires(!values::owns_blobs)
{
  const probe where = keys::probe_of(key);
  operation op(*this);
  std::optional<Value> value;
  std::exception_ptr thrown;
  const step s = run_changing(op, [&] {
    return sync_.exclusive([&] { return try_get_or_insert(where, key, make, op, value, thrown); });
  });
  if (s == step::threw) std::rethrow_exception(thrown);
  if (s == step::unmade) return std::nullopt;
  if (s == step::yes) size_.add(1);
  return std::pair(*value, s == step::yes);
}

template <class Key, class Value, class Sync, class Shape>
template <class Make>
auto btree<Key, Value, Sync, Shape>::try_get_or_insert(const probe& where, key_argument key,
                                                       Make& make, operation& op,
                                                       std::optional<Value>& value,
                                                       std::exception_ptr& thrown) noexcept
    -> step {
  position p;
  if (const step s = descend_splitting(where, p, op); s != step::yes) return s;
  leaf& l = p.as_leaf();
  const found_slot f = find(p, where);
  if (f.torn) return step::restart;
  if (f.exact) {
    value.emplace(l.value(f.rank));
    return p.still_valid() ? step::no : step::restart;
  }
  if (f.count == leaf::capacity) return split_leaf(p, f.rank, op);
  if (!op.has_key(key)) return step::need_memory;
  if (!l.lock.try_upgrade(p.seen)) return step::restart;
  try {
    value = make(op.key(key));
  } catch (...) {
    thrown = std::current_exception();
    l.lock.unlock_unchanged(p.seen);
    return step::threw;
  }
  if (!value) {
    l.lock.unlock_unchanged(p.seen);
    return step::unmade;
  }
  l.insert(f.rank, op.take_key(key), *value);
  l.lock.unlock();
  return step::yes;
}

template <class Key, class Value, class Sync, class Shape>
auto btree<Key, Value, Sync, Shape>::split_leaf(position& p, unsigned insert_rank,
                                                operation& op) noexcept -> step {
  const bool is_root = p.parent == nullptr;
  if (!op.has_nodes(true, is_root ? 1 : 0)) return step::need_memory;
  if (!p.try_lock_parent_and_node()) return step::restart;
  leaf& left = p.as_leaf();

  // Keys that arrive in ascending order would leave half-full leaves behind: at the parent's right
  // edge, split off one key. (A random key comes to that place once in a parent's life or so.)
  const bool ascending = insert_rank == leaf::capacity && (is_root || p.index == p.parent->count());
  const unsigned middle = ascending ? leaf::capacity - 1 : leaf::capacity / 2;

  const typename keys::separator separator(left.key(middle - 1), left.key(middle));
  if (!op.has_separator(separator.blob_bytes())) {
    p.unlock_both_unchanged();
    return step::need_memory;
  }
  leaf* const right = op.take_leaf();
  right->prefix.set(left.prefix.get());
  left.move_tail(middle, *right);
  const key_slot between = op.take_separator(separator);
  lengthen_prefixes(left, *right, p.parent, p.index, between);
  link_right_half(p, between, right, op);
  p.unlock_both();
  op.note_split();
  return step::restructured;
}

// --- updating ---

template <class Key, class Value, class Sync, class Shape>
template <value_change<Value> Fn>
bool btree<Key, Value, Sync, Shape>::update(key_argument key, Fn&& fn) {
  const probe where = keys::probe_of(key);
  operation op(*this);
  if constexpr (!values::owns_blobs) {
    std::exception_ptr thrown;
    const step s = run_changing(
        op, [&] { return sync_.exclusive([&] { return try_update(where, fn, thrown); }); });
    if (s == step::threw) std::rethrow_exception(thrown);
    return s == step::yes;
  } else {
    // The new blob must be made outside of the region, so: read, compute, and replace if it is
    // still the same blob. While pinned, a blob's address is not used again, so the same address
    // means the same value.
    const epoch_pin pinned;
    for (;;) {
      std::optional<value_slot> old;
      if (run_shared([&] { return try_get(where, old); }) == step::no) return false;
      Value value = values::owned(*old);
      fn(value);
      values::check(value);
      operation replacement(*this);
      if (!replacement.has_value(value)) replacement.provide();
      const step s = run_changing(replacement, [&] {
        return sync_.exclusive([&] { return try_replace(where, *old, value, replacement); });
      });
      if (s == step::yes) return true;
    }
  }
}

template <class Key, class Value, class Sync, class Shape>
template <class Fn>
auto btree<Key, Value, Sync, Shape>::try_update(const probe& key, Fn& fn,
                                                std::exception_ptr& thrown) noexcept -> step {
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
auto btree<Key, Value, Sync, Shape>::try_replace(const probe& key, const value_slot& expected,
                                                 value_argument value, operation& op) noexcept
    -> step {
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
  const step s =
      run_changing(op, [&] { return sync_.exclusive([&] { return try_erase(where, op); }); });
  if (s == step::yes) size_.add(-1);
  return s == step::yes;
}

template <class Key, class Value, class Sync, class Shape>
auto btree<Key, Value, Sync, Shape>::try_erase(const probe& key, operation& op) noexcept -> step {
  position p;
  if (const step s = descend_merging(key, p, op); s != step::yes) return s;
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

template <class Key, class Value, class Sync, class Shape>
auto btree<Key, Value, Sync, Shape>::erase_and_merge(position& p, unsigned rank,
                                                     operation& op) noexcept -> step {
  const step s = erase_and_merge(p, side::left, rank, op);
  return s != step::no ? s : erase_and_merge(p, side::right, rank, op);
}

template <class Key, class Value, class Sync, class Shape>
auto btree<Key, Value, Sync, Shape>::erase_and_merge(position& p, side where, unsigned rank,
                                                     operation& op) noexcept -> step {
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
  share_prefix(l, r);
  r.move_tail(0, l);
  op.retire_key(left.parent->key(left.index));
  left.parent->erase(left.index);
  op.retire_leaf(&r);
  r.lock.unlock_obsolete();
  left.unlock_both();
  op.note_merge();
  return step::yes;
}

// --- ranges and facts ---

template <class Key, class Value, class Sync, class Shape>
template <class Fn>
std::size_t btree<Key, Value, Sync, Shape>::scan(key_argument from, std::size_t limit,
                                                 Fn&& fn) const {
  using collector = internal::range_collector<btree>;
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
  return sizeof(*this) + this->node_bytes_reserved() + retire_list_.reserved_bytes() +
         key_blobs_.memory_bytes() +
         static_cast<std::size_t>(std::max<std::int64_t>(blob_bytes_.sum(), 0));
}

template <class Key, class Value, class Sync, class Shape>
btree_stats btree<Key, Value, Sync, Shape>::stats() const noexcept {
  btree_stats s = this->node_stats();
  s.retired_objects = retire_list_.pending();
  return s;
}

}  // namespace elidex::internal
