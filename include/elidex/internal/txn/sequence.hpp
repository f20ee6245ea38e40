// Numbers for new rows: each is given once, and threads do not share a counter for each of them.
//
//   auto& orders = db.create_table<std::uint64_t, order>("orders");
//   db.open("shop");
//   elidex::db::sequence numbers(orders);    // continues behind the table's greatest key
//   const std::uint64_t number = numbers.next();  // outside of transact(), which may run fn again
//   db.transact([&](auto& t) { t.insert(orders, number, row); });
//
// A thread takes blocks of 64 numbers, so threads insert at different places of the table and do
// not collide. Numbers have gaps and no order in time. A new sequence may give a number again whose
// row was erased or never inserted, if it is greater than all keys of the table.
//
// Thread-safety: next(), from any thread. The constructor requires that no other thread inserts
// into the table.
// Complexity: O(1), without a lock. The constructor takes O(log n) in a table of n rows.
// Lifetime: independent of the table's.
// Errors: std::length_error from next(), if the table's key type has no more numbers.
//
// Implementation notes
// A stripe is the next number of a block, or a multiple of block_size if it has none. A thread
// takes a number by a successful compare-exchange of its stripe. If the stripe has none, it takes a
// block by fetch_add, keeps the first number, and puts the rest into the stripe. If another thread
// has done so first, the rest is lost. Each value of a stripe occurs once, because blocks do, so a
// compare-exchange that succeeds has seen no other value in between.
#pragma once

#include <array>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>

#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/tree/tree_range.hpp"
#include "elidex/internal/txn/record.hpp"
#include "elidex/internal/txn/table.hpp"

namespace elidex::internal {

// Gives numbers of a table's key type.
template <std::integral Key>
class sequence {
 public:
  // Continues behind the table's greatest key. No other thread may insert into the table.
  template <class Table>
    requires std::same_as<typename Table::key_type, Key>
  explicit sequence(const Table& table) {
    const epoch_pin pinned;
    typename Table::range backwards;
    backwards.descends = true;
    table.walk(backwards, [&](const record* last) {
      const Key key = key_words<Key>::of(last->key());
      if (!key_words<Key>::is_negative(key))
        blocks_.store(static_cast<std::uint64_t>(key) / block_size + 1);
      return false;
    });
  }
  sequence(const sequence&) = delete;
  sequence& operator=(const sequence&) = delete;

  // Returns a number that no other call has returned. Throws std::length_error if there is none.
  Key next() {
    std::atomic<std::uint64_t>& mine = stripes_[this_thread_slot() % stripes_.size()].next;
    std::uint64_t number = mine.load();
    while (number % block_size != 0) {
      if (mine.compare_exchange_weak(number, number + 1)) return checked(number);
    }
    const std::uint64_t first = take_block() * block_size;
    mine.compare_exchange_strong(number, first + 1);
    return checked(first);
  }

 private:
  static constexpr std::uint64_t block_size = 64;  // chosen
  static constexpr auto greatest = static_cast<std::uint64_t>(std::numeric_limits<Key>::max());
  struct alignas(128) stripe {
    std::atomic<std::uint64_t> next{0};
  };

  // Does not run over, however often it is called.
  std::uint64_t take_block() {
    std::uint64_t block = blocks_.load();
    do {
      if (block > greatest / block_size) refuse();
    } while (!blocks_.compare_exchange_weak(block, block + 1));
    return block;
  }
  static Key checked(std::uint64_t number) {
    if (number > greatest) refuse();
    return static_cast<Key>(number);
  }
  [[noreturn]] static void refuse() {
    throw std::length_error(
        "elidex: a sequence has no more numbers (expected: a wider type of keys)");
  }

  std::array<stripe, 64> stripes_;
  std::atomic<std::uint64_t> blocks_{0};  // taken so far
};

template <class Table>
sequence(const Table&) -> sequence<typename Table::key_type>;

}  // namespace elidex::internal
