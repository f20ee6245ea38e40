#pragma once
// TPC-C's random values: NURand, last names, strings, and the constants that go with a scale.
//
//   scale small{.warehouses = 2, .customers = 60, .items = 100};
//   draws random(42, small, 0);
//   random.customer();  random.item();  random.name_number();     // not uniform: some are hotter
//   last_name(371);                                               // "PRICALLYOUGHT"
//
// Scales: the specification's is the default, and its numbers follow from `customers` and `items`
// there. A smaller one has fewer of them in the same proportions: an order for each customer, three
// in ten of those not delivered yet, a name for three customers. The tenth part of all that is the
// specification's stays: 10 districts, 5 to 15 lines.
//
// NURand(A, x, y): A shrinks with the range (255, 1023 and 8191 at the full scale). The constants C
// are drawn from a seed; the one for names while running differs from the one while loading as
// clause 2.1.6.1 wants it, where the scale is full.
//
// Thread-safety: draws belong to one thread; the rest are values and pure functions. From: TPC-C
// 5.11, clauses 2.1.6, 4.3.2.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "bench/tpcc/rows.hpp"
#include "bench/workload/random.hpp"

namespace elidex::bench::tpcc {

struct scale {
  static constexpr std::uint32_t districts = 10;

  std::uint32_t warehouses = 1;
  std::uint32_t customers = 3'000;  // of a district
  std::uint32_t items = 100'000;
  // As clause 2.7.2.2 allows: a DELIVERY is a transaction for each district, not one for all.
  bool districts_deliver_alone = false;
  // Not the specification's: no terminal asks another warehouse for items, or pays there.
  bool terminals_stay_home = false;
  // Not the specification's: each terminal numbers its orders itself, so that NEW-ORDER changes no
  // district. Conditions 2 and 3 don't hold then, and STOCK-LEVEL sees the load's orders alone.
  bool terminals_number_orders = false;

  // Orders of a district at first: one of each customer.
  [[nodiscard]] constexpr std::uint32_t orders() const noexcept { return customers; }
  // The first of them that is not delivered: 2101 of 3000.
  [[nodiscard]] constexpr std::uint32_t first_new_order() const noexcept {
    return customers - customers * 3 / 10 + 1;
  }
  [[nodiscard]] constexpr std::uint32_t names() const noexcept {
    return std::clamp(customers / 3, 1U, 1'000U);
  }

  // Throws std::invalid_argument for what the keys (rows.hpp) or the transactions can't do.
  void check() const {
    if (warehouses < 1 || warehouses > warehouses_max)
      throw std::invalid_argument("TPC-C: 1 to 65535 warehouses");
    if (customers < 1 || customers > customers_max)
      throw std::invalid_argument("TPC-C: 1 to 4094 customers");
    if (items < lines_max) throw std::invalid_argument("TPC-C: 15 items at least");
  }
};

// The constants of NURand; equal for all terminals of a run.
struct nurand_constants {
  std::uint32_t name_at_load = 0;
  std::uint32_t name = 0;
  std::uint32_t customer = 0;
  std::uint32_t item = 0;
};

inline std::string last_name(std::uint32_t number) {
  static constexpr std::array<std::string_view, 10> syllables{
      "BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"};
  std::string name(syllables[number / 100 % 10]);
  return name.append(syllables[number / 10 % 10]).append(syllables[number % 10]);
}

class draws {
 public:
  draws(std::uint64_t seed, const scale& of, const nurand_constants& constants)
      : bits_(seed), scale_(of), constants_(constants) {}

  [[nodiscard]] std::uint32_t between(std::uint32_t low, std::uint32_t high) noexcept {
    return low + static_cast<std::uint32_t>(bits_.below(std::uint64_t{high} - low + 1));
  }
  [[nodiscard]] bool percent(std::uint32_t share) noexcept { return bits_.below(100) < share; }

  [[nodiscard]] std::uint32_t customer() noexcept {
    return nurand(shrunk(1023, scale_.customers, 3'000), 1, scale_.customers, constants_.customer);
  }
  [[nodiscard]] std::uint32_t item() noexcept {
    return nurand(shrunk(8191, scale_.items, 100'000), 1, scale_.items, constants_.item);
  }
  [[nodiscard]] std::uint32_t name_number() noexcept { return name_number(constants_.name); }
  [[nodiscard]] std::uint32_t name_number_at_load() noexcept {
    return name_number(constants_.name_at_load);
  }
  [[nodiscard]] std::uint32_t district() noexcept { return between(1, scale::districts); }
  // Any warehouse but that one; that one if there is no other.
  [[nodiscard]] std::uint32_t other_warehouse(std::uint32_t home) noexcept {
    if (scale_.warehouses == 1) return home;
    const std::uint32_t drawn = between(1, scale_.warehouses - 1);
    return drawn < home ? drawn : drawn + 1;
  }

  // Of `low` to `high` letters and digits; of digits.
  [[nodiscard]] std::string text(std::uint32_t low, std::uint32_t high) {
    static constexpr std::string_view letters =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-";
    std::string made(between(low, high), ' ');
    std::uint64_t random = 0;
    for (std::size_t i = 0; i < made.size(); ++i, random >>= 6U) {
      if (i % 10 == 0) random = bits_.next();  // one draw serves for ten characters
      made[i] = letters[random & 63U];
    }
    return made;
  }
  [[nodiscard]] std::string digits(std::uint32_t many) {
    std::string made(many, '0');
    for (char& one : made) one = static_cast<char>('0' + bits_.below(10));
    return made;
  }
  // Goods' data: one in ten has "ORIGINAL" in it.
  [[nodiscard]] std::string data() {
    std::string made = text(26, 50);
    if (percent(10)) {
      const auto at = between(0, static_cast<std::uint32_t>(made.size()) - 8);
      made.replace(at, 8, "ORIGINAL");
    }
    return made;
  }
  [[nodiscard]] address place() {
    return {text(10, 20), text(10, 20), text(10, 20), text(2, 2), digits(4) + "11111"};
  }

 private:
  static constexpr std::uint32_t shrunk(std::uint32_t a, std::uint32_t range,
                                        std::uint32_t full) noexcept {
    return std::bit_floor(static_cast<std::uint32_t>(std::uint64_t{a} * range / full) + 1) - 1;
  }
  [[nodiscard]] std::uint32_t nurand(std::uint32_t a, std::uint32_t low, std::uint32_t high,
                                     std::uint32_t c) noexcept {
    return ((between(0, a) | between(low, high)) + c) % (high - low + 1) + low;
  }
  [[nodiscard]] std::uint32_t name_number(std::uint32_t c) noexcept {
    return nurand(shrunk(255, scale_.names(), 1'000), 0, scale_.names() - 1, c);
  }
  random_bits bits_;
  const scale scale_;
  const nurand_constants constants_;
};

inline nurand_constants constants_of(std::uint64_t seed) noexcept {
  random_bits bits(mix(seed ^ 0x54504343U));
  nurand_constants made;
  const auto drawn = [&](std::uint64_t a) { return static_cast<std::uint32_t>(bits.below(a + 1)); };
  made.customer = drawn(1023);
  made.item = drawn(8191);
  made.name_at_load = drawn(255);
  for (;;) {  // clause 2.1.6.1
    made.name = drawn(255);
    const auto apart = made.name > made.name_at_load ? made.name - made.name_at_load
                                                     : made.name_at_load - made.name;
    if (apart >= 65 && apart <= 119 && apart != 96 && apart != 112) return made;
  }
}

}  // namespace elidex::bench::tpcc
