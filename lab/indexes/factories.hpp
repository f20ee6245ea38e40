#pragma once
// What an index's source file needs to register itself: the factory that index_info points to, and the list of the info
// functions that registry.cpp collects.

#include <memory>

#include "lab/indexes/driven.hpp"
#include "lab/indexes/registry.hpp"

namespace elidex::lab {

/// A factory for Map<Key>, a map as described in driven.hpp.
template <class Key, template <class> class Map>
std::unique_ptr<any_index<Key>> make_driven() {
  return std::make_unique<driven<Key, Map<Key>>>();
}

index_info absl_mutex_info();
index_info std_shared_mutex_info();
index_info tbb_map_info();
index_info libcds_map_info();

}  // namespace elidex::lab
