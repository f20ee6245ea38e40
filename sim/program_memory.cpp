// operator new and delete of the simulated program: linked into its executable, not into the machine, whose own memory
// comes from the system. Null, aligned and sized forms all end here.
#include <cstddef>
#include <new>

extern "C" {
void* elidex_sim_allocate(std::size_t bytes, std::size_t alignment) noexcept;
void elidex_sim_free(void* at) noexcept;
}

namespace {

void* allocate(std::size_t bytes, std::size_t alignment) {
  void* const at = elidex_sim_allocate(bytes, alignment);
  if (at == nullptr) throw std::bad_alloc();
  return at;
}
constexpr std::size_t usual = __STDCPP_DEFAULT_NEW_ALIGNMENT__;

}  // namespace

void* operator new(std::size_t bytes) {
  return allocate(bytes, usual);
}
void* operator new[](std::size_t bytes) {
  return allocate(bytes, usual);
}
void* operator new(std::size_t bytes, std::align_val_t a) {
  return allocate(bytes, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t bytes, std::align_val_t a) {
  return allocate(bytes, static_cast<std::size_t>(a));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return elidex_sim_allocate(bytes, usual);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return elidex_sim_allocate(bytes, usual);
}
void* operator new(std::size_t bytes, std::align_val_t a, const std::nothrow_t&) noexcept {
  return elidex_sim_allocate(bytes, static_cast<std::size_t>(a));
}
void* operator new[](std::size_t bytes, std::align_val_t a, const std::nothrow_t&) noexcept {
  return elidex_sim_allocate(bytes, static_cast<std::size_t>(a));
}
void operator delete(void* at) noexcept {
  elidex_sim_free(at);
}
void operator delete[](void* at) noexcept {
  elidex_sim_free(at);
}
void operator delete(void* at, std::size_t) noexcept {
  elidex_sim_free(at);
}
void operator delete[](void* at, std::size_t) noexcept {
  elidex_sim_free(at);
}
void operator delete(void* at, std::align_val_t) noexcept {
  elidex_sim_free(at);
}
void operator delete[](void* at, std::align_val_t) noexcept {
  elidex_sim_free(at);
}
void operator delete(void* at, std::size_t, std::align_val_t) noexcept {
  elidex_sim_free(at);
}
void operator delete[](void* at, std::size_t, std::align_val_t) noexcept {
  elidex_sim_free(at);
}
void operator delete(void* at, const std::nothrow_t&) noexcept {
  elidex_sim_free(at);
}
void operator delete[](void* at, const std::nothrow_t&) noexcept {
  elidex_sim_free(at);
}
