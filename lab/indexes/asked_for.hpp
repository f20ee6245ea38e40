#pragma once
// What an experiment changes in btree/htm-dbx, for sensitivity tables. Set before the index is made.
//
// Thread-safety: written before threads start, read afterwards.

#include <cstdint>
#include <optional>

#include "elidex/sync/retry.hpp"

namespace elidex::lab {

/// Retries after conflicts; none: DBX's.
inline std::optional<std::uint32_t> conflict_retries_asked_for;

/// Whether a leaf has a version that every write counts up, and where.
enum class leaf_version : std::uint8_t { none, in_head, on_own_line };
inline leaf_version leaf_version_asked_for = leaf_version::none;

/// DBX's, unless an experiment asks for another number of retries after conflicts.
struct asked_for_budgets : dbx_budgets {
  asked_for_budgets() noexcept {
    if (conflict_retries_asked_for) conflict = lock_busy = *conflict_retries_asked_for;
  }
};

}  // namespace elidex::lab
