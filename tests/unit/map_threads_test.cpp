// Maps and many threads: threads that come and go, more threads than the library has room for in
// its first block of records, fork(), and maps that live until the program ends.
#include <gtest/gtest.h>

#if defined(__unix__)

#  include <unistd.h>

#  include <atomic>
#  include <barrier>
#  include <cstddef>
#  include <cstdint>
#  include <cstdlib>
#  include <memory>
#  include <optional>
#  include <string>
#  include <thread>
#  include <vector>

#  include "elidex/hash_map.hpp"
#  include "elidex/internal/memory/epoch.hpp"
#  include "elidex/ordered_map.hpp"
#  include "support/emulator.hpp"
#  include "support/forked_child.hpp"
#  include "support/thread_sanitizer.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

using u64 = std::uint64_t;

std::size_t thread_records() {
  std::size_t n = 0;
  for (const auto* r = first_thread_record(); r != nullptr; r = r->next) ++n;
  return n;
}

struct counting_maps {
  ordered_map<u64, u64> numbers;
  ordered_map<std::string, std::string> strings;
  hash_map<std::string, u64> words;

  // A few operations by one thread. Each map counts them.
  void use(u64 thread) {
    const std::string word = "word " + std::to_string(thread % 100);
    const auto increment = [](u64& n) { ++n; };
    numbers.upsert_with(thread % 50, u64{1}, increment);
    words.upsert_with(word, u64{1}, increment);
    strings.compute(word, [](std::optional<std::string>& s) { s = s.value_or("") + "."; });
    strings.upsert("own " + std::to_string(thread), "a value that lies outside of the node");
    strings.erase("own " + std::to_string(thread));
  }
  // What the maps have counted, if all agree.
  std::optional<u64> counted() const {
    u64 sum = 0;
    u64 of_words = 0;
    u64 of_strings = 0;
    numbers.scan(all, [&](u64, u64 n) { sum += n; });
    words.for_each([&](std::string_view, u64 n) { of_words += n; });
    strings.scan(all, [&](std::string_view, std::string_view s) { of_strings += s.size(); });
    return of_words == sum && of_strings == sum ? std::optional(sum) : std::nullopt;
  }
};

// Starts `total` threads, at most `alive` at a time.
template <class Work>
void run_many_threads(u64 total, u64 alive, const Work& work) {
  std::vector<std::jthread> running(alive);
  for (u64 n = 0; n < total; ++n) {
    std::jthread& place = running[n % alive];
    if (place.joinable()) place.join();
    place = std::jthread([&work, n] { work(n); });
  }
}

#  if defined(ELIDEX_THREAD_SANITIZER)
constexpr u64 many_threads = 1'000;
#  else
constexpr u64 many_threads = 10'000;
#  endif

TEST(MapThreads, ComeAndGoWithoutLeavingAnything) {
  counting_maps maps;
  run_many_threads(200, 64, [&](u64 n) { maps.use(n); });
  const std::size_t records = thread_records();
  const std::size_t bytes = maps.strings.memory_bytes() + maps.words.memory_bytes();
  run_many_threads(many_threads, 64, [&](u64 n) { maps.use(n); });
  EXPECT_EQ(maps.counted(), many_threads + 200);
  EXPECT_LE(thread_records(), records + 64);
  maps.strings.reclaim();
  EXPECT_LT(maps.strings.stats().retired_objects, 5'000U);
  // Each word has become longer. Nothing else stays.
  EXPECT_LT(maps.strings.memory_bytes() + maps.words.memory_bytes(), bytes + 2'000'000);
}

// If records of threads were not reused, the test above would see it.
TEST(MapThreadsCanary, ThreadsThatStayHaveRecordsOfTheirOwn) {
  const std::size_t before = thread_records();
  counting_maps maps;
  std::barrier all_registered(static_cast<std::ptrdiff_t>(before + 20));
  std::vector<std::jthread> running;
  for (std::size_t n = 0; n < before + 20; ++n) {
    running.emplace_back([&, n] {
      maps.use(n);
      all_registered.arrive_and_wait();
    });
  }
  running.clear();
  EXPECT_GT(thread_records(), before);
}

TEST(MapThreads, SixHundredAtOnce) {
#  if defined(ELIDEX_THREAD_SANITIZER)
  constexpr u64 threads = 150;
#  else
  constexpr u64 threads = 600;
#  endif
  counting_maps maps;
  std::barrier all_registered(threads);
  std::vector<std::jthread> running;
  for (u64 t = 0; t < threads; ++t) {
    running.emplace_back([&, t] {
      maps.use(t);
      all_registered.arrive_and_wait();
      for (u64 n = 0; n < 20; ++n) maps.use(t + n);
    });
  }
  running.clear();
  EXPECT_EQ(maps.counted(), threads * 21);
}

// --- fork() ---

TEST(MapFork, AChildUsesAndDestroysItsCopyBesideIdleWalks) {
  auto numbers = std::make_unique<ordered_map<u64, std::string>>();
  auto objects = std::make_unique<ordered_map<std::string, std::vector<int>>>();
  auto hashed = std::make_unique<hash_map<std::string, std::string>>();
  constexpr u64 keys = 2'000;
  for (u64 n = 0; n < keys; ++n) {
    numbers->insert(n, std::to_string(n));
    objects->insert(std::to_string(n), std::vector<int>{1, 2});
    hashed->insert(std::to_string(n), "a value that is not short at all");
  }
  const auto use_and_destroy = [&]() -> std::string {
    for (u64 n = 0; n < keys; n += 2) {
      numbers->compute(n, [](std::optional<std::string>& s) { s.reset(); });
      objects->extract(std::to_string(n));
      hashed->erase_if(std::to_string(n), [](const std::string&) { return true; });
    }
    const std::size_t left = numbers->scan(all.descending(), [](auto&&...) {});
    if (left != keys / 2 || objects->size() != left || hashed->size() != left) return "wrong sizes";
    objects->reclaim();
    if (objects->stats().retired_objects != 0) return "nothing is reclaimed";
    numbers.reset();
    objects.reset();
    hashed.reset();
    ordered_map<u64, u64> another{{1, 2}};
    return another.get(1) == 2 ? "" : "wrong";
  };
  std::barrier both(2);
  std::jthread idle([&] {
    auto cursor = numbers->cursor();
    cursor.seek(keys / 2);
    auto walk = objects->range(all);
    auto at = walk.begin();
    ++at;
    both.arrive_and_wait();
    both.arrive_and_wait();
    cursor.next();
    EXPECT_EQ(cursor.key(), keys / 2 + 1);
    u64 seen = 1;
    for (; at != walk.end(); ++at) ++seen;
    EXPECT_EQ(seen, keys);
  });
  both.arrive_and_wait();
  EXPECT_EQ(in_child(use_and_destroy), "");
  EXPECT_EQ(in_child([&] { return in_child(use_and_destroy); }), "");
  both.arrive_and_wait();
  idle.join();
  EXPECT_EQ(numbers->size(), keys);
}

// --- until the program ends ---

ordered_map<std::string, std::string> last_ordered;
hash_map<u64, u64> last_hashed;

// In a child of its own: ends with status 3 if the maps do not have what they should. Destroyed
// before the maps, because it is made after them.
struct checks_at_exit {
  u64 wanted = 0;
  ~checks_at_exit() {
    if (wanted == 0) return;
    const std::optional<u64> own = last_hashed.get(1);
    const std::size_t walked = last_ordered.scan(all, [](auto&&...) {});
    if (own != wanted || last_ordered.size() != wanted || walked != wanted) ::_exit(3);
    last_hashed.upsert(2, 2);
    last_ordered.clear();
  }
};
checks_at_exit last_check;

void add_to_last_maps() {
  const u64 nth = last_hashed.upsert_with(1, u64{1}, [](u64& n) { ++n; }) ? 1 : 0;
  static std::atomic<u64> number{0};
  last_ordered.insert("key " + std::to_string(number++), std::string(20 + nth, 'v'));
}
struct adds_at_thread_exit {
  bool armed = false;
  ~adds_at_thread_exit() {
    if (armed) add_to_last_maps();
  }
};
thread_local adds_at_thread_exit late_addition;

// Threads that a static object joins, after main() and after the main thread's thread_locals.
struct joined_at_exit {
  std::atomic<bool> over{false};
  std::vector<std::thread> threads;
  ~joined_at_exit() {
    over = true;
    for (std::thread& t : threads) t.join();
  }
};

[[noreturn]] void use_maps_until_the_end(u64 wanted) {
  static joined_at_exit pool;  // destroyed before last_check
  last_check.wanted = wanted;
  late_addition.armed = true;
  for (int t = 0; t < 4; ++t) {
    pool.threads.emplace_back([] {
      late_addition.armed = true;
      for (int n = 0; n < 100; ++n) add_to_last_maps();
      while (!pool.over) std::this_thread::yield();
      add_to_last_maps();
    });
  }
  std::exit(0);
}
// Each of four threads adds 102 keys, and the main thread adds one.
constexpr u64 added_at_exit = 4 * 102 + 1;

// A death test of this style executes the program again.
constexpr const char* no_exec = "QEMU cannot execute a program for another CPU";

TEST(MapsAtExit, AreUsedByThreadLocalsAndThreadsThatStaticsJoin) {
  if (runs_in_qemu()) GTEST_SKIP() << no_exec;
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(use_maps_until_the_end(added_at_exit), ::testing::ExitedWithCode(0), "");
}
TEST(MapsAtExitCanary, AKeyThatIsMissingIsFound) {
  if (runs_in_qemu()) GTEST_SKIP() << no_exec;
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(use_maps_until_the_end(added_at_exit + 1), ::testing::ExitedWithCode(3), "");
}

}  // namespace
}  // namespace elidex::testing

#endif
