// The lock system under explored interleavings: every cycle is found, nobody sleeps for ever,
// exclusive locks exclude, implicit ones too, and a wait that is given up while it is granted ends
// well.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>

#include "elidex/internal/locking/lock_system.hpp"
#include "schedule/explore.hpp"
#include "support/lock_systems.hpp"

namespace elidex::testing {

using namespace internal;
using namespace papers;

namespace {

using bodies_type = std::vector<std::function<void()>>;
using ::testing::HasSubstr;

std::uint64_t schedules(double count) {
  return static_cast<std::uint64_t>(count * effort());
}

// What all programs have: a lock system and records with what they protect.
template <class Latches>
struct records {
  static constexpr std::uint64_t steps = 2000;
  static constexpr std::size_t count = 3;
  using transaction = typename lock_system<Latches>::transaction;
  struct record {
    std::atomic<lock_owner_id> writer{0};
    alignas(64) std::atomic<int> inside{0};
    std::atomic<int> changes{0};
  };

  lock_system<Latches> locks{{.transactions_max = 4, .buckets = 16, .wait_timeout = wait_for_ever}};
  std::array<record, count> all;
  std::atomic<bool> broken{false};
  std::atomic<int> commits{0};

  // Pages that fall into different shards, of 16 or of 4.
  static record_address address(std::size_t i) { return at(5, i == 0 ? 0 : i + 2); }

  void change(std::size_t i) {
    if (++all[i].inside != 1) broken = true;
    std::this_thread::yield();
    all[i].changes = all[i].changes + 1;
    --all[i].inside;
  }
  bool lock(transaction& t, std::size_t i, bool implicitly) {
    const lock_outcome outcome = implicitly ? t.write_record(address(i), all[i].writer)
                                            : t.lock_record(address(i), lock_mode::exclusive,
                                                            lock_kind::record, all[i].writer);
    if (outcome == lock_outcome::timed_out) broken = true;
    return outcome == lock_outcome::granted;
  }
  // Locks and changes both, as often as it takes.
  void change_both(std::size_t first, std::size_t second, bool implicitly) {
    transaction t(locks);
    for (bool done = false; !done;) {
      t.begin();
      if (lock(t, first, implicitly) && lock(t, second, implicitly)) {
        change(first);
        change(second);
        ++commits;
        done = true;
      }
      t.end();
    }
  }
  std::string verdict_of(int commits_due) {
    int changes = 0;
    for (const record& one : all) changes += one.changes;
    if (broken) return "two were inside, or a time was up";
    if (commits != commits_due || changes != 2 * commits_due) return "a transaction is missing";
    return locks.is_consistent() ? "" : "the queues are inconsistent";
  }
};

template <class Latches>
struct two_in_a_cycle : records<Latches> {
  bodies_type bodies() {
    return {[this] { this->change_both(0, 1, false); }, [this] { this->change_both(1, 0, false); }};
  }
  std::string verdict() { return this->verdict_of(2); }
};

// Half of them implicitly.
template <class Latches>
struct three_in_a_cycle : records<Latches> {
  bodies_type bodies() {
    return {[this] { this->change_both(0, 1, true); }, [this] { this->change_both(1, 2, false); },
            [this] { this->change_both(2, 0, true); }};
  }
  std::string verdict() { return this->verdict_of(3); }
};

// Readers that upgrade; one record.
template <class Latches>
struct upgrades : records<Latches> {
  bodies_type bodies() {
    return bodies_type(3, [this] {
      typename records<Latches>::transaction t(this->locks);
      for (bool done = false; !done;) {
        t.begin();
        if (t.lock_record(this->address(0), lock_mode::shared) == lock_outcome::granted) {
          const int seen = this->all[0].changes;
          if (this->lock(t, 0, false)) {
            if (this->all[0].changes != seen) this->broken = true;
            this->change(0);
            this->change(0);
            ++this->commits;
            done = true;
          }
        }
        t.end();
      }
    });
  }
  std::string verdict() { return this->verdict_of(3); }
};

// One gives its waits up at once, while others come and go.
template <class Latches>
struct impatient : records<Latches> {
  std::atomic<int> given_up{0};

  bodies_type bodies() {
    return {[this] { this->change_both(0, 1, false); },
            [this] {
              typename records<Latches>::transaction t(this->locks);
              for (int i = 0; i < 3; ++i) {
                t.begin();
                lock_outcome outcome = t.request_write(this->address(0), this->all[0].writer);
                if (outcome == lock_outcome::waiting) {
                  std::this_thread::yield();
                  outcome = t.wait(std::chrono::nanoseconds(0));
                }
                if (outcome == lock_outcome::granted) {
                  this->change(0);
                } else {
                  ++given_up;
                }
                t.end();
              }
            },
            [this] { this->change_both(0, 1, true); }};
  }
  std::string verdict() {
    const int changes = this->all[0].changes + this->all[1].changes;
    if (this->broken || this->commits != 2) return "two were inside, or a transaction is missing";
    if (changes + given_up != 4 + 3) return "a change is lost";
    return this->locks.is_consistent() ? "" : "the queues are inconsistent";
  }
};

// A writer that ends while another finds its implicit lock.
template <class Latches>
struct implicit_and_ending : records<Latches> {
  bodies_type bodies() {
    return bodies_type(3, [this] {
      typename records<Latches>::transaction t(this->locks);
      for (int i = 0; i < 2; ++i) {
        t.begin();
        if (this->lock(t, 0, true)) {
          this->change(0);
          this->change(0);
          ++this->commits;
        }
        t.end();
      }
    });
  }
  std::string verdict() { return this->verdict_of(6); }
};

// Each holds what the next one is about to ask for: nothing but the moment of waiting.
template <class Latches, std::size_t Transactions>
struct about_to_wait : records<Latches> {
  static constexpr std::uint64_t steps = 150 * Transactions;
  using transaction = typename records<Latches>::transaction;
  std::array<std::unique_ptr<transaction>, Transactions> ready;
  std::atomic<int> victims{0};
  std::atomic<int> granted{0};

  about_to_wait() {
    for (std::size_t i = 0; i < Transactions; ++i) {
      ready[i] = std::make_unique<transaction>(this->locks);
      ready[i]->begin();
      this->lock(*ready[i], i, false);
    }
  }
  bodies_type bodies() {
    bodies_type ask;
    for (std::size_t i = 0; i < Transactions; ++i) {
      ask.push_back([this, i] {
        ++(this->lock(*ready[i], (i + 1) % Transactions, false) ? granted : victims);
        ready[i]->end();
      });
    }
    return ask;
  }
  std::string verdict() {
    if (this->broken) return "a time was up";
    // Once the victim has ended there is no cycle any more, unless that came before the others
    // asked.
    return victims <= 1 && victims + granted == static_cast<int>(Transactions)
               ? ""
               : "more than one victim";
  }
};

// Readers that are granted together, and wait again at once while their waker still walks its list.
template <class Latches>
struct granted_together : records<Latches> {
  static constexpr std::uint64_t steps = 600;
  using transaction = typename records<Latches>::transaction;
  std::array<std::unique_ptr<transaction>, 4> ready;

  granted_together() {
    for (auto& one : ready) {
      one = std::make_unique<transaction>(this->locks);
      one->begin();
    }
    this->lock(*ready[0], 0, false);
    this->lock(*ready[1], 1, false);
    for (const std::size_t reader : {std::size_t{2}, std::size_t{3}}) {
      if (ready[reader]->request_record(this->address(0), lock_mode::shared) !=
          lock_outcome::waiting) {
        this->broken = true;
      }
    }
  }
  bodies_type bodies() {
    const auto reader = [this](std::size_t i) {
      if (ready[i]->wait() != lock_outcome::granted) this->broken = true;
      ready[i]->end();
      ready[i]->begin();
      if (this->lock(*ready[i], 1, false)) {
        this->change(1);
        this->change(1);
        ++this->commits;
      }
      ready[i]->end();
    };
    return {[this] { ready[0]->end(); }, [this] { ready[1]->end(); }, [=] { reader(2); },
            [=] { reader(3); }};
  }
  std::string verdict() { return this->verdict_of(2); }
};

// One gives up what it is just being granted, and waits for something else at once: the late
// wake-up is not for that.
template <class Latches>
struct late_wake_up : records<Latches> {
  static constexpr std::uint64_t steps = 400;
  using transaction = typename records<Latches>::transaction;
  std::array<std::unique_ptr<transaction>, 3> ready;

  late_wake_up() {
    for (auto& one : ready) {
      one = std::make_unique<transaction>(this->locks);
      one->begin();
    }
    this->lock(*ready[0], 0, false);
    this->lock(*ready[1], 1, false);
    if (ready[2]->request_record(this->address(0), lock_mode::shared) != lock_outcome::waiting)
      this->broken = true;
  }
  bodies_type bodies() {
    return {[this] { ready[0]->end(); },
            [this] {
              this->change(1);
              ++this->commits;
              ready[1]->end();
            },
            [this] {
              ready[2]->wait(std::chrono::nanoseconds(0));
              if (this->lock(*ready[2], 1, false)) {
                this->change(1);
                this->change(1);
                this->change(1);
                ++this->commits;
              }
              ready[2]->end();
            }};
  }
  std::string verdict() { return this->verdict_of(2); }
};

template <class Latches>
class LockSystemSchedules : public ::testing::Test {};
TYPED_TEST_SUITE(LockSystemSchedules, latches_under_test, latches_name);

TYPED_TEST(LockSystemSchedules, TwoInACycle) {
  EXPECT_EQ(explore<two_in_a_cycle<TypeParam>>(schedules(200)), "");
}
TYPED_TEST(LockSystemSchedules, ThreeInACycle) {
  EXPECT_EQ(explore<three_in_a_cycle<TypeParam>>(schedules(200)), "");
}
TYPED_TEST(LockSystemSchedules, Upgrades) {
  EXPECT_EQ(explore<upgrades<TypeParam>>(schedules(150)), "");
}
TYPED_TEST(LockSystemSchedules, WaitsThatAreGivenUp) {
  EXPECT_EQ(explore<impatient<TypeParam>>(schedules(150)), "");
}
TYPED_TEST(LockSystemSchedules, ImplicitLocksOfWhoEnds) {
  EXPECT_EQ(explore<implicit_and_ending<TypeParam>>(schedules(150)), "");
}

// Where shards are not elided, the search and the look that may spare it run among other sections.
TEST(LockSystemWaitSchedules, AllSchedulesOfTwoThatBeginToWaitWithOnePreemption) {
  std::uint64_t count = 0;
  EXPECT_EQ((explore_all<about_to_wait<plain_shards, 2>>(1, count)), "");
  EXPECT_GT(count, 100u);
}
TEST(LockSystemWaitSchedules, ThreeThatBeginToWait) {
  EXPECT_EQ((explore<about_to_wait<plain_shards, 3>>(schedules(2'000))), "");
}

TEST(LockSystemWaitSchedules, GrantedTogether) {
  EXPECT_EQ(explore<granted_together<plain_shards>>(schedules(1'000)), "");
  EXPECT_EQ(explore<granted_together<plain_latches>>(schedules(1'000)), "");
  EXPECT_EQ(explore<granted_together<unmodified_latches>>(schedules(1'000)), "");
}
TEST(LockSystemWaitSchedules, LateWakeUps) {
  EXPECT_EQ(explore<late_wake_up<plain_shards>>(schedules(1'000)), "");
  EXPECT_EQ(explore<late_wake_up<plain_latches>>(schedules(1'000)), "");
  EXPECT_EQ(explore<late_wake_up<unmodified_latches>>(schedules(1'000)), "");
}

// Canary: a cycle that nobody can see, because each half of it is in a lock system of its own.
struct hidden_cycle : records<sharded_latches<>> {
  lock_system<sharded_latches<>> others{
      {.transactions_max = 4, .buckets = 16, .wait_timeout = wait_for_ever}};

  bodies_type bodies() {
    const auto both = [this](bool other_way) {
      transaction here(locks);
      transaction there(others);
      here.begin();
      there.begin();
      for (int i = 0; i < 2; ++i) {
        transaction& t = (i == 0) == other_way ? there : here;
        t.lock_record(address(0), lock_mode::exclusive);
        std::this_thread::yield();
      }
      there.end();
      here.end();
    };
    return {[=] { both(false); }, [=] { both(true); }};
  }
  static std::string verdict() { return ""; }
};
TEST(LockSystemSchedulesCanary, ACycleThatIsNotSeenIsFound) {
  EXPECT_THAT(explore<hidden_cycle>(2'000), HasSubstr("waits for futex"));
}

// Canary: a writer whose implicit lock others are not told of.
struct silent_writer : records<sharded_latches<>> {
  bodies_type bodies() {
    return {[this] {
              transaction t(locks);
              t.begin();
              lock(t, 0, true);
              change(0);
              change(0);
              ++commits;
              t.end();
            },
            [this] {
              transaction t(locks);
              t.begin();
              t.lock_record(address(0), lock_mode::exclusive);
              change(0);
              change(0);
              ++commits;
              t.end();
            }};
  }
  std::string verdict() { return verdict_of(2); }
};
TEST(LockSystemSchedulesCanary, AnUnknownWriterIsFound) {
  EXPECT_NE(explore<silent_writer>(5'000), "");
}

}  // namespace
}  // namespace elidex::testing
