#include "elidex/internal/log/backup.hpp"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <system_error>
#include <vector>

#include "elidex/internal/log/log_format.hpp"
#include "elidex/internal/log/log_writer.hpp"

namespace elidex::internal {

std::uint64_t copy_file(log_directory& from, const std::string& name, log_directory& to,
                        const std::string& as) {
  std::error_code error;
  const std::unique_ptr<log_file> source = from.open(name, error);
  throw_if(error, "open", name);
  const std::unique_ptr<log_file> copy = to.create(as, error);
  throw_if(error, "create", as);
  std::vector<std::byte> bytes(std::size_t{1} << 20);
  std::uint64_t copied = 0;
  for (;;) {
    const std::size_t read = read_whole(*source, copied, bytes, error);
    throw_if(error, "read", name);
    if (read == 0) break;
    write_whole(*copy, std::span(bytes).first(read), error);
    throw_if(error, "write", as);
    copied += read;
  }
  copy->sync(error);
  throw_if(error, "sync", as);
  return copied;
}

std::uint64_t copy_segments(log_directory& from, std::uint64_t first, log_directory& to) {
  std::error_code error;
  std::vector<std::uint64_t> numbers;
  for (const std::string& name : from.names(error)) {
    const auto number = number_of(file_kind::segment, name);
    if (number && *number >= first) numbers.push_back(*number);
  }
  throw_if(error, "list", "the log directory");
  std::sort(numbers.begin(), numbers.end(), std::greater<>());
  const auto unfinished = [](const std::string& name) { return name + ".unfinished"; };
  std::uint64_t copied = 0;
  for (const std::uint64_t number : numbers) {
    const std::string name = name_of(file_kind::segment, number);
    copied += copy_file(from, name, to, unfinished(name));
  }
  for (const std::uint64_t number : numbers) {
    const std::string name = name_of(file_kind::segment, number);
    if (number == numbers.back()) {
      to.sync(error);
      throw_if(error, "sync the directory of", name);
    }
    to.rename(unfinished(name), name, error);
    throw_if(error, "rename to", name);
  }
  return copied;
}

}  // namespace elidex::internal
