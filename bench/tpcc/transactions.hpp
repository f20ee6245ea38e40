#pragma once
// TPC-C's five transactions: what they are asked, what they do in a transaction of the database,
// and what they answer.
//
//   new_order_request r = ...;  // drawn before the transaction begins (terminal.hpp)
//   // throws unused_item: rolled back
//   db.transact([&](auto& t) { return new_order(t, company, r); });
//
// They may run several times. Each comes late to the rows that all write: the specification leaves
// the order of the steps within a transaction open. So NEW-ORDER looks at items and stocks before
// it takes the district's number, and at the warehouse's tax behind all.
//
// Thread-safety: functions of their arguments. Errors: missing_row if a row that must be there
// isn't (believed only if what was read stands, see database.hpp). From: TPC-C 5.11, clauses 2.4 to
// 2.8. Deviation: DELIVERY runs when it is asked for, not from a queue. It is one transaction for
// all districts; clause 2.7 leaves their number open.

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <ranges>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "bench/tpcc/company.hpp"
#include "bench/tpcc/rows.hpp"

namespace elidex::bench::tpcc {

// NEW-ORDER names an item that there isn't: the transaction rolls back, as it should.
struct unused_item : std::runtime_error {
  unused_item() : std::runtime_error("TPC-C: item number is not valid") {}
};
// A row is not there: the database has lost it, or somebody asks for a customer who never was.
struct missing_row : std::runtime_error {
  explicit missing_row(const char* which)
      : std::runtime_error(std::string("TPC-C: no such ") + which) {}
};

template <class Row>
Row& present_row(std::optional<Row>& found, const char* which) {
  if (!found) throw missing_row(which);
  return *found;
}

// A customer by number, or by last name where that is given.
struct customer_choice {
  district_id at;
  std::uint32_t number = 0;
  std::optional<std::uint32_t> name = {};
};

// Among customers of one name the middle one, rounded up, by first name.
template <class Database>
std::uint32_t find_customer(auto& t, company<Database>& in, const customer_choice& wanted) {
  if (!wanted.name) return wanted.number;
  struct candidate {
    fixed_text<16> first;
    std::uint32_t number = 0;
  };
  std::vector<candidate> found;
  t.scan(in.customers_by_name, customer_name_key(wanted.at, *wanted.name, 0),
         customer_name_key(wanted.at, *wanted.name + 1, 0),
         [&](std::uint64_t key, const customer_name& row) {
           found.push_back({row.first, customer_of_name_key(key)});
           return true;
         });
  if (found.empty()) throw missing_row("customer of that name");
  const auto middle = found.begin() + static_cast<std::ptrdiff_t>((found.size() + 1) / 2 - 1);
  std::nth_element(found.begin(), middle, found.end(), [](const candidate& a, const candidate& b) {
    return a.first != b.first ? a.first < b.first : a.number < b.number;
  });
  return middle->number;
}

struct new_order_request {
  struct line {
    std::uint32_t item = 0;
    std::uint32_t supplier = 0;
    std::uint32_t quantity = 0;
  };
  district_id at;
  std::uint32_t customer = 0;
  std::uint32_t lines = 0;
  std::array<line, lines_max> of{};
  date entered = 0;
  std::uint32_t number = 0;  // of the order, where terminals number orders
};
struct new_order_answer {
  std::uint32_t order = 0;
  money total = 0;  // with discount and taxes, rounded down
  std::array<money, lines_max> amounts{};
  std::array<char, lines_max> brand{};  // 'B' where item and stock are "ORIGINAL", otherwise 'G'
};

// Takes the items out of stock. Fills the order's lines, their amounts and brands, and returns the
// sum of the amounts.
template <class Database>
money take_from_stock(auto& t, company<Database>& in, const new_order_request& request,
                      std::array<order_line, lines_max>& lines, new_order_answer& answer) {
  std::array<std::uint64_t, lines_max> of_items;
  std::array<std::uint64_t, lines_max> of_stocks;
  for (std::uint32_t l = 0; l < request.lines; ++l) {
    of_items[l] = item_key(request.of[l].item);
    of_stocks[l] = stock_key(request.of[l].supplier, request.of[l].item);
  }
  const auto original = [](std::string_view data) {
    return data.find("ORIGINAL") != std::string_view::npos;
  };
  money sum = 0;
  std::array<bool, lines_max> is_original;
  const std::size_t items = t.multi_get(
      in.items, std::span(of_items.data(), request.lines), [&](std::size_t l, const item& good) {
        const auto& asked = request.of[l];
        order_line& line = lines[l];
        line.item = asked.item;
        line.supplier = asked.supplier;
        line.quantity = asked.quantity;
        line.amount = answer.amounts[l] = asked.quantity * good.price;
        sum += line.amount;
        is_original[l] = original(good.data.view());
      });
  // Only the last item may be an unused one. The stocks of the others change before the
  // transaction rolls back.
  const std::size_t stocks =
      t.multi_update(in.stocks, std::span(of_stocks.data(), items), [&](std::size_t l, stock& row) {
        const auto& asked = request.of[l];
        const auto wanted = static_cast<std::int32_t>(asked.quantity);
        row.quantity += row.quantity >= wanted + 10 ? -wanted : 91 - wanted;
        row.ytd += asked.quantity;
        ++row.orders;
        if (asked.supplier != request.at.warehouse) ++row.remote_orders;
        lines[l].district_info = row.district_info[request.at.district - 1];
        answer.brand[l] = is_original[l] && original(row.data.view()) ? 'B' : 'G';
      });
  if (stocks != items) throw missing_row("stock");
  if (items != request.lines) throw unused_item();
  return sum;
}

template <class Database>
new_order_answer new_order(auto& t, company<Database>& in, const new_order_request& request) {
  new_order_answer answer;
  std::array<order_line, lines_max> lines;
  order made;
  made.customer = request.customer;
  made.entered = request.entered;
  made.lines = request.lines;
  made.all_local = 1;
  for (std::uint32_t l = 0; l < request.lines; ++l) {
    if (request.of[l].supplier != request.at.warehouse) made.all_local = 0;
  }
  const money sum = take_from_stock(t, in, request, lines, answer);
  auto buyer = t.get(in.customers, customer_key(request.at, request.customer));
  const std::int32_t discount = present_row(buyer, "customer").discount;

  std::int32_t district_tax = 0;
  if (in.size.terminals_number_orders) {
    auto row = t.get(in.districts, district_key(request.at));
    district_tax = present_row(row, "district").tax;
    answer.order = request.number;
  } else {
    const bool there = t.update(in.districts, district_key(request.at), [&](district& row) {
      district_tax = row.tax;
      answer.order = row.next_order++;
    });
    if (!there) throw missing_row("district");
  }
  t.insert(in.orders, order_key(request.at, answer.order), made);
  t.insert(in.new_orders, order_key(request.at, answer.order), present{});
  t.insert(in.orders_by_customer, customer_order_key(request.at, request.customer, answer.order),
           present{});
  for (std::uint32_t l = 0; l < request.lines; ++l) {
    t.insert(in.order_lines, order_line_key(request.at, answer.order, l + 1), lines[l]);
  }
  auto home = t.get(in.warehouses, warehouse_key(request.at.warehouse));
  const std::int32_t tax = present_row(home, "warehouse").tax + district_tax;
  answer.total = sum * (10'000 - discount) / 10'000 * (10'000 + tax) / 10'000;
  return answer;
}

struct payment_request {
  district_id at;
  customer_choice who;
  money amount = 0;
  date when = 0;
  std::uint32_t terminal = 0;  // with `count` what makes the key of its history row
  std::uint32_t count = 0;
};
struct payment_answer {
  std::uint32_t customer = 0;
  money balance = 0;
  bool bad_credit = false;
};

// What a payment leaves in the data of a customer with bad credit, in front of what was there.
inline fixed_text<500> paid_into(const fixed_text<500>& data, const payment_request& request,
                                 std::uint32_t customer) {
  std::array<char, 500> text{};
  char* at = text.data();
  char* const end = at + text.size();
  for (const auto number :
       {std::int64_t{customer}, std::int64_t{request.who.at.district},
        std::int64_t{request.who.at.warehouse}, std::int64_t{request.at.district},
        std::int64_t{request.at.warehouse}, request.amount}) {
    at = std::to_chars(at, end, number).ptr;
    *at++ = ' ';
  }
  const std::string_view before = data.view();
  at = std::copy_n(before.begin(), std::min(before.size(), static_cast<std::size_t>(end - at)), at);
  return std::string_view(text.data(), static_cast<std::size_t>(at - text.data()));
}

template <class Database>
payment_answer payment(auto& t, company<Database>& in, const payment_request& request) {
  payment_answer answer;
  answer.customer = find_customer(t, in, request.who);
  bool there =
      t.update(in.customers, customer_key(request.who.at, answer.customer), [&](customer& row) {
        answer.balance = row.balance -= request.amount;
        row.ytd_payment += request.amount;
        ++row.payments;
        answer.bad_credit = row.credit.view() == "BC";
        if (answer.bad_credit) row.data = paid_into(row.data, request, answer.customer);
      });
  if (!there) throw missing_row("customer");
  fixed_text<10> warehouse_name;
  fixed_text<10> district_name;
  there = t.update(in.districts, district_key(request.at), [&](district& row) {
    row.ytd += request.amount;
    district_name = row.name;
  });
  if (!there) throw missing_row("district");
  there = t.update(in.warehouses, warehouse_key(request.at.warehouse), [&](warehouse& row) {
    row.ytd += request.amount;
    warehouse_name = row.name;
  });
  if (!there) throw missing_row("warehouse");

  history paid;
  paid.customer = answer.customer;
  paid.customer_district = request.who.at.district;
  paid.customer_warehouse = request.who.at.warehouse;
  paid.district = request.at.district;
  paid.warehouse = request.at.warehouse;
  paid.when = request.when;
  paid.amount = request.amount;
  char* const text = paid.data.bytes.data();
  const std::string_view name = warehouse_name.view();
  std::fill_n(std::copy(name.begin(), name.end(), text), 4, ' ');
  const std::string_view part = district_name.view();
  std::copy(part.begin(), part.end(), text + name.size() + 4);
  t.insert(in.payments, history_key(request.at.warehouse, request.terminal, request.count), paid);
  return answer;
}

struct order_status_answer {
  std::uint32_t customer = 0;
  money balance = 0;
  std::uint32_t order = 0;  // 0: none
  std::uint32_t carrier = 0;
  date entered = 0;
  std::vector<order_line> lines;
};

template <class Database>
order_status_answer order_status(auto& t, company<Database>& in, const customer_choice& who) {
  order_status_answer answer;
  answer.customer = find_customer(t, in, who);
  auto customer = t.get(in.customers, customer_key(who.at, answer.customer));
  answer.balance = present_row(customer, "customer").balance;
  t.scan(in.orders_by_customer, customer_order_key(who.at, answer.customer, order_max),
         customer_order_key(who.at, answer.customer, 0), [&](std::uint64_t key, const present&) {
           answer.order = order_of_customer_order_key(key);
           return false;
         });
  if (answer.order == 0) return answer;
  auto found = t.get(in.orders, order_key(who.at, answer.order));
  const order& last = present_row(found, "order");
  answer.carrier = last.carrier;
  answer.entered = last.entered;
  answer.lines.reserve(lines_max);
  t.scan(in.order_lines, order_line_key(who.at, answer.order, 0),
         order_line_key(who.at, answer.order + 1, 0), [&](std::uint64_t, const order_line& line) {
           answer.lines.push_back(line);
           return true;
         });
  return answer;
}

struct delivery_request {
  std::uint32_t warehouse = 0;
  std::uint32_t carrier = 0;
  date when = 0;
};
struct delivery_answer {
  std::array<std::uint32_t, scale::districts> orders{};  // 0: that district has none to deliver
};

// The number of the district's oldest undelivered order. 0: none.
template <class Database>
std::uint32_t oldest_new_order(auto& t, company<Database>& in, district_id at) {
  std::uint32_t oldest = 0;
  t.scan(in.new_orders, order_key(at, 0), order_key(at, order_max),
         [&](std::uint64_t key, const present&) {
           oldest = order_of_key(key);
           return false;
         });
  return oldest;
}

// Delivers the oldest order of each of some districts of one warehouse, from `first` to `last`.
template <class Database>
delivery_answer deliver(auto& t, company<Database>& in, const delivery_request& request,
                        std::uint32_t first, std::uint32_t last) {
  struct delivered_order {
    district_id at;
    order row;
    money sum = 0;
  };
  delivery_answer answer;
  std::array<delivered_order, scale::districts> of;
  std::array<std::uint64_t, scale::districts> orders;
  std::size_t many = 0;
  for (std::uint32_t d = first; d <= last; ++d) {
    const district_id at{request.warehouse, d};
    const std::uint32_t oldest = answer.orders[d - 1] = oldest_new_order(t, in, at);
    if (oldest == 0) continue;
    t.erase(in.new_orders, order_key(at, oldest));
    of[many].at = at;
    orders[many++] = order_key(at, oldest);
  }
  const std::span order_keys(orders.data(), many);
  if (t.multi_update(in.orders, order_keys, [&](std::size_t i, order& row) {
        row.carrier = request.carrier;
        of[i].row = row;
      }) != many)
    throw missing_row("order");

  struct line {
    std::size_t of;
    std::uint64_t key;
  };
  std::vector<line> lines;
  lines.reserve(many * lines_max);
  for (std::size_t i = 0; i < many; ++i) {
    if (of[i].row.lines > lines_max) throw missing_row("order line");
    for (std::uint32_t l = 1; l <= of[i].row.lines; ++l)
      lines.push_back({i, order_line_key(of[i].at, order_of_key(orders[i]), l)});
  }
  if (t.multi_update(in.order_lines, lines | std::views::transform(&line::key),
                     [&](std::size_t l, order_line& row) {
                       row.delivered = request.when;
                       of[lines[l].of].sum += row.amount;
                     }) != lines.size())
    throw missing_row("order line");

  const auto customers =
      std::span(of.data(), many) | std::views::transform([](const delivered_order& one) {
        return customer_key(one.at, one.row.customer);
      });
  if (t.multi_update(in.customers, customers, [&](std::size_t i, customer& row) {
        row.balance += of[i].sum;
        ++row.deliveries;
      }) != many)
    throw missing_row("customer");
  return answer;
}

template <class Database>
delivery_answer delivery(auto& t, company<Database>& in, const delivery_request& request) {
  return deliver(t, in, request, 1, scale::districts);
}

struct stock_level_request {
  district_id at;
  std::int32_t threshold = 0;
};

// How many of the items in the district's last 20 orders are low in stock.
template <class Database>
std::uint32_t stock_level(auto& t, company<Database>& in, const stock_level_request& request) {
  auto found = t.get(in.districts, district_key(request.at));
  const std::uint32_t next = present_row(found, "district").next_order;
  const std::uint32_t first = next > 20 ? next - 20 : 1;
  std::array<std::uint32_t, 20UL * lines_max> items;
  std::size_t many = 0;
  t.scan(in.order_lines, order_line_key(request.at, first, 0), order_line_key(request.at, next, 0),
         [&](std::uint64_t, const order_line& line) {
           items[many++] = line.item;
           return many < items.size();  // a transaction may see what never was
         });
  const auto begin = items.begin();
  std::sort(begin, begin + static_cast<std::ptrdiff_t>(many));
  const auto end = std::unique(begin, begin + static_cast<std::ptrdiff_t>(many));
  const auto keys = std::ranges::subrange(begin, end) | std::views::transform([&](std::uint32_t i) {
                      return stock_key(request.at.warehouse, i);
                    });
  std::uint32_t low = 0;
  const std::size_t there = t.multi_get(in.stocks, keys, [&](std::size_t, const stock& row) {
    if (row.quantity < request.threshold) ++low;
  });
  if (there != std::size_t(std::distance(begin, end))) throw missing_row("stock");
  return low;
}

}  // namespace elidex::bench::tpcc
