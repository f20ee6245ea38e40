#pragma once
// Writes the transactions of a simulated run as a timeline for Perfetto and chrome://tracing.
//
//   write_trace("collapse.json", which, "btree/htm-dbx, a, zipf:0.99", report);
//
// The report comes from a run with run_options::record_events. The file has a track per thread,
// named by its place in the machine unless threads take turns, and a bar per transaction. Times
// are simulated microseconds. The args of an abort name its cause (docs/MACHINE.md lists them).
// Equal runs write equal files: an address is written only where it is the same in every run.
//
// Errors: std::runtime_error where the file cannot be written.

#include <string>

#include "machine/simulation.hpp"

namespace elidex::bench {

void write_trace(const std::string& file, const sim::machine& which, const std::string& title,
                 const sim::report& report, bool threads_take_turns = false);

}  // namespace elidex::bench
