#include "bench/stores/consistency.hpp"

#include <algorithm>
#include <limits>
#include <unordered_map>

#include "bench/stores/rows.hpp"

namespace elidex::bench::stores {
namespace {

std::unordered_map<std::uint64_t, std::uint64_t> last_puts_of(const write_log& log) {
  std::unordered_map<std::uint64_t, std::uint64_t> last;
  for (const key_version& put : log.puts) last[put.key] = put.version;
  return last;
}

// The versions that a row may have, by key: each client's last put.
using last_puts = std::unordered_map<std::uint64_t, std::vector<std::uint64_t>>;

last_puts last_puts_of(std::span<const write_log> logs) {
  last_puts all;
  for (const write_log& log : logs) {
    for (const auto& [key, version] : last_puts_of(log)) all[key].push_back(version);
  }
  return all;
}

struct counted {
  std::uint64_t missing = 0;    // keys that were there or were put
  std::uint64_t unknown = 0;    // keys that nobody put
  std::uint64_t not_put = 0;    // versions that no client's last put has
  std::uint64_t changed = 0;    // versions of rows that nobody wrote
  std::uint64_t decreased = 0;  // versions of incremented rows
};

class comparison {
 public:
  comparison(std::span<const write_log> logs, bool increments)
      : puts_(last_puts_of(logs)), increments_(increments) {}

  counted run(const contents& before, const contents& after) {
    auto old = before.rows.begin();
    for (const key_version& now : after.rows) {
      for (; old != before.rows.end() && old->key < now.key; ++old) ++sum_.missing;
      const bool was_there = old != before.rows.end() && old->key == now.key;
      compare(now, was_there ? &*old : nullptr);
      if (was_there) ++old;
    }
    sum_.missing += static_cast<std::uint64_t>(before.rows.end() - old);
    // Those of before that are missing were counted.
    for (const auto& [key, versions] : puts_) {
      if (!is_in(after, key) && !is_in(before, key)) ++sum_.missing;
    }
    return sum_;
  }

 private:
  static bool is_in(const contents& all, std::uint64_t key) {
    const auto at =
        std::lower_bound(all.rows.begin(), all.rows.end(), key,
                         [](const key_version& row, std::uint64_t k) { return row.key < k; });
    return at != all.rows.end() && at->key == key;
  }
  void compare(const key_version& now, const key_version* old) {
    const auto put = puts_.find(now.key);
    if (put != puts_.end()) {
      const auto& may = put->second;
      if (std::find(may.begin(), may.end(), now.version) == may.end()) ++sum_.not_put;
    } else if (old == nullptr) {
      ++sum_.unknown;
    } else if (increments_) {
      if (now.version < old->version) ++sum_.decreased;
    } else if (now.version != old->version) {
      ++sum_.changed;
    }
  }

  last_puts puts_;
  bool increments_;
  counted sum_;
};

// Modulo 2^64, as the difference of two such sums is exact.
std::uint64_t sum_of_versions(const contents& of) {
  std::uint64_t sum = 0;
  for (const key_version& one : of.rows) sum += one.version;
  return sum;
}

}  // namespace

void write_log::drop_earlier_puts() {
  const auto last = last_puts_of(*this);
  puts.clear();
  for (const auto& [key, version] : last) puts.push_back({key, version});
  puts_max_ = std::max(puts_max_at_first, 2 * puts.size());
}

contents read_all(session& from) {
  contents all;
  from.scan(0, std::numeric_limits<std::size_t>::max(), [&](std::uint64_t key, row_view row) {
    const auto version = row_version(row, key);
    if (!version) ++all.torn;
    all.rows.push_back({key, version.value_or(0)});
  });
  return all;
}

std::vector<std::string> find_violations(const contents& before, const contents& after,
                                         std::span<const write_log> logs) {
  std::uint64_t increments = 0;
  for (const write_log& log : logs) increments += log.increments;
  const counted sum = comparison(logs, increments != 0).run(before, after);
  std::vector<std::string> found;
  const auto add = [&](std::uint64_t many, const std::string& what) {
    if (many != 0) found.push_back(std::to_string(many) + " " + what);
  };
  add(after.torn, "rows are not whole");
  add(sum.missing, "rows are missing");
  add(sum.unknown, "rows were never written");
  add(sum.not_put, "rows have a version that no thread's last write has");
  add(sum.changed, "rows changed without a write");
  add(sum.decreased, "rows have a smaller version than before");
  const auto lost =
      static_cast<std::int64_t>(increments + sum_of_versions(before) - sum_of_versions(after));
  if (increments != 0 && lost != 0)
    found.push_back("the versions have grown by " +
                    std::to_string(static_cast<std::int64_t>(increments) - lost) + " where " +
                    std::to_string(increments) + " updates were committed");
  return found;
}

}  // namespace elidex::bench::stores
