#pragma once
// What an experiment changes in indexes that elide by RTM, for sensitivity tables. Set before the
// index is made.
//
// Thread-safety: written before threads start, read afterwards.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bench/support/bad_input.hpp"
#include "elidex/internal/sync/retry.hpp"

namespace elidex::bench {

/// Retries after conflicts; none: the index's own.
inline std::optional<std::uint32_t> conflict_retries_asked_for;
/// The same for the regions of a database's commit.
inline std::optional<std::uint32_t> commit_retries_asked_for;

/// Whether a leaf of btree/htm-dbx has a version that every write counts up, and where.
enum class leaf_version : std::uint8_t { none, in_head, on_own_line };
inline leaf_version leaf_version_asked_for = leaf_version::none;

/// Throws bad_input for what is no version.
[[nodiscard]] inline leaf_version parse_leaf_version(std::string_view name) {
  if (name == "none") return leaf_version::none;
  if (name == "head") return leaf_version::in_head;
  if (name == "line") return leaf_version::on_own_line;
  throw bad_input("leaf_version: invalid value '" + std::string(name) +
                  "' (expected none, head or line)");
}

/// Such budgets, unless an experiment asks for another number of retries after conflicts.
template <class Budgets, const std::optional<std::uint32_t>& Retries = conflict_retries_asked_for>
struct asked_for : Budgets {
  asked_for() noexcept {
    const std::optional<std::uint32_t> wanted = Retries;
    if (wanted) this->conflict = this->lock_busy = *wanted;
  }
};

}  // namespace elidex::bench
