// What the maps cost beside the standard's, and one way of doing a thing beside another, in rounds
// in which every contender has its turn. Writes JSON to standard output:
//
//   map_costs [--rounds 7] [--seconds 0.1] [--records 1000000]
//   {"runs":[{"what":"hot upsert_with","of":"ordered_map","records":1,"threads":2,
//       "unit":"ns an operation","values":[..]},..]}
//
// Hot keys: all threads change one key, for a time. The others: one thread does a fixed amount of
// work.
#include <malloc.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <thread>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "bench/support/stay_on_a_core.hpp"
#include "elidex/hash_map.hpp"
#include "elidex/ordered_map.hpp"

namespace {

using u64 = std::uint64_t;
using number_map = elidex::ordered_map<u64, u64>;
using text_and_number = std::tuple<std::string, u64>;
using text_map = elidex::ordered_map<std::string, u64>;

struct options {
  unsigned rounds = 7;
  double seconds = 0.1;
  std::size_t records = 1'000'000;
};

double ns_now() {
  return std::chrono::duration<double, std::nano>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
template <class T>
void keep(const T& value) {
  asm volatile("" : : "g"(&value) : "memory");
}

// One contender: fills in the figures of one round.
struct contender {
  std::string of;
  std::function<std::vector<double>()> round;
};

class report {
 public:
  explicit report(unsigned rounds) : rounds_(rounds) {}
  // Each contender returns a figure for each of the units.
  void measure(const std::string& what, std::size_t records, unsigned threads,
               const std::vector<std::string>& units, const std::vector<contender>& all) {
    std::vector<std::vector<std::vector<double>>> values(all.size());
    for (unsigned round = 0; round < rounds_; ++round) {
      for (std::size_t i = 0; i < all.size(); ++i) values[i].push_back(all[i].round());
    }
    for (std::size_t unit = 0; unit < units.size(); ++unit) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        std::vector<double> figures;
        for (const auto& round : values[i]) figures.push_back(round[unit]);
        runs_.push_back({{"what", what},
                         {"of", all[i].of},
                         {"records", records},
                         {"threads", threads},
                         {"unit", units[unit]},
                         {"values", figures}});
      }
    }
  }
  const nlohmann::ordered_json& runs() const { return runs_; }

 private:
  unsigned rounds_;
  nlohmann::ordered_json runs_ = nlohmann::ordered_json::array();
};

// --- a hot key ---

// The nanoseconds for each call of operation() by all threads together.
template <class Operation>
double ns_under_contention(unsigned threads, double seconds, Operation operation) {
  std::atomic<bool> go{false};
  std::atomic<bool> stop{false};
  std::atomic<u64> all_calls{0};
  std::vector<std::thread> running;
  for (unsigned t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      elidex::bench::stay_on_a_core(t);
      u64 calls = 0;
      while (!go.load()) std::this_thread::yield();
      // relaxed, without a partner: when exactly the threads stop does not matter.
      for (; !stop.load(std::memory_order_relaxed); ++calls) operation();
      all_calls.fetch_add(calls);
    });
  }
  const double began = ns_now();
  go.store(true);
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  stop.store(true);
  for (std::thread& thread : running) thread.join();
  return (ns_now() - began) / static_cast<double>(all_calls.load());
}

constexpr u64 hot_key = 500;
constexpr u64 keys_around = 1'000;

template <class Map>
struct under_a_mutex {
  Map map;
  std::mutex mutex;
  void insert(u64 key, u64 value) { map.emplace(key, value); }
  template <class Change>
  void upsert_with(u64 key, u64 value, Change change) {
    const std::lock_guard guard(mutex);
    const auto [at, added] = map.try_emplace(key, value);
    if (!added) change(at->second);
  }
  template <class Fn>
  void compute(u64 key, Fn fn) {
    const std::lock_guard guard(mutex);
    const auto at = map.find(key);
    std::optional<u64> value = at == map.end() ? std::nullopt : std::optional(at->second);
    fn(value);
    if (value) {
      map.insert_or_assign(key, *value);
    } else if (at != map.end()) {
      map.erase(at);
    }
  }
};

template <class Map>
contender hot(const std::string& name, bool computes, unsigned threads, double seconds) {
  return {
      name, [=] {
        Map map;
        for (u64 key = 0; key < keys_around; ++key) map.insert(key, 0);
        const auto add = [](u64& value) { ++value; };
        const auto compute = [](std::optional<u64>& value) { value = value.value_or(0) + 1; };
        return std::vector{
            computes
                ? ns_under_contention(threads, seconds, [&] { map.compute(hot_key, compute); })
                : ns_under_contention(threads, seconds, [&] { map.upsert_with(hot_key, 1, add); })};
      }};
}

void measure_hot_keys(report& to, const options& how) {
  for (const bool computes : {false, true}) {
    for (const unsigned threads : {1U, 2U, 4U}) {
      to.measure(computes ? "hot compute" : "hot upsert_with", 1, threads, {"ns an operation"},
                 {hot<under_a_mutex<std::unordered_map<u64, u64>>>(
                      "std::unordered_map and std::mutex", computes, threads, how.seconds),
                  hot<under_a_mutex<std::map<u64, u64>>>("std::map and std::mutex", computes,
                                                         threads, how.seconds),
                  hot<number_map>("ordered_map", computes, threads, how.seconds),
                  hot<elidex::hash_map<u64, u64>>("hash_map", computes, threads, how.seconds)});
    }
  }
}

// --- scans and ranges ---

// What a visitor does with a record.
constexpr auto adds_number = [](u64 key, u64 value) { return key + value; };
constexpr auto adds_length = [](std::string_view key, u64 value) { return key.size() + value; };
// Reads the characters, which a scan does not copy.
constexpr auto reads_text = [](std::string_view key, u64 value) {
  return static_cast<unsigned char>(key.back()) + value;
};
constexpr auto adds_member = [](const text_and_number& key, u64 value) {
  return std::get<1>(key) + value;
};

// Walks from random keys, `records` at a time, about a million records in all.
template <class Map, class SumOf>
void measure_walks(report& to, const std::string& name, const Map& map,
                   const std::vector<typename Map::record>& sorted, SumOf sum_of) {
  for (const std::size_t records : {std::size_t{100}, std::size_t{100'000}}) {
    if (sorted.size() <= records) continue;
    const std::size_t walks = std::max<std::size_t>(1, sorted.size() / records);
    const auto walk_all = [&, walks, records](auto&& walk) {
      return [&, walk, walks, records]() -> std::vector<double> {
        std::mt19937_64 random(1);
        u64 sum = 0;
        const double began = ns_now();
        for (std::size_t i = 0; i < walks; ++i) {
          const std::size_t first = random() % (sorted.size() - records);
          walk(sorted[first].first, sorted[first + records].first, sum);
        }
        keep(sum);
        return {(ns_now() - began) / static_cast<double>(walks * records)};
      };
    };
    to.measure("walk of " + name, records, 1, {"ns a record"},
               {{"scan()", walk_all([&map, sum_of](const auto& a, const auto& b, u64& sum) {
                   map.scan(elidex::between(a, b), [&sum, sum_of](const auto& key, u64 value) {
                     sum += sum_of(key, value);
                   });
                 })},
                {"range()", walk_all([&map, sum_of](const auto& a, const auto& b, u64& sum) {
                   for (const auto& [key, value] : map.range(a, b)) sum += sum_of(key, value);
                 })}});
  }
}

// --- loading ---

template <class Key>
std::vector<std::pair<Key, u64>> sorted_records(std::size_t many) {
  std::mt19937_64 random(1);
  std::vector<std::pair<Key, u64>> records;
  records.reserve(many);
  for (std::size_t i = 0; i < many; ++i) {
    if constexpr (std::is_same_v<Key, u64>) {
      records.emplace_back(random(), i);
    } else {
      std::array<char, 32> text{};
      std::snprintf(text.data(), text.size(), "user:%015llu",
                    static_cast<unsigned long long>(random() % 1'000'000'000'000'000));
      if constexpr (std::is_same_v<Key, std::string>) {
        records.emplace_back(text.data(), i);
      } else {
        records.emplace_back(Key(std::string(text.data(), 10), random()), i);
      }
    }
  }
  std::sort(records.begin(), records.end());
  records.erase(std::unique(records.begin(), records.end(),
                            [](const auto& a, const auto& b) { return a.first == b.first; }),
                records.end());
  return records;
}

// The nanoseconds for each record. Sorted records of strings lie in no order in memory, as after a
// sort.
template <class Map>
void measure_loads(report& to, const std::string& name,
                   const std::vector<typename Map::record>& sorted) {
  const auto timed = [](std::size_t records, auto&& load) {
    const double began = ns_now();
    load();
    return std::vector{(ns_now() - began) / static_cast<double>(records)};
  };
  to.measure("load of " + name, sorted.size(), 1, {"ns a record"},
             {{"insert()",
               [&] {
                 Map map;
                 return timed(sorted.size(), [&] {
                   for (const auto& [key, value] : sorted) map.insert(key, value);
                 });
               }},
              {"bulk_load()", [&] {
                 Map map;
                 return timed(sorted.size(), [&] { map.bulk_load(sorted); });
               }}});
  std::vector<typename Map::record> there;
  std::vector<typename Map::record> more;
  for (std::size_t i = 0; i < sorted.size(); ++i) (i % 2 == 0 ? there : more).push_back(sorted[i]);
  std::vector<std::remove_cvref_t<typename Map::key_argument>> keys;
  std::vector<u64> values;
  for (const auto& [key, value] : more) {
    keys.push_back(key);
    values.push_back(value);
  }
  const auto into_half = [&](auto&& load) {
    Map map;
    map.bulk_load(there);
    return timed(more.size(), [&] { load(map); });
  };
  to.measure("load of " + name + " between others", more.size(), 1, {"ns a record"},
             {{"insert()",
               [&] {
                 return into_half([&](Map& map) {
                   for (const auto& [key, value] : more) map.insert(key, value);
                 });
               }},
              {"bulk_load()", [&] { return into_half([&](Map& map) { map.bulk_load(more); }); }},
              {"multi_upsert()",
               [&] { return into_half([&](Map& map) { map.multi_upsert(keys, values); }); }}});
}

// --- many small maps ---

double malloced_bytes() {
  const auto all = mallinfo2();
  return static_cast<double>(all.uordblks + all.hblkhd);
}
double resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  double pages = 0;
  statm >> pages >> pages;
  return pages * static_cast<double>(sysconf(_SC_PAGESIZE));
}

template <class Map>
contender small_maps(const std::string& name) {
  return {name, [] {
            constexpr std::size_t maps = 10'000;
            constexpr u64 keys = 10;
            malloc_trim(0);
            const double malloced = malloced_bytes();
            const double resident = resident_bytes();
            const double began = ns_now();
            auto all = std::make_unique<std::array<Map, maps>>();
            for (Map& map : *all) {
              for (u64 key = 0; key < keys; ++key) map.insert({key, key});
            }
            const double made = ns_now();
            const double bytes = malloced_bytes() - malloced;
            const double in_memory = resident_bytes() - resident;
            const double before_the_end = ns_now();
            all.reset();
            const double ended = ns_now();
            return std::vector{(made - began) / maps, (ended - before_the_end) / maps, bytes / maps,
                               in_memory / maps};
          }};
}
// insert() of the standard's maps takes a pair.
template <class Map>
struct taking_pairs : Map {
  void insert(const std::pair<u64, u64>& one) { Map::insert(one.first, one.second); }
};

void measure_small_maps(report& to) {
  to.measure(
      "10,000 maps", 10, 1,
      {"ns to make a map", "ns to destroy a map", "malloc'd bytes a map", "resident bytes a map"},
      {small_maps<std::map<u64, u64>>("std::map"),
       small_maps<std::unordered_map<u64, u64>>("std::unordered_map"),
       small_maps<taking_pairs<number_map>>("ordered_map"),
       small_maps<taking_pairs<elidex::hash_map<u64, u64>>>("hash_map")});
}

template <class Map>
void measure_walks_and_loads(report& to, const std::string& name, std::size_t records) {
  const auto sorted = sorted_records<typename Map::key_type>(records);
  {
    Map map;
    map.bulk_load(sorted);
    if constexpr (std::is_same_v<Map, number_map>) {
      measure_walks(to, name, map, sorted, adds_number);
    } else if constexpr (std::is_same_v<Map, text_map>) {
      measure_walks(to, name, map, sorted, adds_length);
      measure_walks(to, name + " that reads them", map, sorted, reads_text);
    } else {
      measure_walks(to, name, map, sorted, adds_member);
    }
  }
  measure_loads<Map>(to, name, sorted);
}

}  // namespace

int main(int argc, char** argv) {
  options how;
  CLI::App app("What the maps cost");
  app.add_option("--rounds", how.rounds, "[7]")->check(CLI::PositiveNumber);
  app.add_option("--seconds", how.seconds, "of a run with a hot key [0.1]")
      ->check(CLI::PositiveNumber);
  app.add_option("--records", how.records, "of a loaded map [1000000]")
      ->check(CLI::Range(2, 100'000'000));
  CLI11_PARSE(app, argc, argv);
  report to(how.rounds);
  measure_hot_keys(to, how);
  elidex::bench::stay_on_a_core(0);
  measure_walks_and_loads<number_map>(to, "u64", how.records);
  measure_walks_and_loads<text_map>(to, "strings", how.records);
  measure_walks_and_loads<elidex::ordered_map<text_and_number, u64>>(
      to, "tuples of a string and a u64", how.records);
  measure_small_maps(to);
  std::cout << nlohmann::ordered_json{{"runs", to.runs()}}.dump() << '\n';
}
