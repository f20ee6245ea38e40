#include "elidex/db/log_epochs.hpp"
#include "elidex/sync/backoff.hpp"

namespace elidex {

log_epochs::member::member(log_epochs& of) : of_(of) {
  const std::lock_guard guard(of_.mutex_);
  next_ = of_.first_;
  of_.first_ = this;
}

log_epochs::member::~member() {
  const std::lock_guard guard(of_.mutex_);
  member** link = &of_.first_;
  while (*link != this) link = &(*link)->next_;
  *link = next_;
}

std::uint64_t log_epochs::finish_current() {
  const std::lock_guard guard(mutex_);
  // relaxed, no partner: this thread is the only one that changes it.
  const std::uint64_t finished = epoch_.load(std::memory_order_relaxed);
  epoch_.store(finished + 1);
  for (const member* each = first_; each != nullptr; each = each->next_) {
    backoff pauses;
    for (;;) {
      const std::uint64_t inside = each->inside_.load();
      if (inside == 0 || inside > finished) break;
      pauses.once();
    }
  }
  return finished;
}

}  // namespace elidex
