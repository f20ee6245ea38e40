// The info functions of the peers that are Rust crates. All have integer keys only: congee takes
// keys of one length, the others by choice. What each crate does differently from the other
// indexes is in the comment of its file in bench/peers/rust/src.

#include "bench/peers/rust_peers.hpp"

#include "bench/indexes/factories.hpp"

namespace elidex::bench {
namespace {

/// The info with the factory, or with the reason why this build has none.
#if defined(ELIDEX_NO_RUST_PEERS)
#  define ELIDEX_RUST_MAP(MAP, PEER) nullptr
constexpr std::string_view no_rust_peers = ELIDEX_NO_RUST_PEERS;
#else
#  define ELIDEX_RUST_MAP(MAP, PEER) make_driven<std::uint64_t, rust::MAP<rust::PEER>>
constexpr std::string_view no_rust_peers = {};
#endif

using factory = decltype(index_info::make_u64);

index_info ordered(std::string_view name, std::string_view description, factory make) {
  return {.name = name,
          .description = description,
          .make_u64 = make,
          .loads_in_parallel = true,
          .not_built = no_rust_peers};
}

index_info hashed(std::string_view name, std::string_view description, factory make) {
  index_info info = ordered(name, description, make);
  info.no_scan = "has its keys in no order";
  return info;
}

}  // namespace

index_info congee_map_info() {
  return ordered("congee",
                 "peer: Rust's congee, an adaptive radix tree with optimistic locks; scans see no "
                 "snapshot",
                 ELIDEX_RUST_MAP(ordered_map, elidex_congee));
}

index_info bplustree_map_info() {
  return ordered("bplustree",
                 "peer: Rust's bplustree, a B+tree with optimistic lock coupling; scans see no "
                 "snapshot",
                 ELIDEX_RUST_MAP(ordered_map, elidex_bplustree));
}

index_info crossbeam_skiplist_info() {
  return ordered("crossbeam-skiplist",
                 "peer: Rust's crossbeam SkipMap, a lock-free skip list; values as atomics; scans "
                 "see no snapshot",
                 ELIDEX_RUST_MAP(ordered_map, elidex_crossbeam_skiplist));
}

index_info scc_tree_info() {
  return ordered("scc-tree",
                 "peer: Rust's scc TreeIndex, a B+tree with lock-free reads; values as atomics; "
                 "scans see no snapshot",
                 ELIDEX_RUST_MAP(ordered_map, elidex_scc_tree));
}

index_info concurrent_map_info() {
  return ordered("concurrent-map",
                 "peer: Rust's concurrent-map, a lock-free B+tree; a write copies its leaf; scans "
                 "see no snapshot",
                 ELIDEX_RUST_MAP(ordered_map, elidex_concurrent_map));
}

index_info scc_hash_info() {
  return hashed("scc-hash", "peer: Rust's scc HashMap, with a lock in each bucket of 32 entries",
                ELIDEX_RUST_MAP(hash_map, elidex_scc_hash));
}

index_info dashmap_info() {
  return hashed("dashmap", "peer: Rust's dashmap, hash tables behind reader-writer locks",
                ELIDEX_RUST_MAP(hash_map, elidex_dashmap));
}

index_info papaya_info() {
  return hashed("papaya", "peer: Rust's papaya, a lock-free hash map; an update replaces the entry",
                ELIDEX_RUST_MAP(hash_map, elidex_papaya));
}

}  // namespace elidex::bench
