#pragma once
// TPC-C's consistency conditions: what is true of the company's tables at every moment between
// transactions.
//
//   for (const violation& v : violations(company)) std::puts(v.text.c_str());
//   // also while terminals work
//   db.read_only([&](auto& t) { return consistency_check(company, t).violations(); });
//
// Conditions 1 to 12 are those of clause 3.3.2. Number 11 holds there for the first population only
// (orders less new orders are 2100); here each delivery since is counted by its customer, which
// makes it true of every moment. Beyond them:
//   101   each order and each customer is in its secondary index, once, and nothing else is there
//   102   a stock's year-to-date quantity, its orders and its remote orders are those of the order
//         lines since the load
// With these an index that loses a key or a lost update of any column that is counted is seen.
//
// All rows are read once; memory for a district's customers and orders at a time, and for all
// stocks.
//
// Thread-safety: as the transaction's. At most `violations_max` of each condition are told.

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "bench/tpcc/company.hpp"

namespace elidex::bench::tpcc {

struct violation {
  int condition;
  std::string text;
};

template <class Company, class Transaction>
class consistency_check {
 public:
  static constexpr std::size_t violations_max = 5;

  consistency_check(Company& of, Transaction& in)
      : in_(of), t_(in), sold_(std::size_t{of.size.warehouses} + 1) {
    for (auto& one : sold_) one.resize(std::size_t{of.size.items} + 1);
    read_payments();
    for (std::uint32_t w = 1; w <= of.size.warehouses; ++w) {
      for (std::uint32_t d = 1; d <= scale::districts; ++d) check_district({w, d});
      check_warehouse(w);
    }
    check_stocks();
  }

  [[nodiscard]] std::vector<violation> violations() && { return std::move(found_); }

 private:
  struct paid {
    money here = 0;         // in the district, whoever paid
    std::vector<money> of;  // each customer
  };
  struct sales {
    std::uint64_t quantity = 0;
    std::uint32_t orders = 0;
    std::uint32_t remote = 0;
    friend bool operator==(const sales&, const sales&) = default;
  };
  struct order_facts {
    std::uint32_t number = 0;
    order row;
    bool is_new = false;
    std::uint32_t lines = 0;
    std::uint32_t delivered_lines = 0;
    money amount = 0;
  };

  void expect(bool holds, int condition, district_id where, const std::string& what) {
    if (holds) return;
    const auto same = std::count_if(found_.begin(), found_.end(),
                                    [&](const violation& v) { return v.condition == condition; });
    if (static_cast<std::size_t>(same) >= violations_max) return;
    found_.push_back({condition, "condition " + std::to_string(condition) + ", warehouse " +
                                     std::to_string(where.warehouse) + " district " +
                                     std::to_string(where.district) + ": " + what});
  }
  void expect_equal(std::int64_t a, std::int64_t b, int condition, district_id where,
                    const std::string& what) {
    if (a != b)
      expect(false, condition, where,
             what + ": " + std::to_string(a) + " and " + std::to_string(b));
  }

  static std::size_t index(district_id at) {
    return std::size_t{at.warehouse - 1} * scale::districts + at.district - 1;
  }
  [[nodiscard]] bool is_district(district_id at) const {
    return at.warehouse >= 1 && at.warehouse <= in_.size.warehouses && at.district >= 1 &&
           at.district <= scale::districts;
  }

  void read_payments() {
    paid_.resize(std::size_t{in_.size.warehouses} * scale::districts);
    for (paid& one : paid_) one.of.resize(std::size_t{in_.size.customers} + 1);
    t_.scan(in_.payments, std::uint64_t{0}, UINT64_MAX, [&](std::uint64_t, const history& row) {
      const district_id at{row.warehouse, row.district};
      const district_id theirs{row.customer_warehouse, row.customer_district};
      if (!is_district(at) || !is_district(theirs) || row.customer < 1 ||
          row.customer > in_.size.customers) {
        expect(false, 9, at, "a payment of a customer or a district that isn't there");
        return true;
      }
      paid_[index(at)].here += row.amount;
      paid_[index(theirs)].of[row.customer] += row.amount;
      return true;
    });
  }

  void check_warehouse(std::uint32_t w) {
    const auto row = t_.get(in_.warehouses, warehouse_key(w));
    const district_id where{w, 0};
    if (!row) return expect(false, 1, where, "no such warehouse");
    money districts = 0;
    money payments = 0;
    for (std::uint32_t d = 1; d <= scale::districts; ++d) {
      const auto part = t_.get(in_.districts, district_key({w, d}));
      if (part) districts += part->ytd;
      payments += paid_[index({w, d})].here;
    }
    expect_equal(row->ytd, districts, 1, where, "its year-to-date and the sum of its districts'");
    expect_equal(row->ytd, payments, 8, where, "its year-to-date and the sum of payments");
  }

  void check_district(district_id at) {
    const auto row = t_.get(in_.districts, district_key(at));
    if (!row) return expect(false, 2, at, "no such district");
    expect_equal(row->ytd, paid_[index(at)].here, 9, at,
                 "its year-to-date and the sum of payments");

    std::vector<order_facts> orders;
    t_.scan(in_.orders, order_key(at, 0), order_key(at, order_max),
            [&](std::uint64_t key, const order& one) {
              orders.push_back({.number = order_of_key(key), .row = one});
              return true;
            });
    const std::uint32_t newest = orders.empty() ? 0 : orders.back().number;
    if (!in_.size.terminals_number_orders) {
      expect_equal(std::int64_t{row->next_order} - 1, newest, 2, at,
                   "next order - 1 and the newest order");
    }
    const std::uint64_t undelivered = read_new_orders(at, orders, newest);
    read_lines(at, orders);
    check_orders(at, orders);
    check_customers(at, orders, undelivered);
  }

  static order_facts* find(std::vector<order_facts>& orders, std::uint32_t number) {
    const auto at =
        std::lower_bound(orders.begin(), orders.end(), number,
                         [](const order_facts& one, std::uint32_t n) { return one.number < n; });
    return at != orders.end() && at->number == number ? &*at : nullptr;
  }

  std::uint64_t read_new_orders(district_id at, std::vector<order_facts>& orders,
                                std::uint32_t newest) {
    std::uint64_t many = 0;
    std::uint32_t first = 0;
    std::uint32_t last = 0;
    t_.scan(in_.new_orders, order_key(at, 0), order_key(at, order_max),
            [&](std::uint64_t key, const present&) {
              last = order_of_key(key);
              if (many++ == 0) first = last;
              if (order_facts* const one = find(orders, last)) {
                one->is_new = true;
              } else {
                expect(false, 5, at, "new order " + std::to_string(last) + " is no order");
              }
              return true;
            });
    if (many != 0 && !in_.size.terminals_number_orders) {
      expect_equal(newest, last, 2, at, "the newest order and the newest new order");
      expect_equal(std::int64_t{last} - first + 1, static_cast<std::int64_t>(many), 3, at,
                   "the span of new orders and their number");
    }
    return many;
  }

  void read_lines(district_id at, std::vector<order_facts>& orders) {
    std::int64_t all = 0;
    t_.scan(in_.order_lines, order_line_key(at, 0, 0), order_line_key(at, order_max, 0),
            [&](std::uint64_t key, const order_line& line) {
              ++all;
              const std::uint32_t number = order_of_line_key(key);
              order_facts* const one = find(orders, number);
              if (one == nullptr) {
                expect(false, 6, at,
                       "a line of order " + std::to_string(number) + ", which isn't there");
                return true;
              }
              ++one->lines;
              if (line.delivered != 0) {
                ++one->delivered_lines;
                one->amount += line.amount;
              }
              if (number > in_.size.orders() && line.supplier < sold_.size() &&
                  line.item <= in_.size.items) {
                sales& of = sold_[line.supplier][line.item];
                of.quantity += line.quantity;
                ++of.orders;
                if (line.supplier != at.warehouse) ++of.remote;
              }
              return true;
            });
    std::int64_t promised = 0;
    for (const order_facts& one : orders) promised += one.row.lines;
    expect_equal(promised, all, 4, at,
                 "the sum of the orders' numbers of lines and the lines there are");
  }

  void check_orders(district_id at, const std::vector<order_facts>& orders) {
    for (const order_facts& one : orders) {
      const std::string name = "order " + std::to_string(one.number);
      expect((one.row.carrier == 0) == one.is_new, 5, at,
             name + " has a carrier and is new, or neither");
      expect_equal(one.row.lines, one.lines, 6, at, name + ": lines by its row and by the table");
      expect(one.delivered_lines == (one.row.carrier == 0 ? 0 : one.lines), 7, at,
             name + ": " + std::to_string(one.delivered_lines) +
                 " of its lines are delivered, by carrier " + std::to_string(one.row.carrier));
    }
    // 101: the other way round, from the index.
    std::vector<std::pair<std::uint32_t, std::uint32_t>> indexed;  // order, customer
    t_.scan(in_.orders_by_customer, customer_key(at, 0) << 32U,
            (customer_key(at, customers_max) + 1) << 32U, [&](std::uint64_t key, const present&) {
              indexed.emplace_back(order_of_customer_order_key(key),
                                   static_cast<std::uint32_t>(key >> 32U & 0xfffU));
              return true;
            });
    std::sort(indexed.begin(), indexed.end());
    expect(std::equal(indexed.begin(), indexed.end(), orders.begin(), orders.end(),
                      [](const auto& a, const order_facts& b) {
                        return a == std::pair(b.number, b.row.customer);
                      }),
           101, at, "orders and their index by customer differ");
  }

  void check_customers(district_id at, const std::vector<order_facts>& orders,
                       std::uint64_t undelivered) {
    std::vector<money> delivered(std::size_t{in_.size.customers} + 1);
    for (const order_facts& one : orders) {
      if (one.row.customer <= in_.size.customers) delivered[one.row.customer] += one.amount;
    }
    const paid& payments = paid_[index(at)];
    std::int64_t deliveries = 0;
    std::uint32_t customers = 0;
    std::vector<std::pair<std::uint32_t, fixed_text<16>>> names;
    t_.scan(in_.customers, customer_key(at, 0), customer_key(at, customers_max + 1),
            [&](std::uint64_t key, const customer& row) {
              const auto c = static_cast<std::uint32_t>(key & 0xfffU);
              ++customers;
              names.emplace_back(c, row.first);
              deliveries += row.deliveries;
              if (c > in_.size.customers) return true;
              const std::string name = "customer " + std::to_string(c);
              expect_equal(row.balance, delivered[c] - payments.of[c], 10, at,
                           name + ": balance, and deliveries less payments");
              expect_equal(row.balance + row.ytd_payment, delivered[c], 12, at,
                           name + ": balance with payments, and deliveries");
              return true;
            });
    expect_equal(static_cast<std::int64_t>(orders.size() - undelivered),
                 in_.size.first_new_order() - 1 + deliveries, 11, at,
                 "delivered orders, and those of the load with the customers' deliveries");

    std::vector<std::pair<std::uint32_t, fixed_text<16>>> indexed;
    t_.scan(in_.customers_by_name, customer_name_key(at, 0, 0), customer_name_key(at, 1'000, 0),
            [&](std::uint64_t key, const customer_name& row) {
              indexed.emplace_back(customer_of_name_key(key), row.first);
              return true;
            });
    std::sort(indexed.begin(), indexed.end());
    expect(indexed == names && customers == in_.size.customers, 101, at,
           "customers and their index by name differ");
  }

  void check_stocks() {
    for (std::uint32_t w = 1; w <= in_.size.warehouses; ++w) {
      std::uint32_t many = 0;
      t_.scan(in_.stocks, stock_key(w, 0), stock_key(w + 1, 0),
              [&](std::uint64_t key, const stock& row) {
                const auto i = static_cast<std::uint32_t>(key);
                ++many;
                if (i > in_.size.items) return true;
                expect(sales{row.ytd, row.orders, row.remote_orders} == sold_[w][i], 102, {w, 0},
                       "stock of item " + std::to_string(i) + " doesn't fit its order lines");
                return true;
              });
      expect_equal(many, in_.size.items, 102, {w, 0}, "rows of stock and items");
    }
  }

  Company& in_;
  Transaction& t_;
  std::vector<paid> paid_;                // of each district
  std::vector<std::vector<sales>> sold_;  // by supplier and item, since the load
  std::vector<violation> found_;
};

// As of one moment, which may be in the middle of a run.
template <class Company>
std::vector<violation> violations(Company& of) {
  return of.db.read_only([&](auto& t) { return consistency_check(of, t).violations(); });
}

}  // namespace elidex::bench::tpcc
