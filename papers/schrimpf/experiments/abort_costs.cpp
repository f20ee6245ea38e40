// What an abort leaves behind in the caches: paper 004 appendix D.1, figures D.1 to D.4. One
// thread; y: cycles.
//
// The thesis expects that an abort throws all lines of the transaction out of the L1, so that
// touching the whole array again would cost more than touching one element as often, and measures
// no difference.

#include <cstddef>
#include <functional>
#include <memory>

#include "elidex/htm.hpp"
#include "papers/schrimpf/experiments/experiment.hpp"

namespace elidex::bench {
namespace {

constexpr std::size_t line = 64;
constexpr std::size_t array_bytes = 1024;             // figure D.1
constexpr std::size_t elements = array_bytes / line;  // one a line: 16

struct alignas(line) element {
  volatile unsigned char byte;
};

void write_all(element* array) {
  for (std::size_t i = 0; i < elements; ++i) array[i].byte = 1;
}
void write_one(element* array) {
  for (std::size_t i = 0; i < elements; ++i) array[0].byte = 1;
}

template <class Body>
std::uint64_t cycles_of(Body body) {
  const std::uint64_t begin = host::now();
  body();
  return host::now() - begin;
}

// Figure D.1: writing an array of 1 KB after all caches hold something else, and once more.
std::vector<series> figure_d_1(const host::machine& which, const experiment_scale& scale) {
  const auto array = std::make_unique<element[]>(elements);
  const std::size_t others = more_than_the_caches() / line;
  const auto other = std::make_unique<element[]>(others);
  std::uint64_t cold = 0, warm = 0;
  host::run(which, {.seed = scale.seed}, {[&] {
              write_all(array.get());  // its pages are there
              for (std::size_t i = 0; i < others; ++i) other[i].byte = 1;
              cold = cycles_of([&] { write_all(array.get()); });
              warm = cycles_of([&] { write_all(array.get()); });
            }});
  return {{"cold cache", {{0, static_cast<double>(cold)}}},
          {"warm cache", {{0, static_cast<double>(warm)}}}};
}

// Cycles of each of ten executions in a row, from begin() to its second return or to the end of the
// plain writes.
std::vector<std::uint64_t> executions(const host::machine& which, std::uint64_t seed,
                                      void (*write)(element*), bool aborting) {
  constexpr std::size_t times = 10;
  const auto array = std::make_unique<element[]>(elements);
  std::vector<std::uint64_t> cycles(times);
  host::run(which, {.seed = seed}, {[&] {
              write_all(array.get());  // in the L1
              for (std::uint64_t& c : cycles) {
                c = cycles_of([&] {
                  if (!aborting) {
                    write(array.get());
                  } else if (htm::begin().started()) {
                    write(array.get());
                    htm::abort<1>();
                  }
                });
              }
            }});
  return cycles;
}

// Figures D.2 and D.3, which the thesis expects, and the cycles of each execution without a
// transaction for comparison.
std::vector<series> figure_d_2(const host::machine& which, const experiment_scale& scale) {
  std::vector<series> all;
  const auto add = [&](const char* name, void (*write)(element*), bool aborting) {
    series& s = all.emplace_back(series{name, {}});
    double execution = 0;
    for (const std::uint64_t c : executions(which, scale.seed, write, aborting)) {
      s.points.emplace_back(++execution, static_cast<double>(c));
    }
  };
  add("all elements, aborted", write_all, true);
  add("one element, aborted", write_one, true);
  add("all elements, no transaction", write_all, false);
  add("one element, no transaction", write_one, false);
  return all;
}

// Figure D.4: the executions after the first abort.
std::vector<series> figure_d_4(const host::machine& which, const experiment_scale& scale) {
  const auto mean = [&](void (*write)(element*)) {
    const std::vector<std::uint64_t> cycles = executions(which, scale.seed, write, true);
    double sum = 0;
    for (std::size_t i = 1; i < cycles.size(); ++i) sum += static_cast<double>(cycles[i]);
    return sum / static_cast<double>(cycles.size() - 1);
  };
  return {{"all elements", {{0, mean(write_all)}}}, {"one element", {{0, mean(write_one)}}}};
}

}  // namespace

std::vector<experiment> abort_costs() {
  return {{"S-D.1", figure_d_1}, {"S-D.2", figure_d_2}, {"S-D.4", figure_d_4}};
}

}  // namespace elidex::bench
