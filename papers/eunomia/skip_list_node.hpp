// What the skip lists share: how high a node is, what it looks like, and where its memory comes
// from.
//
//   leveled_node<Key, Payload, Link>* n = node::make(pools.allocate(height), height, key,
//       payload...);
//   n->link(0) = ...;
//
// A skip list (Pugh, 1990) is a sorted linked list in which a node has a random number of further
// links, each of which skips more nodes than the one below. Only the lowest level says what is in
// the list: the others are short cuts, and any of them may be missing.
//
// Heights: level i + 1 has a node of level i with probability 1 / 2^BitsPerLevel; 1 / 4 unless a
// test wants more high nodes. With 16 levels that is right for four thousand million keys.
// Thread-safety: level_generator and leveled_pools all; a node what the list makes of it.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <utility>

#include "elidex/internal/memory/block_pool.hpp"
#include "elidex/internal/memory/epoch.hpp"

namespace elidex::papers {

using namespace internal;

// Counts since construction; each exact when no operation runs.
struct skip_list_stats {
  std::int64_t restarts = 0;        // attempts thrown away because another thread changed something
  std::size_t nodes = 0;            // in use, the list's head and retired ones included
  std::size_t retired_objects = 0;  // what has been unlinked and waits for its epoch
  // segments with conflict control (euno_skip_list.hpp), retired ones included
  std::size_t controls = 0;
};

inline constexpr unsigned skip_levels = 16;

// Draws heights. Each thread has a sequence of its own in each list, given by its slot, so that
// equal runs make equal lists; where two threads share a shard, they may draw the same number
// twice.
template <unsigned BitsPerLevel>
class level_generator {
 public:
  // From 1 to skip_levels.
  unsigned draw() noexcept {
    const std::size_t mine = this_thread_slot_or_0() % shards_.size();
    // relaxed, without a partner: a lost count repeats a height.
    const std::uint64_t n = shards_[mine].drawn.load(std::memory_order_relaxed) + 1;
    shards_[mine].drawn.store(n, std::memory_order_relaxed);  // no partner, as above
    const auto zeros = static_cast<unsigned>(std::countr_zero(scatter(n * shards_.size() + mine)));
    return std::min(1 + zeros / BitsPerLevel, skip_levels);
  }

 private:
  // The finalizer of SplitMix64 (Steele et al., 2014): every bit of the result depends on every bit
  // of n.
  static std::uint64_t scatter(std::uint64_t n) noexcept {
    n *= 0x9E37'79B9'7F4A'7C15u;
    n = (n ^ (n >> 30U)) * 0xBF58'476D'1CE4'E5B9u;
    n = (n ^ (n >> 27U)) * 0x94D0'49BB'1331'11EBu;
    return n ^ (n >> 31U);
  }
  struct alignas(64) shard {
    std::atomic<std::uint64_t> drawn{0};
  };
  std::array<shard, 16> shards_{};
};

// A node with its links densely behind it. Key and height never change.
template <class Key, class Payload, class Link>
class alignas(Link) leveled_node {
 public:
  // Into memory of bytes(height).
  template <class... Arguments>
  static leveled_node* make(void* memory, unsigned height, Key key,
                            Arguments&&... payload) noexcept {
    auto* const made =
        ::new (memory) leveled_node(height, key, std::forward<Arguments>(payload)...);
    for (unsigned level = 0; level < height; ++level)
      ::new (static_cast<void*>(made->links() + level)) Link{};
    return made;
  }
  static constexpr std::size_t bytes(unsigned height) noexcept {
    return sizeof(leveled_node) + height * sizeof(Link);
  }
  // For reports: the record and the links of the two lowest levels.
  static constexpr std::size_t head_bytes() noexcept { return bytes(2); }

  Link& link(unsigned level) noexcept { return links()[level]; }

  const Key key;
  const std::uint8_t height;
  Payload payload;

 private:
  template <class... Arguments>
  leveled_node(unsigned h, Key k, Arguments&&... p) noexcept
      : key(k), height(static_cast<std::uint8_t>(h)), payload{std::forward<Arguments>(p)...} {}
  Link* links() noexcept { return std::launder(reinterpret_cast<Link*>(this + 1)); }
};

// A pool for each number of cache lines that a node may take. Layout says how many bytes it takes
// at a height.
template <class Layout>
class leveled_pools {
 public:
  // Throws std::bad_alloc.
  [[nodiscard]] void* allocate(unsigned height) { return pool_for(height).allocate(); }
  void deallocate(void* node, unsigned height) noexcept { pool_for(height).deallocate(node); }

  std::size_t reserved_bytes() const noexcept {
    std::size_t sum = 0;
    for (const block_pool& pool : pools_) sum += pool.reserved_bytes();
    return sum;
  }
  std::size_t blocks_in_use() const noexcept {
    std::size_t sum = 0;
    for (const block_pool& pool : pools_) sum += pool.blocks_in_use();
    return sum;
  }

 private:
  static constexpr std::size_t line_bytes = block_pool::block_alignment;
  static constexpr std::size_t lines(unsigned height) noexcept {
    return (Layout::bytes(height) + line_bytes - 1) / line_bytes;
  }
  static constexpr std::size_t fewest = lines(1);
  static constexpr std::size_t sizes = lines(skip_levels) - fewest + 1;

  template <std::size_t... Extra>
  static std::array<block_pool, sizes> make(std::index_sequence<Extra...>) noexcept {
    return {block_pool((fewest + Extra) * line_bytes, "node", Layout::head_bytes())...};
  }
  block_pool& pool_for(unsigned height) noexcept { return pools_[lines(height) - fewest]; }

  std::array<block_pool, sizes> pools_ = make(std::make_index_sequence<sizes>());
};

// A node made before it is needed; goes back to its list's pools unless it is taken.
template <class List>
class spare_node {
  using node = typename List::node;

 public:
  explicit spare_node(List& list) noexcept : list_(list) {}
  ~spare_node() {
    if (node_ != nullptr) list_.free_node(node_);
  }
  spare_node(const spare_node&) = delete;
  spare_node& operator=(const spare_node&) = delete;

  // Throws std::bad_alloc.
  template <class... Arguments>
  void provide(Arguments&&... arguments) {
    if (node_ == nullptr) node_ = list_.new_node(std::forward<Arguments>(arguments)...);
  }
  node* get() const noexcept { return node_; }
  node* take() noexcept { return std::exchange(node_, nullptr); }

 private:
  List& list_;
  node* node_ = nullptr;
};

// A scan that is no snapshot: collect(from, most, part) gathers some records and says where to go
// on, if anywhere; fn sees them when no lock is held.
template <class Part, class Key, class Collect, class Fn>
std::size_t scan_in_parts(Key from, std::size_t limit, Collect&& collect, Fn&& fn) {
  std::size_t count = 0;
  for (std::optional<Key> next = from; next && count < limit;) {
    Part part;
    next = collect(*next, limit - count, part);
    for (const auto& e : part.items()) fn(e.key, e.value);
    count += part.size();
  }
  return count;
}

}  // namespace elidex::papers
