#include "bench/simulated/run_on_machine.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "bench/indexes/elidex_map.hpp"
#include "bench/indexes/registry.hpp"
#include "bench/support/bad_input.hpp"
#include "bench/workload/fixed_runs.hpp"
#include "bench/workload/workload.hpp"

namespace elidex::bench {

// The time without a CPU is in the machine's report (ready_cycles).
std::uint64_t cpu_wait_ns() {
  return 0;
}

namespace {

template <class Key>
void run_stream(any_index<Key>& index, const request_stream<Key>& stream, worker_result& result) {
  run_control control;
  control.drain = true;
  index.run(stream, control, result);
}

// What a request names, found. Throws bad_input.
struct named {
  const index_info* index;
  const workload* what;
  distribution where;
};

named names_of(const sim_request& wanted) {
  const index_info* const index = find_index(wanted.index);
  if (index == nullptr)
    throw bad_input("--index: '" + wanted.index + "' is not compiled for the simulated machine");
  const workload* const what = find_workload(wanted.workload);
  const auto where = parse_distribution(wanted.dist);
  if (what == nullptr || !where) throw bad_input("unknown workload or distribution");
  const key_type keys_are = wanted.string_keys ? key_type::string : key_type::u64;
  if (const auto why = why_not(*index, *what, wanted.threads, keys_are))
    throw bad_input("--index: " + *why);
  const unsigned cpus = wanted.cpus == 0 ? wanted.threads : wanted.cpus;
  if (cpus > wanted.machine.hardware_threads()) {
    throw bad_input("--cores: " + wanted.machine.name + " has " +
                    std::to_string(wanted.machine.hardware_threads()) + " hardware threads, not " +
                    std::to_string(cpus));
  }
  return {index, what, *where};
}

stream_shape shape_of(const sim_request& wanted, const named& names) {
  return {.what = names.what,
          .where = names.where,
          .requests = wanted.operations,
          .scan_length_min = wanted.scan_length_min,
          .scan_length_max = wanted.scan_length_max,
          .order = wanted.order,
          .seed = wanted.seed};
}

template <class Key>
class loaded_with final : public loaded_index {
 public:
  loaded_with(const sim_request& wanted, key_set<Key> keys) : keys_(std::move(keys)) {
    const named names = names_of(wanted);
    // Made on the machine, because an index may ask what the machine can do.
    sim::run(wanted.machine, {}, {[&] { index_ = make_index<Key>(*names.index); }});
    filling_ = filling_stream(keys_, *names.what, shape_of(wanted, names));
    run_stream(*index_, filling_, loaded_);
  }

  sim_result run(const sim_request& wanted) override {
    const named names = names_of(wanted);
    const workload& what = *names.what;
    const stream_shape shape = shape_of(wanted, names);
    const std::vector<request_stream<Key>> streams = streams_for(keys_, shape, wanted.threads);
    const std::vector<request_stream<Key>> warm_ups =
        streams_for(keys_, warm_up_shape(what, shape), wanted.threads);

    std::vector<worker_result> results(wanted.threads);
    std::vector<worker_result> warm_up_results(wanted.threads);
    index_counters before;
    std::vector<std::function<void()>> bodies;
    for (unsigned t = 0; t < wanted.threads; ++t) {
      bodies.emplace_back([&, t] {
        for (const auto& stream : {std::cref(streams[t]), std::cref(warm_ups[t])}) {
          stream.get().for_each_buffer(
              [](const void* from, std::size_t bytes) { sim::exempt_pages(from, bytes); });
        }
        if (!what.drains()) run_stream(*index_, warm_ups[t], warm_up_results[t]);
        sim::start_counting();
        if (t == 0) before = index_->counters();
        run_stream(*index_, streams[t], results[t]);
      });
    }
    sim_result outcome;
    outcome.machine = sim::run(wanted.machine,
                               {.seed = wanted.seed,
                                .quantum_cycles = wanted.quantum_cycles,
                                .cpus = wanted.cpus,
                                .record_events = wanted.record_events,
                                .warm_l3 = true},
                               bodies);
    if (!outcome.machine.stuck.empty()) throw std::runtime_error(outcome.machine.stuck);
    outcome.counters = index_->counters() - before;
    std::uint64_t added = loaded_.added;
    for (const worker_result& one : results) {
      added += one.added;
      outcome.operations += one.requests;
      outcome.misses += one.misses;
      outcome.latency += one.latency;
    }
    outcome.keys = added > 0 ? added : keys_.size();
    const double seconds = static_cast<double>(outcome.machine.cycles) /
                           (static_cast<double>(wanted.machine.megahertz) * 1e6);
    outcome.mops = seconds > 0 ? static_cast<double>(outcome.operations) / seconds / 1e6 : 0;
    outcome.bytes_per_key =
        static_cast<double>(index_->memory_bytes()) / static_cast<double>(outcome.keys);
    return outcome;
  }

 private:
  key_set<Key> keys_;
  std::unique_ptr<any_index<Key>> index_;
  request_stream<Key> filling_;  // the map's values point into it
  worker_result loaded_;
};

}  // namespace

void load_on_machine(const sim_request& wanted, const std::function<void(loaded_index&)>& then) {
  names_of(wanted);  // refuses before a minute of loading
  conflict_retries_asked_for = wanted.retries;
  leaf_version_asked_for = wanted.version;
  if (wanted.string_keys) {
    loaded_with<std::string> loaded(
        wanted, wanted.key_file.empty() ? url_keys(wanted.keys, wanted.seed)
                                        : read_keys(wanted.key_file, wanted.keys, wanted.seed));
    return then(loaded);
  }
  loaded_with<std::uint64_t> loaded(wanted, random_keys(wanted.keys, wanted.seed));
  then(loaded);
}

bool load_alike(const sim_request& one, const sim_request& other) noexcept {
  // These fill the map by their own rules.
  const auto fills = [](const sim_request& r) {
    const workload* const what = find_workload(r.workload);
    return what == nullptr || what->loads() || what->kind == workload_kind::fronts;
  };
  const auto what_decides = [](const sim_request& r) {
    return std::tie(r.machine.name, r.machine.rtm, r.machine.hle, r.index, r.dist, r.keys,
                    r.string_keys, r.key_file, r.order, r.seed, r.retries, r.version);
  };
  return what_decides(one) == what_decides(other) && !fills(one) && !fills(other);
}

}  // namespace elidex::bench
