#pragma once
// TPC-C's company: its tables in a database, and how they are filled.
//
//   elidex::database db;
//   tpcc::company c(db, {.warehouses = 2}, seed);       // makes the tables
//   c.load();  // or load_items() once and load_warehouse(w) each, on several threads
//   tpcc::terminal t(c, 1, seed);                       // terminal.hpp
//   t.step();
//   tpcc::violations(c);                                // consistency.hpp
//
// Nine tables as the specification has them, and two that serve as secondary indexes: customers by
// last name and orders by customer. Rows and keys: rows.hpp. Sizes: random.hpp.
//
// Thread-safety: load_items() and load_warehouse() of different warehouses may run side by side;
// the tables are the database's. Errors: std::invalid_argument for a scale that isn't possible;
// what the database throws. From: TPC-C 5.11, clauses 1.3 and 4.3.3. Deviation: a row goes in with
// a batch of others, as one transaction.

#include <chrono>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "bench/tpcc/random.hpp"
#include "bench/tpcc/rows.hpp"

namespace elidex::bench::tpcc {

inline date wall_clock() noexcept {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

template <class Database>
class company {
 public:
  using database_type = Database;
  template <class Row>
  using table = typename Database::template table<std::uint64_t, Row>;

  company(Database& in, const scale& wanted, std::uint64_t seed, date (*clock)() = &wall_clock)
      : db(in),
        size((wanted.check(), wanted)),
        constants(constants_of(seed)),
        now(clock),
        seed_(seed) {}
  company(const company&) = delete;
  company& operator=(const company&) = delete;

  Database& db;
  const scale size;
  const nurand_constants constants;
  date (*const now)();

  table<warehouse>& warehouses = make<warehouse>("warehouse");
  table<district>& districts = make<district>("district");
  table<customer>& customers = make<customer>("customer");
  table<customer_name>& customers_by_name = make<customer_name>("customer_by_name");
  table<history>& payments = make<history>("history");
  table<order>& orders = make<order>("order");
  table<present>& orders_by_customer = make<present>("order_by_customer");
  table<present>& new_orders = make<present>("new_order");
  table<order_line>& order_lines = make<order_line>("order_line");
  table<item>& items = make<item>("item");
  table<stock>& stocks = make<stock>("stock");

  void load() {
    load_items();
    for (std::uint32_t w = 1; w <= size.warehouses; ++w) load_warehouse(w);
  }

  void load_items() {
    draws random(mix(seed_), size, constants);
    in_batches(1, size.items, [&](auto& t, std::uint32_t i) {
      item row;
      row.image = random.between(1, 10'000);
      row.name = random.text(14, 24);
      row.price = random.between(1'00, 100'00);
      row.data = random.data();
      t.insert(items, item_key(i), row);
    });
  }

  void load_warehouse(std::uint32_t w) {
    draws random(mix(seed_ + w), size, constants);
    warehouse house;
    house.name = random.text(6, 10);
    house.place = random.place();
    house.tax = static_cast<std::int32_t>(random.between(0, 2'000));
    house.ytd = money{scale::districts} * size.customers * first_payment;
    db.transact([&](auto& t) { t.insert(warehouses, warehouse_key(w), house); });
    in_batches(1, size.items, [&](auto& t, std::uint32_t i) {
      stock row;
      row.quantity = static_cast<std::int32_t>(random.between(10, 100));
      for (auto& info : row.district_info) info = random.text(24, 24);
      row.data = random.data();
      t.insert(stocks, stock_key(w, i), row);
    });
    for (std::uint32_t d = 1; d <= scale::districts; ++d) load_district({w, d}, random);
  }

 private:
  static constexpr money first_payment = 10'00;
  static constexpr std::uint32_t batch = 16;

  template <class Row>
  table<Row>& make(const char* name) {
    return db.template create_table<std::uint64_t, Row>(name);
  }

  // Calls fn(t, i) for i from low to high, some in one transaction. What has to be run again draws
  // other values then.
  template <class Fn>
  void in_batches(std::uint32_t low, std::uint32_t high, Fn fn) {
    for (std::uint32_t first = low; first <= high; first += batch) {
      const std::uint32_t last = std::min(high, first + batch - 1);
      db.transact([&](auto& t) {
        for (std::uint32_t i = first; i <= last; ++i) fn(t, i);
      });
    }
  }

  void load_district(district_id at, draws& random) {
    district row;
    row.name = random.text(6, 10);
    row.place = random.place();
    row.tax = static_cast<std::int32_t>(random.between(0, 2'000));
    row.ytd = money{size.customers} * first_payment;
    row.next_order = size.orders() + 1;
    db.transact([&](auto& t) { t.insert(districts, district_key(at), row); });
    in_batches(1, size.customers,
               [&](auto& t, std::uint32_t c) { insert_customer(t, at, c, random); });

    std::vector<std::uint32_t> who(size.customers);  // an order for each customer, in random order
    std::iota(who.begin(), who.end(), 1);
    for (std::uint32_t left = size.customers; left > 1; --left)
      std::swap(who[left - 1], who[random.between(0, left - 1)]);
    in_batches(1, size.orders(),
               [&](auto& t, std::uint32_t o) { insert_order(t, at, o, who[o - 1], random); });
  }

  void insert_customer(auto& t, district_id at, std::uint32_t c, draws& random) {
    const std::uint32_t name = c <= size.names() ? c - 1 : random.name_number_at_load();
    customer row;
    row.first = random.text(8, 16);
    row.middle = "OE";
    row.last = last_name(name);
    row.place = random.place();
    row.phone = random.digits(16);
    row.since = now();
    row.credit = random.percent(10) ? "BC" : "GC";
    row.credit_limit = 50'000'00;
    row.discount = static_cast<std::int32_t>(random.between(0, 5'000));
    row.balance = -first_payment;
    row.ytd_payment = first_payment;
    row.payments = 1;
    row.data = random.text(300, 500);
    t.insert(customers, customer_key(at, c), row);
    t.insert(customers_by_name, customer_name_key(at, name, c), customer_name{row.first});

    history paid;
    paid.customer = c;
    paid.customer_district = paid.district = at.district;
    paid.customer_warehouse = paid.warehouse = at.warehouse;
    paid.when = row.since;
    paid.amount = first_payment;
    paid.data = random.text(12, 24);
    t.insert(payments, history_key(at.warehouse, 0, (at.district - 1) * customers_max + c), paid);
  }

  void insert_order(auto& t, district_id at, std::uint32_t o, std::uint32_t c, draws& random) {
    const bool delivered = o < size.first_new_order();
    order row;
    row.customer = c;
    row.carrier = delivered ? random.between(1, 10) : 0;
    row.entered = now();
    row.lines = random.between(5, lines_max);
    row.all_local = 1;
    t.insert(orders, order_key(at, o), row);
    t.insert(orders_by_customer, customer_order_key(at, c, o), present{});
    if (!delivered) t.insert(new_orders, order_key(at, o), present{});
    for (std::uint32_t l = 1; l <= row.lines; ++l) {
      order_line line;
      line.item = random.between(1, size.items);
      line.supplier = at.warehouse;
      line.delivered = delivered ? row.entered : 0;
      line.quantity = 5;
      line.amount = delivered ? 0 : random.between(1, 9'999'99);
      line.district_info = random.text(24, 24);
      t.insert(order_lines, order_line_key(at, o, l), line);
    }
  }

  const std::uint64_t seed_;
};

}  // namespace elidex::bench::tpcc
