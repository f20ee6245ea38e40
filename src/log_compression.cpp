#include "elidex/internal/log/log_compression.hpp"

#if defined(ELIDEX_HAS_ZSTD)
#  include <zstd.h>

#  include <new>
#endif

namespace elidex::internal {

bool is_built_with(compression method) noexcept {
#if defined(ELIDEX_HAS_ZSTD)
  return method == compression::none || method == compression::zstd;
#else
  return method == compression::none;
#endif
}

#if defined(ELIDEX_HAS_ZSTD)
namespace {

// Chosen. For a short block the fsync takes longer than the write, so fewer bytes save no time.
constexpr std::size_t payload_bytes_min = 512;
// Chosen. A block that would become less than 1/16 shorter is not worth the time to decompress it.
constexpr std::size_t saved_part_min = 16;
// More than a frame can expand to: at most 128 KiB for each block of 4 bytes.
constexpr std::size_t expansion_max = std::size_t{1} << 16U;
// The fastest of zstd's regular levels. The logger compresses while commits wait.
constexpr int level = 1;

}  // namespace

struct block_compressor::state {
  std::unique_ptr<ZSTD_CCtx, std::size_t (*)(ZSTD_CCtx*)> context{ZSTD_createCCtx(), ZSTD_freeCCtx};
  byte_buffer packed;
};

block_compressor::block_compressor() = default;
block_compressor::~block_compressor() = default;

std::span<const std::byte> block_compressor::compress(std::span<const std::byte> payload) try {
  if (payload.size() < payload_bytes_min) return {};
  if (!state_) state_ = std::make_unique<state>();
  byte_buffer& packed = state_->packed;
  packed.clear();
  const std::size_t bytes_max = payload.size() - payload.size() / saved_part_min;
  std::byte* const to = packed.grow(bytes_max);
  if (!state_->context) return {};
  const std::size_t bytes = ZSTD_compressCCtx(state_->context.get(), to, bytes_max, payload.data(),
                                              payload.size(), level);
  if (ZSTD_isError(bytes) != 0) return {};  // it does not fit, or there is no memory
  packed.shrink(bytes);
  return packed.bytes();
} catch (const std::bad_alloc&) {
  return {};
}

bool decompress(std::span<const std::byte> packed, byte_buffer& to) {
  const unsigned long long bytes = ZSTD_getFrameContentSize(packed.data(), packed.size());
  if (bytes == ZSTD_CONTENTSIZE_UNKNOWN || bytes == ZSTD_CONTENTSIZE_ERROR) return false;
  if (bytes / expansion_max > packed.size()) return false;
  to.clear();
  const auto wanted = static_cast<std::size_t>(bytes);
  std::byte* const begin = to.grow(wanted);
  return ZSTD_decompress(begin, wanted, packed.data(), packed.size()) == wanted;
}

#else

struct block_compressor::state {};
block_compressor::block_compressor() = default;
block_compressor::~block_compressor() = default;
std::span<const std::byte> block_compressor::compress(std::span<const std::byte>) {
  return {};
}
bool decompress(std::span<const std::byte>, byte_buffer&) {
  return false;
}

#endif

}  // namespace elidex::internal
