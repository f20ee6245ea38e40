// The engine's threads that wait for each other.
#include <algorithm>

#include "machine/engine.hpp"

namespace elidex::sim {
namespace {

constexpr std::size_t held_locks_max = 64;  // of a thread, remembered for reports
constexpr unsigned futex_bucket_bits = 8;   // Linux 3.11: 256 buckets

std::uint64_t address_of(const void* at) noexcept {
  return reinterpret_cast<std::uint64_t>(at);
}

// Static, so that its address is the same in each run.
std::array<futex_bucket, 1 << futex_bucket_bits> futex_buckets;

}  // namespace

bool engine::wait(const void* key, const char* why, std::uint64_t deadline) {
  return wait_in_kernel(key, why, deadline, machine_.futex_wait_cycles);
}

bool engine::wait_in_kernel(const void* key, const char* why, std::uint64_t deadline,
                            std::uint64_t cycles) {
  unfriendly(cycles);
  program_thread& me = *now_running_;
  me.waits_for = key;
  me.why = why;
  me.deadline = deadline;
  me.woken = false;
  me.waits_since = me.clock;
  me.is = state::waiting;
  waiting_[key].push_back(me.number);
  if (options_.schedule == nullptr) give_up_cpu(me);
  if (deadline != no_deadline && options_.schedule == nullptr) {
    // Its turn comes at the deadline, or when it is woken.
    me.clock = std::max(me.clock, deadline);
    push(me);
  }
  leave();
  me.waits_for = nullptr;
  me.deadline = no_deadline;
  if (me.woken) return true;
  me.clock = std::max(me.clock, deadline);
  me.counts.waiting_cycles += me.clock - me.waits_since;
  me.is = state::able;
  const auto others = waiting_.find(key);
  std::erase(others->second, me.number);
  if (others->second.empty()) waiting_.erase(others);
  if (options_.schedule == nullptr) take_cpu(me);
  return false;
}

unsigned engine::wake(const void* key, unsigned count) {
  const auto found = waiting_.find(key);
  if (found == waiting_.end()) return 0;
  std::uint64_t runs_at = now_running_->clock + machine_.wake_up_cycles;
  unsigned woken = 0;
  while (woken < count && !found->second.empty()) {
    program_thread& t = threads_[found->second.front()];
    found->second.pop_front();
    t.woken = true;
    t.counts.waiting_cycles += std::max(t.waits_since, runs_at) - t.waits_since;
    if (options_.schedule != nullptr) {
      t.is = state::able;
      t.clock = std::max(t.clock, runs_at);
    } else {
      make_able(t, runs_at);
    }
    ++woken;
    runs_at += machine_.futex_wake_cycles;
    now_running_->clock += machine_.futex_wake_cycles;
  }
  if (found->second.empty()) waiting_.erase(found);
  return woken;
}

// --- futexes ---
//
// The bucket is locked while the kernel reads the word, and while it wakes threads. Linux 3.11, the
// thesis's kernel, does that. Later kernels release the lock before they wake threads (4.2), and
// take no lock if the bucket has no waiter (3.14).

futex_bucket& engine::bucket_of(const void* word) noexcept {
  constexpr std::uint64_t mixer = 0x9e37'79b9'7f4a'7c15;
  return futex_buckets[address_of(word) / 4 * mixer >> (64 - futex_bucket_bits)];
}

// With a schedule the bucket has no lock: the schedule's choices would only add accesses that mean
// nothing to the program.
void engine::lock_bucket(futex_bucket& bucket) {
  if (options_.schedule != nullptr) return;
  now_running_->holds_bucket = true;
  access_atomically(address_of(&bucket), sizeof bucket, true);
  const std::uint32_t mine = bucket.next++;
  while (bucket.served != mine) {
    pause();
    access_atomically(address_of(&bucket), sizeof bucket, false);
  }
}

void engine::unlock_bucket(futex_bucket& bucket) {
  if (options_.schedule != nullptr) return;
  store_atomically(address_of(&bucket), sizeof bucket, false);
  ++bucket.served;
  now_running_->holds_bucket = false;
}

void forget_buckets() noexcept {
  futex_buckets = {};
}

unsigned engine::wake_on_word(const void* word, unsigned count) {
  unfriendly(0);
  futex_bucket& bucket = bucket_of(word);
  lock_bucket(bucket);
  const unsigned woken = wake(word, count);
  unlock_bucket(bucket);
  if (woken == 0) now_running_->clock += machine_.system_call_cycles;
  return woken;
}

void engine::at_thread_end(void (*destroy)(void*), void* object) {
  unfriendly(0);
  now_running_->at_end.emplace_back(destroy, object);
}

void engine::note_lock(const void* lock, bool held) {
  std::vector<const void*>& list = now_running_->held;
  if (held) {
    if (list.size() < held_locks_max) list.push_back(lock);
  } else {
    const auto last = std::find(list.rbegin(), list.rend(), lock);
    if (last != list.rend()) list.erase(std::next(last).base());
  }
}

void engine::end_with_others() {
  const auto others = std::count_if(threads_.begin(), threads_.end(), [this](const auto& t) {
    return &t != now_running_ && t.is != state::free && t.is != state::ended;
  });
  if (others != 0)
    stop("main() returned before %llu other threads ended", static_cast<std::uint64_t>(others));
}

void engine::wait_for_end(unsigned thread) {
  program_thread& t = threads_[thread];
  while (t.is != state::ended) wait(&t, "the end of thread");
}

void engine::forget_thread(unsigned thread) noexcept {
  program_thread& t = threads_[thread];
  t.forgotten = true;
  if (t.is == state::ended) t.is = state::free;
}

pthread_t engine::handle_of(unsigned thread) const noexcept {
  return threads_[thread].runs->host_handle();
}

int engine::thread_of(pthread_t handle) const noexcept {
  for (const program_thread& t : threads_) {
    if (t.runs != nullptr && t.is != state::free &&
        ::pthread_equal(t.runs->host_handle(), handle) != 0) {
      return static_cast<int>(t.number);
    }
  }
  return -1;
}

}  // namespace elidex::sim
