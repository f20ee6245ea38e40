#pragma once
// SmallBank: customers with a savings and a checking account each, and short transactions whose
// mistakes are seen in the sum of money.
//
//   elidex::database db;
//   smallbank::bank b(db, {.customers = 1'000});
//   b.load();  // or load_share() of each share, on several threads
//   smallbank::teller t(b, seed);                       // one for each thread
//   t.step();                                           // one of the transactions
//   b.missing(tellers);  // 0: no money came or went but through the tellers' hands
//
// Each transaction answers how much money it brought in or took out; a teller adds that up once it
// is committed. So after a run all balances must make what the bank began with and the tellers'
// sums. At read_committed they don't: rows are written here with get() and upsert(), whose lost
// updates that level lets through. What the sum cannot see is a WRITE-CHECK that should have cost a
// penalty, as write skew makes it: for that each account counts its changes, so that recorded
// histories tell the order of the writes (tests/tpcc/smallbank_histories_test.cpp).
//
// The mix is the authors' five transactions, each as often as the others, or H-Store's, which has a
// sixth one.
//
// Thread-safety: a teller belongs to one thread; bank as its database, load() and missing() while
// no teller works; load_share() of different shares may run side by side. From: Alomari et al.,
// "The cost of serializability on platforms that use snapshot isolation" (ICDE 2008), with
// H-Store's sixth transaction, SEND-PAYMENT. The hot spot: `hot_pct` % of all customers drawn are
// among the first `hot`.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "bench/workload/random.hpp"
#include "elidex/database.hpp"

namespace elidex::bench::smallbank {

using namespace internal;

using money = std::int64_t;  // cents

enum class kind : std::uint8_t {
  balance,
  deposit_checking,
  transact_savings,
  amalgamate,
  write_check,
  send_payment
};
inline constexpr std::array<std::string_view, 6> kind_names{
    "balance", "deposit-checking", "transact-savings", "amalgamate", "write-check", "send-payment"};

enum class mix : std::uint8_t {
  five,    // 20 % each, without SEND-PAYMENT
  h_store  // 15 % each, and 25 % SEND-PAYMENT
};
constexpr std::size_t kinds_of(mix what) noexcept {
  return what == mix::five ? 5 : 6;
}

struct settings {
  std::uint64_t customers = 100'000;
  std::uint64_t hot = 100;  // at most `customers`
  unsigned hot_pct = 90;
  mix what = mix::h_store;
  isolation level = isolation::serializable;

  void check() const {
    if (hot < 2 || hot > customers || hot_pct > 100)
      throw std::invalid_argument(
          "SmallBank: 2 hot customers at least, no more than there are, and at most 100 %");
  }
};

struct owner {
  std::uint64_t customer;
};
struct account {
  money balance;
  std::uint64_t changes = 0;  // since the load

  [[nodiscard]] account with(money other) const noexcept { return {other, changes + 1}; }
};

inline constexpr money balance_at_first = 10'000'00;

template <class Database>
class bank {
 public:
  // Throws std::invalid_argument for settings that cannot be.
  bank(Database& in, const settings& wanted) : db(in), is((wanted.check(), wanted)) {}

  Database& db;
  const settings is;
  typename Database::template table<std::uint64_t, owner>& owners =
      db.template create_table<std::uint64_t, owner>("account");
  typename Database::template table<std::uint64_t, account>& savings =
      db.template create_table<std::uint64_t, account>("savings");
  typename Database::template table<std::uint64_t, account>& checking =
      db.template create_table<std::uint64_t, account>("checking");

  void load() {
    for (std::size_t i = 0; i < shares(); ++i) load_share(i);
  }
  [[nodiscard]] std::size_t shares() const noexcept { return (is.customers + share - 1) / share; }
  void load_share(std::size_t i) {
    const std::uint64_t end = std::min<std::uint64_t>((i + 1) * share, is.customers);
    for (std::uint64_t first = i * share; first < end; first += at_once) {
      db.transact([&](auto& t) {
        for (std::uint64_t c = first; c < std::min(first + at_once, end); ++c) {
          t.insert(owners, c, owner{c});
          t.insert(savings, c, account{balance_at_first});
          t.insert(checking, c, account{balance_at_first});
        }
      });
    }
  }
  [[nodiscard]] money at_first() const noexcept {
    return 2 * static_cast<money>(is.customers) * balance_at_first;
  }

  [[nodiscard]] money all_money() {
    return db.read_only([&](auto& t) {
      money sum = 0;
      const auto add = [&](std::uint64_t, const account& row) {
        sum += row.balance;
        return true;
      };
      t.scan(savings, std::uint64_t{0}, is.customers, add);
      t.scan(checking, std::uint64_t{0}, is.customers, add);
      return sum;
    });
  }

  // What there should be more than there is; of all tellers since the load.
  template <class Tellers>
  [[nodiscard]] money missing(const Tellers& tellers) {
    money expected = at_first();
    for (const auto& one : tellers) expected += one.brought();
    return expected - all_money();
  }

 private:
  static constexpr std::uint64_t share = 4096;
  static constexpr std::uint64_t at_once = 16;
};

// What is there since the load. Throws std::logic_error if it isn't.
template <class Table>
auto row_of(auto& t, Table& in, std::uint64_t key) {
  const auto row = t.get(in, key);
  if (!row) throw std::logic_error("SmallBank: an account is gone");
  return *row;
}

// The transactions. Those that change something answer how much money they brought in.
template <class Database>
money balance(auto& t, bank<Database>& in, std::uint64_t name) {
  const std::uint64_t c = row_of(t, in.owners, name).customer;
  return row_of(t, in.savings, c).balance + row_of(t, in.checking, c).balance;
}

template <class Table>
void add(auto& t, Table& to, std::uint64_t customer, money amount) {
  const account before = row_of(t, to, customer);
  t.upsert(to, customer, before.with(before.balance + amount));
}

template <class Database>
money deposit_checking(auto& t, bank<Database>& in, std::uint64_t name, money amount) {
  add(t, in.checking, row_of(t, in.owners, name).customer, amount);
  return amount;
}

// Refused if nothing would be left.
template <class Database>
money transact_savings(auto& t, bank<Database>& in, std::uint64_t name, money amount) {
  const std::uint64_t c = row_of(t, in.owners, name).customer;
  const account before = row_of(t, in.savings, c);
  if (before.balance + amount < 0) return 0;
  t.upsert(in.savings, c, before.with(before.balance + amount));
  return amount;
}

// All that one has goes to another's checking account.
template <class Database>
money amalgamate(auto& t, bank<Database>& in, std::uint64_t from, std::uint64_t to) {
  const std::uint64_t giver = row_of(t, in.owners, from).customer;
  const account saved = row_of(t, in.savings, giver);
  const account at_hand = row_of(t, in.checking, giver);
  t.upsert(in.savings, giver, saved.with(0));
  t.upsert(in.checking, giver, at_hand.with(0));
  add(t, in.checking, row_of(t, in.owners, to).customer, saved.balance + at_hand.balance);
  return 0;
}

// A dollar's penalty for who overdraws.
template <class Database>
money write_check(auto& t, bank<Database>& in, std::uint64_t name, money amount) {
  const std::uint64_t c = row_of(t, in.owners, name).customer;
  const money all = row_of(t, in.savings, c).balance + row_of(t, in.checking, c).balance;
  const money taken = all < amount ? amount + 1'00 : amount;
  add(t, in.checking, c, -taken);
  return -taken;
}

// Refused if there isn't enough.
template <class Database>
money send_payment(auto& t, bank<Database>& in, std::uint64_t from, std::uint64_t to,
                   money amount) {
  const std::uint64_t giver = row_of(t, in.owners, from).customer;
  if (row_of(t, in.checking, giver).balance < amount) return 0;
  add(t, in.checking, giver, -amount);
  add(t, in.checking, row_of(t, in.owners, to).customer, amount);
  return 0;
}

// What a transaction is to do.
struct request {
  kind what = kind::balance;
  std::uint64_t one = 0;
  std::uint64_t other = 1;
  money amount = 0;
};

template <class Bank>
class teller {
 public:
  teller(Bank& of, std::uint64_t seed) : in_(of), random_(seed) {}

  request draw() noexcept {
    const std::uint64_t each_pct = in_.is.what == mix::five ? 20 : 15;
    request drawn;
    drawn.what = static_cast<kind>(
        std::min<std::uint64_t>(random_.below(100) / each_pct, kind_names.size() - 1));
    drawn.one = drawn.other = draw_customer();
    while (drawn.other == drawn.one) drawn.other = draw_customer();
    drawn.amount = static_cast<money>(1 + random_.below(100'00));
    return drawn;
  }

  // Inside a transaction; answers what it brings in.
  money run(auto& t, const request& asked) {
    switch (asked.what) {
      case kind::balance:
        return balance(t, in_, asked.one) * 0;
      case kind::deposit_checking:
        return deposit_checking(t, in_, asked.one, asked.amount);
      case kind::transact_savings:
        return transact_savings(t, in_, asked.one,
                                asked.amount % 2 == 0 ? asked.amount : -asked.amount);
      case kind::amalgamate:
        return amalgamate(t, in_, asked.one, asked.other);
      case kind::write_check:
        return write_check(t, in_, asked.one, asked.amount);
      case kind::send_payment:
        break;
    }
    return send_payment(t, in_, asked.one, asked.other, asked.amount);
  }

  kind step() {
    const request drawn = draw();
    brought_ += in_.db.transact(in_.is.level, [&](auto& t) { return run(t, drawn); });
    return drawn.what;
  }

  [[nodiscard]] money brought() const noexcept { return brought_; }

 private:
  std::uint64_t draw_customer() noexcept {
    return random_.below(random_.below(100) < in_.is.hot_pct ? in_.is.hot : in_.is.customers);
  }

  Bank& in_;
  random_bits random_;
  money brought_ = 0;
};

}  // namespace elidex::bench::smallbank
