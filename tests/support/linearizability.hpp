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
#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace elidex::testing {

inline constexpr std::size_t history_keys = 8;
inline constexpr std::size_t history_events_max = 64;

enum class call : std::uint8_t { get, insert, upsert, add, erase, scan };

using map_state = std::array<std::optional<std::uint64_t>, history_keys>;

struct event {
  call what = call::get;
  std::uint64_t key = 0;                                      // of a scan: where it begins
  std::uint64_t value = 0;                                    // what is inserted or added
  bool yes = false;                                           // the result: found, added, erased
  std::optional<std::uint64_t> got;                           // of a get
  std::vector<std::pair<std::uint64_t, std::uint64_t>> seen;  // of a scan, which has no limit
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

inline std::int64_t now_ns() {
  return std::chrono::steady_clock::now().time_since_epoch().count();
}

// One key among others, where the map looks up many at once and the event's value is odd.
template <class Map>
std::optional<std::uint64_t> get_one_way_or_the_other(const Map& map, const event& e) {
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
bool insert_one_way_or_the_other(Map& map, const event& e) {
  if constexpr (requires { map.get_or_insert(e.key, [] { return std::uint64_t{}; }); }) {
    if (e.value % 2 == 1) return map.get_or_insert(e.key, [&] { return e.value; }).second;
  }
  return map.insert(e.key, e.value);
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
      e.yes = insert_one_way_or_the_other(map, e);
      break;
    case call::upsert:
      e.yes = map.upsert(e.key, e.value);
      break;
    case call::add:
      e.yes = map.update(e.key, [&](std::uint64_t& v) { v += e.value; });
      break;
    case call::erase:
      e.yes = map.erase(e.key);
      break;
    case call::scan:
      map.scan(e.key, SIZE_MAX,
               [&](std::uint64_t k, std::uint64_t v) { e.seen.emplace_back(k, v); });
      break;
  }
  e.end = now_ns();
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
    case call::scan: {
      std::size_t i = 0;
      for (std::uint64_t key = e.key; key < history_keys; ++key) {
        if (!state[key]) continue;
        if (i == e.seen.size() || e.seen[i] != std::pair(key, *state[key])) return std::nullopt;
        ++i;
      }
      return i == e.seen.size() ? std::optional(state) : std::nullopt;
    }
  }
  return std::nullopt;
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
