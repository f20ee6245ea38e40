#include <algorithm>
#include <array>

#include "bench/stores/store.hpp"

namespace elidex::bench::stores {

std::span<const store_info> stores() {
  static const std::array all{elidex_store_info(), sqlite_store_info(), lmdb_store_info(),
                              rocksdb_store_info()};
  return all;
}

const store_info* find_store(std::string_view name) {
  const auto all = stores();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace elidex::bench::stores
