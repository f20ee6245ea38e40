// The bounds of a range of a tree, and the scan of one.
//
//   tree_range<std::uint64_t> which;
//   which.lower = 10;
//   which.upper = 20;   // 10 <= key < 20
//   tree.scan(which, limit, [](std::uint64_t key, const auto& value) { ... });
//
// Thread-safety: as the tree's.
// Errors: std::bad_alloc, std::invalid_argument for a bound that cannot be a key, and what the
// visitor throws.
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>

#include "elidex/internal/tree/range_collector.hpp"
#include "elidex/internal/visitor.hpp"

namespace elidex::internal {

// An absent bound: the end of the tree. By default the range is half-open and ascends.
template <class KeyArgument>
struct tree_range {
  std::optional<KeyArgument> lower;
  std::optional<KeyArgument> upper;
  bool without_lower = false;
  bool with_upper = false;
  bool descends = false;

  // Whether no key can be in the range.
  bool is_empty() const {
    if (!lower || !upper || *lower < *upper) return false;
    return *upper < *lower || without_lower || !with_upper;
  }
  // Whether the lower bound excludes the key.
  bool begins_behind(const KeyArgument& key) const {
    return lower && (without_lower ? !(*lower < key) : key < *lower);
  }
  // Whether the upper bound excludes the key.
  bool ends_before(const KeyArgument& key) const {
    return upper && (with_upper ? *upper < key : !(key < *upper));
  }
  // Leaves only the keys behind this one, in the direction of the range.
  void continue_behind(const KeyArgument& last) {
    if (descends) {
      upper.emplace(last);
      with_upper = false;
    } else {
      lower.emplace(last);
      without_lower = true;
    }
  }
};

// Up to `limit` records of a range, the first ones in its direction, as of one moment.
template <class Tree>
class collected_range {
  using collector = range_collector<Tree>;
  using start = typename collector::start;
  using end = typename collector::end;
  using search_key = typename Tree::search_key;

 public:
  using entry = typename collector::entry;

  collected_range(const Tree& tree, std::size_t limit) noexcept
      : limit_(limit), range_(tree, limit) {}

  // The caller stays pinned while it follows addresses in the entries.

  // The keys from `first` on. A short scan saves the steps for other ranges.
  void collect(const typename Tree::key_argument& first) {
    range_.collect_forward(start::at(Tree::keys::search_key_of(first)));
  }
  void collect(const tree_range<typename Tree::key_argument>& which) {
    const bool has_lower = which.lower.has_value();
    const bool has_upper = which.upper.has_value();
    // A walk that begins behind its end, or in another leaf, would not find the end.
    if (which.is_empty()) return;
    const search_key lower = has_lower ? Tree::keys::search_key_of(*which.lower) : search_key{};
    const search_key upper = has_upper ? Tree::keys::search_key_of(*which.upper) : search_key{};
    if (which.descends && limit_ != collector::unlimited) {
      if (has_lower) range_.end_at(which.without_lower ? end::before(lower) : end::with(lower));
      const start from = !has_upper         ? start::at_end()
                         : which.with_upper ? start::at(upper)
                                            : start::beyond(upper);
      if (range_.collect_backward(from)) return;
      // The range changes all the time. A forward walk can lock it.
      range_.set_limit(collector::unlimited);
    }
    is_turned_ = which.descends;
    range_.end_nowhere();
    if (has_upper) range_.end_at(which.with_upper ? end::with(upper) : end::before(upper));
    range_.collect_forward(!has_lower            ? start::at_end()
                           : which.without_lower ? start::beyond(lower)
                                                 : start::at(lower));
  }

  // As range_collector's.
  auto key(const entry& e) const noexcept { return range_.key(e); }

  // Calls fn(entry) for each record, until it returns false. Returns the number of calls.
  template <class Fn>
  std::size_t for_each(Fn&& fn) const {
    const std::span<const entry> entries = range_.entries();
    const entry* const first = entries.data();
    const entry* const behind = first + entries.size();
    if (!is_turned_) {
      for (const entry* e = first; e != behind; ++e) {
        if (!fn(*e)) return static_cast<std::size_t>(e - first) + 1;
      }
      return entries.size();
    }
    const std::size_t many = std::min(entries.size(), limit_);
    for (std::size_t i = 1; i <= many; ++i) {
      if (!fn(*(behind - i))) return i;
    }
    return many;
  }

 private:
  std::size_t limit_;
  collector range_;
  bool is_turned_ = false;  // collected in the opposite direction
};

}  // namespace elidex::internal
