// Fills an empty tree with sorted records.
//
//   bulk_loader<Tree> loader(tree);
//   // may throw: then nothing was loaded
//   for (const auto& [key, value] : sorted) loader.add(key, value);
//   loader.publish();
//
// Thread-safety: a loader belongs to one thread. Other threads may use the tree meanwhile. They
// find it empty until publish(), which makes all records visible at one moment.
// Errors: std::invalid_argument from add() if the keys do not ascend, or if a key or a value is too
// long. std::logic_error from publish() if the tree is not empty by then. std::bad_alloc from both.
// Nothing is then loaded, and the loader can only be destroyed.
//
// Implementation notes
// The loader builds the nodes aside, from the leaves up. It fills leaves and inner nodes to fifteen
// sixteenths, so that the first inserts do not split all of them. It distributes the children of a
// level evenly over the nodes above. Prefixes of strings are those that splits would give
// (key_prefix.hpp): a node between two separators gets what these have in common.
//
// Invariant: until publish() no other thread knows the nodes. publish() replaces the old root, an
// empty leaf, by the new root. It holds that leaf's lock and the root's, or runs in both regions.
// Its linearization point is the store of the root.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <ranges>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "elidex/internal/memory/block_pool.hpp"
#include "elidex/internal/tree/btree_inner.hpp"
#include "elidex/internal/tree/key_prefix.hpp"
#include "elidex/internal/tree/node_operation.hpp"
#include "elidex/internal/tree/range_collector.hpp"
#include "elidex/internal/tree/slotted_node.hpp"

namespace elidex::internal {

// Calls fn(record) for the records of a range. Sorted strings mostly lie in no order in memory. So
// it prefetches the bytes of the keys ahead, if the range holds records that have such keys.
template <class Range, class Fn>
void for_each_prefetched(Range& records, Fn&& fn) {
  if constexpr (std::ranges::forward_range<Range> &&
                std::is_lvalue_reference_v<std::ranges::range_reference_t<Range>> &&
                requires { std::ranges::begin(records)->first.data(); }) {
    constexpr std::ptrdiff_t keys_ahead = 8;  // chosen
    const auto end = std::ranges::end(records);
    auto ahead = std::ranges::next(std::ranges::begin(records), keys_ahead, end);
    for (auto&& record : records) {
      if (ahead != end) {
        __builtin_prefetch(ahead->first.data());
        ++ahead;
      }
      fn(record);
    }
  } else {
    for (auto&& record : records) fn(std::forward<decltype(record)>(record));
  }
}

// Records that wait for leaves that hold their keys (slotted_leaf.hpp), in order.
//
//   waiting.add_key(key);
//   waiting.add_value(value);
//   while (waiting.exceed_leaf()) { fill a leaf with waiting.fitting(before, most); drop these }
//
// How many fit into a leaf depends on its prefix, which depends on the separators on both sides.
// The second one depends on how many fit. So this class first assumes the longest prefix, which the
// first and the last key share. Then it tries fewer records with the prefix that they really have.
template <class Leaf>
class waiting_strings {
  using keys = typename Leaf::keys;
  using records_type = typename Leaf::records_type;

 public:
  using value_slot = typename Leaf::value_slot;

  // Throws std::bad_alloc, with nothing added. A value must follow.
  void add_key(std::string_view key) {
    records_.push_back({std::string(key), value_slot{}});
    const unsigned shared =
        std::min<unsigned>(keys::in_common(this->key(0), key), slotted_key::prefix_max);
    if (shared != shared_) {
      shared_ = shared;
      words_ = words_of(count(), shared);
    } else {
      words_ += words_of(key, shared);
    }
  }
  void add_value(const value_slot& value) noexcept { records_.back().value = value; }
  std::size_t count() const noexcept { return records_.size(); }
  const std::string& key(std::size_t i) const noexcept { return records_[i].key; }
  const value_slot& value(std::size_t i) const noexcept { return records_[i].value; }

  bool exceed_leaf() const noexcept { return !have_room(count(), shared_, words_); }
  // What follows the first records that go into a leaf of their own.
  struct cut {
    std::size_t records;
    std::string before_next;  // the separator behind them, unless they are the last ones
    unsigned prefix;
  };
  // At most `most` of them. `before` separates them from the leaf in front of it. Null: there is
  // none.
  cut fitting(const std::string* before, std::size_t most) const {
    for (std::size_t n = most;; --n) {
      cut made{n, {}, 0};
      if (n < count()) {
        const std::size_t equal = keys::in_common(key(n - 1), key(n));
        made.before_next = key(n).substr(0, equal + 1);
        if (before != nullptr) {
          made.prefix = std::min<unsigned>(keys::in_common(*before, made.before_next),
                                           slotted_key::prefix_max);
        }
      }
      if (n == 1 || have_room(n, made.prefix, words_of(n, made.prefix))) return made;
    }
  }
  void drop_first(std::size_t many) {
    records_.erase(records_.begin(), records_.begin() + static_cast<std::ptrdiff_t>(many));
    shared_ = no_prefix_yet;
    if (records_.empty()) return;
    shared_ =
        std::min<unsigned>(keys::in_common(key(0), key(count() - 1)), slotted_key::prefix_max);
    words_ = words_of(count(), shared_);
  }

 private:
  static constexpr unsigned no_prefix_yet = ~0U;

  // So that leaves are nearly full.
  static bool have_room(std::size_t n, unsigned prefix, std::size_t words) noexcept {
    constexpr unsigned all = records_type::heap_words(0);
    return n <= Leaf::capacity - Leaf::capacity / 16 &&
           n + records_type::prefix_words(prefix) + words <= all - all / 16;
  }
  static unsigned words_of(const std::string_view& key, unsigned prefix) noexcept {
    const bool outside = records_type::needs_blob(key.size(), prefix);
    return records_type::words_for(key.size(), outside, prefix);
  }
  std::size_t words_of(std::size_t n, unsigned prefix) const noexcept {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < n; ++i) sum += words_of(key(i), prefix);
    return sum;
  }

  struct record {
    std::string key;
    value_slot value;
  };
  std::vector<record> records_;
  unsigned shared_ = no_prefix_yet;  // bytes that all keys share
  std::size_t words_ = 0;            // of their records behind these
};

template <class Tree>
class bulk_loader {
  using keys = typename Tree::keys;
  using values = typename Tree::values;
  using key_slot = typename Tree::key_slot;
  using leaf = typename Tree::leaf;
  static constexpr bool leaves_hold_keys = range_collector<Tree>::holds_keys;
  using inner = typename Tree::inner;
  using node = typename Tree::node;

 public:
  explicit bulk_loader(Tree& tree) : tree_(tree), op_(tree) {}
  bulk_loader(const bulk_loader&) = delete;
  bulk_loader& operator=(const bulk_loader&) = delete;
  ~bulk_loader() {
    if constexpr (leaves_hold_keys) {
      for (std::size_t i = in_leaf_; i < waiting_.count(); ++i)
        op_.discard_value(waiting_.value(i));
    } else {
      discard_records(records_);
    }
    for (leaf* const l : leaves_) {
      discard_records(*l);
      tree_.leaf_pool_.deallocate(l);
    }
    for (inner* const in : inners_) {
      for (unsigned i = 0; i < in->count(); ++i) op_.discard_key_blob(in->blob_of(i));
      tree_.inner_pool_.deallocate(in);
    }
  }

  // Throws std::invalid_argument unless the key is greater than the one before, and std::bad_alloc.
  void add(typename keys::argument key, typename values::argument value) {
    static_cast<void>(keys::search_key_of(key));  // checks the length
    values::check(value);
    if constexpr (leaves_hold_keys) {
      add_string(key, value);
    } else {
      add_slot(key, value);
    }
  }

  // Throws std::logic_error if the tree is not empty, and std::bad_alloc.
  void publish() {
    if constexpr (leaves_hold_keys) {
      while (waiting_.count() != 0) fill_with_waiting(waiting_.count());
    } else {
      if (records_.count() != 0) finish_leaf();
    }
    for (unsigned level = 1; level_.size() > 1; ++level) build_level(level);
    node* const root = level_.empty() ? nullptr : level_.front().at;
    const op_status s = tree_.run_changing(
        op_, [&] { return tree_.changing_region([&] { return try_replace_empty(root); }); });
    if (s == op_status::no) throw std::logic_error("elidex: bulk_load: the map is not empty");
    level_.clear();  // the tree owns the nodes now
    leaves_.clear();
    inners_.clear();
    tree_.size_.add(static_cast<std::int64_t>(records_added_));
  }

 private:
  void add_slot(typename keys::argument key, typename values::argument value) {
    if (const unsigned count = records_.count(); count != 0) {
      const typename keys::view last(records_.key(count - 1));
      if (!(last.get() < key)) throw std::invalid_argument("elidex: bulk_load: keys do not ascend");
      const typename keys::view first(records_.key(0));
      if (count >= filled(leaf::room_between(first.get(), key))) finish_leaf();
    }
    const bool needs_blob = keys::needs_blob(key);
    const bool has_key = op_.has_key(key, needs_blob);
    if (!op_.has_value(value) || !has_key) op_.provide();
    records_.append(keys::slot_of(key, op_.take_key_blob(needs_blob)), op_.take_value(value));
  }

  void add_string(std::string_view key, typename values::argument value) {
    const bool is_first = waiting_.count() == 0 && leaves_.empty();
    const std::string_view last = waiting_.count() != 0 ? waiting_.key(waiting_.count() - 1)
                                                        : std::string_view(last_of_leaf_);
    if (!is_first && !(last < key))
      throw std::invalid_argument("elidex: bulk_load: keys do not ascend");
    if (!op_.has_value(value)) op_.provide();
    waiting_.add_key(key);
    waiting_.add_value(op_.take_value(value));
    while (waiting_.count() > 1 && waiting_.exceed_leaf()) fill_with_waiting(waiting_.count() - 1);
  }
  // Fills a leaf with as many of the waiting records as fit, at most `most`. Unless these are the
  // last ones, another one must wait, because the separator lies in front of it.
  void fill_with_waiting(std::size_t most) {
    const std::string* const before = level_.empty() ? nullptr : &before_next_;
    auto cut = waiting_.fitting(before, most);
    leaf* const made = keep(leaves_, tree_.leaf_pool_);
    tree_.begin_life(*made);
    level_.push_back({before_next_, made});
    if (cut.prefix != 0) made->lengthen_prefix(cut.prefix, cut.before_next);
    for (; in_leaf_ < cut.records; ++in_leaf_) {
      const std::string& key = waiting_.key(in_leaf_);
      const bool needs_blob = made->needs_blob(key);
      if (!op_.has_key(key, needs_blob)) op_.provide();
      made->insert(made->count(), key, op_.take_key_blob(needs_blob), waiting_.value(in_leaf_));
    }
    records_added_ += in_leaf_;
    last_of_leaf_ = waiting_.key(in_leaf_ - 1);
    before_next_ = std::move(cut.before_next);
    waiting_.drop_first(std::exchange(in_leaf_, 0));
  }

  // A node of the level under construction, and the separator in front of it. The first node has
  // none.
  using owned_key = typename owned_key_of<keys>::type;
  struct child {
    owned_key before;
    node* at;
  };
  static unsigned filled(unsigned slots) noexcept { return slots - slots / 16; }

  template <class Records>
  void discard_records(const Records& records) noexcept {
    if constexpr (keys::owns_blobs || values::owns_objects) {
      for (unsigned i = 0; i < records.count(); ++i) {
        if constexpr (requires { records.blob_of(i); }) {
          op_.discard_key_blob(records.blob_of(i));
        } else {
          op_.discard_key_blob(keys::blob_of(records.key(i)));
        }
        op_.discard_value(records.value(i));
      }
    }
  }

  // Allocates a node and records it in `made`.
  template <class Node, class... Args>
  static Node* keep(std::vector<Node*>& made, block_pool& pool, Args... args) {
    made.push_back(nullptr);
    try {
      return made.back() = ::new (pool.allocate()) Node(args...);
    } catch (...) {
      made.pop_back();
      throw;
    }
  }

  void finish_leaf() {
    leaf* const made = keep(leaves_, tree_.leaf_pool_);
    const bool is_first = level_.empty();
    level_.push_back({owned_key{}, made});
    if (!is_first) {
      const typename keys::separator between(last_of_leaf_, records_.key(0));
      level_.back().before = owned_key(between.get());
      lengthen_prefix_of_leaf(level_.size() - 2);
    }
    const unsigned count = records_.count();
    last_of_leaf_ = records_.key(count - 1);
    tree_.begin_life(*made);
    made->fill(records_, 0, count);
    records_added_ += count;
    records_.clear();
  }

  // Calls fn(length, begins_alike) with the prefix of the node of children `first` to `last` - 1 of
  // the level. The outer nodes have a separator on one side only.
  template <class Fn>
  void with_prefix(std::size_t first, std::size_t last, Fn&& fn) noexcept {
    if constexpr (keys::has_prefixes) {
      if (first == 0 || last >= level_.size()) return;
      fn(keys::in_common(level_[first].before, level_[last].before), level_[first].before);
    }
  }
  void lengthen_prefix_of_leaf(std::size_t i) noexcept {
    with_prefix(i, i + 1, [&](unsigned length, const auto& begins_alike) {
      lengthen_prefix(static_cast<leaf&>(*level_[i].at), length, begins_alike);
    });
  }

  void build_level(unsigned level) {
    std::vector<child> above;
    const std::size_t children_max = filled(inner::capacity) + 1;
    for (std::size_t next = 0; next < level_.size();) {
      const std::size_t left = level_.size() - next;
      const std::size_t nodes = (left + children_max - 1) / children_max;
      inner* const made = keep(inners_, tree_.inner_pool_, level);
      above.push_back({level_[next].before, made});
      next = fill_inner(*made, next, next + left / nodes);
    }
    level_ = std::move(above);
  }

  // Gives a new node the children from `first` to `last` - 1, or fewer if it is full before.
  // Returns the first child that it did not get.
  std::size_t fill_inner(inner& made, std::size_t first, std::size_t last) {
    with_prefix(first, last, [&](unsigned length, const auto& begins_alike) {
      lengthen_prefix(made, length, begins_alike);
    });
    made.set_child(0, level_[first].at);
    std::size_t next = first + 1;
    for (; next < last && made.takes_in_bulk(level_[next].before); ++next) {
      const std::size_t blob_bytes = inner::blob_bytes(level_[next].before, &made);
      if (!op_.has_separator(blob_bytes)) op_.provide();
      made.insert(made.count(), op_.template take_separator<inner>(level_[next].before, blob_bytes),
                  level_[next].at);
    }
    return next;
  }

  // Yes: the tree was empty, and now has the new root unless that is null. No: the tree was not
  // empty.
  op_status try_replace_empty(node* new_root) noexcept {
    typename Tree::position p;
    if (!tree_.enter_root(p)) return op_status::restart;
    if (!p.at->is_leaf() || p.as_leaf().used() != 0)
      return p.still_valid() ? op_status::no : op_status::restart;
    if (new_root == nullptr) return p.still_valid() ? op_status::yes : op_status::restart;
    if (!op_.may_retire()) return op_status::need_memory;
    if (!p.try_lock_parent_and_node()) return op_status::restart;
    leaf& old = p.as_leaf();
    // Where the leaf locks keys apart, an insert needs no other lock than these.
    old.for_each_value_lock([](auto& one) { one.lock(); });
    if (old.used() != 0) {
      old.for_each_value_lock([](auto& one) { one.unlock(); });
      p.unlock_both_unchanged();
      return op_status::restart;
    }
    tree_.end_life(old, op_);
    tree_.root_.template store<Tree::racing>(new_root);
    op_.retire_leaf(&old);
    old.for_each_value_lock([](auto& one) { one.unlock(); });
    old.lock.unlock_obsolete();
    p.parent_lock->unlock();
    return op_status::yes;
  }

  Tree& tree_;
  typename Tree::operation op_;
  // The records of the leaf that is being filled, and the last key of the leaf before it.
  struct nothing {};
  template <class Leaf>
  struct records_of {
    using type = typename Leaf::ordered_copy;
    using last_key = key_slot;
    using strings = nothing;
  };
  template <class Leaf>
    requires leaves_hold_keys
  struct records_of<Leaf> {
    using type = nothing;
    using last_key = std::string;
    using strings = waiting_strings<Leaf>;
  };
  [[no_unique_address]] typename records_of<leaf>::type records_;
  typename records_of<leaf>::last_key last_of_leaf_{};
  // Where leaves hold their keys: the records that wait, how many of them a leaf has already, and
  // the separator in front of the next leaf.
  [[no_unique_address]] typename records_of<leaf>::strings waiting_;
  std::size_t in_leaf_ = 0;
  std::string before_next_;
  std::size_t records_added_ = 0;
  std::vector<child> level_;
  std::vector<leaf*> leaves_;
  std::vector<inner*> inners_;
};

}  // namespace elidex::internal
