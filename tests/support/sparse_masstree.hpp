#pragma once
// A Masstree in which each key of a history has a leaf of its own, below three levels of inner
// nodes with few children: as it stands when many keys were inserted and most of them erased. So an
// erasure removes a leaf, often with inner nodes above it, moves separators, and gives up roots.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

#include "papers/eunomia/masstree.hpp"
#include "support/linearizability.hpp"

namespace elidex::testing {

using namespace internal;
using namespace papers;

template <class Sync>
class sparse_masstree {
 public:
  using key_type = std::uint64_t;
  using mapped_type = std::uint64_t;

  // Holds all the keys of a history.
  sparse_masstree() {
    for (std::uint64_t k = 0; k < step * history_keys; ++k) tree_.insert(k, k / step);
    for (std::uint64_t k = 0; k < step * history_keys; ++k) {
      if (k % step != offset) tree_.erase(k);
    }
  }

  std::optional<std::uint64_t> get(std::uint64_t key) const { return tree_.get(place(key)); }
  bool insert(std::uint64_t key, std::uint64_t value) { return tree_.insert(place(key), value); }
  bool upsert(std::uint64_t key, std::uint64_t value) { return tree_.upsert(place(key), value); }
  template <class Fn>
  bool update(std::uint64_t key, Fn&& fn) {
    return tree_.update(place(key), std::forward<Fn>(fn));
  }
  bool erase(std::uint64_t key) { return tree_.erase(place(key)); }
  template <class Fn>
  std::size_t scan(std::uint64_t from, std::size_t limit, Fn&& fn) const {
    return tree_.scan(place(from), limit, [&](std::uint64_t key, std::uint64_t value) {
      fn((key - offset) / step, value);
    });
  }
  std::size_t size() const noexcept { return tree_.size(); }
  masstree_stats stats() const noexcept { return tree_.stats(); }

 private:
  static constexpr std::uint64_t step = 16;
  static constexpr std::uint64_t offset = 8;
  static std::uint64_t place(std::uint64_t key) noexcept { return step * key + offset; }

  masstree<std::uint64_t, std::uint64_t, Sync, 3> tree_;
};

}  // namespace elidex::testing
