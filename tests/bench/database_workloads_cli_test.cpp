// elidex bench --workload ycsb-txn and smallbank, as a user runs them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "support/elidex_tool.hpp"

namespace {

using elidex::testing::elidex_tool;
using elidex::testing::outcome;
using testing::HasSubstr;

std::string flag_of(const std::string& text) {
  return text.substr(0, text.find(' '));
}

TEST_F(elidex_tool, ycsb_txn_refuses_what_it_cannot_do) {
  const std::string ycsb = "bench --workload ycsb-txn:a ";
  refused(ycsb + "--ops-per-txn 0", "--ops-per-txn: invalid value '0'", "from 1 to 64");
  refused(ycsb + "--ops-per-txn 65", "--ops-per-txn: invalid value '65'");
  refused(ycsb + "--keys 15", "--keys: invalid value '15'", "from 16 to 1G");
  refused(ycsb + "--keys 1G", "--keys: 1000000000 rows", "MB are free (expected at most");
  refused(ycsb + "--theta 1.3", "--theta: invalid value '1.3'", "a number from 0 to 1.2");
  refused(ycsb + "--theta hot", "--theta: invalid value 'hot'");
  refused(ycsb + "--theta 0.5,0.5", "--theta: '0.5' is given twice");
  refused(ycsb + "--isolation some", "--isolation: invalid value 'some'",
          "serializable, repeatable-read, read-committed or read-uncommitted");
  refused(ycsb + "--index tbb", "--index: invalid value 'tbb'",
          "a database that 'elidex list' prints");
  refused(ycsb + "--durability fast", "--durability: invalid value 'fast'", "none, async or sync");
  for (const char* const foreign :
       {"--dist zipf:0.5", "--warehouses 2", "--customers 5", "--readers snapshots", "--hot 5",
        "--key-type u64", "--scan-length 5"}) {
    refused(ycsb + foreign, flag_of(foreign),
            "cannot be combined with --workload ycsb-txn (expected ");
  }
  refused("bench --workload ycsb-txn:e", "--workload: invalid value 'ycsb-txn:e'",
          "ycsb-txn:a, ycsb-txn:b, ycsb-txn:c or ycsb-txn:f");
  refused("bench --workload ycsb-txn,ycsb-txn:a", "--workload: 'ycsb-txn,ycsb-txn:a'",
          "expected each mix once");
  refused("bench --workload ycsb-txn:a,b", "--workload: 'ycsb-txn:a,b'", "ycsb-txn alone");
  refused("bench --workload tpcc,ycsb-txn:a", "--workload: 'tpcc,ycsb-txn:a'", "ycsb-txn alone");
  refused("bench --workload tpcc:a", "--workload: invalid value 'tpcc:a'");
  refused("bench --workload tpcc --theta 0.5", "--theta: '0.5'", "expected --workload ycsb-txn");
  refused("bench --workload a --ops-per-txn 4", "--ops-per-txn: '4'",
          "expected --workload ycsb-txn");
}

TEST_F(elidex_tool, smallbank_refuses_what_it_cannot_do) {
  const std::string bank = "bench --workload smallbank ";
  refused(bank + "--customers 1", "--customers: invalid value '1'");
  refused(bank + "--customers 1G", "--customers: 1000000000 of them",
          "MB are free (expected at most");
  refused(bank + "--customers 10 --hot 11", "--hot: invalid value '11'", "from 2 to 10");
  refused(bank + "--hot 1", "--hot: invalid value '1'");
  refused(bank + "--hot-percent 101", "--hot-percent: invalid value '101'", "from 0 to 100");
  refused(bank + "--isolation serializable,serializable",
          "--isolation: 'serializable' is given twice");
  refused(bank + "--keys 5", "--keys: '5' cannot be combined with --workload smallbank",
          "expected workloads of keys or --workload ycsb-txn");
  refused(bank + "--theta 0.5", "--theta: '0.5'");
  refused("bench --workload smallbank:nine", "--workload: invalid value 'smallbank:nine'",
          "smallbank or smallbank:h-store");
  refused("bench --workload a --hot 5", "--hot: '5'", "expected --workload smallbank");
}

void expect_the_contract(const nlohmann::json& one) {
  EXPECT_EQ(one["seed"], 7);
  EXPECT_GT(one["mops"], 0);
  EXPECT_LE(one["mops_min"], one["mops"]);
  EXPECT_GE(one["mops_max"], one["mops"]);
  EXPECT_LE(one["ns_p50"], one["ns_p99"]);
  EXPECT_LE(one["ns_p99"], one["ns_p999"]);
  EXPECT_GT(one["bytes_per_key"], 0);
  EXPECT_EQ(one["violations"].size(), 0U);
  EXPECT_EQ(one["missing"], 0);
  double sum = 0;
  for (const auto& kind : one["by_type"]) sum += kind["mops"].get<double>();
  EXPECT_NEAR(sum, one["mops"].get<double>(), 1e-9);
  for (const char* const name :
       {"aborts", "aborts_per_op", "fallback_pct", "wasted_pct", "durability", "rolled_back"})
    EXPECT_TRUE(one.contains(name)) << name;
}

TEST_F(elidex_tool, ycsb_txn_gives_what_the_contract_says) {
  const outcome got = run(
      "bench --workload ycsb-txn:a,ycsb-txn:c --index db/occ,db/silo,db/dbx,db/2pl --keys 1K "
      "--ops-per-txn 4 "
      "--theta 0,0.9 --threads 1,2 --oversubscribe --seconds 0.03 --repeat 1 --seed 7 --json -");
  ASSERT_EQ(got.status, 0) << got.err;
  const auto document = nlohmann::json::parse(got.out);
  EXPECT_EQ(document["schema"], 1);
  ASSERT_EQ(document["runs"].size(), 32U);
  for (const auto& one : document["runs"]) {
    expect_the_contract(one);
    EXPECT_EQ(one["keys"], 1000);
    EXPECT_EQ(one["ops_per_txn"], 4);
    EXPECT_EQ(one["isolation"], "serializable");
    EXPECT_EQ(one["by_type"].size(), 2U);
    const bool reads_only = one["workload"] == "ycsb-txn:c";
    EXPECT_EQ(one["by_type"]["changing"]["transactions"] == 0, reads_only);
  }
  EXPECT_EQ(document["runs"][0]["workload"], "ycsb-txn:a");
  EXPECT_EQ(document["runs"][0]["dist"], "uniform");
  EXPECT_EQ(document["runs"][31]["dist"], "zipf:0.9:scrambled");
  EXPECT_EQ(document["runs"][31]["index"], "db/2pl");
  EXPECT_EQ(document["runs"][31]["threads"], 2);
}

TEST_F(elidex_tool, smallbank_gives_what_the_contract_says) {
  const outcome got =
      run("bench --workload smallbank,smallbank:h-store --index db/occ,db/silo,db/dbx --customers "
          "100 --hot 10 "
          "--isolation serializable,repeatable-read --threads 2 --oversubscribe --seconds 0.03 "
          "--repeat 1 --seed 7 "
          "--json -");
  ASSERT_EQ(got.status, 0) << got.err;
  const auto document = nlohmann::json::parse(got.out);
  ASSERT_EQ(document["runs"].size(), 12U);
  for (const auto& one : document["runs"]) {
    expect_the_contract(one);
    EXPECT_EQ(one["customers"], 100);
    EXPECT_EQ(one["hot"], 10);
    EXPECT_EQ(one["hot_percent"], 90);
    EXPECT_EQ(one["by_type"].size(), one["workload"] == "smallbank" ? 5U : 6U);
  }
  EXPECT_EQ(document["runs"][1]["isolation"], "repeatable-read");
}

TEST_F(elidex_tool, database_workloads_are_told_on_a_terminal_and_listed) {
  const outcome rows = run("bench --workload ycsb-txn --keys 500 --seconds 0.02 --repeat 1");
  EXPECT_EQ(rows.status, 0) << rows.err;
  for (const char* const text :
       {"16 different keys in a transaction, 500 rows", "db/occ", "db/2pl", "db/silo:masstree",
        "serializable", "conflicts %", "lost", "reading", "changing", "0.99"})
    EXPECT_THAT(rows.out, HasSubstr(text));
  const outcome bank =
      run("bench --workload smallbank --customers 50 --index db/2pl --isolation "
          "serializable,read-committed --seconds 0.02 --repeat 1 --durability async --folder .");
  EXPECT_EQ(bank.status, 0) << bank.err;
  for (const char* const text :
       {"SmallBank, 50 customers; 90 % of those drawn are among the first 50", "cents lost",
        "read-committed", "amalgamate", "write-check", "async", "x first"})
    EXPECT_THAT(bank.out, HasSubstr(text));
  const outcome list = run("list");
  for (const char* const name : {"ycsb-txn:a", "ycsb-txn:f", "smallbank:h-store"})
    EXPECT_THAT(list.out, HasSubstr(name));
}

#if defined(ELIDEX_HAS_SIM)

TEST_F(elidex_tool, databases_run_on_the_machine) {
  const outcome tpcc = run(
      "sim --workload tpcc --index db/occ,db/silo --cores 1,2 --ops 20 --customers 30 --items 100 "
      "--json -");
  ASSERT_EQ(tpcc.status, 0) << tpcc.err;
  const auto runs = nlohmann::json::parse(tpcc.out)["runs"];
  ASSERT_EQ(runs.size(), 4U);
  for (const auto& one : runs) {
    EXPECT_EQ(one["warehouses"], one["threads"]);
    EXPECT_GE(one["tps_of_threads"].get<double>(), one["tps"].get<double>() * 0.999);
    EXPECT_EQ(one["requests"], 20 * one["threads"].get<int>());
  }
  const outcome ycsb = run(
      "sim --workload ycsb-txn:a,ycsb-txn:c --index db/silo --cores 2 --ops 20 --keys 1K --theta 0 "
      "--json -");
  ASSERT_EQ(ycsb.status, 0) << ycsb.err;
  const auto two = nlohmann::json::parse(ycsb.out)["runs"];
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[0]["workload"], "ycsb-txn:a");
  EXPECT_EQ(two[0]["dist"], "uniform");
  EXPECT_EQ(two[0]["keys"], 1000);
  EXPECT_GT(two[0]["by_type"]["changing"]["transactions"], 0);
  EXPECT_EQ(two[1]["by_type"]["changing"]["transactions"], 0);
}

TEST_F(elidex_tool, databases_on_the_machine_are_compared_with_fewer_cores) {
  const outcome got =
      run("sim --workload tpcc --cores 1,2 --ops 20 --customers 30 --items 100 --warehouses 2");
  ASSERT_EQ(got.status, 0) << got.err;
  EXPECT_THAT(got.out, HasSubstr("of linear"));
  EXPECT_THAT(got.out, HasSubstr("db/occ"));
}

TEST_F(elidex_tool, sim_refuses_databases_that_it_cannot_run) {
  refused("sim --workload smallbank", "--workload: 'smallbank' is for bench");
  refused("sim --workload tpcc --keys 5", "--keys: '5' cannot be combined with --workload tpcc");
  refused("sim --workload a --warehouses 2", "--warehouses", "--workload tpcc");
  refused("sim --workload tpcc,a", "--workload", "tpcc alone");
  refused("sim --workload tpcc --threads 4 --cores 2", "--threads: 4 on 2 cores");
  refused("sim --workload tpcc --threads 1 --cores 1,2", "--threads: 1 on 2 cores");
  refused("sim --workload tpcc --retries 3", "--retries: has no effect on these databases");
  refused("sim --workload tpcc --leaf-version head", "--leaf-version: has no effect");
  refused("sim --workload tpcc --index db/occ,db/nope", "--index: invalid value 'db/nope'",
          "db/silo");
  refused("sim --workload tpcc --index db/2pl", "--index: invalid value 'db/2pl'");
  refused("sim --workload ycsb-txn:b --index db/2pl", "--index: invalid value 'db/2pl'", "db/occ");
  refused("sim --workload ycsb-txn:d", "--workload: invalid value 'ycsb-txn:d'", "ycsb-txn:a");
  refused("sim --workload ycsb-txn:b --theta 2", "--theta: invalid value '2'");
}

#endif  // ELIDEX_HAS_SIM

}  // namespace
