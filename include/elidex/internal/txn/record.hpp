// A row of a table: its stamp, its bytes, and its older versions.
//
//   record* r = record::make(memory, words, key);               // absent
//   commit_stamp seen = r->read(into);  // a whole row and the stamp that it has
//   if (r->read_as_of(epoch, into)) ...                         // as a snapshot sees it
//   // a committing transaction
//   r->lock(); r->keep_version(version); r->write(row); r->unlock(stamp);
//
// The bytes change in place. Readers look at the stamp, the bytes, and the stamp again (Silo,
// section 4.5). The row as it was before a commit is kept only if that commit is of a later epoch
// than the row: within an epoch no snapshot can want it.
//
// Why a read is whole: write() stores behind the fence of lock() and before the release of
// unlock(); a reader that got one of its words sees, at its second look behind an acquire fence, at
// least the locked word. (As in version_lock.hpp. In a hardware region, all of it is one moment.)
// The same makes a snapshot's read right: a version hangs on `older_` before the row changes.
//
// Thread-safety: read functions from any thread that keeps the record from being freed (an
// epoch_pin since it was found). The others: who holds the lock, or is inside a hardware region
// that has read the stamp unlocked.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>

#include "elidex/internal/sync/backoff.hpp"
#include "elidex/internal/sync/parking.hpp"
#include "elidex/internal/txn/commit_stamp.hpp"

namespace elidex::internal {

// Rows are handled as words; the last one is filled with zeros.
constexpr std::size_t words_for(std::size_t bytes) noexcept {
  return (bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
}

class record {
 public:
  // A row that has been overwritten; not larger than a record, so that one pool serves both.
  struct version {
    commit_stamp stamp;
    std::atomic<version*> older{nullptr};
    const std::uint64_t* row() const noexcept {
      return reinterpret_cast<const std::uint64_t*>(this + 1);
    }
    std::uint64_t* row() noexcept { return reinterpret_cast<std::uint64_t*>(this + 1); }
  };

  static constexpr std::size_t bytes_for(std::size_t row_words) noexcept {
    return sizeof(record) + row_words * sizeof(std::uint64_t);
  }

  // In `memory` of bytes_for(row_words). `key` is what the table knows it by.
  static record* make(void* memory, std::size_t row_words, std::uint64_t key) noexcept {
    auto* const made = new (memory) record(key);
    for (std::size_t i = 0; i < row_words; ++i) new (made->row() + i) std::uint64_t(0);
    return made;
  }
  // Of a table whose records have a word more, behind the row: who has locked it implicitly
  // (two_phase_transaction.hpp).
  void make_writer(std::size_t row_words) noexcept {
    new (row() + row_words) std::atomic<std::uint64_t>(0);
  }
  std::atomic<std::uint64_t>& writer(std::size_t row_words) noexcept {
    static_assert(sizeof(std::atomic<std::uint64_t>) == sizeof(std::uint64_t));
    return *std::launder(reinterpret_cast<std::atomic<std::uint64_t>*>(row() + row_words));
  }

  commit_stamp stamp() const noexcept { return commit_stamp(stamp_.load()); }
  // Without the lock bit: waits while it is locked.
  commit_stamp unlocked_stamp() const noexcept {
    // acquire: pairs with unlock(): the row is at least that stamp's.
    commit_stamp seen(stamp_.load(std::memory_order_acquire));
    if (seen.locked()) [[unlikely]] {
      internal::backoff wait;
      seen = wait_until_unlocked(wait);
    }
    return seen;
  }
  const std::uint64_t& key() const noexcept { return key_; }

  // Waits while it is locked.
  commit_stamp read(std::span<std::uint64_t> into) const noexcept {
    for (backoff wait;;) {
      const commit_stamp before = unlocked_stamp();
      if (before.absent()) return before;
      copy_row(into);
      // acquire fence: pairs with the release fence of lock(), see above.
      std::atomic_thread_fence(std::memory_order_acquire);
      // relaxed: ordered by the fence.
      if (stamp_.load(std::memory_order_relaxed) == before.word()) return before;
      wait.once();
    }
  }

  // The row as it was at the end of that epoch, and the stamp that it had: absent if it was not
  // there.
  commit_stamp read_as_of(std::uint64_t epoch, std::span<std::uint64_t> into) const noexcept {
    for (backoff wait;;) {
      const commit_stamp before = unlocked_stamp();
      if (before.epoch() <= epoch && !before.absent()) copy_row(into);
      // Behind it stands what the row was before; a commit that is under way may have hung its
      // version there already.
      const version* old = older_.load(std::memory_order_acquire);  // pairs with keep_version()
      // pairs with the release fence of lock()
      std::atomic_thread_fence(std::memory_order_acquire);
      // relaxed: ordered by the fence.
      if (stamp_.load(std::memory_order_relaxed) == before.word()) {
        if (before.epoch() <= epoch) return before;
        while (old != nullptr && old->stamp.epoch() > epoch)
          old = old->older.load(std::memory_order_acquire);  // as above
        if (old == nullptr) return commit_stamp();
        if (!old->stamp.absent()) std::memcpy(into.data(), old->row(), into.size_bytes());
        return old->stamp;
      }
      wait.once();
    }
  }

  // False: it is locked, or not as seen.
  bool try_lock(commit_stamp seen) noexcept {
    std::uint64_t expected = seen.word();
    if (!stamp_.compare_exchange_strong(expected, seen.as_locked().word())) return false;
    // pairs with the acquire fences of the readers
    std::atomic_thread_fence(std::memory_order_release);
    return true;
  }
  // Whatever it is. The stamp that it had.
  commit_stamp lock() noexcept {
    for (backoff wait;; wait.once()) {
      commit_stamp seen = stamp();
      if (seen.locked()) seen = wait_until_unlocked(wait);
      if (try_lock(seen)) return seen;
    }
  }
  void unlock(commit_stamp now) noexcept {
    replace_stamp(now);
    wake_waiters(&stamp_);
  }
  // By a hardware region, which has locked nothing, so that nobody waits.
  void replace_stamp(commit_stamp now) noexcept {
    // pairs with the acquire in unlocked_stamp()
    stamp_.store(now.word(), std::memory_order_release);
  }

  // Hangs up what the row is now, with the stamp that it has had, before it changes.
  void keep_version(version& old, commit_stamp had, std::size_t row_words) noexcept {
    old.stamp = had;
    for (std::size_t i = 0; i < row_words; ++i) old.row()[i] = word(i);
    // relaxed: only the holder of the lock changes it.
    old.older.store(older_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    older_.store(&old, std::memory_order_release);  // pairs with the acquire in read_as_of()
  }
  void write(std::span<const std::uint64_t> row) noexcept {
    for (std::size_t i = 0; i < row.size(); ++i) {
      // relaxed: pairs with copy_row(); ordered by the stamp.
      std::atomic_ref(this->row()[i]).store(row[i], std::memory_order_relaxed);
    }
  }

  // Cuts off the versions that no snapshot from `horizon` on can want: the newest of an epoch up to
  // there is the last one wanted. Whoever reads as of the horizon or later stops there, so nobody
  // can reach the rest.
  version* cut_versions(std::uint64_t horizon, commit_stamp now) noexcept {
    if (now.epoch() <= horizon) return older_.exchange(nullptr);
    for (version* v = older_.load(); v != nullptr; v = v->older.load()) {
      if (v->stamp.epoch() <= horizon) return v->older.exchange(nullptr);
    }
    return nullptr;
  }
  // Whether it is on its table's list of absent records.
  std::atomic<bool>& waits_for_unlinking() noexcept { return waits_for_unlinking_; }
  bool has_versions() const noexcept { return versions() != nullptr; }
  // The newest first. For tests; they may be freed while others write.
  const version* versions() const noexcept { return older_.load(); }

 private:
  explicit record(std::uint64_t key) noexcept : key_(key) {}

  commit_stamp wait_until_unlocked(backoff& wait) const noexcept {
    commit_stamp seen;
    wait_while<looks::often>(
        &stamp_,
        [&] {
          seen = commit_stamp(stamp_.load(std::memory_order_acquire));  // pairs with unlock()
          return seen.locked();
        },
        wait);
    return seen;
  }

  std::uint64_t* row() noexcept { return reinterpret_cast<std::uint64_t*>(this + 1); }
  const std::uint64_t* row() const noexcept {
    return reinterpret_cast<const std::uint64_t*>(this + 1);
  }
  std::uint64_t word(std::size_t i) const noexcept {
    // relaxed: pairs with write(); ordered by the stamp.
    return std::atomic_ref(const_cast<std::uint64_t&>(row()[i])).load(std::memory_order_relaxed);
  }
  void copy_row(std::span<std::uint64_t> into) const noexcept {
    for (std::size_t i = 0; i < into.size(); ++i) into[i] = word(i);
  }

  std::atomic<std::uint64_t> stamp_{commit_stamp().word()};
  std::atomic<version*> older_{nullptr};
  const std::uint64_t key_;
  std::atomic<bool> waits_for_unlinking_{false};
};

static_assert(sizeof(record::version) <= sizeof(record));

}  // namespace elidex::internal
