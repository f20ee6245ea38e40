// A file of the log that is being read: its header, and its blocks.
//
//   log_input file(directory, name_of(file_kind::segment, 7));
//   const parsed_file_header parsed = read_header(file, file_kind::segment);
//   check_whole_header(file, parsed, 7, fingerprint);
//   log_block block;
//   read_block(file, file_header_bytes, file.size(), parsed, block);   // false: no whole block
//
// Thread-safety: one thread at a time.
// Errors: log_error and std::system_error, with the file's name and the offset; std::bad_alloc.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "elidex/internal/log/log_files.hpp"
#include "elidex/internal/log/log_format.hpp"

namespace elidex::internal {

// Returns the numbers of a directory's files of one kind, ascending.
std::vector<std::uint64_t> numbers_in(log_directory& directory, file_kind kind);

class log_input {
 public:
  log_input(log_directory& directory, const std::string& name);

  // With the directory's path.
  const std::string& name() const noexcept { return name_; }
  // The file's length when it was opened, or at the last look_again().
  std::uint64_t size() const noexcept { return size_; }
  void look_again();

  // Reads as many of these bytes as there are.
  void read(std::uint64_t offset, std::uint64_t bytes, byte_buffer& to) const;

  [[noreturn]] void damaged(std::uint64_t offset, const std::string& why) const;

 private:
  std::string name_;
  std::unique_ptr<log_file> file_;
  std::uint64_t size_ = 0;
};

// A header that is damaged is returned as such. Throws log_error for one of another version, or of
// a compression that the library was built without.
parsed_file_header read_header(const log_input& file, file_kind kind);
// Whether the newest segment has no whole header yet. Its header is synced before anything is
// written behind it. Until then the file may contain any bytes, up to the header's length, also the
// header of an earlier file, whose place on the disk it has taken.
bool is_being_made(const log_input& file, const parsed_file_header& parsed, std::uint64_t number);
void check_whole_header(const log_input& file, const parsed_file_header& parsed,
                        std::uint64_t number, std::uint64_t fingerprint);

// A block whose checksums are right.
struct log_block {
  block_header header;
  byte_buffer payload;

  std::uint64_t end() const noexcept {
    return header.offset + block_header_bytes + header.payload_bytes;
  }
};

// Returns false if no whole block is there before `limit`. The payload is decompressed.
bool read_block(const log_input& file, std::uint64_t offset, std::uint64_t limit,
                const parsed_file_header& of, log_block& to);
end_counts counts_of(const log_input& file, const log_block& end);

// The groups in the headers of blocks behind a block that is not whole.
struct later_blocks {
  std::uint64_t synced = 0;  // the last group that had been synced when one of them was written
  std::uint64_t newest = 0;  // the last group of one of them
};
later_blocks blocks_behind(const log_input& file, const parsed_file_header& of,
                           std::uint64_t offset);

}  // namespace elidex::internal
