#include "lab/workload/key_set.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <numeric>
#include <system_error>

#include "lab/bad_input.hpp"

namespace elidex::lab {
namespace {

// Keys inserted during a run come from identifiers above every loaded one, a range of 2^40 for each thread.
constexpr unsigned fresh_range_bits = 40;

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& why) {
  throw bad_input("--key-file: " + file.string() + " " + why +
                  "; it takes a readable file of distinct keys, one per line, without NUL bytes, of at most " +
                  std::to_string(key_bytes_max) + " bytes each");
}

std::vector<char> read_whole(const std::filesystem::path& file) {
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (!std::filesystem::exists(status)) refuse(file, "does not exist");
  if (std::filesystem::is_directory(status)) refuse(file, "is a directory");
  errno = 0;
  std::ifstream in(file, std::ios::binary);
  if (!in) refuse(file, std::string("cannot be read (") + std::strerror(errno) + ")");
  std::vector<char> bytes;
  std::vector<char> chunk(1U << 20U);
  while (in.read(chunk.data(), static_cast<std::streamsize>(chunk.size())) || in.gcount() > 0) {
    bytes.insert(bytes.end(), chunk.begin(), chunk.begin() + in.gcount());
  }
  if (in.bad()) refuse(file, "cannot be read to its end");
  if (bytes.empty()) refuse(file, "is empty");
  return bytes;
}

}  // namespace

std::uint64_t key_set<std::uint64_t>::fresh(unsigned thread, std::uint64_t i, random_bits&) const {
  return mix(((std::uint64_t{thread} + 1) << fresh_range_bits) + i);
}

std::string key_set<std::string>::fresh(unsigned thread, std::uint64_t i, random_bits& bits) const {
  const std::string suffix = '\1' + std::to_string(thread) + '.' + std::to_string(i);
  const std::string_view parent = keys_[bits.below(keys_.size())];
  std::string key(parent.substr(0, key_bytes_max - suffix.size()));
  return key += suffix;
}

key_set<std::uint64_t> random_keys(std::uint64_t count, std::uint64_t seed) {
  std::vector<std::uint64_t> keys(count);
  std::iota(keys.begin(), keys.end(), std::uint64_t{0});
  std::transform(keys.begin(), keys.end(), keys.begin(), mix);
  std::sort(keys.begin(), keys.end());
  return {std::move(keys), seed};
}

key_set<std::string> read_keys(const std::filesystem::path& file, std::optional<std::uint64_t> count,
                               std::uint64_t seed) {
  std::vector<char> bytes = read_whole(file);
  const std::string_view text(bytes.data(), bytes.size());
  std::vector<std::string_view> keys;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    const std::string_view key = text.substr(start, end - start);
    const auto line = [&] { return std::to_string(keys.size() + 1); };
    if (key.find('\0') != std::string_view::npos) refuse(file, "has a NUL byte in line " + line());
    if (key.size() > key_bytes_max) {
      refuse(file, "has " + std::to_string(key.size()) + " bytes in line " + line());
    }
    keys.push_back(key);
    start = end + 1;
  }

  std::vector<std::string_view> ascending = keys;
  // string_view compares bytes as unsigned, as the maps do.
  std::sort(ascending.begin(), ascending.end());
  if (const auto twice = std::adjacent_find(ascending.begin(), ascending.end()); twice != ascending.end()) {
    const auto first = std::find(keys.begin(), keys.end(), *twice);
    const auto second = std::find(first + 1, keys.end(), *twice);
    refuse(file, "repeats line " + std::to_string(first - keys.begin() + 1) + " in line " +
                     std::to_string(second - keys.begin() + 1));
  }
  if (count && *count < ascending.size()) {
    const permutation pick(ascending.size(), seed ^ 0x5eedU);
    std::vector<std::string_view> sample(*count);
    for (std::size_t i = 0; i < sample.size(); ++i) sample[i] = ascending[pick(i)];
    std::sort(sample.begin(), sample.end());
    ascending = std::move(sample);
  } else if (count && *count > ascending.size()) {
    throw bad_input("--keys: " + file.string() + " has " + std::to_string(ascending.size()) +
                    " keys; with --key-file it takes at most that many, or leave it out for all of them");
  }
  return {std::move(bytes), std::move(ascending), seed};
}

}  // namespace elidex::lab
