// A list of trivially copyable things that is filled inside a region, where nothing may be
// allocated: push() fails when it is full, and grow() is called outside. Up to InlineBytes lie in
// the object itself. Thread-safety: one thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

namespace elidex::internal {

template <class T, std::size_t InlineBytes>
class staging_buffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  staging_buffer() noexcept : data_(inline_), capacity_(inline_count) {}
  staging_buffer(const staging_buffer&) = delete;
  staging_buffer& operator=(const staging_buffer&) = delete;

  bool push(const T& item) noexcept {
    if (size_ == capacity_) return false;
    ::new (static_cast<void*>(data_ + size_ * sizeof(T))) T(item);
    ++size_;
    return true;
  }
  // Adds `count` items, for which there must be room, and leaves it to the caller to set them.
  T* extend(std::size_t count) noexcept {
    auto* const first = reinterpret_cast<T*>(data_ + size_ * sizeof(T));
    size_ += count;
    return first;
  }
  void clear() noexcept { size_ = 0; }

  // Makes room for twice as many and forgets what is in it. Throws std::bad_alloc.
  void grow() {
    const std::size_t capacity = std::max<std::size_t>(2 * capacity_, 16);
    heap_.reset(static_cast<std::byte*>(
        ::operator new(capacity * sizeof(T), std::align_val_t{alignof(T)})));
    data_ = heap_.get();
    capacity_ = capacity;
    size_ = 0;
  }

  std::size_t size() const noexcept { return size_; }
  bool full() const noexcept { return size_ == capacity_; }
  std::size_t room() const noexcept { return capacity_ - size_; }
  std::span<const T> items() const noexcept {
    return {std::launder(reinterpret_cast<const T*>(data_)), size_};
  }

 private:
  static constexpr std::size_t inline_count = InlineBytes / sizeof(T);
  struct deleter {
    void operator()(std::byte* p) const noexcept {
      ::operator delete(p, std::align_val_t{alignof(T)});
    }
  };

  alignas(T) std::byte inline_[inline_count == 0 ? 1 : inline_count * sizeof(T)];
  std::byte* data_;
  std::size_t capacity_;
  std::size_t size_ = 0;
  std::unique_ptr<std::byte, deleter> heap_;
};

}  // namespace elidex::internal
