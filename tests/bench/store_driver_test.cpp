// The driver of `elidex db bench` over stores in a std::map: what it measures, and that it notices
// each kind of store that is wrong.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <system_error>

#include "bench/stores/client.hpp"
#include "bench/stores/consistency.hpp"
#include "bench/stores/driver.hpp"
#include "bench/stores/group_commit.hpp"
#include "bench/stores/killed_writer.hpp"
#include "bench/stores/rows.hpp"

namespace {

using namespace elidex::bench::stores;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// What a wrong store does with one transaction in `fault_one_in`.
enum class fault {
  none,
  loses_increment,
  loses_put,
  loses_insert,
  tears_row,
  misses_scanned_row,
  finds_no_row,
  loses_loaded_row
};
constexpr std::uint64_t fault_one_in = 10;

using row_text = std::vector<std::byte>;

struct rows_in_memory {
  std::mutex mutex;
  std::map<std::uint64_t, row_text> rows;
  std::uint64_t calls = 0;
};

class map_store final : public store {
 public:
  map_store(std::shared_ptr<rows_in_memory> rows, const store_setup& setup, fault wrong)
      : all_(std::move(rows)), value_bytes_(setup.value_bytes), wrong_(wrong) {}

  std::unique_ptr<session> connect() override { return std::make_unique<client>(*this); }
  void settle() override {}

 private:
  class client final : public session {
   public:
    explicit client(map_store& of) : of_(of), all_(*of.all_), writer_(of.value_bytes_) {}

    bool get(std::uint64_t key, const row_visitor& visit) override {
      const std::lock_guard guard(all_.mutex);
      const auto found = all_.rows.find(key);
      if (found == all_.rows.end() || fails(fault::finds_no_row)) return false;
      visit(key, found->second);
      return true;
    }
    std::size_t scan(std::uint64_t from, std::size_t limit, const row_visitor& visit) override {
      const std::lock_guard guard(all_.mutex);
      std::size_t seen = 0;
      for (auto at = all_.rows.lower_bound(from); seen < limit && at != all_.rows.end(); ++at) {
        // Not in the check behind a run, which scans all rows.
        if (limit <= scan_rows && seen == 1 && fails(fault::misses_scanned_row)) continue;
        visit(at->first, at->second);
        ++seen;
      }
      return seen;
    }
    void append(std::uint64_t first, std::uint64_t count) override {
      const std::lock_guard guard(all_.mutex);
      for (std::uint64_t key = first; key < first + count; ++key) {
        if (!fails(fault::loses_loaded_row)) write(key, 0);
      }
    }
    void put(key_list keys, std::uint64_t version) override {
      const std::lock_guard guard(all_.mutex);
      for (const std::uint64_t key : keys) {
        const bool is_new = !all_.rows.contains(key);
        if (!fails(is_new ? fault::loses_insert : fault::loses_put)) write(key, version);
        if (fails(fault::tears_row)) all_.rows[key].back() ^= std::byte{1};
      }
    }
    void increment(key_list keys) override {
      const std::lock_guard guard(all_.mutex);
      for (const std::uint64_t key : keys) {
        const std::uint64_t version = row_version(all_.rows.at(key), key).value();
        if (!fails(fault::loses_increment)) write(key, version + 1);
      }
    }

   private:
    bool fails(fault how) { return of_.wrong_ == how && ++all_.calls % fault_one_in == 0; }
    void write(std::uint64_t key, std::uint64_t version) {
      const row_view row = writer_.make(key, version);
      all_.rows[key].assign(row.begin(), row.end());
    }

    map_store& of_;
    rows_in_memory& all_;
    row_writer writer_;
  };

  std::shared_ptr<rows_in_memory> all_;
  const std::size_t value_bytes_;
  const fault wrong_;
};

constexpr level_info map_levels[] = {{durability::none, "in memory", "nothing"},
                                     {durability::sync, "in memory", "closing it"}};

// Its rows live as long as the store_info, so that the store can be opened again.
store_info map_store_info(std::string_view name, fault wrong = fault::none) {
  const auto all = std::make_shared<std::map<std::string, std::shared_ptr<rows_in_memory>>>();
  return {.name = name,
          .description = "a std::map behind a mutex",
          .levels = map_levels,
          .open =
              [all, wrong](const store_setup& setup) {
                auto& rows = (*all)[setup.directory];
                if (!rows || setup.directory.empty()) rows = std::make_shared<rows_in_memory>();
                return std::make_unique<map_store>(rows, setup, wrong);
              },
          .version = "1"};
}

std::vector<const work_info*> works_of(const std::vector<std::string_view>& names) {
  std::vector<const work_info*> all;
  for (const std::string_view name : names) all.push_back(find_work(name));
  return all;
}

bench_options small_options(std::vector<const store_info*> of,
                            const std::vector<std::string_view>& works) {
  return {.stores = std::move(of),
          .levels = {durability::none},
          .works = works_of(works),
          .threads = {2},
          .commit_threads = {3},
          .rows = 500,
          .rows_per_commit = 3,
          .seconds = 0.02,
          .rounds = 2,
          .directory = testing::TempDir()};
}

const std::vector<std::string_view> all_requests{"load",    "reads",  "updates", "scans",
                                                 "commits", "ycsb-a", "ycsb-b",  "ycsb-c",
                                                 "ycsb-f",  "ycsb-d", "ycsb-e"};

TEST(StoreDriver, ARightStoreHasNoViolations) {
  const store_info one = map_store_info("one");
  const bench_result result = run_bench(small_options({&one}, all_requests), {});
  ASSERT_EQ(result.runs.size(), all_requests.size());
  for (const bench_run& run : result.runs) {
    SCOPED_TRACE(run.work->name);
    EXPECT_THAT(run.violations, IsEmpty());
    EXPECT_EQ(run.rate.rounds.size(), 2u);
    EXPECT_GT(run.rate.median, 0);
    EXPECT_LE(run.rate.low, run.rate.median);
    EXPECT_LE(run.rate.median, run.rate.high);
    EXPECT_GT(run.transactions, 0u);
    EXPECT_GT(run.latency.samples(), 0u);
  }
  EXPECT_EQ(result.runs[4].threads, 3u);  // commits
  EXPECT_THAT(result.sizes, IsEmpty());
  EXPECT_GT(result.disk.fsync_ns, 0);
}

TEST(StoreDriver, StoresTakeTurnsInEachRound) {
  std::vector<std::string> order;
  const auto told = [&](std::string_view name) {
    store_info one = map_store_info(name);
    one.open = [&order, name, open = one.open](const store_setup& setup) {
      order.emplace_back(name);
      return open(setup);
    };
    return one;
  };
  const store_info one = told("one");
  const store_info two = told("two");
  const bench_result result = run_bench(small_options({&one, &two}, {"load"}), {});
  EXPECT_THAT(order, ElementsAre("one", "two", "one", "two"));
  EXPECT_EQ(result.runs.size(), 2u);
}

TEST(StoreDriver, RatiosAreToTheBestPeer) {
  const store_info own = map_store_info(own_store);
  const store_info peer = map_store_info("peer");
  const store_info other = map_store_info("other");
  for (const bench_run& run : run_bench(small_options({&own}, {"load", "reads"}), {}).runs)
    EXPECT_FALSE(run.ratio_to_best_peer.has_value());
  const bench_result result = run_bench(small_options({&own, &peer, &other}, {"reads"}), {});
  ASSERT_EQ(result.runs.size(), 3u);
  const double best = std::max(result.runs[1].rate.median, result.runs[2].rate.median);
  for (const bench_run& run : result.runs)
    EXPECT_DOUBLE_EQ(run.ratio_to_best_peer.value(), run.rate.median / best);
}

TEST(StoreDriver, OnlyStoresOfALevelRunThere) {
  const store_info own = map_store_info(own_store);
  store_info peer = map_store_info("peer");
  peer.levels = std::span(map_levels).last(1);
  bench_options options = small_options({&own, &peer}, {"reads"});
  options.levels = {durability::none, durability::sync};
  const bench_result result = run_bench(options, {});
  ASSERT_EQ(result.runs.size(), 3u);
  EXPECT_FALSE(result.runs[0].ratio_to_best_peer.has_value());
  EXPECT_EQ(result.runs[1].what, &own);
  EXPECT_TRUE(result.runs[1].ratio_to_best_peer.has_value());
}

TEST(StoreDriver, AStoreIsOpenedAgain) {
  const store_info one = map_store_info("one");
  bench_options options = small_options({&one}, {"reopen"});
  options.levels = {durability::sync};
  const bench_result result = run_bench(options, {});
  ASSERT_EQ(result.openings.size(), 1u);
  EXPECT_EQ(result.openings[0].rows, 500u);
  EXPECT_GT(result.openings[0].ns.median, 0);
  EXPECT_THAT(result.openings[0].violations, IsEmpty());
  ASSERT_EQ(result.sizes.size(), 1u);
}

// --- canaries ---

struct canary {
  fault wrong;
  std::string_view work;
  const char* said;
};

class StoreCanary : public testing::TestWithParam<canary> {};

TEST_P(StoreCanary, IsFound) {
  const store_info one = map_store_info("wrong", GetParam().wrong);
  const bench_result result = run_bench(small_options({&one}, {GetParam().work}), {});
  std::string all;
  for (const bench_run& run : result.runs)
    all = std::accumulate(run.violations.begin(), run.violations.end(), all,
                          [](auto a, const auto& b) { return a + "; " + b; });
  EXPECT_THAT(all, HasSubstr(GetParam().said));
}

INSTANTIATE_TEST_SUITE_P(
    Faults, StoreCanary,
    testing::Values(canary{fault::loses_increment, "updates", "updates were committed"},
                    canary{fault::loses_increment, "ycsb-f", "updates were committed"},
                    canary{fault::loses_put, "commits", "no thread's last write has"},
                    canary{fault::loses_put, "ycsb-a", "no thread's last write has"},
                    canary{fault::loses_insert, "ycsb-d", "rows are missing"},
                    canary{fault::loses_insert, "ycsb-e", "rows are missing"},
                    canary{fault::tears_row, "commits", "rows are not whole"},
                    canary{fault::tears_row, "ycsb-a", "a wrong row for key"},
                    canary{fault::misses_scanned_row, "scans", "a wrong row for key"},
                    canary{fault::finds_no_row, "reads", "no row for key"},
                    // Not asked for, and found all the same.
                    canary{fault::loses_loaded_row, "reads", "rows are missing"}));

// --- what the driver is made of ---

TEST(GroupCommit, OneSyncServesAllThatWait) {
  const std::filesystem::path directory = testing::TempDir();
  const group_commit got = group_commit_of(directory, {.threads = 8, .bytes = 100, .seconds = 0.1});
  EXPECT_GT(got.syncs, 0u);
  // A sync serves one thread at least, and each thread once. The groups at the begin and at the end
  // lie in the time in part.
  EXPECT_LE(got.commits, 8 * (got.syncs + 2));
  EXPECT_GE(got.commits + 16, got.syncs);
  EXPECT_GT(got.rate(), 0);
  EXPECT_FALSE(std::filesystem::exists(directory / "group-commit"));
  EXPECT_THROW(static_cast<void>(group_commit_of(directory / "missing", {})), std::system_error);
}

TEST(StoreDriver, TheDiskHasATurnInCommitsAtLevelSync) {
  const store_info one = map_store_info("one");
  bench_options options = small_options({&one}, {"commits", "updates"});
  EXPECT_THAT(run_bench(options, {}).bounds, IsEmpty());  // it has no level sync
  const store_info* const own = find_store("elidex");
  options.stores = {own};
  options.levels = {durability::async, durability::sync};
  const bench_result result = run_bench(options, {});
  ASSERT_EQ(result.bounds.size(), 1u);
  EXPECT_EQ(result.bounds[0].threads, 3u);
  EXPECT_EQ(result.bounds[0].rate.rounds.size(), 2u);
  EXPECT_GT(result.bounds[0].rate.low, 0);
}

TEST(StoreRows, AChangedByteIsFound) {
  for (const std::size_t bytes : {16u, 17u, 100u}) {
    row_writer writer(bytes);
    const row_view made = writer.make(7, 3);
    ASSERT_EQ(made.size(), bytes);
    EXPECT_EQ(row_version(made, 7), 3u);
    EXPECT_EQ(row_version(made, 8), std::nullopt);
    row_text row(made.begin(), made.end());
    row.back() ^= std::byte{0x80};
    // The last byte of the shortest row is the version's.
    EXPECT_NE(row_version(row, 7), 3u);
    EXPECT_EQ(row_version(made.first(15), 7), std::nullopt);
  }
}

TEST(StoreConsistency, TheLastPutOfAnyClientIsRight) {
  write_log first(1);
  write_log second(2);
  const std::uint64_t old = first.next_version();
  const std::uint64_t last = first.next_version();
  const std::uint64_t other = second.next_version();
  first.puts = {{5, old}, {5, last}};
  second.puts = {{5, other}};
  const std::vector<write_log> logs{first, second};
  const contents before{.rows = {{5, 0}, {6, 0}}};
  const auto found = [&](std::vector<key_version> rows) {
    return find_violations(before, {.rows = std::move(rows)}, logs);
  };
  EXPECT_THAT(found({{5, last}, {6, 0}}), IsEmpty());
  EXPECT_THAT(found({{5, other}, {6, 0}}), IsEmpty());
  EXPECT_THAT(found({{5, old}, {6, 0}}), ElementsAre(HasSubstr("1 rows have a version")));
  EXPECT_THAT(found({{5, 0}, {6, 0}}), ElementsAre(HasSubstr("1 rows have a version")));
  EXPECT_THAT(found({{5, last}, {6, 1}}), ElementsAre(HasSubstr("1 rows changed")));
  EXPECT_THAT(found({{5, last}}), ElementsAre("1 rows are missing"));
  EXPECT_THAT(found({{6, 0}}), ElementsAre("1 rows are missing"));
  EXPECT_THAT(found({{4, 0}, {5, last}, {6, 0}}), ElementsAre("1 rows were never written"));
}

TEST(StoreConsistency, ALongLogKeepsTheLastPutOfEachKey) {
  write_log log(1);
  std::vector<key_version> last(10);
  for (std::uint64_t i = 0; i < 3'000'000; ++i) {
    last[i % 10] = {i % 10, log.next_version()};
    log.add_put(i % 10, last[i % 10].version);
  }
  EXPECT_LT(log.puts.size(), 1'100'000u);
  const std::vector<write_log> logs{log};
  EXPECT_THAT(find_violations({}, {.rows = last}, logs), IsEmpty());
  last[3].version -= 10;
  EXPECT_THAT(find_violations({}, {.rows = last}, logs),
              ElementsAre(HasSubstr("1 rows have a version")));
}

TEST(StoreConsistency, IncrementsAreCounted) {
  write_log log(1);
  log.increments = 3;
  const std::vector<write_log> logs{log};
  const contents before{.rows = {{1, 5}, {2, 5}}};
  EXPECT_THAT(find_violations(before, {.rows = {{1, 7}, {2, 6}}}, logs), IsEmpty());
  EXPECT_THAT(find_violations(before, {.rows = {{1, 6}, {2, 6}}}, logs),
              ElementsAre("the versions have grown by 2 where 3 updates were committed"));
  EXPECT_THAT(find_violations(before, {.rows = {{1, 9}, {2, 4}}}, logs),
              ElementsAre(HasSubstr("smaller version")));
}

class KilledWriter : public testing::Test {
 protected:
  // Counts of acknowledged commits, a number for each of the four threads.
  recovered compare(std::array<std::uint64_t, killed_threads> acknowledged, contents found,
                    durability level = durability::sync) const {
    const std::string file = testing::TempDir() + "elidex_acknowledged";
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(acknowledged.data()), sizeof acknowledged);
    return compare_recovered(
        found, {.setup = {.directory = {}, .level = level, .rows = 2}, .acknowledged = file});
  }
};

TEST_F(KilledWriter, AcknowledgedCommitsMustBeThere) {
  // Rows 0 and 1 were loaded. Thread t has the keys 2 + t, 6 + t and so on.
  const contents all{.rows = {{0, 0}, {1, 0}, {2, 1}, {3, 1}, {6, 2}}};
  EXPECT_THAT(compare({2, 1, 0, 0}, all).violations, IsEmpty());
  EXPECT_EQ(compare({2, 1, 0, 0}, all).acknowledged, 3u);
  // The last commit of a thread may be there without an answer.
  EXPECT_THAT(compare({1, 0, 0, 0}, all).violations, IsEmpty());
  EXPECT_THAT(compare({2, 2, 0, 0}, all).violations,
              ElementsAre("1 acknowledged commits are lost"));
  EXPECT_THAT(compare({0, 1, 0, 0}, all).violations,
              ElementsAre("1 threads have rows that they never wrote"));
  const recovered lost = compare({2, 2, 1, 0}, all, durability::async);
  EXPECT_EQ(lost.lost, 2u);
  EXPECT_THAT(lost.violations, IsEmpty());
}

TEST_F(KilledWriter, WhatIsThereMustBeAPrefixOfEachThread) {
  EXPECT_THAT(compare({2, 0, 0, 0}, {.rows = {{0, 0}, {1, 0}, {6, 2}}}).violations,
              ElementsAre(HasSubstr("an earlier row of their thread is missing")));
  EXPECT_THAT(compare({1, 0, 0, 0}, {.rows = {{0, 0}, {1, 0}, {2, 9}}}).violations,
              ElementsAre(HasSubstr("another version")));
  EXPECT_THAT(compare({0, 0, 0, 0}, {.rows = {{1, 0}}}).violations,
              ElementsAre("1 loaded rows are missing"));
}

TEST(StoreRegistry, NamesAreThoseOfTheCommandLine) {
  ASSERT_EQ(stores().size(), 4u);
  EXPECT_EQ(stores().front().name, own_store);
  for (const store_info& one : stores()) {
    EXPECT_EQ(find_store(one.name), &one);
    EXPECT_EQ(one.not_built.empty(), static_cast<bool>(one.open)) << one.name;
    EXPECT_NE(one.find_level(durability::sync), nullptr) << one.name;
    EXPECT_NE(one.find_level(durability::async), nullptr) << one.name;
  }
  EXPECT_EQ(find_store("nothing"), nullptr);
  EXPECT_EQ(find_work("nothing"), nullptr);
}

// Each store by itself, with the operations that no work reaches.
class EachStore : public testing::TestWithParam<const char*> {};

TEST_P(EachStore, DoesWhatTheInterfaceSays) {
  const store_info& info = *find_store(GetParam());
  if (!info.not_built.empty()) GTEST_SKIP() << info.name << " is not built: " << info.not_built;
  const std::string directory = testing::TempDir() + "elidex_store_" + std::string(info.name);
  std::filesystem::remove_all(directory);
  std::filesystem::create_directory(directory);
  const store_setup setup{.directory = directory, .level = durability::async, .rows = 300};
  std::unique_ptr<store> one = info.open(setup);
  {
    const std::unique_ptr<session> mine = one->connect();
    EXPECT_FALSE(mine->get(7, [](auto, auto) { FAIL(); }));
    mine->append(0, 300);
    mine->put(std::vector<std::uint64_t>{7, 700}, 5);
    mine->increment(std::vector<std::uint64_t>{7, 8});
    EXPECT_THROW(mine->increment(std::vector<std::uint64_t>{7, 500}), std::logic_error);
    const contents all = read_all(*mine);
    EXPECT_EQ(all.torn, 0u);
    ASSERT_EQ(all.rows.size(), 301u);
    EXPECT_EQ(all.rows[7], (key_version{7, 6}));  // the transaction that threw changed nothing
    EXPECT_EQ(all.rows[8], (key_version{8, 1}));
    EXPECT_EQ(all.rows[300], (key_version{700, 5}));
    std::vector<std::uint64_t> keys;
    const auto note = [&](std::uint64_t key, row_view) { keys.push_back(key); };
    EXPECT_EQ(mine->scan(298, 3, note), 3u);
    EXPECT_EQ(mine->scan(301, 3, note), 1u);
    EXPECT_EQ(mine->scan(701, 3, note), 0u);
    EXPECT_EQ(mine->scan(0, 0, note), 0u);
    EXPECT_THAT(keys, ElementsAre(298, 299, 700, 700));
    // Keys are ordered as numbers.
    mine->put(std::vector<std::uint64_t>{1u << 20U}, 1);
    EXPECT_EQ(read_all(*mine).rows.back().key, 1u << 20U);
  }
  one->settle();
  one->quiesce();
  one.reset();
  EXPECT_GT(allocated_bytes_of(directory), 0u);
  one = info.open(setup);
  EXPECT_EQ(read_all(*one->connect()).rows.size(), 302u);
  one.reset();
  std::filesystem::remove_all(directory);
}

INSTANTIATE_TEST_SUITE_P(Stores, EachStore, testing::Values("elidex", "sqlite", "lmdb", "rocksdb"));

}  // namespace
