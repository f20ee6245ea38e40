#include "machine/fiber.hpp"

#include <asm/prctl.h>
#include <dlfcn.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <system_error>

#include "machine/memory.hpp"

#if !defined(__x86_64__)
#  error "the simulated machine runs on x86-64 only"
#endif

// The offsets are those of `registers`.
asm(R"(
    .text
    .globl elidex_sim_switch
    .type elidex_sim_switch, @function
elidex_sim_switch:
    movq %rbx, 0(%rdi)
    movq %rbp, 8(%rdi)
    movq %r12, 16(%rdi)
    movq %r13, 24(%rdi)
    movq %r14, 32(%rdi)
    movq %r15, 40(%rdi)
    leaq 8(%rsp), %rax
    movq %rax, 48(%rdi)
    movq (%rsp), %rax
    movq %rax, 56(%rdi)
    movq %rsi, %rdi
    # goes on at the registers in rdi
elidex_sim_go_on:
    movq 0(%rdi), %rbx
    movq 8(%rdi), %rbp
    movq 16(%rdi), %r12
    movq 24(%rdi), %r13
    movq 32(%rdi), %r14
    movq 40(%rdi), %r15
    movq 48(%rdi), %rsp
    movq 64(%rdi), %rax
    jmpq *56(%rdi)
    .size elidex_sim_switch, .-elidex_sim_switch

    .globl elidex_sim_enter_fiber
    .hidden elidex_sim_enter_fiber
    .type elidex_sim_enter_fiber, @function
elidex_sim_enter_fiber:
    movq %rbx, %rdi
    call elidex_sim_run_fiber
    ud2
    .size elidex_sim_enter_fiber, .-elidex_sim_enter_fiber

    # (to, stack, saved, bytes, top of another stack)
    .globl elidex_sim_copy_and_go_on
    .hidden elidex_sim_copy_and_go_on
    .type elidex_sim_copy_and_go_on, @function
elidex_sim_copy_and_go_on:
    movq %r8, %rsp
    movq %rdi, %rbx
    movq %rsi, %rdi
    movq %rdx, %rsi
    rep movsb
    movq %rbx, %rdi
    jmp elidex_sim_go_on
    .size elidex_sim_copy_and_go_on, .-elidex_sim_copy_and_go_on
)");

extern "C" [[noreturn]] void elidex_sim_copy_and_go_on(const elidex::sim::registers& to,
                                                       void* stack, const void* saved,
                                                       std::uint64_t bytes,
                                                       void* other_stack) noexcept;

extern "C" void elidex_sim_enter_fiber() noexcept;
extern "C" __attribute__((visibility("hidden"), used)) void elidex_sim_run_fiber(
    elidex::sim::fiber& f) noexcept {
  f.run();
}

namespace elidex::sim {
namespace {

// of which glibc keeps some for thread-local variables
constexpr std::uint64_t host_stack_bytes = 128 * 1024;

bool may_set_thread_pointer_directly() noexcept {
  constexpr unsigned long hwcap2_fsgsbase = 2;
  return (::getauxval(AT_HWCAP2) & hwcap2_fsgsbase) != 0;
}
const bool sets_directly = may_set_thread_pointer_directly();

}  // namespace

bool is_in_a_stack_guard(std::uint64_t address) noexcept {
  return address - stacks_begin < stacks_bytes &&
         (address - stacks_begin) % stack_bytes < stack_guard_bytes;
}

void restore_stack_and_go_on(const registers& to, void* stack, const void* saved,
                             std::uint64_t bytes) noexcept {
  alignas(16) static std::array<std::byte, 4096> other_stack;
  elidex_sim_copy_and_go_on(to, stack, saved, bytes, other_stack.data() + other_stack.size() - 16);
}

__attribute__((optimize("no-stack-protector"))) void set_thread_pointer(
    std::uint64_t value) noexcept {
  if (sets_directly) {
    asm volatile("wrfsbase %0" : : "r"(value) : "memory");
  } else {
    asm volatile("syscall"
                 :
                 : "a"(SYS_arch_prctl), "D"(ARCH_SET_FS), "S"(value)
                 : "rcx", "r11", "memory");
  }
}

std::uint64_t thread_pointer() noexcept {
  std::uint64_t value = 0;
  asm volatile("movq %%fs:0, %0" : "=r"(value));  // the ABI keeps the thread pointer's value there
  return value;
}

fiber::fiber(unsigned number, std::function<void()> body) : body_(std::move(body)) {
  const std::uint64_t slot = stacks_begin + number * stack_bytes;
  stack_low = slot + stack_guard_bytes;
  stack_high = slot + stack_bytes - host_stack_bytes;
  ::mprotect(reinterpret_cast<void*>(slot), stack_guard_bytes, PROT_NONE);
  ::sem_init(&ready_, 0, 0);
  ::sem_init(&may_end_, 0, 0);

  // The program's pthread_create is the machine's; the host needs the system's.
  using create_type = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<create_type>(::dlsym(RTLD_NEXT, "pthread_create"));
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstack(&attributes, reinterpret_cast<void*>(stack_high), host_stack_bytes);
  const int error = create(&host_, &attributes, &fiber::host, this);
  ::pthread_attr_destroy(&attributes);
  if (error != 0)
    throw std::system_error(error, std::generic_category(), "no thread for a simulated core");
  host_runs_ = true;
  while (::sem_wait(&ready_) != 0) {
  }

  at.rbx = reinterpret_cast<std::uint64_t>(this);
  at.rsp = stack_high - 16;
  at.rip = reinterpret_cast<std::uint64_t>(&elidex_sim_enter_fiber);
}

fiber::~fiber() {
  end_host();
  ::sem_destroy(&ready_);
  ::sem_destroy(&may_end_);
}

void fiber::end_host() {
  if (!host_runs_) return;
  host_runs_ = false;
  ::sem_post(&may_end_);
  using join_type = int (*)(pthread_t, void**);
  static const auto join = reinterpret_cast<join_type>(::dlsym(RTLD_NEXT, "pthread_join"));
  join(host_, nullptr);
}

void* fiber::host(void* self) noexcept {
  fiber& f = *static_cast<fiber*>(self);
  f.thread_pointer = sim::thread_pointer();
  ::sem_post(&f.ready_);
  while (::sem_wait(&f.may_end_) != 0) {
  }
  return nullptr;
}

}  // namespace elidex::sim
