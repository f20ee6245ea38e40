// elidex column as a user runs it: what it answers, what it refuses, and what JSON comes out. All
// that the reader refuses: csv_column_test.cpp.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "bench/runner/machine.hpp"
#include "support/elidex_tool.hpp"

namespace {

using elidex::testing::outcome;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

class column_command : public elidex::testing::elidex_tool {
 protected:
  column_command() {
    file("towns.csv",
         "id,town,height\n"
         "1,Oslo,23\n"
         "2,Paris,35.5\n"
         "3,\"Frankfurt, Oder\",\n"
         "4,Oslo,-2\n"
         "5,Paris,35.5\n"
         "6,Oslo,nan\n");
  }

  nlohmann::json json(const std::string& arguments) const {
    const outcome got = run(arguments + " --json -");
    EXPECT_EQ(got.status, 0) << got.err;
    return nlohmann::json::parse(got.out, nullptr, false);
  }
};

TEST_F(column_command, load_prints_schema_1_and_nothing_else) {
  const auto document = json("column load towns.csv --column town");
  EXPECT_EQ(document.at("schema"), 1);
  EXPECT_TRUE(document.at("commit").is_string());
  EXPECT_TRUE(document.at("machine").at("cpu").is_string());
  EXPECT_TRUE(document.at("machine").at("allocator").is_string());
  ASSERT_EQ(document.at("columns").size(), 1U);
  const auto& column = document.at("columns").at(0);
  EXPECT_EQ(column.at("file"), "towns.csv");
  EXPECT_EQ(column.at("column"), "town");
  EXPECT_EQ(column.at("type"), "string");
  EXPECT_EQ(column.at("rows"), 6);
  EXPECT_EQ(column.at("distinct"), 3);
  EXPECT_EQ(column.at("skipped"), 0);
  EXPECT_EQ(column.at("threads"), 1);
  EXPECT_EQ(column.at("id_bits"), 2);
  EXPECT_EQ(column.at("vector_bytes_per_row"), 32);
  for (const char* field :
       {"read_mb_s", "insert_mrows_s", "merge_s", "delta_bytes_per_row", "main_bytes_per_row"}) {
    EXPECT_GT(column.at(field), 0) << field;
  }
}

TEST_F(column_command, load_prints_a_table) {
  const outcome got = run("column load towns.csv --column town --json out.json");
  EXPECT_EQ(got.status, 0);
  EXPECT_EQ(got.err, "");
  EXPECT_THAT(got.out, StartsWith("towns.csv, column 'town'\n"));
  EXPECT_THAT(got.out,
              AllOf(HasSubstr("50.00"), HasSubstr("MB/s"), HasSubstr("M rows/s, 1 thread\n"),
                    HasSubstr("main, after it"), HasSubstr("std::vector")));
  EXPECT_EQ(got.out.find('\r'), std::string::npos) << "a progress bar in a pipe";
  EXPECT_EQ(nlohmann::json::parse(text_of(path("out.json"))).at("schema"), 1);
}

TEST_F(column_command, load_takes_the_type_that_is_asked_for) {
  const auto type_of = [&](const std::string& flags) {
    return json("column load towns.csv --column " + flags)
        .at("columns")
        .at(0)
        .at("type")
        .get<std::string>();
  };
  EXPECT_EQ(type_of("id"), "int");
  EXPECT_EQ(type_of("id --type double"), "double");
  EXPECT_EQ(type_of("id --type string"), "string");
  EXPECT_EQ(type_of("height"), "string");  // one cell is empty
  EXPECT_EQ(type_of("height --skip-bad --type double"), "double");
}

TEST_F(column_command, load_repeats_the_rows_with_several_threads) {
  const std::string threads =
      std::to_string(std::min<std::size_t>(2, elidex::bench::allowed_cpus().size()));
  const auto column = json("column load towns.csv --column town --rows 100K --threads " + threads)
                          .at("columns")
                          .at(0);
  EXPECT_EQ(column.at("rows"), 100'000);
  EXPECT_EQ(column.at("distinct"), 3);
  EXPECT_EQ(std::to_string(column.at("threads").get<int>()), threads);
  EXPECT_LT(column.at("main_bytes_per_row"), 1);
  EXPECT_LT(column.at("main_bytes_per_row"), column.at("delta_bytes_per_row"));
  EXPECT_EQ(json("column load towns.csv --column town --rows 4").at("columns").at(0).at("distinct"),
            3);
  EXPECT_EQ(json("column load towns.csv --column town --rows 2").at("columns").at(0).at("rows"), 2);
  EXPECT_THAT(run("column load towns.csv --column town --rows 100K").out,
              HasSubstr("its 6 rows repeated"));
}

TEST_F(column_command, a_vector_counts_what_strings_have_outside) {
  const auto bytes = [&](const std::string& text) {
    file("text.csv", "text\n" + text);
    return json("column load text.csv --column text")
        .at("columns")
        .at(0)
        .at("vector_bytes_per_row")
        .get<double>();
  };
  EXPECT_EQ(bytes(std::string(15, 'x') + "\n"), 32);
  EXPECT_EQ(bytes(std::string(16, 'x') + "\n"), 32 + 17);
  EXPECT_EQ(bytes(std::string(16, 'x') + "\nx\n"), 32 + 8.5);
}

TEST_F(column_command, loads_a_file_without_rows) {
  file("header.csv", "a,b\n");
  const auto column = json("column load header.csv --column b").at("columns").at(0);
  EXPECT_EQ(column.at("rows"), 0);
  EXPECT_EQ(column.at("main_bytes_per_row"), 0);
  refused("column load header.csv --column b --rows 10", "--rows: '10'", "has no row to repeat");
  EXPECT_EQ(run("column load header.csv --column b").status, 0);
  EXPECT_EQ(json("column query header.csv --column b --find x --top 3").at("queries").size(), 2U);
}

TEST_F(column_command, leaves_bad_rows_out_and_says_so) {
  const std::string bad =
      "towns.csv: line 4 (row 3): column 'height': an empty cell is not of type double";
  refused("column load towns.csv --column height --type double", bad, "--skip-bad");
  refused("column query towns.csv --column height --type double --distinct", bad, "--skip-bad");

  const outcome got =
      run("column query towns.csv --column height --type double --skip-bad --find -2 --json -");
  EXPECT_EQ(got.status, 0);
  EXPECT_EQ(got.err,
            "note: 1 row of towns.csv left out\n"
            "  line 4 (row 3): column 'height': an empty cell is not of type double\n");
  const auto document = nlohmann::json::parse(got.out);
  EXPECT_EQ(document.at("columns").at(0).at("skipped"), 1);
  EXPECT_EQ(document.at("columns").at(0).at("rows"), 5);
  EXPECT_THAT(document.at("queries").at(0).at("rows"), ElementsAre(4)) << "as the file counts them";

  std::string text = "n\n\n1\n";
  for (int i = 0; i < 7; ++i) text += "x\n";
  file("words.csv", text);
  const outcome many = run("column load words.csv --column n --type int --skip-bad");
  EXPECT_THAT(
      many.err,
      AllOf(StartsWith(
                "note: words.csv has 1 blank line, which is no row\nnote: 7 rows of words.csv"),
            HasSubstr("line 8 (row 6): column 'n': 'x' is not of type int\n  and 2 more\n")));
}

TEST_F(column_command, answers_queries) {
  const outcome got =
      run("column query towns.csv --column town --find Oslo --range A P --count Oslo Paris "
          "--distinct --top 2 --limit 2");
  EXPECT_EQ(got.status, 0) << got.err;
  EXPECT_EQ(got.err, "");
  EXPECT_THAT(got.out,
              StartsWith("towns.csv, column 'town': 6 rows of type string\nfind 'Oslo': 3 rows, "));
  EXPECT_THAT(got.out, HasSubstr(" ms\n  1, 4, and 1 more (--limit)\nrange 'A' to 'P': 4 rows, "));
  EXPECT_THAT(got.out,
              HasSubstr(" ms\n  1, 3, and 2 more (--limit)\ncount 'Oslo' to 'Paris': 5 rows, "));
  EXPECT_THAT(got.out, HasSubstr(" ms\ndistinct: 3 values, "));
  EXPECT_THAT(got.out, HasSubstr(" ms\ntop 2: 2 values, "));
  EXPECT_THAT(got.out, HasSubstr(" ms\n  rows  value\n     3  'Oslo'\n     2  'Paris'\n"));
}

TEST_F(column_command, queries_print_schema_1_and_nothing_else) {
  const auto document = json(
      "column query towns.csv --column id --find 3 --range 2 4 --count -5 5 --distinct --top 9 "
      "--limit 2");
  EXPECT_EQ(document.at("schema"), 1);
  EXPECT_EQ(document.at("columns").at(0).at("type"), "int");
  const auto& queries = document.at("queries");
  ASSERT_EQ(queries.size(), 5U);
  for (const auto& query : queries) EXPECT_GE(query.at("seconds"), 0);
  EXPECT_EQ(queries[0].at("query"), "find");
  EXPECT_EQ(queries[0].at("value"), 3);
  EXPECT_THAT(queries[0].at("rows"), ElementsAre(3));
  EXPECT_EQ(queries[1].at("query"), "range");
  EXPECT_EQ(queries[1].at("lowest"), 2);
  EXPECT_EQ(queries[1].at("highest"), 4);
  EXPECT_EQ(queries[1].at("count"), 3);
  EXPECT_THAT(queries[1].at("rows"), ElementsAre(2, 3));
  EXPECT_EQ(queries[2].at("query"), "count");
  EXPECT_EQ(queries[2].at("count"), 5);
  EXPECT_EQ(queries[3].at("query"), "distinct");
  EXPECT_EQ(queries[3].at("count"), 6);
  EXPECT_EQ(queries[4].at("query"), "top");
  ASSERT_EQ(queries[4].at("values").size(), 6U);
  EXPECT_EQ(queries[4].at("values").at(0).at("value"), 1);
  EXPECT_EQ(queries[4].at("values").at(0).at("rows"), 1);
}

// Against the same questions asked of plain rows.
TEST_F(column_command, answers_as_plain_rows_would) {
  std::string text = "n\n";
  std::map<int, std::vector<int>> rows;
  for (int row = 1; row <= 30'000; ++row) {
    const int n = (row * 7919) % 1013 - 500;
    text += std::to_string(n) + "\n";
    rows[n].push_back(row);
  }
  file("numbers.csv", text);
  const auto queries = json(
                           "column query numbers.csv --column n --find -7 --range -3 4 --count "
                           "-100 250 --distinct --top 3 --limit 1M")
                           .at("queries");
  EXPECT_EQ(queries[0].at("rows").get<std::vector<int>>(), rows[-7]);
  std::vector<int> in_range;
  std::size_t count = 0;
  for (const auto& [n, those] : rows) {
    if (n >= -3 && n <= 4) in_range.insert(in_range.end(), those.begin(), those.end());
    if (n >= -100 && n <= 250) count += those.size();
  }
  std::sort(in_range.begin(), in_range.end());
  EXPECT_EQ(queries[1].at("rows").get<std::vector<int>>(), in_range);
  EXPECT_EQ(queries[2].at("count"), count);
  EXPECT_EQ(queries[3].at("count"), rows.size());
  std::vector<std::pair<std::size_t, int>> frequent;
  for (const auto& [n, those] : rows) frequent.emplace_back(those.size(), -n);
  std::sort(frequent.rbegin(), frequent.rend());
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(queries[4].at("values").at(i).at("rows"), frequent[i].first);
    EXPECT_EQ(queries[4].at("values").at(i).at("value"), -frequent[i].second);
  }
}

TEST_F(column_command, values_with_characters_of_their_own_come_through) {
  file("odd.csv", "v\n\"[a,b]\"\n\"\"\n--top\n\"two\nlines\"\n\xC3\x85\n");
  const auto row_of = [&](const std::string& value) {
    return json("column query odd.csv --column v --find " + value).at("queries").at(0).at("rows");
  };
  EXPECT_THAT(row_of("'[a,b]'"), ElementsAre(1));
  EXPECT_THAT(row_of("''"), ElementsAre(2));
  EXPECT_THAT(row_of("--top"), ElementsAre(3));
  EXPECT_THAT(row_of("\"$(printf 'two\\nlines')\""), ElementsAre(4));
  EXPECT_THAT(row_of("\xC3\x85"), ElementsAre(5));
  EXPECT_EQ(row_of("'\xFF'").size(), 0U);
  EXPECT_THAT(run("column query odd.csv --column v --top 9").out, HasSubstr("'two lines'\n"));
}

TEST_F(column_command, json_has_no_numbers_for_infinities) {
  file("inf.csv", "v\ninf\n1.5\n");
  const auto values =
      json("column query inf.csv --column v --top 2").at("queries").at(0).at("values");
  EXPECT_EQ(values.at(0).at("value"), 1.5);
  EXPECT_EQ(values.at(1).at("value"), "inf");
}

TEST_F(column_command, refuses_what_it_cannot_do) {
  refused("column", "a command is missing", "load, query");
  refused("column save", "'save' is not a command", "load, query");
  refused("column load", "FILE", "elidex column load --help");
  refused("column load towns.csv", "--column", "elidex column load --help");
  refused("column load towns.csv --column town --frobnicate", "", "--frobnicate");
  refused("column load missing.csv --column town", "FILE: missing.csv does not exist");
  refused("column load . --column town", "FILE: . is a directory");
  refused("column load towns.csv --column city", "--column: 'city' is not a column of towns.csv",
          "expected id, town, height");
  refused("column load towns.csv --column town --type text", "--type: invalid value 'text'",
          "auto, int, double or string");
  refused("column load towns.csv --column town --type int",
          "towns.csv: line 2 (row 1): column 'town': 'Oslo' is not of type int", "--skip-bad");
  for (const char* rows : {"0", "-1", "1.5", "5G", "x"}) {
    refused(std::string("column load towns.csv --column town --rows ") + rows,
            "--rows: invalid value '" + std::string(rows) + "'");
  }
  for (const std::string& threads : {std::string("0"), std::string("x"),
                                     std::to_string(elidex::bench::allowed_cpus().size() + 1)}) {
    refused("column load towns.csv --column town --threads " + threads,
            "--threads: invalid value '" + threads + "'");
  }
  refused("column load towns.csv --column town --json no/such/x.json", "--json",
          "cannot be written");

  refused("column query towns.csv --column town", "a query is missing", "expected --find V");
  refused("column query towns.csv --column id --find x", "--find: invalid value 'x'",
          "expected a whole number of 64 bits: the column is of type int");
  refused("column query towns.csv --column id --find 1.0", "--find: invalid value '1.0'",
          "expected a whole number of 64 bits: the column is of type int");
  refused("column query towns.csv --column id --type double --count 0 y",
          "--count: invalid value 'y'", "expected a number: the column is of type double");
  refused("column query towns.csv --column id --range 5 -5", "--range: '5' is above '-5'",
          "expected the lowest value");
  // NaN comes behind all numbers.
  file("nan.csv", "v\n1\nnan\n2\n");
  refused("column query nan.csv --column v --range nan 5", "--range: 'nan' is above '5'",
          "expected the lowest value");
  refused("column query towns.csv --column town --range b a", "--range: 'b' is above 'a'",
          "expected the lowest value");
  refused("column query towns.csv --column id --range 5",
          "--range: 1 value given (expected LO HI)\n");
  refused("column query towns.csv --column id --find 1 --find 2",
          "--find: 2 values given (expected V)\n");
  refused("column query towns.csv --column id --top 0", "--top: invalid value '0'");
  refused("column query towns.csv --column id --distinct --limit x", "--limit: invalid value 'x'");
}

TEST_F(column_command, refuses_files_without_end) {
  refused("column load /dev/zero --column a", "FILE: /dev/zero is a device");
  piped_refused("yes | tr '\\n' ,", "column load /dev/stdin --column y",
                "/dev/stdin: line 1 (header): a row of more than", "64 MiB");
  piped_refused("cat /dev/zero", "column load /dev/stdin --column y",
                "/dev/stdin: line 1 (header): a cell of more than", "16 MiB");
}

TEST_F(column_command, takes_a_pipe) {
  EXPECT_THAT(
      run_after("sort towns.csv -r |", "column query /dev/stdin --column town --distinct").out,
      HasSubstr("distinct: 3 values"));
}

TEST_F(column_command, names_the_nearest_column) {
  refused("column load towns.csv --column twon", "--column: 'twon' is not a column of towns.csv",
          "(expected id, town, height) Did you mean 'town'?\n");
}

TEST_F(column_command, a_refused_file_leaves_the_json_file_alone) {
  file("kept.json", "precious");
  refused("column load towns.csv --column height --type int --json kept.json",
          "towns.csv: line 3 (row 2)", "'35.5' is not of type int");
  refused("column query towns.csv --column id --find x --json kept.json", "--find");
  EXPECT_EQ(text_of(path("kept.json")), "precious");
}

TEST_F(column_command, explains_itself) {
  EXPECT_THAT(run("column --help").out, AllOf(HasSubstr("load"), HasSubstr("query")));
  EXPECT_THAT(run("column load --help").out,
              AllOf(HasSubstr("--skip-bad"), HasSubstr("bytes/row is")));
  EXPECT_THAT(run("column query --help").out,
              AllOf(HasSubstr("--top"), HasSubstr("Row numbers begin at 1")));
}

}  // namespace
