// The records of a range of an ordered map, as a C++20 range.
//
//   for (const auto& [key, value] : map.range(10, 20)) ...
//   auto first = map.range(all) | std::views::take(10);
//
// An input range: it can be walked once. The walk copies the next records of the map when it needs
// them, up to records_at_once, as of one moment.
//
// Thread-safety: a range is for one thread at a time. Other threads may use the map.
// Iterator validity: an iterator is valid until the next ++ and while the range lives. The map must
// outlive the range, and may change at any time.
// Errors: begin() and ++ throw std::bad_alloc. The walk may then be continued with the same ++.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <ranges>
#include <utility>
#include <vector>

#include "elidex/internal/tree/map_bounds.hpp"

namespace elidex::internal {

template <class Map>
class map_range : public std::ranges::view_interface<map_range<Map>> {
 public:
  using value_type = std::pair<typename Map::key_type, typename Map::mapped_type>;
  // Measured: walks of 100 records need one descent, and longer ones few (docs/decisions/maps.md).
  static constexpr std::size_t records_at_first = 128;
  static constexpr std::size_t records_at_once = 512;

  class iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using difference_type = std::ptrdiff_t;
    using value_type = map_range::value_type;

    iterator() = default;
    const value_type& operator*() const noexcept { return range_->records_[range_->at_]; }
    const value_type* operator->() const noexcept { return &**this; }
    iterator& operator++() {
      range_->advance();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& it, std::default_sentinel_t /*end*/) noexcept {
      return it.is_at_end();
    }

   private:
    friend map_range;
    bool is_at_end() const noexcept { return range_->at_ == range_->records_.size(); }
    explicit iterator(map_range& range) noexcept : range_(&range) {}
    map_range* range_ = nullptr;
  };

  map_range(const Map& map, map_bounds<typename Map::key_type> which)
      : map_(&map), left_(std::move(which)) {}

  iterator begin() {
    if (records_.empty() && !is_at_end_) fill();
    return iterator(*this);
  }
  static std::default_sentinel_t end() noexcept { return std::default_sentinel; }

 private:
  void advance() {
    if (at_ + 1 < records_.size() || is_at_end_) {
      ++at_;
    } else {
      left_.continue_behind(records_.back().first);
      fill();
    }
  }
  void fill() {
    map_->collect(left_, many_, spare_);
    is_at_end_ = spare_.size() < many_;
    many_ = records_at_once;
    std::swap(records_, spare_);
    at_ = 0;
  }

  const Map* map_;
  map_bounds<typename Map::key_type> left_;
  std::vector<value_type> records_;
  std::vector<value_type> spare_;  // the records before these: their memory is used again
  std::size_t at_ = 0;
  std::size_t many_ = records_at_first;
  bool is_at_end_ = false;  // no records behind these
};

}  // namespace elidex::internal
