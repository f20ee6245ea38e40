#pragma once
// A terminal of TPC-C's company: draws what its user wants, and runs it as a transaction.
//
//   terminal t(company, home_warehouse, seed);
//   const auto [kind, rolled_back] = t.step();        // one of the five, by the standard mix
//   t.run(t.draw_payment());  // a certain one; answers what the transaction answers
//
// The mix: 45 % NEW-ORDER, 43 % PAYMENT, 4 % each of ORDER-STATUS, DELIVERY and STOCK-LEVEL, drawn
// for each step: clause 5.2.3 asks for 43, 4, 4 and 4 % at least. Everything is drawn before the
// transaction begins, so an attempt that is repeated does the same.
//
// The two that only read run as snapshots or as other transactions do, as asked: `readers`.
//
// Thread-safety: a terminal belongs to one thread; any number of them work side by side. Errors:
// missing_row, what the database throws. From: TPC-C 5.11, clauses 2.4.1, 2.5.1, 2.6.1, 2.7.1,
// 2.8.1, 5.2.3. Deviation: users neither type nor think, so a terminal's rate isn't bounded (as in
// Silo's experiments), and its warehouse has more orders than the specification's 12.86 a minute.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "bench/tpcc/company.hpp"
#include "bench/tpcc/transactions.hpp"

namespace elidex::bench::tpcc {

enum class kind : std::uint8_t { new_order, payment, order_status, delivery, stock_level };
inline constexpr std::size_t kinds = 5;
inline constexpr std::array<std::string_view, kinds> kind_names{
    "new-order", "payment", "order-status", "delivery", "stock-level"};

enum class readers : std::uint8_t { as_transactions, as_snapshots };

struct step_result {
  kind what;
  bool rolled_back = false;  // a NEW-ORDER with an unused item, as it should be
};

template <class Company>
class terminal {
 public:
  // Throws std::length_error after 65535 terminals in one process.
  terminal(Company& of, std::uint32_t home_warehouse, std::uint64_t seed,
           readers how = readers::as_snapshots)
      : in_(of),
        home_(home_warehouse),
        how_(how),
        number_(next_number()),
        random_(mix(seed), of.size, of.constants) {}

  kind draw_kind() noexcept {
    const std::uint32_t drawn = random_.between(0, 99);
    if (drawn < 45) return kind::new_order;
    if (drawn < 88) return kind::payment;
    if (drawn < 92) return kind::order_status;
    return drawn < 96 ? kind::delivery : kind::stock_level;
  }

  // Throws std::length_error after 65535 orders, where terminals number them.
  new_order_request draw_new_order() {
    new_order_request drawn;
    drawn.at = {home_, random_.district()};
    drawn.customer = random_.customer();
    drawn.lines = random_.between(5, lines_max);
    for (std::uint32_t l = 0; l < drawn.lines; ++l) {
      const bool remote = random_.percent(1) && !in_.size.terminals_stay_home;
      drawn.of[l] = {random_.item(), remote ? random_.other_warehouse(home_) : home_,
                     random_.between(1, 10)};
    }
    if (random_.percent(1)) drawn.of[drawn.lines - 1].item = in_.size.items + 1;  // unused
    drawn.entered = in_.now();
    if (in_.size.terminals_number_orders) {
      if (orders_ == UINT16_MAX) throw std::length_error("TPC-C: 65535 orders of one terminal");
      drawn.number = number_ << 16U | orders_++;
    }
    return drawn;
  }
  payment_request draw_payment() noexcept {
    payment_request drawn;
    drawn.at = {home_, random_.district()};
    drawn.who = {.at = random_.percent(15) && !in_.size.terminals_stay_home
                           ? district_id{random_.other_warehouse(home_), random_.district()}
                           : drawn.at};
    choose_customer(drawn.who);
    drawn.amount = random_.between(1'00, 5'000'00);
    drawn.when = in_.now();
    drawn.terminal = number_;
    drawn.count = payments_++;
    return drawn;
  }
  customer_choice draw_order_status() noexcept {
    customer_choice drawn{.at = {home_, random_.district()}};
    choose_customer(drawn);
    return drawn;
  }
  delivery_request draw_delivery() noexcept { return {home_, random_.between(1, 10), in_.now()}; }
  stock_level_request draw_stock_level() noexcept {
    return {{home_, random_.district()}, static_cast<std::int32_t>(random_.between(10, 20))};
  }

  // Throws unused_item.
  new_order_answer run(const new_order_request& asked) {
    return in_.db.transact([&](auto& t) { return new_order(t, in_, asked); });
  }
  payment_answer run(const payment_request& asked) {
    return in_.db.transact([&](auto& t) { return payment(t, in_, asked); });
  }
  order_status_answer run(const customer_choice& asked) {
    return read([&](auto& t) { return order_status(t, in_, asked); });
  }
  delivery_answer run(const delivery_request& asked) {
    if (in_.size.districts_deliver_alone) {
      delivery_answer answer;
      for (std::uint32_t d = 1; d <= scale::districts; ++d) {
        answer.orders[d - 1] =
            in_.db.transact([&](auto& t) { return deliver(t, in_, asked, d, d); }).orders[d - 1];
      }
      return answer;
    }
    return in_.db.transact([&](auto& t) { return delivery(t, in_, asked); });
  }
  std::uint32_t run(const stock_level_request& asked) {
    return read([&](auto& t) { return stock_level(t, in_, asked); });
  }

  step_result step() { return step(draw_kind()); }
  step_result step(kind what) {
    switch (what) {
      case kind::new_order: {
        const new_order_request asked = draw_new_order();
        try {
          run(asked);
        } catch (const unused_item&) {
          return {what, true};
        }
        break;
      }
      case kind::payment:
        run(draw_payment());
        break;
      case kind::order_status:
        run(draw_order_status());
        break;
      case kind::delivery:
        run(draw_delivery());
        break;
      case kind::stock_level:
        run(draw_stock_level());
        break;
    }
    return {what, false};
  }

 private:
  // From 1: the loader's history rows are of terminal 0.
  static std::uint32_t next_number() {
    static std::atomic<std::uint32_t> given{0};
    const std::uint32_t mine = ++given;
    if (mine > UINT16_MAX) throw std::length_error("TPC-C: more than 65535 terminals");
    return mine;
  }

  void choose_customer(customer_choice& drawn) noexcept {
    if (random_.percent(60)) {
      drawn.name = random_.name_number();
    } else {
      drawn.number = random_.customer();
    }
  }
  template <class Fn>
  auto read(Fn&& fn) {
    return how_ == readers::as_snapshots ? in_.db.read_only(fn) : in_.db.transact(fn);
  }

  Company& in_;
  const std::uint32_t home_;
  const readers how_;
  const std::uint32_t number_;
  std::uint32_t payments_ = 0;
  std::uint32_t orders_ = 0;  // numbered by this terminal
  draws random_;
};

}  // namespace elidex::bench::tpcc
