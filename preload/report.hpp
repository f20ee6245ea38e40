// The table of what the program's locks did, by call site.
//
// Written at the end of the process and on a signal, by the same code: no malloc, no stdio, no
// lock, write(2) only. While one is being written, another one that is asked for doesn't happen.
//
// Thread-safety: any thread, in signal handlers too. errno is kept.
#pragma once

#include "preload/settings.hpp"

namespace elidex::preload {

enum class occasion : unsigned char { end_of_process, signal };

// Called once at the start: what the header line counts from, and which file standard error is.
// `elision` says in words what becomes of elision.
void prepare_report(const settings& wanted, const char* elision) noexcept;

// In the child of a fork.
void report_belongs_to_child() noexcept;

// At the end of a process that took no lock, nothing is written.
void write_report(occasion why) noexcept;

}  // namespace elidex::preload
