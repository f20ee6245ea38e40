// txbench on the simulated machine, through the program that repro asks: each kind of latches runs
// and leaves right rows, regions are counted where latches are elided, think time is idle; equal
// requests give equal answers.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "support/asks_worker.hpp"

#if defined(ELIDEX_HAS_SIM)

namespace {

using elidex::testing::asks_worker;
using nlohmann::json;

class txbench_on_machine : public asks_worker {
 protected:
  txbench_on_machine()
      : asks_worker({{"index", "db/2pl:hle"},
                     {"workload", "txbench"},
                     {"dist", "uniform"},
                     {"keys", 0},
                     {"threads", 4},
                     {"operations", 40},
                     {"seed", 1},
                     {"machine_file", ELIDEX_MACHINES "/haswell-i5-4670t.machine"},
                     {"set", json::object()},
                     {"rows", 600},
                     {"think_cycles", 0}}) {}
};

TEST_F(txbench_on_machine, every_kind_of_latches_leaves_right_rows) {
  for (const char* const name :
       {"unmodified", "hle", "retried", "pthread", "lock-mutex", "transaction-latches", "sharded",
        "lock-mutex-tas-t", "transaction-latches-tas-t"}) {
    SCOPED_TRACE(name);
    const outcome got = ask({{"index", std::string("db/2pl:") + name}});
    ASSERT_EQ(got.status, 0) << got.said;
    const json& run = got.answer;
    EXPECT_TRUE(run.at("violations").empty());
    EXPECT_EQ(run.at("requests"), 160);
    EXPECT_EQ(run.at("keys"), 600);
    EXPECT_EQ(run.at("rows"), 600);
    std::uint64_t sum = 0;
    for (const auto& kind : run.at("by_type")) sum += kind.at("transactions").get<std::uint64_t>();
    EXPECT_EQ(sum, 160U);
    EXPECT_GT(run.at("locks").at("requests").get<int>(), 0);
    const bool elides = std::string(name) != "unmodified";
    EXPECT_EQ(run.at("perf").at("tx-start").get<int>() > 0, elides);
    EXPECT_EQ(run.at("transactional_pct_of_busy").get<double>() > 0, elides);
    EXPECT_EQ(run.at("repeated"), 0);  // rows are taken in the keys' order
  }
}

// What makes low-level HLE abort: the CPU elides one lock at a time, and the lock system holds a
// transaction's latch within its mutex.
TEST_F(txbench_on_machine, two_latches_at_once_are_too_many_for_hle) {
  const auto too_many = [&](const char* name) {
    return ask({{"index", name}}).answer.at("aborts_by_reason").at("elision").get<int>();
  };
  EXPECT_GT(too_many("db/2pl:hle"), 0);
  EXPECT_EQ(too_many("db/2pl:lock-mutex"), 0);
  EXPECT_EQ(too_many("db/2pl:retried"), 0);
}

TEST_F(txbench_on_machine, think_time_is_idle) {
  const outcome busy = ask();
  const outcome half = ask({{"think_cycles", 150'000}});
  ASSERT_EQ(half.status, 0) << half.said;
  EXPECT_GT(busy.answer.at("busy_pct").get<double>(), 85);  // one ends before the others
  EXPECT_LT(half.answer.at("busy_pct").get<double>(), 70);
  EXPECT_LT(half.answer.at("tps").get<double>(), busy.answer.at("tps").get<double>());
  // 160 pauses between 0 and 300,000 cycles.
  EXPECT_NEAR(half.answer.at("idle_cycles").get<double>(), 160 * 150e3, 160 * 40e3);
}

// More clients than hardware threads take turns. Afterwards every row is right.
TEST_F(txbench_on_machine, clients_share_the_cores) {
  for (const char* const name : {"db/2pl:unmodified", "db/2pl:hle", "db/2pl:lock-mutex"}) {
    SCOPED_TRACE(name);
    const outcome got = ask({{"index", name}, {"threads", 64}, {"operations", 10}});
    ASSERT_EQ(got.status, 0) << got.said;
    EXPECT_EQ(got.answer.at("requests"), 640);
    EXPECT_GT(got.answer.at("busy_pct").get<double>(), 50);  // the others sleep for a latch
    EXPECT_LE(got.answer.at("busy_pct").get<double>(), 100);
  }
}

TEST_F(txbench_on_machine, pages_have_latches_of_their_own) {
  const auto starts = [&](const char* name, unsigned pages) {
    return ask({{"index", name}, {"pages", pages}}).answer.at("perf").at("hle_retired.start");
  };
  EXPECT_GT(starts("db/2pl:hle", 1).get<int>(), 2 * starts("db/2pl:hle", 0).get<int>());
  EXPECT_EQ(starts("db/2pl:retried", 1), 0);  // it elides by RTM
}

// The names and numbers of paper 004's table 2.3: aborts by cause are all of them.
TEST_F(txbench_on_machine, counts_retired_transactions_as_perf_does) {
  const json perf = ask({{"threads", 8}}).answer.at("perf");
  const auto n = [&](const char* name) {
    return perf.at(std::string("hle_retired.") + name).get<std::int64_t>();
  };
  EXPECT_GT(n("start"), 0);
  EXPECT_EQ(n("start"), n("commit") + n("aborted"));
  EXPECT_EQ(n("aborted"), n("aborted_misc1") + n("aborted_misc2") + n("aborted_misc3") +
                              n("aborted_misc4") + n("aborted_misc5"));
  EXPECT_GT(n("aborted_misc3"), 0);  // two latches at once
  EXPECT_EQ(perf.at("rtm_retired.start"), 0);
}

TEST_F(txbench_on_machine, equal_requests_give_equal_answers) {
  const outcome first = ask({{"index", "db/2pl:pthread"}});
  const outcome again = ask({{"index", "db/2pl:pthread"}});
  const outcome other = ask({{"index", "db/2pl:pthread"}, {"seed", 2}});
  ASSERT_EQ(first.status, 0) << first.said;
  EXPECT_EQ(first.answer, again.answer);
  EXPECT_NE(first.answer.at("cycles"), other.answer.at("cycles"));
}

TEST_F(txbench_on_machine, refuses_what_it_cannot_run) {
  const auto refused = [&](const json& more, const char* says) {
    const outcome got = ask(more);
    EXPECT_EQ(got.status, 2);
    EXPECT_THAT(got.said, ::testing::HasSubstr(says));
  };
  refused({{"index", "db/silo"}}, "expected one of db/2pl:unmodified, db/2pl:hle");
  refused({{"threads", 257}}, "--cores: expected 1 to 256 clients, not 257");
  refused({{"rows", 300}}, "it takes tables larger");
}

}  // namespace

#endif  // ELIDEX_HAS_SIM
