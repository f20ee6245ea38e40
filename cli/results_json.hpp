#pragma once
// Results as JSON, schema 1: what scripts, tests and the report read.
//
//   {"schema":1, "commit":.., "machine":{..}, "runs":[{"index", "workload", "dist", "threads",
//   ..}],
//   "claims":[]}
//
// Times in nanoseconds, sizes in bytes, rates in millions of requests per second.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "bench/runner/bench.hpp"

namespace elidex::cli {

/// The commit of the source tree, "-dirty" where it was changed since, "unknown" where git cannot
/// say.
[[nodiscard]] std::string source_commit();

/// "AMD EPYC, 2 CPUs, Linux 6.1.0, GCC 12.2.0, jemalloc 5.3.0"
[[nodiscard]] std::string machine_line();

/// As text; bytes that are no UTF-8, as names of files may have, are replaced.
[[nodiscard]] std::string dump(const nlohmann::ordered_json& document);

/// What all documents begin with: schema, commit, machine.
[[nodiscard]] nlohmann::ordered_json document_head();

/// The document without runs: schema, commit, machine, empty lists.
[[nodiscard]] nlohmann::ordered_json results_document();

/// The document of a bench.
[[nodiscard]] nlohmann::ordered_json bench_document(const bench::bench_options& options,
                                                    const bench::bench_result& result);

}  // namespace elidex::cli
