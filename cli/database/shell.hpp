#pragma once
// elidex db shell: commands that look up and change rows, one on each line.
//
//   get accounts 7
//   put accounts 7 {"owner": "Ada"}
//
// On a terminal it shows a prompt, and continues after an error. From a file or a pipe the first
// error ends it.
//
// Thread-safety: none.

#include <iosfwd>

#include "cli/database/stored_tables.hpp"

namespace elidex::cli {

/// Returns the exit status: 0, or 1 after an error in a file. Without `may_write` it refuses put
/// and erase.
int run_shell(stored_tables& in, std::istream& commands, bool may_write);

}  // namespace elidex::cli
