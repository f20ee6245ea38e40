#include <iostream>

#include "elidex/column.hpp"

int main() {
  elidex::column<std::string> cities;  // or integers, float, double; shared by any threads
  const auto oslo = cities.insert("Oslo");
  for (const char* name : {"Bergen", "Lima", "Bergen"}) cities.insert(name);
  cities.erase(oslo);
  cities.merge();  // other threads may read and write meanwhile
  std::cout << cities.get(1).value() << " in " << cities.count("Bergen") << " rows, the last "
            << cities.find("Bergen").back() << '\n';
  cities.scan_n("A", 10, [](auto name, auto rows) {  // distinct values, in order
    std::cout << name << ": " << rows << '\n';
  });
}
