// The first call of a thread registers it, which may need memory: when there is none, the map stays
// as it was, and the same thread may try again.
#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/memory/lasting_memory.hpp"
#include "elidex/ordered_map.hpp"
#include "support/failing_allocations.hpp"
#include "support/model.hpp"
#include "support/policies_under_test.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

// Threads that live until the end: what one of them has registered is not there for the next one to
// take over.
class lasting_threads {
 public:
  lasting_threads() = default;
  lasting_threads(const lasting_threads&) = delete;
  lasting_threads& operator=(const lasting_threads&) = delete;
  ~lasting_threads() {
    {
      const std::lock_guard guard(mutex_);
      over_ = true;
    }
    changed_.notify_all();
  }

  // Runs `work` on a new thread and waits for it.
  void run(const std::function<void()>& work) {
    bool done = false;
    threads_.emplace_back([this, &work, &done] {
      work();
      std::unique_lock lock(mutex_);
      done = true;
      changed_.notify_all();
      changed_.wait(lock, [this] { return over_; });
    });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&done] { return done; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::vector<std::jthread> threads_;  // joined first
};

// Uses up the library's own memory for records: new ones then come from the heap, which can be used
// up.
void use_up_lasting_memory() {
  if (const std::size_t left = internal::lasting_bytes_left(); left != 0)
    static_cast<void>(internal::lasting_memory(left, 1));
}

// Takes the records that threads of earlier tests have given back: the next thread needs a new one.
void take_records_given_back(lasting_threads& threads) {
  std::size_t given_back = 0;
  for (const auto* record = internal::first_thread_record(); record != nullptr;
       record = record->next) {
    if (!record->in_use) ++given_back;
  }
  while (given_back-- > 0) threads.run([] { static_cast<void>(this_thread_slot()); });
}

struct operation {
  const char* name;
  std::function<void()> on_map;
  std::function<void()> on_model;
};

// Runs `op` as the first call of a new thread until it comes through, a later allocation failing
// each time. After a failure the map is as expected, to that thread too, which looks for `there`.
// Returns how many calls failed.
template <class Map, class Expected>
int failures_of(const operation& op, lasting_threads& threads, const Map& map,
                const Expected& expected, const typename Map::key_type& there) {
  int failures = 0;
  bool done = false;
  int nth = 0;
  while (!done) {
    ++nth;
    threads.run([&] {
      {
        const failing_allocation armed(nth);
        try {
          op.on_map();
          done = true;
        } catch (const std::bad_alloc&) {
          ++failures;
        }
      }
      if (done) return;
      EXPECT_EQ(content_difference(map, expected), "") << op.name << ", allocation " << nth;
      EXPECT_EQ(map.get(there),
                expected.contains(there) ? std::optional(expected.at(there)) : std::nullopt);
    });
  }
  return failures;
}

template <class Map>
class FirstCall : public ::testing::Test {};
using u64 = std::uint64_t;
using maps = ::testing::Types<
    btree<u64, u64, optimistic, fan_out<2, 3>>, btree<u64, u64, coarse_mutex, fan_out<4, 4>>,
    btree<u64, u64, coarse_hle, fan_out<4, 4>>, btree<u64, u64, coarse_elided, fan_out<4, 4>>,
    ordered_tree<u64, u64>, btree<std::string, std::string, coarse_elided, fan_out<4, 4>>,
    ordered_tree<std::string, std::string>>;
TYPED_TEST_SUITE(FirstCall, maps);

TYPED_TEST(FirstCall, MayFailAndBeTriedAgain) {
  using key_type = typename TypeParam::key_type;
  using mapped_type = typename TypeParam::mapped_type;
  const auto key = [](u64 n) { return sample<key_type>::of(n); };
  const auto value = [](u64 n) { return sample<mapped_type>::of(n); };
  TypeParam map;
  std::map<key_type, mapped_type> expected;
  for (u64 n = 1; n <= 20; ++n) {
    map.insert(key(n), value(n));
    expected.emplace(key(n), value(n));
  }
  const key_type there = key(5);
  const key_type absent = key(90);
  const mapped_type other = value(77);
  const std::vector<operation> operations{
      {"get", [&] { EXPECT_EQ(map.get(there), expected.at(there)); }, [] {}},
      {"contains", [&] { EXPECT_TRUE(map.contains(there)); }, [] {}},
      {"scan", [&] { EXPECT_GT(map.scan(there, 5, [](const auto&, const auto&) {}), 0u); }, [] {}},
      {"cursor",
       [&] {
         auto cursor = map.cursor();
         cursor.seek_last();
         EXPECT_TRUE(cursor.valid());
       },
       [] {}},
      {"insert", [&] { EXPECT_TRUE(map.insert(absent, other)); },
       [&] { expected.emplace(absent, other); }},
      {"upsert", [&] { EXPECT_FALSE(map.upsert(there, other)); }, [&] { expected[there] = other; }},
      {"update", [&] { EXPECT_TRUE(map.update(there, [&](mapped_type& v) { v = value(8); })); },
       [&] { expected[there] = value(8); }},
      {"erase", [&] { EXPECT_TRUE(map.erase(there)); }, [&] { expected.erase(there); }},
  };

  use_up_lasting_memory();
  lasting_threads threads;
  take_records_given_back(threads);

  int failures = 0;
  for (const operation& op : operations) {
    failures += failures_of(op, threads, map, expected, there);
    op.on_model();
    ASSERT_EQ(content_difference(map, expected), "") << op.name;
  }
  EXPECT_GE(failures, 4);  // whatever stores something needs the record
}

}  // namespace
}  // namespace elidex::testing
