#include "machine/memory_names.hpp"

#include <algorithm>
#include <iterator>

#include "machine/memory.hpp"

namespace elidex::sim {

memory_names& process_names() {
  static memory_names* const names = new memory_names;
  return *names;
}

unsigned memory_names::number_of(const std::string& text) {
  const auto found = std::find(texts_.begin(), texts_.end(), text);
  if (found != texts_.end()) return static_cast<unsigned>(found - texts_.begin());
  texts_.push_back(text);
  return static_cast<unsigned>(texts_.size() - 1);
}

void memory_names::add(std::uint64_t from, std::uint64_t bytes, const char* name,
                       std::uint64_t block_bytes, std::uint64_t head_bytes) {
  const std::string text(name);
  const std::uint64_t end = from + bytes;
  auto at = ranges_.try_emplace({from, ~bytes}).first;
  at->second = {end, end, number_of(text), number_of(text + " head"), block_bytes, head_bytes};
  if (at != ranges_.begin()) at->second.reach = std::max(end, std::prev(at)->second.reach);
  while (++at != ranges_.end() && at->second.reach < end) at->second.reach = end;
}

memory_names::place memory_names::place_of(std::uint64_t address) const noexcept {
  // The innermost: ranges may lie in each other.
  for (auto at = ranges_.upper_bound({address, ~std::uint64_t{0}}); at != ranges_.begin();) {
    const auto& [key, r] = *--at;
    if (address >= r.reach) break;
    if (address >= r.end) continue;
    const std::uint64_t offset =
        r.block_bytes > 1 ? (address - key.first) % r.block_bytes : address - key.first;
    // A block need not begin on a line.
    const std::uint64_t line = address / line_bytes - (address - offset) / line_bytes;
    return {r.head_bytes != 0 && offset < r.head_bytes ? r.head : r.body, line};
  }
  return {0, 0};
}

unsigned memory_names::of(std::uint64_t address) const noexcept {
  return place_of(address).name;
}

}  // namespace elidex::sim
