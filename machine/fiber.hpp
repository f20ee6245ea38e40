// Fibers: the threads of the simulated program, all on one thread of the system, each with a stack
// and thread-local variables of its own.
//
//   fiber f(number, [] { ... });
//   switch_fiber(scheduler.at, f.at);           // runs it until it switches back
//
// A fiber's stack lies in the arena, so its addresses are the same in every run. Its thread-local
// variables are those of a real thread that sleeps meanwhile (the "host"): switching changes the
// CPU's thread pointer. When the fiber has ended the host wakes up, and destroys the thread-local
// variables by ending itself.
//
// Thread-safety: all fibers belong to one thread of the system.
#pragma once

#include <pthread.h>
#include <semaphore.h>

#include <cstdint>
#include <functional>

namespace elidex::sim {

// What the System V ABI says a function must leave as it was, and where to go on. fiber.cpp's
// assembly knows the layout.
struct registers {
  std::uint64_t rbx = 0, rbp = 0, r12 = 0, r13 = 0, r14 = 0, r15 = 0, rsp = 0, rip = 0;
  std::uint64_t rax = 0;  // what a second return of begin() answers
};

// Saves into `from` and goes on at `to`.
extern "C" void elidex_sim_switch(registers& from, const registers& to) noexcept;

// Copies `bytes` from `saved` to `stack` and goes on at `to`. Uses a stack of its own, because the
// caller's may be what is overwritten.
[[noreturn]] void restore_stack_and_go_on(const registers& to, void* stack, const void* saved,
                                          std::uint64_t bytes) noexcept;

// Makes the thread pointer of the CPU that of another fiber.
void set_thread_pointer(std::uint64_t value) noexcept;
std::uint64_t thread_pointer() noexcept;

class fiber {
 public:
  // body must not return: it ends by switching away for good. Throws std::system_error if there is
  // no host.
  fiber(unsigned number, std::function<void()> body);
  ~fiber();
  fiber(const fiber&) = delete;
  fiber& operator=(const fiber&) = delete;

  void run() noexcept { body_(); }

  // Lets the host end, with whatever the thread's thread-local destructors do.
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
