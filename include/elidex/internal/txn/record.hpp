// A row of a table: its stamp, its bytes and its older versions.
//
//   record* r = record::make(memory, room, key);        // absent
//   record::seen_row seen = r->read(buffer);            // a whole row and its stamp
//   if (!r->read_as_of(group, buffer).stamp.absent()) ...  // as a snapshot sees it
//   // a committing transaction
//   r->lock(); r->keep_version(version, had); r->write(row, body); r->unlock(stamp);
//
// Thread-safety: the read functions, from any thread that prevents the record's reclamation (an
// epoch_pin since it found the record). All others: the holder of the record's lock, or a hardware
// region that has read the stamp unlocked.
// Errors: std::bad_alloc from read() and read_as_of(), if the buffer must grow.
//
// Implementation notes
// A record's room is its capacity in words. In a table whose rows have one size, each row fills the
// room. In other tables the number of words varies. A row that is longer than the room is stored in
// a separate allocation, its body, and the room holds the pointer to it. A body never changes. A
// commit that replaces a body hands it to the version that it keeps, or to the retire list.
//
// Rows that are not longer than the room change in place. A reader reads the stamp, the bytes, and
// the stamp again (Silo, section 4.5). A commit keeps the old row only if a snapshot can need it:
// the commit's group is later than the row's, and a snapshot of an earlier group may run
// (commit_clock.hpp).
//
// Why a read is whole: write() stores after the fence of lock() and before the release of unlock().
// A reader that got one of these words sees at least the locked stamp at its second look, which
// follows an acquire fence. See version_lock.hpp for the same argument. In a hardware region all of
// this happens at one moment. A snapshot's read is right for the same reason: the version is linked
// to `older_` before the row changes. The count of words is read like the words. A torn copy may
// have a wrong count, but never copies more words than the room has. A body is read only after the
// second look. Its content was written before the stamp that the first look has acquired.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <string_view>
#include <vector>

#include "elidex/internal/sync/backoff.hpp"
#include "elidex/internal/sync/parking.hpp"
#include "elidex/internal/txn/commit_stamp.hpp"

namespace elidex::internal {

// Rows are handled as words. The last word is filled up with zeros.
constexpr std::size_t words_for(std::size_t bytes) noexcept {
  return (bytes + sizeof(std::uint64_t) - 1) / sizeof(std::uint64_t);
}
inline std::string_view bytes_of(std::span<const std::uint64_t> words) noexcept {
  return {reinterpret_cast<const char*>(words.data()), words.size_bytes()};
}

class record {
 public:
  // A row that has been overwritten. It is not larger than a record with as much room, so that one
  // pool serves both.
  struct version {
    commit_stamp stamp;
    std::atomic<version*> older{nullptr};
    std::uint32_t room = 0;       // words behind this header
    std::uint32_t row_words = 0;  // of the row
    const std::uint64_t* words() const noexcept {
      return reinterpret_cast<const std::uint64_t*>(this + 1);
    }
    std::uint64_t* words() noexcept { return reinterpret_cast<std::uint64_t*>(this + 1); }
    // Null if the row lies behind this header.
    std::uint64_t* body() const noexcept {
      return row_words > room ? body_of(words()[0]) : nullptr;
    }
    std::span<const std::uint64_t> row() const noexcept {
      const std::uint64_t* const elsewhere = body();
      return {elsewhere != nullptr ? elsewhere : words(), row_words};
    }
    // Prefetches the room, into which keep_version() writes.
    void prefetch_for_write() const noexcept {
      prefetch_lines<1>(this + 1, std::min(room * sizeof(std::uint64_t), prefetched_row_bytes_max));
    }
  };
  // A row as a reader has seen it. If the stamp is absent, there is no row.
  struct seen_row {
    commit_stamp stamp;
    std::span<const std::uint64_t> words;
  };

  static constexpr std::size_t room_max = UINT16_MAX;
  static constexpr std::size_t bytes_for(std::size_t room) noexcept {
    return sizeof(record) + room * sizeof(std::uint64_t);
  }

  // Makes a record in `memory`, which has bytes_for(room) bytes. `room`: 1 to room_max. `key` is
  // the table's word for the key.
  static record* make(void* memory, std::size_t room, std::uint64_t key) noexcept {
    auto* const made = new (memory) record(key, static_cast<std::uint16_t>(room));
    for (std::size_t i = 0; i < room; ++i) new (made->words() + i) std::uint64_t(0);
    return made;
  }
  // Makes the word behind the room that names the implicit holder of the record's lock
  // (two_phase_transaction.hpp). Only for tables with locking().words_behind_row == 1.
  void make_writer() noexcept { new (words() + room_) std::atomic<std::uint64_t>(0); }
  std::atomic<std::uint64_t>& writer() noexcept {
    static_assert(sizeof(std::atomic<std::uint64_t>) == sizeof(std::uint64_t));
    return *std::launder(reinterpret_cast<std::atomic<std::uint64_t>*>(words() + room_));
  }

  // Prefetches the record with a row of so many bytes, or as much as is worth it.
  void prefetch(std::size_t row_bytes) const noexcept {
    prefetch_lines<0>(this, sizeof(record) + std::min(row_bytes, prefetched_row_bytes_max));
  }

  // Prefetches the newest version's header, which cut_versions() reads.
  void prefetch_version() const noexcept { __builtin_prefetch(versions(), 0, 2); }

  // How many words of a row fit into the record.
  std::size_t room() const noexcept { return room_; }
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

  // Waits while the record is locked. The words lie in `buffer` or in the row's body. They are
  // valid until the buffer is used again. The caller must stay pinned, or prevent changes of the
  // row, while it uses them.
  seen_row read(std::vector<std::uint64_t>& buffer) const {
    if (buffer.size() < room_) buffer.resize(room_);
    for (backoff wait;;) {
      const commit_stamp before = unlocked_stamp();
      if (before.absent()) return {before, {}};
      const std::size_t many = copy_words(buffer.data());
      // acquire fence: pairs with the release fence of try_lock() (see above).
      std::atomic_thread_fence(std::memory_order_acquire);
      // relaxed: ordered by the fence.
      if (stamp_.load(std::memory_order_relaxed) == before.word())
        return {before, copied_row(buffer, many)};
      wait.once();
    }
  }

  // Reads the row as it was at the end of `group`, with the stamp that it had. The words are valid
  // until the buffer is used again, and as long as the caller's snapshot of the group exists.
  seen_row read_as_of(std::uint64_t group, std::vector<std::uint64_t>& buffer) const {
    if (buffer.size() < room_) buffer.resize(room_);
    for (backoff wait;;) {
      const commit_stamp before = unlocked_stamp();
      const bool is_seen = before.group() <= group && !before.absent();
      const std::size_t many = is_seen ? copy_words(buffer.data()) : 0;
      // The list holds the earlier rows. A commit in progress may have linked its version already.
      const version* old = older_.load(std::memory_order_acquire);  // pairs with keep_version()
      // acquire fence: pairs with the release fence of try_lock().
      std::atomic_thread_fence(std::memory_order_acquire);
      // relaxed: ordered by the fence.
      if (stamp_.load(std::memory_order_relaxed) == before.word()) {
        if (is_seen) return {before, copied_row(buffer, many)};
        if (before.group() <= group) return {before, {}};
        while (old != nullptr && old->stamp.group() > group)
          old = old->older.load(std::memory_order_acquire);  // pairs with keep_version()
        if (old == nullptr) return {};
        if (old->stamp.absent()) return {old->stamp, {}};
        return {old->stamp, old->row()};
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

  // Links the current row, with its stamp `had`, as a version, which has the record's room. Call it
  // before the row changes. If the row has a body, the version then owns it, and the record has no
  // row.
  void keep_version(version& old, commit_stamp had) noexcept {
    old.stamp = had;
    old.room = room_;
    // relaxed, here and below: only the holder of the lock changes them.
    old.row_words = row_words_.load(std::memory_order_relaxed);
    const std::size_t here = old.row_words > room_ ? 1 : old.row_words;
    for_each_of(here, [&](std::size_t i) { old.words()[i] = word(i); });
    if (old.row_words > room_) row_words_.store(0, std::memory_order_relaxed);
    old.older.store(older_.load(std::memory_order_relaxed), std::memory_order_relaxed);
    older_.store(&old, std::memory_order_release);  // pairs with the acquire in read_as_of()
  }
  // `body`: a copy of the row if it is longer than the room, otherwise null. The record then owns
  // it, and no longer owns its previous body. The caller takes that with body() before the call.
  void write(std::span<const std::uint64_t> row, std::uint64_t* body) noexcept {
    const auto pointer = reinterpret_cast<std::uintptr_t>(body);
    const std::span<const std::uint64_t> here =
        body == nullptr ? row : std::span<const std::uint64_t>(&pointer, 1);
    for_each_of(here.size(), [&](std::size_t i) {
      // relaxed, here and below: pairs with copy_words(), ordered by the stamp.
      std::atomic_ref(words()[i]).store(here[i], std::memory_order_relaxed);
    });
    if (row_words_.load(std::memory_order_relaxed) != row.size())
      row_words_.store(static_cast<std::uint32_t>(row.size()), std::memory_order_relaxed);
  }
  // The memory of a row that is longer than the room. Empty if there is none.
  std::span<std::uint64_t> body() const noexcept {
    // relaxed: only the holder of the lock changes it.
    const std::size_t many = row_words_.load(std::memory_order_relaxed);
    if (many <= room_) return {};
    return {body_of(word(0)), many};
  }

  // Unlinks the versions that no snapshot from `horizon` on can need. The newest version of a
  // group <= horizon is the last one needed: every reader as of the horizon or later stops there.
  // So the rest is unreachable.
  version* cut_versions(std::uint64_t horizon, commit_stamp now) noexcept {
    std::atomic<version*>* link = &older_;
    commit_stamp at = now;
    for (;;) {
      // relaxed, no partner: only the caller may change the record and its links.
      version* const next = link->load(std::memory_order_relaxed);
      if (next == nullptr) return nullptr;
      if (at.group() <= horizon) {
        // relaxed, no partner: a reader that still sees the link as it was does not follow it.
        link->store(nullptr, std::memory_order_relaxed);
        return next;
      }
      link = &next->older;
      at = next->stamp;
    }
  }
  // Whether the record is on its table's list of absent records.
  std::atomic<bool>& waits_for_unlinking() noexcept { return waits_for_unlinking_; }
  bool has_versions() const noexcept { return versions() != nullptr; }
  // The newest version. For tests. Versions may be freed while other threads write.
  const version* versions() const noexcept { return older_.load(); }

 private:
  // Chosen: lines behind these are fetched by the hardware while a row is copied.
  static constexpr std::size_t prefetched_row_bytes_max = 352;

  record(std::uint64_t key, std::uint16_t room) noexcept : key_(key), room_(room) {}

  // Write: 1 to prefetch for a write, 0 for a read.
  template <int Write>
  static void prefetch_lines(const void* from, std::size_t bytes) noexcept {
    constexpr std::uintptr_t line = 64;
    const auto begin = reinterpret_cast<std::uintptr_t>(from);
    for (std::uintptr_t at = begin / line * line; at < begin + bytes; at += line)
      __builtin_prefetch(reinterpret_cast<const void*>(at), Write, 2);
  }

  // Calls fn(i) for 0 to many - 1, four in a turn: compilers do not unroll loops of atomics.
  template <class Fn>
  [[gnu::always_inline]] static void for_each_of(std::size_t many, const Fn& fn) noexcept {
    std::size_t i = 0;
    for (; i + 4 <= many; i += 4) {
      fn(i);
      fn(i + 1);
      fn(i + 2);
      fn(i + 3);
    }
    for (; i < many; ++i) fn(i);
  }

  static std::uint64_t* body_of(std::uint64_t pointer) noexcept {
    return reinterpret_cast<std::uint64_t*>(static_cast<std::uintptr_t>(pointer));
  }

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

  std::uint64_t* words() noexcept { return reinterpret_cast<std::uint64_t*>(this + 1); }
  const std::uint64_t* words() const noexcept {
    return reinterpret_cast<const std::uint64_t*>(this + 1);
  }
  std::uint64_t word(std::size_t i) const noexcept {
    // relaxed: pairs with write(), ordered by the stamp.
    return std::atomic_ref(const_cast<std::uint64_t&>(words()[i])).load(std::memory_order_relaxed);
  }
  // Copies the words of the room that are in use, and returns how many words the row has.
  std::size_t copy_words(std::uint64_t* into) const noexcept {
    // relaxed: pairs with write(), ordered by the stamp.
    const std::size_t many = row_words_.load(std::memory_order_relaxed);
    const std::size_t here = many > room_ ? 1 : many;
    for_each_of(here, [&](std::size_t i) { into[i] = word(i); });
    return many;
  }
  std::span<const std::uint64_t> copied_row(const std::vector<std::uint64_t>& buffer,
                                            std::size_t many) const noexcept {
    return {many > room_ ? body_of(buffer[0]) : buffer.data(), many};
  }

  std::atomic<std::uint64_t> stamp_{commit_stamp().word()};
  std::atomic<version*> older_{nullptr};
  const std::uint64_t key_;
  std::atomic<bool> waits_for_unlinking_{false};
  const std::uint16_t room_;  // words behind this header
  std::atomic<std::uint32_t> row_words_{0};
};

static_assert(sizeof(record) == 32);
static_assert(sizeof(record::version) <= sizeof(record));

}  // namespace elidex::internal
