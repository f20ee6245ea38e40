// Every allocation of every operation of ordered_map and hash_map fails once. Afterwards the map is
// as it was. An operation on many keys may have changed the first ones. Nothing leaks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "elidex/hash_map.hpp"
#include "elidex/ordered_map.hpp"
#include "support/failing_allocations.hpp"
#include "support/linearizability.hpp"
#include "support/map_faces.hpp"
#include "support/random_seed.hpp"

namespace elidex::testing {
namespace {

using u64 = std::uint64_t;
using content = std::map<u64, u64>;

template <class Map>
content content_of(const Map& map) {
  content seen;
  map.scan(0, SIZE_MAX, [&](u64 key, u64 value) { seen.emplace(key, value); });
  return seen;
}
template <class Map>
void restore(Map& map, const content& wanted) {
  for (const auto& [key, value] : content_of(map)) {
    if (!wanted.contains(key)) map.erase(key);
  }
  for (const auto& [key, value] : wanted) map.upsert(key, value);
}

// An operation, and what the map has before it, after each of its atomic steps, and at its end.
struct operation {
  const char* name = "";
  std::function<void()> run = {};
  std::vector<content> steps = {};

  operation& step(const std::function<void(content&)>& change) {
    content next = steps.back();
    change(next);
    steps.push_back(std::move(next));
    return *this;
  }
  // Changes that may come in any order, except for those of one key.
  struct change_of_key {
    u64 key;
    std::optional<u64> value;
  };
  void steps_in_any_order(std::span<const change_of_key> changes) {
    const content first = steps.back();
    for (unsigned done = 1; done < 1U << changes.size(); ++done) {
      content next = first;
      bool keeps_order = true;
      for (std::size_t i = 0; i < changes.size(); ++i) {
        if ((done >> i & 1U) == 0) {
          for (std::size_t later = i + 1; later < changes.size(); ++later)
            keeps_order &= changes[later].key != changes[i].key || (done >> later & 1U) == 0;
        } else if (changes[i].value) {
          next[changes[i].key] = *changes[i].value;
        } else {
          next.erase(changes[i].key);
        }
      }
      if (keeps_order) steps.push_back(std::move(next));
    }
  }
};

// Runs the operation again and again, a later allocation failing each time, until none fails.
// Returns what was wrong after a failure, in words. A map may also get along without the memory.
template <class Map>
std::string harm_of(Map& map, const operation& op, int& failures) {
  const std::string where = std::string(" after a failure in ") + op.name;
  for (int nth = 1;; ++nth) {
    bool threw = false;
    bool failed = false;
    {
      const failing_allocation armed(nth);
      try {
        op.run();
      } catch (const std::bad_alloc&) {
        threw = true;
      }
      failed = failing_allocation::has_failed();
    }
    if (threw && !failed) return "bad_alloc without a failed allocation in " + std::string(op.name);
    const content now = content_of(map);
    if (now.size() != map.size()) return "the size differs" + where;
    if (!threw && now != op.steps.back()) return "the result differs" + where;
    if (!failed) return "";
    if (threw) ++failures;
    const std::size_t allowed = std::max<std::size_t>(op.steps.size() - 1, 1);
    if (threw &&
        std::ranges::count(op.steps.begin(),
                           op.steps.begin() + static_cast<std::ptrdiff_t>(allowed), now) == 0)
      return "the map differs" + where;
    restore(map, op.steps.front());
  }
}

// Makes random operations on one map.
template <class Map>
class operations {
 public:
  operations(Map& map, u64 keys) : map_(map), keys_(keys), random_(seed_or(1)) {}

  operation next(bool grows) {
    operation op;
    op.steps.push_back(content_of(map_));
    const u64 key = random_.below(keys_);
    const u64 value = random_.below(1'000);
    switch (random_.below(grows ? 9 : 13)) {
      case 0:
      case 1:
        insert(op, key, value);
        break;
      case 2:
        op.run = [=, this] { map_.upsert(key, value); };
        op.name = "upsert";
        op.step([=](content& c) { c[key] = value; });
        break;
      case 3:
      case 4:
      case 5:
        change(op, key, value);
        break;
      case 6:
        look_up(op, key);
        break;
      case 7:
      case 8:
        many(op, key, value);
        break;
      default:
        remove(op, key);
    }
    return op;
  }

 private:
  void insert(operation& op, u64 key, u64 value) {
    op.name = "insert";
    op.run = [=, this] { map_.insert(key, value); };
    if (value % 3 == 0) {
      op.name = "try_emplace";
      op.run = [=, this] { map_.try_emplace(key, value); };
    }
    if constexpr (can_update<Map>) {
      if (value % 3 == 1) {
        op.name = "get_or_insert";
        op.run = [=, this] { map_.get_or_insert(key, [=] { return value; }); };
      }
    }
    op.step([=](content& c) { c.emplace(key, value); });
  }
  void change(operation& op, u64 key, u64 value) {
    const auto set = [=](u64& v) { v = value; };
    if constexpr (!can_update<Map>) {
      insert(op, key, value);
    } else if (value % 3 == 0) {
      op.name = "update";
      op.run = [=, this] { map_.update(key, set); };
      op.step([=](content& c) {
        if (c.contains(key)) c[key] = value;
      });
    } else if (value % 3 == 1) {
      op.name = "upsert_with";
      op.run = [=, this] { map_.upsert_with(key, [=] { return value; }, set); };
      op.step([=](content& c) { c[key] = value; });
    } else {
      op.name = "compute";
      op.run = [=, this] {
        map_.compute(key, [=](std::optional<u64>& v) { compute_with(value, v); });
      };
      op.step([=](content& c) {
        std::optional<u64> v = c.contains(key) ? std::optional(c[key]) : std::nullopt;
        compute_with(value, v);
        if (v) {
          c[key] = *v;
        } else {
          c.erase(key);
        }
      });
    }
  }
  void remove(operation& op, u64 key) {
    const bool present = op.steps.front().contains(key);
    op.name = "erase";
    op.run = [=, this] { map_.erase(key); };
    if (random_.below(2) == 0) {
      op.name = "extract";
      const u64 value = present ? op.steps.front().at(key) : 0;
      op.run = [=, this] {
        const std::optional<u64> got = map_.extract(key);
        EXPECT_EQ(got, present ? std::optional(value) : std::nullopt);
      };
    } else if constexpr (can_erase_if<Map>) {
      if (random_.below(2) == 0) {
        op.name = "erase_if";
        op.run = [=, this] { map_.erase_if(key, [](u64) { return true; }); };
      }
    }
    op.step([=](content& c) { c.erase(key); });
  }
  void look_up(operation& op, u64 key) {
    op.name = "a look-up or scan";
    op.run = [=, this] {
      map_.get(key);
      map_.visit(key);
      if constexpr (can_update<Map>) {
        std::array<std::optional<u64>, 2> found;
        map_.multi_get(std::array{key, key + 1}, found);
      }
      map_.read_around(key);
    };
  }
  void many(operation& op, u64 key, u64 value) {
    const std::array<u64, 5> all_keys{key, key + 3, key, key + 70, key + 1};
    if (value % 4 == 0) {
      op.name = "multi_erase";
      op.run = [=, this] { map_.multi_erase(all_keys); };
      steps_of_batch(op, all_keys, [](std::size_t) { return std::optional<u64>(); });
      return;
    }
    if constexpr (requires { map_.erase_between(key, key, true); }) {
      if (value % 4 == 1) return erase_between(op, key, value % 8 < 4);
      if (value % 4 == 2) return bulk_load(op, key, value);
    }
    if constexpr (can_update<Map>) {
      op.name = "multi_upsert";
      const std::array<u64, 5> values{1, 2, 3, value, 5};
      op.run = [=, this] { map_.multi_upsert(all_keys, values); };
      steps_of_batch(op, all_keys, [&](std::size_t i) { return std::optional(values[i]); });
    } else {
      look_up(op, key);
    }
  }
  static void steps_of_batch(operation& op, std::span<const u64> all_keys, const auto& value_of) {
    std::vector<operation::change_of_key> changes;
    for (std::size_t i = 0; i < all_keys.size(); ++i) changes.push_back({all_keys[i], value_of(i)});
    if (std::is_same_v<Map, face_as_integers<ordered_map<u64, u64>>>) {
      op.steps_in_any_order(changes);
      return;
    }
    for (const auto& one : changes) {
      op.step([&](content& c) {
        if (one.value) c[one.key] = *one.value;
        if (!one.value) c.erase(one.key);
      });
    }
  }
  void erase_between(operation& op, u64 key, bool descends) {
    op.name = "erase(bounds)";
    op.run = [=, this] { map_.erase_between(key, key + 7, descends); };
    for (u64 n = 0; n < 7; ++n)
      op.step([=](content& c) { c.erase(descends ? key + 6 - n : key + n); });
  }
  void bulk_load(operation& op, u64 key, u64 value) {
    op.name = "bulk_load";
    const std::array<std::pair<u64, u64>, 4> records{
        {{key, value}, {key + 1, 1}, {key + 4, 2}, {key + 90, 3}}};
    op.run = [=, this] { map_.bulk_load(records); };
    for (const auto& record : records) op.step([=](content& c) { c.insert(record); });
  }

  Map& map_;
  u64 keys_;
  random_numbers random_;
};

// Loads many records into an empty map. `all_or_none`: if it fails, the map stays empty.
template <class Map>
std::string harm_of_loading(bool all_or_none, int& failures) {
  Map map;
  std::vector<std::pair<u64, u64>> records;
  for (u64 n = 0; n < 100; ++n) records.emplace_back(2 * n, n);
  if constexpr (requires { map.bulk_load(records); }) {
    operation load{.name = "bulk_load", .run = [&] { map.bulk_load(records); }, .steps = {{}}};
    if (all_or_none) {
      load.step([&](content& c) { c.insert(records.begin(), records.end()); });
    } else {
      for (const auto& record : records) load.step([&](content& c) { c.insert(record); });
    }
    return harm_of(map, load, failures);
  } else {
    const operation reserve{
        .name = "reserve", .run = [&] { map.map().reserve(5'000); }, .steps = {{}}};
    return harm_of(map, reserve, failures);
  }
}

template <class Map>
std::string first_harm(int count, u64 keys, int& failures) {
  Map map;
  operations<Map> source(map, keys);
  for (int i = 0; i < count; ++i) {
    const operation op = source.next(i / 100 % 2 == 0);
    if (std::string what = harm_of(map, op, failures); !what.empty()) return what;
  }
  return "";
}

// The difference that a second run makes to the number of allocations. What the first run
// allocates for the thread stays.
template <class Map>
std::int64_t leaked(int count, u64 keys) {
  int failures = 0;
  first_harm<Map>(count, keys, failures);
  const std::int64_t before = allocations_alive;
  first_harm<Map>(count, keys, failures);
  return allocations_alive - before;
}

template <class Map>
class MapFaceAllocationFailure : public ::testing::Test {};
using tuple_key = std::tuple<std::string, std::int64_t>;
using maps =
    ::testing::Types<ordered_map<u64, u64>, ordered_map<std::string, std::string>,
                     ordered_map<tuple_key, std::vector<u64>>,
                     ordered_map<std::pair<std::int32_t, u64>, u64>,
                     ordered_map<std::string, std::unique_ptr<u64>>, hash_map<u64, u64>,
                     hash_map<std::string, std::string>, hash_map<tuple_key, std::vector<u64>>,
                     hash_map<u64, std::unique_ptr<u64>>>;
TYPED_TEST_SUITE(MapFaceAllocationFailure, maps);

TYPED_TEST(MapFaceAllocationFailure, LeavesTheMapUnchangedAndUsable) {
  using map = face_as_integers<TypeParam>;
  int failures = 0;
  EXPECT_EQ(first_harm<map>(250 * effort(), 90, failures), "");
  EXPECT_GT(failures, 100);
  const bool all_or_none = std::is_same_v<TypeParam, ordered_map<u64, u64>>;
  EXPECT_EQ(harm_of_loading<map>(all_or_none, failures), "");
}
TYPED_TEST(MapFaceAllocationFailure, LeaksNothing) {
  EXPECT_EQ(leaked<face_as_integers<TypeParam>>(100, 60), 0);
}

// --- canaries ---

using string_map = face_as_integers<ordered_map<std::string, std::string>>;

// Takes the value out before it has the memory for the changed one.
struct computes_after_erasing : string_map {
  template <class Fn>
  bool compute(u64 key, Fn fn) {
    std::optional<u64> value = this->get(key);
    this->erase(key);
    fn(value);
    if (value) this->upsert(key, *value);
    return value.has_value();
  }
};
// Does the second key before the first.
struct erases_out_of_order : string_map {
  std::size_t multi_erase(std::span<const u64> wanted) {
    const bool second = this->erase(wanted[1]);
    return (second ? 1U : 0U) + string_map::multi_erase(wanted);
  }
};
// Keeps what it has allocated when the insert fails.
struct leaks_on_bad_alloc : string_map {
  struct note {
    note* next;
  };
  static inline note* kept = nullptr;  // reachable, for leak detectors
  bool insert(u64 key, u64 value) {
    kept = new note{kept};
    const bool added = string_map::insert(key, value);
    delete std::exchange(kept, kept->next);
    return added;
  }
};

TEST(MapFaceAllocationFailureCanary, BrokenMapsAreFound) {
  int failures = 0;
  EXPECT_THAT(first_harm<computes_after_erasing>(600, 60, failures),
              ::testing::HasSubstr("the map differs after a failure in compute"));
  EXPECT_THAT(first_harm<erases_out_of_order>(600, 60, failures),
              ::testing::HasSubstr("the map differs after a failure in multi_erase"));
  EXPECT_GT(leaked<leaks_on_bad_alloc>(100, 60), 0);
}

}  // namespace
}  // namespace elidex::testing
