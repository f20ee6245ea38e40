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

TEST(CoreOf, FillsTheFirstCoresOfEachSocketFirst) {
  machine m;
  m.sockets = 2;
  m.cores_per_socket = 10;
  m.cores_filled_first = 8;
  std::vector<std::uint64_t> cores;
  for (std::uint64_t t = 0; t < 22; ++t) cores.push_back(m.core_of(t));
  EXPECT_THAT(cores, ::testing::ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12, 13, 14, 15, 16, 17,
                                            8, 9, 18, 19, 0, 1));
  for (std::uint64_t t = 0; t < 20; ++t) EXPECT_EQ(m.first_thread_on(m.core_of(t)), t);
}

TEST(CoreOf, FillsASocketAfterTheOtherByDefault) {
  machine m;
  m.sockets = 2;
  m.cores_per_socket = 3;
  for (const std::uint64_t first : {0U, 3U, 64U}) {
    m.cores_filled_first = first;
    for (std::uint64_t t = 0; t < 12; ++t) EXPECT_EQ(m.core_of(t), t % 6) << first;
    for (std::uint64_t core = 0; core < 6; ++core) EXPECT_EQ(m.first_thread_on(core), core);
  }
}

}  // namespace
}  // namespace elidex::sim
