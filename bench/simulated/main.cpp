// The program that runs on the simulated machine: reads one request as JSON from standard input,
// runs it and writes what came out as JSON to standard output. `elidex sim` starts it once for each
// run, `elidex repro` once for each run or group of runs that share a load.
//
// Exit status as of elidex: 0 done, 1 failed, 2 a request that cannot be run, with one line on
// standard error.
//
// A request {"runs": [REQUEST, ...]} asks for runs that load alike (run_on_machine.hpp). Their
// index is loaded once. Each run is a child process with its own copy of it, and gives one line of
// output, in the order of the requests: what came out, or {"failed": MESSAGE, "status": STATUS}.

#include <link.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <concepts>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <iostream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "bench/indexes/registry.hpp"
#include "bench/simulated/run_on_machine.hpp"
#include "bench/simulated/tpcc_on_machine.hpp"
#include "bench/simulated/trace.hpp"
#include "bench/simulated/ycsb_txn_on_machine.hpp"
#include "bench/support/bad_input.hpp"
#include "papers/schrimpf/experiments/experiment.hpp"
#include "papers/schrimpf/txbench/txbench_on_machine.hpp"

namespace {

using namespace elidex;
using nlohmann::ordered_json;

// Reads the request into the system's memory: the simulated run must not depend on how long its
// file names are.
template <class Read>
auto outside_the_machine(const Read& read) {
  const sim::system_memory here;
  return read();
}

// Throws bad_input for what would silently become another number: a negative one, a fraction.
template <std::unsigned_integral T>
T number_of(const std::string& name, const ordered_json& value) {
  constexpr std::uint64_t most = std::numeric_limits<T>::max();
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most)
    throw bench::bad_input(name + ": expected a whole number of at most " + std::to_string(most) +
                           ", not " + value.dump());
  return value.get<T>();
}

template <std::unsigned_integral T>
void read_number(const ordered_json& request, const char* name, T& into) {
  into = number_of<T>(name, request.at(name));
}

template <std::unsigned_integral T>
void read_if_given(const ordered_json& request, const char* name, T& into) {
  if (request.contains(name)) read_number(request, name, into);
}

template <std::unsigned_integral T>
void read_if_given(const ordered_json& request, const char* name, std::optional<T>& into) {
  if (request.contains(name)) into = number_of<T>(name, request.at(name));
}

sim::machine machine_of(const ordered_json& request) {
  sim::machine which = sim::read_machine(request.at("machine_file").get<std::string>());
  const ordered_json changes = request.value("set", ordered_json::object());
  for (const auto& [name, value] : changes.items()) {
    sim::set_parameter(which, name, number_of<std::uint64_t>(name, value));
  }
  return which;
}

bench::sim_request request_of(const ordered_json& request) {
  bench::sim_request wanted;
  wanted.machine = machine_of(request);
  wanted.index = request.at("index");
  wanted.workload = request.at("workload");
  wanted.dist = request.at("dist");
  read_number(request, "keys", wanted.keys);
  wanted.string_keys = request.value("string_keys", false);
  wanted.key_file = request.value("key_file", "");
  read_number(request, "threads", wanted.threads);
  read_if_given(request, "cpus", wanted.cpus);
  read_number(request, "operations", wanted.operations);
  read_number(request, "seed", wanted.seed);
  read_if_given(request, "quantum", wanted.quantum_cycles);
  read_if_given(request, "retries", wanted.retries);
  wanted.version = bench::parse_leaf_version(request.value("leaf_version", "none"));
  read_if_given(request, "scan_length_min", wanted.scan_length_min);
  read_if_given(request, "scan_length_max", wanted.scan_length_max);
  const std::string order = request.value("order", "random");
  const auto known_order = bench::parse_key_order(order);
  if (!known_order) throw bench::bad_input("unknown order '" + order + "'");
  wanted.order = *known_order;
  wanted.record_events = request.contains("trace_file");
  return wanted;
}

bench::tpcc_request tpcc_request_of(const ordered_json& request) {
  bench::tpcc_request wanted;
  wanted.run = request_of(request);
  read_if_given(request, "warehouses", wanted.size.warehouses);
  read_if_given(request, "customers", wanted.size.customers);
  read_if_given(request, "items", wanted.size.items);
  read_if_given(request, "commit_retries", wanted.commit_retries);
  wanted.size.districts_deliver_alone = request.value("deliveries", "warehouse") == "district";
  wanted.size.terminals_stay_home = request.value("suppliers", "any") == "home";
  wanted.size.terminals_number_orders = request.value("order_numbers", "district") == "terminal";
  if (request.value("readers", "snapshots") == "transactions")
    wanted.how = bench::tpcc::readers::as_transactions;
  return wanted;
}

constexpr std::string_view ycsb_txn_prefix = "ycsb-txn:";

bench::ycsb_txn_request ycsb_txn_request_of(const ordered_json& request) {
  bench::ycsb_txn_request wanted;
  wanted.run = request_of(request);
  const std::string name = wanted.run.workload.substr(ycsb_txn_prefix.size());
  const bench::ycsb_txn::mix* const what = bench::ycsb_txn::find_mix(name);
  if (what == nullptr) throw bench::bad_input("unknown workload '" + wanted.run.workload + "'");
  wanted.is.what = *what;
  wanted.is.keys = wanted.run.keys;
  read_if_given(request, "ops_per_txn", wanted.is.operations);
  wanted.is.theta = request.value("theta", wanted.is.theta);
  return wanted;
}

bench::txbench_request txbench_request_of(const ordered_json& request) {
  bench::txbench_request wanted;
  wanted.run = request_of(request);
  read_if_given(request, "rows", wanted.is.rows);
  read_if_given(request, "think_cycles", wanted.think_cycles);
  wanted.pages = request.value("pages", 1u) != 0;
  return wanted;
}

double share(double part, double whole) {
  return whole == 0 ? 0 : part / whole;
}

constexpr std::size_t fetches_reported_max = 16;  // chosen: the rest is small

std::uint64_t aborts_for(const sim::transaction_counts& all,
                         std::initializer_list<sim::abort_reason> reasons) {
  std::uint64_t sum = 0;
  for (const sim::abort_reason r : reasons) sum += all.aborts[static_cast<std::size_t>(r)];
  return sum;
}

// By the causes that a program is told.
ordered_json aborts_of(const sim::thread_report& all) {
  using enum sim::abort_reason;
  return {{"conflict", aborts_for(all, {conflict})},
          {"capacity", aborts_for(all, {write_capacity, read_capacity})},
          {"explicit", aborts_for(all, {explicit_})},
          {"interrupt", aborts_for(all, {interrupt, page_fault, system_call, nesting, elision})},
          {"other", 0}};
}

// By the reasons that the machine knows.
ordered_json aborts_by_reason_of(const sim::thread_report& all) {
  ordered_json by_reason;
  for (std::size_t i = 0; i < sim::abort_reasons; ++i) {
    by_reason[std::string(sim::to_string(static_cast<sim::abort_reason>(i)))] = all.aborts[i];
  }
  return by_reason;
}

ordered_json clocks_of(const sim::report& machine) {
  ordered_json clocks = ordered_json::array();
  for (const sim::thread_report& t : machine.threads) clocks.push_back(t.cycles);
  return clocks;
}

ordered_json hits_of(const sim::report& machine) {
  return {{"l1", machine.l1_hits},
          {"l2", machine.l2_hits},
          {"l3", machine.l3_hits},
          {"other_core", machine.other_core_hits},
          {"dram", machine.dram_accesses}};
}

ordered_json conflicts_of(const sim::report& machine) {
  ordered_json conflicts = ordered_json::array();
  for (const sim::conflict_report& c : machine.conflicts) {
    conflicts.push_back(
        {{"where", c.where}, {"true_sharing", c.true_sharing}, {"false_sharing", c.false_sharing}});
  }
  return conflicts;
}

// The lines that took longest.
ordered_json fetches_of(const sim::report& machine) {
  ordered_json fetches = ordered_json::array();
  for (const sim::fetch_report& f : machine.fetches) {
    if (fetches.size() == fetches_reported_max) break;
    fetches.push_back({{"where", f.where},
                       {"line", f.line},
                       {"accesses", f.accesses},
                       {"met_others", f.met_others},
                       {"cycles", f.cycles}});
  }
  return fetches;
}

// All lines together, those that fetches_of() leaves out included.
ordered_json fetched_of(const sim::report& machine) {
  sim::fetch_report fetched;
  for (const sim::fetch_report& f : machine.fetches) {
    fetched.accesses += f.accesses;
    fetched.met_others += f.met_others;
    fetched.cycles += f.cycles;
  }
  return {{"lines", machine.fetches.size()},
          {"accesses", fetched.accesses},
          {"met_others", fetched.met_others},
          {"cycles", fetched.cycles}};
}

// HLE_RETIRED or RTM_RETIRED: paper 004, table 2.3. The thesis saw pauses and system calls as
// MISC3, capacity as MISC1, and presumes interrupts behind MISC5. MISC4 is a lock elided inside an
// RTM transaction: `elision` in a transaction that is not by HLE.
void add_retired(ordered_json& to, const std::string& family, const sim::transaction_counts& of) {
  using enum sim::abort_reason;
  const bool is_hle = family == "hle_retired";
  const std::uint64_t nested_locks = aborts_for(of, {elision});
  to[family + ".start"] = of.begun;
  to[family + ".commit"] = of.committed;
  to[family + ".aborted"] = of.aborted();
  to[family + ".aborted_misc1"] = aborts_for(of, {conflict, write_capacity, read_capacity});
  to[family + ".aborted_misc2"] = 0;
  to[family + ".aborted_misc3"] =
      aborts_for(of, {system_call, nesting}) + (is_hle ? nested_locks : 0);
  to[family + ".aborted_misc4"] = is_hle ? 0 : nested_locks;
  to[family + ".aborted_misc5"] = aborts_for(of, {interrupt, page_fault, explicit_});
}

// The names of `perf stat -T` (tx-conflict and so on are those of Haswell's event list), paper
// 004's equations 2.1 and 2.2, and its table 2.3.
ordered_json perf_of(const sim::thread_report& all) {
  using enum sim::abort_reason;
  ordered_json perf{{"cycles", all.cycles},
                    {"cycles-t", all.transactional_cycles},
                    {"cycles-ct", all.transactional_cycles - all.aborted_cycles},
                    {"tx-start", all.begun},
                    {"tx-commit", all.committed},
                    {"tx-abort", all.aborted()},
                    {"tx-conflict", aborts_for(all, {conflict})},
                    {"tx-capacity", aborts_for(all, {write_capacity, read_capacity})}};
  sim::transaction_counts by_rtm = all;
  by_rtm.begun -= all.elided.begun;
  by_rtm.committed -= all.elided.committed;
  for (std::size_t i = 0; i < sim::abort_reasons; ++i) by_rtm.aborts[i] -= all.elided.aborts[i];
  add_retired(perf, "hle_retired", all.elided);
  add_retired(perf, "rtm_retired", by_rtm);
  return perf;
}

ordered_json document_of(const bench::sim_request& wanted, const bench::sim_result& result) {
  const sim::thread_report all = result.machine.total();
  const auto operations = static_cast<double>(result.operations);
  const auto transactional = static_cast<double>(all.transactional_cycles);
  const auto aborted = static_cast<double>(all.aborted_cycles);
  const auto cycles = static_cast<double>(all.cycles);
  ordered_json document{
      {"index", wanted.index},
      {"workload", wanted.workload},
      {"dist", wanted.dist},
      {"threads", wanted.threads},
      {"mops", result.mops},
      {"mops_min", result.mops},
      {"mops_max", result.mops},
      {"ns_p50", result.latency.percentile(50)},
      {"ns_p99", result.latency.percentile(99)},
      {"aborts_per_op", share(static_cast<double>(all.aborted()), operations)},
      {"aborts", aborts_of(all)},
      {"fallback_pct", result.counters.fallback_pct()},
      {"wasted_pct", 100 * share(aborted + static_cast<double>(all.aborting_cycles), cycles)},
      {"bytes_per_key", result.bytes_per_key},
      {"seed", wanted.seed},
      {"machine", wanted.machine.name},
      {"keys", result.keys},
      {"key_type", wanted.string_keys ? "string" : "u64"},
      {"operations_per_thread", wanted.operations},
      {"requests", result.operations},
      {"misses", result.misses},
      {"cycles", result.machine.cycles},
      {"clocks", clocks_of(result.machine)},
      {"accesses", all.accesses},
      {"accesses_per_op", share(static_cast<double>(all.accesses), operations)},
      {"instructions_per_op", share(static_cast<double>(all.instructions), operations)},
      {"hits", hits_of(result.machine)},
      {"aborts_by_reason", aborts_by_reason_of(all)},
      {"conflicts", conflicts_of(result.machine)},
      {"fetches", fetches_of(result.machine)},
      {"fetched", fetched_of(result.machine)},
      {"perf", perf_of(all)},
      {"lines_per_commit",
       share(static_cast<double>(all.committed_lines), static_cast<double>(all.committed))},
      {"transactional_pct", 100 * share(transactional, cycles)},
      {"aborted_pct_of_all", 100 * share(aborted, cycles)},
      {"aborted_pct_of_transactional", 100 * share(aborted, transactional)}};
  if (wanted.cpus != 0) {
    document["cpus"] = wanted.cpus;
    document["ready_pct"] = 100 * share(static_cast<double>(all.ready_cycles), cycles);
  }
  return document;
}

ordered_json counts_of(const elidex::lock_counts& counts) {
  using htm::abort_cause;
  ordered_json aborts;
  for (const auto cause : {abort_cause::conflict, abort_cause::capacity, abort_cause::explicit_,
                           abort_cause::interrupt, abort_cause::other}) {
    aborts[htm::to_string(cause)] = counts.aborts_by(cause);
  }
  return {{"commits", counts.commits},
          {"fallbacks", counts.fallbacks},
          {"fallback_pct", counts.fallback_pct()},
          {"aborts", std::move(aborts)}};
}

// What all workloads over databases have.
template <std::size_t Kinds>
void add_transactions(ordered_json& document, const bench::database_result<Kinds>& result,
                      const std::array<std::string_view, Kinds>& names) {
  document["tps"] = result.run.mops * 1e6;
  // tps is over the longest of the clocks, and threads whose transactions were short wait for it.
  // The sum of the threads' rates is what they make in equal times.
  double rates = 0;
  for (const sim::thread_report& one : result.run.machine.threads)
    rates += 1 / static_cast<double>(one.cycles);
  document["tps_of_threads"] = result.run.mops * 1e6 * rates *
                               static_cast<double>(result.run.machine.cycles) /
                               static_cast<double>(result.run.machine.threads.size());
  for (std::size_t k = 0; k < Kinds; ++k) {
    document["by_type"][std::string(names[k])] = {{"transactions", result.transactions[k]},
                                                  {"ns_p50", result.latency[k].percentile(50)},
                                                  {"ns_p99", result.latency[k].percentile(99)}};
  }
  document["rolled_back"] = result.rolled_back;
  document["repeated"] = result.repeated;
  document["commit_regions"] = counts_of(result.commits);
  document["index_regions"] = counts_of(result.look_ups);
  document["violations"] = ordered_json::array();  // else there is no document
}

ordered_json document_of(const bench::tpcc_request& wanted, const bench::tpcc_result& result) {
  ordered_json document = document_of(wanted.run, result.run);
  document["warehouses"] = wanted.size.warehouses;
  document["customers"] = wanted.size.customers;
  document["items"] = wanted.size.items;
  document["deliveries"] = wanted.size.districts_deliver_alone ? "district" : "warehouse";
  document["suppliers"] = wanted.size.terminals_stay_home ? "home" : "any";
  document["order_numbers"] = wanted.size.terminals_number_orders ? "terminal" : "district";
  document["readers"] =
      wanted.how == bench::tpcc::readers::as_snapshots ? "snapshots" : "transactions";
  add_transactions(document, result, bench::tpcc::kind_names);
  return document;
}

ordered_json document_of(const bench::ycsb_txn_request& wanted,
                         const bench::ycsb_txn_result& result) {
  ordered_json document = document_of(wanted.run, result.run);
  document["ops_per_txn"] = wanted.is.operations;
  document["theta"] = wanted.is.theta;
  add_transactions(document, result, bench::ycsb_txn::kind_names);
  return document;
}

ordered_json document_of(const bench::txbench_request& wanted,
                         const bench::txbench_result& result) {
  ordered_json document = document_of(wanted.run, result.run);
  const sim::thread_report all = result.run.machine.total();
  document["rows"] = wanted.is.rows;
  document["think_cycles"] = wanted.think_cycles;
  document["pages"] = wanted.pages;
  document["tps"] = result.run.mops * 1e6;
  const char* const names[bench::txbench::kinds] = {"read_only", "read_update"};
  for (std::size_t k = 0; k < bench::txbench::kinds; ++k) {
    document["by_type"][names[k]] = {{"transactions", result.latency[k].samples()},
                                     {"ns_p50", result.latency[k].percentile(50)},
                                     {"ns_p99", result.latency[k].percentile(99)}};
    document[std::string(names[k]) + "_us"] =
        share(static_cast<double>(result.cycles[k]),
              static_cast<double>(result.latency[k].samples() * wanted.run.machine.megahertz));
  }
  document["idle_cycles"] = result.idle_cycles;
  // Of the server's CPUs, as its counters see them: without threads that sleep or wait for a CPU.
  const auto busy = static_cast<double>(all.running_cycles());
  const double cpus = static_cast<double>(std::min<std::uint64_t>(
                          wanted.run.machine.hardware_threads(), wanted.run.threads)) *
                      static_cast<double>(result.run.machine.cycles);
  document["busy_pct"] = 100 * share(busy, cpus);
  document["transactional_pct_of_busy"] =
      100 * share(static_cast<double>(all.transactional_cycles), busy);
  document["aborted_pct_of_busy"] = 100 * share(static_cast<double>(all.aborted_cycles), busy);
  document["repeated"] = result.repeated;
  document["locks"] = {
      {"requests", result.locks.requests}, {"held_already", result.locks.held_already},
      {"implicit", result.locks.implicit}, {"granted_at_once", result.locks.granted_at_once},
      {"waits", result.locks.waits},       {"deadlocks", result.locks.deadlocks},
      {"timeouts", result.locks.timeouts}, {"conversions", result.locks.conversions},
      {"searches", result.locks.searches}, {"waited_ns", result.locks.waited_ns}};
  document["violations"] = ordered_json::array();  // else there is no document
  return document;
}

// Writes the timeline, if the request has one.
void trace(const ordered_json& request, const bench::sim_request& wanted,
           const sim::report& report) {
  if (!request.contains("trace_file")) return;
  const std::string title = wanted.index + ", " + wanted.workload + ", " + wanted.dist;
  bench::write_trace(request.at("trace_file"), wanted.machine, title, report, wanted.cpus != 0);
}

// This program and the machine's library. What a run gives depends on both.
std::vector<std::string> files_of_program() {
  std::vector<std::string> files{std::filesystem::read_symlink("/proc/self/exe")};
  ::dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* found) {
        const std::string name = object->dlpi_name;
        if (name.find("/libelidex_") != std::string::npos)
          static_cast<std::vector<std::string>*>(found)->push_back(name);
        return 0;
      },
      &files);
  return files;
}

void write_line(const ordered_json& line) {
  std::cout << line.dump() << '\n' << std::flush;
}

// Calls fn() and returns its status. What fn() throws, failed() gets as a message with its status.
template <class Fn, class Failed>
int status_of(const Fn& fn, const Failed& failed) {
  const auto ended = [&](const std::exception& error, int status) {
    failed(error.what(), status);
    return status;
  };
  try {
    return fn();
  } catch (const bench::bad_input& error) {
    return ended(error, 2);
  } catch (const sim::bad_machine& error) {
    return ended(error, 2);
  } catch (const std::invalid_argument& error) {
    return ended(error, 2);
  } catch (const nlohmann::json::exception& error) {
    return ended(error, 2);  // a request without a field, or with one of another type
  } catch (const std::exception& error) {
    return ended(error, 1);
  }
}

void tell(const char* why, int /*status*/) {
  std::fprintf(stderr, "%s\n", why);
}

int run_loaded(bench::loaded_index& loaded, const ordered_json& request,
               const bench::sim_request& wanted) {
  const bench::sim_result result = loaded.run(wanted);
  trace(request, wanted, result.machine);
  write_line(document_of(wanted, result));
  return std::cout ? 0 : 1;
}

// Requests that load alike. `apart`: each in a child process, which tells what went wrong in its
// line. A run apart gives what it gives otherwise, because its data has the same addresses: between
// the runs nothing may allocate the machine's memory, and both kinds run in the same frames of the
// stack.
int answer_runs(const ordered_json& requests, bool apart) {
  if (!requests.is_array()) throw bench::bad_input("runs: expected a list of requests");
  const std::vector<bench::sim_request> wanted = outside_the_machine([&] {
    std::vector<bench::sim_request> all;
    for (const ordered_json& one : requests) all.push_back(request_of(one));
    return all;
  });
  if (wanted.empty()) throw bench::bad_input("runs: there is none");
  for (std::size_t i = 1; i < wanted.size(); ++i) {
    if (!bench::load_alike(wanted.front(), wanted[i]))
      throw bench::bad_input("runs: they do not load alike");
  }
  int status = 0;
  const auto run_all = [&](bench::loaded_index& loaded) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const pid_t child = apart ? ::fork() : 0;
      if (child == 0) {
        if (apart) prctl(PR_SET_PDEATHSIG, SIGKILL);
        status = status_of([&] { return run_loaded(loaded, requests[i], wanted[i]); },
                           [&](const char* why, int of_run) {
                             if (!apart) return tell(why, of_run);
                             write_line({{"failed", why}, {"status", of_run}});
                           });
        if (apart) std::_Exit(std::cout ? 0 : 1);
        continue;
      }
      int ended = 0;
      if (child < 0 || ::waitpid(child, &ended, 0) != child || ended != 0) {
        // A child that was killed, for want of memory perhaps, has written no line.
        std::printf("{\"failed\": \"the run ended with status %d\", \"status\": 1}\n", ended);
        if (std::fflush(stdout) != 0) throw std::runtime_error("cannot write to standard output");
      }
    }
  };
  bench::load_on_machine(wanted.front(), std::ref(run_all));
  return status;
}

int answer(const ordered_json& request) {
  ordered_json document;
  if (request.contains("list")) {
    for (const bench::index_info& one : bench::indexes()) document["indexes"].push_back(one.name);
    for (const std::string_view one : bench::databases_on_machine()) {
      document["indexes"].push_back(one);
      document["databases"]["tpcc"].push_back(one);
    }
    for (const std::string_view one : bench::ycsb_txn_databases_on_machine())
      document["databases"]["ycsb-txn"].push_back(one);
    for (const std::string_view one : bench::lock_variants_on_machine())
      document["indexes"].push_back(one);
    document["files"] = files_of_program();
  } else if (request.contains("experiment")) {
    const auto [which, id] = outside_the_machine([&] {
      return std::pair(machine_of(request), request.at("experiment").get<std::string>());
    });
    document = bench::run_experiment(id, which, request.value("full", false),
                                     request.value("seed", std::uint64_t{1}));
  } else if (request.contains("runs")) {
    return answer_runs(request.at("runs"), true);
  } else if (request.at("workload") == "tpcc") {
    const bench::tpcc_request wanted =
        outside_the_machine([&] { return tpcc_request_of(request); });
    const bench::tpcc_result result = bench::run_tpcc_on_machine(wanted);
    document = document_of(wanted, result);
    trace(request, wanted.run, result.run.machine);
  } else if (request.at("workload").get<std::string>().starts_with(ycsb_txn_prefix)) {
    const bench::ycsb_txn_request wanted =
        outside_the_machine([&] { return ycsb_txn_request_of(request); });
    const bench::ycsb_txn_result result = bench::run_ycsb_txn_on_machine(wanted);
    document = document_of(wanted, result);
    trace(request, wanted.run, result.run.machine);
  } else if (request.at("workload") == "txbench") {
    const bench::txbench_request wanted =
        outside_the_machine([&] { return txbench_request_of(request); });
    const bench::txbench_result result = bench::run_txbench_on_machine(wanted);
    document = document_of(wanted, result);
    trace(request, wanted.run, result.run.machine);
  } else {
    return answer_runs(outside_the_machine([&] { return ordered_json::array({request}); }), false);
  }
  write_line(document);
  return std::cout ? 0 : 1;
}

int run() {
  return status_of(
      [] {
        const ordered_json request =
            outside_the_machine([] { return ordered_json::parse(std::cin, nullptr, false); });
        if (request.is_discarded() || !request.is_object()) {
          throw bench::bad_input(
              "elidex-sim: this program runs on the simulated machine; start it with 'elidex sim'");
        }
        return answer(request);
      },
      tell);
}

}  // namespace

// On a thread of its own: where the first thread's stack begins in its page is left to chance, and
// to the environment.
int main() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // ends with its parent, instead of running on for minutes
  int status = 1;
  std::thread([&status] { status = run(); }).join();
  return status;
}
