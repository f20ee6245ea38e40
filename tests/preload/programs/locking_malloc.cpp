// A program with a malloc of its own that takes a mutex, from the first allocation on: before any
// constructor, inside the loader and inside dlsym.
#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <thread>

namespace {
pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
alignas(16) std::byte arena[64 << 20];
std::size_t used = 0;
std::atomic<long> calls{0};
}  // namespace

extern "C" {
void* malloc(std::size_t bytes) {
  pthread_mutex_lock(&lock);
  void* const result = arena + used + 16;
  std::memcpy(arena + used, &bytes, sizeof bytes);
  used += (bytes + 31) / 16 * 16 + 16;
  ++calls;
  pthread_mutex_unlock(&lock);
  return result;
}
void free(void*) {}
void* calloc(std::size_t count, std::size_t bytes) {
  return malloc(count * bytes);  // the arena is zero
}
void* realloc(void* old, std::size_t bytes) {
  void* const fresh = malloc(bytes);
  std::size_t before = 0;
  if (old != nullptr) {
    std::memcpy(&before, static_cast<std::byte*>(old) - 16, sizeof before);
    std::memcpy(fresh, old, before < bytes ? before : bytes);
  }
  return fresh;
}
}

int main() {
  std::thread([] { delete new int; }).join();
  std::printf("%s\n",
              calls > 0 && dlsym(RTLD_DEFAULT, "no_such_symbol") == nullptr && dlerror() != nullptr
                  ? "survived"
                  : "failed");
  return 0;
}
