#pragma once
// A progress bar on standard error where that is a terminal, nothing otherwise. Gone when the work
// is done.
//
//   progress_bar bar;
//   bar.show(0.4, "loading tbb");
//
// Thread-safety: none; one thread shows.

#include <chrono>
#include <string_view>

namespace elidex::cli {

class progress_bar {
 public:
  progress_bar();
  progress_bar(const progress_bar&) = delete;
  progress_bar& operator=(const progress_bar&) = delete;
  ~progress_bar();

  /// done: 0 to 1.
  void show(double done, std::string_view doing);

 private:
  bool on_;
  bool shown_ = false;
  std::chrono::steady_clock::time_point started_;
};

}  // namespace elidex::cli
