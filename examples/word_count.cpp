// Counts the words of a text from several threads: a counter for each word, in one call.
#include <array>
#include <iostream>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "elidex/ordered_map.hpp"

constexpr std::array<std::string_view, 4> pages{
    "the map that any number of threads may read",
    "the map and the threads that change the map",
    "a thread reads while a thread writes",
    "the reader and the writer share the map",
};

int main() {
  elidex::ordered_map<std::string, int> counts;
  std::vector<std::thread> readers;
  for (const std::string_view page : pages) {
    readers.emplace_back([&counts, page] {
      std::istringstream words{std::string(page)};
      for (std::string word; words >> word;)
        counts.upsert_with(word, 1, [](int& count) { ++count; });
    });
  }
  for (std::thread& reader : readers) reader.join();

  std::cout << counts.size() << " words; those with th:\n";
  for (const auto& [word, count] : counts.range("th", "ti"))
    std::cout << word << ": " << count << '\n';

  // Words that occur once are not interesting.
  std::vector<std::string> rare;
  counts.scan(elidex::all, [&](std::string_view word, int count) {
    if (count == 1) rare.emplace_back(word);
  });
  for (const std::string& word : rare) counts.erase_if(word, [](int count) { return count == 1; });
  std::cout << counts.size() << " words occur more than once\n";
}
