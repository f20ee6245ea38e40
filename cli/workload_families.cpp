#include "cli/workload_families.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "bench/ycsb_txn/ycsb_txn.hpp"
#include "cli/flags.hpp"
#include "cli/workload_flags.hpp"

namespace elidex::cli {
namespace {

// In the order of workload_family.
constexpr std::array<std::string_view, 4> family_names{"keys", "tpcc", "ycsb-txn", "smallbank"};

constexpr unsigned bit(workload_family one) {
  return 1U << static_cast<unsigned>(one);
}
constexpr unsigned keys = bit(workload_family::keys);
constexpr unsigned tpcc = bit(workload_family::tpcc);
constexpr unsigned ycsb_txn = bit(workload_family::ycsb_txn);
constexpr unsigned smallbank = bit(workload_family::smallbank);

struct flag_use {
  std::string_view flag;
  std::string bench_flags::* text;
  unsigned families;
};
const flag_use flags_of_some[] = {
    {"--dist", &bench_flags::dist, keys},
    {"--keys", &bench_flags::keys, keys | ycsb_txn},
    {"--key-type", &bench_flags::key_type, keys},
    {"--key-file", &bench_flags::key_file, keys},
    {"--scan-length", &bench_flags::scan_length, keys},
    {"--order", &bench_flags::order, keys},
    {"--warehouses", &bench_flags::warehouses, tpcc},
    {"--customers", &bench_flags::customers, tpcc | smallbank},
    {"--items", &bench_flags::items, tpcc},
    {"--readers", &bench_flags::readers, tpcc},
    {"--durability", &bench_flags::durability, tpcc | ycsb_txn | smallbank},
    {"--folder", &bench_flags::directory, tpcc | ycsb_txn | smallbank},
    {"--ops-per-txn", &bench_flags::operations, ycsb_txn},
    {"--theta", &bench_flags::theta, ycsb_txn},
    {"--isolation", &bench_flags::isolation, ycsb_txn | smallbank},
    {"--hot", &bench_flags::hot, smallbank},
    {"--hot-percent", &bench_flags::hot_percent, smallbank},
};

std::string text_of(workload_family one) {
  return one == workload_family::keys
             ? "workloads of keys"
             : "--workload " + std::string(family_names[static_cast<std::size_t>(one)]);
}

workload_family family_of_name(std::string_view name) {
  const std::string_view family = name.substr(0, name.find(':'));
  const auto found = std::find(family_names.begin() + 1, family_names.end(), family);
  return found == family_names.end() ? workload_family::keys
                                     : static_cast<workload_family>(found - family_names.begin());
}

}  // namespace

const std::vector<named_workload>& database_workloads() {
  static const std::vector<named_workload> all = [] {
    std::vector<named_workload> made{{"tpcc",
                                      "TPC-C's five transactions on a database of --warehouses; "
                                      "its consistency is checked behind each run"}};
    for (const bench::ycsb_txn::mix& one : bench::ycsb_txn::mixes) {
      made.push_back({"ycsb-txn:" + std::string(one.name),
                      "YCSB's rows in transactions of --ops-per-txn different "
                      "keys, " +
                          std::string(one.description) + "; changes are counted behind each run"});
    }
    made.push_back({"smallbank",
                    "SmallBank's five transactions on --customers, each as often; all money is "
                    "counted behind each run"});
    made.push_back({"smallbank:h-store",
                    "the same with H-Store's mix, whose sixth transaction sends payments"});
    return made;
  }();
  return all;
}

std::string database_workload_names() {
  return "tpcc, ycsb-txn:a|b|c|f, smallbank or smallbank:h-store";
}

workload_family family_of(const bench_flags& flags) {
  const std::vector<std::string> names = list_of("--workload", flags.workload);
  const workload_family first = family_of_name(names.front());
  for (const std::string& name : names) {
    const workload_family one = family_of_name(name);
    if (one == first) continue;
    const std::string alone(
        family_names[static_cast<std::size_t>(one == workload_family::keys ? first : one)]);
    refuse("--workload", flags.workload, "combines " + alone + " with other workloads",
           alone + " alone");
  }
  return first;
}

void refuse_flags_of_others(const bench_flags& flags, workload_family family) {
  const bench_flags none;
  for (const flag_use& use : flags_of_some) {
    if ((use.families & bit(family)) != 0 || flags.*use.text == none.*use.text) continue;
    std::string takers;
    for (std::size_t f = 0; f < family_names.size(); ++f) {
      const auto one = static_cast<workload_family>(f);
      if ((use.families & bit(one)) == 0) continue;
      takers.append(takers.empty() ? "" : " or ").append(text_of(one));
    }
    refuse(use.flag, flags.*use.text, "cannot be combined with " + text_of(family), takers);
  }
}

}  // namespace elidex::cli
