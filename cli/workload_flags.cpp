#include "cli/workload_flags.hpp"

#include <algorithm>
#include <set>

#include "bench/support/bad_input.hpp"
#include "bench/table_store/databases.hpp"
#include "cli/flags.hpp"
#include "cli/workload_families.hpp"

namespace elidex::cli {
namespace {

// Limits against slips of the keyboard; the machine's memory sets its own.
constexpr std::uint64_t keys_max = 4'000'000'000;
constexpr std::uint64_t scan_length_limit = 1'000'000;

std::vector<std::string> workload_names() {
  std::vector<std::string> names = names_of(bench::workloads());
  for (const named_workload& one : database_workloads()) names.push_back(one.name);
  return names;
}

[[noreturn]] void refuse_workload(const std::string& name) {
  for (const bench::numbered_kind& one : bench::numbered_kinds()) {
    if (one.is_meant_by(name))
      refuse_value("--workload", name, std::string(one.name) + ", " + std::string(one.numbers));
  }
  refuse_value("--workload", name, "a workload that 'elidex list' prints", workload_names());
}

// What is named twice would be run twice and look like two results.
void refuse_repeats(std::string_view flag, const std::vector<std::string>& parts) {
  std::set<std::string_view> seen;
  for (const std::string& one : parts) {
    if (!seen.insert(one).second) refuse(flag, one, "is given twice", "each value once");
  }
}

void read_scan_length(const std::string& text, bench::workload_choice& options) {
  const std::size_t dash = text.find('-', 1);
  const std::string_view low = std::string_view(text).substr(0, dash);
  const std::string_view high =
      dash == std::string::npos ? low : std::string_view(text).substr(dash + 1);
  options.scan_length_min =
      static_cast<std::uint32_t>(parse_count("--scan-length", low, 1, scan_length_limit));
  options.scan_length_max =
      static_cast<std::uint32_t>(parse_count("--scan-length", high, 1, scan_length_limit));
  if (options.scan_length_min > options.scan_length_max) {
    refuse_value("--scan-length", text, "N, or LOW-HIGH with LOW no more than HIGH");
  }
}

}  // namespace

std::vector<std::string> list_of(std::string_view flag, const std::string& text) {
  auto parts = split_list(flag, text);
  refuse_repeats(flag, parts);
  return parts;
}

bench::workload_choice read_workload_flags(const workload_flags& flags) {
  bench::workload_choice options;
  for (const std::string& name : list_of("--index", flags.index)) {
    const bench::index_info* const index = bench::find_index(name);
    if (index == nullptr && bench::table_store::find_database(name) != nullptr)
      refuse("--index", name, "is a database, with --workload " + database_workload_names(),
             "an index that 'elidex list' prints");
    if (index == nullptr)
      refuse_value("--index", name, "an index that 'elidex list' prints",
                   names_of(bench::indexes()));
    options.indexes.push_back(index);
  }
  for (const std::string& name : list_of("--workload", flags.workload)) {
    const bench::workload* const what = bench::find_workload(name);
    if (what == nullptr) refuse_workload(name);
    options.workloads.push_back(what);
  }
  for (const std::string& name : list_of("--dist", flags.dist)) {
    const auto where = bench::parse_distribution(name);
    if (!where) {
      refuse_value("--dist", name,
                   "uniform, zipf:THETA or zipf:THETA:scrambled with THETA from 0 to 1.2, or "
                   "hot:THETA with THETA "
                   "from 0 to 1",
                   {"uniform"});
    }
    options.distributions.push_back(*where);
  }
  if (!flags.keys.empty()) options.keys = parse_count("--keys", flags.keys, 1, keys_max);
  options.seed = parse_count("--seed", flags.seed, 0, UINT64_MAX);
  read_scan_length(flags.scan_length, options);
  const auto order = bench::parse_key_order(flags.order);
  if (!order)
    refuse_value("--order", flags.order, "random, ascending or interleaved",
                 {"random", "ascending", "interleaved"});
  options.order = *order;

  const std::string type =
      flags.key_type.empty() ? (flags.key_file.empty() ? "u64" : "string") : flags.key_type;
  if (type != "u64" && type != "string")
    refuse_value("--key-type", type, "u64 or string", {"u64", "string"});
  options.keys_are = type == "u64" ? bench::key_type::u64 : bench::key_type::string;
  options.key_file = flags.key_file;
  if (type == "u64" && !flags.key_file.empty()) {
    throw bench::bad_input(
        "--key-file: cannot be combined with --key-type u64 (expected --key-type string)");
  }
  return options;
}

}  // namespace elidex::cli
