#pragma once
// A hash set of integers with a fixed number of buckets, a chain of items in each, and a lock for
// each bucket or one for all.
//
//   chained_map<spin_loop> map(100, map_locks::per_bucket);
//   map.insert(7);                // true: it was not there
//   map.contains(7);              // true
//   map.remove(7);                // true: it was there
//   map.check();  // throws std::logic_error if an item is in the wrong bucket, or there twice
//
// Idea: with few buckets it behaves like a list, with many like independent counters; so the number
// of buckets sets how often sections conflict, and where the lock stands says how much of that the
// lock makes worse.
//
// Invariants: a value v >= 0 is in bucket v % buckets, at most once; new ones go to the chain's
// end. Both kinds of locking have the same memory: every bucket has its lock, and the global one
// lies beside. Items are allocated before the section and given back after it, as in
// linked_list.hpp.
//
// Order of locks: one at a time. Linearization points: those of the lock.
//
// Thread-safety: any thread may call insert(), remove() and contains(). The other functions must
// run alone.
// Errors: insert() throws std::bad_alloc. Each function throws what the lock throws.
//
// From: paper 004 section 3.3.4. Deviations: none.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <utility>

#include "papers/schrimpf/structures/locks.hpp"

namespace elidex::bench {

enum class map_locks : std::uint8_t { per_bucket, global };

template <class Lock>
class chained_map {
 public:
  chained_map(std::size_t buckets, map_locks locks)
      : count_(buckets), locks_(locks), buckets_(std::make_unique<bucket[]>(buckets)) {}
  chained_map(const chained_map&) = delete;
  chained_map& operator=(const chained_map&) = delete;
  ~chained_map() {
    for (std::size_t i = 0; i < count_; ++i) {
      for (item* one = buckets_[i].first; one != nullptr;) delete std::exchange(one, one->next);
    }
  }

  // Whether the value was not there yet.
  bool insert(int value) {
    auto made = make(value);  // given back after the section if the value is there
    bucket& b = bucket_of(value);
    const std::lock_guard guard(lock_of(b));
    return append(b, made);
  }
  // Without the lock. It must run alone. elision_only needs it before there is a machine.
  bool unsafe_insert(int value) {
    auto made = make(value);
    return append(bucket_of(value), made);
  }

  // Whether the value was there.
  bool remove(int value) {
    std::unique_ptr<item> taken;  // before the guard: given back after the section
    bucket& b = bucket_of(value);
    const std::lock_guard guard(lock_of(b));
    return take_out(b, value, taken);
  }
  bool unsafe_remove(int value) {
    std::unique_ptr<item> taken;
    return take_out(bucket_of(value), value, taken);
  }

  [[nodiscard]] bool contains(int value) {
    bucket& b = bucket_of(value);
    const std::lock_guard guard(lock_of(b));
    for (const item* one = b.first; one != nullptr; one = one->next) {
      if (one->value == value) return true;
    }
    return false;
  }

  [[nodiscard]] std::size_t size() const noexcept {
    std::size_t count = 0;
    for_each([&](int) { ++count; });
    return count;
  }

  void check() const {
    for (std::size_t i = 0; i < count_; ++i) {
      for (const item* one = buckets_[i].first; one != nullptr; one = one->next) {
        if (static_cast<std::size_t>(one->value) % count_ != i) {
          throw std::logic_error("chained map: an item is in the wrong bucket");
        }
        for (const item* later = one->next; later != nullptr; later = later->next) {
          if (later->value == one->value)
            throw std::logic_error("chained map: a value is there twice");
        }
      }
    }
  }

  // The values, bucket after bucket.
  template <class F>
  void for_each(F f) const {
    for (std::size_t i = 0; i < count_; ++i) {
      for (const item* one = buckets_[i].first; one != nullptr; one = one->next) f(one->value);
    }
  }

 private:
  struct item {
    item* next = nullptr;
    int value = 0;
  };
  struct bucket {
    own_lines<Lock> own;
    alignas(64) item* first = nullptr;
  };

  static std::unique_ptr<item> make(int value) {
    auto made = std::make_unique<item>();
    made->value = value;
    return made;
  }

  static bool take_out(bucket& b, int value, std::unique_ptr<item>& taken) noexcept {
    for (item** at = &b.first; *at != nullptr; at = &(*at)->next) {
      if ((*at)->value != value) continue;
      taken.reset(*at);
      *at = taken->next;
      return true;
    }
    return false;
  }

  // Takes `made` unless its value is there.
  static bool append(bucket& b, std::unique_ptr<item>& made) noexcept {
    item** end = &b.first;
    for (; *end != nullptr; end = &(*end)->next) {
      if ((*end)->value == made->value) return false;
    }
    *end = made.release();
    return true;
  }

  [[nodiscard]] bucket& bucket_of(int value) const noexcept {
    return buckets_[static_cast<std::size_t>(value) % count_];
  }
  [[nodiscard]] Lock& lock_of(bucket& b) noexcept {
    return locks_ == map_locks::global ? own_.lock : b.own.lock;
  }

  std::size_t count_;
  map_locks locks_;
  own_lines<Lock> own_;
  std::unique_ptr<bucket[]> buckets_;
};

}  // namespace elidex::bench
