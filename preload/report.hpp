// The table of what the program's locks did, by call site.
//
// It is written at the end of the process and on a signal, by the same code: no malloc, no stdio,
// no lock, only write(2). A request during a report is ignored.
//
// Thread-safety: any thread, also in signal handlers. errno is kept.
#pragma once

#include "preload/settings.hpp"

namespace elidex::preload {

enum class occasion : unsigned char { end_of_process, signal };

// Call it once, at the start. It stores the start time for the header line, and which file standard
// error is. `elision` describes in words whether locks are elided.
void prepare_report(const settings& wanted, const char* elision) noexcept;

// In the child of a fork.
void report_belongs_to_child() noexcept;

// At the end of a process that took no lock, nothing is written.
void write_report(occasion why) noexcept;

}  // namespace elidex::preload
