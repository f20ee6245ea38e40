// elidex bench --workload tpcc, as a user runs it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/elidex_tool.hpp"

namespace {

using elidex::testing::elidex_tool;
using elidex::testing::outcome;
using testing::HasSubstr;

TEST_F(elidex_tool, tpcc_refuses_what_it_cannot_do) {
  const std::string tpcc = "bench --workload tpcc ";
  refused(tpcc + "--warehouses 0", "--warehouses: invalid value '0'");
  refused(tpcc + "--warehouses 65536", "--warehouses: invalid value '65536'");
  refused(tpcc + "--warehouses 1,1", "--warehouses: '1' is given twice");
  refused(tpcc + "--warehouses 60000", "--warehouses: 60000 of them",
          "MB are free (expected at most");
  refused(tpcc + "--index tbb", "--index: invalid value 'tbb'",
          "a database that 'elidex list' prints");
  refused(tpcc + "--readers fast", "--readers: invalid value 'fast'", "snapshots or transactions");
  refused(tpcc + "--durability fast", "--durability: invalid value 'fast'", "none, async or sync");
  refused(tpcc + "--durability sync --folder /nowhere",
          "--folder: cannot make a directory in '/nowhere'");
  refused(tpcc + "--items 14", "--items: invalid value '14'");
  refused(tpcc + "--customers 3001", "--customers: invalid value '3001'");
  refused(tpcc + "--threads 0", "--threads: invalid value '0'");
  refused(tpcc + "--seconds 0", "--seconds: invalid value '0'");
  for (const char* const foreign :
       {"--keys 5", "--dist zipf:0.5", "--key-type u64", "--scan-length 5", "--order ascending"}) {
    refused(tpcc + foreign, std::string(foreign).substr(0, std::string(foreign).find(' ')),
            "--workload tpcc");
  }
  refused("bench --workload a,tpcc", "--workload: 'a,tpcc'", "tpcc alone");
  refused("bench --index db/silo", "--index: 'db/silo'", "--workload tpcc");
  for (const char* const own : {"--warehouses 2", "--readers snapshots", "--customers 30",
                                "--items 100", "--durability sync"}) {
    refused(std::string("bench --workload a ") + own,
            std::string(own).substr(0, std::string(own).find(' ')), "--workload tpcc");
  }
}

TEST_F(elidex_tool, tpcc_gives_what_the_contract_says) {
  const outcome got =
      run("bench --workload tpcc --index db/occ,db/silo,db/dbx,db/2pl --warehouses 1,2 --threads 1 "
          "--customers 30 "
          "--items 100 "
          "--seconds 0.05 --repeat 2 --seed 7 --json -");
  ASSERT_EQ(got.status, 0) << got.err;
  const auto document = nlohmann::json::parse(got.out);
  EXPECT_EQ(document["schema"], 1);
  ASSERT_EQ(document["runs"].size(), 8U);
  for (const auto& one : document["runs"]) {
    EXPECT_EQ(one["workload"], "tpcc");
    EXPECT_EQ(one["threads"], 1);
    EXPECT_EQ(one["seed"], 7);
    EXPECT_GT(one["mops"], 0);
    EXPECT_LE(one["mops_min"], one["mops"]);
    EXPECT_GE(one["mops_max"], one["mops"]);
    EXPECT_LE(one["ns_p50"], one["ns_p99"]);
    EXPECT_LE(one["ns_p99"], one["ns_p999"]);
    for (const char* const name : {"conflict", "capacity", "explicit", "interrupt", "other"}) {
      EXPECT_TRUE(one["aborts"].contains(name)) << name;
    }
    for (const char* const name :
         {"aborts_per_op", "fallback_pct", "wasted_pct", "bytes_per_key", "dist", "index"}) {
      EXPECT_TRUE(one.contains(name)) << name;
    }
    ASSERT_EQ(one["by_type"].size(), 5U);
    double sum = 0;
    for (const auto& kind : one["by_type"]) sum += kind["mops"].get<double>();
    EXPECT_NEAR(sum, one["mops"].get<double>(), 1e-9);
    EXPECT_EQ(one["violations"].size(), 0U);
    EXPECT_EQ(one["raw_mops"].size(), 2U);
  }
  EXPECT_EQ(document["runs"][0]["ratio_to_first"], 1);
  EXPECT_EQ(document["runs"][0]["warehouses"], 1);
  EXPECT_EQ(document["runs"][7]["warehouses"], 2);
  EXPECT_EQ(document["runs"][7]["index"], "db/2pl");
}

TEST_F(elidex_tool, tpcc_runs_all_databases_unless_told) {
  const outcome got =
      run("bench --workload tpcc --customers 30 --items 100 --seconds 0.02 --repeat 1 --readers "
          "transactions");
  EXPECT_EQ(got.status, 0) << got.err;
  for (const char* const name :
       {"db/occ", "db/silo", "db/dbx", "db/2pl", "new-order", "stock-level", "conflicts %"}) {
    EXPECT_THAT(got.out, HasSubstr(name));
  }
  const outcome list = run("list");
  for (const char* const name : {"db/occ", "db/silo", "db/dbx", "db/2pl", "tpcc"})
    EXPECT_THAT(list.out, HasSubstr(name));
}

}  // namespace
