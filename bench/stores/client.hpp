#pragma once
// One thread of a work: draws requests, sends them to its session, and checks what comes back.
//
//   client one(*session, {.what = find_work("ycsb-a"), .rows = 1'000, .writer = 1});
//   for (int i = 0; i < 100; ++i) one.step();
//   one.log().puts;      // what consistency.hpp compares with the store's contents
//   one.problem();       // empty, or the first read that was wrong
//
// Rows 0 to rows - 1 are in the store and are never erased, so each read and each scan of them has
// a known result.
//
// Thread-safety: belongs to one thread. Errors: what the session throws.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "bench/stores/consistency.hpp"
#include "bench/stores/rows.hpp"
#include "bench/stores/store.hpp"
#include "bench/stores/works.hpp"
#include "bench/workload/random.hpp"
#include "bench/workload/zipf.hpp"

namespace elidex::bench::stores {

struct client_plan {
  const work_info* what = nullptr;
  std::uint64_t rows = 0;           // loaded
  std::uint64_t first_new_key = 0;  // all inserts of all threads begin here
  unsigned rows_per_commit = 1;
  unsigned thread = 0;
  unsigned threads = 1;
  std::uint64_t writer = 1;  // differs between all clients of a store
  std::uint64_t seed = 1;
};

class client {
 public:
  client(session& on, const client_plan& plan)
      : on_(on),
        plan_(plan),
        bits_(mix(plan.seed) + plan.thread),
        ranks_(plan.rows, plan.what->mix.zipf || plan.what->mix.latest ? zipf_theta : 0),
        key_of_(plan.rows, plan.seed),
        log_(plan.writer) {}

  /// One request, or one transaction.
  void step() {
    if (plan_.what->kind == work_kind::commits) return commit();
    const request_mix& mix = plan_.what->mix;
    std::uint64_t drawn = bits_.below(100);
    const auto is = [&](unsigned share) {
      if (drawn < share) return true;
      drawn -= share;
      return false;
    };
    if (is(mix.read_pct)) return read();
    if (is(mix.scan_pct)) return scan();
    if (is(mix.put_pct)) return put(draw_key());
    if (is(mix.insert_pct)) return put(new_key(inserted_++));
    const std::uint64_t key[] = {draw_key()};
    on_.increment(key);
    ++log_.increments;
  }

  [[nodiscard]] const write_log& log() const noexcept { return log_; }
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }

 private:
  std::uint64_t draw_key() {
    if (!plan_.what->mix.zipf) return bits_.below(plan_.rows);
    return key_of_(ranks_.draw(bits_));
  }
  [[nodiscard]] std::uint64_t new_key(std::uint64_t i) const noexcept {
    return plan_.first_new_key + plan_.thread + i * plan_.threads;
  }
  std::uint64_t latest_key() {
    const std::uint64_t rank = ranks_.draw(bits_);
    return rank < inserted_ ? new_key(inserted_ - 1 - rank)
                            : plan_.rows - 1 - std::min(rank - inserted_, plan_.rows - 1);
  }

  void read() {
    const std::uint64_t key = plan_.what->mix.latest ? latest_key() : draw_key();
    const bool found =
        on_.get(key, [&](std::uint64_t got, row_view row) { check_row(key, got, row); });
    if (!found) note("no row for key " + std::to_string(key));
  }
  void scan() {
    const std::uint64_t most = std::min(scan_rows, plan_.rows);
    const std::uint64_t wanted = plan_.what->mix.short_scans ? 1 + bits_.below(most) : most;
    const std::uint64_t from = std::min(draw_key(), plan_.rows - wanted);
    std::uint64_t key = from;
    const std::size_t seen = on_.scan(
        from, wanted, [&](std::uint64_t got, row_view row) { check_row(key++, got, row); });
    if (seen != wanted)
      note("a scan of " + std::to_string(seen) + " rows instead of " + std::to_string(wanted));
  }
  void check_row(std::uint64_t wanted, std::uint64_t got, row_view row) {
    if (got != wanted || !row_version(row, wanted))
      note("a wrong row for key " + std::to_string(wanted));
  }
  void put(std::uint64_t key) {
    keys_.assign(1, key);
    put_keys();
  }
  // The thread's keys are thread, thread + threads, and so on.
  void commit() {
    const std::uint64_t own = (plan_.rows - 1 - plan_.thread) / plan_.threads + 1;
    const std::uint64_t many = std::min<std::uint64_t>(plan_.rows_per_commit, own);
    const std::uint64_t first = bits_.below(own);
    keys_.clear();
    for (std::uint64_t i = 0; i < many; ++i)
      keys_.push_back(plan_.thread + (first + i) % own * plan_.threads);
    put_keys();
  }
  // In one transaction, all with the same version.
  void put_keys() {
    const std::uint64_t version = log_.next_version();
    on_.put(keys_, version);
    for (const std::uint64_t key : keys_) log_.add_put(key, version);
  }
  void note(const std::string& what) {
    if (problem_.empty()) problem_ = what;
  }

  session& on_;
  const client_plan plan_;
  random_bits bits_;
  const zipf_ranks ranks_;
  const permutation key_of_;
  write_log log_;
  std::uint64_t inserted_ = 0;
  std::vector<std::uint64_t> keys_;
  std::string problem_;
};

}  // namespace elidex::bench::stores
