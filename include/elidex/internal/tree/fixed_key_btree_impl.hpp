// The bodies of fixed_key_btree.hpp; included at its end. Read that header first: it holds the
// argument for correctness.
#pragma once

namespace elidex::internal {

template <std::integral Key, class Value, class Sync, class Shape, class Control>
fixed_key_btree<Key, Value, Sync, Shape, Control>::fixed_key_btree() {
  // may throw on a thread's first use; what follows could not say so
  static_cast<void>(this_thread_slot());
  name_memory(this, sizeof(*this), "tree");
  auto* const first = ::new (leaf_pool_.allocate()) leaf;
  first->sequence.begin_life(leaves_made_.fetch_add(1));
  root_.template store<racing>(first);
}

// --- the two regions ---

template <std::integral Key, class Value, class Sync, class Shape, class Control>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::find_place(Key key, place& p) const noexcept
    -> step {
  position at;
  if (!descend_to_leaf(key, at)) return step::restart;
  p = place_of(at);
  return step::yes;
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::come_to_leaf(Key key, place& p) const
    -> step {
  if constexpr (has_leaf_hints) {
    if (recall_place(key, p)) return step::yes;
  }
  const step s = sync_.upper([&] { return find_place(key, p); });
  if constexpr (has_leaf_hints) {
    if (s == step::yes) remember_if_again(key, p);
  }
  return s;
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::place_of(const position& at) noexcept
    -> place {
  place p;
  p.at = &at.as_leaf();
  p.seen = at.seen;
  // First the sequence number: who sees one sees whether the leaf has a control under it.
  if constexpr (!racing) p.sequence = p.at->sequence.read();
  // pairs with the release in switch_on()
  p.controlled_by = p.at->control.load(std::memory_order_acquire);
  return p;
}

// The place as it was remembered, if the key is one of its leaf and nothing has changed that.
template <std::integral Key, class Value, class Sync, class Shape, class Control>
bool fixed_key_btree<Key, Value, Sync, Shape, Control>::recall_place(Key key,
                                                                     place& p) const noexcept {
  const remembered& mine = remembered::of_this_thread(id_);
  if (!mine.is_for(id_, key)) return false;
  leaf& known = *mine.leaf();
  // before anything else is read, see leaf_hint.hpp
  if (!known.sequence.validate(mine.sequence())) return false;
  p.at = &known;
  p.seen = known.lock.read();
  p.sequence = known.sequence.read();
  if constexpr (Control::enabled) {
    // pairs with the release in switch_on()
    p.controlled_by = known.control.load(std::memory_order_acquire);
  }
  return p.sequence == mine.sequence();
}

// Behind a way down to the place.
template <std::integral Key, class Value, class Sync, class Shape, class Control>
void fixed_key_btree<Key, Value, Sync, Shape, Control>::remember_if_again(
    Key key, const place& p) const noexcept {
  remembered& mine = remembered::of_this_thread(id_);
  if (!mine.came_again(id_, p.at)) return;
  key_range<Key> stretch{};
  typename leaf::sequence_type::token sequence{};
  const step s = sync_.upper([&] {
    stretch = {std::numeric_limits<Key>::min(), std::numeric_limits<Key>::max()};
    position at;
    if (!descend_to_leaf(key, at, stretch) || at.at != p.at) return step::no;
    sequence = p.at->sequence.read();
    return at.still_valid() ? step::yes : step::no;
  });
  if (s == step::yes) mine.remember(id_, p.at, sequence, stretch);
}

// Runs body(place, outcome) as the lower region of a request for the key until it has done its
// work; has the leaf split when it says that it is full.
template <std::integral Key, class Value, class Sync, class Shape, class Control>
template <typename fixed_key_btree<Key, Value, Sync, Shape, Control>::request What, class Body>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::at_leaf(Key key, Body&& body) const
    -> step {
  for (backoff wait;; wait.once()) {
    [[maybe_unused]] const pin pinned;
    place p;
    step s = come_to_leaf(key, p);
    if (s == step::yes) {
      if (!Control::enabled || p.controlled_by == nullptr) {
        s = at_bare_leaf(p, body);
      } else if (What == request::look_up && joins_a_region()) {
        s = at_joined_leaf(p, body);
      } else {
        s = at_controlled_leaf<What>(p, key, body);
      }
    }
    if (s == step::full) {
      split(key, p);
    } else if (s != step::restart) {
      return s;
    } else {
      restarts_.add(1);
    }
  }
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
template <class Body>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::at_bare_leaf(const place& p,
                                                                     Body&& body) const -> step {
  if constexpr (Control::enabled && !Control::adaptive) {
    if (switch_on(p)) return step::restart;
  }
  std::uint32_t aborts = 0;
  outcome ignored;
  const step s = sync_.lower(
      [&] { return p.is_still_right() ? body(p, false, ignored) : step::restart; }, aborts);
  if constexpr (Control::adaptive) suspect(p, aborts + (racing && s == step::restart ? 1 : 0));
  return s;
}

// Inside the caller's hardware region a look-up passes the leaf's control by. A lock bit there
// would be seen by nobody before that region commits, and waiting for one aborts it. What the bits
// are for, the region does: whoever changes the leaf meanwhile aborts it.
template <std::integral Key, class Value, class Sync, class Shape, class Control>
template <class Body>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::at_joined_leaf(const place& p,
                                                                       Body&& body) const -> step {
  std::uint32_t aborts = 0;
  outcome ignored;
  return sync_.lower([&] { return p.is_still_right() ? body(p, false, ignored) : step::restart; },
                     aborts);
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
template <typename fixed_key_btree<Key, Value, Sync, Shape, Control>::request What, class Body>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::at_controlled_leaf(const place& p, Key key,
                                                                           Body&& body) const
    -> step {
  const epoch_pin pinned;  // before the control is known to be the leaf's, see `Invariants`
  if (!p.is_still_right()) return step::restart;
  control& guard = *p.controlled_by;
  const unsigned slot = control::slot_of(key);
  // Before the marks are read: those of keys that the last split has moved away are then gone, see
  // `Invariants`.
  const bool met_split = guard.is_locked_for_split();
  if (met_split) guard.wait_for_split();
  auto entry = guard.lock(slot);
  entry.waited |= met_split;

  bool calm = false;  // for long enough to do without a control
  if constexpr (Control::adaptive) {
    const auto period =
        guard.count(entry.waited, next_random_of_this_thread(), Control::requests_per_period);
    calm = period.over && period.collisions < Control::collisions_to_stay_on;
  }

  step s;
  bool mark_is_free = false;
  if (!entry.marked && What != request::put) {
    s = p.is_still_right() ? step::no : step::restart;
  } else {
    if (!entry.marked) guard.mark(slot);
    std::uint32_t aborts = 0;
    outcome result;
    s = sync_.lower(
        [&] { return p.is_still_right() ? body(p, !entry.marked, result) : step::restart; },
        aborts);
    mark_is_free = What == request::erase ? result.mark_is_free : !entry.marked && s != step::yes;
  }
  if (mark_is_free) {
    guard.unlock_and_clear_mark(slot);
  } else {
    guard.unlock(slot);
  }
  if (calm) switch_off(p);
  return s;
}

// --- looking up ---

template <std::integral Key, class Value, class Sync, class Shape, class Control>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::try_get(
    const place& p, Key key, std::optional<Value>& value) const noexcept -> step {
  return try_read(p, p.at->find(key), value);
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::try_read(
    const place& p, unsigned slot, std::optional<Value>& value) const noexcept -> step {
  leaf& l = *p.at;
  if (slot == no_slot) return p.was_right() ? step::no : step::restart;
  if constexpr (locks_values_apart) {
    // Another value on the line has changed, mostly: the way down would lead here once more.
    for (;;) {
      const token values_seen = l.value_lock(slot).read();
      value.emplace(l.value(slot));
      if (l.value_lock(slot).validate(values_seen)) break;
      if (!p.is_still_right()) return step::restart;
    }
  } else {
    value.emplace(l.value(slot));
  }
  return p.was_right() ? step::yes : step::restart;
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
std::optional<Value> fixed_key_btree<Key, Value, Sync, Shape, Control>::get(Key key) const {
  std::optional<Value> value;
  const step s =
      at_leaf<request::look_up>(key, [&](const place& p, bool /*known_absent*/,
                                         outcome& /*result*/) { return try_get(p, key, value); });
  return s == step::yes ? value : std::nullopt;
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
void fixed_key_btree<Key, Value, Sync, Shape, Control>::multi_get(
    std::span<const Key> wanted, std::span<std::optional<Value>> found) const {
  if (found.size() < wanted.size())
    throw std::invalid_argument("elidex: multi_get: fewer values than keys");
  const auto read = [&](std::size_t i, Key key, const position& at, unsigned slot) {
    const place p = place_of(at);
    if (Control::enabled && p.controlled_by != nullptr) return false;
    if (slot == no_slot || p.at->key(slot) != key) slot = p.at->find(key);
    found[i].reset();
    return try_read(p, slot, found[i]) != step::restart;
  };
  look_up_together(
      wanted.size(), [&](std::size_t i) { return wanted[i]; }, read,
      [&](std::size_t i) { found[i] = get(wanted[i]); });
}

// --- changing ---

template <std::integral Key, class Value, class Sync, class Shape, class Control>
bool fixed_key_btree<Key, Value, Sync, Shape, Control>::insert_or_overwrite(Key key,
                                                                            const Value& value,
                                                                            bool overwrite) {
  const step s =
      at_leaf<request::put>(key, [&](const place& p, bool known_absent, outcome& /*result*/) {
        return try_put(p, key, value, overwrite, known_absent);
      });
  if (s == step::yes) size_.add(1);
  return s == step::yes;
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::try_put(const place& p, Key key,
                                                                const Value& value, bool overwrite,
                                                                bool known_absent) noexcept
    -> step {
  leaf& l = *p.at;
  if (!known_absent) {
    const unsigned slot = l.find(key);
    if (slot != no_slot) {
      if (!overwrite) return p.was_right() ? step::no : step::restart;
      const step s = change_value(p, slot, [&](Value& v) { v = value; });
      return s == step::yes ? step::no : s;
    }
  }
  if (!l.lock.try_upgrade(p.seen)) return step::restart;
  if (!l.insert(key, value)) {
    l.lock.unlock_unchanged(p.seen);
    return step::full;
  }
  l.lock.unlock();
  return step::yes;
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
template <class Make>
std::pair<Value, bool> fixed_key_btree<Key, Value, Sync, Shape, Control>::get_or_insert(
    Key key, Make&& make) {
  return *get_or_insert_if_made(key, [&](Key /*slot*/) { return std::optional<Value>(make()); });
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
template <class Make>
std::optional<std::pair<Value, bool>>
fixed_key_btree<Key, Value, Sync, Shape, Control>::get_or_insert_if_made(Key key, Make&& make) {
  std::optional<Value> value;
  std::exception_ptr thrown;
  const step s =
      at_leaf<request::put>(key, [&](const place& p, bool known_absent, outcome& /*result*/) {
        return try_get_or_insert(p, key, make, known_absent, value, thrown);
      });
  if (s == step::threw) std::rethrow_exception(thrown);
  if (s == step::unmade) return std::nullopt;
  if (s == step::yes) size_.add(1);
  return std::pair(*value, s == step::yes);
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
template <class Make>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::try_get_or_insert(
    const place& p, Key key, Make& make, bool known_absent, std::optional<Value>& value,
    std::exception_ptr& thrown) noexcept -> step {
  leaf& l = *p.at;
  if (!known_absent) {
    const unsigned slot = l.find(key);
    if (slot != no_slot) {
      const step s = try_read(p, slot, value);
      return s == step::yes ? step::no : s;
    }
  }
  if (!l.lock.try_upgrade(p.seen)) return step::restart;
  if (!l.make_room_for(key)) {
    l.lock.unlock_unchanged(p.seen);
    return step::full;
  }
  try {
    value = make(key);
  } catch (...) {
    thrown = std::current_exception();
    l.lock.unlock();  // the room may have moved keys
    return step::threw;
  }
  if (!value) {
    l.lock.unlock();  // likewise
    return step::unmade;
  }
  l.insert(key, *value);
  l.lock.unlock();
  return step::yes;
}

// The value in the slot that was found in the leaf as it was at p; fn may throw.
template <std::integral Key, class Value, class Sync, class Shape, class Control>
template <class Fn>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::change_value(const place& p, unsigned slot,
                                                                     Fn&& fn) noexcept -> step {
  leaf& l = *p.at;
  node_lock& lock = l.value_lock(slot);
  token seen = p.seen;
  if constexpr (locks_values_apart) {
    // Waits here instead of beginning again: who holds it waits for nobody, and the way down would
    // lead to it once more.
    seen = lock.lock();
    // Whoever moves values takes their locks, after the leaf's: if the leaf is as it was, the value
    // stays where it is.
    if (!p.is_still_right()) {
      lock.unlock_unchanged(seen);
      return step::restart;
    }
  } else {
    if (!lock.try_upgrade(seen)) return step::restart;
  }
  Value value = l.value(slot);
  if constexpr (noexcept(fn(value))) {
    fn(value);
  } else {
    try {
      fn(value);
    } catch (...) {
      lock.unlock_unchanged(seen);
      return step::threw;
    }
  }
  l.set_value(slot, value);
  lock.unlock();
  return step::yes;
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
template <value_change<Value> Fn>
bool fixed_key_btree<Key, Value, Sync, Shape, Control>::update(Key key, Fn&& fn) {
  std::exception_ptr thrown;
  const auto keeping_exceptions = [&](Value& value) {
    try {
      fn(value);
    } catch (...) {
      thrown = std::current_exception();
      throw;
    }
  };
  const step s = at_leaf<request::look_up>(
      key, [&](const place& p, bool /*known_absent*/, outcome& /*result*/) {
        const unsigned slot = p.at->find(key);
        if (slot == no_slot) return p.was_right() ? step::no : step::restart;
        return const_cast<fixed_key_btree&>(*this).change_value(p, slot, keeping_exceptions);
      });
  if (s == step::threw) std::rethrow_exception(thrown);
  return s == step::yes;
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
bool fixed_key_btree<Key, Value, Sync, Shape, Control>::erase(Key key) {
  bool is_sparse = false;
  const step s =
      at_leaf<request::erase>(key, [&](const place& p, bool /*known_absent*/, outcome& result) {
        const step erased = try_erase(p, key, result);
        is_sparse = result.is_sparse;
        return erased;
      });
  if (s != step::yes) return false;
  size_.add(-1);
  if (is_sparse) merge_if_sparse(key);
  return true;
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::try_erase(const place& p, Key key,
                                                                  outcome& result) noexcept
    -> step {
  leaf& l = *p.at;
  const unsigned slot = l.find(key);
  if (slot == no_slot) return p.was_right() ? step::no : step::restart;
  if (!l.lock.try_upgrade(p.seen)) return step::restart;
  lock_values(l);
  l.erase(slot);
  result.is_sparse = l.used() <= leaf_sparse;
  if constexpr (Control::enabled) {
    result.mark_is_free = (marks_of(l) & control::mark_of(control::slot_of(key))) == 0;
  }
  unlock_values(l);
  l.lock.unlock();
  return step::yes;
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
template <std::ranges::input_range Range>
void fixed_key_btree<Key, Value, Sync, Shape, Control>::bulk_load(Range&& sorted) {
  internal::bulk_loader<fixed_key_btree> loader(*this);
  for (const auto& record : sorted) loader.add(record.first, record.second);
  loader.publish();
}

// Yes: the tree was empty and has the new root, unless that is null. No: it was not empty.
template <std::integral Key, class Value, class Sync, class Shape, class Control>
auto fixed_key_btree<Key, Value, Sync, Shape, Control>::try_replace_empty(node* new_root,
                                                                          operation& op) noexcept
    -> step {
  position p;
  if (!this->enter_root(p)) return step::restart;
  if (!p.at->is_leaf() || p.as_leaf().used() != 0)
    return p.still_valid() ? step::no : step::restart;
  if (new_root == nullptr) return p.still_valid() ? step::yes : step::restart;
  if (!op.may_retire()) return step::need_memory;
  if (!p.try_lock_parent_and_node()) return step::restart;
  leaf& old = p.as_leaf();
  take_control_away(old, op);
  old.sequence.invalidate();
  root_.template store<racing>(new_root);
  op.retire_leaf(&old);
  old.lock.unlock_obsolete();
  p.parent_lock->unlock();
  return step::yes;
}

// --- adaptive control ---

template <std::integral Key, class Value, class Sync, class Shape, class Control>
std::uint64_t fixed_key_btree<Key, Value, Sync, Shape, Control>::marks_of(const leaf& l) noexcept {
  std::uint64_t marks = 0;
  l.for_each_key([&](Key key) { marks |= control::mark_of(control::slot_of(key)); });
  return marks;
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
void fixed_key_btree<Key, Value, Sync, Shape, Control>::suspect(
    const place& p, std::uint32_t collisions) const noexcept {
  // relaxed, without a partner: a guess, and a lost count changes little.
  auto& suspicion =
      suspicion_[reinterpret_cast<std::uintptr_t>(p.at) / 64 * 0x9E3779B1u % suspects];
  if (collisions != 0 || Control::collisions_to_switch_on == 0) {
    if (suspicion.fetch_add(collisions, std::memory_order_relaxed) + collisions >=
        Control::collisions_to_switch_on) {
      suspicion.store(0, std::memory_order_relaxed);  // as above
      switch_on(p);
    }
  } else if (next_random_of_this_thread() % Control::calm_requests == 0) {
    const std::uint32_t was = suspicion.load(std::memory_order_relaxed);  // no partner, as above
    if (was != 0) suspicion.store(was - 1, std::memory_order_relaxed);    // no partner, as above
  }
}

// Gives the leaf a control, unless it has changed; false when there is no memory for one.
template <std::integral Key, class Value, class Sync, class Shape, class Control>
bool fixed_key_btree<Key, Value, Sync, Shape, Control>::switch_on(const place& p) const noexcept {
  void* memory = nullptr;
  try {
    memory = control_pool_.allocate();
  } catch (const std::bad_alloc&) {
    return false;  // it stays bare
  }
  auto* const made = ::new (memory) control;
  std::uint32_t aborts = 0;
  const step s = sync_.lower(
      [&] {
        leaf& l = *p.at;
        if constexpr (racing) {
          // A request that has collided has seen an old version: any leaf that is one will do.
          const token now = l.lock.lock();
          // ordered by the lock
          if (now.is_obsolete() || l.control.load(std::memory_order_relaxed) != nullptr) {
            l.lock.unlock_unchanged(now);
            return step::no;
          }
        } else {
          // relaxed: ordered by the region.
          if (!p.is_still_right() || l.control.load(std::memory_order_relaxed) != nullptr)
            return step::no;
        }
        made->set_marks(marks_of(l));
        l.control.store(made, std::memory_order_release);  // pairs with the acquire in find_place()
        l.sequence.invalidate();
        l.lock.unlock();
        return step::yes;
      },
      aborts);
  if (s == step::yes) {
    switched_on_.add(1);
  } else {
    control_pool_.deallocate(memory);
  }
  return true;
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
void fixed_key_btree<Key, Value, Sync, Shape, Control>::switch_off(const place& p) const noexcept {
  try {
    retire_list_.reserve();
  } catch (const std::bad_alloc&) {
    return;  // it stays on
  }
  std::uint32_t aborts = 0;
  const step s = sync_.lower(
      [&] {
        leaf& l = *p.at;
        if (!p.is_still_right() || !l.lock.try_upgrade(p.seen)) return step::no;
        // pairs with the acquire in find_place()
        l.control.store(nullptr, std::memory_order_release);
        l.sequence.invalidate();
        l.lock.unlock();
        return step::yes;
      },
      aborts);
  if (s == step::yes) {
    retire_list_.retire(p.controlled_by, &destroy_control);
    switched_off_.add(1);
  }
  retire_list_.unreserve();
}

// --- ranges and facts ---

template <std::integral Key, class Value, class Sync, class Shape, class Control>
template <class Fn>
std::size_t fixed_key_btree<Key, Value, Sync, Shape, Control>::scan(Key from, std::size_t limit,
                                                                    Fn&& fn) const {
  using collector = internal::range_collector<fixed_key_btree>;
  collector range(*this, limit);
  {
    [[maybe_unused]] const pin pinned;
    range.collect_forward(collector::start::at(from));
  }
  for (const auto& e : range.entries()) fn(e.key, e.value);
  return range.entries().size();
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
std::size_t fixed_key_btree<Key, Value, Sync, Shape, Control>::memory_bytes() const noexcept {
  return sizeof(*this) + this->node_bytes_reserved() + control_pool_.reserved_bytes() +
         retire_list_.reserved_bytes();
}

template <std::integral Key, class Value, class Sync, class Shape, class Control>
fixed_key_btree_stats fixed_key_btree<Key, Value, Sync, Shape, Control>::stats() const noexcept {
  fixed_key_btree_stats s;
  static_cast<btree_stats&>(s) = this->node_stats();
  s.retired_objects = retire_list_.pending();
  s.controls_switched_on = switched_on_.sum();
  s.controls_switched_off = switched_off_.sum();
  s.controls = control_pool_.blocks_in_use();
  return s;
}

}  // namespace elidex::internal
