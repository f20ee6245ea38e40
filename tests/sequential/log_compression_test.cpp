// Compressed log files, and the rows of checkpoints.
#include "elidex/internal/log/log_compression.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "elidex/database.hpp"
#include "support/faulty_directory.hpp"
#include "support/random_seed.hpp"

namespace elidex::testing {
namespace {

using namespace internal;

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text));
}
std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// --- Rows of a checkpoint ---

struct a_row {
  std::string key;
  std::string row;
  std::uint64_t stamp;
  bool operator==(const a_row&) const = default;
};

byte_buffer written(const std::vector<a_row>& rows, std::uint32_t table) {
  byte_buffer bytes;
  row_writer writer;
  for (const a_row& one : rows) writer.append(bytes, table, one.key, one.row, one.stamp);
  return bytes;
}

// The rows before `end`, which says how the payload ended.
std::vector<a_row> read(std::span<const std::byte> bytes, std::uint32_t table,
                        record_reader::parse_status end) {
  std::vector<a_row> rows;
  row_reader reader(bytes);
  log_entry entry;
  record_reader::parse_status status;
  while ((status = reader.next(entry)) == record_reader::parse_status::entry) {
    EXPECT_EQ(entry.table, table);
    EXPECT_EQ(entry.operation, log_operation::upsert);
    rows.push_back({std::string(entry.key), std::string(entry.row), entry.stamp});
  }
  EXPECT_EQ(status, end);
  return rows;
}

std::vector<a_row> some_rows() {
  constexpr std::uint64_t last = std::numeric_limits<std::uint64_t>::max() >> 15U;
  return {{"", "", 0},
          {"a", std::string(127, 'x'), make_stamp(1, 1)},
          {"b", std::string(128, 'y'), make_stamp(1, 1)},
          {std::string(300, 'k'), std::string(20'000, 'z'), make_stamp(last, 4095)},
          {"c", "row", 0},
          {"d", "", make_stamp(last / 2, 0)},
          {"e", "x", make_stamp(7, 3)}};
}

TEST(CheckpointRows, ComeBack) {
  const byte_buffer bytes = written(some_rows(), 0x8000'0001);
  EXPECT_EQ(read(bytes.bytes(), 0x8000'0001, record_reader::parse_status::end), some_rows());
}

TEST(CheckpointRows, EveryTruncationIsFound) {
  const byte_buffer bytes = written(some_rows(), 3);
  row_writer writer;
  byte_buffer prefix;
  std::vector<std::size_t> ends;
  for (const a_row& one : some_rows()) {
    writer.append(prefix, 3, one.key, one.row, one.stamp);
    ends.push_back(prefix.size());
  }
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const bool whole = std::find(ends.begin(), ends.end(), size) != ends.end();
    read(bytes.bytes().first(size), 3,
         whole ? record_reader::parse_status::end : record_reader::parse_status::malformed);
  }
}

TEST(CheckpointRows, RandomBytesDoNoHarm) {
  random_numbers random(seed_or(5));
  for (int round = 0; round < repetitions(2000); ++round) {
    std::string bytes(random.below(60), '\0');
    for (char& one : bytes) one = static_cast<char>(random.below(256) | (random.below(2) * 0x80));
    row_reader reader(bytes_of(bytes));
    log_entry entry;
    while (reader.next(entry) == record_reader::parse_status::entry) {
      ASSERT_LE(entry.key.size() + entry.row.size(), bytes.size());
    }
  }
}

TEST(CheckpointRows, AddAtMostTwentyFourBytes) {
  constexpr std::uint64_t rows = 1000;
  random_numbers random(1);
  row_writer writer;
  byte_buffer bytes;
  const std::string row(100, 'r');
  for (std::uint64_t i = 0; i < rows; ++i) {
    const std::uint64_t stamp = make_stamp(random.below(std::uint64_t{1} << 48U), 7);
    writer.append(bytes, 1, "12345678", row, stamp);
  }
  EXPECT_LE(bytes.size(), rows * (8 + row.size() + 24));
  bytes.clear();
  for (std::uint64_t i = 0; i < rows; ++i)
    writer.append(bytes, 1, "12345678", row, make_stamp(9, 9));
  EXPECT_LE(bytes.size(), rows * (8 + row.size() + 3) + 20);
}

// --- Compression ---

class Compression : public ::testing::Test {
 protected:
  Compression() {
    std::string name =
        (std::filesystem::temp_directory_path() / "elidex-compressed-XXXXXX").string();
    if (::mkdtemp(name.data()) != nullptr) root_ = name;
  }
  ~Compression() override {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  void SetUp() override {
    if (!is_built_with(compression::zstd)) GTEST_SKIP() << "built without zstd";
  }
  std::string path(const char* name) const { return (root_ / name).string(); }
  static std::uint64_t bytes_in(const std::string& directory) {
    std::uint64_t bytes = 0;
    for (const auto& one : std::filesystem::directory_iterator(directory)) bytes += one.file_size();
    return bytes;
  }

 private:
  std::filesystem::path root_;
};

TEST_F(Compression, BytesComeBack) {
  block_compressor packer;
  for (const std::size_t size : {512U, 513U, 5000U, 300'000U}) {
    const std::string text = std::string(size / 2, 'a') + std::string(size - size / 2, 'b');
    const auto packed = packer.compress(bytes_of(text));
    ASSERT_FALSE(packed.empty());
    EXPECT_LT(packed.size(), size / 4);
    byte_buffer back;
    ASSERT_TRUE(decompress(packed, back));
    EXPECT_EQ(text_of(back.bytes()), text);
  }
}

TEST_F(Compression, LeavesWhatHardlyBecomesShorter) {
  block_compressor packer;
  EXPECT_TRUE(packer.compress({}).empty());
  EXPECT_TRUE(packer.compress(bytes_of(std::string(511, 'a'))).empty());
  random_numbers random(2);
  std::string noise(10'000, '\0');
  for (char& one : noise) one = static_cast<char>(random.below(256));
  EXPECT_TRUE(packer.compress(bytes_of(noise)).empty());
}

TEST_F(Compression, DamageIsFoundOrHarmless) {
  block_compressor packer;
  std::string text;
  for (int i = 0; text.size() < 3000; ++i) text += std::to_string(i * i);
  const std::string packed = text_of(packer.compress(bytes_of(text)));
  for (std::size_t bit = 0; bit < packed.size() * 8; ++bit) {
    std::string flipped = packed;
    flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ (1 << (bit % 8)));
    byte_buffer back;
    try {
      static_cast<void>(
          decompress(bytes_of(flipped), back));  // any result is right: recovery checks a CRC
    } catch (const std::bad_alloc&) {
      // The damaged size is larger than the memory.
    }
  }
  for (std::size_t size = 0; size < packed.size(); ++size) {
    byte_buffer back;
    EXPECT_FALSE(decompress(bytes_of(packed.substr(0, size)), back));
  }
}

struct page {
  std::uint64_t number = 0;
  std::string text;
};
ELIDEX_ROW(page, number, text);

constexpr std::uint64_t pages = 2000;

std::string text_of_page(std::uint64_t number) {
  std::string text = "Page " + std::to_string(number) + ": ";
  while (text.size() < 200) text += "the quick brown fox ";
  return text;
}

// Writes all pages in transactions of 100, and then a checkpoint if asked.
void write_pages(const std::string& directory, compression compressed, bool with_checkpoint) {
  database db;
  auto& table = db.create_table<std::uint64_t, page>("pages");
  db.open(directory, {.compress = compressed});
  for (std::uint64_t first = 0; first < pages; first += 100) {
    db.transact([&](auto& t) {
      for (std::uint64_t i = first; i < first + 100; ++i)
        t.upsert(table, i, page{i, text_of_page(i)});
    });
  }
  if (with_checkpoint) db.checkpoint();
  db.close();
}

void expect_pages(const std::string& directory) {
  database db;
  auto& table = db.create_table<std::uint64_t, page>("pages");
  db.open(directory, {.level = db::durability::none});
  db.read_only([&](auto& t) {
    std::uint64_t next = 0;
    t.scan(table, all, [&](std::uint64_t key, const page& one) {
      EXPECT_EQ(key, next);
      EXPECT_EQ(one.text, text_of_page(next));
      ++next;
    });
    EXPECT_EQ(next, pages);
  });
}

TEST_F(Compression, FilesAreShorterAndComeBack) {
  for (const bool with_checkpoint : {false, true}) {
    const std::string plain = path(with_checkpoint ? "plain-c" : "plain");
    const std::string packed = path(with_checkpoint ? "packed-c" : "packed");
    write_pages(plain, compression::none, with_checkpoint);
    write_pages(packed, compression::zstd, with_checkpoint);
    EXPECT_LT(bytes_in(packed) * 4, bytes_in(plain));
    expect_pages(plain);
    expect_pages(packed);
    // Each directory continues with the other setting.
    write_pages(plain, compression::zstd, false);
    write_pages(packed, compression::none, false);
    expect_pages(plain);
    expect_pages(packed);
  }
}

TEST_F(Compression, OfABackup) {
  {
    database db;
    auto& table = db.create_table<std::uint64_t, page>("pages");
    db.open(path("source"), {.compress = compression::zstd});
    db.transact([&](auto& t) {
      for (std::uint64_t i = 0; i < pages; ++i) t.insert(table, i, page{i, text_of_page(i)});
    });
    db.backup(path("copy"));
  }
  EXPECT_LT(bytes_in(path("copy")), pages * 100);
  expect_pages(path("copy"));
}

// Powers the disk off at each of its operations.
TEST_F(Compression, PowerFailures) {
  const auto run = [](faulty_disk& disk, std::uint64_t& acknowledged) {
    database db;
    auto& table = db.create_table<std::uint64_t, page>("pages");
    db.open(disk.directory(), {.level = db::durability::sync, .compress = compression::zstd});
    for (std::uint64_t i = 0; i < 12; ++i) {
      db.transact([&](auto& t) {
        for (std::uint64_t k = 0; k < 4; ++k) t.upsert(table, k, page{i, text_of_page(i)});
      });
      acknowledged = i + 1;
      if (i == 5) db.checkpoint();
    }
  };
  const auto rows_of = [](faulty_disk& disk) {
    database db;
    auto& table = db.create_table<std::uint64_t, page>("pages");
    db.open(disk.directory(), {.level = db::durability::none});
    std::vector<page> rows;
    db.read_only([&](auto& t) {
      t.scan(table, all, [&](std::uint64_t, const page& one) { rows.push_back(one); });
    });
    return rows;
  };
  faulty_disk counted;
  std::uint64_t done = 0;
  run(counted, done);
  ASSERT_EQ(done, 12u);
  random_numbers random(seed_or(7));
  std::size_t survived = 0;
  for (std::uint64_t operation = 0; operation < counted.operations(); ++operation) {
    faulty_disk disk;
    disk.faults().power_off_at = operation;
    std::uint64_t acknowledged = 0;
    try {
      run(disk, acknowledged);
    } catch (const std::system_error&) {
    }
    faulty_disk after = disk.after_power_failure(random);
    const std::vector<page> rows = rows_of(after);
    if (acknowledged == 0 && rows.empty()) continue;
    ASSERT_EQ(rows.size(), 4u) << "operation " << operation;
    ++survived;
    for (const page& one : rows) {
      EXPECT_EQ(one.number, rows.front().number) << "operation " << operation;
      EXPECT_EQ(one.text, text_of_page(one.number));
      EXPECT_GE(one.number + 1, acknowledged);
    }
  }
  EXPECT_GT(survived, 10u);
}

TEST(WithoutCompression, IsRefused) {
  byte_buffer bytes;
  append_file_header(bytes, {.kind = file_kind::segment,
                             .number = 1,
                             .first_group = 1,
                             .fingerprint = 0,
                             .compressed = static_cast<compression>(9)});
  const parsed_file_header parsed = parse_file_header(bytes.bytes(), file_kind::segment);
  EXPECT_EQ(parsed.verdict, header_verdict::whole);
  EXPECT_FALSE(is_built_with(parsed.header.compressed));
  faulty_disk disk;
  disk.upsert("redo-00000001.log", text_of(bytes.bytes()));
  try {
    recover_log(*disk.directory(), 0, [](const log_entry&) {});
    FAIL();
  } catch (const log_error& error) {
    EXPECT_EQ(error.problem(), log_problem::other_compression);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("redo-00000001.log is compressed"));
  }
  database db;
  EXPECT_THROW(db.open(faulty_disk().directory(), {.compress = static_cast<compression>(9)}),
               std::invalid_argument);
}

}  // namespace
}  // namespace elidex::testing
