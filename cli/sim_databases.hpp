#pragma once
// The part of `elidex sim` that runs databases: TPC-C and YCSB transactions on the machine.
//
//   const workload_family family = family_on_machine(flags, databases);
//   if (family != workload_family::keys)
//     requests = database_requests(flags, databases, family, base, places);
//
// Thread-safety: pure functions. Errors: bench::bad_input for flags.

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "cli/command_line.hpp"
#include "cli/commands.hpp"

namespace elidex::cli {

struct threads_on_cores {
  unsigned threads;
  unsigned cores;
};

/// The flags' texts. An empty text means that the flag was not given.
struct sim_database_flags {
  std::string warehouses;
  std::string customers;
  std::string items;
  std::string operations;
  std::string theta;
};
void add_options(command_parser& command, sim_database_flags& flags);

/// Returns keys, tpcc or ycsb_txn. Throws bench::bad_input for other workloads, and for flags of
/// another family.
[[nodiscard]] workload_family family_on_machine(const workload_flags& flags,
                                                const sim_database_flags& databases);

/// Returns one request for each run, for the program on the machine. `base` has the fields that all
/// requests share.
[[nodiscard]] std::vector<nlohmann::ordered_json> database_requests(
    const workload_flags& flags, const sim_database_flags& databases, workload_family family,
    const nlohmann::ordered_json& base, std::span<const threads_on_cores> places);

/// Returns a text table for each workload. The column "of linear" is the rate per core, divided by
/// that of the same database and workload with the fewest cores.
[[nodiscard]] std::string database_tables(const std::vector<nlohmann::ordered_json>& runs);

}  // namespace elidex::cli
