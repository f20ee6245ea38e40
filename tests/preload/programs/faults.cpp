// faults CASE: things that happen to programs while they hold locks. Prints "survived" at the end.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
std::atomic<bool> ready{false};

[[noreturn]] void failed(const char* why) {
  std::printf("failed: %s\n", why);
  std::_Exit(1);
}

// Signals that lock and unlock a mutex of their own in the middle of sections.
void signals() {
  static pthread_mutex_t of_handler = PTHREAD_MUTEX_INITIALIZER;
  static std::atomic<long> handled{0};
  struct sigaction action{};
  action.sa_handler = [](int) {
    if (pthread_mutex_trylock(&of_handler) == 0) pthread_mutex_unlock(&of_handler);
    ++handled;
  };
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  const itimerval often{{0, 200}, {0, 200}};
  setitimer(ITIMER_REAL, &often, nullptr);
  long count = 0;
  while (handled < 300) {
    pthread_mutex_lock(&mutex);
    ++count;
    pthread_mutex_unlock(&mutex);
  }
  const itimerval never{};
  setitimer(ITIMER_REAL, &never, nullptr);
}

// The statistics' signal, again and again, while eight threads lock.
void statistics_signal() {
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      while (!done) {
        pthread_mutex_lock(&mutex);
        pthread_mutex_unlock(&mutex);
        std::free(std::malloc(100));
      }
    });
  }
  for (int i = 0; i < 100; ++i) {
    kill(getpid(), SIGUSR2);
    usleep(1000);
  }
  done = true;
  for (auto& one : threads) one.join();
}

// fork() while other threads hold locks and while the caller does; the child locks, waits for
// threads, and exits.
void forks() {
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
      while (!done) {
        pthread_mutex_lock(&own);
        pthread_mutex_unlock(&own);
      }
    });
  }
  for (int i = 0; i < 20; ++i) {
    pthread_mutex_lock(&mutex);
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);
      pthread_mutex_unlock(&mutex);
      std::thread([] {
        for (int n = 0; n < 100; ++n) {
          pthread_mutex_lock(&mutex);
          pthread_mutex_unlock(&mutex);
        }
      }).join();
      std::exit(0);
    }
    pthread_mutex_unlock(&mutex);
    int status = 1;
    waitpid(child, &status, 0);
    if (status != 0) failed("the child of a fork");
  }
  done = true;
  for (auto& one : threads) one.join();
}

// A thread is cancelled while it waits on a condition: it holds the mutex in its clean-up.
void cancellation() {
  for (int i = 0; i < 50; ++i) {
    ready = false;
    pthread_t thread;
    pthread_create(
        &thread, nullptr,
        [](void*) -> void* {
          pthread_mutex_lock(&mutex);
          pthread_cleanup_push(
              [](void*) {
                if (pthread_mutex_trylock(&mutex) != EBUSY)
                  failed("the mutex is not held in the clean-up");
                pthread_mutex_unlock(&mutex);
              },
              nullptr);
          ready = true;
          for (;;) pthread_cond_wait(&condition, &mutex);
          pthread_cleanup_pop(0);
          return nullptr;
        },
        nullptr);
    while (!ready) usleep(100);
    pthread_cancel(thread);
    void* result = nullptr;
    pthread_join(thread, &result);
    if (result != PTHREAD_CANCELED) failed("not cancelled");
    if (pthread_mutex_trylock(&mutex) != 0) failed("held after the cancellation");
    pthread_mutex_unlock(&mutex);
  }
}

// Threads that end, many after another, and one that ends with a lock held.
void thread_ends() {
  for (int i = 0; i < 500; ++i) {
    std::thread([] {
      pthread_mutex_lock(&mutex);
      pthread_mutex_unlock(&mutex);
    }).join();
  }
  pthread_t holder;
  static pthread_mutex_t left = PTHREAD_MUTEX_INITIALIZER;
  pthread_create(
      &holder, nullptr,
      [](void*) -> void* {
        pthread_mutex_lock(&left);
        pthread_exit(nullptr);
      },
      nullptr);
  pthread_join(holder, nullptr);
  if (pthread_mutex_trylock(&left) != EBUSY) failed("a lock that its thread has left is free");
}

// Locks that are destroyed and whose memory goes away right after the last use.
void destruction() {
  for (int i = 0; i < 2000; ++i) {
    auto* const one = new pthread_mutex_t;
    pthread_mutex_init(one, nullptr);
    std::thread other([&] {
      pthread_mutex_lock(one);
      pthread_mutex_unlock(one);
    });
    pthread_mutex_lock(one);
    pthread_mutex_unlock(one);
    other.join();
    const int result = pthread_mutex_destroy(one);
    if (result != 0) failed(std::strerror(result));
    std::memset(static_cast<void*>(one), 0xff, sizeof *one);
    delete one;
  }
}

void executes(char** argv) {
  pthread_mutex_lock(&mutex);
  execl("/proc/self/exe", argv[0], "thread_ends", nullptr);
}

// The library as a guest that comes and goes.
void loads(const char* library) {
  for (int i = 0; i < 20; ++i) {
    void* const handle = dlopen(library, RTLD_NOW);
    if (handle == nullptr) failed(dlerror());
    std::thread([] {
      pthread_mutex_lock(&mutex);
      pthread_mutex_unlock(&mutex);
    }).join();
    dlclose(handle);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string which = argc > 1 ? argv[1] : "";
  if (which == "signals") signals();
  if (which == "statistics_signal") statistics_signal();
  if (which == "forks") forks();
  if (which == "cancellation") cancellation();
  if (which == "thread_ends") thread_ends();
  if (which == "destruction") destruction();
  if (which == "executes") executes(argv);
  if (which == "loads" && argc > 2) loads(argv[2]);
  std::printf("survived\n");
  return 0;
}
