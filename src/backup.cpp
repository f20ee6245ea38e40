#include "elidex/internal/log/backup.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "elidex/internal/log/loading.hpp"
#include "elidex/internal/log/log_input.hpp"
#include "elidex/internal/log/log_reader.hpp"
#include "elidex/internal/log/log_writer.hpp"

namespace elidex::internal {
namespace {

std::vector<std::string> files_in(log_directory& directory) {
  std::error_code error;
  std::vector<std::string> names = directory.names(error);
  throw_if(error, "list", directory);
  std::erase(names, ".");
  std::erase(names, "..");
  return names;
}

// Returns the numbers of the segments from `first` on, ascending, or nothing if `first` is missing.
// A listing may miss a segment that has been made meanwhile, and have the next one. A gap that
// stays is where the files were removed: the numbers behind it come without the gap.
std::vector<std::uint64_t> segments_from(log_directory& directory, std::uint64_t first) {
  std::vector<std::uint64_t> numbers;
  for (int listing = 0; listing < 3; ++listing) {
    numbers = numbers_in(directory, file_kind::segment);
    std::erase_if(numbers, [&](std::uint64_t one) { return one < first; });
    if (numbers.empty() || numbers.front() != first) return {};
    if (numbers.back() - first + 1 == numbers.size()) break;
  }
  return numbers;
}

// A std::system_error (invalid_argument) whose message does not end with the code's. Not made by
// make_shared, for the reason in schema.cpp.
class copy_refused : public std::system_error {
 public:
  explicit copy_refused(const std::string& what)
      : std::system_error(std::make_error_code(std::errc::invalid_argument)),
        what_(new std::string(what)) {}
  const char* what() const noexcept override { return what_->c_str(); }

 private:
  std::shared_ptr<const std::string> what_;  // copying it cannot throw
};

[[noreturn]] void refuse(const log_directory& because_of, const std::string& why) {
  throw copy_refused("elidex: " + because_of.shown() + why);
}

void rename_and_sync(log_directory& in, const std::string& from, const std::string& to) {
  std::error_code error;
  in.rename(from, to, error);
  throw_if(error, "rename to", in, to);
  in.sync(error);
  throw_if(error, "sync", in);
}

}  // namespace

std::uint64_t copy_file(log_directory& from, const std::string& name, log_directory& to,
                        const std::string& as, std::uint64_t bytes_max) {
  std::error_code error;
  const std::unique_ptr<log_file> source = from.open(name, error);
  throw_if(error, "open", from, name);
  const std::unique_ptr<log_file> copy = to.create(as, error);
  throw_if(error, "create", to, as);
  std::vector<std::byte> bytes(std::size_t{1} << 20);
  std::uint64_t copied = 0;
  while (copied < bytes_max) {
    const auto wanted =
        static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), bytes_max - copied));
    const std::size_t read = read_whole(*source, copied, std::span(bytes).first(wanted), error);
    throw_if(error, "read", from, name);
    if (read == 0) break;
    write_whole(*copy, std::span(bytes).first(read), error);
    throw_if(error, "write", to, as);
    copied += read;
  }
  copy->sync(error);
  throw_if(error, "sync", to, as);
  return copied;
}

std::uint64_t copy_segments(log_directory& from, const segment_range& which, log_directory& to) {
  std::vector<std::uint64_t> numbers = segments_from(from, which.first);
  if (numbers.empty())
    throw_if(std::make_error_code(std::errc::no_such_file_or_directory), "open", from,
             name_of(file_kind::segment, which.first));
  std::erase_if(numbers, [&](std::uint64_t one) { return one > which.last; });
  std::reverse(numbers.begin(), numbers.end());
  std::uint64_t copied = 0;
  for (const std::uint64_t number : numbers) {
    copied += copy_file(from, name_of(file_kind::segment, number), to, unfinished_copy_name(number),
                        number == which.last ? which.bytes_of_last : whole_file);
  }
  std::error_code error;
  for (const std::uint64_t number : numbers) {
    const std::string name = name_of(file_kind::segment, number);
    if (number == numbers.back()) {
      to.sync(error);
      throw_if(error, "sync", to);
    }
    to.rename(unfinished_copy_name(number), name, error);
    throw_if(error, "rename to", to, name);
  }
  return copied;
}

void check_is_empty(log_directory& to, const char* function) {
  const std::vector<std::string> there = files_in(to);
  if (!there.empty())
    throw std::system_error(std::make_error_code(std::errc::directory_not_empty),
                            std::string(function) + ": the directory contains " + there.front() +
                                " (expected an empty or new one)");
}

// The first segment goes first, durably, and recovery refuses what is left without it. So no part
// of the files is taken for a copy, wherever this ends.
void remove_copy(log_directory& from) noexcept {
  try {
    std::error_code error;
    std::vector<std::string> names = files_in(from);
    const auto others = std::partition(names.begin(), names.end(), [](const std::string& name) {
      return number_of(file_kind::segment, name).has_value();
    });
    std::sort(names.begin(), others);
    for (auto name = names.begin(); name != names.end() && !error; ++name) {
      from.remove(*name, error);
      const bool was_first = name == names.begin();
      const bool was_last_segment = std::next(name) == others;
      if (!error && (was_first || was_last_segment)) from.sync(error);
    }
  } catch (const std::exception&) {
    // The files stay as they are. Recovery refuses them, or they are whole.
  }
}

// --- The end of a state in a segment ---

namespace {

struct open_file {
  std::uint64_t number;
  log_input file;
  parsed_file_header parsed;
};

open_file open_one(log_directory& from, file_kind kind, std::uint64_t number,
                   std::uint64_t fingerprint) {
  log_input file(from, name_of(kind, number));
  const parsed_file_header parsed = read_header(file, kind);
  check_whole_header(file, parsed, number, fingerprint);
  return {number, std::move(file), parsed};
}

end_counts end_of(const open_file& checkpoint) {
  constexpr std::uint64_t end_bytes = block_header_bytes + end_counts_bytes;
  const std::uint64_t size = checkpoint.file.size();
  log_block end;
  if (size < end_bytes ||
      !read_block(checkpoint.file, size - end_bytes, size, checkpoint.parsed, end) ||
      end.header.kind != block_kind::end)
    checkpoint.file.damaged(size, "its end is missing");
  return counts_of(checkpoint.file, end);
}

// Where the batches up to a group end in a segment.
struct batches_end {
  std::uint64_t group;
  std::uint64_t bytes;
  bool is_followed;  // by a batch of a later group
};

// Reads up to `limit`, or to the end of the newest segment.
batches_end find_end(open_file& segment, std::optional<std::uint64_t> limit, std::uint64_t group) {
  batches_end found{segment.parsed.header.durable_group, file_header_bytes, false};
  std::uint64_t offset = file_header_bytes;
  const auto read_on = [&](std::uint64_t end) {
    for (log_block next; read_block(segment.file, offset, end, segment.parsed, next);) {
      offset = next.end();
      if (next.header.kind != block_kind::end) continue;
      found.is_followed = next.header.group > group;
      if (found.is_followed) return;
      found.group = next.header.group;
      found.bytes = offset;
    }
  };
  read_on(limit.value_or(segment.file.size()));
  if (found.is_followed || offset == limit.value_or(segment.file.size())) return found;
  if (limit) segment.file.damaged(offset, "no whole batch lies there");
  // A torn end, or a batch that is being written, unless blocks behind it prove that it was synced.
  // Then it was whole before they were written (log_reader.hpp).
  const std::uint64_t synced = blocks_behind(segment.file, segment.parsed, offset).synced;
  if (synced <= found.group) return found;
  segment.file.look_again();
  read_on(segment.file.size());
  if (!found.is_followed && found.group < synced)
    segment.file.damaged(offset, "group " + std::to_string(synced) + " had been synced");
  return found;
}

// How many bytes of the newest segment have the batches up to a group.
std::uint64_t end_of_group(log_directory& from, std::uint64_t segment, std::uint64_t group) {
  log_input file(from, name_of(file_kind::segment, segment));
  const parsed_file_header parsed = read_header(file, file_kind::segment);
  if (is_being_made(file, parsed, segment)) return 0;
  open_file opened{segment, std::move(file), parsed};
  return find_end(opened, std::nullopt, group).bytes;
}

}  // namespace

segment_range segments_up_to(log_directory& from, std::uint64_t first, std::uint64_t group) {
  const std::vector<std::uint64_t> numbers = segments_from(from, first);
  if (numbers.empty()) return {.first = first};
  segment_range which{.first = first, .last = numbers.back()};
  which.bytes_of_last = end_of_group(from, which.last, group);
  if (which.bytes_of_last == 0) --which.last, which.bytes_of_last = whole_file;  // being made
  return which;
}

// --- Updates of a copy ---

namespace {

// Whether the copy's file is the beginning of the original.
bool is_beginning_of(log_directory& original, log_directory& copy, const std::string& name) {
  const log_input whole(original, name);
  const log_input part(copy, name);
  if (part.size() > whole.size() || part.size() < file_header_bytes) return false;
  constexpr std::uint64_t piece = std::uint64_t{1} << 20;
  byte_buffer a;
  byte_buffer b;
  for (std::uint64_t at = 0; at < part.size(); at += piece) {
    part.read(at, piece, a);
    whole.read(at, std::min(piece, part.size() - at), b);
    const auto left = a.bytes();
    const auto right = b.bytes();
    if (!std::equal(left.begin(), left.end(), right.begin(), right.end())) return false;
  }
  return true;
}

// Returns the number of the copy's last segment.
std::uint64_t last_segment_of(log_directory& copy) {
  const std::vector<std::uint64_t> there = numbers_in(copy, file_kind::segment);
  if (there.empty()) refuse(copy, " has no log (expected a backup of this database)");
  for (std::size_t i = 0; i < there.size(); ++i) {
    if (there[i] != there.front() + i)
      throw copy_refused("elidex: " + copy.shown(name_of(file_kind::segment, there.front() + i)) +
                         " is missing (expected a backup that was not changed)");
  }
  return there.back();
}

// A commit group is a number of the log's clock, which does not count the groups that a crash took
// from the log. So after a crash the log may use numbers again that the copy's checkpoint has seen,
// and recovery of the copy would ignore them.
void check_groups_follow(log_directory& from, const std::vector<std::uint64_t>& numbers,
                         log_directory& copy) {
  const std::vector<std::uint64_t> checkpoints = numbers_in(copy, file_kind::checkpoint);
  if (checkpoints.empty()) return;
  log_input file(copy, name_of(file_kind::checkpoint, checkpoints.back()));
  const parsed_file_header its_header = read_header(file, file_kind::checkpoint);
  const std::uint64_t seen = end_of({checkpoints.back(), std::move(file), its_header}).last_group;
  for (std::size_t i = 1; i < numbers.size(); ++i) {  // the copy has the first one
    const log_input segment(from, name_of(file_kind::segment, numbers[i]));
    const parsed_file_header parsed = read_header(segment, file_kind::segment);
    if (parsed.verdict == header_verdict::whole && parsed.header.first_group <= seen)
      refuse(from, ": a crash lost commits that the copy may have (expected: make a new backup)");
  }
}

struct catalog_row {
  std::string name;
  std::string row;
};

// The rows of the newest checkpoint's catalog.
std::vector<catalog_row> newest_catalog(log_directory& of, std::uint64_t fingerprint) {
  std::vector<catalog_row> tables;
  log_reader reader(of, fingerprint, log_reader::writer::running, [](const log_entry&) {});
  std::uint64_t first_group = 0;
  reader.visit_newer_checkpoint(
      [&](const log_entry& row) {
        if (row.table != catalog_table) return false;
        tables.push_back({std::string(row.key), std::string(row.row)});
        return true;
      },
      first_group);
  return tables;
}

// A change of columns is in a checkpoint and not in the log.
void check_same_tables(log_directory& from, log_directory& copy, std::uint64_t fingerprint) {
  const std::vector<catalog_row> now = newest_catalog(from, fingerprint);
  for (const catalog_row& one : newest_catalog(copy, fingerprint)) {
    const auto found = std::find_if(now.begin(), now.end(),
                                    [&](const catalog_row& of) { return of.name == one.name; });
    if (found != now.end() && lasting_part(found->row) != lasting_part(one.row))
      refuse(
          from,
          ": " + one.name +
              ": its columns were changed after the backup was made (expected: make a new backup)");
  }
}

}  // namespace

std::uint64_t update_copy(log_directory& from, std::uint64_t group, std::uint64_t fingerprint,
                          log_directory& to) {
  const std::uint64_t first = last_segment_of(to);
  const std::string name = name_of(file_kind::segment, first);
  const std::vector<std::uint64_t> numbers = segments_from(from, first);
  if (numbers.empty() || numbers.back() - first + 1 != numbers.size())
    refuse(from, " no longer has " + name +
                     " or a later file that the copy needs (expected a newer backup; make a new "
                     "one)");
  if (!is_beginning_of(from, to, name))
    throw copy_refused("elidex: " + to.shown(name) +
                       " is not the beginning of the log's file (expected a backup that was not "
                       "changed)");
  check_groups_follow(from, numbers, to);
  check_same_tables(from, to, fingerprint);
  std::error_code error;
  for (const std::string& other : to.names(error)) {
    if (is_unfinished(other)) to.remove(other, error);  // of an update that was interrupted
  }
  throw_if(error, "list", to);
  std::uint64_t gained = 0;
  const std::uint64_t had = log_input(to, name).size();
  for (const std::uint64_t number : numbers) {
    const std::string segment = name_of(file_kind::segment, number);
    std::uint64_t bytes = whole_file;
    if (number == numbers.back()) {
      bytes = end_of_group(from, number, group);
      if (number == first) bytes = std::max(bytes, had);
    }
    if (bytes == 0) break;  // it is being made
    gained += copy_file(from, segment, to, unfinished_name(number), bytes);
    rename_and_sync(to, unfinished_name(number), segment);
  }
  return gained - had;
}

// --- Earlier states ---

namespace {

// The earliest state that recovery accepts with a checkpoint.
std::uint64_t earliest_group(const end_counts& end) {
  return std::max(end.last_group, end.durable_group);
}

// Calls fn(segment, limit) for the segments with these numbers, until it returns false. Two are
// open at a time. The newest is left out while it is being made.
template <class Fn>
void for_each_segment(log_directory& from, const std::vector<std::uint64_t>& numbers,
                      std::uint64_t fingerprint, Fn&& fn) {
  std::optional<open_file> now;
  for (std::size_t i = 0; i <= numbers.size(); ++i) {
    std::optional<open_file> next;
    if (i < numbers.size()) {
      log_input file(from, name_of(file_kind::segment, numbers[i]));
      const parsed_file_header parsed = read_header(file, file_kind::segment);
      if (i + 1 < numbers.size() || !is_being_made(file, parsed, numbers[i])) {
        check_whole_header(file, parsed, numbers[i], fingerprint);
        next.emplace(open_file{numbers[i], std::move(file), parsed});
      }
    }
    std::optional<std::uint64_t> limit;
    if (now && next && next->number == now->number + 1) limit = next->parsed.header.previous_bytes;
    if (now && !fn(*now, limit)) return;
    now = std::move(next);
  }
}

[[noreturn]] void refuse_state(const log_directory& in, std::uint64_t group) {
  refuse(in, " does not have the state of group " + std::to_string(group) +
                 " (expected a group that `elidex db history` lists)");
}

// Copies checkpoints and a part of the log. The last names come when everything else is durable.
void copy_files(log_directory& from, const std::vector<std::uint64_t>& checkpoints,
                const segment_range& log, log_directory& to) {
  try {
    for (const std::uint64_t one : checkpoints)
      copy_file(from, name_of(file_kind::checkpoint, one), to, unfinished_name(one));
    copy_segments(from, log, to);
    std::error_code error;
    to.sync(error);
    throw_if(error, "sync", to);
    for (const std::uint64_t one : checkpoints)
      rename_and_sync(to, unfinished_name(one), name_of(file_kind::checkpoint, one));
  } catch (...) {
    remove_copy(to);
    throw;
  }
}

}  // namespace

std::vector<kept_file> kept_files(log_directory& directory, std::uint64_t fingerprint) {
  std::vector<kept_file> files;
  for (const std::uint64_t number : numbers_in(directory, file_kind::checkpoint)) {
    const open_file one = open_one(directory, file_kind::checkpoint, number, fingerprint);
    const std::uint64_t group = earliest_group(end_of(one));
    files.push_back({file_kind::checkpoint, number, group, group, one.file.size()});
  }
  for_each_segment(directory, numbers_in(directory, file_kind::segment), fingerprint,
                   [&](open_file& one, std::optional<std::uint64_t> limit) {
                     const std::uint64_t last = find_end(one, limit, whole_file).group;
                     files.push_back({file_kind::segment, one.number,
                                      one.parsed.header.durable_group + 1, last, one.file.size()});
                     return true;
                   });
  return files;
}

std::uint64_t restore_log(log_directory& from, std::uint64_t group, std::uint64_t fingerprint,
                          log_directory& to) {
  check_is_empty(to, "elidex: restore()");
  std::uint64_t checkpoint = 0;
  std::uint64_t needed = 0;  // by the checkpoint
  segment_range which;
  for (const std::uint64_t number : numbers_in(from, file_kind::checkpoint)) {
    try {
      const open_file one = open_one(from, file_kind::checkpoint, number, fingerprint);
      const end_counts end = end_of(one);
      if (earliest_group(end) > group) break;
      checkpoint = number;
      needed = end.durable_group;
      which.first = one.parsed.header.first_segment;
    } catch (const log_error& error) {
      // An earlier or later one may serve.
      if (error.problem() != log_problem::damaged) throw;
    }
  }
  const std::vector<std::uint64_t> numbers = segments_from(from, which.first);
  if (numbers.empty()) refuse_state(from, group);
  std::uint64_t reached = 0;
  which.last = 0;
  for_each_segment(
      from, numbers, fingerprint, [&](open_file& one, std::optional<std::uint64_t> limit) {
        const batches_end end = find_end(one, limit, group);
        which.last = one.number;
        which.bytes_of_last = end.bytes;
        reached = end.group;
        if (end.is_followed || end.group == group) return false;
        if (one.number == numbers.back() ||
            std::binary_search(numbers.begin(), numbers.end(), one.number + 1))
          return true;
        // A checkpoint that did not keep it has removed it, or it is lost.
        throw copy_refused("elidex: " + from.shown(name_of(file_kind::segment, one.number + 1)) +
                           " is missing, so the state of group " + std::to_string(group) +
                           " cannot be made (expected a group up to " + std::to_string(end.group) +
                           ", or one after the next checkpoint)");
      });
  if (which.last == 0) refuse_state(from, group);
  if (reached < needed)
    throw log_error(
        log_problem::damaged,
        "elidex: " + from.shown() + ": the log ends at group " + std::to_string(reached) +
            ", but its checkpoint says that it had reached group " + std::to_string(needed));
  std::vector<std::uint64_t> checkpoints;
  if (checkpoint != 0) checkpoints.push_back(checkpoint);
  copy_files(from, checkpoints, which, to);
  return reached;
}

void copy_all(log_directory& from, log_directory& to) {
  check_is_empty(to, "elidex: copy_all()");
  const std::vector<std::uint64_t> log = numbers_in(from, file_kind::segment);
  if (log.empty()) refuse(from, " has no log (expected the directory of a database)");
  copy_files(from, numbers_in(from, file_kind::checkpoint), {.first = log.front()}, to);
}

}  // namespace elidex::internal
