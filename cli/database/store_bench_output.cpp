#include "cli/database/store_bench_output.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/flags.hpp"
#include "cli/results_json.hpp"
#include "cli/table.hpp"

namespace elidex::cli {
namespace {

using namespace bench::stores;
using nlohmann::ordered_json;

std::string level_name(const level_info& level) {
  return std::string(bench::name_of(level.level));
}

ordered_json rounds_of(const spread& of, double scale) {
  ordered_json all = ordered_json::array();
  for (const double one : of.rounds) all.push_back(one * scale);
  return all;
}

ordered_json run_json(const bench_options& options, const bench_run& run) {
  constexpr double millions = 1e-6;
  ordered_json document{
      {"index", run.what->name},
      {"workload", run.work->name},
      {"dist", run.work->mix.zipf || run.work->mix.latest ? formatted("zipf:%g", zipf_theta)
                                                          : std::string("uniform")},
      {"threads", run.threads},
      {"mops", run.rate.median * millions},
      {"mops_min", run.rate.low * millions},
      {"mops_max", run.rate.high * millions},
      {"ns_p50", run.latency.percentile(50)},
      {"ns_p99", run.latency.percentile(99)},
      {"ns_p999", run.latency.percentile(99.9)},
      {"durability", level_name(*run.level)},
      {"seed", options.seed},
      {"raw_mops", rounds_of(run.rate, millions)},
      {"rows", options.rows},
      {"value_bytes", options.value_bytes},
      {"seconds", options.seconds},
      {"requests", run.transactions},
      {"retries", run.retries},
      {"cpu_wait_pct", run.cpu_wait_pct},
      {"latency_samples", run.latency.samples()},
      {"violations", run.violations}};
  if (run.work->kind == work_kind::commits) document["rows_per_commit"] = options.rows_per_commit;
  document["ratio_to_best_peer"] =
      run.ratio_to_best_peer ? ordered_json(*run.ratio_to_best_peer) : ordered_json(nullptr);
  return document;
}

ordered_json opening_json(const opening& one) {
  return {{"index", one.what->name},
          {"durability", level_name(*one.level)},
          {"work", one.work->name},
          {"ns", one.ns.median},
          {"ns_min", one.ns.low},
          {"ns_max", one.ns.high},
          {"raw_ns", rounds_of(one.ns, 1)},
          {"rows", one.rows},
          {"acknowledged", one.acknowledged},
          {"lost", one.lost},
          {"violations", one.violations}};
}

ordered_json stores_json(const bench_options& options, const bench_result& result) {
  ordered_json all = ordered_json::array();
  for (const durability level : options.levels) {
    for (const store_info* info : options.stores) {
      const level_info* const found = info->find_level(level);
      if (found == nullptr) continue;
      ordered_json one{{"index", info->name},
                       {"durability", level_name(*found)},
                       {"version", info->version},
                       {"configuration", found->configuration},
                       {"survives", found->survives}};
      for (const stored& size : result.sizes) {
        if (size.level != found) continue;
        one["rows"] = size.rows;
        one["bytes_on_disk"] = size.bytes;
      }
      all.push_back(std::move(one));
    }
  }
  return all;
}

ordered_json bounds_json(const bench_result& result) {
  constexpr double millions = 1e-6;
  ordered_json all = ordered_json::array();
  for (const commit_bound& one : result.bounds) {
    all.push_back({{"threads", one.threads},
                   {"mops", one.rate.median * millions},
                   {"mops_min", one.rate.low * millions},
                   {"mops_max", one.rate.high * millions},
                   {"raw_mops", rounds_of(one.rate, millions)}});
  }
  return all;
}

std::string rate_text(double rate) {
  return formatted(rate < 100 ? "%.1f" : "%.0f", rate);
}

std::string stores_text(const bench_options& options, const bench_result& result,
                        durability level) {
  table out({{"store"},
             {"version"},
             {"configuration"},
             {"bytes/row on disk", table::right},
             {"an acknowledged commit survives"}});
  for (const store_info* info : options.stores) {
    const level_info* const found = info->find_level(level);
    if (found == nullptr) continue;
    std::string bytes = "-";
    for (const stored& size : result.sizes) {
      if (size.level == found)
        bytes = formatted("%.0f", static_cast<double>(size.bytes) / static_cast<double>(size.rows));
    }
    out.row({std::string(info->name), info->version, std::string(found->configuration), bytes,
             std::string(found->survives)});
  }
  return out.text();
}

std::string runs_text(const bench_result& result, durability level) {
  table out({{"work"},
             {"threads", table::right},
             {"store"},
             {"a second", table::right},
             {"min..max", table::right},
             {"x best peer", table::right},
             {"p50 us", table::right},
             {"p99 us", table::right}});
  const bench_run* before = nullptr;
  for (const bench_run& run : result.runs) {
    if (run.level->level != level) continue;
    if (before != nullptr && (before->work != run.work || before->threads != run.threads))
      out.gap();
    before = &run;
    out.row({std::string(run.work->name), std::to_string(run.threads), std::string(run.what->name),
             rate_text(run.rate.median), rate_text(run.rate.low) + ".." + rate_text(run.rate.high),
             run.ratio_to_best_peer ? formatted("%.2f", *run.ratio_to_best_peer) : "-",
             formatted("%.1f", run.latency.percentile(50) / 1e3),
             formatted("%.1f", run.latency.percentile(99) / 1e3)});
  }
  return before == nullptr ? "" : "\n" + out.text();
}

std::string bounds_text(const bench_result& result) {
  table out({{"the disk alone"},
             {"threads", table::right},
             {"a second", table::right},
             {"min..max", table::right}});
  for (const commit_bound& one : result.bounds) {
    out.row({"commits in groups", std::to_string(one.threads), rate_text(one.rate.median),
             rate_text(one.rate.low) + ".." + rate_text(one.rate.high)});
  }
  return result.bounds.empty() ? "" : "\n" + out.text();
}

std::string openings_text(const bench_result& result, durability level) {
  table out({{"work"},
             {"store"},
             {"ms", table::right},
             {"min..max", table::right},
             {"rows", table::right},
             {"acknowledged", table::right},
             {"lost", table::right}});
  bool any = false;
  for (const opening& one : result.openings) {
    if (one.level->level != level) continue;
    any = true;
    const bool killed = one.work->kind == work_kind::recovery;
    out.row({std::string(one.work->name), std::string(one.what->name),
             formatted("%.1f", one.ns.median / 1e6),
             formatted("%.1f..%.1f", one.ns.low / 1e6, one.ns.high / 1e6), std::to_string(one.rows),
             killed ? std::to_string(one.acknowledged) : "-",
             killed ? std::to_string(one.lost) : "-"});
  }
  return any ? "\n" + out.text() : "";
}

}  // namespace

ordered_json store_bench_document(const bench_options& options, const bench_result& result) {
  ordered_json document = results_document();
  for (const bench_run& run : result.runs) document["runs"].push_back(run_json(options, run));
  document["openings"] = ordered_json::array();
  for (const opening& one : result.openings) document["openings"].push_back(opening_json(one));
  document["stores"] = stores_json(options, result);
  document["disk"] = {{"file_system", result.disk.file_system},
                      {"fsync_ns", result.disk.fsync_ns},
                      {"group_commit", bounds_json(result)}};
  return document;
}

std::string store_bench_text(const bench_options& options, const bench_result& result) {
  std::string text = count_text(options.rows) + " rows of " + std::to_string(options.value_bytes) +
                     " bytes, u64 keys; ";
  if (options.rounds > 1)
    text += "medians of " + std::to_string(options.rounds) + " interleaved rounds, ";
  text += formatted("%g s each; seed %llu\n", options.seconds,
                    static_cast<unsigned long long>(options.seed));
  text += machine_line() + ", commit " + source_commit() + "\n";
  text += result.disk.file_system +
          formatted("; 4 KiB and fsync take %.2f ms\n", result.disk.fsync_ns / 1e6);
  for (const durability level : options.levels) {
    text += "\ndurability " + std::string(bench::name_of(level)) + "\n";
    text += stores_text(options, result, level) + runs_text(result, level) +
            openings_text(result, level);
    if (level == durability::sync) text += bounds_text(result);
  }
  return text;
}

std::string store_bench_violations(const bench_result& result) {
  std::string text;
  const auto add = [&](const auto& of) {
    for (const std::string& one : of.violations) {
      text += "WRONG: " + std::string(of.what->name) + " " + level_name(*of.level) + ", " +
              (of.work == nullptr ? "load" : std::string(of.work->name)) + ": " + one + "\n";
    }
  };
  for (const bench_run& run : result.runs) add(run);
  for (const opening& one : result.openings) add(one);
  return text;
}

}  // namespace elidex::cli
