#include "elidex/internal/log/backup.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <system_error>
#include <utility>

#include "elidex/internal/log/log_input.hpp"
#include "elidex/internal/log/log_writer.hpp"

namespace elidex::internal {
namespace {

// Returns the numbers of the files of a kind, ascending.
std::vector<std::uint64_t> numbers_in(log_directory& directory, file_kind kind) {
  std::error_code error;
  std::vector<std::uint64_t> numbers;
  for (const std::string& name : directory.names(error)) {
    if (const auto number = number_of(kind, name)) numbers.push_back(*number);
  }
  throw_if(error, "list", "the log directory");
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::vector<std::string> files_in(log_directory& directory) {
  std::error_code error;
  std::vector<std::string> names = directory.names(error);
  throw_if(error, "list", "the copy's directory");
  std::erase(names, ".");
  std::erase(names, "..");
  return names;
}

[[noreturn]] void refuse(const std::string& why) {
  throw std::system_error(std::make_error_code(std::errc::invalid_argument), "elidex: " + why);
}

void rename_and_sync(log_directory& in, const std::string& from, const std::string& to) {
  std::error_code error;
  in.rename(from, to, error);
  throw_if(error, "rename to", to);
  in.sync(error);
  throw_if(error, "sync the directory of", to);
}

}  // namespace

std::uint64_t copy_file(log_directory& from, const std::string& name, log_directory& to,
                        const std::string& as, std::uint64_t bytes_max) {
  std::error_code error;
  const std::unique_ptr<log_file> source = from.open(name, error);
  throw_if(error, "open", name);
  const std::unique_ptr<log_file> copy = to.create(as, error);
  throw_if(error, "create", as);
  std::vector<std::byte> bytes(std::size_t{1} << 20);
  std::uint64_t copied = 0;
  while (copied < bytes_max) {
    const auto wanted =
        static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), bytes_max - copied));
    const std::size_t read = read_whole(*source, copied, std::span(bytes).first(wanted), error);
    throw_if(error, "read", name);
    if (read == 0) break;
    write_whole(*copy, std::span(bytes).first(read), error);
    throw_if(error, "write", as);
    copied += read;
  }
  copy->sync(error);
  throw_if(error, "sync", as);
  return copied;
}

std::uint64_t copy_segments(log_directory& from, const segment_range& which, log_directory& to) {
  std::vector<std::uint64_t> numbers;
  // A listing may miss a segment that has been made meanwhile, and have the next one.
  for (bool complete = false; !complete;) {
    numbers = numbers_in(from, file_kind::segment);
    std::erase_if(numbers, [&](auto one) { return one < which.first || one > which.last; });
    if (numbers.empty() || numbers.front() != which.first)
      throw_if(std::make_error_code(std::errc::no_such_file_or_directory), "open",
               name_of(file_kind::segment, which.first));
    complete = numbers.back() - which.first + 1 == numbers.size();
  }
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
      throw_if(error, "sync the directory of", name);
    }
    to.rename(unfinished_copy_name(number), name, error);
    throw_if(error, "rename to", name);
  }
  return copied;
}

void check_is_empty(log_directory& to, const char* function) {
  const std::vector<std::string> there = files_in(to);
  if (!there.empty())
    throw std::system_error(
        std::make_error_code(std::errc::directory_not_empty),
        std::string(function) + ": a directory with " + there.front() + " (expected none)");
}

// The first segment goes first, and recovery refuses what is left without it. So no part of the
// files is taken for a copy, wherever this ends.
void remove_copy(log_directory& from) noexcept {
  try {
    std::error_code error;
    std::vector<std::string> names = files_in(from);
    const auto others = std::partition(names.begin(), names.end(), [](const std::string& name) {
      return number_of(file_kind::segment, name).has_value();
    });
    std::sort(names.begin(), others);
    for (auto name = names.begin(); name != names.end() && !error; ++name) {
      if (name == others) from.sync(error);
      if (!error) from.remove(*name, error);
    }
  } catch (const std::exception&) {
    // The files stay as they are. Recovery refuses them, or they are whole.
  }
}

// --- Updates of a copy ---

namespace {

// Whether the copy's file is the beginning of the original.
bool is_beginning_of(log_directory& original, log_directory& copy, const std::string& name) {
  const log_input whole(original, name);
  const log_input part(copy, name);
  if (part.size() > whole.size()) return false;
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

}  // namespace

std::uint64_t update_copy(log_directory& from, log_directory& to) {
  const std::vector<std::uint64_t> there = numbers_in(to, file_kind::segment);
  if (there.empty()) refuse("the copy has no log (expected a backup of this database)");
  const std::uint64_t first = there.back();
  std::vector<std::uint64_t> numbers = numbers_in(from, file_kind::segment);
  std::erase_if(numbers, [&](std::uint64_t one) { return one < first; });
  const std::string name = name_of(file_kind::segment, first);
  if (numbers.empty() || numbers.front() != first)
    refuse("the log no longer has " + name +
           ", which the copy ends with (expected a later copy; make a new one)");
  if (!is_beginning_of(from, to, name))
    refuse("the copy's " + name + " is not the log's (expected a backup that was not changed)");
  std::error_code error;
  for (const std::string& other : to.names(error)) {
    if (is_unfinished(other)) to.remove(other, error);  // of an update that was interrupted
  }
  throw_if(error, "list", "the copy");
  std::uint64_t gained = 0;
  const std::uint64_t had = log_input(to, name).size();
  for (const std::uint64_t number : numbers) {
    const std::string unfinished = unfinished_name(number);
    gained += copy_file(from, name_of(file_kind::segment, number), to, unfinished);
    rename_and_sync(to, unfinished, name_of(file_kind::segment, number));
  }
  return gained - had;
}

// --- Earlier states ---

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

// The earliest state that recovery accepts with a checkpoint.
std::uint64_t earliest_group(const end_counts& end) {
  return std::max(end.last_group, end.durable_group);
}

// The segments from `first` on. The newest is left out while it is being made.
std::vector<open_file> open_segments(log_directory& from, std::uint64_t first,
                                     std::uint64_t fingerprint) {
  std::vector<open_file> opened;
  const std::vector<std::uint64_t> numbers = numbers_in(from, file_kind::segment);
  for (const std::uint64_t number : numbers) {
    if (number < first) continue;
    log_input file(from, name_of(file_kind::segment, number));
    const parsed_file_header parsed = read_header(file, file_kind::segment);
    if (number == numbers.back() && is_being_made(file, parsed, number)) break;
    check_whole_header(file, parsed, number, fingerprint);
    opened.push_back({number, std::move(file), parsed});
  }
  return opened;
}

// Where the batches up to a group end in a segment.
struct batches_end {
  std::uint64_t group;
  std::uint64_t bytes;
  bool is_followed;  // by a batch of a later group
};
batches_end find_end(const std::vector<open_file>& segments, std::size_t i, std::uint64_t group) {
  const open_file& segment = segments[i];
  const bool is_last = i + 1 == segments.size() || segments[i + 1].number != segment.number + 1;
  const std::uint64_t limit =
      is_last ? segment.file.size() : segments[i + 1].parsed.header.previous_bytes;
  batches_end found{segment.parsed.header.durable_group, file_header_bytes, false};
  std::uint64_t offset = file_header_bytes;
  for (log_block next; read_block(segment.file, offset, limit, segment.parsed, next);) {
    offset = next.end();
    if (next.header.kind != block_kind::end) continue;
    if (next.header.group > group) {
      found.is_followed = true;
      return found;
    }
    found.group = next.header.group;
    found.bytes = offset;
  }
  if (!is_last && offset != limit) segment.file.damaged(offset, "no whole batch lies there");
  return found;
}

[[noreturn]] void refuse_state(std::uint64_t group) {
  refuse("the directory does not have the state of group " + std::to_string(group) +
         " any more (expected a later group)");
}

}  // namespace

std::vector<kept_file> kept_files(log_directory& directory, std::uint64_t fingerprint) {
  std::vector<kept_file> files;
  for (const std::uint64_t number : numbers_in(directory, file_kind::checkpoint)) {
    const open_file one = open_one(directory, file_kind::checkpoint, number, fingerprint);
    const std::uint64_t group = earliest_group(end_of(one));
    files.push_back({file_kind::checkpoint, number, group, group, one.file.size()});
  }
  const std::vector<open_file> segments = open_segments(directory, 0, fingerprint);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const open_file& one = segments[i];
    const std::uint64_t last = find_end(segments, i, whole_file).group;
    files.push_back({file_kind::segment, one.number, one.parsed.header.durable_group + 1, last,
                     one.file.size()});
  }
  return files;
}

std::uint64_t restore_log(log_directory& from, std::uint64_t group, std::uint64_t fingerprint,
                          log_directory& to) {
  check_is_empty(to, "elidex: restore()");
  std::uint64_t checkpoint = 0;
  std::uint64_t needed = 0;  // by the checkpoint
  std::uint64_t reached = 0;
  segment_range which;
  for (const std::uint64_t number : numbers_in(from, file_kind::checkpoint)) {
    const open_file one = open_one(from, file_kind::checkpoint, number, fingerprint);
    const end_counts end = end_of(one);
    if (earliest_group(end) > group) break;
    checkpoint = number;
    needed = end.durable_group;
    which.first = one.parsed.header.first_segment;
  }
  const std::vector<open_file> segments = open_segments(from, which.first, fingerprint);
  if (segments.empty()) refuse_state(group);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    // The files between were removed, by a checkpoint that did not keep the history.
    if (segments[i].number != which.first + i) refuse_state(group);
    const batches_end end = find_end(segments, i, group);
    which.last = segments[i].number;
    which.bytes_of_last = end.bytes;
    if (end.is_followed || i + 1 == segments.size()) {
      if (end.group < needed) segments[i].file.damaged(end.bytes, "the checkpoint needs more");
      reached = end.group;
      break;
    }
  }
  try {
    if (checkpoint != 0)
      copy_file(from, name_of(file_kind::checkpoint, checkpoint), to, unfinished_name(checkpoint));
    copy_segments(from, which, to);
    std::error_code error;
    to.sync(error);
    throw_if(error, "sync", "the directory of the copy");
    if (checkpoint != 0)
      rename_and_sync(to, unfinished_name(checkpoint), name_of(file_kind::checkpoint, checkpoint));
  } catch (...) {
    remove_copy(to);
    throw;
  }
  return reached;
}

}  // namespace elidex::internal
