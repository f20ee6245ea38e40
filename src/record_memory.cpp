#include "elidex/internal/txn/record_memory.hpp"

#include <mutex>

#include "elidex/internal/txn/record.hpp"

namespace elidex::internal {
namespace {

using classes = record_memory::classes;

// The classes are sorted by room, without gaps.
constexpr bool classes_are_dense() {
  std::size_t before = 0;
  for (std::size_t words = 1; words <= record_memory::room_max; ++words) {
    const std::size_t room = classes::room_for(words);
    const std::size_t index = classes::index_of(room);
    if (room < words || (room - words) * 8 > words) return false;
    if (words > 1 && index != before && index != before + 1) return false;
    before = index;
  }
  return before + 1 == classes::count;
}
static_assert(classes_are_dense());

// See the notes in the header.
constexpr std::size_t alignment_for(std::size_t record_bytes) {
  constexpr std::size_t shares_lines_up_to = 96;
  return record_bytes <= shares_lines_up_to ? sizeof(record) : block_pool::block_alignment;
}

}  // namespace

record_memory::record_memory(std::size_t room, std::size_t words_behind)
    : room_(room),
      words_behind_(words_behind),
      one_(record::bytes_for(room + words_behind), "record", record::bytes_for(0), default_memory,
           alignment_for(record::bytes_for(room + words_behind))),
      pools_(room == any_room ? std::make_unique<pools>() : nullptr) {}

record_memory::~record_memory() {
  if (!pools_) return;
  for (const std::atomic<block_pool*>& one : *pools_) delete one.load();
}

block_pool& record_memory::make_pool(std::size_t room) {
  const std::lock_guard guard(making_);
  std::atomic<block_pool*>& place = (*pools_)[classes::index_of(room)];
  // relaxed: only the holder of the lock changes it.
  block_pool* made = place.load(std::memory_order_relaxed);
  if (made == nullptr) {
    made = new block_pool(record::bytes_for(room + words_behind_), "record", record::bytes_for(0),
                          default_memory, alignof(record));
    // release: pairs with the acquires of the readers.
    place.store(made, std::memory_order_release);
  }
  return *made;
}

template <class Fn>
void record_memory::for_each_pool(Fn&& fn) const {
  if (!pools_) return;
  for (const std::atomic<block_pool*>& one : *pools_) {
    if (block_pool* const made = one.load()) fn(*made);
  }
}

bool record_memory::give_back_unused() noexcept {
  bool all = one_.give_back_unused();
  for_each_pool([&](block_pool& one) { all = one.give_back_unused() && all; });
  return all;
}

std::size_t record_memory::reserved_bytes() const noexcept {
  std::size_t bytes = one_.reserved_bytes();
  for_each_pool([&](const block_pool& one) { bytes += one.reserved_bytes(); });
  return bytes;
}

}  // namespace elidex::internal
