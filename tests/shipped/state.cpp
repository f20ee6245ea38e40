#include "state.hpp"

#include <optional>

#include "elidex/internal/memory/epoch.hpp"
#include "elidex/mutex.hpp"
#include "elidex/ordered_map.hpp"

namespace {

using small_map = elidex::ordered_map<std::uint32_t, std::uint32_t>;

small_map& map_at(void* map) {
  return *static_cast<small_map*>(map);
}
elidex::recursive_mutex& lock_at(void* lock) {
  return *static_cast<elidex::recursive_mutex*>(lock);
}

}  // namespace

std::uint32_t state_slot() {
  return elidex::internal::this_thread_slot();
}

void* state_pin() {
  return new elidex::internal::epoch_pin;
}
void state_unpin(void* pin) {
  delete static_cast<elidex::internal::epoch_pin*>(pin);
}
bool state_epochs_move() {
  const std::uint64_t before = elidex::internal::try_advance_epoch();
  elidex::internal::try_advance_epoch();
  return elidex::internal::try_advance_epoch() >= before + 2;
}

void* state_new_lock() {
  return new elidex::recursive_mutex;
}
void state_lock(void* lock) {
  lock_at(lock).lock();
}
void state_unlock(void* lock) {
  lock_at(lock).unlock();
}

void* state_new_map() {
  return new small_map;
}
void state_put(void* map, std::uint32_t key, std::uint32_t value) {
  map_at(map).upsert(key, value);
}
std::int64_t state_get(void* map, std::uint32_t key) {
  const std::optional<std::uint32_t> found = map_at(map).get(key);
  return found ? std::int64_t{*found} : -1;
}
