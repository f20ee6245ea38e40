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

}  // namespace

automatic_checkpoints::automatic_checkpoints(redo_log& log, const limits& when,
                                             const found_files& there,
                                             std::function<finished_checkpoint()> write)
    : log_(log),
      when_(when),
      write_(std::move(write)),
      covered_bytes_(-static_cast<std::int64_t>(there.segment_bytes)),
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
    std::uint64_t bytes = redo_log::no_bytes;
    clock::time_point until = clock::time_point::max();
    clock::time_point from;
    {
      const std::lock_guard guard(mutex_);
      from = not_before_;
      if (when_.bytes != 0) {
        const auto grows_by = static_cast<std::int64_t>(std::max(when_.bytes, checkpoint_bytes_));
        bytes = static_cast<std::uint64_t>(std::max<std::int64_t>(covered_bytes_ + grows_by, 0));
      }
      const bool grown = covered_bytes_ < static_cast<std::int64_t>(log_.written_bytes());
      if (when_.time > 0ms) until = grown ? last_ + when_.time : clock::now() + when_.time;
    }
    if (from > clock::now()) {
      if (!log_.wait_until_written(redo_log::no_bytes, from)) return false;
      continue;
    }
    if (!log_.wait_until_written(bytes, until)) return false;
    if (log_.written_bytes() >= bytes) return true;
    const std::lock_guard guard(mutex_);
    if (covered_bytes_ < static_cast<std::int64_t>(log_.written_bytes()) &&
        clock::now() >= last_ + when_.time)
      return true;
  }
}

void automatic_checkpoints::write_one() {
  std::error_code failure;
  finished_checkpoint finished;
  const std::uint64_t written_before = log_.written_bytes();
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
