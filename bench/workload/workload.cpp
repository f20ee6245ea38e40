#include "bench/workload/workload.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <future>
#include <stdexcept>
#include <thread>

#include "bench/workload/fronts.hpp"
#include "bench/workload/zipf.hpp"

namespace elidex::bench {

namespace {

constexpr unsigned percent_max = 100;

constexpr std::array<workload, 11> all_workloads{{
    {workload_kind::a, "a", "50 % read, 50 % update", false, false, false},
    {workload_kind::b, "b", "95 % read, 5 % update", false, false, false},
    {workload_kind::c, "c", "100 % read", false, false, false},
    {workload_kind::d, "d", "95 % read of the latest, 5 % insert", true, false, false},
    {workload_kind::e, "e", "95 % scan, 5 % insert", true, false, true},
    {workload_kind::f, "f", "50 % read, 50 % read-modify-write", false, false, false},
    {workload_kind::multi_get, "multi-get",
     "100 % read, 32 keys with one call where the index has one", false, false, false, 0, 32},
    {workload_kind::load, "load", "insert every key", true, false, false},
    {workload_kind::bulk_load, "bulk-load",
     "insert every key, with one call where the index has one", true, false, false},
    {workload_kind::erase_all, "delete", "erase every key", false, true, false},
    {workload_kind::churn, "churn", "replace every key: insert one, erase one", true, true, false},
}};

// Independent sequences out of one seed: what a number is used for is part of its seed.
enum class purpose : std::uint64_t { requests = 1, scrambling, erase_order };

std::uint64_t seed_for(std::uint64_t seed, purpose use, std::uint64_t thread = 0) {
  return mix(mix(seed) + (static_cast<std::uint64_t>(use) << 32U) + thread);
}

template <class Key>
request_stream<Key> make_drain_stream(const key_set<Key>& keys, const stream_shape& shape,
                                      unsigned thread, unsigned threads) {
  const bool load = shape.what->loads();
  const bool churn = shape.what->kind == workload_kind::churn;
  const request_kind loading =
      shape.what->kind == workload_kind::bulk_load      ? request_kind::insert_all
      : shape.what->kind == workload_kind::multi_upsert ? request_kind::insert_many
                                                        : request_kind::insert;
  const permutation erase_order(keys.size(), seed_for(shape.seed, purpose::erase_order));
  const key_order order = order_of(*shape.what, shape.order);
  const bool interleaved = order == key_order::interleaved;
  const std::size_t begin = interleaved ? thread : keys.size() * thread / threads;
  const std::size_t end = interleaved ? keys.size() : keys.size() * (thread + 1) / threads;
  const std::size_t step = interleaved ? threads : 1;
  const auto rank_of = [&](std::size_t position) {
    if (order != key_order::random) return position;
    return load ? keys.load_rank(position) : static_cast<std::size_t>(erase_order(position));
  };
  request_stream<Key> stream;
  stream.set_keys_at_once(shape.what->keys_at_once);
  std::size_t key_bytes = 0;
  if constexpr (std::is_same_v<Key, std::string>) {
    for (std::size_t i = begin; i < end; i += step) key_bytes += keys.at(rank_of(i)).size();
  }
  stream.reserve((begin < end ? (end - begin + step - 1) / step : 0) * (churn ? 2 : 1), key_bytes);
  random_bits bits(seed_for(shape.seed, purpose::requests, thread));
  std::uint64_t fresh_keys = 0;
  for (std::size_t i = begin; i < end; i += step) {
    if (churn) stream.append(request_kind::insert, keys.fresh(thread, fresh_keys++, bits));
    stream.append(load ? loading : request_kind::erase, keys.at(rank_of(i)));
  }
  return stream;
}

struct request_mix {
  unsigned common_percent;
  request_kind common;
  request_kind other;
};

request_mix mix_of(const workload& what) {
  switch (what.kind) {
    case workload_kind::a:
      return {50, request_kind::read, request_kind::put};
    case workload_kind::b:
      return {95, request_kind::read, request_kind::put};
    case workload_kind::d:
      return {95, request_kind::read, request_kind::insert};
    case workload_kind::e:
      return {95, request_kind::scan, request_kind::insert};
    case workload_kind::f:
      return {50, request_kind::read, request_kind::modify};
    case workload_kind::mix:
      return {what.read_percent, request_kind::read, request_kind::put};
    case workload_kind::insert_mix:
      return {what.read_percent, request_kind::read, request_kind::insert};
    case workload_kind::multi_get:
      return {100, request_kind::read_many, request_kind::read_many};
    case workload_kind::put:
      return {50, request_kind::look, request_kind::upsert};
    default:
      return {100, request_kind::read, request_kind::read};
  }
}

// A kind of workload with a number behind its name. One for each number, made once: who holds a
// workload keeps a pointer.
class numbered_workloads {
 public:
  /// describe(n) is the n-th one's description, set(w, n) makes a workload the n-th one.
  numbered_workloads(std::string_view prefix, unsigned first, unsigned last, const workload& like,
                     void (*set)(workload&, unsigned), std::string (*describe)(unsigned))
      : prefix_(prefix), first_(first) {
    for (unsigned n = first; n <= last; ++n) {
      names_.push_back(std::string(prefix) + std::to_string(n));
      descriptions_.push_back(describe(n));
    }
    for (unsigned n = first; n <= last; ++n) {
      all_.push_back(like);
      all_.back().name = names_[n - first];
      all_.back().description = descriptions_[n - first];
      set(all_.back(), n);
    }
  }

  [[nodiscard]] const workload* find(std::string_view name) const {
    if (!name.starts_with(prefix_)) return nullptr;
    name.remove_prefix(prefix_.size());
    unsigned n = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), n);
    if (error != std::errc{} || end != name.data() + name.size()) return nullptr;
    return n < first_ || n - first_ >= all_.size() ? nullptr : &all_[n - first_];
  }

 private:
  std::string_view prefix_;
  unsigned first_;
  std::vector<std::string> names_;
  std::vector<std::string> descriptions_;
  std::vector<workload> all_;
};

constexpr std::array<std::string_view, 3> order_names{"random", "ascending", "interleaved"};

// How hot a key is, drawn, and where in key order that key lies.
class skew {
 public:
  skew(const distribution& where, std::uint64_t count, std::uint64_t seed)
      : where_(where),
        count_(count),
        region_(std::min(count, std::max(count / hot_region_one_in, hot_region_keys_min))),
        ranks_(count, where.region ? 0 : where.theta),
        scattered_(count, seed) {}

  /// 0: the hottest.
  [[nodiscard]] std::uint64_t draw(random_bits& bits) const {
    return where_.region && bits.unit() < where_.theta ? bits.below(region_) : ranks_.draw(bits);
  }

  [[nodiscard]] std::uint64_t place(std::uint64_t hotness) const {
    if (where_.region) return ((count_ - region_) / 2 + hotness) % count_;
    return where_.scrambled ? scattered_(hotness) : hotness;
  }

 private:
  distribution where_;
  std::uint64_t count_;
  std::uint64_t region_;
  zipf_ranks ranks_;
  permutation scattered_;
};

}  // namespace

std::span<const workload> workloads() {
  return all_workloads;
}

const workload* find_workload(std::string_view name) {
  static const numbered_workloads mixes(
      "mix:", 0, percent_max, {workload_kind::mix, {}, {}, false, false, false},
      [](workload& one, unsigned n) { one.read_percent = n; },
      [](unsigned n) { return std::to_string(n) + " % read, the rest update"; });
  static const numbered_workloads insert_mixes(
      "insert-mix:", 0, percent_max, {workload_kind::insert_mix, {}, {}, true, false, false},
      [](workload& one, unsigned n) { one.read_percent = percent_max - n; },
      [](unsigned n) { return std::to_string(n) + " % insert, the rest read"; });
  static const numbered_workloads multi_gets(
      "multi-get:", 1, keys_at_once_max, {workload_kind::multi_get, {}, {}, false, false, false},
      [](workload& one, unsigned n) { one.keys_at_once = n; },
      [](unsigned n) {
        return "100 % read, " + std::to_string(n) + " keys with one call where the index has one";
      });
  static const numbered_workloads multi_upserts(
      "multi-upsert:", 1, keys_at_once_max,
      {workload_kind::multi_upsert, {}, {}, true, false, false},
      [](workload& one, unsigned n) { one.keys_at_once = n; },
      [](unsigned n) {
        return "insert every key, " + std::to_string(n) +
               " keys with one call where the index has one";
      });
  if (const workload* const found = mixes.find(name)) return found;
  if (const workload* const found = insert_mixes.find(name)) return found;
  if (const workload* const found = multi_gets.find(name)) return found;
  if (const workload* const found = multi_upserts.find(name)) return found;
  if (const workload* const found = find_front_workload(name)) return found;
  const auto found = std::find_if(all_workloads.begin(), all_workloads.end(),
                                  [&](const workload& one) { return one.name == name; });
  return found == all_workloads.end() ? nullptr : &*found;
}

std::span<const numbered_kind> numbered_kinds() {
  constexpr std::string_view percent = "N from 0 to 100";
  constexpr std::string_view of_fronts =
      "THETA from 0 to 1.2, READS from 0 to 1, BYTES from 1 to 4096";
  static constexpr std::array<numbered_kind, 10> all{{
      {"multi-get:N", "N from 1 to 64", "100 % read, N keys with one call where the index has one"},
      {"multi-upsert:N", "N from 1 to 64",
       "insert every key, N keys with one call where the index has one"},
      {"mix:N", percent, "N % read, the rest update"},
      {"insert-mix:N", percent, "N % insert, the rest read"},
      {"put:THETA", "THETA from 0 to 1.2",
       "50 % get, 50 % insert or update, Zipf keys, into an empty map"},
      {"eunomia:THETA[:READS[:BYTES]]", of_fronts,
       "paper 003's released benchmark: batches of 20 new keys at 20 fronts, Zipf over the fronts; "
       "READS: share of look-ups (default 0.2); BYTES: size of a value (default 100)"},
      {"eunomia-common:THETA[:READS[:BYTES]]", of_fronts,
       "as eunomia, with counters that the threads share"},
      {"eunomia-grown:THETA[:READS[:BYTES]]", of_fronts, "as eunomia, into a tree of six levels"},
      {"eunomia-apart:THETA[:READS[:BYTES]]", of_fronts,
       "as eunomia, with each key of one thread, and neighbouring keys of different threads"},
      {"eunomia-list:THETA[:READS[:BYTES]]", "THETA and READS from 0 to 1, BYTES from 1 to 4096",
       "as eunomia-apart, for skip lists: THETA is the share of one hot front"},
  }};
  return all;
}

std::optional<key_order> parse_key_order(std::string_view text) {
  const auto found = std::find(order_names.begin(), order_names.end(), text);
  if (found == order_names.end()) return std::nullopt;
  return static_cast<key_order>(found - order_names.begin());
}

std::string_view to_string(key_order order) {
  return order_names[static_cast<std::size_t>(order)];
}

std::optional<distribution> parse_distribution(std::string_view text) {
  distribution result;
  result.name = std::string(text);
  if (text == "uniform") return result;
  constexpr std::string_view zipf = "zipf:";
  constexpr std::string_view hot = "hot:";
  constexpr std::string_view suffix = ":scrambled";
  result.region = text.starts_with(hot);
  if (!result.region && !text.starts_with(zipf)) return std::nullopt;
  text.remove_prefix(result.region ? hot.size() : zipf.size());
  if (!result.region && text.ends_with(suffix)) {
    result.scrambled = true;
    text.remove_suffix(suffix.size());
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result.theta);
  if (text.empty() || error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (!(result.theta >= 0 && result.theta <= (result.region ? 1 : zipf_theta_max)))
    return std::nullopt;
  return result;
}

template <class Key>
request_stream<Key> make_stream(const key_set<Key>& keys, const stream_shape& shape,
                                unsigned thread, unsigned threads) {
  if (shape.what->visits_all_keys()) return make_drain_stream(keys, shape, thread, threads);
  if (shape.what->kind == workload_kind::fronts) {
    if constexpr (std::is_same_v<Key, std::uint64_t>) {
      return make_front_stream(shape, thread, threads,
                               seed_for(shape.seed, purpose::requests, thread));
    }
    throw std::logic_error("fronts have integer keys");  // why_not() has refused them
  }

  const std::size_t count = keys.size();
  const request_mix mixture = mix_of(*shape.what);
  const distribution own{.theta = shape.what->fronts.theta};
  const bool brings_its_own = !shape.what->own_distribution.empty();
  const skew skewed(brings_its_own ? own : shape.where, count,
                    seed_for(shape.seed, purpose::scrambling));
  random_bits bits(seed_for(shape.seed, purpose::requests, thread));
  std::vector<Key> inserted;  // by this stream so far; only d looks back at them
  std::uint64_t fresh_keys = 0;
  const std::uint64_t length_choices = shape.scan_length_max - shape.scan_length_min + 1;

  const auto append_existing = [&](request_stream<Key>& stream, request_kind kind) {
    std::size_t rank = skewed.draw(bits);
    if (shape.what->kind == workload_kind::d) {
      // The rank counts back in time: first this thread's own inserts, then the loaded keys.
      if (rank < inserted.size()) return stream.append(kind, inserted[inserted.size() - 1 - rank]);
      rank = keys.load_rank(count - 1 - (rank - inserted.size()));
    } else {
      rank = skewed.place(rank);
    }
    if (kind == request_kind::scan) {
      return stream.append_scan(
          keys.at(rank),
          shape.scan_length_min + static_cast<std::uint32_t>(bits.below(length_choices)));
    }
    stream.append(kind, keys.at(rank));
  };

  request_stream<Key> stream;
  stream.reserve(shape.requests, 0);
  stream.set_keys_at_once(shape.what->keys_at_once);
  for (std::uint64_t i = 0; i < shape.requests && stream.bytes() < stream_bytes_max; ++i) {
    const request_kind kind =
        bits.below(100) < mixture.common_percent ? mixture.common : mixture.other;
    if (kind != request_kind::insert) {
      append_existing(stream, kind);
      continue;
    }
    const Key key = keys.fresh(thread, fresh_keys++, bits);
    stream.append(kind, key);
    if (shape.what->kind == workload_kind::d) inserted.push_back(key);
  }
  return stream;
}

template <class Key>
std::vector<request_stream<Key>> make_streams(const key_set<Key>& keys, const stream_shape& shape,
                                              unsigned threads) {
  std::vector<request_stream<Key>> streams(threads);
  const unsigned makers = std::min(threads, std::max(1U, std::thread::hardware_concurrency()));
  std::vector<std::future<void>> pending;
  pending.reserve(makers);
  for (unsigned maker = 0; maker < makers; ++maker) {
    pending.push_back(std::async(std::launch::async, [&, maker] {
      for (unsigned t = maker; t < threads; t += makers)
        streams[t] = make_stream(keys, shape, t, threads);
    }));
  }
  for (auto& one : pending) one.get();
  return streams;
}

template request_stream<std::uint64_t> make_stream(const key_set<std::uint64_t>&,
                                                   const stream_shape&, unsigned, unsigned);
template request_stream<std::string> make_stream(const key_set<std::string>&, const stream_shape&,
                                                 unsigned, unsigned);
template std::vector<request_stream<std::uint64_t>> make_streams(const key_set<std::uint64_t>&,
                                                                 const stream_shape&, unsigned);
template std::vector<request_stream<std::string>> make_streams(const key_set<std::string>&,
                                                               const stream_shape&, unsigned);

}  // namespace elidex::bench
