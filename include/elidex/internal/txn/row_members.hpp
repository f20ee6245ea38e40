// Rows of a C++ type: which types a table takes, and how their rows become words.
//
//   struct order {
//     std::uint64_t customer;
//     std::string note;
//     std::optional<double> discount;
//   };
//   ELIDEX_ROW(order, customer, note, discount);   // at namespace scope, in the type's namespace
//   auto& orders = db.create_table<std::uint64_t, order>("orders");
//
// A type without ELIDEX_ROW must be trivially copyable. Its rows are its bytes, padding included.
// The directory stores only their size.
//
// ELIDEX_ROW(type, members...) registers up to 64 members. The directory then stores the names,
// types and order of the members, and open() compares them. The type must be default-constructible
// and copyable. Inherited members cannot be listed.
//
// A trivially copyable type without std::optional members is stored as its bytes. Its members may
// be of any type, and the directory also stores their offsets. Any other type is stored member by
// member in the packed form (row_image.hpp). Members that are not listed are then not stored: a row
// that is read has their default values. In the packed form, listed members may be:
//
//   bool, integers and enumerations of 1 to 8 bytes, float, double
//   std::string                columns of type text
//   std::vector<std::byte>     columns of type bytes
//   std::optional of these     nullable columns
//
// Complexity: a conversion takes time for the row's bytes, and an allocation for each long text.
// Errors: row_too_large for a row of more than 16 MiB, std::bad_alloc.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "elidex/internal/tree/codec.hpp"
#include "elidex/internal/txn/errors.hpp"
#include "elidex/internal/txn/record.hpp"
#include "elidex/internal/txn/row_image.hpp"
#include "elidex/internal/txn/schema.hpp"

namespace elidex::internal {

// --- Registration ---

template <class Row, class Value>
struct row_member {
  const char* name;
  Value Row::* pointer;
};

template <class Row, class Value>
constexpr row_member<Row, Value> describe_member(const char* name, Value Row::* pointer) noexcept {
  return {name, pointer};
}

template <class Row>
concept registered_row = requires(const Row* of) { elidex_row_members(of); };

// The tuple of the registered members.
template <registered_row Row>
inline constexpr auto members_of = elidex_row_members(static_cast<const Row*>(nullptr));

// --- Types of members ---

template <class Value>
struct member_value {
  using type = Value;
  static constexpr bool nullable = false;
};
template <class Value>
struct member_value<std::optional<Value>> {
  using type = Value;
  static constexpr bool nullable = true;
};

template <class Value>
constexpr bool is_text_member =
    std::same_as<Value, std::string> || std::same_as<Value, std::vector<std::byte>>;
template <class Value>
constexpr bool is_number_member = (std::is_integral_v<Value> || std::is_enum_v<Value> ||
                                   std::same_as<Value, float> || std::same_as<Value, double>) &&
                                  sizeof(Value) <= sizeof(std::uint64_t);
template <class Member>
concept stored_member = is_text_member<typename member_value<Member>::type> ||
                        is_number_member<typename member_value<Member>::type>;

template <class Value>
constexpr column_type integer_type() noexcept {
  constexpr std::size_t index = sizeof(Value) == 1   ? 0
                                : sizeof(Value) == 2 ? 1
                                                     : sizeof(Value) / 4 + 1;
  constexpr std::array of_signed{column_type::int8, column_type::int16, column_type::int32,
                                 column_type::integer};
  constexpr std::array of_unsigned{column_type::uint8, column_type::uint16, column_type::uint32,
                                   column_type::uint64};
  return std::is_signed_v<Value> ? of_signed[index] : of_unsigned[index];
}

template <class Value>
constexpr column_type type_of_member() noexcept {
  if constexpr (std::same_as<Value, std::string>) {
    return column_type::text;
  } else if constexpr (std::same_as<Value, std::vector<std::byte>>) {
    return column_type::bytes;
  } else if constexpr (std::same_as<Value, double>) {
    return column_type::real;
  } else if constexpr (std::same_as<Value, float>) {
    return column_type::float32;
  } else if constexpr (std::same_as<Value, bool>) {
    return column_type::boolean;
  } else if constexpr (std::is_enum_v<Value>) {
    return integer_type<std::underlying_type_t<Value>>();
  } else {
    return integer_type<Value>();
  }
}

inline std::string_view text_of_member(const std::string& value) noexcept {
  return value;
}
inline std::string_view text_of_member(const std::vector<std::byte>& value) noexcept {
  return {reinterpret_cast<const char*>(value.data()), value.size()};
}
inline void set_member(std::string& to, std::string_view text) {
  to.assign(text);
}
inline void set_member(std::vector<std::byte>& to, std::string_view text) {
  const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
  to.assign(bytes, bytes + text.size());
}

// --- Conversions: rows that are their bytes ---

template <class Row>
struct plain_row_codec {
  static constexpr std::size_t row_bytes = sizeof(Row);
  static_assert(sizeof(Row) <= row_bytes_max, "rows of this type take more than 64 KiB each");

  static Row row_of(std::span<const std::uint64_t> words) noexcept {
    Row made;
    std::memcpy(static_cast<void*>(&made), words.data(), sizeof made);
    return made;
  }
  static constexpr std::size_t word_count(const Row&) noexcept { return words_for(sizeof(Row)); }
  static void write_words(const Row& from, std::span<std::uint64_t> to) noexcept {
    to.back() = 0;
    std::memcpy(to.data(), &from, sizeof from);
  }
  static bool is_row(std::span<const std::uint64_t> words) noexcept {
    return words.size() == words_for(sizeof(Row));
  }
  // Empty without registered members. Otherwise each member's name with its length, type and offset
  // (docs/LOG_FORMAT.md).
  static std::string schema_text();
};

// The type of an array's elements, or the type itself.
template <class Value>
struct array_element {
  using type = Value;
};
template <class Value, std::size_t Size>
struct array_element<Value[Size]> {
  using type = Value;
};
template <class Value, std::size_t Size>
struct array_element<std::array<Value, Size>> {
  using type = Value;
};

// Characters are bytes. Other arrays and objects of classes are opaque: they cannot change.
template <class Value>
std::string name_of_member_type() {
  using element = typename array_element<Value>::type;
  const std::string size = std::to_string(sizeof(Value));
  if constexpr (is_number_member<Value>) {
    return name_of(type_of_member<Value>());
  } else if constexpr (!is_number_member<element>) {
    return "opaque " + size;
  } else if constexpr (sizeof(element) == 1 && !std::same_as<element, bool>) {
    return "bytes " + size;
  } else {
    return "opaque " + size + " " + name_of(type_of_member<element>());
  }
}

template <class Row>
std::string plain_row_codec<Row>::schema_text() {
  std::string text;
  if constexpr (registered_row<Row>) {
    const Row row{};
    const auto describe = [&]<class Value>(const row_member<Row, Value>& one) {
      const auto* const begin = reinterpret_cast<const std::byte*>(std::addressof(row));
      const auto* const at = reinterpret_cast<const std::byte*>(std::addressof(row.*one.pointer));
      const std::string_view name = one.name;
      if (!text.empty()) text.append(", ");
      text.append(std::to_string(name.size())).append(":").append(name).append(" ");
      text.append(name_of_member_type<Value>()).append(" @").append(std::to_string(at - begin));
    };
    std::apply([&](const auto&... one) { (describe(one), ...); }, members_of<Row>);
  }
  return text;
}

// --- Conversions: rows in the packed form ---

template <registered_row Row>
class packed_row_codec {
  static constexpr std::size_t member_count = std::tuple_size_v<decltype(members_of<Row>)>;

  struct form {
    packed_layout layout;
    std::array<packed_place, member_count> places;
  };
  static constexpr form make_form() noexcept {
    form made{};
    std::size_t i = 0;
    const auto add = [&]<class Value>(const row_member<Row, Value>&) {
      using value = member_value<Value>;
      made.places[i++] = made.layout.add(type_of_member<typename value::type>(), value::nullable);
    };
    std::apply([&](const auto&... one) { (add(one), ...); }, members_of<Row>);
    made.layout.finish();
    return made;
  }
  static constexpr form packed = make_form();

  // Calls fn(member, place) for each member in order.
  template <class Fn>
  static void for_each(Fn&& fn) {
    std::size_t i = 0;
    std::apply([&](const auto&... one) { (fn(one, packed.places[i++]), ...); }, members_of<Row>);
  }

 public:
  static constexpr std::size_t row_bytes =
      packed.layout.rows_vary() ? 0 : words_for(packed.layout.fixed_bytes) * sizeof(std::uint64_t);

  // The columns of a table with such rows.
  static schema columns() {
    std::vector<column_definition> all;
    for_each([&]<class Value>(const row_member<Row, Value>& one, const packed_place&) {
      using value = member_value<Value>;
      all.push_back({.name = one.name,
                     .type = type_of_member<typename value::type>(),
                     .nullable = value::nullable});
    });
    return schema(std::move(all), schema::form::packed);
  }
  static std::string schema_text() { return columns().text(); }

  static std::size_t word_count(const Row& row) {
    std::size_t bytes = packed.layout.fixed_bytes;
    for_each([&]<class Value>(const row_member<Row, Value>& one, const packed_place&) {
      using value = member_value<Value>;
      if constexpr (is_text_member<typename value::type>) {
        const Value& text = row.*one.pointer;
        if constexpr (value::nullable) {
          if (text) bytes += text->size();
        } else {
          bytes += text.size();
        }
      }
    });
    if (bytes > varying_row_bytes_max)
      throw row_too_large("a row of " + std::to_string(bytes) + " bytes (expected at most 16 MiB)");
    return words_for(bytes);
  }
  static void write_words(const Row& from, std::span<std::uint64_t> to) noexcept {
    std::fill(to.begin(), to.end(), 0);
    packed_writer writer(packed.layout, to);
    const auto write = [&]<class Value>(const Value& value, const packed_place& at) {
      if constexpr (is_text_member<Value>) {
        writer.text(at, text_of_member(value));
      } else {
        writer.number(at, value);
      }
    };
    for_each([&]<class Value>(const row_member<Row, Value>& one, const packed_place& at) {
      using value = member_value<Value>;
      if constexpr (!value::nullable) {
        write(from.*one.pointer, at);
      } else if ((from.*one.pointer).has_value()) {
        write(*(from.*one.pointer), at);
      } else {
        write(typename value::type(), at);
        writer.null(at);
      }
    });
  }
  static Row row_of(std::span<const std::uint64_t> words) {
    Row made{};
    const packed_reader reader(packed.layout, words);
    const auto read = [&]<class Value>(Value& to, const packed_place& at) {
      if constexpr (is_text_member<Value>) {
        set_member(to, reader.text(at));
      } else {
        to = reader.template number<Value>(at);
      }
    };
    for_each([&]<class Value>(const row_member<Row, Value>& one, const packed_place& at) {
      Value& to = made.*one.pointer;
      if constexpr (!member_value<Value>::nullable) {
        read(to, at);
      } else if (reader.is_null(at)) {
        to.reset();
      } else {
        read(to.emplace(), at);
      }
    });
    return made;
  }
  // As columns().is_row().
  static bool is_row(std::span<const std::uint64_t> words) noexcept {
    if (words.size_bytes() < packed.layout.fixed_bytes ||
        words.size_bytes() > varying_row_bytes_max)
      return false;
    const packed_reader reader(packed.layout, words);
    bool fits = true;
    std::size_t end = 0;
    for_each([&]<class Value>(const row_member<Row, Value>&, const packed_place& at) {
      using value = typename member_value<Value>::type;
      if constexpr (is_text_member<value>) {
        const std::size_t begin = std::exchange(end, reader.template number<std::uint32_t>(at));
        fits = fits && begin <= end;
      } else if constexpr (std::same_as<value, bool>) {
        fits = fits && reader.template number<std::uint8_t>(at) <= 1;
      }
    });
    return fits && words.size() == words_for(packed.layout.fixed_bytes + end);
  }
};

// --- Choice ---

template <class Row, class... Values>
constexpr bool all_are_stored(const std::tuple<row_member<Row, Values>...>&) noexcept {
  return (stored_member<Values> && ...);
}
template <class Row, class... Values>
constexpr bool one_is_nullable(const std::tuple<row_member<Row, Values>...>&) noexcept {
  return (member_value<Values>::nullable || ...);
}

template <class Row>
concept table_row = plain_value<Row> || (registered_row<Row> && std::semiregular<Row>);

template <table_row Row>
constexpr bool is_stored_as_bytes() noexcept {
  if constexpr (!plain_value<Row>) {
    return false;
  } else if constexpr (registered_row<Row>) {
    return !one_is_nullable(members_of<Row>);
  } else {
    return true;
  }
}

template <class Row>
struct choose_row_codec {
  static_assert(all_are_stored(members_of<Row>),
                "a member listed in ELIDEX_ROW is not of a type that a column can have");
  using type = packed_row_codec<Row>;
};
template <table_row Row>
  requires(is_stored_as_bytes<Row>())
struct choose_row_codec<Row> {
  using type = plain_row_codec<Row>;
};
template <class Row>
using row_codec = typename choose_row_codec<Row>::type;

}  // namespace elidex::internal

// Calls macro(type, x) for each further argument, separated by commas. A scan of the text expands
// one more argument, so the macros below scan it often enough for 64 of them: 121 times.
#define ELIDEX_INTERNAL_PARENTHESES ()
#define ELIDEX_INTERNAL_SCAN_1(...) __VA_ARGS__
#define ELIDEX_INTERNAL_SCAN_3(...) \
  ELIDEX_INTERNAL_SCAN_1(ELIDEX_INTERNAL_SCAN_1(ELIDEX_INTERNAL_SCAN_1(__VA_ARGS__)))
#define ELIDEX_INTERNAL_SCAN_9(...) \
  ELIDEX_INTERNAL_SCAN_3(ELIDEX_INTERNAL_SCAN_3(ELIDEX_INTERNAL_SCAN_3(__VA_ARGS__)))
#define ELIDEX_INTERNAL_SCAN_27(...) \
  ELIDEX_INTERNAL_SCAN_9(ELIDEX_INTERNAL_SCAN_9(ELIDEX_INTERNAL_SCAN_9(__VA_ARGS__)))
#define ELIDEX_INTERNAL_SCAN(...) \
  ELIDEX_INTERNAL_SCAN_27(ELIDEX_INTERNAL_SCAN_27(ELIDEX_INTERNAL_SCAN_27(__VA_ARGS__)))
#define ELIDEX_INTERNAL_MEMBERS(type, member, ...)            \
  ::elidex::internal::describe_member(#member, &type::member) \
      __VA_OPT__(, ELIDEX_INTERNAL_MEMBERS_AGAIN ELIDEX_INTERNAL_PARENTHESES(type, __VA_ARGS__))
#define ELIDEX_INTERNAL_MEMBERS_AGAIN() ELIDEX_INTERNAL_MEMBERS

// Registers a row's members (see the top of this header). At namespace scope, in the namespace of
// the type.
#define ELIDEX_ROW(type, ...)                                                                 \
  [[maybe_unused]] constexpr auto elidex_row_members(const type*) noexcept {                  \
    return std::make_tuple(ELIDEX_INTERNAL_SCAN(ELIDEX_INTERNAL_MEMBERS(type, __VA_ARGS__))); \
  }                                                                                           \
  static_assert(true, "a semicolon follows ELIDEX_ROW()")
