// What glibc keeps in its mutexes and reader-writer locks, as far as eliding them has to read it,
// and what counting them may do to them. Nothing here writes.
//
//   if (may_elide(*mutex) && is_free(*mutex, lock_use::exclusive)) ...
//
// Mutexes. The word __lock is 0 exactly while nobody holds the mutex, for all kinds but the
// priority-protected one (which keeps its ceiling in it). Whoever takes a normal or adaptive mutex
// writes the word first, by a compare-and-swap or, in a process with one thread, a plain store.
//
// Reader-writer locks, by glibc's algorithm since 2.25. All of this is in the word __readers: bit
// 0, WRPHASE: the lock is in a write phase. Bit 1, WRLOCKED: there is a primary writer. Bit 2,
// RWAITING: readers sleep that let a writer go first. From bit 3 up: how many readers have the lock
// or want it.
//   1. A writer sets WRLOCKED in this word before anything else, by fetch-or or compare-and-swap,
//      and clears it, by a compare-and-swap with release order, after its section. Where it hands
//      the lock to the next writer instead, the bit stays set all the time (the hand-over goes
//      through __writers). Where the last reader hands the lock to a waiting writer, the bit is set
//      already. So each writer's section lies inside a time in which WRLOCKED is set.
//   2. A reader adds itself to the count before its section and subtracts itself after it. While it
//      waits for a phase to change it is in the count too. So each reader's section lies inside a
//      time in which the count is not 0.
//   3. A region that has read the word commits only if nobody has written it since. By 1, if
//      WRLOCKED was clear, no writer's section overlaps the region: enough to read. By 1 and 2, if
//      the count was 0 as well, no section overlaps it at all: enough to write. WRPHASE says
//      nothing: a lock that a writer has left idles with it set.
//   4. What writers before stored is visible in the region, since clearing WRLOCKED released it.
// A writer that waits for readers to leave has WRLOCKED set, so elided readers let it in, also
// where the lock prefers readers: that is stricter than glibc, never less strict.
//
// The layout is part of glibc's ABI: static initialisers in old programs contain it.
//
// Thread-safety: any thread, inside and outside of regions.
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

// Only the kinds whose behaviour POSIX leaves open enough. glibc marks mutexes that a program has
// asked to be PTHREAD_MUTEX_NORMAL with "no elision", because locking one twice has to deadlock.
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

// Whether trying first and locking then does what locking alone does. For robust mutexes and those
// with priorities, each call has effects of its own.
inline bool may_try_first(const pthread_mutex_t& mutex) noexcept {
  return (detail::kind_of(mutex) & (detail::kind_robust | detail::kind_priority)) == 0;
}

inline bool may_try_first(const pthread_rwlock_t&) noexcept {
  return true;
}

}  // namespace elidex::preload
