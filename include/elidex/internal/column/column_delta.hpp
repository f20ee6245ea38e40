// The part of a column that receives new rows: the ID of each row's value, with an indexed
// dictionary of the values.
//
//   column_delta<std::uint64_t, std::uint32_t> delta(synchronization::automatic);
//   delta.begin_at(1000);                             // the number of its first row
//   auto row = delta.append(delta.id_of_new(42));     // 1000, or nothing once it is closed
//   delta.close();                                    // its final number of rows
//
// Thread-safety: all functions but constructor and destructor, from any thread. begin_at() runs
// before other threads know of the delta. A thread that sees a row sees what the appending thread
// did before append().
// Errors: id_of_new() and ids_of_new() throw as keyed_delta_index's find_or_add(). append() and
// append_all() throw std::bad_alloc, and nothing is then changed.
//
// Implementation notes
// append() claims a row by incrementing a counter, and then writes the row. append_all() claims
// consecutive rows with one change of the counter. A row that is not written yet does not exist for
// readers. The ID comes first. So an exception leaves at worst values without rows, which the next
// merge omits. The counter's highest bit tells that the delta is closed.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "elidex/internal/column/append_only_array.hpp"
#include "elidex/internal/column/deleted_rows.hpp"
#include "elidex/internal/column/keyed_delta_index.hpp"
#include "elidex/internal/tree/tree_range.hpp"

namespace elidex::internal {

template <class Image, class Id>
class column_delta {
 public:
  using index = keyed_delta_index<Image, Id>;
  using image_argument = typename index::value_argument;

  explicit column_delta(synchronization with) : index_(index_with(with)) {}

  void begin_at(std::uint64_t row) noexcept { first_row_ = row; }
  std::uint64_t first_row() const noexcept { return first_row_; }

  // --- writing ---

  Id id_of_new(image_argument value) { return index_.find_or_add(value).id; }

  // Sets ids[i] to the ID of values[i]. There are at most ids_together_max values. After an
  // exception some of the values may have been added.
  static constexpr std::size_t ids_together_max = index::together_max;
  using image_item = std::remove_cvref_t<image_argument>;
  void ids_of_new(std::span<const image_item> values, Id* ids) {
    index_.find_or_add_together(values, ids);
  }

  std::optional<std::uint64_t> append(Id id) {
    const std::size_t position = claim(1);
    if (position == closed) return std::nullopt;
    // release: pairs with the acquire loads of id_at() and for_each_row(). The ID's entry is
    // written before.
    ids_[position].store(stored(id), std::memory_order_release);
    return first_row_ + position;
  }
  // Appends consecutive rows. Returns the number of the first one.
  std::optional<std::uint64_t> append_all(std::span<const Id> ids) {
    const std::size_t begin = claim(ids.size());
    if (begin == closed) return std::nullopt;
    ids_.for_each_stretch(begin, begin + ids.size(),
                          [&](std::atomic<Id>* rows, std::size_t first, std::size_t count) {
                            const Id* const from = &ids[first - begin];
                            for (std::size_t i = 0; i < count; ++i) {
                              // release: pairs with id_at() and for_each_row(), as in append()
                              rows[i].store(stored(from[i]), std::memory_order_release);
                            }
                          });
    return first_row_ + begin;
  }
  std::size_t close() noexcept { return used_.fetch_or(closed) & ~closed; }

  // --- reading ---

  // The number of claimed rows.
  std::size_t rows() const noexcept { return used_.load() & ~closed; }

  // The ID at this position, if its row is written.
  std::optional<Id> id_at(std::size_t position) const noexcept {
    if (position >= rows()) return std::nullopt;
    return loaded(ids_[position].load(std::memory_order_acquire));  // pairs with append()
  }

  // Calls fn(position, id) for each written row, ascending.
  template <class Fn>
  void for_each_row(Fn&& fn) const {
    ids_.for_each_stretch(
        0, rows(), [&](const std::atomic<Id>* ids, std::size_t first, std::size_t count) {
          for (std::size_t i = 0; i < count; ++i) {
            const Id found = ids[i].load(std::memory_order_acquire);  // pairs with append()
            if (found != unwritten) fn(first + i, *loaded(found));
          }
        });
  }

  // Calls fn(position) for each written row with a value in the range, ascending. The range is not
  // empty.
  template <class Fn>
  void for_each_match(const tree_range<image_argument>& which, Fn&& fn) const {
    if (which.lower && which.upper && *which.lower == *which.upper) {
      const std::optional<Id> wanted = index_.find(*which.lower);
      if (!wanted) return;
      for_each_row([&](std::size_t position, Id id) {
        if (id == *wanted) fn(position);
      });
      return;
    }
    std::vector<bool> wanted(index_.id_bound());  // values added from now on may be missed
    bool any = false;
    for (values_in_range at(*this, which); at.valid(); at.next()) {
      if (at.id() < wanted.size()) any = wanted[at.id()] = true;
    }
    if (!any) return;
    for_each_row([&](std::size_t position, Id id) {
      if (id < wanted.size() && wanted[id]) fn(position);
    });
  }

  // The number of rows of each ID, without deleted rows.
  std::vector<std::size_t> rows_by_id(const deleted_rows& deleted) const {
    std::vector<std::size_t> counts(index_.id_bound());
    for_each_row([&](std::size_t position, Id id) {
      if (id < counts.size() && !deleted.contains(first_row_ + position)) ++counts[id];
    });
    return counts;
  }

  auto view(Id id) const noexcept { return index_.view(id); }
  std::size_t distinct() const noexcept { return index_.size(); }
  std::size_t id_bound() const noexcept { return index_.id_bound(); }
  std::size_t memory_bytes() const noexcept {
    return sizeof(*this) - sizeof(index_) + index_.memory_bytes() + ids_.memory_bytes();
  }

  // The values of a range in its direction, read in batches. Each value that was there at
  // construction comes exactly once. No other value comes twice. The range's bounds outlive this.
  class values_in_range {
   public:
    values_in_range(const column_delta& of, const tree_range<image_argument>& which)
        : index_(of.index_), rest_(which) {
      fill();
    }
    bool valid() const noexcept { return at_ < batch_.size(); }
    image_argument value() const noexcept { return batch_[at_].first.get(); }
    Id id() const noexcept { return batch_[at_].second; }
    void next() {
      if (++at_ != batch_values) return;
      rest_.continue_behind(batch_.back().first.get());  // a string lives as long as the delta
      fill();
    }

   private:
    static constexpr std::size_t batch_values = 1024;  // chosen
    using view = decltype(std::declval<const index&>().view(Id{}));

    void fill() {
      batch_.clear();
      at_ = 0;
      index_.scan(rest_, batch_values, [&](image_argument value, Id id) {
        // A string that scan() passes lives as long as this call. The dictionary's string lives as
        // long as the delta.
        if constexpr (std::is_same_v<Image, std::string>) {
          batch_.emplace_back(index_.view(id), id);
        } else {
          batch_.emplace_back(view(value), id);
        }
      });
    }

    const index& index_;
    tree_range<image_argument> rest_;
    std::vector<std::pair<view, Id>> batch_;
    std::size_t at_ = 0;
  };

 private:
  static constexpr std::size_t closed = ~(~std::size_t{0} >> 1);
  static constexpr Id unwritten = 0;
  // No ID is the greatest Id (dictionary.hpp), so all IDs have room beside `unwritten`.
  static Id stored(Id id) noexcept { return static_cast<Id>(id + 1); }
  static std::optional<Id> loaded(Id found) noexcept {
    if (found == unwritten) return std::nullopt;
    return static_cast<Id>(found - 1);
  }

  // Returns the first of `rows` new positions, or `closed`.
  std::size_t claim(std::size_t rows) {
    std::size_t position = used_.load();
    do {
      if (position >= closed) return closed;
      ids_.provide(position + rows);
    } while (!used_.compare_exchange_weak(position, position + rows));
    return position;
  }

  static index index_with([[maybe_unused]] synchronization with) {
    if constexpr (std::is_constructible_v<index, synchronization>) {
      return index(with);
    } else {
      return index();
    }
  }

  index index_;
  append_only_array<std::atomic<Id>> ids_{"rows of a delta"};
  std::uint64_t first_row_ = 0;
  alignas(128) std::atomic<std::size_t> used_{0};
};

}  // namespace elidex::internal
