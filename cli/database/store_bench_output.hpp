#pragma once
// The results of `elidex db bench` as a table and as JSON.
//
//   print(store_bench_text(options, result));
//   output.write(store_bench_document(options, result));
//
// JSON: "runs" as in other benches, with "durability". "openings" has reopen and recovery:
// {"index", "durability", "work", "ns", "ns_min", "ns_max", "rows", "acknowledged", "lost"}.
// "stores" has one entry for each store and level: {"index", "durability", "version",
// "configuration", "survives", "rows", "bytes_on_disk"}. "disk" is {"file_system", "fsync_ns",
// "group_commit"}. The last has {"threads", "mops", "mops_min", "mops_max", "raw_mops"} for commits
// at level sync: what the disk allows if one sync serves all threads that wait.
//
// Thread-safety: functions without state.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/stores/driver.hpp"

namespace elidex::cli {

[[nodiscard]] nlohmann::ordered_json store_bench_document(
    const bench::stores::bench_options& options, const bench::stores::bench_result& result);

[[nodiscard]] std::string store_bench_text(const bench::stores::bench_options& options,
                                           const bench::stores::bench_result& result);

/// A line for each violation; empty if all was well.
[[nodiscard]] std::string store_bench_violations(const bench::stores::bench_result& result);

}  // namespace elidex::cli
