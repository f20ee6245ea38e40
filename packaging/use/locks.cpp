// A program that knows nothing of elidex: two threads increment a counter under a std::mutex.
#include <cstdio>
#include <mutex>
#include <thread>

namespace {

std::mutex mutex;
int count = 0;

void work() {
  for (int i = 0; i < 1000; ++i) {
    const std::lock_guard guard(mutex);
    ++count;
  }
}

}  // namespace

int main() {
  std::thread other(work);
  work();
  other.join();
  std::printf("%d\n", count);
  return count == 2000 ? 0 : 1;
}
