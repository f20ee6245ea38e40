// The buy side of an order book. Keys are (price, order number), so the best offer is at the end.
// Traders add orders while a market maker fills them, each from threads of its own.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <iostream>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "elidex/ordered_map.hpp"

using order = std::pair<std::int32_t, std::uint64_t>;  // price in cents, number of the order
elidex::ordered_map<order, int> book;                  // how many are wanted
std::atomic<std::uint64_t> next_number{1};

void trade(std::int32_t first_price) {
  for (std::int32_t i = 0; i < 1'000; ++i)
    book.insert({first_price + i % 50, next_number.fetch_add(1)}, 10);
}

// Takes up to `many` from an order, and removes it when nothing is left. Atomic: two threads never
// sell the same share twice.
int fill(const order& which, int many) {
  int sold = 0;
  book.compute(which, [&](std::optional<int>& wanted) {
    sold = 0;  // this function may run again
    if (!wanted) return;
    sold = std::min(many, *wanted);
    if ((*wanted -= sold) == 0) wanted.reset();
  });
  return sold;
}

int main() {
  std::atomic<int> sold{0};
  std::vector<std::thread> threads;
  for (const std::int32_t price : {9'900, 9'950, 10'000}) threads.emplace_back(trade, price);
  for (int seller = 0; seller < 2; ++seller) {
    threads.emplace_back([&] {
      for (int left = 5'000; left > 0;) {
        const auto best = book.back();
        if (!best) continue;
        const int now = fill(best->first, std::min(left, 7));
        left -= now;
        sold += now;
      }
    });
  }
  for (std::thread& one : threads) one.join();

  int wanted = 0;
  book.scan(elidex::all, [&](const order&, int many) { wanted += many; });
  std::cout << "sold " << sold << ", still wanted " << wanted << '\n';
}
