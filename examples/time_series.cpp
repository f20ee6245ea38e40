// Measurements by sensor and time. A tuple with a string is a key like any other.
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "elidex/ordered_map.hpp"

using elidex::between;
using elidex::from;
using elidex::prefix;
using moment = std::tuple<std::string, std::int64_t>;  // sensor, seconds

int main() {
  elidex::ordered_map<moment, double> degrees;
  std::vector<std::thread> sensors;
  for (const std::string name : {"attic", "cellar", "cellar door", "garden"}) {
    sensors.emplace_back([&degrees, name] {
      for (std::int64_t second = 0; second < 3'600; second += 10)
        degrees.insert({name, second}, static_cast<double>(10 + second / 900));
    });
  }
  for (std::thread& one : sensors) one.join();

  // The highest value of the cellar's last ten minutes, in a snapshot.
  double highest = 0;
  const auto seen = degrees.scan(between(moment("cellar", 3'000), moment("cellar", 3'600)),
                                 [&](const auto&, double d) { highest = std::max(highest, d); });
  std::cout << seen << " values, up to " << highest << " degrees\n";

  // The three newest values of a sensor.
  degrees.scan_n(prefix("garden").descending(), 3, [](const moment& when, double d) {
    std::cout << std::get<1>(when) << " s: " << d << '\n';
  });

  // Drop what is older than half an hour, sensor by sensor.
  std::size_t dropped = 0;
  for (auto next = degrees.front(); next;) {
    const std::string& sensor = std::get<0>(next->first);
    dropped += degrees.erase(between(moment(sensor, 0), moment(sensor, 1'800)));
    next = degrees.lower_bound({sensor + '\0', 0});
  }
  std::cout << "dropped " << dropped << ", kept " << degrees.size() << '\n';
}
