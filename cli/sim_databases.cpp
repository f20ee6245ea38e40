#include "cli/sim_databases.hpp"

#include <algorithm>

#include "bench/support/bad_input.hpp"
#include "bench/tpcc/rows.hpp"
#include "bench/workload/workload.hpp"
#include "bench/ycsb_txn/ycsb_txn.hpp"
#include "cli/flags.hpp"
#include "cli/table.hpp"
#include "cli/workload_families.hpp"
#include "cli/workload_flags.hpp"

namespace elidex::cli {
namespace {

using nlohmann::ordered_json;
namespace ycsb = bench::ycsb_txn;

// Small tables: a run loads them without simulated time, but with as much memory as a real one.
constexpr std::uint64_t customers_default = 300;
constexpr std::uint64_t items_default = 10'000;
constexpr std::uint64_t keys_default = 100'000;
constexpr std::uint64_t keys_max = 10'000'000;

std::uint64_t count_or(std::string_view flag, const std::string& text, std::uint64_t otherwise,
                       std::uint64_t low, std::uint64_t high) {
  return text.empty() ? otherwise : parse_count(flag, text, low, high);
}

ordered_json tpcc_request(const sim_database_flags& databases, ordered_json base,
                          std::uint64_t warehouses_default) {
  base["workload"] = "tpcc";
  base["dist"] = "nurand";
  base["keys"] = 0;
  base["warehouses"] = count_or("--warehouses", databases.warehouses, warehouses_default, 1,
                                bench::tpcc::warehouses_max);
  base["customers"] = count_or("--customers", databases.customers, customers_default, 1, 3'000);
  base["items"] =
      count_or("--items", databases.items, items_default, bench::tpcc::lines_max, 100'000);
  return base;
}

ordered_json ycsb_request(const workload_flags& flags, const sim_database_flags& databases,
                          ordered_json base) {
  const double theta = databases.theta.empty()
                           ? ycsb::settings().theta
                           : parse_number("--theta", databases.theta, 0, bench::zipf_theta_max);
  const std::uint64_t operations = count_or("--ops-per-txn", databases.operations,
                                            ycsb::settings().operations, 1, ycsb::operations_max);
  base["dist"] = theta == 0 ? std::string("uniform") : formatted("zipf:%g:scrambled", theta);
  base["keys"] = count_or("--keys", flags.keys, keys_default, operations, keys_max);
  base["ops_per_txn"] = operations;
  base["theta"] = theta;
  return base;
}

double rate_of_a_core(const ordered_json& run) {
  return run["tps_of_threads"].get<double>() / run["threads"].get<double>();
}

// Of the same index and workload, the run with the fewest cores.
const ordered_json& smallest_beside(const ordered_json& run,
                                    const std::vector<ordered_json>& runs) {
  const ordered_json* smallest = &run;
  for (const ordered_json& one : runs) {
    if (one["index"] == run["index"] && one["workload"] == run["workload"] &&
        one["threads"] < (*smallest)["threads"])
      smallest = &one;
  }
  return *smallest;
}

std::vector<std::string> mixes_of(const workload_flags& flags) {
  constexpr std::string_view prefix = "ycsb-txn:";
  std::vector<std::string> names = list_of("--workload", flags.workload);
  for (const std::string& name : names) {
    if (!name.starts_with(prefix) ||
        ycsb::find_mix(std::string_view(name).substr(prefix.size())) == nullptr)
      refuse_value("--workload", name, "ycsb-txn:a, ycsb-txn:b, ycsb-txn:c or ycsb-txn:f");
  }
  return names;
}

// Refuses a flag that has no effect on any of the databases: none has this in its name.
void check_is_used(const char* flag, bool is_given, std::string_view part,
                   const std::vector<ordered_json>& requests) {
  if (!is_given) return;
  for (const ordered_json& one : requests) {
    if (one["index"].get<std::string>().find(part) != std::string::npos) return;
  }
  throw bench::bad_input(std::string(flag) +
                         ": has no effect on these databases (expected one "
                         "with '" +
                         std::string(part) + "' in its name)");
}

}  // namespace

void add_options(command_parser& command, sim_database_flags& flags) {
  command
      .add_option("--warehouses", flags.warehouses,
                  "of the workload tpcc, which takes databases as --index [the value of --cores]")
      .type_name("N");
  command.add_option("--customers", flags.customers, "of tpcc, in each district [300]")
      .type_name("N");
  command.add_option("--items", flags.items, "of tpcc [10000]").type_name("N");
  command
      .add_option("--ops-per-txn", flags.operations,
                  "of ycsb-txn, whose --keys are 100K: different keys each [16]")
      .type_name("N");
  command
      .add_option("--theta", flags.theta, "of ycsb-txn, by Zipf's law: 0 (uniform) to 1.2 [0.99]")
      .type_name("T");
}

workload_family family_on_machine(const workload_flags& flags,
                                  const sim_database_flags& databases) {
  bench_flags all;
  static_cast<workload_flags&>(all) = flags;
  all.warehouses = databases.warehouses;
  all.customers = databases.customers;
  all.items = databases.items;
  all.operations = databases.operations;
  all.theta = databases.theta;
  const workload_family family = family_of(all);
  if (family == workload_family::smallbank)
    refuse("--workload", flags.workload, "is for bench", "tpcc, ycsb-txn:a or a workload of keys");
  refuse_flags_of_others(all, family);
  return family;
}

std::vector<ordered_json> database_requests(const workload_flags& flags,
                                            const sim_database_flags& databases,
                                            workload_family family, const ordered_json& base,
                                            std::span<const threads_on_cores> places) {
  const bool is_tpcc = family == workload_family::tpcc;
  if (is_tpcc && flags.workload != "tpcc")
    refuse_value("--workload", flags.workload, "tpcc alone", {"tpcc"});
  const std::string index = flags.index == workload_flags().index ? "db/occ" : flags.index;
  std::vector<ordered_json> requests;
  for (const std::string& workload : is_tpcc ? std::vector{flags.workload} : mixes_of(flags)) {
    for (const auto [threads, cores] : places) {
      if (cores != threads)
        throw bench::bad_input("--threads: " + std::to_string(threads) + " on " +
                               std::to_string(cores) +
                               " cores (expected --cores alone: databases run a thread on each)");
      for (const std::string& name : list_of("--index", index)) {
        ordered_json request =
            is_tpcc ? tpcc_request(databases, base, threads) : ycsb_request(flags, databases, base);
        request["index"] = name;
        request["workload"] = workload;
        request["threads"] = threads;
        requests.push_back(std::move(request));
      }
    }
  }
  check_is_used("--retries", base.contains("retries"), "db/dbx", requests);
  check_is_used("--leaf-version", base["leaf_version"] != "none", ":htm-btree", requests);
  return requests;
}

std::string database_tables(const std::vector<ordered_json>& runs) {
  std::string text;
  for (auto first = runs.begin(); first != runs.end();) {
    const auto last = std::find_if(first, runs.end(), [&](const ordered_json& run) {
      return run["workload"] != (*first)["workload"];
    });
    table out({{"database"},
               {"cores", table::right},
               {"1000 transactions/s", table::right},
               {"of linear", table::right},
               {"repeated %", table::right},
               {"p99, us", table::right},
               {"instructions", table::right}});
    for (auto run = first; run != last; ++run) {
      if (run != first && (*run)["threads"] != (*std::prev(run))["threads"]) out.gap();
      const double share = rate_of_a_core(*run) / rate_of_a_core(smallest_beside(*run, runs));
      const double repeated = (*run)["repeated"].get<double>() / (*run)["requests"].get<double>();
      out.row({(*run)["index"], std::to_string((*run)["threads"].get<int>()),
               formatted("%.1f", (*run)["tps_of_threads"].get<double>() / 1e3),
               formatted("%.2f", share), formatted("%.2f", 100 * repeated),
               formatted("%.1f", (*run)["ns_p99"].get<double>() / 1e3),
               formatted("%.0f", (*run)["instructions_per_op"].get<double>())});
    }
    text += "\nworkload " + (*first)["workload"].get<std::string>() + "; " +
            (*first)["dist"].get<std::string>() + "\n" + out.text();
    first = last;
  }
  return text;
}

}  // namespace elidex::cli
