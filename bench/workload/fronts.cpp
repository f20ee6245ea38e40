#include "bench/workload/fronts.hpp"

#include <array>
#include <charconv>
#include <map>
#include <mutex>
#include <stdexcept>

#include "bench/workload/zipf.hpp"

namespace elidex::bench {
namespace {

// The front that eunomia-list heats, in the middle of all.
constexpr unsigned hot_front = front_count / 2;

// Removes the next number, and a colon in front of it unless it is the `first`.
template <class Number>
bool take_number(std::string_view& text, bool first, Number& number) {
  if (!first) {
    if (!text.starts_with(':')) return false;
    text.remove_prefix(1);
  }
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

// The numbers behind a name's colon. Returns false if they are not what the name takes.
bool read_shape(std::string_view numbers, bool theta_only, front_shape& shape) {
  if (!take_number(numbers, true, shape.theta)) return false;
  const double theta_max = shape.hot_front ? 1 : zipf_theta_max;
  if (!(shape.theta >= 0 && shape.theta <= theta_max)) return false;
  if (theta_only || numbers.empty()) return numbers.empty();
  if (!take_number(numbers, false, shape.read_share)) return false;
  if (!(shape.read_share >= 0 && shape.read_share <= 1)) return false;
  if (numbers.empty()) return true;
  if (!take_number(numbers, false, shape.value_bytes)) return false;
  return numbers.empty() && shape.value_bytes > 0 && shape.value_bytes <= value_bytes_max;
}

std::string description_of(const workload& one) {
  if (one.kind == workload_kind::put) return "50 % get, 50 % insert or update, into an empty map";
  const front_shape& f = one.fronts;
  std::string released = "paper 003's released benchmark";
  if (f.common_counters) return released + ", with common counters";
  if (f.grown) return released + ", into a tree of six levels";
  if (f.hot_front) return released + ", with interleaved keys and one hot front";
  if (f.interleaved) return released + ", with interleaved keys";
  return released;
}

struct named_workload {
  std::string name;
  std::string description;
  std::string distribution;
  workload what;
};

}  // namespace

const workload* find_front_workload(std::string_view name) {
  const std::size_t colon = name.find(':');
  const std::string_view family = name.substr(0, colon);
  const bool is_put = family == "put";
  front_shape shape{.common_counters = family == "eunomia-common",
                    .grown = family == "eunomia-grown",
                    .interleaved = family == "eunomia-list" || family == "eunomia-apart",
                    .hot_front = family == "eunomia-list"};
  if (colon == name.npos ||
      !(is_put || family == "eunomia" || shape.common_counters || shape.grown || shape.interleaved))
    return nullptr;
  if (!read_shape(name.substr(colon + 1), is_put, shape)) return nullptr;

  // A user keeps a pointer, so each is made once and stays.
  static std::mutex mutex;
  static std::map<std::string, named_workload, std::less<>> made;
  const std::lock_guard guard(mutex);
  const auto [at, is_new] = made.try_emplace(std::string(name));
  named_workload& one = at->second;
  if (!is_new) return &one.what;
  one.name = name;
  const std::string_view numbers = name.substr(colon + 1);
  one.distribution =
      (shape.hot_front ? "hot:" : "zipf:") + std::string(numbers.substr(0, numbers.find(':')));
  one.what = {.kind = is_put ? workload_kind::put : workload_kind::fronts,
              .name = one.name,
              .description = {},
              .inserts = true,
              .erases = false,
              .scans = false,
              .fronts = shape,
              .own_distribution = one.distribution};
  one.description = description_of(one.what);
  one.what.description = one.description;
  return &one.what;
}

request_stream<std::uint64_t> make_front_stream(const stream_shape& shape, unsigned thread,
                                                unsigned threads, std::uint64_t seed) {
  const front_shape& fronts = shape.what->fronts;
  const zipf_ranks entities(front_count, fronts.hot_front ? 0 : fronts.theta);
  random_bits bits(seed);
  const std::uint64_t step = fronts.common_counters ? threads : 1;
  std::array<std::uint64_t, front_count> counters{};
  counters.fill((fronts.grown ? grown_places : 0) + (fronts.common_counters ? thread : 0));

  request_stream<std::uint64_t> stream;
  stream.reserve(shape.requests + front_batch);
  while (stream.size() < shape.requests && stream.bytes() < stream_bytes_max) {
    if (bits.unit() < fronts.read_share) {
      stream.append(request_kind::look, key_below_all_fronts);
      continue;
    }
    const bool hot = fronts.hot_front && bits.unit() < fronts.theta;
    const auto front = hot ? hot_front : static_cast<unsigned>(entities.draw(bits));
    const std::uint64_t place = counters[front];
    counters[front] += step;
    for (unsigned i = 0; i < front_batch; ++i) {
      stream.append(request_kind::store,
                    fronts.interleaved
                        ? front_key(front, place, i * threads + thread, front_batch * threads)
                        : front_key(front, place, i));
    }
  }
  stream.make_room(fronts.value_bytes);
  return stream;
}

template <>
request_stream<std::uint64_t> make_grown_stream(const workload& what) {
  request_stream<std::uint64_t> stream;
  if (!what.fronts.grown) return stream;
  stream.reserve(front_count * grown_places * front_batch);
  for (unsigned front = 0; front < front_count; ++front) {
    for (std::uint64_t place = 0; place < grown_places; ++place) {
      for (unsigned i = 0; i < front_batch; ++i)
        stream.append(request_kind::store, front_key(front, place, i));
    }
  }
  stream.make_room(what.fronts.value_bytes);
  return stream;
}

template <>
request_stream<std::string> make_grown_stream(const workload& /*what*/) {
  return {};  // fronts have integer keys
}

}  // namespace elidex::bench
