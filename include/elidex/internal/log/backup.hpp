// Copies of a log's files, for backups.
//
//   copy_file(*from, "redo-00000001.log", *to, "redo-00000001.log");
//   copy_segments(*from, 7, *to);   // the log from segment 7 on, while it is being written
//
// Thread-safety: any thread. Nobody else may remove the files meanwhile.
// Errors: std::system_error, std::bad_alloc. The copy may then be incomplete.
//
// Implementation notes
// Segments get their names when all of them are copied and synced. The first one gets its name when
// the others' names are durable. So a copy that was interrupted has all of the log, or lacks the
// first segment. recover_log() refuses a log without it, and a directory with an unfinished copy of
// a segment or with an unfinished checkpoint alone. The checkpoint gets its name last
// (checkpoint.hpp).
// The segment that is being written may grow during the copy. What the copy has of its last batch
// looks like a torn end, and recovery drops it.
#pragma once

#include <cstdint>
#include <string>

#include "elidex/internal/log/log_files.hpp"

namespace elidex::internal {

// Copies and syncs the file. Returns its size. The name is durable when to.sync() has succeeded.
std::uint64_t copy_file(log_directory& from, const std::string& name, log_directory& to,
                        const std::string& as);

// Copies the segments whose number is at least `first`. Returns their size.
std::uint64_t copy_segments(log_directory& from, std::uint64_t first, log_directory& to);

}  // namespace elidex::internal
