// Rows with columns that are known only at run time.
//
//   using db::column_type;
//   const db::schema columns({{.name = "owner", .type = column_type::text},
//                             {.name = "balance", .type = column_type::integer},
//                             {.name = "note", .type = column_type::text, .nullable = true}});
//   auto& accounts = database.create_table<std::uint64_t>("accounts", columns);
//   db::row ada = accounts.make_row();             // zeros, empty texts, and nulls
//   ada.set("owner", "Ada").set("balance", 70);
//   database.transact([&](auto& t) {
//     t.insert(accounts, 7, ada);
//     t.update(accounts, 7, [](db::row& r) { r.set("balance", r.integer("balance") - 5); });
//     return t.get(accounts, 7)->text("owner");
//   });
//
// Types: numbers (integer and real take 8 bytes, the others what their names say), boolean, text
// and bytes. A text is a sequence of bytes; nothing checks its encoding. A column that is nullable
// may have no value.
// Size: a number takes its own size, a text 4 bytes and its length, a nullable column one bit more.
// A row is padded to a multiple of 8 bytes.
// Slots: if no column is nullable, and each is an integer, a real or a text with text_bytes_max,
// all rows have one size, at most 64 KiB. Each number then takes 8 bytes. Each text takes 4 bytes
// and text_bytes_max, padded to a multiple of 8 bytes. Such rows are updated in place.
// A table in a directory stores its schema, names included (storage.hpp).
//
// Thread-safety: a schema is an immutable value. A row belongs to one thread, as std::string does.
// Lifetime: views of a row's text are valid until the row is changed or destroyed. A row that was
// moved from has no columns until it is assigned.
// Errors:
//   schema_mismatch    an unknown column, another type, null for a column that is not nullable, a
//                      row of another schema, or an invalid list of columns
//   row_too_large      a text that is longer than its column, a row of more than 16 MiB, or a
//                      schema whose rows all take more than 64 KiB
//   std::out_of_range  a number outside the column's type
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "elidex/internal/txn/row_image.hpp"

namespace elidex::internal {

// Returns the type's name as messages and directories have it.
std::string name_of(column_type type);

struct column_definition {
  std::string name;
  column_type type = column_type::integer;
  std::size_t text_bytes_max = 0;  // of a text; 0: no limit but the row's
  bool nullable = false;
};

class schema {
 public:
  // How rows are stored (see the top of this header). any: in slots, if the columns allow it.
  enum class form : std::uint8_t { any, packed };

  // Copies share their columns.
  explicit schema(std::vector<column_definition> columns, form wanted = form::any);
  // Returns the schema of a table in a directory, from the text and the size of rows that its
  // catalog has (storage.hpp). Rows of a C++ type have the type's members as columns, if they are
  // registered, or one column "row" of type bytes. Throws schema_mismatch for another text.
  static schema of_directory(std::string_view text, std::size_t row_bytes);
  // Returns such a text as messages have it.
  static std::string shown(std::string_view text);
  // A move copies, so that every schema has columns.
  schema(const schema&) noexcept = default;
  schema& operator=(const schema&) noexcept = default;
  ~schema() = default;

  // Returns the columns, in their order.
  const std::vector<column_definition>& columns() const noexcept { return layout_->columns; }
  // Returns the size of each row, or 0 if rows vary in length.
  std::size_t row_bytes() const noexcept { return layout_->row_bytes; }
  // Equal texts mean equal columns in the same order, but not the same form.
  const std::string& text() const noexcept { return layout_->text; }
  friend bool operator==(const schema& a, const schema& b) noexcept {
    // The same columns may have two forms, in one of which rows vary in length.
    return a.layout_ == b.layout_ || (a.text() == b.text() && a.row_bytes() == b.row_bytes());
  }
  // Returns whether these words are a row of this schema: whether their count, the lengths of texts
  // and the booleans fit.
  bool is_row(std::span<const std::uint64_t> words) const noexcept;

  // The contents of a member that is an object of a class, or an array of unknown elements.
  static constexpr const char* unknown_contents = "?";

 private:
  friend class row;
  friend class row_conversion;
  struct layout {
    std::vector<column_definition> columns;
    std::vector<packed_place> places;
    packed_layout packed;
    // slots: texts lie in slots of their largest length, and all columns at multiples of 8 bytes.
    // placed: as in a C++ type. Each column has its offset and its size.
    enum class kind : std::uint8_t { slots, packed, placed };
    kind how = kind::packed;
    std::size_t row_bytes = 0;
    std::string text;
    std::vector<std::string> contents;  // of columns of type bytes in placed rows
  };
  // What a member of a C++ type consists of that is stored as bytes: the elements' type of an array
  // of numbers. Empty for any other column, and for an array of characters.
  std::string_view contents_of(std::string_view column) const noexcept;
  static void check(const std::vector<column_definition>& columns);
  static void place_in_slots(layout& of);
  static void pack(layout& of);
  // Two parameters, so that schema({}) is a list of columns.
  enum class made_before : bool { yes };
  schema(std::shared_ptr<const layout> made, made_before) : layout_(std::move(made)) {}

  std::shared_ptr<const layout> layout_;
};

class row {
 public:
  // Numbers are 0, texts are empty, nullable columns are null.
  explicit row(const schema& columns);
  // Copies `words`. Throws schema_mismatch unless they are a row of the schema.
  row(const schema& columns, std::span<const std::uint64_t> words);

  // Returns the schema of the row.
  const schema& columns() const noexcept { return columns_; }
  // Returns the row as the table stores it.
  std::span<const std::uint64_t> words() const noexcept { return words_; }

  // Returns an integer or a boolean, 0 if it is null. Throws schema_mismatch for an unknown column,
  // or one of another type, and std::out_of_range for a number outside of the result's type.
  std::int64_t integer(std::string_view column) const;
  // The same for a result without a sign.
  std::uint64_t unsigned_integer(std::string_view column) const;
  // The same for a real or float32.
  double real(std::string_view column) const;
  // The same for a text, which is empty if it is null. The view is valid until the row changes.
  std::string_view text(std::string_view column) const;
  // The same for bytes.
  std::span<const std::byte> bytes(std::string_view column) const;
  // Returns whether the column has no value.
  bool is_null(std::string_view column) const;

  // Changes a column and returns the row. Throws schema_mismatch for an unknown column, or one of
  // another type, row_too_large for a text that is longer than its column or makes the row longer
  // than 16 MiB, and std::out_of_range for a number outside of the column's type. The row is then
  // unchanged. If rows vary in length, setting a text copies the whole row.
  template <std::integral Number>
  row& set(std::string_view column, Number value) {
    return set_integer(column, static_cast<std::uint64_t>(value), value < Number{0});
  }
  row& set(std::string_view column, double value);
  row& set(std::string_view column, std::string_view value) {
    return set_text(column, column_type::text, value);
  }
  row& set(std::string_view column, const char* value) {
    return set(column, std::string_view(value));
  }
  row& set(std::string_view column, std::span<const std::byte> value) {
    return set_text(column, column_type::bytes,
                    {reinterpret_cast<const char*>(value.data()), value.size()});
  }
  // Sets the column to null. Throws schema_mismatch if the column is not nullable.
  row& set(std::string_view column, std::nullopt_t);

  friend bool operator==(const row& a, const row& b) noexcept {
    return a.columns_ == b.columns_ && a.words_ == b.words_;
  }

 private:
  // The column's position. Throws schema_mismatch if there is no column of that name.
  std::size_t column_index(std::string_view column) const;
  // The same, if `fits(type)` is false also. `wanted` is the type's name in the message.
  std::size_t column_index(std::string_view column, bool (*fits)(column_type),
                           const char* wanted) const;
  packed_reader reader() const noexcept { return {columns_.layout_->packed, words_}; }
  std::string_view text_at(std::size_t column) const noexcept;
  row& set_integer(std::string_view column, std::uint64_t image, bool is_negative);
  row& set_text(std::string_view column, column_type type, std::string_view value);
  void set_slot(std::size_t column, std::string_view value);
  void set_packed_text(std::size_t column, std::string_view value);
  void write_bytes(std::size_t offset, const void* from, std::size_t bytes) noexcept;
  void write_integer(std::size_t offset, column_type type, std::uint64_t image) noexcept;
  void mark_null(std::size_t column, bool null) noexcept;

  schema columns_;
  std::vector<std::uint64_t> words_;
};

}  // namespace elidex::internal
