#pragma once
// The workloads: YCSB a to f, plus the two phases that YCSB leaves out of the clock, load and
// delete.
//
//   workload what = *find_workload("a");
//   distribution where = *parse_distribution("zipf:0.99");
//   auto streams = make_streams(keys, {what, where, ...}, threads);
//
//   a     50 % read, 50 % update            d  95 % read of the latest inserts, 5 % insert
//   b     95 % read, 5 % update             e  95 % scan, 5 % insert
//   c     reads only                        f  50 % read, 50 % read-modify-write
//   load  insert every key                  delete  erase every key
//   churn  replace every key: insert a new one and erase an old one, in turn, so that the map stays
//          as large as it was
//   bulk-load  the same in ascending order, with one call; an index without such a call inserts one
//              key after the other
//   multi-upsert:N   as load, N (from 1 to 64) keys with one call. The latency is that of a call.
//                    An index without such a call inserts one key after the other.
//   mix:N N % read, the rest update, N from 0 to 100
//   insert-mix:N   N % insert of keys that are not there, the rest read: the mixes of paper 001,
//                  whose even keys are looked for and
//         whose odd ones are inserted. Ours are scattered over all integers.
//   put:THETA   the text of paper 003: 50 % get, 50 % insert or update, into an empty map; keys by
//               Zipf, adjacent
//   eunomia:THETA[:READS[:BYTES]]   paper 003's released benchmark, see "Fronts" below
//   multi-get, multi-get:N   reads only, 32 (N, from 1 to 64) keys with one call; each key is a
//                            request, but the latency is
//         that of a call. An index without such a call reads one key after the other.
//
// Invariants: thread t's stream depends on the keys, the shape and t alone, not on how many threads
// there are, and never on the index, so that every index of a comparison does the same work. Reads,
// updates and scans name keys that are there.
//
// hot:THETA: with probability THETA a request names a key of the hot region, each of its keys
// alike; otherwise any key of all. The region is a stretch of adjacent keys in the middle, so that
// the way to it is as long as to any other. This was our first reading of the input of paper 003's
// skip lists, which now run on eunomia-list (below).
//
// Fronts: eunomia:THETA[:READS[:BYTES]], and eunomia-common, eunomia-grown, eunomia-apart and
// eunomia-list with the same numbers. The map begins empty. There are 20 entities, each with a
// front of ascending keys. A share of READS (0.2) of the requests looks for a key below all
// others. Each other request takes an entity by Zipf(THETA) and appends 20 consecutive keys to
// its front. For each key (request_kind::store) the thread inserts the key unless it is there,
// makes a value of BYTES (100) bytes, inserts the key once more, and stores the value into the
// key's record, outside of the map. A look counts as one operation, an append as 20.
//   eunomia         Each thread has a counter for each entity. All counters begin at 0. So all
//                   threads come to the same keys, and the first one inserts them.
//   eunomia-common  The threads share the counters: thread t of T takes the places t, t + T, t + 2T
//                   and so on. So each key has one thread.
//   eunomia-grown   As eunomia. The map begins with `grown_places` places at each front, which is
//                   six levels with 16 slots a node, and the counters begin behind them.
//   eunomia-apart   As eunomia, but key i of thread t's batch is i * T + t. So each key has one
//                   thread, and neighbours are of different threads. The paper takes accesses to
//                   one record by several threads away in such a way, to count the aborts that
//                   remain (section 3.2).
//   eunomia-list    The input of the paper's skip lists as we read it; THETA is at most 1. A
//                   request takes the hot front with probability THETA, and any front otherwise
//                   (section 6.1: "Higher the theta, higher the probability that multiple
//                   threads access the same hot region"). Keys are as in eunomia-apart (section
//                   6.2: "the batch of keys processed by a thread interleave with each other").
// The workload and both numbers are those of the released logs; the paper's text has READS 0.5 and
// values of 8 bytes.
//
// Thread-safety: pure functions.
//
// DEVIATIONS from YCSB: scans have a fixed length unless a range is asked for (YCSB draws it from
// 1..100); hot keys of a Zipf distribution are neighbours in key order, as in paper 003, section
// 6.1, unless ":scrambled" is asked for (YCSB scatters them); in d the recency of a read follows
// the distribution that was asked for, and each thread reads the inserts of its own (the streams
// know nothing of each other), then the loaded keys from the last loaded to the first.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bench/workload/key_set.hpp"
#include "bench/workload/requests.hpp"

namespace elidex::bench {

enum class workload_kind : std::uint8_t {
  a,
  b,
  c,
  d,
  e,
  f,
  load,
  bulk_load,
  erase_all,
  churn,
  mix,
  insert_mix,
  multi_get,
  multi_upsert,
  put,
  fronts
};

// What eunomia:THETA[:READS[:BYTES]] asks for, and the theta of put:THETA.
struct front_shape {
  double theta = 0;
  double read_share = 0.2;
  unsigned value_bytes = 100;
  bool common_counters = false;
  bool grown = false;
  bool interleaved = false;  // each key has one thread, its neighbours have others
  bool hot_front = false;    // theta is the share of one front
};
inline constexpr unsigned front_count = 20;
inline constexpr unsigned front_batch = 20;
/// Ascending inserts leave nodes half full. 20 fronts of 700 batches of 20 are 280,000 keys, which
/// need six levels of nodes with 16 slots.
inline constexpr std::uint64_t grown_places = 700;
inline constexpr unsigned value_bytes_max = 4096;

struct workload {
  workload_kind kind;
  std::string_view name;
  std::string_view description;
  bool inserts;  // the map holds more or other keys afterwards
  bool erases;
  bool scans;
  unsigned read_percent = 0;  // of mix:N and insert-mix:N
  unsigned keys_at_once = 1;  // of multi-get and multi-upsert
  front_shape fronts = {};    // of eunomia:THETA; of put:THETA its theta alone
  // Of a workload that brings its own distribution.
  std::string_view own_distribution = {};
  /// Reads only.
  [[nodiscard]] bool only_reads() const noexcept {
    if (kind == workload_kind::mix || kind == workload_kind::insert_mix) return read_percent == 100;
    return kind == workload_kind::c || kind == workload_kind::multi_get;
  }
  /// Runs through its streams once and is timed by that, instead of running for a fixed time.
  [[nodiscard]] bool drains() const noexcept { return loads() || erases; }
  /// The name of a draining workload's distribution: its own, or "uniform".
  [[nodiscard]] std::string_view distribution_name() const noexcept {
    return own_distribution.empty() ? "uniform" : own_distribution;
  }
  /// Gives new values to keys that are there.
  [[nodiscard]] bool updates() const noexcept {
    return kind == workload_kind::a || kind == workload_kind::b || kind == workload_kind::f ||
           kind == workload_kind::mix || kind == workload_kind::put ||
           kind == workload_kind::fronts;
  }
  [[nodiscard]] bool loads_all_keys() const noexcept {
    return kind == workload_kind::load || kind == workload_kind::bulk_load ||
           kind == workload_kind::multi_upsert;
  }
  /// Visits every key of the key set.
  [[nodiscard]] bool visits_all_keys() const noexcept { return loads_all_keys() || erases; }
  /// Begins with an empty map (eunomia-grown: with the keys of make_grown_stream()).
  [[nodiscard]] bool loads() const noexcept {
    return loads_all_keys() || kind == workload_kind::put || kind == workload_kind::fronts;
  }
};

[[nodiscard]] std::span<const workload> workloads();
/// Also the kinds with numbers in their names, which workloads() leaves out: mix:N, insert-mix:N,
/// multi-get:N, multi-upsert:N, put:THETA and eunomia:THETA[:READS[:BYTES]].
[[nodiscard]] const workload* find_workload(std::string_view name);

struct numbered_kind {
  std::string_view name;         // "mix:N"
  std::string_view numbers;      // "N from 0 to 100"
  std::string_view description;  // without the numbers' ranges
  /// Returns whether a workload's name, right or wrong, is of this kind.
  [[nodiscard]] bool is_meant_by(std::string_view one) const noexcept {
    return one.substr(0, one.find(':')) == name.substr(0, name.find(':'));
  }
};
/// The kinds with numbers in their names.
[[nodiscard]] std::span<const numbered_kind> numbered_kinds();

struct distribution {
  double theta = 0;        // 0: uniform
  bool scrambled = false;  // hot keys scattered over the key space instead of adjacent
  bool region = false;     // theta is the share of requests that go to the hot region
  std::string name = "uniform";
};

inline constexpr double zipf_theta_max = 1.2;

/// "uniform"; "zipf:THETA" or "zipf:THETA:scrambled", THETA from 0 to zipf_theta_max; "hot:THETA",
/// THETA from 0 to 1; nothing otherwise.
[[nodiscard]] std::optional<distribution> parse_distribution(std::string_view text);

/// One in so many keys is in the hot region, and at least hot_region_keys_min. Both chosen: at a
/// million keys it is a hundred, a handful for each of 16 threads.
inline constexpr std::uint64_t hot_region_one_in = 10'000;
inline constexpr std::uint64_t hot_region_keys_min = 16;

/// In which order load and delete take the keys. Interleaved: thread t of T takes keys t, t+T, t+2T
/// and so on upwards, so that all threads are at the same end; the others give each thread a share
/// of its own.
enum class key_order : std::uint8_t { random, ascending, interleaved };

/// In which order a workload takes the keys when `asked` is what was asked for: bulk-load knows one
/// only.
[[nodiscard]] inline key_order order_of(const workload& what, key_order asked) noexcept {
  return what.kind == workload_kind::bulk_load ? key_order::ascending : asked;
}

/// "random", "ascending" or "interleaved"; nothing otherwise.
[[nodiscard]] std::optional<key_order> parse_key_order(std::string_view text);
[[nodiscard]] std::string_view to_string(key_order order);

struct stream_shape {
  const workload* what = nullptr;
  distribution where = {};
  std::uint64_t requests = 0;  // for each thread; load and delete share out the keys instead
  std::uint32_t scan_length_min = 100;
  std::uint32_t scan_length_max = 100;
  key_order order = key_order::random;  // of load and delete
  std::uint64_t seed = 1;
};

/// The most bytes that one stream of string keys may take; it ends early there.
inline constexpr std::size_t stream_bytes_max = std::size_t{1} << 28U;

/// The stream of thread `thread` of `threads`.
template <class Key>
[[nodiscard]] request_stream<Key> make_stream(const key_set<Key>& keys, const stream_shape& shape,
                                              unsigned thread, unsigned threads);

/// What is in the map when an eunomia-grown workload begins, as requests; empty for other
/// workloads.
template <class Key>
[[nodiscard]] request_stream<Key> make_grown_stream(const workload& what);

/// One for each thread, made in parallel.
template <class Key>
[[nodiscard]] std::vector<request_stream<Key>> make_streams(const key_set<Key>& keys,
                                                            const stream_shape& shape,
                                                            unsigned threads);

}  // namespace elidex::bench
