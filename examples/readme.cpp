#include <iostream>

#include "elidex/ordered_map.hpp"

int main() {
  elidex::ordered_map<std::string, int> stock;  // any number of threads may use it
  stock.upsert("apple", 3);
  stock.upsert("pear", 5);
  stock.update("apple", [](int& n) { n += 4; });  // atomic
  stock.upsert_with("plum", 1, [](int& n) { ++n; });
  stock.scan(elidex::prefix("p"), [](auto name, int n) {  // a snapshot, in key order
    std::cout << name << ": " << n << '\n';
  });
}
