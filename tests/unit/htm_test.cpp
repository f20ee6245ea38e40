#include "elidex/htm.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace elidex::htm {

namespace {

constexpr status with(std::uint32_t bits) {
  return {bits};
}

TEST(HtmStatus, StartedIsNoAbort) {
  constexpr status entry = with(status::started_word);
  EXPECT_TRUE(entry.started());
  EXPECT_FALSE(entry.is_explicit());
  EXPECT_FALSE(entry.may_retry());
  EXPECT_FALSE(entry.is_conflict());
  EXPECT_FALSE(entry.is_capacity());
  EXPECT_FALSE(entry.is_debug());
  EXPECT_FALSE(entry.is_nested());
  EXPECT_EQ(entry.code(), 0);
}

// The numbers are Intel's, written out here once more on purpose.
TEST(HtmStatus, DecodesIntelsWord) {
  EXPECT_TRUE(with(0x01).is_explicit());
  EXPECT_TRUE(with(0x02).may_retry());
  EXPECT_TRUE(with(0x04).is_conflict());
  EXPECT_TRUE(with(0x08).is_capacity());
  EXPECT_TRUE(with(0x10).is_debug());
  EXPECT_TRUE(with(0x20).is_nested());
  EXPECT_EQ(with(0xab000001).code(), 0xab);
  EXPECT_EQ(with(0xab000004).code(), 0) << "a code without the explicit bit means nothing";
  EXPECT_EQ(status::of_abort(0x5a).word, 0x5a000001u);
  EXPECT_TRUE(with(0xff000001).is_lock_busy());
  EXPECT_FALSE(with(0xfe000001).is_lock_busy());
}

TEST(HtmStatus, EachAbortHasOneCause) {
  EXPECT_EQ(with(0).cause(), abort_cause::interrupt);
  EXPECT_EQ(with(0x20).cause(), abort_cause::interrupt) << "nested, and no reason given";
  EXPECT_EQ(with(0x01).cause(), abort_cause::explicit_);
  EXPECT_EQ(with(0x04).cause(), abort_cause::conflict);
  EXPECT_EQ(with(0x06).cause(), abort_cause::conflict);
  EXPECT_EQ(with(0x08).cause(), abort_cause::capacity);
  EXPECT_EQ(with(0x0c).cause(), abort_cause::capacity) << "what a retry doesn't cure wins";
  EXPECT_EQ(with(0x0d).cause(), abort_cause::explicit_);
  EXPECT_EQ(with(0x02).cause(), abort_cause::other);
  EXPECT_EQ(with(0x10).cause(), abort_cause::other);
}

TEST(HtmStatus, CausesHaveTheNamesOfTheJson) {
  EXPECT_STREQ(to_string(abort_cause::conflict), "conflict");
  EXPECT_STREQ(to_string(abort_cause::capacity), "capacity");
  EXPECT_STREQ(to_string(abort_cause::explicit_), "explicit");
  EXPECT_STREQ(to_string(abort_cause::interrupt), "interrupt");
  EXPECT_STREQ(to_string(abort_cause::other), "other");
}

TEST(HtmCapability, GivesAReasonAndAgreesWithEnabled) {
  const htm_capability& found = capability();
  EXPECT_FALSE(std::string(found.reason).empty());
  EXPECT_EQ(found.rtm_commits, enabled());
  if (found.rtm_commits) {
    EXPECT_TRUE(found.rtm_advertised);
    EXPECT_FALSE(found.rtm_always_aborts);
  }
}

TEST(HtmCapability, StaysTheSameOnTheSameMachine) {
  const htm_capability& first = capability();
  EXPECT_EQ(&first, &capability());
  EXPECT_EQ(&first, &retest());
  EXPECT_EQ(first.rtm_commits, enabled());
}

TEST(HtmCapability, ManyThreadsMayAskAndRetestAtOnce) {
  const htm_capability* const expected = &capability();
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 200; ++i) {
        const htm_capability* const seen = t == 0 ? &retest() : &capability();
        if (seen != expected || enabled() != expected->rtm_commits || test()) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

// On any machine: neither may fault or have an effect outside a region.
TEST(HtmOutsideARegion, TestIsFalseAndAbortDoesNothing) {
  EXPECT_FALSE(test());
  EXPECT_EQ(abort<44>(), status::of_abort(44));
  EXPECT_FALSE(test());
}

TEST(Hle, PrefixedExchangeAndStoreWorkEverywhere) {
  std::atomic<std::uint32_t> word{0};
  EXPECT_EQ(hle_exchange_acquire(word, 1), 0u);
  // No look at the word in between: the CPU that elides shows it held, but only by the region's
  // courtesy.
  hle_store_release(word, 0);
  EXPECT_EQ(word.load(), 0u);
  word.store(1);
  EXPECT_EQ(hle_exchange_acquire(word, 1), 1u) << "a held lock is found held";
  word.store(0);
}

// From here on with hardware only. Attempts are repeated, because any region may meet an interrupt.
class HtmOnHardware : public testing::Test {
 protected:
  void SetUp() override {
    if (!capability().rtm_commits)
      GTEST_SKIP() << "no hardware transactions: " << capability().reason;
  }
  static constexpr int attempts_max = 1000;
};

TEST_F(HtmOnHardware, ARegionCommits) {
  std::atomic<int> value{0};
  bool inside = false;
  for (int i = 0; i < attempts_max && value.load() == 0; ++i) {
    const status entry = begin();
    if (entry.started()) {
      inside = test();
      value.store(1);
      commit();
    }
  }
  EXPECT_EQ(value.load(), 1);
  EXPECT_TRUE(inside);
  EXPECT_FALSE(test());
}

TEST_F(HtmOnHardware, AnAbortRollsBackAndNamesItsCode) {
  std::atomic<int> value{0};
  status entry{};
  for (int i = 0; i < attempts_max; ++i) {
    entry = begin();
    if (entry.started()) {
      value.store(1);
      abort<42>();
    }
    if (entry.is_explicit()) break;
  }
  EXPECT_TRUE(entry.is_explicit());
  EXPECT_EQ(entry.code(), 42);
  EXPECT_EQ(value.load(), 0);
}

TEST_F(HtmOnHardware, AnAbortInsideAnInnerRegionEndsTheOuterOne) {
  std::atomic<int> value{0};
  status entry{};
  for (int i = 0; i < attempts_max; ++i) {
    entry = begin();
    if (entry.started()) {
      value.store(1);
      if (begin().started()) abort<43>();
      commit();
    }
    if (entry.is_explicit()) break;
  }
  EXPECT_EQ(entry.code(), 43);
  EXPECT_EQ(value.load(), 0);
}

}  // namespace
}  // namespace elidex::htm
