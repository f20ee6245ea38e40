#include "elidex/internal/log/log_format.hpp"

#include <algorithm>

namespace elidex::internal {
namespace {

constexpr std::uint32_t polynomial = 0x82F6'3B78;  // Castagnoli's, bits reversed

// tables[k][b] is the effect of the byte b on the CRC if k more bytes follow. So eight bytes are
// processed at once.
constexpr auto make_tables() {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t value = 0; value < 256; ++value) {
    std::uint32_t crc = value;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? polynomial : 0);
    tables[0][value] = crc;
  }
  for (std::size_t k = 1; k < tables.size(); ++k) {
    for (std::size_t value = 0; value < 256; ++value) {
      const std::uint32_t before = tables[k - 1][value];
      tables[k][value] = (before >> 8U) ^ tables[0][before & 0xFFU];
    }
  }
  return tables;
}

constexpr auto tables = make_tables();

constexpr std::uint64_t segment_magic = 0x474F'4C4F'4445'5245;     // "EREDOLOG"
constexpr std::uint64_t checkpoint_magic = 0x544B'5043'4344'4C45;  // "ELDCCPKT"
constexpr std::uint32_t block_magic = 0x4B4C'4245;                 // "EBLK"
constexpr std::uint32_t is_compressed = 0x100;                     // with a block's kind
// A stamp's lowest bits, which are zero in files (commit_stamp.hpp).
constexpr unsigned stamp_state_bits = 3;

// Where the fixed part of a file's header ends, which all versions have in common: magic, version,
// CRC of both.
constexpr std::size_t fixed_bytes = 16;

std::uint64_t magic_of(file_kind kind) noexcept {
  return kind == file_kind::segment ? segment_magic : checkpoint_magic;
}

}  // namespace

std::uint32_t crc32c_by_tables(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
  std::uint32_t crc = ~before;
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    const std::uint64_t word = get_number<std::uint64_t>(at) ^ crc;
    crc = 0;
    for (std::size_t k = 0; k < 8; ++k) crc ^= tables[7 - k][(word >> (8 * k)) & 0xFFU];
  }
  for (; left > 0; --left, ++at)
    crc = (crc >> 8U) ^ tables[0][(crc ^ std::to_integer<std::uint32_t>(*at)) & 0xFFU];
  return ~crc;
}

#if defined(__x86_64__) && !defined(ELIDEX_SIMULATED)
namespace {

// x86 has had an instruction for this polynomial since 2008.
[[gnu::target("sse4.2")]] std::uint32_t crc32c_by_instruction(std::span<const std::byte> bytes,
                                                              std::uint32_t before) noexcept {
  std::uint64_t crc = ~before;
  const std::byte* at = bytes.data();
  std::size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8)
    crc = __builtin_ia32_crc32di(crc, get_number<std::uint64_t>(at));
  auto last = static_cast<std::uint32_t>(crc);
  for (; left > 0; --left, ++at)
    last = __builtin_ia32_crc32qi(last, std::to_integer<std::uint8_t>(*at));
  return ~last;
}

}  // namespace

std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
  static const bool has_instruction = __builtin_cpu_supports("sse4.2") != 0;
  return has_instruction ? crc32c_by_instruction(bytes, before) : crc32c_by_tables(bytes, before);
}
#else
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
  return crc32c_by_tables(bytes, before);
}
#endif

void byte_buffer::enlarge(std::size_t bytes) {
  constexpr std::size_t least = 4096;
  const std::size_t wanted = std::max({capacity_ * 2, size_ + bytes, least});
  std::unique_ptr<std::byte[]> larger(new std::byte[wanted]);
  if (size_ != 0) std::memcpy(larger.get(), bytes_.get(), size_);
  bytes_ = std::move(larger);
  capacity_ = wanted;
}

void append_file_header(byte_buffer& to, const file_header& header) {
  std::byte* const begin = to.grow(file_header_bytes);
  std::memset(begin, 0, file_header_bytes);
  put_number(begin, magic_of(header.kind));
  put_number(begin + 8, log_version);
  put_number(begin + 12, crc32c({begin, 12}));
  put_number(begin + 16, header.salt);
  put_number(begin + 24, header.number);
  put_number(begin + 32, header.first_group);
  put_number(begin + 40, header.durable_group);
  put_number(begin + 48, header.previous_bytes);
  put_number(begin + 56, header.first_segment);
  put_number(begin + 64, header.fingerprint);
  put_number(begin + 72, static_cast<std::uint32_t>(header.compressed));
  put_number(begin + 76, crc32c({begin, 76}));
}

parsed_file_header parse_file_header(std::span<const std::byte> bytes, file_kind kind) noexcept {
  parsed_file_header parsed;
  if (bytes.size() < fixed_bytes) return parsed;
  const std::byte* const begin = bytes.data();
  if (get_number<std::uint64_t>(begin) != magic_of(kind)) return parsed;
  if (get_number<std::uint32_t>(begin + 12) != crc32c(bytes.first(12))) return parsed;
  parsed.version = get_number<std::uint32_t>(begin + 8);
  if (parsed.version < log_version_least || parsed.version > log_version) {
    parsed.verdict = header_verdict::other_version;
    return parsed;
  }
  if (bytes.size() < file_header_bytes) return parsed;
  parsed.crc = get_number<std::uint32_t>(begin + 76);
  if (parsed.crc != crc32c(bytes.first(76))) return parsed;
  parsed.verdict = header_verdict::whole;
  parsed.header.kind = kind;
  parsed.header.salt = get_number<std::uint64_t>(begin + 16);
  parsed.header.number = get_number<std::uint64_t>(begin + 24);
  parsed.header.first_group = get_number<std::uint64_t>(begin + 32);
  parsed.header.durable_group = get_number<std::uint64_t>(begin + 40);
  parsed.header.previous_bytes = get_number<std::uint64_t>(begin + 48);
  parsed.header.first_segment = get_number<std::uint64_t>(begin + 56);
  parsed.header.fingerprint = get_number<std::uint64_t>(begin + 64);
  // An unknown method is one that no build has (is_built_with()).
  parsed.header.compressed = static_cast<compression>(
      std::min<std::uint32_t>(get_number<std::uint32_t>(begin + 72), UINT8_MAX));
  return parsed;
}

void append_block_header(byte_buffer& to, const block_header& header, std::uint32_t seed) {
  std::byte* const begin = to.grow(block_header_bytes);
  put_number(begin, block_magic);
  put_number(begin + 4,
             static_cast<std::uint32_t>(header.kind) | (header.compressed ? is_compressed : 0));
  put_number(begin + 8, header.group);
  put_number(begin + 16, header.offset);
  put_number(begin + 24, header.payload_bytes);
  put_number(begin + 32, header.durable_group);
  put_number(begin + 40, header.payload_crc);
  put_number(begin + 44, crc32c({begin, 44}, seed));
}

namespace {

// Of a block that lies anywhere.
std::optional<block_header> parse_anywhere(std::span<const std::byte> bytes,
                                           std::uint32_t seed) noexcept {
  if (bytes.size() < block_header_bytes) return std::nullopt;
  const std::byte* const begin = bytes.data();
  if (get_number<std::uint32_t>(begin) != block_magic) return std::nullopt;
  if (get_number<std::uint32_t>(begin + 44) != crc32c(bytes.first(44), seed)) return std::nullopt;
  const auto kind = get_number<std::uint32_t>(begin + 4);
  return block_header{.kind = static_cast<block_kind>(kind & ~is_compressed),
                      .group = get_number<std::uint64_t>(begin + 8),
                      .offset = get_number<std::uint64_t>(begin + 16),
                      .payload_bytes = get_number<std::uint64_t>(begin + 24),
                      .durable_group = get_number<std::uint64_t>(begin + 32),
                      .payload_crc = get_number<std::uint32_t>(begin + 40),
                      .compressed = (kind & is_compressed) != 0};
}

}  // namespace

std::optional<block_header> parse_block_header(std::span<const std::byte> bytes,
                                               std::uint64_t offset, std::uint32_t seed) noexcept {
  std::optional<block_header> header = parse_anywhere(bytes, seed);
  if (header && header->offset != offset) header.reset();
  return header;
}

std::optional<block_header> find_block_header(std::span<const std::byte> bytes, std::size_t& begin,
                                              std::uint32_t seed) noexcept {
  constexpr auto first_byte = static_cast<int>(block_magic & 0xFFU);
  while (begin < bytes.size()) {
    const void* const found = std::memchr(bytes.data() + begin, first_byte, bytes.size() - begin);
    if (found == nullptr) break;
    begin = static_cast<std::size_t>(static_cast<const std::byte*>(found) - bytes.data());
    if (auto header = parse_anywhere(bytes.subspan(begin), seed)) return header;
    ++begin;
  }
  return std::nullopt;
}

std::array<std::byte, end_counts_bytes> encode(const end_counts& counts) noexcept {
  std::array<std::byte, end_counts_bytes> bytes{};
  put_number(bytes.data(), counts.blocks);
  put_number(bytes.data() + 8, counts.payload_bytes);
  put_number(bytes.data() + 16, counts.durable_group);
  put_number(bytes.data() + 24, counts.last_group);
  return bytes;
}

end_counts decode_end_counts(std::span<const std::byte> bytes) noexcept {
  return {.blocks = get_number<std::uint64_t>(bytes.data()),
          .payload_bytes = get_number<std::uint64_t>(bytes.data() + 8),
          .durable_group = get_number<std::uint64_t>(bytes.data() + 16),
          .last_group = get_number<std::uint64_t>(bytes.data() + 24)};
}

namespace entry_parts {

void check_length(std::string_view key, std::string_view row) {
  if (key.size() > log_bytes_max || row.size() > log_bytes_max)
    throw std::length_error("elidex: a key or a row of 2 GiB does not fit into a log entry");
}

namespace {

// --- Changes: pieces of words, each behind the number of its first word and how many they are ---

constexpr std::size_t word_bytes = sizeof(std::uint64_t);
constexpr std::size_t words_max = 0xFFFF;

std::uint64_t word_at(std::string_view row, std::size_t word) noexcept {
  std::uint64_t value = 0;
  std::memcpy(&value, row.data() + word * word_bytes, word_bytes);
  return value;
}
std::uint64_t difference(std::string_view a, std::string_view b, std::size_t word) noexcept {
  return word_at(a, word) ^ word_at(b, word);
}
// The first word from `word` on in which the rows differ, or the number of words. Most words are
// equal, so it compares four at once.
std::size_t next_difference(std::string_view a, std::string_view b, std::size_t word) noexcept {
  const std::size_t words = a.size() / word_bytes;
  while (word + 4 <= words && (difference(a, b, word) | difference(a, b, word + 1) |
                               difference(a, b, word + 2) | difference(a, b, word + 3)) == 0)
    word += 4;
  while (word < words && difference(a, b, word) == 0) ++word;
  return word;
}
std::size_t next_equality(std::string_view a, std::string_view b, std::size_t word) noexcept {
  const std::size_t words = a.size() / word_bytes;
  while (word < words && difference(a, b, word) != 0) ++word;
  return word;
}

}  // namespace

bool has_pieces(std::string_view before, std::string_view after) noexcept {
  return before.size() == after.size() && after.size() % word_bytes == 0 &&
         after.size() / word_bytes <= words_max;
}

std::size_t write_pieces(std::string_view before, std::string_view after, std::byte* to) noexcept {
  const std::size_t words = after.size() / word_bytes;
  std::size_t bytes = 0;
  for (std::size_t first = next_difference(before, after, 0); first < words;) {
    const std::size_t behind = next_equality(before, after, first + 1);
    const std::size_t piece_bytes = (behind - first) * word_bytes;
    if (bytes + piece_header_bytes + piece_bytes >= after.size()) return after.size();
    std::byte* const at = to + bytes;
    put_number(at, static_cast<std::uint16_t>(first));
    put_number(at + 2, static_cast<std::uint16_t>(behind - first));
    std::memcpy(at + piece_header_bytes, after.data() + first * word_bytes, piece_bytes);
    bytes += piece_header_bytes + piece_bytes;
    first = next_difference(before, after, behind);
  }
  return bytes;
}

}  // namespace entry_parts

record_reader::parse_status record_reader::next(log_entry& entry) noexcept {
  while (entries_ == 0) {
    if (rest_.size() != behind_record_) return parse_status::malformed;
    if (rest_.empty()) return parse_status::end;
    if (rest_.size() < record_header_bytes) return parse_status::malformed;
    stamp_ = stamp_of_record(rest_.data());
    entries_ = get_number<std::uint32_t>(rest_.data() + 8);
    const std::size_t bytes = bytes_of_record(rest_.data());
    if (entries_ == 0 || bytes < record_header_bytes || bytes > rest_.size())
      return parse_status::malformed;
    behind_record_ = rest_.size() - bytes;
    rest_ = rest_.subspan(record_header_bytes);
  }
  if (rest_.size() < entry_header_bytes) return parse_status::malformed;
  const std::uint64_t key_bytes = get_number<std::uint32_t>(rest_.data() + 4);
  const auto row_field = get_number<std::uint32_t>(rest_.data() + 8);
  const std::uint64_t row_bytes =
      row_field == entry_parts::erased ? 0 : row_field & ~entry_parts::is_change;
  entry.table = get_number<std::uint32_t>(rest_.data());
  entry.operation = row_field == entry_parts::erased            ? log_operation::erase
                    : (row_field & entry_parts::is_change) != 0 ? log_operation::change
                                                                : log_operation::upsert;
  entry.stamp = stamp_;
  rest_ = rest_.subspan(entry_header_bytes);
  if (rest_.size() < key_bytes + row_bytes) return parse_status::malformed;
  const auto* const text = reinterpret_cast<const char*>(rest_.data());
  entry.key = {text, static_cast<std::size_t>(key_bytes)};
  entry.row = {text + key_bytes, static_cast<std::size_t>(row_bytes)};
  rest_ = rest_.subspan(static_cast<std::size_t>(key_bytes + row_bytes));
  --entries_;
  return parse_status::entry;
}

namespace {

// Numbers of varying length (LEB128): seven bits a byte, the low ones first. The highest bit says
// that more bytes follow.
constexpr std::size_t number_bytes_max = 10;
constexpr unsigned bits_per_byte = 7;
constexpr std::uint64_t low_bits = 0x7F;
constexpr std::uint64_t more_bytes = 0x80;

std::byte* put_short(std::byte* to, std::uint64_t value) noexcept {
  for (; value > low_bits; value >>= bits_per_byte)
    *to++ = static_cast<std::byte>((value & low_bits) | more_bytes);
  *to++ = static_cast<std::byte>(value);
  return to;
}

bool take_short(std::span<const std::byte>& from, std::uint64_t& value) noexcept {
  value = 0;
  for (std::size_t i = 0; i < std::min(from.size(), number_bytes_max); ++i) {
    const auto byte = std::to_integer<std::uint64_t>(from[i]);
    value |= (byte & low_bits) << (bits_per_byte * i);
    if ((byte & more_bytes) != 0) continue;
    from = from.subspan(i + 1);
    return true;
  }
  return false;
}

// The difference of two numbers as a small number, whichever is larger. It wraps.
std::uint64_t difference(std::uint64_t from, std::uint64_t to) noexcept {
  const std::uint64_t up = to - from;
  return (up << 1U) ^ (0 - (up >> 63U));
}
std::uint64_t moved_by(std::uint64_t from, std::uint64_t by) noexcept {
  return from + ((by >> 1U) ^ (0 - (by & 1U)));
}

}  // namespace

void row_writer::append(byte_buffer& to, std::uint32_t table, std::string_view key,
                        std::string_view row, std::uint64_t stamp) {
  entry_parts::check_length(key, row);
  const bool begins = to.empty();
  const std::size_t before = to.size();
  std::byte* const begin = to.grow(sizeof table + 3 * number_bytes_max + key.size() + row.size());
  std::byte* at = begin;
  if (begins) {
    put_number(at, table);
    at += sizeof table;
    table_ = table;
    stamp_ = 0;
  }
  at = put_short(at, difference(stamp_ >> stamp_state_bits, stamp >> stamp_state_bits));
  at = put_short(at, key.size());
  at = put_short(at, row.size());
  if (!key.empty()) std::memcpy(at, key.data(), key.size());
  if (!row.empty()) std::memcpy(at + key.size(), row.data(), row.size());
  to.shrink(before + static_cast<std::size_t>(at - begin) + key.size() + row.size());
  stamp_ = stamp;
}

record_reader::parse_status row_reader::next(log_entry& entry) noexcept {
  using status = record_reader::parse_status;
  if (rest_.empty()) return begun_ ? status::end : status::malformed;
  if (!begun_) {
    if (rest_.size() < sizeof table_) return status::malformed;
    table_ = get_number<std::uint32_t>(rest_.data());
    rest_ = rest_.subspan(sizeof table_);
    begun_ = true;
  }
  std::uint64_t by = 0;
  std::uint64_t key_bytes = 0;
  std::uint64_t row_bytes = 0;
  if (!take_short(rest_, by) || !take_short(rest_, key_bytes) || !take_short(rest_, row_bytes))
    return status::malformed;
  if (key_bytes > rest_.size() || row_bytes > rest_.size() - key_bytes) return status::malformed;
  stamp_ = moved_by(stamp_, by);
  const auto* const text = reinterpret_cast<const char*>(rest_.data());
  entry = {.table = table_,
           .operation = log_operation::upsert,
           .stamp = stamp_ << stamp_state_bits,
           .key = {text, static_cast<std::size_t>(key_bytes)},
           .row = {text + key_bytes, static_cast<std::size_t>(row_bytes)}};
  rest_ = rest_.subspan(static_cast<std::size_t>(key_bytes + row_bytes));
  return status::entry;
}

namespace {

constexpr std::string_view segment_prefix = "redo-";
constexpr std::string_view segment_suffix = ".log";
constexpr std::string_view checkpoint_prefix = "checkpoint-";
constexpr std::string_view checkpoint_suffix = ".ckpt";
constexpr std::string_view unfinished_suffix = ".tmp";
constexpr std::size_t digits_least = 8;

std::string numbered(std::string_view prefix, std::uint64_t number, std::string_view suffix) {
  std::string digits;
  for (; number != 0 || digits.size() < digits_least; number /= 10)
    digits.push_back(static_cast<char>('0' + number % 10));
  std::string name(prefix);
  name.append(digits.rbegin(), digits.rend());
  name.append(suffix);
  return name;
}

}  // namespace

std::string name_of(file_kind kind, std::uint64_t number) {
  return kind == file_kind::segment ? numbered(segment_prefix, number, segment_suffix)
                                    : numbered(checkpoint_prefix, number, checkpoint_suffix);
}

std::string unfinished_name(std::uint64_t number) {
  return numbered(checkpoint_prefix, number, unfinished_suffix);
}

std::string unfinished_copy_name(std::uint64_t number) {
  return name_of(file_kind::segment, number) + std::string(unfinished_suffix);
}

bool is_unfinished_copy(std::string_view name) noexcept {
  return name.ends_with(unfinished_suffix) &&
         number_of(file_kind::segment, name.substr(0, name.size() - unfinished_suffix.size()));
}

bool is_unfinished(std::string_view name) noexcept {
  return name.starts_with(checkpoint_prefix) && name.ends_with(unfinished_suffix);
}

std::optional<std::uint64_t> number_of(file_kind kind, std::string_view name) noexcept {
  const std::string_view prefix = kind == file_kind::segment ? segment_prefix : checkpoint_prefix;
  const std::string_view suffix = kind == file_kind::segment ? segment_suffix : checkpoint_suffix;
  if (!name.starts_with(prefix) || !name.ends_with(suffix)) return std::nullopt;
  if (name.size() < prefix.size() + suffix.size() + digits_least) return std::nullopt;
  name.remove_prefix(prefix.size());
  name.remove_suffix(suffix.size());
  constexpr std::size_t digits_most = 18;  // fits into 64 bits
  if (name.size() > digits_most || (name.size() > digits_least && name.front() == '0'))
    return std::nullopt;
  std::uint64_t number = 0;
  for (const char digit : name) {
    if (digit < '0' || digit > '9') return std::nullopt;
    number = number * 10 + static_cast<std::uint64_t>(digit - '0');
  }
  if (number == 0) return std::nullopt;
  return number;
}

bool apply_change(std::span<std::byte> row, const log_entry& change) noexcept {
  const auto* const pieces = reinterpret_cast<const std::byte*>(change.row.data());
  const std::size_t bytes = change.row.size();
  // Checks first whether all of them fit, then writes them.
  for (const bool write : {false, true}) {
    for (std::size_t at = 0; at < bytes;) {
      if (bytes - at < piece_header_bytes) return false;
      const std::size_t first = get_number<std::uint16_t>(pieces + at) * sizeof(std::uint64_t);
      const std::size_t many = get_number<std::uint16_t>(pieces + at + 2) * sizeof(std::uint64_t);
      at += piece_header_bytes;
      if (many > bytes - at || first + many > row.size()) return false;
      if (write) std::memcpy(row.data() + first, pieces + at, many);
      at += many;
    }
  }
  return true;
}

}  // namespace elidex::internal
