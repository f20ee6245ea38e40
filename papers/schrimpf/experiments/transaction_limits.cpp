// How large, how long and how deep a transaction can be: paper 004 sections 3.2.1 to 3.2.4 and
// appendix C.2, on one hardware thread. Each point is the share of transactions that abort.
//
// Each attempt is a run of its own with another seed, so that physical pages and the timer lie
// elsewhere each time, as they do from process to process.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <new>

#include "elidex/htm.hpp"
#include "papers/schrimpf/experiments/experiment.hpp"

namespace elidex::bench {

namespace {

constexpr std::size_t cache_line = 64;
constexpr std::size_t page = 4096;
constexpr double bytes_per_kb = 1024;

// An array of bytes that begins with a page.
class pages {
 public:
  explicit pages(std::size_t bytes)
      : bytes_((bytes + page - 1) / page * page),
        at_(static_cast<unsigned char*>(::operator new(bytes_, std::align_val_t{page}))) {}
  ~pages() { ::operator delete(at_, std::align_val_t{page}); }
  pages(const pages&) = delete;
  pages& operator=(const pages&) = delete;

  unsigned char* data() const { return at_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  unsigned char* at_;
};

// The share, in per cent, of transactions around `body` that abort; `prepare` runs before each.
template <class Prepare, class Body>
double aborted_pct(const host::machine& which, std::uint64_t attempts, std::uint64_t seed,
                   Prepare prepare, Body body) {
  std::uint64_t aborted = 0;
  for (std::uint64_t i = 0; i < attempts; ++i) {
    host::run(which, {.seed = seed + i}, {[&] {
                prepare();
                if (htm::begin().started()) {
                  body();
                  htm::commit();
                } else {
                  ++aborted;
                }
              }});
  }
  return 100 * static_cast<double>(aborted) / static_cast<double>(attempts);
}

// The thesis compiled without optimisation, so its loop over bytes takes some cycles for each; the
// machine is shown one access to each line and the time that the others take. Chosen: 2 cycles a
// byte (a loop of four instructions).
constexpr std::uint64_t cycles_per_byte = 2;

enum class access : bool { read, write };

void visit_lines(unsigned char* from, std::size_t bytes, access how) {
  for (std::size_t i = 0; i < bytes; i += cache_line) {
    if (how == access::write) {
      *const_cast<volatile unsigned char*>(from + i) = 1;
    } else {
      static_cast<void>(*const_cast<volatile unsigned char*>(from + i));
    }
    host::spend(cycles_per_byte * (std::min(cache_line, bytes - i) - 1));
  }
}

// Figures 3.1 and 3.2.
std::vector<series> sizes(const host::machine& which, const experiment_scale& scale, access how,
                          std::size_t largest, std::size_t step, std::uint64_t attempts) {
  std::vector<series> both{{"initialized", {}}, {"uninitialized", {}}};
  const pages array(largest);
  for (std::size_t bytes = 0; bytes <= largest; bytes += step) {
    for (const bool initialised : {true, false}) {
      const auto prepare = [&] {
        if (initialised) {
          visit_lines(array.data(), bytes, access::write);
        } else {
          host::unmap_pages(array.data(), array.bytes());
        }
      };
      const double y = aborted_pct(which, attempts, scale.seed, prepare,
                                   [&] { visit_lines(array.data(), bytes, how); });
      both[initialised ? 0 : 1].points.emplace_back(static_cast<double>(bytes) / bytes_per_kb, y);
    }
  }
  return both;
}

std::vector<series> figure_3_1(const host::machine& which, const experiment_scale& scale) {
  return sizes(which, scale, access::write, 40'000, 1'000, scale.times(10, 100));
}
std::vector<series> figure_3_2(const host::machine& which, const experiment_scale& scale) {
  return sizes(which, scale, access::read, 1'300'000, scale.full ? 10'000 : 50'000,
               scale.times(20, 100));
}

// Figures 3.5 and 3.6: every n-th element of an array is written; the size is that of the elements
// written.
std::vector<series> strides(const host::machine& which, const experiment_scale& scale,
                            std::size_t element_bytes, std::size_t first_byte) {
  constexpr std::size_t largest = 35 * 1024;
  constexpr std::size_t lines_per_step = 15;  // as the figure's points lie
  std::vector<series> all;
  constexpr std::size_t step_max = 5;
  const pages array(step_max * (largest / cache_line + 1) * element_bytes + page);
  for (std::size_t step = 1; step <= step_max; ++step) {
    series& s = all.emplace_back(series{"step size " + std::to_string(step), {}});
    for (std::size_t elements = 0; elements * cache_line <= largest; elements += lines_per_step) {
      const auto write_all = [&](std::size_t shift) {
        for (std::size_t i = 0; i < elements; ++i) {
          *const_cast<volatile unsigned char*>(array.data() + shift + first_byte +
                                               i * step * element_bytes) = 1;
        }
      };
      std::uint64_t attempt = 0;
      std::size_t shift = 0;
      const auto prepare = [&] {
        // Where a heap array begins in its page differs from process to process.
        shift = element_bytes == cache_line ? 0 : ++attempt * 16 * 7 % (page / 2);
        write_all(shift);
      };
      const double y =
          aborted_pct(which, scale.times(5, 50), scale.seed, prepare, [&] { write_all(shift); });
      s.points.emplace_back(static_cast<double>(elements * cache_line) / bytes_per_kb, y);
    }
  }
  return all;
}

std::vector<series> figure_3_5(const host::machine& which, const experiment_scale& scale) {
  return strides(which, scale, cache_line, 0);
}
// Objects of 64 bytes that glibc's malloc has put one after the other: each has a header of 16
// bytes.
std::vector<series> figure_3_6(const host::machine& which, const experiment_scale& scale) {
  constexpr std::size_t malloc_header = 16;
  return strides(which, scale, cache_line + malloc_header, malloc_header);
}

// Figure 3.7: nothing but time passes. x: iterations of a loop around a nop, of a cycle each
// (thesis/README.md).
std::vector<series> figure_3_7(const host::machine& which, const experiment_scale& scale) {
  series s{"nop loop (RTM)", {}};
  double cycles = 10'000;
  for (int k = 0; k <= 54; ++k, cycles *= 1.15) {
    if (!scale.full && k % 3 != 0) continue;
    const double y = aborted_pct(
        which, scale.times(300, 3'000), scale.seed, [] {},
        [&] { host::spend(static_cast<std::uint64_t>(cycles)); });
    s.points.emplace_back(cycles, y);
  }
  return {s};
}

// Figure 3.8. x: regions inside the outermost one.
std::vector<series> figure_3_8(const host::machine& which, const experiment_scale& scale) {
  series s{"RTM nesting", {}};
  for (int depth = 0; depth <= 9; ++depth) {
    const double y = aborted_pct(
        which, scale.times(20, 100), scale.seed, [] {},
        [&] {
          for (int i = 0; i < depth; ++i) static_cast<void>(htm::begin());
          for (int i = 0; i < depth; ++i) htm::commit();
        });
    s.points.emplace_back(depth, y);
  }
  return {s};
}

// Random numbers for one attempt. What a region draws is rolled back when it aborts, so each
// attempt has to begin somewhere else before its region.
class random_places {
 public:
  explicit random_places(std::uint64_t seed) : state_(seed) {}
  void begin_elsewhere() { state_ += 0x9e3779b97f4a7c15; }
  std::uint64_t below(std::uint64_t bound) {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    return (state_ >> 33) % bound;
  }

 private:
  std::uint64_t state_;
};

// Appendix C.2.2 (figure C.2): as figures 3.1 and 3.2, but every access goes to a random place of
// the array. No digitised figure exists.
std::vector<series> figure_c_2(const host::machine& which, const experiment_scale& scale) {
  constexpr std::size_t largest = 64 * 1024;
  std::vector<series> both{{"random write", {}}, {"random read", {}}};
  const pages array(largest);
  for (std::size_t accesses = 0; accesses <= 1'024; accesses += 64) {
    for (const access how : {access::write, access::read}) {
      random_places places(scale.seed);
      const auto prepare = [&] {
        places.begin_elsewhere();
        visit_lines(array.data(), largest, access::write);
      };
      const double y = aborted_pct(which, scale.times(20, 100), scale.seed, prepare, [&] {
        random_places here = places;
        for (std::size_t i = 0; i < accesses; ++i)
          visit_lines(array.data() + here.below(largest), 1, how);
      });
      both[how == access::write ? 0 : 1].points.emplace_back(static_cast<double>(accesses), y);
    }
  }
  return both;
}

#if defined(ELIDEX_SIMULATED)  // half of the ways
// Figure 7 of paper 001, on the machine instead of by the model: the share of transactions that
// cannot write so many lines at random places, with all ways of the L1 and with the half that a
// busy hyperthread sibling leaves.
std::vector<series> figure_7_of_001(const host::machine& which, const experiment_scale& scale) {
  std::vector<series> both;
  const pages array(std::size_t{1} << 20);
  const std::size_t lines_of_array = array.bytes() / cache_line;
  for (const std::uint64_t divisor : {1u, 2u}) {
    host::machine halved = which;
    halved.l1_ways /= divisor;
    series& s = both.emplace_back(series{std::to_string(halved.l1_ways) + " ways, machine", {}});
    for (const std::size_t lines : {20u, 47u, 53u, 93u, 120u, 160u, 200u, 213u, 260u, 320u}) {
      random_places places(scale.seed);
      const auto attempt = [&] {
        random_places here = places;
        for (std::size_t i = 0; i < lines; ++i) {
          *const_cast<volatile unsigned char*>(array.data() +
                                               here.below(lines_of_array) * cache_line) = 1;
        }
      };
      const double y = aborted_pct(
          halved, scale.times(200, 2'000), scale.seed, [&] { places.begin_elsewhere(); }, attempt);
      s.points.emplace_back(static_cast<double>(lines), y / 100);
    }
  }
  return both;
}
#endif

// Appendix C.1: allocation inside a transaction. x: bytes; on the stack, from the allocator's free
// lists, and with new pages.
std::vector<series> appendix_c_1(const host::machine& which, const experiment_scale& scale) {
  std::vector<series> all{{"stack", {}}, {"heap, recycled", {}}, {"heap, new pages", {}}};
  for (const std::size_t bytes : {16u, 256u, 4'096u, 65'536u, 1'048'576u}) {
    const auto allocate = [&] { ::operator delete(::operator new(bytes)); };
    const auto x = static_cast<double>(bytes);
    all[0].points.emplace_back(x, aborted_pct(
                                      which, scale.times(5, 50), scale.seed, [] {},
                                      [] {
                                        volatile char buffer[256];
                                        buffer[0] = 1;
                                        static_cast<void>(buffer[0]);
                                      }));
    all[1].points.emplace_back(
        x, aborted_pct(which, scale.times(5, 50), scale.seed, allocate, allocate));
    std::size_t larger = bytes;
    all[2].points.emplace_back(x, aborted_pct(
                                      which, scale.times(5, 50), scale.seed, [] {},
                                      [&] {
                                        larger += 65'536;  // a size that was not freed before
                                        ::operator delete(::operator new(larger));
                                      }));
  }
  return all;
}

// Section 3.3.3: how many items of a list, each in a line of its own, a transaction can walk over.
std::vector<series> list_items(const host::machine& which, const experiment_scale& scale) {
  struct alignas(cache_line) item {
    item* next = nullptr;
    volatile std::uint64_t value = 0;
  };
  std::vector<series> both{{"read", {}}, {"written", {}}};
  constexpr std::size_t most = 8'192;
  const auto list = std::make_unique<item[]>(most);
  for (std::size_t i = 0; i + 1 < most; ++i) list[i].next = &list[i + 1];
  for (std::size_t items = 128; items <= most; items += items < 1'024 ? 64 : 1'024) {
    for (const bool writes : {false, true}) {
      const auto walk = [&](bool writing) {
        const item* last = nullptr;
        std::size_t left = items;
        for (item* at = list.get(); left-- > 0; at = at->next) {
          if (writing) at->value = 1;
          last = at;
        }
        static_cast<void>(last->value);
      };
      both[writes ? 1 : 0].points.emplace_back(
          static_cast<double>(items),
          aborted_pct(
              which, scale.times(10, 100), scale.seed, [&] { walk(true); }, [&] { walk(writes); }));
    }
  }
  return both;
}

}  // namespace

std::vector<experiment> transaction_limits() {
  return {
      {"S-3.1", figure_3_1},     {"S-3.2", figure_3_2},   {"S-3.5", figure_3_5},
      {"S-3.6", figure_3_6},     {"S-3.7", figure_3_7},   {"S-3.8", figure_3_8},
      {"S-C.2", figure_c_2},     {"S-C.1", appendix_c_1}, {"S-3.3.3", list_items},
#if defined(ELIDEX_SIMULATED)
      {"K-F7", figure_7_of_001},
#endif
  };
}

}  // namespace elidex::bench
