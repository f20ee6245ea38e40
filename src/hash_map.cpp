#include "elidex/hash_map.hpp"

namespace elidex::internal {

template class hash_index<std::uint64_t, std::uint64_t>;
template class hash_index<std::string, std::uint64_t>;
template class hash_index<std::string, std::string>;

}  // namespace elidex::internal
