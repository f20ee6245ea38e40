#include "elidex/sync/lock_names.hpp"

#include <algorithm>
#include <cstdio>
#include <deque>
#include <mutex>
#include <ostream>

namespace elidex {
namespace {

struct named_record {
  std::string name;
  lock_record record;
};

// Never destroyed: static locks may be used until the very end of a process. Names are few; so they are searched one by one.
struct all_records {
  std::mutex lock;
  std::deque<named_record> records;
};
all_records& all() {
  static auto* const records = new all_records;
  return *records;
}

constinit lock_record unnamed;

}  // namespace

lock_record& lock_record_named(std::string_view name) {
  auto& [lock, records] = all();
  const std::lock_guard guard(lock);
  for (named_record& one : records) {
    if (one.name == name) return one.record;
  }
  std::string own(name);  // before the record, so that no record is left without a name
  named_record& added = records.emplace_back();
  added.name = std::move(own);
  return added.record;
}

lock_record& record_of_unnamed_locks() noexcept {
  return unnamed;
}

std::vector<named_lock_counts> named_lock_stats() {
  std::vector<named_lock_counts> found;
  const auto add = [&](const std::string& name, const lock_record& record) {
    named_lock_counts one{.name = name, .counts = {}};
    record.read(one);
    if (one.counts.acquisitions() != 0) found.push_back(std::move(one));
  };
  add("(unnamed)", unnamed);
  auto& [lock, records] = all();
  const std::lock_guard guard(lock);
  for (const named_record& one : records) add(one.name, one.record);
  std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.name < b.name; });
  return found;
}

std::ostream& operator<<(std::ostream& out, const named_lock_counts& one) {
  // Formatted here, so that the stream's own precision and flags neither matter nor change.
  char waited[32];
  std::snprintf(waited, sizeof waited, "%.1f ms", static_cast<double>(one.waited_ns) / 1e6);
  return out << one.name << ": locks " << one.counts.acquisitions() << ", waited " << one.waits << " (" << waited
             << "); " << one.counts;
}

}  // namespace elidex
