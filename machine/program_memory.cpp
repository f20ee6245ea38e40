// operator new and delete of the simulated program, its thrown objects, and the counter of its
// instructions: linked into its executable, not into the machine, whose own memory comes from the
// system. Null, aligned and sized forms all end here.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>

extern "C" {
void* elidex_sim_allocate(std::size_t bytes, std::size_t alignment) noexcept;
void elidex_sim_free(void* at) noexcept;
void elidex_sim_count_instructions_in(std::uint64_t* counters) noexcept;
void elidex_sim_dependences_are(const std::uint32_t* begin, const std::uint32_t* end) noexcept;

// The linker's names for the section that dependences.py fills, if any object has it.
extern const std::uint32_t __start_elidex_sim_dependences[] __attribute__((weak));
extern const std::uint32_t __stop_elidex_sim_dependences[] __attribute__((weak));

// The instrumented code adds the instructions and the branches that it executes (instrument.py).
extern std::uint64_t elidex_sim_instructions[2];
std::uint64_t elidex_sim_instructions[2] = {};
}

namespace {

[[maybe_unused]] const bool counted = [] {
  elidex_sim_count_instructions_in(elidex_sim_instructions);
  elidex_sim_dependences_are(__start_elidex_sim_dependences, __stop_elidex_sim_dependences);
  return true;
}();

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

// A thrown object would lie in the system's memory, where it shares lines with whatever the machine
// keeps beside it: where it begins in its line would hang on all that has been read before, and on
// how many CPUs there are.
//
// The C++ library's calls (Itanium C++ ABI, "Exception Handling", 2.4.2), which it makes itself
// too. Before the object it keeps a header, whose size it does not tell: on x86-64 128 bytes, zero
// at first.
extern "C" {

constexpr std::size_t exception_header_bytes = 128;

void* __cxa_allocate_exception(std::size_t bytes) noexcept {
  void* const header = elidex_sim_allocate(exception_header_bytes + bytes, usual);
  if (header == nullptr) std::terminate();
  std::memset(header, 0, exception_header_bytes);
  return static_cast<std::byte*>(header) + exception_header_bytes;
}
void __cxa_free_exception(void* object) noexcept {
  elidex_sim_free(static_cast<std::byte*>(object) - exception_header_bytes);
}

}  // extern "C"
