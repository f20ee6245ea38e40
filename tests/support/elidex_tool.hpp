// The elidex program as a user runs it, in a directory of the test's own.
//
//   TEST_F(elidex_tool, lists) { EXPECT_EQ(run("list").status, 0); }
//
// Thread-safety: none.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace elidex::testing {

struct outcome {
  int status = -1;
  std::string out;
  std::string err;
};

class elidex_tool : public ::testing::Test {
 protected:
  elidex_tool() { std::filesystem::create_directories(directory_); }
  ~elidex_tool() override { std::filesystem::remove_all(directory_); }

  [[nodiscard]] std::string path(const std::string& name) const {
    return (directory_ / name).string();
  }

  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }

  static std::string text_of(const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }

  /// Runs it through the shell in the test's own directory.
  outcome run(const std::string& arguments) const { return run_after("", arguments, "</dev/null"); }

  /// The same behind `before`, such as "yes |".
  outcome run_after(const std::string& before, const std::string& arguments,
                    const std::string& input = "") const {
    const std::string command = "cd '" + directory_.string() + "' && " + before +
                                " '" ELIDEX_TOOL "' " + arguments + " >'" + path(".out") + "' 2>'" +
                                path(".err") + "' " + input;
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of(path(".out")),
            text_of(path(".err"))};
  }

  /// Refused with one line that begins with the flag, status 2, and nothing on standard output.
  void refused(const std::string& arguments, const std::string& flag,
               const std::string& also = "expected ") const {
    SCOPED_TRACE("elidex " + arguments);
    expect_refusal(run(arguments), flag, also);
  }

  /// The same with the output of another program, which may have no end, as its standard input.
  void piped_refused(const std::string& source, const std::string& arguments,
                     const std::string& flag, const std::string& also = "expected ") const {
    SCOPED_TRACE(source + " | elidex " + arguments);
    expect_refusal(run_after(source + " |", arguments), flag, also);
  }

 private:
  static void expect_refusal(const outcome& got, const std::string& flag, const std::string& also) {
    EXPECT_EQ(got.status, 2);
    EXPECT_EQ(got.out, "");
    EXPECT_THAT(got.err, ::testing::StartsWith("elidex: " + flag));
    EXPECT_THAT(got.err, ::testing::HasSubstr(also));
    EXPECT_EQ(std::count(got.err.begin(), got.err.end(), '\n'), 1) << got.err;
    EXPECT_TRUE(got.err.ends_with('\n'));
  }

  std::filesystem::path directory_ =
      ::testing::TempDir() + "elidex_cli_" + std::to_string(getpid());
};

}  // namespace elidex::testing
