#include "elidex/internal/log/log_queue.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <stdexcept>

namespace elidex::internal {

log_queue::log_queue() : tail_(make_chunk(chunk_bytes)), head_(tail_) {}

log_queue::~log_queue() {
  while (head_ != nullptr) {
    chunk* const next = head_->next.load();
    free_chunk(head_);
    head_ = next;
  }
  free_chunk(spare_.load());
}

log_queue::chunk* log_queue::make_chunk(std::size_t room) {
  return new (::operator new(sizeof(chunk) + room)) chunk(room);
}

void log_queue::free_chunk(chunk* one) noexcept {
  ::operator delete(one);
}

void log_queue::set_aside(chunk& emptied) noexcept {
  chunk* none = nullptr;
  // release: pairs with the acquire in stage(): the logger reads no more of it.
  if (emptied.capacity == chunk_bytes &&
      spare_.compare_exchange_strong(none, &emptied, std::memory_order_release,
                                     std::memory_order_relaxed)) {
    return;
  }
  free_chunk(&emptied);
}

void log_queue::stage(std::span<const std::byte> record, std::uint32_t entries) {
  if (record.size() > std::numeric_limits<std::uint32_t>::max())
    throw std::length_error("elidex: a transaction of 4 GiB does not fit into the log");
  if (record.size() > tail_->capacity - end_) {
    chunk* fresh = nullptr;
    if (record.size() <= chunk_bytes)
      fresh = spare_.exchange(nullptr, std::memory_order_acquire);  // pairs with set_aside()
    if (fresh == nullptr) {
      fresh = make_chunk(std::max(record.size(), chunk_bytes));
    } else {
      // relaxed, no partner: the chunk becomes visible by the release below.
      fresh->next.store(nullptr, std::memory_order_relaxed);
      fresh->published.store(0, std::memory_order_relaxed);
    }
    tail_->next.store(fresh, std::memory_order_release);  // pairs with the acquire in take()
    tail_ = fresh;
    end_ = 0;
  }
  std::byte* const to = tail_->bytes() + end_;
  std::memcpy(to, record.data(), record.size());
  put_record_header(to, 0, entries, static_cast<std::uint32_t>(record.size()));
  staged_ = record.size();
}

void log_queue::publish(commit_stamp stamp) noexcept {
  put_number(tail_->bytes() + end_, stamp.word());
  end_ += staged_;
  published_bytes_ += staged_;
  staged_ = 0;
  tail_->published.store(end_, std::memory_order_release);  // pairs with the acquire in take()
}

}  // namespace elidex::internal
