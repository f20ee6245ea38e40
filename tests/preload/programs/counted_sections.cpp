// Known numbers of sections at known places: what the statistics must say.
#include <pthread.h>
#include <unistd.h>

#include <thread>

namespace {
pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
}  // namespace

extern "C" {
[[gnu::noinline]] void thousand_sections() {
  for (int i = 0; i < 1000; ++i) {
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
  }
}
// volatile: Clang would unroll the loop, into seven places.
volatile int reads = 7;
[[gnu::noinline]] void seven_reads() {
  for (int i = 0; i < reads; ++i) {
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
  }
}
[[gnu::noinline]] void one_long_wait() {
  pthread_mutex_lock(&mutex);
  pthread_mutex_unlock(&mutex);
}
}

int main() {
  std::thread(thousand_sections).join();
  std::thread(thousand_sections).join();
  seven_reads();
  pthread_mutex_lock(&mutex);
  std::thread waiter(one_long_wait);
  usleep(50'000);
  pthread_mutex_unlock(&mutex);
  waiter.join();
  return 0;
}
