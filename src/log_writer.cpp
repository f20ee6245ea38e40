#include "elidex/internal/log/log_writer.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <system_error>

namespace elidex::internal {
namespace {

// Payloads that are shorter are copied to those before them, so that a batch of small buffers is
// one write.
constexpr std::size_t gathered_payload_bytes_max = std::size_t{64} << 10;
constexpr std::size_t gathered_bytes_max = std::size_t{256} << 10;
// Chosen: to remove a shorter segment is not worth another file and its fsync.
constexpr std::size_t long_segment_bytes = std::size_t{64} << 10;

}  // namespace

void throw_if(const std::error_code& error, const char* what, const log_directory& in,
              const std::string& name) {
  if (error)
    throw std::system_error(error, std::string("elidex: cannot ") + what + " " + in.shown(name));
}

std::uint64_t new_salt() noexcept {
  static std::atomic<std::uint64_t> made{0};
  // Where the process's memory lies is random on most systems; the clocks differ from run to run.
  std::uint64_t mixed =
      static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  mixed += made.fetch_add(0x9E37'79B9'7F4A'7C15u) + reinterpret_cast<std::uintptr_t>(&made);
  mixed ^= static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count())
           << 20U;
  mixed = (mixed ^ (mixed >> 31U)) * 0xD6E8'FEB8'6659'FD93u;
  return mixed ^ (mixed >> 29U);
}

block_file::block_file(log_directory& directory, std::string name, const file_header& header)
    : directory_(directory), name_(std::move(name)), compressed_(header.compressed) {
  std::error_code error;
  file_ = directory.create(name_, error);
  throw_if(error, "create", directory_, name_);
  append_file_header(gathered_, header);
  seed_ = parse_file_header(gathered_.bytes(), header.kind).crc;
  size_ = gathered_.size();
}

std::uint64_t block_file::block(block_header header, std::span<const std::byte> payload) {
  if (compressed_ == compression::zstd) {
    const std::span<const std::byte> packed = compressor_.compress(payload);
    header.compressed = !packed.empty();
    if (header.compressed) payload = packed;
  }
  header.offset = size_;
  header.payload_bytes = payload.size();
  header.payload_crc = crc32c(payload);
  append_block_header(gathered_, header, seed_);
  size_ += block_header_bytes + payload.size();
  if (payload.size() <= gathered_payload_bytes_max) {
    gathered_.append(payload);
    if (gathered_.size() >= gathered_bytes_max) flush();
    return payload.size();
  }
  flush();
  std::error_code error;
  write_whole(*file_, payload, error);
  throw_if(error, "write", directory_, name_);
  return payload.size();
}

void block_file::flush() {
  if (gathered_.empty()) return;
  std::error_code error;
  write_whole(*file_, gathered_.bytes(), error);
  throw_if(error, "write", directory_, name_);
  gathered_.clear();
}

void block_file::sync() {
  flush();
  std::error_code error;
  file_->sync(error);
  throw_if(error, "sync", directory_, name_);
}

log_writer::log_writer(log_directory& directory, const recovered_log& found,
                       std::uint64_t fingerprint, std::size_t segment_bytes, compression compressed)
    : directory_(directory),
      fingerprint_(fingerprint),
      segment_bytes_(segment_bytes),
      compressed_(compressed),
      synced_(found.durable_group),
      last_checkpoint_(found.checkpoint),
      segments_(found.segments) {
  // A killed process has left in the system's cache what the disk need not have yet; what follows
  // is to depend on it: the files' names first, lest the next segment's be there and the last one's
  // not.
  std::error_code error;
  directory_.sync(error);
  throw_if(error, "sync", directory_);
  if (!segments_.empty()) {
    const std::string name = name_of(file_kind::segment, segments_.back().number);
    const std::unique_ptr<log_file> last = directory_.open(name, error);
    throw_if(error, "open", directory_, name);
    last->sync(error);
    throw_if(error, "sync", directory_, name);
  }
  for (const std::string& name : found.unfinished) {
    directory_.remove(name, error);
    throw_if(error, "remove", directory_, name);
  }
  if (found.next_is_torn) {
    const std::string name = name_of(file_kind::segment, found.next_segment);
    directory_.remove(name, error);
    throw_if(error, "remove", directory_, name);
  }
  continue_in(make_segment(found.next_segment, found.whole_bytes, found.first_group),
              found.next_segment);
}

std::unique_ptr<block_file> log_writer::make_segment(std::uint64_t number,
                                                     std::uint64_t previous_bytes,
                                                     std::uint64_t first_group) {
  const file_header header{.kind = file_kind::segment,
                           .salt = new_salt(),
                           .number = number,
                           .first_group = first_group,
                           .durable_group = synced_,
                           .previous_bytes = previous_bytes,
                           .first_segment = 0,
                           .fingerprint = fingerprint_,
                           .compressed = compressed_};
  auto made = std::make_unique<block_file>(directory_, name_of(file_kind::segment, number), header);
  made->sync();
  return made;
}

void log_writer::continue_in(std::unique_ptr<block_file> next, std::uint64_t number) {
  std::error_code error;
  directory_.sync(error);
  throw_if(error, "sync", directory_);
  if (segment_ != nullptr) full_segments_bytes_ += segment_->size();
  segment_ = std::move(next);
  const std::lock_guard guard(mutex_);
  segments_.push_back({number, synced_});
}

block_header log_writer::header_now(block_kind kind) const noexcept {
  return {.kind = kind,
          .group = group_,
          .offset = 0,
          .payload_bytes = 0,
          .durable_group = synced_,
          .payload_crc = 0,
          .compressed = false};
}

void log_writer::begin_batch(std::uint64_t group) noexcept {
  group_ = group;
  counts_ = {};
}

void log_writer::records(std::span<const std::byte> payload) {
  counts_.payload_bytes += segment_->block(header_now(block_kind::records), payload);
  ++counts_.blocks;
}

bool log_writer::end_batch() {
  if (counts_.blocks == 0) return false;
  segment_->block(header_now(block_kind::end), encode(counts_));
  segment_->sync();
  synced_ = group_;
  const std::lock_guard guard(mutex_);
  segments_.back().last_group = synced_;
  return true;
}

void log_writer::after_batch() {
  if (segment_->size() >= segment_bytes_) {
    const std::uint64_t next = newest_segment() + 1;
    continue_in(make_segment(next, segment_->size(), group_ + 1), next);
    return;
  }
  segment_->block(header_now(block_kind::confirmed), {});
  segment_->flush();
}

void log_writer::end_segment() {
  const std::size_t long_bytes = std::min(long_segment_bytes, segment_bytes_ / 2);
  if (segment_->size() <= std::max(file_header_bytes, long_bytes)) return;
  segment_->sync();  // after_batch() has not synced what it wrote, and the next header counts it
  const std::uint64_t next = newest_segment() + 1;
  std::unique_ptr<block_file> made;
  try {
    made = make_segment(next, segment_->size(), group_ + 1);
  } catch (const std::system_error&) {
    // On a full disk for example. The present segment continues if nothing is left of the next one.
    std::error_code error;
    directory_.remove(name_of(file_kind::segment, next), error);
    if (!error || error == std::errc::no_such_file_or_directory) directory_.sync(error);
    if (error) throw;
    return;
  }
  continue_in(std::move(made), next);
}

std::uint64_t log_writer::newest_segment() {
  const std::lock_guard guard(mutex_);
  return segments_.back().number;
}

std::uint64_t log_writer::first_segment_with(std::uint64_t group) {
  const std::lock_guard guard(mutex_);
  for (const recovered_log::segment& each : segments_) {
    if (each.last_group >= group) return each.number;
  }
  return segments_.back().number;
}

void log_writer::forget_segments_before(std::uint64_t number) {
  const std::lock_guard guard(mutex_);
  std::erase_if(segments_, [&](const auto& one) { return one.number < number; });
}

std::uint64_t log_writer::last_group() {
  const std::lock_guard guard(mutex_);
  return segments_.back().last_group;
}

std::uint64_t log_writer::begin_checkpoint() {
  const std::lock_guard guard(mutex_);
  if (checkpoint_runs_) return 0;
  checkpoint_runs_ = true;
  return ++last_checkpoint_;
}

void log_writer::end_checkpoint() {
  const std::lock_guard guard(mutex_);
  checkpoint_runs_ = false;
}

}  // namespace elidex::internal
