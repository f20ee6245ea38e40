#include "bench/stores/driver.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <system_error>

#include "bench/runner/bench.hpp"
#include "bench/stores/consistency.hpp"
#include "bench/stores/group_commit.hpp"
#include "bench/stores/killed_writer.hpp"
#include "bench/stores/timed_run.hpp"
#include "bench/support/bad_input.hpp"
#include "bench/support/cleanup.hpp"

namespace elidex::bench::stores {
namespace {

namespace fs = std::filesystem;
using nanoseconds = std::chrono::duration<double, std::nano>;

std::string make_directory(const std::string& in) {
  std::error_code error;
  const fs::path parent = in.empty() ? fs::temp_directory_path(error) : fs::path(in);
  std::string name = (parent / "elidex-db-bench-XXXXXX").string();
  if (error || ::mkdtemp(name.data()) == nullptr)
    throw bad_input("--dir: cannot make a directory in '" + parent.string() + "' (" +
                    std::generic_category().message(errno) + "; expected a directory to write to)");
  return name;
}

// One store at one level, open while the level's works run.
struct instance {
  const store_info* info = nullptr;
  const level_info* level = nullptr;
  store_setup setup;
  std::unique_ptr<store> open = {};
  contents has = {};          // after the last run
  std::uint64_t writers = 0;  // clients so far

  [[nodiscard]] bool is_kept() const noexcept { return level->level != durability::none; }
};

// Opens the store in its directory, and reads a row.
double open_ns(const store_info& info, const store_setup& setup, std::unique_ptr<store>& into) {
  const auto begin = std::chrono::steady_clock::now();
  into = info.open(setup);
  const std::unique_ptr<session> mine = into->connect();
  mine->get(0, [](std::uint64_t, row_view) {});
  return nanoseconds(std::chrono::steady_clock::now() - begin).count();
}

class bench {
 public:
  bench(const bench_options& options, const std::function<void(const bench_progress&)>& progress)
      : options_(options), progress_(progress), root_(make_directory(options.directory)) {}

  bench_result run() {
    result_.disk = disk_facts_of(root_.path());
    for (const durability level : options_.levels) total_ += steps_of(level);
    for (const durability level : options_.levels) run_level(level);
    return std::move(result_);
  }

 private:
  [[nodiscard]] const std::vector<unsigned>& threads_of(const work_info& work) const {
    static const std::vector<unsigned> one{1};
    if (work.kind == work_kind::requests) return options_.threads;
    return work.kind == work_kind::commits ? options_.commit_threads : one;
  }
  [[nodiscard]] double steps_of(durability level) const {
    double steps = 0;
    for (const work_info* work : options_.works)
      steps += static_cast<double>(threads_of(*work).size() * options_.rounds);
    return steps * static_cast<double>(instances_of(level).size());
  }
  [[nodiscard]] const work_info* wanted(work_kind kind) const {
    for (const work_info* work : options_.works) {
      if (work->kind == kind) return work;
    }
    return nullptr;
  }
  [[nodiscard]] std::vector<instance> instances_of(durability level) const {
    std::vector<instance> all;
    for (const store_info* info : options_.stores) {
      const level_info* const found = info->find_level(level);
      if (found == nullptr) continue;
      const fs::path at =
          root_.path() / (std::string(info->name) + "-" + std::string(name_of(level)));
      all.push_back({.info = info,
                     .level = found,
                     .setup = {.directory = level == durability::none ? "" : at.string(),
                               .level = level,
                               .value_bytes = options_.value_bytes,
                               .rows = options_.rows}});
    }
    return all;
  }

  void run_level(durability level) {
    std::vector<instance> all = instances_of(level);
    load(all);
    measure_sizes(all);
    if (const work_info* work = wanted(work_kind::reopen)) reopen(all, *work);
    for (const work_info* work : options_.works) {
      if (work->kind != work_kind::requests && work->kind != work_kind::commits) continue;
      for (const unsigned threads : threads_of(*work)) run_work(all, *work, threads);
    }
    for (instance& one : all) one.open.reset();
    if (const work_info* work = wanted(work_kind::recovery)) recover(all, *work);
    for (const instance& one : all) clear(one.setup.directory);
  }

  // A result for each store, as yet without rounds.
  template <class Line>
  static std::vector<Line> lines_of(const std::vector<instance>& all, const work_info* work) {
    std::vector<Line> lines(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      lines[i].what = all[i].info;
      lines[i].level = all[i].level;
      lines[i].work = work;
    }
    return lines;
  }

  // --- load, sizes, reopen ---

  void load(std::vector<instance>& all) {
    const work_info* const work = wanted(work_kind::load);
    std::vector<bench_run> runs = lines_of<bench_run>(all, work);
    for (unsigned round = 0; round < (work == nullptr ? 1 : options_.rounds); ++round) {
      for (std::size_t i = 0; i < all.size(); ++i) {
        say(all[i], "loading");
        load_once(all[i], runs[i]);
        if (work != nullptr) ++done_;
      }
    }
    const bool wrong = std::any_of(runs.begin(), runs.end(),
                                   [](const bench_run& one) { return !one.violations.empty(); });
    if (work != nullptr || wrong) finish(std::move(runs));
  }
  void load_once(instance& one, bench_run& run) {
    one.open.reset();
    clear(one.setup.directory);
    if (one.is_kept()) fs::create_directory(one.setup.directory);
    sync_file_system(root_.path());
    one.open = one.info->open(one.setup);
    const std::unique_ptr<session> mine = one.open->connect();
    const auto begin = std::chrono::steady_clock::now();
    for (std::uint64_t first = 0; first < options_.rows; first += load_batch) {
      const auto before = std::chrono::steady_clock::now();
      mine->append(first, std::min(load_batch, options_.rows - first));
      const auto took = std::chrono::steady_clock::now() - before;
      run.latency.record(static_cast<std::uint64_t>(took / std::chrono::nanoseconds(1)));
      ++run.transactions;
    }
    const std::chrono::duration<double> all = std::chrono::steady_clock::now() - begin;
    run.rate.rounds.push_back(static_cast<double>(options_.rows) / all.count());
    one.open->quiesce();
    one.has = read_all(*mine);
    contents expected;
    for (std::uint64_t key = 0; key < options_.rows; ++key) expected.rows.push_back({key, 0});
    add_violations(run.violations, find_violations(expected, one.has, {}));
  }
  void measure_sizes(std::vector<instance>& all) {
    for (instance& one : all) {
      if (!one.is_kept()) continue;
      one.open->settle();
      one.open.reset();
      sync_file_system(root_.path());
      result_.sizes.push_back({.what = one.info,
                               .level = one.level,
                               .rows = options_.rows,
                               .bytes = allocated_bytes_of(one.setup.directory)});
      open_ns(*one.info, one.setup, one.open);
    }
  }
  void reopen(std::vector<instance>& all, const work_info& work) {
    std::vector<opening> openings = lines_of<opening>(all, &work);
    for (unsigned round = 0; round < options_.rounds; ++round) {
      for (std::size_t i = 0; i < all.size(); ++i, ++done_) {
        instance& one = all[i];
        if (!one.is_kept()) continue;
        say(one, work.name);
        one.open.reset();
        openings[i].ns.rounds.push_back(open_ns(*one.info, one.setup, one.open));
        check(one, {}, openings[i].violations);
        openings[i].rows = one.has.rows.size();
      }
    }
    finish(std::move(openings));
  }

  // --- works ---

  void run_work(std::vector<instance>& all, const work_info& work, unsigned threads) {
    std::vector<bench_run> runs = lines_of<bench_run>(all, &work);
    for (bench_run& one : runs) one.threads = threads;
    commit_bound bound{.threads = threads};
    for (unsigned round = 0; round < options_.rounds; ++round) {
      for (std::size_t i = 0; i < all.size(); ++i, ++done_) {
        say(all[i], std::string(work.name) + ", " + std::to_string(threads) +
                        (threads == 1 ? " thread" : " threads"));
        run_once(all[i], runs[i], round);
      }
      if (work.kind == work_kind::commits && !all.empty() &&
          all.front().level->level == durability::sync)
        bound.rate.rounds.push_back(disk_rate(threads));
    }
    finish(std::move(runs));
    if (bound.rate.rounds.empty()) return;
    bound.rate.summarize();
    result_.bounds.push_back(std::move(bound));
  }
  [[nodiscard]] double disk_rate(unsigned threads) const {
    // Chosen: the key of a row, and what a log has for a commit besides its rows.
    constexpr std::size_t bytes_besides = 40;
    return group_commit_of(root_.path(), {.threads = threads,
                                          .bytes = options_.rows_per_commit *
                                                   (options_.value_bytes + bytes_besides),
                                          .seconds = options_.seconds})
        .rate();
  }
  void run_once(instance& one, bench_run& run, unsigned round) {
    std::vector<client_plan> plans;
    plans.reserve(run.threads);
    for (unsigned t = 0; t < run.threads; ++t) {
      plans.push_back({.what = run.work,
                       .rows = options_.rows,
                       .first_new_key = one.has.rows.empty() ? 0 : one.has.rows.back().key + 1,
                       .rows_per_commit = options_.rows_per_commit,
                       .thread = t,
                       .threads = run.threads,
                       .writer = ++one.writers,
                       // Rounds differ in what is drawn, stores don't.
                       .seed = options_.seed + round});
    }
    const std::uint64_t retries = one.open->retries();
    constexpr double warm_up_share = 0.1;
    timed_result got = run_clients(
        *one.open, plans,
        {.seconds = options_.seconds, .warm_up_seconds = options_.seconds * warm_up_share});
    one.open->quiesce();
    sync_file_system(root_.path());
    run.rate.rounds.push_back(got.rate);
    run.transactions += got.transactions;
    run.latency += got.latency;
    run.retries += one.open->retries() - retries;
    run.cpu_wait_pct +=
        (got.cpu_wait_pct - run.cpu_wait_pct) / static_cast<double>(run.rate.rounds.size());
    add_violations(run.violations, got.problems);
    if (run.work->mix.writes()) check(one, got.logs, run.violations);
  }

  // --- recovery ---

  void recover(std::vector<instance>& all, const work_info& work) {
    std::vector<opening> openings = lines_of<opening>(all, &work);
    for (unsigned round = 0; round < options_.rounds; ++round) {
      for (std::size_t i = 0; i < all.size(); ++i, ++done_) {
        if (!all[i].is_kept()) continue;
        say(all[i], work.name);
        recover_once(all[i], openings[i]);
      }
    }
    finish(std::move(openings));
  }
  void recover_once(instance& one, opening& into) {
    clear(one.setup.directory);
    fs::create_directory(one.setup.directory);
    const killed_settings settings{.setup = one.setup,
                                   .commits = options_.recovery_commits,
                                   .acknowledged = (root_.path() / "acknowledged").string()};
    const temporary_path acknowledged(settings.acknowledged);
    run_killed_writer(std::string(one.info->name), settings);
    into.ns.rounds.push_back(open_ns(*one.info, one.setup, one.open));
    const contents found = read_all(*one.open->connect());
    const recovered got = compare_recovered(found, settings);
    into.rows = found.rows.size();
    into.acknowledged += got.acknowledged;
    into.lost += got.lost;
    add_violations(into.violations, got.violations);
    one.open.reset();
  }
  void run_killed_writer(const std::string& name, const killed_settings& settings) const {
    std::vector<std::string> words = options_.killed_writer;
    if (words.empty()) throw std::logic_error("recovery without a program to kill");
    for (std::string& one : words_of(name, settings)) words.push_back(std::move(one));
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& one : words) arguments.push_back(one.data());
    arguments.push_back(nullptr);
    child_process child([&] { ::execv(arguments[0], arguments.data()); });
    const int status = child.wait();
    if (status != 128 + SIGKILL)
      throw std::runtime_error("the process that was to be killed ended with status " +
                               std::to_string(status) + " (" + name + ")");
  }

  // --- results ---

  void check(instance& one, const std::vector<write_log>& logs,
             std::vector<std::string>& violations) {
    contents now = read_all(*one.open->connect());
    add_violations(violations, find_violations(one.has, now, logs));
    one.has = std::move(now);
  }
  static void add_violations(std::vector<std::string>& to, const std::vector<std::string>& from) {
    to.insert(to.end(), from.begin(), from.end());
  }
  void finish(std::vector<bench_run> runs) {
    double best_peer = 0;
    for (bench_run& one : runs) {
      one.rate.summarize();
      if (one.what->name != own_store) best_peer = std::max(best_peer, one.rate.median);
    }
    for (bench_run& one : runs) {
      if (best_peer > 0) one.ratio_to_best_peer = one.rate.median / best_peer;
      result_.runs.push_back(std::move(one));
    }
  }
  void finish(std::vector<opening> openings) {
    for (opening& one : openings) {
      if (one.ns.rounds.empty()) continue;
      one.ns.summarize();
      result_.openings.push_back(std::move(one));
    }
  }
  static void clear(const std::string& directory) {
    if (!directory.empty()) fs::remove_all(directory);
  }
  void say(const instance& one, std::string_view doing) const {
    if (progress_)
      progress_({done_ / total_, std::string(one.info->name) + " " +
                                     std::string(name_of(one.level->level)) + ", " +
                                     std::string(doing)});
  }

  const bench_options& options_;
  const std::function<void(const bench_progress&)>& progress_;
  const temporary_path root_;
  bench_result result_;
  double total_ = 1;
  double done_ = 0;
};

}  // namespace

void spread::summarize() {
  const auto [least, most] = std::minmax_element(rounds.begin(), rounds.end());
  low = *least;
  high = *most;
  median = elidex::bench::median(rounds);
}

bench_result run_bench(const bench_options& options,
                       const std::function<void(const bench_progress&)>& progress) {
  return bench(options, progress).run();
}

}  // namespace elidex::bench::stores
