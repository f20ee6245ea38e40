#include "machine/function_names.hpp"

#include <cxxabi.h>
#include <elf.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string_view>
#include <vector>

namespace elidex::sim {
namespace {

// Reads `count` objects at an offset of the file. Returns none if the file is shorter.
template <class T>
std::vector<T> read_at(std::ifstream& file, std::uint64_t offset, std::uint64_t count) {
  constexpr std::uint64_t most = std::uint64_t{1} << 30;  // in bytes; of no symbol table
  if (count > most / sizeof(T)) return {};
  std::vector<T> all(count);
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(all.data()), static_cast<std::streamsize>(count * sizeof(T)));
  if (!file) return {};
  return all;
}

// The symbol's name in the source: elidex-c++ (elidex_cxx.py) puts words in front of some.
std::string_view name_before_renaming(std::string_view symbol) {
  for (const std::string_view prefix : {"elidex_program_", "elidex_outside_"}) {
    if (!symbol.starts_with(prefix)) continue;
    symbol.remove_prefix(prefix.size());
    // _Z...
    if (symbol.starts_with('Z')) return {symbol.data() - 1, symbol.size() + 1};
    return symbol;
  }
  return symbol;
}

// The functions behind pthread's, if locks are elided: elidex::preload::interposed_locks<...>
// ::mutex_lock(pthread_mutex_t*) is pthread_mutex_lock. Returns an empty text for others.
std::string name_of_elided(std::string_view function) {
  if (!function.starts_with("elidex::preload::interposed_locks<")) return {};
  const std::size_t end = function.rfind('(');
  const std::size_t colons = function.rfind("::", end);
  if (end == std::string_view::npos || colons == std::string_view::npos) return {};
  return "pthread_" + std::string(function.substr(colons + 2, end - colons - 2));
}

}  // namespace

function_names function_names::of_this_program() {
  function_names names;
  std::ifstream file("/proc/self/exe", std::ios::binary);
  const auto header = read_at<Elf64_Ehdr>(file, 0, 1);
  if (header.empty() || header[0].e_shentsize != sizeof(Elf64_Shdr)) return names;
  const auto sections = read_at<Elf64_Shdr>(file, header[0].e_shoff, header[0].e_shnum);
  for (const Elf64_Shdr& table : sections) {
    if (table.sh_type != SHT_SYMTAB || table.sh_link >= sections.size()) continue;
    const Elf64_Shdr& of_names = sections[table.sh_link];
    std::vector<char> texts = read_at<char>(file, of_names.sh_offset, of_names.sh_size);
    if (texts.empty()) continue;
    texts.back() = 0;
    for (const Elf64_Sym& one :
         read_at<Elf64_Sym>(file, table.sh_offset, table.sh_size / sizeof(Elf64_Sym))) {
      const bool is_function = ELF64_ST_TYPE(one.st_info) == STT_FUNC && one.st_size != 0;
      if (is_function && one.st_name < texts.size())
        names.by_begin_[one.st_value] = {one.st_value + one.st_size, &texts[one.st_name]};
    }
  }
  return names;
}

std::string function_names::at(const void* return_address) const {
  const auto address = reinterpret_cast<std::uint64_t>(return_address);
  // The call may be the function's last instruction.
  const auto behind = by_begin_.lower_bound(address);
  if (behind == by_begin_.begin() || std::prev(behind)->second.end < address) {
    char text[2 + 16 + 1];
    std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(address));
    return text;
  }
  const std::string name(name_before_renaming(std::prev(behind)->second.name));
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> readable(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  if (status != 0) return name;
  const std::string elided = name_of_elided(readable.get());
  return elided.empty() ? readable.get() : elided;
}

}  // namespace elidex::sim
