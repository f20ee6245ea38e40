#include "elidex/column.hpp"

namespace elidex {

template class column<std::uint64_t>;
template class column<std::int64_t>;
template class column<double>;
template class column<std::string>;

}  // namespace elidex
