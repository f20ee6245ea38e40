#pragma once
// SmallBank: customers with a savings and a checking account each, and six short transactions whose mistakes are seen in the sum of money.
//
//   elidex::database db;
//   smallbank::bank b(db, {.customers = 1'000});
//   b.load();
//   smallbank::teller t(b, seed);                       // one for each thread
//   t.step();                                           // one of six transactions
//   b.missing(tellers);                                 // 0: no money came or went but through the tellers' hands
//
// Each transaction answers how much money it brought in or took out; a teller adds that up once it is committed. So after a run all balances
// must make what the bank began with and the tellers' sums. At read_committed they don't: rows are written here with get() and put(), whose
// lost updates that level lets through. What the sum cannot see is a WRITE-CHECK that should have cost a penalty, as write skew makes it.
//
// Thread-safety: a teller belongs to one thread; bank as its database, load() and missing() while no teller works.
// From: Alomari et al., "The cost of serializability on platforms that use snapshot isolation" (ICDE 2008), with H-Store's sixth
// transaction, SEND-PAYMENT, and its hot spot: 90 % of all customers drawn are among the first `hot`.

#include <cstdint>
#include <stdexcept>

#include "elidex/database.hpp"
#include "lab/workload/random.hpp"

namespace elidex::lab::smallbank {

using money = std::int64_t;  // cents

struct settings {
  std::uint64_t customers = 100'000;
  std::uint64_t hot = 100;  // at most `customers`
  unsigned hot_pct = 90;
  isolation level = isolation::serializable;

  void check() const {
    if (hot < 2 || hot > customers)
      throw std::invalid_argument("SmallBank: 2 hot customers at least, and no more than there are");
  }
};

struct owner {
  std::uint64_t customer;
};
struct account {
  money balance;
};

inline constexpr money balance_at_first = 10'000'00;

template <class Database>
class bank {
 public:
  // Throws std::invalid_argument: two hot customers at least, and no more than there are.
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
    for (std::uint64_t c = 0; c < is.customers; ++c) {
      db.transact([&](auto& t) {
        t.insert(owners, c, owner{c});
        t.insert(savings, c, account{balance_at_first});
        t.insert(checking, c, account{balance_at_first});
      });
    }
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
    money expected = 2 * static_cast<money>(is.customers) * balance_at_first;
    for (const auto& one : tellers) expected += one.brought();
    return expected - all_money();
  }
};

// The transactions. Those that change something answer how much money they brought in.
template <class Database>
money balance(auto& t, bank<Database>& in, std::uint64_t name) {
  const std::uint64_t c = t.get(in.owners, name)->customer;
  return t.get(in.savings, c)->balance + t.get(in.checking, c)->balance;
}

template <class Table>
void add(auto& t, Table& to, std::uint64_t customer, money amount) {
  t.put(to, customer, account{t.get(to, customer)->balance + amount});
}

template <class Database>
money deposit_checking(auto& t, bank<Database>& in, std::uint64_t name, money amount) {
  add(t, in.checking, t.get(in.owners, name)->customer, amount);
  return amount;
}

// Refused if nothing would be left.
template <class Database>
money transact_savings(auto& t, bank<Database>& in, std::uint64_t name, money amount) {
  const std::uint64_t c = t.get(in.owners, name)->customer;
  const money before = t.get(in.savings, c)->balance;
  if (before + amount < 0) return 0;
  t.put(in.savings, c, account{before + amount});
  return amount;
}

// All that one has goes to another's checking account.
template <class Database>
money amalgamate(auto& t, bank<Database>& in, std::uint64_t from, std::uint64_t to) {
  const std::uint64_t giver = t.get(in.owners, from)->customer;
  const money all = t.get(in.savings, giver)->balance + t.get(in.checking, giver)->balance;
  t.put(in.savings, giver, account{0});
  t.put(in.checking, giver, account{0});
  add(t, in.checking, t.get(in.owners, to)->customer, all);
  return 0;
}

// A dollar's penalty for who overdraws.
template <class Database>
money write_check(auto& t, bank<Database>& in, std::uint64_t name, money amount) {
  const std::uint64_t c = t.get(in.owners, name)->customer;
  const money all = t.get(in.savings, c)->balance + t.get(in.checking, c)->balance;
  const money taken = all < amount ? amount + 1'00 : amount;
  add(t, in.checking, c, -taken);
  return -taken;
}

// Refused if there isn't enough.
template <class Database>
money send_payment(auto& t, bank<Database>& in, std::uint64_t from, std::uint64_t to, money amount) {
  const std::uint64_t giver = t.get(in.owners, from)->customer;
  if (t.get(in.checking, giver)->balance < amount) return 0;
  add(t, in.checking, giver, -amount);
  add(t, in.checking, t.get(in.owners, to)->customer, amount);
  return 0;
}

template <class Bank>
class teller {
 public:
  teller(Bank& of, std::uint64_t seed) : in_(of), random_(seed) {}

  // H-Store's mix: 15 % each, and 25 % SEND-PAYMENT.
  void step() {
    const std::uint64_t drawn = random_.below(100);
    const std::uint64_t one = draw_customer();
    std::uint64_t other = draw_customer();
    while (other == one) other = draw_customer();
    const auto amount = static_cast<money>(1 + random_.below(100'00));
    brought_ += in_.db.transact(in_.is.level, [&](auto& t) -> money {
      if (drawn < 15) return balance(t, in_, one) * 0;
      if (drawn < 30) return deposit_checking(t, in_, one, amount);
      if (drawn < 45) return transact_savings(t, in_, one, amount % 2 == 0 ? amount : -amount);
      if (drawn < 60) return amalgamate(t, in_, one, other);
      if (drawn < 75) return write_check(t, in_, one, amount);
      return send_payment(t, in_, one, other, amount);
    });
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

}  // namespace elidex::lab::smallbank
