// The peer congee: the Rust crate of this name, an adaptive radix tree with optimistic lock
// coupling. Integer keys only: it takes keys of one length. The use of its guards is described in
// bench/peers/rust/src/congee_peer.rs. Its scan sees no snapshot of more than one node. From
// reading version 0.4.1, not observed: the entries that a scan passes over before its first one are
// read without a check at their end, so that a key behind them may be missed while another thread
// inserts a smaller one into the same node.

#include "bench/indexes/factories.hpp"
#include "bench/peers/rust_peers.hpp"

namespace elidex::bench {
#if !defined(ELIDEX_NO_RUST_PEERS)
namespace {

// The visit of this thread: one index is run at a time.
thread_local rust::congee_visit* this_visit = nullptr;

class entered {
 public:
  entered() { this_visit = rust::elidex_congee_enter(); }
  entered(const entered&) = delete;
  entered& operator=(const entered&) = delete;
  ~entered() { rust::elidex_congee_leave(this_visit); }
};

template <class Key>
class congee_map {
 public:
  using visit = entered;

  congee_map() = default;
  congee_map(const congee_map&) = delete;
  congee_map& operator=(const congee_map&) = delete;
  ~congee_map() { rust::elidex_congee_destroy(tree_); }

  bool read(Key key, index_value& value) {
    return rust::elidex_congee_get(tree_, this_visit, key, &value);
  }
  bool insert(Key key, index_value value) {
    return rust::elidex_congee_insert(tree_, this_visit, key, value);
  }
  bool update(Key key, index_value value) {
    return rust::elidex_congee_replace(tree_, this_visit, key, value);
  }
  bool modify(Key key, index_value delta) {
    return rust::elidex_congee_add(tree_, this_visit, key, delta);
  }
  bool erase(Key key) { return rust::elidex_congee_erase(tree_, this_visit, key); }

  std::size_t scan(Key from, std::size_t limit, index_value& sum) {
    rust::entry* const entries = rust::room_for(limit);
    const std::size_t count = rust::elidex_congee_scan(tree_, this_visit, from, limit, entries);
    sum += rust::sum_of_values(entries, count);
    return count;
  }

 private:
  rust::congee_tree* tree_ = rust::elidex_congee_create();
};

}  // namespace
#endif

index_info congee_map_info() {
  return {.name = "congee",
          .description =
              "peer: Rust's congee, an adaptive radix tree with optimistic locks; scans see no "
              "snapshot",
#if defined(ELIDEX_NO_RUST_PEERS)
          .not_built = ELIDEX_NO_RUST_PEERS
#else
          .make_u64 = make_driven<std::uint64_t, congee_map<std::uint64_t> >,
          .loads_in_parallel = true
#endif
  };
}

}  // namespace elidex::bench
