#include "elidex/internal/log/automatic_checkpoints.hpp"

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "elidex/internal/memory/fork_generation.hpp"

namespace elidex::internal {
namespace {

using namespace std::chrono_literals;

constexpr auto after_a_failure = 10s;          // chosen
constexpr auto while_another_is_written = 1s;  // chosen

using moment = std::chrono::steady_clock::time_point;

// Limits beyond these are never reached, and sums of two do not overflow.
constexpr std::int64_t bytes_max = std::int64_t{1} << 61;
std::int64_t clamped(std::uint64_t bytes) noexcept {
  return static_cast<std::int64_t>(std::min(bytes, static_cast<std::uint64_t>(bytes_max)));
}
moment after(moment from, std::chrono::milliseconds time) noexcept {
  using std::chrono::milliseconds;
  const auto room = std::chrono::duration_cast<milliseconds>(moment::max() - from);
  return time < room ? from + time : moment::max();
}

}  // namespace

automatic_checkpoints::automatic_checkpoints(redo_log& log, const limits& when,
                                             const found_files& there,
                                             std::function<finished_checkpoint()> write)
    : log_(log),
      when_(when),
      write_(std::move(write)),
      covered_bytes_(-clamped(there.segment_bytes)),
      checkpoint_bytes_(there.checkpoint_bytes),
      thread_([this] { run(); }) {}

automatic_checkpoints::~automatic_checkpoints() {
  stop();
}

void automatic_checkpoints::stop() {
  if (made_in_ != fork_generation()) {
    abandon(std::move(thread_));
    return;
  }
  if (!thread_.joinable()) return;
  log_.end_wait();
  thread_.join();
}

void automatic_checkpoints::note(const finished_checkpoint& finished,
                                 std::uint64_t written_before) {
  const std::lock_guard guard(mutex_);
  covered_bytes_ = static_cast<std::int64_t>(written_before);
  checkpoint_bytes_ = finished.bytes;
  last_ = clock::now();
}

automatic_checkpoints_report automatic_checkpoints::report() const {
  if (made_in_ != fork_generation()) return {};
  const std::lock_guard guard(mutex_);
  return report_;
}

void automatic_checkpoints::run() noexcept {
  try {
    while (wait_until_due()) write_one();
  } catch (...) {
    // A mutex that cannot be locked. The log continues without checkpoints.
  }
}

bool automatic_checkpoints::wait_until_due() {
  for (;;) {
    std::int64_t covered = 0;
    std::int64_t due_bytes = bytes_max;  // in terms of written_bytes(), as covered
    clock::time_point due_time = clock::time_point::max();
    clock::time_point from;
    {
      const std::lock_guard guard(mutex_);
      covered = covered_bytes_;
      from = not_before_;
      if (when_.bytes != 0) due_bytes = covered + clamped(std::max(when_.bytes, checkpoint_bytes_));
      if (when_.time > 0ms) due_time = after(last_, when_.time);
    }
    if (from > clock::now()) {
      if (!log_.wait_until_written(redo_log::no_bytes, from)) return false;
      continue;
    }
    if (asked_.load()) return true;
    const std::int64_t written = clamped(log_.written_bytes());
    const bool grown = written > covered;
    if (written >= due_bytes || (grown && clock::now() >= due_time)) return true;
    // Time alone brings no checkpoint, so the first wait is for something to be logged.
    const bool by_time = due_time != clock::time_point::max();
    const std::int64_t awaited = by_time && !grown ? covered + 1 : due_bytes;
    const auto until = grown ? due_time : clock::time_point::max();
    if (!log_.wait_until_written(static_cast<std::uint64_t>(std::max<std::int64_t>(awaited, 0)),
                                 until))
      return false;
  }
}

void automatic_checkpoints::write_one() {
  std::error_code failure;
  finished_checkpoint finished;
  const std::uint64_t written_before = log_.written_bytes();
  const bool asked = asked_.exchange(false);
  try {
    const std::unique_lock writing = wait_for_one();
    finished = write_();
    note(finished, written_before);
  } catch (const std::system_error& error) {
    failure = error.code();
  } catch (const std::bad_alloc&) {
    failure = std::make_error_code(std::errc::not_enough_memory);
  } catch (const std::exception&) {
    failure = std::make_error_code(std::errc::io_error);
  }
  if (failure && asked) asked_.store(true);
  const std::lock_guard guard(mutex_);
  if (failure == std::errc::operation_in_progress) {
    not_before_ = clock::now() + while_another_is_written;
    return;
  }
  report_.failure = failure;
  if (failure) {
    ++report_.failed;
    not_before_ = clock::now() + after_a_failure;
  } else {
    ++report_.written;
    report_.last = finished;
  }
}

}  // namespace elidex::internal
