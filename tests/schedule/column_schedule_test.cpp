// Columns under explored interleavings: rows that come, go and are looked for while merges run.
//
// What a call may see follows from when it ran beside the others: a row is there for calls that
// begin after its insertion has ended, it is not for calls that end before it begins, and between
// it may be; the same for its deletion.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "elidex/column.hpp"
#include "machine/schedule.hpp"
#include "machine/simulation.hpp"
#include "schedule/explore.hpp"
#include "support/samples.hpp"

namespace elidex::testing {
namespace {

using u64 = std::uint64_t;
constexpr u64 values = 4;

enum class kind { insert, insert_batch, erase, get, find, merge };
constexpr u64 batch_rows = 3;
struct call_of_column {
  kind what = kind::insert;
  u64 value = 0;  // to insert or to find; of a batch, the first row's, see batch_of()
  u64 row = 0;    // to erase or to get; or that the insertion has got
  bool erased = false;
  std::optional<u64> got;
  std::vector<u64> found;
  u64 begin = 0;
  u64 end = 0;
};

// The values of a batch, the first one twice.
std::array<u64, batch_rows> batch_of(u64 value) {
  return {value, (value + 1) % values, value};
}

template <class T>
struct numbered_values {
  static T of(u64 n) { return sample<T>::of(n); }
  static std::array<T, batch_rows> batch(u64 first) {
    std::array<T, batch_rows> all;
    std::ranges::transform(batch_of(first), all.begin(), of);
    return all;
  }
  static u64 number(const T& value) {
    for (u64 n = 0; n < values; ++n) {
      if (sample<T>::of(n) == value) return n;
    }
    return values;
  }
};

// From when on a row was there and until when, as far as others could tell.
struct life_of_row {
  u64 value = 0;
  u64 born_begin = 0;
  u64 born_end = 0;
  u64 died_begin = ~u64{0};
  u64 died_end = ~u64{0};

  bool was_there_throughout(const call_of_column& call) const {
    return born_end < call.begin && call.end < died_begin;
  }
  bool may_have_been_there(const call_of_column& call) const {
    return born_begin < call.end && call.begin < died_end;
  }
};

template <class Column>
struct column_history {
  using value_type = typename Column::value_type;
  using numbered = numbered_values<value_type>;
  static constexpr std::size_t threads = 3;
  static constexpr u64 steps = 4'000;  // most of them a merge's

  Column column;
  std::vector<u64> before;  // by row
  std::array<std::vector<call_of_column>, threads> plans;

  using made_by_seed = void;
  explicit column_history(u64 seed) {
    random_numbers random(seed);
    for (u64 i = 0; i < random.below(4); ++i) {
      before.push_back(random.below(values));
      column.insert(numbered::of(before.back()));
      if (random.below(3) == 0) column.merge();
    }
    for (std::size_t t = 0; t < threads; ++t) {
      for (std::size_t i = 0; i < (t == 0 ? 2 : 3); ++i) {
        call_of_column c;
        constexpr std::array kinds{kind::insert, kind::insert_batch, kind::find, kind::get,
                                   kind::erase};
        c.what = t == 0 && i == 0 ? kind::merge : kinds[random.below(kinds.size())];
        c.value = random.below(values);
        c.row = random.below(before.size() + 3);
        plans[t].push_back(c);
      }
    }
  }

  void perform(call_of_column& c) {
    c.begin = sim::steps();
    if (c.what == kind::insert) c.row = column.insert(numbered::of(c.value));
    if (c.what == kind::insert_batch) c.row = column.multi_insert(numbered::batch(c.value));
    if (c.what == kind::erase) c.erased = column.erase(c.row);
    if (c.what == kind::get) {
      if (const auto got = column.get(c.row)) c.got = numbered::number(*got);
    }
    if (c.what == kind::find) c.found = column.find(numbered::of(c.value));
    if (c.what == kind::merge) column.merge();
    c.end = sim::steps();
  }
  std::vector<std::function<void()>> bodies() {
    std::vector<std::function<void()>> all;
    for (auto& plan : plans) {
      all.emplace_back([this, &plan] {
        for (call_of_column& c : plan) perform(c);
      });
    }
    return all;
  }

  std::string verdict() {
    std::map<u64, life_of_row> rows;
    for (u64 row = 0; row < before.size(); ++row) rows[row].value = before[row];
    std::string wrong;
    for_each([&](const call_of_column& c) {
      const auto born = [&](u64 row, u64 value) {
        if (!rows.try_emplace(row, life_of_row{value, c.begin, c.end}).second)
          wrong = "a row number given twice";
      };
      if (c.what == kind::insert) born(c.row, c.value);
      if (c.what == kind::insert_batch) {
        const auto batch = batch_of(c.value);
        for (u64 i = 0; i < batch_rows; ++i) born(c.row + i, batch[i]);
      }
    });
    for_each([&](const call_of_column& c) {
      if (c.what != kind::erase || !c.erased) return;
      const auto row = rows.find(c.row);
      if (row == rows.end()) {
        wrong = "a row erased that nobody inserted";
      } else if (row->second.died_end != ~u64{0}) {
        wrong = "a row erased twice";
      } else {
        row->second.died_begin = c.begin;
        row->second.died_end = c.end;
      }
    });
    if (!rows.empty() && rows.rbegin()->first != rows.size() - 1)
      wrong = "a gap in the row numbers";
    for_each([&](const call_of_column& c) {
      if (wrong.empty()) wrong = what_is_wrong(c, rows);
    });
    for (const bool merged : {false, true}) {
      if (merged) column.merge();
      for (const auto& [row, life] : rows) {
        call_of_column c;
        c.what = kind::get;
        c.row = row;
        c.begin = c.end = ~u64{0} - 1;
        if (const auto got = column.get(row)) c.got = numbered::number(*got);
        if (wrong.empty()) wrong = what_is_wrong(c, rows);
      }
      if (column.stats().main.rows + column.stats().delta.rows != rows.size())
        wrong = "rows too many or too few";
    }
    return wrong;
  }

  std::string what_is_wrong(const call_of_column& c, const std::map<u64, life_of_row>& rows) const {
    const auto at = rows.find(c.row);
    if (c.what == kind::erase && !c.erased) {
      if (at != rows.end() && at->second.was_there_throughout(c))
        return "erase() did not find a row";
    }
    if (c.what == kind::erase && c.erased && !at->second.may_have_been_there(c))
      return "a row erased before it came";
    if (c.what == kind::get) {
      if (!c.got && at != rows.end() && at->second.was_there_throughout(c))
        return "get() did not find a row";
      if (c.got && (at == rows.end() || !at->second.may_have_been_there(c)))
        return "get() found a row that was not there";
      if (c.got && *c.got != at->second.value) return "get() gave another value";
    }
    if (c.what == kind::find) {
      if (!std::is_sorted(c.found.begin(), c.found.end())) return "find() gave rows in no order";
      if (std::adjacent_find(c.found.begin(), c.found.end()) != c.found.end())
        return "find() gave a row twice";
      for (const u64 row : c.found) {
        const auto it = rows.find(row);
        if (it == rows.end() || !it->second.may_have_been_there(c))
          return "find() gave a row that was not there";
        if (it->second.value != c.value) return "find() gave a row with another value";
      }
      for (const auto& [row, life] : rows) {
        if (life.value == c.value && life.was_there_throughout(c) &&
            !std::ranges::binary_search(c.found, row)) {
          return "find() did not give a row that was there";
        }
      }
    }
    return "";
  }

  template <class Fn>
  void for_each(Fn&& fn) {
    for (auto& plan : plans) {
      for (call_of_column& c : plan) fn(c);
    }
  }
};

TEST(ColumnSchedules, OfNumbersLoseNoRow) {
  EXPECT_EQ(explore<column_history<column<u64>>>(static_cast<u64>(500 * effort())), "");
}
TEST(ColumnSchedules, OfStringsLoseNoRow) {
  EXPECT_EQ(explore<column_history<column<std::string>>>(static_cast<u64>(150 * effort())), "");
}

// A thread of a few accesses is stopped at one of them, while the others run to their end or until
// they wait for it.
template <class Program>
std::string explore_stopping_early(std::uint64_t schedules, std::uint64_t first_steps = 60) {
  for (u64 seed = seed_or(1); seed < seed_or(1) + schedules; ++seed) {
    const auto schedule = sim::pct(seed, 2, first_steps);
    if (std::string what = under<Program>(*schedule, seed); !what.empty()) return what;
  }
  return "";
}

// A row's value is left out of the next main while somebody is about to look at it: its ID means
// another value there, and only its bit, read behind the pointer to the parts, says that nobody
// must follow it. The merge has failed before, so that it need not wait for pins before it looks at
// the bits.
struct reads_of_a_forgotten_value {
  static constexpr u64 values = 255;
  static constexpr u64 gone = 9;
  column<u64, std::uint8_t> numbers;
  std::optional<u64> got;

  reads_of_a_forgotten_value() {
    for (u64 i = 0; i < values; ++i) numbers.insert(i + 1000);
    numbers.merge();
    numbers.insert(1);
    EXPECT_THROW(numbers.merge(), std::length_error);
  }
  std::vector<std::function<void()>> bodies() {
    return {[this] { got = numbers.get(gone); },
            [this] {
              numbers.erase(gone);
              numbers.merge();
            }};
  }
  std::string verdict() const {
    return !got || *got == gone + 1000 ? "" : "get() gave another row's value";
  }
};
TEST(ColumnSchedules, NobodyFollowsTheIdOfAForgottenValue) {
  EXPECT_EQ(explore_stopping_early<reads_of_a_forgotten_value>(static_cast<u64>(400 * effort())),
            "");
}

// An insertion that is stopped somewhere, beside a whole merge: that comes to its end in between
// unless the pin keeps it.
template <class Column>
struct insertion_beside_a_merge {
  using numbered = numbered_values<typename Column::value_type>;
  Column column;
  u64 row = 0;

  insertion_beside_a_merge() { column.insert(numbered::of(1)); }
  std::vector<std::function<void()>> bodies() {
    return {[this] { row = column.insert(numbered::of(2)); }, [this] { column.merge(); }};
  }
  std::string verdict() {
    if (row != 1 || column.size() != 2) return "a wrong row number";
    for (const bool merged : {false, true}) {
      if (merged) column.merge();
      const auto got = column.get(1);
      if (!got || *got != numbered::of(2)) return "the row is lost";
      if (column.find(numbered::of(2)) != std::vector<u64>{1})
        return "find() does not find the row once";
    }
    return "";
  }
};
TEST(ColumnSchedules, AnInsertionBesideAMergeIsNotLost) {
  constexpr u64 steps_of_an_insertion = 200;
  EXPECT_EQ(explore_stopping_early<insertion_beside_a_merge<column<u64>>>(
                static_cast<u64>(500 * effort()), steps_of_an_insertion),
            "");
}

// The same for a batch, which the merge mostly finds between its look-ups and its rows. The batch
// begins again at most once, although merges go on.
template <class Column>
struct batch_beside_merges {
  using numbered = numbered_values<typename Column::value_type>;
  Column column;
  u64 row = 0;

  batch_beside_merges() { column.insert(numbered::of(1)); }
  std::vector<std::function<void()>> bodies() {
    return {[this] { row = column.multi_insert(numbered::batch(2)); },
            [this] {
              for (int i = 0; i < 3; ++i) column.merge();
            }};
  }
  std::string verdict() {
    if (row != 1 || column.size() != 1 + batch_rows) return "a wrong row number";
    const auto batch = numbered::batch(2);
    for (const bool merged : {false, true}) {
      if (merged) column.merge();
      for (u64 i = 0; i < batch_rows; ++i) {
        if (column.get(row + i) != batch[i]) return "a row is lost or has another value";
      }
      if (column.find(batch[0]) != std::vector<u64>{1, 3}) return "find() gives other rows";
      if (column.find(batch[1]) != std::vector<u64>{2}) return "find() gives other rows";
    }
    return column.stats().main.rows == 1 + batch_rows ? "" : "rows too many or too few";
  }
};
TEST(ColumnSchedules, ABatchBesideMergesIsNotLost) {
  constexpr u64 steps_of_a_batch = 500;
  EXPECT_EQ(explore_stopping_early<batch_beside_merges<column<u64>>>(
                static_cast<u64>(500 * effort()), steps_of_a_batch),
            "");
  EXPECT_EQ(explore_stopping_early<batch_beside_merges<column<std::string>>>(
                static_cast<u64>(100 * effort()), steps_of_a_batch),
            "");
}

// What size() takes off must have been there when it counted.
struct sizes_beside_erasures {
  column<u64> numbers;
  std::array<std::size_t, 2> sizes{};

  std::vector<std::function<void()>> bodies() {
    return {[this] {
              for (u64 i = 0; i < 3; ++i) numbers.erase(numbers.insert(i));
            },
            [this] {
              for (std::size_t& size : sizes) size = numbers.size();
            }};
  }
  std::string verdict() const {
    for (const std::size_t size : sizes) {
      if (size > 3) return "size() of more rows than there ever were";
    }
    return numbers.size() == 0 ? "" : "rows that have been erased are counted";
  }
};
TEST(ColumnSchedules, SizeNeverFallsBelowZero) {
  EXPECT_EQ(explore_stopping_early<sizes_beside_erasures>(static_cast<u64>(400 * effort())), "");
}

// A merge that does not close the delta: what comes while it builds the next column is gone.
class forgetful_column {
 public:
  using value_type = u64;
  u64 insert(u64 value) {
    const std::lock_guard guard(mutex_);
    rows_.emplace_back(value);
    return rows_.size() - 1;
  }
  u64 multi_insert(std::span<const u64> batch) {
    const std::lock_guard guard(mutex_);
    rows_.insert(rows_.end(), batch.begin(), batch.end());
    return rows_.size() - batch.size();
  }
  bool erase(u64 row) {
    const std::lock_guard guard(mutex_);
    if (row >= rows_.size() || !rows_[row]) return false;
    rows_[row].reset();
    return true;
  }
  std::optional<u64> get(u64 row) const {
    const std::lock_guard guard(mutex_);
    return row < rows_.size() ? rows_[row] : std::nullopt;
  }
  std::vector<u64> find(u64 value) const {
    const std::lock_guard guard(mutex_);
    std::vector<u64> found;
    for (u64 row = 0; row < rows_.size(); ++row) {
      if (rows_[row] == value) found.push_back(row);
    }
    return found;
  }
  void merge() {
    std::unique_lock reading(mutex_);
    auto copy = rows_;
    reading.unlock();
    const std::lock_guard writing(mutex_);
    rows_ = std::move(copy);
  }
  column_stats stats() const {
    const std::lock_guard guard(mutex_);
    column_stats all;
    all.main.rows = rows_.size();
    return all;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::optional<u64>> rows_;
};

// A batch that comes twice if a merge ends meanwhile.
struct column_that_repeats_batches : column<u64> {
  u64 multi_insert(const std::array<u64, batch_rows>& batch) {
    const std::size_t merges_before = stats().merges;
    const u64 row = column::multi_insert(batch);
    return stats().merges == merges_before ? row : column::multi_insert(batch);
  }
};
TEST(ColumnSchedulesCanary, ABatchThatComesTwiceIsFound) {
  EXPECT_NE(explore<column_history<column_that_repeats_batches>>(2'000), "");
}

TEST(ColumnSchedulesCanary, AMergeThatForgetsIsFound) {
  EXPECT_NE(explore<column_history<forgetful_column>>(2'000), "");
}

}  // namespace
}  // namespace elidex::testing
