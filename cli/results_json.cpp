#include "cli/results_json.hpp"

#include <nlohmann/json.hpp>

#include "bench/runner/machine.hpp"
#include "bench/runner/run_json.hpp"
#include "cli/doctor.hpp"
#include "cli/installation.hpp"
#include "cli/process.hpp"
#include "elidex/version.hpp"

namespace elidex::cli {
namespace {

using nlohmann::ordered_json;

ordered_json machine_facts() {
  ordered_json facts = machine_json(collect());
  facts["build"] = ELIDEX_BUILD_TYPE;
  facts["allocator"] = bench::allocator_name();
  return facts;
}

ordered_json run_document(const bench::bench_options& options, const bench::bench_result& result,
                          const bench::bench_run& run) {
  ordered_json document = bench::measures_of(run);
  document.update({{"wasted_pct", run.counters.wasted_pct()},
                   {"bytes_per_key", run.bytes_per_key},
                   {"seed", options.seed},
                   {"raw_mops", run.raw_mops},
                   {"ratio_to_first", run.ratio_to_first},
                   {"keys", result.keys},
                   {"key_type", options.keys_are == bench::key_type::u64 ? "u64" : "string"},
                   {"seconds", run.seconds},
                   {"requests", run.requests},
                   {"misses", run.misses},
                   {"cpu_wait_pct", run.cpu_wait_pct},
                   {"latency_samples", run.latency.samples()},
                   {"own_bytes_per_key", run.own_bytes_per_key}});
  if (run.what->scans) {
    document["scan_length"] = {options.scan_length_min, options.scan_length_max};
  }
  if (run.what->visits_all_keys())
    document["order"] = bench::to_string(bench::order_of(*run.what, options.order));
  return document;
}

}  // namespace

std::string source_commit() {
  if (is_installed()) return std::string("elidex ") + version;
  // A tree with the same commit but other sources must not pass for it.
  return output_of({"git", "-C", ELIDEX_SOURCE_DIR, "describe", "--always", "--dirty",
                    "--abbrev=12", "--exclude=*"})
      .value_or("unknown");
}

std::string machine_line() {
  const doctor_facts facts = collect();
  const std::size_t cpus = bench::allowed_cpus().size();
  return facts.cpu_model + ", " + std::to_string(cpus) + (cpus == 1 ? " CPU, " : " CPUs, ") +
         facts.kernel + ", " + facts.compiler + " " + ELIDEX_BUILD_TYPE + ", " +
         bench::allocator_name();
}

std::string dump(const ordered_json& document) {
  return document.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

ordered_json document_head() {
  return {{"schema", 1}, {"commit", source_commit()}, {"machine", machine_facts()}};
}

ordered_json results_document() {
  ordered_json document = document_head();
  document["runs"] = ordered_json::array();
  document["claims"] = ordered_json::array();
  return document;
}

ordered_json bench_document(const bench::bench_options& options,
                            const bench::bench_result& result) {
  ordered_json document = results_document();
  for (const bench::bench_run& run : result.runs)
    document["runs"].push_back(run_document(options, result, run));
  ordered_json skipped = ordered_json::array();
  for (const bench::bench_skip& one : result.skipped) {
    skipped.push_back({{"index", one.index->name},
                       {"workload", one.what->name},
                       {"threads", one.threads},
                       {"why", one.why}});
  }
  document["skipped"] = std::move(skipped);
  return document;
}

}  // namespace elidex::cli
