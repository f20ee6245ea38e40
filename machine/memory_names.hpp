// The program's names for its memory, so that reports can name the memory on which threads contend.
//
// Thread-safety: of() may run in several threads at once. add() must run alone.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace elidex::sim {

class memory_names {
 public:
  void add(std::uint64_t from, std::uint64_t bytes, const char* name, std::uint64_t block_bytes,
           std::uint64_t head_bytes);
  // Returns the number of the name of the memory at this address.
  unsigned of(std::uint64_t address) const noexcept;
  // The same, with the line's index in the block (or in the whole, if there are no blocks).
  struct place {
    unsigned name;
    std::uint64_t line;
    auto operator<=>(const place&) const = default;
  };
  place place_of(std::uint64_t address) const noexcept;
  const std::string& text(unsigned number) const { return texts_[number]; }

 private:
  struct range {
    std::uint64_t end;
    std::uint64_t reach;  // the last end of this range and those before it: a search ends here
    unsigned body;
    unsigned head;
    std::uint64_t block_bytes;
    std::uint64_t head_bytes;
  };
  unsigned number_of(const std::string& text);

  std::vector<std::string> texts_{"other"};
  // ordered by begin, and the longest first among equal ones
  std::map<std::pair<std::uint64_t, std::uint64_t>, range> ranges_;
};
memory_names& process_names();

}  // namespace elidex::sim
