#include "elidex/internal/log/checkpoint.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include "elidex/internal/log/backup.hpp"
#include "elidex/internal/log/log_writer.hpp"

namespace elidex::internal {
namespace {

constexpr std::size_t block_bytes = std::size_t{256} << 10;  // about; a row lies in one block

// Returns the number of the checkpoint that may be written now.
std::uint64_t begin_in(log_writer& writer) {
  const std::uint64_t number = writer.begin_checkpoint();
  if (number == 0)
    throw std::system_error(std::make_error_code(std::errc::operation_in_progress),
                            "elidex: another checkpoint is being written");
  return number;
}

}  // namespace

checkpoint_pause::checkpoint_pause(redo_log& log) : log_(log) {
  log_.check();
  begin_in(*log_.writer_);
}

checkpoint_pause::~checkpoint_pause() {
  if (!log_.is_parents()) log_.writer_->end_checkpoint();
}

checkpoint_writer::checkpoint_writer(redo_log& log, log_directory* backup)
    : log_(log), backup_(backup) {
  log_.check();
  log_writer& writer = *log_.writer_;
  number_ = begin_in(writer);
  try {
    log_.begin_new_segment();
    first_group_ = log_.durable_group() + 1;
    log_.check();  // a log that is closed meanwhile fails before it publishes its last group
    first_segment_ = writer.first_segment_with(first_group_);
    const file_header header{.kind = file_kind::checkpoint,
                             .salt = new_salt(),
                             .number = number_,
                             .first_group = first_group_,
                             .durable_group = 0,
                             .previous_bytes = 0,
                             .first_segment = first_segment_,
                             .fingerprint = writer.fingerprint(),
                             .compressed = writer.compressed()};
    file_ = std::make_unique<block_file>(directory(), unfinished_name(number_), header);
  } catch (...) {
    writer.end_checkpoint();
    throw;
  }
}

checkpoint_writer::~checkpoint_writer() {
  file_.reset();
  if (log_.is_parents()) return;  // the file is the parent's
  if (!named_) {
    try {
      std::error_code ignored;  // a later log removes it
      directory().remove(unfinished_name(number_), ignored);
    } catch (...) {
      // As above.
    }
  }
  log_.writer_->end_checkpoint();
}

log_directory& checkpoint_writer::directory() const {
  return backup_ != nullptr ? *backup_ : log_.writer_->directory();
}

void checkpoint_writer::add_row(std::uint32_t table, std::string_view key, std::string_view row,
                                std::uint64_t stamp) {
  if (group_of_stamp(stamp) > log_.clock_.now())
    throw std::invalid_argument("elidex: a row with a stamp of a group that has not begun");
  if (row_writer_.must_begin(rows_of_block_, table)) write_block();
  row_writer_.append(rows_of_block_, table, key, row, stamp);
  ++rows_;
  if (rows_of_block_.size() >= block_bytes) write_block();
}

void checkpoint_writer::write_block() {
  if (rows_of_block_.empty()) return;
  counts_.payload_bytes +=
      file_->block({.kind = block_kind::rows, .group = first_group_}, rows_of_block_.bytes());
  ++counts_.blocks;
  rows_of_block_.clear();
}

finished_checkpoint checkpoint_writer::finish() {
  log_writer& writer = *log_.writer_;
  write_block();
  // C: the scan has ended, so whatever it has seen was installed in this group or before.
  counts_.last_group = log_.clock_.now();
  log_.wait_durable(counts_.last_group);
  counts_.durable_group = writer.last_group();
  file_->block({.kind = block_kind::end, .group = first_group_}, encode(counts_));
  file_->sync();
  finished_checkpoint report;
  report.number = number_;
  report.rows = rows_;
  report.bytes = file_->size();
  if (backup_ != nullptr)
    report.bytes += copy_segments(
        writer.directory(),
        segments_up_to(writer.directory(), first_segment_, log_.durable_group()), *backup_);
  log_.check();  // as above
  std::error_code error;
  const std::string name = name_of(file_kind::checkpoint, number_);
  directory().rename(unfinished_name(number_), name, error);
  throw_if(error, "rename to", directory(), name);
  named_ = true;
  directory().sync(error);
  throw_if(error, "sync", directory());
  if (backup_ == nullptr && !log_.options_.keep_history) remove_older(report);
  return report;
}

// None of these files is needed any more, so it means nothing in which order they vanish, or
// whether the directory is synced.
void checkpoint_writer::remove_older(finished_checkpoint& report) {
  log_directory& directory = log_.writer_->directory();
  log_.writer_->forget_segments_before(first_segment_);
  const std::vector<std::string> names = directory.names(report.removal);
  if (report.removal) return;
  for (const std::string& name : names) {
    const auto segment = number_of(file_kind::segment, name);
    const auto checkpoint = number_of(file_kind::checkpoint, name);
    const bool older =
        (segment && *segment < first_segment_) || (checkpoint && *checkpoint < number_);
    if (!older) continue;
    std::error_code error;
    directory.remove(name, error);
    if (error) {
      report.removal = error;
    } else if (segment) {
      ++report.removed_segments;
    }
  }
}

}  // namespace elidex::internal
