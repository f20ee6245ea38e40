#pragma once
// Is a recorded history of a map linearizable?
//
// Every operation is one event: what was asked, what came out, and when it began and ended. The
// history is linearizable if the events can be put into an order that keeps A before B wherever A
// ended before B began, and in which a sequential map gives the same results. Found by search over
// the events that may come next (Wing and Gong, 1993), never trying twice from the same set of done
// events and the same map (Lowe, 2017).
//
// Histories are short (at most 64 events over a handful of keys), so whole maps are compared and
// scans are checked like any other operation.

#include <array>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "elidex/internal/tree/tree_range.hpp"

namespace elidex::testing {

inline constexpr std::size_t history_keys = 8;
inline constexpr std::size_t history_events_max = 64;

// The second line: only of maps that can do it.
enum class call : std::uint8_t {
  get,
  insert,
  upsert,
  add,
  erase,
  scan,
  compute,
  upsert_with,
  erase_if,
  extract,
  scan_down
};

using map_state = std::array<std::optional<std::uint64_t>, history_keys>;

struct event {
  call what = call::get;
  std::uint64_t key = 0;             // of a scan: where it begins
  std::uint64_t value = 0;           // what is inserted or added
  bool yes = false;                  // the result: found, added, erased
  std::optional<std::uint64_t> got;  // the value that the map returned or gave to a function
  std::vector<std::pair<std::uint64_t, std::uint64_t>> seen;  // of a scan
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

inline std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

struct any_function {
  template <class... Args>
  std::uint64_t operator()(Args&&... /*arguments*/) const {
    return 0;
  }
};
template <class Map>
concept can_update = requires(Map& map) { map.update(0, [](std::uint64_t&) {}); };
template <class Map>
concept can_compute = requires(Map& map) { map.compute(0, any_function()); };
template <class Map>
concept can_upsert_with =
    requires(Map& map) { map.upsert_with(0, any_function(), any_function()); };
template <class Map>
concept can_erase_if = requires(Map& map) { map.erase_if(0, any_function()); };
template <class Map>
concept can_extract = requires(Map& map) {
  { map.extract(0) } -> std::same_as<std::optional<std::uint64_t>>;
};
template <class Map>
concept can_scan_down = requires(const Map& map) { map.scan_down(0, 1, any_function()); };
template <class Map>
concept can_scan_bounds = requires(const Map& map, internal::tree_range<std::uint64_t> which) {
  map.scan(which, 1, any_function());
};

// The calls that a history of this map is made of.
template <class Map>
std::vector<call> calls_of(bool with_scans) {
  std::vector<call> calls{call::get, call::insert, call::upsert};
  if (can_update<Map>) calls.push_back(call::add);
  calls.push_back(call::erase);
  if (with_scans) calls.push_back(call::scan);
  if (can_compute<Map>) calls.insert(calls.end(), 2, call::compute);
  if (can_upsert_with<Map>) calls.push_back(call::upsert_with);
  if (can_erase_if<Map>) calls.push_back(call::erase_if);
  if (can_extract<Map>) calls.push_back(call::extract);
  if (with_scans && (can_scan_down<Map> || can_scan_bounds<Map>)) calls.push_back(call::scan_down);
  return calls;
}

// One key among others, or by a function of the same meaning, where the map has one and the event's
// value is odd.
template <class Map>
std::optional<std::uint64_t> get_one_way_or_the_other(const Map& map, const event& e) {
  if constexpr (requires { map.visit(e.key); }) {
    if (e.value % 4 == 2) return map.visit(e.key);
  }
  if constexpr (requires { map.multi_get({}, {}); }) {
    if (e.value % 2 == 1) {
      const std::array<std::uint64_t, 3> wanted{(e.key + 1) % history_keys, e.key,
                                                (e.key + 3) % history_keys};
      std::array<std::optional<std::uint64_t>, 3> found;
      map.multi_get(wanted, found);
      return found[1];
    }
  }
  return map.get(e.key);
}

// Likewise.
template <class Map>
void insert_one_way_or_the_other(Map& map, event& e) {
  if constexpr (requires { map.get_or_insert(e.key, [] { return std::uint64_t{}; }); }) {
    if (e.value % 2 == 1) {
      std::tie(e.got, e.yes) = map.get_or_insert(e.key, [&] { return e.value; });
      return;
    }
  }
  if constexpr (requires { map.try_emplace(e.key, e.value); }) {
    if (e.value % 4 == 2) {
      e.yes = map.try_emplace(e.key, e.value);
      return;
    }
  }
  e.yes = map.insert(e.key, e.value);
}

// Likewise, by an operation on many keys.
template <class Map>
bool upsert_one_way_or_the_other(Map& map, const event& e) {
  if constexpr (requires { map.multi_upsert(std::span(&e.key, 1), std::span(&e.value, 1)); }) {
    if (e.value % 2 == 1)
      return map.multi_upsert(std::span(&e.key, 1), std::span(&e.value, 1)) == 1;
  }
  return map.upsert(e.key, e.value);
}
template <class Map>
bool erase_one_way_or_the_other(Map& map, const event& e) {
  if constexpr (requires { map.multi_erase(std::span(&e.key, 1)); }) {
    if (e.value % 2 == 1) return map.multi_erase(std::span(&e.key, 1)) == 1;
  }
  return map.erase(e.key);
}

// What the function of compute() leaves: one of four functions, by the number that it is given.
inline void compute_with(std::uint64_t given, std::optional<std::uint64_t>& value) {
  switch (given % 4) {
    case 0:
      value = value ? std::nullopt : std::optional(given);
      break;
    case 1:
      value = value.value_or(0) + given;
      break;
    case 2:
      if (value) *value += given;
      break;
    default:
      if (value && *value % 2 == 0) value.reset();
  }
}

// How many records a scan returns at most. Trees treat a limited descending scan differently.
inline std::size_t limit_of(const event& e) {
  return e.what == call::scan_down && e.value % 2 == 1 ? 1 + e.value / 2 % 4 : SIZE_MAX;
}

template <class Map>
void scan_down(const Map& map, event& e) {
  const auto see = [&e](std::uint64_t k, std::uint64_t v) { e.seen.emplace_back(k, v); };
  if constexpr (can_scan_down<Map>) {
    map.scan_down(e.key, limit_of(e), see);
  } else if constexpr (can_scan_bounds<Map>) {
    internal::tree_range<std::uint64_t> which{};
    which.upper.emplace(e.key);
    which.with_upper = true;
    which.descends = true;
    map.scan(which, limit_of(e), see);
  }
}

// The calls that not every map has.
template <class Map>
void perform_function(Map& map, event& e) {
  if constexpr (can_update<Map>) {
    if (e.what == call::add) e.yes = map.update(e.key, [&](std::uint64_t& v) { v += e.value; });
  }
  if constexpr (can_compute<Map>) {
    if (e.what == call::compute) {
      e.yes = map.compute(e.key, [&](std::optional<std::uint64_t>& v) {
        e.got = v;
        compute_with(e.value, v);
      });
    }
  }
  if constexpr (can_upsert_with<Map>) {
    if (e.what == call::upsert_with) {
      e.yes = map.upsert_with(
          e.key,
          [&] {
            e.got.reset();
            return e.value;
          },
          [&](std::uint64_t& v) {
            e.got = v;
            v = 2 * v + e.value;
          });
    }
  }
  if constexpr (can_erase_if<Map>) {
    if (e.what == call::erase_if)
      e.yes = map.erase_if(e.key, [](std::uint64_t v) { return v % 2 == 0; });
  }
  if constexpr (can_extract<Map>) {
    if (e.what == call::extract) e.got = map.extract(e.key);
  }
}

// Does what the event says to `map` and fills in the result and the times.
template <class Map>
void perform(Map& map, event& e) {
  e.begin = now_ns();
  switch (e.what) {
    case call::get:
      e.got = get_one_way_or_the_other(map, e);
      break;
    case call::insert:
      insert_one_way_or_the_other(map, e);
      break;
    case call::upsert:
      e.yes = upsert_one_way_or_the_other(map, e);
      break;
    case call::erase:
      e.yes = erase_one_way_or_the_other(map, e);
      break;
    case call::scan:
      map.scan(e.key, SIZE_MAX,
               [&](std::uint64_t k, std::uint64_t v) { e.seen.emplace_back(k, v); });
      break;
    case call::scan_down:
      scan_down(map, e);
      break;
    default:
      perform_function(map, e);
  }
  e.end = now_ns();
}

// Whether the event's scan shows what the map has.
inline bool shows(const map_state& state, const event& e) {
  std::size_t i = 0;
  const bool descends = e.what == call::scan_down;
  for (std::uint64_t key = e.key; key < history_keys; key += descends ? ~std::uint64_t{0} : 1) {
    if (!state[key]) continue;
    if (i == limit_of(e)) break;
    if (i == e.seen.size() || e.seen[i] != std::pair(key, *state[key])) return false;
    ++i;
  }
  return i == e.seen.size();
}

// What a call of the second line of `call` does to a sequential map.
inline std::optional<map_state> after_function(map_state state, const event& e) {
  auto& slot = state[e.key];
  const bool present = slot.has_value();
  switch (e.what) {
    case call::compute:
      if (e.got != slot) return std::nullopt;
      compute_with(e.value, slot);
      return e.yes == slot.has_value() ? std::optional(state) : std::nullopt;
    case call::upsert_with:
      if (e.yes == present || e.got != slot) return std::nullopt;
      slot = 2 * slot.value_or(0) + e.value;
      return state;
    case call::erase_if:
      if (e.yes != (present && *slot % 2 == 0)) return std::nullopt;
      if (e.yes) slot.reset();
      return state;
    case call::extract:
      if (e.got != slot) return std::nullopt;
      slot.reset();
      return state;
    default:
      return shows(state, e) ? std::optional(state) : std::nullopt;
  }
}

// What the event does to a sequential map; nothing if it cannot have come out like that.
inline std::optional<map_state> after(map_state state, const event& e) {
  auto& slot = state[e.key];
  const bool present = slot.has_value();
  switch (e.what) {
    case call::get:
      return e.got == slot ? std::optional(state) : std::nullopt;
    case call::insert:
      if (e.yes == present) return std::nullopt;
      if (!present) slot = e.value;
      if (e.got && e.got != slot) return std::nullopt;
      return state;
    case call::upsert:
      if (e.yes == present) return std::nullopt;
      slot = e.value;
      return state;
    case call::add:
      if (e.yes != present) return std::nullopt;
      if (present) *slot += e.value;
      return state;
    case call::erase:
      if (e.yes != present) return std::nullopt;
      slot.reset();
      return state;
    default:
      return after_function(state, e);
  }
}

class linearizability {
 public:
  explicit linearizability(std::span<const event> history) : history_(history) {}
  bool holds(const map_state& before) { return search(0, before); }

 private:
  bool search(std::uint64_t done, const map_state& state) {
    if (done ==
        (history_.size() == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << history_.size()) - 1))
      return true;
    if (!tried_.emplace(done, state).second) return false;
    std::int64_t earliest_end = INT64_MAX;
    for (std::size_t i = 0; i < history_.size(); ++i) {
      if ((done >> i & 1) == 0) earliest_end = std::min(earliest_end, history_[i].end);
    }
    for (std::size_t i = 0; i < history_.size(); ++i) {
      if ((done >> i & 1) != 0 || history_[i].begin > earliest_end) continue;
      if (const auto next = after(state, history_[i]);
          next && search(done | std::uint64_t{1} << i, *next))
        return true;
    }
    return false;
  }

  std::span<const event> history_;
  std::set<std::pair<std::uint64_t, map_state>> tried_;
};

}  // namespace elidex::testing
