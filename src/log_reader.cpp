#include "elidex/internal/log/log_reader.hpp"

#include <algorithm>
#include <chrono>
#include <functional>
#include <system_error>
#include <tuple>
#include <utility>

#include "elidex/internal/sync/futex.hpp"

namespace elidex::internal {
namespace {

[[noreturn]] void missing(std::uint64_t number) {
  throw log_error(log_problem::damaged,
                  "elidex: " + name_of(file_kind::segment, number) + " is missing");
}

}  // namespace

log_reader::log_reader(log_directory& directory, std::uint64_t fingerprint, writer whose,
                       entry_function apply)
    : directory_(directory), fingerprint_(fingerprint), whose_(whose), apply_(std::move(apply)) {}

recovered_log log_reader::read_all() {
  std::vector<segment> segments = open_files();
  if (checkpoint_) read_checkpoint();
  read_segments(segments);
  if (whose_ == writer::running) {
    apply_durable();
    checkpoint_.reset();
    checkpoint_seen_ = found_.checkpoint;
    if (!segments.empty()) current_.emplace(std::move(segments.back()));
  }
  found_.durable_group = whose_ == writer::running ? applied_group_ : whole_group_;
  found_.first_group = last_group_seen_ + 1;
  return found_;
}

// --- The files ---

std::vector<log_reader::segment> log_reader::open_files() {
  if (whose_ == writer::gone) return open_files_once();
  // The writer removes files when it has finished a checkpoint. Chosen: it cannot do that so often.
  constexpr int attempts_max = 100;
  constexpr std::chrono::milliseconds pause{2};
  for (int attempt = 1;; ++attempt) {
    try {
      return open_files_once();
    } catch (const std::system_error& gone) {
      if (gone.code() != std::errc::no_such_file_or_directory || attempt == attempts_max) throw;
    } catch (const log_error& gap) {
      if (gap.problem() != log_problem::damaged || attempt == attempts_max) throw;
    }
    checkpoint_.reset();
    found_ = {};
    first_segment_ = 1;
    const futex_word nobody_wakes{0};
    futex_wait_until(nobody_wakes, 0, std::chrono::steady_clock::now() + pause);
  }
}

std::vector<log_reader::segment> log_reader::open_files_once() {
  std::vector<std::uint64_t> numbers = list_files();
  if (found_.checkpoint != 0) open_checkpoint();
  // Those before the checkpoint's first one were about to be removed.
  numbers.erase(numbers.begin(), std::lower_bound(numbers.begin(), numbers.end(), first_segment_));
  check_numbers(numbers);
  std::vector<segment> segments;
  for (const std::uint64_t number : numbers) {
    log_input file(directory_, name_of(file_kind::segment, number));
    const parsed_file_header parsed = read_header(file, file_kind::segment);
    segments.push_back({number, std::move(file), parsed});
  }
  found_.next_segment = numbers.empty() ? first_segment_ : numbers.back() + 1;
  drop_torn_segment(segments);
  for (const segment& each : segments)
    check_whole_header(each.file, each.parsed, each.number, fingerprint_);
  return segments;
}

// Returns the numbers of the segments, ascending.
std::vector<std::uint64_t> log_reader::list_files() {
  std::error_code error;
  const std::vector<std::string> names = directory_.names(error);
  if (error) throw std::system_error(error, "elidex: cannot list the log directory");
  std::vector<std::uint64_t> numbers;
  bool unfinished_backup = false;
  for (const std::string& name : names) {
    if (const auto number = number_of(file_kind::segment, name)) numbers.push_back(*number);
    if (const auto number = number_of(file_kind::checkpoint, name))
      found_.checkpoint = std::max(found_.checkpoint, *number);
    if (is_unfinished(name)) found_.unfinished.push_back(name);
    unfinished_backup |= is_unfinished_copy(name);
  }
  // A directory in use has a segment before it has its first checkpoint.
  unfinished_backup |= !found_.unfinished.empty() && numbers.empty() && found_.checkpoint == 0;
  if (unfinished_backup)
    throw log_error(log_problem::damaged, "elidex: the directory has an unfinished backup");
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

void log_reader::check_numbers(const std::vector<std::uint64_t>& numbers) const {
  std::uint64_t expected = first_segment_;
  for (const std::uint64_t number : numbers) {
    if (number != expected) missing(expected);
    ++expected;
  }
  if (numbers.empty() && found_.checkpoint != 0) missing(expected);
}

// The newest segment may be one whose making a crash has cut off. A checkpoint's first segment was
// whole when the checkpoint was finished.
void log_reader::drop_torn_segment(std::vector<segment>& segments) {
  if (segments.empty()) return;
  const segment& last = segments.back();
  if (!is_being_made(last.file, last.parsed, last.number)) return;
  if (found_.checkpoint != 0 && last.number == first_segment_) return;
  found_.next_segment = last.number;
  found_.next_is_torn = true;
  segments.pop_back();
}

// --- The checkpoint ---

void log_reader::open_checkpoint() {
  checkpoint_.emplace(directory_, name_of(file_kind::checkpoint, found_.checkpoint));
  checkpoint_header_ = read_header(*checkpoint_, file_kind::checkpoint);
  check_whole_header(*checkpoint_, checkpoint_header_, found_.checkpoint, fingerprint_);
  replay_from_ = checkpoint_header_.header.first_group;
  first_segment_ = checkpoint_header_.header.first_segment;
}

void log_reader::read_checkpoint() {
  const log_input& file = *checkpoint_;
  end_counts seen;
  log_block next;
  for (std::uint64_t offset = file_header_bytes;; offset = next.end()) {
    if (!read_block(file, offset, file.size(), checkpoint_header_, next))
      file.damaged(offset, "no whole block");
    if (next.header.kind == block_kind::end) break;
    if (next.header.kind == block_kind::rows) {
      apply_rows(file, next, row_reader(next.payload.bytes()));
    } else if (next.header.kind == block_kind::records) {
      apply_rows(file, next, record_reader(next.payload.bytes()));
    } else {
      file.damaged(offset, "a block that no checkpoint has");
    }
    ++seen.blocks;
    seen.payload_bytes += next.header.payload_bytes;
  }
  const end_counts counts = counts_of(file, next);
  if (counts.blocks != seen.blocks || counts.payload_bytes != seen.payload_bytes)
    file.damaged(next.header.offset, "blocks are missing");
  if (next.end() != file.size()) file.damaged(next.end(), "something lies behind the end");
  if (counts.last_group < last_row_group_ ||
      counts.last_group > group_of_stamp(~std::uint64_t{0}) / 2)
    file.damaged(next.header.offset, "rows of later groups than it says, or impossible groups");
  log_reaches_ = counts.durable_group;
  durable_group_ = counts.durable_group;
  last_group_seen_ = std::max({replay_from_, counts.durable_group, counts.last_group});
}

template <class Reader>
void log_reader::apply_rows(const log_input& file, const log_block& rows, Reader payload) {
  log_entry entry;
  for (;;) {
    const record_reader::parse_status status = payload.next(entry);
    if (status == record_reader::parse_status::end) return;
    if (status == record_reader::parse_status::malformed ||
        entry.operation != log_operation::upsert)
      file.damaged(rows.header.offset, "not the rows of a checkpoint");
    last_row_group_ = std::max(last_row_group_, group_of_stamp(entry.stamp));
    apply_(entry);
    ++found_.checkpoint_rows;
  }
}

// --- The segments ---

void log_reader::read_segments(const std::vector<segment>& segments) {
  if (segments.empty()) return;
  whole_group_ = segments.front().parsed.header.durable_group;
  applied_group_ = whole_group_;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const bool newest = i + 1 == segments.size();
    const segment& one = segments[i];
    if (one.parsed.header.durable_group != whole_group_)
      one.file.damaged(0, "groups are missing between this segment and the one before");
    last_group_seen_ =
        std::max({last_group_seen_, whole_group_, one.parsed.header.first_group - 1});
    durable_group_ = std::max(durable_group_, whole_group_);
    if (newest) {
      read_newest(one);
    } else {
      read_older(one, file_header_bytes, segments[i + 1].parsed.header.previous_bytes);
    }
    found_.segments.push_back({one.number, whole_group_});
  }
  if (whole_group_ < log_reaches_) {
    throw log_error(log_problem::damaged, "elidex: the log ends at group " +
                                              std::to_string(whole_group_) +
                                              ", but its checkpoint says that it had reached "
                                              "group " +
                                              std::to_string(log_reaches_));
  }
}

void log_reader::read_older(const segment& from, std::uint64_t begin, std::uint64_t limit) {
  if (limit < begin || limit > from.file.size())
    from.file.damaged(from.file.size(), "it is shorter than the next segment says");
  const std::uint64_t end = read_batches(from, begin, limit);
  if (end != limit) from.file.damaged(end, "no whole batch lies there");
  durable_group_ = std::max(durable_group_, whole_group_);
  if (whose_ == writer::running && !current_) apply_durable();
}

void log_reader::read_newest(const segment& from) {
  const std::uint64_t size = from.file.size();
  const std::uint64_t end = read_batches(from, file_header_bytes, size);
  found_.whole_bytes = end;
  offset_ = end;
  if (end == size || whose_ == writer::running) return;
  if (const std::uint64_t synced = synced_behind(from, end)) damaged_end(from, end, synced);
  found_.torn_bytes = size - end;
}

void log_reader::damaged_end(const segment& from, std::uint64_t end, std::uint64_t synced) const {
  from.file.damaged(end, "group " + std::to_string(synced) + " had been synced, and group " +
                             std::to_string(whole_group_) + " is the last whole one");
}

// `end` lies behind the last whole batch: whole blocks of the next one are in the rest, and say
// nothing about themselves. If a block in the rest says that a later group than the last whole one
// had been synced, returns that group, otherwise 0.
std::uint64_t log_reader::synced_behind(const segment& from, std::uint64_t end) {
  byte_buffer rest;
  from.file.read(end, from.file.size() - end, rest);
  for (std::size_t at = 0;; ++at) {
    const auto header = find_block_header(rest.bytes(), at, from.parsed.crc);
    if (!header) return 0;
    if (header->durable_group > whole_group_) return header->durable_group;
    last_group_seen_ = std::max(last_group_seen_, header->group);
  }
}

// Reads the batches that are whole before `limit`. Returns the offset behind the last of them.
std::uint64_t log_reader::read_batches(const segment& from, std::uint64_t begin,
                                       std::uint64_t limit) {
  std::uint64_t whole = begin;
  batch now{.segment = from.number,
            .begin = 0,
            .end = 0,
            .previous_group = 0,
            .group = 0,
            .payloads = {}};
  end_counts seen;
  log_block next;
  for (std::uint64_t offset = whole; read_block(from.file, offset, limit, from.parsed, next);
       offset = next.end()) {
    const block_header& header = next.header;
    if (header.durable_group > whole_group_)
      from.file.damaged(offset, "groups are missing before it");
    durable_group_ = std::max(durable_group_, header.durable_group);
    if (header.kind == block_kind::confirmed && now.group == 0) {
      whole = next.end();
      continue;
    }
    if (header.group <= whole_group_ || (now.group != 0 && header.group != now.group))
      from.file.damaged(offset, "a block of another batch");
    now.group = header.group;
    if (header.kind == block_kind::records) {
      ++seen.blocks;
      seen.payload_bytes += header.payload_bytes;
      now.payloads.push_back(std::move(next.payload));
      next.payload = byte_buffer();
      continue;
    }
    if (header.kind != block_kind::end) from.file.damaged(offset, "a block of unknown kind");
    const end_counts counts = counts_of(from.file, next);
    if (counts.blocks != seen.blocks || counts.payload_bytes != seen.payload_bytes)
      from.file.damaged(offset, "blocks of the batch are missing");
    whole = next.end();
    now.begin = offset;
    now.end = whole;
    now.previous_group = whole_group_;
    whole_group_ = now.group;
    last_group_seen_ = std::max(last_group_seen_, now.group);
    if (whose_ == writer::running) {
      waiting_.push_back(std::move(now));
    } else {
      apply_batch(now);
    }
    now = {.segment = from.number,
           .begin = 0,
           .end = 0,
           .previous_group = 0,
           .group = 0,
           .payloads = {}};
    seen = {};
  }
  return whole;
}

void log_reader::apply_batch(const batch& one) {
  if (one.group < replay_from_) return;
  entries_.clear();
  for (const byte_buffer& payload : one.payloads) {
    record_reader records(payload.bytes());
    log_entry entry;
    for (;;) {
      const record_reader::parse_status status = records.next(entry);
      if (status == record_reader::parse_status::end) break;
      if (status == record_reader::parse_status::malformed ||
          group_of_stamp(entry.stamp) > one.group ||
          group_of_stamp(entry.stamp) <= one.previous_group)
        throw log_error(
            log_problem::damaged,
            "elidex: " + name_of(file_kind::segment, one.segment) + " is damaged at byte " +
                std::to_string(one.begin) + ": not the records of groups " +
                std::to_string(one.previous_group + 1) + " to " + std::to_string(one.group));
      entries_.push_back(entry);
    }
  }
  // Of two changes by one transaction, which have the same stamp, the one that lies further back
  // counts.
  std::sort(entries_.begin(), entries_.end(), [](const log_entry& a, const log_entry& b) {
    const auto by_name = std::tie(a.table, a.key, a.stamp) <=> std::tie(b.table, b.key, b.stamp);
    return by_name != 0 ? by_name < 0 : std::less<>()(a.key.data(), b.key.data());
  });
  const auto same_key = [](const log_entry& a, const log_entry& b) {
    return a.table == b.table && a.key == b.key;
  };
  for (std::size_t begin = 0; begin < entries_.size();) {
    std::size_t first = begin;  // from the last whole row or erase on, if there is one
    std::size_t end = begin;
    for (; end < entries_.size() && same_key(entries_[begin], entries_[end]); ++end) {
      if (entries_[end].operation != log_operation::change) first = end;
    }
    found_.entries += end - first;
    for (; first < end; ++first) apply_(entries_[first]);
    begin = end;
  }
}

recovered_log recover_log(log_directory& directory, std::uint64_t fingerprint,
                          const std::function<void(const log_entry&)>& apply) {
  return log_reader(directory, fingerprint, log_reader::writer::gone, apply).read_all();
}

// --- A running writer ---

bool log_reader::has_next() const noexcept {
  return !waiting_.empty() && waiting_.front().group <= durable_group_;
}

bool log_reader::apply_next(const std::function<bool()>& done) {
  if (!has_next()) return false;
  const batch& one = waiting_.front();
  apply_batch(one);
  if (!done()) return false;
  applied_group_ = one.group;
  applied_segment_ = one.segment;
  applied_end_ = one.end;
  waiting_.pop_front();
  return true;
}

void log_reader::apply_durable() {
  while (apply_next([] { return true; })) {
  }
}

void log_reader::read_on() {
  // Chosen: a segment and a half. The rest can wait until these batches have been applied.
  constexpr std::size_t waiting_bytes_max = std::size_t{96} << 20;
  const auto is_much = [this] {
    std::size_t bytes = 0;
    for (const batch& one : waiting_) {
      for (const byte_buffer& payload : one.payloads) bytes += payload.size();
    }
    return bytes > waiting_bytes_max;
  };
  while (!is_much()) {
    if (begin_next_segment()) continue;
    if (current_) read_tail();
    return;
  }
}

// Returns false if the next segment does not exist yet.
bool log_reader::begin_next_segment() {
  const std::uint64_t number = current_ ? current_->number + 1 : found_.next_segment;
  std::optional<segment> next;
  try {
    log_input file(directory_, name_of(file_kind::segment, number));
    const parsed_file_header parsed = read_header(file, file_kind::segment);
    next.emplace(segment{number, std::move(file), parsed});
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::no_such_file_or_directory) throw;
    check_not_left_behind(number);
    return false;
  }
  if (is_being_made(next->file, next->parsed, number)) return false;
  check_whole_header(next->file, next->parsed, number, fingerprint_);
  const file_header& header = next->parsed.header;
  if (current_) {
    finish_segment(header.previous_bytes);
    if (header.durable_group != whole_group_)
      next->file.damaged(0, "groups are missing between this segment and the one before");
  } else {
    whole_group_ = applied_group_ = header.durable_group;
  }
  durable_group_ = std::max(durable_group_, whole_group_);
  current_.emplace(std::move(*next));
  offset_ = file_header_bytes;
  searched_size_ = 0;
  return true;
}

// Reads the present segment up to its end.
void log_reader::finish_segment(std::uint64_t limit) {
  const auto is_behind = [&](std::uint64_t number, std::uint64_t end) {
    return number == current_->number && end > limit;
  };
  bool lost = is_behind(applied_segment_, applied_end_);
  for (; !waiting_.empty() && is_behind(waiting_.back().segment, waiting_.back().end);
       waiting_.pop_back()) {
    whole_group_ = waiting_.back().previous_group;
    lost |= waiting_.back().group <= durable_group_;
  }
  if (lost)
    current_->file.damaged(limit,
                           "the next segment says that it ends here, but later groups had "
                           "been synced");
  current_->file.look_again();
  // A note behind the limit, that a batch is durable, may have been lost without harm.
  if (offset_ < limit) read_older(*current_, offset_, limit);
}

void log_reader::read_tail() {
  log_input& file = current_->file;
  file.look_again();
  offset_ = read_batches(*current_, offset_, file.size());
  if (offset_ == file.size() || file.size() == searched_size_) return;
  searched_size_ = file.size();
  const std::uint64_t synced = synced_behind(*current_, offset_);
  if (synced == 0) return;
  file.look_again();
  offset_ = read_batches(*current_, offset_, file.size());
  if (whole_group_ < synced) damaged_end(*current_, offset_, synced);
}

// A checkpoint of the writer removes the segments before its first one. A list shows all files that
// existed when it began. So a second list has the next segment if the first one has a later segment
// and nothing was removed.
void log_reader::check_not_left_behind(std::uint64_t next) const {
  for (int list = 0; list < 2; ++list) {
    std::error_code error;
    const std::vector<std::string> names = directory_.names(error);
    if (error) throw std::system_error(error, "elidex: cannot list the log directory");
    bool has_next = false;
    bool has_later = false;
    for (const std::string& name : names) {
      const std::uint64_t number = number_of(file_kind::segment, name).value_or(0);
      has_next |= number == next;
      has_later |= number > next;
    }
    if (has_next || !has_later) return;
  }
  throw log_error(log_problem::left_behind,
                  "elidex: the writer has removed " + name_of(file_kind::segment, next) +
                      " before it was read (expected: follow the directory again)");
}

bool log_reader::visit_newer_checkpoint(const std::function<bool(const log_entry&)>& visit) {
  for (std::uint64_t gone = 0;;) {
    std::error_code error;
    const std::vector<std::string> names = directory_.names(error);
    if (error) throw std::system_error(error, "elidex: cannot list the log directory");
    std::uint64_t newest = 0;
    for (const std::string& name : names)
      newest = std::max(newest, number_of(file_kind::checkpoint, name).value_or(0));
    if (newest <= checkpoint_seen_) return false;
    try {
      visit_rows(newest, visit);
    } catch (const std::system_error& failure) {
      // The writer may have finished another one meanwhile.
      if (failure.code() != std::errc::no_such_file_or_directory || newest == gone) throw;
      gone = newest;
      continue;
    }
    checkpoint_seen_ = newest;
    return true;
  }
}

void log_reader::visit_rows(std::uint64_t number,
                            const std::function<bool(const log_entry&)>& visit) {
  const log_input file(directory_, name_of(file_kind::checkpoint, number));
  const parsed_file_header parsed = read_header(file, file_kind::checkpoint);
  check_whole_header(file, parsed, number, fingerprint_);
  log_block next;
  for (std::uint64_t offset = file_header_bytes;; offset = next.end()) {
    if (!read_block(file, offset, file.size(), parsed, next))
      file.damaged(offset, "no whole block");
    if (next.header.kind == block_kind::end) return;
    const auto goes_on = [&](auto payload) {
      log_entry entry;
      while (payload.next(entry) == record_reader::parse_status::entry) {
        if (!visit(entry)) return false;
      }
      return true;
    };
    const bool more = next.header.kind == block_kind::rows
                          ? goes_on(row_reader(next.payload.bytes()))
                          : goes_on(record_reader(next.payload.bytes()));
    if (!more) return;
  }
}

}  // namespace elidex::internal
