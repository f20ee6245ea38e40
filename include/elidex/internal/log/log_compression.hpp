// Compresses the blocks of the log's files with zstd, if the library was built with it (the CMake
// option ELIDEX_ZSTD).
//
//   block_compressor packer;
//   const std::span<const std::byte> packed = packer.compress(payload);
//   if (packed.empty()) ... // write the payload as it is
//   decompress(packed, buffer);
//
// Thread-safety: a compressor belongs to one thread at a time. The functions have no state.
// Errors: std::bad_alloc, except for compress().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "elidex/internal/log/log_format.hpp"

namespace elidex::internal {

// Returns whether this build of the library can read and write files with it.
bool is_built_with(compression method) noexcept;

class block_compressor {
 public:
  block_compressor();
  ~block_compressor();
  block_compressor(const block_compressor&) = delete;
  block_compressor& operator=(const block_compressor&) = delete;

  // Returns the compressed bytes, which are valid until the next call. Returns nothing if the
  // payload is short or hardly becomes shorter, if there is no memory, or if the library was built
  // without zstd.
  std::span<const std::byte> compress(std::span<const std::byte> payload);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

// Returns false if the bytes are not one whole zstd frame that contains the size of its content, or
// if the library was built without zstd. The caller checks a CRC first, because damaged bytes may
// decompress to others.
bool decompress(std::span<const std::byte> packed, byte_buffer& to);

}  // namespace elidex::internal
