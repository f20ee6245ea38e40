// The bodies of masstree.hpp; included at its end. Read that header first: it holds the argument
// for correctness.
#pragma once

namespace elidex::papers {

using namespace internal;

template <std::integral Key, class Value, class Sync, unsigned Width>
masstree<Key, Value, Sync, Width>::masstree() {
  // may throw on a thread's first use; what follows could not say so
  static_cast<void>(this_thread_slot());
  internal::name_memory(this, sizeof(*this), "tree");
  void* const block = leaf_pool_.allocate();
  root_ = ::new (block) leaf(std::numeric_limits<Key>::min(), version::state::unlocked_root);
}

// --- descending ---

template <std::integral Key, class Value, class Sync, unsigned Width>
bool masstree<Key, Value, Sync, Width>::find_leaf(Key key, leaf*& l, token& seen) const noexcept {
  // acquire: pairs with the release stores of link_upward() and give_up_root().
  node* at = root_.load(std::memory_order_acquire);
  seen = at->version.stable();
  if (!seen.is_root()) return false;
  while (!seen.is_leaf()) {
    const inner& in = *static_cast<inner*>(at);
    node* const child = in.child(in.index_of(key));
    internal::prefetch_bytes<sizeof(leaf)>(child);
    const token childs = child->version.stable();
    if (!in.version.changed_since(seen)) {
      at = child;
      seen = childs;
      continue;
    }
    const token now = in.version.stable();
    if (version::split_between(seen, now) || now.is_deleted()) return false;
    seen = now;
    count_restart();
  }
  l = static_cast<leaf*>(at);
  return true;
}

template <std::integral Key, class Value, class Sync, unsigned Width>
bool masstree<Key, Value, Sync, Width>::follow_splits(Key key, leaf*& l,
                                                      token& seen) const noexcept {
  token now = l->version.stable();
  if (version::split_between(seen, now)) {
    for (leaf* next = l->next(); !now.is_deleted() && next != nullptr && key >= next->low;
         next = l->next()) {
      l = next;
      now = l->version.stable();
    }
  }
  seen = now;
  return !now.is_deleted();
}

template <std::integral Key, class Value, class Sync, unsigned Width>
bool masstree<Key, Value, Sync, Width>::lock_slot(Key key, slot_ref& where) const noexcept {
  leaf* l = nullptr;
  token seen;
  if (!find_leaf(key, l, seen)) return false;
  for (;;) {
    // Looked up before the leaf is locked: a search under the lock would make the others wait
    // longer.
    const order before = l->permuted();
    where.position = l->rank(before, key);
    const token now = l->version.lock();
    if (!now.is_deleted() && !version::split_between(seen, now)) {
      where.at = l;
      where.permuted = l->permuted();
      if (version::changed_between(seen, now) || where.permuted.word() != before.word()) {
        where.position = l->rank(where.permuted, key);
      }
      where.found = l->holds(where.permuted, where.position, key);
      return true;
    }
    l->version.unlock();
    if (!follow_splits(key, l, seen)) return false;
    count_restart();
  }
}

template <std::integral Key, class Value, class Sync, unsigned Width>
auto masstree<Key, Value, Sync, Width>::lock_parent(const node& n) noexcept -> inner* {
  for (;;) {
    inner* const p = n.parent();
    // stays so: who makes a root of a node, or takes that away, holds it
    if (p == nullptr) return nullptr;
    p->version.lock();
    if (n.parent() == p) return p;
    p->version.unlock();  // it was split meanwhile
  }
}

// --- regions ---

template <std::integral Key, class Value, class Sync, unsigned Width>
template <class Body>
auto masstree<Key, Value, Sync, Width>::run_shared(Body&& body) const -> op_status {
  for (backoff wait;; wait.once()) {
    const op_status s = sync_.shared(body);
    if (s != op_status::restart) return s;
    count_restart();
  }
}

template <std::integral Key, class Value, class Sync, unsigned Width>
template <class Body>
auto masstree<Key, Value, Sync, Width>::run_exclusive(operation& op, Body&& body) -> op_status {
  for (backoff wait;;) {
    op_status s;
    {
      [[maybe_unused]] const pin pinned;
      s = sync_.exclusive(body);
    }
    op.settle();
    switch (s) {
      case op_status::restart:
        count_restart();
        wait.once();
        break;
      case op_status::need_memory:
        op.provide();
        break;
      default:
        return s;
    }
  }
}

// --- looking up ---

template <std::integral Key, class Value, class Sync, unsigned Width>
auto masstree<Key, Value, Sync, Width>::try_get(Key key, std::optional<Value>& value) const noexcept
    -> op_status {
  leaf* l = nullptr;
  token seen;
  if (!find_leaf(key, l, seen)) return op_status::restart;
  for (;;) {
    const order o = l->permuted();
    const unsigned position = l->rank(o, key);
    const bool found = l->holds(o, position, key);
    if (found) value.emplace(l->value(o.slot(position)));
    if (!l->version.changed_since(seen)) return found ? op_status::yes : op_status::no;
    if (!follow_splits(key, l, seen)) return op_status::restart;
    count_restart();
  }
}

template <std::integral Key, class Value, class Sync, unsigned Width>
std::optional<Value> masstree<Key, Value, Sync, Width>::get(Key key) const {
  std::optional<Value> value;
  [[maybe_unused]] const pin pinned;
  if (run_shared([&] { return try_get(key, value); }) == op_status::no) return std::nullopt;
  return value;
}

// --- inserting ---

template <std::integral Key, class Value, class Sync, unsigned Width>
bool masstree<Key, Value, Sync, Width>::insert_or_overwrite(Key key, const Value& value,
                                                            bool overwrite) {
  operation op(*this);
  const op_status s = run_exclusive(op, [&] { return try_put(key, value, overwrite, op); });
  if (overwrite || s == op_status::yes) make_visible();
  if (s == op_status::yes) size_.add(1);
  return s == op_status::yes;
}

template <std::integral Key, class Value, class Sync, unsigned Width>
std::pair<Value, bool> masstree<Key, Value, Sync, Width>::insert_or_get(Key key,
                                                                        const Value& value) {
  Value found = value;
  operation op(*this);
  const op_status s = run_exclusive(op, [&] { return try_put(key, value, false, op, &found); });
  if (s == op_status::yes) {
    make_visible();
    size_.add(1);
  }
  return {found, s == op_status::yes};
}

template <std::integral Key, class Value, class Sync, unsigned Width>
auto masstree<Key, Value, Sync, Width>::try_put(Key key, const Value& value, bool overwrite,
                                                operation& op, Value* kept) noexcept -> op_status {
  slot_ref where;
  if (!lock_slot(key, where)) return op_status::restart;
  leaf& l = *where.at;
  if (where.found) {
    if (overwrite) {
      l.overwrite(where.slot(), value);
      l.version.unlock_changed();
    } else {
      if (kept != nullptr) *kept = l.value(where.slot());
      l.version.unlock();
    }
    return op_status::no;
  }
  if (where.permuted.count() == Width) return split_and_insert(where, key, value, op);
  l.insert(where.permuted, where.position, key, value);
  l.version.unlock_changed();
  return op_status::yes;
}

// The caller holds the leaf, which is full.
template <std::integral Key, class Value, class Sync, unsigned Width>
auto masstree<Key, Value, Sync, Width>::split_and_insert(const slot_ref& where, Key key,
                                                         const Value& value, operation& op) noexcept
    -> op_status {
  leaf& left = *where.at;
  const order o = where.permuted;
  const unsigned position = where.position;
  // All that will change: the full nodes above the leaf, and the first one that has room.
  locked_path path;
  unsigned inners = 0;
  for (const node* below = &left;;) {
    inner* const p = lock_parent(*below);
    if (p != nullptr) path.push(p);
    if (p == nullptr || p->is_full()) ++inners;  // a new root, or a half of p
    if (p == nullptr || !p->is_full()) break;
    below = p;
  }
  if (!op.has_nodes(true, inners)) {
    path.unlock();
    left.version.unlock();
    return op_status::need_memory;
  }

  left.version.mark_splitting();
  for (unsigned i = 0; i < path.depth(); ++i) {
    if (path[i]->is_full()) {
      path[i]->version.mark_splitting();
    } else {
      path[i]->version.mark_inserting();
    }
  }

  // Keys that arrive in ascending order would leave half-full leaves behind: at the right end, only
  // the new key moves on.
  leaf* const next = left.next();
  const bool ascending = position == Width && next == nullptr;
  const unsigned kept = ascending ? Width : (Width + 1) / 2;
  leaf* const right = op.take_leaf(ascending ? key : left.key(o.slot(kept)));
  left.move_tail(o, kept, *right);
  if (ascending || position > kept) {
    right->insert(right->permuted(), position - kept, key, value);
  } else {
    left.insert(left.permuted(), position, key, value);
  }
  right->set_prev(&left);
  right->set_next(next);
  if (next != nullptr) next->set_prev(right);
  left.set_next(right);

  locked_path made;
  link_upward(path, &left, right, right->low, made, op);
  left.version.unlock_changed();
  right->version.unlock();
  path.unlock();
  made.unlock();
  op.note_splits(1 + made.depth());
  return op_status::yes;
}

// Puts `right`, split off from `left`, into the tree. The nodes made on the way are left locked.
template <std::integral Key, class Value, class Sync, unsigned Width>
void masstree<Key, Value, Sync, Width>::link_upward(const locked_path& path, node* left,
                                                    node* right, Key low, locked_path& made,
                                                    operation& op) noexcept {
  for (unsigned i = 0; i < path.depth(); ++i) {
    inner* const p = path[i];
    if (!p->is_full()) {
      p->insert(low, right);
      return;
    }
    inner* const half = op.take_inner(version::state::locked_and_splitting);
    made.push(half);
    low = p->split_and_insert(low, right, *half);
    left = p;
    right = half;
  }
  inner* const root = op.take_inner(version::state::unlocked_root);
  root->set_two_children(left, low, right);
  root_.store(root, std::memory_order_release);  // pairs with the load of find_leaf()
  left->version.set_root(false);
}

// --- updating ---

template <std::integral Key, class Value, class Sync, unsigned Width>
template <value_change<Value> Fn>
bool masstree<Key, Value, Sync, Width>::update(Key key, Fn&& fn) {
  operation op(*this);
  std::exception_ptr thrown;
  const op_status s = run_exclusive(op, [&] { return try_update(key, fn, thrown); });
  if (s == op_status::threw) std::rethrow_exception(thrown);
  if (s == op_status::yes) make_visible();
  return s == op_status::yes;
}

template <std::integral Key, class Value, class Sync, unsigned Width>
template <class Fn>
auto masstree<Key, Value, Sync, Width>::try_update(Key key, Fn& fn,
                                                   std::exception_ptr& thrown) noexcept
    -> op_status {
  slot_ref where;
  if (!lock_slot(key, where)) return op_status::restart;
  leaf& l = *where.at;
  if (!where.found) {
    l.version.unlock();
    return op_status::no;
  }
  Value value = l.value(where.slot());
  try {
    fn(value);
  } catch (...) {
    thrown = std::current_exception();
    l.version.unlock();
    return op_status::threw;
  }
  l.overwrite(where.slot(), value);
  l.version.unlock_changed();
  return op_status::yes;
}

// --- erasing ---

template <std::integral Key, class Value, class Sync, unsigned Width>
bool masstree<Key, Value, Sync, Width>::erase(Key key) {
  operation op(*this);
  bool removed_leaf = false;
  const op_status s = run_exclusive(op, [&] { return try_erase(key, op, removed_leaf); });
  if (s != op_status::yes) return false;
  make_visible();
  size_.add(-1);
  if (removed_leaf) {
    try {
      while (run_exclusive(op, [&] { return give_up_root(op); }) == op_status::yes) {
      }
    } catch (const std::bad_alloc&) {
      // The key is erased anyway. The thread that removes the next leaf tries again.
    }
  }
  return true;
}

template <std::integral Key, class Value, class Sync, unsigned Width>
auto masstree<Key, Value, Sync, Width>::try_erase(Key key, operation& op,
                                                  bool& removed_leaf) noexcept -> op_status {
  slot_ref where;
  if (!lock_slot(key, where)) return op_status::restart;
  leaf& l = *where.at;
  if (!where.found) {
    l.version.unlock();
    return op_status::no;
  }
  removed_leaf = where.permuted.count() == 1 && l.prev() != nullptr;
  if (removed_leaf) return remove_leaf(l, op);
  l.remove(where.permuted, where.position);
  l.version.unlock_changed();
  return op_status::yes;
}

// Removes a leaf with its last key. The caller holds it; it has one before it.
template <std::integral Key, class Value, class Sync, unsigned Width>
auto masstree<Key, Value, Sync, Width>::remove_leaf(leaf& l, operation& op) noexcept -> op_status {
  leaf& before = *l.prev();
  if (!before.version.try_lock()) {
    l.version.unlock();
    return op_status::restart;
  }
  if (l.prev() != &before) {  // it was split or removed before it was locked
    before.version.unlock();
    l.version.unlock();
    return op_status::restart;
  }
  const op_status s = remove_locked_leaf(before, l, op);
  if (s == op_status::yes) {
    before.version.unlock_changed();
    l.version.unlock_deleted();
  } else {
    before.version.unlock();
    l.version.unlock();
  }
  return s;
}

template <std::integral Key, class Value, class Sync, unsigned Width>
auto masstree<Key, Value, Sync, Width>::remove_locked_leaf(leaf& before, leaf& l,
                                                           operation& op) noexcept -> op_status {
  // All that will change: inner nodes that have no other child, and go too; the first one that has
  // others; and if it loses its first child, those above up to where the separator between `before`
  // and the leaf is.
  locked_path path;
  path.push(lock_parent(l));
  while (path.top()->count() == 0) path.push(lock_parent(*path.top()));
  const unsigned gone = path.depth() - 1;
  inner& loser = *path.top();
  const unsigned index = loser.index_of(l.low);
  while (path.top()->index_of(l.low) == 0) path.push(lock_parent(*path.top()));
  if (!op.may_retire(gone + 1)) {
    path.unlock();
    return op_status::need_memory;
  }

  l.version.mark_splitting();
  for (unsigned i = 0; i + 1 < path.depth(); ++i) path[i]->version.mark_splitting();
  path.top()->version.mark_inserting();

  if (index == 0) {
    inner& keeper = *path.top();
    keeper.set_key(keeper.index_of(l.low) - 1, loser.key(0));
  }
  loser.remove(index);
  leaf* const next = l.next();
  before.set_next(next);
  if (next != nullptr) next->set_prev(&before);

  for (unsigned i = 0; i < gone; ++i) {
    op.retire_inner(path[i]);
    path[i]->version.unlock_deleted();
  }
  for (unsigned i = gone; i < path.depth(); ++i) path[i]->version.unlock();
  op.retire_leaf(&l);
  return op_status::yes;
}

// Makes a root's only child the root: yes when it has done so.
template <std::integral Key, class Value, class Sync, unsigned Width>
auto masstree<Key, Value, Sync, Width>::give_up_root(operation& op) noexcept -> op_status {
  // pairs with the stores of link_upward() and below
  node* const at = root_.load(std::memory_order_acquire);
  const token seen = at->version.stable();
  if (seen.is_leaf()) return op_status::no;
  inner& root = *static_cast<inner*>(at);
  if (root.count() != 0) return op_status::no;
  if (!op.may_retire(1)) return op_status::need_memory;
  node& child = *root.child(0);
  child.version.lock();
  inner* const p = lock_parent(child);
  if (p != &root || !root.version.is_root() || root.count() != 0) {
    if (p != nullptr) p->version.unlock();
    child.version.unlock();
    return op_status::restart;
  }
  root.version.mark_splitting();
  child.set_parent(nullptr);
  root_.store(&child, std::memory_order_release);  // pairs with the load of find_leaf()
  child.version.set_root(true);
  child.version.unlock();
  op.retire_inner(&root);
  root.version.unlock_deleted();
  return op_status::yes;
}

// --- ranges and facts ---

template <std::integral Key, class Value, class Sync, unsigned Width>
template <class Fn>
std::size_t masstree<Key, Value, Sync, Width>::scan(Key from, std::size_t limit, Fn&& fn) const {
  papers::masstree_range<masstree> range(*this, limit);
  {
    [[maybe_unused]] const pin pinned;
    range.collect(from);
  }
  for (const auto& e : range.entries()) fn(e.key, e.value);
  return range.entries().size();
}

template <std::integral Key, class Value, class Sync, unsigned Width>
std::size_t masstree<Key, Value, Sync, Width>::memory_bytes() const noexcept {
  return sizeof(*this) + leaf_pool_.reserved_bytes() + inner_pool_.reserved_bytes() +
         retire_list_.reserved_bytes();
}

template <std::integral Key, class Value, class Sync, unsigned Width>
masstree_stats masstree<Key, Value, Sync, Width>::stats() const noexcept {
  masstree_stats s;
  s.restarts = restarts_.sum();
  s.splits = splits_.sum();
  s.removals = removals_.sum();
  s.leaves = leaf_pool_.blocks_in_use();
  s.inner_nodes = inner_pool_.blocks_in_use();
  s.retired_objects = retire_list_.pending();
  return s;
}

}  // namespace elidex::papers
