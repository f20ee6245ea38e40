// All maps must agree with std::map, whatever is done to them.
//
// The bytes are a program: one byte says which operation, the next ones which key, which value,
// which limit. Every map runs it; the first difference aborts, and libFuzzer keeps the input. Keys
// are few and close together, so that inputs of some hundred bytes already split and merge nodes of
// two or three slots. Others run on the public maps, with keys and functions of all kinds.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <shared_mutex>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "elidex/elided.hpp"
#include "elidex/hash_map.hpp"
#include "elidex/internal/sync/spin_locks.hpp"
#include "elidex/ordered_map.hpp"
#include "papers/karnagel/hle_lock.hpp"
#include "papers/karnagel/posix_mutex.hpp"
#include "support/hash_maps.hpp"

namespace {

using elidex::internal::btree;
using elidex::internal::coarse;
using elidex::internal::fan_out;
using elidex::internal::hash_index;
using u64 = std::uint64_t;

class program {
 public:
  program(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}
  bool ended() const { return at_ == end_; }
  std::uint8_t byte() { return ended() ? std::uint8_t{0} : *at_++; }

 private:
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

template <class T>
T make(std::uint8_t n);
template <>
u64 make(std::uint8_t n) {
  return n;
}
template <>
// shared heads, inline and long, NUL bytes, prefixes of one another
std::string make(std::uint8_t n) {
  std::string s(n % 16, n % 2 == 0 ? '\0' : 'a');
  if (n >= 16) s += static_cast<char>(n);
  return s;
}

void demand(bool holds, const char* what) {
  if (holds) return;
  std::cerr << "maps differ: " << what << '\n';
  std::abort();
}

template <class Map, class Key, class Value>
void compare_order(const Map& map, const std::map<Key, Value>& model) {
  auto cursor = map.cursor();
  auto at = model.begin();
  for (cursor.seek_first(); cursor.valid(); cursor.next(), ++at) {
    demand(at != model.end() && cursor.key() == at->first && cursor.value() == at->second,
           "forward");
  }
  demand(at == model.end(), "forward end");
  for (cursor.seek_last(); cursor.valid(); cursor.prev()) {
    demand(at != model.begin() && cursor.key() == (--at)->first, "backward");
  }
  demand(at == model.begin(), "backward end");
}

// hash_map has neither scans nor cursors.
template <class Map>
constexpr bool is_ordered = requires(const Map& map) { map.cursor(); };

template <class Map, class Key, class Value>
void compare_all(const Map& map, const std::map<Key, Value>& model) {
  demand(map.size() == model.size(), "size");
  if constexpr (is_ordered<Map>) {
    compare_order(map, model);
  } else {
    const std::size_t many = map.for_each([&](const auto& key, const auto& value) {
      const auto found = model.find(Key(key));
      demand(found != model.end() && found->second == value, "for_each");
    });
    demand(many == model.size(), "for_each count");
  }
}
template <class Map>
void run(program p) {
  using key_type = typename Map::key_type;
  using value_type = typename Map::mapped_type;
  Map map;
  std::map<key_type, value_type> model;
  while (!p.ended()) {
    const std::uint8_t operation = p.byte();
    const key_type key = make<key_type>(p.byte());
    const value_type value = make<value_type>(operation);
    const auto found = model.find(key);
    const bool present = found != model.end();
    switch (operation % 8) {
      case 0:
      case 1:
        demand(map.insert(key, value) == model.emplace(key, value).second, "insert");
        break;
      case 2:
        demand(map.upsert(key, value) == !present, "upsert");
        model[key] = value;
        break;
      case 3:
        demand(map.update(key, [&](value_type& v) { v = value; }) == present, "update");
        if (present) found->second = value;
        break;
      case 4: {
        const auto got = map.get(key);
        demand(got.has_value() == present && (!present || *got == found->second), "get");
        demand(map.contains(key) == present, "contains");
        break;
      }
      case 5:
        if constexpr (is_ordered<Map>) {
          const std::size_t limit = p.byte();
          auto at = model.lower_bound(key);
          const auto rest = static_cast<std::size_t>(std::distance(at, model.end()));
          const std::size_t count = map.scan(key, limit, [&](const auto& k, const auto& v) {
            demand(at != model.end() && at->first == k && at->second == v, "scan");
            ++at;
          });
          demand(count == std::min(limit, rest), "scan count");
        }
        break;
      case 6:
        if constexpr (is_ordered<Map>) {
          auto cursor = map.cursor();
          cursor.seek_before(key);
          const auto at = model.lower_bound(key);
          demand(cursor.valid() == (at != model.begin()), "seek_before");
          if (cursor.valid()) demand(cursor.key() == std::prev(at)->first, "seek_before key");
        } else {
          map.reserve(p.byte());
        }
        break;
      default:
        demand(map.erase(key) == present, "erase");
        model.erase(key);
#if defined(ELIDEX_PLANTED_BUG)
        if (present && model.size() >= 3) map.insert(key, value);  // comes back from the dead
#endif
    }
  }
  compare_all(map, model);
}

// --- the public maps ---

// A key of a public map, from a number.
template <class Key>
Key make_key(unsigned n);
template <>
u64 make_key(unsigned n) {
  return n;
}
template <>
std::string make_key(unsigned n) {
  std::string s = make<std::string>(static_cast<std::uint8_t>(n));
  if (n >= 256) s += "a longer end \xff";
  if (n >= 512) s.insert(0, 1, '\xff');
  return s;
}
using named = std::tuple<std::string, std::int16_t>;
template <>
named make_key(unsigned n) {
  return {make_key<std::string>(n / 4), static_cast<std::int16_t>(n % 4 * 100 - 200)};
}
using wide = std::pair<std::int32_t, u64>;
template <>
wide make_key(unsigned n) {
  return {static_cast<std::int32_t>(n / 8) - 64, u64{n % 8} << 61};
}

template <class Bounds, class Key>
bool is_within(const Bounds& which, const Key& key) {
  if (which.lower() &&
      (key < *which.lower() || (which.is_without_lower() && key == *which.lower())))
    return false;
  return !which.upper() || key < *which.upper() || (which.is_with_upper() && key == *which.upper());
}

// Runs the program on a public map.
template <class Map>
class face_run {
  using key_type = typename Map::key_type;
  using value_type = typename Map::mapped_type;
  using slot = std::optional<value_type>;
  using records = std::vector<std::pair<key_type, value_type>>;
  using arguments = std::vector<std::remove_cvref_t<typename Map::key_argument>>;
  static constexpr bool is_ordered = requires(const Map& m) { m.cursor(); };

 public:
  explicit face_run(program p) : p_(p) {}

  void run() {
    while (!p_.ended()) {
      const std::uint8_t operation = p_.byte();
      const unsigned how = p_.byte();
      const unsigned n = key_number();
      const key_type key = make_key<key_type>(n);
      const value_type value = make<value_type>(static_cast<std::uint8_t>(how ^ n));
      switch (operation % 8) {
        case 0:
          add(key, value, how);
          break;
        case 1:
          change(key, value, how);
          break;
        case 2:
          remove(key, how);
          break;
        case 3:
          look_up(key);
          break;
        case 4:
          fill(n, how);
          break;
        case 5:
          erase_many(n, how);
          break;
        case 6:
          if constexpr (is_ordered) range(key, how);
          break;
        default:
          rarely(key, value, how);
      }
    }
    compare_all(map_, model_);
  }

 private:
  // Half of the keys are a few, so that most operations meet a key that is there.
  unsigned key_number() {
    const unsigned high = p_.byte();
    const unsigned number = high % 4 * 256 + p_.byte();
    return high < 128 ? number % 16 : number;
  }
  bool has(const key_type& key) const { return model_.contains(key); }
  slot value_at(const key_type& key) const {
    const auto at = model_.find(key);
    return at == model_.end() ? slot() : slot(at->second);
  }
  void set(const key_type& key, const slot& value) {
    if (value) {
      model_.insert_or_assign(key, *value);
    } else {
      model_.erase(key);
    }
  }

  void add(const key_type& key, const value_type& value, unsigned how) {
    const bool present = has(key);
    const auto make_it = [&] { return value; };
    const auto append = [&](value_type& v) { v += value; };
    switch (how % 6) {
      case 0:
        demand(map_.insert(key, value) != present, "insert");
        break;
      case 1:
        demand(map_.try_emplace(key, value) != present, "try_emplace");
        break;
      case 2: {
        const auto [got, added] = map_.get_or_insert(key, make_it);
        demand(added != present && got == value_at(key).value_or(value), "get_or_insert");
        break;
      }
      case 3:
        demand(map_.upsert(key, value) != present, "upsert");
        return set(key, value);
      case 4:
        demand(map_.insert_or_assign(key, value) != present, "insert_or_assign");
        return set(key, value);
      default:
        demand(map_.upsert_with(key, make_it, append) != present, "upsert_with");
        return set(key, present ? *value_at(key) + value : value);
    }
    model_.emplace(key, value);
  }
  void change(const key_type& key, const value_type& value, unsigned how) {
    const slot before = value_at(key);
    if (how % 4 == 0) {
      demand(map_.update(key, [&](value_type& v) { v = value; }) == before.has_value(), "update");
      if (before) set(key, value);
      return;
    }
    slot after = how % 4 == 1 ? slot() : slot(value);
    if (how % 4 == 2) after = before;
    const bool there = map_.compute(key, [&](slot& v) {
      demand(v == before, "compute's value");
      v = after;
    });
    demand(there == after.has_value(), "compute");
    set(key, after);
  }
  void remove(const key_type& key, unsigned how) {
    const slot before = value_at(key);
    switch (how % 4) {
      case 0:
        demand(map_.erase(key) == before.has_value(), "erase");
        break;
      case 1:
        demand(map_.extract(key) == before, "extract");
        break;
      case 2:
        demand(!map_.erase_if(key, [](const value_type&) { return false; }), "erase_if not");
        return;
      default:
        demand(map_.erase_if(key, [](const value_type&) { return true; }) == before.has_value(),
               "erase_if");
    }
    set(key, {});
#if defined(ELIDEX_PLANTED_BUG)
    if (model_.size() >= 3 && before) map_.insert(key, *before);  // comes back from the dead
#endif
  }
  void look_up(const key_type& key) {
    const slot wanted = value_at(key);
    demand(map_.get(key) == wanted && map_.contains(key) == wanted.has_value(), "get");
    bool same = false;
    const bool there = map_.visit(key, [&](const auto& v) { same = wanted && v == *wanted; });
    demand(there == wanted.has_value() && same == there, "visit");
    if (wanted) demand(map_.at(key) == *wanted, "at");
  }

  std::vector<key_type> keys_from(unsigned n, unsigned how) const {
    std::vector<key_type> keys;
    for (unsigned i = 0; i <= how / 8; ++i) keys.push_back(make_key<key_type>((n + i) % 1024));
    return keys;
  }
  void fill(unsigned n, unsigned how) {
    std::vector<key_type> keys = keys_from(n, how);
    const value_type value = make<value_type>(static_cast<std::uint8_t>(how));
    std::size_t added = 0;
    if constexpr (is_ordered) {
      if (how % 2 == 0) {
        std::sort(keys.begin(), keys.end());
        keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
        records sorted;
        for (const key_type& key : keys) {
          sorted.emplace_back(key, value);
          added += model_.emplace(key, value).second ? 1U : 0U;
        }
        demand(map_.bulk_load(sorted) == added, "bulk_load");
        return;
      }
    }
    const std::vector<std::remove_cvref_t<typename Map::value_argument>> values(keys.size(), value);
    for (const key_type& key : keys) added += model_.insert_or_assign(key, value).second ? 1U : 0U;
    const arguments wanted(keys.begin(), keys.end());
    demand(map_.multi_upsert(wanted, values) == added, "multi_upsert");
    std::vector<slot> found(keys.size());
    map_.multi_get(wanted, found);
    demand(std::ranges::count(found, slot(value)) == std::ssize(found), "multi_get");
  }
  void erase_many(unsigned n, unsigned how) {
    const std::vector<key_type> keys = keys_from(n, how);
    std::size_t erased = 0;
    for (const key_type& key : keys) erased += model_.erase(key);
    demand(map_.multi_erase(arguments(keys.begin(), keys.end())) == erased, "multi_erase");
  }
  void rarely(const key_type& key, const value_type& value, unsigned how) {
    if (how % 8 == 0) {
      map_.clear();
      model_.clear();
    } else if (how % 8 == 1) {
      Map other;
      other.insert(key, value);
      swap(map_, other);
      demand(map_.size() == 1 && other.size() == model_.size(), "swap");
      map_ = std::move(other);
    } else if (how % 8 == 2) {
      map_.reclaim();
    } else if constexpr (is_ordered) {
      neighbours(key);
      parts(how % 8);
    } else {
      map_.reserve(how);
    }
  }

  // A range of any kind, in either direction.
  void range(const key_type& a, unsigned how) {
    using namespace elidex;
    const key_type b = make_key<key_type>(key_number());
    const bool descends = p_.byte() % 2 == 1;
    const auto check = [&](const auto& which) {
      const auto turned = descends ? which.descending() : which;
      check_range(turned, [&](const key_type& key) { return is_within(which, key); }, how);
    };
    switch (how % 8) {
      case 0:
        return check(between(a, b));
      case 1:
        return check(closed(a, b));
      case 2:
        return check(from(a));
      case 3:
        return check(above(a));
      case 4:
        return check(below(b));
      case 5:
        return check(up_to(b));
      case 6:
        if (map_.scan(all, [](auto&&...) {}) != model_.size()) demand(false, "scan of all");
        return;
      default:
        prefixed(a, how, descends);
    }
  }
  void prefixed(const key_type& a, unsigned how, bool descends) {
    const auto check = [&](const auto& which, const auto& begins) {
      check_range(descends ? which.descending() : which, begins, how);
    };
    if constexpr (std::is_same_v<key_type, std::string>) {
      const std::string head = a.substr(0, how / 8 % 4);
      check(elidex::prefix(head), [&](const key_type& key) { return key.starts_with(head); });
    } else if constexpr (!std::is_same_v<key_type, u64>) {
      const auto& first = std::get<0>(a);
      check(elidex::prefix(first), [&](const key_type& key) { return std::get<0>(key) == first; });
    }
  }
  template <class Bounds, class Contains>
  void check_range(const Bounds& which, const Contains& contains, unsigned how) {
    records wanted;
    for (const auto& one : model_) {
      if (contains(one.first)) wanted.push_back(one);
    }
    if (which.descends()) std::reverse(wanted.begin(), wanted.end());
    auto at = wanted.begin();
    const auto compare = [&](const auto& key, const auto& value) {
      demand(at != wanted.end() && at->first == key && at->second == value, "a range");
      ++at;
    };
    if (how / 8 % 4 == 0) {
      demand(map_.scan(which, compare) == wanted.size() && at == wanted.end(), "scan count");
    } else if (how / 8 % 4 == 1) {
      const std::size_t limit = how / 32;
      demand(map_.scan_n(which, limit, compare) == std::min(limit, wanted.size()), "scan_n count");
    } else if (how / 8 % 4 == 2) {
      for (const auto& [key, value] : map_.range(which)) compare(key, value);
      demand(at == wanted.end(), "range's end");
    } else {
      demand(map_.erase(which) == wanted.size(), "erase of a range");
      for (const auto& one : wanted) model_.erase(one.first);
    }
  }
  void neighbours(const key_type& key) {
    const auto check = [&](const auto& got, auto at, bool there, const char* what) {
      demand(got.has_value() == there &&
                 (!there || (got->first == at->first && got->second == at->second)),
             what);
    };
    const auto begin = model_.begin();
    const auto end = model_.end();
    const bool any = !model_.empty();
    const auto here = model_.lower_bound(key);
    const auto behind = model_.upper_bound(key);
    check(map_.front(), begin, any, "front");
    check(map_.back(), any ? std::prev(end) : end, any, "back");
    check(map_.lower_bound(key), here, here != end, "lower_bound");
    check(map_.ceiling(key), here, here != end, "ceiling");
    check(map_.upper_bound(key), behind, behind != end, "upper_bound");
    check(map_.floor(key), behind == begin ? end : std::prev(behind), behind != begin, "floor");
  }
  void parts(std::size_t n) {
    auto at = model_.begin();
    const auto all_parts = map_.split(n);
    demand(all_parts.size() <= n, "parts");
    for (const auto& part : all_parts) {
      map_.scan(part, [&](const auto& key, const auto&) {
        demand(at != model_.end() && at->first == key, "a part");
        ++at;
      });
    }
    demand(at == model_.end(), "the last part");
  }

  program p_;
  Map map_;
  std::map<key_type, value_type> model_;
};

void run_trees(program p) {
  run<btree<u64, u64, elidex::internal::unsynchronized, fan_out<2, 3>>>(p);
  run<btree<u64, u64, coarse<elidex::papers::posix_mutex>, fan_out<3, 4>>>(p);
  run<btree<u64, u64, coarse<std::shared_mutex>>>(p);
  run<btree<u64, u64, coarse<elidex::papers::hle_lock>, fan_out<5, 3>>>(p);
  run<btree<u64, u64, coarse<elidex::elided<elidex::ttas_lock>>, fan_out<2, 3>>>(p);
  run<btree<u64, u64, elidex::internal::optimistic, fan_out<2, 3>>>(p);
  run<elidex::internal::ordered_tree<u64, u64>>(p);
  run<btree<std::string, u64, elidex::internal::optimistic, fan_out<2, 3>>>(p);
  run<btree<std::string, std::string, coarse<elidex::ttas_lock>, fan_out<4, 3>>>(p);
  run<elidex::internal::ordered_tree<std::string, std::string>>(p);
  using elidex::testing::long_chains;
  using elidex::testing::tiny_buckets;
  run<hash_index<u64, u64, elidex::default_hash<u64>, tiny_buckets>>(p);
  run<hash_index<u64, u64, elidex::testing::no_hash, long_chains>>(p);
  run<hash_index<std::string, std::string, elidex::default_hash<std::string>, tiny_buckets>>(p);
}
void run_public_maps(program p) {
  using elidex::hash_map;
  using elidex::ordered_map;
  face_run<ordered_map<u64, u64>>(p).run();
  face_run<ordered_map<std::string, std::string>>(p).run();
  face_run<ordered_map<named, std::string>>(p).run();
  face_run<ordered_map<wide, u64>>(p).run();
  face_run<hash_map<u64, u64>>(p).run();
  face_run<hash_map<std::string, std::string>>(p).run();
  face_run<hash_map<named, u64>>(p).run();
}

}  // namespace

// The first byte: whether the program runs on trees and hash tables with small nodes, or on the
// public maps.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  program p(data, size);
  if (p.byte() % 2 == 0) {
    run_trees(p);
  } else {
    run_public_maps(p);
  }
  return 0;
}
