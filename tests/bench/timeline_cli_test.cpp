// What `elidex sim` says of a run's course: the timeline that --trace writes for Perfetto and
// chrome://tracing, and the table of where the cores' time went.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "support/elidex_tool.hpp"

#if defined(ELIDEX_HAS_SIM)

namespace {

using elidex::testing::elidex_tool;
using nlohmann::json;
using testing::HasSubstr;
using testing::MatchesRegex;

// Many aborts, of several causes.
constexpr const char* collapse =
    "sim --index btree/htm-dbx --dist zipf:0.99 --keys 1000 --cores 12 --ops 100 "
    "--set timer_period_cycles=50000 ";

class timeline : public elidex_tool {
 protected:
  timeline() {
    EXPECT_EQ(run(std::string(collapse) + "--trace t.json --json r.json").status, 0);
    trace_ = json::parse(text_of(path("t.json")));
    run_ = json::parse(text_of(path("r.json"))).at("runs").at(0);
  }
  std::vector<json> of_phase(const std::string& phase) const {
    std::vector<json> found;
    for (const json& e : trace_.at("traceEvents")) {
      if (e.at("ph") == phase) found.push_back(e);
    }
    return found;
  }

  json trace_;
  json run_;
};

bool is_abort(const json& bar) {
  return bar.at("name").get<std::string>().starts_with("abort: ");
}

TEST_F(timeline, names_the_process_and_each_track) {
  std::map<int, std::string> names;
  std::set<int> sorted;
  std::string process;
  for (const json& e : of_phase("M")) {
    if (e.at("name") == "process_name") process = e.at("args").at("name");
    if (e.at("name") == "thread_name") names[e.at("tid")] = e.at("args").at("name");
    if (e.at("name") == "thread_sort_index") sorted.insert(e.at("tid").get<int>());
  }
  EXPECT_EQ(process, "btree/htm-dbx, a, zipf:0.99 on haswell-ep-2x10");
  EXPECT_EQ(names.size(), 12U);
  EXPECT_EQ(sorted.size(), 12U);
  EXPECT_EQ(names[0], "thread 0 (socket 0, core 0)");
  EXPECT_EQ(names[11], "thread 11 (socket 1, core 13)");
  for (const json& bar : of_phase("X")) EXPECT_TRUE(names.contains(bar.at("tid").get<int>()));
}

// Complete events (X) carry their duration, so none can be left open.
TEST_F(timeline, has_a_bar_for_each_transaction_and_no_two_at_once_on_a_track) {
  const auto bars = of_phase("X");
  EXPECT_EQ(bars.size(), run_.at("perf").at("tx-start").get<std::size_t>());
  EXPECT_EQ(bars.size() + of_phase("M").size(), trace_.at("traceEvents").size());
  std::map<int, double> end_of_last;
  for (const json& bar : bars) {
    EXPECT_EQ(bar.at("pid"), 1);
    EXPECT_GE(bar.at("dur").get<double>(), 0);
    double& last = end_of_last[bar.at("tid").get<int>()];
    EXPECT_GE(bar.at("ts").get<double>(), last);
    last = bar.at("ts").get<double>() + bar.at("dur").get<double>();
  }
}

TEST_F(timeline, each_abort_says_who_caused_it_where_and_what_it_cost) {
  std::map<std::string, std::uint64_t> causes;
  std::map<std::string, std::uint64_t> conflicts;
  std::uint64_t wasted = 0;
  for (const json& bar : of_phase("X")) {
    ASSERT_EQ(bar.contains("args"), is_abort(bar)) << bar;
    if (!is_abort(bar)) continue;
    const json& args = bar.at("args");
    const std::string cause = args.at("cause");
    EXPECT_EQ(bar.at("name"), "abort: " + cause);
    ++causes[cause];
    wasted += args.at("wasted_cycles").get<std::uint64_t>();
    EXPECT_EQ(args.contains("code"), cause == "explicit");
    if (cause != "conflict") {
      EXPECT_EQ(args.at("by_thread"), bar.at("tid")) << "a core of its own has nobody else on it";
      continue;
    }
    EXPECT_NE(args.at("by_thread"), bar.at("tid"));
    EXPECT_LT(args.at("by_thread").get<int>(), 12);
    EXPECT_THAT(args.at("access").get<std::string>(), MatchesRegex("read|write"));
    EXPECT_THAT(args.at("shared").get<std::string>(), MatchesRegex("the same (bytes|line)"));
    EXPECT_THAT(args.at("address").get<std::string>(), MatchesRegex("0x[0-9a-f]*[048c]0"));
    EXPECT_TRUE(args.at("line").is_number_unsigned());
    ++conflicts[args.at("where").get<std::string>()];
  }
  // The same as the run's figures say.
  for (const auto& [reason, count] : run_.at("aborts_by_reason").items()) {
    EXPECT_EQ(causes[reason], count.get<std::uint64_t>()) << reason;
  }
  for (const json& c : run_.at("conflicts")) {
    const std::uint64_t same_bytes = c.at("true_sharing");
    const std::uint64_t same_line = c.at("false_sharing");
    EXPECT_EQ(conflicts[c.at("where").get<std::string>()], same_bytes + same_line);
  }
  EXPECT_NEAR(100.0 * static_cast<double>(wasted) / run_.at("perf").at("cycles").get<double>(),
              run_.at("wasted_pct").get<double>(), 1e-6);
  EXPECT_GT(causes["conflict"], 100U);
  EXPECT_GT(causes["interrupt"], 0U);
}

TEST_F(timeline, is_the_same_each_time_and_changes_nothing) {
  const std::string longer(100, 'n');
  ASSERT_EQ(run(std::string(collapse) + "--trace " + longer + " --json again.json").status, 0);
  EXPECT_EQ(text_of(path(longer)), text_of(path("t.json")));
  ASSERT_EQ(run(std::string(collapse) + "--json without.json").status, 0);
  for (const char* const other : {"again.json", "without.json"}) {
    EXPECT_EQ(json::parse(text_of(path(other))).at("runs").at(0), run_);
  }
}

// The table's rows of one run are disjoint parts of the time that its cores have taken together.
TEST_F(elidex_tool, shares_of_the_cores_time_sum_to_a_hundred) {
  for (const char* const index : {"btree/htm-dbx", "euno-btree", "ordered_map"}) {
    SCOPED_TRACE(index);
    const std::string flags = "sim --dist zipf:0.99 --keys 1000 --cores 16 --ops 100 --index ";
    const auto got = run(flags + index);
    ASSERT_EQ(got.status, 0) << got.err;
    const std::size_t table = got.out.find("where the cores' time went");
    ASSERT_NE(table, std::string::npos) << got.out;
    EXPECT_THAT(got.out.substr(table), HasSubstr("own caches, computing, waiting"));
    // The share follows the place's name: "leaf, line 3", "12 other lines" or the rest's.
    static const std::regex row(R"((?:line [0-9]+|other lines|waiting) +([0-9.]+)(?: |\n))");
    const std::string rows = got.out.substr(table);
    double sum = 0;
    int found = 0;
    std::smatch share;
    for (std::string left = rows; std::regex_search(left, share, row); left = share.suffix()) {
      sum += std::stod(share[1]);
      ++found;
    }
    EXPECT_GE(found, 7) << rows;
    EXPECT_NEAR(sum, 100, 0.05 * found) << rows;
  }
}

}  // namespace

#endif  // ELIDEX_HAS_SIM
