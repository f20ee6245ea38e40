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

[[noreturn]] void missing(const log_directory& in, std::uint64_t number, const char* detail = "") {
  throw log_error(log_problem::damaged, "elidex: " + in.shown(name_of(file_kind::segment, number)) +
                                            " is missing" + detail);
}

}  // namespace

log_reader::log_reader(log_directory& directory, std::uint64_t fingerprint, writer whose,
                       entry_function apply)
    : directory_(directory), fingerprint_(fingerprint), whose_(whose), apply_(std::move(apply)) {}

recovered_log log_reader::read_all() {
  std::vector<segment> segments = open_files();
  if (checkpoint_) read_checkpoint(*checkpoint_);
  read_segments(segments);
  if (whose_ == writer::running) {
    apply_durable();
    checkpoint_.reset();
    checkpoint_seen_ = found_.checkpoint;
    if (!segments.empty()) {
      read_tail(current_.emplace(std::move(segments.back())));  // finds damage, too
      apply_durable();
    }
  }
  found_.durable_group = whose_ == writer::running ? applied_group_ : whole_group_;
  found_.first_group = last_group_seen_ + 1;
  return found_;
}

// --- The files ---

std::vector<log_reader::segment> log_reader::open_files() {
  if (whose_ == writer::gone) return open_files_once();
  // The writer removes files when it has finished a checkpoint. Chosen: it cannot do that so often.
  constexpr int attempts_max = 500;
  constexpr std::chrono::milliseconds pause{2};
  for (int attempt = 1;; ++attempt) {
    try {
      std::vector<segment> opened = open_files_once();
      // A checkpoint that was finished meanwhile may have other columns than the files opened here.
      const std::vector<std::uint64_t> now = numbers_in(directory_, file_kind::checkpoint);
      if ((now.empty() ? 0 : now.back()) == found_.checkpoint) return opened;
    } catch (const std::system_error& gone) {
      if (gone.code() != std::errc::no_such_file_or_directory || attempt >= attempts_max) throw;
    } catch (const log_error& gap) {
      if (gap.problem() != log_problem::damaged || attempt >= attempts_max) throw;
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
  if (error) throw std::system_error(error, "elidex: cannot list " + directory_.shown());
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
    throw log_error(
        log_problem::damaged,
        "elidex: " + directory_.shown() + " has an unfinished backup (expected a complete one)");
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

void log_reader::check_numbers(const std::vector<std::uint64_t>& numbers) const {
  // Only a checkpoint allows the first files to be absent, so the checkpoint may be what is lost.
  if (found_.checkpoint == 0 && !numbers.empty() && numbers.front() != first_segment_)
    missing(directory_, first_segment_, ", or a checkpoint that replaces it");
  std::uint64_t expected = first_segment_;
  for (const std::uint64_t number : numbers) {
    if (number != expected) missing(directory_, expected);
    ++expected;
  }
  if (numbers.empty() && found_.checkpoint != 0) missing(directory_, expected);
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

void log_reader::read_checkpoint(const log_input& file) {
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
      const file_header& next = segments[i + 1].parsed.header;
      durable_group_ = std::max(durable_group_, next.durable_group);
      read_older(one, next.previous_bytes);
    }
    found_.segments.push_back({one.number, whole_group_});
  }
  if (whole_group_ < log_reaches_) {
    throw log_error(log_problem::damaged, "elidex: " + directory_.shown() +
                                              ": the log ends at group " +
                                              std::to_string(whole_group_) +
                                              ", but its checkpoint says that it had reached "
                                              "group " +
                                              std::to_string(log_reaches_));
  }
}

void log_reader::read_older(const segment& from, std::uint64_t limit) {
  if (limit < file_header_bytes || limit > from.file.size())
    from.file.damaged(from.file.size(), "it is shorter than the next segment says");
  const std::uint64_t end = read_batches(from, file_header_bytes, limit);
  if (end != limit) from.file.damaged(end, "no whole batch lies there");
}

void log_reader::read_newest(const segment& from) {
  const std::uint64_t size = from.file.size();
  const std::uint64_t end = read_batches(from, file_header_bytes, size);
  found_.whole_bytes = end;
  offset_ = end;
  if (end == size || whose_ == writer::running) return;
  const later_blocks behind = blocks_behind(from.file, from.parsed, end);
  if (behind.synced > whole_group_) damaged_end(from, end, behind.synced);
  last_group_seen_ = std::max(last_group_seen_, behind.newest);
  found_.torn_bytes = size - end;
}

void log_reader::damaged_end(const segment& from, std::uint64_t end, std::uint64_t synced) const {
  from.file.damaged(end, "group " + std::to_string(synced) + " had been synced, and group " +
                             std::to_string(whole_group_) + " is the last whole one");
}

// Reads the batches that are whole before `limit`. Returns the offset behind the last of them. With
// a running writer, it may end early when the batches that can be applied fill too much memory.
std::uint64_t log_reader::read_batches(const segment& from, std::uint64_t begin,
                                       std::uint64_t limit) {
  std::uint64_t whole = begin;
  batch now{.segment = from.number};
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
      if (whose_ == writer::running) now.payloads.back().fit();
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
    if (whose_ == writer::gone) {
      apply_batch(now);
    } else {
      keep(std::move(now));
      if (!current_) {
        apply_durable();
      } else if (is_full()) {
        return whole;
      }
    }
    now = {.segment = from.number};
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
        throw log_error(log_problem::damaged,
                        "elidex: " + directory_.shown(name_of(file_kind::segment, one.segment)) +
                            " is damaged at byte " + std::to_string(one.begin) +
                            ": not the records of groups " +
                            std::to_string(one.previous_group + 1) + " to " +
                            std::to_string(one.group));
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

std::size_t log_reader::bytes_of(const batch& one) noexcept {
  std::size_t bytes = sizeof one;
  for (const byte_buffer& payload : one.payloads) bytes += sizeof payload + payload.capacity();
  return bytes;
}

void log_reader::keep(batch&& one) {
  const std::size_t bytes = bytes_of(one);
  waiting_.push_back(std::move(one));
  waiting_bytes_ += bytes;
}

bool log_reader::is_full() const noexcept {
  return has_next() && waiting_bytes_ > waiting_bytes_max;
}

bool log_reader::apply_next(const std::function<bool()>& done) {
  if (!has_next()) return false;
  const batch& one = waiting_.front();
  apply_batch(one);
  if (!done()) return false;
  applied_group_ = one.group;
  applied_segment_ = one.segment;
  applied_end_ = one.end;
  waiting_bytes_ -= bytes_of(one);
  waiting_.pop_front();
  return true;
}

void log_reader::apply_durable() {
  while (apply_next([] { return true; })) {
  }
}

void log_reader::read_on() {
  while (begin_next_segment()) {
  }
  if (current_ && !is_full()) read_tail(*current_);
  note_durable(next_durable_group_);
}

// A batch that the reader has is durable if the next segment's header counts it.
void log_reader::note_durable(std::uint64_t by_next_header) noexcept {
  durable_group_ = std::max(durable_group_, std::min(by_next_header, whole_group_));
}

bool log_reader::has_segment(std::uint64_t number) const {
  std::error_code error;
  const std::unique_ptr<log_file> found =
      directory_.open(name_of(file_kind::segment, number), error);
  return found != nullptr;
}

// Returns false if the next segment has not begun.
bool log_reader::begin_next_segment() {
  const std::uint64_t number = current_ ? current_->number + 1 : found_.next_segment;
  std::optional<segment> next;
  try {
    log_input file(directory_, name_of(file_kind::segment, number));
    const parsed_file_header parsed = read_header(file, file_kind::segment);
    next.emplace(segment{number, std::move(file), parsed});
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::no_such_file_or_directory) throw;
    const std::uint64_t later = first_segment_behind(number);
    return later != 0 && continue_behind_gap(number, later);
  }
  if (is_being_made(next->file, next->parsed, number)) return false;
  check_whole_header(next->file, next->parsed, number, fingerprint_);
  const file_header& header = next->parsed.header;
  if (current_) {
    next_durable_group_ = header.durable_group;
    note_durable(next_durable_group_);
    // The writer removes a segment that has no block yet if its header cannot be synced, and goes
    // on in the present one.
    if (next->file.size() == file_header_bytes && !has_segment(number + 1)) return false;
    if (!finish_segment(*current_, header)) return false;
    if (header.durable_group != whole_group_)
      next->file.damaged(0, "groups are missing between this segment and the one before");
  } else {
    whole_group_ = applied_group_ = header.durable_group;
  }
  begin(std::move(*next));
  return true;
}

// Reads the present segment up to its end. Returns false if it ended early (read_batches()).
bool log_reader::finish_segment(segment& present, const file_header& next) {
  const std::uint64_t limit = next.previous_bytes;
  const auto is_behind = [&](std::uint64_t number, std::uint64_t end) {
    return number == present.number && end > limit;
  };
  bool lost = is_behind(applied_segment_, applied_end_);
  for (; !waiting_.empty() && is_behind(waiting_.back().segment, waiting_.back().end);
       waiting_.pop_back()) {
    whole_group_ = waiting_.back().previous_group;
    waiting_bytes_ -= bytes_of(waiting_.back());
    lost |= waiting_.back().group <= durable_group_;
  }
  if (lost)
    present.file.damaged(limit,
                         "the next segment says that it ends here, but later groups had "
                         "been synced");
  durable_group_ = std::max(durable_group_, next.durable_group);
  present.file.look_again();
  if (limit > present.file.size())
    present.file.damaged(present.file.size(), "it is shorter than the next segment says");
  // A note behind the limit, that a batch is durable, may have been lost without harm.
  if (offset_ >= limit) return true;
  offset_ = read_batches(present, offset_, limit);
  if (offset_ == limit) return true;
  if (is_full()) return false;
  present.file.damaged(offset_, "no whole batch lies there");
}

void log_reader::read_tail(segment& present) {
  log_input& file = present.file;
  file.look_again();
  const std::uint64_t size = file.size();
  if (size == tried_size_) return;
  // While a long batch is being written, reads it when it is twice as long as at the last attempt,
  // or when the writer pauses. So all attempts together read a small multiple of its length.
  const bool has_paused = std::exchange(last_size_, size) == size;
  const bool is_short = size - offset_ <= long_bytes;
  const bool has_doubled = size - offset_ >= 2 * (std::max(tried_size_, offset_) - offset_);
  if (!is_short && !has_paused && !has_doubled) return;
  offset_ = read_batches(present, offset_, size);
  if (is_full()) return;
  tried_size_ = size;
  if (offset_ == size || size == searched_size_) return;
  searched_size_ = size;
  const std::uint64_t synced = blocks_behind(file, present.parsed, offset_).synced;
  if (synced <= whole_group_) return;
  file.look_again();
  offset_ = read_batches(present, offset_, file.size());
  if (whole_group_ < synced && !is_full()) damaged_end(present, offset_, synced);
}

// A checkpoint of the writer removes the segments before its first one. Returns the first segment
// behind a missing one, or 0. A list shows all files that existed when it began. So a second list
// has the missing segment if the first one has a later segment and nothing was removed.
std::uint64_t log_reader::first_segment_behind(std::uint64_t missing) const {
  std::uint64_t later = 0;
  for (int list = 0; list < 2; ++list) {
    const std::vector<std::uint64_t> numbers = numbers_in(directory_, file_kind::segment);
    const auto found = std::lower_bound(numbers.begin(), numbers.end(), missing);
    if (found == numbers.end() || *found == missing) return 0;
    later = *found;
  }
  return later;
}

// Begins a segment behind removed ones, which is right if these had no batch.
bool log_reader::continue_behind_gap(std::uint64_t missing, std::uint64_t number) {
  // A power failure may have taken a batch that waits for its proof, and a later batch may have the
  // same group.
  const bool all_are_durable = waiting_.empty() || waiting_.back().group <= durable_group_;
  if (current_ && all_are_durable) {
    read_tail(*current_);
    log_input file(directory_, name_of(file_kind::segment, number));
    const parsed_file_header parsed = read_header(file, file_kind::segment);
    if (is_being_made(file, parsed, number)) return false;
    check_whole_header(file, parsed, number, fingerprint_);
    if (parsed.header.durable_group == whole_group_) {
      begin(segment{number, std::move(file), parsed});
      return true;
    }
  }
  throw log_error(log_problem::left_behind,
                  "elidex: the writer has removed " +
                      directory_.shown(name_of(file_kind::segment, missing)) +
                      " before it was read (expected: follow the directory with another database)");
}

void log_reader::begin(segment&& next) {
  durable_group_ = std::max(durable_group_, whole_group_);
  current_.emplace(std::move(next));
  offset_ = file_header_bytes;
  searched_size_ = tried_size_ = last_size_ = 0;
}

bool log_reader::visit_newer_checkpoint(const std::function<bool(const log_entry&)>& visit,
                                        std::uint64_t& first_group) {
  for (std::uint64_t gone = 0;;) {
    const std::vector<std::uint64_t> numbers = numbers_in(directory_, file_kind::checkpoint);
    const std::uint64_t newest = numbers.empty() ? 0 : numbers.back();
    if (newest <= checkpoint_seen_) return false;
    try {
      first_group = visit_rows(newest, visit);
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

// Returns the checkpoint's first group.
std::uint64_t log_reader::visit_rows(std::uint64_t number,
                                     const std::function<bool(const log_entry&)>& visit) {
  const log_input file(directory_, name_of(file_kind::checkpoint, number));
  const parsed_file_header parsed = read_header(file, file_kind::checkpoint);
  check_whole_header(file, parsed, number, fingerprint_);
  log_block next;
  for (std::uint64_t offset = file_header_bytes;; offset = next.end()) {
    if (!read_block(file, offset, file.size(), parsed, next))
      file.damaged(offset, "no whole block");
    if (next.header.kind == block_kind::end) return parsed.header.first_group;
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
    if (!more) return parsed.header.first_group;
  }
}

}  // namespace elidex::internal
