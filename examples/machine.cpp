// A bank on the simulated machine: docs/MACHINE.md, "Your own program".
//
//   elidex-c++ -O2 machine.cpp -o machine
//   ELIDEX_SIM="machine=haswell-i5-4670t locks=plain" ./machine
//   ELIDEX_SIM="machine=haswell-i5-4670t locks=elided" ./machine
//
// The program knows nothing of elidex. Four threads transfer money between accounts under one
// mutex, and write every hundredth transfer into a file while they hold it. On the machine the
// mutex can be elided: transfers between different accounts then run at the same time. Writing a
// file is a system call. It aborts the transaction, and the thread takes the mutex.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace {

constexpr unsigned threads = 4;
constexpr unsigned transfers = 2'000;  // of each thread
constexpr unsigned accounts = 1'000;
constexpr long opening_balance = 100;

struct alignas(64) account {
  long balance = opening_balance;
};

class bank {
 public:
  explicit bank(std::FILE* log) : accounts_(accounts), log_(log) {}

  void transfer(unsigned from, unsigned to, long amount, unsigned number) {
    const std::lock_guard guard(mutex_);
    accounts_[from].balance -= amount;
    accounts_[to].balance += amount;
    if (number % 100 == 0) std::fprintf(log_, "%u to %u: %ld\n", from, to, amount);
  }

  long sum() const {
    long sum = 0;
    for (const account& one : accounts_) sum += one.balance;
    return sum;
  }

 private:
  std::mutex mutex_;
  std::vector<account> accounts_;
  std::FILE* log_;
};

// Lets all threads start together.
class gate {
 public:
  void open() {
    const std::lock_guard guard(mutex_);
    is_open_ = true;
    opened_.notify_all();
  }
  void pass() {
    std::unique_lock guard(mutex_);
    opened_.wait(guard, [this] { return is_open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable opened_;
  bool is_open_ = false;
};

void work(bank& where, gate& start, unsigned thread) {
  start.pass();
  unsigned random = thread + 1;
  for (unsigned i = 0; i < transfers; ++i) {
    random = random * 1'664'525 + 1'013'904'223;
    where.transfer((random >> 8) % accounts, (random >> 18) % accounts, 1, i);
  }
}

}  // namespace

int main() {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> log(std::tmpfile(), std::fclose);
  if (log == nullptr) return 1;
  bank where(log.get());
  gate start;
  std::vector<std::thread> workers;
  for (unsigned t = 0; t < threads; ++t) workers.emplace_back([&, t] { work(where, start, t); });
  const auto begin = std::chrono::steady_clock::now();
  start.open();
  for (std::thread& worker : workers) worker.join();
  const std::chrono::duration<double, std::micro> took = std::chrono::steady_clock::now() - begin;
  std::printf("%u transfers in %.0f us, sum %ld\n", threads * transfers, took.count(), where.sum());
  return where.sum() == opening_balance * accounts ? 0 : 1;
}
