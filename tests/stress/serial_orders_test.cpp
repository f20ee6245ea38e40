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
#include <random>
#include <thread>
#include <vector>

#include "elidex/database.hpp"
#include "support/random_seed.hpp"

namespace {

struct account {
  std::int64_t balance;
};
using model = std::map<std::uint64_t, std::int64_t>;
using results = std::vector<std::int64_t>;

struct step {
  enum { get, put, insert, erase, update, scan, last } what;
  std::uint64_t key;
  std::uint64_t to;
  std::size_t limit;
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
      t.scan(rows, s.key, s.to, [&](auto key, const account& a) {
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
      for (auto one = m.lower_bound(s.key); one != m.end() && one->first < s.to; ++one) {
        seen.push_back(std::int64_t(one->first) << 32 | one->second);
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
      all.append("..")
          .append(std::to_string(s.to))
          .append(" at most ")
          .append(std::to_string(s.limit));
    all += "; ";
  }
  return all;
}

template <class Db>
class SerialOrders : public ::testing::Test {};
using databases = ::testing::Types<elidex::basic_database<elidex::db::silo_commit>,
                                   elidex::basic_database<elidex::db::dbx_commit<>>>;
TYPED_TEST_SUITE(SerialOrders, databases);

TYPED_TEST(SerialOrders, OneInsideOfWhichOthersCommit) {
  std::mt19937_64 random(elidex::testing::seed_or(1));
  const auto below = [&](std::uint64_t n) { return random() % n; };
  const int rounds = elidex::testing::repetitions(3000);
  TypeParam db;
  auto& rows = db.template create_table<std::uint64_t, account>("rows");
  model before;
  int first_attempts = 0;
  int wrong = 0;
  for (int round = 0; round < rounds && wrong < 3; ++round) {
    const std::uint64_t keys = 1 + below(20);
    const auto make = [&](std::size_t most) {
      script made(1 + below(most));
      for (auto& s : made)
        s = {decltype(s.what)(below(step::last)), below(keys), below(keys + 2),
             1 + below(below(2) ? 2 : 20)};
      return made;
    };
    const script outer = make(6);
    std::vector<script> inner(1 + below(2));
    std::vector<std::size_t> when;
    for (auto& one : inner) {
      one = make(3);
      when.push_back(below(outer.size() + 1));
    }
    std::sort(when.begin(), when.end());
    const bool collects = below(3) == 0;
    std::vector<results> seen(inner.size() + 1);
    int attempts = 0;
    db.transact([&](auto& t) {
      seen[0].clear();
      const bool first = attempts++ == 0;
      std::size_t next = 0;
      for (std::size_t i = 0; i <= outer.size(); ++i) {
        while (first && next < inner.size() && when[next] == i) {
          std::thread([&] {
            db.transact([&](auto& t2) {
              seen[next + 1].clear();
              for (const auto& s : inner[next]) run(t2, rows, s, seen[next + 1]);
            });
            if (collects) db.collect(), db.collect();
          }).join();
          ++next;
        }
        if (i < outer.size()) run(t, rows, outer[i], seen[0]);
      }
    });
    if (attempts == 1) ++first_attempts;
    model after;
    db.read_only([&](auto& t) {
      t.scan(rows, 0, 1000, [&](auto key, const account& a) {
        after[key] = a.balance;
        return true;
      });
    });
    bool explained = false;
    for (std::size_t place = attempts == 1 ? 0 : inner.size(); place <= inner.size() && !explained;
         ++place) {
      model m = before;
      bool same = true;
      for (std::size_t i = 0; i <= inner.size(); ++i) {
        if (i == place) same = same && replay(m, outer) == seen[0];
        if (i < inner.size()) same = same && replay(m, inner[i]) == seen[i + 1];
      }
      explained = same && m == after;
    }
    if (!explained) {
      ++wrong;
      std::string what = std::to_string(round) + ". round, " + std::to_string(attempts) +
                         " attempts, keys before:";
      for (auto& [k, v] : before) what.append(" ").append(std::to_string(k));
      what.append("; outer: ").append(text(outer));
      for (std::size_t i = 0; i < inner.size(); ++i)
        what.append(" | before its step ")
            .append(std::to_string(when[i]))
            .append(": ")
            .append(text(inner[i]));
      ADD_FAILURE() << what;
    }
    before = after;
    if (below(4) == 0) {
      db.transact([&](auto& t) {
        for (std::uint64_t k = 0; k < 25; ++k) t.erase(rows, k);
      });
      before.clear();
      for (int i = 0; i < 4; ++i) db.collect();
    }
  }
  EXPECT_GT(first_attempts, rounds / 20);
}

// Three at the same time: some order of the three explains all.
TYPED_TEST(SerialOrders, ThreeAtOnce) {
  std::mt19937_64 random(elidex::testing::seed_or(1));
  const auto below = [&](std::uint64_t n) { return random() % n; };
  const int rounds = elidex::testing::repetitions(3000);
  TypeParam db;
  auto& rows = db.template create_table<std::uint64_t, account>("rows");
  constexpr int threads = 3;
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
    const std::uint64_t keys = 1 + below(6);
    for (auto& one : scripts) {
      one.resize(1 + below(5));
      for (auto& s : one)
        s = {decltype(s.what)(below(step::last)), below(keys), below(keys + 2),
             1 + below(below(2) ? 2 : 20)};
    }
    arrived = 0;
    ++round_now;
    while (arrived < threads) std::this_thread::yield();
    model after;
    db.read_only([&](auto& t) {
      t.scan(rows, 0, 1000, [&](auto key, const account& a) {
        after[key] = a.balance;
        return true;
      });
    });
    std::array<std::size_t, threads> order{0, 1, 2};
    bool explained = false;
    do {
      model m = before;
      bool same = true;
      for (const auto i : order) same = same && replay(m, scripts[i]) == seen[i];
      explained = same && m == after;
    } while (!explained && std::next_permutation(order.begin(), order.end()));
    if (!explained) {
      ++wrong;
      std::string what = std::to_string(round) + ". round:";
      for (const auto& one : scripts) what.append(" | ").append(text(one));
      ADD_FAILURE() << what;
    }
    before = after;
    if (below(6) == 0) {
      db.transact([&](auto& t) {
        for (std::uint64_t k = 0; k < 25; ++k) t.erase(rows, k);
      });
      before.clear();
    }
  }
  over = true;
  for (auto& one : all) one.join();
  std::printf("%zu conflicts\n", db.stats().conflicts);
}

}  // namespace
