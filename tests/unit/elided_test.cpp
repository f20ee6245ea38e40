#include "elidex/elided.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "elidex/internal/sync/spin_locks.hpp"
#include "papers/karnagel/posix_mutex.hpp"
#include "unit/scripted_htm.hpp"

namespace elidex {

using namespace internal;
using namespace papers;

namespace {

using htm::abort_cause;
using test::rolled_back;
using test::scripted_htm;

template <class Policy>
using scripted = elided<ttas_lock, Policy, scripted_htm>;

class Elided : public testing::Test {
 protected:
  void SetUp() override { scripted_htm::reset(); }
  void TearDown() override {
    EXPECT_EQ(scripted_htm::faults(), 0u) << "an instruction that faults on real hardware";
    EXPECT_EQ(scripted_htm::depth(), 0) << "a region was left open";
  }
};

// One whole section; returns whether it was elided.
template <class AnyLock>
bool section(AnyLock& lock) {
  lock.lock();
  const bool inside_region = scripted_htm::test();
  lock.unlock();
  return inside_region;
}

// How many begin() calls one acquisition makes if every one of them answers `answer`.
template <class Policy>
std::size_t attempts_when_always(htm::status answer, const Policy& policy = {}) {
  scripted_htm::reset();
  scripted_htm::always(answer);
  scripted<Policy> lock(policy);
  EXPECT_FALSE(section(lock));
  EXPECT_FALSE(lock.underlying().is_locked());
  EXPECT_EQ(lock.stats().fallbacks, 1u);
  EXPECT_EQ(lock.stats().aborts_total(), scripted_htm::begins());
  return scripted_htm::begins();
}

TEST_F(Elided, ACommittedSectionNeverWritesTheLock) {
  scripted<default_retry> lock;
  lock.lock();
  EXPECT_TRUE(scripted_htm::test());
  EXPECT_FALSE(lock.underlying().is_locked());
  lock.unlock();
  EXPECT_EQ(scripted_htm::commits(), 1u);
  const lock_counts counts = lock.stats();
  EXPECT_EQ(counts.commits, 1u);
  EXPECT_EQ(counts.attempts(), 1u);
  EXPECT_EQ(counts.fallbacks, 0u);
}

TEST_F(Elided, WithoutHtmEachSectionTakesTheLockAndSaysSo) {
  scripted_htm::switch_off();
  scripted<default_retry> lock;
  for (int i = 0; i < 100; ++i) {
    lock.lock();
    EXPECT_TRUE(lock.underlying().is_locked());
    lock.unlock();
  }
  EXPECT_EQ(lock.stats().fallbacks, 100u);
  EXPECT_EQ(lock.stats().attempts(), 0u);
  EXPECT_EQ(lock.stats().off_periods, 0u);
  EXPECT_DOUBLE_EQ(lock.stats().fallback_pct(), 100.0);
}

TEST_F(Elided, RetriesAfterAnAbortAndCommits) {
  scripted_htm::reset({scripted_htm::conflict, scripted_htm::conflict, scripted_htm::started});
  scripted<default_retry> lock;
  EXPECT_TRUE(section(lock));
  EXPECT_EQ(lock.stats().aborts_by(abort_cause::conflict), 2u);
  EXPECT_EQ(lock.stats().commits, 1u);
  EXPECT_EQ(lock.stats().attempts(), 3u);
}

TEST_F(Elided, EachCauseHasItsBudget) {
  const retry_budgets budgets{.conflict = 5,
                              .capacity = 4,
                              .explicit_abort = 3,
                              .interrupt = 2,
                              .other = 1,
                              .nested = 6,
                              .lock_busy = 7};
  EXPECT_EQ(attempts_when_always(scripted_htm::conflict, budgets), 6u);
  EXPECT_EQ(attempts_when_always(scripted_htm::capacity, budgets), 5u);
  EXPECT_EQ(attempts_when_always(scripted_htm::user_abort, budgets), 4u);
  EXPECT_EQ(attempts_when_always(scripted_htm::interrupt, budgets), 3u);
  EXPECT_EQ(attempts_when_always(scripted_htm::debug, budgets), 2u);
  EXPECT_EQ(attempts_when_always(scripted_htm::nested_conflict, budgets), 7u);
  EXPECT_EQ(attempts_when_always(scripted_htm::lock_busy, budgets), 8u);
}

TEST_F(Elided, BudgetsAreIndependentAndFreshForEachAcquisition) {
  using s = scripted_htm;
  scripted<retry_budgets> lock({.conflict = 1, .capacity = 1});
  s::reset({s::conflict, s::capacity, s::started, s::conflict, s::capacity, s::conflict});
  EXPECT_TRUE(section(lock));
  EXPECT_FALSE(section(lock));
  EXPECT_EQ(lock.stats().aborts_by(abort_cause::conflict), 3u);
  EXPECT_EQ(lock.stats().aborts_by(abort_cause::capacity), 2u);
}

TEST_F(Elided, NoRetryTakesTheLockAtTheFirstAbort) {
  for (const htm::status answer :
       {scripted_htm::conflict, scripted_htm::capacity, scripted_htm::interrupt,
        scripted_htm::lock_busy, scripted_htm::debug}) {
    EXPECT_EQ(attempts_when_always<no_retry>(answer), 1u);
  }
}

TEST_F(Elided, DbxBudgetsAreThoseOfDbx) {
  EXPECT_EQ(attempts_when_always<dbx_budgets>(scripted_htm::conflict), 129u);
  EXPECT_EQ(attempts_when_always<dbx_budgets>(scripted_htm::capacity), 17u);
  EXPECT_EQ(attempts_when_always<dbx_budgets>(scripted_htm::interrupt), 4u);
  EXPECT_EQ(attempts_when_always<dbx_budgets>(scripted_htm::debug), 4u);
  EXPECT_EQ(attempts_when_always<dbx_budgets>(scripted_htm::nested_conflict), 1u);
}

TEST_F(Elided, AroundOtherRegionsAnAbortBelowCountsByItsCause) {
  EXPECT_EQ(attempts_when_always<nesting_dbx_budgets>(scripted_htm::nested_conflict), 129u);
  EXPECT_EQ(attempts_when_always<nesting_dbx_budgets>(scripted_htm::conflict), 129u);
  EXPECT_EQ(attempts_when_always<nesting_dbx_budgets>(scripted_htm::capacity), 17u);
}

TEST_F(Elided, CountsAbortsByCause) {
  using s = scripted_htm;
  s::reset({s::conflict, s::capacity, s::interrupt, s::debug, s::lock_busy, s::user_abort});
  scripted<default_retry> lock;
  EXPECT_FALSE(section(lock)) << "the body asked for the lock";
  const lock_counts counts = lock.stats();
  EXPECT_EQ(counts.aborts_by(abort_cause::conflict), 1u);
  EXPECT_EQ(counts.aborts_by(abort_cause::capacity), 1u);
  EXPECT_EQ(counts.aborts_by(abort_cause::interrupt), 1u);
  EXPECT_EQ(counts.aborts_by(abort_cause::other), 1u);
  EXPECT_EQ(counts.aborts_by(abort_cause::explicit_), 2u);
  EXPECT_EQ(counts.attempts(), 6u);
}

// A lock that another thread holds, as far as one look at it tells: the next look finds it free.
class briefly_held_lock {
 public:
  void lock() {}
  bool try_lock() { return true; }
  void unlock() {}
  bool is_locked() const { return std::exchange(held_, false); }
  void take_by_another() { held_ = true; }

 private:
  mutable bool held_ = false;
};

// Another thread takes the lock between the look at it and the transaction.
TEST_F(Elided, ARegionThatFindsTheLockHeldAborts) {
  elided<briefly_held_lock, default_retry, scripted_htm> lock;
  scripted_htm::on_begin([&](std::size_t number) {
    if (number == 0) lock.underlying().take_by_another();
  });
  section(lock);
  ASSERT_EQ(scripted_htm::abort_codes().size(), 1u);
  EXPECT_EQ(scripted_htm::abort_codes()[0], htm::code_lock_busy);
  EXPECT_EQ(lock.stats().aborts_by(abort_cause::explicit_), 1u);
  EXPECT_EQ(lock.stats().acquisitions(), 1u);
}

TEST_F(Elided, NeverBeginsARegionWhileTheLockIsHeld) {
  scripted<default_retry> lock;
  bool begun_while_held = false;
  scripted_htm::on_begin([&](std::size_t) { begun_while_held |= lock.underlying().is_locked(); });
  lock.underlying().lock();
  std::thread holder([&] {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    lock.underlying().unlock();
  });
  section(lock);
  holder.join();
  EXPECT_FALSE(begun_while_held);
}

// Held until somebody queues for it.
class stubborn_lock {
 public:
  void lock() { held_by_other_ = false; }
  bool try_lock() { return false; }
  void unlock() {}
  bool is_locked() const {
    ++looks_;
    return held_by_other_;
  }
  std::uint32_t looks() const { return looks_; }

 private:
  bool held_by_other_ = true;
  mutable std::uint32_t looks_ = 0;
};

TEST_F(Elided, WaitsForAHeldLockOnlySoLongAndThenQueues) {
  elided<stubborn_lock, default_retry, scripted_htm> lock;
  lock.lock();
  EXPECT_EQ(lock.underlying().looks(), 1 + free_waits_max);
  EXPECT_EQ(scripted_htm::begins(), 0u);
  lock.unlock();
  EXPECT_EQ(lock.stats().fallbacks, 1u);
}

struct never_after_conflicts : retry_budgets {
  constexpr never_after_conflicts() noexcept : retry_budgets{.conflict = 0, .lock_busy = 1} {}
};
struct leaving_convoys : never_after_conflicts {
  static constexpr bool leaves_convoys = true;
};

TEST_F(Elided, AConflictWithTheHeldLockMayCountAsAHeldLock) {
  const auto fallbacks = [](auto policy) {
    elided<briefly_held_lock, decltype(policy), scripted_htm> lock;
    scripted_htm::reset({scripted_htm::conflict, scripted_htm::started});
    scripted_htm::on_begin([&](std::size_t number) {
      if (number == 0) lock.underlying().take_by_another();
    });
    section(lock);
    return lock.stats().fallbacks;
  };
  EXPECT_EQ(fallbacks(never_after_conflicts()), 1u);
  EXPECT_EQ(fallbacks(leaving_convoys()), 0u);
}

TEST_F(Elided, AConflictWithAFreeLockIsOne) {
  EXPECT_EQ(attempts_when_always<leaving_convoys>(scripted_htm::conflict), 1u);
}

TEST_F(Elided, AfterALongWaitAThreadMayElideAfterAll) {
  elided<stubborn_lock, leaving_convoys, scripted_htm> lock;
  EXPECT_TRUE(section(lock));
  EXPECT_GT(lock.underlying().looks(), free_waits_max);
  EXPECT_EQ(lock.stats().fallbacks, 0u);
}

// --- nesting

TEST_F(Elided, AnInnerSectionJoinsTheRegionAndOnlyTheOuterCommits) {
  scripted<default_retry> outer;
  scripted<default_retry> inner;
  outer.lock();
  inner.lock();
  EXPECT_EQ(scripted_htm::depth(), 2);
  inner.unlock();
  EXPECT_EQ(scripted_htm::commits(), 0u);
  EXPECT_TRUE(scripted_htm::test());
  outer.unlock();
  EXPECT_EQ(scripted_htm::commits(), 1u);
  EXPECT_EQ(outer.stats().commits, 1u);
  EXPECT_EQ(inner.stats(), lock_counts{}) << "part of the outer section";
}

TEST_F(Elided, UnlockingInAnotherOrderCommitsAtTheLast) {
  scripted<default_retry> first;
  scripted<default_retry> second;
  first.lock();
  second.lock();
  first.unlock();
  EXPECT_TRUE(scripted_htm::test());
  second.unlock();
  EXPECT_FALSE(scripted_htm::test());
  EXPECT_EQ(scripted_htm::commits(), 1u);
  EXPECT_EQ(first.stats().commits + second.stats().commits, 1u);
}

TEST_F(Elided, AnInnerLockThatIsHeldAbortsTheWholeRegion) {
  scripted<default_retry> outer;
  scripted<default_retry> inner;
  inner.underlying().lock();
  outer.lock();
  try {
    inner.lock();
    FAIL() << "went on inside the region";
  } catch (const rolled_back& abort) {
    EXPECT_TRUE(abort.entry.is_lock_busy());
  }
  inner.underlying().unlock();
}

TEST_F(Elided, AnInnerLockIsJoinedEvenWhileItsElisionIsOff) {
  scripted<adaptive<no_retry>> inner({{}, {.window_fallbacks = 1, .off_acquisitions = 100}});
  scripted_htm::reset({scripted_htm::conflict});
  section(inner);
  ASSERT_TRUE(inner.elision_is_off());
  scripted<default_retry> outer;
  outer.lock();
  inner.lock();
  EXPECT_FALSE(inner.underlying().is_locked())
      << "writing the lock inside a region conflicts with everybody";
  inner.unlock();
  outer.unlock();
}

TEST_F(Elided, AHeldLockMayBeReleasedInsideAnotherLocksRegion) {
  scripted_htm::reset({scripted_htm::user_abort});
  scripted<default_retry> held;
  held.lock();
  ASSERT_TRUE(held.underlying().is_locked());
  scripted<default_retry> other;
  other.lock();
  ASSERT_TRUE(scripted_htm::test());
  held.unlock();
  EXPECT_FALSE(held.underlying().is_locked());
  EXPECT_TRUE(scripted_htm::test()) << "the other lock's region must not end here";
  other.unlock();
  EXPECT_EQ(scripted_htm::commits(), 1u);
}

// --- the crash list

TEST_F(Elided, UnlockingAnUnlockedLockCommitsNothing) {
  scripted<default_retry> lock;
  lock.unlock();
  EXPECT_EQ(scripted_htm::faults(), 0u) << "a commit outside a region";
  EXPECT_TRUE(section(lock));
}

TEST_F(Elided, TryLockElidesAFreeLock) {
  scripted<default_retry> lock;
  ASSERT_TRUE(lock.try_lock());
  EXPECT_TRUE(scripted_htm::test());
  lock.unlock();
  EXPECT_EQ(lock.stats().commits, 1u);
}

TEST_F(Elided, TryLockOfAHeldLockFailsAtOnceWithoutARegion) {
  scripted<default_retry> lock;
  lock.underlying().lock();
  EXPECT_FALSE(lock.try_lock());
  EXPECT_EQ(scripted_htm::begins(), 0u);
  EXPECT_EQ(lock.stats(), lock_counts{});
  lock.underlying().unlock();
}

TEST_F(Elided, TryLockTakesTheLockWhenRetriesAreUsedUp) {
  scripted_htm::always(scripted_htm::conflict);
  scripted<retry_budgets> lock({.conflict = 2});
  ASSERT_TRUE(lock.try_lock());
  EXPECT_EQ(scripted_htm::begins(), 3u);
  EXPECT_TRUE(lock.underlying().is_locked());
  EXPECT_FALSE(lock.try_lock()) << "held by ourselves, really";
  lock.unlock();
  EXPECT_EQ(lock.stats().fallbacks, 1u);
}

TEST_F(Elided, TryLockFailsIfSomebodyTookTheLockMeanwhile) {
  scripted<default_retry> lock;
  scripted_htm::on_begin([&](std::size_t) { lock.underlying().lock(); });
  EXPECT_FALSE(lock.try_lock());
  EXPECT_EQ(scripted_htm::begins(), 1u);
  EXPECT_EQ(lock.stats().aborts_by(abort_cause::explicit_), 1u);
  lock.underlying().unlock();
}

TEST_F(Elided, TryLockWithoutHtmIsTheUnderlyingTryLock) {
  scripted_htm::switch_off();
  scripted<default_retry> lock;
  ASSERT_TRUE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
  EXPECT_EQ(lock.stats().fallbacks, 1u);
}

// Held by its own thread through elision, the lock looks free; "true" would be a lie, and so would
// "false" be if it belonged to somebody else's region.
TEST_F(Elided, TryLockInsideARegionAbortsIt) {
  scripted<default_retry> lock;
  lock.lock();
  try {
    static_cast<void>(lock.try_lock());
    FAIL() << "answered inside the region";
  } catch (const rolled_back& abort) {
    EXPECT_EQ(abort.entry.code(), htm::code_nested_trylock);
  }
}

TEST_F(Elided, TheSectionThatATryLockAbortedRunsWithTheLockAndGetsTheTruth) {
  scripted_htm::reset({htm::status::of_abort(htm::code_nested_trylock)});
  scripted<default_retry> lock;
  lock.lock();
  EXPECT_EQ(scripted_htm::begins(), 1u) << "no retry: it would abort again";
  EXPECT_TRUE(lock.underlying().is_locked());
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
}

// --- run and the standard's guards

TEST_F(Elided, WorksWithTheStandardGuards) {
  scripted<default_retry> lock;
  {
    const std::lock_guard guard(lock);
  }
  {
    const std::scoped_lock guard(lock);
  }
  {
    std::unique_lock guard(lock, std::try_to_lock);
    EXPECT_TRUE(guard.owns_lock());
  }
  EXPECT_EQ(lock.stats().commits, 3u);
}

TEST_F(Elided, RunReturnsWhatTheBodyReturns) {
  scripted<default_retry> lock;
  EXPECT_EQ(lock.run([] { return 42; }), 42);
  int value = 1;
  int& same = lock.run([&]() -> int& { return value; });
  EXPECT_EQ(&same, &value);
  lock.run([&] { value = 2; });
  EXPECT_EQ(value, 2);
  EXPECT_EQ(lock.stats().commits, 3u);
}

TEST_F(Elided, RunUnlocksWhenTheBodyThrows) {
  scripted<default_retry> lock;
  EXPECT_THROW(lock.run([] { throw std::runtime_error("body"); }), std::runtime_error);
  EXPECT_FALSE(scripted_htm::test());
  scripted_htm::switch_off();
  EXPECT_THROW(lock.run([] { throw std::runtime_error("body"); }), std::runtime_error);
  EXPECT_FALSE(lock.underlying().is_locked());
}

TEST_F(Elided, LosersHoldTheAuxiliaryLockUntilTheirRegionHasCommitted) {
  scripted<default_retry> lock;
  ttas_lock turn;
  std::uint32_t aborts = 0;
  scripted_htm::reset({scripted_htm::conflict, scripted_htm::conflict, scripted_htm::started});
  bool held_at_commit = false;
  scripted_htm::on_commit([&] { held_at_commit = turn.is_locked(); });
  EXPECT_TRUE(lock.run([&] { return turn.is_locked(); }, aborts, turn));
  EXPECT_TRUE(held_at_commit);
  EXPECT_FALSE(turn.is_locked());
  EXPECT_EQ(aborts, 2u);
  EXPECT_EQ(lock.stats().commits, 1u);
}

TEST_F(Elided, WhoMeetsNoConflictIgnoresTheAuxiliaryLock) {
  scripted<default_retry> lock;
  ttas_lock turn;
  turn.lock();  // another thread's: whoever waited for it here would wait for ever
  std::uint32_t aborts = 0;
  EXPECT_EQ(lock.run([] { return 42; }, aborts, turn), 42);
  scripted_htm::reset({scripted_htm::capacity, scripted_htm::interrupt, scripted_htm::started});
  lock.run([] {}, aborts, turn);
  EXPECT_EQ(aborts, 2u);
  scripted_htm::switch_off();
  lock.run([&] { EXPECT_TRUE(lock.underlying().is_locked()); }, aborts, turn);
  EXPECT_TRUE(turn.is_locked());
}

TEST_F(Elided, TheAuxiliaryLockIsFreeAfterAFallbackAndAfterAnException) {
  scripted<default_retry> lock;
  ttas_lock turn;
  std::uint32_t aborts = 0;
  scripted_htm::always(scripted_htm::conflict);
  lock.run([&] { EXPECT_TRUE(turn.is_locked() && lock.underlying().is_locked()); }, aborts, turn);
  EXPECT_FALSE(turn.is_locked() || lock.underlying().is_locked());
  EXPECT_THROW(lock.run([] { throw std::runtime_error("body"); }, aborts, turn),
               std::runtime_error);
  EXPECT_FALSE(turn.is_locked() || lock.underlying().is_locked());
}

TEST_F(Elided, RunAtMostGivesUpBeforeThePolicyDoes) {
  scripted<default_retry> lock;
  for (const std::uint32_t attempts : {0u, 1u, 2u, 3u}) {
    scripted_htm::reset();
    scripted_htm::always(scripted_htm::conflict);
    EXPECT_TRUE(lock.run_at_most(attempts, [&] { return lock.underlying().is_locked(); }));
    EXPECT_EQ(scripted_htm::begins(), std::max(attempts, 1u));
  }
  scripted_htm::reset({scripted_htm::conflict, scripted_htm::started});
  EXPECT_FALSE(lock.run_at_most(2, [&] { return lock.underlying().is_locked(); }));
  // The policy gives up first: 8 retries after conflicts.
  scripted_htm::reset();
  scripted_htm::always(scripted_htm::conflict);
  lock.run_at_most(100, [] {});
  EXPECT_EQ(scripted_htm::begins(), 9u);
}

TEST_F(Elided, SubscribeJoinsARegionWithoutALevel) {
  scripted<default_retry> outer;
  scripted<default_retry> inner;
  inner.subscribe();  // without a region it does nothing
  EXPECT_EQ(scripted_htm::begins(), 0u);
  outer.run([&] {
    inner.subscribe();
    EXPECT_EQ(scripted_htm::depth(), 1);
  });
  EXPECT_EQ(inner.stats().acquisitions(), 0u);
  // A lock that another thread holds: the region aborts, here at the place of its begin().
  inner.underlying().lock();
  scripted_htm::reset();
  const htm::status begun = scripted_htm::begin();
  EXPECT_TRUE(begun.started());
  inner.subscribe();
  ASSERT_EQ(scripted_htm::abort_codes().size(), 1u);
  EXPECT_EQ(scripted_htm::abort_codes()[0], htm::code_lock_busy);
  EXPECT_EQ(scripted_htm::depth(), 0);
  inner.subscribe();
  EXPECT_EQ(scripted_htm::abort_codes().size(), 1u);
}

TEST_F(Elided, WorksOverAMutex) {
  elided<posix_mutex, default_retry, scripted_htm> lock;
  EXPECT_TRUE(section(lock));
  scripted_htm::always(scripted_htm::conflict);
  lock.lock();
  EXPECT_TRUE(lock.underlying().is_locked());
  lock.unlock();
  EXPECT_FALSE(lock.underlying().is_locked());
}

// --- adaptation

constexpr adaptation_bounds short_bounds{
    .window_fallbacks = 4, .fallback_pct_max = 50, .off_acquisitions = 10};

TEST_F(Elided, AdaptationSwitchesElisionOffWhenItDoesNotPayAndOnAgain) {
  scripted<adaptive<no_retry>> lock({{}, short_bounds});
  scripted_htm::always(scripted_htm::conflict);
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(lock.elision_is_off());
    section(lock);
  }
  EXPECT_TRUE(lock.elision_is_off());
  EXPECT_EQ(lock.stats().off_periods, 1u);

  for (int i = 0; i < 10; ++i) {
    EXPECT_TRUE(lock.elision_is_off());
    section(lock);
  }
  EXPECT_EQ(scripted_htm::begins(), 4u) << "no attempts while it is off";
  EXPECT_FALSE(lock.elision_is_off());

  scripted_htm::always(scripted_htm::started);
  EXPECT_TRUE(section(lock)) << "evaluated again, and now it pays";
  EXPECT_EQ(lock.stats().off_periods, 1u);
}

TEST_F(Elided, AdaptationSwitchesOffAgainIfNothingHasChanged) {
  scripted<adaptive<no_retry>> lock({{}, short_bounds});
  scripted_htm::always(scripted_htm::capacity);
  for (int i = 0; i < 3 * (4 + 10); ++i) section(lock);
  EXPECT_EQ(lock.stats().off_periods, 3u);
  EXPECT_EQ(scripted_htm::begins(), 3u * 4u);
}

TEST_F(Elided, AdaptationLeavesElisionOnWhileEnoughCommits) {
  scripted<adaptive<no_retry>> lock({{}, short_bounds});
  for (int i = 0; i < 1000; ++i) {
    scripted_htm::reset({i % 2 == 0 ? scripted_htm::started : scripted_htm::conflict});
    section(lock);
  }
  EXPECT_EQ(lock.stats().off_periods, 0u) << "exactly the share that is allowed";
  EXPECT_EQ(lock.stats().commits, 500u);
}

TEST_F(Elided, AdaptationJudgesEachWindowByItself) {
  scripted<adaptive<no_retry>> lock({{}, short_bounds});
  for (int i = 0; i < 1000; ++i) section(lock);
  scripted_htm::always(scripted_htm::conflict);
  for (int i = 0; i < 4; ++i) section(lock);
  EXPECT_FALSE(lock.elision_is_off()) << "this window began with a thousand commits";
  for (int i = 0; i < 4; ++i) section(lock);
  EXPECT_TRUE(lock.elision_is_off());
}

TEST_F(Elided, AdaptationIgnoresFallbacksThatNoAbortCaused) {
  scripted<adaptive<no_retry>> lock({{}, short_bounds});
  scripted_htm::switch_off();
  for (int i = 0; i < 100; ++i) section(lock);
  EXPECT_EQ(lock.stats().off_periods, 0u);
}

TEST_F(Elided, TryLockAdaptsLikeLock) {
  scripted<adaptive<no_retry>> lock({{}, short_bounds});
  scripted_htm::always(scripted_htm::conflict);
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(lock.try_lock());
    lock.unlock();
  }
  EXPECT_TRUE(lock.elision_is_off());
  ASSERT_TRUE(lock.try_lock());
  EXPECT_TRUE(lock.underlying().is_locked());
  lock.unlock();
  EXPECT_EQ(scripted_htm::begins(), 4u);
}

TEST_F(Elided, WithoutAdaptationElisionIsNeverOff) {
  scripted<no_retry> lock;
  scripted_htm::always(scripted_htm::conflict);
  for (int i = 0; i < 1000; ++i) section(lock);
  EXPECT_FALSE(lock.elision_is_off());
  EXPECT_EQ(lock.stats().off_periods, 0u);
  EXPECT_EQ(scripted_htm::begins(), 1000u);
}

// --- on the machine at hand

TEST(ElidedNative, EveryAcquisitionIsCounted) {
  elided<ttas_lock> lock;
  for (int i = 0; i < 1000; ++i) {
    lock.lock();
    lock.unlock();
  }
  EXPECT_EQ(lock.stats().acquisitions(), 1000u);
  if (!htm::capability().rtm_commits) {
    EXPECT_EQ(lock.stats().fallbacks, 1000u) << "an elided lock says that it takes its fallback";
    EXPECT_EQ(lock.stats().attempts(), 0u);
  }
}

class ElidedOnHardware : public testing::Test {
 protected:
  void SetUp() override {
    if (!htm::capability().rtm_commits)
      GTEST_SKIP() << "no hardware transactions: " << htm::capability().reason;
  }
};

TEST_F(ElidedOnHardware, UncontendedSectionsMostlyCommit) {
  elided<ttas_lock> lock;
  std::vector<int> table(64);
  for (int i = 0; i < 100'000; ++i) {
    const std::lock_guard guard(lock);
    ++table[static_cast<std::size_t>(i) % table.size()];
  }
  EXPECT_EQ(lock.stats().acquisitions(), 100'000u);
  EXPECT_GT(lock.stats().commits, 50'000u);
}

TEST_F(ElidedOnHardware, TryLockInsideItsOwnSectionSaysFalse) {
  elided<ttas_lock> lock;
  lock.lock();
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
  EXPECT_FALSE(lock.underlying().is_locked());
}

TEST_F(ElidedOnHardware, ManyLevelsOfNestingStillWork) {
  std::vector<elided<ttas_lock>> locks(20);  // deeper than the hardware nests
  int value = 0;
  for (auto& lock : locks) lock.lock();
  ++value;
  for (auto& lock : locks) lock.unlock();
  EXPECT_EQ(value, 1);
  for (auto& lock : locks) EXPECT_FALSE(lock.underlying().is_locked());
  EXPECT_FALSE(htm::test());
}

TEST_F(ElidedOnHardware, AThreadThatHoldsTheLockKeepsRegionsOut) {
  elided<ttas_lock> lock;
  int value = 0;
  lock.underlying().lock();
  std::thread other([&] { lock.run([&] { ++value; }); });
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(value, 0);
  lock.underlying().unlock();
  other.join();
  EXPECT_EQ(value, 1);
}

// --- the numbers themselves

TEST(LockCounts, AddSubtractAndPrint) {
  lock_counts counts;
  counts.commits = 9;
  counts.fallbacks = 1;
  counts.aborts[static_cast<std::size_t>(abort_cause::conflict)] = 2;
  counts.aborts[static_cast<std::size_t>(abort_cause::capacity)] = 1;
  EXPECT_EQ((counts + counts).attempts(), 24u);
  EXPECT_EQ(counts + counts - counts, counts);
  std::ostringstream out;
  out << counts;
  EXPECT_EQ(out.str(),
            "attempts 12, commits 9, aborts 3 (conflict 2, capacity 1), fallbacks 1 (10.0 %), off "
            "periods 0");
  std::ostringstream empty;
  empty << lock_counts{};
  EXPECT_EQ(empty.str(), "attempts 0, commits 0, aborts 0, fallbacks 0 (0.0 %), off periods 0");
}

TEST(LockCounters, NothingIsLostWithMoreThreadsThanShards) {
  lock_counters counters;
  constexpr int each = 2000;
  constexpr int thread_count = static_cast<int>(lock_counters::owned_shards) + 12;
  std::vector<std::thread> threads;
  threads.reserve(thread_count);
  std::atomic<int> arrived{0};
  for (int t = 0; t < thread_count; ++t) {
    threads.emplace_back([&] {
      counters.prepare_this_thread();
      ++arrived;
      // all slots are in use at the same time
      while (arrived.load() < thread_count) std::this_thread::yield();
      for (int i = 0; i < each; ++i) {
        counters.count_commit();
        counters.count_abort(abort_cause::conflict);
      }
      counters.count_fallback();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const lock_counts counts = counters.read();
  EXPECT_EQ(counts.commits, std::uint64_t{each} * thread_count);
  EXPECT_EQ(counts.aborts_by(abort_cause::conflict), std::uint64_t{each} * thread_count);
  EXPECT_EQ(counts.fallbacks, std::uint64_t{thread_count});
}

}  // namespace
}  // namespace elidex
