// Machine files: those that come with the project are good, and what is wrong with another one is
// said in one line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "machine/machine.hpp"

namespace elidex::sim {

namespace {

using ::testing::HasSubstr;

std::string whole_file() {
  std::string text;
  const machine usual;
  for (const parameter& p : parameters()) {
    text += std::string(p.name) + " = " + std::to_string(usual.*p.value) + " -- assumed\n";
  }
  return text;
}

std::string complaint_about(const std::string& text) {
  try {
    parse_machine(text, "some.machine", "some");
  } catch (const bad_machine& error) {
    return error.what();
  }
  return "";
}

TEST(MachineFile, AllOfTheProjectAreGood) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(ELIDEX_TEST_MACHINES)) {
    EXPECT_NO_THROW(read_machine(entry.path())) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 6);
}

TEST(MachineFile, NamesLineAndReason) {
  const std::string good = whole_file();
  EXPECT_EQ(complaint_about(good), "");
  EXPECT_THAT(complaint_about(good + "speed = 3 -- assumed\n"),
              HasSubstr("there is no parameter 'speed'"));
  EXPECT_THAT(complaint_about(good + "rtm = 1 -- assumed\n"), HasSubstr("rtm is there twice"));
  EXPECT_THAT(complaint_about("sockets = 1 -- assumed\n"),
              HasSubstr("some.machine:2: the file ends without"));
  EXPECT_EQ(complaint_about("# a machine\nsockets = 9 -- assumed\n"),
            "some.machine:2: sockets takes 1 to 4, not 9");
  EXPECT_THAT(complaint_about("sockets = two -- assumed\n"), HasSubstr("'two' is no whole number"));
  EXPECT_THAT(complaint_about("sockets = 1\n"), HasSubstr("sockets has no source"));
  EXPECT_THAT(complaint_about("l1_sets = 63 -- assumed\n"), HasSubstr("power of two"));
  EXPECT_THAT(complaint_about("sockets\n"), HasSubstr("expected 'parameter = value -- source'"));
}

}  // namespace
}  // namespace elidex::sim
