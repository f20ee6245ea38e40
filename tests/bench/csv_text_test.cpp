// Records as CSV.

#include "cli/csv/csv_text.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace {

using elidex::cli::csv_text;
using nlohmann::ordered_json;

TEST(csv_text, has_a_column_for_each_field_and_dots_in_nested_names) {
  const auto records = ordered_json::parse(
      R"([{"index": "tbb", "mops": 1.5, "aborts": {"conflict": 3}, "raw": [1, 2]},
          {"index": "x", "mops": 2, "fallback": true}])");
  EXPECT_EQ(csv_text(records),
            "index,mops,aborts.conflict,raw.0,raw.1,fallback\n"
            "tbb,1.5,3,1,2,\n"
            "x,2,,,,true");
}

TEST(csv_text, quotes_what_would_end_a_cell) {
  const auto records =
      ordered_json::parse(R"([{"a,b": "one, two", "c": "say \"x\"", "d": "1\n2"}])");
  EXPECT_EQ(csv_text(records), "\"a,b\",c,d\n\"one, two\",\"say \"\"x\"\"\",\"1\n2\"");
}

TEST(csv_text, quotes_a_cell_only_where_it_must) {
  EXPECT_EQ(elidex::cli::csv_cell("plain text"), "plain text");
  EXPECT_EQ(elidex::cli::csv_cell("a,b"), "\"a,b\"");
  EXPECT_EQ(elidex::cli::csv_cell("\""), "\"\"\"\"");
  EXPECT_EQ(elidex::cli::csv_cell(""), "");
}

TEST(csv_text, leaves_empty_what_is_empty) {
  EXPECT_EQ(csv_text(ordered_json::array()), "");
  EXPECT_EQ(csv_text(ordered_json::parse(R"([{"a": null, "b": [], "c": ""}])")), "a,b,c\n,,");
}

}  // namespace
