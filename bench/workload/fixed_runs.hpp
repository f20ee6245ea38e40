#pragma once
// The request streams of a run of a fixed number of operations, simulated or native: what fills the
// map, what warms the caches, and what is measured.
//
//   const request_stream<Key> filling = filling_stream(keys, what, shape);
//   const auto measured = streams_for(keys, shape, threads);
//   const auto warm_ups = streams_for(keys, warm_up_shape(what, shape), threads);
//
// Thread-safety: functions without state.

#include <cstdint>
#include <vector>

#include "bench/workload/workload.hpp"

namespace elidex::bench {

inline constexpr std::uint64_t warm_up_share = 10;  // one in ten operations more

// One after the other, not in parallel: then what they allocate lies at the same addresses in every
// run.
template <class Key>
[[nodiscard]] std::vector<request_stream<Key>> streams_for(const key_set<Key>& keys,
                                                           const stream_shape& shape,
                                                           unsigned threads) {
  std::vector<request_stream<Key>> streams;
  streams.reserve(threads);
  for (unsigned t = 0; t < threads; ++t) streams.push_back(make_stream(keys, shape, t, threads));
  return streams;
}

// The map's values point into this stream, so it must outlive the map.
template <class Key>
[[nodiscard]] request_stream<Key> filling_stream(const key_set<Key>& keys, const workload& what,
                                                 stream_shape shape) {
  if (what.loads()) return make_grown_stream<Key>(what);
  shape.what = find_workload("load");
  shape.order = key_order::random;
  return make_stream(keys, shape, 0, 1);
}

// Has another seed and only reads and updates, so that the warm-up neither adds nor erases keys.
[[nodiscard]] inline stream_shape warm_up_shape(const workload& what, stream_shape shape) {
  shape.what = find_workload(what.erases || what.loads() || what.inserts ? "c" : what.name);
  shape.requests = what.drains() ? 0 : shape.requests / warm_up_share;
  shape.seed += 1'000'003;
  return shape;
}

}  // namespace elidex::bench
