#pragma once
// Which kind of workload bench is asked for, and which flags go with which kind.
//
//   const workload_family family = family_of(flags);      // throws bench::bad_input for a mixture
//   refuse_flags_of_others(flags, family);                // silence would look like obedience
//
// Thread-safety: pure functions.

#include <string>
#include <vector>

#include "cli/commands.hpp"

namespace elidex::cli {

struct named_workload {
  std::string name;
  std::string description;
};

/// Those that run on databases, as --workload has them.
[[nodiscard]] const std::vector<named_workload>& database_workloads();
/// "tpcc, ycsb-txn:a, .. or smallbank", for messages.
[[nodiscard]] std::string database_workload_names();

/// Throws bench::bad_input where --workload has several kinds.
[[nodiscard]] workload_family family_of(const bench_flags& flags);

/// Throws bench::bad_input for a flag that was given and has no meaning for the family.
void refuse_flags_of_others(const bench_flags& flags, workload_family family);

}  // namespace elidex::cli
