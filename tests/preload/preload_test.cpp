// libelidex-preload.so in front of real programs: the same answers as without it, and true
// statistics.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;

struct outcome {
  int status = -1;
  std::string out;
  std::string err;
};

const std::string programs = ELIDEX_PRELOAD_PROGRAMS "/";
const std::string in_front = "LD_PRELOAD=" ELIDEX_PRELOAD " ";

class Preload : public testing::Test {
 protected:
  Preload() {
    std::string name = (std::filesystem::temp_directory_path() / "elidex-preload-XXXXXX").string();
    directory_ = ::mkdtemp(name.data());
  }
  ~Preload() override { std::filesystem::remove_all(directory_); }

  std::string path(const std::string& name) const { return directory_ + "/" + name; }

  static std::string text_of(const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }

  // The variables come before the program, as in a shell.
  outcome run(const std::string& variables, const std::string& program) const {
    const std::string command = "cd '" + directory_ + "' && exec timeout 300 env " + variables +
                                " " + program + " >'" + path(".out") + "' 2>'" + path(".err") +
                                "' </dev/null";
    const int status = std::system(command.c_str());
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of(path(".out")),
            text_of(path(".err"))};
  }

  void survives(const std::string& arguments) const {
    for (const std::string& variables :
         {std::string(), in_front, in_front + "ELIDEX_STATS=stats.%p "}) {
      const outcome got = run(variables, programs + arguments);
      EXPECT_EQ(got.status, 0) << variables << got.out << got.err;
      EXPECT_EQ(got.out, "survived\n") << variables;
      EXPECT_EQ(got.err, "") << variables;
    }
  }

 private:
  std::string directory_;
};

TEST_F(Preload, AnswersAsPosixSaysAndAsWithoutIt) {
  const outcome plain = run("", programs + "posix_locks");
  EXPECT_EQ(plain.status, 0) << plain.out;
  for (const char* const with : {"", "ELIDEX_STATS=- ELIDEX_SIGNAL=none ", "ELIDEX_ELISION=off "}) {
    const outcome got = run(in_front + with, programs + "posix_locks");
    EXPECT_EQ(got.status, 0) << with << got.err;
    EXPECT_EQ(got.out, plain.out) << with;
  }
}

TEST_F(Preload, PrintsNothingWithoutBeingAsked) {
  const outcome got = run(in_front, programs + "counted_sections");
  EXPECT_EQ(got.status, 0);
  EXPECT_EQ(got.out + got.err, "");
}

TEST_F(Preload, CountsEachPlace) {
  const std::string err = run(in_front + "ELIDEX_STATS=-", programs + "counted_sections").err;
  EXPECT_THAT(
      err,
      ContainsRegex(
          "elidex: counted_section.*, process [0-9]+, .*: 20[0-9]+ lock calls at [0-9]+ places"));
  EXPECT_THAT(err, ContainsRegex("\n +2000 +0 +- +- .*  mutex +thousand_sections\\+0x"));
  EXPECT_THAT(err, ContainsRegex("\n +7 +0 +- +- +.*  read +seven_reads\\+0x"));
  EXPECT_THAT(
      err, ContainsRegex("\n +1 +1 +[45][0-9.]+ ms +[45][0-9.]+ ms .*  mutex +one_long_wait\\+0x"));
  EXPECT_THAT(err, HasSubstr("elision: "));
}

TEST_F(Preload, TheTableFitsAScreen) {
  std::istringstream lines(run(in_front + "ELIDEX_STATS=-", programs + "counted_sections").err);
  for (std::string line; std::getline(lines, line);) {
    // The first two are sentences.
    if (line.rfind("elidex", 0) == 0 || line.rfind("elision", 0) == 0) continue;
    EXPECT_LE(line.size(), 120u) << line;
  }
}

TEST_F(Preload, FilesAreAppendedToAndMayNameTheProcess) {
  EXPECT_EQ(run(in_front + "ELIDEX_STATS=stats", programs + "counted_sections").err, "");
  EXPECT_EQ(run(in_front + "ELIDEX_STATS=stats", programs + "counted_sections").err, "");
  const std::string text = text_of(path("stats"));
  const std::size_t first = text.find("elidex: ");
  EXPECT_NE(text.find("elidex: ", first + 1), std::string::npos);
  run(in_front + "ELIDEX_STATS=of-%p", programs + "counted_sections");
  int found = 0;
  for (const auto& one : std::filesystem::directory_iterator(path("."))) {
    if (one.path().filename().string().rfind("of-", 0) == 0) {
      ++found;
      EXPECT_THAT(text_of(one.path().string()),
                  HasSubstr("process " + one.path().filename().string().substr(3) + ","));
    }
  }
  EXPECT_EQ(found, 1);
}

TEST_F(Preload, ASignalPrintsToo) {
  const outcome got = run(in_front + "ELIDEX_STATS=-", programs + "faults statistics_signal");
  EXPECT_EQ(got.status, 0);
  std::size_t reports = 0;
  for (std::size_t at = 0; (at = got.err.find("elidex: faults", at)) != std::string::npos; ++at)
    ++reports;
  EXPECT_GT(reports, 10u);
}

TEST_F(Preload, WithoutItsSignalTheProgramDiesOfIt) {
  const outcome got =
      run(in_front + "ELIDEX_STATS=- ELIDEX_SIGNAL=none", programs + "faults statistics_signal");
  EXPECT_NE(got.status, 0);
}

TEST_F(Preload, BadValuesAreOneLineEachAndTheProgramRuns) {
  const outcome got = run(in_front +
                              "ELIDEX_STATS=/no/such/directory/x ELIDEX_ELISION=maybe "
                              "ELIDEX_SIGNAL=KILL ELIDEX_RETRIES=-1 "
                              "ELIDEX_SITES=0 ELIDEX_VERBOSE=2",
                          programs + "counted_sections");
  EXPECT_EQ(got.status, 0);
  EXPECT_EQ(
      got.err,
      "elidex: ELIDEX_STATS: invalid value (expected - for standard error, or a file that can be "
      "written or made)\n"
      "elidex: ELIDEX_ELISION: invalid value (expected on or off)\n"
      "elidex: ELIDEX_VERBOSE: invalid value (expected on or off)\n"
      "elidex: ELIDEX_SIGNAL: invalid value (expected USR1, USR2 or none)\n"
      "elidex: ELIDEX_RETRIES: invalid value (expected a number from 0 to 1000)\n"
      "elidex: ELIDEX_SITES: invalid value (expected a number from 1 to 1000)\n");
}

TEST_F(Preload, StatisticsThatCannotBeWrittenAreOneLine) {
  EXPECT_EQ(
      run(in_front + "ELIDEX_STATS=/tmp", "true").err,
      "elidex: ELIDEX_STATS: invalid value (expected - for standard error, or a file that can be "
      "written or made)\n");
  const outcome got = run(in_front + "ELIDEX_STATS=/dev/full", programs + "counted_sections");
  EXPECT_EQ(got.status, 0);
  EXPECT_EQ(got.err, "elidex: ELIDEX_STATS: the table could not be written to /dev/full\n");
}

TEST_F(Preload, RowsAreLimited) {
  const outcome got =
      run(in_front + "ELIDEX_STATS=- ELIDEX_SITES=2", programs + "counted_sections");
  EXPECT_THAT(got.err, HasSubstr("more places (ELIDEX_SITES shows more)"));
}

TEST_F(Preload, SignalsInSections) {
  survives("faults signals");
}
TEST_F(Preload, ForksWithLocksHeld) {
  survives("faults forks");
}
TEST_F(Preload, Cancellation) {
  survives("faults cancellation");
}
TEST_F(Preload, ThreadsThatEnd) {
  survives("faults thread_ends");
}
TEST_F(Preload, LocksThatAreDestroyed) {
  survives("faults destruction");
}
TEST_F(Preload, Exec) {
  survives("faults executes");
}
TEST_F(Preload, LoadedAndUnloadedByTheProgram) {
  survives("faults loads " ELIDEX_PRELOAD);
}
TEST_F(Preload, LocksBeforeConstructorsAndInsideDlsym) {
  survives("locking_malloc");
}

TEST_F(Preload, CountsOfThreadsThatHaveEndedStayAndAChildsBeginAtZero) {
  EXPECT_THAT(run(in_front + "ELIDEX_STATS=-", programs + "faults thread_ends").err,
              ContainsRegex("\n +500 +0 "));
  const std::string err = run(in_front + "ELIDEX_STATS=-", programs + "faults forks").err;
  // 20 children, each with 100 sections in its thread, and the parent with its thousands.
  std::size_t children = 0;
  for (std::size_t at = 0; (at = err.find(": 100 lock calls", at)) != std::string::npos; ++at)
    ++children;
  EXPECT_EQ(children, 20u) << err;
}

TEST_F(Preload, LeavesAProgramWithItsOwnLocksAlone) {
  const outcome quiet = run(in_front, programs + "own_pthread");
  EXPECT_EQ(quiet.out, "1\n");
  EXPECT_EQ(quiet.err, "");
  const outcome asked = run(in_front + "ELIDEX_STATS=-", programs + "own_pthread");
  EXPECT_EQ(asked.out, "1\n");
  EXPECT_THAT(
      asked.err,
      ContainsRegex("^elidex: the library does nothing: another pthread_mutex_lock[^\n]*\n$"));
}

TEST_F(Preload, HasNoEffectOnStaticPrograms) {
  const outcome got = run(in_front + "ELIDEX_STATS=-", programs + "static_counted_sections");
  EXPECT_EQ(got.status, 0);
  EXPECT_EQ(got.err, "");
}

TEST_F(Preload, BringsOnlyTheCLibrary) {
  const outcome got = run("", "readelf -d " ELIDEX_PRELOAD);
  if (got.status != 0) GTEST_SKIP() << "no readelf";
  std::size_t needed = 0;
  for (std::size_t at = 0; (at = got.out.find("(NEEDED)", at)) != std::string::npos; ++at) ++needed;
  EXPECT_EQ(needed, 1u) << got.out;
  EXPECT_THAT(got.out, HasSubstr("[libc.so.6]"));
  EXPECT_THAT(got.out, HasSubstr("NODELETE"));
}

TEST_F(Preload, StressedByEightThreads) {
  const std::string seconds = std::getenv("ELIDEX_TEST_LONG") != nullptr ? "60" : "2";
  for (const std::string& variables : {in_front, in_front + "ELIDEX_STATS=- "}) {
    const outcome got = run(variables, programs + "lock_stress " + seconds);
    EXPECT_EQ(got.status, 0) << variables << got.err;
    EXPECT_EQ(got.out, "right\n");
  }
}

}  // namespace
