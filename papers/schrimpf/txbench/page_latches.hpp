#pragma once
// The latches of InnoDB's buffer pool, without the pages: what a thread does to get hold of a page
// and to give it back.
//
//   page_latches<hle_lock> pool(400);
//   { const page_latches<hle_lock>::hold page(pool, 17, page_access::shared); read(); }
//
// A page has a mutex, which protects the number of its holders (buf_fix_count) and the time of its
// last access, and a latch for readers and writers. Sixteen latches protect the hash table of all
// pages. To get a page (buf_page_get_gen) a thread takes the latch of the page's hash cell, then
// the page's mutex. It then releases the cell's latch, increments the holder count, releases the
// mutex, and takes the page's latch. To give the page back (buf_page_release) it decrements the
// count under the mutex and releases the latch.
//
// Mutex is the type that the thesis's low-level variants elide. Its section writes the word of the
// hash table's latch, which all threads share, and the page's own words. The thesis finds two
// thirds of its low-level aborts in buf_page_get_gen.
//
// Thread-safety: all members, from any thread. A thread may take a page while it holds others
// shared, but not while it holds one exclusively. Errors: the mutex's.
// Source: paper 004 section 5.3; InnoDB 5.6's order of latches. Deviations: all pages are in
// memory, so that nothing is read from a file. There is no list of least recently used pages.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <shared_mutex>

#include "elidex/internal/sync/sleeping_shared_lock.hpp"

namespace elidex::papers {

enum class page_access : std::uint8_t { shared, exclusive };

template <class Mutex>
class page_latches {
  struct page;

 public:
  explicit page_latches(std::size_t pages)
      : pages_(std::make_unique<page[]>(pages)), many_(pages) {}

  std::size_t pages() const noexcept { return many_; }

  class hold {
   public:
    hold(page_latches& of, std::size_t number, page_access how)
        : page_(of.fixed(number)), how_(how) {
      if (how_ == page_access::shared) {
        page_.latch.lock_shared();
      } else {
        page_.latch.lock();
      }
    }
    hold(const hold&) = delete;
    hold& operator=(const hold&) = delete;
    ~hold() {
      {
        const std::lock_guard guard(page_.mutex);
        --page_.holders;
      }
      if (how_ == page_access::shared) {
        page_.latch.unlock_shared();
      } else {
        page_.latch.unlock();
      }
    }

   private:
    page& page_;
    const page_access how_;
  };

 private:
  // buf_block_t: its mutex and what that protects share lines.
  struct alignas(128) page {
    Mutex mutex;
    std::uint32_t holders = 0;
    std::uint32_t accessed = 0;
    internal::sleeping_shared_lock latch;
  };
  struct alignas(64) cell {
    internal::sleeping_shared_lock latch;
  };
  static constexpr std::size_t cells = 16;  // MySQL 5.6's innodb page_hash locks

  page& fixed(std::size_t number) {
    page& wanted = pages_[number];
    cell& in = cells_[number % cells];
    in.latch.lock_shared();
    const std::lock_guard guard(wanted.mutex);
    in.latch.unlock_shared();
    ++wanted.holders;
    ++wanted.accessed;
    return wanted;
  }

  std::array<cell, cells> cells_;
  std::unique_ptr<page[]> pages_;
  const std::size_t many_;
};

}  // namespace elidex::papers
