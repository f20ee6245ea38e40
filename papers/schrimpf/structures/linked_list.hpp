#pragma once
// A doubly linked list under one lock: new values at the tail, searches from the head.
//
//   linked_list<spin_loop, item_alignment::cache_line> list;
//   list.insert(7);
//   list.contains(7);             // true
//   list.remove(7);               // true: it was there
//   list.check();                 // throws std::logic_error if the links do not fit together
//
// Idea: the structure that is worst for elision and still common. A search reads all items up to
// its own, so that any change there conflicts with it, and a list of some five hundred items no
// longer fits an elided search's cache if each has a line of its own.
//
// Invariants: items are linked both ways between head and tail, in the order of their insertion;
// equal values may be there several times, and remove() takes the first. Memory is allocated before
// the section and given back after it: inside, either would abort. An item that was taken out is
// given back at once: who could still read it either holds the lock or is in a region that
// conflicted with taking it out.
//
// Order of locks: one. Linearization points: those of the lock.
//
// Thread-safety: any thread may call insert(), remove() and contains(). The other functions must
// run alone.
// Errors: insert() throws std::bad_alloc. Each function throws what the lock throws.
//
// From: paper 004 section 3.3.3 and appendix D.2. Deviations: none in the algorithm; the text also
// says that an insertion finds out whether the value is there already, which would make it as long
// as a search: taken as an oversight, since section 3.3.3 counts an insertion as O(1) and tells the
// list from the map by that.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "papers/schrimpf/structures/locks.hpp"

namespace elidex::bench {

enum class item_alignment : std::uint8_t { none, cache_line };

template <class Lock, item_alignment Alignment>
class linked_list {
 public:
  linked_list() = default;
  linked_list(const linked_list&) = delete;
  linked_list& operator=(const linked_list&) = delete;
  ~linked_list() {
    for (item* one = ends_.head; one != nullptr;) delete std::exchange(one, one->next);
  }

  void insert(int value) {
    auto made = make(value);
    const std::lock_guard guard(own_.lock);
    append(std::move(made));
  }
  // Without the lock. It must run alone. elision_only needs it before there is a machine.
  void unsafe_insert(int value) { append(make(value)); }

  // Whether the value was there.
  bool remove(int value) {
    std::unique_ptr<item> taken;  // before the guard: given back after the section
    const std::lock_guard guard(own_.lock);
    return take_out(value, taken);
  }
  bool unsafe_remove(int value) {
    std::unique_ptr<item> taken;
    return take_out(value, taken);
  }

  [[nodiscard]] bool contains(int value) {
    const std::lock_guard guard(own_.lock);
    return find(value) != nullptr;
  }

  [[nodiscard]] std::size_t size() const noexcept {
    std::size_t count = 0;
    for (const item* one = ends_.head; one != nullptr; one = one->next) ++count;
    return count;
  }

  void check() const {
    const item* before = nullptr;
    for (const item* one = ends_.head; one != nullptr; one = one->next) {
      if (one->previous != before)
        throw std::logic_error("linked list: an item does not know the one before it");
      before = one;
    }
    if (ends_.tail != before) throw std::logic_error("linked list: the tail is not the last item");
  }

  // The values in order.
  template <class F>
  void for_each(F f) const {
    for (const item* one = ends_.head; one != nullptr; one = one->next) f(one->value);
  }

 private:
  struct plain_item {
    plain_item* previous = nullptr;
    plain_item* next = nullptr;
    int value = 0;
  };
  struct alignas(64) aligned_item {
    aligned_item* previous = nullptr;
    aligned_item* next = nullptr;
    int value = 0;
  };
  using item =
      std::conditional_t<Alignment == item_alignment::cache_line, aligned_item, plain_item>;

  static std::unique_ptr<item> make(int value) {
    auto made = std::make_unique<item>();
    made->value = value;
    return made;
  }

  void append(std::unique_ptr<item> made) noexcept {
    item* const last = ends_.tail;
    made->previous = last;
    (last == nullptr ? ends_.head : last->next) = made.get();
    ends_.tail = made.release();
  }

  bool take_out(int value, std::unique_ptr<item>& taken) noexcept {
    item* const found = find(value);
    if (found == nullptr) return false;
    (found->previous == nullptr ? ends_.head : found->previous->next) = found->next;
    (found->next == nullptr ? ends_.tail : found->next->previous) = found->previous;
    taken.reset(found);
    return true;
  }

  [[nodiscard]] item* find(int value) const noexcept {
    item* one = ends_.head;
    while (one != nullptr && one->value != value) one = one->next;
    return one;
  }

  own_lines<Lock> own_;
  struct alignas(64) {
    item* head = nullptr;
    item* tail = nullptr;
  } ends_;
};

}  // namespace elidex::bench
