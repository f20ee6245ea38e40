// Copies of a log's files: backups, and earlier states.
//
//   // the log from segment 7 on, while it is written
//   copy_segments(*from, segments_up_to(*from, 7, durable_group), *to);
//   // adds to a copy what the log has gained since
//   update_copy(*from, durable_group, fingerprint, *to);
//   restore_log(*from, 4711, fingerprint, *to);  // the state of commit group 4711
//
// Thread-safety: any thread. If another process removes a file meanwhile, the call throws.
// Errors: std::system_error, std::bad_alloc. The copy may then be incomplete.
//
// Implementation notes
// Segments get their names when all of them are copied and synced. The first one gets its name when
// the others' names are durable. So a copy that was interrupted has all of the log, or lacks the
// first segment. recover_log() refuses a log without it, and a directory with an unfinished copy of
// a segment or with an unfinished checkpoint alone. The checkpoint gets its name last
// (checkpoint.hpp).
// What lies behind the last durable group is not copied: after a power failure the log may have
// something else there, and then the copy could not be updated.
//
// update_copy() never writes to a file of the copy: after a power failure a block that was not
// synced in the copy could look like damage, because later blocks say that it was synced in the
// original. It copies a segment under another name, which recovery ignores, syncs it, and renames
// it. It does so segment by segment, ascending. So the copy is always a directory that a power
// failure could have left of the original.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "elidex/internal/log/log_files.hpp"
#include "elidex/internal/log/log_format.hpp"

namespace elidex::internal {

inline constexpr std::uint64_t whole_file = std::numeric_limits<std::uint64_t>::max();

// Copies and syncs the file, or so many bytes of it. Returns the copy's size. The name is durable
// when to.sync() has succeeded.
std::uint64_t copy_file(log_directory& from, const std::string& name, log_directory& to,
                        const std::string& as, std::uint64_t bytes_max = whole_file);

// Which part of a log.
struct segment_range {
  std::uint64_t first = 1;  // segment
  std::uint64_t last = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t bytes_of_last = whole_file;
};
// The segments from `first` on, without what the newest has behind this group.
segment_range segments_up_to(log_directory& from, std::uint64_t first, std::uint64_t group);
// Copies segments to an empty directory. Returns their size.
std::uint64_t copy_segments(log_directory& from, const segment_range& which, log_directory& to);

// Copies the log and all checkpoints of a directory to which no one writes. `to` is empty. If it
// throws, it has removed the copy, as far as that works.
void copy_all(log_directory& from, log_directory& to);

// Throws std::system_error (directory_not_empty) if the directory has files.
void check_is_empty(log_directory& to, const char* function);
// Removes the files of a copy that could not be completed, as far as that works.
void remove_copy(log_directory& from) noexcept;

// Adds to a copy of the log what the log has gained since, up to `group`, which must be durable: a
// power failure may remove later groups from the log. Returns the number of bytes. Throws
// std::system_error (invalid_argument) and changes nothing if `to` is not a copy of the log, was
// changed since, or is so old that the log has removed what it lacks. The same if a table has other
// columns or another number in the log's newest checkpoint than in the copy's: the log does not
// describe that change.
std::uint64_t update_copy(log_directory& from, std::uint64_t group, std::uint64_t fingerprint,
                          log_directory& to);

// A file from which a directory's states can be restored.
struct kept_file {
  file_kind kind = file_kind::segment;
  std::uint64_t number = 0;
  // Of a segment: the groups of its entries, none if `last_group` is less. Of a checkpoint: the
  // earliest state that can be restored with it, in both.
  std::uint64_t first_group = 0;
  std::uint64_t last_group = 0;
  std::uint64_t bytes = 0;
};
// Returns the checkpoints, and then the segments, each ascending. Throws log_error for a damaged
// file, too.
std::vector<kept_file> kept_files(log_directory& directory, std::uint64_t fingerprint);

// Copies what recovery needs for the state after `group`: the newest checkpoint that ends at or
// before it, and the log from there up to the group. `to` is empty. Returns the last group of the
// copy, the end of a batch: `group`, or the last one before it that has entries. Throws
// std::system_error (invalid_argument), and copies nothing, if the directory no longer has the
// state. Throws log_error for a damaged file.
std::uint64_t restore_log(log_directory& from, std::uint64_t group, std::uint64_t fingerprint,
                          log_directory& to);

}  // namespace elidex::internal
