#include "sim/memory.hpp"

#include <sys/mman.h>

#include <new>
#include <vector>

#include "sim/random.hpp"

namespace elidex::sim {
namespace {

page** table_of(std::uint64_t entries) {
  void* const at = ::mmap(nullptr, entries * sizeof(page*), PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
  return static_cast<page**>(at);
}

}  // namespace

memory::memory() {
  void* const at = ::mmap(reinterpret_cast<void*>(arena_begin), arena_bytes + stacks_bytes, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (at == MAP_FAILED) throw std::bad_alloc();
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
