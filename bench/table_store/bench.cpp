#include "bench/table_store/bench.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <span>
#include <system_error>

#include "bench/runner/bench.hpp"
#include "bench/runner/machine.hpp"
#include "bench/support/bad_input.hpp"
#include "bench/support/cleanup.hpp"

namespace elidex::bench::table_store {
namespace {

// Nothing without a log.
class directory_for_a_run {
 public:
  directory_for_a_run(internal::durability level, const std::string& in) {
    if (level == internal::durability::none) return;
    std::error_code error;
    const std::filesystem::path parent =
        in.empty() ? std::filesystem::temp_directory_path(error) : std::filesystem::path(in);
    std::string name = (parent / "elidex-bench-XXXXXX").string();
    if (error || ::mkdtemp(name.data()) == nullptr)
      throw bad_input("--folder: cannot make a directory in '" + parent.string() + "' (" +
                      std::generic_category().message(errno) +
                      "; expected a directory to write to)");
    directory_.emplace(std::move(name));
  }
  [[nodiscard]] std::string path() const { return directory_ ? directory_->path().string() : ""; }

 private:
  std::optional<temporary_path> directory_;
};

class bench {
 public:
  bench(const bench_options& options, const std::function<void(const bench_progress&)>& progress)
      : options_(options), progress_(progress) {}

  std::vector<bench_run> run() {
    std::vector<bench_run> runs;
    std::vector<std::size_t> group_ends;
    for (std::size_t g = 0; g < options_.groups.size(); ++g) {
      for (const unsigned threads : options_.threads) {
        for (const database_info* what : options_.databases) {
          for (std::size_t p = 0; p < options_.groups[g].size(); ++p) {
            for (const internal::durability level : options_.levels)
              runs.push_back(
                  {.what = what, .group = g, .point = p, .threads = threads, .level = level});
          }
        }
        group_ends.push_back(runs.size());
      }
    }
    total_ = static_cast<double>(runs.size() * options_.rounds);
    std::size_t first = 0;
    for (const std::size_t end : group_ends) {
      const std::span<bench_run> group = std::span(runs).subspan(first, end - first);
      first = end;
      for (unsigned round = 0; round < options_.rounds; ++round) {
        for (bench_run& one : group) run_once(one, round);
      }
      for (bench_run& one : group) {
        one.tps = median(one.raw_tps);
        const auto [low, high] = std::minmax_element(one.raw_tps.begin(), one.raw_tps.end());
        one.tps_min = *low;
        one.tps_max = *high;
        one.ratio_to_first = group.front().tps > 0 ? one.tps / group.front().tps : 0;
      }
    }
    return runs;
  }

 private:
  void run_once(bench_run& run, unsigned round) {
    const workload_point& point = options_.groups[run.group][run.point];
    const std::string label = std::string(run.what->name) + ", " + point.label + ", " +
                              std::to_string(run.threads) +
                              (run.threads == 1 ? " thread" : " threads");
    say("loading for " + label);
    const std::size_t before = allocated_bytes();
    // Rounds differ in what is drawn, variants don't.
    const std::uint64_t seed = options_.seed + round;
    const directory_for_a_run directory(run.level, options_.directory);
    const std::unique_ptr<loaded_workload> loaded =
        point.load(*run.what, seed, {run.level, directory.path()});
    const std::size_t after = allocated_bytes();
    run.bytes_per_row = after > before ? static_cast<double>(after - before) / point.rows : 0;
    say(label);
    const run_outcome one = loaded->run({.threads = run.threads,
                                         .seconds = options_.seconds,
                                         .warm_up_seconds = options_.warm_up_seconds,
                                         .seed = seed,
                                         .tick = [&](double share) { say(label, share); }});
    run.raw_tps.push_back(one.rate);
    run_outcome& sum = run.outcome;
    const auto rounds = static_cast<double>(run.raw_tps.size());
    sum.latency.resize(one.latency.size());
    for (std::size_t k = 0; k < one.latency.size(); ++k) {
      sum.latency[k] += one.latency[k];
      run.latency += one.latency[k];
    }
    sum.rolled_back += one.rolled_back;
    sum.rate += (one.rate - sum.rate) / rounds;
    sum.seconds += (one.seconds - sum.seconds) / rounds;
    sum.cpu_wait_pct += (one.cpu_wait_pct - sum.cpu_wait_pct) / rounds;
    sum.all_transactions += one.all_transactions;
    sum.conflicts += one.conflicts;
    sum.regions += one.regions;
    sum.missing += std::abs(one.missing);
    sum.violations.insert(sum.violations.end(), one.violations.begin(), one.violations.end());
    ++done_;
  }

  void say(const std::string& doing, double share_of_run = 0) const {
    if (progress_) progress_({(done_ + share_of_run) / total_, doing});
  }

  const bench_options& options_;
  const std::function<void(const bench_progress&)>& progress_;
  double total_ = 1;
  double done_ = 0;
};

}  // namespace

std::vector<bench_run> run_bench(const bench_options& options,
                                 const std::function<void(const bench_progress&)>& progress) {
  return bench(options, progress).run();
}

double growth::bytes() const {
  const auto running = static_cast<double>(std::min<std::size_t>(threads, allowed_cpus().size()));
  return seconds * running * transactions_per_second_max * bytes_per_transaction;
}

void refuse_what_does_not_fit(std::string_view flag, std::uint64_t wanted, std::string_view of_what,
                              double bytes_each, double bytes_besides) {
  const auto available = static_cast<double>(available_memory_bytes());
  const double needed = static_cast<double>(wanted) * bytes_each + bytes_besides;
  if (available == 0 || needed <= available) return;
  const auto megabytes = [](double bytes) {
    return std::to_string(static_cast<std::uint64_t>(bytes / 1e6)) + " MB";
  };
  throw bad_input(std::string(flag) + ": " + std::to_string(wanted) + " " + std::string(of_what) +
                  " need about " + megabytes(needed) + ", and " + megabytes(available) +
                  " are free (expected at most " +
                  std::to_string(static_cast<std::uint64_t>(
                      std::max(0.0, (available - bytes_besides) / bytes_each))) +
                  " here)");
}

}  // namespace elidex::bench::table_store
