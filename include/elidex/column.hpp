// A column of values that many threads extend and search at the same time. Old rows are compressed.
// New rows are fast to insert.
//
//   elidex::column<std::string> cities;
//   const auto row = cities.insert("Oslo");      // the row's number, which never changes
//   cities.multi_insert({"Lima", "Bergen"});     // two rows with consecutive numbers
//   cities.get(row);                             // "Oslo"
//   cities.find("Oslo");                         // the rows that have it, ascending
//   cities.count("A", "N");                      // the number of rows with "A" <= value < "N"
//   cities.scan(prefix("O"), fn);                // fn(value, rows) for each different value
//   cities.erase(row);
//   cities.merge_if_due();                       // by any thread, while others read and write
//
// Values are integers, float, double or std::string.
//
// Thread-safety: any thread may call any function at any time, except constructor and destructor.
// insert(), erase() and get() are linearizable. multi_insert() is linearizable for each row, but
// its rows do not become visible together. find(), range(), count(), distinct(), scan() and
// scan_n() are linearizable for each row, but they are not snapshots. They see every row that
// exists during the whole call, and no row twice. They may or may not see a row that is inserted or
// erased during the call.
// Complexity: get() and erase() take O(1). insert() takes O(log d), with d different values in the
// delta. For a value that the delta already has, it usually takes O(1). multi_insert() takes the
// same for each value. find(), range(), count(), distinct(), scan() and scan_n() read every row,
// for any range and any limit. merge() rewrites every row.
// Size: at most 2^42 rows.
// Iterator validity: a column has no iterators. A row's number stays valid until the row is erased,
// and is never used again.
// Lifetime: values are copied in and out. A column cannot be copied or moved.
// Errors:
//   std::bad_alloc          The rows are unchanged.
//   std::length_error       From insert() and multi_insert(): the delta has as many different
//                           values as Id allows. The rows are unchanged. Values of a multi_insert()
//                           that fails may keep their IDs until the next merge.
//                           From merge(): main and delta together have more. The rows are
//                           unchanged. Each later merge() tries again. It fails until enough
//                           values have no rows left. Meanwhile new rows fill the next delta.
//   std::invalid_argument   A string of more than 64 KiB to insert, to find, or as a bound of a
//                           range that is not empty. The column is unchanged.
// fork(): a child has its own copy of the column. The child may use, merge and destroy the copy if
// no other thread was inside a call of the column when the process forked. Otherwise locks that
// such a thread held stay locked in the child, and a merge that it ran never ends there.
//
// Implementation notes
// Every row lies in one of three parts, as in SAP HANA (paper 001, section 2):
//   main      sorted dictionary, IDs in as few bits as they need (column_main.hpp); never changes
//   delta     dictionary in the order of arrival, found by an index, IDs in the order of the rows
//             (column_delta.hpp); only grows
//   frozen    a delta that a merge is turning into a part of the next main; takes no new rows
// Row numbers count from 0 through main, frozen and delta, and a row keeps its number. One bit for
// each row, beside all parts, says whether the row is deleted (deleted_rows.hpp). Deviation: the
// paper's index of a delta holds IDs only; this one holds values (keyed_delta_index.hpp says why).
//
// merge() blocks neither readers nor writers. All threads find the parts behind one pointer. An
// operation reads the pointer once, under an epoch pin (internal/memory/epoch.hpp). Parts that are
// read do not change, except for rows that are added to the delta. A merge
//   1. closes the delta. A row gets its number from a counter, and closing sets a bit of that
//      counter. So the delta's number of rows is final at once. A later insert finds the delta
//      closed and looks for the next one.
//   2. publishes {main, the closed delta as frozen, a new delta whose first row is the next
//      number}.
//   3. waits until all earlier pins have ended. From then on every thread knows the new delta.
//      Every row of the frozen one is written, because a thread gets a row's number and writes the
//      row under the same pin.
//   4. builds the next main from main and frozen, which no thread changes, and reads the bits of
//      deleted rows.
//   5. publishes {next main, nothing frozen, the same delta}, waits for all pins again and destroys
//      what was replaced.
// No row is lost: a row that has its number is in the count of step 1 and written by step 4, or in
// the next delta. No row comes twice: the parts of each published state have no row in common.
// Between 1 and 2 writers wait for one assignment; the memory has been obtained before.
//
// Step 4 leaves out values whose rows are all deleted, so the ID of such a row in the next main
// means nothing. No thread follows it. The merger saw the row's bit set before it published that
// main. So a thread that reads the bit after the pointer sees it set. All functions read the
// pointer first, then the bits.
//
// If building the next main fails, the state of step 2 stays, everything works as before, and the
// next merge() begins with step 4.
//
// multi_insert() finds the IDs of all values first, and then claims all rows with one change of the
// counter. If a merge has closed the delta meanwhile, no row has a number yet, and the call begins
// again with the next delta, under the same pin. This happens at most once in a call: that merge
// waits for the pin in step 3, and no other merge can begin before it ends. A call that fails or
// begins again may leave values without rows, which use up IDs. So a merge also takes a delta that
// has values but no rows.
//
// Linearization points: insert() and each row of multi_insert(): the store of the row's ID.
// erase(): the fetch_or that sets the row's bit. get(): the load of that bit if it is set, the load
// of the ID otherwise.
//
// Source: paper 001, section 2; the non-blocking merge: Krueger et al., "Fast Updates on
// Read-Optimized Databases Using Multi-Core CPUs", VLDB 2012.
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <vector>

#include "elidex/bounds.hpp"
#include "elidex/internal/column/column_delta.hpp"
#include "elidex/internal/column/column_main.hpp"
#include "elidex/internal/column/deleted_rows.hpp"
#include "elidex/internal/column/value_image.hpp"
#include "elidex/internal/memory/epoch.hpp"
#include "elidex/internal/tree/map_bounds.hpp"
#include "elidex/internal/tree/tree_range.hpp"

namespace elidex {

struct column_options {
  // Whether the delta's index uses hardware transactions. Only for numbers. See ordered_map.hpp.
  elidex::synchronization synchronization = elidex::synchronization::automatic;
  // A merge is due when the delta has at least merge_rows_min rows, and at least merge_ratio times
  // as many rows as the main. Deletions alone never make a merge due. Both defaults are heuristic.
  // A row takes 4 bytes in a delta, and a new value takes 20 to 70. A merge rewrites the whole
  // main, at 17 to 300 million rows a second.
  double merge_ratio = 0.1;
  std::size_t merge_rows_min = 65'536;
};

struct column_stats {
  struct part {
    std::size_t rows = 0;      // including deleted rows
    std::size_t distinct = 0;  // values in the dictionary
    std::size_t bytes = 0;
  };
  part main;
  part frozen;
  part delta;
  unsigned id_bits = 0;  // of a row in the main
  std::size_t deleted = 0;
  std::size_t merges = 0;  // merges that have ended
};

// A column. Guarantees and errors: at the top of this header.
//
// T    std::string, float, double, or an integer type other than bool. Strings are passed as
//      std::string_view, compared as unsigned bytes, and have at most 64 KiB. NaNs equal each other
//      and are greater than all numbers. -0.0 is returned as 0.0.
// Id   an unsigned integer type of at most 32 bits. Its maximum limits the number of different
//      values in the delta, and also the number in the main.
template <class T, class Id = std::uint32_t>
class column {
  static_assert(std::unsigned_integral<Id> && sizeof(Id) <= sizeof(std::uint32_t));
  using images = internal::value_image<T>;
  using image = typename images::type;
  using main_part = internal::column_main<image>;
  using delta_part = internal::column_delta<image, Id>;
  using image_argument = typename delta_part::image_argument;
  using image_range = internal::tree_range<image_argument>;
  using value_bounds = internal::map_bounds<T>;

 public:
  using value_type = T;
  using argument = typename images::argument;  // T, or std::string_view
  using row_number = std::uint64_t;

  column() : column(column_options{}) {}
  explicit column(const column_options& options);
  ~column();
  column(const column&) = delete;
  column& operator=(const column&) = delete;

  // Inserts a row and returns its number. Numbers count from 0 without gaps. Of two rows inserted
  // at the same time, the one with the higher number may become visible first.
  row_number insert(argument value);

  // Inserts a row for each value of a range, in its order. Returns the number of the first row. The
  // rows have consecutive numbers. Without values it returns the number that the next row gets. If
  // it throws, it has inserted none of the rows. The rows become visible one by one. The call is up
  // to 1.5 times as fast as insert() for each value. It needs 4 bytes for each value meanwhile. It
  // also copies the values, unless they are contiguous in memory and have the type `argument`. A
  // merge of any column of the process may wait until the call ends. If a merge of this column
  // begins during the call, it may look up all values a second time. So insert millions of rows in
  // several calls.
  template <std::ranges::input_range Values>
  row_number multi_insert(Values&& values);
  row_number multi_insert(std::initializer_list<argument> values) {
    return insert_all(std::span<const argument>(values.begin(), values.size()));
  }

  // Deletes the row. Returns whether it existed. Its number is never used again.
  bool erase(row_number row);

  // Returns the row's value, or std::nullopt if the row does not exist or is deleted.
  std::optional<T> get(row_number row) const;

  // --- Queries. Each one reads all rows ---
  // Bounds are made by between(), from(), prefix() and the others of bounds.hpp.

  // Returns the rows that have the value, ascending.
  std::vector<row_number> find(argument value) const {
    return rows_in(images_between(value, value, true));
  }
  // Returns the rows with values in the range, ascending by row number. The direction of the bounds
  // makes no difference.
  template <class Bounds>
    requires internal::bounds_of<Bounds, T>
  std::vector<row_number> range(const Bounds& which) const {
    const value_bounds values(which);
    return rows_in(images_in(values));
  }
  // The same for lower <= value < upper.
  std::vector<row_number> range(argument lower, argument upper) const {
    return rows_in(images_between(lower, upper, false));
  }

  // Return the number of rows that find() or range() would return.
  std::size_t count(argument value) const { return count_in(images_between(value, value, true)); }
  template <class Bounds>
    requires internal::bounds_of<Bounds, T>
  std::size_t count(const Bounds& which) const {
    const value_bounds values(which);
    return count_in(images_in(values));
  }
  std::size_t count(argument lower, argument upper) const {
    return count_in(images_between(lower, upper, false));
  }

  // Returns the number of different values in the rows.
  std::size_t distinct() const;

  // Calls fn(value, rows) for the different values of a range, in ascending order, or in descending
  // order of bounds.descending(). `rows` is the number of rows with this value. fn may return false
  // to end the scan. Returns the number of calls. fn gets T, or a std::string_view that is valid
  // until fn returns. fn may use the column, but not merge(). While fn runs, no merge of any column
  // of the process ends.
  template <class Bounds, class Fn>
  std::size_t scan(const Bounds& which, Fn&& fn) const {
    return scan_n(which, static_cast<std::size_t>(-1), fn);
  }
  // The same for the first n values of the range, or the n values from a value on.
  template <class Bounds, class Fn>
  std::size_t scan_n(const Bounds& which, std::size_t n, Fn&& fn) const {
    if constexpr (internal::bounds_of<Bounds, T>) {
      const value_bounds values(which);
      return scan_in(images_in(values), n, fn);
    } else if constexpr (internal::inexact_for<Bounds, T>) {
      return scan_n(from(which), n, fn);
    } else {
      static_assert(std::convertible_to<const Bounds&, argument>,
                    "scan_n() takes bounds or a value");
      image_range range;
      range.lower.emplace(images::of(static_cast<argument>(which)));
      return scan_in(range, n, fn);
    }
  }

  // --- Merging ---

  // Moves the delta into the main, without values that only deleted rows have. Other threads may
  // read and write at the same time. A second merge() waits for the first one. merge() calls
  // progress(done, rows) from time to time in the calling thread. `done` and `rows` are numbers of
  // rows. progress must not merge the column. merge() throws the exceptions of progress and the
  // errors at the top of this header. It throws std::logic_error inside a scan(), under an
  // epoch_pin of the caller, and inside progress of the same column. The column stays usable.
  template <class Progress>
  void merge(Progress&& progress);
  void merge() {
    merge([](std::size_t, std::size_t) {});
  }
  // Returns whether a merge is due by the options. It stays due while a merge runs, and after a
  // merge has failed.
  bool merge_is_due() const;
  // Merges like merge(), and returns true, if a merge is due and no other thread is merging.
  // Otherwise returns false at once. Inserting threads should call it from time to time.
  template <class Progress>
  bool merge_if_due(Progress&& progress);
  bool merge_if_due() {
    return merge_if_due([](std::size_t, std::size_t) {});
  }

  // --- Size and statistics ---

  // Returns the number of rows that are not deleted. It is exact while no thread inserts or erases.
  // It never misses a row that exists.
  std::size_t size() const;
  // Returns whether size() is 0.
  bool empty() const { return size() == 0; }
  // Returns the bytes obtained from the system, without the parts that a running merge builds.
  std::size_t memory_bytes() const;
  // Returns the sizes of main, frozen part and delta.
  column_stats stats() const;

 private:
  // The parts that all threads read. The column owns them, not this state, because two states may
  // share a part.
  struct parts {
    const main_part* main;
    delta_part* frozen;  // or null
    delta_part* delta;
  };

  const parts& now() const noexcept { return *state_.load(); }  // under a pin
  // Returns the delta that would hold a row that is not in the main.
  static const delta_part& delta_of(const parts& in, row_number row) noexcept {
    return in.frozen != nullptr && row < in.delta->first_row() ? *in.frozen : *in.delta;
  }
  row_number insert_all(std::span<const argument> values);
  void wait_for_change_of(const parts& in) const;
  // The range's strings are those of `which`.
  static image_range images_in(const value_bounds& which);
  static image_range images_between(argument lower, argument upper, bool with_upper);
  std::vector<row_number> rows_in(const image_range& which) const;
  std::size_t count_in(const image_range& which) const;
  template <class Fn>
  void for_each_delta_match(const parts& in, const image_range& which, Fn&& fn) const;
  template <class Fn>
  std::size_t scan_in(const image_range& which, std::size_t limit, Fn& fn) const;

  // The steps of a merge. The caller holds the mutex.
  void freeze_delta();
  template <class Progress>
  void merge_frozen(Progress& progress);
  template <class Progress>
  void merge_all(Progress& progress);
  void check_may_merge() const;
  void publish(std::unique_ptr<const parts> next) noexcept;

  const column_options options_;
  std::atomic<const parts*> state_;
  internal::deleted_rows deleted_;
  std::mutex merging_;                                           // held while state_ changes
  std::atomic<const internal::thread_record*> merger_{nullptr};  // the thread that holds merging_
  std::size_t deletions_when_merged_ = 0;
  std::atomic<std::size_t> merges_{0};
};

extern template class column<std::uint64_t>;
extern template class column<std::int64_t>;
extern template class column<double>;
extern template class column<std::string>;

}  // namespace elidex

#include "elidex/internal/column/column_impl.hpp"
