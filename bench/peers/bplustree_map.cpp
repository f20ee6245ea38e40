// The peer bplustree: the Rust crate of this name, a B+tree with optimistic lock coupling and
// leaves of 256 entries. Integer keys only, by choice. Known of version 0.1.0:
// - It panics in a race when a tree of three levels or more grows by one; the driver begins such an
//   operation again, see bench/peers/rust/src/bplustree_peer.rs.
// - It writes a line to standard output where an insert wants to split a leaf that an erase has
//   just merged away.
// - It doesn't free its nodes when it is dropped; the driver empties it first, outside of what is
//   measured.

#include "bench/indexes/factories.hpp"
#include "bench/peers/rust_peers.hpp"

namespace elidex::bench {
#if !defined(ELIDEX_NO_RUST_PEERS)
namespace {

template <class Key>
class bplustree_map {
 public:
  bplustree_map() = default;
  bplustree_map(const bplustree_map&) = delete;
  bplustree_map& operator=(const bplustree_map&) = delete;
  ~bplustree_map() { rust::elidex_bplustree_destroy(tree_); }

  bool read(Key key, index_value& value) { return rust::elidex_bplustree_get(tree_, key, &value); }
  bool insert(Key key, index_value value) {
    return rust::elidex_bplustree_insert(tree_, key, value);
  }
  bool update(Key key, index_value value) {
    return rust::elidex_bplustree_replace(tree_, key, value);
  }
  bool modify(Key key, index_value delta) { return rust::elidex_bplustree_add(tree_, key, delta); }
  bool erase(Key key) { return rust::elidex_bplustree_erase(tree_, key); }

  std::size_t scan(Key from, std::size_t limit, index_value& sum) {
    rust::entry* const entries = rust::room_for(limit);
    const std::size_t count = rust::elidex_bplustree_scan(tree_, from, limit, entries);
    sum += rust::sum_of_values(entries, count);
    return count;
  }

 private:
  rust::bplustree_tree* tree_ = rust::elidex_bplustree_create();
};

}  // namespace
#endif

index_info bplustree_map_info() {
  return {
      .name = "bplustree",
      .description =
          "peer: Rust's bplustree, a B+tree with optimistic lock coupling; scans see no snapshot",
#if defined(ELIDEX_NO_RUST_PEERS)
      .not_built = ELIDEX_NO_RUST_PEERS
#else
      .make_u64 = make_driven<std::uint64_t, bplustree_map<std::uint64_t> >,
      .loads_in_parallel = true
#endif
  };
}

}  // namespace elidex::bench
