#include <dlfcn.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bench/stores/peers_module.hpp"
#include "bench/stores/store.hpp"

namespace elidex::bench::stores {
namespace {

// Loads the library of the peers, and never unloads it.
void add_peers(std::vector<store_info>& into) {
  void* const library = ::dlopen(ELIDEX_STORE_PEERS_MODULE, RTLD_NOW | RTLD_LOCAL);
  if (void* const found = library != nullptr ? ::dlsym(library, "elidex_store_peers") : nullptr) {
    reinterpret_cast<decltype(&elidex_store_peers)>(found)(into);
    return;
  }
  const std::string reason = std::string("its library cannot be loaded: ") + ::dlerror();
  for (const char* const name : {"sqlite", "lmdb", "rocksdb"})
    into.push_back({.name = name,
                    .description = "peer",
                    .levels = {},
                    .open = {},
                    .version = {},
                    .not_built = reason});
}

}  // namespace

std::span<const store_info> stores() {
  static const std::vector<store_info> all = [] {
    std::vector<store_info> found{elidex_store_info()};
    add_peers(found);
    return found;
  }();
  return all;
}

const store_info* find_store(std::string_view name) {
  const auto all = stores();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace elidex::bench::stores
