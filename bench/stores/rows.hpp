#pragma once
// The rows of `elidex db bench`: each holds its key and its version, and bytes that follow from
// both. So a reader sees whether a row is whole, and compression has nothing to gain.
//
//   row_writer writer(100);
//   const row_view row = writer.make(7, 1);  // valid until the next call
//   row_version(row, 7);                     // 1; nothing for a row of another key, or a torn row
//
// Thread-safety: a row_writer belongs to one thread; row_version() is a pure function.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <stdexcept>
#include <vector>

#include "bench/stores/store.hpp"
#include "bench/workload/random.hpp"

namespace elidex::bench::stores {

/// Key and version.
inline constexpr std::size_t value_bytes_min = 2 * sizeof(std::uint64_t);

/// Word `i` behind the key and the version.
[[nodiscard]] constexpr std::uint64_t filler(std::uint64_t key, std::uint64_t version,
                                             std::uint64_t i) noexcept {
  return mix(mix(key) + mix(~version) + i);
}

class row_writer {
 public:
  explicit row_writer(std::size_t value_bytes)
      : row_(value_bytes < value_bytes_min ? value_bytes_min : value_bytes) {}

  row_view make(std::uint64_t key, std::uint64_t version) noexcept {
    std::byte* at = row_.data();
    std::byte* const end = at + row_.size();
    std::memcpy(at, &key, sizeof key);
    std::memcpy(at + sizeof key, &version, sizeof version);
    at += value_bytes_min;
    for (std::uint64_t i = 0; at < end; ++i) {
      const std::uint64_t word = filler(key, version, i);
      const auto room = static_cast<std::size_t>(end - at);
      const std::size_t many = room < sizeof word ? room : sizeof word;
      std::memcpy(at, &word, many);
      at += many;
    }
    return row_;
  }

 private:
  std::vector<std::byte> row_;
};

[[nodiscard]] inline std::optional<std::uint64_t> row_version(row_view row,
                                                              std::uint64_t key) noexcept {
  if (row.size() < value_bytes_min) return std::nullopt;
  std::uint64_t stored = 0;
  std::uint64_t version = 0;
  std::memcpy(&stored, row.data(), sizeof stored);
  std::memcpy(&version, row.data() + sizeof stored, sizeof version);
  if (stored != key) return std::nullopt;
  std::size_t at = value_bytes_min;
  for (std::uint64_t i = 0; at < row.size(); ++i) {
    const std::uint64_t word = filler(key, version, i);
    const std::size_t many = row.size() - at < sizeof word ? row.size() - at : sizeof word;
    if (std::memcmp(row.data() + at, &word, many) != 0) return std::nullopt;
    at += many;
  }
  return version;
}

/// The version that an increment writes. Throws std::logic_error for a row that is not whole.
[[nodiscard]] inline std::uint64_t next_version(row_view row, std::uint64_t key) {
  const std::optional<std::uint64_t> version = row_version(row, key);
  if (!version) throw std::logic_error("a row to increment is not whole");
  return *version + 1;
}

}  // namespace elidex::bench::stores
