// Serializes committed groups into segment files, in the order that redo_log.hpp's proofs require.
//
//   log_writer writer(folder, found, fingerprint, segment_bytes);
//   // written and synced when end_epoch() returns
//   writer.begin_epoch(7); writer.records(payload); ... ; writer.end_epoch();
//   writer.after_epoch();  // notes the sync in the file, or begins the next segment
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

#include "elidex/internal/log/log_files.hpp"
#include "elidex/internal/log/log_format.hpp"
#include "elidex/internal/log/recovery.hpp"

namespace elidex::internal {

// Throws std::system_error if there is an error.
void throw_if(const std::error_code& error, const char* what, const std::string& name);

// A random number, different for each file. It is no secret.
std::uint64_t new_salt() noexcept;

// A file of blocks that is being written. It buffers small pieces.
class block_file {
 public:
  // Creates the file, and buffers its header.
  block_file(log_folder& folder, std::string name, const file_header& header);

  void block(block_header header, std::span<const std::byte> payload);
  void flush();
  void sync();
  std::uint64_t size() const noexcept { return size_; }  // with the buffered bytes

 private:
  std::string name_;
  std::unique_ptr<log_file> file_;
  byte_buffer gathered_;
  std::uint64_t size_ = 0;
  std::uint32_t seed_ = 0;
};

class log_writer {
 public:
  log_writer(log_folder& folder, const recovered_log& found, std::uint64_t fingerprint,
             std::size_t segment_bytes);

  void begin_epoch(std::uint64_t epoch) noexcept;
  void records(std::span<const std::byte> payload);  // not empty
  // Writes and syncs the epoch if it has records. Returns whether it has.
  bool end_epoch();
  void after_epoch();

  // The first segment that has, or would get, entries of this epoch or later.
  std::uint64_t first_segment_with(std::uint64_t epoch);
  // The last epoch that has entries and is synced.
  std::uint64_t last_epoch();

  log_folder& folder() noexcept { return folder_; }
  std::uint64_t fingerprint() const noexcept { return fingerprint_; }
  // Returns the next checkpoint's number, or 0 while another one is being written.
  std::uint64_t begin_checkpoint();
  void end_checkpoint();

 private:
  void begin_segment(std::uint64_t number, std::uint64_t previous_bytes, std::uint64_t first_epoch);
  block_header header_now(block_kind kind) const noexcept;

  log_folder& folder_;
  const std::uint64_t fingerprint_;
  const std::size_t segment_bytes_;
  std::unique_ptr<block_file> segment_;
  std::uint64_t epoch_ = 0;
  std::uint64_t synced_ = 0;  // the last epoch that has records and is synced
  end_counts counts_;

  std::mutex mutex_;  // protects the members below
  std::uint64_t last_checkpoint_;
  bool checkpoint_runs_ = false;
  std::vector<recovered_log::segment> segments_;  // the last one's last_epoch is synced_
};

}  // namespace elidex::internal
