#include "elidex/internal/txn/schema.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "elidex/internal/txn/errors.hpp"

namespace elidex::internal {
namespace {

constexpr std::array<const char*, 13> type_names{"integer", "real",   "text",   "bytes", "boolean",
                                                 "int8",    "int16",  "int32",  "uint8", "uint16",
                                                 "uint32",  "uint64", "float32"};

bool is_real(column_type type) {
  return type == column_type::real || type == column_type::float32;
}
bool is_characters(column_type type) {
  return type == column_type::text;
}
bool is_bytes(column_type type) {
  return type == column_type::bytes;
}

// The form of the first version of the format. Directories have such rows.
bool fits_slots(const column_definition& column) {
  const bool has_slot = column.type == column_type::integer || column.type == column_type::real ||
                        (column.type == column_type::text && column.text_bytes_max != 0);
  return has_slot && !column.nullable;
}

std::size_t slot_words(const column_definition& column) {
  if (column.type != column_type::text) return 1;
  return words_for(sizeof(std::uint32_t) + column.text_bytes_max);
}

// Names may have any bytes, so lengths come first.
std::string describe(const column_definition& column) {
  std::string text = std::to_string(column.name.size());
  text.append(":").append(column.name).append(" ").append(name_of(column.type));
  if (column.text_bytes_max != 0) text.append(" ").append(std::to_string(column.text_bytes_max));
  if (column.nullable) text.append(" null");
  return text;
}

[[noreturn]] void refuse_number(std::string_view column) {
  throw std::out_of_range("elidex: " + std::string(column) +
                          ": number out of range (expected one that fits the type)");
}

// The value of a column of an integer type, as the 64 bits of a signed or unsigned integer.
std::uint64_t read_integer(const packed_reader& from, const packed_place& at, column_type type) {
  const auto widened = [](std::int64_t value) { return static_cast<std::uint64_t>(value); };
  switch (type) {
    case column_type::int8:
      return widened(from.number<std::int8_t>(at));
    case column_type::int16:
      return widened(from.number<std::int16_t>(at));
    case column_type::int32:
      return widened(from.number<std::int32_t>(at));
    case column_type::boolean:
    case column_type::uint8:
      return from.number<std::uint8_t>(at);
    case column_type::uint16:
      return from.number<std::uint16_t>(at);
    case column_type::uint32:
      return from.number<std::uint32_t>(at);
    default:
      return from.number<std::uint64_t>(at);
  }
}

// Whether an integer, given as 64 bits and its sign, is a value of the type.
bool is_in_range(column_type type, std::uint64_t image, bool is_negative) {
  const std::size_t bits = packed_bytes(type) * 8;
  if (type == column_type::boolean) return !is_negative && image <= 1;
  if (!is_signed_integer(type)) return !is_negative && (bits == 64 || image >> bits == 0);
  const std::uint64_t largest = (std::uint64_t{1} << (bits - 1)) - 1;
  return is_negative ? ~image <= largest : image <= largest;
}

}  // namespace

std::string name_of(column_type type) {
  return type_names[static_cast<std::size_t>(type)];
}

void schema::check(const std::vector<column_definition>& columns) {
  if (columns.empty()) throw schema_mismatch("a schema without columns");
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const column_definition& one = columns[i];
    for (std::size_t before = 0; before < i; ++before) {
      if (columns[before].name == one.name)
        throw schema_mismatch(one.name + ": there are two columns of that name");
    }
    if (static_cast<std::size_t>(one.type) >= type_names.size())
      throw schema_mismatch(one.name + ": unknown column type");
    if (!is_text(one.type) && one.text_bytes_max != 0)
      throw schema_mismatch(one.name +
                            ": text_bytes_max of a number (expected only for text and bytes)");
  }
}

void schema::place_in_slots(layout& of) {
  std::size_t words = 0;
  for (const column_definition& one : of.columns) {
    if (one.text_bytes_max > row_bytes_max)
      throw row_too_large(one.name + ": text_bytes_max is too large (expected at most 65532)");
    of.places.push_back({.offset = words * sizeof(std::uint64_t)});
    words += slot_words(one);
    if (words * sizeof(std::uint64_t) > row_bytes_max)
      throw row_too_large(one.name + ": with this column rows have more than 65536 bytes");
  }
  of.how = layout::kind::slots;
  of.row_bytes = words * sizeof(std::uint64_t);
}

void schema::pack(layout& of) {
  for (const column_definition& one : of.columns)
    of.places.push_back(of.packed.add(one.type, one.nullable));
  of.packed.finish();
  if (of.packed.fixed_bytes > row_bytes_max)
    throw row_too_large("a schema whose rows have more than 65536 bytes without their texts");
  if (!of.packed.rows_vary())
    of.row_bytes = words_for(of.packed.fixed_bytes) * sizeof(std::uint64_t);
}

schema::schema(std::vector<column_definition> columns, form wanted) {
  check(columns);
  // Not make_shared, which compares names of types by strcmp: the simulated machine does not see
  // that.
  std::shared_ptr<layout> made(new layout);
  made->columns = std::move(columns);
  const bool may_have_slots = wanted == form::any;
  if (may_have_slots && std::all_of(made->columns.begin(), made->columns.end(), fits_slots)) {
    place_in_slots(*made);
  } else {
    pack(*made);
  }
  for (const column_definition& one : made->columns) {
    if (!made->text.empty()) made->text.append(", ");
    made->text.append(describe(one));
  }
  layout_ = std::move(made);
}

namespace {

// A column as a directory describes it. `offset`: of a member of a C++ type.
struct described_column {
  column_definition definition;
  std::optional<std::size_t> offset;
  std::string contents;  // see schema::contents_of()
};

// Reads descriptions: see describe(), and plain_row_codec in row_members.hpp.
class description_reader {
 public:
  explicit description_reader(std::string_view text) : rest_(text) {}

  bool has_more() const noexcept { return !rest_.empty(); }
  described_column next() {
    described_column found;
    const std::size_t name_bytes = number();
    skip(":");
    if (name_bytes > rest_.size()) refuse();
    found.definition.name = rest_.substr(0, name_bytes);
    rest_.remove_prefix(name_bytes);
    skip(" ");
    const bool is_opaque = takes("opaque");
    found.definition.type = is_opaque ? column_type::bytes : type();
    if (takes(" ") && !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9') {
      found.definition.text_bytes_max = number();
      takes(" ");
    }
    if (is_opaque) {
      found.contents = rest_.starts_with("@") ? schema::unknown_contents : name_of(type());
      takes(" ");
    }
    found.definition.nullable = takes("null");
    takes(" ");
    if (takes("@")) found.offset = number();
    if (has_more()) skip(", ");
    return found;
  }

 private:
  [[noreturn]] static void refuse() {
    throw schema_mismatch("a schema that this version cannot read");
  }
  bool takes(std::string_view token) {
    if (!rest_.starts_with(token)) return false;
    rest_.remove_prefix(token.size());
    return true;
  }
  void skip(std::string_view token) {
    if (!takes(token)) refuse();
  }
  std::size_t number() {
    std::size_t value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) refuse();
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }
  column_type type() {
    const std::string_view name = rest_.substr(0, rest_.find_first_of(" ,"));
    for (std::size_t i = 0; i < type_names.size(); ++i) {
      if (name != type_names[i]) continue;
      rest_.remove_prefix(name.size());
      return static_cast<column_type>(i);
    }
    refuse();
  }

  std::string_view rest_;
};

std::size_t bytes_of_member(const column_definition& column) {
  return is_text(column.type) ? column.text_bytes_max : packed_bytes(column.type);
}

}  // namespace

std::string schema::shown(std::string_view text) {
  std::string shown;
  try {
    for (description_reader reader(text); reader.has_more();) {
      const described_column one = reader.next();
      if (!shown.empty()) shown.append(", ");
      shown.append(one.definition.name).append(" ").append(name_of(one.definition.type));
      if (one.definition.text_bytes_max != 0)
        shown.append(" ").append(std::to_string(one.definition.text_bytes_max));
      if (one.definition.nullable) shown.append(" null");
      if (one.offset) shown.append(" at byte ").append(std::to_string(*one.offset));
    }
  } catch (const schema_mismatch&) {
    return std::string(text);  // of a later version
  }
  return shown;
}

schema schema::of_directory(std::string_view text, std::size_t row_bytes) {
  std::vector<column_definition> columns;
  std::vector<packed_place> places;
  std::vector<std::string> contents;
  if (row_bytes > row_bytes_max)
    throw row_too_large("a schema whose rows have more than 65536 bytes");
  if (text.empty()) {
    if (row_bytes == 0) throw schema_mismatch("rows without columns (expected a size of rows)");
    columns.push_back({.name = "row", .type = column_type::bytes, .text_bytes_max = row_bytes});
    places.emplace_back();
    contents.emplace_back(unknown_contents);
  }
  for (description_reader reader(text); reader.has_more();) {
    described_column one = reader.next();
    if (one.offset) {
      if (*one.offset > row_bytes || bytes_of_member(one.definition) > row_bytes - *one.offset)
        throw schema_mismatch(one.definition.name + ": a column outside of its row");
      places.push_back({.offset = *one.offset});
      contents.push_back(std::move(one.contents));
    }
    columns.push_back(std::move(one.definition));
  }
  if (places.empty()) {
    schema made(columns);
    if (made.row_bytes() != row_bytes) made = schema(std::move(columns), form::packed);
    if (made.row_bytes() != row_bytes)
      throw schema_mismatch("a schema whose rows have another size (expected " +
                            std::to_string(made.row_bytes()) + " bytes)");
    return made;
  }
  check(columns);
  if (places.size() != columns.size())
    throw schema_mismatch("a schema in which some columns have offsets");
  std::shared_ptr<layout> made(new layout);
  made->how = layout::kind::placed;
  made->row_bytes = row_bytes;
  made->columns = std::move(columns);
  made->places = std::move(places);
  made->contents = std::move(contents);
  made->text = text;
  return schema(std::move(made), made_before::yes);
}

std::string_view schema::contents_of(std::string_view column) const noexcept {
  const layout& of = *layout_;
  for (std::size_t i = 0; i < of.contents.size(); ++i) {
    if (of.columns[i].name == column) return of.contents[i];
  }
  return {};
}

bool schema::is_row(std::span<const std::uint64_t> words) const noexcept {
  const layout& of = *layout_;
  if (of.row_bytes != 0 && words.size() != words_for(of.row_bytes)) return false;
  if (of.how == layout::kind::placed) return true;
  if (words.size_bytes() < of.packed.fixed_bytes || words.size_bytes() > varying_row_bytes_max)
    return false;
  const packed_reader reader(of.packed, words);
  std::size_t end = 0;
  for (std::size_t i = 0; i < of.columns.size(); ++i) {
    if (of.columns[i].type == column_type::boolean && reader.number<std::uint8_t>(of.places[i]) > 1)
      return false;
    if (!is_text(of.columns[i].type)) continue;
    const std::size_t said = reader.number<std::uint32_t>(of.places[i]);
    const bool packed = of.how == layout::kind::packed;
    const std::size_t length = packed ? said - end : said;
    const std::size_t longest = of.columns[i].text_bytes_max;
    if ((packed && said < end) || (longest != 0 && length > longest)) return false;
    end = said;
  }
  return of.row_bytes != 0 || words_for(of.packed.fixed_bytes + end) == words.size();
}

row::row(const schema& columns) : columns_(columns) {
  const schema::layout& of = *columns.layout_;
  words_.resize(words_for(of.row_bytes != 0 ? of.row_bytes : of.packed.fixed_bytes));
  for (std::size_t i = 0; i < of.columns.size(); ++i) {
    if (of.columns[i].nullable) mark_null(i, true);
  }
}

row::row(const schema& columns, std::span<const std::uint64_t> words)
    : columns_(columns), words_(words.begin(), words.end()) {
  if (!columns.is_row(words))
    throw schema_mismatch("row: wrong words (expected those of one row of the schema)");
}

std::size_t row::column_index(std::string_view column) const {
  if (words_.empty()) throw schema_mismatch(std::string(column) + ": the row was moved from");
  const std::vector<column_definition>& all = columns_.columns();
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all[i].name == column) return i;
  }
  throw schema_mismatch(std::string(column) + ": there is no column of that name");
}
std::size_t row::column_index(std::string_view column, bool (*fits)(column_type),
                              const char* wanted) const {
  const std::size_t found = column_index(column);
  const column_type type = columns_.columns()[found].type;
  if (fits(type)) return found;
  throw schema_mismatch(std::string(column) + ": the column is of type " + name_of(type) +
                        ", not " + wanted);
}

// Slots hold numbers in the same way.
std::int64_t row::integer(std::string_view column) const {
  const std::size_t which = column_index(column, is_integer, "integer");
  const column_type type = columns_.columns()[which].type;
  const std::uint64_t image = read_integer(reader(), columns_.layout_->places[which], type);
  if (type == column_type::uint64 && image >> 63 != 0) refuse_number(column);
  return static_cast<std::int64_t>(image);
}
std::uint64_t row::unsigned_integer(std::string_view column) const {
  const std::size_t which = column_index(column, is_integer, "integer");
  const column_type type = columns_.columns()[which].type;
  const std::uint64_t image = read_integer(reader(), columns_.layout_->places[which], type);
  if (is_signed_integer(type) && image >> 63 != 0) refuse_number(column);
  return image;
}
double row::real(std::string_view column) const {
  const std::size_t which = column_index(column, is_real, "real");
  const packed_place& at = columns_.layout_->places[which];
  if (columns_.columns()[which].type == column_type::float32)
    return static_cast<double>(reader().number<float>(at));
  return reader().number<double>(at);
}
std::string_view row::text(std::string_view column) const {
  return text_at(column_index(column, is_characters, "text"));
}
std::span<const std::byte> row::bytes(std::string_view column) const {
  const std::string_view found = text_at(column_index(column, is_bytes, "bytes"));
  return {reinterpret_cast<const std::byte*>(found.data()), found.size()};
}
std::string_view row::text_at(std::size_t column) const noexcept {
  const schema::layout& of = *columns_.layout_;
  const packed_place& at = of.places[column];
  const auto* const begin = reinterpret_cast<const char*>(words_.data()) + at.offset;
  switch (of.how) {
    case schema::layout::kind::slots:
      return {begin + sizeof(std::uint32_t), reader().number<std::uint32_t>(at)};
    case schema::layout::kind::placed:
      return {begin, of.columns[column].text_bytes_max};
    default:
      return reader().text(at);
  }
}
bool row::is_null(std::string_view column) const {
  return reader().is_null(columns_.layout_->places[column_index(column)]);
}

void row::write_bytes(std::size_t offset, const void* from, std::size_t bytes) noexcept {
  if (bytes != 0) std::memcpy(reinterpret_cast<std::byte*>(words_.data()) + offset, from, bytes);
}
void row::mark_null(std::size_t column, bool null) noexcept {
  const schema::layout& of = *columns_.layout_;
  const std::size_t bit = of.places[column].null_bit;
  if (bit == packed_place::not_nullable) return;
  std::byte& there = reinterpret_cast<std::byte*>(words_.data())[of.packed.nulls_at + bit / 8];
  const std::byte mask = std::byte{1} << (bit % 8);
  there = null ? there | mask : there & ~mask;
}

// The image's low bytes are the number, for every size.
void row::write_integer(std::size_t offset, column_type type, std::uint64_t image) noexcept {
  const auto write = [&](auto number) { write_bytes(offset, &number, sizeof number); };
  switch (packed_bytes(type)) {
    case 1:
      return write(static_cast<std::uint8_t>(image));
    case 2:
      return write(static_cast<std::uint16_t>(image));
    case 4:
      return write(static_cast<std::uint32_t>(image));
    default:
      return write(image);
  }
}
row& row::set_integer(std::string_view column, std::uint64_t image, bool is_negative) {
  const std::size_t which = column_index(column, is_integer, "integer");
  const column_type type = columns_.columns()[which].type;
  if (!is_in_range(type, image, is_negative)) refuse_number(column);
  write_integer(columns_.layout_->places[which].offset, type, image);
  mark_null(which, false);
  return *this;
}
row& row::set(std::string_view column, double value) {
  const std::size_t which = column_index(column, is_real, "real");
  const std::size_t offset = columns_.layout_->places[which].offset;
  if (columns_.columns()[which].type == column_type::float32) {
    const auto rounded = static_cast<float>(value);
    if (std::isinf(rounded) && !std::isinf(value)) refuse_number(column);
    write_bytes(offset, &rounded, sizeof rounded);
  } else {
    write_bytes(offset, &value, sizeof value);
  }
  mark_null(which, false);
  return *this;
}
row& row::set_text(std::string_view column, column_type type, std::string_view value) {
  const std::size_t which = type == column_type::text ? column_index(column, is_characters, "text")
                                                      : column_index(column, is_bytes, "bytes");
  const column_definition& definition = columns_.columns()[which];
  if (definition.text_bytes_max != 0 && value.size() > definition.text_bytes_max)
    throw row_too_large(std::string(column) + ": a text of " + std::to_string(value.size()) +
                        " bytes (expected at most " + std::to_string(definition.text_bytes_max) +
                        ")");
  if (!columns_.contents_of(column).empty() && value.size() != definition.text_bytes_max)
    throw schema_mismatch(std::string(column) + ": " + std::to_string(value.size()) +
                          " bytes (expected " + std::to_string(definition.text_bytes_max) + ")");
  if (columns_.layout_->how == schema::layout::kind::packed) {
    set_packed_text(which, value);
    mark_null(which, false);
  } else {
    set_slot(which, value);
  }
  return *this;
}
// The rest of a longer text would make equal rows differ.
void row::set_slot(std::size_t column, std::string_view value) {
  const schema::layout& of = *columns_.layout_;
  const column_definition& definition = of.columns[column];
  std::string bytes;
  if (of.how == schema::layout::kind::slots) {
    const auto length = static_cast<std::uint32_t>(value.size());
    bytes.append(reinterpret_cast<const char*>(&length), sizeof length);
    bytes.append(value);
    bytes.resize(slot_words(definition) * sizeof(std::uint64_t));
  } else {
    bytes = value;
    bytes.resize(definition.text_bytes_max);
  }
  write_bytes(of.places[column].offset, bytes.data(), bytes.size());
}
// Writes the row again, with the texts behind this one moved.
void row::set_packed_text(std::size_t column, std::string_view value) {
  const schema::layout& of = *columns_.layout_;
  const packed_reader before = reader();
  std::size_t texts = value.size();
  for (std::size_t i = 0; i < of.columns.size(); ++i) {
    if (i != column && is_text(of.columns[i].type)) texts += before.text(of.places[i]).size();
  }
  if (of.packed.fixed_bytes + texts > varying_row_bytes_max)
    throw row_too_large(of.columns[column].name + ": with this text the row has more than 16 MiB");
  std::vector<std::uint64_t> made(words_for(of.packed.fixed_bytes + texts));
  std::memcpy(made.data(), words_.data(), of.packed.fixed_bytes);
  packed_writer to(of.packed, made);
  for (std::size_t i = 0; i < of.columns.size(); ++i) {
    if (is_text(of.columns[i].type))
      to.text(of.places[i], i == column ? value : before.text(of.places[i]));
  }
  words_ = std::move(made);
}
row& row::set(std::string_view column, std::nullopt_t) {
  const std::size_t which = column_index(column);
  const column_definition& definition = columns_.columns()[which];
  if (!definition.nullable)
    throw schema_mismatch(std::string(column) + ": null (expected a value: not nullable)");
  if (is_text(definition.type)) {
    set_packed_text(which, {});
  } else {
    constexpr std::array<std::byte, sizeof(std::uint64_t)> zeros{};
    write_bytes(columns_.layout_->places[which].offset, zeros.data(),
                packed_bytes(definition.type));
  }
  mark_null(which, true);
  return *this;
}

}  // namespace elidex::internal
