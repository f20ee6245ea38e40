// Collects a range of a tree as of one moment.
//
//   range_collector range(tree, limit);
//   range.end_at(end::before(search_key));           // optional: the other end of the range
//   range.collect_forward(start::at(search_key));    // up to `limit` slots, in ascending order
//   // the caller stays pinned while it follows addresses in the slots
//   for (const auto& e : range.entries()) ...
//
// Thread-safety: one thread. Other threads may change the tree meanwhile.
// Linearizability: a range is a snapshot.
// Errors: std::bad_alloc from collect_forward() and collect_backward().
//
// Implementation notes
// The walk copies the slots of each leaf, remembers the version of each leaf, and validates all
// versions at the end. If no version has changed, each leaf held what was copied at the moment of
// the first validation. That moment is the linearization point. No key can have come between two of
// the leaves: only a split of one of them makes room there, and a split changes the version. The
// fence key that led from one leaf to the next stays the fence key as long as neither is split or
// merged.
//
// A range that changes all the time would never validate. After `optimistic_attempts` the walk
// locks the leaves instead, from left to right, each before it is read. It releases all of them at
// the end. The linearization point is then any moment at which all are held.
//
// This cannot deadlock. Only range collectors wait for a leaf while they hold another, and they
// wait for one further right. All other operations only try for leaves, or wait for one with no
// lock held (fixed_key_btree's switch_on()). With a leaf held they wait at most for its parent, and
// the holder of a parent waits for no leaf. They may also wait for locks of values. The holder of
// such a lock holds the leaf's lock too, or replaces one value and waits for no lock.
//
// Where values have locks of their own (leaf::value_locks), the walk remembers, validates and locks
// these after the leaf's lock.
//
// A walk that runs out of memory validates what it has, gets more memory, and continues behind its
// last record. Then it validates all leaves at its end, as if it had never stopped. A walk that
// locks the leaves begins again.
//
// Under a coarse policy there is nothing to remember or to validate: the region is one moment. A
// walk without memory begins again.
//
// A backward walk over several leaves never locks them, because that would be the wrong order. It
// gives up instead, and the caller collects the whole range forward.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "elidex/internal/sync/backoff.hpp"
#include "elidex/internal/tree/node_operation.hpp"

namespace elidex::internal {

// A list of trivially copyable items that is filled inside a region, which may not allocate. push()
// fails when the list is full. grow() is called outside the region. Up to InlineBytes are in the
// object itself. Thread-safety: one thread.
template <class T, std::size_t InlineBytes>
class staging_buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  staging_buffer() noexcept : data_(inline_), capacity_(inline_count) {}
  staging_buffer(const staging_buffer&) = delete;
  staging_buffer& operator=(const staging_buffer&) = delete;

  bool push(const T& item) noexcept {
    if (size_ == capacity_) return false;
    ::new (static_cast<void*>(data_ + size_ * sizeof(T))) T(item);
    ++size_;
    return true;
  }
  // Adds `count` items, for which there must be room. The caller sets them.
  T* extend(std::size_t count) noexcept {
    auto* const first = reinterpret_cast<T*>(data_ + size_ * sizeof(T));
    size_ += count;
    return first;
  }
  void clear() noexcept { size_ = 0; }

  // Doubles the room. Throws std::bad_alloc.
  void grow() {
    const std::size_t capacity = std::max<std::size_t>(2 * capacity_, 16);
    std::unique_ptr<std::byte, deleter> more(static_cast<std::byte*>(
        ::operator new(capacity * sizeof(T), std::align_val_t{alignof(T)})));
    std::memcpy(more.get(), data_, size_ * sizeof(T));
    heap_ = std::move(more);
    data_ = heap_.get();
    capacity_ = capacity;
  }

  std::size_t size() const noexcept { return size_; }
  bool full() const noexcept { return size_ == capacity_; }
  std::size_t room() const noexcept { return capacity_ - size_; }
  std::span<const T> items() const noexcept {
    return {std::launder(reinterpret_cast<const T*>(data_)), size_};
  }

 private:
  static constexpr std::size_t inline_count = InlineBytes / sizeof(T);
  struct deleter {
    void operator()(std::byte* p) const noexcept {
      ::operator delete(p, std::align_val_t{alignof(T)});
    }
  };

  alignas(T) std::byte inline_[inline_count == 0 ? 1 : inline_count * sizeof(T)];
  std::byte* data_;
  std::size_t capacity_;
  std::size_t size_ = 0;
  std::unique_ptr<std::byte, deleter> heap_;
};

template <class Tree>
class range_collector {
  using key_slot = typename Tree::key_slot;
  using value_slot = typename Tree::value_slot;
  using leaf = typename Tree::leaf;
  using inner = typename Tree::inner;
  using node_lock = typename Tree::node_lock;
  using token = typename Tree::token;
  using position = typename Tree::position;
  using search_key = typename Tree::search_key;
  using fence_key = std::optional<typename Tree::inner::key_type>;

 public:
  // A record as the leaf has it. Where leaves hold keys (slotted_leaf.hpp), the key's bytes are
  // copied too, or the key lies in a blob.
  struct slot_entry {
    key_slot key;
    value_slot value;
  };
  struct bytes_entry {
    const blob* in;
    std::size_t at;
    std::size_t size;
    value_slot value;
  };
  static constexpr bool holds_keys = [] {
    if constexpr (requires { leaf::holds_keys; }) {
      return leaf::holds_keys;
    } else {
      return false;
    }
  }();
  using entry = std::conditional_t<holds_keys, bytes_entry, slot_entry>;
  struct copied_key {
    std::string_view bytes;
    std::string_view get() const noexcept { return bytes; }
  };

  // Where a range begins, in the direction of the walk.
  class start {
   public:
    // this key or the next
    static start at(const search_key& p) noexcept { return {kind::at, p}; }
    // strictly behind this key
    static start beyond(const search_key& p) noexcept { return {kind::beyond, p}; }
    // the end of the tree at which such a walk begins
    static start at_end() noexcept { return {kind::end, search_key{}}; }

   private:
    friend range_collector;
    enum class kind : std::uint8_t { at, beyond, end };
    start(kind k, const search_key& p) noexcept : which(k), key(p) {}
    kind which;
    search_key key;
  };

  // Where a range ends, in the direction of the walk.
  class end {
   public:
    // the last key is the last one in front of this key
    static end before(const search_key& p) noexcept { return {false, p}; }
    // this key is in the range
    static end with(const search_key& p) noexcept { return {true, p}; }

   private:
    friend range_collector;
    end(bool inclusive, const search_key& p) noexcept : is_inclusive(inclusive), key(p) {}
    bool is_inclusive;
    search_key key;
  };

  static constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();
  static constexpr unsigned optimistic_attempts = 8;  // chosen: by then the range is hot

  range_collector(const Tree& tree, std::size_t limit) noexcept : tree_(tree), limit_(limit) {}

  // Both throw std::bad_alloc.
  void collect_forward(start from) { collect<true>(from); }
  // From the largest to the smallest key. Returns false, with nothing collected, if the range has
  // changed too often meanwhile. With stop_after_one_leaf() it always succeeds.
  bool collect_backward(start from) { return collect<false>(from); }
  void end_at(const end& last) noexcept { end_.emplace(last); }
  void end_nowhere() noexcept { end_.reset(); }
  void set_limit(std::size_t limit) noexcept { limit_ = limit; }
  // Ends the walk with the first leaf that has records in the range.
  void stop_after_one_leaf() noexcept { one_leaf_ = true; }

  std::span<const entry> entries() const noexcept { return entries_.items(); }
  // The key of an entry. get() returns it as the API passes it. It is valid until the object
  // collects again.
  auto key(const entry& e) const noexcept {
    if constexpr (holds_keys) {
      return copied_key{e.in != nullptr ? e.in->view()
                                        : std::string_view(bytes_.items().data() + e.at, e.size)};
    } else {
      return typename Tree::keys::view(e.key);
    }
  }

 private:
  static constexpr bool racing = Tree::racing;
  static constexpr std::size_t locks_per_leaf = 1 + leaf::value_locks;
  struct visited {
    node_lock* lock;
    token seen;
  };

  template <bool Forward>
  bool collect(const start& first) {
    if (limit_ == 0) return true;
    begin_again();
    // A coarse region should not begin again for each doubling, if the range is certainly long.
    if (!one_leaf_ && !end_) {
      const std::size_t surely = std::min<std::size_t>(limit_, 1024);
      while (entries_.room() < surely) entries_.grow();
      while (visited_.room() < (2 * surely / leaf::capacity + 2) * locks_per_leaf) visited_.grow();
    }
    start from = first;
    backoff wait;
    for (unsigned restarts = 0;;) {
      locking_ = racing && Forward && !one_leaf_ && restarts >= optimistic_attempts;
      const op_status s = tree_.range_region([&] { return attempt<Forward>(from); });
      if (s == op_status::yes) return true;
      if (lacked_memory_) grow();
      if (s == op_status::need_memory) {
        if (racing && !locking_ && entries_.size() != 0) {
          from = start::beyond(search_key_of(entries_.items().back()));
          continue;
        }
      } else {
        ++restarts;
        tree_.restarts_.add(1);
        if (!Forward && !one_leaf_ && restarts >= optimistic_attempts) {
          entries_.clear();
          return false;
        }
        wait.once();
      }
      from = first;
      begin_again();
    }
  }
  void grow() {
    if (visited_.room() < locks_per_leaf) {
      visited_.grow();
    } else if (std::exchange(lacked_bytes_, false)) {
      bytes_.grow();
    } else {
      entries_.grow();
    }
  }
  void begin_again() noexcept {
    entries_.clear();
    bytes_.clear();
    visited_.clear();
  }
  search_key search_key_of(const entry& e) const noexcept {
    if constexpr (holds_keys) {
      return Tree::keys::search_key_of_stored(key(e).bytes);
    } else {
      return tree_.search_key_of_slot(e.key);
    }
  }

  // Continues the walk at `from`.
  template <bool Forward>
  op_status attempt(const start& from) noexcept {
    if constexpr (!racing) begin_again();  // a region may run more than once
    op_status s = walk<Forward>(from);
    lacked_memory_ = s == op_status::need_memory;
    if constexpr (racing) {
      for (const visited& v : visited_.items()) {
        if (locking_) {
          v.lock->unlock_unchanged(v.seen);
        } else if (s != op_status::restart && !v.lock->validate(v.seen)) {
          s = op_status::restart;
        }
      }
    }
    return s;
  }

  template <bool Forward>
  op_status walk(start from) noexcept {
    std::array<fence_key, 2> fences;  // `from` may still refer to the last one
    for (unsigned turn = 0;; turn = 1 - turn) {
      // Where the parent's key range ends, in the direction of the walk. Empty at the end of the
      // tree.
      fence_key& fence = fences[turn];
      fence.reset();
      position p;
      end_place last;
      if (!descend<Forward>(from, p, fence, last)) return op_status::restart;
      for (;;) {
        const op_status s = visit_leaf<Forward>(from, p, last.is_in_child(p.index));
        if (s != op_status::no) return s;
        const unsigned separators = p.parent != nullptr ? p.parent->count() : 0;
        if (Forward ? p.index >= separators : p.index == 0) break;
        if (!tree_.enter_sibling(p, Forward ? p.index + 1 : p.index - 1)) return op_status::restart;
        if (Forward && p.index < separators) prefetch_leaf(*p.parent, p.index + 1);
        from = start::at_end();  // the whole sibling is in the range
      }
      // The leaf must still be the parent's outermost child.
      if (!p.parent_lock->validate(p.parent_seen)) return op_status::restart;
      if (!fence) return op_status::yes;
      const search_key bound = tree_.search_key_of_slot(*fence);
      from = Forward ? start::at(bound) : start::beyond(bound);
    }
  }

  // Which child of a leaf's parent has the end of the range among its keys, if one has. Only in
  // that leaf does a search for the end make sense: keys of a node with a prefix compare only with
  // keys that have the same prefix.
  struct end_place {
    bool is_in_node = true;
    bool is_root = true;
    unsigned child = 0;
    bool is_in_child(unsigned index) const noexcept {
      return is_in_node && (is_root || child == index);
    }
  };

  // Descends to the leaf where the range begins.
  template <bool Forward>
  bool descend(const start& from, position& p, fence_key& fence, end_place& last) const noexcept {
    if (!tree_.enter_root(p)) return false;
    while (!p.at->is_leaf()) {
      const inner& in = p.as_inner();
      const unsigned count = in.count();
      unsigned index = 0;
      if (from.which == start::kind::end) {
        index = Forward ? 0 : count;
      } else if (!rank_of<Forward, true>(from, in, count, [&] { return p.still_valid(); }, index)) {
        return false;
      }
      if (end_ && last.is_in_child(p.index)) {
        if (!Tree::template rank_in_node<true>(
                in, count, end_->key, [&] { return p.still_valid(); }, last.child)) {
          return false;
        }
      } else {
        last.is_in_node = false;
      }
      last.is_root = false;
      if (in.level > 1 && (Forward ? index < count : index > 0)) {
        fence.emplace(in.key(Forward ? index : index - 1));
      }
      // This validates `in` after the reading of the fence. From here on the fence's address may be
      // followed.
      if (!tree_.enter_child(p, index)) return false;
      if (Forward && in.level == 1 && index < count && limit_ > leaf::capacity / 2)
        prefetch_leaf(in, index + 1);
    }
    return true;
  }

  // Copies the leaf's records that are in the range. Yes: the range is complete. No: the range
  // continues behind this leaf.
  template <bool Forward>
  op_status visit_leaf(const start& from, position& p, bool ends_here) noexcept {
    leaf& l = p.as_leaf();
    if constexpr (racing) {
      if (visited_.room() < locks_per_leaf) return op_status::need_memory;
      if (locking_) {
        p.seen = l.lock.lock();
        if (p.seen.is_obsolete() || !p.parent_lock->validate(p.parent_seen)) {
          l.lock.unlock_unchanged(p.seen);
          return op_status::restart;
        }
      } else if (!sort_if_worthwhile(p)) {
        return op_status::restart;
      }
      visited_.push({&l.lock, p.seen});
      l.for_each_value_lock([&](node_lock& values) {
        visited_.push({&values, locking_ ? values.lock() : values.read()});
      });
    }
    if constexpr (leaf::in_order) {
      return copy_records<Forward>(from, p, l, ends_here);
    } else {
      if (l.is_in_order()) return copy_records<Forward>(from, p, l, ends_here);
      l.order(view_);
      return copy_records<Forward>(from, p, view_, ends_here);
    }
  }

  // Sorts the leaf if it can be sorted, unless another thread wants the leaf. The next scan gains
  // from it. False: the leaf has changed.
  static bool sort_if_worthwhile(position& p) noexcept {
    if constexpr (requires(leaf& l) { l.sort_in(); }) {
      leaf& l = p.as_leaf();
      if (!l.is_in_order() && l.lock.try_upgrade(p.seen)) {
        l.sort_in();
        l.lock.unlock();
        p.seen = l.lock.read();
        // as in tree_.enter()
        return !p.seen.is_obsolete() && p.parent_lock->validate(p.parent_seen);
      }
    }
    return true;
  }

  // Copies from the leaf's slots in key order.
  template <bool Forward, class Ordered>
  op_status copy_records(const start& from, const position& p, const Ordered& ordered,
                         bool ends_here) noexcept {
    const unsigned count = ordered.count();
    unsigned bound = Forward ? 0 : count;
    if (from.which != start::kind::end &&
        !rank_of<Forward, false>(
            from, ordered, count, [&] { return locking_ || p.still_valid(); }, bound)) {
      return op_status::restart;
    }
    ends_here = ends_here && end_.has_value();
    unsigned last = Forward ? count : 0;
    if (ends_here && !rank_of_end<Forward>(ordered, count, p, last)) return op_status::restart;
    const unsigned first = Forward ? bound : last;
    const unsigned behind = Forward ? last : bound;
    const std::size_t available = behind > first ? behind - first : 0;
    const std::size_t wanted = std::min(available, limit_ - entries_.size());
    if (entries_.room() < wanted) return op_status::need_memory;
    if constexpr (holds_keys) {
      if (!copy_keys<Forward>(ordered, bound, wanted)) return op_status::need_memory;
    } else {
      copy_slots<Forward>(ordered, bound, wanted);
    }
    const bool complete =
        ends_here || entries_.size() == limit_ || (one_leaf_ && entries_.size() != 0);
    return complete ? op_status::yes : op_status::no;
  }
  template <bool Forward, class Ordered>
  void copy_slots(const Ordered& ordered, unsigned bound, std::size_t wanted) noexcept {
    entry* to = entries_.extend(wanted);
    if constexpr (Forward &&
                  requires { ordered.for_each_record(0u, 0u, [](const auto&, const auto&) {}); }) {
      ordered.for_each_record(bound, bound + static_cast<unsigned>(wanted),
                              [&](const key_slot& k, const value_slot& v) { *to++ = {k, v}; });
    } else {
      for (unsigned i = 0; i < wanted; ++i) {
        const unsigned slot = Forward ? bound + i : bound - 1 - i;
        to[i] = {ordered.key(slot), ordered.value(slot)};
      }
    }
  }
  // There is room for the entries. False: their bytes lack room, and some records are copied.
  template <bool Forward>
  bool copy_keys(const leaf& l, unsigned bound, std::size_t wanted) noexcept {
    const slotted_key prefix_key = l.records.prefix_key();
    const std::string_view prefix = prefix_key.view();
    const std::size_t begin = prefix.size();
    for (unsigned i = 0; i < wanted; ++i) {
      if (bytes_.room() < begin + leaf::records_type::copied_max) {
        lacked_bytes_ = true;
        return false;
      }
      const unsigned slot = Forward ? bound + i : bound - 1 - i;
      entry e{nullptr, bytes_.size(), 0, l.value(slot)};
      char* const to = bytes_.extend(0);
      if (begin != 0) std::memcpy(to, prefix.data(), begin);
      const unsigned rest = l.records.copy_rest(slot, to + begin, e.in);
      if (e.in == nullptr) {
        e.size = begin + rest;
        bytes_.extend(e.size);
      }
      entries_.push(e);
    }
    return true;
  }

  // Counts the keys that come before `from` in key order. In an inner node that is the child to
  // enter, in a leaf the first or last slot of the range.
  template <bool Forward, bool InInner, class Node, class StillValid>
  static bool rank_of(const start& from, const Node& n, unsigned count, StillValid&& still_valid,
                      unsigned& result) noexcept {
    const bool strictly_behind = from.which == start::kind::beyond;
    const bool or_equal = InInner ? Forward || !strictly_behind : Forward == strictly_behind;
    return or_equal ? Tree::template rank_in_node<true>(n, count, from.key, still_valid, result)
                    : Tree::template rank_in_node<false>(n, count, from.key, still_valid, result);
  }

  // Counts the keys in front of the end of a forward range, or those behind which a backward range
  // ends.
  template <bool Forward, class Node>
  bool rank_of_end(const Node& n, unsigned count, const position& p,
                   unsigned& result) const noexcept {
    const auto still_valid = [&] { return locking_ || p.still_valid(); };
    // NOLINTNEXTLINE(bugprone-unchecked-optional-access): the caller has checked
    const auto& last = *end_;
    return last.is_inclusive == Forward
               ? Tree::template rank_in_node<true>(n, count, last.key, still_valid, result)
               : Tree::template rank_in_node<false>(n, count, last.key, still_valid, result);
  }

  // A guess at the next leaf of the walk. The address that is read here is only prefetched.
  static void prefetch_leaf(const inner& parent, unsigned index) noexcept {
    prefetch_bytes_for_later<sizeof(leaf)>(parent.child(index));
  }

  const Tree& tree_;
  std::size_t limit_;
  std::optional<end> end_;
  bool one_leaf_ = false;
  bool locking_ = false;
  bool lacked_memory_ = false;  // the last attempt ended for that
  bool lacked_bytes_ = false;   // and the bytes of keys had no room
  staging_buffer<entry, 4096> entries_;
  struct no_bytes {
    void clear() noexcept {}
    void grow() {}
  };
  [[no_unique_address]] std::conditional_t<holds_keys, staging_buffer<char, 8192>, no_bytes> bytes_;
  // of the first four leaves at least
  staging_buffer<visited, std::max<std::size_t>(512, 4 * locks_per_leaf * sizeof(visited))>
      visited_;
  [[no_unique_address]] typename leaf::ordered_view view_;
};

}  // namespace elidex::internal
