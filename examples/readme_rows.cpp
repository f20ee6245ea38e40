#include <iostream>
#include <optional>
#include <string>

#include "elidex/database.hpp"

struct order {
  std::uint64_t customer;
  std::string note;
  std::optional<double> discount;
};
ELIDEX_ROW(order, customer, note, discount);  // in the namespace of the struct

int main() {
  elidex::database db;
  auto& orders = db.create_table<std::uint64_t, order>("orders");
  db.transact([&](auto& t) { t.insert(orders, 1, order{7, "two boxes", std::nullopt}); });
  const auto one = db.read_only([&](auto& t) { return t.get(orders, 1); });
  std::cout << one->note << (one->discount ? " with" : " without") << " discount\n";
}
