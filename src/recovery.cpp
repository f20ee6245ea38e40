#include "elidex/internal/log/recovery.hpp"

#include <algorithm>
#include <tuple>

#include "elidex/internal/log/log_compression.hpp"

namespace elidex::internal {
namespace {

class input {
 public:
  input(log_directory& directory, std::string name) : name_(std::move(name)) {
    std::error_code error;
    file_ = directory.open(name_, error);
    if (!error) size_ = file_->size(error);
    if (error) throw std::system_error(error, "elidex: cannot open " + name_);
  }

  const std::string& name() const noexcept { return name_; }
  std::uint64_t size() const noexcept { return size_; }

  // As many of these bytes as there are.
  void read(std::uint64_t offset, std::uint64_t bytes, byte_buffer& to) const {
    to.clear();
    const auto wanted =
        static_cast<std::size_t>(std::min(bytes, offset < size_ ? size_ - offset : 0));
    if (wanted == 0) return;
    std::error_code error;
    const std::size_t read = read_whole(*file_, offset, {to.grow(wanted), wanted}, error);
    if (error) throw std::system_error(error, "elidex: cannot read " + name_);
    to.shrink(read);
  }

  [[noreturn]] void damaged(std::uint64_t offset, const std::string& why) const {
    throw log_error(log_problem::damaged, "elidex: " + name_ + " is damaged at byte " +
                                              std::to_string(offset) + ": " + why);
  }

 private:
  std::string name_;
  std::unique_ptr<log_file> file_;
  std::uint64_t size_ = 0;
};

parsed_file_header read_header(const input& file, file_kind kind) {
  byte_buffer bytes;
  file.read(0, file_header_bytes, bytes);
  const parsed_file_header parsed = parse_file_header(bytes.bytes(), kind);
  if (parsed.verdict == header_verdict::other_version) {
    throw log_error(log_problem::other_version, "elidex: " + file.name() + " has format version " +
                                                    std::to_string(parsed.version) + " (expected " +
                                                    std::to_string(log_version_least) + " to " +
                                                    std::to_string(log_version) + ")");
  }
  if (parsed.verdict == header_verdict::whole && !is_built_with(parsed.header.compressed)) {
    const bool is_zstd = parsed.header.compressed == compression::zstd;
    throw log_error(log_problem::other_compression,
                    "elidex: " + file.name() + " is compressed" + (is_zstd ? " with zstd" : "") +
                        " (expected a library that was built with this method)");
  }
  return parsed;
}

void check_whole_header(const input& file, const parsed_file_header& parsed, std::uint64_t number,
                        std::uint64_t fingerprint) {
  if (parsed.verdict != header_verdict::whole) file.damaged(0, "its header is not whole");
  if (parsed.header.number != number)
    file.damaged(0, "its header has another number than its name");
  if (parsed.header.fingerprint != fingerprint)
    throw log_error(log_problem::other_schema,
                    "elidex: " + file.name() + " was written with another schema");
}

// A block whose checksums are right.
struct block {
  block_header header;
  byte_buffer payload;

  std::uint64_t end() const noexcept {
    return header.offset + block_header_bytes + header.payload_bytes;
  }
};

// Returns false if no whole block is there before `limit`. The payload is decompressed.
bool read_block(const input& file, std::uint64_t offset, std::uint64_t limit,
                const parsed_file_header& of, block& to) {
  if (offset > limit || limit - offset < block_header_bytes) return false;
  file.read(offset, block_header_bytes, to.payload);
  const auto header = parse_block_header(to.payload.bytes(), offset, of.crc);
  if (!header || header->payload_bytes > limit - offset - block_header_bytes) return false;
  to.header = *header;
  file.read(offset + block_header_bytes, header->payload_bytes, to.payload);
  if (to.payload.size() != header->payload_bytes ||
      crc32c(to.payload.bytes()) != header->payload_crc)
    return false;
  if (!header->compressed) return true;
  byte_buffer unpacked;
  if (of.header.compressed == compression::none || !decompress(to.payload.bytes(), unpacked))
    file.damaged(offset, "it cannot be decompressed");
  to.payload = std::move(unpacked);
  return true;
}

class reader {
 public:
  reader(log_directory& directory, std::uint64_t fingerprint,
         const std::function<void(const log_entry&)>& apply)
      : directory_(directory), fingerprint_(fingerprint), apply_(apply) {}

  recovered_log run() {
    std::error_code error;
    const std::vector<std::string> names = directory_.names(error);
    if (error) throw std::system_error(error, "elidex: cannot list the log directory");
    std::vector<std::uint64_t> numbers;
    bool unfinished_backup = false;
    for (const std::string& name : names) {
      if (const auto segment = number_of(file_kind::segment, name)) numbers.push_back(*segment);
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
    if (found_.checkpoint != 0) read_checkpoint();
    read_segments(numbers);
    found_.durable_group = whole_group_;
    found_.first_group = last_group_seen_ + 1;
    return std::move(found_);
  }

 private:
  // --- The checkpoint ---

  void read_checkpoint() {
    const input file(directory_, name_of(file_kind::checkpoint, found_.checkpoint));
    const parsed_file_header parsed = read_header(file, file_kind::checkpoint);
    check_whole_header(file, parsed, found_.checkpoint, fingerprint_);
    replay_from_ = parsed.header.first_group;
    first_segment_ = parsed.header.first_segment;
    end_counts seen;
    block next;
    for (std::uint64_t offset = file_header_bytes;; offset = next.end()) {
      if (!read_block(file, offset, file.size(), parsed, next))
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
    last_group_seen_ = std::max({replay_from_, counts.durable_group, counts.last_group});
  }

  template <class Reader>
  void apply_rows(const input& file, const block& rows, Reader payload) {
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

  static end_counts counts_of(const input& file, const block& end) {
    if (end.payload.size() != end_counts_bytes)
      file.damaged(end.header.offset, "an end block of another length");
    return decode_end_counts(end.payload.bytes());
  }

  // --- The segments ---

  struct opened {
    std::uint64_t number;
    input file;
    parsed_file_header parsed;
  };

  void read_segments(std::vector<std::uint64_t>& numbers) {
    // Those before the checkpoint's first one were about to be removed.
    numbers.erase(numbers.begin(),
                  std::lower_bound(numbers.begin(), numbers.end(), first_segment_));
    check_numbers(numbers);
    std::vector<opened> segments;
    for (const std::uint64_t number : numbers) {
      input file(directory_, name_of(file_kind::segment, number));
      const parsed_file_header parsed = read_header(file, file_kind::segment);
      segments.push_back({number, std::move(file), parsed});
    }
    found_.next_segment = numbers.empty() ? first_segment_ : numbers.back() + 1;
    drop_torn_segment(segments);
    for (const opened& each : segments)
      check_whole_header(each.file, each.parsed, each.number, fingerprint_);
    if (segments.empty()) return;
    whole_group_ = segments.front().parsed.header.durable_group;
    for (std::size_t i = 0; i < segments.size(); ++i) {
      const bool newest = i + 1 == segments.size();
      const opened& segment = segments[i];
      if (segment.parsed.header.durable_group != whole_group_)
        segment.file.damaged(0, "groups are missing between this segment and the one before");
      last_group_seen_ =
          std::max({last_group_seen_, whole_group_, segment.parsed.header.first_group - 1});
      if (newest) {
        read_newest(segment);
      } else {
        read_older(segment, segments[i + 1].parsed.header.previous_bytes);
      }
      found_.segments.push_back({segment.number, whole_group_});
    }
    if (whole_group_ < log_reaches_) {
      throw log_error(log_problem::damaged,
                      "elidex: the log ends at group " + std::to_string(whole_group_) +
                          ", but its checkpoint says that it had reached group " +
                          std::to_string(log_reaches_));
    }
  }

  void check_numbers(const std::vector<std::uint64_t>& numbers) const {
    std::uint64_t expected = first_segment_;
    for (const std::uint64_t number : numbers) {
      if (number != expected) missing(expected);
      ++expected;
    }
    if (numbers.empty() && found_.checkpoint != 0) missing(expected);
  }

  [[noreturn]] static void missing(std::uint64_t number) {
    throw log_error(log_problem::damaged,
                    "elidex: " + name_of(file_kind::segment, number) + " is missing");
  }

  // The newest segment may be one whose making a crash has cut off. Its header is synced before
  // anything is written behind it, so there is nothing behind it then. A checkpoint's first segment
  // was whole when the checkpoint was finished.
  void drop_torn_segment(std::vector<opened>& segments) {
    if (segments.empty()) return;
    const opened& last = segments.back();
    if (last.parsed.verdict == header_verdict::whole || last.file.size() > file_header_bytes)
      return;
    if (found_.checkpoint != 0 && last.number == first_segment_) return;
    found_.next_segment = last.number;
    found_.next_is_torn = true;
    segments.pop_back();
  }

  void read_older(const opened& segment, std::uint64_t limit) {
    if (limit < file_header_bytes || limit > segment.file.size())
      segment.file.damaged(segment.file.size(), "it is shorter than the next segment says");
    const std::uint64_t end = read_batches(segment, limit);
    if (end != limit) segment.file.damaged(end, "no whole batch lies there");
  }

  void read_newest(const opened& segment) {
    const std::uint64_t size = segment.file.size();
    const std::uint64_t end = read_batches(segment, size);
    found_.whole_bytes = end;
    if (end == size) return;
    byte_buffer rest;
    segment.file.read(end, size - end, rest);
    // `end` lies behind the last whole batch: whole blocks of the next one are in the rest, and say
    // nothing about themselves.
    for (std::size_t at = 0;; ++at) {
      const auto header = find_block_header(rest.bytes(), at, segment.parsed.crc);
      if (!header) break;
      if (header->durable_group > whole_group_) {
        segment.file.damaged(end, "group " + std::to_string(header->durable_group) +
                                      " had been synced, and group " +
                                      std::to_string(whole_group_) + " is the last whole one");
      }
      last_group_seen_ = std::max(last_group_seen_, header->group);
    }
    found_.torn_bytes = size - end;
  }

  // Applies the batches that are whole before `limit`; returns the offset behind the last of them.
  std::uint64_t read_batches(const opened& segment, std::uint64_t limit) {
    std::uint64_t whole = file_header_bytes;
    std::vector<byte_buffer> payloads;
    end_counts seen;
    std::uint64_t group = 0;  // of the batch that has begun, or 0
    block next;
    for (std::uint64_t offset = whole;
         read_block(segment.file, offset, limit, segment.parsed, next); offset = next.end()) {
      const block_header& header = next.header;
      if (header.durable_group > whole_group_)
        segment.file.damaged(offset, "groups are missing before it");
      if (header.kind == block_kind::confirmed && group == 0) {
        whole = next.end();
        continue;
      }
      if (header.group <= whole_group_ || (group != 0 && header.group != group))
        segment.file.damaged(offset, "a block of another batch");
      group = header.group;
      if (header.kind == block_kind::records) {
        ++seen.blocks;
        seen.payload_bytes += header.payload_bytes;
        payloads.push_back(std::move(next.payload));
        next.payload = byte_buffer();
        continue;
      }
      if (header.kind != block_kind::end) segment.file.damaged(offset, "a block of unknown kind");
      const end_counts counts = counts_of(segment.file, next);
      if (counts.blocks != seen.blocks || counts.payload_bytes != seen.payload_bytes)
        segment.file.damaged(offset, "blocks of the batch are missing");
      if (group >= replay_from_) apply_batch(segment.file, offset, group, payloads);
      whole_group_ = group;
      last_group_seen_ = std::max(last_group_seen_, group);
      whole = next.end();
      payloads.clear();
      seen = {};
      group = 0;
    }
    return whole;
  }

  void apply_batch(const input& file, std::uint64_t offset, std::uint64_t group,
                   const std::vector<byte_buffer>& payloads) {
    entries_.clear();
    for (const byte_buffer& payload : payloads) {
      record_reader records(payload.bytes());
      log_entry entry;
      for (;;) {
        const record_reader::parse_status status = records.next(entry);
        if (status == record_reader::parse_status::end) break;
        if (status == record_reader::parse_status::malformed ||
            group_of_stamp(entry.stamp) > group || group_of_stamp(entry.stamp) <= whole_group_)
          file.damaged(offset, "not the records of groups " + std::to_string(whole_group_ + 1) +
                                   " to " + std::to_string(group));
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

  log_directory& directory_;
  const std::uint64_t fingerprint_;
  const std::function<void(const log_entry&)>& apply_;
  recovered_log found_;
  std::uint64_t replay_from_ = 0;
  std::uint64_t first_segment_ = 1;
  std::uint64_t log_reaches_ = 0;     // by the checkpoint
  std::uint64_t last_row_group_ = 0;  // of the checkpoint's rows
  std::uint64_t whole_group_ = 0;
  std::uint64_t last_group_seen_ = 0;
  std::vector<log_entry> entries_;  // of one batch
};

}  // namespace

recovered_log recover_log(log_directory& directory, std::uint64_t fingerprint,
                          const std::function<void(const log_entry&)>& apply) {
  return reader(directory, fingerprint, apply).run();
}

}  // namespace elidex::internal
