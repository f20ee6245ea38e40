#include "machine/heap.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <vector>

#include "machine/memory.hpp"

namespace elidex::sim::heap {
namespace {

constexpr std::size_t small_max = 32 * 1024;
constexpr std::size_t chunk_bytes = 64 * 1024;  // of one size class and thread
constexpr unsigned classes = 64;
constexpr unsigned lists = threads_max + 1;

// Four classes for each power of two, all multiples of 16.
std::size_t class_bytes(unsigned c) noexcept {
  if (c < 8) return 16 * (c + 1);
  const unsigned power = (c - 8) / 4;
  return (std::size_t{128} << power) + (std::size_t{32} << power) * ((c - 8) % 4 + 1);
}
unsigned class_of(std::size_t bytes, std::size_t alignment) noexcept {
  unsigned c = 0;
  while (class_bytes(c) < bytes || class_bytes(c) % alignment != 0) ++c;
  return c;
}

struct free_list {
  std::vector<void*> blocks;
  std::uint64_t fresh = 0;  // never handed out, up to
  std::uint64_t fresh_end = 0;
};

// Not std::mutex: that is the simulated program's.
struct spinning {
  std::atomic_flag& flag;
  explicit spinning(std::atomic_flag& f) noexcept : flag(f) {
    while (flag.test_and_set()) {
    }
  }
  ~spinning() { flag.clear(); }
};

struct state {
  std::atomic_flag lock;
  std::uint64_t end = arena_begin;
  std::array<std::array<free_list, classes>, lists> small;
  std::vector<std::uint8_t> class_of_chunk;              // by 64 KiB; 255: large
  std::map<std::uint64_t, std::size_t> large;            // in use: address to bytes
  std::multimap<std::size_t, std::uint64_t> large_free;  // bytes to address
};

state& the() noexcept {
  static state* const s = new state;  // for ever: the program frees until its last moment
  return *s;
}

unsigned list_of(unsigned thread) noexcept {
  return thread == shared_list ? lists - 1 : thread;
}

std::uint64_t grow(state& s, std::size_t bytes, std::uint8_t kind) noexcept {
  const std::uint64_t at = s.end;
  const std::uint64_t rounded = (bytes + chunk_bytes - 1) / chunk_bytes * chunk_bytes;
  if (rounded > arena_begin + arena_bytes - at) return 0;
  s.end += rounded;
  s.class_of_chunk.resize((s.end - arena_begin) / chunk_bytes, kind);
  return at;
}

std::size_t large_bytes(std::size_t bytes, std::size_t alignment) noexcept {
  // Every chunk is aligned to its size; for more, take that much more.
  const std::size_t with_room = alignment > chunk_bytes ? bytes + alignment : bytes;
  return (with_room + chunk_bytes - 1) / chunk_bytes * chunk_bytes;
}

}  // namespace

bool owns(const void* at) noexcept {
  const auto address = reinterpret_cast<std::uint64_t>(at);
  return address - arena_begin < arena_bytes;
}

std::uint64_t end() noexcept {
  return the().end;
}

bool would_grow(std::size_t bytes, std::size_t alignment, unsigned thread) noexcept {
  state& s = the();
  if (bytes > small_max || alignment > page_bytes)
    return s.large_free.count(large_bytes(bytes, alignment)) == 0;
  const free_list& l =
      s.small[list_of(thread)][class_of(std::max<std::size_t>(bytes, 1), alignment)];
  return l.blocks.empty() && l.fresh == l.fresh_end;
}

void* allocate(std::size_t bytes, std::size_t alignment, unsigned thread) noexcept {
  state& s = the();
  const spinning guard(s.lock);
  bytes = std::max<std::size_t>(bytes, 1);
  if (bytes > small_max || alignment > page_bytes) {
    if (bytes > arena_bytes / 2 || alignment > arena_bytes / 4) return nullptr;
    const std::size_t wanted = large_bytes(bytes, alignment);
    std::uint64_t at = 0;
    if (const auto found = s.large_free.find(wanted); found != s.large_free.end()) {
      at = found->second;
      s.large_free.erase(found);
    } else {
      at = grow(s, wanted, 255);
      if (at == 0) return nullptr;
    }
    const std::uint64_t aligned = (at + alignment - 1) / alignment * alignment;
    s.large[aligned] = wanted;
    if (aligned != at) s.large[at] = 0;  // where the block begins really
    return reinterpret_cast<void*>(aligned);
  }
  const unsigned c = class_of(bytes, alignment);
  free_list& l = s.small[list_of(thread)][c];
  if (!l.blocks.empty()) {
    void* const at = l.blocks.back();
    l.blocks.pop_back();
    return at;
  }
  if (l.fresh == l.fresh_end) {
    const std::uint64_t at = grow(s, chunk_bytes, static_cast<std::uint8_t>(c));
    if (at == 0) return nullptr;
    l.fresh = at;
    l.fresh_end = at + chunk_bytes / class_bytes(c) * class_bytes(c);
  }
  void* const at = reinterpret_cast<void*>(l.fresh);
  l.fresh += class_bytes(c);
  return at;
}

void free(void* at, unsigned thread) noexcept {
  state& s = the();
  const spinning guard(s.lock);
  const auto address = reinterpret_cast<std::uint64_t>(at);
  const std::uint8_t c = s.class_of_chunk[(address - arena_begin) / chunk_bytes];
  if (c != 255) {
    s.small[list_of(thread)][c].blocks.push_back(at);
    return;
  }
  auto found = s.large.find(address);
  const std::size_t bytes = found->second;
  std::uint64_t begin = address;
  if (found != s.large.begin()) {
    const auto before = std::prev(found);
    if (before->second == 0) {
      begin = before->first;
      s.large.erase(before);
    }
  }
  s.large.erase(found);
  s.large_free.emplace(bytes, begin);
}

}  // namespace elidex::sim::heap
