// Random transactions step by step: inside the first attempt of one, at random places, others run
// and commit, rows are collected, and snapshots look. If it commits at its first attempt, its
// results, theirs, and what is left must be those of a serial order in which the others keep
// theirs.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "elidex/database.hpp"
#include "support/databases.hpp"
#include "support/random_seed.hpp"

namespace {

using elidex::testing::random_numbers;

using elidex::testing::account;
using model = std::map<std::uint64_t, std::int64_t>;
using results = std::vector<std::int64_t>;

struct step {
  enum { get, put, insert, erase, update, scan, last } what;
  std::uint64_t key;
  std::uint64_t to;
  std::size_t limit;
  bool descends;
  bool with_end;

  // Of a scan.
  elidex::bounds<std::uint64_t> range() const {
    const elidex::bounds<std::uint64_t> ascending(key, false, to, with_end);
    return descends ? ascending.descending() : ascending;
  }
};
std::int64_t value_of(const results& seen) {
  std::uint64_t hash = 1;
  for (const auto one : seen) hash = (hash ^ std::uint64_t(one)) * 0x9E3779B97F4A7C15u;
  return std::int64_t(hash >> 40);
}

template <class T, class Table>
void run(T& t, Table& rows, const step& s, results& seen) {
  switch (s.what) {
    case step::get: {
      const auto row = t.get(rows, s.key);
      seen.push_back(row ? row->balance : -1);
      break;
    }
    case step::put:
      t.upsert(rows, s.key, {value_of(seen)});
      break;
    case step::insert:
      try {
        t.insert(rows, s.key, {value_of(seen)});
        seen.push_back(-3);
      } catch (const elidex::db::duplicate_key&) {
        seen.push_back(-2);
      }
      break;
    case step::erase:
      seen.push_back(t.erase(rows, s.key));
      break;
    case step::update: {
      const auto add = value_of(seen);
      seen.push_back(t.update(rows, s.key, [&](account& a) { a.balance += add; }));
      break;
    }
    default:
      std::size_t many = 0;
      t.scan(rows, s.range(), [&](auto key, const account& a) {
        seen.push_back(std::int64_t(key) << 32 | a.balance);
        return ++many < s.limit;
      });
      seen.push_back(-4);
  }
}
void run(model& m, const step& s, results& seen) {
  const auto at = m.find(s.key);
  switch (s.what) {
    case step::get:
      seen.push_back(at != m.end() ? at->second : -1);
      break;
    case step::put:
      m[s.key] = value_of(seen);
      break;
    case step::insert:
      if (at != m.end()) {
        seen.push_back(-2);
      } else {
        m[s.key] = value_of(seen);
        seen.push_back(-3);
      }
      break;
    case step::erase:
      seen.push_back(std::int64_t(m.erase(s.key)));
      break;
    case step::update: {
      const auto add = value_of(seen);
      seen.push_back(at != m.end());
      if (at != m.end()) at->second += add;
      break;
    }
    default:
      std::size_t many = 0;
      const auto end = s.with_end ? m.upper_bound(s.to) : m.lower_bound(s.to);
      std::vector<std::pair<std::uint64_t, std::int64_t>> in_range;
      if (s.key <= s.to) in_range.assign(m.lower_bound(s.key), end);
      if (s.descends) std::reverse(in_range.begin(), in_range.end());
      for (const auto& [key, balance] : in_range) {
        seen.push_back(std::int64_t(key) << 32 | balance);
        if (++many >= s.limit) break;
      }
      seen.push_back(-4);
  }
}

using script = std::vector<step>;
results replay(model& m, const script& of) {
  results seen;
  for (const auto& s : of) run(m, s, seen);
  return seen;
}
std::string text(const script& of) {
  static const char* const names[] = {"get", "put", "insert", "erase", "update", "scan"};
  std::string all;
  for (const auto& s : of) {
    all.append(names[s.what]).append(" ").append(std::to_string(s.key));
    if (s.what == step::scan)
      all.append(s.with_end ? "..=" : "..")
          .append(std::to_string(s.to))
          .append(s.descends ? " descending" : "")
          .append(" at most ")
          .append(std::to_string(s.limit));
    all += "; ";
  }
  return all;
}

script random_script(random_numbers& random, std::uint64_t keys, std::size_t steps_max) {
  script made(1 + random.below(steps_max));
  for (auto& s : made)
    s = {decltype(s.what)(random.below(step::last)), random.below(keys),   random.below(keys + 2),
         1 + random.below(random.below(2) ? 2 : 20), random.below(2) == 0, random.below(2) == 0};
  return made;
}

template <class Db, class Table>
model content_of(Db& db, Table& rows) {
  model found;
  db.read_only([&](auto& t) {
    t.scan(rows, 0, 1000, [&](auto key, const account& a) {
      found[key] = a.balance;
      return true;
    });
  });
  return found;
}
template <class Db, class Table>
void erase_all(Db& db, Table& rows) {
  db.transact([&](auto& t) {
    for (std::uint64_t k = 0; k < 25; ++k) t.erase(rows, k);
  });
}

// A script, and others that commit inside of its first attempt.
struct nested_scripts {
  script outer;
  std::vector<script> inner;
  std::vector<std::size_t> when;  // before which of the outer's steps each inner one runs
  bool collects = false;          // whether rows are collected behind each inner one
};
nested_scripts random_nested_scripts(random_numbers& random) {
  const std::uint64_t keys = 1 + random.below(20);
  nested_scripts made;
  made.outer = random_script(random, keys, 6);
  made.inner.resize(1 + random.below(2));
  for (auto& one : made.inner) {
    one = random_script(random, keys, 3);
    made.when.push_back(random.below(made.outer.size() + 1));
  }
  std::sort(made.when.begin(), made.when.end());
  made.collects = random.below(3) == 0;
  return made;
}
std::string text(const nested_scripts& of) {
  std::string all = "outer: " + text(of.outer);
  for (std::size_t i = 0; i < of.inner.size(); ++i)
    all.append(" | before its step ")
        .append(std::to_string(of.when[i]))
        .append(": ")
        .append(text(of.inner[i]));
  return all;
}

struct nested_outcome {
  int attempts = 0;  // of the outer script
  results outer;
  std::vector<results> inner;
};
template <class Db, class Table>
nested_outcome run_nested(Db& db, Table& rows, const nested_scripts& scripts) {
  nested_outcome found;
  found.inner.resize(scripts.inner.size());
  const auto commit_inner = [&](std::size_t number) {
    db.transact([&](auto& t) {
      found.inner[number].clear();
      for (const auto& s : scripts.inner[number]) run(t, rows, s, found.inner[number]);
    });
    if (scripts.collects) db.collect(), db.collect();
  };
  db.transact([&](auto& t) {
    found.outer.clear();
    const bool first = found.attempts++ == 0;
    std::size_t next = 0;
    for (std::size_t i = 0; i <= scripts.outer.size(); ++i) {
      while (first && next < scripts.inner.size() && scripts.when[next] == i) {
        // Transactions do not nest in one thread.
        std::thread(commit_inner, next).join();
        ++next;
      }
      if (i < scripts.outer.size()) run(t, rows, scripts.outer[i], found.outer);
    }
  });
  return found;
}

// Whether the outer script explains all results at some place between the inner ones. After more
// than one attempt its only place is the last.
bool is_serial(const nested_scripts& scripts, const nested_outcome& found, const model& before,
               const model& after) {
  const std::size_t inner = scripts.inner.size();
  for (std::size_t place = found.attempts == 1 ? 0 : inner; place <= inner; ++place) {
    model m = before;
    bool same = true;
    for (std::size_t i = 0; i <= inner; ++i) {
      if (i == place) same = same && replay(m, scripts.outer) == found.outer;
      if (i < inner) same = same && replay(m, scripts.inner[i]) == found.inner[i];
    }
    if (same && m == after) return true;
  }
  return false;
}

template <class Db>
class SerialOrders : public ::testing::Test {};
using databases = ::testing::Types<elidex::basic_database<elidex::db::silo_commit>,
                                   elidex::basic_database<elidex::db::dbx_commit<>>>;
TYPED_TEST_SUITE(SerialOrders, databases);

// What no serial order explains, up to three times.
template <class Db>
std::vector<std::string> wrong_nested_rounds(int rounds, std::uint64_t seed) {
  random_numbers random(seed);
  Db db;
  auto& rows = db.template create_table<std::uint64_t, account>("rows");
  model before;
  int first_attempts = 0;
  std::vector<std::string> wrong;
  for (int round = 0; round < rounds && wrong.size() < 3; ++round) {
    const nested_scripts scripts = random_nested_scripts(random);
    const nested_outcome found = run_nested(db, rows, scripts);
    if (found.attempts == 1) ++first_attempts;
    const model after = content_of(db, rows);
    if (!is_serial(scripts, found, before, after)) {
      std::string what = std::to_string(round) + ". round, " + std::to_string(found.attempts) +
                         " attempts, keys before:";
      for (auto& [k, v] : before) what.append(" ").append(std::to_string(k));
      wrong.push_back(what + "; " + text(scripts));
    }
    before = after;
    if (random.below(4) == 0) {
      erase_all(db, rows);
      before.clear();
      for (int i = 0; i < 4; ++i) db.collect();
    }
  }
  EXPECT_TRUE(!wrong.empty() || first_attempts > rounds / 20) << first_attempts;
  return wrong;
}

TYPED_TEST(SerialOrders, OneInsideOfWhichOthersCommit) {
  const int rounds = elidex::testing::repetitions(3000);
  for (const std::string& wrong :
       wrong_nested_rounds<TypeParam>(rounds, elidex::testing::seed_or(1)))
    ADD_FAILURE() << wrong;
}

TEST(SerialOrdersCanary, WithoutValidationThereIsNone) {
  using database = elidex::basic_database<elidex::testing::blind_commit>;
  EXPECT_FALSE(wrong_nested_rounds<database>(3000, 1).empty());
}

constexpr int threads = 3;

// Whether the scripts explain all results in some order, one behind the other.
bool some_order_explains(const std::array<script, threads>& scripts,
                         const std::array<results, threads>& seen, const model& before,
                         const model& after) {
  std::array<std::size_t, threads> order{0, 1, 2};
  do {
    model m = before;
    bool same = true;
    for (const auto i : order) same = same && replay(m, scripts[i]) == seen[i];
    if (same && m == after) return true;
  } while (std::next_permutation(order.begin(), order.end()));
  return false;
}

template <class Db>
class SerialOrdersAtOnce : public ::testing::Test {};
using databases_at_once =
    ::testing::Types<elidex::testing::silo_database, elidex::testing::dbx_database,
                     elidex::testing::two_phase_database>;
TYPED_TEST_SUITE(SerialOrdersAtOnce, databases_at_once);

// Three at the same time: some order of the three explains all.
TYPED_TEST(SerialOrdersAtOnce, Three) {
  random_numbers random(elidex::testing::seed_or(1));
  const int rounds = elidex::testing::repetitions(3000);
  TypeParam db;
  auto& rows = db.template create_table<std::uint64_t, account>("rows");
  std::array<script, threads> scripts;
  std::array<results, threads> seen;
  std::atomic<int> round_now{0};
  std::atomic<int> arrived{0};
  std::atomic<bool> over{false};
  std::vector<std::thread> all;
  for (int i = 0; i < threads; ++i) {
    all.emplace_back([&, i] {
      for (int mine = 1;; ++mine) {
        while (round_now.load() < mine) {
          if (over) return;
          std::this_thread::yield();
        }
        auto& found = seen[std::size_t(i)];
        db.transact([&](auto& t) {
          found.clear();
          for (const auto& s : scripts[std::size_t(i)]) run(t, rows, s, found);
          if (i == mine % 3) std::this_thread::yield();
        });
        if (i == 0 && mine % 3 == 0) db.collect();
        ++arrived;
      }
    });
  }
  model before;
  int wrong = 0;
  for (int round = 1; round <= rounds && wrong < 3; ++round) {
    const std::uint64_t keys = 1 + random.below(6);
    for (auto& one : scripts) one = random_script(random, keys, 5);
    arrived = 0;
    ++round_now;
    while (arrived < threads) std::this_thread::yield();
    const model after = content_of(db, rows);
    if (!some_order_explains(scripts, seen, before, after)) {
      ++wrong;
      std::string what = std::to_string(round) + ". round:";
      for (const auto& one : scripts) what.append(" | ").append(text(one));
      ADD_FAILURE() << what;
    }
    before = after;
    if (random.below(6) == 0) {
      erase_all(db, rows);
      before.clear();
    }
  }
  over = true;
  for (auto& one : all) one.join();
  std::printf("%zu conflicts\n", db.stats().conflicts);
}

}  // namespace
