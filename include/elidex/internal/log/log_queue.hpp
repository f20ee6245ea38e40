// A queue from one thread to the log: the thread puts its records in, and the logger takes them
// out. Neither waits for the other.
//
//   log_queue queue;
//   queue.begin();                         // the owner: a record, in place of one not published
//   log_queue::staged_record record = queue.record();
//   begin_record(record);                  // and entries: may throw
//   queue.publish(entries, stamp);         // the owner, when it commits: cannot fail
//   // the logger: the records published with stamps of groups <= group
//   queue.take(group, [&](std::span<const std::byte> records) { ... });
//
// Thread-safety: take() by one thread at a time, everything else by the owner.
// Errors: the functions of record() throw std::bad_alloc, or std::length_error for 4 GiB. Then the
// record is unchanged.
//
// Implementation notes
// The queue is a list of chunks. The owner makes a record behind the published part of its chunk,
// where the logger does not read. Then publish() writes the record's header and moves the chunk's
// mark behind it. A record that does not fit moves to a new chunk.
//
// Why the logger reads whole records: it loads a chunk's mark with acquire, which pairs with the
// release in publish(). Why it may leave a chunk: it loads `next` first and the mark afterwards.
// The owner links a new chunk when it will never publish in the old one again. So when `next` is
// set, the mark and the last group are final.
//
// The stamps of a thread ascend by groups, so the records up to a group are at the front. The
// logger reads the stamps in a chunk only if its last group may be a later one.
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
  // Chosen: some hundred transactions, and below the size for which malloc asks the system each
  // time.
  static constexpr std::size_t chunk_bytes = std::size_t{96} << 10;

  log_queue();
  ~log_queue();
  log_queue(const log_queue&) = delete;
  log_queue& operator=(const log_queue&) = delete;

  // The record that the owner makes: growing_bytes (log_format.hpp).
  class staged_record {
   public:
    explicit staged_record(log_queue& queue) noexcept : queue_(queue) {}
    std::size_t size() const noexcept { return queue_.staged_; }
    std::byte* data() const noexcept { return queue_.tail_->bytes() + queue_.end_; }
    std::byte* grow(std::size_t bytes) {
      if (bytes > queue_.room_ - queue_.staged_) queue_.move_to_chunk_with(bytes);
      std::byte* const begin = data() + queue_.staged_;
      queue_.staged_ += bytes;
      return begin;
    }
    void shrink(std::size_t size) noexcept { queue_.staged_ = size; }  // size <= size()

   private:
    log_queue& queue_;
  };

  void begin() noexcept { staged_ = 0; }
  staged_record record() noexcept { return staged_record(*this); }
  void publish(std::uint32_t entries, commit_stamp stamp) noexcept;

  // The bytes that are published and not taken.
  std::size_t waiting_bytes() const noexcept {
    // relaxed: no partner, because the value is only a measure.
    return published_bytes_ - taken_bytes_.load(std::memory_order_relaxed);
  }

  // Calls fn with pieces of whole records, in the order of publication. If fn throws, its piece
  // stays in the queue.
  template <class Fn>
  void take(std::uint64_t group, Fn&& fn) {
    for (;;) {
      // pairs with the release in move_to_chunk_with()
      chunk* const next = head_->next.load(std::memory_order_acquire);
      const std::size_t published =
          head_->published.load(std::memory_order_acquire);  // pairs with the one in publish()
      std::size_t end = taken_;
      if (next != nullptr && head_->last_group <= group) end = published;
      while (end < published &&
             commit_stamp(stamp_of_record(head_->bytes() + end)).group() <= group)
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
    std::uint64_t last_group = 0;  // of what is published
    const std::size_t capacity;
  };

  static chunk* make_chunk(std::size_t room);
  static void free_chunk(chunk* one) noexcept;
  // Moves the record that is being made to another chunk, which has room for so many bytes more.
  void move_to_chunk_with(std::size_t bytes);
  // Keeps the chunk for the owner to use again, unless one is kept already. Then it frees the
  // chunk.
  void set_aside(chunk& emptied) noexcept;

  // Used by the owner.
  alignas(128) chunk* tail_;
  std::size_t end_ = 0;     // of the published part of tail_
  std::size_t room_;        // for a record behind it
  std::size_t staged_ = 0;  // bytes of the record that is being made
  std::size_t published_bytes_ = 0;
  // Used by the logger.
  alignas(128) chunk* head_;
  std::size_t taken_ = 0;  // bytes taken from head_
  std::atomic<std::size_t> taken_bytes_{0};
  std::atomic<chunk*> spare_{nullptr};
};

}  // namespace elidex::internal
