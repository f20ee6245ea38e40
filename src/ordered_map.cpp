#include "elidex/ordered_map.hpp"

namespace elidex {

template class btree<std::uint64_t, std::uint64_t, optimistic, node_bytes<1024, 1024>>;
template class btree<std::string, std::uint64_t, optimistic, node_bytes<1024, 1024>>;
template class btree<std::string, std::string, optimistic, node_bytes<1024, 1024>>;

}  // namespace elidex
