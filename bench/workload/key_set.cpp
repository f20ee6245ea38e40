#include "bench/workload/key_set.hpp"

#include <algorithm>
#include <fstream>
#include <numeric>

#include "bench/support/bad_input.hpp"
#include "bench/support/input_file.hpp"

namespace elidex::bench {

namespace {

// Keys inserted during a run come from identifiers above every loaded one, a range of 2^40 for each
// thread.
constexpr unsigned fresh_range_bits = 40;

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& why) {
  throw bad_input(
      "--key-file: " + file.string() + " " + why +
      " (expected a file or a pipe of distinct keys, one per line, without NUL bytes, of at most " +
      std::to_string(key_bytes_max) + " bytes each)");
}

// The lines of a file, checked while they are read: a file that breaks a rule may have no end.
class key_lines {
 public:
  key_lines(const std::filesystem::path& file, const key_file_limits& limits)
      : file_(file), limits_(limits) {
    std::string why;
    std::ifstream in = open_input(file, why);
    if (!in.is_open()) refuse(file, why);
    std::vector<char> piece(limits.piece_bytes);
    while (in.read(piece.data(), static_cast<std::streamsize>(piece.size())) || in.gcount() > 0) {
      take({piece.data(), static_cast<std::size_t>(in.gcount())});
    }
    if (in.bad()) refuse(file, "cannot be read to its end");
    if (bytes_.empty()) refuse(file, "is empty");
    if (begin_ < bytes_.size()) end_line(bytes_.size());
  }

  [[nodiscard]] std::size_t count() const { return ends_.size(); }
  [[nodiscard]] std::string_view operator[](std::size_t i) const {
    const std::size_t begin = i == 0 ? 0 : ends_[i - 1] + 1;
    return {bytes_.data() + begin, ends_[i] - begin};
  }
  /// The memory that the lines are views of.
  [[nodiscard]] std::vector<char> take_bytes() && { return std::move(bytes_); }

 private:
  void take(std::string_view piece) {
    if (piece.size() > limits_.bytes - bytes_.size()) {
      refuse(file_,
             "has more than " + std::to_string(limits_.bytes) + " bytes, which is the limit");
    }
    const std::size_t before = bytes_.size();
    bytes_.insert(bytes_.end(), piece.begin(), piece.end());
    for (std::size_t at = 0; (at = piece.find('\n', at)) != std::string_view::npos; ++at)
      end_line(before + at);
    check(bytes_.size());
  }

  void end_line(std::size_t end) {
    check(end);
    ends_.push_back(end);
    begin_ = end + 1;
    const std::size_t last = ends_.size() - 1;
    if (ends_.size() > limits_.keys) {
      refuse(file_, "has more than " + std::to_string(limits_.keys) + " lines, which is the limit");
    }
    // What `yes` prints; repeats that are further apart are found when the lines are sorted.
    if (last > 0 && (*this)[last] == (*this)[last - 1]) {
      refuse(file_,
             "repeats line " + std::to_string(last) + " in line " + std::to_string(last + 1));
    }
  }

  // The line that ends there, or that has come so far.
  void check(std::size_t end) const {
    const std::string_view key(bytes_.data() + begin_, end - begin_);
    if (key.find('\0') != std::string_view::npos) {
      refuse(file_, "has a NUL byte in line " + std::to_string(ends_.size() + 1));
    }
    if (key.size() > key_bytes_max) {
      refuse(file_, "has more than " + std::to_string(key_bytes_max) + " bytes in line " +
                        std::to_string(ends_.size() + 1));
    }
  }

  const std::filesystem::path& file_;
  const key_file_limits& limits_;
  std::vector<char> bytes_;
  std::vector<std::size_t> ends_;
  std::size_t begin_ = 0;  // of the line that has not ended
};

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

key_set<std::string> read_keys(const std::filesystem::path& file,
                               std::optional<std::uint64_t> count, std::uint64_t seed,
                               const key_file_limits& limits) {
  key_lines lines(file, limits);
  std::vector<std::string_view> ascending(lines.count());
  for (std::size_t i = 0; i < ascending.size(); ++i) ascending[i] = lines[i];
  // string_view compares bytes as unsigned, as the maps do.
  std::sort(ascending.begin(), ascending.end());
  if (const auto twice = std::adjacent_find(ascending.begin(), ascending.end());
      twice != ascending.end()) {
    std::vector<std::size_t> where;  // numbers of the lines
    for (std::size_t i = 0; i < lines.count(); ++i) {
      if (lines[i] == *twice) where.push_back(i + 1);
    }
    refuse(file,
           "repeats line " + std::to_string(where[0]) + " in line " + std::to_string(where[1]));
  }
  if (count && *count < ascending.size()) {
    const permutation pick(ascending.size(), seed ^ 0x5eedU);
    std::vector<std::string_view> sample(*count);
    for (std::size_t i = 0; i < sample.size(); ++i) sample[i] = ascending[pick(i)];
    std::sort(sample.begin(), sample.end());
    ascending = std::move(sample);
  } else if (count && *count > ascending.size()) {
    throw bad_input(
        "--keys: " + file.string() + " has " + std::to_string(ascending.size()) +
        " keys (expected at most that many with --key-file; without --keys all of them are used)");
  }
  return {std::move(lines).take_bytes(), std::move(ascending), seed};
}

}  // namespace elidex::bench
