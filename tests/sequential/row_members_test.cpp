// Rows of registered types: all types of members, and that their images are those of a schema.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/databases.hpp"
#include "support/faulty_directory.hpp"

namespace elidex::testing {
namespace {

using ::testing::HasSubstr;
using bytes = std::vector<std::byte>;

enum class color : std::uint16_t { red = 1, blue = 60'000 };

struct all_members {
  bool flag = false;
  std::int8_t i8 = 0;
  std::int16_t i16 = 0;
  std::int32_t i32 = 0;
  std::int64_t i64 = 0;
  std::uint8_t u8 = 0;
  std::uint16_t u16 = 0;
  std::uint32_t u32 = 0;
  std::uint64_t u64 = 0;
  float f32 = 0;
  double f64 = 0;
  color paint = color::red;
  std::string text;
  bytes blob;
  std::optional<bool> maybe_flag;
  std::optional<std::int16_t> maybe_i16;
  std::optional<double> maybe_f64;
  std::optional<color> maybe_paint;
  std::optional<std::string> maybe_text;
  std::optional<bytes> maybe_blob;
  int not_stored = 7;

  friend bool operator==(const all_members&, const all_members&) = default;
};
ELIDEX_ROW(all_members, flag, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, paint, text, blob,
           maybe_flag, maybe_i16, maybe_f64, maybe_paint, maybe_text, maybe_blob);

bytes bytes_with(std::size_t many) {
  return bytes(many, std::byte{0xEE});
}

all_members full_row() {
  return {.flag = true,
          .i8 = -128,
          .i16 = -32'768,
          .i32 = std::numeric_limits<std::int32_t>::min(),
          .i64 = std::numeric_limits<std::int64_t>::min(),
          .u8 = 255,
          .u16 = 65'535,
          .u32 = 0xFFFF'FFFF,
          .u64 = ~std::uint64_t{0},
          .f32 = 1.5F,
          .f64 = -0.1,
          .paint = color::blue,
          .text = "a text",
          .blob = bytes_with(9),
          .maybe_flag = true,
          .maybe_i16 = -5,
          .maybe_f64 = 2.5,
          .maybe_paint = color::red,
          .maybe_text = "perhaps",
          .maybe_blob = bytes_with(3)};
}

template <class Row>
std::vector<std::uint64_t> words_of(const Row& row) {
  using codec = internal::row_codec<Row>;
  // The codec may not rely on what the words were.
  std::vector<std::uint64_t> words(codec::word_count(row), ~std::uint64_t{0});
  codec::write_words(row, words);
  return words;
}

using all_codec = internal::row_codec<all_members>;

TEST(RowMembers, AllTypesComeBack) {
  for (const all_members& row : {all_members(), full_row()}) {
    const std::vector<std::uint64_t> words = words_of(row);
    EXPECT_TRUE(all_codec::is_row(words));
    EXPECT_EQ(all_codec::row_of(words), row);
  }
  all_members empty_texts;
  empty_texts.maybe_text = "";
  empty_texts.maybe_blob = bytes();
  const all_members again = all_codec::row_of(words_of(empty_texts));
  EXPECT_EQ(again, empty_texts);
  EXPECT_TRUE(again.maybe_text.has_value());
  all_members not_stored = full_row();
  not_stored.not_stored = 8;
  EXPECT_EQ(all_codec::row_of(words_of(not_stored)), full_row());
}

TEST(RowMembers, TheirImageIsThatOfASchema) {
  const db::schema columns = all_codec::columns();
  EXPECT_EQ(columns.row_bytes(), all_codec::row_bytes);
  EXPECT_EQ(all_codec::schema_text(), columns.text());
  const db::row row(columns, words_of(full_row()));
  EXPECT_EQ(row.integer("flag"), 1);
  EXPECT_EQ(row.integer("i8"), -128);
  EXPECT_EQ(row.integer("i16"), -32'768);
  EXPECT_EQ(row.integer("i32"), std::numeric_limits<std::int32_t>::min());
  EXPECT_EQ(row.integer("i64"), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(row.integer("u8"), 255);
  EXPECT_EQ(row.integer("u16"), 65'535);
  EXPECT_EQ(row.integer("u32"), 0xFFFF'FFFF);
  EXPECT_EQ(row.unsigned_integer("u64"), ~std::uint64_t{0});
  EXPECT_EQ(row.real("f32"), 1.5);
  EXPECT_EQ(row.real("f64"), -0.1);
  EXPECT_EQ(row.integer("paint"), 60'000);
  EXPECT_EQ(row.text("text"), "a text");
  EXPECT_EQ(row.bytes("blob").size(), 9U);
  EXPECT_EQ(row.integer("maybe_flag"), 1);
  EXPECT_EQ(row.integer("maybe_i16"), -5);
  EXPECT_EQ(row.real("maybe_f64"), 2.5);
  EXPECT_EQ(row.integer("maybe_paint"), 1);
  EXPECT_EQ(row.text("maybe_text"), "perhaps");
  EXPECT_EQ(row.bytes("maybe_blob").back(), std::byte{0xEE});

  // A row that a schema makes has the same words.
  db::row made(columns);
  all_members zeros;
  zeros.paint = color{};
  EXPECT_THAT(made.words(), ::testing::ElementsAreArray(words_of(zeros)));
  made.set("maybe_blob", bytes_with(3)).set("maybe_text", "perhaps").set("maybe_paint", 1);
  made.set("maybe_f64", 2.5).set("maybe_i16", -5).set("maybe_flag", true);
  made.set("blob", bytes_with(9)).set("text", "a text").set("paint", 60'000).set("f64", -0.1);
  made.set("f32", 1.5).set("u64", ~std::uint64_t{0}).set("u32", 0xFFFF'FFFF).set("u16", 65'535);
  made.set("u8", 255).set("i64", std::numeric_limits<std::int64_t>::min());
  made.set("i32", std::numeric_limits<std::int32_t>::min()).set("i16", -32'768);
  made.set("i8", -128).set("flag", true);
  EXPECT_EQ(made, row);
}

// A registered type that is trivially copyable is its bytes.
struct plain_members {
  std::uint32_t a = 1;
  std::uint64_t b = 2;
  std::array<int, 3> c{};
};
ELIDEX_ROW(plain_members, a, b, c);
struct nullable_numbers {
  std::optional<std::uint32_t> a;
  std::uint8_t b = 0;
  friend bool operator==(const nullable_numbers&, const nullable_numbers&) = default;
};
ELIDEX_ROW(nullable_numbers, a, b);

TEST(RowMembers, PlainTypesKeepTheirBytes) {
  using codec = internal::row_codec<plain_members>;
  EXPECT_EQ(codec::row_bytes, sizeof(plain_members));
  EXPECT_EQ(codec::schema_text(), "1:a uint32 @0, 1:b uint64 @8, 1:c opaque 12 int32 @16");
  EXPECT_EQ(internal::row_codec<account>::schema_text(), "");
  const plain_members row{.a = 5, .b = 6, .c = {7, 8, 9}};
  EXPECT_EQ(codec::row_of(words_of(row)).c, row.c);
}

TEST(RowMembers, RowsWithoutTextsHaveOneSize) {
  using codec = internal::row_codec<nullable_numbers>;
  EXPECT_EQ(codec::row_bytes, 8U);  // 4 + 1 + a byte of nulls, padded
  EXPECT_EQ(codec::columns().row_bytes(), 8U);
  for (const nullable_numbers& row : {nullable_numbers{}, nullable_numbers{.a = 0, .b = 3}})
    EXPECT_EQ(codec::row_of(words_of(row)), row);
}

TEST(RowMembers, WordsThatAreNoRow) {
  const std::vector<std::uint64_t> good = words_of(full_row());
  ASSERT_TRUE(all_codec::is_row(good));
  for (std::size_t words = 0; words < good.size(); ++words)
    EXPECT_FALSE(all_codec::is_row(std::span(good).first(words))) << words;
  std::vector<std::uint64_t> longer = good;
  longer.push_back(0);
  EXPECT_FALSE(all_codec::is_row(longer));
  // Each end of a text is in order and within the row.
  const db::schema columns = all_codec::columns();
  std::size_t refused = 0;
  for (std::size_t byte = 0; byte < good.size() * sizeof good[0]; ++byte) {
    for (const int value : {0, 1, 0x7F, 0xFF}) {
      std::vector<std::uint64_t> bad = good;
      reinterpret_cast<unsigned char*>(bad.data())[byte] = static_cast<unsigned char>(value);
      EXPECT_EQ(all_codec::is_row(bad), columns.is_row(bad)) << "byte " << byte;
      if (all_codec::is_row(bad)) {
        static_cast<void>(all_codec::row_of(bad));  // reads nothing outside the row
      } else {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 20U);
}

// The macro takes 64 members.
struct wide_members {
  std::string a00, a01, a02, a03, a04, a05, a06, a07, a08, a09, a10, a11, a12, a13, a14, a15;
  std::string a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31;
  std::string a32, a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, a47;
  std::string a48, a49, a50, a51, a52, a53, a54, a55, a56, a57, a58, a59, a60, a61, a62, a63;
};
ELIDEX_ROW(wide_members, a00, a01, a02, a03, a04, a05, a06, a07, a08, a09, a10, a11, a12, a13, a14,
           a15, a16, a17, a18, a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32,
           a33, a34, a35, a36, a37, a38, a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50,
           a51, a52, a53, a54, a55, a56, a57, a58, a59, a60, a61, a62, a63);

TEST(RowMembers, TheMacroTakesSixtyFour) {
  wide_members row;
  row.a63 = "last";
  EXPECT_EQ(internal::row_codec<wide_members>::row_of(words_of(row)).a63, "last");
  EXPECT_EQ(internal::row_codec<wide_members>::columns().columns().size(), 64U);
}

// --- in a directory ---

template <class Row>
std::string problem_of_opening(faulty_disk& disk) {
  silo_database db;
  db.create_table<std::uint64_t, Row>("rows");
  try {
    db.open(disk.directory());
  } catch (const db::schema_mismatch& error) {
    return error.what();
  }
  return "";
}

struct renamed_numbers {
  std::optional<std::uint32_t> first;
  std::uint8_t b = 0;
};
ELIDEX_ROW(renamed_numbers, first, b);

TEST(RowMembers, ADirectoryRemembersThem) {
  faulty_disk disk;
  {
    silo_database db;
    auto& rows = db.create_table<std::uint64_t, nullable_numbers>("rows");
    db.open(disk.directory());
    db.transact([&](auto& t) { t.insert(rows, 1, nullable_numbers{.a = 9, .b = 8}); });
  }
  EXPECT_EQ(problem_of_opening<nullable_numbers>(disk), "");
  EXPECT_THAT(problem_of_opening<renamed_numbers>(disk), HasSubstr("(a uint32 null, b uint8)"));
  // A schema with the same columns opens it as well.
  silo_database db;
  auto& rows = db.create_table<std::uint64_t>(
      "rows", db::schema({{.name = "a", .type = db::column_type::uint32, .nullable = true},
                          {.name = "b", .type = db::column_type::uint8}}));
  db.open(disk.directory());
  db.read_only([&](auto& t) {
    EXPECT_EQ(t.get(rows, 1)->integer("a"), 9);
    EXPECT_EQ(t.get(rows, 1)->integer("b"), 8);
  });
}

}  // namespace
}  // namespace elidex::testing
