// Reads a log's directory: after its writer has gone (recovery.hpp), or while another process
// writes it.
//
//   log_reader reader(*directory, fingerprint, log_reader::writer::running, apply);
//   const recovered_log found = reader.read_all();   // apply(entry), as recovery.hpp describes
//   // then, again and again
//   reader.read_on();
//   // apply(entry) for one batch, then commit()
//   while (reader.has_next()) reader.apply_next([&] { return commit(); });
//
// Thread-safety: one thread at a time.
// Errors: those of recovery.hpp. With a running writer also log_error (left_behind): the writer has
// removed a segment that this reader has not begun. The reader must not be used after an exception
// of read_all() or read_on(). If an exception passes through apply_next(), its batch is still the
// next one.
//
// Implementation notes
// With a running writer, a batch may be whole in the file and not yet durable. A power failure
// could still lose it, so the reader keeps it until a later block says that it has been synced
// (block_header::durable_group), or until the next segment begins. What a checkpoint's end names as
// durable needs no such proof.
//
// The reader opens all files before it applies the first entry. If a file has gone by then, because
// the writer has finished a checkpoint, it begins again. Afterwards the writer may remove files:
// an open file can still be read.
//
// Why the reader sees no wrong end. A block that is being written is not whole by its checksums,
// and the reader waits. If bytes behind it prove that it had been synced, then it was complete
// before they were written. So the reader looks at the block once more, and a block that is still
// not whole is damaged.
//
// The next segment's header gives the length of the present one, and everything up to there is
// durable. A writer that has recovered after a power failure may have cut off batches that the
// reader keeps. The reader drops those.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "elidex/internal/log/log_files.hpp"
#include "elidex/internal/log/log_format.hpp"
#include "elidex/internal/log/log_input.hpp"
#include "elidex/internal/log/recovery.hpp"

namespace elidex::internal {

class log_reader {
 public:
  enum class writer : bool { gone, running };
  using entry_function = std::function<void(const log_entry&)>;

  log_reader(log_directory& directory, std::uint64_t fingerprint, writer whose,
             entry_function apply);

  // Reads the checkpoint and the log, and applies what is durable. To be called once.
  recovered_log read_all();

  // The rest is for a running writer, after read_all().
  // Reads what the writer has written since.
  void read_on();
  // Whether there is a durable batch that has not been applied.
  bool has_next() const noexcept;
  // Whether read_on() has ended before the end of the log, because so many batches can be applied.
  // Call it again then, when they have been applied.
  bool is_full() const noexcept;
  // Applies the next durable batch and calls done(). If that returns true, forgets the batch.
  // Returns what done() returns, or false if there is no batch.
  bool apply_next(const std::function<bool()>& done);
  // If there is a checkpoint that this function and read_all() have not seen, calls visit(entry)
  // for its rows from the first on, until visit returns false. Returns whether there is one.
  // Also gives the first group that the log has behind the checkpoint.
  bool visit_newer_checkpoint(const std::function<bool(const log_entry&)>& visit,
                              std::uint64_t& first_group);

 private:
  // Chosen. The reader stops at this size if it can apply a batch.
  static constexpr std::size_t waiting_bytes_max = std::size_t{64} << 20;
  // Chosen: a part of a batch that is read again and again without harm.
  static constexpr std::uint64_t long_bytes = std::uint64_t{1} << 20;

  struct segment {
    std::uint64_t number;
    log_input file;
    parsed_file_header parsed;
  };
  // A whole batch that has not been applied.
  struct batch {
    std::uint64_t segment = 0;
    std::uint64_t begin = 0;  // offset of its end block, for messages
    std::uint64_t end = 0;    // offset behind it
    std::uint64_t previous_group = 0;
    std::uint64_t group = 0;
    std::vector<byte_buffer> payloads{};
  };

  std::vector<segment> open_files();
  std::vector<segment> open_files_once();
  std::vector<std::uint64_t> list_files();
  void open_checkpoint();
  void read_checkpoint(const log_input& file);
  template <class Reader>
  void apply_rows(const log_input& file, const log_block& rows, Reader payload);

  void read_segments(const std::vector<segment>& segments);
  void check_numbers(const std::vector<std::uint64_t>& numbers) const;
  void drop_torn_segment(std::vector<segment>& segments);
  void read_older(const segment& from, std::uint64_t limit);
  void read_newest(const segment& from);
  [[noreturn]] void damaged_end(const segment& from, std::uint64_t end, std::uint64_t synced) const;
  std::uint64_t read_batches(const segment& from, std::uint64_t begin, std::uint64_t limit);
  void apply_batch(const batch& one);
  void apply_durable();

  static std::size_t bytes_of(const batch& one) noexcept;
  void keep(batch&& one);
  bool has_segment(std::uint64_t number) const;
  bool begin_next_segment();
  bool finish_segment(segment& present, const file_header& next);
  void read_tail(segment& present);
  std::uint64_t first_segment_behind(std::uint64_t missing) const;
  bool continue_behind_gap(std::uint64_t missing, std::uint64_t number);
  void begin(segment&& next);
  void note_durable(std::uint64_t by_next_header) noexcept;
  std::uint64_t visit_rows(std::uint64_t number,
                           const std::function<bool(const log_entry&)>& visit);

  log_directory& directory_;
  const std::uint64_t fingerprint_;
  const writer whose_;
  const entry_function apply_;
  recovered_log found_;
  std::optional<log_input> checkpoint_;
  parsed_file_header checkpoint_header_;
  std::uint64_t replay_from_ = 0;
  std::uint64_t first_segment_ = 1;
  std::uint64_t log_reaches_ = 0;     // by the checkpoint
  std::uint64_t last_row_group_ = 0;  // of the checkpoint's rows
  std::uint64_t whole_group_ = 0;     // the last batch that was read
  std::uint64_t last_group_seen_ = 0;
  std::vector<log_entry> entries_;  // of one batch

  // With a running writer.
  std::optional<segment> current_;        // the newest segment
  std::uint64_t offset_ = 0;              // in it, behind the last whole batch
  std::uint64_t durable_group_ = 0;       // by proof
  std::uint64_t next_durable_group_ = 0;  // by the header of the segment behind current_
  std::uint64_t applied_group_ = 0;
  std::uint64_t applied_segment_ = 0;  // of the last batch that was applied
  std::uint64_t applied_end_ = 0;      // offset behind it
  // The size of current_ when its torn end was searched for proofs, when read_batches() was last
  // tried, and at the last look.
  std::uint64_t searched_size_ = 0;
  std::uint64_t tried_size_ = 0;
  std::uint64_t last_size_ = 0;
  std::uint64_t checkpoint_seen_ = 0;
  std::deque<batch> waiting_;  // whole batches that have not been applied
  std::size_t waiting_bytes_ = 0;
};

}  // namespace elidex::internal
