// The bodies of delta_index.hpp; included at its end. Read that header first.
#pragma once

namespace elidex::papers {

using namespace internal;

template <class Value, class Sync, class Parts, class Id>
delta_index<Value, Sync, Parts, Id>::delta_index() {
  // may throw on a thread's first use; what follows could not say so
  static_cast<void>(this_thread_slot());
  internal::name_memory(this, sizeof(*this), "delta index");
  root_.template store<racing>(::new (leaf_pool_.allocate()) leaf);
}

template <class Value, class Sync, class Parts, class Id>
auto delta_index<Value, Sync, Parts, Id>::find(const position& p, const search_key& value) noexcept
    -> found_slot {
  const leaf& l = p.as_leaf();
  found_slot f;
  f.count = l.count();
  f.torn =
      !value.template rank<false>(l, f.count, [&] { return p.still_valid(); }, f.rank, f.exact);
  return f;
}

// --- looking up ---

template <class Value, class Sync, class Parts, class Id>
auto delta_index<Value, Sync, Parts, Id>::try_find(const search_key& value,
                                                   std::optional<Id>& id) const noexcept
    -> op_status {
  position p;
  if (!descend_to_leaf(value, p)) return op_status::restart;
  const found_slot f = find(p, value);
  if (f.exact) id.emplace(p.as_leaf().key(f.rank));
  if (f.torn || !p.still_valid()) return op_status::restart;
  return f.exact ? op_status::yes : op_status::no;
}

template <class Value, class Sync, class Parts, class Id>
std::optional<Id> delta_index<Value, Sync, Parts, Id>::find(value_argument value) const {
  const search_key where = search_key_of(value);
  order_behind_changes();
  std::optional<Id> id;
  for (backoff wait;; wait.once()) {
    const op_status s = sync_.shared([&] { return try_find(where, id); });
    if (s == op_status::yes) return id;
    if (s == op_status::no) return std::nullopt;
    restarts_.add(1);
  }
}

// --- adding ---

template <class Value, class Sync, class Parts, class Id>
auto delta_index<Value, Sync, Parts, Id>::find_or_add(value_argument value) -> added {
  const search_key where = search_key_of(value);
  order_behind_changes();
  operation op(*this, value);
  Id id = 0;
  try {
    const op_status s =
        run_changing(op, [&] { return sync_.exclusive([&] { return try_add(where, op, id); }); });
    return {id, s == op_status::yes};
  } catch (const internal::no_ids_left&) {
    if (const auto given_meanwhile = find(value)) return {*given_meanwhile, false};
    throw;
  }
}

template <class Value, class Sync, class Parts, class Id>
auto delta_index<Value, Sync, Parts, Id>::try_add(const search_key& where, operation& op,
                                                  Id& id) noexcept -> op_status {
  position p;
  if (const op_status s = descend_splitting(where, p, op); s != op_status::yes) return s;
  leaf& l = p.as_leaf();
  const found_slot f = find(p, where);
  if (f.torn) return op_status::restart;
  if (f.exact) {
    id = l.key(f.rank);
    return p.still_valid() ? op_status::no : op_status::restart;
  }
  if (f.count == leaf::capacity) return split_leaf(p, f.rank, op);
  // That the value is absent must be true before anybody says that there is no ID for it.
  if (!op.has_entry()) return p.still_valid() ? op_status::need_memory : op_status::restart;
  if (!l.lock.try_upgrade(p.seen)) return op_status::restart;
  const std::optional<Id> made = op.append();
  if (!made) {
    l.lock.unlock_unchanged(p.seen);
    return op_status::need_memory;
  }
  id = *made;
  l.insert(f.rank, id);
  l.lock.unlock();
  return op_status::yes;
}

template <class Value, class Sync, class Parts, class Id>
auto delta_index<Value, Sync, Parts, Id>::split_leaf(position& p, unsigned insert_rank,
                                                     operation& op) noexcept -> op_status {
  const bool is_root = p.parent == nullptr;
  if (!op.has_nodes(true, is_root ? 1 : 0)) return op_status::need_memory;
  if (!p.try_lock_parent_and_node()) return op_status::restart;
  leaf& left = p.as_leaf();
  // Values that arrive in ascending order would leave half-full leaves behind, as in btree.
  const bool ascending = insert_rank == leaf::capacity && (is_root || p.index == p.parent->count());
  leaf* const right = op.take_leaf();
  left.move_tail(ascending ? leaf::capacity - 1 : leaf::capacity / 2, *right);
  link_right_half(p, right->key(0), right, op);
  p.unlock_both();
  op.note_split();
  return op_status::restructured;
}

// --- ranges ---

template <class Value, class Sync, class Parts, class Id>
template <class Start, class Fn>
std::size_t delta_index<Value, Sync, Parts, Id>::scan_from(Start&& start, std::size_t limit,
                                                           Fn&& fn) const {
  order_behind_changes();
  internal::range_collector<delta_index> range(*this, limit);
  range.collect_forward(start());
  for (const auto& e : range.entries()) {
    const auto value = view(e.key);
    fn(value.get(), e.key);
  }
  return range.entries().size();
}

template <class Value, class Sync, class Parts, class Id>
template <class Fn>
std::size_t delta_index<Value, Sync, Parts, Id>::scan(value_argument from, std::size_t limit,
                                                      Fn&& fn) const {
  return scan_from(
      [&] { return internal::range_collector<delta_index>::start::at(search_key_of(from)); }, limit,
      fn);
}

template <class Value, class Sync, class Parts, class Id>
template <class Fn>
std::size_t delta_index<Value, Sync, Parts, Id>::scan_all(Fn&& fn) const {
  using collector = internal::range_collector<delta_index>;
  return scan_from([] { return collector::start::at_end(); }, collector::unlimited, fn);
}

}  // namespace elidex::papers
