// elidex elide: the program with the library in front, and what it refuses.
#if defined(ELIDEX_TOOL)
#  include <gmock/gmock.h>
#  include <gtest/gtest.h>
#  include <unistd.h>

#  include <filesystem>

#  include "support/elidex_tool.hpp"

namespace {

using elidex::testing::elidex_tool;
using elidex::testing::outcome;
using ::testing::HasSubstr;

const std::string programs = ELIDEX_PRELOAD_PROGRAMS "/";

class ElideCommand : public elidex_tool {};

TEST_F(ElideCommand, RunsAProgramAndGivesItsStatusBack) {
  EXPECT_EQ(run("elide -- sh -c 'echo \"$1\"; exit 3' name word").status, 3);
  EXPECT_EQ(run("elide -- sh -c 'echo \"$1\"' name word").out, "word\n");
  EXPECT_EQ(run("elide -- echo -- -n --stats").out, "-- -n --stats\n");
  EXPECT_EQ(run("elide -- echo '' word ''").out, " word \n");
}

TEST_F(ElideCommand, PrintsStatisticsWhereAsked) {
  const outcome got = run("elide --stats - -- " + programs + "counted_sections");
  EXPECT_EQ(got.status, 0);
  EXPECT_THAT(got.err, HasSubstr("thousand_sections+0x"));
  EXPECT_EQ(run("elide --stats table --elision off -- " + programs + "counted_sections").err, "");
  EXPECT_THAT(text_of(path("table")), HasSubstr("elision: switched off"));
  EXPECT_EQ(run("elide -- " + programs + "counted_sections").err, "");
}

TEST_F(ElideCommand, RefusesWhatItCannotDo) {
  refused("elide", "a program is missing");
  refused("elide --elision maybe -- true", "--elision: invalid value 'maybe'", "on or off");
  refused("elide -- no-such-program", "PROGRAM: 'no-such-program'");
  refused("elide -- /etc/passwd", "PROGRAM: '/etc/passwd' cannot be run");
  refused("elide --stats /no/such/directory/x -- true",
          "--stats: '/no/such/directory/x' cannot be written");
  refused("elide --stats '' -- true", "--stats: value missing (expected FILE)");
  refused("elide --stats /tmp -- true", "--stats: '/tmp' cannot be written");
  refused("elide -- " + programs + "static_counted_sections", "PROGRAM: ", "is statically linked");
}

TEST_F(ElideCommand, RefusesFilesThatAreNoPrograms) {
  namespace fs = std::filesystem;
  const auto runnable = [&](const std::string& name, const std::string& text) {
    fs::permissions(file(name, text), fs::perms::owner_all);
    return "elide -- ./" + name;
  };
  const std::string whole = text_of(programs + "counted_sections");
  refused(runnable("script", "#!/no/such -x\n"),
          "PROGRAM: './script' cannot be run: its interpreter '/no/such' does not exist",
          "(expected a program");
  refused(runnable("text", "no first line of a script\n"),
          "PROGRAM: './text' cannot be run: it is neither a program");
  refused(runnable("magic", "\177ELF and no more"),
          "PROGRAM: './magic' cannot be run: it is truncated");
  refused(runnable("half", whole.substr(0, whole.size() / 2)),
          "PROGRAM: './half' cannot be run: it is truncated");
  std::string alien = whole;
  alien[18] = alien[19] = '\177';  // the processor that it is for
  refused(runnable("alien", alien),
          "PROGRAM: './alien' cannot be run: it is neither a program for this machine");
  std::string lost = whole;
  const std::size_t loader = lost.find("/lib");
  lost[loader + 1] = 'L';
  refused(runnable("lost", lost), "PROGRAM: './lost' cannot be run: its interpreter '/Lib");
}

TEST_F(ElideCommand, RefusesProgramsWithAnothersRights) {
  if (::getuid() != 0) GTEST_SKIP() << "only root can make such a program";
  namespace fs = std::filesystem;
  fs::copy_file(programs + "counted_sections", path("of_another"));
  if (::chown(path("of_another").c_str(), 65534, 65534) != 0)
    GTEST_SKIP() << "this file system has no owners";
  fs::permissions(path("of_another"), fs::perms::set_uid | fs::perms::owner_all |
                                          fs::perms::others_exec | fs::perms::others_read |
                                          fs::perms::group_exec);
  refused("elide -- ./of_another", "PROGRAM: './of_another' runs with another user's rights");
}

}  // namespace
#endif
