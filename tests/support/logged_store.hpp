#pragma once
// A store of rows that uses the log as it asks to be used, and remembers all that was committed, so
// that a test can say what any prefix of groups leaves.

#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "elidex/internal/log/checkpoint.hpp"
#include "elidex/internal/log/recovery.hpp"
#include "elidex/internal/log/redo_log.hpp"
#include "support/random_seed.hpp"

namespace elidex::testing {

using namespace internal;

// A commit phase around a transaction's entries, as a store has it that knows its group from the
// beginning.
class commit_with_group {
 public:
  explicit commit_with_group(redo_log::worker& by)
      : commit_(by), clock_(by.log().clock()), phase_(clock_), group_(clock_.now()) {}
  std::uint64_t group() const { return group_; }
  void upsert(std::uint32_t table, const std::string& key, const std::string& row) {
    commit_.upsert(table, key, row);
  }
  void erase(std::uint32_t table, const std::string& key) { commit_.erase(table, key); }
  void change(std::uint32_t table, const std::string& key, const std::string& before,
              const std::string& after) {
    commit_.change(table, key, before, after);
  }
  void keep(std::uint64_t stamp) {
    commit_.keep(commit_stamp(stamp));
    clock_.note_commit(group_);
  }

 private:
  redo_log::commit commit_;
  commit_clock& clock_;
  const commit_clock::commit_phase phase_;
  const std::uint64_t group_;
};

using row_name = std::pair<std::uint32_t, std::string>;  // table and key
using row_map = std::map<row_name, std::string>;

struct row_change {
  row_name name;
  std::optional<std::string> row;  // nothing: erase
};

struct committed {
  std::uint64_t group = 0;
  std::vector<row_change> changes;
};

class logged_store {
 public:
  static constexpr std::uint64_t fingerprint = 0x5EED;

  // Loads what the directory has.
  explicit logged_store(log_directory& directory) {
    found_ = recover_log(directory, fingerprint, [this](const log_entry& entry) { apply(entry); });
  }

  const recovered_log& found() const { return found_; }

  row_map rows() const {
    const std::lock_guard guard(mutex_);
    row_map only;
    for (const auto& [name, row] : rows_) only[name] = row.second;
    return only;
  }

  // Returns the transaction's group.
  std::uint64_t transact(redo_log::worker& by, const std::vector<row_change>& changes) {
    const std::lock_guard guard(mutex_);
    if (commit_stamp(last_stamp_).number() == commit_stamp::number_max) by.log().clock().advance();
    commit_with_group commit(by);
    std::map<row_name, std::optional<std::string>> so_far;
    for (const row_change& each : changes) {
      const auto there = rows_.find(each.name);
      std::optional<std::string>& row =
          so_far
              .try_emplace(each.name, there != rows_.end() ? std::optional(there->second.second)
                                                           : std::nullopt)
              .first->second;
      if (!each.row) {
        commit.erase(each.name.first, each.name.second);
      } else if (row) {
        commit.change(each.name.first, each.name.second, *row, *each.row);
      } else {
        commit.upsert(each.name.first, each.name.second, *each.row);
      }
      row = each.row;
    }
    const std::uint64_t stamp = std::max(last_stamp_ + 8, make_stamp(commit.group(), 1));
    commit.keep(stamp);
    last_stamp_ = stamp;
    for (const row_change& each : changes) {
      if (each.row) {
        rows_[each.name] = {stamp, *each.row};
      } else {
        rows_.erase(each.name);
      }
    }
    history_.push_back({commit.group(), changes});
    return commit.group();
  }

  // One to four changes of few rows.
  std::vector<row_change> random_changes(random_numbers& random) {
    std::vector<row_change> changes;
    for (std::uint64_t count = 1 + random.below(4); count > 0; --count) {
      row_change change{
          {static_cast<std::uint32_t>(random.below(2)), "key" + std::to_string(random.below(20))},
          {}};
      if (random.below(3) != 0) {
        // Few lengths, all but one in words, and few letters: so that a change is often a part of
        // the row.
        std::string row(random.below(3) * 32 + (random.below(4) == 0 ? 3 : 0), 'a');
        for (std::size_t i = random.below(8); i < row.size(); i += 8 + random.below(32))
          row[i] = static_cast<char>('a' + random.below(20));
        change.row = std::move(row);
      }
      changes.push_back(std::move(change));
    }
    return changes;
  }

  // Row by row, each under the lock, `between` being called between them.
  template <class Between>
  finished_checkpoint checkpoint(redo_log& log, Between&& between) {
    checkpoint_writer writer(log);
    std::optional<row_name> last;
    for (;;) {
      {
        const std::lock_guard guard(mutex_);
        const auto next = last ? rows_.upper_bound(*last) : rows_.begin();
        if (next == rows_.end()) break;
        last = next->first;
        writer.add_row(last->first, last->second, next->second.second, next->second.first);
      }
      between();
    }
    return writer.finish();
  }

  // What is left if all groups up to this one count, going on from what was there at first.
  row_map rows_at(const row_map& at_first, std::uint64_t group) const {
    const std::lock_guard guard(mutex_);
    row_map rows = at_first;
    for (const committed& each : history_) {
      if (each.group > group) break;
      for (const row_change& change : each.changes) {
        if (change.row) {
          rows[change.name] = *change.row;
        } else {
          rows.erase(change.name);
        }
      }
    }
    return rows;
  }

  // The last group up to this one in which something was committed; 0: none.
  std::uint64_t last_group_up_to(std::uint64_t group) const {
    const std::lock_guard guard(mutex_);
    std::uint64_t last = 0;
    for (const committed& each : history_) {
      if (each.group <= group) last = each.group;
    }
    return last;
  }

 private:
  void apply(const log_entry& entry) {
    const row_name name{entry.table, std::string(entry.key)};
    const auto there = rows_.find(name);
    last_stamp_ = std::max(last_stamp_, entry.stamp);
    if (there != rows_.end() && there->second.first > entry.stamp) return;
    switch (entry.operation) {
      case log_operation::upsert:
        rows_[name] = {entry.stamp, std::string(entry.row)};
        break;
      case log_operation::erase:
        rows_.erase(name);
        break;
      case log_operation::change:
        if (there == rows_.end()) break;  // its erase follows
        there->second.first = entry.stamp;
        if (!apply_change(std::as_writable_bytes(std::span(there->second.second)), entry))
          throw log_error(log_problem::damaged, "a change that does not fit");
    }
  }

  mutable std::mutex mutex_;
  std::map<row_name, std::pair<std::uint64_t, std::string>> rows_;
  std::vector<committed> history_;
  std::uint64_t last_stamp_ = 0;
  recovered_log found_;
};

}  // namespace elidex::testing
