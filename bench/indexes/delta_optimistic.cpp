// The delta's dictionary with the index that a column has where no hardware transactions commit:
// ordered_map's tree, which holds the values themselves.

#include "bench/indexes/delta_set.hpp"
#include "elidex/internal/column/keyed_delta_index.hpp"

namespace elidex::bench {

using namespace internal;

namespace {

// Optimistic on every machine.
template <class Key>
struct index : keyed_delta_index<Key> {
  index() = default;
};
template <>
struct index<std::uint64_t> : keyed_delta_index<std::uint64_t> {
  index() : keyed_delta_index(synchronization::optimistic) {}
};

template <class Key>
using set = delta_set<index<Key>>;

}  // namespace

index_info delta_optimistic_info() {
  index_info info = delta_info("delta/optimistic",
                               "a delta's dictionary found by ordered_map's tree, optimistic");
  info.make_u64 = make_driven<std::uint64_t, set<std::uint64_t>>;
  info.make_string = make_driven<std::string, set<std::string>>;
  return info;
}

}  // namespace elidex::bench
