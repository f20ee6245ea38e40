#include <iostream>

#include "elidex/column.hpp"

int main() {
  elidex::column<std::string> cities;  // integers, float and double too; any number of threads may use it
  const auto oslo = cities.insert("Oslo");
  for (const char* name : {"Bergen", "Lima", "Bergen"}) cities.insert(name);
  cities.erase(oslo);
  cities.merge();  // while others read and write; merge_if_due() is for threads that insert
  std::cout << cities.get(1).value() << " in " << cities.count("Bergen") << " rows, the last "
            << cities.find("Bergen").back() << '\n';
  cities.scan("A", 10, [](auto name, auto rows) {  // different values, in order
    std::cout << name << ": " << rows << '\n';
  });
}
