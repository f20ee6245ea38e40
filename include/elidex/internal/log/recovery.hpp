// What a log's folder says after a crash: the newest checkpoint, and the log from there to the last
// whole epoch.
//
//   auto folder = open_log_folder("/var/lib/store");
//   const recovered_log found = recover_log(*folder, fingerprint, [&](const
//       log_entry& entry) {
//     row* there = tables[entry.table].find(entry.key);
//     // from a checkpoint that saw a later moment
//     if (there != nullptr && there->stamp > entry.stamp) return;
//     switch (entry.operation) {
//       case log_operation::upsert: ...upsert(entry.key, entry.row, entry.stamp); break;
//       case log_operation::erase: ...erase(entry.key); break;
//       case log_operation::change: if (there != nullptr) apply_change(there->bytes,
//           entry), there->stamp = entry.stamp;
//     }
//   });
//   commit_clock epochs;
//   redo_log log(epochs, *folder, found, options);  // goes on in a new segment
//
// What the callback gets: first the rows of the checkpoint, all of them puts, then the log, group
// by group of epochs ascending. Of one key there are in each group the last put or erase, if there
// is one, and the changes behind it, by ascending stamps, whichever threads wrote them. So the rule
// of the example is enough, and nobody has to remember what has been erased: an entry that is older
// than the row that is there comes only from before the moment at which the checkpoint saw that
// row, and everything later comes later. (Were a row erased before the checkpoint saw its place,
// the log has that erase behind every older put.) Entries of epochs before the one at which the
// checkpoint began are left out.
//
// Why changes are enough. A change finds the row as it was before it. If the row that is there is
// of the checkpoint, with stamp c, all its changes up to c are in it, and are skipped; those behind
// c have an epoch >= B or c would not be the last one before the scan (checkpoint.hpp), so they
// come, in order. If it is of a put of the log, all changes behind that put come. If there is no
// row, the scan did not see it, though the log begins with a change of it: it was there at the
// beginning of B and was erased before the scan saw its place, so the erase follows in the log, and
// whatever makes the row anew is a put behind that. Until then its changes are of no use.
//
// What is the end of the log? Segments but the newest must be whole up to the length that the next
// one's header says. In the newest one blocks are read as long as they are whole. Behind the first
// one that is not, the log has ended if that is what a crash can leave: if nothing behind it says
// that it had been synced. Every block says which epochs had been synced when it was written, and
// after each sync a small block says just that (without being synced itself). If any block header
// behind the bad place, found by its checksum at whatever offset, tells of a synced epoch that has
// not been read whole, then bytes have been lost that were safe: log_error, damaged. What cannot be
// told apart from a crash: damage in the last epoch if the bytes behind it are gone too, as after a
// truncation. A group counts if its end block is whole and all its blocks are, as the end block
// counts them. So a group is taken whole or not at all, and with it every transaction, whose
// entries all have one epoch. Below, and in the files, "epoch" is a group's name, its last epoch.
//
// Errors: log_error: damaged, other_version, other_schema; std::system_error from the files; what
// the callback throws. What the callback has got until then is worth nothing; the files are as they
// were. Nothing is written here. What a killed process has left may be in the system's cache only,
// and a power failure may still take its last epochs: the redo_log that goes on syncs it first, so
// the recovered state is durable when that one's constructor has returned, and nobody is told of it
// before. Thread-safety: a folder is recovered by one thread while nobody writes into it.
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
    std::uint64_t last_epoch = 0;  // that has entries, in it or before it
  };

  std::uint64_t durable_epoch = 0;  // the last epoch with entries; 0: there was nothing
  std::uint64_t first_epoch = 1;    // for the next commits: later than every epoch in the files
  std::uint64_t checkpoint = 0;     // its number; 0: there is none
  std::uint64_t checkpoint_rows = 0;
  std::uint64_t entries = 0;     // handed over from the log
  std::uint64_t torn_bytes = 0;  // behind the log's end

  // Where a redo_log goes on.
  std::vector<segment> segments;  // that are there and count, ascending
  std::uint64_t whole_bytes = 0;  // of the last of these
  std::uint64_t next_segment = 1;
  bool next_is_torn = false;            // a file of that name is there, without a whole header
  std::vector<std::string> unfinished;  // checkpoints that were never finished
};

recovered_log recover_log(log_folder& folder, std::uint64_t fingerprint,
                          const std::function<void(const log_entry&)>& apply);

}  // namespace elidex::internal
