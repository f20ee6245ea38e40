// Fibers: the threads of the simulated program. All of them run on one thread of the system. Each
// has its own stack and thread-local variables.
//
//   fiber f(number, [] { ... });
//   set_thread_pointer(f.thread_pointer);
//   elidex_sim_switch(here, f.at);              // runs it until it switches back to `here`
//
// Thread-safety: all fibers belong to one thread of the system.
// Errors: the constructor of a fiber throws std::system_error.
//
// Implementation notes
// A fiber's stack lies in the arena, so its addresses are the same in every run. Its thread-local
// variables are those of a real thread, the "host", which sleeps until the fiber has ended. A
// switch changes the CPU's thread pointer. After the fiber, the host wakes up and ends. Its end
// destroys the thread-local variables.
#pragma once

#include <pthread.h>
#include <semaphore.h>

#include <cstdint>
#include <functional>

namespace elidex::sim {

// The registers that a function must preserve by the System V ABI, and the address to continue at.
// The assembly in fiber.cpp depends on the layout.
struct registers {
  std::uint64_t rbx = 0, rbp = 0, r12 = 0, r13 = 0, r14 = 0, r15 = 0, rsp = 0, rip = 0;
  std::uint64_t rax = 0;  // the result of a second return of begin()
};

// Saves the registers into `from` and continues at `to`.
extern "C" void elidex_sim_switch(registers& from, const registers& to) noexcept;

// Copies `bytes` bytes from `saved` to `stack` and continues at `to`. It uses its own stack,
// because the copy may overwrite the caller's stack.
[[noreturn]] void restore_stack_and_go_on(const registers& to, void* stack, const void* saved,
                                          std::uint64_t bytes) noexcept;

// Sets the CPU's thread pointer to the value of another fiber.
void set_thread_pointer(std::uint64_t value) noexcept;
std::uint64_t thread_pointer() noexcept;

// Whether a thread that touched the address has used up its stack.
bool is_in_a_stack_guard(std::uint64_t address) noexcept;

class fiber {
 public:
  // `body` must not return. It ends with a switch to another fiber that is never reversed. Throws
  // std::system_error if the system starts no host.
  fiber(unsigned number, std::function<void()> body);
  ~fiber();
  fiber(const fiber&) = delete;
  fiber& operator=(const fiber&) = delete;

  void run() noexcept { body_(); }

  // Lets the host end, which runs the destructors of the thread-local variables.
  void end_host();

  pthread_t host_handle() const noexcept { return host_; }

  registers at;
  std::uint64_t thread_pointer = 0;
  std::uint64_t stack_low = 0;
  std::uint64_t stack_high = 0;

 private:
  static void* host(void* self) noexcept;

  std::function<void()> body_;
  pthread_t host_{};
  sem_t ready_{};
  sem_t may_end_{};
  bool host_runs_ = false;
};

}  // namespace elidex::sim
