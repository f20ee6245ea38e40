// The elidex program as a user runs it, in a folder of the test's own.
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
  elidex_tool() { std::filesystem::create_directories(folder_); }
  ~elidex_tool() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }

  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }

  static std::string text_of(const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }

  /// Runs it through the shell in the test's own folder.
  outcome run(const std::string& arguments) const {
    const std::string command = "cd '" + folder_.string() + "' && '" ELIDEX_TOOL "' " + arguments + " >'" +
                                path(".out") + "' 2>'" + path(".err") + "' </dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of(path(".out")), text_of(path(".err"))};
  }

  /// Refused with one line that begins with the flag, status 2, and nothing on standard output.
  void refused(const std::string& arguments, const std::string& flag, const std::string& also = "it takes") const {
    SCOPED_TRACE("elidex " + arguments);
    const outcome got = run(arguments);
    EXPECT_EQ(got.status, 2);
    EXPECT_EQ(got.out, "");
    EXPECT_THAT(got.err, ::testing::StartsWith("elidex: " + flag));
    EXPECT_THAT(got.err, ::testing::HasSubstr(also));
    EXPECT_EQ(std::count(got.err.begin(), got.err.end(), '\n'), 1) << got.err;
    EXPECT_TRUE(got.err.ends_with('\n'));
  }

 private:
  std::filesystem::path folder_ = ::testing::TempDir() + "elidex_cli_" + std::to_string(getpid());
};

}  // namespace elidex::testing
