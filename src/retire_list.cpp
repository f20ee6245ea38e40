#include "elidex/internal/memory/retire_list.hpp"

#include <algorithm>
#include <new>

namespace elidex::internal {
namespace {

// entries of a shard; chosen: lists below that are not worth shrinking
constexpr std::size_t room_kept = 1024;

template <class T>
bool try_reserve(std::vector<T>& list, std::size_t capacity) noexcept {
  try {
    list.reserve(capacity);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace

// Calls fn for all shards, if there are any.
template <class Fn>
void retire_list::for_each_shard(Fn&& fn) const {
  all_shards* const shards = shards_.if_made();
  if (shards == nullptr) return;
  for (shard& s : *shards) fn(s);
}

retire_list::~retire_list() {
  for_each_shard([this](const shard& s) {
    for (const entry& e : s.entries) e.destroy(owner_, e.object);
  });
}

void retire_list::reserve() {
  // The thread's later calls find the same shard.
  shard& s = shards_.get()[this_thread_slot() % shard_count];
  const std::lock_guard guard(s.mutex);
  const std::size_t needed = s.entries.size() + s.reserved + reserved_entries;
  if (s.entries.capacity() < needed) s.entries.reserve(std::max(needed, 2 * s.entries.capacity()));
  s.reserved += reserved_entries;
}

void retire_list::unreserve() noexcept {
  shard& s = this_threads_shard();
  const std::lock_guard guard(s.mutex);
  s.reserved -= reserved_entries;
}

void retire_list::retire(void* object, destroyer destroy) noexcept {
  {
    shard& s = this_threads_shard();
    const std::lock_guard guard(s.mutex);
    s.entries.push_back({object, destroy, epoch_after_unlinking()});
    if (--s.until_sweep != 0) return;
    s.until_sweep = retirements_per_sweep;
    sweep(s);
  }
  sweep_next_in_turn();
}

// Memory that was retired while a reader was pinned must not wait forever if its threads retire no
// more.
void retire_list::sweep_next_in_turn() noexcept {
  // relaxed, without a partner: any order of turns will do.
  shard& s =
      (*shards_.if_made())[next_in_turn_.fetch_add(1, std::memory_order_relaxed) % shard_count];
  const std::unique_lock lock(s.mutex, std::try_to_lock);
  if (lock.owns_lock()) sweep(s);
}

void retire_list::sweep(shard& s) noexcept {
  const std::uint64_t epoch = try_advance_epoch();
  const auto ripe_end = std::find_if(s.entries.begin(), s.entries.end(),
                                     [&](const entry& e) { return e.epoch + 2 > epoch; });
  std::for_each(s.entries.begin(), ripe_end, [&](const entry& e) { e.destroy(owner_, e.object); });
  s.entries.erase(s.entries.begin(), ripe_end);

  const std::size_t needed = 2 * (s.entries.size() + s.reserved);
  if (s.entries.capacity() < room_kept || s.entries.capacity() < 4 * needed) return;
  std::vector<entry> smaller;
  if (!try_reserve(smaller, std::max(needed, room_kept / 4))) return;
  smaller.assign(s.entries.begin(), s.entries.end());
  s.entries.swap(smaller);
}

std::size_t retire_list::reserved_bytes() const noexcept {
  std::size_t sum = 0;
  for_each_shard([&](const shard& s) {
    const std::lock_guard guard(s.mutex);
    sum += sizeof(shard) + s.entries.capacity() * sizeof(entry);
  });
  return sum;
}

std::size_t retire_list::pending() const noexcept {
  std::size_t sum = 0;
  for_each_shard([&](const shard& s) {
    const std::lock_guard guard(s.mutex);
    sum += s.entries.size();
  });
  return sum;
}

void retire_list::sweep_all() noexcept {
  // Memory that was retired just now is free two epochs later.
  try_advance_epoch();
  try_advance_epoch();
  for_each_shard([this](shard& s) {
    const std::lock_guard guard(s.mutex);
    sweep(s);
  });
}

}  // namespace elidex::internal
