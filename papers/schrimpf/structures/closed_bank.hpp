#pragma once
// A closed bank: accounts with a lock each, money that only ever moves.
//
//   closed_bank<spin_loop> bank(10'000, 1'000);
//   bank.withdraw(1, 50);
//   bank.deposit(2, 50);
//   bank.balance(2);              // 1050
//   bank.check();                 // throws std::logic_error if money came or went
//
// Idea: small sections on random accounts hardly ever meet, so nothing but the price of the lock
// itself is measured; and the sum of all balances tells whether the lock works at all.
//
// Invariants: while no transfer is under way, the balances add up to what the bank began with.
// Between a withdrawal and its deposit the money is in the caller's hands alone. Balances may be
// negative.
//
// Order of locks: one at a time. Linearization points: those of the account's lock.
//
// Thread-safety: any thread may call any member, except check(), which must run alone.
//
// From: paper 004 section 3.3.1. Deviations: balances are integers, so that the sum is exact; the
// lock has cache lines of its own and so has the balance, where the thesis's account is one object
// of both.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include "papers/schrimpf/structures/locks.hpp"

namespace elidex::bench {

template <class Lock>
class closed_bank {
 public:
  closed_bank(std::size_t accounts, std::int64_t money_of_each)
      : size_(accounts),
        money_(static_cast<std::int64_t>(accounts) * money_of_each),
        accounts_(std::make_unique<account[]>(accounts)) {
    for (std::size_t i = 0; i < size_; ++i) accounts_[i].balance = money_of_each;
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  void deposit(std::size_t to, std::int64_t money) {
    account& a = accounts_[to];
    const std::lock_guard guard(a.own.lock);
    a.balance += money;
  }
  void withdraw(std::size_t from, std::int64_t money) { deposit(from, -money); }
  [[nodiscard]] std::int64_t balance(std::size_t of) {
    account& a = accounts_[of];
    const std::lock_guard guard(a.own.lock);
    return a.balance;
  }

  void check() const {
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < size_; ++i) sum += accounts_[i].balance;
    if (sum != money_) {
      throw std::logic_error("closed bank: " + std::to_string(sum) + " of " +
                             std::to_string(money_) + " are left: the lock does not work");
    }
  }

 private:
  struct account {
    own_lines<Lock> own;
    alignas(64) std::int64_t balance = 0;
  };

  std::size_t size_;
  std::int64_t money_;
  std::unique_ptr<account[]> accounts_;
};

}  // namespace elidex::bench
