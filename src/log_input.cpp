#include "elidex/internal/log/log_input.hpp"

#include <algorithm>
#include <system_error>

#include "elidex/internal/log/log_compression.hpp"

namespace elidex::internal {

std::vector<std::uint64_t> numbers_in(log_directory& directory, file_kind kind) {
  std::error_code error;
  std::vector<std::uint64_t> numbers;
  for (const std::string& name : directory.names(error)) {
    if (const auto number = number_of(kind, name)) numbers.push_back(*number);
  }
  if (error) throw std::system_error(error, "elidex: cannot list " + directory.shown());
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

log_input::log_input(log_directory& directory, const std::string& name)
    : name_(directory.shown(name)) {
  std::error_code error;
  file_ = directory.open(name, error);
  if (!error) size_ = file_->size(error);
  if (error) throw std::system_error(error, "elidex: cannot open " + name_);
}

void log_input::look_again() {
  std::error_code error;
  size_ = file_->size(error);
  if (error) throw std::system_error(error, "elidex: cannot read the size of " + name_);
}

void log_input::read(std::uint64_t offset, std::uint64_t bytes, byte_buffer& to) const {
  to.clear();
  const auto wanted =
      static_cast<std::size_t>(std::min(bytes, offset < size_ ? size_ - offset : 0));
  if (wanted == 0) return;
  std::error_code error;
  const std::size_t read = read_whole(*file_, offset, {to.grow(wanted), wanted}, error);
  if (error) throw std::system_error(error, "elidex: cannot read " + name_);
  to.shrink(read);
}

void log_input::damaged(std::uint64_t offset, const std::string& why) const {
  throw log_error(log_problem::damaged, "elidex: " + name_ + " is damaged at byte " +
                                            std::to_string(offset) + ": " + why);
}

parsed_file_header read_header(const log_input& file, file_kind kind) {
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

bool is_being_made(const log_input& file, const parsed_file_header& parsed, std::uint64_t number) {
  const bool is_its_own = parsed.verdict == header_verdict::whole && parsed.header.number == number;
  return !is_its_own && file.size() <= file_header_bytes;
}

void check_whole_header(const log_input& file, const parsed_file_header& parsed,
                        std::uint64_t number, std::uint64_t fingerprint) {
  if (parsed.verdict != header_verdict::whole) file.damaged(0, "its header is not whole");
  if (parsed.header.number != number)
    file.damaged(0, "its header has another number than its name");
  if (parsed.header.fingerprint != fingerprint)
    throw log_error(log_problem::other_schema,
                    "elidex: " + file.name() + " was written with another schema");
}

bool read_block(const log_input& file, std::uint64_t offset, std::uint64_t limit,
                const parsed_file_header& of, log_block& to) {
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

later_blocks blocks_behind(const log_input& file, const parsed_file_header& of,
                           std::uint64_t offset) {
  byte_buffer rest;
  file.read(offset, file.size() - offset, rest);
  later_blocks found;
  for (std::size_t at = 0;; ++at) {
    const auto header = find_block_header(rest.bytes(), at, of.crc);
    if (!header) return found;
    found.synced = std::max(found.synced, header->durable_group);
    found.newest = std::max(found.newest, header->group);
  }
}

end_counts counts_of(const log_input& file, const log_block& end) {
  if (end.payload.size() != end_counts_bytes)
    file.damaged(end.header.offset, "an end block of another length");
  return decode_end_counts(end.payload.bytes());
}

}  // namespace elidex::internal
