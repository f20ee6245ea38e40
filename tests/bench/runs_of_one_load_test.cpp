// Runs on the simulated machine that share the load of their index: they give what runs with loads
// of their own give.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "support/asks_worker.hpp"

#if defined(ELIDEX_HAS_SIM)

namespace {

using elidex::testing::asks_worker;
using nlohmann::json;
using testing::HasSubstr;

class runs_of_one_load : public asks_worker {
 protected:
  runs_of_one_load()
      : asks_worker({{"index", "delta/rtm"},
                     {"workload", "insert-mix:5"},
                     {"dist", "uniform"},
                     {"keys", 20'000},
                     {"threads", 4},
                     {"operations", 200},
                     {"seed", 1},
                     {"machine_file", ELIDEX_MACHINES "/haswell-i7-4770.machine"},
                     {"set", json::object()}}) {}
};

TEST_F(runs_of_one_load, give_what_runs_apart_give) {
  for (const char* const index : {"delta/rtm", "delta-tuned/rtm", "btree/rw", "btree/hle"}) {
    SCOPED_TRACE(index);
    const std::vector<json> wanted{
        {{"index", index}},
        {{"index", index}, {"workload", "insert-mix:100"}, {"threads", 8}},
        {{"index", index}, {"workload", "insert-mix:0"}, {"operations", 500}},
        {{"index", index}, {"set", {{"abort_cycles", 300}}}, {"quantum", 50}},
        {{"index", index}, {"threads", 8}, {"cpus", 2}, {"set", {{"read_table_sets", 1}}}},
        {{"index", index}}};
    const outcomes got = ask_several(wanted);
    ASSERT_EQ(got.status, 0) << got.said;
    ASSERT_EQ(got.answers.size(), wanted.size());
    for (std::size_t i = 0; i < wanted.size(); ++i)
      EXPECT_EQ(got.answers[i], ask(wanted[i]).answer);
    EXPECT_NE(got.answers[0].at("cycles"), got.answers[3].at("cycles"));
  }
}

TEST_F(runs_of_one_load, refuse_what_loads_otherwise) {
  for (const json& other :
       {json{{"index", "delta/hle"}}, json{{"keys", 10'000}}, json{{"seed", 2}},
        json{{"retries", 4}}, json{{"set", {{"hle", 0}}}}, json{{"workload", "load"}},
        json{{"machine_file", ELIDEX_MACHINES "/haswell-ep-2x10.machine"}}}) {
    SCOPED_TRACE(other.dump());
    const outcomes got = ask_several({json::object(), other});
    EXPECT_EQ(got.status, 2);
    EXPECT_EQ(got.said, "runs: they do not load alike\n");
    EXPECT_TRUE(got.answers.empty());
  }
  EXPECT_EQ(ask_several({}).status, 2);
  EXPECT_EQ(ask({{"runs", 5}}).status, 2);
  EXPECT_EQ(ask({{"runs", {{"a", 1}}}}).said, "runs: expected a list of requests\n");
  EXPECT_EQ(ask({{"threads", "4"}}).status, 2);
}

TEST_F(runs_of_one_load, refuse_what_is_no_whole_number) {
  const auto said = [](const char* name, const char* most, const char* value) {
    return std::string(name) + ": expected a whole number of at most " + most + ", not " + value +
           "\n";
  };
  const char* const most32 = "4294967295";
  const char* const most64 = "18446744073709551615";
  EXPECT_EQ(ask({{"threads", -4}}).said, said("threads", most32, "-4"));
  EXPECT_EQ(ask({{"threads", 4'294'967'300}}).said, said("threads", most32, "4294967300"));
  EXPECT_EQ(ask({{"threads", 2.5}}).said, said("threads", most32, "2.5"));
  EXPECT_EQ(ask({{"keys", -1}}).said, said("keys", most64, "-1"));
  EXPECT_EQ(ask({{"cpus", "2"}}).said, said("cpus", most32, "\"2\""));
  EXPECT_EQ(ask({{"set", {{"abort_cycles", -5}}}}).said, said("abort_cycles", most64, "-5"));
}

TEST_F(runs_of_one_load, tell_which_failed) {
  const outcomes got =
      ask_several({json::object(), {{"threads", 9}}, {{"workload", "insert-mix:0"}}});
  ASSERT_EQ(got.status, 0) << got.said;
  ASSERT_EQ(got.answers.size(), 3U);
  EXPECT_GT(got.answers[0].at("mops").get<double>(), 0);
  EXPECT_EQ(got.answers[1].at("status"), 2);
  EXPECT_THAT(got.answers[1].at("failed").get<std::string>(), HasSubstr("8 hardware threads"));
  EXPECT_GT(got.answers[2].at("mops").get<double>(), 0);
}

}  // namespace

#endif  // ELIDEX_HAS_SIM
