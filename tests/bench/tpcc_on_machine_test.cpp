// TPC-C on the simulated machine, through the program that repro asks: each database runs, commits
// by regions where it should, and breaks no condition; equal requests give equal answers.

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

class tpcc_on_machine : public asks_worker {
 protected:
  tpcc_on_machine()
      : asks_worker({{"index", "db/dbx-locking:htm-btree"},
                     {"workload", "tpcc"},
                     {"dist", "nurand"},
                     {"keys", 0},
                     {"threads", 4},
                     {"operations", 40},
                     {"seed", 1},
                     {"machine_file", ELIDEX_MACHINES "/haswell-ep-2x10.machine"},
                     {"set", json::object()},
                     {"warehouses", 2},
                     {"customers", 30},
                     {"items", 100}}) {}
};

TEST_F(tpcc_on_machine, every_database_keeps_the_conditions) {
  for (const char* const name :
       {"db/dbx-locking:htm-btree", "db/dbx-locking:euno-btree",
        "db/dbx-locking:euno-btree/leaf-lock", "db/dbx-locking:euno-btree+", "db/dbx:htm-btree",
        "db/dbx:euno-btree", "db/dbx:euno-btree+", "db/silo:masstree", "db/silo", "db/occ"}) {
    SCOPED_TRACE(name);
    for (const char* const readers : {"snapshots", "transactions"}) {
      const outcome got = ask({{"index", name}, {"readers", readers}, {"leaf_version", "head"}});
      ASSERT_EQ(got.status, 0) << got.said;
      const json& run = got.answer;
      EXPECT_TRUE(run.at("violations").empty());
      EXPECT_EQ(run.at("index"), name);
      EXPECT_EQ(run.at("requests"), 160);
      EXPECT_EQ(run.at("warehouses"), 2);
      EXPECT_EQ(run.at("customers"), 30);
      EXPECT_EQ(run.at("items"), 100);
      EXPECT_EQ(run.at("readers"), readers);
      EXPECT_GT(run.at("tps").get<double>(), 0);
      std::uint64_t sum = 0;
      for (const auto& kind : run.at("by_type"))
        sum += kind.at("transactions").get<std::uint64_t>();
      EXPECT_EQ(sum, 160U);
      const bool by_regions =
          std::string(name).find("dbx") != std::string::npos || name == std::string("db/occ");
      EXPECT_EQ(run.at("commit_regions").at("commits").get<int>() > 0, by_regions);
    }
  }
}

TEST_F(tpcc_on_machine, equal_requests_give_equal_answers) {
  const outcome first = ask({{"index", "db/dbx-locking:euno-btree"}});
  const outcome again = ask({{"index", "db/dbx-locking:euno-btree"}});
  const outcome other = ask({{"index", "db/dbx-locking:euno-btree"}, {"seed", 2}});
  ASSERT_EQ(first.status, 0) << first.said;
  EXPECT_EQ(first.answer, again.answer);
  EXPECT_NE(first.answer.at("cycles"), other.answer.at("cycles"));
}

TEST_F(tpcc_on_machine, keeps_the_conditions_by_other_rules) {
  const json rules = {{"index", "db/dbx-locking:htm-btree"},
                      {"suppliers", "home"},
                      {"order_numbers", "terminal"},
                      {"deliveries", "district"},
                      {"warehouses", 1}};
  json usual = rules;
  usual["order_numbers"] = "district";
  const outcome got = ask(rules);
  ASSERT_EQ(got.status, 0) << got.said;
  EXPECT_EQ(got.answer.at("order_numbers"), "terminal");
  EXPECT_EQ(got.answer.at("suppliers"), "home");
  EXPECT_EQ(got.answer.at("deliveries"), "district");
  const outcome beside = ask(usual);
  ASSERT_EQ(beside.status, 0) << beside.said;
  EXPECT_NE(got.answer.at("cycles"), beside.answer.at("cycles"));
}

// Its name is read before the run, into memory that must not reach it. With 20 threads, because
// glibc has eight arenas a CPU.
TEST_F(tpcc_on_machine, where_the_machine_file_lies_makes_no_difference) {
  std::string from_afar = ELIDEX_MACHINES;
  for (int i = 0; i < 40; ++i) from_afar += "/.";
  const json run = {{"index", "db/silo"}, {"threads", 20}, {"operations", 10}, {"warehouses", 1}};
  json elsewhere = run;
  elsewhere["machine_file"] = from_afar + "/haswell-ep-2x10.machine";
  const outcome first = ask(run);
  const outcome second = ask(elsewhere);
  ASSERT_EQ(first.status, 0) << first.said;
  EXPECT_GT(first.answer.at("rolled_back"), 0);  // it throws
  EXPECT_EQ(first.answer, second.answer);
}

TEST_F(tpcc_on_machine, refuses_what_it_cannot_run) {
  const auto refused = [&](const json& more, const char* says) {
    const outcome got = ask(more);
    EXPECT_EQ(got.status, 2);
    EXPECT_THAT(got.said, ::testing::HasSubstr(says));
  };
  refused({{"index", "db/tbb"}}, "--index: 'db/tbb'");
  refused({{"threads", 41}}, "--cores");
  refused({{"items", 3}}, "15 items");
}

}  // namespace

#endif  // ELIDEX_HAS_SIM
