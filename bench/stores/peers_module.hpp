#pragma once
// What the library of the peers exports.

#include <vector>

#include "bench/stores/store.hpp"

/// Appends what the library has. The library must stay loaded while the result is used.
extern "C" void elidex_store_peers(std::vector<elidex::bench::stores::store_info>& into);
