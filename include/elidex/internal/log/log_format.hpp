// The bytes of a log's files (docs/LOG_FORMAT.md has the tables): encoding, decoding and checksums.
// Opens no files.
//
//   byte_buffer bytes;
//   append_file_header(bytes, header);
//   append_block_header(bytes, block, seed);    // then the payload
//
// Thread-safety: values, as the standard library's containers.
// Errors: at each function.
//
// Implementation notes
// All numbers are little-endian. A file is a header followed by blocks without gaps. A block's
// header has its kind, its commit group, its offset, its payload's length and two CRC32C: of the
// payload, and of the header itself. The latter starts from the file header's CRC, which covers a
// random number and the file's own number. So a block of another file, or of another offset, is
// never taken for a block of this offset. This holds for blocks within a row's bytes, and for those
// in sectors that the file system used before.
#pragma once

#include <array>
#include <bit>
#include <concepts>
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

// A transaction's stamp in the log: commit_stamp.hpp's word without its state bits.
constexpr std::uint64_t make_stamp(std::uint64_t group, std::uint64_t number) noexcept {
  return commit_stamp(group, number).word();
}
constexpr std::uint64_t group_of_stamp(std::uint64_t stamp) noexcept {
  return commit_stamp(stamp).group();
}

// --- Entries ---

// The table that describes the others (storage.hpp).
inline constexpr std::uint32_t catalog_table = 0;

// change: gives other values to some words of a present row.
enum class log_operation : std::uint8_t { upsert, erase, change };

// A change of one row. The bytes belong to the code that passes the entry on.
struct log_entry {
  std::uint32_t table = 0;
  log_operation operation = log_operation::upsert;
  std::uint64_t stamp = 0;
  std::string_view key;
  std::string_view row;  // of an upsert (for a change see apply_change())
};

// The most bytes of a key or a row.
inline constexpr std::size_t log_bytes_max = 0x7FFF'FFFE;

// Applies a logged change to a row. Returns false, and leaves the row unchanged, if the change does
// not fit the row.
bool apply_change(std::span<std::byte> row, const log_entry& change) noexcept;

// --- What a reader may find ---

enum class log_problem {
  damaged,  // synced bytes are not as written, or a file is missing
  // The format is of another version, which this library does not read: a later one, or one that
  // was never released.
  other_version,
  other_schema,  // the fingerprint is not the caller's
  // The files are compressed by a method that this build of the library does not have.
  other_compression,
  // The writer has removed files that a follower had not read.
  left_behind,
};

// what() has the file, the offset and the reason.
class log_error : public std::runtime_error {
 public:
  log_error(log_problem problem, const std::string& what)
      : std::runtime_error(what), problem_(problem) {}
  log_problem problem() const noexcept { return problem_; }

 private:
  log_problem problem_;
};

// CRC32C (Castagnoli) of the bytes. `before` is the CRC of the bytes in front of them.
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;
// The same without special instructions.
std::uint32_t crc32c_by_tables(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

// A growing sequence of bytes. Unlike std::vector it does not zero new bytes, and clear() keeps its
// memory.
class byte_buffer {
 public:
  std::size_t size() const noexcept { return size_; }
  std::size_t capacity() const noexcept { return capacity_; }
  bool empty() const noexcept { return size_ == 0; }
  std::byte* data() noexcept { return bytes_.get(); }
  std::span<const std::byte> bytes() const noexcept { return {bytes_.get(), size_}; }

  // Appends so many bytes, which the caller writes. If it throws std::bad_alloc, nothing has
  // changed.
  std::byte* grow(std::size_t bytes) {
    if (bytes > capacity_ - size_) enlarge(bytes);
    std::byte* const begin = bytes_.get() + size_;
    size_ += bytes;
    return begin;
  }
  void append(std::span<const std::byte> bytes) {
    if (!bytes.empty()) std::memcpy(grow(bytes.size()), bytes.data(), bytes.size());
  }
  void shrink(std::size_t size) noexcept { size_ = size; }  // size <= size()
  void clear() noexcept { size_ = 0; }
  // Gives back memory that is not in use. If it throws std::bad_alloc, nothing has changed.
  void fit() {
    if (size_ == capacity_) return;
    auto exact = std::make_unique_for_overwrite<std::byte[]>(size_);
    if (size_ != 0) std::memcpy(exact.get(), bytes_.get(), size_);
    bytes_ = std::move(exact);
    capacity_ = size_;
  }
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

// Little-endian on every machine.
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

inline constexpr std::uint32_t log_version = 3;
inline constexpr std::uint32_t log_version_least = 2;  // the oldest that this library reads
inline constexpr std::size_t file_header_bytes = 80;
inline constexpr std::size_t block_header_bytes = 48;
inline constexpr std::size_t record_header_bytes = 16;
inline constexpr std::size_t entry_header_bytes = 12;
inline constexpr std::size_t piece_header_bytes = 4;

enum class file_kind { segment, checkpoint };
// How the payloads of a file's blocks are compressed, each by itself. A block may also be stored as
// it is.
enum class compression : std::uint8_t { none, zstd };

struct file_header {
  file_kind kind = file_kind::segment;
  std::uint64_t salt = 0;    // of this file: random
  std::uint64_t number = 0;  // as in the file's name, from 1 on
  std::uint64_t first_group =
      // Segment: its entries have this group or a later one. Checkpoint: the log is replayed from
      // this group on.
      0;
  // Segment: the last group with entries in the segments before it.
  std::uint64_t durable_group = 0;
  // Segment: the valid length of the segment before it. 0: there was none.
  std::uint64_t previous_bytes = 0;
  std::uint64_t first_segment = 0;  // checkpoint: where the replay begins
  std::uint64_t fingerprint = 0;    // of the schema
  compression compressed = compression::none;
};

void append_file_header(byte_buffer& to, const file_header& header);

// The result of parsing a header.
enum class header_verdict { whole, damaged, other_version };
struct parsed_file_header {
  header_verdict verdict = header_verdict::damaged;
  file_header header;
  std::uint32_t crc = 0;      // the seed of its blocks' CRCs
  std::uint32_t version = 0;  // of a file with another version
};
parsed_file_header parse_file_header(std::span<const std::byte> bytes, file_kind kind) noexcept;

// --- Blocks ---

enum class block_kind : std::uint32_t {
  records = 1,    // whole transactions; in a checkpoint of version 2, one row each
  end = 2,        // ends a batch or a checkpoint, and counts its blocks
  confirmed = 3,  // has no payload, only the header's durable_group
  rows = 4,       // of one table, in a checkpoint
};

struct block_header {
  block_kind kind = block_kind::records;
  std::uint64_t group = 0;   // the last commit group of its batch
  std::uint64_t offset = 0;  // of the header, in its file
  std::uint64_t payload_bytes = 0;
  // All groups up to this one had been synced when the block was written.
  std::uint64_t durable_group = 0;
  std::uint32_t payload_crc = 0;
  bool compressed = false;  // the payload, by the file's method
};

void append_block_header(byte_buffer& to, const block_header& header, std::uint32_t seed);
// Returns no value if the bytes are no header of a block at this offset.
std::optional<block_header> parse_block_header(std::span<const std::byte> bytes,
                                               std::uint64_t offset, std::uint32_t seed) noexcept;

// Finds the first block header of this file at or after `begin`, and sets `begin` to its place. The
// header's own offset may differ, because bytes may have been inserted or lost before it.
std::optional<block_header> find_block_header(std::span<const std::byte> bytes, std::size_t& begin,
                                              std::uint32_t seed) noexcept;

// The payload of an end block.
struct end_counts {
  std::uint64_t blocks = 0;
  std::uint64_t payload_bytes = 0;
  // Checkpoint: the log has entries at least up to this group.
  std::uint64_t durable_group = 0;
  std::uint64_t last_group = 0;  // checkpoint: no entry has a later group
};
inline constexpr std::size_t end_counts_bytes = 32;
std::array<std::byte, end_counts_bytes> encode(const end_counts& counts) noexcept;
end_counts decode_end_counts(std::span<const std::byte> bytes) noexcept;  // of end_counts_bytes

// --- Records: one transaction's entries ---

inline void put_record_header(std::byte* to, std::uint64_t stamp, std::uint32_t entries,
                              std::uint32_t bytes) noexcept {
  put_number(to, stamp);
  put_number(to + 8, entries);
  put_number(to + 12, bytes);
}
// Both require a whole record.
inline std::uint64_t stamp_of_record(const std::byte* record) noexcept {
  return get_number<std::uint64_t>(record);
}
inline std::size_t bytes_of_record(const std::byte* record) noexcept {
  return get_number<std::uint32_t>(record + 12);
}
// What a record is written to: a byte_buffer, or a thread's queue (log_queue.hpp). The functions
// are those of byte_buffer.
template <class T>
concept growing_bytes = requires(T& to, std::size_t bytes) {
  { to.size() } -> std::same_as<std::size_t>;
  { to.data() } -> std::same_as<std::byte*>;
  { to.grow(bytes) } -> std::same_as<std::byte*>;
  to.shrink(bytes);
};

// Begins a record at the end. Entries follow, then finish_record().
template <growing_bytes To>
void begin_record(To& to) {
  to.grow(record_header_bytes);
}
// Throws std::length_error if the key or the row is too long, or std::bad_alloc. Then the record is
// unchanged. An erase has no row.
template <growing_bytes To>
void append_entry(To& to, std::uint32_t table, log_operation operation, std::string_view key,
                  std::string_view row);
// Appends a change if that is shorter, otherwise an upsert of `after`. Throws as append_entry(),
// and leaves the record unchanged then.
template <growing_bytes To>
void append_change(To& to, std::uint32_t table, std::string_view key, std::string_view before,
                   std::string_view after);
// Ends the record that begins at `begin`. The buffer's end is less than 4 GiB behind `begin`.
inline void finish_record(byte_buffer& to, std::size_t begin, std::uint64_t stamp,
                          std::uint32_t entries) noexcept {
  put_record_header(to.data() + begin, stamp, entries,
                    static_cast<std::uint32_t>(to.size() - begin));
}

namespace entry_parts {

// Throws std::length_error.
void check_length(std::string_view key, std::string_view row);

inline constexpr std::size_t row_field_at = 8;  // in an entry's header
// What the field contains, if not the number of the row's bytes.
inline constexpr std::uint32_t erased = 0xFFFF'FFFF;
inline constexpr std::uint32_t is_change = 0x8000'0000;  // with the bytes of its pieces

// Appends an entry without its row. Returns where the row's bytes go.
template <growing_bytes To>
std::byte* append_header(To& to, std::uint32_t table, std::string_view key, std::uint32_t row_field,
                         std::size_t row_bytes) {
  std::byte* const at = to.grow(entry_header_bytes + key.size() + row_bytes);
  put_number(at, table);
  put_number(at + 4, static_cast<std::uint32_t>(key.size()));
  put_number(at + row_field_at, row_field);
  if (!key.empty()) std::memcpy(at + entry_header_bytes, key.data(), key.size());
  return at + entry_header_bytes + key.size();
}

// Whether a change of such rows can be logged as pieces.
bool has_pieces(std::string_view before, std::string_view after) noexcept;
// Writes the pieces in which the rows differ into `to`, which has room for a row. Returns how many
// bytes that are, or the row's size if they are not shorter than the row.
std::size_t write_pieces(std::string_view before, std::string_view after, std::byte* to) noexcept;

}  // namespace entry_parts

template <growing_bytes To>
void append_entry(To& to, std::uint32_t table, log_operation operation, std::string_view key,
                  std::string_view row) {
  if (operation == log_operation::erase) row = {};
  entry_parts::check_length(key, row);
  const std::uint32_t field = operation == log_operation::erase
                                  ? entry_parts::erased
                                  : static_cast<std::uint32_t>(row.size());
  std::byte* const at = entry_parts::append_header(to, table, key, field, row.size());
  if (!row.empty()) std::memcpy(at, row.data(), row.size());
}

template <growing_bytes To>
void append_change(To& to, std::uint32_t table, std::string_view key, std::string_view before,
                   std::string_view after) {
  entry_parts::check_length(key, after);
  if (entry_parts::has_pieces(before, after)) {
    const std::size_t begin = to.size();
    std::byte* const row = entry_parts::append_header(to, table, key, 0, after.size());
    const std::size_t bytes = entry_parts::write_pieces(before, after, row);
    if (bytes < after.size()) {
      put_number(to.data() + begin + entry_parts::row_field_at,
                 entry_parts::is_change | static_cast<std::uint32_t>(bytes));
      to.shrink(begin + entry_header_bytes + key.size() + bytes);
      return;
    }
    to.shrink(begin);
  }
  append_entry(to, table, log_operation::upsert, key, after);
}

// Iterates over the entries of a payload of whole records.
class record_reader {
 public:
  explicit record_reader(std::span<const std::byte> payload) noexcept
      : rest_(payload), behind_record_(payload.size()) {}

  enum class parse_status { entry, end, malformed };
  parse_status next(log_entry& entry) noexcept;

 private:
  std::span<const std::byte> rest_;
  std::size_t behind_record_ = 0;  // bytes of rest_ behind the current record
  std::uint64_t stamp_ = 0;
  std::uint32_t entries_ = 0;
};

// --- Rows: what a checkpoint has of one table ---

// Appends rows to the payload of a block. All rows of a payload belong to one table. If
// must_begin() returns true, the caller writes the block and clears the buffer before append().
class row_writer {
 public:
  // Throws std::length_error if the key or the row is too long, or std::bad_alloc. Then the buffer
  // is unchanged.
  void append(byte_buffer& to, std::uint32_t table, std::string_view key, std::string_view row,
              std::uint64_t stamp);
  // Returns whether the next row must begin a block.
  bool must_begin(const byte_buffer& to, std::uint32_t table) const noexcept {
    return !to.empty() && table != table_;
  }

 private:
  std::uint32_t table_ = 0;
  std::uint64_t stamp_ = 0;  // of the row before
};

// Iterates over the rows of a payload. They are upserts.
class row_reader {
 public:
  explicit row_reader(std::span<const std::byte> payload) noexcept : rest_(payload) {}
  record_reader::parse_status next(log_entry& entry) noexcept;

 private:
  std::span<const std::byte> rest_;
  bool begun_ = false;
  std::uint32_t table_ = 0;
  std::uint64_t stamp_ = 0;
};

// --- Names ---

std::string name_of(file_kind kind, std::uint64_t number);
// The number of a name that name_of() returns.
std::optional<std::uint64_t> number_of(file_kind kind, std::string_view name) noexcept;
// The name of a checkpoint that is being written.
std::string unfinished_name(std::uint64_t number);
bool is_unfinished(std::string_view name) noexcept;
// The same of a segment that a backup copies.
std::string unfinished_copy_name(std::uint64_t number);
bool is_unfinished_copy(std::string_view name) noexcept;

}  // namespace elidex::internal
