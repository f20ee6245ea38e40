// elidex bench --workload ycsb-txn:a: databases in place of indexes, transactions of several keys
// in place of requests.

#include "bench/workload/workload.hpp"
#include "bench/ycsb_txn/variants.hpp"
#include "cli/commands.hpp"
#include "cli/database_bench.hpp"
#include "cli/flags.hpp"
#include "cli/workload_flags.hpp"

namespace elidex::cli {

using namespace internal;

namespace {

namespace ycsb = bench::ycsb_txn;
namespace store = bench::table_store;

// against slips of the keyboard; memory sets its own
constexpr std::uint64_t keys_max = 1'000'000'000;
constexpr const char* theta_default = "0.99";

std::vector<ycsb::mix> mixes_of(const bench_flags& flags) {
  constexpr std::string_view prefix = "ycsb-txn:";
  std::vector<ycsb::mix> mixes;
  for (const std::string& name : list_of("--workload", flags.workload)) {
    const ycsb::mix* const found =
        name == "ycsb-txn"         ? &ycsb::mixes[0]
        : name.starts_with(prefix) ? ycsb::find_mix(std::string_view(name).substr(prefix.size()))
                                   : nullptr;
    if (found == nullptr)
      refuse_value("--workload", name, "ycsb-txn:a, ycsb-txn:b, ycsb-txn:c or ycsb-txn:f");
    for (const ycsb::mix& one : mixes) {
      if (one.name == found->name)
        refuse("--workload", flags.workload, "names a mix twice", "each mix once");
    }
    mixes.push_back(*found);
  }
  return mixes;
}

std::string dist_of(double theta) {
  return theta == 0 ? std::string("uniform") : formatted("zipf:%g:scrambled", theta);
}

told_point told(const ycsb::settings& settings) {
  const std::string name = "ycsb-txn:" + std::string(settings.what.name);
  const std::string dist = dist_of(settings.theta);
  const std::string level(name_of(settings.level));
  return {.point = {.label = name + " " + dist + ", " + level,
                    .rows = static_cast<double>(settings.keys),
                    .load =
                        [settings](const store::database_info& in, std::uint64_t seed,
                                   const store::kept_in& where) {
                          return ycsb::load(in, settings, seed, where);
                        }},
          .workload = name,
          .dist = dist,
          .cells = {std::string(settings.what.name), formatted("%g", settings.theta), level},
          .fields = {{"keys", settings.keys},
                     {"ops_per_txn", settings.operations},
                     {"theta", settings.theta},
                     {"isolation", level}}};
}

}  // namespace

int ycsb_txn_bench_command(const bench_flags& flags, const bench_time& time) {
  database_bench bench = read_database_flags(flags, time, "ycsb-txn");
  ycsb::settings settings;
  if (!flags.operations.empty()) {
    settings.operations = static_cast<std::uint32_t>(
        parse_count("--ops-per-txn", flags.operations, 1, ycsb::operations_max));
  }
  if (!flags.keys.empty())
    settings.keys = parse_count("--keys", flags.keys, settings.operations, keys_max);
  store::refuse_what_does_not_fit("--keys", settings.keys, "rows", ycsb::bytes_per_row, 0);
  const std::vector<db::isolation> levels = read_isolation(flags.isolation);
  bench.heading = "YCSB, " + std::to_string(settings.operations) +
                  " different keys in a transaction, " + count_text(settings.keys) +
                  " rows of 1000 bytes";
  bench.kinds = ycsb::kind_names;
  bench.columns = {{"mix"}, {"theta", table::right}, {"isolation"}};
  bench.missing = "lost";
  for (const ycsb::mix& what : mixes_of(flags)) {
    settings.what = what;
    for (const std::string& theta :
         list_of("--theta", flags.theta.empty() ? theta_default : flags.theta)) {
      settings.theta = parse_number("--theta", theta, 0, bench::zipf_theta_max);
      std::vector<told_point> points;
      for (const db::isolation level : levels) {
        settings.level = level;
        points.push_back(told(settings));
      }
      bench.add_group(std::move(points));
    }
  }
  return run_database_bench(flags, bench);
}

}  // namespace elidex::cli
