#pragma once
// The peers that are Rust crates. bench/peers/rust defines these functions; its comments have each
// function's guarantees. bench/CMakeLists.txt decides whether they are built, and otherwise defines
// ELIDEX_NO_RUST_PEERS as the reason in words.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace elidex::bench::rust {

struct entry {
  std::uint64_t key;
  std::uint64_t value;
};

struct congee_tree;   // any number of threads may use it
struct congee_visit;  // of the thread that entered
struct bplustree_tree;

extern "C" {
congee_tree* elidex_congee_create();
void elidex_congee_destroy(congee_tree* tree);
congee_visit* elidex_congee_enter();
void elidex_congee_leave(congee_visit* visit);
bool elidex_congee_get(const congee_tree* tree, congee_visit* visit, std::uint64_t key,
                       std::uint64_t* value);
bool elidex_congee_insert(const congee_tree* tree, congee_visit* visit, std::uint64_t key,
                          std::uint64_t value);
bool elidex_congee_upsert(const congee_tree* tree, congee_visit* visit, std::uint64_t key,
                          std::uint64_t value);
bool elidex_congee_replace(const congee_tree* tree, congee_visit* visit, std::uint64_t key,
                           std::uint64_t value);
bool elidex_congee_add(const congee_tree* tree, congee_visit* visit, std::uint64_t key,
                       std::uint64_t delta);
bool elidex_congee_erase(const congee_tree* tree, congee_visit* visit, std::uint64_t key);
std::size_t elidex_congee_scan(const congee_tree* tree, congee_visit* visit, std::uint64_t from,
                               std::size_t limit, entry* entries);

bplustree_tree* elidex_bplustree_create();
void elidex_bplustree_destroy(bplustree_tree* tree);
bool elidex_bplustree_get(const bplustree_tree* tree, std::uint64_t key, std::uint64_t* value);
bool elidex_bplustree_insert(const bplustree_tree* tree, std::uint64_t key, std::uint64_t value);
bool elidex_bplustree_upsert(const bplustree_tree* tree, std::uint64_t key, std::uint64_t value);
bool elidex_bplustree_replace(const bplustree_tree* tree, std::uint64_t key, std::uint64_t value);
bool elidex_bplustree_add(const bplustree_tree* tree, std::uint64_t key, std::uint64_t delta);
bool elidex_bplustree_erase(const bplustree_tree* tree, std::uint64_t key);
std::size_t elidex_bplustree_scan(const bplustree_tree* tree, std::uint64_t from, std::size_t limit,
                                  entry* entries);
}

/// Room for what a scan finds, the thread's own and kept from one scan to the next; contents
/// unspecified.
inline entry* room_for(std::size_t limit) {
  thread_local std::vector<entry> entries;
  if (entries.size() < limit) entries.resize(limit);
  return entries.data();
}

inline std::uint64_t sum_of_values(const entry* entries, std::size_t count) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += entries[i].value;
  return sum;
}

}  // namespace elidex::bench::rust
