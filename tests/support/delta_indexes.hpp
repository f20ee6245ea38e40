#pragma once
// Delta indexes for tests: so small that every few values split something, and as maps for
// harnesses that want those.

#include <cstdint>
#include <optional>
#include <stdexcept>

#include "elidex/internal/column/keyed_delta_index.hpp"
#include "papers/karnagel/delta_index.hpp"
#include "support/samples.hpp"

namespace elidex::testing {

using namespace internal;
using namespace papers;

struct tiny_original : original_delta {
  using shape = fan_out<2, 3>;
};
struct tiny_friendly : elision_friendly_delta {
  using shape = fan_out<2, 3>;
};
// All threads append to one dictionary, without a lock that all of them take.
struct tiny_together : tiny_friendly {
  static constexpr unsigned dictionaries = 1;
};

// A map in which every value is 0 and that only grows.
template <class Index>
class delta_as_map {
 public:
  std::optional<std::uint64_t> get(std::uint64_t key) const {
    return index_.find(key) ? std::optional<std::uint64_t>(0) : std::nullopt;
  }
  bool insert(std::uint64_t key, std::uint64_t /*value*/) { return index_.find_or_add(key).is_new; }
  template <class Fn>
  std::size_t scan(std::uint64_t from, std::size_t limit, Fn&& fn) const {
    return index_.scan(from, limit,
                       [&](std::uint64_t key, auto /*id*/) { fn(key, std::uint64_t{0}); });
  }
  std::size_t size() const { return index_.size(); }

  bool upsert(std::uint64_t, std::uint64_t) { throw std::logic_error("a delta has no upsert"); }
  template <class Fn>
  bool update(std::uint64_t, Fn&&) {
    throw std::logic_error("a delta has no update");
  }
  bool erase(std::uint64_t) { throw std::logic_error("a delta has no erase"); }

  const Index& index() const { return index_; }

 private:
  Index index_;
};

}  // namespace elidex::testing
