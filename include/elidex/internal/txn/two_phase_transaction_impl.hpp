// The bodies of two_phase_transaction.hpp, which includes this file.
#pragma once

#include "elidex/internal/txn/two_phase_transaction.hpp"

namespace elidex::internal {

// --- locks ---

template <class LockSystem, class Phantoms>
template <class Table>
record* two_phase_transaction<LockSystem, Phantoms>::lock_existing(Table& table,
                                                                   typename Table::key_argument key,
                                                                   lock_mode mode,
                                                                   bool and_absence) {
  for (;; wait()) {
    const epoch_pin pinned;
    for (;;) {
      record* const found = table.find(key);
      if (found == nullptr) {
        if (!and_absence || lock_gap(table, key)) return nullptr;
        continue;
      }
      if (own(*found) != nullptr) return found;
      const record_address at = lock_address(table, *found);
      auto& writer = found->writer(table.row_words());
      const lock_outcome outcome = mode == lock_mode::exclusive
                                       ? locks_.request_write(at, writer)
                                       : locks_.request_record(at, mode, lock_kind::record, writer);
      if (!granted(outcome)) break;
      if (!is_gone(*found)) return found;
    }
  }
}

template <class LockSystem, class Phantoms>
template <class Table, class Find>
record& two_phase_transaction<LockSystem, Phantoms>::lock_or_make(Table& table, const Find& find) {
  for (;; wait()) {
    const epoch_pin pinned;
    for (;;) {
      const record* made = nullptr;
      record& found = *find(locking_what_is_made(table, made));
      if (&found == made || own(found) != nullptr) return found;
      if (!granted(
              locks_.request_write(lock_address(table, found), found.writer(table.row_words()))))
        break;
      if (!is_gone(found)) return found;
    }
  }
}

template <class LockSystem, class Phantoms>
template <class Table>
bool two_phase_transaction<LockSystem, Phantoms>::lock_gap(Table& table,
                                                           typename Table::key_argument key) {
  const record* locked = nullptr;
  bool looked_before = false;
  for (;;) {
    const record* next = nullptr;
    table.walk(key, [&](const record* one) {
      next = one;
      return false;
    });
    if (next != nullptr && key_words<typename Table::key_type>::of(next->key()) == key)
      return false;
    if (looked_before && next == locked) return true;
    lock_gap_before(table, next);
    looked_before = next == nullptr || !is_gone(*next);
    locked = next;
    if (!Phantoms::after_locking && looked_before) return true;
  }
}

template <class LockSystem, class Phantoms>
template <class Table>
bool two_phase_transaction<LockSystem, Phantoms>::lock_next(
    Table& table, typename Table::key_argument from, const record* after,
    const std::optional<typename Table::key_type>& to, std::size_t wanted,
    std::vector<record*>& locked) {
  using key_argument = typename Table::key_argument;
  std::optional<const record*> gap_before;  // that is locked: of this one; null: of the table's end
  std::vector<record*> found;
  locked.clear();
  for (;;) {
    bool news = false;
    bool waits = false;
    bool all = false;
    const auto look = [&](record* one) {
      if (one == after) return true;
      if (to && !(key_words<typename Table::key_type>::of(one->key()) < key_argument(*to))) {
        all = true;
        if (gap_before == one) return false;
        lock_gap_before(table, one);
        news = true;
        if (!is_gone(*one)) gap_before = one;
        return false;
      }
      // What is locked stays in the index, so the former look's records come again, in their order.
      if (const std::size_t at = found.size(); at >= locked.size() || locked[at] != one) {
        const auto known = std::find(locked.begin(), locked.end(), one);
        if (known == locked.end()) {
          news = true;
          waits =
              !granted(locks_.request_record(lock_address(table, *one), lock_mode::shared,
                                             lock_kind::next_key, one->writer(table.row_words())));
          if (waits || is_gone(*one)) return false;
        }
      }
      found.push_back(one);
      return found.size() < wanted;
    };
    {
      const epoch_pin pinned;
      found.clear();
      if (table.walk(from, look)) {
        all = true;
        if (gap_before != nullptr) {
          lock_gap_before(table, nullptr);
          news = true;
          gap_before = nullptr;
        }
      }
      locked.swap(found);
    }
    if (waits) {
      wait();
    } else if (!news || !Phantoms::after_locking) {
      return all;
    }
  }
}

template <class LockSystem, class Phantoms>
template <class Table>
void two_phase_transaction<LockSystem, Phantoms>::ask_for_gap(Table& table,
                                                              const record& inserted) {
  const auto may_insert_before = [&](const record_address& at) {
    return granted(locks_.request_record(at, lock_mode::exclusive, lock_kind::insert_intention));
  };
  for (;; wait()) {
    const epoch_pin pinned;
    bool may = true;
    const auto ask = [&](const record* one) {
      if (one == &inserted) return true;
      may = may_insert_before(lock_address(table, *one));
      return may && !was_ever_committed(*one) && own(*one) == nullptr;
    };
    const bool to_the_end =
        table.walk(key_words<typename Table::key_type>::of(inserted.key()), ask);
    if (to_the_end) may = may_insert_before(end_of_table(table));
    if (may) return;
  }
}

// --- rows ---

template <class LockSystem, class Phantoms>
template <class Table, class Key>
std::optional<typename Table::row_type> two_phase_transaction<LockSystem, Phantoms>::get(
    Table& table, const Key& key) {
  check_is_ours(table);
  check_not_doomed();
  const typename Table::key_argument wanted = argument<Table>(key);
  std::span<const std::uint64_t> words;
  if (reads_with_locks()) {
    lock_table(table, lock_mode::intention_shared);
    const record* const found = lock_existing(table, wanted, lock_mode::shared, true);
    if (found != nullptr) words = read_locked(table, const_cast<record&>(*found));
    if (words.empty()) return std::nullopt;
    return table.row_of(words);
  }
  if (reads_one_moment() && !snapshot_) snapshot_.emplace(epochs_);
  const epoch_pin pinned;
  if (reads_one_moment()) {
    const record* const found = table.find(wanted);
    if (found == nullptr) return std::nullopt;
    if (own(*found) == nullptr) {
      if (last_row_.size() < table.row_words()) last_row_.resize(table.row_words());
      const std::span<std::uint64_t> into(last_row_.data(), table.row_words());
      if (read_snapshot(*found, into).absent()) return std::nullopt;
      return table.row_of(into);
    }
  }
  words = find_row(table, wanted, false).words;
  if (words.empty()) return std::nullopt;
  return table.row_of(words);
}

template <class LockSystem, class Phantoms>
template <class Table, class Key>
void two_phase_transaction<LockSystem, Phantoms>::insert(Table& table, const Key& key,
                                                         const typename Table::row_type& row) {
  check_is_ours(table);
  lock_table(table, lock_mode::intention_exclusive);
  make_room();
  std::uint64_t* const words = words_of(table, row);
  record& r = lock_or_make(table, [&](const auto& lock_made) {  //
    return table.get_or_create(key_likely_is::absent, argument<Table>(key), lock_made);
  });
  if (write* const mine = own(r)) {
    if (mine->words != nullptr)
      throw duplicate_key(table.name() + ": insert of a key that is there");
    mine->words = words;
    return;
  }
  const commit_stamp had = r.unlocked_stamp();
  note_seen(had);
  if (!had.absent()) throw duplicate_key(table.name() + ": insert of a key that is there");
  write_locked(table, r, words, had);
}

template <class LockSystem, class Phantoms>
template <class Table, class Key>
void two_phase_transaction<LockSystem, Phantoms>::upsert(Table& table, const Key& key,
                                                         const typename Table::row_type& row) {
  check_is_ours(table);
  lock_table(table, lock_mode::intention_exclusive);
  make_room();
  std::uint64_t* const words = words_of(table, row);
  record& r = lock_or_make(table, [&](const auto& lock_made) {  //
    return table.get_or_create(key_likely_is::present, argument<Table>(key), lock_made);
  });
  if (write* const mine = own(r)) {
    mine->words = words;
    return;
  }
  write_locked(table, r, words, r.unlocked_stamp());
}

template <class LockSystem, class Phantoms>
template <class Table, class Key, value_change<typename Table::row_type> Fn>
bool two_phase_transaction<LockSystem, Phantoms>::update(Table& table, const Key& key,
                                                         Fn&& change) {
  check_is_ours(table);
  lock_table(table, lock_mode::intention_exclusive);
  record* const r =
      lock_existing(table, argument<Table>(key), lock_mode::exclusive, reads_with_locks());
  if (r == nullptr) return false;
  const std::span<const std::uint64_t> words = read_locked(table, *r);
  if (words.empty()) return false;
  // what it stays, because the row is locked
  const std::uint64_t* const before = kept_for_log(words);
  auto row = table.row_of(words);
  change(row);
  make_room();
  std::uint64_t* const changed = words_of(table, row);
  if (write* const mine = own(*r)) {
    mine->words = changed;
  } else {
    write_locked(table, *r, changed, r->unlocked_stamp());
    writes().back().before = before;
  }
  return true;
}

template <class LockSystem, class Phantoms>
template <class Table, class Key>
bool two_phase_transaction<LockSystem, Phantoms>::erase(Table& table, const Key& key) {
  check_is_ours(table);
  lock_table(table, lock_mode::intention_exclusive);
  record* const r =
      lock_existing(table, argument<Table>(key), lock_mode::exclusive, reads_with_locks());
  if (r == nullptr || read_locked(table, *r).empty()) return false;
  make_room();
  if (write* const mine = own(*r)) {
    mine->words = nullptr;
  } else {
    write_locked(table, *r, nullptr, r->unlocked_stamp());
  }
  return true;
}

template <class LockSystem, class Phantoms>
template <class Table, class Fn>
void two_phase_transaction<LockSystem, Phantoms>::scan_up_to(
    Table& table, typename Table::key_argument from,
    const std::optional<typename Table::key_type>& to, Fn& fn) {
  check_is_ours(table);
  check_not_doomed();
  if (reads_with_locks()) {
    scan_locked(table, from, to, fn);
    return;
  }
  // Of this statement, unless it is the transaction's, or the scan runs inside another one.
  struct statement {
    std::optional<commit_clock::snapshot>& snapshot;
    bool ends;
    ~statement() {
      if (ends) snapshot.reset();
    }
  } const scope{snapshot_, !snapshot_ && !reads_one_moment()};
  if (!snapshot_) snapshot_.emplace(epochs_);
  scan_snapshot(table, from, to, fn);
}

template <class LockSystem, class Phantoms>
template <class Table, class Fn>
void two_phase_transaction<LockSystem, Phantoms>::scan_locked(
    Table& table, typename Table::key_argument from,
    const std::optional<typename Table::key_type>& to, Fn& fn) {
  using key_type = typename Table::key_type;
  typename Table::key_argument next = from;
  if (to && !(next < typename Table::key_argument(*to))) return;
  lock_table(table, lock_mode::intention_shared);
  std::vector<record*> locked;
  const record* last = nullptr;
  std::size_t wanted = 1;
  for (bool all = false; !all;) {
    all = lock_next(table, next, last, to, wanted, locked);
    for (record* const one : locked) {
      const std::span<const std::uint64_t> words = read_locked(table, *one);
      if (words.empty()) continue;
      if (!call_visitor(fn, key_words<key_type>::of(one->key()), table.row_of(words))) return;
    }
    if (all) return;
    last = locked.back();
    next = key_words<key_type>::of(last->key());
    wanted = std::min(wanted * 4, locked_at_once_max);
  }
}

template <class LockSystem, class Phantoms>
template <class Table, class Fn>
void two_phase_transaction<LockSystem, Phantoms>::scan_snapshot(
    Table& table, typename Table::key_argument from,
    const std::optional<typename Table::key_type>& to, Fn& fn) {
  using key_type = typename Table::key_type;
  using key_argument = typename Table::key_argument;
  const std::size_t row_words = table.row_words();
  std::vector<row_seen<key_type>> seen;
  std::vector<std::uint64_t> rows;
  std::optional<key_type> last;  // the key that was seen last
  std::size_t wanted = 4;
  for (bool more = true; more;) {
    // What the snapshot sees is not unlinked as long as it is there, and what is locked neither; so
    // no pin while fn runs.
    seen.clear();
    more = false;
    {
      const epoch_pin pinned;
      table.walk(last ? key_argument(*last) : from, to, [&](const record* one) {
        const key_argument key = key_words<key_type>::of(one->key());
        if (last && key == key_argument(*last)) return true;
        if (seen.size() == wanted) {
          more = true;
          return false;
        }
        rows.resize((seen.size() + 1) * row_words);
        const std::span<std::uint64_t> into(rows.data() + seen.size() * row_words, row_words);
        if (!read_snapshot(*one, into).absent() || own(*one) != nullptr)
          seen.push_back({one, key_type(key)});
        return true;
      });
    }
    for (std::size_t i = 0; i < seen.size(); ++i) {
      std::span<const std::uint64_t> words(rows.data() + i * row_words, row_words);
      if (const write* const mine = own(*seen[i].row)) {
        if (mine->words == nullptr) continue;
        words = {mine->words, row_words};
      }
      if (!call_visitor(fn, key_argument(seen[i].key), table.row_of(words))) return;
    }
    if (more) last = std::move(seen.back().key);
    wanted = std::min(wanted * 2, seen_at_once_max);
  }
}

}  // namespace elidex::internal
