// One column of a CSV file: what is taken, what is refused and with which words.
#include "cli/csv/csv_column.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <sstream>

#include "bench/support/bad_input.hpp"

namespace {

namespace fs = std::filesystem;
using elidex::cli::csv_column;
using elidex::cli::csv_options;
using elidex::cli::csv_strings;
using elidex::cli::csv_type;
using elidex::cli::read_csv_column;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr const char* hint = " (--skip-bad leaves such rows out)";

csv_column read(const std::string& text, const std::string& column,
                csv_type type = csv_type::automatic, bool skip_bad = false) {
  std::istringstream in(text);
  csv_options options;
  options.type = type;
  options.skip_bad = skip_bad;
  return read_csv_column(in, "t.csv", column, options);
}

std::vector<std::string> strings(const csv_column& column) {
  std::vector<std::string> all;
  const auto& values = std::get<csv_strings>(column.values);
  for (std::size_t i = 0; i < values.size(); ++i) all.emplace_back(values[i]);
  return all;
}

std::vector<std::string> read_strings(const std::string& text, const std::string& column = "b") {
  return strings(read(text, column, csv_type::text));
}

template <class T>
std::vector<T> numbers(const csv_column& column) {
  return std::get<std::vector<T>>(column.values);
}

std::string refusal(const std::string& text, const std::string& column = "b",
                    csv_type type = csv_type::text, bool skip_bad = false) {
  try {
    (void)read(text, column, type, skip_bad);
  } catch (const elidex::bench::bad_input& error) {
    return error.what();
  }
  return "taken";
}

TEST(csv_column, takes_the_column_that_is_named) {
  const std::string text = "a,b,c\n1,x,2.5\n2,y,3\n";
  EXPECT_THAT(read_strings(text), ElementsAre("x", "y"));
  EXPECT_THAT(numbers<std::int64_t>(read(text, "a")), ElementsAre(1, 2));
  EXPECT_THAT(numbers<double>(read(text, "c")), ElementsAre(2.5, 3));
  EXPECT_EQ(read(text, "a").rows(), 2U);
  EXPECT_EQ(read(text, "a").bytes, text.size());
}

TEST(csv_column, lines_end_in_three_ways_and_the_last_one_need_not) {
  for (const char* text : {"a,b\n1,x\n2,y\n", "a,b\r\n1,x\r\n2,y\r\n", "a,b\r1,x\r2,y\r",
                           "a,b\n1,x\n2,y", "a,b\r\n1,x\r\n2,y", "a,b\r\n1,x\n2,y\r"}) {
    const csv_column got = read(text, "b");
    EXPECT_THAT(strings(got), ElementsAre("x", "y")) << text;
    EXPECT_EQ(got.blank_lines, 0U) << text;
  }
}

TEST(csv_column, quotes_hold_commas_line_breaks_and_quotes) {
  EXPECT_THAT(read_strings("a,\"b\"\n1,\"x, y\"\n2,\"one\ntwo\r\nthree\"\n3,\"say "
                           "\"\"so\"\"\"\n4,\"\"\n5,\"\"\"\"\n"),
              ElementsAre("x, y", "one\ntwo\r\nthree", "say \"so\"", "", "\""));
  EXPECT_THAT(read_strings("a,\"b, \"\"too\"\"\"\n1,x\n", "b, \"too\""), ElementsAre("x"));
}

TEST(csv_column, blanks_belong_to_their_cell) {
  EXPECT_THAT(read_strings("a,b\n1, x \n2,\t\n3,\" y \"\n"), ElementsAre(" x ", "\t", " y "));
  EXPECT_EQ(refusal("a, b\n1,x\n"),
            "--column: 'b' is not a column of t.csv (expected a,  b) Did you mean ' b'?");
}

TEST(csv_column, a_byte_order_mark_is_no_part_of_the_first_name) {
  EXPECT_THAT(read_strings("\xEF\xBB\xBF"
                           "b,a\nx,1\n"),
              ElementsAre("x"));
  EXPECT_THAT(read_strings("\xEF\xBB\xBF\"b\",a\nx,1\n"), ElementsAre("x"));
}

TEST(csv_column, a_blank_line_is_no_row) {
  const csv_column got = read("\n\nb\nx\n\n\r\n\"\"\n\r\r\ny\n\n", "b");
  EXPECT_THAT(strings(got), ElementsAre("x", "", "y"));
  EXPECT_EQ(got.blank_lines, 7U);
}

TEST(csv_column, decides_the_type_by_all_cells) {
  EXPECT_EQ(read("b\n1\n-2\n", "b").type_name(), "int");
  EXPECT_EQ(read("b\n1\n2.0\n", "b").type_name(), "double");
  EXPECT_EQ(read("b\n1\n1e19\n", "b").type_name(), "double");
  EXPECT_EQ(read("b\nnan\n-inf\n1e300\n", "b").type_name(), "double");
  EXPECT_EQ(read("b\n1\n2.0\nx\n", "b").type_name(), "string");
  EXPECT_EQ(read("b\n1\n\"\"\n", "b").type_name(), "string");
  EXPECT_EQ(read("b\n1\n 2\n", "b").type_name(), "string");
  EXPECT_EQ(read("b\n", "b").type_name(), "string");
  EXPECT_THAT(strings(read("b\n007\nx\n", "b")), ElementsAre("007", "x"));
}

TEST(csv_column, decides_for_strings_where_numbers_would_lose_digits) {
  for (const std::string cell :
       {"02134", "-007", "00.5", "9223372036854775808", "-99999999999999999999"}) {
    EXPECT_THAT(strings(read("b\n1\n" + cell + "\n", "b")), ElementsAre("1", cell));
  }
  for (const std::string cell : {"0", "-1", "9223372036854775807", "-9223372036854775808"}) {
    EXPECT_EQ(read("b\n1\n" + cell + "\n", "b").type_name(), "int") << cell;
  }
  for (const std::string cell : {"0.5", "-0.25", "1e30", "0e1"}) {
    EXPECT_EQ(read("b\n1\n" + cell + "\n", "b").type_name(), "double") << cell;
  }
}

TEST(csv_column, takes_numbers_from_the_least_to_the_greatest) {
  EXPECT_THAT(numbers<std::int64_t>(read("b\n-9223372036854775808\n9223372036854775807\n", "b")),
              ElementsAre(std::numeric_limits<std::int64_t>::min(),
                          std::numeric_limits<std::int64_t>::max()));
  const auto got = numbers<double>(
      read("b\n1.7976931348623157e308\n5e-324\n.5\n-0\nnan\n", "b", csv_type::real));
  EXPECT_THAT(std::vector<double>(got.begin(), got.end() - 1),
              ElementsAre(std::numeric_limits<double>::max(),
                          std::numeric_limits<double>::denorm_min(), 0.5, 0));
  EXPECT_TRUE(std::isnan(got.back()));
  EXPECT_THAT(read("b\n", "b", csv_type::integer).rows(), 0U);
}

TEST(csv_column, takes_utf8_and_nul_bytes) {
  const std::string nul("b\nx\0y\n", 6);
  EXPECT_THAT(read_strings(nul), ElementsAre(std::string("x\0y", 3)));
  EXPECT_THAT(read_strings("b\n\xC3\x85rhus\n\xF0\x9F\x8D\x90\n"),
              ElementsAre("\xC3\x85rhus", "\xF0\x9F\x8D\x90"));
  EXPECT_THAT(read_strings("a,b\n\xFF,x\n"), ElementsAre("x")) << "another column's cell";
}

TEST(csv_column, refuses_files_that_are_no_good) {
  const fs::path directory = testing::TempDir() + "elidex_csv_" + std::to_string(getpid());
  fs::create_directories(directory);
  const auto refused = [&](const std::string& name) -> std::string {
    try {
      (void)read_csv_column(directory / name, "b", {});
    } catch (const elidex::bench::bad_input& error) {
      return error.what();
    }
    return "taken";
  };
  const std::string takes = " (expected a CSV file or a pipe whose first row names the columns)";
  EXPECT_EQ(refused("missing.csv"),
            "FILE: " + (directory / "missing.csv").string() + " does not exist" + takes);
  EXPECT_EQ(refused("."), "FILE: " + (directory / ".").string() + " is a directory" + takes);
  std::ofstream(directory / "empty.csv").close();
  EXPECT_EQ(refused("empty.csv"),
            "FILE: " + (directory / "empty.csv").string() + " is empty" + takes);
  std::ofstream(directory / "good.csv") << "b\n1\n";
  EXPECT_EQ(refused("good.csv"), "taken");
  if (geteuid() != 0) {
    fs::permissions(directory / "good.csv", fs::perms::none);
    EXPECT_EQ(refused("good.csv"), "FILE: " + (directory / "good.csv").string() +
                                       " cannot be read (Permission denied)" + takes);
  }
  fs::remove_all(directory);

  EXPECT_EQ(refusal(""), "FILE: t.csv is empty" + takes);
  EXPECT_EQ(refusal("\n\r\n"), "FILE: t.csv has no header" + takes);
  EXPECT_EQ(refusal("\xEF\xBB\xBF"), "FILE: t.csv has no header" + takes);
}

TEST(csv_column, keeps_no_more_than_its_limit) {
  const auto refused = [](const std::string& text, csv_options options) -> std::string {
    options.piece_bytes = 4;
    std::istringstream in(text);
    try {
      (void)read_csv_column(in, "t.csv", "b", options);
    } catch (const elidex::bench::bad_input& error) {
      return error.what();
    }
    return "taken";
  };
  const std::string more =
      "FILE: t.csv has more rows than fit into memory: 0 MB are the limit here";
  const std::string rows = "b\n1\n2\n3\n4\n5\n6\n7\n8\n";
  EXPECT_EQ(refused(rows, {.type = csv_type::integer, .kept_bytes_max = 100}), "taken");
  EXPECT_THAT(refused(rows, {.type = csv_type::integer, .kept_bytes_max = 95}),
              testing::StartsWith(more));
  EXPECT_THAT(refused(rows, {.type = csv_type::real, .kept_bytes_max = 95}),
              testing::StartsWith(more));
  EXPECT_THAT(refused(rows, {.kept_bytes_max = 100}), testing::StartsWith(more));
  EXPECT_THAT(refused("b\nx\nx\nx\nx\n",
                      {.type = csv_type::integer, .skip_bad = true, .kept_bytes_max = 60}),
              testing::StartsWith(more));
  EXPECT_THAT(refused("b\n" + std::string(100, '\n'), {.kept_bytes_max = 100}),
              testing::StartsWith(more))
      << "blank lines";
}

TEST(csv_column, refuses_a_stream_that_breaks_off) {
  struct broken : std::streambuf {
    int_type underflow() override { throw std::runtime_error("a broken disk"); }
  } buffer;
  std::istream in(&buffer);
  try {
    (void)read_csv_column(in, "t.csv", "b", {});
    FAIL() << "taken";
  } catch (const elidex::bench::bad_input& error) {
    EXPECT_STREQ(error.what(),
                 "FILE: t.csv cannot be read to its end "
                 "(expected a CSV file or a pipe whose first row names the columns)");
  }
}

TEST(csv_column, refuses_a_column_that_is_not_there_or_twice) {
  EXPECT_EQ(refusal("a,c\n"), "--column: 'b' is not a column of t.csv (expected a, c)");
  EXPECT_EQ(
      refusal("1,2,3,4,5,6,7,8,9,10,11,12"),
      "--column: 'b' is not a column of t.csv (expected 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more)");
  EXPECT_EQ(refusal("a,\"two\nlines\",\xFF," + std::string(60, 'n') + "\n"),
            "--column: 'b' is not a column of t.csv (expected a, two lines, ?, " +
                std::string(40, 'n') + "...)");
  std::string wide;
  for (const char letter : {'a', 'c', 'd', 'e', 'f', 'g'}) wide += std::string(60, letter) + ",";
  EXPECT_EQ(refusal(wide + "last\n"), "--column: 'b' is not a column of t.csv (expected " +
                                          std::string(40, 'a') + "..., " + std::string(40, 'c') +
                                          "..., " + std::string(40, 'd') + "..., " +
                                          std::string(40, 'e') + "... and 3 more)");
  EXPECT_EQ(refusal("b,a,b\n"),
            "--column: 'b' names two columns of t.csv, 1 and 3 (expected a name that occurs once)");
  EXPECT_EQ(refusal("b,a,a\n"), "taken") << "another column twice";
}

TEST(csv_column, refuses_rows_with_too_few_or_too_many_cells) {
  EXPECT_EQ(refusal("a,b\n1,x\n2\n"),
            std::string("t.csv: line 3 (row 2): 1 cell where the header has 2") + hint);
  EXPECT_EQ(refusal("a,b\n1,x,\n"),
            std::string("t.csv: line 2 (row 1): 3 cells where the header has 2") + hint);
}

TEST(csv_column, names_the_line_in_which_the_row_begins) {
  EXPECT_EQ(refusal("a,\"b\n\"\n\n1,\"x\ny\"\n\n\"2\n\n2\"\n", "b\n"),
            std::string("t.csv: line 7 (row 2): 1 cell where the header has 2") + hint);
  EXPECT_EQ(refusal("a,b\r\n1,\"x\r\ny\"\r\n\r\n2\r\n"),
            std::string("t.csv: line 5 (row 2): 1 cell where the header has 2") + hint);
}

TEST(csv_column, refuses_numbers_that_are_none) {
  const auto refused = [](const std::string& cell, csv_type type) {
    return refusal("a,b\n1," + cell + "\n", "b", type);
  };
  const std::string at = "t.csv: line 2 (row 1): column 'b': ";
  for (const char* cell :
       {"x", "1x", " 1", "1 ", "+1", "1.5", "0x10", "1e3", "-", "99999999999999999999x"}) {
    EXPECT_EQ(refused(cell, csv_type::integer), at + "'" + cell + "' is not of type int" + hint);
  }
  for (const char* cell : {"x", "1.5x", " 1.5", "1.5 ", "+1", "0x10p3", "1e", "."}) {
    EXPECT_EQ(refused(cell, csv_type::real), at + "'" + cell + "' is not of type double" + hint);
  }
  EXPECT_EQ(refused("", csv_type::integer), at + "an empty cell is not of type int" + hint);
  EXPECT_EQ(refused("", csv_type::real), at + "an empty cell is not of type double" + hint);
  EXPECT_EQ(refused("9223372036854775808", csv_type::integer),
            at + "'9223372036854775808' is out of the range of int" + hint);
  EXPECT_EQ(refused("-1e400", csv_type::real),
            at + "'-1e400' is out of the range of double" + hint);
  EXPECT_EQ(refused("\"1\n2\"", csv_type::integer), at + "'1 2' is not of type int" + hint);
  EXPECT_EQ(refused("\xFF", csv_type::integer), at + "'?' is not of type int" + hint);
  EXPECT_EQ(refused(std::string(39, 'x') + "\xC3\x85yz", csv_type::integer),
            at + "'" + std::string(39, 'x') + "...' is not of type int" + hint);
}

TEST(csv_column, refuses_what_is_no_utf8) {
  const std::string at = "t.csv: line 2 (row 1): column 'b': ";
  EXPECT_EQ(refusal("b\nab\xFF\n"), at + "'ab?' is not valid UTF-8 from byte 3 on" + hint);
  for (const char* cell :
       {"\xC3", "\xC0\x80", "\xED\xA0\x80", "\xF5\x80\x80\x80", "\x80", "\xE2\x82"}) {
    EXPECT_THAT(refusal("b\n" + std::string(cell) + "\n"),
                testing::HasSubstr("is not valid UTF-8 from byte 1 on"))
        << cell;
  }
  EXPECT_THAT(refusal("b\n\xFF\n", "b", csv_type::automatic),
              testing::HasSubstr("is not valid UTF-8"));
}

TEST(csv_column, refuses_strings_over_64_kib) {
  EXPECT_EQ(read_strings("b\n" + std::string(65'536, 'x') + "\n").at(0).size(), 65'536U);
  EXPECT_EQ(refusal("b\n" + std::string(65'537, 'x') + "\n"),
            std::string(
                "t.csv: line 2 (row 1): column 'b': a string of 65537 bytes; 65536 are the most") +
                hint);
  EXPECT_THAT(read_strings("a,b\n" + std::string(100'000, 'x') + ",y\n"), ElementsAre("y"))
      << "another column's cell";
}

TEST(csv_column, refuses_quotes_where_none_may_be) {
  EXPECT_EQ(refusal("a,b\n1,x\n2,\"y\n3,z\n"),
            std::string("t.csv: line 3 (row 2): a quote is not closed") + hint);
  EXPECT_EQ(
      refusal("a,b\n1,x\"y\n"),
      std::string("t.csv: line 2 (row 1): a quote within a cell that does not begin with one") +
          hint);
  EXPECT_EQ(refusal("a,b\n1,\"x\"y\n"),
            std::string("t.csv: line 2 (row 1): a closing quote with something behind it") + hint);
  EXPECT_EQ(refusal("a,\"b\n"), "t.csv: line 1 (header): a quote is not closed");
  EXPECT_EQ(refusal("a,\"b\n", "b", csv_type::text, true),
            "t.csv: line 1 (header): a quote is not closed");
  EXPECT_EQ(refusal("\nb\"\n"),
            "t.csv: line 2 (header): a quote within a cell that does not begin with one");
}

TEST(csv_column, a_quote_that_is_never_closed_does_not_take_all_memory) {
  EXPECT_EQ(refusal("a,b\n1,x\n2,\"" + std::string(std::size_t{17} << 20, 'y'), "b", csv_type::text,
                    true),
            "t.csv: line 3 (row 2): a cell of more than 16 MiB; is a quote not closed?");
  EXPECT_EQ(refusal("a,b\n1,x\n" + std::string((std::size_t{16} << 20) + 1, 'y') + ",2\n3,z\n"),
            "t.csv: line 3 (row 2): a cell of more than 16 MiB; is a quote not closed?");
  EXPECT_THAT(read_strings("a,b\n1,x\n" + std::string(std::size_t{16} << 20, 'y') + ",2\n"),
              ElementsAre("x", "2"));
}

TEST(csv_column, leaves_bad_rows_out_where_asked_to) {
  const csv_column got =
      read("a,b\n1,10\n2,x\n3\n4,40\n5,5\"0\n6,60\n7,\"7\"0,\"z\n8,80\n9,\"90\n10,100\n", "b",
           csv_type::integer, true);
  EXPECT_THAT(numbers<std::int64_t>(got), ElementsAre(10, 40, 60, 80));
  EXPECT_THAT(got.skipped, ElementsAre(2, 3, 5, 7, 9));
  EXPECT_THAT(got.reasons,
              ElementsAre("line 3 (row 2): column 'b': 'x' is not of type int",
                          "line 4 (row 3): 1 cell where the header has 2",
                          "line 6 (row 5): a quote within a cell that does not begin with one",
                          "line 8 (row 7): a closing quote with something behind it",
                          "line 10 (row 9): a quote is not closed"));
  EXPECT_EQ(got.row_in_file(0), 1U);
  EXPECT_EQ(got.row_in_file(1), 4U);
  EXPECT_EQ(got.row_in_file(2), 6U);
  EXPECT_EQ(got.row_in_file(3), 8U);
}

TEST(csv_column, tells_the_first_reasons_only) {
  std::string text = "b\n";
  for (int i = 0; i < 20; ++i) text += "x\n";
  const csv_column got = read(text, "b", csv_type::integer, true);
  EXPECT_EQ(got.rows(), 0U);
  EXPECT_EQ(got.skipped.size(), 20U);
  EXPECT_EQ(got.reasons.size(), csv_column::reasons_max);
}

TEST(csv_column, decides_the_type_without_the_rows_left_out) {
  const csv_column got = read("a,b\n1,10\n2,x,y\n3,30\n", "b", csv_type::automatic, true);
  EXPECT_THAT(numbers<std::int64_t>(got), ElementsAre(10, 30));
}

TEST(csv_column, behind_a_wrong_quote_the_next_line_is_read_whatever_ends_it) {
  for (const char* end : {"\n", "\r\n", "\r"}) {
    const std::string e = end;
    const csv_column got = read("a,b" + e + "1,x\"x,\"" + e + "2,y" + e, "b", csv_type::text, true);
    EXPECT_THAT(strings(got), ElementsAre("y")) << e;
    EXPECT_EQ(got.blank_lines, 0U) << e;
  }
}

// Cells, ends of rows and multi-byte characters lie across the pieces in which the file is read.
TEST(csv_column, pieces_of_the_file_do_not_show) {
  const std::string text =
      "\xEF\xBB\xBF"
      "a,b\r\n1,\"\xC3\x85\"\"\r\n\"\r\n\r\n1,x\"\r\n2,z\r\n3,\"\"";
  for (std::size_t piece_bytes = 0; piece_bytes < text.size() + 2; ++piece_bytes) {
    std::istringstream in(text);
    csv_options options;
    options.type = csv_type::text;
    options.skip_bad = true;
    options.piece_bytes = piece_bytes;
    const csv_column got = read_csv_column(in, "t.csv", "b", options);
    EXPECT_THAT(strings(got), ElementsAre("\xC3\x85\"\r\n", "z", "")) << piece_bytes;
    EXPECT_THAT(got.reasons,
                ElementsAre("line 5 (row 2): a quote within a cell that does not begin with one"));
    EXPECT_EQ(got.blank_lines, 1U);
  }
}

TEST(csv_column, tells_how_far_it_is) {
  std::istringstream in("b\n" + std::string(1'000'000, '\n') + "x\n");
  std::vector<std::uint64_t> said;
  csv_options options;
  options.progress = [&](std::uint64_t bytes) { said.push_back(bytes); };
  EXPECT_THAT(strings(read_csv_column(in, "t.csv", "b", options)), ElementsAre("x"));
  EXPECT_GT(said.size(), 2U);
  EXPECT_TRUE(std::is_sorted(said.begin(), said.end()));
  EXPECT_EQ(said.back(), 1'000'004U);
}

}  // namespace
