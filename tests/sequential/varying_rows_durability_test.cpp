// Rows of varying length in a directory: they come back from the log, from a checkpoint, and from
// both. Bytes that are no row are damage.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "elidex/internal/log/checkpoint.hpp"
#include "support/faulty_directory.hpp"
#include "support/logged_store.hpp"
#include "support/random_seed.hpp"
#include "support/varying_rows.hpp"

namespace elidex::testing {
namespace {

using namespace std::chrono_literals;
using db::column_type;
using u64 = std::uint64_t;
using content = std::map<u64, std::pair<document, std::string>>;  // with the note

db::schema note_columns() {
  return db::schema({{.name = "number", .type = column_type::int32},
                     {.name = "flag", .type = column_type::boolean},
                     {.name = "first", .type = column_type::text},
                     {.name = "second", .type = column_type::text, .nullable = true}});
}

const db::storage_options options{.level = durability::async, .group_time = 1h};

// A database with rows of a registered type and rows of a schema.
template <class Database>
struct library {
  Database db;
  typename Database::template table<u64, document>& documents =
      db.template create_table<u64, document>("documents");
  decltype(std::declval<Database&>().template create_table<u64>("", note_columns())) notes =
      db.template create_table<u64>("notes", note_columns());

  explicit library(faulty_disk& disk) { db.open(disk.directory(), options); }

  void write(u64 key, const document& row) {
    db.transact([&](auto& t) {
      db::row note = notes.make_row();
      note.set("number", static_cast<std::int32_t>(key)).set("first", row.text.substr(0, 1'500));
      if (row.seed % 2 == 0) note.set("second", row.text);
      if (row.seed % 3 == 0 || !t.update(documents, key, [&](document& d) { d = row; }))
        t.upsert(documents, key, row);
      if (row.seed % 3 == 0 || !t.update(notes, key, [&](db::row& r) { r = note; }))
        t.upsert(notes, key, note);
    });
  }
  void erase(u64 key) {
    db.transact([&](auto& t) {
      t.erase(documents, key);
      t.erase(notes, key);
    });
  }
  content all() {
    content found;
    db.read_only([&](auto& t) {
      t.scan(documents, u64{0}, ~u64{0}, [&](u64 key, const document& row) {
        EXPECT_TRUE(row.is_whole());
        found[key].first = row;
      });
      t.scan(notes, u64{0}, ~u64{0}, [&](u64 key, const db::row& row) {
        EXPECT_EQ(row.integer("number"), static_cast<std::int64_t>(key));
        found[key].second = std::string(row.text("first")) +
                            (row.is_null("second") ? "|" : std::string(row.text("second")));
      });
    });
    return found;
  }
  void change_something(random_numbers& random) {
    const u64 key = random.below(12);
    const std::size_t length = lengths_around_room[random.below(lengths_around_room.size())];
    switch (random.below(4)) {
      case 0:
        return erase(key);
      case 1:  // of the same length: the log has the words that differ
        db.transact([&](auto& t) {
          t.update(documents, key, [](document& d) { d = document::of(d.seed + 26, d.length); });
        });
        return;
      default:
        return write(key, document::of(random.below(1'000), length));
    }
  }
};

template <class Database>
class VaryingRowDurability : public ::testing::Test {};
using databases = ::testing::Types<silo_database, locking_dbx_database, two_phase_database>;
TYPED_TEST_SUITE(VaryingRowDurability, databases);

TYPED_TEST(VaryingRowDurability, RowsComeBack) {
  enum class files { log, checkpoint, both };
  for (const files from : {files::log, files::checkpoint, files::both}) {
    const u64 seed = seed_or(5);
    random_numbers random(seed);
    faulty_disk disk;
    content expected;
    for (int opening = 0; opening < 3; ++opening) {
      library<TypeParam> store(disk);
      ASSERT_EQ(store.all(), expected) << "opening " << opening << ", seed " << seed;
      for (int i = 0; i < 60; ++i) store.change_something(random);
      if (from != files::log) store.db.checkpoint();
      for (int i = 0; i < 20 && from == files::both; ++i) store.change_something(random);
      expected = store.all();
      EXPECT_FALSE(expected.empty());
    }
    library<TypeParam> store(disk);
    EXPECT_EQ(store.all(), expected);
    for (u64 key = 0; key < 12; ++key) store.erase(key);
    for (int i = 0; i < 5; ++i) store.db.collect();
    EXPECT_EQ(store.documents.absent_records(), 0U);
  }
}

TEST(VaryingRowDurabilityLimits, TheLargestRowComesBack) {
  constexpr std::size_t most = varying_row_bytes_max - document::fixed_bytes;
  const document largest{.seed = 1, .length = most, .text = std::string(most, 'x')};
  faulty_disk disk;
  const auto with_documents = [&](const auto& use) {
    silo_database db;
    auto& documents = db.create_table<u64, document>("documents");
    db.open(disk.directory(), options);
    use(db, documents);
  };
  const auto is_there = [&](auto& db, auto& documents) {
    EXPECT_TRUE(db.read_only([&](auto& t) { return t.get(documents, 1) == largest; }));
  };
  with_documents([&](auto& db, auto& documents) {
    db.transact([&](auto& t) { t.insert(documents, 1, largest); });
  });
  with_documents([&](auto& db, auto& documents) {
    is_there(db, documents);
    db.checkpoint();
  });
  with_documents(is_there);
}

// --- damage ---

using words = std::vector<u64>;

std::string text_of(const words& row) {
  return std::string(bytes_of(row));
}
std::string key_of(u64 key) {
  std::string bytes(sizeof key, '\0');
  std::memcpy(bytes.data(), &key, sizeof key);
  return bytes;
}

// The directory of a library with a note under the key 1, whose log or checkpoint continues with
// entries that no database writes.
class damaged_directory {
 public:
  static constexpr std::uint32_t notes = 2;    // the table's number
  static constexpr std::size_t first_end = 5;  // offset in the row: behind the two numbers
  static constexpr std::size_t second_end = first_end + 4;

  damaged_directory() {
    library<silo_database> store(disk_);
    store.write(1, document::of(2, 30));
    store.db.read_only([&](auto& t) {
      const db::row note = *t.get(store.notes, u64{1});
      good_.assign(note.words().begin(), note.words().end());
    });
  }
  const words& good() const { return good_; }
  words good_with(std::size_t offset, std::uint32_t number, std::size_t bytes = 4) const {
    words row = good_;
    std::memcpy(reinterpret_cast<std::byte*>(row.data()) + offset, &number, bytes);
    return row;
  }

  // What opening a copy says after such an entry in the log, or in a checkpoint.
  std::string after_upsert(const std::string& row, std::uint64_t key = 1) const {
    return after([&](redo_log::worker& me, const auto&) {
      commit_with_group commit(me);
      commit.upsert(notes, key_of(key), row);
      commit.keep(make_stamp(commit.group(), 1));
    });
  }
  std::string after_change(const std::string& before, const std::string& row) const {
    return after([&](redo_log::worker& me, const auto&) {
      commit_with_group commit(me);
      commit.change(notes, key_of(1), before, row);
      commit.keep(make_stamp(commit.group(), 1));
    });
  }
  std::string after_checkpoint(const std::string& row) const {
    return after([&](redo_log::worker& me, const auto& catalog) {
      checkpoint_writer to(me.log());
      for (const auto& [key, table] : catalog) to.add_row(0, key, table, make_stamp(1, 0));
      to.add_row(notes, key_of(1), row, make_stamp(1, 1));
      to.finish();
    });
  }

 private:
  template <class Fn>
  std::string after(const Fn& log_more) const {
    faulty_disk disk = disk_.copy();
    {
      const std::string first = disk.bytes("redo-00000001.log");
      const std::uint64_t fingerprint =
          parse_file_header(std::as_bytes(std::span(first)), file_kind::segment).header.fingerprint;
      const auto directory = disk.directory();
      std::vector<std::pair<std::string, std::string>> catalog;
      const recovered_log found = recover_log(*directory, fingerprint, [&](const log_entry& entry) {
        if (entry.table == 0) catalog.emplace_back(entry.key, entry.row);
      });
      commit_clock clock;
      clock.begin_at(found.first_group);
      redo_log log(clock, *directory, found,
                   {.level = durability::async, .fingerprint = fingerprint, .group_time = 1h});
      redo_log::worker me(log);
      log_more(me, catalog);
    }
    try {
      library<silo_database> store(disk);
    } catch (const log_error& error) {
      EXPECT_EQ(error.problem(), log_problem::damaged);
      return "damaged";
    }
    return "read";
  }

  faulty_disk disk_;
  words good_;
};

TEST(VaryingRowDamage, BytesThatAreNoRowAreDamage) {
  const damaged_directory directory;
  ASSERT_EQ(directory.good().size(), 10U);  // 13 + 1 + 30 + 30 bytes
  const std::string good = text_of(directory.good());
  words longer = directory.good();
  longer.push_back(0);
  const std::vector<std::pair<const char*, std::string>> bad{
      {"no bytes", ""},
      {"fewer bytes than the fixed part", good.substr(0, 8)},
      {"half a word", good.substr(0, 20)},
      {"a word too few", good.substr(0, good.size() - 8)},
      {"a word too many", text_of(longer)},
      {"ends out of order", text_of(directory.good_with(damaged_directory::first_end, 61))},
      {"the last end outside the row",
       text_of(directory.good_with(damaged_directory::second_end, 600))},
      {"an end near 2^32",
       text_of(directory.good_with(damaged_directory::second_end, 0xFFFF'FFFF))},
      {"a boolean of 2", text_of(directory.good_with(4, 2, 1))},
  };
  EXPECT_EQ(directory.after_upsert(good), "read");
  EXPECT_EQ(directory.after_checkpoint(good), "read");
  for (const auto& [what, row] : bad) {
    EXPECT_EQ(directory.after_upsert(row), "damaged") << what;
    EXPECT_EQ(directory.after_upsert(row, 2), "damaged") << what;
    EXPECT_EQ(directory.after_checkpoint(row), "damaged") << what;
  }
}

TEST(VaryingRowDamage, ChangesThatDoNotFitAreDamage) {
  const damaged_directory directory;
  const words& good = directory.good();
  const std::string before = text_of(good);
  EXPECT_EQ(directory.after_change(before, text_of(directory.good_with(0, 7))), "read");
  EXPECT_EQ(directory.after_change(before,
                                   text_of(directory.good_with(damaged_directory::first_end, 61))),
            "damaged");
  // A word behind the row's end.
  words longer(good.size() + 5);
  words changed = longer;
  changed.back() = 1;
  EXPECT_EQ(directory.after_change(text_of(longer), text_of(changed)), "damaged");
}

}  // namespace
}  // namespace elidex::testing
