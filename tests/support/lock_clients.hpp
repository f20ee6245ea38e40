#pragma once
// Transactions under two-phase locking, each in a thread of its own that does one step after the
// other, so that a test can see who waits.
//
//   lock_clients all;
//   auto& reader = all.begin(isolation::serializable);
//   reader.does([&](auto& t) { return t.get(all.accounts, 10); });  // returns what the step does
//   auto step = writer.starts([&](auto& t) { t.upsert(all.accounts, 10, account{1}); });
//   EXPECT_TRUE(all.waits(step));
//   reader.commits();
//   step.done.get();
//
// A step that is refused throws db::lock_refused. A client that is not committed rolls back at the
// end.

#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <type_traits>
#include <utility>

#include "elidex/internal/txn/snapshot_transaction.hpp"
#include "elidex/internal/txn/two_phase_locking.hpp"
#include "support/databases.hpp"

namespace elidex::testing {

using namespace internal;

using locking = db::two_phase_locking<>;

template <class Result>
struct lock_step {
  std::future<Result> done;
  std::uint64_t waits_before;
};

class lock_client {
 public:
  lock_client(locking& policy, internal::commit_clock& clock, db::isolation level)
      : policy_(policy), clock_(clock) {
    in_thread([&, level] {
      t_.emplace(notes_, level, policy_.locks(), clock_, std::chrono::seconds(20));
    }).get();
  }
  ~lock_client() {
    in_thread([this] { roll_back_here(); }).get();
    in_thread([this] { ends_ = true; }).get();
    thread_.join();
  }
  lock_client(const lock_client&) = delete;
  lock_client& operator=(const lock_client&) = delete;

  template <class Fn>
  auto starts(Fn fn) {
    using result = std::invoke_result_t<Fn&, locking::transaction&>;
    const std::uint64_t before = policy_.counts().waits;
    return lock_step<result>{in_thread([this, fn]() mutable { return fn(*t_); }), before};
  }
  template <class Fn>
  auto does(Fn fn) {
    return starts(std::move(fn)).done.get();
  }
  bool commits() {
    return in_thread([this] {
             const bool committed = policy_(*t_, clock_) == internal::commit_result::committed;
             internal::transaction_access::context(*t_).note_for_collection(committed);
             t_.reset();
             return committed;
           })
        .get();
  }
  void rolls_back() {
    in_thread([this] { roll_back_here(); }).get();
  }

 private:
  void roll_back_here() {
    if (t_) internal::transaction_access::context(*t_).note_for_collection(false);
    t_.reset();
  }
  template <class Fn>
  std::future<std::invoke_result_t<Fn&>> in_thread(Fn fn) {
    auto task = std::make_shared<std::packaged_task<std::invoke_result_t<Fn&>()>>(std::move(fn));
    auto result = task->get_future();
    {
      const std::lock_guard guard(mutex_);
      tasks_.push_back([task] { (*task)(); });
    }
    more_.notify_one();
    return result;
  }
  void work() {
    while (!ends_) {
      std::function<void()> next;
      {
        std::unique_lock guard(mutex_);
        more_.wait(guard, [this] { return !tasks_.empty(); });
        next = std::move(tasks_.front());
        tasks_.pop_front();
      }
      next();
    }
  }

  locking& policy_;
  internal::commit_clock& clock_;
  locking::transaction::memory notes_;
  std::optional<locking::transaction> t_;
  bool ends_ = false;
  std::mutex mutex_;
  std::condition_variable more_;
  std::deque<std::function<void()>> tasks_;
  std::thread thread_{[this] { work(); }};
};

struct lock_clients {
  locking policy;
  internal::commit_clock clock;
  internal::table<std::uint64_t, account, ordered_tree<std::uint64_t, internal::record*>> accounts{
      "accounts", locking::locking_of(0)};
  std::list<lock_client> clients;

  // Accounts 10 and 20, with 100 each.
  lock_clients() {
    lock_client& loader = begin(db::isolation::serializable);
    loader.does([&](auto& t) {
      for (const std::uint64_t key : {std::uint64_t{10}, std::uint64_t{20}})
        t.insert(accounts, key, account{100});
    });
    loader.commits();
  }
  lock_client& begin(db::isolation level) { return clients.emplace_back(policy, clock, level); }

  // Whether the step has to wait, as opposed to: is done.
  template <class Result>
  bool waits(lock_step<Result>& step) {
    while (step.done.wait_for(std::chrono::microseconds(200)) != std::future_status::ready) {
      if (policy.counts().waits > step.waits_before) return true;
    }
    return false;
  }
  std::optional<std::int64_t> balance(std::uint64_t key) {
    const auto found = db::snapshot_transaction(clock).get(accounts, key);
    return found ? std::optional(found->balance) : std::nullopt;
  }
  void collect() {
    auto rule = policy.unlinking();
    for (int i = 0; i < 5; ++i) {
      clock.advance();
      accounts.collect(clock.settled_horizon(), try_advance_epoch(), &rule);
    }
  }
};

}  // namespace elidex::testing
