// What the column commands have in common: cells from a CSV file, and a column filled with them.
//
//   progress_bar bar;
//   const column_source source = read_source(flags, phase(bar, 0, 0.3));
//   std::visit([&](const auto& values) {
//     column<value_of<decltype(values)>> filled;
//     insert_rows(filled, values, values.size(), 2, phase(bar, 0.3, 0.7));
//   }, source.csv.values);
//
// Thread-safety: none; insert_rows() has threads of its own.
// Errors: bench::bad_input; what the column throws.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "cli/commands.hpp"
#include "cli/csv/csv_column.hpp"
#include "cli/progress.hpp"

namespace elidex::cli {

// Shows how much of one piece of work is done, in a stretch of the bar.
using show_progress = std::function<void(double done, const std::string& doing)>;
[[nodiscard]] show_progress phase(progress_bar& bar, double from, double to);

class stopwatch {
 public:
  [[nodiscard]] double seconds() const {
    return std::chrono::duration<double>(clock::now() - started_).count();
  }

 private:
  using clock = std::chrono::steady_clock;
  clock::time_point started_ = clock::now();
};

struct column_source {
  csv_column csv;
  double read_seconds = 0;
};
[[nodiscard]] csv_type parse_csv_type(const std::string& text);
[[nodiscard]] column_source read_source(const column_flags& flags, const show_progress& show);

// What was left out of the file and why, on standard error.
void tell_left_out(const column_flags& flags, const csv_column& csv);

// The value type of a column for such cells.
template <class Values>
using value_of = typename std::conditional_t<
    std::is_same_v<std::decay_t<Values>, csv_strings>, std::type_identity<std::string>,
    std::type_identity<std::decay_t<decltype(std::declval<Values>()[0])>>>::type;

// The values in their order, again and again until there are so many rows. One thread inserts them
// in that order; of several each takes the next stretch of rows when it is done with one.
template <class Column, class Values>
void insert_rows(Column& into, const Values& values, std::uint64_t rows, unsigned threads,
                 const show_progress& show) {
  constexpr std::uint64_t stretch_rows = 16'384;
  constexpr auto look_every = std::chrono::milliseconds(100);
  std::atomic<std::uint64_t> next{0};
  std::mutex mutex;
  std::condition_variable done;
  unsigned working = threads;
  std::exception_ptr failure;
  const auto work = [&] {
    std::exception_ptr failed;
    try {
      for (std::uint64_t row = 0; (row = next.fetch_add(stretch_rows)) < rows;) {
        const std::uint64_t end = std::min(row + stretch_rows, rows);
        for (std::size_t at = row % values.size(); row < end; ++row) {
          into.insert(values[at]);
          if (++at == values.size()) at = 0;
        }
      }
    } catch (...) {
      failed = std::current_exception();
      next = rows;  // the others need not go on
    }
    const std::lock_guard lock(mutex);
    if (failed) failure = failed;
    if (--working == 0) done.notify_one();
  };
  {
    std::vector<std::jthread> workers;
    workers.reserve(threads);
    for (unsigned i = 0; i < threads; ++i) workers.emplace_back(work);
    std::unique_lock lock(mutex);
    while (!done.wait_for(lock, look_every, [&] { return working == 0; })) {
      show(static_cast<double>(std::min(next.load(), rows)) / static_cast<double>(rows),
           "inserting");
    }
  }
  if (failure) std::rethrow_exception(failure);
}

template <class Column>
void merge_rows(Column& column, const show_progress& show) {
  column.merge([&](std::size_t done, std::size_t rows) {
    show(static_cast<double>(done) / static_cast<double>(std::max<std::size_t>(rows, 1)),
         "merging");
  });
}

}  // namespace elidex::cli
