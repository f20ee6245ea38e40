#pragma once
// Maps with planted bugs: every harness must report them, or it proves nothing.

#include <atomic>
#include <map>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "elidex/internal/tree/btree.hpp"
#include "papers/karnagel/posix_mutex.hpp"

namespace elidex::testing {

using namespace internal;
using namespace papers;

using sound_map = btree<std::uint64_t, std::uint64_t, coarse<posix_mutex>, fan_out<4, 4>>;

// Optimistic trees whose node locks are broken. Nothing in them yields in the right place: only
// threads that really run at the same time find them out. For tests in which no node is split or
// merged: there they would follow any address.

// Believes whatever was read.
struct validates_nothing : optimistic {
  struct node_lock : version_lock {
    bool validate(token) const noexcept { return true; }
  };
};

// Lets in a second writer who has come while the first one is on its way in. Only for updates of
// keys that stay: two who erase at once would count a leaf's slots below zero.
struct excludes_nobody : optimistic {
  class node_lock {
   public:
    struct token {
      std::uint64_t word = 0;
      bool is_obsolete() const noexcept { return false; }
    };
    token read() const noexcept { return {word_.load()}; }
    bool validate(token seen) const noexcept { return word_.load() == seen.word; }
    bool try_upgrade(token seen) noexcept { return validate(seen); }
    token lock() noexcept { return read(); }
    void unlock() noexcept { ++word_; }
    void unlock_obsolete() noexcept { ++word_; }
    void unlock_unchanged(token) noexcept {}

   private:
    std::atomic<std::uint64_t> word_{0};
  };
};

// An update in two steps: what another thread does in between is lost.
template <class Map>
struct losing_updates : Map {
  template <class Fn>
  bool update(typename Map::key_argument key, Fn&& fn) {
    auto value = this->get(key);
    if (!value) return false;
    std::this_thread::yield();
    fn(*value);
    this->upsert(key, *value);
    return true;
  }
};
using loses_updates = losing_updates<sound_map>;
using loses_string_updates =
    losing_updates<btree<std::string, std::string, coarse<posix_mutex>, fan_out<4, 4>>>;

// A compute() that reads and writes in two steps. Map: of integers, with compute().
template <class Map>
struct computes_in_two_steps : Map {
  template <class Fn>
  bool compute(std::uint64_t key, Fn&& fn) {
    std::optional<std::uint64_t> value = this->get(key);
    fn(value);
    std::this_thread::yield();
    if (value) {
      this->upsert(key, *value);
    } else {
      this->erase(key);
    }
    return value.has_value();
  }
};
// An extract() that returns the value before it erases the key.
template <class Map>
struct extracts_in_two_steps : Map {
  std::optional<std::uint64_t> extract(std::uint64_t key) {
    const std::optional<std::uint64_t> value = this->get(key);
    std::this_thread::yield();
    this->erase(key);
    return value;
  }
};
// A descending scan that looks for one key after the other.
template <class Map>
struct scans_down_piecemeal : Map {
  template <class Fn>
  std::size_t scan_down(std::uint64_t from, std::size_t limit, Fn fn) const {
    std::size_t count = 0;
    for (std::uint64_t key = from + 1; key-- > 0 && count < limit;) {
      if (const auto value = this->get(key)) {
        fn(key, *value);
        ++count;
      }
      std::this_thread::yield();
    }
    return count;
  }
};

// An update that starts from nothing instead of from what is there.
struct updates_a_fresh_value : sound_map {
  template <class Fn>
  bool update(std::uint64_t key, Fn&& fn) {
    return sound_map::update(key, [&](std::uint64_t& v) { fn(v = 0); });
  }
};

// A scan that asks for one key after the other: no moment at which all of it was true.
struct scans_piecemeal : sound_map {
  template <class Fn>
  std::size_t scan(std::uint64_t from, std::size_t limit, Fn&& fn) const {
    std::size_t count = 0;
    for (std::uint64_t next = from; count < limit; ++count) {
      std::uint64_t key = 0;
      if (sound_map::scan(next, 1, [&](std::uint64_t k, std::uint64_t v) {
            key = k;
            fn(k, v);
          }) == 0) {
        break;
      }
      std::this_thread::yield();
      next = key + 1;
    }
    return count;
  }
};

// A get that remembers the last answer for each key, and gives it every third time.
struct gets_stale_values : sound_map {
  std::optional<std::uint64_t> get(std::uint64_t key) const {
    const std::lock_guard guard(mutex);
    if (auto known = last.find(key); known != last.end() && ++asked % 3 == 0) return known->second;
    return last[key] = sound_map::get(key);
  }
  mutable std::mutex mutex;
  mutable std::map<std::uint64_t, std::optional<std::uint64_t>> last;
  mutable int asked = 0;
};

// A cursor that skips the key on which seek_first() lands.
struct cursor_skips_a_key : sound_map {
  struct skipping_cursor : cursor_type {
    explicit skipping_cursor(const sound_map& map) : cursor_type(map.cursor()) {}
    void seek_first() {
      cursor_type::seek_first();
      if (this->valid()) this->next();
    }
  };
  skipping_cursor cursor() const { return skipping_cursor(*this); }
};

// A cursor that going backward skips every key that is a multiple of 64.
struct cursor_skips_backward : sound_map {
  struct skipping_cursor : cursor_type {
    explicit skipping_cursor(const sound_map& map) : cursor_type(map.cursor()) {}
    void prev() {
      cursor_type::prev();
      if (this->valid() && this->key() % 64 == 0) cursor_type::prev();
    }
  };
  skipping_cursor cursor() const { return skipping_cursor(*this); }
};

// Says that it inserted what was there already, once in a while.
struct insert_lies : sound_map {
  bool insert(std::uint64_t key, std::uint64_t value) {
    return sound_map::insert(key, value) || ++calls % 64 == 0;
  }
  int calls = 0;
};

// Erases before it allocates: a failed allocation loses the key.
struct forgets_on_bad_alloc : sound_map {
  bool upsert(std::uint64_t key, std::uint64_t value) {
    const bool was_there = sound_map::erase(key);
    ::operator delete(::operator new(64));  // what it needs the memory for does not matter
    return sound_map::upsert(key, value) && !was_there;
  }
};

}  // namespace elidex::testing
