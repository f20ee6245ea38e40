// Finds the function that contains an address, and the addresses of the real functions, without the
// loader. dladdr() and dlsym() take the loader's lock and may call malloc, which is not possible in
// a signal handler or for a lock inside malloc.
//
//   code_place place;
//   find_place(address, place);     // place.symbol + place.offset, or place.module + place.offset
//
// _dl_find_object (glibc 2.35) tells which object has an address, without a lock. The object's
// dynamic symbols are in memory. The full symbol table, if the file has one, is mapped during one
// report.
//
// Thread-safety: any thread, also in signal handlers. A symbol_files belongs to one thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace elidex::preload {

struct code_place {
  std::string_view module;   // its file's name without directories; empty: unknown
  std::string_view symbol;   // as the linker knows it; empty: unknown
  std::uint64_t offset = 0;  // within the symbol, else within the module
};

// The symbol tables in files that are open at the moment; the names in code_places live as long.
class symbol_files {
 public:
  symbol_files() = default;
  symbol_files(const symbol_files&) = delete;
  symbol_files& operator=(const symbol_files&) = delete;
  ~symbol_files() { close(); }

  code_place find(const void* address) noexcept;
  void close() noexcept;

 private:
  // Chosen: programs rarely lock from more objects. Of further objects only the dynamic symbols are
  // known.
  static constexpr std::size_t files_max = 16;

  struct file {
    const void* object;          // its link_map
    const unsigned char* bytes;  // null: no such table
    std::size_t size;
  };
  const file* file_of(const void* object, const char* name) noexcept;

  std::size_t count_ = 0;
  std::array<file, files_max> files_{};
};

// Returns the default version of that function in the C library itself, or null.
void* find_in_libc(std::string_view name) noexcept;

}  // namespace elidex::preload
