#pragma once
// The works of `elidex db bench`: what each store does, and in which order.
//
//   const work_info* what = find_work("ycsb-a");
//   what->mix.put_pct;  // 50
//
// Deviations from YCSB: a row has one field. Inserts append keys. In ycsb-d a thread reads its own
// latest inserts, then the loaded rows from the last one backwards. ycsb-f changes a row in one
// transaction, which increments its version.
//
// Thread-safety: constants.

#include <cstdint>
#include <span>
#include <string_view>

namespace elidex::bench::stores {

enum class work_kind : std::uint8_t {
  load,      // measured by the rows that it inserts
  requests,  // a mix of requests, for a time
  commits,   // transactions that overwrite rows of the thread's own
  reopen,    // closes and opens the store
  recovery,  // opens what a killed process has left
};

/// Shares of requests, in percent.
struct request_mix {
  unsigned read_pct = 0;
  unsigned scan_pct = 0;
  unsigned put_pct = 0;  // overwrites a row
  unsigned insert_pct = 0;
  unsigned increment_pct = 0;  // reads and writes a row in one transaction
  bool zipf = false;           // keys by Zipf's law with theta 0.99, scattered; otherwise uniform
  bool latest = false;         // reads rows that were inserted last
  bool short_scans = false;    // of 1 to 100 rows; otherwise of 100

  [[nodiscard]] bool writes() const noexcept { return put_pct + insert_pct + increment_pct > 0; }
};

inline constexpr std::uint64_t scan_rows = 100;
inline constexpr double zipf_theta = 0.99;

struct work_info {
  std::string_view name;
  std::string_view description;
  work_kind kind = work_kind::requests;
  request_mix mix = {};
};

/// In the order in which they run.
[[nodiscard]] std::span<const work_info> works();
/// Null if there is none.
[[nodiscard]] const work_info* find_work(std::string_view name);

}  // namespace elidex::bench::stores
