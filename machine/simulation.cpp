#include "machine/simulation.hpp"

#include "machine/engine.hpp"
#include "machine/heap.hpp"

namespace elidex::sim {

report run(const machine& which, const run_options& options,
           const std::vector<std::function<void()>>& bodies) {
  memory& where = process_memory();
  // Explored runs in one process must not differ by which pages are new.
  where.reset(options.seed, options.schedule == nullptr ? heap::end() : stacks_begin);
  forget_locks();
  forget_buckets();
  engine e(which, options, where);
  return e.run(bodies);
}

void spend(std::uint64_t cycles) noexcept {
  if (running != nullptr) running->spend(cycles);
}

std::uint64_t now() noexcept {
  return running != nullptr ? running->now() : 0;
}

std::uint64_t steps() noexcept {
  return running != nullptr ? running->steps() : 0;
}

bool inside() noexcept {
  return running != nullptr;
}

void start_counting() noexcept {
  if (running != nullptr) running->start_counting();
}

void exempt_pages(const void* from, std::size_t bytes) noexcept {
  if (running != nullptr) running->exempt(reinterpret_cast<std::uint64_t>(from), bytes);
}

void unmap_pages(void* from, std::size_t bytes) noexcept {
  if (running != nullptr) running->unmap(reinterpret_cast<std::uint64_t>(from), bytes);
}

void name_memory(const void* from, std::size_t bytes, const char* name, std::size_t block_bytes,
                 std::size_t head_bytes) noexcept {
  process_names().add(reinterpret_cast<std::uint64_t>(from), bytes, name, block_bytes, head_bytes);
}

}  // namespace elidex::sim
