#include "elidex/ordered_map.hpp"

namespace elidex::internal {

template class fixed_key_btree<std::uint64_t, std::uint64_t, optimistic, ordered_tree_shape,
                               no_control>;
template class fixed_key_btree<std::uint64_t, std::uint64_t, htm_split_regions, ordered_tree_shape,
                               no_control>;
template class btree<std::string, std::uint64_t, optimistic, node_bytes<1024, 1024>>;
template class btree<std::string, std::string, optimistic, node_bytes<1024, 1024>>;

}  // namespace elidex::internal
