#include "bench/stores/works.hpp"

#include <algorithm>

namespace elidex::bench::stores {
namespace {

// Works that insert rows come last: the rows stay.
constexpr work_info all[] = {
    {"load", "insert all rows in ascending order, 1,000 in a transaction", work_kind::load},
    {"reopen", "close the store, open it again and read a row", work_kind::reopen},
    {"reads", "read a row", work_kind::requests, {.read_pct = 100}},
    {"updates",
     "read and write a row in one transaction",
     work_kind::requests,
     {.increment_pct = 100}},
    {"scans", "read 100 rows in key order", work_kind::requests, {.scan_pct = 100}},
    {"commits",
     "overwrite rows of the thread's own in one transaction",
     work_kind::commits,
     {.put_pct = 100}},
    {"ycsb-a",
     "50 % reads, 50 % overwrites",
     work_kind::requests,
     {.read_pct = 50, .put_pct = 50, .zipf = true}},
    {"ycsb-b",
     "95 % reads, 5 % overwrites",
     work_kind::requests,
     {.read_pct = 95, .put_pct = 5, .zipf = true}},
    {"ycsb-c", "reads only", work_kind::requests, {.read_pct = 100, .zipf = true}},
    {"ycsb-f",
     "50 % reads, 50 % read-modify-writes",
     work_kind::requests,
     {.read_pct = 50, .increment_pct = 50, .zipf = true}},
    {"ycsb-d",
     "95 % reads of the latest rows, 5 % inserts",
     work_kind::requests,
     {.read_pct = 95, .insert_pct = 5, .latest = true}},
    {"ycsb-e",
     "95 % scans of 1 to 100 rows, 5 % inserts",
     work_kind::requests,
     {.scan_pct = 95, .insert_pct = 5, .zipf = true, .short_scans = true}},
    {"recovery", "open what a process left that SIGKILL ended while it committed",
     work_kind::recovery},
};

}  // namespace

std::span<const work_info> works() {
  return all;
}

const work_info* find_work(std::string_view name) {
  const auto found = std::find_if(std::begin(all), std::end(all),
                                  [&](const work_info& one) { return one.name == name; });
  return found == std::end(all) ? nullptr : found;
}

}  // namespace elidex::bench::stores
