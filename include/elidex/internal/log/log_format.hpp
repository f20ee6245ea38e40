// What lies in the files of a log, byte by byte (docs/LOG_FORMAT.md has the tables): encoding,
// decoding and checksums, without files.
//
//   byte_buffer bytes;
//   append_file_header(bytes, header);
//   append_block_header(bytes, block, seed);    // then the payload
//
// All numbers are little-endian. A file is a header and then blocks without gaps. A block's header
// says its kind, its epoch, where it lies and how long its payload is, and has two CRC32C: of the
// payload, and of itself. The latter starts from the file header's CRC, which covers a random
// number and the file's own: a block that comes from another file, or from another place of this
// one, is never taken for one of this place, be it in a row's bytes or in a sector that the file
// system has used before.
//
// Thread-safety: values, as of the standard library's containers.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "elidex/internal/txn/commit_stamp.hpp"

namespace elidex::internal {

// A transaction's stamp as the log has it: commit_stamp.hpp's word without its state bits.
constexpr std::uint64_t make_stamp(std::uint64_t epoch, std::uint64_t number) noexcept {
  return commit_stamp(epoch, number).word();
}
constexpr std::uint64_t epoch_of_stamp(std::uint64_t stamp) noexcept {
  return commit_stamp(stamp).epoch();
}

// --- Entries ---

// change: some words of a row that is there get other values.
enum class log_operation : std::uint8_t { put, erase, change };

// What happened to one row. The bytes belong to whoever hands the entry over.
struct log_entry {
  std::uint32_t table = 0;
  log_operation operation = log_operation::put;
  std::uint64_t stamp = 0;
  std::string_view key;
  std::string_view row;  // of a put; of a change what apply_change() takes
};

// A key or a row has at most so many bytes.
inline constexpr std::size_t log_bytes_max = 0x7FFF'FFFE;

// Makes the change that an entry has logged. False: it does not fit the row, of which nothing has
// changed then.
bool apply_change(std::span<std::byte> row, const log_entry& change) noexcept;

// --- What a reader may find ---

enum class log_problem {
  damaged,  // bytes that a sync had made safe are not what was written, or a file is missing
  // of a format that this version of the library does not read: a later one, or none that was
  // released
  other_version,
  other_schema,  // the fingerprint is not the caller's
};

// what() names the file, the offset and the reason.
class log_error : public std::runtime_error {
 public:
  log_error(log_problem problem, const std::string& what)
      : std::runtime_error(what), problem_(problem) {}
  log_problem problem() const noexcept { return problem_; }

 private:
  log_problem problem_;
};

// CRC32C (Castagnoli) of the bytes, going on from `before`, the CRC of what lies in front of them.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;
// The same on any CPU.
std::uint32_t crc32c_by_tables(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

// Bytes that grow at the end. As std::vector, but new ones are not zeroed first, and it is emptied
// without forgetting its memory.
class byte_buffer {
 public:
  std::size_t size() const noexcept { return size_; }
  std::size_t capacity() const noexcept { return capacity_; }
  bool empty() const noexcept { return size_ == 0; }
  std::byte* data() noexcept { return bytes_.get(); }
  std::span<const std::byte> bytes() const noexcept { return {bytes_.get(), size_}; }

  // As many bytes more, to be written by the caller; throws std::bad_alloc and then changes
  // nothing.
  std::byte* grow(std::size_t bytes) {
    if (bytes > capacity_ - size_) enlarge(bytes);
    std::byte* const begin = bytes_.get() + size_;
    size_ += bytes;
    return begin;
  }
  void append(std::span<const std::byte> bytes) {
    if (!bytes.empty()) std::memcpy(grow(bytes.size()), bytes.data(), bytes.size());
  }
  void shrink(std::size_t size) noexcept { size_ = size; }  // to at most what there is
  void clear() noexcept { size_ = 0; }
  void release() noexcept {
    bytes_.reset();
    size_ = capacity_ = 0;
  }

 private:
  void enlarge(std::size_t bytes);

  std::unique_ptr<std::byte[]> bytes_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

// Little-endian, whatever this machine is.
template <class T>
void put_number(std::byte* to, T value) noexcept {
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(to, &value, sizeof(T));
  } else {
    for (std::size_t i = 0; i < sizeof(T); ++i) to[i] = static_cast<std::byte>(value >> (8 * i));
  }
}

template <class T>
T get_number(const std::byte* from) noexcept {
  T value = 0;
  if constexpr (std::endian::native == std::endian::little) {
    std::memcpy(&value, from, sizeof(T));
  } else {
    for (std::size_t i = sizeof(T); i-- > 0;)
      value = static_cast<T>(value << 8) | std::to_integer<T>(from[i]);
  }
  return value;
}

// --- Files ---

inline constexpr std::uint32_t log_version = 2;
inline constexpr std::size_t file_header_bytes = 80;
inline constexpr std::size_t block_header_bytes = 48;
inline constexpr std::size_t record_header_bytes = 16;
inline constexpr std::size_t entry_header_bytes = 12;
inline constexpr std::size_t piece_header_bytes = 4;

enum class file_kind { segment, checkpoint };

struct file_header {
  file_kind kind = file_kind::segment;
  std::uint64_t salt = 0;    // of this file: random
  std::uint64_t number = 0;  // as in its name, from 1 on
  std::uint64_t first_epoch =
      // segment: its entries have this epoch or a later one. Checkpoint: the log is replayed from
      // it
      0;
  // segment: the last epoch of the segments before it that has entries
  std::uint64_t durable_epoch = 0;
  // segment: so much of the one before it counts; 0: there was none
  std::uint64_t previous_bytes = 0;
  std::uint64_t first_segment = 0;  // checkpoint: the segment that the replay begins with
  std::uint64_t fingerprint = 0;    // of the schema
};

void append_file_header(byte_buffer& to, const file_header& header);

// What a header's bytes say about it.
enum class header_verdict { whole, damaged, other_version };
struct parsed_file_header {
  header_verdict verdict = header_verdict::damaged;
  file_header header;
  std::uint32_t crc = 0;      // the seed of its blocks' CRCs
  std::uint32_t version = 0;  // of a newer one
};
parsed_file_header parse_file_header(std::span<const std::byte> bytes, file_kind kind) noexcept;

// --- Blocks ---

enum class block_kind : std::uint32_t {
  records = 1,    // whole transactions
  end = 2,        // of an epoch, or of a checkpoint; its payload counts what came before
  confirmed = 3,  // says nothing but its header's durable_epoch
};

struct block_header {
  block_kind kind = block_kind::records;
  std::uint64_t epoch = 0;
  std::uint64_t offset = 0;  // of the header, in its file
  std::uint64_t payload_bytes = 0;
  // all epochs up to this one had been synced when this was written
  std::uint64_t durable_epoch = 0;
  std::uint32_t payload_crc = 0;
};

void append_block_header(byte_buffer& to, const block_header& header, std::uint32_t seed);
// Nothing if these bytes are no header of a block that lies at this offset.
std::optional<block_header> parse_block_header(std::span<const std::byte> bytes,
                                               std::uint64_t offset, std::uint32_t seed) noexcept;

// The first place from `begin` on where a block header of this file lies, wherever it says that it
// should lie: bytes may have been put in or left out before it. `begin` becomes that place.
std::optional<block_header> find_block_header(std::span<const std::byte> bytes, std::size_t& begin,
                                              std::uint32_t seed) noexcept;

// What an end block's payload says.
struct end_counts {
  std::uint64_t blocks = 0;
  std::uint64_t payload_bytes = 0;
  // checkpoint: the log reaches at least to this epoch with entries
  std::uint64_t durable_epoch = 0;
  std::uint64_t last_epoch = 0;  // checkpoint: no entry is of a later epoch
};
inline constexpr std::size_t end_counts_bytes = 32;
std::array<std::byte, end_counts_bytes> encode(const end_counts& counts) noexcept;
end_counts decode_end_counts(std::span<const std::byte> bytes) noexcept;  // of so many bytes

// --- Records: one transaction's entries ---

inline void put_record_header(std::byte* to, std::uint64_t stamp, std::uint32_t entries,
                              std::uint32_t bytes) noexcept {
  put_number(to, stamp);
  put_number(to + 8, entries);
  put_number(to + 12, bytes);
}
// Of a record that is whole.
inline std::uint64_t stamp_of_record(const std::byte* record) noexcept {
  return get_number<std::uint64_t>(record);
}
inline std::size_t bytes_of_record(const std::byte* record) noexcept {
  return get_number<std::uint32_t>(record + 12);
}
// Begins a record at the buffer's end; entries follow, then finish_record().
inline void begin_record(byte_buffer& to) {
  to.grow(record_header_bytes);
}
// Throws std::length_error if key or row are too long; then, and after std::bad_alloc, the buffer
// is as before. An erase has no row.
void append_entry(byte_buffer& to, std::uint32_t table, log_operation operation,
                  std::string_view key, std::string_view row);
// As a change if that is shorter, otherwise as a put of `after`. Throws, and leaves the buffer, as
// append_entry().
void append_change(byte_buffer& to, std::uint32_t table, std::string_view key,
                   std::string_view before, std::string_view after);
// The record that begins at `begin` ends at the buffer's end, less than 4 GiB behind.
inline void finish_record(byte_buffer& to, std::size_t begin, std::uint64_t stamp,
                          std::uint32_t entries) noexcept {
  put_record_header(to.data() + begin, stamp, entries,
                    static_cast<std::uint32_t>(to.size() - begin));
}

// Walks over the entries of a payload of whole records.
class record_reader {
 public:
  explicit record_reader(std::span<const std::byte> payload) noexcept
      : rest_(payload), behind_record_(payload.size()) {}

  enum class step { entry, end, malformed };
  step next(log_entry& entry) noexcept;

 private:
  std::span<const std::byte> rest_;
  std::size_t behind_record_ = 0;  // bytes of rest_ that are not of the record under way
  std::uint64_t stamp_ = 0;
  std::uint32_t entries_ = 0;
};

// --- Names ---

std::string name_of(file_kind kind, std::uint64_t number);
// The number of a name that name_of() gives.
std::optional<std::uint64_t> number_of(file_kind kind, std::string_view name) noexcept;
// A checkpoint that is being written.
std::string unfinished_name(std::uint64_t number);
bool is_unfinished(std::string_view name) noexcept;

}  // namespace elidex::internal
