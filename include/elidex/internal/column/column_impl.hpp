// The member functions of column, included at the end of column.hpp.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <span>
#include <stdexcept>
#include <utility>

#include "elidex/column.hpp"
#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/sync/parking.hpp"
#include "elidex/internal/visitor.hpp"

namespace elidex {

template <class T, class Id>
column<T, Id>::column(const column_options& options) : options_(options) {
  auto main = std::make_unique<const main_part>();
  auto delta = std::make_unique<delta_part>(options_.synchronization);
  state_.store(new parts{main.get(), nullptr, delta.get()});
  static_cast<void>(main.release());
  static_cast<void>(delta.release());
}

template <class T, class Id>
column<T, Id>::~column() {
  const parts& last = now();
  delete last.main;
  delete last.frozen;
  delete last.delta;
  delete &last;
}

template <class T, class Id>
auto column<T, Id>::insert(argument value) -> row_number {
  const auto wanted = images::of(value);
  for (;;) {
    const internal::epoch_pin pin;
    const parts& in = now();
    if (const auto row = in.delta->append(in.delta->id_of_new(wanted))) return *row;
    wait_for_change_of(in);
  }
}

// freeze_delta() has closed the delta and is about to publish the next one. It waits for pins only
// after that.
template <class T, class Id>
void column<T, Id>::wait_for_change_of(const parts& in) const {
  const auto is_current = [&] { return state_.load() == &in; };
  if (is_current()) internal::wait_while<internal::looks::often>(&state_, is_current);
}

template <class T, class Id>
template <std::ranges::input_range Values>
auto column<T, Id>::multi_insert(Values&& values) -> row_number {
  using given = std::ranges::range_reference_t<Values>;
  static_assert(std::convertible_to<given, argument>, "the range has no values of the column");
  if constexpr (std::convertible_to<Values, std::span<const argument>>) {
    return insert_all(values);
  } else {
    // Strings must live until they are inserted. Those that the range makes or reads one by one do
    // not.
    constexpr bool must_copy =
        std::is_same_v<T, std::string> &&
        !(std::ranges::forward_range<Values> &&
          (std::is_lvalue_reference_v<given> || std::ranges::view<std::remove_cvref_t<given>>));
    std::vector<std::conditional_t<must_copy, T, argument>> items;
    if constexpr (std::ranges::sized_range<Values>) items.reserve(std::ranges::size(values));
    for (auto&& value : values)
      items.emplace_back(static_cast<argument>(std::forward<decltype(value)>(value)));
    if constexpr (must_copy) {
      const std::vector<argument> views(items.begin(), items.end());
      return insert_all(views);
    } else {
      return insert_all(items);
    }
  }
}

template <class T, class Id>
auto column<T, Id>::insert_all(std::span<const argument> values) -> row_number {
  if constexpr (std::is_same_v<T, std::string>) {
    for (const argument& value : values) internal::key_codec<std::string>::check(value);
  }
  std::vector<Id> ids(values.size());
  const internal::epoch_pin pin;  // until the end: see the implementation notes of column.hpp
  for (;;) {
    const parts& in = now();
    constexpr std::size_t together = delta_part::ids_together_max;
    for (std::size_t first = 0; first < values.size(); first += together) {
      const auto group = values.subspan(first, std::min(together, values.size() - first));
      std::array<std::remove_cvref_t<image_argument>, together> wanted;
      std::ranges::transform(group, wanted.begin(),
                             [](const argument& v) { return images::of(v); });
      in.delta->ids_of_new(std::span(wanted).first(group.size()), &ids[first]);
    }
    if (const auto row = in.delta->append_all(ids)) return *row;
    wait_for_change_of(in);
  }
}

template <class T, class Id>
bool column<T, Id>::erase(row_number row) {
  const internal::epoch_pin pin;
  const parts& in = now();
  if (row >= in.main->rows()) {
    const delta_part& delta = delta_of(in, row);
    if (!delta.id_at(row - delta.first_row())) return false;
  }
  return deleted_.add(row);
}

template <class T, class Id>
auto column<T, Id>::get(row_number row) const -> std::optional<T> {
  const internal::epoch_pin pin;
  const parts& in = now();
  if (row < in.main->rows()) {
    if (deleted_.contains(row)) return std::nullopt;
    return T(images::value_of(in.main->value_at(row)));
  }
  const delta_part& delta = delta_of(in, row);
  const std::optional<Id> id = delta.id_at(row - delta.first_row());
  if (!id || deleted_.contains(row)) return std::nullopt;
  return T(images::value_of(delta.view(*id).get()));
}

// --- queries ---

template <class T, class Id>
auto column<T, Id>::images_in(const value_bounds& which) -> image_range {
  using keys = internal::map_key<T>;
  const auto values = which.get();
  image_range range;
  if (values.lower) range.lower.emplace(images::of(keys::decoded(*values.lower)));
  if (values.upper) range.upper.emplace(images::of(keys::decoded(*values.upper)));
  range.without_lower = values.without_lower;
  range.with_upper = values.with_upper;
  range.descends = values.descends;
  return range;
}

template <class T, class Id>
auto column<T, Id>::images_between(argument lower, argument upper, bool with_upper) -> image_range {
  image_range range;
  range.lower.emplace(images::of(lower));
  range.upper.emplace(images::of(upper));
  range.with_upper = with_upper;
  return range;
}

template <class T, class Id>
auto column<T, Id>::rows_in(const image_range& which) const -> std::vector<row_number> {
  std::vector<row_number> found;
  if (which.is_empty()) return found;
  const internal::epoch_pin pin;
  const parts& in = now();
  in.main->for_each_word(in.main->ids_in(which), deleted_,
                         [&](std::size_t row, std::uint64_t bits) {
                           for (; bits != 0; bits &= bits - 1)
                             found.push_back(row + static_cast<unsigned>(std::countr_zero(bits)));
                         });
  for_each_delta_match(in, which, [&](row_number row) { found.push_back(row); });
  return found;
}

template <class T, class Id>
std::size_t column<T, Id>::count_in(const image_range& which) const {
  if (which.is_empty()) return 0;
  const internal::epoch_pin pin;
  const parts& in = now();
  std::size_t found = in.main->count(in.main->ids_in(which), deleted_);
  for_each_delta_match(in, which, [&](row_number /*row*/) { ++found; });
  return found;
}

template <class T, class Id>
template <class Fn>
void column<T, Id>::for_each_delta_match(const parts& in, const image_range& which, Fn&& fn) const {
  for (const delta_part* const delta : {in.frozen, in.delta}) {
    if (delta == nullptr) continue;
    delta->for_each_match(which, [&](std::size_t position) {
      const row_number row = delta->first_row() + position;
      if (!deleted_.contains(row)) fn(row);
    });
  }
}

// --- scans: the parts' values, merged ---

namespace internal {

// The values of a part that have rows and lie in a range, in its direction, with the number of
// their rows.
template <class Part>
class values_of_rows {
 public:
  template <class Argument>
  values_of_rows(const Part& part, const tree_range<Argument>& which, const deleted_rows& deleted)
      : rows_by_id_(part.rows_by_id(deleted)), at_(part, which) {
    skip_values_without_rows();
  }
  bool valid() const noexcept { return at_.valid(); }
  auto value() const noexcept { return at_.value(); }
  std::size_t rows() const noexcept {
    return at_.id() < rows_by_id_.size() ? rows_by_id_[at_.id()] : 0;
  }
  void next() {
    at_.next();
    skip_values_without_rows();
  }

 private:
  void skip_values_without_rows() {
    while (valid() && rows() == 0) at_.next();
  }
  const std::vector<std::size_t> rows_by_id_;
  typename Part::values_in_range at_;
};

}  // namespace internal

template <class T, class Id>
template <class Fn>
std::size_t column<T, Id>::scan_in(const image_range& which, std::size_t limit, Fn& fn) const {
  if (which.is_empty()) return 0;
  const internal::epoch_pin pin;
  const parts& in = now();
  std::optional<internal::values_of_rows<main_part>> in_main;
  std::optional<internal::values_of_rows<delta_part>> in_frozen;
  std::optional<internal::values_of_rows<delta_part>> in_delta;
  in_main.emplace(*in.main, which, deleted_);
  if (in.frozen != nullptr) in_frozen.emplace(*in.frozen, which, deleted_);
  in_delta.emplace(*in.delta, which, deleted_);
  const auto for_all_parts = [&](auto&& do_it) {
    do_it(in_main);
    do_it(in_frozen);
    do_it(in_delta);
  };

  const auto comes_before = [&](const image_argument& a, const image_argument& b) {
    return which.descends ? b < a : a < b;
  };

  std::size_t found = 0;
  while (found < limit) {
    std::optional<image_argument> next;  // of all parts
    for_all_parts([&](const auto& part) {
      if (part && part->valid() && (!next || comes_before(part->value(), *next)))
        next = part->value();
    });
    if (!next) break;
    std::size_t rows = 0;
    for_all_parts([&](const auto& part) {
      if (part && part->valid() && part->value() == *next) rows += part->rows();
    });
    ++found;
    if (!internal::visits_on(fn, images::value_of(*next), std::as_const(rows))) break;
    // These steps come last, because *next may refer into one of the parts.
    const bool is_mains = in_main->valid() && in_main->value() == *next;
    const bool is_frozens = in_frozen && in_frozen->valid() && in_frozen->value() == *next;
    const bool is_deltas = in_delta->valid() && in_delta->value() == *next;
    if (is_mains) in_main->next();
    if (is_frozens) in_frozen->next();
    if (is_deltas) in_delta->next();
  }
  return found;
}

template <class T, class Id>
std::size_t column<T, Id>::distinct() const {
  return scan(elidex::all, [](const auto& /*value*/, std::size_t /*rows*/) {});
}

// --- merging ---

template <class T, class Id>
void column<T, Id>::publish(std::unique_ptr<const parts> next) noexcept {
  const std::unique_ptr<const parts> before(state_.exchange(next.release()));
  internal::wake_waiters(&state_);
  internal::wait_for_pins();
}

template <class T, class Id>
void column<T, Id>::freeze_delta() {
  const parts& before = now();
  auto delta = std::make_unique<delta_part>(options_.synchronization);
  auto next = std::make_unique<const parts>(parts{before.main, before.delta, delta.get()});
  delta->begin_at(before.delta->first_row() + before.delta->close());
  static_cast<void>(delta.release());
  publish(std::move(next));
}

template <class T, class Id>
template <class Progress>
void column<T, Id>::merge_frozen(Progress& progress) {
  const parts before = now();
  const std::size_t deleted = deleted_.count();
  auto main = internal::merge_parts(*before.main, *before.frozen, deleted_,
                                    std::numeric_limits<Id>::max(), progress);
  auto next = std::make_unique<const parts>(parts{main.get(), nullptr, before.delta});
  static_cast<void>(main.release());
  publish(std::move(next));
  delete before.main;
  delete before.frozen;
  deletions_when_merged_ = deleted;
  merges_.fetch_add(1);
}

// A pinned thread would wait for itself, and so would a thread that already merges.
template <class T, class Id>
void column<T, Id>::check_may_merge() const {
  const internal::thread_record& mine = internal::this_thread_record();
  if (mine.pin_depth != 0)
    throw std::logic_error("elidex: a function that a scan() calls must not merge");
  // relaxed, without a partner: only this thread ever stores its own record here.
  if (merger_.load(std::memory_order_relaxed) == &mine)
    throw std::logic_error("elidex: a merge's progress function must not merge the same column");
}

template <class T, class Id>
template <class Progress>
void column<T, Id>::merge(Progress&& progress) {
  check_may_merge();
  const std::lock_guard one_at_a_time(merging_);
  merge_all(progress);
}

template <class T, class Id>
template <class Progress>
bool column<T, Id>::merge_if_due(Progress&& progress) {
  check_may_merge();
  if (!merge_is_due()) return false;
  const std::unique_lock one_at_a_time(merging_, std::try_to_lock);
  if (!one_at_a_time || !merge_is_due()) return false;  // another thread merges or has merged
  merge_all(progress);
  return true;
}

template <class T, class Id>
template <class Progress>
void column<T, Id>::merge_all(Progress& progress) {
  const struct noted_merger {
    std::atomic<const internal::thread_record*>& of;
    explicit noted_merger(std::atomic<const internal::thread_record*>& merger) : of(merger) {
      // no partner, see check_may_merge()
      of.store(&internal::this_thread_record(), std::memory_order_relaxed);
    }
    ~noted_merger() { of.store(nullptr, std::memory_order_relaxed); }  // as above: no partner
  } noted(merger_);
  if (now().frozen != nullptr) merge_frozen(progress);
  const delta_part& delta = *now().delta;
  if (delta.rows() == 0 && delta.distinct() == 0 && deleted_.count() == deletions_when_merged_)
    return;
  freeze_delta();
  merge_frozen(progress);
}

template <class T, class Id>
bool column<T, Id>::merge_is_due() const {
  const internal::epoch_pin pin;
  const parts& in = now();
  const std::size_t rows = in.delta->rows() + (in.frozen == nullptr ? 0 : in.frozen->rows());
  return rows >= options_.merge_rows_min &&
         static_cast<double>(rows) >= options_.merge_ratio * static_cast<double>(in.main->rows());
}

// --- figures ---

template <class T, class Id>
std::size_t column<T, Id>::size() const {
  const internal::epoch_pin pin;
  const std::size_t deleted = deleted_.count();  // of rows that exist already
  const delta_part& last = *now().delta;
  return last.first_row() + last.rows() - deleted;
}

template <class T, class Id>
std::size_t column<T, Id>::memory_bytes() const {
  const column_stats now = stats();
  return sizeof(*this) + sizeof(parts) + deleted_.memory_bytes() + now.main.bytes +
         now.frozen.bytes + now.delta.bytes;
}

template <class T, class Id>
column_stats column<T, Id>::stats() const {
  const auto of_delta = [](const delta_part* delta) {
    return delta == nullptr
               ? column_stats::part{}
               : column_stats::part{delta->rows(), delta->distinct(), delta->memory_bytes()};
  };
  const internal::epoch_pin pin;
  const parts& in = now();
  return {.main = {in.main->rows(), in.main->values().size(), in.main->memory_bytes()},
          .frozen = of_delta(in.frozen),
          .delta = of_delta(in.delta),
          .id_bits = in.main->ids().bits(),
          .deleted = deleted_.count(),
          .merges = merges_.load()};
}

}  // namespace elidex
