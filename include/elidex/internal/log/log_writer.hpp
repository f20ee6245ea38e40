// Serializes batches of commit groups into segment files, in the order that redo_log.hpp's proofs
// require.
//
//   log_writer writer(directory, found, fingerprint, segment_bytes);
//   // written and synced when end_batch() returns
//   writer.begin_batch(7); writer.records(payload); ... ; writer.end_batch();
//   writer.after_batch();  // notes the sync in the file, or begins the next segment
//
// Thread-safety: one thread. The functions from first_segment_with() on are for checkpoints, and
// may be called from any thread.
// Errors: every function throws std::system_error or std::bad_alloc. Afterwards the writer must not
// be used any more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "elidex/internal/log/log_compression.hpp"
#include "elidex/internal/log/log_files.hpp"
#include "elidex/internal/log/log_format.hpp"
#include "elidex/internal/log/recovery.hpp"

namespace elidex::internal {

// Throws std::system_error if there is an error.
void throw_if(const std::error_code& error, const char* what, const log_directory& in,
              const std::string& name = {});

// A random number, different for each file. It is no secret.
std::uint64_t new_salt() noexcept;

// A file of blocks that is being written. It buffers small pieces.
class block_file {
 public:
  // Creates the file, and buffers its header.
  block_file(log_directory& directory, std::string name, const file_header& header);

  // Returns the bytes of the payload in the file.
  std::uint64_t block(block_header header, std::span<const std::byte> payload);
  void flush();
  void sync();
  std::uint64_t size() const noexcept { return size_; }  // with the buffered bytes

 private:
  log_directory& directory_;
  std::string name_;
  std::unique_ptr<log_file> file_;
  byte_buffer gathered_;
  std::uint64_t size_ = 0;
  std::uint32_t seed_ = 0;
  const compression compressed_;
  block_compressor compressor_;
};

class log_writer {
 public:
  log_writer(log_directory& directory, const recovered_log& found, std::uint64_t fingerprint,
             std::size_t segment_bytes, compression compressed = compression::none);

  // `group` is the batch's last commit group.
  void begin_batch(std::uint64_t group) noexcept;
  void records(std::span<const std::byte> payload);  // not empty
  // Writes and syncs the batch if it has records. Returns whether it has.
  bool end_batch();
  void after_batch();
  // Begins the next segment, if the present one is long. To be called after end_batch().
  void end_segment();

  // The first segment that has, or would get, entries of this group or later.
  std::uint64_t first_segment_with(std::uint64_t group);
  // The last group that has entries and is synced.
  std::uint64_t last_group();
  // The caller removes them.
  void forget_segments_before(std::uint64_t number);

  // Of all segments that this writer has begun. The caller is the thread that writes.
  std::uint64_t written_bytes() const noexcept { return full_segments_bytes_ + segment_->size(); }

  log_directory& directory() noexcept { return directory_; }
  std::uint64_t fingerprint() const noexcept { return fingerprint_; }
  compression compressed() const noexcept { return compressed_; }
  // Returns the next checkpoint's number, or 0 while another one is being written.
  std::uint64_t begin_checkpoint();
  void end_checkpoint();

 private:
  std::unique_ptr<block_file> make_segment(std::uint64_t number, std::uint64_t previous_bytes,
                                           std::uint64_t first_group);
  void continue_in(std::unique_ptr<block_file> next, std::uint64_t number);
  std::uint64_t newest_segment();
  block_header header_now(block_kind kind) const noexcept;

  log_directory& directory_;
  const std::uint64_t fingerprint_;
  const std::size_t segment_bytes_;
  const compression compressed_;
  std::unique_ptr<block_file> segment_;
  std::uint64_t full_segments_bytes_ = 0;
  std::uint64_t group_ = 0;   // the last group of the present batch
  std::uint64_t synced_ = 0;  // the last group that has records and is synced
  end_counts counts_;

  std::mutex mutex_;  // protects the members below
  std::uint64_t last_checkpoint_;
  bool checkpoint_runs_ = false;
  std::vector<recovered_log::segment> segments_;  // the last one's last_group is synced_
};

}  // namespace elidex::internal
