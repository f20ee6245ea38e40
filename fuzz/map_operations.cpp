// All maps must agree with std::map, whatever is done to them.
//
// The bytes are a program: one byte says which operation, the next ones which key, which value,
// which limit. Every map runs it; the first difference aborts, and libFuzzer keeps the input. Keys
// are few and close together, so that inputs of some hundred bytes already split and merge nodes of
// two or three slots.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <limits>
#include <map>
#include <shared_mutex>
#include <string>
#include <tuple>

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
        if (model.size() == 7) map.insert(key, value);  // comes back from the dead
#endif
    }
  }
  compare_all(map, model);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const program p(data, size);
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
  using elidex::hash_map;
  using elidex::testing::long_chains;
  using elidex::testing::tiny_buckets;
  run<hash_index<u64, u64, elidex::default_hash<u64>, tiny_buckets>>(p);
  run<hash_index<u64, u64, elidex::testing::no_hash, long_chains>>(p);
  run<hash_index<std::string, std::string, elidex::default_hash<std::string>, tiny_buckets>>(p);
  return 0;
}
