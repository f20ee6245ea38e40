// TPC-C's population and transactions, against what the specification says and what was computed by
// hand.

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "tests/tpcc/small_company.hpp"

namespace elidex::bench::tpcc {
namespace {

using company_under_test = small_company<>;
using user = terminal<company<basic_database<db::silo_commit>>>;

constexpr district_id here{1, 4};

TEST(TpccKeys, KeepTheirPartsApart) {
  const district_id last{warehouses_max, scale::districts};
  EXPECT_EQ(order_of_key(order_key(last, order_max)), order_max);
  EXPECT_EQ(order_of_line_key(order_line_key(last, order_max, lines_max)), order_max);
  EXPECT_EQ(order_of_customer_order_key(customer_order_key(last, customers_max, order_max)),
            order_max);
  EXPECT_EQ(customer_of_name_key(customer_name_key(last, 999, customers_max)), customers_max);
  EXPECT_LT(order_key({1, 10}, order_max), order_key({2, 1}, 0));
  EXPECT_LT(order_line_key(here, 7, lines_max), order_line_key(here, 8, 0));
  EXPECT_LT(customer_key({1, 10}, customers_max), customer_key({2, 1}, 0));
  EXPECT_LT(customer_name_key(here, 999, customers_max), customer_name_key({1, 5}, 0, 0));
  EXPECT_LT(customer_order_key(here, 5, 8), customer_order_key(here, 5, 7)) << "the newest first";
  EXPECT_LT(customer_order_key(here, 5, 0), customer_order_key(here, 6, order_max));
  EXPECT_LT(history_key(1, UINT16_MAX, UINT32_MAX), history_key(2, 0, 0));
}

TEST(TpccRandom, IsWithinTheSpecification) {
  EXPECT_EQ(last_name(0), "BARBARBAR");
  EXPECT_EQ(last_name(371), "PRICALLYOUGHT");
  EXPECT_EQ(last_name(999), "EINGEINGEING");
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const nurand_constants c = constants_of(seed);
    const int apart = std::abs(static_cast<int>(c.name) - static_cast<int>(c.name_at_load));
    EXPECT_TRUE(apart >= 65 && apart <= 119 && apart != 96 && apart != 112) << apart;
    EXPECT_TRUE(c.name <= 255 && c.name_at_load <= 255 && c.customer <= 1'023 && c.item <= 8'191);
  }
  for (const scale& of :
       {scale{}, scale{.customers = 30, .items = 100}, scale{.customers = 1, .items = 15}}) {
    draws random(7, of, constants_of(7));
    std::map<std::uint32_t, int> customers;
    for (int i = 0; i < 20'000; ++i) {
      const std::uint32_t c = random.customer();
      ++customers[c];
      ASSERT_TRUE(c >= 1 && c <= of.customers);
      const std::uint32_t one = random.item();
      ASSERT_TRUE(one >= 1 && one <= of.items);
      ASSERT_LT(random.name_number(), of.names());
    }
    int most = 0;
    for (const auto& [number, times] : customers) most = std::max(most, times);
    if (of.customers > 1) {
      EXPECT_GT(most, 2 * 20'000 / static_cast<int>(of.customers)) << "not uniform";
    }
  }
}

TEST(TpccRandom, RefusesScalesThatKeysCannotHold) {
  basic_database<db::silo_commit> one;
  EXPECT_THROW(company(one, {.warehouses = 0}, 1), std::invalid_argument);
  EXPECT_THROW(company(one, {.warehouses = 65'536}, 1), std::invalid_argument);
  EXPECT_THROW(company(one, {.customers = 4'095}, 1), std::invalid_argument);
  EXPECT_THROW(company(one, {.items = 14}, 1), std::invalid_argument);
  // nothing is left of those that were refused
  company good(one, {.customers = 1, .items = 15}, 1);
}

TEST(TpccLoad, HasTheSpecifiedPopulation) {
  small_company<> c(1, 3, 3'000);
  EXPECT_EQ(c.rows(c.in.warehouses), 1U);
  EXPECT_EQ(c.rows(c.in.districts), 10U);
  EXPECT_EQ(c.rows(c.in.customers), 30'000U);
  EXPECT_EQ(c.rows(c.in.customers_by_name), 30'000U);
  EXPECT_EQ(c.rows(c.in.payments), 30'000U);
  EXPECT_EQ(c.rows(c.in.orders), 30'000U);
  EXPECT_EQ(c.rows(c.in.new_orders), 9'000U);
  EXPECT_EQ(c.rows(c.in.stocks), 100U);
  EXPECT_EQ(c.told(), "");
  const auto home = c.row(c.in.warehouses, 1);
  EXPECT_EQ(home->ytd, 300'000'00);
  EXPECT_TRUE(home->tax >= 0 && home->tax <= 2'000);
  EXPECT_EQ(home->place.zip.view().substr(4), "11111");
  EXPECT_EQ(c.row(c.in.districts, district_key(here))->next_order, 3'001U);
  int bad = 0;
  std::set<std::string> names;
  std::set<std::uint32_t> ordered;
  c.db.read_only([&](auto& t) {
    t.scan(c.in.customers, std::uint64_t{0}, UINT64_MAX, [&](std::uint64_t, const customer& row) {
      bad += row.credit.view() == "BC" ? 1 : 0;
      names.insert(std::string(row.last.view()));
      EXPECT_TRUE(row.balance == -10'00 && row.data.view().size() >= 300);
      return true;
    });
    t.scan(c.in.orders, order_key(here, 0), order_key(here, order_max),
           [&](std::uint64_t key, const order& row) {
             ordered.insert(row.customer);
             EXPECT_EQ(row.carrier == 0, order_of_key(key) >= 2'101);
             return true;
           });
  });
  EXPECT_NEAR(bad, 3'000, 300);
  EXPECT_EQ(names.size(), 1'000U);
  EXPECT_EQ(ordered.size(), 3'000U) << "an order of each customer";
  EXPECT_EQ(c.row(c.in.customers, customer_key(here, 372))->last.view(), "PRICALLYOUGHT");

  basic_database<db::silo_commit> goods_db;
  company goods(goods_db, {.customers = 1, .items = 10'000}, 9);
  goods.load();
  int original = 0;
  goods_db.read_only([&](auto& t) {
    t.scan(goods.items, std::uint64_t{0}, UINT64_MAX, [&](std::uint64_t, const item& row) {
      original += row.data.view().find("ORIGINAL") != std::string_view::npos ? 1 : 0;
      EXPECT_TRUE(row.price >= 1'00 && row.price <= 100'00);
      return true;
    });
  });
  EXPECT_NEAR(original, 1'000, 150);
}

TEST(TpccNewOrder, DoesWhatItSays) {
  company_under_test c;
  user terminal(c.in, 1, 1);
  // 10 %
  c.change(c.in.warehouses, 1, [](warehouse& row) { row.tax = 1'000; });
  // 5 %
  c.change(c.in.districts, district_key(here), [](district& row) { row.tax = 500; });
  // 20 %
  c.change(c.in.customers, customer_key(here, 9), [](customer& row) { row.discount = 2'000; });
  const std::uint32_t goods[] = {11, 12, 13};
  const money prices[] = {1'00, 2'50, 99'99};
  const std::int32_t quantities[] = {15, 14, 50};
  for (std::size_t i = 0; i < 3; ++i) {
    c.change(c.in.items, goods[i], [&](item& row) {
      row.price = prices[i];
      row.data = i == 0 ? "so ORIGINAL" : "plain";
    });
    c.change(c.in.stocks, stock_key(i == 2 ? 2 : 1, goods[i]), [&](stock& row) {
      row.quantity = quantities[i];
      row.data = i < 2 ? "ORIGINAL too" : "plain";
      row.district_info[3] = std::string("for four from ") + std::to_string(i);
    });
  }
  new_order_request asked;
  asked.at = here;
  asked.customer = 9;
  asked.lines = 3;
  asked.of[0] = {11, 1, 5};
  asked.of[1] = {12, 1, 5};
  asked.of[2] = {13, 2, 10};
  asked.entered = 77;
  const new_order_answer answer = terminal.run(asked);

  EXPECT_EQ(answer.order, 31U);
  EXPECT_EQ(answer.amounts[0], 5'00);
  EXPECT_EQ(answer.amounts[1], 12'50);
  EXPECT_EQ(answer.amounts[2], 999'90);
  EXPECT_EQ(answer.total, 1017'40 * 80 / 100 * 115 / 100);
  EXPECT_EQ(answer.brand[0], 'B');
  EXPECT_EQ(answer.brand[1], 'G');
  EXPECT_EQ(c.row(c.in.districts, district_key(here))->next_order, 32U);
  const auto made = c.row(c.in.orders, order_key(here, 31));
  ASSERT_TRUE(made);
  EXPECT_EQ(made->customer, 9U);
  EXPECT_EQ(made->carrier, 0U);
  EXPECT_EQ(made->entered, 77);
  EXPECT_EQ(made->lines, 3U);
  EXPECT_EQ(made->all_local, 0U);
  EXPECT_TRUE(c.row(c.in.new_orders, order_key(here, 31)));
  EXPECT_TRUE(c.row(c.in.orders_by_customer, customer_order_key(here, 9, 31)));
  const auto line = c.row(c.in.order_lines, order_line_key(here, 31, 3));
  ASSERT_TRUE(line);
  EXPECT_EQ(line->item, 13U);
  EXPECT_EQ(line->supplier, 2U);
  EXPECT_EQ(line->delivered, 0);
  EXPECT_EQ(line->quantity, 10U);
  EXPECT_EQ(line->amount, 999'90);
  EXPECT_EQ(line->district_info.view(), "for four from 2");
  EXPECT_FALSE(c.row(c.in.order_lines, order_line_key(here, 31, 4)));
  const auto enough = c.row(c.in.stocks, stock_key(1, 11));
  EXPECT_EQ(enough->quantity, 10);
  EXPECT_EQ(enough->ytd, 5U);
  EXPECT_EQ(enough->orders, 1U);
  EXPECT_EQ(enough->remote_orders, 0U);
  EXPECT_EQ(c.row(c.in.stocks, stock_key(1, 12))->quantity, 14 - 5 + 91);
  EXPECT_EQ(c.row(c.in.stocks, stock_key(2, 13))->remote_orders, 1U);
  EXPECT_EQ(c.told(), "");
}

TEST(TpccNewOrder, OfAnUnusedItemLeavesNothing) {
  company_under_test c;
  user terminal(c.in, 1, 1);
  new_order_request asked = terminal.draw_new_order();
  asked.of[asked.lines - 1].item = c.in.size.items + 1;
  const auto before = c.row(c.in.stocks, stock_key(asked.of[0].supplier, asked.of[0].item));
  EXPECT_THROW(terminal.run(asked), unused_item);
  EXPECT_EQ(c.row(c.in.stocks, stock_key(asked.of[0].supplier, asked.of[0].item))->quantity,
            before->quantity);
  EXPECT_EQ(c.row(c.in.districts, district_key(asked.at))->next_order, 31U);
  EXPECT_EQ(c.rows(c.in.orders), 2U * 10 * 30);
  EXPECT_EQ(c.told(), "");
}

TEST(TpccNewOrder, OfOneItemTwiceTakesItTwice) {
  company_under_test c;
  user terminal(c.in, 1, 1);
  new_order_request asked = terminal.draw_new_order();
  asked.lines = 15;
  for (auto& line : asked.of) line = {42, 1, 10};
  c.change(c.in.stocks, stock_key(1, 42), [](stock& row) { row.quantity = 100; });
  terminal.run(asked);
  EXPECT_EQ(c.row(c.in.stocks, stock_key(1, 42))->quantity, 100 + 91 - 150);
  EXPECT_EQ(c.row(c.in.stocks, stock_key(1, 42))->orders, 15U);
  EXPECT_EQ(c.told(), "");
}

TEST(TpccPayment, ChangesThreeBalancesAndLeavesAPaper) {
  company_under_test c;
  user terminal(c.in, 1, 1);
  const district_id theirs{2, 9};
  c.change(c.in.customers, customer_key(theirs, 5), [](customer& row) { row.credit = "GC"; });
  c.change(c.in.warehouses, 1, [](warehouse& row) { row.name = "house"; });
  c.change(c.in.districts, district_key(here), [](district& row) { row.name = "part"; });
  payment_request asked{.at = here,
                        .who = {.at = theirs, .number = 5},
                        .amount = 12'34,
                        .when = 55,
                        .terminal = 7,
                        .count = 8};
  const payment_answer answer = terminal.run(asked);
  EXPECT_EQ(answer.customer, 5U);
  EXPECT_EQ(answer.balance, -22'34);
  EXPECT_FALSE(answer.bad_credit);
  const auto payer = c.row(c.in.customers, customer_key(theirs, 5));
  EXPECT_EQ(payer->balance, -22'34);
  EXPECT_EQ(payer->ytd_payment, 22'34);
  EXPECT_EQ(payer->payments, 2U);
  EXPECT_EQ(c.row(c.in.warehouses, 1)->ytd, 10 * 30 * 10'00 + 12'34);
  EXPECT_EQ(c.row(c.in.districts, district_key(here))->ytd, 30 * 10'00 + 12'34);
  const auto paper = c.row(c.in.payments, history_key(1, 7, 8));
  ASSERT_TRUE(paper);
  EXPECT_EQ(paper->amount, 12'34);
  EXPECT_EQ(paper->when, 55);
  EXPECT_EQ(paper->customer_warehouse, 2U);
  EXPECT_EQ(paper->data.view(), "house    part");
  EXPECT_EQ(c.told(), "");
}

TEST(TpccPayment, WritesIntoABadPayersData) {
  company_under_test c;
  user terminal(c.in, 1, 1);
  const std::string before(500, 'x');
  c.change(c.in.customers, customer_key(here, 5), [&](customer& row) {
    row.credit = "BC";
    row.data = before;
  });
  const payment_answer answer = terminal.run(payment_request{.at = here,
                                                             .who = {.at = here, .number = 5},
                                                             .amount = 12'34,
                                                             .when = 55,
                                                             .terminal = 7,
                                                             .count = 8});
  EXPECT_TRUE(answer.bad_credit);
  const std::string now(c.row(c.in.customers, customer_key(here, 5))->data.view());
  EXPECT_EQ(now, "5 4 1 4 1 1234 " + std::string(485, 'x'));
}

TEST(TpccPayment, TakesTheMiddleOneOfAName) {
  company_under_test c(1, 1, 30);
  user terminal(c.in, 1, 1);
  // All of one name, number 9, have their first names by our will: the order of names isn't that of
  // numbers.
  std::vector<std::uint32_t> named;
  c.db.read_only([&](auto& t) {
    t.scan(c.in.customers_by_name, customer_name_key(here, 9, 0), customer_name_key(here, 10, 0),
           [&](std::uint64_t key, const customer_name&) {
             named.push_back(customer_of_name_key(key));
             return true;
           });
  });
  ASSERT_GE(named.size(), 1U);
  for (const std::uint32_t extra : {101U, 102U, 103U}) {
    c.db.transact([&](auto& t) {
      t.insert(c.in.customers_by_name, customer_name_key(here, 9, extra), customer_name{});
      t.insert(c.in.customers, customer_key(here, extra), customer{});
    });
    named.push_back(extra);
  }
  for (std::size_t i = 0; i < named.size(); ++i) {
    const std::string first(1, static_cast<char>('z' - i));
    c.change(c.in.customers_by_name, customer_name_key(here, 9, named[i]),
             [&](customer_name& row) { row.first = first; });
  }
  // Sorted by first name they are `named` from the end; of n the one at n/2 rounded up, counted
  // from 1.
  const std::uint32_t expected = named[named.size() - (named.size() + 1) / 2];
  payment_request asked{.at = here,
                        .who = {.at = here, .name = 9},
                        .amount = 1'00,
                        .when = 1,
                        .terminal = 7,
                        .count = 8};
  EXPECT_EQ(terminal.run(asked).customer, expected);
  asked.who.name = 999;
  EXPECT_THROW(terminal.run(asked), missing_row);
}

TEST(TpccOrderStatus, TellsTheNewestOrder) {
  for (const readers how : {readers::as_snapshots, readers::as_transactions}) {
    company_under_test c;
    user terminal(c.in, 1, 1, how);
    new_order_request asked = terminal.draw_new_order();
    asked.at = here;
    asked.customer = 6;
    asked.of[asked.lines - 1].item = 1;
    const std::uint32_t number = terminal.run(asked).order;
    const order_status_answer answer = terminal.run(customer_choice{.at = here, .number = 6});
    EXPECT_EQ(answer.customer, 6U);
    EXPECT_EQ(answer.balance, -10'00);
    EXPECT_EQ(answer.order, number);
    EXPECT_EQ(answer.carrier, 0U);
    ASSERT_EQ(answer.lines.size(), asked.lines);
    for (std::uint32_t l = 0; l < asked.lines; ++l)
      EXPECT_EQ(answer.lines[l].item, asked.of[l].item);
  }
}

TEST(TpccDelivery, DeliversTheOldestOfEachDistrictUntilNoneIsLeft) {
  company_under_test c;
  user terminal(c.in, 2, 1);
  const district_id at{2, 3};
  const auto first = c.row(c.in.orders, order_key(at, 22));
  money sum = 0;
  for (std::uint32_t l = 1; l <= first->lines; ++l)
    sum += c.row(c.in.order_lines, order_line_key(at, 22, l))->amount;
  const delivery_answer answer = terminal.run(delivery_request{2, 8, 99});
  for (const std::uint32_t number : answer.orders) EXPECT_EQ(number, 22U);
  EXPECT_FALSE(c.row(c.in.new_orders, order_key(at, 22)));
  EXPECT_EQ(c.row(c.in.orders, order_key(at, 22))->carrier, 8U);
  EXPECT_EQ(c.row(c.in.order_lines, order_line_key(at, 22, 1))->delivered, 99);
  const auto buyer = c.row(c.in.customers, customer_key(at, first->customer));
  EXPECT_EQ(buyer->balance, sum - 10'00);
  EXPECT_EQ(buyer->deliveries, 1U);
  EXPECT_EQ(c.rows(c.in.new_orders), 2U * 10 * 9 - 10);
  EXPECT_EQ(c.told(), "");
  for (int i = 0; i < 8; ++i) terminal.run(delivery_request{2, 8, 99});
  for (const std::uint32_t number : terminal.run(delivery_request{2, 8, 99}).orders)
    EXPECT_EQ(number, 0U);
  EXPECT_EQ(c.rows(c.in.new_orders), 10U * 9) << "the other warehouse's";
  EXPECT_EQ(c.told(), "");
}

TEST(TpccDelivery, DistrictsWithoutNewOrdersAreLeftOut) {
  company_under_test c;
  user terminal(c.in, 2, 1);
  const delivery_request asked{2, 8, 99};
  for (const std::uint32_t d : {3U, 7U}) {
    for (std::uint32_t i = 0; i < 9; ++i) {
      const delivery_answer alone =
          c.db.transact([&](auto& t) { return deliver(t, c.in, asked, d, d); });
      EXPECT_EQ(alone.orders[d - 1], 22 + i);
    }
  }
  EXPECT_EQ(c.told(), "");
  std::map<std::uint32_t, customer> buyers;  // by district
  for (std::uint32_t d = 1; d <= scale::districts; ++d) {
    const district_id at{2, d};
    const auto order = c.row(c.in.orders, order_key(at, 22));
    buyers[d] = *c.row(c.in.customers, customer_key(at, order->customer));
  }
  const delivery_answer answer = terminal.run(asked);
  for (std::uint32_t d = 1; d <= scale::districts; ++d) {
    SCOPED_TRACE(d);
    const district_id at{2, d};
    const auto order = c.row(c.in.orders, order_key(at, 22));
    money sum = 0;
    for (std::uint32_t l = 1; l <= order->lines; ++l) {
      const auto line = c.row(c.in.order_lines, order_line_key(at, 22, l));
      EXPECT_EQ(line->delivered, 99);
      sum += line->amount;
    }
    const bool is_empty = d == 3 || d == 7;
    EXPECT_EQ(answer.orders[d - 1], is_empty ? 0U : 22U);
    const auto buyer = c.row(c.in.customers, customer_key(at, order->customer));
    EXPECT_EQ(buyer->balance, buyers[d].balance + (is_empty ? 0 : sum));
    EXPECT_EQ(buyer->deliveries, buyers[d].deliveries + (is_empty ? 0 : 1));
  }
  EXPECT_EQ(c.told(), "");
}

TEST(TpccStockLevel, CountsEachLowItemOfTheLastOrdersOnce) {
  for (const readers how : {readers::as_snapshots, readers::as_transactions}) {
    company_under_test c;
    user terminal(c.in, 1, 1, how);
    for (int i = 0; i < 30; ++i) terminal.step(kind::new_order);
    const std::uint32_t next = c.row(c.in.districts, district_key(here))->next_order;
    std::set<std::uint32_t> low;
    for (std::uint32_t o = next - 20; o < next; ++o) {
      for (std::uint32_t l = 1; l <= c.row(c.in.orders, order_key(here, o))->lines; ++l) {
        const std::uint32_t one = c.row(c.in.order_lines, order_line_key(here, o, l))->item;
        if (c.row(c.in.stocks, stock_key(1, one))->quantity < 40) low.insert(one);
      }
    }
    EXPECT_GT(low.size(), 0U);
    EXPECT_EQ(terminal.run(stock_level_request{here, 40}), low.size());
  }
}

TEST(TpccTerminal, DrawsTheStandardMix) {
  company_under_test c(3);
  user terminal(c.in, 2, 1);
  std::array<int, kinds> drawn{};
  int unused = 0;
  int remote_lines = 0;
  int lines = 0;
  int remote_customers = 0;
  int by_name = 0;
  constexpr int many = 100'000;
  for (int i = 0; i < many; ++i) {
    ++drawn[static_cast<std::size_t>(terminal.draw_kind())];
    const new_order_request order = terminal.draw_new_order();
    unused += order.of[order.lines - 1].item > c.in.size.items ? 1 : 0;
    for (std::uint32_t l = 0; l < order.lines; ++l)
      remote_lines += order.of[l].supplier != 2 ? 1 : 0;
    lines += static_cast<int>(order.lines);
    const payment_request paid = terminal.draw_payment();
    remote_customers += paid.who.at.warehouse != 2 ? 1 : 0;
    by_name += paid.who.name ? 1 : 0;
    ASSERT_TRUE(paid.who.at.warehouse >= 1 && paid.who.at.warehouse <= 3);
  }
  EXPECT_NEAR(drawn[0], 0.45 * many, 0.01 * many);
  EXPECT_NEAR(drawn[1], 0.43 * many, 0.01 * many);
  for (std::size_t k = 2; k < kinds; ++k) EXPECT_NEAR(drawn[k], 0.04 * many, 0.005 * many);
  EXPECT_NEAR(unused, 0.01 * many, 0.003 * many);
  EXPECT_NEAR(lines, 10 * many, 0.1 * many);
  EXPECT_NEAR(remote_lines, 0.01 * lines, 0.002 * lines);
  EXPECT_NEAR(remote_customers, 0.15 * many, 0.01 * many);
  EXPECT_NEAR(by_name, 0.6 * many, 0.01 * many);
}

TEST(TpccTerminal, DoesTheSameForTheSameSeeds) {
  std::array<money, 2> earned{};
  std::array<std::size_t, 2> orders{};
  for (std::size_t i = 0; i < 2; ++i) {
    company_under_test c(1, 8);
    user terminal(c.in, 1, 4);
    for (int s = 0; s < 300; ++s) terminal.step();
    earned[i] = c.row(c.in.warehouses, 1)->ytd;
    orders[i] = c.rows(c.in.orders);
    EXPECT_EQ(c.told(), "");
  }
  EXPECT_EQ(earned[0], earned[1]);
  EXPECT_EQ(orders[0], orders[1]);
}

}  // namespace
}  // namespace elidex::bench::tpcc
