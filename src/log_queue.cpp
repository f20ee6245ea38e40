#include "elidex/internal/log/log_queue.hpp"

#include <algorithm>
#include <limits>
#include <new>
#include <stdexcept>

namespace elidex::internal {

log_queue::log_queue() : tail_(make_chunk(chunk_bytes)), room_(tail_->capacity), head_(tail_) {}

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
  // release: pairs with the acquire in move_to_chunk_with(): the logger reads no more of it.
  if (emptied.capacity == chunk_bytes &&
      spare_.compare_exchange_strong(none, &emptied, std::memory_order_release,
                                     std::memory_order_relaxed)) {
    return;
  }
  free_chunk(&emptied);
}

void log_queue::move_to_chunk_with(std::size_t bytes) {
  constexpr std::size_t record_bytes_max = std::numeric_limits<std::uint32_t>::max();
  const std::size_t wanted = staged_ + bytes;
  if (wanted > record_bytes_max)
    throw std::length_error("elidex: a transaction of 4 GiB does not fit into the log");
  chunk* fresh = nullptr;
  if (wanted <= chunk_bytes)
    fresh = spare_.exchange(nullptr, std::memory_order_acquire);  // pairs with set_aside()
  if (fresh == nullptr) {
    // A larger record has twice its room, so that it moves a few times only.
    fresh =
        make_chunk(wanted <= chunk_bytes ? chunk_bytes : std::min(2 * wanted, record_bytes_max));
  } else {
    // relaxed, no partner: the chunk becomes visible by the release below.
    fresh->next.store(nullptr, std::memory_order_relaxed);
    fresh->published.store(0, std::memory_order_relaxed);
    fresh->last_group = 0;
  }
  std::memcpy(fresh->bytes(), tail_->bytes() + end_, staged_);
  tail_->next.store(fresh, std::memory_order_release);  // pairs with the acquire in take()
  tail_ = fresh;
  end_ = 0;
  room_ = fresh->capacity;
}

void log_queue::publish(std::uint32_t entries, commit_stamp stamp) noexcept {
  put_record_header(tail_->bytes() + end_, stamp.word(), entries,
                    static_cast<std::uint32_t>(staged_));
  end_ += staged_;
  published_bytes_ += staged_;
  // The chunk of a large record is not used again, so that the logger can free it.
  room_ = tail_->capacity == chunk_bytes ? room_ - staged_ : 0;
  staged_ = 0;
  tail_->last_group = stamp.group();
  tail_->published.store(end_, std::memory_order_release);  // pairs with the acquire in take()
}

}  // namespace elidex::internal
