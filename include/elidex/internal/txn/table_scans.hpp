// What a transaction offers for several keys of a table.
//
//   class transaction : public table_scans<transaction> { ... };  // has scan_range() and get_all()
//   t.scan(accounts, between(10, 20), fn);                        // calls scan_range()
//   t.multi_get(accounts, std::array{1, 7, 9});                   // calls get_all()
//   t.multi_get(accounts, numbers, [](std::size_t i, const account& row) { ... });
//
// Thread-safety: as the transaction's.
// Errors: std::out_of_range for a key outside the table's key type, std::bad_alloc, and those of
// scan_range() and get_all().
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <optional>
#include <ranges>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "elidex/internal/tree/map_bounds.hpp"
#include "elidex/internal/txn/table.hpp"

namespace elidex::internal {

// Transaction has scan_range(table, range, fn), and get_all(table, keys, fn). The latter calls
// fn(i, row&&) for each key that is present. The range and the keys live until the function
// returns.
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
  // Returns what get() returns for each key, in the order of `keys`, a range. The look-ups of one
  // call overlap, so it takes less time than a get() for each key. Under two-phase locking they run
  // one after the other.
  template <class Table, std::ranges::input_range Keys>
  std::vector<std::optional<typename Table::row_type>> multi_get(Table& table, Keys&& keys) {
    const auto wanted = arguments_of<Table>(keys);
    std::vector<std::optional<typename Table::row_type>> rows(wanted.size());
    self().get_all(table, std::span(wanted), [&](std::size_t i, typename Table::row_type&& row) {
      rows[i].emplace(std::move(row));
    });
    return rows;
  }
  // Calls fn(i, row) for each key that is present, in the order of `keys`. `i` is the key's index
  // in the range, and `row` a reference to const. Returns how many keys are present.
  template <class Table, std::ranges::input_range Keys, class Fn>
    requires std::invocable<Fn&, std::size_t, const typename Table::row_type&>
  std::size_t multi_get(Table& table, Keys&& keys, Fn&& fn) {
    const auto wanted = arguments_of<Table>(keys);
    std::size_t present = 0;
    self().get_all(table, std::span(wanted),
                   [&](std::size_t i, const typename Table::row_type& row) {
                     ++present;
                     fn(i, row);
                   });
    return present;
  }

 private:
  friend Transaction;  // only Transaction may derive from this class
  table_scans() = default;
  template <class Table, class Keys>
  static auto arguments_of(Keys& keys) {
    using item = std::ranges::range_reference_t<Keys>;
    static_assert(
        std::integral<typename Table::key_type> || std::is_lvalue_reference_v<item> ||
            std::is_same_v<std::remove_cvref_t<item>, std::string_view>,
        "multi_get and multi_update: the strings of the range must live until they return");
    static_assert(
        std::integral<typename Table::key_type> || std::ranges::forward_range<Keys>,
        "multi_get and multi_update: the strings of the range must live until they return");
    std::vector<typename Table::key_argument> wanted;
    if constexpr (std::ranges::sized_range<Keys>) wanted.reserve(std::ranges::size(keys));
    for (const auto& key : keys)
      wanted.push_back(key_words<typename Table::key_type>::argument_of(key));
    return wanted;
  }
  Transaction& self() noexcept { return static_cast<Transaction&>(*this); }
};

// Calls erase(key) for the keys of a range, which it reads first. Returns how often that was true.
template <class Transaction, class Table, class Bounds, class Fn>
std::size_t erase_range(Transaction& t, Table& table, const Bounds& which, Fn&& erase) {
  std::vector<typename Table::key_type> keys;
  t.scan(table, which,
         [&](const auto& key, const auto&) { keys.push_back(typename Table::key_type(key)); });
  return static_cast<std::size_t>(std::count_if(keys.begin(), keys.end(), erase));
}

}  // namespace elidex::internal
