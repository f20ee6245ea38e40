#include "elidex/reclaim/limbo.hpp"

#include <algorithm>

namespace elidex {

limbo_list::~limbo_list() {
  for (shard& s : shards_) {
    for (const entry& e : s.entries) e.destroy(owner_, e.object);
  }
}

void limbo_list::reserve() {
  shard& s = this_threads_shard();
  const std::lock_guard guard(s.mutex);
  const std::size_t needed = s.entries.size() + s.reserved + reserved_entries;
  if (s.entries.capacity() < needed) s.entries.reserve(std::max(needed, 2 * s.entries.capacity()));
  s.reserved += reserved_entries;
}

void limbo_list::unreserve() noexcept {
  shard& s = this_threads_shard();
  const std::lock_guard guard(s.mutex);
  s.reserved -= reserved_entries;
}

void limbo_list::retire(void* object, destroyer destroy) noexcept {
  shard& s = this_threads_shard();
  const std::lock_guard guard(s.mutex);
  s.entries.push_back({object, destroy, epoch_after_unlinking()});
  if (--s.until_sweep == 0) {
    s.until_sweep = retirements_per_sweep;
    sweep(s);
  }
}

void limbo_list::sweep(shard& s) noexcept {
  const std::uint64_t epoch = try_advance_epoch();
  const auto ripe_end =
      std::find_if(s.entries.begin(), s.entries.end(), [&](const entry& e) { return e.epoch + 2 > epoch; });
  std::for_each(s.entries.begin(), ripe_end, [&](const entry& e) { e.destroy(owner_, e.object); });
  s.entries.erase(s.entries.begin(), ripe_end);
}

std::size_t limbo_list::pending() const noexcept {
  std::size_t sum = 0;
  for (const shard& s : shards_) {
    const std::lock_guard guard(s.mutex);
    sum += s.entries.size();
  }
  return sum;
}

void limbo_list::sweep_all() noexcept {
  for (shard& s : shards_) {
    const std::lock_guard guard(s.mutex);
    sweep(s);
  }
}

}  // namespace elidex
