// operator new and delete of the machine itself, and the program's calls for memory.
//
// Functions of libstdc++ that the machine calls allocate with the program's operator new, because
// the process has only one. So the machine's operator delete asks which heap owns the block.
#include <cstdlib>
#include <new>

#include "machine/engine.hpp"
#include "machine/heap.hpp"
#include "machine/simulation.hpp"

namespace {

constinit bool program_gets_system_memory = false;

void* from_system(std::size_t bytes, std::size_t alignment) {
  void* const at =
      alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__
          ? std::malloc(bytes == 0 ? 1 : bytes)
          : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (at == nullptr) throw std::bad_alloc();
  return at;
}

void give_back(void* at) noexcept {
  if (elidex::sim::heap::owns(at)) {
    elidex::sim::heap::free(at, elidex::sim::heap::shared_list);
  } else {
    std::free(at);
  }
}

}  // namespace

elidex::sim::system_memory::system_memory() noexcept {
  program_gets_system_memory = true;
}
elidex::sim::system_memory::~system_memory() {
  program_gets_system_memory = false;
}

void* operator new(std::size_t bytes) {
  return from_system(bytes, 1);
}
void* operator new[](std::size_t bytes) {
  return from_system(bytes, 1);
}
void* operator new(std::size_t bytes, std::align_val_t a) {
  return from_system(bytes, static_cast<std::size_t>(a));
}
void operator delete(void* at) noexcept {
  give_back(at);
}
void operator delete[](void* at) noexcept {
  give_back(at);
}
void operator delete(void* at, std::size_t) noexcept {
  give_back(at);
}
void operator delete[](void* at, std::size_t) noexcept {
  give_back(at);
}
void operator delete(void* at, std::align_val_t) noexcept {
  give_back(at);
}
void operator delete(void* at, std::size_t, std::align_val_t) noexcept {
  give_back(at);
}

extern "C" {

void* elidex_sim_allocate(std::size_t bytes, std::size_t alignment) noexcept {
  if (program_gets_system_memory) {
    try {
      return from_system(bytes, alignment);
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
  }
  elidex::sim::process_memory();  // the arena must be there
  if (elidex::sim::running != nullptr) return elidex::sim::running->allocate(bytes, alignment);
  return elidex::sim::heap::allocate(bytes, alignment, elidex::sim::heap::shared_list);
}

void elidex_sim_free(void* at) noexcept {
  if (at == nullptr) return;
  if (!elidex::sim::heap::owns(at)) {
    std::free(at);
  } else if (elidex::sim::running != nullptr) {
    elidex::sim::running->free(at);
  } else {
    elidex::sim::heap::free(at, elidex::sim::heap::shared_list);
  }
}

}  // extern "C"
