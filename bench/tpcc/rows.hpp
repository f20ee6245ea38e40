#pragma once
// TPC-C's nine tables as rows, and their keys as numbers.
//
//   customer row{.first = "BARBARA", .balance = -1000};         // money in cents
//   row.first.view();                                           // "BARBARA"
//   accounts.get(customer_key({.warehouse = 1, .district = 10}, 3000));
//
// Keys, from the highest bits to the lowest; each orders its table as the transactions scan it:
//   warehouse            w16
//   district             w16 d4
//   customer             w16 d4 c12
//   customers by name    w16 d4 n10 c12        n: the last name's number, see random.hpp
//   item                 i32
//   stock                w16 i32
//   order, new-order     w16 d4 o32
//   orders by customer   w16 d4 c12 ~o32       the newest first
//   order-line           w16 d4 o32 l4
//   history              w16 t16 s32           terminal and its count; the specification gives it
//                                              no key
// So there may be 65,535 warehouses, 15 districts in each, 4,094 customers in each of those, 15
// lines in an order, 65,535 terminals, and 2^32 - 1 orders in a district and payments of a
// terminal. No key is 0 and none needs all bits, so a key + 1 is never 0.
//
// Columns: all those of the specification, clause 1.3. Text of up to N characters is fixed_text<N>,
// dates are microseconds since 1970 with 0 for null, taxes and discounts ten-thousandths.
//
// Thread-safety: values. From: TPC-C revision 5.11, clause 1.3. Deviations: columns that are part
// of the key are not repeated in the row, but where the row is the only place to look (history,
// order-line's supplier).

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace elidex::bench::tpcc {

using money = std::int64_t;  // cents
using date = std::int64_t;   // microseconds since 1970; 0: null

// Text of N characters at most.
template <std::size_t N>
struct fixed_text {
  std::array<char, N> bytes{};  // filled with NULs

  fixed_text() = default;
  // Cuts off what doesn't fit.
  template <std::convertible_to<std::string_view> Text>
  fixed_text(const Text& from) {
    const std::string_view text(from);
    std::copy_n(text.begin(), std::min(N, text.size()), bytes.begin());
  }

  [[nodiscard]] std::string_view view() const noexcept {
    return {bytes.data(),
            static_cast<std::size_t>(std::find(bytes.begin(), bytes.end(), '\0') - bytes.begin())};
  }
  friend auto operator<=>(const fixed_text&, const fixed_text&) = default;
};

struct address {
  fixed_text<20> street_1, street_2, city;
  fixed_text<2> state;
  fixed_text<9> zip;
};

struct warehouse {
  fixed_text<10> name;
  address place;
  std::int32_t tax = 0;
  money ytd = 0;
};

struct district {
  fixed_text<10> name;
  address place;
  std::int32_t tax = 0;
  money ytd = 0;
  std::uint32_t next_order = 0;
};

struct customer {
  fixed_text<16> first;
  fixed_text<2> middle;
  fixed_text<16> last;
  address place;
  fixed_text<16> phone;
  date since = 0;
  fixed_text<2> credit;
  money credit_limit = 0;
  std::int32_t discount = 0;
  money balance = 0;
  money ytd_payment = 0;
  std::uint32_t payments = 0;
  std::uint32_t deliveries = 0;
  fixed_text<500> data;
};

// A customer in the index by name: what they are sorted by.
struct customer_name {
  fixed_text<16> first;
};

struct history {
  std::uint32_t customer = 0, customer_district = 0, customer_warehouse = 0;
  std::uint32_t district = 0, warehouse = 0;
  date when = 0;
  money amount = 0;
  fixed_text<24> data;
};

struct order {
  std::uint32_t customer = 0;
  std::uint32_t carrier = 0;  // 0: null
  date entered = 0;
  std::uint32_t lines = 0;
  std::uint32_t all_local = 0;
};

// Rows that tell all with their key.
struct present {
  std::uint8_t nothing = 0;
};

struct order_line {
  std::uint32_t item = 0;
  std::uint32_t supplier = 0;  // a warehouse
  date delivered = 0;          // 0: null
  std::uint32_t quantity = 0;
  money amount = 0;
  fixed_text<24> district_info;
};

struct item {
  std::uint32_t image = 0;
  fixed_text<24> name;
  money price = 0;
  fixed_text<50> data;
};

struct stock {
  std::int32_t quantity = 0;
  std::array<fixed_text<24>, 10> district_info;
  std::uint64_t ytd = 0;
  std::uint32_t orders = 0;
  std::uint32_t remote_orders = 0;
  fixed_text<50> data;
};

inline constexpr std::uint32_t warehouses_max = 65'535;
inline constexpr std::uint32_t customers_max = 4'094;
inline constexpr std::uint32_t lines_max = 15;
inline constexpr std::uint32_t order_max = UINT32_MAX - 1;

// A district of a warehouse.
struct district_id {
  std::uint32_t warehouse = 0;
  std::uint32_t district = 0;
  friend bool operator==(district_id, district_id) = default;
};

constexpr std::uint64_t warehouse_key(std::uint32_t w) noexcept {
  return w;
}
constexpr std::uint64_t district_key(district_id at) noexcept {
  return std::uint64_t{at.warehouse} << 4U | at.district;
}
constexpr std::uint64_t customer_key(district_id at, std::uint32_t c) noexcept {
  return district_key(at) << 12U | c;
}
constexpr std::uint64_t customer_name_key(district_id at, std::uint32_t name,
                                          std::uint32_t c) noexcept {
  return (district_key(at) << 10U | name) << 12U | c;
}
constexpr std::uint32_t customer_of_name_key(std::uint64_t key) noexcept {
  return static_cast<std::uint32_t>(key & 0xfffU);
}
constexpr std::uint64_t item_key(std::uint32_t i) noexcept {
  return i;
}
constexpr std::uint64_t stock_key(std::uint32_t w, std::uint32_t i) noexcept {
  return std::uint64_t{w} << 32U | i;
}
constexpr std::uint64_t order_key(district_id at, std::uint32_t o) noexcept {
  return district_key(at) << 32U | o;
}
constexpr std::uint32_t order_of_key(std::uint64_t key) noexcept {
  return static_cast<std::uint32_t>(key);
}
constexpr std::uint64_t customer_order_key(district_id at, std::uint32_t c,
                                           std::uint32_t o) noexcept {
  return customer_key(at, c) << 32U | static_cast<std::uint32_t>(~o);
}
constexpr std::uint32_t order_of_customer_order_key(std::uint64_t key) noexcept {
  return static_cast<std::uint32_t>(~key);
}
constexpr std::uint64_t order_line_key(district_id at, std::uint32_t o,
                                       std::uint32_t line) noexcept {
  return order_key(at, o) << 4U | line;
}
constexpr std::uint32_t order_of_line_key(std::uint64_t key) noexcept {
  return static_cast<std::uint32_t>(key >> 4U);
}
constexpr std::uint64_t history_key(std::uint32_t w, std::uint32_t terminal,
                                    std::uint32_t count) noexcept {
  return (std::uint64_t{w} << 16U | terminal) << 32U | count;
}

}  // namespace elidex::bench::tpcc
