// The forms in which a transaction offers scans of a table.
//
//   class transaction : public table_scans<transaction> { ... };  // has scan_range()
//   t.scan(accounts, between(10, 20), fn);                        // calls scan_range()
//
// Thread-safety: as the transaction's.
// Errors: std::out_of_range for a key outside the table's key type, std::bad_alloc, and those of
// scan_range().
#pragma once

#include <utility>

#include "elidex/internal/tree/map_bounds.hpp"
#include "elidex/internal/txn/table.hpp"

namespace elidex::internal {

// Transaction has scan_range(table, range, fn). The range lives until scan_range() returns.
template <class Transaction>
class table_scans {
 public:
  // Calls fn(key, row) for the keys of a range, in ascending order, or in descending order of
  // bounds.descending(). `which`: bounds, or the first key of an ascending scan to the last one.
  // fn may return false to end the scan, and gets references to const.
  template <class Table, class Bounds, class Fn>
  void scan(Table& table, const Bounds& which, Fn&& fn) {
    using key_type = typename Table::key_type;
    if constexpr (bounds_of<Bounds, key_type>) {
      self().scan_range(table, map_bounds<key_type>(which).get(), fn);
    } else {
      typename Table::range range;
      range.lower.emplace(key_words<key_type>::argument_of(which));
      self().scan_range(table, range, fn);
    }
  }
  // The same for from <= key < to.
  template <class Table, class From, class To, class Fn>
  void scan(Table& table, const From& from, const To& to, Fn&& fn) {
    using keys = key_words<typename Table::key_type>;
    typename Table::range range;
    range.lower.emplace(keys::argument_of(from));
    range.upper.emplace(keys::argument_of(to));
    self().scan_range(table, range, fn);
  }

 private:
  Transaction& self() noexcept { return static_cast<Transaction&>(*this); }
};

}  // namespace elidex::internal
