// The peers as a library that is loaded when a store is named. Linked into the program, RocksDB
// would take memory and time from every other command.

#include "bench/stores/peers_module.hpp"

extern "C" void elidex_store_peers(std::vector<elidex::bench::stores::store_info>& into) {
  using namespace elidex::bench::stores;
  into.push_back(sqlite_store_info());
  into.push_back(lmdb_store_info());
  into.push_back(rocksdb_store_info());
}
