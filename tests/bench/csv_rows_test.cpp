// All cells of a CSV file.

#include "cli/csv/csv_rows.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using elidex::cli::csv_cells;
using elidex::cli::read_csv_rows;
using testing::ElementsAre;
using testing::Pair;

std::vector<std::pair<std::uint64_t, csv_cells>> rows_of(const std::string& text) {
  std::vector<std::pair<std::uint64_t, csv_cells>> rows;
  std::istringstream in(text);
  read_csv_rows(
      in, [&](std::uint64_t line, const csv_cells& cells) { rows.emplace_back(line, cells); });
  return rows;
}

std::string error_of(const std::string& text) {
  try {
    rows_of(text);
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "none";
}

TEST(csv_rows, TellsEmptyFromMissing) {
  EXPECT_THAT(rows_of("a,,\"\"\n"), ElementsAre(Pair(1, csv_cells{"a", std::nullopt, ""})));
  EXPECT_THAT(rows_of("x\n, y \n"),
              ElementsAre(Pair(1, csv_cells{"x"}), Pair(2, csv_cells{std::nullopt, " y "})));
}

TEST(csv_rows, NumbersTheLineInWhichARowBegins) {
  EXPECT_THAT(
      rows_of("\xEF\xBB\xBF"
              "a\r\n\"b\nc\"\n\n\nd"),
      ElementsAre(Pair(1, csv_cells{"a"}), Pair(2, csv_cells{"b\nc"}), Pair(6, csv_cells{"d"})));
}

TEST(csv_rows, ReadsCellsOfAllSizes) {
  for (const std::size_t bytes : {65'534U, 65'535U, 65'536U, 65'537U, 200'000U}) {
    const std::string cell(bytes, 'x');
    EXPECT_THAT(rows_of(cell + ",\"" + cell + "\"\n1,2\n"),
                ElementsAre(Pair(1, csv_cells{cell, cell}), Pair(2, csv_cells{"1", "2"})));
  }
}

TEST(csv_rows, RefusesMisplacedQuotes) {
  EXPECT_EQ(error_of("a\nb\"c\n"),
            "line 2: a quote inside a cell that does not begin with a quote");
  EXPECT_EQ(error_of("a\n\"b\"c\n"), "line 2: text behind a closing quote");
  EXPECT_EQ(error_of("a\n\"b\nc\nd"), "line 2: a quote is not closed");
  EXPECT_EQ(error_of("\"" + std::string(std::size_t{65} << 20, 'x')),
            "line 1: a row of more than 64 MiB (is a quote not closed?)");
}

TEST(csv_rows, LetsErrorsOfTheVisitorThrough) {
  std::istringstream in("a\nb\n");
  int calls = 0;
  EXPECT_THROW(read_csv_rows(in,
                             [&](std::uint64_t, const csv_cells&) {
                               ++calls;
                               throw std::out_of_range("stop");
                             }),
               std::out_of_range);
  EXPECT_EQ(calls, 1);
}

}  // namespace
