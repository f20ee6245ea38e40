// The Delta Storage Index: a B+tree that finds values in a dictionary which is not sorted (paper
// 001, section 2). Its nodes hold IDs only, and every comparison looks into the dictionary: so
// nodes have one size whatever the values are, and a value is stored once.
//
//   delta_index<std::string, optimistic, elision_friendly_delta> index;
//   auto [id, is_new] = index.find_or_add("Oakland");
//   index.find("Oakland");                                       // the ID again
//   index.scan("M", 10, [](std::string_view name, std::uint32_t id) { ... });
//
// The tree is the one of internal/tree/btree_inner.hpp; btree.hpp's header holds the argument for
// its correctness. Of it this one needs less: nothing is ever erased, a delta ends as a whole. So
// nodes only split, none ever leaves the tree, and readers pin nothing.
//
// The paper's original and its transformations (section 5) are parts of one template:
//                                  original_delta              elision_friendly_delta
//   nodes are searched             linearly                    by halving (5.1.2)
//   dictionaries                   one                         one for each of 16 threads (5.2.1)
//   a split's new nodes come from  one stock for all,          the thread's own pool, before the
//                                                              region
//                                  taken inside the region     begins (5.2.2)
// Node size: 30 IDs, that is a branching factor of 31, as in the paper (section 2.2). Inner nodes
// take 6 lines as the paper's do; leaves 2, and with a version 3 as the paper's.
//
// Linearization points
//   find               as get in btree.hpp: the read of the leaf's version in enter()
//   find_or_add        that adds: the try_upgrade() of the leaf. Everybody else who looks for a
//                      value of the leaf waits until the unlock, and sees the ID. That doesn't: as
//                      find
//   scan               range_collector.hpp
//   Nothing is pinned, so what epoch_pin does for other trees, a fence before each operation does
//   here: that one thread's operations take effect in their order. Under a coarse policy: the
//   acquisition of the lock, or the commit of the transaction.
//
// Order of locks: as in btree.hpp. A claim of a dictionary entry waits for no thread.
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include "elidex/internal/column/dictionary.hpp"
#include "elidex/internal/sync/policies.hpp"
#include "elidex/internal/tree/btree_inner.hpp"
#include "elidex/internal/tree/range_collector.hpp"
#include "papers/karnagel/delta_index_node.hpp"
#include "papers/karnagel/delta_index_operation.hpp"
#include "papers/karnagel/id_search.hpp"

namespace elidex::papers {

using namespace internal;

// The branching factor of paper 001, section 2.2.
using delta_fan_out = fan_out<30, 30>;

struct original_delta {
  using search = linear_search;
  using shape = delta_fan_out;
  static constexpr unsigned dictionaries = 1;
  static constexpr bool takes_nodes_inside = true;
};

struct elision_friendly_delta {
  using search = binary_search;
  using shape = delta_fan_out;
  // chosen: as many threads as the library's other per-thread parts
  static constexpr unsigned dictionaries = 16;
  static constexpr bool takes_nodes_inside = false;
};

template <class Key, class Sync, class Parts, class Id>
using delta_dictionary_of = delta_dictionary<Key, Sync::readers_race, Parts::dictionaries, Id>;

template <class Key, class Sync, class Parts, class Id>
using delta_inner_of =
    btree_inner<value_id<delta_dictionary_of<Key, Sync, Parts, Id>, typename Parts::search>, Sync,
                typename Parts::shape, id_leaf<Id, Sync, typename Parts::shape>, false>;

// Value: an unsigned integer type, or std::string (given as std::string_view, compared as unsigned
// bytes, at most 64 KiB). Id: an unsigned integer type; how many values there can be.
//
// Thread-safety: that of the policy, as for btree. find(), find_or_add() and scan() are
// linearizable; size() and memory_bytes() are exact when no operation runs; view() may be called at
// any time with an ID that has come from this index.
//
// Errors: std::bad_alloc from find_or_add() and scan(), and from the first call of a thread;
// std::length_error from find_or_add() when there is no ID left for a new value;
// std::invalid_argument for a string over 64 KiB. The index is then unchanged.
template <class Value, class Sync, class Parts = elision_friendly_delta, class Id = std::uint32_t>
class delta_index : papers::delta_inner_of<Value, Sync, Parts, Id> {
  static_assert(std::unsigned_integral<Value> || std::same_as<Value, std::string>);
  static_assert(std::unsigned_integral<Id>);
  static_assert(!Parts::takes_nodes_inside || !Sync::readers_race,
                "the stock of nodes is protected by the region");
  using inner_levels = papers::delta_inner_of<Value, Sync, Parts, Id>;
  using dictionary = papers::delta_dictionary_of<Value, Sync, Parts, Id>;
  using op_status = internal::op_status;
  using operation = papers::delta_index_operation<delta_index>;
  using typename inner_levels::inner;
  using typename inner_levels::key_slot;
  using typename inner_levels::leaf;
  using typename inner_levels::node_lock;
  using typename inner_levels::position;
  using typename inner_levels::search_key;
  using typename inner_levels::token;
  using value_slot = typename leaf::no_value;
  using values = typename dictionary::keys;

 public:
  using value_type = Value;
  using value_argument = typename values::argument;
  using id_type = Id;
  using sync_policy = Sync;

  delta_index();
  ~delta_index() = default;  // nodes need no destruction; the pools give their memory back
  delta_index(const delta_index&) = delete;
  delta_index& operator=(const delta_index&) = delete;

  // The ID of `value`, if it is there.
  std::optional<Id> find(value_argument value) const;

  struct added {
    Id id;
    bool is_new;
  };
  // The ID of `value`, which gets one unless it has.
  added find_or_add(value_argument value);

  // Calls fn(value, id) for up to `limit` values from `from` on, in ascending order, and returns
  // how many there were. All of them were there at one moment, with no other value between them. fn
  // runs after that moment, outside of all locks, and may use the index. Buffers the IDs.
  template <class Fn>
  std::size_t scan(value_argument from, std::size_t limit, Fn&& fn) const;
  // The same from the least value on.
  template <class Fn>
  std::size_t scan_all(Fn&& fn) const;

  // The value of an ID; view(id).get() gives it as functions take it, for strings valid as long as
  // the index.
  typename values::view view(Id id) const noexcept {
    return typename values::view(dictionary_.at(id));
  }

  // Different values.
  std::size_t size() const noexcept { return dictionary_.size(); }
  // All IDs are below it. Some IDs may be unused.
  std::size_t id_bound() const noexcept { return dictionary_.id_bound(); }

  // Everything obtained from the system for values, nodes and free nodes, in bytes.
  std::size_t memory_bytes() const noexcept {
    return sizeof(*this) - sizeof(dictionary_) + dictionary_.memory_bytes() +
           this->node_bytes_reserved();
  }
  // Of the original, nodes in its stock count as nodes in use.
  btree_stats stats() const noexcept { return this->node_stats(); }

  // The policy's state, for an elided lock's statistics.
  const Sync& sync() const noexcept { return sync_; }

 private:
  friend operation;
  friend internal::node_operation<delta_index>;
  friend internal::range_collector<delta_index>;

  using inner_levels::defers_reclamation;
  using inner_levels::descend_splitting;
  using inner_levels::descend_to_leaf;
  using inner_levels::enter_child;
  using inner_levels::enter_root;
  using inner_levels::inner_pool_;
  using inner_levels::leaf_pool_;
  using inner_levels::link_right_half;
  using inner_levels::merges_;
  using inner_levels::racing;
  using inner_levels::redistributions_;
  using inner_levels::restarts_;
  using inner_levels::root_;
  using inner_levels::run_changing;
  using inner_levels::splits_;
  using inner_levels::sync_;

  static void order_behind_changes() noexcept {
    // seq_cst: pairs with itself in other threads, between a change and the reads of the next
    // operation: of two threads that each add a value and then look for the other's, one finds it.
    if constexpr (racing) std::atomic_thread_fence(std::memory_order_seq_cst);
  }
  search_key search_key_of(value_argument value) const {
    return {&dictionary_, values::search_key_of(value)};
  }
  search_key search_key_of_slot(Id id) const noexcept {
    return {&dictionary_, values::search_key_of_slot(dictionary_.at(id))};
  }

  // What find() made out in a leaf.
  struct found_slot {
    unsigned count = 0;  // IDs in the leaf
    unsigned rank = 0;   // those of values less than the one looked for
    bool exact = false;  // ID `rank` is its
    bool torn = false;   // the leaf changed meanwhile
  };
  static found_slot find(const position& p, const search_key& value) noexcept;
  op_status try_find(const search_key& value, std::optional<Id>& id) const noexcept;
  op_status try_add(const search_key& where, operation& op, Id& id) noexcept;
  op_status split_leaf(position& p, unsigned insert_rank, operation& op) noexcept;
  template <class Start, class Fn>
  std::size_t scan_from(Start&& start, std::size_t limit, Fn&& fn) const;

  template <class Body>
  auto range_region(Body&& body) const {
    return sync_.shared(body);
  }

  dictionary dictionary_;
  [[no_unique_address]] papers::node_stock<Parts::takes_nodes_inside> stock_;
};

}  // namespace elidex::papers

#include "papers/karnagel/delta_index_impl.hpp"
