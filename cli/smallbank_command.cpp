// elidex bench --workload smallbank: databases in place of indexes, customers in place of keys.

#include <algorithm>

#include "bench/smallbank/variants.hpp"
#include "cli/commands.hpp"
#include "cli/database_bench.hpp"
#include "cli/flags.hpp"
#include "cli/workload_flags.hpp"

namespace elidex::cli {

using namespace internal;

namespace {

namespace bank = bench::smallbank;
namespace store = bench::table_store;

// against slips of the keyboard; memory sets its own
constexpr std::uint64_t customers_max = 1'000'000'000;
// The authors' sizes.
constexpr std::uint64_t customers_default = 18'000;
constexpr std::uint64_t hot_default = 1'000;

bank::mix mix_of(const std::string& name) {
  if (name == "smallbank") return bank::mix::five;
  if (name == "smallbank:h-store") return bank::mix::h_store;
  refuse_value("--workload", name, "smallbank or smallbank:h-store",
               {"smallbank", "smallbank:h-store"});
}

told_point told(const std::string& name, const bank::settings& settings) {
  const std::string level(name_of(settings.level));
  return {.point = {.label = name + ", " + level,
                    .rows = 3 * static_cast<double>(settings.customers),
                    .load =
                        [settings](const store::database_info& in, std::uint64_t seed,
                                   const store::kept_in& where) {
                          return bank::load(in, settings, seed, where);
                        }},
          .workload = name,
          .dist = formatted("%u %% of %llu", settings.hot_pct,
                            static_cast<unsigned long long>(settings.hot)),
          .cells = {settings.what == bank::mix::five ? "five" : "h-store", level},
          .fields = {{"customers", settings.customers},
                     {"hot", settings.hot},
                     {"hot_percent", settings.hot_pct},
                     {"isolation", level}}};
}

}  // namespace

int smallbank_bench_command(const bench_flags& flags, const bench_time& time) {
  database_bench bench = read_database_flags(flags, time, "smallbank");
  bank::settings settings{.customers = customers_default};
  if (!flags.customers.empty())
    settings.customers = parse_count("--customers", flags.customers, 2, customers_max);
  settings.hot = std::min(hot_default, settings.customers);
  if (!flags.hot.empty()) settings.hot = parse_count("--hot", flags.hot, 2, settings.customers);
  if (!flags.hot_percent.empty())
    settings.hot_pct =
        static_cast<unsigned>(parse_count("--hot-percent", flags.hot_percent, 0, 100));
  store::refuse_what_does_not_fit("--customers", settings.customers, "of them",
                                  bank::bytes_per_customer, 0);
  const std::vector<db::isolation> levels = read_isolation(flags.isolation);
  bench.heading = "SmallBank, " + count_text(settings.customers) + " customers; " +
                  std::to_string(settings.hot_pct) + " % of those drawn are among the first " +
                  count_text(settings.hot);
  bench.columns = {{"mix"}, {"isolation"}};
  bench.missing = "cents lost";
  std::size_t kinds = 0;
  for (const std::string& name : list_of("--workload", flags.workload)) {
    settings.what = mix_of(name);
    kinds = std::max(kinds, bank::kinds_of(settings.what));
    std::vector<told_point> points;
    for (const db::isolation level : levels) {
      settings.level = level;
      points.push_back(told(name, settings));
    }
    bench.add_group(std::move(points));
  }
  bench.kinds = std::span(bank::kind_names).first(kinds);
  return run_database_bench(flags, bench);
}

}  // namespace elidex::cli
