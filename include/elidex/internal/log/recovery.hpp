// Reads a log's directory after a crash: the newest checkpoint, then the log up to its last whole
// batch.
//
//   auto directory = open_log_directory("/var/lib/store");
//   const recovered_log found = recover_log(*directory, fingerprint, [&](const log_entry& entry) {
//     row* there = tables[entry.table].find(entry.key);
//     // the row is from a checkpoint that read it later
//     if (there != nullptr && there->stamp > entry.stamp) return;
//     switch (entry.operation) {
//       case log_operation::upsert: ...upsert(entry.key, entry.row, entry.stamp); break;
//       case log_operation::erase: ...erase(entry.key); break;
//       case log_operation::change:
//         if (there != nullptr) apply_change(there->bytes, entry), there->stamp = entry.stamp;
//     }
//   });
//   commit_clock clock;
//   redo_log log(clock, *directory, found, options);  // continues in a new segment
//
// What the callback gets: first the rows of the checkpoint, all of them upserts, then the log,
// batch by batch in ascending order. In each batch a key has its last upsert or erase, if there is
// one, and the changes after it. They come by ascending stamps, whichever threads wrote them.
// Entries of groups before the one at which the checkpoint began are left out. The rule of the
// example is sufficient, and no list of erased rows is needed.
//
// recover_log() writes nothing. A killed process may leave data in the system's cache only, and a
// power failure may still lose its last groups. The redo_log that continues syncs this data first.
// So the recovered state is durable once that constructor has returned, and no caller is told of it
// before.
//
// Thread-safety: one thread recovers a directory while no other thread writes to it.
// Errors: the callback's entries up to the error must not be used. The files are unchanged.
//   log_error          damaged, other_version, other_schema, other_compression
//   std::system_error  from the files
//   others             what the callback throws
//
// Implementation notes
// A batch is the commit groups that one fsync makes durable together: usually one. Where this
// header and the files name a group, they mean the last group of a batch.
//
// Why the example's rule is sufficient. An entry that is older than the present row precedes the
// moment at which the checkpoint read the row. Every later change follows in the log. If a row was
// erased before the checkpoint reached its place, the log has that erase after every older upsert.
//
// Why changes are sufficient. A change needs the row as it was before it. There are three cases for
// the present row:
// - It is the checkpoint's, with stamp c. The row contains all its changes up to c, and they are
//   skipped. Those after c have a group >= B, or c would not be the last one before the scan
//   (checkpoint.hpp). So they come, in order.
// - It is from an upsert of the log. All changes after that upsert come.
// - There is no row. Then the scan did not see it, although the log begins with a change of it. The
//   row was present at the beginning of B and was erased before the scan reached its place. So the
//   erase follows in the log, and a new row begins with an upsert after it. The changes before that
//   have no effect.
//
// Where the log ends. Every segment but the newest must be whole up to the length in the next one's
// header. In the newest segment blocks are read as long as they are whole. At the first block that
// is not whole, the log has ended if a crash can leave the file like that. That is the case unless
// something behind it proves that it had been synced:
// - Every block contains the last group that had been synced when it was written. After each sync
//   the logger writes a small block that contains only this, and does not sync it.
// - Recovery searches for block headers behind the bad place by their checksum, at every offset. If
//   one of them names a synced group that has not been read whole, synced bytes have been lost:
//   log_error, damaged.
// - One kind of damage looks like a crash: damage in the last group, if the bytes behind it are
//   gone too, as after a truncation.
//
// A batch counts if its end block is whole and all its blocks are, as the end block counts them. So
// a batch is taken whole or not at all. The same holds for every transaction, because all its
// entries have one group.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "elidex/internal/log/log_files.hpp"
#include "elidex/internal/log/log_format.hpp"

namespace elidex::internal {

struct recovered_log {
  struct segment {
    std::uint64_t number = 0;
    std::uint64_t last_group = 0;  // with entries, in it or before it
  };

  std::uint64_t durable_group = 0;  // the last group with entries; 0: there was nothing
  std::uint64_t first_group = 1;    // for the next commits: after every group in the files
  std::uint64_t checkpoint = 0;     // its number; 0: none
  std::uint64_t checkpoint_rows = 0;
  std::uint64_t entries = 0;     // passed to the callback from the log
  std::uint64_t torn_bytes = 0;  // behind the log's end

  // Where a redo_log continues.
  std::vector<segment> segments;  // present and valid, ascending
  std::uint64_t whole_bytes = 0;  // the last one's valid length
  std::uint64_t next_segment = 1;
  bool next_is_torn = false;            // its file exists, without a whole header
  std::vector<std::string> unfinished;  // checkpoints that were never finished
};

recovered_log recover_log(log_directory& directory, std::uint64_t fingerprint,
                          const std::function<void(const log_entry&)>& apply);

}  // namespace elidex::internal
