// A program that brings locks of its own, as one with a threads library linked statically would.
#include <pthread.h>

#include <cstdio>

namespace {
int own_calls = 0;
}

extern "C" {
[[gnu::visibility("default")]] int pthread_mutex_lock(pthread_mutex_t*) noexcept {
  return ++own_calls, 0;
}
[[gnu::visibility("default")]] int pthread_mutex_unlock(pthread_mutex_t*) noexcept {
  return 0;
}
}

int main() {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
  std::printf("%d\n", own_calls);
  return 0;
}
