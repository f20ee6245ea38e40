#include "elidex/internal/locking/lock_system.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <vector>

#include "support/lock_systems.hpp"

namespace elidex::testing {

using namespace internal;
using namespace papers;

namespace {

using namespace std::chrono_literals;
using enum lock_mode;

TEST(LockMode, InsertsWaitForGapsAndNobodyForInserts) {
  const auto waits = [](lock_kind wanted, lock_kind held) {
    return must_wait(exclusive, wanted, exclusive, held);
  };
  EXPECT_TRUE(waits(lock_kind::insert_intention, lock_kind::gap));
  EXPECT_TRUE(waits(lock_kind::insert_intention, lock_kind::next_key));
  EXPECT_FALSE(waits(lock_kind::insert_intention, lock_kind::record));
  EXPECT_FALSE(waits(lock_kind::insert_intention, lock_kind::insert_intention));
  for (const lock_kind wanted : {lock_kind::record, lock_kind::gap, lock_kind::next_key}) {
    EXPECT_FALSE(waits(wanted, lock_kind::insert_intention));
    EXPECT_FALSE(waits(wanted, lock_kind::gap));
    EXPECT_FALSE(waits(lock_kind::gap, wanted));
  }
  for (const lock_kind wanted : {lock_kind::record, lock_kind::next_key}) {
    EXPECT_TRUE(waits(wanted, lock_kind::record));
    EXPECT_TRUE(waits(wanted, lock_kind::next_key));
    EXPECT_FALSE(must_wait(shared, wanted, shared, lock_kind::next_key));
  }
}

TEST(LockMode, StrengthIsAnOrder) {
  for (const lock_mode mode : {intention_shared, intention_exclusive, shared, exclusive}) {
    EXPECT_TRUE(is_stronger_or_equal(mode, mode));
    EXPECT_TRUE(is_stronger_or_equal(exclusive, mode));
    EXPECT_TRUE(is_stronger_or_equal(mode, intention_shared));
  }
  EXPECT_FALSE(is_stronger_or_equal(shared, intention_exclusive));
  EXPECT_FALSE(is_stronger_or_equal(intention_exclusive, shared));
}

TEST(LockMode, ANextKeyLockCoversRecordAndGap) {
  EXPECT_TRUE(covers(lock_kind::next_key, lock_kind::record));
  EXPECT_TRUE(covers(lock_kind::next_key, lock_kind::gap));
  EXPECT_FALSE(covers(lock_kind::record, lock_kind::next_key));
  EXPECT_FALSE(covers(lock_kind::gap, lock_kind::next_key));
  EXPECT_FALSE(covers(lock_kind::next_key, lock_kind::insert_intention));
  EXPECT_FALSE(covers(lock_kind::insert_intention, lock_kind::gap));
  EXPECT_FALSE(covers(lock_kind::table, lock_kind::record));
}

template <class Latches>
class LockSystem : public ::testing::Test {
 protected:
  using transaction = typename lock_system<Latches>::transaction;

  void begin_all() {
    for (transaction* t : {&a, &b, &c, &d}) t->begin();
  }

  lock_system<Latches> locks{{.transactions_max = 8, .buckets = 4, .wait_timeout = 10s}};
  transaction a{locks}, b{locks}, c{locks}, d{locks};
};
TYPED_TEST_SUITE(LockSystem, latches_under_test, latches_name);

// What request, then an end() of whoever is in the way, then the answers are.
constexpr auto granted = lock_outcome::granted;
constexpr auto waiting = lock_outcome::waiting;
constexpr auto victim = lock_outcome::deadlock_victim;
constexpr auto timed_out = lock_outcome::timed_out;

TYPED_TEST(LockSystem, TablesFollowTheMatrix) {
  for (const lock_mode held : {intention_shared, intention_exclusive, shared, exclusive}) {
    for (const lock_mode wanted : {intention_shared, intention_exclusive, shared, exclusive}) {
      this->a.begin();
      this->b.begin();
      EXPECT_EQ(this->a.lock_table(5, held), granted);
      EXPECT_EQ(this->b.lock_table(5, wanted, 0s),
                are_compatible(held, wanted) ? granted : timed_out)
          << to_string(held) << ' ' << to_string(wanted);
      EXPECT_EQ(this->b.lock_table(6, wanted, 0s), granted);
      EXPECT_TRUE(this->locks.is_consistent());
      this->a.end();
      this->b.end();
    }
  }
}

TYPED_TEST(LockSystem, ATableAndItsRecordsAreDifferentQueues) {
  this->begin_all();
  EXPECT_EQ(this->a.lock_table(1, exclusive), granted);
  EXPECT_EQ(this->b.lock_record(at(0), exclusive, lock_kind::record, 0, 0s), granted);
}

TYPED_TEST(LockSystem, RecordsOfAPageShareAnObject) {
  this->begin_all();
  for (std::uint32_t heap = 0; heap < record_address::heap_numbers; ++heap) {
    ASSERT_EQ(this->a.lock_record(at(heap), exclusive), granted);
  }
  EXPECT_EQ(this->a.lock_count(), 1u);
  EXPECT_EQ(this->a.lock_record(at(3), shared), granted);
  EXPECT_EQ(this->a.lock_count(), 1u) << "held already";
  EXPECT_EQ(this->a.lock_record(at(3, 2), shared), granted);
  EXPECT_EQ(this->a.lock_count(), 2u);
  for (std::uint32_t heap = 0; heap < record_address::heap_numbers; ++heap) {
    ASSERT_EQ(this->b.lock_record(at(heap), shared, lock_kind::record, 0, 0s), timed_out);
  }
  this->a.end();
  EXPECT_EQ(this->b.lock_record(at(255), exclusive, lock_kind::record, 0, 0s), granted);
}

TYPED_TEST(LockSystem, QueuesAreServedInOrder) {
  this->begin_all();
  EXPECT_EQ(this->a.lock_record(at(1), exclusive), granted);
  EXPECT_EQ(this->b.request_record(at(1), shared), waiting);
  EXPECT_EQ(this->c.request_record(at(1), exclusive), waiting);
  EXPECT_EQ(this->d.request_record(at(1), shared), waiting) << "behind c";
  EXPECT_TRUE(this->locks.is_consistent());
  this->a.end();
  EXPECT_TRUE(this->b.is_decided());
  EXPECT_FALSE(this->c.is_decided());
  EXPECT_FALSE(this->d.is_decided());
  EXPECT_EQ(this->b.wait(), granted);
  this->b.end();
  EXPECT_EQ(this->c.wait(), granted);
  EXPECT_FALSE(this->d.is_decided());
  this->c.end();
  EXPECT_EQ(this->d.wait(), granted);
  EXPECT_TRUE(this->locks.is_consistent());
}

TYPED_TEST(LockSystem, SharedWaitersAreGrantedTogether) {
  this->begin_all();
  EXPECT_EQ(this->a.lock_record(at(1), exclusive), granted);
  EXPECT_EQ(this->b.request_record(at(1), shared), waiting);
  EXPECT_EQ(this->d.request_record(at(1), exclusive, lock_kind::insert_intention), granted)
      << "nobody has the gap";
  EXPECT_EQ(this->c.request_record(at(1), shared, lock_kind::next_key), waiting);
  EXPECT_EQ(this->d.request_record(at(1), exclusive, lock_kind::insert_intention), waiting)
      << "c has come before";
  this->a.end();
  EXPECT_EQ(this->b.wait(), granted);
  EXPECT_EQ(this->c.wait(), granted);
  this->c.end();
  EXPECT_EQ(this->d.wait(), granted);
}

TYPED_TEST(LockSystem, AnUpgradeWaitsForOtherReaders) {
  this->begin_all();
  EXPECT_EQ(this->a.lock_record(at(1), shared), granted);
  EXPECT_EQ(this->b.lock_record(at(1), shared), granted);
  EXPECT_EQ(this->a.request_record(at(1), exclusive), waiting);
  this->b.end();
  EXPECT_EQ(this->a.wait(), granted);
}

TYPED_TEST(LockSystem, AnUpgradePassesThoseWhoWaitForItself) {
  this->begin_all();
  EXPECT_EQ(this->a.lock_record(at(1), shared), granted);
  EXPECT_EQ(this->b.request_record(at(1), exclusive), waiting);
  EXPECT_EQ(this->a.lock_record(at(1), exclusive), granted);
  EXPECT_TRUE(this->locks.is_consistent());
  EXPECT_FALSE(this->b.is_decided());
  this->a.end();
  EXPECT_EQ(this->b.wait(), granted);
}

TYPED_TEST(LockSystem, TwoUpgradesAreADeadlock) {
  this->begin_all();
  EXPECT_EQ(this->a.lock_record(at(1), shared), granted);
  EXPECT_EQ(this->b.lock_record(at(1), shared), granted);
  EXPECT_EQ(this->a.request_record(at(1), exclusive), waiting);
  EXPECT_EQ(this->b.request_record(at(1), exclusive), victim) << "as cheap as a";
  this->b.end();
  EXPECT_EQ(this->a.wait(), granted);
  EXPECT_EQ(this->locks.counts().deadlocks, 1u);
}

TYPED_TEST(LockSystem, TheRequesterIsTheVictimOfATie) {
  this->begin_all();
  EXPECT_EQ(this->a.lock_record(at(1), exclusive), granted);
  EXPECT_EQ(this->b.lock_record(at(2), exclusive), granted);
  EXPECT_EQ(this->a.request_record(at(2), exclusive), waiting);
  EXPECT_EQ(this->b.request_record(at(1), exclusive), victim);
  EXPECT_FALSE(this->a.is_decided()) << "the victim has not rolled back yet";
  this->b.end();
  EXPECT_EQ(this->a.wait(), granted);
}

TYPED_TEST(LockSystem, WhoHasChangedLessIsTheVictim) {
  this->begin_all();
  EXPECT_EQ(this->a.lock_record(at(1), exclusive), granted);
  EXPECT_EQ(this->b.lock_record(at(2), exclusive), granted);
  this->b.add_changes(5);
  EXPECT_EQ(this->a.request_record(at(2), exclusive), waiting);
  EXPECT_EQ(this->b.request_record(at(1), exclusive), waiting);
  EXPECT_TRUE(this->a.is_decided());
  EXPECT_EQ(this->a.wait(), victim);
  this->a.end();
  EXPECT_EQ(this->b.wait(), granted);
  EXPECT_TRUE(this->locks.is_consistent());
}

TYPED_TEST(LockSystem, TheCheapestOfALongCycleIsTheVictim) {
  this->begin_all();
  this->a.add_changes(3);
  this->b.add_changes(1);
  this->c.add_changes(2);
  this->d.add_changes(9);
  EXPECT_EQ(this->a.lock_record(at(1, 1), exclusive), granted);
  EXPECT_EQ(this->b.lock_record(at(1, 2), exclusive), granted);
  EXPECT_EQ(this->c.lock_table(3, exclusive), granted);
  EXPECT_EQ(this->d.lock_record(at(1, 4), exclusive), granted);
  EXPECT_EQ(this->a.request_record(at(1, 2), shared), waiting);
  EXPECT_EQ(this->b.request_table(3, intention_shared), waiting);
  EXPECT_EQ(this->c.request_record(at(1, 4), exclusive), waiting);
  EXPECT_EQ(this->d.request_record(at(1, 1), exclusive), waiting);
  EXPECT_EQ(this->b.wait(), victim);
  EXPECT_FALSE(this->a.is_decided());
  this->b.end();
  EXPECT_EQ(this->a.wait(), granted);
  this->a.end();
  EXPECT_EQ(this->d.wait(), granted);
  this->d.end();
  EXPECT_EQ(this->c.wait(), granted);
}

// b and c lock the gap again as soon as they have rolled back. If they did so side by side, a would
// wait for ever.
TYPED_TEST(LockSystem, VictimsRunAgainOneAtATime) {
  this->begin_all();
  for (auto* t : {&this->a, &this->b, &this->c}) {
    EXPECT_EQ(t->lock_record(at(1), shared, lock_kind::gap), granted);
  }
  EXPECT_EQ(this->a.request_record(at(1), exclusive, lock_kind::insert_intention), waiting);
  for (auto* t : {&this->b, &this->c}) {
    EXPECT_EQ(t->request_record(at(1), exclusive, lock_kind::insert_intention), victim);
    t->end();
  }
  EXPECT_EQ(this->a.wait(), granted);
  this->b.wait_for_turn();
  this->b.begin();
  std::atomic<bool> has_turn{false};
  std::thread next([&] {
    this->c.wait_for_turn();
    has_turn = true;
  });
  std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(has_turn);
  this->b.end();
  next.join();
}

TYPED_TEST(LockSystem, WaitingForTheTurnEndsWithItsTime) {
  const auto loses_to = [](auto& loser, auto& winner) {
    for (auto* t : {&winner, &loser}) {
      t->begin();
      EXPECT_EQ(t->lock_record(at(1), shared), granted);
    }
    EXPECT_EQ(winner.request_record(at(1), exclusive), waiting);
    EXPECT_EQ(loser.request_record(at(1), exclusive), victim);
    loser.end();
    winner.end();
  };
  this->d.wait_for_turn();  // not a victim
  loses_to(this->b, this->a);
  loses_to(this->c, this->a);
  this->b.wait_for_turn();
  this->b.begin();
  const auto began = std::chrono::steady_clock::now();
  this->c.wait_for_turn(20ms);
  EXPECT_GE(std::chrono::steady_clock::now() - began, 20ms);
  this->c.wait_for_turn();  // once is enough
  this->c.begin();
  this->c.end();  // has no turn to give
  loses_to(this->c, this->a);
  this->c.wait_for_turn(0ms);
  this->c.begin();
  this->c.end();
  this->b.end();
  loses_to(this->c, this->a);
  this->c.wait_for_turn(wait_for_ever);
  this->c.end();  // gives the turn back, though nothing has begun
  loses_to(this->b, this->a);
  this->b.wait_for_turn(wait_for_ever);
}

TYPED_TEST(LockSystem, NobodyIsTheVictimForEver) {
  this->a.begin();
  this->a.add_changes(30);
  int losses = 0;
  for (;; ++losses) {
    ASSERT_LT(losses, 10);
    this->b.begin();
    this->a.lock_record(at(1), shared);
    this->b.lock_record(at(1), shared);
    this->a.request_record(at(1), exclusive);
    if (this->b.request_record(at(1), exclusive) == waiting) break;
    this->b.end();
    EXPECT_EQ(this->a.wait(), granted);
    this->a.end();
    this->a.begin();
    this->a.add_changes(30);
  }
  EXPECT_EQ(losses, 5) << "five losses weigh 31";
  EXPECT_EQ(this->a.wait(), victim);
}

// Taking the requester's own cycle apart may need more than one victim.
TYPED_TEST(LockSystem, OneRequestMayCloseTwoCycles) {
  this->begin_all();
  this->a.add_changes(10);
  EXPECT_EQ(this->a.lock_record(at(1), exclusive), granted);
  EXPECT_EQ(this->b.lock_record(at(2), shared), granted);
  EXPECT_EQ(this->c.lock_record(at(2), shared), granted);
  EXPECT_EQ(this->b.request_record(at(1), shared), waiting);
  EXPECT_EQ(this->c.request_record(at(1), shared), waiting);
  EXPECT_EQ(this->a.request_record(at(2), exclusive), waiting);
  EXPECT_EQ(this->b.wait(), victim);
  EXPECT_EQ(this->c.wait(), victim);
  this->b.end();
  this->c.end();
  EXPECT_EQ(this->a.wait(), granted);
}

TYPED_TEST(LockSystem, AVictimsPlaceInTheQueueIsGivenToOthers) {
  this->begin_all();
  this->c.add_changes(10);
  EXPECT_EQ(this->a.lock_record(at(1), shared), granted);
  EXPECT_EQ(this->b.lock_record(at(2), exclusive), granted);
  EXPECT_EQ(this->b.request_record(at(1), exclusive), waiting);
  EXPECT_EQ(this->c.request_record(at(1), shared), waiting) << "behind b";
  this->a.add_changes(10);
  EXPECT_EQ(this->a.request_record(at(2), shared), waiting);
  EXPECT_EQ(this->b.wait(), victim);
  EXPECT_EQ(this->c.wait(), granted) << "only b was in the way";
}

TYPED_TEST(LockSystem, WaitingEndsWithItsTime) {
  this->begin_all();
  EXPECT_EQ(this->a.lock_record(at(1), exclusive), granted);
  const auto began = std::chrono::steady_clock::now();
  EXPECT_EQ(this->b.lock_record(at(1), exclusive, lock_kind::record, 0, 20ms), timed_out);
  EXPECT_GE(std::chrono::steady_clock::now() - began, 20ms);
  EXPECT_EQ(this->b.lock_record(at(1), exclusive, lock_kind::record, 0, -1s), timed_out);
  EXPECT_EQ(this->b.lock_record(at(2), exclusive), granted) << "it keeps what it has and may go on";
  EXPECT_TRUE(this->locks.is_consistent());
  EXPECT_EQ(this->locks.counts().timeouts, 2u);
  EXPECT_EQ(this->locks.counts().waits, 1u);
}

TYPED_TEST(LockSystem, ATimeOutLetsThoseBehindPass) {
  this->begin_all();
  EXPECT_EQ(this->a.lock_record(at(1), shared), granted);
  EXPECT_EQ(this->b.request_record(at(1), exclusive), waiting);
  EXPECT_EQ(this->c.request_record(at(1), shared), waiting);
  EXPECT_EQ(this->b.wait(0s), timed_out);
  EXPECT_EQ(this->c.wait(), granted);
}

TYPED_TEST(LockSystem, EndGivesUpWhatStillWaits) {
  this->begin_all();
  EXPECT_EQ(this->a.lock_record(at(1), shared), granted);
  EXPECT_EQ(this->b.request_record(at(1), exclusive), waiting);
  EXPECT_EQ(this->c.request_record(at(1), shared), waiting);
  this->b.end();
  EXPECT_FALSE(this->b.is_waiting());
  EXPECT_EQ(this->c.wait(), granted);
  EXPECT_TRUE(this->locks.is_consistent());
}

TYPED_TEST(LockSystem, AWriterHoldsItsRecordWithoutAnObject) {
  this->begin_all();
  std::atomic<lock_owner_id> writer{0};
  EXPECT_EQ(this->a.write_record(at(1), writer), granted);
  EXPECT_EQ(writer, this->a.id());
  EXPECT_EQ(this->a.lock_count(), 0u);
  EXPECT_EQ(this->a.lock_record(at(1), exclusive, lock_kind::record, writer), granted);
  EXPECT_EQ(this->a.lock_count(), 0u) << "held already";
  EXPECT_EQ(this->b.lock_record(at(1), shared, lock_kind::gap, writer, 0s), granted)
      << "the gap is free";
  EXPECT_EQ(this->b.lock_record(at(1), shared, lock_kind::record, writer, 0s), timed_out);
  EXPECT_EQ(this->a.lock_count(), 1u) << "made explicit by b";
  EXPECT_EQ(this->locks.counts().conversions, 1u);
  EXPECT_EQ(this->b.request_write(at(1), writer), waiting);
  EXPECT_EQ(this->locks.counts().conversions, 1u) << "once is enough";
  this->a.end();
  EXPECT_EQ(this->b.wait(), granted);
  EXPECT_NE(writer, this->b.id()) << "after waiting the lock is explicit";
  EXPECT_EQ(this->c.lock_record(at(1), shared, lock_kind::record, writer, 0s), timed_out);
}

TYPED_TEST(LockSystem, TheWriterMayBeToldInThreeWays) {
  this->begin_all();
  std::atomic<lock_owner_id> writer{this->a.id()};
  EXPECT_EQ(this->b.lock_record(at(1), shared, lock_kind::record, this->a.id(), 0s), timed_out);
  EXPECT_EQ(this->b.lock_record(at(2), shared, lock_kind::record, writer, 0s), timed_out);
  EXPECT_EQ(this->b.lock_record(
                at(3), shared, lock_kind::next_key, [&] { return this->a.id(); }, 0s),
            timed_out);
  EXPECT_EQ(this->locks.counts().conversions, 3u);
  EXPECT_EQ(this->a.lock_count(), 1u);
}

TYPED_TEST(LockSystem, AnImplicitLockEndsWithItsTransaction) {
  this->begin_all();
  std::atomic<lock_owner_id> writer{0};
  EXPECT_EQ(this->a.write_record(at(1), writer), granted);
  const lock_owner_id ended = this->a.id();
  this->a.end();
  EXPECT_FALSE(this->locks.is_active(ended));
  EXPECT_EQ(this->b.write_record(at(1), writer, 0s), granted);
  EXPECT_EQ(writer, this->b.id());
  this->a.begin();
  EXPECT_NE(this->a.id(), ended);
  EXPECT_EQ(this->c.lock_record(at(9), exclusive, lock_kind::record, ended, 0s), granted);
  EXPECT_EQ(
      this->c.lock_record(at(8), exclusive, lock_kind::record, lock_owner_id{12345678901}, 0s),
      granted);
}

TYPED_TEST(LockSystem, AWriterWithReadersInTheQueueGetsAnObject) {
  this->begin_all();
  std::atomic<lock_owner_id> writer{0};
  EXPECT_EQ(this->a.lock_record(at(1), shared), granted);
  EXPECT_EQ(this->b.request_record(at(1), exclusive), waiting);
  EXPECT_EQ(this->a.write_record(at(1), writer), granted);
  EXPECT_EQ(writer, 0u);
  EXPECT_TRUE(this->a.unlock_record(at(1), shared));
  EXPECT_FALSE(this->b.is_decided());
}

TYPED_TEST(LockSystem, ImplicitLocksAreFoundInCycles) {
  this->begin_all();
  std::atomic<lock_owner_id> one{0};
  std::atomic<lock_owner_id> two{0};
  EXPECT_EQ(this->a.write_record(at(1), one), granted);
  EXPECT_EQ(this->b.write_record(at(2), two), granted);
  EXPECT_EQ(this->a.request_write(at(2), two), waiting);
  EXPECT_EQ(this->b.request_write(at(1), one), victim);
  this->b.end();
  EXPECT_EQ(this->a.wait(), granted);
}

TYPED_TEST(LockSystem, GapsKeepInsertsOut) {
  this->begin_all();
  EXPECT_EQ(this->a.lock_record(at(1), shared, lock_kind::next_key), granted);
  EXPECT_EQ(this->b.lock_record(at(1), exclusive, lock_kind::gap), granted)
      << "gap locks don't wait";
  EXPECT_EQ(this->c.request_record(at(1), exclusive, lock_kind::insert_intention), waiting);
  EXPECT_EQ(this->d.lock_record(at(1), shared, lock_kind::next_key, 0, 0s), granted)
      << "nobody waits for inserts";
  this->a.end();
  this->b.end();
  EXPECT_FALSE(this->c.is_decided());
  this->d.end();
  EXPECT_EQ(this->c.wait(), granted);
  EXPECT_EQ(this->c.lock_record(at(1), exclusive, lock_kind::insert_intention, 0, 0s), granted);
}

TYPED_TEST(LockSystem, GapLockedTwiceAndBothInsertingIsADeadlock) {
  this->begin_all();
  EXPECT_EQ(this->a.lock_record(at(1), exclusive, lock_kind::gap), granted);
  EXPECT_EQ(this->b.lock_record(at(1), exclusive, lock_kind::gap), granted);
  EXPECT_EQ(this->a.request_record(at(1), exclusive, lock_kind::insert_intention), waiting);
  this->a.add_changes(1);
  EXPECT_EQ(this->b.request_record(at(1), exclusive, lock_kind::insert_intention), victim);
  this->b.end();
  EXPECT_EQ(this->a.wait(), granted);
}

TYPED_TEST(LockSystem, ASplitGapIsLockedOnBothSides) {
  this->begin_all();
  EXPECT_EQ(this->a.lock_record(at(1), shared, lock_kind::next_key), granted);
  EXPECT_EQ(this->b.lock_record(at(1), shared), granted);
  this->a.inherit_gap(at(1), at(2, 9));
  EXPECT_EQ(this->a.lock_count(), 2u);
  EXPECT_EQ(this->b.lock_count(), 1u) << "it had no lock on the gap";
  EXPECT_EQ(this->c.lock_record(at(2, 9), exclusive, lock_kind::insert_intention, 0, 0s),
            timed_out);
  EXPECT_EQ(this->c.lock_record(at(2, 9), exclusive, lock_kind::record, 0, 0s), granted);
  this->c.inherit_gap(at(1), at(2, 9));
  EXPECT_EQ(this->a.lock_count(), 2u) << "it has it already";
  this->a.end();
  EXPECT_EQ(this->d.lock_record(at(2, 9), exclusive, lock_kind::insert_intention, 0, 0s), granted);
}

TYPED_TEST(LockSystem, ARemovedRecordsLocksMoveToTheNextGap) {
  this->begin_all();
  EXPECT_EQ(this->a.lock_record(at(1), shared), granted);
  EXPECT_EQ(this->b.lock_record(at(1), shared, lock_kind::gap), granted);
  this->c.inherit_gap(at(1), at(2), gap_heirs::of_anything);
  EXPECT_EQ(this->d.request_record(at(2), exclusive, lock_kind::insert_intention), waiting);
  this->a.end();
  EXPECT_FALSE(this->d.is_decided());
  this->b.end();
  EXPECT_EQ(this->d.wait(), granted);
}

TYPED_TEST(LockSystem, AnInheritedGapMayCloseACycle) {
  this->begin_all();
  this->a.add_changes(5);
  EXPECT_EQ(this->a.lock_record(at(3), exclusive), granted);
  EXPECT_EQ(this->b.lock_record(at(2), exclusive, lock_kind::gap), granted);
  EXPECT_EQ(this->c.lock_record(at(1), exclusive), granted);
  EXPECT_EQ(this->a.request_record(at(2), exclusive, lock_kind::insert_intention), waiting)
      << "for b";
  EXPECT_EQ(this->c.request_record(at(3), exclusive), waiting) << "for a";
  this->d.inherit_gap(at(1), at(2), gap_heirs::of_anything);  // now a waits for c as well
  EXPECT_EQ(this->c.wait(), victim);
  EXPECT_FALSE(this->a.is_decided());
  this->b.end();
  this->c.end();
  EXPECT_EQ(this->a.wait(), granted);
}

TYPED_TEST(LockSystem, ManyHeirs) {
  lock_system<TypeParam> many({.transactions_max = 64});
  std::vector<std::unique_ptr<typename lock_system<TypeParam>::transaction>> all;
  for (int i = 0; i < 60; ++i) {
    all.push_back(std::make_unique<typename lock_system<TypeParam>::transaction>(many));
    all.back()->begin();
    ASSERT_EQ(all.back()->lock_record(at(1), shared, lock_kind::next_key), granted);
  }
  all[0]->inherit_gap(at(1), at(2));
  for (const auto& t : all) EXPECT_EQ(t->lock_count(), 2u);
  EXPECT_TRUE(many.is_consistent());
}

TYPED_TEST(LockSystem, ALockMayBeGivenBackEarly) {
  this->begin_all();
  EXPECT_EQ(this->a.lock_record(at(1), shared), granted);
  EXPECT_EQ(this->a.lock_record(at(2), shared), granted);
  EXPECT_EQ(this->b.request_record(at(1), exclusive), waiting);
  EXPECT_FALSE(this->a.unlock_record(at(1), exclusive));
  EXPECT_FALSE(this->a.unlock_record(at(3), shared));
  EXPECT_TRUE(this->a.unlock_record(at(1), shared));
  EXPECT_EQ(this->b.wait(), granted);
  EXPECT_EQ(this->c.lock_record(at(2), exclusive, lock_kind::record, 0, 0s), timed_out);
}

TYPED_TEST(LockSystem, Errors) {
  auto& t = this->a;
  EXPECT_THROW(t.lock_table(1, shared), std::logic_error) << "not begun";
  t.begin();
  EXPECT_THROW(t.begin(), std::logic_error);
  EXPECT_THROW(t.lock_record(at(256), shared), std::invalid_argument);
  EXPECT_THROW(t.lock_record(at(1, ~std::uint64_t{0}), shared), std::invalid_argument);
  EXPECT_THROW(t.lock_record(at(1), intention_shared), std::invalid_argument);
  EXPECT_THROW(t.lock_record(at(1), shared, lock_kind::table), std::invalid_argument);
  EXPECT_THROW(t.lock_record(at(1), shared, lock_kind::insert_intention), std::invalid_argument);
  EXPECT_THROW(t.inherit_gap(at(1), at(256)), std::invalid_argument);
  EXPECT_THROW(t.wait(), std::logic_error);
  EXPECT_EQ(t.lock_count(), 0u);
  this->b.begin();
  EXPECT_EQ(this->b.lock_record(at(1), exclusive), granted);
  EXPECT_EQ(t.request_record(at(1), exclusive), waiting);
  EXPECT_THROW(t.lock_record(at(2), exclusive), std::logic_error) << "one wait at a time";
  t.end();
  t.end();
  EXPECT_EQ(t.id(), 0u);
}

TYPED_TEST(LockSystem, NoMoreTransactionsThanAgreed) {
  using session = typename TestFixture::transaction;
  lock_system<TypeParam> few({.transactions_max = 2});
  session one(few);
  {
    session two(few);
    EXPECT_THROW(session three(few), std::system_error);
  }
  EXPECT_NO_THROW(session three(few));
}

TYPED_TEST(LockSystem, ObjectsAreUsedAgain) {
  std::size_t after_first = 0;
  for (int round = 0; round < 50; ++round) {
    this->a.begin();
    for (std::uint64_t page = 0; page < 100; ++page)
      ASSERT_EQ(this->a.lock_record(at(1, page), exclusive), granted);
    EXPECT_EQ(this->a.lock_count(), 100u);
    this->a.end();
    if (round == 0) after_first = this->locks.memory_bytes();
  }
  EXPECT_EQ(this->locks.memory_bytes(), after_first);
  const lock_system_counts counts = this->locks.counts();
  EXPECT_EQ(counts.requests, 5000u);
  EXPECT_EQ(counts.granted_at_once, 5000u);
}

// a's objects are taken by conversion from b, again and again.
TYPED_TEST(LockSystem, ConversionsDoNotPileUpMemory) {
  std::size_t early = 0;
  for (int round = 0; round < 400; ++round) {
    this->a.begin();
    this->b.begin();
    for (std::uint64_t page = 0; page < 10; ++page) {
      ASSERT_EQ(this->b.lock_record(at(1, page), shared, lock_kind::record, this->a.id(), 0s),
                timed_out);
    }
    EXPECT_EQ(this->a.lock_count(), 10u);
    this->a.end();
    this->b.end();
    if (round == 100) early = this->locks.memory_bytes();
  }
  EXPECT_EQ(this->locks.memory_bytes(), early);
}

TYPED_TEST(LockSystem, ASleeperIsWokenByEnd) {
  this->begin_all();
  EXPECT_EQ(this->a.lock_record(at(1), exclusive), granted);
  std::thread other([&] {
    EXPECT_EQ(this->b.lock_record(at(1), exclusive, lock_kind::record, 0, wait_for_ever), granted);
    this->b.end();
  });
  while (this->locks.counts().waits == 0) std::this_thread::yield();
  std::this_thread::sleep_for(2ms);
  this->a.end();
  other.join();
  EXPECT_GT(this->locks.counts().waited_ns, 0u);
}

TYPED_TEST(LockSystem, ASleepingVictimIsWoken) {
  this->begin_all();
  this->b.add_changes(10);
  EXPECT_EQ(this->a.lock_record(at(1), exclusive), granted);
  EXPECT_EQ(this->b.lock_record(at(2), exclusive), granted);
  std::thread other([&] {
    EXPECT_EQ(this->a.lock_record(at(2), exclusive), victim);
    this->a.end();
  });
  while (this->locks.counts().waits == 0) std::this_thread::yield();
  std::this_thread::sleep_for(2ms);
  EXPECT_EQ(this->b.lock_record(at(1), exclusive), granted);
  other.join();
}

TEST(LockSystemLatches, ElidedOnesCommitWhereRegionsDo) {
  lock_system<retried_latches> locks;
  lock_system<retried_latches>::transaction t(locks);
  for (int round = 0; round < 20; ++round) {
    t.begin();
    for (std::uint32_t heap = 0; heap < 10; ++heap)
      ASSERT_EQ(t.lock_record(at(heap), exclusive), granted);
    t.end();
  }
  const lock_counts counts = locks.latch_counts();
  EXPECT_GE(counts.acquisitions(), 220u);
  if (htm::enabled()) {
    EXPECT_GT(counts.commits, counts.fallbacks);
  }
}

}  // namespace
}  // namespace elidex::testing
