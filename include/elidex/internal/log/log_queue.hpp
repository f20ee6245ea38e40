// A thread's records on their way to the log: one thread puts them in, the logger takes them out,
// and neither waits for the other.
//
//   log_queue queue;
//   queue.stage(record);  // the owner, before it locks anything: may throw
//   queue.publish(stamp);                               // ... when it commits: cannot fail
//   // the logger: what was published with stamps up to there
//   queue.take(epoch, [&](std::span<const std::byte> records) { ... });
//
// Chunks in a list. A staged record lies whole behind what its chunk has published, where the
// logger doesn't look yet; publishing writes its stamp and moves the chunk's mark behind it. A
// record that does not fit begins a new chunk. Who stages another one without having published
// takes the old one's place.
//
// Why the logger reads whole records: it loads a chunk's mark with acquire, which pairs with the
// release in publish(). Why it may leave a chunk: it loads `next` first and the mark then. The
// owner links a new chunk when it will never publish in the old one again, so behind a `next` that
// is there the mark is the last one.
//
// The stamps of a thread ascend by epochs, so what is to be taken up to an epoch is what lies in
// front.
//
// Thread-safety: stage() and publish() by one thread at a time, take() by one at a time,
// waiting_bytes() by the owner. Errors: stage() throws std::bad_alloc, and std::length_error for 4
// GiB; then nothing is staged.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "elidex/internal/log/log_format.hpp"
#include "elidex/internal/txn/commit_stamp.hpp"

namespace elidex::internal {

class log_queue {
 public:
  // Chosen: some hundred transactions, and below what malloc asks the system for each time.
  static constexpr std::size_t chunk_bytes = std::size_t{96} << 10;

  log_queue();
  ~log_queue();
  log_queue(const log_queue&) = delete;
  log_queue& operator=(const log_queue&) = delete;

  // `record` as begin_record() and append_entry() have made it.
  void stage(std::span<const std::byte> record, std::uint32_t entries);
  void publish(commit_stamp stamp) noexcept;

  // Published and not taken.
  std::size_t waiting_bytes() const noexcept {
    // no partner: a measure, not a promise
    return published_bytes_ - taken_bytes_.load(std::memory_order_relaxed);
  }

  // Calls fn with pieces of whole records, in the order of publishing. If fn throws, what it has
  // got stays in the queue.
  template <class Fn>
  void take(std::uint64_t epoch, Fn&& fn) {
    for (;;) {
      // pairs with the release in stage()
      chunk* const next = head_->next.load(std::memory_order_acquire);
      const std::size_t published =
          head_->published.load(std::memory_order_acquire);  // pairs with the one in publish()
      std::size_t end = taken_;
      while (end < published &&
             commit_stamp(stamp_of_record(head_->bytes() + end)).epoch() <= epoch)
        end += bytes_of_record(head_->bytes() + end);
      if (end > taken_) {
        fn(std::span<const std::byte>(head_->bytes() + taken_, end - taken_));
        taken_bytes_.store(taken_bytes_.load(std::memory_order_relaxed) + (end - taken_),
                           std::memory_order_relaxed);  // no partner, as above
        taken_ = end;
      }
      if (end < published || next == nullptr) return;
      set_aside(*head_);
      head_ = next;
      taken_ = 0;
    }
  }

 private:
  struct chunk {
    explicit chunk(std::size_t room) : capacity(room) {}
    std::byte* bytes() noexcept { return reinterpret_cast<std::byte*>(this + 1); }

    std::atomic<chunk*> next{nullptr};
    std::atomic<std::size_t> published{0};
    const std::size_t capacity;
  };

  static chunk* make_chunk(std::size_t room);
  static void free_chunk(chunk* one) noexcept;
  // For the owner to use again, if none is set aside yet.
  void set_aside(chunk& emptied) noexcept;

  // The owner's.
  alignas(128) chunk* tail_;
  std::size_t end_ = 0;     // of what tail_ has published
  std::size_t staged_ = 0;  // bytes behind that
  std::size_t published_bytes_ = 0;
  // The logger's.
  alignas(128) chunk* head_;
  std::size_t taken_ = 0;  // of head_
  std::atomic<std::size_t> taken_bytes_{0};
  std::atomic<chunk*> spare_{nullptr};
};

}  // namespace elidex::internal
