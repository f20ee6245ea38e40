#include "machine/memory.hpp"

#include <link.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "machine/random.hpp"

namespace elidex::sim {
namespace {

page** table_of(std::uint64_t entries) {
  void* const at = ::mmap(nullptr, entries * sizeof(page*), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  return static_cast<page**>(at);
}

// Called for the program itself first; ends the walk there.
int holds_in_program(dl_phdr_info* program, std::size_t, void* address) {
  constexpr int outside = 1;
  constexpr int inside = 2;
  if (program->dlpi_addr != 0) return outside;  // the system has chosen its place
  const auto at = *static_cast<const std::uint64_t*>(address);
  for (unsigned i = 0; i < program->dlpi_phnum; ++i) {
    const auto& segment = program->dlpi_phdr[i];
    if (segment.p_type == PT_LOAD && at - segment.p_vaddr < segment.p_memsz) return inside;
  }
  return outside;
}

}  // namespace

bool lies_at_a_fixed_address(std::uint64_t address) noexcept {
  if (address - arena_begin < arena_bytes + stacks_bytes) return true;
  return ::dl_iterate_phdr(holds_in_program, &address) == 2;
}

memory::memory() {
  void* const at = ::mmap(reinterpret_cast<void*>(arena_begin), arena_bytes + stacks_bytes,
                          PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (at == MAP_FAILED) {
    // Not an exception: the program's first allocation comes here, and throwing allocates.
    std::fprintf(stderr, "elidex: the machine needs 65 GiB of address space from %#llx on: %s\n",
                 static_cast<unsigned long long>(arena_begin), std::strerror(errno));
    std::_Exit(1);
  }
  arena_ = table_of(arena_pages);
  low_ = table_of(low_pages);
}

memory::~memory() {
  forget_all();
  ::munmap(arena_, arena_pages * sizeof(page*));
  ::munmap(low_, low_pages * sizeof(page*));
}

memory& process_memory() {
  static memory* const m = new memory;  // for ever, as what the program keeps in it
  return *m;
}

void memory::forget_all() {
  // The tables are large and nearly empty: new ones are cheaper than a walk.
  for (const auto& [number, p] : elsewhere_) delete p;
  elsewhere_.clear();
  pages_made_ = 0;
}

void memory::reset(std::uint64_t seed, std::uint64_t fresh_from) {
  forget_all();
  ::munmap(arena_, arena_pages * sizeof(page*));
  ::munmap(low_, low_pages * sizeof(page*));
  arena_ = table_of(arena_pages);
  low_ = table_of(low_pages);
  seed_ = seed;
  fresh_from_ = fresh_from;
}

page& memory::look_up(std::uint64_t number) {
  const auto found = elsewhere_.find(number);
  return found != elsewhere_.end() ? *found->second : make(number);
}

page& memory::make(std::uint64_t number) {
  page* const p = new page;
  const auto frame = static_cast<std::uint32_t>(mixed(seed_ + ++pages_made_)) >> 6;
  for (std::uint32_t i = 0; i < p->lines.size(); ++i) p->lines[i].number = frame * 64 + i;
  const std::uint64_t address = number * page_bytes;
  p->mapped = address < fresh_from_ || address >= stacks_begin;
  elsewhere_.emplace(number, p);
  if (number - first_arena_page < arena_pages) {
    arena_[number - first_arena_page] = p;
  } else if (number < low_pages) {
    low_[number] = p;
  }
  return *p;
}

}  // namespace elidex::sim
