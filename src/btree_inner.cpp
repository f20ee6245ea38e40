#include "elidex/internal/tree/btree_inner.hpp"

#include <atomic>

namespace elidex::internal {

std::uint64_t new_tree_id() noexcept {
  static constinit std::atomic<std::uint64_t> ids_given{0};
  return ids_given.fetch_add(1) + 1;
}

}  // namespace elidex::internal
