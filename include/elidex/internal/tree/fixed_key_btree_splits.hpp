// How the leaves of fixed_key_btree.hpp split, share with a sibling and merge; included at its end.
// Read that header first: it holds the argument for correctness.
#pragma once

namespace elidex::internal {

template <std::integral Key, class Value, class Sync, class Shape, class Control>
void fixed_key_btree<Key, Value, Sync, Shape, Control>::split(Key key, const place& p) const {
  // A lookup never finds a leaf full, so this is a tree that may be changed.
  auto& tree = const_cast<fixed_key_btree&>(*this);
  struct split_lock {
    control* held;
    ~split_lock() {
      if (held != nullptr) held->unlock_after_split();
    }
  };
  prefetch_bytes<sizeof(leaf)>(p.at);
  const epoch_pin pinned;  // as in at_controlled_leaf()
  control* const controlled_by = p.is_still_right() ? p.controlled_by : nullptr;
  if (controlled_by != nullptr && !controlled_by->try_lock_for_split()) {
    controlled_by->wait_for_split();  // by who splits it now
    return;
  }
  const split_lock unlock{controlled_by};
  operation op(tree);
  std::uint64_t nth_leaf = 0;
  std::uint64_t kept_marks = ~std::uint64_t{0};
  tree.run_changing(op, [&] {
    // Counted only where leaves have sequence numbers, and for a new one: it is a line that
    // everybody who splits writes.
    if (!std::is_empty_v<typename leaf::sequence_type> && op.has_spare_leaf())
      nth_leaf = tree.leaves_made_.fetch_add(1);
    return sync_.both([&] { return tree.try_split(key, op, nth_leaf, controlled_by, kept_marks); });
  });
  if (controlled_by != nullptr) controlled_by->keep_marks(kept_marks);
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::try_split(
    Key key, operation& op, std::uint64_t nth_leaf, const control* locked,
    std::uint64_t& kept_marks) noexcept -> step {
  kept_marks = ~std::uint64_t{0};
  position p;
  if (const step s = descend_splitting(key, p, op); s != step::yes) return s;
  leaf& left = p.as_leaf();
  if (left.has_room_for(key, key, 1)) return p.still_valid() ? step::yes : step::restart;
  bool ascending = false;
  if constexpr (Shape::shares_with_siblings) {
    ascending = left.continues_a_run(key);
    if (!op.has_spare_leaf()) {  // else no sibling had room a moment ago
      if (const step s = try_share(p, key, ascending, op); s != step::no) return s;
    }
  }
  const bool is_root = p.parent == nullptr;
  if (!op.has_nodes(true, is_root ? 1 : 0)) return step::need_memory;
  if (!left.lock.try_upgrade(p.seen)) return step::restart;
  lock_values(left);

  typename leaf::ordered_copy all;
  left.copy_in_order(all);
  const unsigned count = all.count();
  // Keys that arrive in ascending order would leave half-full leaves behind: part before those that
  // come next, or split off one. At the parent's right edge they are taken to arrive so.
  ascending |= all.rank(key) == count && (is_root || p.index == p.parent->count());
  const unsigned middle = ascending ? end_of_run(all, key) : count / 2;

  leaf* const right = op.take_leaf();
  right->sequence.begin_life(nth_leaf);
  right->fill(all, middle, count);
  if (!lock_parent_of_locked(p, 1)) {
    op.put_back_leaf(right);
    unlock_values(left);
    left.lock.unlock_unchanged(p.seen);
    return step::restart;
  }
  left.sequence.invalidate();
  link_right_half(p, all.key(middle), right, op);
  p.parent_lock->unlock();
  left.keep(all, 0, middle);
  if constexpr (Control::enabled) {
    // The leaf for the key may have become another one, with another control, since the split lock
    // was taken. relaxed: ordered by the region.
    if (left.control.load(std::memory_order_relaxed) == locked) kept_marks = marks_of(left);
  }
  unlock_values(left);
  left.lock.unlock();
  op.note_split();
  return step::yes;
}

// A full leaf parts its records evenly with a sibling that has room: so leaves are five sixths full
// after random inserts in place of two thirds (B*-trees: Knuth, TAOCP 3, section 6.2.4). No: there
// is no such sibling. A hot leaf is not shared, and neither is the outermost of a parent, which
// keys that ascend fill. A leaf that they fill elsewhere gives its right sibling only what lies
// behind `key`: so what came before it stays together, and keys that only look as if they ascended
// don't get a leaf each.
template <std::integral Key, class Value, class Sync, class Shape, class Control>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::try_share(const position& p, Key key,
                                                                  bool ascending,
                                                                  operation& op) noexcept -> step {
  if (p.parent == nullptr || p.index >= p.parent->count()) return step::no;
  for (const side where : {side::right, side::left}) {
    if (ascending && where == side::left) break;
    position left;
    position right;
    const step found = find_sibling(p, where, left, right);
    if (found == step::restart) return step::restart;
    if (found == step::no) continue;
    leaf& full = p.as_leaf();
    leaf& other = where == side::left ? left.as_leaf() : right.as_leaf();
    // relaxed, partner of the stores in switch_on() and switch_off(): a guess here; below ordered
    // by the leaf's lock or the region.
    const auto is_hot = [](const leaf& l) {
      return l.control.load(std::memory_order_relaxed) != nullptr;
    };
    if (full.used() < other.used() + 2 * shared_at_least || is_hot(full) || is_hot(other)) continue;
    if (!left.at->lock.try_upgrade(left.seen)) return step::restart;
    if (!right.at->lock.try_upgrade(right.seen)) {
      left.at->lock.unlock_unchanged(left.seen);
      return step::restart;
    }
    prefetch_bytes<sizeof(leaf)>(&other);
    lock_values(full);  // the other one gets records behind its own, which needs no locks of values

    typename leaf::ordered_copy all;
    full.copy_in_order(all);
    const unsigned count = all.count();
    const unsigned moved = ascending ? count - end_of_run(all, key) : (count - other.used()) / 2;
    const unsigned first = where == side::left ? 0 : count - moved;
    const bool fits = !is_hot(full) && !is_hot(other) &&
                      other.has_room_for(all.key(first), all.key(first + moved - 1), moved);
    const bool goes = fits && lock_parent_of_locked(left, 0, right.at);
    if (goes) {
      full.sequence.invalidate();
      other.sequence.invalidate();  // for a simpler rule: its stretch only grows
      left.parent->set_key(left.index, all.key(where == side::left ? moved : first));
      left.parent_lock->unlock();
      other.append(all, first, first + moved);
      const unsigned kept = where == side::left ? moved : 0;
      full.keep(all, kept, kept + count - moved);
    }

    unlock_values(full);
    if (goes) {
      op.note_share();
      right.at->lock.unlock();
      left.at->lock.unlock();
      return step::yes;
    }
    right.at->lock.unlock_unchanged(right.seen);
    left.at->lock.unlock_unchanged(left.seen);
    if (fits) return step::restart;
  }
  return p.still_valid() ? step::no : step::restart;
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
void fixed_key_btree<Key, Value, Sync, Shape, Control>::merge_if_sparse(Key key) noexcept {
  try {
    operation op(*this);
    run_changing(op, [&] { return sync_.both([&] { return try_merge(key, op); }); });
  } catch (const std::bad_alloc&) {
    // The leaf stays sparse, or even empty, until keys come to it again and go.
  }
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::try_merge(Key key, operation& op) noexcept
    -> step {
  position p;
  if (const step s = descend_merging(key, p, op); s != step::yes) return s;
  const unsigned here = p.as_leaf().used();
  if (p.parent == nullptr || here > leaf_sparse) return p.still_valid() ? step::yes : step::restart;
  for (const side where : {side::left, side::right}) {
    position left;
    position right;
    const step found = find_sibling(p, where, left, right);
    if (found == step::restart) return step::restart;
    if (found == step::no) continue;
    leaf& l = left.as_leaf();
    leaf& r = right.as_leaf();
    // Torn counts do no harm: they are checked again by the upgrades. An empty leaf always goes.
    if (l.used() + r.used() > leaf_merged_max && here != 0) continue;
    if (!op.may_retire()) return step::need_memory;
    if (!left.try_lock_parent_and_node()) return step::restart;
    if (!r.lock.try_upgrade(right.seen)) {
      left.unlock_both_unchanged();
      return step::restart;
    }
    lock_values(l);
    lock_values(r);

    typename leaf::ordered_copy all;
    typename leaf::ordered_copy more;
    l.copy_in_order(all);
    r.copy_in_order(more);
    if (all.count() != 0 && more.count() != 0 &&
        !l.has_room_for(more.key(0), more.key(more.count() - 1), more.count())) {
      unlock_values(r);
      unlock_values(l);
      r.lock.unlock_unchanged(right.seen);
      left.unlock_both_unchanged();
      continue;  // their keys lie too far apart
    }
    for (unsigned i = 0; i < more.count(); ++i) all.add(more.key(i), more.value(i));
    take_control_away(l, op);
    take_control_away(r, op);
    l.sequence.invalidate();
    r.sequence.invalidate();
    l.fill(all, 0, all.count());
    left.parent->erase(left.index);
    op.retire_leaf(&r);

    unlock_values(r);
    unlock_values(l);
    r.lock.unlock_obsolete();
    left.unlock_both();
    op.note_merge();
    return step::yes;
  }
  return p.still_valid() ? step::yes : step::restart;
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
void fixed_key_btree<Key, Value, Sync, Shape, Control>::take_control_away(leaf& l,
                                                                          operation& op) noexcept {
  // relaxed and release: ordered by the region, which excludes all others that change it.
  control* const taken = l.control.load(std::memory_order_relaxed);
  l.control.store(nullptr, std::memory_order_release);
  op.retire(taken, &destroy_control);
}

}  // namespace elidex::internal
