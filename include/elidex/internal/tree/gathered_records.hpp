// The records of a leaf, outside of it, in the order of their keys.
//
//   gathered_records<std::uint64_t, std::uint64_t, 64> records;
//   records.append(7, 70);
//   leaf.fill(records, 0, records.count());
//
// Thread-safety: an object belongs to one thread.
// Errors: none. The caller keeps to the capacity.
#pragma once

#include <algorithm>
#include <array>

#include "elidex/internal/tree/key_search.hpp"

namespace elidex::internal {

template <class Key, class Value, unsigned Capacity>
class gathered_records {
 public:
  static constexpr unsigned capacity = Capacity;
  struct record {
    Key key;
    Value value;
  };

  // std::min() tells the compiler a bound that add() keeps.
  unsigned count() const noexcept { return std::min(count_, Capacity); }
  const Key& key(unsigned i) const noexcept { return records_[i].key; }
  const Value& value(unsigned i) const noexcept { return records_[i].value; }

  gathered_records() noexcept {}  // leaves the records as they are
  void clear() noexcept { count_ = 0; }
  // Keeps the order by moving larger keys. This is cheap for keys that come nearly in order.
  void add(const Key& key, const Value& value) noexcept {
    unsigned i = count_++;
    for (; i > 0 && key < records_[i - 1].key; --i) records_[i] = records_[i - 1];
    records_[i] = {key, value};
  }
  // append() does not keep the order. sort_behind() restores it: the first `sorted` records are in
  // order, and the others are few.
  void append(const Key& key, const Value& value) noexcept { records_[count_++] = {key, value}; }
  void sort_behind(unsigned sorted) noexcept {
    if (sorted == count_) return;
    gathered_records others;
    for (unsigned i = sorted; i < count_; ++i) others.add(records_[i].key, records_[i].value);
    unsigned to = count_;
    for (unsigned left = sorted, right = others.count(); right > 0;) {
      const bool left_is_next = left > 0 && others.key(right - 1) < records_[left - 1].key;
      records_[--to] = left_is_next ? records_[--left] : others.records_[--right];
    }
  }
  // How many keys are less than `key`.
  unsigned rank(const Key& key) const noexcept {
    return branchless_lower_bound<false>([&](unsigned i) { return this->key(i); }, count(), key);
  }
  bool contains(const Key& key) const noexcept {
    for (unsigned i = 0; i < count_; ++i) {
      if (records_[i].key == key) return true;
    }
    return false;
  }

 private:
  std::array<record, Capacity> records_;
  unsigned count_ = 0;
};

}  // namespace elidex::internal
