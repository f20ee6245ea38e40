#include "bench/runner/bench.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "bench/runner/machine.hpp"
#include "bench/support/bad_input.hpp"

namespace elidex::bench {

namespace {

constexpr std::uint64_t keys_default = 1'000'000;
// Rough upper bounds for deciding what fits into memory: a key in a map, and a key in the key set.
constexpr double map_key_bytes = 100;
constexpr double set_key_bytes = 16;
// Likewise for URLs.
constexpr double map_url_bytes = 200;
constexpr double set_url_bytes = 150;
// A stream that is repeated needs to be long enough to touch what the distribution touches; one
// that is not must last for the whole run at the highest rate that a thread can reach.
constexpr std::uint64_t repeated_requests_min = 1'000'000;
constexpr std::uint64_t repeated_requests_max = 8'000'000;
constexpr std::uint64_t single_requests_max = 16'000'000;
constexpr double point_requests_per_second_max = 16e6;
constexpr double scan_requests_per_second_max = 4e6;
// All streams of a run together.
constexpr std::uint64_t all_requests_max = 48'000'000;

template <class Key>
class bench {
 public:
  bench(const bench_options& options, const std::function<void(const bench_progress&)>& progress,
        key_set<Key> keys)
      : options_(options), progress_(progress), keys_(std::move(keys)) {
    const double key_bytes = options.keys_are == key_type::string ? map_url_bytes : map_key_bytes;
    const double all_maps = static_cast<double>(keys_.size() * options.indexes.size()) * key_bytes;
    keep_maps_ = all_maps < 0.5 * static_cast<double>(available_memory_bytes());
    threads_max_ = *std::max_element(options.threads.begin(), options.threads.end());
  }

  bench_result run() {
    bench_result result;
    result.keys = keys_.size();
    plan(result);
    if (result.runs.empty()) throw bad_input("--index: " + result.skipped.front().why);
    runs_total_ = result.runs.size() * options_.rounds;

    // The plan holds the runs of a combination next to each other.
    for (auto first = result.runs.begin(); first != result.runs.end();) {
      const auto last = std::find_if(first, result.runs.end(), [&](const bench_run& one) {
        return one.what != first->what || one.distribution_name != first->distribution_name ||
               one.threads != first->threads;
      });
      run_combination(std::span(first, last));
      first = last;
    }
    return result;
  }

 private:
  struct loaded_map {
    std::unique_ptr<any_index<Key>> index;
    double bytes_per_key = 0;
    double own_bytes_per_key = 0;
  };

  void plan(bench_result& result) const {
    for (const workload* what : options_.workloads) {
      for (const unsigned threads : options_.threads) {
        for (const index_info* index : options_.indexes) {
          if (auto why = why_not(*index, *what, threads, options_.keys_are)) {
            result.skipped.push_back({index, what, threads, std::move(*why)});
          }
        }
      }
      for (const distribution& where : options_.distributions) {
        for (const unsigned threads : options_.threads) {
          for (const index_info* index : options_.indexes) {
            if (why_not(*index, *what, threads, options_.keys_are)) continue;
            result.runs.push_back({.index = index,
                                   .what = what,
                                   .distribution_name = where.name,
                                   .threads = threads});
          }
        }
        // A draining workload visits every key once, or has its own distribution.
        if (what->drains()) break;
      }
    }
    for (bench_run& one : result.runs) {
      if (one.what->drains()) one.distribution_name = one.what->distribution_name();
    }
  }

  [[nodiscard]] std::uint64_t requests_per_thread(const workload& what) const {
    const std::uint64_t share =
        std::max<std::uint64_t>(all_requests_max / threads_max_, request_block);
    if (what.loads()) return std::min<std::uint64_t>(share, keys_.size());
    if (!what.inserts) {
      return std::min(share, std::clamp<std::uint64_t>(4 * keys_.size(), repeated_requests_min,
                                                       repeated_requests_max));
    }
    const double rate = what.scans ? scan_requests_per_second_max : point_requests_per_second_max;
    const double wanted = rate * (options_.seconds + options_.warm_up_seconds);
    return std::min(
        {share, single_requests_max, static_cast<std::uint64_t>(wanted) + request_block});
  }

  [[nodiscard]] stream_shape shape_of(const workload& what, const distribution& where) const {
    return {.what = &what,
            .where = where,
            .requests = requests_per_thread(what),
            .scan_length_min = options_.scan_length_min,
            .scan_length_max = options_.scan_length_max,
            .order = options_.order,
            .seed = options_.seed};
  }

  void run_combination(std::span<bench_run> runs) {
    const workload& what = *runs.front().what;
    const unsigned threads = runs.front().threads;
    const auto& where = *std::find_if(
        options_.distributions.begin(), options_.distributions.end(), [&](const distribution& one) {
          return what.drains() || one.name == runs.front().distribution_name;
        });
    say("making the requests");
    const auto streams = streams_for(what, where, threads);
    for (unsigned round = 0; round < options_.rounds; ++round) {
      for (bench_run& run : runs) {
        run_once(run, streams);
        ++runs_done_;
      }
    }
    for (bench_run& run : runs) {
      run.mops = median(run.raw_mops);
      const auto [low, high] = std::minmax_element(run.raw_mops.begin(), run.raw_mops.end());
      run.mops_min = *low;
      run.mops_max = *high;
      run.ratio_to_first = runs.front().mops > 0 ? run.mops / runs.front().mops : 0;
    }
  }

  // Streams do not depend on the number of threads, except where the keys are shared out.
  std::span<const request_stream<Key>> streams_for(const workload& what, const distribution& where,
                                                   unsigned threads) {
    const unsigned made_for = what.drains() ? threads : threads_max_;
    if (streams_of_ != &what || streams_where_ != where.name || streams_.size() != made_for) {
      streams_.clear();
      streams_ = make_streams(keys_, shape_of(what, where), made_for);
      streams_of_ = &what;
      streams_where_ = where.name;
    }
    return std::span(streams_).first(threads);
  }

  void run_once(bench_run& run, std::span<const request_stream<Key>> streams) {
    const workload& what = *run.what;
    loaded_map& map = maps_[run.index];
    const std::string label = std::string(run.index->name) + ", " + std::string(what.name) + " " +
                              run.distribution_name + ", " + std::to_string(run.threads) +
                              (run.threads == 1 ? " thread" : " threads");
    run_settings settings{.seconds = options_.seconds,
                          .warm_up_seconds = options_.warm_up_seconds,
                          .drain = what.drains(),
                          .repeat_streams = !what.inserts,
                          .tick = [&](double share) { say(label, share); }};
    run_outcome outcome;
    if (what.loads()) {
      map = {};
      say(label);
      outcome = load(*run.index, map, make_grown_stream<Key>(what), streams, settings);
    } else {
      if (map.index == nullptr) {
        say("loading " + std::string(run.index->name));
        load(*run.index, map);
      }
      say(label);
      outcome = run_threads(*map.index, streams, settings);
    }

    run.bytes_per_key = map.bytes_per_key;
    run.own_bytes_per_key = map.own_bytes_per_key;
    run.raw_mops.push_back(outcome.mops);
    run.latency += outcome.latency;
    run.seconds += (outcome.seconds - run.seconds) / static_cast<double>(run.raw_mops.size());
    run.cpu_wait_pct +=
        (outcome.cpu_wait_pct - run.cpu_wait_pct) / static_cast<double>(run.raw_mops.size());
    run.requests += outcome.requests;
    run.misses += outcome.misses;
    run.counted_requests += outcome.counted_requests;
    run.counters += outcome.counters;

    const bool as_loaded =
        what.loads() ? what.kind == workload_kind::load && options_.order == key_order::random
                     : !what.inserts && !what.erases;
    if (!keep_maps_ || !as_loaded) map = {};
  }

  // What an index sets up once for the process and for each thread (hazard pointers, epochs) is no
  // memory of its keys: all threads look into an empty map, at the same time, before the first load
  // is accounted for.
  void set_up_once(const index_info& info) {
    if (!set_up_.insert(&info).second) return;
    request_stream<Key> look;
    look.reserve(1, 0);
    look.append(request_kind::read, key_arg<Key>{});
    const std::size_t threads =
        info.single_thread ? 1 : std::max<std::size_t>(threads_max_, allowed_cpus().size());
    const std::vector<request_stream<Key>> looks(threads, look);
    (void)run_threads<Key>(*make_index<Key>(info), looks,
                           {.seconds = 0.01, .warm_up_seconds = 0.01});
  }

  // The load that is measured.
  run_outcome load(const index_info& info, loaded_map& map, const request_stream<Key>& grown,
                   std::span<const request_stream<Key>> streams, const run_settings& settings) {
    set_up_once(info);
    const std::size_t before = allocated_bytes();
    map.index = make_index<Key>(info);
    if (grown.size() > 0) (void)run_threads(*map.index, std::span(&grown, 1), {.drain = true});
    run_outcome outcome = run_threads(*map.index, streams, settings);
    account(map, before, outcome.added > 0 ? outcome.added : keys_.size());
    return outcome;
  }

  // Outside the clock: random order, by as many threads as help this index.
  void load(const index_info& info, loaded_map& map) {
    if (load_streams_.empty()) {
      stream_shape shape = shape_of(*find_workload("load"), {});
      shape.order = key_order::random;
      load_streams_ = make_streams(keys_, shape, static_cast<unsigned>(allowed_cpus().size()));
    }
    const run_settings settings{.drain = true};
    const std::span<const request_stream<Key>> all = load_streams_;
    set_up_once(info);
    const std::size_t at_once = info.loads_in_parallel ? all.size() : 1;
    const std::size_t before = allocated_bytes();
    map.index = make_index<Key>(info);
    for (std::size_t i = 0; i < all.size(); i += at_once) {
      if (run_threads(*map.index, all.subspan(i, at_once), settings).misses > 0) {
        throw std::runtime_error(std::string(info.name) + " refused a new key while it was loaded");
      }
    }
    account(map, before, keys_.size());
  }

  void account(loaded_map& map, std::size_t before, std::size_t keys_in_map) const {
    const std::size_t after = allocated_bytes();
    const auto keys = static_cast<double>(keys_in_map);
    map.own_bytes_per_key = static_cast<double>(map.index->memory_bytes()) / keys;
    map.bytes_per_key = std::max(after > before ? static_cast<double>(after - before) / keys : 0,
                                 map.own_bytes_per_key);
  }

  void say(const std::string& doing, double share_of_run = 0) const {
    if (progress_) {
      progress_(
          {(static_cast<double>(runs_done_) + share_of_run) / static_cast<double>(runs_total_),
           doing});
    }
  }

  const bench_options& options_;
  const std::function<void(const bench_progress&)>& progress_;
  key_set<Key> keys_;
  bool keep_maps_ = true;
  unsigned threads_max_ = 1;
  std::size_t runs_total_ = 1;
  std::size_t runs_done_ = 0;
  std::map<const index_info*, loaded_map> maps_;
  std::set<const index_info*> set_up_;
  std::vector<request_stream<Key>> load_streams_;
  std::vector<request_stream<Key>> streams_;
  const workload* streams_of_ = nullptr;
  std::string streams_where_;
};

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

bench_result run_bench(const bench_options& options,
                       const std::function<void(const bench_progress&)>& progress) {
  const bool strings = options.keys_are == key_type::string;
  if (strings && !options.key_file.empty()) {
    return bench<std::string>(options, progress,
                              read_keys(options.key_file, options.keys, options.seed))
        .run();
  }
  const std::uint64_t keys = options.keys.value_or(keys_default);
  const auto available = static_cast<double>(available_memory_bytes());
  const double key_bytes = strings ? map_url_bytes + set_url_bytes : map_key_bytes + set_key_bytes;
  if (available > 0 && static_cast<double>(keys) * key_bytes > available) {
    throw bad_input("--keys: " + std::to_string(keys) + " keys do not fit into the " +
                    std::to_string(static_cast<std::uint64_t>(available / 1e6)) +
                    " MB of memory that are free (expected at most " +
                    std::to_string(static_cast<std::uint64_t>(available / key_bytes)) + " here)");
  }
  if (strings) return bench<std::string>(options, progress, url_keys(keys, options.seed)).run();
  return bench<std::uint64_t>(options, progress, random_keys(keys, options.seed)).run();
}

}  // namespace elidex::bench
