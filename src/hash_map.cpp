#include "elidex/hash_map.hpp"

namespace elidex {

template class hash_map<std::uint64_t, std::uint64_t>;
template class hash_map<std::string, std::uint64_t>;
template class hash_map<std::string, std::string>;

}  // namespace elidex
