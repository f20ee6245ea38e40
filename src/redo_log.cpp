#include "elidex/internal/log/redo_log.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <stdexcept>

#include "elidex/internal/log/log_compression.hpp"
#include "elidex/internal/log/log_writer.hpp"
#include "elidex/internal/txn/errors.hpp"

namespace elidex::internal {

redo_log::redo_log(commit_clock& clock, log_directory& directory, const recovered_log& found,
                   const redo_log_options& options)
    : clock_(clock), options_(options) {
  if (options_.level == durability::none)
    throw std::invalid_argument("elidex: a log with durability none");
  if (!is_built_with(options_.compressed))
    throw std::invalid_argument(
        "elidex: storage_options::compress: the library was built without this method (expected "
        "compression::none, or a library that was built with ELIDEX_ZSTD)");
  // a child could not tell that it is one
  if (!watch_forks()) throw std::bad_alloc();
  options_.group_time = std::clamp<std::chrono::microseconds>(
      options_.group_time, std::chrono::microseconds(1), std::chrono::hours(24));
  clock_.begin_at(found.first_group);
  writer_ = std::make_unique<internal::log_writer>(directory, found, options_.fingerprint,
                                                   options_.segment_bytes, options_.compressed);
  durable_.store(clock_.now() - 1);
  logger_ = std::thread([this] { run(); });
}

redo_log::~redo_log() {
  if (is_parents()) {
    // The queues and the writer may be in an inconsistent state and are not freed.
    abandon(std::move(logger_));
    // NOLINTBEGIN(bugprone-unused-return-value): not freed, see above
    static_cast<void>(slots_.release());
    static_cast<void>(writer_.release());
    // NOLINTEND(bugprone-unused-return-value)
    return;
  }
  try {
    close();
  } catch (...) {
    // Who wants to know calls close().
  }
  // One by one: a chain of destructors would go as deep as there are threads.
  while (slots_ != nullptr) slots_ = std::move(slots_->next);
}

redo_log::worker::~worker() {
  if (log_.is_parents()) return;  // the logger may have had the mutex when the process forked
  const std::lock_guard guard(log_.slots_mutex_);
  slot_.in_use = false;
}

redo_log::slot& redo_log::take_slot() {
  check_process();
  const std::lock_guard guard(slots_mutex_);
  for (slot* each = slots_.get(); each != nullptr; each = each->next.get()) {
    if (!each->in_use) {
      each->in_use = true;
      return *each;
    }
  }
  auto made = std::make_unique<slot>();
  made->next = std::move(slots_);
  slots_ = std::move(made);
  return *slots_;
}

void redo_log::acknowledge(const worker& by, std::uint64_t group) {
  // While the log is slow, no thread may queue more than a transaction: it would be the next batch.
  if (options_.level == durability::sync ||
      pace_.load() != static_cast<std::uint32_t>(pace::normal) ||
      by.slot_.queue.waiting_bytes() > options_.worker_bytes_max) {
    wait_durable(group);
  } else if (durable_group() < group) {
    check();
  }
}

void redo_log::wait_durable(std::uint64_t group) {
  if (durable_group() >= group) return;
  check_process();
  std::uint64_t wanted = wanted_.load();
  while (wanted < group && !wanted_.compare_exchange_weak(wanted, group)) {
  }
  work_.fetch_add(1);
  futex_wake(work_, 1);
  for (;;) {
    // Read before what it counts the changes of, so that no change falls between the look and the
    // sleep.
    const std::uint32_t progress = progress_.load();
    if (durable_group() >= group) return;
    check();
    futex_wait(progress_, progress);
  }
}

void redo_log::close() {
  check_process();
  const std::lock_guard guard(closing_);
  if (logger_.joinable()) {
    stop_.store(true);
    work_.fetch_add(1);
    futex_wake(work_, 1);
    logger_.join();
    const bool failed = failed_.load();
    if (failed) throw_failure();
    fail(std::make_error_code(std::errc::operation_canceled), "elidex: the log is closed");
    publish(std::numeric_limits<std::uint64_t>::max());
    closed_ = true;
  } else if (!closed_) {
    throw_failure();  // as the first call did
  }
}

std::error_code redo_log::failure() const noexcept {
  // acquire: pairs with the release in fail(): the error's code is there.
  return failed_.load(std::memory_order_acquire) ? failure_ : std::error_code();
}

void redo_log::throw_forked() {
  throw forked_child("elidex: a forked child cannot write to its parent's log");
}

void redo_log::throw_failure() const {
  throw std::system_error(failure_, failure_text_);
}

// --- The logger's thread ---

void redo_log::run() noexcept {
  try {
    auto begun = std::chrono::steady_clock::now();
    for (;;) {
      const std::uint32_t work = work_.load();
      const bool last = stop_.load();
      const bool due = last || wanted_.load() > durable_.load();
      if (!due && futex_wait_until(work_, work, begun + options_.group_time) &&
          std::chrono::steady_clock::now() < begun + options_.group_time) {
        continue;
      }
      begun = std::chrono::steady_clock::now();
      finish_batch();
      if (last) return;
    }
  } catch (const std::system_error& error) {
    fail(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    fail(std::make_error_code(std::errc::not_enough_memory), "elidex: the log has no memory");
  } catch (...) {
    fail(std::make_error_code(std::errc::io_error), "elidex: the log has failed");
  }
}

void redo_log::wait_for_pace() noexcept {
  // Chosen: a checkpoint needs a few batches, for which the reserve must have room.
  constexpr auto slow_pause = std::chrono::milliseconds(50);
  const auto begun = std::chrono::steady_clock::now();
  for (;;) {  // looks at stop_ now and then
    const std::uint32_t now = pace_.load();
    if (now == static_cast<std::uint32_t>(pace::normal) || stop_.load()) return;
    const bool is_slow = now == static_cast<std::uint32_t>(pace::slow);
    const auto until = std::chrono::steady_clock::now();
    if (is_slow && until >= begun + slow_pause) return;
    futex_wait_until(pace_, now, until + slow_pause);
  }
}

void redo_log::set_pace(pace wanted) noexcept {
  pace_.store(static_cast<std::uint32_t>(wanted));
  futex_wake(pace_, 1);
}

void redo_log::finish_batch() {
  wait_for_pace();
  const std::uint64_t group = clock_.advance() - 1;
  clock_.wait_for(group);
  writer_->begin_batch(group);
  slot* first = nullptr;
  {
    // Slots are only added, in front; one that is added now has no entries of these groups: its
    // worker's commits begin later.
    const std::lock_guard guard(slots_mutex_);
    first = slots_.get();
  }
  for (slot* each = first; each != nullptr; each = each->next.get())
    each->queue.take(group, [&](std::span<const std::byte> records) { writer_->records(records); });
  const bool written = writer_->end_batch();
  if (new_segment_.exchange(false)) writer_->end_segment();
  publish(group);
  if (!written) return;
  writer_->after_batch();
  written_.store(writer_->written_bytes());
  // seq_cst as in wait_until_written(), so that one of the two sees the other's store.
  if (written_.load() >= wake_at_.load()) wake_growth();
}

void redo_log::begin_new_segment() {
  new_segment_.store(true);
  // A batch that has begun before may not have seen it, but it does not end this group.
  wait_durable(clock_.now());
}

bool redo_log::wait_until_written(std::uint64_t bytes, futex_deadline deadline) {
  for (;;) {
    const std::uint32_t growth = growth_.load();
    wake_at_.store(bytes);
    const bool ended = wait_ended_.load() || failed_.load();
    if (ended || written_.load() >= bytes || wait_interrupted_.exchange(false) ||
        std::chrono::steady_clock::now() >= deadline) {
      wake_at_.store(no_bytes);
      return !ended;
    }
    futex_wait_until(growth_, growth, deadline);
  }
}

void redo_log::end_wait() noexcept {
  wait_ended_.store(true);
  wake_growth();
}

void redo_log::interrupt_wait() noexcept {
  wait_interrupted_.store(true);
  wake_growth();
}

void redo_log::wake_growth() noexcept {
  growth_.fetch_add(1);
  futex_wake(growth_, 1);
}

void redo_log::publish(std::uint64_t group) noexcept {
  durable_.store(group, std::memory_order_release);  // pairs with the acquire in durable_group()
  progress_.fetch_add(1);
  futex_wake(progress_, futex_wake_all);
}

void redo_log::fail(std::error_code error, const char* what) noexcept {
  failure_ = error;
  try {
    failure_text_ = what;
    // What a std::system_error says ends with its code's message, and throw_failure() adds it
    // again.
    const std::string message = ": " + error.message();
    if (failure_text_.ends_with(message))
      failure_text_.resize(failure_text_.size() - message.size());
  } catch (...) {
    failure_text_.clear();  // the code says enough
  }
  // pairs with the acquire in check() and failure()
  failed_.store(true, std::memory_order_release);
  progress_.fetch_add(1);
  futex_wake(progress_, futex_wake_all);
  wake_growth();
}

}  // namespace elidex::internal
