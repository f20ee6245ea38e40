#pragma once
// The peers that are Rust crates, as maps for driven.hpp. bench/peers/rust defines the tables of
// functions; the comment of each Rust source file has the guarantees and the deviations of its
// crate. bench/CMakeLists.txt decides whether they are built, and otherwise defines
// ELIDEX_NO_RUST_PEERS as the reason in words.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "bench/indexes/any_index.hpp"

namespace elidex::bench::rust {

struct entry {
  std::uint64_t key;
  std::uint64_t value;
};

struct any_map;    // any number of threads may use it
struct any_visit;  // of the thread that entered

/// The functions of one peer. A hash map has no scan.
struct functions {
  any_map* (*create)();
  void (*destroy)(any_map* map);
  any_visit* (*enter)(const any_map* map);
  void (*leave)(any_visit* visit);
  bool (*get)(const any_map* map, any_visit* visit, std::uint64_t key, std::uint64_t* value);
  bool (*insert)(const any_map* map, any_visit* visit, std::uint64_t key, std::uint64_t value);
  bool (*update)(const any_map* map, any_visit* visit, std::uint64_t key, std::uint64_t value);
  bool (*add)(const any_map* map, any_visit* visit, std::uint64_t key, std::uint64_t delta);
  bool (*erase)(const any_map* map, any_visit* visit, std::uint64_t key);
  std::size_t (*scan)(const any_map* map, any_visit* visit, std::uint64_t from, std::size_t limit,
                      entry* entries);
};

extern "C" {
extern const functions elidex_bplustree;
extern const functions elidex_concurrent_map;
extern const functions elidex_congee;
extern const functions elidex_crossbeam_skiplist;
extern const functions elidex_dashmap;
extern const functions elidex_papaya;
extern const functions elidex_scc_hash;
extern const functions elidex_scc_tree;
}

template <const functions& Peer>
class hash_map {
 public:
  /// The thread's visit, which its first operation begins: one index is run at a time.
  class visit {
   public:
    visit() { this_visit = nullptr; }
    visit(const visit&) = delete;
    visit& operator=(const visit&) = delete;
    ~visit() {
      if (this_visit != nullptr) Peer.leave(this_visit);
    }
  };

  hash_map() = default;
  hash_map(const hash_map&) = delete;
  hash_map& operator=(const hash_map&) = delete;
  ~hash_map() { Peer.destroy(map_); }

  bool read(std::uint64_t key, index_value& value) { return Peer.get(map_, here(), key, &value); }
  bool insert(std::uint64_t key, index_value value) {
    return Peer.insert(map_, here(), key, value);
  }
  bool update(std::uint64_t key, index_value value) {
    return Peer.update(map_, here(), key, value);
  }
  bool modify(std::uint64_t key, index_value delta) { return Peer.add(map_, here(), key, delta); }
  bool erase(std::uint64_t key) { return Peer.erase(map_, here(), key); }

 protected:
  std::size_t scan_into(std::uint64_t from, std::size_t limit, entry* entries) {
    return Peer.scan(map_, here(), from, limit, entries);
  }

 private:
  any_visit* here() {
    if (this_visit == nullptr) this_visit = Peer.enter(map_);
    return this_visit;
  }

  inline static thread_local any_visit* this_visit = nullptr;
  any_map* map_ = Peer.create();
};

template <const functions& Peer>
class ordered_map : public hash_map<Peer> {
 public:
  std::size_t scan(std::uint64_t from, std::size_t limit, index_value& sum) {
    // The thread's own, kept from one scan to the next.
    thread_local std::vector<entry> entries;
    if (entries.size() < limit) entries.resize(limit);
    const std::size_t count = this->scan_into(from, limit, entries.data());
    for (std::size_t i = 0; i < count; ++i) sum += entries[i].value;
    return count;
  }
};

}  // namespace elidex::bench::rust
