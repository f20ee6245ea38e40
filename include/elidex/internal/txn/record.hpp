// A row of a table: its stamp, its bytes and its older versions.
//
//   record* r = record::make(memory, words, key);               // absent
//   commit_stamp seen = r->read(into);  // a whole row and its stamp
//   if (!r->read_as_of(group, into).absent()) ...               // as a snapshot sees it
//   // a committing transaction
//   r->lock(); r->keep_version(version, had, words); r->write(row); r->unlock(stamp);
//
// Thread-safety: the read functions, from any thread that prevents the record's reclamation (an
// epoch_pin since it found the record). All others: the holder of the record's lock, or a hardware
// region that has read the stamp unlocked.
// Errors: none.
//
// Implementation notes
// The bytes change in place. A reader reads the stamp, the bytes, and the stamp again (Silo,
// section 4.5). A commit keeps the old row only if its commit group is later than the row's: within
// one group no snapshot can need the old row.
//
// Why a read is whole: write() stores after the fence of lock() and before the release of unlock().
// A reader that got one of these words sees at least the locked stamp at its second look, which
// follows an acquire fence. See version_lock.hpp for the same argument. In a hardware region all of
// this happens at one moment. A snapshot's read is right for the same reason: the version is linked
// to `older_` before the row changes.
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

// Rows are handled as words. The last word is filled up with zeros.
constexpr std::size_t words_for(std::size_t bytes) noexcept {
  return (bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
}

class record {
 public:
  // A row that has been overwritten. It is not larger than a record, so that one pool serves both.
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

  // Makes a record in `memory`, which has bytes_for(row_words) bytes. `key` is the table's word for
  // the key.
  static record* make(void* memory, std::size_t row_words, std::uint64_t key) noexcept {
    auto* const made = new (memory) record(key);
    for (std::size_t i = 0; i < row_words; ++i) new (made->row() + i) std::uint64_t(0);
    return made;
  }
  // Makes the word after the row that names the implicit holder of the record's lock
  // (two_phase_transaction.hpp). Only for tables with locking().words_behind_row == 1.
  void make_writer(std::size_t row_words) noexcept {
    new (row() + row_words) std::atomic<std::uint64_t>(0);
  }
  std::atomic<std::uint64_t>& writer(std::size_t row_words) noexcept {
    static_assert(sizeof(std::atomic<std::uint64_t>) == sizeof(std::uint64_t));
    return *std::launder(reinterpret_cast<std::atomic<std::uint64_t>*>(row() + row_words));
  }

  commit_stamp stamp() const noexcept { return commit_stamp(stamp_.load()); }
  // Waits while the record is locked.
  commit_stamp unlocked_stamp() const noexcept {
    // acquire: pairs with unlock(). The row is that stamp's or a later one.
    commit_stamp seen(stamp_.load(std::memory_order_acquire));
    if (seen.locked()) [[unlikely]] {
      internal::backoff wait;
      seen = wait_until_unlocked(wait);
    }
    return seen;
  }
  const std::uint64_t& key() const noexcept { return key_; }

  // Waits while the record is locked.
  commit_stamp read(std::span<std::uint64_t> into) const noexcept {
    for (backoff wait;;) {
      const commit_stamp before = unlocked_stamp();
      if (before.absent()) return before;
      copy_row(into);
      // acquire fence: pairs with the release fence of try_lock() (see above).
      std::atomic_thread_fence(std::memory_order_acquire);
      // relaxed: ordered by the fence.
      if (stamp_.load(std::memory_order_relaxed) == before.word()) return before;
      wait.once();
    }
  }

  // Reads the row as it was at the end of `group`, and returns the stamp that it had. The stamp is
  // absent if there was no row.
  commit_stamp read_as_of(std::uint64_t group, std::span<std::uint64_t> into) const noexcept {
    for (backoff wait;;) {
      const commit_stamp before = unlocked_stamp();
      if (before.group() <= group && !before.absent()) copy_row(into);
      // The list holds the earlier rows. A commit in progress may have linked its version already.
      const version* old = older_.load(std::memory_order_acquire);  // pairs with keep_version()
      // acquire fence: pairs with the release fence of try_lock().
      std::atomic_thread_fence(std::memory_order_acquire);
      // relaxed: ordered by the fence.
      if (stamp_.load(std::memory_order_relaxed) == before.word()) {
        if (before.group() <= group) return before;
        while (old != nullptr && old->stamp.group() > group)
          old = old->older.load(std::memory_order_acquire);  // pairs with keep_version()
        if (old == nullptr) return commit_stamp();
        if (!old->stamp.absent()) std::memcpy(into.data(), old->row(), into.size_bytes());
        return old->stamp;
      }
      wait.once();
    }
  }

  // Returns false if the record is locked or its stamp is not `seen`.
  bool try_lock(commit_stamp seen) noexcept {
    std::uint64_t expected = seen.word();
    if (!stamp_.compare_exchange_strong(expected, seen.as_locked().word())) return false;
    // release fence: pairs with the acquire fences of the readers.
    std::atomic_thread_fence(std::memory_order_release);
    return true;
  }
  // Locks the record in any state, and returns the stamp that it had.
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
  // For a hardware region, which has locked nothing: there are no waiters.
  void replace_stamp(commit_stamp now) noexcept {
    // release: pairs with the acquire in unlocked_stamp().
    stamp_.store(now.word(), std::memory_order_release);
  }

  // Links the current row, with its stamp `had`, as a version. To be called before the row changes.
  void keep_version(version& old, commit_stamp had, std::size_t row_words) noexcept {
    old.stamp = had;
    for (std::size_t i = 0; i < row_words; ++i) old.row()[i] = word(i);
    // relaxed: only the holder of the lock changes it.
    old.older.store(older_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    older_.store(&old, std::memory_order_release);  // pairs with the acquire in read_as_of()
  }
  void write(std::span<const std::uint64_t> row) noexcept {
    for (std::size_t i = 0; i < row.size(); ++i) {
      // relaxed: pairs with copy_row(), ordered by the stamp.
      std::atomic_ref(this->row()[i]).store(row[i], std::memory_order_relaxed);
    }
  }

  // Unlinks the versions that no snapshot from `horizon` on can need. The newest version of an
  // group <= horizon is the last one needed: every reader as of the horizon or later stops there.
  // So the rest is unreachable.
  version* cut_versions(std::uint64_t horizon, commit_stamp now) noexcept {
    if (now.group() <= horizon) return older_.exchange(nullptr);
    for (version* v = older_.load(); v != nullptr; v = v->older.load()) {
      if (v->stamp.group() <= horizon) return v->older.exchange(nullptr);
    }
    return nullptr;
  }
  // Whether the record is on its table's list of absent records.
  std::atomic<bool>& waits_for_unlinking() noexcept { return waits_for_unlinking_; }
  bool has_versions() const noexcept { return versions() != nullptr; }
  // The newest version. For tests. Versions may be freed while other threads write.
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
    // relaxed: pairs with write(), ordered by the stamp.
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
