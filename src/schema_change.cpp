#include "elidex/internal/txn/schema_change.hpp"

#include <algorithm>

#include "elidex/internal/txn/errors.hpp"

namespace elidex::internal {
namespace {

const column_definition* find_column(const schema& in, std::string_view name) {
  const auto& all = in.columns();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

// Whether each value of `from` is one of `to`.
bool widens(const column_definition& from, const column_definition& to) {
  if (from.nullable && !to.nullable) return false;
  if (is_text(from.type)) {
    const std::size_t limit = to.text_bytes_max;
    return from.type == to.type &&
           (limit == 0 || (from.text_bytes_max != 0 && from.text_bytes_max <= limit));
  }
  if (from.type == to.type) return true;
  const std::size_t from_bytes = packed_bytes(from.type);
  const std::size_t to_bytes = packed_bytes(to.type);
  if (from.type == column_type::boolean) return false;
  if (to.type == column_type::real)
    return from.type == column_type::float32 || (is_integer(from.type) && from_bytes <= 4);
  if (!is_integer(from.type) || !is_integer(to.type) || to.type == column_type::boolean)
    return false;
  if (is_signed_integer(from.type) == is_signed_integer(to.type)) return from_bytes <= to_bytes;
  return is_signed_integer(to.type) && from_bytes < to_bytes;
}

}  // namespace

row_conversion::row_conversion(const schema& from, const schema& to, const schema_change& change)
    : from_(from), to_(to) {
  std::vector<std::string> filled;
  const auto& dropped = change.dropped_;
  const auto is_in = [](const auto& list, std::string_view name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  const auto renamed = [&](std::string name) {
    for (const auto& [before, after] : change.renamed_) {
      if (name == before) name = after;
    }
    return name;
  };
  for (const column_definition& one : from_.columns()) {
    const std::string name = renamed(one.name);
    const auto& all = from_.columns();
    // Its name may be another column's now.
    const bool gives_way =
        is_in(dropped, one.name) && std::any_of(all.begin(), all.end(), [&](const auto& other) {
          return other.name != one.name && renamed(other.name) == one.name;
        });
    if (gives_way) continue;
    const column_definition* const place = find_column(to_, name);
    if (place == nullptr) {
      if (is_in(dropped, name)) continue;
      throw schema_mismatch(one.name + ": the directory has this column, the program has not " +
                            "(expected schema_change::drop() or rename())");
    }
    if (is_in(filled, name))
      throw schema_mismatch(name + ": two columns of the directory would have this name " +
                            "(expected schema_change::drop() of one)");
    if (from_.contents_of(one.name) != to_.contents_of(name) ||
        (!to_.contents_of(name).empty() && one.text_bytes_max != place->text_bytes_max))
      throw schema_mismatch(one.name + ": a member of a class or array type cannot change " +
                            "(expected a member of the same type and size)");
    if (!widens(one, *place))
      throw schema_mismatch(one.name + ": the column of type " + name_of(one.type) +
                            " cannot become " + name_of(place->type) +
                            " (expected a type, limit and nullability that keep all values)");
    copied_.push_back({one.name, name, one.type});
    filled.push_back(name);
  }
  for (const column_definition& one : to_.columns()) {
    if (is_in(filled, one.name)) continue;
    const auto& added = change.added_;
    const auto value = std::find_if(added.begin(), added.end(),
                                    [&](const auto& with) { return with.first == one.name; });
    if (value != added.end()) {
      set_.push_back(value->second);
    } else if (!one.nullable) {
      throw schema_mismatch(one.name + ": the program has this column, the directory has not " +
                            "(expected schema_change::add() with a value, or a nullable column)");
    }
  }
}

void row_conversion::copy(const row& from, const column& which, row& to) const {
  if (from.is_null(which.from)) return;  // as in a new row
  switch (which.from_type) {
    case column_type::text:
      to.set(which.to, from.text(which.from));
      return;
    case column_type::bytes:
      to.set(which.to, from.bytes(which.from));
      return;
    case column_type::real:
    case column_type::float32:
      to.set(which.to, from.real(which.from));
      return;
    case column_type::uint64:
      to.set(which.to, from.unsigned_integer(which.from));
      return;
    default:
      break;
  }
  const std::int64_t value = from.integer(which.from);
  if (find_column(to_, which.to)->type == column_type::real) {
    to.set(which.to, static_cast<double>(value));
  } else {
    to.set(which.to, value);
  }
}

row row_conversion::converted(std::span<const std::uint64_t> before) const {
  const row from(from_, before);
  row made(to_);
  for (const column& one : copied_) copy(from, one, made);
  for (const auto& set : set_) set(made);
  return made;
}

}  // namespace elidex::internal
