// Level none and a directory that may only be read: what it opens, what it locks, and that it
// writes nothing.
#include <gtest/gtest.h>

#if defined(__unix__)

#  include <fcntl.h>
#  include <grp.h>

#  include <filesystem>
#  include <map>
#  include <optional>
#  include <string>
#  include <utility>

#  include "support/databases.hpp"
#  include "support/forked_child.hpp"
#  include "support/thrown_code.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

using db::durability;
using internal::directory_use;
using internal::open_log_directory;
using u64 = std::uint64_t;

constexpr auto in_use = std::errc::resource_unavailable_try_again;

struct bank {
  bank(const std::string& directory, durability level) { db.open(directory, {.level = level}); }
  void upsert(u64 key, std::int64_t balance) {
    db.transact([&](auto& t) { t.upsert(accounts, key, account{balance}); });
  }
  std::optional<std::int64_t> balance(u64 key) {
    const auto found = db.read_only([&](auto& t) { return t.get(accounts, key); });
    return found ? std::optional(found->balance) : std::nullopt;
  }
  silo_database db;
  silo_database::table<u64, account>& accounts = db.create_table<u64, account>("accounts");
};

// A directory with a checkpoint and a log behind it.
class ReadOnlyDirectory : public ::testing::Test {
 protected:
  ReadOnlyDirectory() {
    std::string name = (std::filesystem::temp_directory_path() / "elidex-read-XXXXXX").string();
    outer_ = ::mkdtemp(name.data());
    bank written(directory(), durability::sync);
    written.upsert(1, 5);
    written.db.checkpoint();
    written.upsert(2, 7);
  }
  ~ReadOnlyDirectory() override {
    std::filesystem::permissions(directory(), std::filesystem::perms::owner_all);
    std::filesystem::remove_all(outer_);
  }
  std::string directory() const { return (outer_ / "log").string(); }
  void forbid_writing() const {
    using std::filesystem::perms;
    constexpr perms read = perms::owner_read | perms::group_read | perms::others_read;
    constexpr perms enter = perms::owner_exec | perms::group_exec | perms::others_exec;
    for (const auto& file : std::filesystem::directory_iterator(directory()))
      permissions(file.path(), read);
    std::filesystem::permissions(directory(), read | enter);
    std::filesystem::permissions(outer_, read | enter);
  }
  // Names, sizes and times of the last writing.
  auto files() const {
    std::map<std::string, std::pair<std::uintmax_t, std::filesystem::file_time_type>> found;
    for (const auto& one : std::filesystem::directory_iterator(directory()))
      found[one.path().filename()] = {one.file_size(), one.last_write_time()};
    return found;
  }

 private:
  std::filesystem::path outer_;
};

// Permissions do not bind root, so a child gives its rights up.
std::string give_up_roots_rights() {
  constexpr unsigned nobody = 65'534;
  if (::geteuid() != 0) return "";
  const bool done = ::setgroups(0, nullptr) == 0 && ::setgid(nobody) == 0 && ::setuid(nobody) == 0;
  return done ? "" : "root's rights could not be given up";
}

TEST_F(ReadOnlyDirectory, LevelNoneNeedsNoRightToWrite) {
  forbid_writing();
  const auto before = files();
  EXPECT_EQ(in_child([&]() -> std::string {
              if (std::string problem = give_up_roots_rights(); !problem.empty()) return problem;
              for (const auto& file : before) {
                if (::open((directory() + "/" + file.first).c_str(), O_RDWR) >= 0)
                  return "the files can be written";
              }
              if (::open((directory() + "/new").c_str(), O_CREAT | O_WRONLY, 0600) >= 0)
                return "files can be made";
              bank read(directory(), durability::none);
              if (read.balance(1) != 5 || read.balance(2) != 7) return "other rows";
              read.upsert(3, 9);
              return read.balance(3) == 9 ? "" : "rows cannot be changed in memory";
            }),
            "");
  EXPECT_EQ(files(), before);
}

TEST_F(ReadOnlyDirectory, LevelsThatWriteNeedIt) {
  forbid_writing();
  for (const durability level : {durability::async, durability::sync}) {
    EXPECT_EQ(in_child([&]() -> std::string {
                if (std::string problem = give_up_roots_rights(); !problem.empty()) return problem;
                const std::error_code code = code_thrown_by([&] { bank(directory(), level); });
                return code == std::errc::permission_denied ? ""
                                                            : "another error: " + code.message();
              }),
              "");
  }
}

TEST_F(ReadOnlyDirectory, LevelNoneGivesItBackWhenOpenReturns) {
  bank read(directory(), durability::none);
  bank also(directory(), durability::none);
  bank writes(directory(), durability::sync);
  writes.upsert(1, 6);
  EXPECT_EQ(read.balance(1), 5);
  EXPECT_EQ(code_thrown_by([&] { bank(directory(), durability::none); }), in_use)
      << "beside one that writes";
}

TEST_F(ReadOnlyDirectory, ReadersShareItAndExcludeWriters) {
  {
    const auto one = open_log_directory(directory(), directory_use::read);
    const auto another = open_log_directory(directory(), directory_use::read);
    EXPECT_EQ(code_thrown_by([&] { open_log_directory(directory()); }), in_use);
  }
  const auto writes = open_log_directory(directory());
  EXPECT_EQ(code_thrown_by([&] { open_log_directory(directory(), directory_use::read); }), in_use);
}

TEST_F(ReadOnlyDirectory, ADirectoryForReadingRefusesToWrite) {
  const auto before = files();
  const auto opened = open_log_directory(directory(), directory_use::read);
  const std::string some = before.begin()->first;
  std::error_code error;
  EXPECT_EQ(opened->create("new", error), nullptr);
  EXPECT_EQ(error, std::errc::read_only_file_system);
  opened->rename(some, "new", error);
  EXPECT_EQ(error, std::errc::read_only_file_system);
  opened->remove(some, error);
  EXPECT_EQ(error, std::errc::read_only_file_system);
  const auto file = opened->open(some, error);
  ASSERT_NE(file, nullptr);
  const std::byte byte{};
  EXPECT_EQ(file->write_some({&byte, 1}, error), 0u);
  EXPECT_EQ(error, std::errc::bad_file_descriptor);
  EXPECT_EQ(files(), before);
}

TEST(LogDirectory, APathWithAZeroByteIsRefused) {
  const std::string path = ::testing::TempDir() + "elidex_zero_byte" + std::string(1, '\0') + "r";
  EXPECT_THROW(open_log_directory(path, directory_use::write), std::system_error);
  EXPECT_FALSE(std::filesystem::exists(::testing::TempDir() + "elidex_zero_byte"));
}

TEST_F(ReadOnlyDirectory, LevelNoneMakesNoDirectory) {
  const std::string missing = directory() + "-missing";
  EXPECT_EQ(code_thrown_by([&] { bank(missing, durability::none); }),
            std::errc::no_such_file_or_directory);
  EXPECT_FALSE(std::filesystem::exists(missing));
}

}  // namespace
}  // namespace elidex::testing

#endif
