#include "elidex/internal/txn/schema.hpp"

#include <array>
#include <bit>
#include <cstring>

#include "elidex/internal/txn/errors.hpp"

namespace elidex::internal {
namespace {

constexpr std::array<const char*, 3> type_names{"integer", "real", "text"};

std::string name_of(column_type type) {
  return type_names[static_cast<std::size_t>(type)];
}

std::size_t words_of(const column_definition& column) {
  if (column.type != column_type::text) return 1;
  return (sizeof(std::uint32_t) + column.text_bytes_max + sizeof(std::uint64_t) - 1) /
         sizeof(std::uint64_t);
}

// Names may have any bytes, so lengths come first.
std::string describe(const column_definition& column) {
  std::string text = std::to_string(column.name.size());
  text.append(":")
      .append(column.name)
      .append(" ")
      .append(type_names[static_cast<std::size_t>(column.type)]);
  if (column.type == column_type::text)
    text.append(" ").append(std::to_string(column.text_bytes_max));
  return text;
}

}  // namespace

schema::schema(std::vector<column_definition> columns) {
  if (columns.empty()) throw schema_mismatch("a schema without columns");
  // Not make_shared, which compares names of types by strcmp: the simulated machine does not see
  // that.
  std::shared_ptr<layout> made(new layout);
  std::size_t words = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const column_definition& one = columns[i];
    for (std::size_t before = 0; before < i; ++before) {
      if (columns[before].name == one.name)
        throw schema_mismatch(one.name + ": there are two columns of that name");
    }
    if ((one.type == column_type::text) != (one.text_bytes_max != 0))
      throw schema_mismatch(one.name + ": texts have a largest length, and nothing else has");
    if (one.text_bytes_max > row_bytes_max)
      throw row_too_large(one.name + ": it takes texts of at most 65532 bytes");
    made->offsets.push_back(words);
    words += words_of(one);
    if (words * sizeof(std::uint64_t) > row_bytes_max)
      throw row_too_large(one.name + ": with this column rows have more than 65536 bytes");
    if (i != 0) made->text.append(", ");
    made->text.append(describe(one));
  }
  made->row_bytes = words * sizeof(std::uint64_t);
  made->columns = std::move(columns);
  layout_ = std::move(made);
}

row::row(const schema& columns)
    : columns_(columns), words_(columns.row_bytes() / sizeof(std::uint64_t)) {}

row::row(const schema& columns, std::span<const std::uint64_t> words)
    : columns_(columns), words_(words.begin(), words.end()) {
  if (words.size_bytes() != columns.row_bytes())
    throw schema_mismatch("row: wrong number of words (expected one row of the schema)");
}

std::size_t row::column_index(std::string_view column, column_type type) const {
  if (words_.empty()) throw schema_mismatch(std::string(column) + ": the row was moved from");
  const schema::layout& of = *columns_.layout_;
  for (std::size_t i = 0; i < of.columns.size(); ++i) {
    if (of.columns[i].name != column) continue;
    if (of.columns[i].type == type) return i;
    throw schema_mismatch(std::string(column) + ": the column is of type " +
                          name_of(of.columns[i].type) + ", not " + name_of(type));
  }
  throw schema_mismatch(std::string(column) + ": there is no column of that name");
}

std::int64_t row::integer(std::string_view column) const {
  return static_cast<std::int64_t>(
      words_[columns_.layout_->offsets[column_index(column, column_type::integer)]]);
}
double row::real(std::string_view column) const {
  return std::bit_cast<double>(
      words_[columns_.layout_->offsets[column_index(column, column_type::real)]]);
}
std::string_view row::text(std::string_view column) const {
  const std::uint64_t* const at =
      &words_[columns_.layout_->offsets[column_index(column, column_type::text)]];
  std::uint32_t length = 0;
  std::memcpy(&length, at, sizeof length);
  return {reinterpret_cast<const char*>(at) + sizeof length, length};
}

row& row::set(std::string_view column, std::int64_t value) {
  words_[columns_.layout_->offsets[column_index(column, column_type::integer)]] =
      static_cast<std::uint64_t>(value);
  return *this;
}
row& row::set(std::string_view column, double value) {
  words_[columns_.layout_->offsets[column_index(column, column_type::real)]] =
      std::bit_cast<std::uint64_t>(value);
  return *this;
}
row& row::set(std::string_view column, std::string_view value) {
  const std::size_t which = column_index(column, column_type::text);
  const column_definition& definition = columns_.columns()[which];
  if (value.size() > definition.text_bytes_max)
    throw row_too_large(std::string(column) + ": a text of " + std::to_string(value.size()) +
                        " bytes; it takes at most " + std::to_string(definition.text_bytes_max));
  std::uint64_t* const at = &words_[columns_.layout_->offsets[which]];
  const auto length = static_cast<std::uint32_t>(value.size());
  // What is left of a longer text would make equal rows differ.
  std::string bytes(words_of(definition) * sizeof *at, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  std::memcpy(bytes.data() + sizeof length, value.data(), value.size());
  std::memcpy(at, bytes.data(), bytes.size());
  return *this;
}

}  // namespace elidex::internal
