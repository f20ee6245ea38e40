#pragma once
// The databases that the table store's benchmarks run on, by name.
//
//   const database_info* silo = find_database("db/silo");
//   silo->description
//
// Their types are in database_types.hpp, in the same order.
//
// Thread-safety: constants, and remarks that read. Errors: none.

#include <span>
#include <string>
#include <string_view>

namespace elidex::bench::table_store {

struct database_info {
  std::string_view name;
  std::string_view description;
  /// For a line behind the results; null or empty: nothing to tell.
  std::string (*remark)();
};

[[nodiscard]] std::span<const database_info> databases();
/// Null if there is none.
[[nodiscard]] const database_info* find_database(std::string_view name);

/// Of databases(), which the argument is one of.
[[nodiscard]] std::size_t number_of(const database_info& one);

}  // namespace elidex::bench::table_store
