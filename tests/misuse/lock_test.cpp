// What the mutexes, the condition variable and the functions of htm.hpp do when they are misused.
#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include "elidex/condition_variable.hpp"
#include "elidex/htm.hpp"
#include "elidex/mutex.hpp"
#include "elidex/shared_mutex.hpp"
#include "misuse/rows.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

using namespace std::chrono_literals;

struct thrown_by_callback {};

constexpr std::string_view mutex_header = "elidex/mutex.hpp";
constexpr std::string_view errors_of_the_program = "errors in the program, as with std::mutex";

template <class Fn>
void on_another_thread(Fn&& fn) {
  std::thread(fn).join();
}

template <class Mutex>
bool another_thread_gets(Mutex& lock) {
  bool got = false;
  on_another_thread([&] {
    got = lock.try_lock();
    if (got) lock.unlock();
  });
  return got;
}

TEST(MutexMisuse, TakenTwice) {
  mutex lock;
  lock.lock();
  EXPECT_FALSE(lock.try_lock());
  lock.unlock();
  misuse_row("mutex::try_lock", misuse::reentrance, "by the holder: false");
  undefined_row("mutex::lock", misuse::reentrance, "by the holder: deadlocks with itself",
                mutex_header, errors_of_the_program);
}

TEST(MutexMisuse, UnlockedByOthers) {
  mutex lock;
  lock.unlock();
  EXPECT_FALSE(lock.is_locked());
  EXPECT_TRUE(another_thread_gets(lock));
  misuse_row("mutex::unlock", misuse::closed_object, "called while unlocked: nothing happens");
  if (!htm::enabled()) {  // an elided section holds nothing that another thread could free
    lock.lock();
    on_another_thread([&] { lock.unlock(); });
    EXPECT_FALSE(lock.is_locked());
    EXPECT_TRUE(another_thread_gets(lock));
  }
  undefined_row("mutex::unlock", misuse::other_thread,
                "frees the lock in the middle of its holder's section", mutex_header,
                errors_of_the_program);
  on_another_thread([&] { EXPECT_FALSE(lock.is_locked()); });
  misuse_row("mutex::is_locked", misuse::other_thread, "allowed; elided sections do not show");
  lock.lock();
  if (!htm::enabled()) {
    EXPECT_FALSE(another_thread_gets(lock));
  }
  lock.unlock();
  misuse_row("mutex::try_lock", misuse::other_thread, "held by another thread: false");
}

TEST(RecursiveMutexMisuse, UnlockedByOthers) {
  recursive_mutex lock;
  lock.unlock();
  EXPECT_TRUE(another_thread_gets(lock));
  misuse_row("recursive_mutex::unlock", misuse::closed_object,
             "called while unlocked: nothing happens");
  undefined_row("recursive_mutex::unlock", misuse::other_thread,
                "frees the lock in the middle of its holder's section", mutex_header,
                errors_of_the_program);
  lock.lock();
  lock.lock();
  EXPECT_TRUE(lock.try_lock());
  for (int level = 3; level > 0; --level) {
    if (!htm::enabled()) {
      EXPECT_FALSE(another_thread_gets(lock));
    }
    lock.unlock();
  }
  EXPECT_TRUE(another_thread_gets(lock));
  for (const char* const function : {"recursive_mutex::lock", "recursive_mutex::try_lock"}) {
    misuse_row(function, misuse::reentrance,
               "by the holder: adds a level; each level needs its own unlock()");
  }
}

TEST(SharedMutexMisuse, TakenTwice) {
  shared_mutex lock;
  lock.lock();
  EXPECT_FALSE(lock.try_lock());
  EXPECT_FALSE(lock.try_lock_shared());
  lock.unlock();
  lock.lock_shared();
  EXPECT_FALSE(lock.try_lock());
  EXPECT_TRUE(lock.try_lock_shared());
  lock.unlock_shared();
  lock.unlock_shared();
  misuse_row("shared_mutex::try_lock", misuse::reentrance, "by a holder of either kind: false");
  misuse_row("shared_mutex::try_lock_shared", misuse::reentrance,
             "by the writer: false; by a reader: true");
  undefined_row("shared_mutex::lock", misuse::reentrance,
                "by a holder of either kind: deadlocks with itself", mutex_header,
                errors_of_the_program);
  undefined_row("shared_mutex::lock_shared", misuse::reentrance,
                "by the writer: deadlocks with itself; by a reader: the same if a writer waits",
                mutex_header, errors_of_the_program);
}

TEST(SharedMutexMisuse, UnlockedByOthers) {
  shared_mutex lock;
  lock.unlock();
  lock.unlock_shared();
  EXPECT_TRUE(another_thread_gets(lock));
  for (const char* const function : {"shared_mutex::unlock", "shared_mutex::unlock_shared"}) {
    misuse_row(function, misuse::closed_object, "called while unlocked: nothing happens");
    undefined_row(function, misuse::other_thread,
                  "frees the lock in the middle of its holder's section", mutex_header,
                  errors_of_the_program);
  }
}

TEST(LockMisuse, NamesAndTheEndOfALock) {
  for (const std::string kind : {"mutex", "recursive_mutex", "shared_mutex"}) {
    undefined_row(kind + "::" + kind, misuse::bad_argument, "a null name", mutex_header,
                  "The constructor copies the name, which must not be null");
    undefined_row(kind + "::" + kind, misuse::closed_object, "destroyed while held or waited for",
                  mutex_header, "Destroying a lock that is held or waited for is an error");
  }
  for (const named_lock_counts& one : named_lock_stats()) EXPECT_FALSE(one.name.empty());
  {
    mutex lock("misuse: a lock that is gone");
    const std::lock_guard guard(lock);
  }
  bool found = false;
  for (const named_lock_counts& one : named_lock_stats())
    found |= one.name == "misuse: a lock that is gone";
  EXPECT_TRUE(found);
  misuse_row("named_lock_stats", misuse::closed_object, "the lock is destroyed: its counts stay");
}

// --- the condition variable ---

template <class Wait>
void expect_refused_without_the_lock(const Wait& wait) {
  mutex lock;
  std::unique_lock not_held(lock, std::defer_lock);
  std::unique_lock<mutex> no_mutex;
  for (std::unique_lock<mutex>* const guard : {&not_held, &no_mutex}) {
    try {
      wait(*guard);
      ADD_FAILURE() << "it waited";
    } catch (const std::system_error& error) {
      EXPECT_EQ(error.code(), std::errc::operation_not_permitted);
    }
  }
  EXPECT_TRUE(another_thread_gets(lock));
}

TEST(ConditionVariableMisuse, WaitingWithoutTheLock) {
  condition_variable changed;
  const auto never = [] { return false; };
  expect_refused_without_the_lock([&](auto& guard) { changed.wait(guard); });
  expect_refused_without_the_lock([&](auto& guard) { changed.wait(guard, never); });
  expect_refused_without_the_lock([&](auto& guard) { changed.wait_for(guard, 1h); });
  expect_refused_without_the_lock([&](auto& guard) { changed.wait_for(guard, 1h, never); });
  const auto deadline = std::chrono::system_clock::now() + 1h;
  expect_refused_without_the_lock([&](auto& guard) { changed.wait_until(guard, deadline); });
  expect_refused_without_the_lock([&](auto& guard) { changed.wait_until(guard, deadline, never); });
  for (const char* const function : {"wait", "wait_for", "wait_until"}) {
    misuse_row("condition_variable::" + std::string(function), misuse::wrong_handle,
               "a unique_lock that does not hold its mutex: throws std::system_error "
               "(operation_not_permitted)");
    undefined_row("condition_variable::" + std::string(function), misuse::wrong_handle,
                  "another mutex than those who wait already", "elidex/condition_variable.hpp",
                  "Threads that wait at the same time must use the same mutex");
    undefined_row("condition_variable::" + std::string(function), misuse::reentrance,
                  "a recursive_mutex that is held twice: the other threads stay locked out",
                  "elidex/condition_variable.hpp",
                  "A recursive mutex must be held at one level only");
  }
}

TEST(ConditionVariableMisuse, PredicateThrows) {
  condition_variable changed;
  mutex lock;
  std::unique_lock guard(lock);
  // The first look is false, so that it has waited when the predicate throws.
  const auto throws_later = [&] {
    return [looks = 0]() mutable { return looks++ == 0 ? false : throw thrown_by_callback(); };
  };
  const auto past = std::chrono::steady_clock::now();
  EXPECT_THROW(changed.wait_for(guard, 0s, throws_later()), thrown_by_callback);
  EXPECT_TRUE(guard.owns_lock());
  EXPECT_THROW(changed.wait_until(guard, past, throws_later()), thrown_by_callback);
  EXPECT_TRUE(guard.owns_lock());
  EXPECT_THROW(changed.wait(guard, []() -> bool { throw thrown_by_callback(); }),
               thrown_by_callback);
  EXPECT_TRUE(guard.owns_lock());
  guard.unlock();
  EXPECT_TRUE(another_thread_gets(lock));
  for (const char* const function : {"wait", "wait_for", "wait_until"}) {
    misuse_row("condition_variable::" + std::string(function), misuse::callback_throws,
               "the exception of the predicate comes out with the lock held");
  }
}

TEST(ConditionVariableMisuse, PredicateUsesTheConditionVariable) {
  condition_variable changed;
  mutex lock;
  std::unique_lock guard(lock);
  const auto notifies_and_waits = [&] {
    changed.notify_one();
    changed.notify_all();
    changed.wait_for(guard, 0s);
    return true;
  };
  changed.wait(guard, notifies_and_waits);
  EXPECT_TRUE(changed.wait_for(guard, 1h, notifies_and_waits));
  EXPECT_TRUE(changed.wait_until(guard, std::chrono::steady_clock::now() + 1h, notifies_and_waits));
  EXPECT_TRUE(guard.owns_lock());
  for (const char* const function :
       {"wait", "wait_for", "wait_until", "notify_one", "notify_all"}) {
    misuse_row("condition_variable::" + std::string(function), misuse::reentrance,
               "from the predicate of a wait: works as usual");
  }
}

TEST(ConditionVariableMisuse, NotifyingWithoutWaiters) {
  condition_variable changed;
  changed.notify_one();
  changed.notify_all();
  on_another_thread([&] { changed.notify_one(); });
  for (const char* const function : {"notify_one", "notify_all"}) {
    misuse_row("condition_variable::" + std::string(function), misuse::closed_object,
               "called without waiters: nothing happens");
  }
  undefined_row("condition_variable::~condition_variable", misuse::closed_object,
                "destroyed while a thread waits that was not notified",
                "elidex/condition_variable.hpp",
                "the object may be destroyed when all waiters have been notified");
}

// --- hardware transactions ---

TEST(HtmMisuse, OutsideATransaction) {
  EXPECT_FALSE(htm::test());
  EXPECT_EQ(htm::abort<7>().code(), 7);
  EXPECT_FALSE(htm::test());
  misuse_row("htm::abort", misuse::closed_object, "outside a transaction: nothing happens");
  misuse_row("htm::test", misuse::closed_object, "outside a transaction: false");
  constexpr std::string_view header = "elidex/htm.hpp";
  undefined_row("htm::begin", misuse::closed_object, "enabled() is false: the instruction faults",
                header, "begin() may run only while enabled() is true");
  undefined_row("htm::commit", misuse::closed_object,
                "outside a transaction: the instruction faults", header,
                "commit() only while test() is true");
  for (const char* const function : {"htm::enabled", "htm::capability", "htm::retest"}) {
    undefined_row(function, misuse::reentrance,
                  "the first call of the process, or retest(), inside a transaction", header,
                  std::string_view(function) == "htm::enabled"
                      ? "make that call outside of transactions"
                      : "Never call capability() or retest() inside a transaction");
  }
  EXPECT_STREQ(htm::to_string(static_cast<htm::abort_cause>(200)), "other");
  misuse_row("htm::to_string", misuse::bad_argument, "a value outside the enumeration: \"other\"");
}

TEST(HtmMisuse, CapabilityOnManyThreads) {
  const htm::htm_capability* there = nullptr;
  on_another_thread([&] { there = &htm::capability(); });
  EXPECT_EQ(there->rtm_commits, htm::capability().rtm_commits);
  EXPECT_EQ(there->rtm_commits, htm::enabled() || there->rtm_commits);
  misuse_row("htm::capability", misuse::other_thread,
             "allowed; the reference never becomes invalid");
}

}  // namespace
}  // namespace elidex::testing
