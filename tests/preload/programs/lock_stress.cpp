// lock_stress SECONDS: eight threads under mutexes, reader-writer locks and conditions, for so
// long. Exits with 0 if what the locks protect is as it must be and everything that was produced
// was consumed; hangs if a wake-up is lost.
#include <pthread.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <random>
#include <shared_mutex>
#include <thread>
#include <vector>

namespace {

constexpr unsigned threads = 8;
std::atomic<bool> over{false};
std::atomic<std::uint64_t> wrong{0};

struct two_cells {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  void change() {
    if (first != second) ++wrong;
    ++first;
    ++second;
  }
  void look() const {
    if (first != second) ++wrong;
  }
};

// Mutexes of three kinds, taken in order, tried, and waited for with a time.
struct mutexes {
  static constexpr std::size_t count = 3;
  pthread_mutex_t all[count] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP,
                                PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP};
  std::array<two_cells, 3> cells;
  std::atomic<std::uint64_t> changes{0};

  void turn(std::mt19937& random) {
    const std::size_t at = random() % count;
    pthread_mutex_t* const m = &all[at];
    switch (random() % 4) {
      case 0:
        if (pthread_mutex_trylock(m) != 0) return;
        break;
      case 1: {
        timespec until{};
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec = (until.tv_nsec + 200'000) % 1'000'000'000;
        if (pthread_mutex_timedlock(m, &until) != 0) return;
        break;
      }
      default:
        pthread_mutex_lock(m);
    }
    cells[at].change();
    ++changes;
    if (at + 1 < count && random() % 2 == 0) {
      pthread_mutex_lock(&all[at + 1]);
      cells[at + 1].change();
      ++changes;
      pthread_mutex_unlock(&all[at + 1]);
    }
    pthread_mutex_unlock(m);
  }
  bool right() const { return cells[0].first + cells[1].first + cells[2].first == changes; }
};

struct readers_and_writers {
  std::shared_mutex lock;
  two_cells cells;
  std::atomic<std::uint64_t> changes{0};

  void turn(std::mt19937& random) {
    if (random() % 8 != 0) {
      const std::shared_lock guard(lock);
      cells.look();
      return;
    }
    const bool tried = random() % 2 == 0;
    if (tried && !lock.try_lock()) return;
    if (!tried) lock.lock();
    cells.change();
    ++changes;
    lock.unlock();
  }
  bool right() const { return cells.first == changes; }
};

// A queue with room for few, so that both sides wait.
struct queue {
  static constexpr std::size_t room = 4;
  std::mutex lock;
  std::condition_variable not_full, not_empty;
  std::deque<std::uint64_t> items;
  std::uint64_t put_sum = 0, taken_sum = 0;

  void put(std::uint64_t item) {
    std::unique_lock guard(lock);
    not_full.wait(guard, [this] { return items.size() < room; });
    items.push_back(item);
    put_sum += item;
    guard.unlock();
    not_empty.notify_one();
  }
  std::uint64_t take() {
    std::unique_lock guard(lock);
    while (items.empty()) {
      not_empty.wait_for(guard, std::chrono::milliseconds(50), [this] { return !items.empty(); });
    }
    const std::uint64_t item = items.front();
    items.pop_front();
    taken_sum += item;
    guard.unlock();
    not_full.notify_one();
    return item;
  }
};

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 1;
  mutexes some_mutexes;
  readers_and_writers some_readers;
  queue some_queue;
  std::atomic<unsigned> producing{threads / 2};
  std::vector<std::thread> all;
  for (unsigned i = 0; i < threads; ++i) {
    all.emplace_back([&, i] {
      std::mt19937 random(i + 1);
      const bool produces = i < threads / 2;
      std::uint64_t next = 0;
      for (;;) {
        for (int turn = 0; turn < 20; ++turn) {
          some_mutexes.turn(random);
          some_readers.turn(random);
        }
        if (produces) {
          if (over.load()) break;
          some_queue.put(++next);
        } else if (some_queue.take() == 0) {
          break;
        }
      }
      // The last producer says so to each consumer.
      if (produces && --producing == 0) {
        for (unsigned n = 0; n < threads - threads / 2; ++n) some_queue.put(0);
      }
    });
  }
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  over = true;
  for (std::thread& one : all) one.join();
  const bool right = wrong == 0 && some_mutexes.right() && some_readers.right() &&
                     some_queue.put_sum == some_queue.taken_sum && some_queue.items.empty();
  std::printf("%s\n", right ? "right" : "WRONG");
  return right ? 0 : 1;
}
