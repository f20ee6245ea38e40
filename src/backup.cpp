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
  std::vector<std::uint64_t> numbers;  // the newest first
  // A listing may miss a segment that has been made meanwhile, and have the next one.
  for (bool complete = false; !complete;) {
    numbers.clear();
    for (const std::string& name : from.names(error)) {
      const auto number = number_of(file_kind::segment, name);
      if (number && *number >= first) numbers.push_back(*number);
    }
    throw_if(error, "list", "the log directory");
    std::sort(numbers.begin(), numbers.end(), std::greater<>());
    if (numbers.empty() || numbers.back() != first)
      throw_if(std::make_error_code(std::errc::no_such_file_or_directory), "open",
               name_of(file_kind::segment, first));
    complete = numbers.front() - first + 1 == numbers.size();
  }
  std::uint64_t copied = 0;
  for (const std::uint64_t number : numbers) {
    const std::string name = name_of(file_kind::segment, number);
    copied += copy_file(from, name, to, unfinished_copy_name(number));
  }
  for (const std::uint64_t number : numbers) {
    const std::string name = name_of(file_kind::segment, number);
    if (number == numbers.back()) {
      to.sync(error);
      throw_if(error, "sync the directory of", name);
    }
    to.rename(unfinished_copy_name(number), name, error);
    throw_if(error, "rename to", name);
  }
  return copied;
}

}  // namespace elidex::internal
