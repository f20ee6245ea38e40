// A cursor over an ordered map that other threads may change during the walk.
//
//   auto c = map.cursor();
//   for (c.seek(100); c.valid(); c.next()) use(c.key(), c.value());
//   for (c.seek_last(); c.valid(); c.prev()) use(c.key(), c.value());
//
// Guarantees: each leaf's records are a snapshot, taken when the cursor came to the leaf. Keys come
// in strictly ascending (next) or descending (prev) order. A key that is present during the whole
// walk is visited exactly once. A key that is inserted or erased during the walk may be missed. For
// a snapshot of a range use scan().
// Thread-safety: a cursor is for one thread at a time, and may be moved to another thread. Any
// thread may use the map at the same time.
// Complexity: O(log n) for each seek. next() and prev() take O(1), or O(log n) at the end of a
// leaf.
// Lifetime: a cursor stays valid while other threads insert and erase, even if they erase its key.
// The map must outlive the cursor. A cursor holds back no reclamation, however long it lives.
// Errors: std::bad_alloc from the seeks, next() and prev(). The cursor is then unchanged.
// std::invalid_argument from the seeks for a key of more than 64 KiB.
// key(), value(), next() and prev() need valid(); the results of key() and value() are valid until
// the cursor moves.
//
// Implementation notes
// The cursor copies the records of one leaf at a time. Between these copies it holds no lock, no
// pin and no address of the map.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "elidex/internal/tree/range_collector.hpp"

namespace elidex::internal {

template <class Map>
class map_cursor {
  using key_type = typename Map::key_type;
  using mapped_type = typename Map::mapped_type;
  using key_argument = typename Map::key_argument;
  using keys = typename Map::keys;
  using values = typename Map::values;
  using collector = range_collector<Map>;
  using start = typename collector::start;

 public:
  explicit map_cursor(const Map& map) noexcept : map_(&map) {}

  // True while the cursor is at a key.
  bool valid() const noexcept { return at_ < records_.size(); }
  key_argument key() const noexcept { return records_[at_].first; }
  const mapped_type& value() const noexcept { return records_[at_].second; }

  // Moves to the smallest key that is not less than `key`.
  void seek(key_argument key) { fill_forward(start::at(keys::search_key_of(key))); }
  // Moves to the largest key that is less than `key`.
  void seek_before(key_argument key) { fill_backward(start::beyond(keys::search_key_of(key))); }
  void seek_first() { fill_forward(start::at_end()); }
  void seek_last() { fill_backward(start::at_end()); }

  // Moves to the next larger key. After the largest key the cursor is not valid.
  void next() {
    if (at_ + 1 < records_.size()) {
      ++at_;
    } else {
      const key_type last = records_[at_].first;
      fill_forward(start::beyond(keys::search_key_of(last)));
    }
  }
  // Moves to the next smaller key. After the smallest key the cursor is not valid.
  void prev() {
    if (at_ > 0) {
      --at_;
    } else {
      const key_type first = records_[at_].first;
      fill_backward(start::beyond(keys::search_key_of(first)));
    }
  }

 private:
  using records = std::vector<std::pair<key_type, mapped_type>>;

  void fill_forward(start from) { fill<true>(from); }
  void fill_backward(start from) {
    fill<false>(from);
    std::reverse(records_.begin(), records_.end());
    at_ = records_.empty() ? 0 : records_.size() - 1;
  }

  template <bool Forward>
  void fill(start from) {
    records filled;
    {
      [[maybe_unused]] const typename Map::pin pinned;  // until the last blob is copied
      collector range(*map_, collector::unlimited);
      range.stop_after_one_leaf();
      if constexpr (Forward) {
        range.collect_forward(from);
      } else {
        range.collect_backward(from);
      }
      filled.reserve(range.entries().size());
      for (const auto& e : range.entries())
        filled.emplace_back(key_type(range.key(e).get()), values::owned(e.value));
    }
    records_ = std::move(filled);
    at_ = 0;
  }

  const Map* map_;
  records records_;
  std::size_t at_ = 0;
};

}  // namespace elidex::internal
