#pragma once
// The keys that a run loads: distinct, held in ascending order, immutable once made.
//
//   key_set<std::uint64_t> keys = random_keys(10'000'000);
//   key_set<std::string> words = read_keys("/usr/share/dict/american-english-huge", std::nullopt,
//       seed);
//   key_set<std::string> urls = url_keys(5'000'000, seed);
//   // the smallest key: the hottest where hot keys are adjacent (paper 003, section 6.1)
//   keys.at(0);
//   keys.load_rank(0);      // the place in key order of the key that is loaded first
//   // the i-th key that thread t inserts during a run: in no key set, handed out once
//   keys.fresh(t, i, bits)
//
// Invariants: at(i) < at(i + 1); load_rank is a bijection of 0..size()-1, the same for equal seeds.
// Thread-safety: immutable; any number of readers.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "bench/workload/random.hpp"

namespace elidex::bench {

/// How a key is handed to an index: integers by value, byte strings as a view.
template <class Key>
using key_arg = std::conditional_t<std::is_same_v<Key, std::string>, std::string_view, Key>;

/// The longest key that the maps take.
inline constexpr std::size_t key_bytes_max = 65536;

template <class Key>
class key_set;

template <>
class key_set<std::uint64_t> {
 public:
  key_set(std::vector<std::uint64_t> ascending, std::uint64_t seed)
      : keys_(std::move(ascending)), load_order_(keys_.size(), seed) {}

  [[nodiscard]] std::size_t size() const noexcept { return keys_.size(); }
  [[nodiscard]] std::uint64_t at(std::size_t rank) const { return keys_[rank]; }
  [[nodiscard]] std::size_t load_rank(std::size_t position) const { return load_order_(position); }
  [[nodiscard]] std::uint64_t fresh(unsigned thread, std::uint64_t i, random_bits& bits) const;

 private:
  std::vector<std::uint64_t> keys_;
  permutation load_order_;
};

template <>
class key_set<std::string> {
 public:
  /// `bytes` owns what the views in `ascending` point to.
  key_set(std::vector<char> bytes, std::vector<std::string_view> ascending, std::uint64_t seed)
      : bytes_(std::move(bytes)), keys_(std::move(ascending)), load_order_(keys_.size(), seed) {}

  [[nodiscard]] std::size_t size() const noexcept { return keys_.size(); }
  [[nodiscard]] std::string_view at(std::size_t rank) const { return keys_[rank]; }
  [[nodiscard]] std::size_t load_rank(std::size_t position) const { return load_order_(position); }
  /// An existing key with a suffix that names thread and counter after a byte 1, so that it sorts
  /// among its likes.
  [[nodiscard]] std::string fresh(unsigned thread, std::uint64_t i, random_bits& bits) const;

 private:
  std::vector<char> bytes_;
  std::vector<std::string_view> keys_;
  permutation load_order_;
};

/// `count` distinct scattered 64-bit keys: mix(0) .. mix(count - 1), the same whatever the seed;
/// the seed orders the load.
[[nodiscard]] key_set<std::uint64_t> random_keys(std::uint64_t count, std::uint64_t seed);

/// How much of a key file is read. A file with more is refused as soon as that much has come: a
/// pipe may have no end.
struct key_file_limits {
  std::size_t bytes = std::size_t{1} << 30U;
  std::size_t keys = 100'000'000;
  std::size_t piece_bytes = std::size_t{1} << 20U;  // read at once; a test makes this small
};

/// One key per line, `count` of them picked at random, or all. Throws bad_input where the file
/// cannot be read, is a device, is empty, repeats a key, holds a NUL byte or a key longer than
/// key_bytes_max, exceeds the limits, or has fewer than `count` keys.
[[nodiscard]] key_set<std::string> read_keys(const std::filesystem::path& file,
                                             std::optional<std::uint64_t> count, std::uint64_t seed,
                                             const key_file_limits& limits = {});

/// Where Debian's package wamerican-huge puts its words.
inline constexpr const char* word_list = "/usr/share/dict/american-english-huge";

inline constexpr std::size_t url_bytes_min = 30;
inline constexpr std::size_t url_bytes_max = 80;

/// `count` distinct URLs of url_bytes_min to url_bytes_max bytes, made of the words in a file with
/// one per line (url_keys.cpp says how); equal seeds and words give equal URLs. Throws bad_input
/// where the file cannot be read or has too few words.
[[nodiscard]] key_set<std::string> url_keys(std::uint64_t count, std::uint64_t seed,
                                            const std::filesystem::path& words_file = word_list);

}  // namespace elidex::bench
