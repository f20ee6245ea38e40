// What the compiler calls at every access to memory when it compiles with -fsanitize=thread, and
// what replaces the string functions of C in such code. The names and signatures are those of
// the ThreadSanitizer interface that GCC and Clang emit; nothing of the sanitizer itself is linked.
//
// Outside of runs all of it does what the plain code would do.
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "machine/engine.hpp"

namespace elidex::sim {
namespace {

// `from` is the program's place behind the call (dependences.py), or null.
inline void plain(const void* address, std::uint64_t bytes, bool write, const void* from) {
  if (running != nullptr) [[likely]]
    running->access(reinterpret_cast<std::uint64_t>(address), bytes, write, from);
}

// Of a call that does not hand on its caller as `from`.
inline void calls_from(const void* code) {
  if (running != nullptr) running->calls_from(code);
}

void both(const void* first, bool write_first, const void* second, std::size_t bytes) {
  if (running != nullptr && bytes != 0) {
    running->visit_both(reinterpret_cast<std::uint64_t>(first), write_first,
                        reinterpret_cast<std::uint64_t>(second), bytes);
  }
}

template <class Word>
void announce(const volatile Word* at, bool write, const void* from = nullptr) {
  if (running != nullptr) [[likely]]
    running->access_atomically(reinterpret_cast<std::uint64_t>(at), sizeof(Word), write, from);
}

// On real threads, outside of runs, atomics must be atomic.
template <class Word>
Word load(const volatile Word* at, const void* from) {
  if (running == nullptr) return __atomic_load_n(at, __ATOMIC_SEQ_CST);
  announce(at, false, from);
  return running->seen_in(const_cast<const Word*>(at));
}

template <class Word>
void store(volatile Word* at, Word value, int order, const void* from) {
  if (running != nullptr) {
    running->store_atomically(reinterpret_cast<std::uint64_t>(at), sizeof(Word),
                              order == __ATOMIC_SEQ_CST, from);
  }
  __atomic_store_n(at, value, __ATOMIC_SEQ_CST);
}

template <class Word, class Change>
Word exchange(volatile Word* at, const void* from, Change change) {
  if (running == nullptr) {
    Word before = __atomic_load_n(at, __ATOMIC_SEQ_CST);
    while (!__atomic_compare_exchange_n(at, &before, change(before), false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST)) {
    }
    return before;
  }
  running->calls_from(from);
  announce(at, true);
  const Word before = *at;
  *at = change(before);
  return before;
}

template <class Word>
bool compare_exchange(volatile Word* at, const void* from, Word* expected, Word value) {
  if (running == nullptr) {
    return __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_SEQ_CST,
                                       __ATOMIC_SEQ_CST);
  }
  running->calls_from(from);
  announce(at, true);  // a locked instruction takes the line for writing even when it fails
  const Word before = *at;
  if (before == *expected) {
    *at = value;
    return true;
  }
  *expected = before;
  return false;
}

}  // namespace
}  // namespace elidex::sim

using namespace elidex::sim;  // everything below has C names

extern "C" {

void __tsan_init() {}

void elidex_sim_count_instructions_in(std::uint64_t* counters) noexcept {
  counted_by_program = counters;
}
void elidex_sim_dependences_are(const std::uint32_t* begin, const std::uint32_t* end) noexcept {
  note_dependences(begin, end);
}

#define ELIDEX_SIM_CALLER __builtin_return_address(0)
#define ELIDEX_SIM_PLAIN(BYTES)                  \
  void __tsan_read##BYTES(void* at) {            \
    plain(at, BYTES, false, ELIDEX_SIM_CALLER);  \
  }                                              \
  void __tsan_write##BYTES(void* at) {           \
    plain(at, BYTES, true, ELIDEX_SIM_CALLER);   \
  }                                              \
  void __tsan_unaligned_read##BYTES(void* at) {  \
    plain(at, BYTES, false, ELIDEX_SIM_CALLER);  \
  }                                              \
  void __tsan_unaligned_write##BYTES(void* at) { \
    plain(at, BYTES, true, ELIDEX_SIM_CALLER);   \
  }                                              \
  void __tsan_volatile_read##BYTES(void* at) {   \
    plain(at, BYTES, false, ELIDEX_SIM_CALLER);  \
  }                                              \
  void __tsan_volatile_write##BYTES(void* at) {  \
    plain(at, BYTES, true, ELIDEX_SIM_CALLER);   \
  }
ELIDEX_SIM_PLAIN(1)
ELIDEX_SIM_PLAIN(2)
ELIDEX_SIM_PLAIN(4)
ELIDEX_SIM_PLAIN(8)
ELIDEX_SIM_PLAIN(16)
#undef ELIDEX_SIM_PLAIN

void __tsan_vptr_update(void** at, void*) {
  plain(at, sizeof(void*), true, ELIDEX_SIM_CALLER);
}
void __tsan_vptr_read(void** at) {
  plain(at, sizeof(void*), false, ELIDEX_SIM_CALLER);
}
void __tsan_read_range(void* at, std::size_t bytes) {
  if (bytes != 0) plain(at, bytes, false, ELIDEX_SIM_CALLER);
}
void __tsan_write_range(void* at, std::size_t bytes) {
  if (bytes != 0) plain(at, bytes, true, ELIDEX_SIM_CALLER);
}

#define ELIDEX_SIM_ATOMIC(BITS, WORD)                                                              \
  WORD __tsan_atomic##BITS##_load(const volatile WORD* at, int) {                                  \
    return load(at, ELIDEX_SIM_CALLER);                                                            \
  }                                                                                                \
  void __tsan_atomic##BITS##_store(volatile WORD* at, WORD value, int order) {                     \
    store(at, value, order, ELIDEX_SIM_CALLER);                                                    \
  }                                                                                                \
  WORD __tsan_atomic##BITS##_exchange(volatile WORD* at, WORD value, int) {                        \
    return exchange(at, ELIDEX_SIM_CALLER, [=](WORD) { return value; });                           \
  }                                                                                                \
  WORD __tsan_atomic##BITS##_fetch_add(volatile WORD* at, WORD value, int) {                       \
    return exchange(at, ELIDEX_SIM_CALLER,                                                         \
                    [=](WORD before) { return static_cast<WORD>(before + value); });               \
  }                                                                                                \
  WORD __tsan_atomic##BITS##_fetch_sub(volatile WORD* at, WORD value, int) {                       \
    return exchange(at, ELIDEX_SIM_CALLER,                                                         \
                    [=](WORD before) { return static_cast<WORD>(before - value); });               \
  }                                                                                                \
  WORD __tsan_atomic##BITS##_fetch_and(volatile WORD* at, WORD value, int) {                       \
    return exchange(at, ELIDEX_SIM_CALLER,                                                         \
                    [=](WORD before) { return static_cast<WORD>(before & value); });               \
  }                                                                                                \
  WORD __tsan_atomic##BITS##_fetch_or(volatile WORD* at, WORD value, int) {                        \
    return exchange(at, ELIDEX_SIM_CALLER,                                                         \
                    [=](WORD before) { return static_cast<WORD>(before | value); });               \
  }                                                                                                \
  WORD __tsan_atomic##BITS##_fetch_xor(volatile WORD* at, WORD value, int) {                       \
    return exchange(at, ELIDEX_SIM_CALLER,                                                         \
                    [=](WORD before) { return static_cast<WORD>(before ^ value); });               \
  }                                                                                                \
  int __tsan_atomic##BITS##_compare_exchange_strong(volatile WORD* at, WORD* expected, WORD value, \
                                                    int, int) {                                    \
    return compare_exchange(at, ELIDEX_SIM_CALLER, expected, value) ? 1 : 0;                       \
  }                                                                                                \
  int __tsan_atomic##BITS##_compare_exchange_weak(volatile WORD* at, WORD* expected, WORD value,   \
                                                  int, int) {                                      \
    return compare_exchange(at, ELIDEX_SIM_CALLER, expected, value) ? 1 : 0;                       \
  }                                                                                                \
  WORD __tsan_atomic##BITS##_compare_exchange_val(volatile WORD* at, WORD expected, WORD value,    \
                                                  int, int) {                                      \
    compare_exchange(at, ELIDEX_SIM_CALLER, &expected, value);                                     \
    return expected;                                                                               \
  }
ELIDEX_SIM_ATOMIC(8, std::uint8_t)
ELIDEX_SIM_ATOMIC(16, std::uint16_t)
ELIDEX_SIM_ATOMIC(32, std::uint32_t)
ELIDEX_SIM_ATOMIC(64, std::uint64_t)
#undef ELIDEX_SIM_ATOMIC

// Interleavings are sequentially consistent: a fence only takes its time.
void __tsan_atomic_thread_fence(int order) {
  if (running == nullptr) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
  } else if (order == __ATOMIC_SEQ_CST) {
    running->spend_fence();  // the weaker ones are no instruction on x86
  }
}
void __tsan_atomic_signal_fence(int) {}

// --- the string functions; instrument.py gives calls in the program these names ---

void* elidex_sim_memcpy(void* to, const void* from, std::size_t bytes) {
  calls_from(ELIDEX_SIM_CALLER);
  both(to, true, from, bytes);
  return std::memcpy(to, from, bytes);
}
void* elidex_sim_memmove(void* to, const void* from, std::size_t bytes) {
  calls_from(ELIDEX_SIM_CALLER);
  both(to, true, from, bytes);
  return std::memmove(to, from, bytes);
}
void* elidex_sim_memset(void* to, int value, std::size_t bytes) {
  if (bytes == 0) return to;
  calls_from(ELIDEX_SIM_CALLER);
  plain(to, bytes, true, nullptr);
  return std::memset(to, value, bytes);
}
int elidex_sim_memcmp(const void* a, const void* b, std::size_t bytes) {
  calls_from(ELIDEX_SIM_CALLER);
  both(a, false, b, bytes);
  return std::memcmp(a, b, bytes);
}
int elidex_sim_strcmp(const char* a, const char* b) {
  std::size_t equal = 0;
  while (a[equal] == b[equal] && a[equal] != 0) ++equal;
  calls_from(ELIDEX_SIM_CALLER);
  both(a, false, b, equal + 1);
  return std::strcmp(a, b);
}
std::size_t elidex_sim_strlen(const char* s) {
  calls_from(ELIDEX_SIM_CALLER);
  // Others run while it is announced: until it is still as long as announced.
  for (;;) {
    const std::size_t length = std::strlen(s);
    plain(s, length + 1, false, nullptr);
    if (std::strlen(s) == length) return length;
  }
}
void* elidex_sim_memchr(const void* s, int value, std::size_t bytes) {
  if (bytes == 0) return nullptr;
  calls_from(ELIDEX_SIM_CALLER);
  plain(s, bytes, false, nullptr);
  return const_cast<void*>(std::memchr(s, value, bytes));
}

// --- transactions, as elidex/htm.hpp declares them ---

bool elidex_sim_has_hle() noexcept {
  return running != nullptr && running->has_hle();
}
bool elidex_sim_enabled() noexcept {
  return running != nullptr && running->has_rtm();
}

__attribute__((visibility("hidden"), used)) std::uint32_t elidex_sim_begin_here(
    const registers& back) {
  return running->begin(back);
}
__attribute__((visibility("hidden"), used)) std::uint32_t elidex_sim_begin_elision_here(
    const registers& back, std::uint32_t* word, std::uint32_t value) {
  return running == nullptr ? 0 : running->begin_elision(back, *word, value);
}

void elidex_sim_commit() noexcept {
  if (running != nullptr) running->commit();
}
void elidex_sim_abort(std::uint8_t code) noexcept {
  if (running != nullptr) running->abort(code);
}
bool elidex_sim_test() noexcept {
  return running != nullptr && running->in_transaction();
}
void elidex_sim_pause() noexcept {
  if (running != nullptr) {
    running->pause();
  } else {
    __builtin_ia32_pause();
  }
}

void elidex_sim_name_memory(const void* from, std::size_t bytes, const char* name,
                            std::size_t block_bytes, std::size_t head_bytes) noexcept {
  name_memory(from, bytes, name, block_bytes, head_bytes);
}

std::uint32_t elidex_sim_value_before_elision() noexcept {
  return running->value_before_elision();
}
bool elidex_sim_end_elision(std::uint32_t* word, std::uint32_t value) noexcept {
  return running != nullptr && running->end_elision(*word, value);
}

// Of a store that the compiler does not announce (unannounced_stores.py).
__attribute__((visibility("hidden"), used)) void elidex_sim_unannounced_write_here(
    const void* at, std::size_t bytes, const void* from) {
  if (running != nullptr)
    running->access_unannounced(reinterpret_cast<std::uint64_t>(at), bytes, from);
}

__attribute__((visibility("hidden"), used)) void elidex_sim_system_call_here() {
  if (running != nullptr) running->system_call();
}

}  // extern "C"

// Whether the CPU and the kernel have the instruction that keeps registers of all widths.
extern "C" {
extern __attribute__((visibility("hidden"))) bool elidex_sim_has_xsave;
bool elidex_sim_has_xsave = __builtin_cpu_supports("avx") != 0;
}

// Both come back a second time when the transaction aborts, so they hand on where their caller goes
// on: a `registers` on the stack (its layout is that of fiber.hpp), whose stack pointer is the
// caller's.
asm(R"(
    .text
    .macro elidex_sim_remember
    subq $88, %rsp
    movq %rbx, 0(%rsp)
    movq %rbp, 8(%rsp)
    movq %r12, 16(%rsp)
    movq %r13, 24(%rsp)
    movq %r14, 32(%rsp)
    movq %r15, 40(%rsp)
    leaq 96(%rsp), %rax
    movq %rax, 48(%rsp)
    movq 88(%rsp), %rax
    movq %rax, 56(%rsp)
    movq $0, 64(%rsp)
    .endm

    .globl elidex_sim_begin
    .type elidex_sim_begin, @function
elidex_sim_begin:
    .cfi_startproc
    elidex_sim_remember
    .cfi_adjust_cfa_offset 88
    movq %rsp, %rdi
    call elidex_sim_begin_here
    addq $88, %rsp
    .cfi_adjust_cfa_offset -88
    ret
    .cfi_endproc
    .size elidex_sim_begin, .-elidex_sim_begin

    .globl elidex_sim_begin_elision
    .type elidex_sim_begin_elision, @function
elidex_sim_begin_elision:
    .cfi_startproc
    elidex_sim_remember
    .cfi_adjust_cfa_offset 88
    movl %esi, %edx
    movq %rdi, %rsi
    movq %rsp, %rdi
    call elidex_sim_begin_elision_here
    addq $88, %rsp
    .cfi_adjust_cfa_offset -88
    ret
    .cfi_endproc
    .size elidex_sim_begin_elision, .-elidex_sim_begin_elision

    # In front of a call of the C or C++ library that makes a system call (instrument.py): keeps
    # the registers in which its arguments are.
    .globl elidex_sim_system_call
    .type elidex_sim_system_call, @function
elidex_sim_system_call:
    .cfi_startproc
    pushq %rbp
    .cfi_adjust_cfa_offset 8
    .cfi_rel_offset %rbp, 0
    movq %rsp, %rbp
    .cfi_def_cfa_register %rbp
    subq $192, %rsp
    andq $-16, %rsp
    movq %rax, 0(%rsp)
    movq %rdi, 8(%rsp)
    movq %rsi, 16(%rsp)
    movq %rdx, 24(%rsp)
    movq %rcx, 32(%rsp)
    movq %r8, 40(%rsp)
    movq %r9, 48(%rsp)
    movaps %xmm0, 64(%rsp)
    movaps %xmm1, 80(%rsp)
    movaps %xmm2, 96(%rsp)
    movaps %xmm3, 112(%rsp)
    movaps %xmm4, 128(%rsp)
    movaps %xmm5, 144(%rsp)
    movaps %xmm6, 160(%rsp)
    movaps %xmm7, 176(%rsp)
    call elidex_sim_system_call_here
    movq 0(%rsp), %rax
    movq 8(%rsp), %rdi
    movq 16(%rsp), %rsi
    movq 24(%rsp), %rdx
    movq 32(%rsp), %rcx
    movq 40(%rsp), %r8
    movq 48(%rsp), %r9
    movaps 64(%rsp), %xmm0
    movaps 80(%rsp), %xmm1
    movaps 96(%rsp), %xmm2
    movaps 112(%rsp), %xmm3
    movaps 128(%rsp), %xmm4
    movaps 144(%rsp), %xmm5
    movaps 160(%rsp), %xmm6
    movaps 176(%rsp), %xmm7
    leave
    .cfi_def_cfa %rsp, 8
    ret
    .cfi_endproc
    .size elidex_sim_system_call, .-elidex_sim_system_call

    # Announce a store of so many bytes at %rdi. The compiler does not know of these calls: they
    # keep all registers but %rdi, and the flags.
    .macro elidex_sim_unannounced bytes
    .globl elidex_sim_unannounced_write\bytes
    .type elidex_sim_unannounced_write\bytes, @function
elidex_sim_unannounced_write\bytes:
    pushq $\bytes
    jmp elidex_sim_unannounced_write
    .size elidex_sim_unannounced_write\bytes, .-elidex_sim_unannounced_write\bytes
    .endm
    elidex_sim_unannounced 1
    elidex_sim_unannounced 2
    elidex_sim_unannounced 4
    elidex_sim_unannounced 8
    elidex_sim_unannounced 16
    elidex_sim_unannounced 32
    elidex_sim_unannounced 64

    .type elidex_sim_unannounced_write, @function
elidex_sim_unannounced_write:
    pushfq
    pushq %rbp
    movq %rsp, %rbp
    pushq %rax
    pushq %rdx
    pushq %rcx
    pushq %rsi
    pushq %r8
    pushq %r9
    pushq %r10
    pushq %r11
    subq $2752, %rsp
    andq $-64, %rsp
    xorl %edx, %edx
    cmpb $0, elidex_sim_has_xsave(%rip)
    je 1f
    movq %rdx, 512(%rsp)
    movq %rdx, 520(%rsp)
    movq %rdx, 528(%rsp)
    movq %rdx, 536(%rsp)
    movq %rdx, 544(%rsp)
    movq %rdx, 552(%rsp)
    movq %rdx, 560(%rsp)
    movq %rdx, 568(%rsp)
    movl $0xe7, %eax
    xsave (%rsp)
    jmp 2f
1:  fxsave (%rsp)
2:  movq 16(%rbp), %rsi
    movq 24(%rbp), %rdx
    cld
    call elidex_sim_unannounced_write_here
    xorl %edx, %edx
    cmpb $0, elidex_sim_has_xsave(%rip)
    je 1f
    movl $0xe7, %eax
    xrstor (%rsp)
    jmp 2f
1:  fxrstor (%rsp)
2:  leaq -64(%rbp), %rsp
    popq %r11
    popq %r10
    popq %r9
    popq %r8
    popq %rsi
    popq %rcx
    popq %rdx
    popq %rax
    popq %rbp
    popfq
    leaq 8(%rsp), %rsp
    ret
    .size elidex_sim_unannounced_write, .-elidex_sim_unannounced_write
)");
