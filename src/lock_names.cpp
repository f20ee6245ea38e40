#include "elidex/internal/sync/lock_names.hpp"

#include <algorithm>
#include <cstdio>
#include <mutex>
#include <new>
#include <ostream>

#include "elidex/internal/memory/lasting_memory.hpp"

namespace elidex::internal {
namespace {

struct named_record {
  std::string_view name;
  named_record* next;
  lock_record record;
};

// Never destroyed, because static locks may be used until the end of a process. There are few
// names, so they are searched one by one.
constinit std::mutex all_records_lock;
constinit named_record* newest = nullptr;

constinit lock_record unnamed;

}  // namespace

lock_record& lock_record_named(std::string_view name) {
  const std::lock_guard guard(all_records_lock);
  for (named_record* one = newest; one != nullptr; one = one->next) {
    if (one->name == name) return one->record;
  }
  // The name lies behind its record.
  void* const memory = lasting_memory(sizeof(named_record) + name.size(), alignof(named_record));
  char* const text = static_cast<char*>(memory) + sizeof(named_record);
  newest = ::new (memory)
      named_record{.name = {text, name.copy(text, name.size())}, .next = newest, .record = {}};
  return newest->record;
}

lock_record& record_of_unnamed_locks() noexcept {
  return unnamed;
}

std::vector<named_lock_counts> named_lock_stats() {
  std::vector<named_lock_counts> found;
  const auto add = [&](std::string_view name, const lock_record& record) {
    named_lock_counts one{.name = std::string(name), .counts = {}};
    record.read(one);
    if (one.counts.acquisitions() != 0) found.push_back(std::move(one));
  };
  add("(unnamed)", unnamed);
  const std::lock_guard guard(all_records_lock);
  for (const named_record* one = newest; one != nullptr; one = one->next)
    add(one->name, one->record);
  std::sort(found.begin(), found.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return found;
}

std::ostream& operator<<(std::ostream& out, const named_lock_counts& one) {
  // Formatted here, so that the stream's own precision and flags neither matter nor change.
  char waited[32];
  std::snprintf(waited, sizeof waited, "%.1f ms", static_cast<double>(one.waited_ns) / 1e6);
  return out << one.name << ": locks " << one.counts.acquisitions() << ", waited " << one.waits
             << " (" << waited << "); " << one.counts;
}

}  // namespace elidex::internal
