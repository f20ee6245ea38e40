// The lock system against a table of locks that is as naive as can be: one entry for each lock, no
// bitmaps, no buckets, cycles found by following everything. One thread drives several
// transactions, whose requests stay in the queues.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "elidex/internal/locking/lock_system.hpp"
#include "support/lock_systems.hpp"
#include "support/random_seed.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

using enum lock_mode;

constexpr int transactions = 5;
constexpr std::uint32_t places = 8;  // 0 and 1 are tables, the others records of two pages

bool is_table(std::uint32_t place) {
  return place < 2;
}
record_address address_of(std::uint32_t place) {
  return at(place, place % 2);
}

class naive_locks {
 public:
  struct entry {
    int who;
    std::uint32_t place;
    lock_mode mode;
    lock_kind kind;
    bool waiting;
  };

  bool has_as_strong(const entry& wanted) const {
    for (const entry& e : entries_) {
      if (e.who == wanted.who && e.place == wanted.place && !e.waiting &&
          is_stronger(e.mode, wanted.mode) && contains(e.kind, wanted.kind)) {
        return true;
      }
    }
    return false;
  }
  bool is_blocked(const entry& wanted) const { return !holders(wanted, entries_.size()).empty(); }
  bool is_alone(const entry& wanted) const {
    for (const entry& e : entries_) {
      if (e.place == wanted.place && e.who != wanted.who) return false;
    }
    return true;
  }
  void add(const entry& e) { entries_.push_back(e); }
  void remove_all(int who) {
    std::erase_if(entries_, [=](const entry& e) { return e.who == who; });
  }
  void remove_waiting(int who) {
    std::erase_if(entries_, [=](const entry& e) { return e.who == who && e.waiting; });
  }
  bool remove_record(int who, std::uint32_t place, lock_mode mode) {
    return std::erase_if(entries_, [=](const entry& e) {
             return e.who == who && e.place == place && e.mode == mode &&
                    e.kind == lock_kind::record && !e.waiting;
           }) != 0;
  }
  // Grants these; what is wrong with that, in words. Who is granted when a transaction ends may
  // depend on which of its locks goes first: an insert's intention does not hold up a later
  // next-key lock, but that one holds up the insert.
  std::string grant(const std::set<int>& these) {
    std::vector<std::size_t> granted;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (!entries_[i].waiting || !these.contains(entries_[i].who)) continue;
      entries_[i].waiting = false;
      granted.push_back(i);
    }
    if (granted.size() != these.size()) return "granted what did not wait";
    for (const std::size_t i : granted) {
      std::set<int> in_the_way = holders(entries_[i], i);
      if (entries_[i].kind == lock_kind::insert_intention) {  // those that were granted after it
        for (const int one : these) in_the_way.erase(one);
      }
      if (!in_the_way.empty()) return "granted though somebody was in the way";
    }
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].waiting && holders(entries_[i], i).empty())
        return "not granted though nobody was in the way";
    }
    return "";
  }
  bool is_waiting(int who) const {
    for (const entry& e : entries_) {
      if (e.who == who && e.waiting) return true;
    }
    return false;
  }
  // Whether `from` waits for `to`, by way of others if need be.
  bool waits_for(int from, int to) const {
    std::set<int> seen;
    std::vector<int> todo{from};
    while (!todo.empty()) {
      const int one = todo.back();
      todo.pop_back();
      for (std::size_t i = 0; i < entries_.size(); ++i) {
        if (entries_[i].who != one || !entries_[i].waiting) continue;
        for (const int holder : holders(entries_[i], i)) {
          if (holder == to) return true;
          if (seen.insert(holder).second) todo.push_back(holder);
        }
      }
    }
    return false;
  }

 private:
  static bool is_stronger(lock_mode held, lock_mode wanted) {
    return held == wanted || held == exclusive || wanted == intention_shared;
  }
  static bool record_part(lock_kind kind) {
    return kind == lock_kind::record || kind == lock_kind::next_key;
  }
  static bool gap_part(lock_kind kind) {
    return kind == lock_kind::gap || kind == lock_kind::next_key;
  }
  static bool contains(lock_kind held, lock_kind wanted) {
    if (wanted == lock_kind::insert_intention) return false;
    return held == wanted || (held == lock_kind::next_key && wanted != lock_kind::table);
  }
  static bool clash(const entry& wanted, const entry& held) {
    bool modes = wanted.mode == exclusive || held.mode == exclusive;
    modes |= (wanted.mode == shared && held.mode == intention_exclusive);
    modes |= (wanted.mode == intention_exclusive && held.mode == shared);
    if (!modes) return false;
    if (wanted.kind == lock_kind::table) return true;
    if (wanted.kind == lock_kind::insert_intention) return gap_part(held.kind);
    return record_part(wanted.kind) && record_part(held.kind);
  }
  std::set<int> holders(const entry& wanted, std::size_t position) const {
    std::set<int> found;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const entry& e = entries_[i];
      if (e.who == wanted.who || e.place != wanted.place || !clash(wanted, e)) continue;
      if (e.waiting) {
        if (i > position) continue;
        bool waits_for_wanted = false;
        for (const entry& own : entries_) {
          waits_for_wanted |=
              own.who == wanted.who && own.place == e.place && !own.waiting && clash(e, own);
        }
        if (waits_for_wanted) continue;
      }
      found.insert(e.who);
    }
    return found;
  }

  std::vector<entry> entries_;
};

template <class Latches>
class comparison {
 public:
  explicit comparison(std::uint64_t seed) : random_(seed) {
    for (int i = 0; i < transactions; ++i) {
      all_.push_back(std::make_unique<typename lock_system<Latches>::transaction>(locks_));
      all_.back()->begin();
    }
  }

  // What is wrong, in words.
  std::string step() {
    const int who = static_cast<int>(random_.below(transactions));
    auto& t = *all_[static_cast<std::size_t>(who)];
    if (model_.is_waiting(who)) {
      if (random_.below(4) == 0) {
        if (t.wait(std::chrono::nanoseconds(0)) != lock_outcome::timed_out)
          return "gave up, and was not told so";
        model_.remove_waiting(who);
        return others_agree(who, {});
      }
      return end(who);
    }
    switch (random_.below(12)) {
      case 0:
        return end(who);
      case 1:
        t.add_changes(1);
        changes_[static_cast<std::size_t>(who)] += 1;
        return "";
      case 2: {
        const auto place = static_cast<std::uint32_t>(2 + random_.below(places - 2));
        const lock_mode mode = random_.below(2) == 0 ? shared : exclusive;
        if (writer_of(place) == who) return "";
        if (t.unlock_record(address_of(place), mode) != model_.remove_record(who, place, mode)) {
          return "unlock_record() differs";
        }
        return others_agree(who, {});
      }
      case 3:
      case 4:
        return request(who, static_cast<std::uint32_t>(2 + random_.below(places - 2)), exclusive,
                       lock_kind::record, true);
      default:
        break;
    }
    const auto place = static_cast<std::uint32_t>(random_.below(places));
    if (is_table(place)) {
      return request(who, place, static_cast<lock_mode>(random_.below(4)), lock_kind::table, false);
    }
    const auto kind = static_cast<lock_kind>(1 + random_.below(4));
    const bool either = kind != lock_kind::insert_intention && random_.below(2) == 0;
    return request(who, place, either ? shared : exclusive, kind, false);
  }

  lock_system_counts counts() const { return locks_.counts(); }

 private:
  std::string end(int who) {
    auto& t = *all_[static_cast<std::size_t>(who)];
    t.end();
    model_.remove_all(who);
    if (std::string wrong = others_agree(who, {}); !wrong.empty()) return wrong;
    t.begin();
    auto& lost = losses_[static_cast<std::size_t>(who)];
    if (!lost.in_this_transaction) lost.times = 0;
    lost.in_this_transaction = false;
    changes_[static_cast<std::size_t>(who)] = 0;
    return "";
  }

  std::uint64_t weight_of(int who) const {
    const auto i = static_cast<std::size_t>(who);
    return all_[i]->lock_count() + changes_[i] +
           (std::uint64_t{1} << std::min(losses_[i].times, 32U)) - 1;
  }

  int writer_of(std::uint32_t place) const {
    const lock_owner_id id = writers_[place];
    for (int i = 0; i < transactions; ++i) {
      if (id != 0 && all_[static_cast<std::size_t>(i)]->id() == id) return i;
    }
    return -1;
  }

  std::string request(int who, std::uint32_t place, lock_mode mode, lock_kind kind, bool write) {
    auto& t = *all_[static_cast<std::size_t>(who)];
    const naive_locks::entry wanted{who, place, mode, kind, false};
    enum { has, implicit, at_once, queued } expected = at_once;
    if (kind == lock_kind::record || kind == lock_kind::next_key) {
      const int writer = writer_of(place);
      const naive_locks::entry due{writer, place, exclusive, lock_kind::record, false};
      if (writer == who && kind == lock_kind::record) {
        expected = has;
      } else if (writer >= 0 && writer != who && !model_.has_as_strong(due)) {
        model_.add(due);
      }
    }
    if (expected != has) {
      if (model_.has_as_strong(wanted)) {
        expected = has;
      } else if (model_.is_blocked(wanted)) {
        expected = queued;
        model_.add({who, place, mode, kind, true});
      } else if (write && model_.is_alone(wanted)) {
        expected = implicit;
      } else if (kind != lock_kind::insert_intention) {
        model_.add(wanted);
      }
    }
    lock_outcome outcome;
    if (write) {
      outcome = t.request_write(address_of(place), writers_[place]);
    } else if (kind == lock_kind::table) {
      outcome = t.request_table(place, mode);
    } else {
      outcome = t.request_record(address_of(place), mode, kind, writers_[place]);
    }
    if (expected == implicit && writers_[place] != t.id()) return "no implicit lock";
    if (expected != queued) {
      return outcome == lock_outcome::granted ? others_agree(who, {}) : "not granted at once";
    }
    return others_agree(who, outcome);
  }

  // Compares who was granted and who was made a victim. `outcome`: of a request that the model has
  // queued.
  std::string others_agree(int who, std::optional<lock_outcome> outcome) {
    std::set<int> victims;
    std::set<int> granted;
    for (int i = 0; i < transactions; ++i) {
      auto& t = *all_[static_cast<std::size_t>(i)];
      if (i == who && outcome && *outcome != lock_outcome::waiting) {
        (*outcome == lock_outcome::deadlock_victim ? victims : granted).insert(i);
      } else if (t.is_decided()) {
        const lock_outcome decided = t.wait();
        (decided == lock_outcome::deadlock_victim ? victims : granted).insert(i);
        if (decided == lock_outcome::deadlock_victim && weight_of(i) >= weight_of(who)) {
          return "a victim that was no cheaper than the requester";
        }
      }
    }
    if (!victims.empty() && !outcome) return "a victim without a request";
    if (outcome && model_.waits_for(who, who) == victims.empty()) return "cycles differ";
    for (const int v : victims) {
      if (v != who && !(model_.waits_for(who, v) && model_.waits_for(v, who)))
        return "a victim outside of the cycle";
    }
    for (const int v : victims) {
      model_.remove_waiting(v);
      ++losses_[static_cast<std::size_t>(v)].times;
      losses_[static_cast<std::size_t>(v)].in_this_transaction = true;
    }
    if (std::string wrong = model_.grant(granted); !wrong.empty()) return wrong;
    for (int i = 0; i < transactions; ++i) {
      if (model_.waits_for(i, i)) return "a cycle is left";
    }
    return locks_.is_consistent() ? "" : "inconsistent";
  }

  lock_system<Latches> locks_{{.transactions_max = transactions, .buckets = 1}};
  std::vector<std::unique_ptr<typename lock_system<Latches>::transaction>> all_;
  std::array<std::atomic<lock_owner_id>, places> writers_{};
  std::array<std::uint64_t, transactions> changes_{};
  struct losses {
    unsigned times = 0;
    bool in_this_transaction = false;
  };
  std::array<losses, transactions> losses_{};
  naive_locks model_;
  random_numbers random_;
};

template <class Latches>
class LockSystemModel : public ::testing::Test {};
TYPED_TEST_SUITE(LockSystemModel, latches_under_test, latches_name);

TYPED_TEST(LockSystemModel, DoesWhatANaiveTableDoes) {
  const std::uint64_t first = seed_or(1);
  lock_system_counts sum;
  for (std::uint64_t seed = first; seed < first + static_cast<std::uint64_t>(repetitions(400));
       ++seed) {
    comparison<TypeParam> both(seed);
    for (int i = 0; i < 300; ++i) {
      const std::string wrong = both.step();
      ASSERT_EQ(wrong, "") << "step " << i << ", ELIDEX_TEST_SEED=" << seed;
    }
    sum.deadlocks += both.counts().deadlocks;
    sum.conversions += both.counts().conversions;
    sum.implicit += both.counts().implicit;
    sum.waits += both.counts().waits;
  }
  EXPECT_GT(sum.deadlocks, 0u);
  EXPECT_GT(sum.conversions, 0u);
  EXPECT_GT(sum.implicit, 0u);
  EXPECT_GT(sum.waits, 0u);
}

}  // namespace
}  // namespace elidex::testing
