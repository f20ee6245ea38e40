#include "bench/simulated/trace.hpp"

#include <array>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "machine/memory.hpp"

namespace elidex::bench {

namespace {

using nlohmann::ordered_json;

constexpr int process_id = 1;  // of the one process that a trace shows

ordered_json metadata(const char* what, ordered_json args) {
  return {{"name", what}, {"ph", "M"}, {"pid", process_id}, {"args", std::move(args)}};
}

std::string name_of(std::size_t thread, const sim::machine& which, bool takes_turns) {
  if (takes_turns) return "thread " + std::to_string(thread);
  const std::uint64_t core = which.core_of(thread);
  const std::uint64_t socket = core / which.cores_per_socket;
  std::string name = "thread " + std::to_string(thread);
  name += " (socket " + std::to_string(socket) + ", core " + std::to_string(core) + ")";
  return name;
}

std::string hexadecimal(std::uint64_t number) {
  std::array<char, 20> text;
  std::snprintf(text.data(), text.size(), "0x%llx", static_cast<unsigned long long>(number));
  return text.data();
}

// Who aborted it, for what, on which line, and what it cost.
ordered_json args_of(const sim::event& abort, const sim::machine& which) {
  const sim::abort_cause& cause = abort.cause;
  ordered_json args{{"cause", sim::to_string(cause.why)}, {"by_thread", abort.by}};
  if (cause.why == sim::abort_reason::explicit_) args["code"] = cause.code;
  if (cause.why == sim::abort_reason::conflict) {
    args["access"] = cause.write ? "write" : "read";
    args["shared"] = cause.same_bytes ? "the same bytes" : "the same line";
  }
  if (cause.address != 0) {
    args["where"] = abort.where;
    args["line"] = abort.line;
    const std::uint64_t line_at = cause.address / sim::line_bytes * sim::line_bytes;
    if (abort.fixed_address) args["address"] = hexadecimal(line_at);
  }
  args["wasted_cycles"] = abort.end_cycles - abort.begin_cycles + which.abort_cycles;
  return args;
}

ordered_json bar_of(const sim::event& e, const sim::machine& which) {
  const double cycles_per_us = static_cast<double>(which.megahertz);
  const bool commit = e.what == sim::event::kind::commit;
  const std::string cause(sim::to_string(e.cause.why));
  ordered_json bar{{"name", commit ? "commit" : "abort: " + cause},
                   {"ph", "X"},
                   {"pid", process_id},
                   {"tid", e.thread},
                   {"ts", static_cast<double>(e.begin_cycles) / cycles_per_us},
                   {"dur", static_cast<double>(e.end_cycles - e.begin_cycles) / cycles_per_us},
                   {"cname", commit ? "good" : "terrible"}};
  if (!commit) bar["args"] = args_of(e, which);
  return bar;
}

}  // namespace

void write_trace(const std::string& file, const sim::machine& which, const std::string& title,
                 const sim::report& report, bool threads_take_turns) {
  std::ofstream out(file);
  out << "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  out << metadata("process_name", {{"name", title + " on " + which.name}}).dump();
  for (std::size_t thread = 0; thread < report.threads.size(); ++thread) {
    for (ordered_json named :
         {metadata("thread_name", {{"name", name_of(thread, which, threads_take_turns)}}),
          metadata("thread_sort_index", {{"sort_index", thread}})}) {
      named["tid"] = thread;
      out << ",\n" << named.dump();
    }
  }
  for (const sim::event& e : report.events) out << ",\n" << bar_of(e, which).dump();
  out << "\n]}\n";
  out.close();  // before the check: it writes what is left
  if (!out) throw std::runtime_error("--trace: '" + file + "' cannot be written");
}

}  // namespace elidex::bench
