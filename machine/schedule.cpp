#include "machine/schedule.hpp"

#include <algorithm>
#include <array>

#include "machine/memory.hpp"
#include "machine/random.hpp"

namespace elidex::sim {
namespace {

class random_walk_strategy final : public strategy {
 public:
  random_walk_strategy(std::uint64_t seed, std::uint64_t changes_one_in)
      : state_(seed), changes_one_in_(changes_one_in) {}

  unsigned choose(const unsigned* able, unsigned count, unsigned current, bool waits) override {
    const bool can_stay = std::find(able, able + count, current) != able + count;
    if (can_stay && !waits && next_random(state_) % changes_one_in_ != 0) return current;
    return able[next_random(state_) % count];
  }

 private:
  std::uint64_t state_;
  std::uint64_t changes_one_in_;
};

class pct_strategy final : public strategy {
 public:
  pct_strategy(std::uint64_t seed, unsigned depth, std::uint64_t steps) : state_(seed) {
    // All above the values that the change points give.
    for (std::int64_t& p : priority_)
      p = depth + static_cast<std::int64_t>(next_random(state_) >> 2);
    for (unsigned i = 1; i < depth; ++i) falls_at_.push_back(next_random(state_) % steps);
  }

  unsigned choose(const unsigned* able, unsigned count, unsigned current, bool waits) override {
    // Who waits in a loop would keep the others out for ever: it falls as well.
    const auto point = std::find(falls_at_.begin(), falls_at_.end(), steps_++);
    if (point != falls_at_.end() && current != nobody) priority_[current] = falls_at_.end() - point;
    if (waits) priority_[current] = --lowest_;
    return *std::max_element(
        able, able + count, [this](unsigned a, unsigned b) { return priority_[a] < priority_[b]; });
  }

 private:
  std::uint64_t state_;
  std::array<std::int64_t, threads_max> priority_{};
  std::int64_t lowest_ = 0;
  std::vector<std::uint64_t> falls_at_;
  std::uint64_t steps_ = 0;
};

std::uint64_t digest_of(const unsigned* able, unsigned count, unsigned current, bool waits) {
  std::uint64_t digest = mixed(std::uint64_t{current} * 2 + (waits ? 1 : 0));
  for (unsigned i = 0; i < count; ++i) digest = mixed(digest + able[i] + 1);
  return digest;
}

}  // namespace

machine small_machine() {
  constexpr std::uint64_t never = 100'000'000'000;
  machine m;
  m.name = "small";
  m.cores_per_socket = 8;
  m.l2_sets = 64;
  m.l3_sets = 64;
  m.l3_ways = 8;
  m.timer_period_cycles = never;
  m.stray_interrupt_period_cycles = never;
  m.read_table_sets = 64;
  return m;
}

std::unique_ptr<strategy> random_walk(std::uint64_t seed, std::uint64_t changes_one_in) {
  return std::make_unique<random_walk_strategy>(seed, changes_one_in);
}

std::unique_ptr<strategy> pct(std::uint64_t seed, unsigned depth, std::uint64_t steps) {
  return std::make_unique<pct_strategy>(seed, depth, steps);
}

unsigned exhaustive::choose(const unsigned* able, unsigned count, unsigned current, bool waits) {
  const std::uint64_t situation = digest_of(able, count, current, waits);
  if (at_ < choices_.size()) {
    const choice& c = choices_[at_++];
    if (c.situation != situation) runs_differ_ = true;
    const unsigned wanted = c.options[c.taken];
    // A program that did something else this time: go on with anybody.
    return std::find(able, able + count, wanted) != able + count ? wanted : able[0];
  }
  choice c{{}, 0, situation, false};
  const bool can_stay = std::find(able, able + count, current) != able + count;
  c.preempts = can_stay && !waits;
  if (c.preempts) {
    c.options.push_back(current);
    if (preemptions_so_far() < preemptions_max_) {
      std::copy_if(able, able + count, std::back_inserter(c.options),
                   [&](unsigned t) { return t != current; });
    }
  } else {
    // Round and round, so that a thread that waits in a loop is not the first choice again.
    c.options.assign(able, able + count);
    const auto behind = std::upper_bound(c.options.begin(), c.options.end(), current);
    std::rotate(c.options.begin(), behind, c.options.end());
    if (can_stay) c.options.pop_back();  // itself: its loop would be unrolled without end
    if (c.options.empty()) c.options.push_back(current);
  }
  choices_.push_back(std::move(c));
  ++at_;
  return choices_.back().options.front();
}

unsigned exhaustive::preemptions_so_far() const {
  return static_cast<unsigned>(std::count_if(choices_.begin(), choices_.end(), [](const choice& c) {
    return c.preempts && c.taken != 0;
  }));
}

bool exhaustive::next() {
  if (at_ < choices_.size()) runs_differ_ = true;  // the run ended early
  at_ = 0;
  while (!choices_.empty() && choices_.back().taken + 1 == choices_.back().options.size())
    choices_.pop_back();
  if (choices_.empty()) return false;
  ++choices_.back().taken;
  return true;
}

}  // namespace elidex::sim
