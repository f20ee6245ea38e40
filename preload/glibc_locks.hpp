// The words of glibc's mutexes and reader-writer locks that elision must read, and the kinds of
// locks that may be elided or tried before they are taken. Nothing here writes.
//
//   if (may_elide(*mutex) && is_free(*mutex, lock_use::exclusive)) ...
//
// Thread-safety: any thread may call any function, inside and outside of regions.
//
// Implementation notes
// Mutexes. The word __lock is 0 exactly while no thread holds the mutex. The priority-protected
// kind is an exception, because it keeps its ceiling in the word. A thread that takes a normal or
// adaptive mutex writes the word first, by a compare-and-swap or, in a process with one thread, a
// plain store.
//
// Reader-writer locks, by glibc's algorithm since 2.25. The word __readers contains:
//   bit 0, WRPHASE     the lock is in a write phase
//   bit 1, WRLOCKED    there is a primary writer
//   bit 2, RWAITING    readers sleep to let a writer go first
//   bits from 3 up     the number of readers that have the lock or want it
//
//   1. A writer sets WRLOCKED before it does anything else, by fetch-or or compare-and-swap. It
//      clears WRLOCKED after its section, by a compare-and-swap with release order. If it hands the
//      lock to the next writer instead, the bit stays set (the hand-over goes through __writers).
//      If the last reader hands the lock to a waiting writer, the bit is already set. So WRLOCKED
//      is set during each writer's section.
//   2. A reader adds itself to the count before its section, and subtracts itself after it. While
//      it waits for a phase to change, it is in the count too. So the count is not 0 during each
//      reader's section.
//   3. A region that has read the word commits only if no thread has written it since. If WRLOCKED
//      was clear, no writer's section overlaps the region, by 1. That is enough to read. If the
//      count was also 0, no section overlaps the region, by 1 and 2. That is enough to write.
//      WRPHASE does not matter: it stays set after a writer has left.
//   4. The region sees what earlier writers stored, because clearing WRLOCKED released it.
// A writer that waits for readers to leave has WRLOCKED set. So elided readers let it go first,
// even if the lock prefers readers. That is stricter than glibc, never less strict.
//
// The layout is part of glibc's ABI: static initialisers in old programs contain it.
#pragma once

#include <pthread.h>

#include <cstdint>

namespace elidex::preload {

// How a section uses its lock.
enum class lock_use : std::uint8_t { exclusive, shared };

namespace detail {

// Bits of __kind; the lowest two are the type.
inline constexpr int kind_type_mask = 3;
inline constexpr int kind_robust = 16;
inline constexpr int kind_priority = 32 | 64;  // inheriting, protecting
inline constexpr int kind_process_shared = 128;
inline constexpr int kind_elision = 256 | 512;  // glibc's own, asked for or forbidden

inline constexpr unsigned rwlock_write_phase = 1;
inline constexpr unsigned rwlock_write_locked = 2;

inline int kind_of(const pthread_mutex_t& mutex) noexcept {
  // relaxed, without a partner: only pthread_mutex_init and destroy write it, which no use of the
  // mutex overlaps.
  return __atomic_load_n(&mutex.__data.__kind, __ATOMIC_RELAXED);
}

}  // namespace detail

// Returns whether POSIX permits elision for this kind. glibc marks PTHREAD_MUTEX_NORMAL mutexes
// with "no elision", because locking one twice must deadlock.
inline bool may_elide(const pthread_mutex_t& mutex) noexcept {
  const int kind = detail::kind_of(mutex);
  return kind == PTHREAD_MUTEX_TIMED_NP || kind == PTHREAD_MUTEX_ADAPTIVE_NP;
}

inline bool may_elide(const pthread_rwlock_t& lock) noexcept {
  return lock.__data.__shared == 0;
}

inline bool is_free(const pthread_mutex_t& mutex, lock_use) noexcept {
  // acquire: pairs with the release in glibc's unlock.
  return __atomic_load_n(&mutex.__data.__lock, __ATOMIC_ACQUIRE) == 0;
}

inline bool is_free(const pthread_rwlock_t& lock, lock_use use) noexcept {
  // acquire: pairs with the release in glibc's unlock.
  const unsigned word = __atomic_load_n(&lock.__data.__readers, __ATOMIC_ACQUIRE);
  if (use == lock_use::shared) return (word & detail::rwlock_write_locked) == 0;
  return (word & ~detail::rwlock_write_phase) == 0;
}

// Returns whether trylock and then lock have the same effect as lock alone. They do not for robust
// mutexes and mutexes with priorities.
inline bool may_try_first(const pthread_mutex_t& mutex) noexcept {
  return (detail::kind_of(mutex) & (detail::kind_robust | detail::kind_priority)) == 0;
}

inline bool may_try_first(const pthread_rwlock_t&) noexcept {
  return true;
}

}  // namespace elidex::preload
