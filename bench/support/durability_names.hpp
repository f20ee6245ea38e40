#pragma once
// The names of durability levels, as flags and JSON have them.
//
//   name_of(db::durability::sync);  // "sync"
//   durability_of("sync");          // db::durability::sync
//
// Thread-safety: pure functions.

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

#include "elidex/internal/log/redo_log.hpp"

namespace elidex::bench {

inline constexpr std::array<std::string_view, 3> durability_names{"none", "async", "sync"};

[[nodiscard]] constexpr std::string_view name_of(internal::durability level) noexcept {
  return durability_names[static_cast<std::size_t>(level)];
}

[[nodiscard]] constexpr std::optional<internal::durability> durability_of(std::string_view text) {
  const auto found = std::find(durability_names.begin(), durability_names.end(), text);
  if (found == durability_names.end()) return std::nullopt;
  return static_cast<internal::durability>(found - durability_names.begin());
}

}  // namespace elidex::bench
