// elidex db bench as a user runs it: all stores and works once, the shape of its JSON, and what it
// refuses.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "bench/stores/store.hpp"
#include "bench/stores/works.hpp"
#include "support/elidex_tool.hpp"

namespace {

using elidex::testing::outcome;
using nlohmann::json;
using testing::HasSubstr;
namespace stores = elidex::bench::stores;

const std::string brief = "db bench --rows 200 --seconds 0.01 --repeat 1 --recovery-commits 20 ";

std::string built_peers() {
  std::string names;
  for (const stores::store_info& one : stores::stores()) {
    if (one.name == stores::own_store || !one.not_built.empty()) continue;
    names += (names.empty() ? "" : ",") + std::string(one.name);
  }
  return names;
}

class store_bench : public elidex::testing::elidex_tool {};

TEST_F(store_bench, RunsAllWorksOnAllStores) {
  std::filesystem::create_directory(path("stores"));
  const outcome got = run(brief + "--commit-threads 1,8 --dir stores --json -");
  ASSERT_EQ(got.status, 0) << got.err;
  EXPECT_THAT(got.err, testing::Not(HasSubstr("WRONG")));
  EXPECT_TRUE(std::filesystem::is_empty(path("stores")));
  const json document = json::parse(got.out);
  EXPECT_EQ(document["schema"], 1);
  EXPECT_TRUE(document["machine"].contains("cpu"));
  EXPECT_TRUE(document["load_average"].contains("start"));
  EXPECT_GT(document["disk"]["fsync_ns"], 0);
  EXPECT_TRUE(document["disk"]["file_system"].is_string());
  ASSERT_EQ(document["disk"]["group_commit"].size(), 2u);
  EXPECT_EQ(document["disk"]["group_commit"][1]["threads"], 8);
  EXPECT_GT(document["disk"]["group_commit"][1]["mops"], 0);

  std::size_t built = 0;
  for (const stores::store_info& one : stores::stores()) built += one.not_built.empty() ? 1u : 0u;
  std::map<std::string, std::size_t> runs_of;  // by work
  for (const json& run : document["runs"]) {
    SCOPED_TRACE(run.dump());
    ++runs_of[run["workload"]];
    EXPECT_GE(run["mops"], 0);
    EXPECT_EQ(run["rows"], 200);
    EXPECT_EQ(run["value_bytes"], 100);
    EXPECT_EQ(run["raw_mops"].size(), 1u);
    EXPECT_TRUE(run["violations"].empty());
    EXPECT_TRUE(run["durability"] == "sync" || run["durability"] == "async");
    EXPECT_EQ(run["ratio_to_best_peer"].is_null(), built == 1);
  }
  for (const stores::work_info& one : stores::works()) {
    const bool opens =
        one.kind == stores::work_kind::reopen || one.kind == stores::work_kind::recovery;
    const std::size_t threads = one.kind == stores::work_kind::commits ? 2 : 1;
    EXPECT_EQ(runs_of[std::string(one.name)], opens ? 0 : 2 * built * threads) << one.name;
  }

  EXPECT_EQ(document["openings"].size(), 2 * 2 * built);
  for (const json& one : document["openings"]) {
    SCOPED_TRACE(one.dump());
    EXPECT_GT(one["ns"], 0);
    EXPECT_TRUE(one["violations"].empty());
    if (one["work"] != "recovery") continue;
    EXPECT_GE(one["acknowledged"], 20);
    if (one["durability"] != "sync") continue;
    EXPECT_EQ(one["lost"], 0);
  }
  EXPECT_EQ(document["stores"].size(), 2 * built);
  for (const json& one : document["stores"]) {
    EXPECT_GT(one["bytes_on_disk"], 200 * 100) << one.dump();
    EXPECT_TRUE(one["survives"].is_string() && one["configuration"].is_string());
  }
}

TEST_F(store_bench, PrintsTables) {
  const outcome got = run(brief + "--work recovery,load --durability sync --value-bytes 16");
  ASSERT_EQ(got.status, 0) << got.err;
  EXPECT_THAT(got.out, HasSubstr("200 rows of 16 bytes"));
  EXPECT_THAT(got.out, HasSubstr("durability sync"));
  EXPECT_THAT(got.out, HasSubstr("level sync"));
  EXPECT_LT(got.out.find("load"), got.out.find("recovery"));
  EXPECT_THAT(got.out, testing::Not(HasSubstr("commits")));
}

TEST_F(store_bench, RunsInMemory) {
  const outcome got = run(brief + "--durability none --work reads,reopen,recovery --json -");
  ASSERT_EQ(got.status, 0) << got.err;
  const json document = json::parse(got.out);
  ASSERT_EQ(document["runs"].size(), 1u);
  EXPECT_EQ(document["runs"][0]["index"], "elidex");
  EXPECT_TRUE(document["runs"][0]["ratio_to_best_peer"].is_null());
  EXPECT_TRUE(document["openings"].empty());
}

TEST_F(store_bench, ComparesWithThePeersThatAreAskedFor) {
  const std::string names = built_peers();
  if (names.empty()) GTEST_SKIP() << "no peer is built";
  const std::string first = names.substr(0, names.find(','));
  const outcome got =
      run(brief + "--work reads --durability sync --against " + first + " --json -");
  ASSERT_EQ(got.status, 0) << got.err;
  const json document = json::parse(got.out);
  ASSERT_EQ(document["runs"].size(), 2u);
  EXPECT_EQ(document["runs"][1]["index"], first);
}

TEST_F(store_bench, RefusesWhatItCannotDo) {
  refused("db bench --against sqlit", "--against: invalid value 'sqlit'", "Did you mean 'sqlite'?");
  refused("db bench --against elidex", "--against: invalid value 'elidex'");
  refused("db bench --work redas", "--work: invalid value 'redas'", "Did you mean 'reads'?");
  refused("db bench --rows 0", "--rows: ");
  refused("db bench --rows 1G --value-bytes 64K", "--rows: ");
  refused("db bench --value-bytes 15", "--value-bytes: ");
  refused("db bench --threads 0", "--threads: ");
  refused("db bench --rows 10 --commit-threads 8,64", "--commit-threads: ");
  refused("db bench --durability full", "--durability: ");
  refused("db bench --seconds 0", "--seconds: ");
  refused("db bench --repeat 0", "--repeat: ");
  refused("db bench --rows-per-commit 0", "--rows-per-commit: ");
  refused("db bench --recovery-commits 0", "--recovery-commits: ");
  refused("db bench --against sqlite,sqlite", "--against: ");
  file("a-file", "text");
  refused("db bench --work reads --rows 10 --dir a-file", "--dir: ", "expected a directory");
  refused("db bench --work reads --rows 10 --dir nothing", "--dir: ", "expected a directory");
  refused("db bench --json .", "--json: ");
  for (const stores::store_info& one : stores::stores()) {
    if (one.not_built.empty()) continue;
    refused("db bench --against " + std::string(one.name),
            "--against: '" + std::string(one.name) + "' is not built: ");
  }
}

// The program itself starts this command.
TEST_F(store_bench, HelpDoesNotNameTheKilledWriter) {
  EXPECT_THAT(run("db --help").out, testing::Not(HasSubstr("killed-writer")));
  EXPECT_THAT(run("db nothing").err, testing::Not(HasSubstr("killed-writer")));
  EXPECT_THAT(run("db --help").out, HasSubstr("bench"));
}

}  // namespace
