// Rows with columns that are known only at run time.
//
//   const db::schema columns({{"owner", column_type::text, 30}, {"balance",
//       column_type::integer}});
//   auto& accounts = database.create_table<std::uint64_t>("accounts", columns);
//   db::row ada = accounts.make_row();                              // zeros and empty texts
//   ada.set("owner", "Ada").set("balance", 70);
//   database.transact([&](auto& t) {
//     t.insert(accounts, 7, ada);
//     t.update(accounts, 7, [](db::row& r) { r.set("balance", r.integer("balance") - 5); });
//     return t.get(accounts, 7)->text("owner");
//   });
//
// Size: a row takes the most bytes that its schema can need. A number takes 8 bytes. A text takes 4
// bytes plus its longest length, rounded up to a multiple of 8. A table in a directory stores its
// schema, names included (storage.hpp).
//
// Thread-safety: a schema is an immutable value. A row belongs to one thread, as std::string does.
// Lifetime: views of a row's text are valid until the row is changed or destroyed. A row that was
// moved from has no columns until it is assigned.
// Errors:
//   schema_mismatch  an unknown column, another type, a row of another schema, or an invalid list
//                    of columns
//   row_too_large    a text that is longer than its column, or a schema of more than row_bytes_max
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace elidex::internal {

// integer: std::int64_t. real: double. text: bytes, up to a length.
enum class column_type : std::uint8_t { integer, real, text };

struct column_definition {
  std::string name;
  column_type type = column_type::integer;
  std::size_t text_bytes_max = 0;
};

// Chosen: records lie in a pool's blocks, and a chunk then has at least 64 blocks.
inline constexpr std::size_t row_bytes_max = std::size_t{64} << 10;

class schema {
 public:
  // Copies share their columns.
  explicit schema(std::vector<column_definition> columns);
  // A move copies, so that every schema has columns.
  schema(const schema&) noexcept = default;
  schema& operator=(const schema&) noexcept = default;
  ~schema() = default;

  // Returns the columns, in their order.
  const std::vector<column_definition>& columns() const noexcept { return layout_->columns; }
  // Returns the size of a row.
  std::size_t row_bytes() const noexcept { return layout_->row_bytes; }
  // Equal texts mean equal columns in the same order.
  const std::string& text() const noexcept { return layout_->text; }
  friend bool operator==(const schema& a, const schema& b) noexcept {
    return a.layout_ == b.layout_ || a.text() == b.text();
  }

 private:
  friend class row;
  struct layout {
    std::vector<column_definition> columns;
    std::vector<std::size_t> offsets;
    std::size_t row_bytes = 0;
    std::string text;
  };
  std::shared_ptr<const layout> layout_;
};

class row {
 public:
  // Numbers are 0, texts are empty.
  explicit row(const schema& columns);
  // Copies `words`. Throws schema_mismatch unless their count is that of a row.
  row(const schema& columns, std::span<const std::uint64_t> words);

  // Returns the schema of the row.
  const schema& columns() const noexcept { return columns_; }
  // Returns the row as the table stores it.
  std::span<const std::uint64_t> words() const noexcept { return words_; }

  // Returns an integer. Throws schema_mismatch for an unknown column, or one of another type.
  std::int64_t integer(std::string_view column) const;
  // The same for a double.
  double real(std::string_view column) const;
  // The same for a text. The view is valid until the row changes.
  std::string_view text(std::string_view column) const;

  // Changes a column and returns the row. Throws schema_mismatch for an unknown column, or one of
  // another type, and row_too_large for a text that is longer than its column.
  row& set(std::string_view column, std::int64_t value);
  row& set(std::string_view column, int value) { return set(column, std::int64_t{value}); }
  row& set(std::string_view column, double value);
  row& set(std::string_view column, std::string_view value);
  row& set(std::string_view column, const char* value) {
    return set(column, std::string_view(value));
  }

  friend bool operator==(const row& a, const row& b) noexcept {
    return a.columns_ == b.columns_ && a.words_ == b.words_;
  }

 private:
  // The column's position. Throws schema_mismatch if there is no column of that name and type.
  std::size_t column_index(std::string_view column, column_type type) const;

  schema columns_;
  std::vector<std::uint64_t> words_;
};

}  // namespace elidex::internal
