#include "preload/symbols.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace elidex::preload {

namespace {

// Where the loader has put an object, as its own entry says. The list itself is not walked: it
// changes.
const link_map* object_of(const void* address) noexcept {
#if __GLIBC_PREREQ(2, 35)
  dl_find_object found{};
  if (::_dl_find_object(const_cast<void*>(address), &found) == 0) return found.dlfo_link_map;
#else
  static_cast<void>(address);
#endif
  return nullptr;
}

struct symbol_table {
  const ElfW(Sym) * symbols = nullptr;
  std::size_t count = 0;
  const char* names = nullptr;
  std::size_t names_bytes = 0;
  const ElfW(Versym) * versions = nullptr;
};

// The number of symbols isn't written down anywhere; the GNU hash table knows the last one.
std::size_t symbol_count(const std::uint32_t* gnu_hash) noexcept {
  const std::uint32_t buckets = gnu_hash[0];
  const std::uint32_t first = gnu_hash[1];
  const std::uint32_t bloom_words = gnu_hash[2];
  const std::uint32_t* const bucket =
      gnu_hash + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof(std::uint32_t));
  const std::uint32_t* const chain = bucket + buckets;
  std::uint32_t last = 0;
  for (std::uint32_t i = 0; i < buckets; ++i) last = std::max(last, bucket[i]);
  if (last < first) return first;
  while ((chain[last - first] & 1) == 0) ++last;
  return last + 1;
}

symbol_table dynamic_symbols(const link_map& object) noexcept {
  symbol_table table;
  // The loader has relocated these in place, for all objects but the kernel's.
  const auto at = [&object](const ElfW(Dyn) & entry) {
    const ElfW(Addr) address = entry.d_un.d_ptr;
    return address < object.l_addr ? object.l_addr + address : address;
  };
  for (const ElfW(Dyn)* entry = object.l_ld; entry->d_tag != DT_NULL; ++entry) {
    switch (entry->d_tag) {
      case DT_SYMTAB:
        table.symbols = reinterpret_cast<const ElfW(Sym)*>(at(*entry));
        break;
      case DT_STRTAB:
        table.names = reinterpret_cast<const char*>(at(*entry));
        break;
      case DT_STRSZ:
        table.names_bytes = entry->d_un.d_val;
        break;
      case DT_VERSYM:
        table.versions = reinterpret_cast<const ElfW(Versym)*>(at(*entry));
        break;
      case DT_GNU_HASH:
        table.count = symbol_count(reinterpret_cast<const std::uint32_t*>(at(*entry)));
        break;
      case DT_HASH:
        if (table.count == 0) table.count = reinterpret_cast<const std::uint32_t*>(at(*entry))[1];
        break;
      default:
        break;
    }
  }
  if (table.symbols == nullptr || table.names == nullptr) table.count = 0;
  return table;
}

// The full symbol table of a file that is mapped at `bytes`. Nothing in it is believed unchecked.
symbol_table file_symbols(const unsigned char* bytes, std::size_t size) noexcept {
  symbol_table table;
  if (size < sizeof(ElfW(Ehdr)) || ::memcmp(bytes, ELFMAG, SELFMAG) != 0) return table;
  const auto* const header = reinterpret_cast<const ElfW(Ehdr)*>(bytes);
  const auto inside = [size](std::uint64_t begin, std::uint64_t length) {
    return begin <= size && length <= size - begin && begin % alignof(ElfW(Sym)) == 0;
  };
  if (header->e_shentsize != sizeof(ElfW(Shdr))) return table;
  if (!inside(header->e_shoff, std::uint64_t{header->e_shnum} * sizeof(ElfW(Shdr)))) return table;
  const auto* const sections = reinterpret_cast<const ElfW(Shdr)*>(bytes + header->e_shoff);
  for (std::size_t i = 0; i < header->e_shnum; ++i) {
    const ElfW(Shdr)& section = sections[i];
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= header->e_shnum) continue;
    const ElfW(Shdr)& names = sections[section.sh_link];
    if (!inside(section.sh_offset, section.sh_size) || names.sh_offset > size ||
        names.sh_size > size - names.sh_offset || names.sh_size == 0 ||
        bytes[names.sh_offset + names.sh_size - 1] != 0) {
      continue;
    }
    table.symbols = reinterpret_cast<const ElfW(Sym)*>(bytes + section.sh_offset);
    table.count = section.sh_size / sizeof(ElfW(Sym));
    table.names = reinterpret_cast<const char*>(bytes + names.sh_offset);
    table.names_bytes = names.sh_size;
  }
  return table;
}

bool is_function(const ElfW(Sym) & symbol) noexcept {
  const unsigned type = symbol.st_info & 15u;
  return (type == STT_FUNC || type == STT_GNU_IFUNC) && symbol.st_shndx != SHN_UNDEF;
}

std::string_view name_of(const symbol_table& table, const ElfW(Sym) & symbol) noexcept {
  if (symbol.st_name >= table.names_bytes) return {};
  return table.names + symbol.st_name;
}

// Only a symbol whose size covers the address: the last one before it may be another function's.
bool find_symbol(const symbol_table& table, std::uint64_t offset, code_place& place) noexcept {
  for (std::size_t i = 0; i < table.count; ++i) {
    const ElfW(Sym)& symbol = table.symbols[i];
    if (!is_function(symbol) || offset < symbol.st_value ||
        offset - symbol.st_value >= symbol.st_size)
      continue;
    place.symbol = name_of(table, symbol);
    place.offset = offset - symbol.st_value;
    if (!place.symbol.empty()) return true;
  }
  return false;
}

}  // namespace

const symbol_files::file* symbol_files::file_of(const void* object, const char* name) noexcept {
  for (std::size_t i = 0; i < count_; ++i) {
    if (files_[i].object == object) return &files_[i];
  }
  if (count_ == files_max) return nullptr;
  file& fresh = files_[count_++];
  fresh = {object, nullptr, 0};
  const int descriptor = ::open(*name == '\0' ? "/proc/self/exe" : name, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return &fresh;
  struct stat about{};
  if (::fstat(descriptor, &about) == 0 && S_ISREG(about.st_mode) && about.st_size > 0) {
    const auto size = static_cast<std::size_t>(about.st_size);
    void* const bytes = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    if (bytes != MAP_FAILED) fresh = {object, static_cast<const unsigned char*>(bytes), size};
  }
  ::close(descriptor);
  return &fresh;
}

void symbol_files::close() noexcept {
  for (std::size_t i = 0; i < count_; ++i) {
    if (files_[i].bytes != nullptr)
      ::munmap(const_cast<unsigned char*>(files_[i].bytes), files_[i].size);
  }
  count_ = 0;
}

code_place symbol_files::find(const void* address) noexcept {
  code_place place;
  place.offset = reinterpret_cast<std::uintptr_t>(address);
  const link_map* const object = object_of(address);
  if (object == nullptr) return place;
  const std::uint64_t offset = place.offset - object->l_addr;
  if (find_symbol(dynamic_symbols(*object), offset, place)) return place;
  const char* const name = object->l_name == nullptr ? "" : object->l_name;
  const file* const found = file_of(object, name);
  if (found != nullptr && found->bytes != nullptr &&
      find_symbol(file_symbols(found->bytes, found->size), offset, place)) {
    return place;
  }
  const char* const slash = ::strrchr(name, '/');
  place.module = *name == '\0'      ? program_invocation_short_name
                 : slash == nullptr ? name
                                    : slash + 1;
  place.offset = offset;
  return place;
}

void* find_in_libc(std::string_view name) noexcept {
  // A function that no library replaces.
  const link_map* const libc = object_of(reinterpret_cast<const void*>(&::gnu_get_libc_version));
  if (libc == nullptr) return nullptr;
  constexpr ElfW(Versym) hidden_version = 0x8000;  // an old one, kept for old programs
  const symbol_table table = dynamic_symbols(*libc);
  for (std::size_t i = 0; i < table.count; ++i) {
    const ElfW(Sym)& symbol = table.symbols[i];
    if (!is_function(symbol) ||
        (table.versions != nullptr && (table.versions[i] & hidden_version) != 0))
      continue;
    if (name_of(table, symbol) == name)
      return reinterpret_cast<void*>(libc->l_addr + symbol.st_value);
  }
  return nullptr;
}

}  // namespace elidex::preload
