// The immutable part of a column: a sorted dictionary, and the ID of each row's value in as few
// bits as IDs need.
//
//   // a main with the rows of both parts
//   const auto next = merge_parts(main, frozen, deleted, ids_max, progress);
//   next->value_at(7);
//   next->ids_in(range);  // IDs order as their values do
//
// A row that was deleted when its main was built may have lost its value. value_at() then returns
// any value.
//
// Thread-safety: immutable once made. merge_parts() needs a delta that no thread changes. Other
// threads may add deleted rows meanwhile.
// Errors: merge_parts() throws std::bad_alloc, std::length_error if there are more than ids_max
// values, and what `progress` throws.
//
// Implementation notes
// A merge first merges the dictionaries, and then writes the rows by maps from old to new IDs.
// Source: paper 001, section 2. Krueger et al., VLDB 2012, for the order of the merge (column.hpp).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "elidex/internal/column/column_delta.hpp"
#include "elidex/internal/column/deleted_rows.hpp"
#include "elidex/internal/column/packed_ids.hpp"
#include "elidex/internal/column/sorted_values.hpp"
#include "elidex/internal/tree/tree_range.hpp"

namespace elidex::internal {

struct id_range {
  std::uint32_t first;
  std::uint32_t last;  // one past the last ID
};

template <class Image>
class column_main {
 public:
  using dictionary = sorted_dictionary<Image>;

  column_main() = default;
  column_main(dictionary values, packed_ids ids) noexcept
      : values_(std::move(values)), ids_(std::move(ids)) {}

  std::size_t rows() const noexcept { return ids_.size(); }
  const dictionary& values() const noexcept { return values_; }
  const packed_ids& ids() const noexcept { return ids_; }

  auto value_at(std::size_t row) const { return values_.get(ids_.get(row)); }

  // Of a range that is not empty.
  template <class Argument>
  id_range ids_in(const tree_range<Argument>& which) const noexcept {
    const auto ids_before = [&](const Argument& bound, bool with_it) {
      return with_it ? values_.upper_bound(bound) : values_.lower_bound(bound);
    };
    const std::size_t first = which.lower ? ids_before(*which.lower, which.without_lower) : 0;
    const std::size_t last =
        which.upper ? ids_before(*which.upper, which.with_upper) : values_.size();
    return {static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(last)};
  }

  // Calls fn(first, bits) for each 64 rows from `first` on in which a row that is not deleted has
  // one of the IDs.
  template <class Fn>
  void for_each_word(id_range wanted, const deleted_rows& deleted, Fn&& fn) const {
    ids_.for_each_word(wanted.first, wanted.last, [&](std::size_t first, std::uint64_t bits) {
      if (deleted.any()) bits &= ~deleted.word(first / 64);
      if (bits != 0) fn(first, bits);
    });
  }
  std::size_t count(id_range wanted, const deleted_rows& deleted) const noexcept {
    if (!deleted.any()) return ids_.count(wanted.first, wanted.last);
    std::size_t found = 0;
    for_each_word(wanted, deleted, [&](std::size_t /*first*/, std::uint64_t bits) {
      found += static_cast<std::size_t>(std::popcount(bits));
    });
    return found;
  }

  // Calls fn(first, ids) for all rows, in batches. `ids` are those of the rows from `first` on.
  template <class Fn>
  void for_each_batch(Fn&& fn) const {
    std::vector<std::uint32_t> batch(std::min(batch_rows, rows()));
    for (std::size_t first = 0; first < rows(); first += batch.size()) {
      batch.resize(std::min(batch.size(), rows() - first));
      ids_.unpack(first, batch.size(), batch.data());
      fn(first, std::span<std::uint32_t>(batch));
    }
  }

  // The number of rows of each ID, without deleted rows.
  std::vector<std::size_t> rows_by_id(const deleted_rows& deleted) const {
    std::vector<std::size_t> counts(values_.size());
    for_each_batch([&](std::size_t first, std::span<const std::uint32_t> ids) {
      for (std::size_t i = 0; i < ids.size(); ++i) {
        if (!deleted.contains(first + i)) ++counts[ids[i]];
      }
    });
    return counts;
  }

  std::size_t memory_bytes() const noexcept { return values_.memory_bytes() + ids_.memory_bytes(); }

  // The values of a range that is not empty, and their IDs, in its direction.
  class values_in_range {
    using owned = decltype(std::declval<const dictionary&>().get(0));
    using argument = decltype(std::declval<const typename dictionary::cursor&>().value());

   public:
    template <class Argument>
    values_in_range(const column_main& of, const tree_range<Argument>& which)
        : values_in_range(of.values_, of.ids_in(which), which.descends) {}
    bool valid() const noexcept { return left_ != 0; }
    argument value() const noexcept { return descends_ ? argument(kept_) : ascending_.value(); }
    std::size_t id() const noexcept { return id_; }
    void next() {
      --left_;
      if (!descends_) {
        ascending_.next();
        ++id_;
      } else if (valid()) {
        kept_ = values_.get(--id_);
      }
    }

   private:
    values_in_range(const dictionary& values, id_range ids, bool descends)
        : values_(values),
          left_(ids.last - ids.first),
          descends_(descends),
          id_(descends && valid() ? ids.last - 1 : ids.first),
          ascending_(values, descends ? values.size() : ids.first) {
      if (descends && valid()) kept_ = values.get(id_);
    }
    const dictionary& values_;
    std::size_t left_;
    bool descends_;
    std::size_t id_;
    typename dictionary::cursor ascending_;  // a cursor does not move backwards
    owned kept_{};
  };

 private:
  // chosen: a batch fits into a CPU's cache
  static constexpr std::size_t batch_rows = 32 * packed_ids::block_rows;

  dictionary values_;
  packed_ids ids_;
};

// --- merge ---

// Tells for each old ID first whether rows have it, then its new ID. The new ID of an old ID
// without rows stays 0, a meaningless value. There is always an entry for ID 0, even without any
// value, because deleted rows may have ID 0.
class id_map {
 public:
  explicit id_map(std::size_t ids) : new_ids_(std::max<std::size_t>(ids, 1)) {}
  void mark(std::size_t id) noexcept { new_ids_[id] = 1; }
  void mark_all() noexcept { std::fill(new_ids_.begin(), new_ids_.end(), 1U); }
  bool is_marked(std::size_t id) const noexcept { return new_ids_[id] != 0; }
  void set(std::size_t id, std::uint32_t new_id) noexcept { new_ids_[id] = new_id; }
  std::uint32_t operator[](std::size_t id) const noexcept { return new_ids_[id]; }

 private:
  std::vector<std::uint32_t> new_ids_;
};

// Counts each row twice, once when it is read and once when it is written. Reports half of the
// count.
template <class Progress>
class merge_progress {
 public:
  merge_progress(std::size_t rows, Progress& tell) : rows_(rows), tell_(tell) {}
  void add(std::size_t rows) {
    const std::size_t before = done_;
    done_ += rows;
    if (before / step_rows != done_ / step_rows) tell_(std::min(done_ / 2, rows_), rows_);
  }

 private:
  static constexpr std::size_t step_rows = 200'000;  // chosen: some milliseconds
  const std::size_t rows_;
  std::size_t done_ = 0;
  Progress& tell_;
};

template <class Image, class Id, class Progress>
class merge_of_parts {
  using delta_part = column_delta<Image, Id>;
  using main_part = column_main<Image>;
  using image_argument = typename delta_part::image_argument;

 public:
  merge_of_parts(const main_part& main, const delta_part& delta, const deleted_rows& deleted,
                 Progress& progress)
      : main_(main),
        delta_(delta),
        deleted_(deleted),
        progress_(main.rows() + delta.rows(), progress),
        from_main_(main.values().size()),
        from_delta_(delta.id_bound()) {}

  std::unique_ptr<const main_part> run(std::size_t ids_max) {
    mark_what_rows_have();
    auto values = merge_values(ids_max);
    auto ids = write_rows(values.size());
    return std::make_unique<const main_part>(std::move(values), std::move(ids));
  }

 private:
  void mark_what_rows_have() {
    if (!deleted_.any()) {
      from_main_.mark_all();
      progress_.add(main_.rows());
    } else {
      main_.for_each_batch([&](std::size_t first, std::span<const std::uint32_t> ids) {
        for (std::size_t i = 0; i < ids.size(); ++i) {
          if (!deleted_.contains(first + i)) from_main_.mark(ids[i]);
        }
        progress_.add(ids.size());
      });
    }
    // The delta also has values of inserts that did not finish.
    delta_.for_each_row([&](std::size_t position, Id id) {
      if (!deleted_.contains(delta_.first_row() + position)) from_delta_.mark(id);
    });
    progress_.add(delta_.rows());
  }

  auto merge_values(std::size_t ids_max) {
    typename main_part::dictionary::builder merged;
    const tree_range<image_argument> every;
    typename main_part::values_in_range in_main(main_, every);
    typename delta_part::values_in_range in_delta(delta_, every);
    for (;;) {
      while (in_main.valid() && !from_main_.is_marked(in_main.id())) in_main.next();
      while (in_delta.valid() && !from_delta_.is_marked(in_delta.id())) in_delta.next();
      if (!in_main.valid() && !in_delta.valid()) break;
      if (merged.size() == ids_max) throw no_ids_left(ids_max);

      const auto new_id = static_cast<std::uint32_t>(merged.size());
      const bool take_main =
          in_main.valid() && (!in_delta.valid() || !(in_delta.value() < in_main.value()));
      const bool take_delta =
          in_delta.valid() && (!in_main.valid() || !(in_main.value() < in_delta.value()));
      merged.append(take_main ? in_main.value() : in_delta.value());
      if (take_main) {
        from_main_.set(in_main.id(), new_id);
        in_main.next();
      }
      if (take_delta) {
        from_delta_.set(in_delta.id(), new_id);
        in_delta.next();
      }
    }
    return std::move(merged).finish();
  }

  packed_ids write_rows(std::size_t distinct) {
    const auto greatest = static_cast<std::uint32_t>(distinct == 0 ? 0 : distinct - 1);
    packed_ids::writer written(main_.rows() + delta_.rows(), packed_ids::bits_for(greatest));
    main_.for_each_batch([&](std::size_t /*first*/, std::span<std::uint32_t> ids) {
      for (std::uint32_t& id : ids) id = from_main_[id];
      written.append(ids);
      progress_.add(ids.size());
    });
    std::array<std::uint32_t, 32 * packed_ids::block_rows> batch;
    std::size_t filled = 0;
    const auto write_batch = [&] {
      written.append(std::span<const std::uint32_t>(batch).first(filled));
      progress_.add(filled);
      filled = 0;
    };
    delta_.for_each_row([&](std::size_t /*position*/, Id id) {
      batch[filled++] = from_delta_[id];
      if (filled == batch.size()) write_batch();
    });
    write_batch();
    return std::move(written).finish();
  }

  const main_part& main_;
  const delta_part& delta_;
  const deleted_rows& deleted_;
  merge_progress<Progress> progress_;
  id_map from_main_;
  id_map from_delta_;
};

template <class Image, class Id, class Progress>
std::unique_ptr<const column_main<Image>> merge_parts(const column_main<Image>& main,
                                                      const column_delta<Image, Id>& delta,
                                                      const deleted_rows& deleted,
                                                      std::size_t ids_max, Progress&& progress) {
  return merge_of_parts<Image, Id, std::remove_reference_t<Progress>>(main, delta, deleted,
                                                                      progress)
      .run(ids_max);
}

}  // namespace elidex::internal
