// Locks: what taking one costs, how the ways of spinning compare, how many can be elided at once,
// and why a region must read the lock. paper 004 sections 2.4, 3.1, 3.2.4, 3.2.5 and appendix C.3.

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>

#include "elidex/elided.hpp"
#include "elidex/htm.hpp"
#include "elidex/internal/sync/pause.hpp"
#include "elidex/internal/sync/spin_locks.hpp"
#include "papers/karnagel/hle_lock.hpp"
#include "papers/karnagel/posix_mutex.hpp"
#include "papers/schrimpf/experiments/experiment.hpp"
#include "papers/schrimpf/structures/locks.hpp"

namespace elidex::bench {

using namespace internal;

namespace {

// What the thesis measures for "no synchronization" in figures 3.10 and C.4: the cost of its clock.
// Added to ours, so that the percentages have the same base.
constexpr double clock_cycles = 34.28;

// Cycles for one lock and unlock around `body`, on one thread.
template <class Lock, class Body>
double cycles_per_section(const host::machine& which, std::uint64_t seed, Body body) {
  constexpr std::uint64_t sections = 1'000;
  Lock lock;
  host::run_options options{.seed = seed};
  std::uint64_t cycles = 0;
  host::run(which, options, {[&] {
              for (int warm_up = 0; warm_up < 10; ++warm_up) {
                const std::lock_guard guard(lock);
                body();
              }
              const std::uint64_t begin = host::now();
              for (std::uint64_t i = 0; i < sections; ++i) {
                const std::lock_guard guard(lock);
                body();
              }
              cycles = host::now() - begin;
            }});
  return static_cast<double>(cycles) / static_cast<double>(sections);
}

struct no_lock {
  void lock() noexcept {}
  void unlock() noexcept {}
};

// RTM as the thesis uses it in this figure: begin and commit, no lock word and no statistics.
struct bare_region {
  void lock() noexcept {
    while (!htm::begin().started()) cpu_pause();
  }
  void unlock() noexcept { htm::commit(); }
};

// The thesis's HLE lock: the prefixed exchange alone.
struct bare_hle {
  std::atomic<std::uint32_t> word{0};
  void lock() noexcept {
    while (htm::hle_exchange_acquire(word, 1) != 0) cpu_pause();
  }
  void unlock() noexcept { htm::hle_store_release(word, 0); }
};

template <class Body>
std::vector<series> overheads(const host::machine& which, const experiment_scale& scale,
                              Body body) {
  const auto point = [](double y) {
    return std::vector<std::pair<double, double>>{{0, clock_cycles + y}};
  };
  return {
      {"POSIX", point(cycles_per_section<std::mutex>(which, scale.seed, body))},
      {"TAS", point(cycles_per_section<ttas_lock>(which, scale.seed, body))},
      {"HLE", point(cycles_per_section<bare_hle>(which, scale.seed, body))},
      {"RTM", point(cycles_per_section<bare_region>(which, scale.seed, body))},
      {"elided<ttas_lock>", point(cycles_per_section<elided<ttas_lock>>(which, scale.seed, body))},
      {"no synchronization", point(cycles_per_section<no_lock>(which, scale.seed, body))}};
}

std::vector<series> figure_3_10(const host::machine& which, const experiment_scale& scale) {
  return overheads(which, scale, [] {});
}
std::vector<series> figure_c_3(const host::machine& which, const experiment_scale& scale) {
  constexpr std::size_t array_bytes = 1024;
  const std::vector<unsigned char> memory(array_bytes);
  const volatile unsigned char* const array = memory.data();
  return overheads(which, scale, [=] {
    unsigned sum = 0;
    // chosen: eight bytes an access
    for (std::size_t i = 0; i < array_bytes; i += 8) sum += array[i];
    static_cast<void>(sum);
  });
}

#if defined(ELIDEX_SIMULATED)  // a CPU does not tell the program which HLE elisions abort
// So many locks held at once by one thread. y: aborted of transactional cycles, in per cent.
template <class Lock>
series held_together(const host::machine& which, const experiment_scale& scale,
                     const std::string& name) {
  series s{name, {}};
  std::array<own_lines<Lock>, 20> locks;
  for (std::size_t held = 1; held <= locks.size(); ++held) {
    const host::report r = host::run(which, {.seed = scale.seed}, {[&] {
                                       for (int i = 0; i < 200; ++i) {
                                         for (std::size_t n = 0; n < held; ++n)
                                           locks[n].lock.lock();
                                         for (std::size_t n = held; n-- > 0;)
                                           locks[n].lock.unlock();
                                       }
                                     }});
    const host::thread_report all = r.total();
    const double y = all.transactional_cycles == 0
                         ? 0
                         : 100 * static_cast<double>(all.aborted_cycles) /
                               static_cast<double>(all.transactional_cycles);
    s.points.emplace_back(static_cast<double>(held), y);
  }
  return s;
}

std::vector<series> figure_3_9(const host::machine& which, const experiment_scale& scale) {
  return {held_together<bare_hle>(which, scale, "HLE nested mutexes")};
}
// With the thesis's workaround (listing 3.10) beside it.
std::vector<series> figure_3_9_workaround(const host::machine& which,
                                          const experiment_scale& scale) {
  return {held_together<bare_hle>(which, scale, "HLE nested mutexes"),
          held_together<nestable_hle>(which, scale, "workaround")};
}
#endif

// --- section 2.4: four threads ---

constexpr unsigned spinners = 4;

enum class spin_on : std::uint8_t { exchange_only, test_first };

template <class Word>
struct spin_word {
  alignas(64) std::atomic<Word> word{0};

  template <spin_on How>
  void lock() noexcept {
    for (;;) {
      if constexpr (How == spin_on::test_first) {
        // no partner: the exchange decides
        while (word.load(std::memory_order_relaxed) != 0) cpu_pause();
      }
      if (word.exchange(1, std::memory_order_acquire) == 0) return;  // pairs with unlock()
      cpu_pause();
    }
  }
  void unlock() noexcept { word.store(0, std::memory_order_release); }  // pairs with lock()
};

// The elided forms, with the prefix on the exchange; the word is 4 bytes (figure 2.4).
struct hle_spin {
  alignas(64) std::atomic<std::uint32_t> word{0};

  template <spin_on How>
  void lock() noexcept {
    for (;;) {
      if constexpr (How == spin_on::test_first) {
        // no partner: the exchange decides
        while (word.load(std::memory_order_relaxed) != 0) cpu_pause();
      }
      if (htm::hle_exchange_acquire(word, 1) == 0) return;
      cpu_pause();
    }
  }
  void unlock() noexcept { htm::hle_store_release(word, 0); }
};

// Milliseconds that four threads take for so many sections each, on a random one of `count` locks.
template <class Lock, spin_on How>
double milliseconds(const host::machine& which, std::uint64_t seed, std::size_t count,
                    std::uint64_t sections, std::uint64_t held_cycles) {
  const auto locks = std::make_unique<Lock[]>(count);
  std::vector<std::function<void()>> bodies;
  for (unsigned t = 0; t < spinners; ++t) {
    bodies.emplace_back([&, t] {
      std::uint64_t state = seed * 1'000 + t;
      for (std::uint64_t i = 0; i < sections * times_longer; ++i) {
        state = state * 6364136223846793005 + 1442695040888963407;
        Lock& lock = locks[(state >> 33) % count];
        lock.template lock<How>();
        if (held_cycles != 0) host::spend(held_cycles);
        lock.unlock();
      }
    });
  }
  const host::report r = host::run(which, {.seed = seed}, bodies);
  return static_cast<double>(r.cycles) /
         (static_cast<double>(which.megahertz * times_longer) * 1e3);
}

template <class Lock>
std::vector<series> spinning(const host::machine& which, const experiment_scale& scale,
                             std::size_t locks, const std::vector<std::uint64_t>& sections,
                             std::uint64_t held_cycles) {
  std::vector<series> both{{"TAS", {}}, {"TAS-T", {}}};
  for (const std::uint64_t n : sections) {
    const auto x = static_cast<double>(n);
    both[0].points.emplace_back(
        x, milliseconds<Lock, spin_on::exchange_only>(which, scale.seed, locks, n, held_cycles));
    both[1].points.emplace_back(
        x, milliseconds<Lock, spin_on::test_first>(which, scale.seed, locks, n, held_cycles));
  }
  return both;
}

// Figure 2.5: a hundred locks, unlocked at once.
std::vector<series> figure_2_5(const host::machine& which, const experiment_scale& scale) {
  return spinning<hle_spin>(which, scale, 100, {1'000, 5'500, 10'000}, 0);
}
// Figure 2.6: one lock, held for nop_sleep(1000), that is 750,000 nops of about a quarter of a
// cycle each.
std::vector<series> figure_2_6(const host::machine& which, const experiment_scale& scale) {
  constexpr std::uint64_t held_cycles = 750'000 / 4;
  return spinning<hle_spin>(which, scale, 1, {10, 55, 100}, held_cycles);
}
// Figure 2.7: test-then-set with and without the prefix. (Test-and-set and exchange are the same
// instruction here.)
std::vector<series> figure_2_7(const host::machine& which, const experiment_scale& scale) {
  std::vector<series> both{{"TAS", {}}, {"HLE TAS", {}}};
  for (const std::uint64_t n : {1'000u, 5'500u, 10'000u}) {
    both[0].points.emplace_back(n, milliseconds<spin_word<std::uint32_t>, spin_on::test_first>(
                                       which, scale.seed, 100, n, 0));
    both[1].points.emplace_back(
        n, milliseconds<hle_spin, spin_on::test_first>(which, scale.seed, 100, n, 0));
  }
  return both;
}

// Figure 2.4: sections per millisecond by the lock word's type. The machine elides words of any
// size alike, and HLE is an affair of 4 bytes in this library; so the other sizes run without it.
std::vector<series> figure_2_4(const host::machine& which, const experiment_scale& scale) {
  constexpr std::uint64_t sections = 2'000;
  const auto rate = [&](double ms) {
    return static_cast<double>(spinners * sections) / ms / 1'000;
  };
  std::vector<series> all{{"uchar(1)", {}}, {"ushort(2)", {}}, {"unsigned(4)", {}}, {"ull(8)", {}}};
  for (const std::size_t locks : {1u, 10u, 100u}) {
    const auto x = static_cast<double>(locks);
    constexpr auto how = spin_on::test_first;
    all[0].points.emplace_back(
        x, rate(milliseconds<spin_word<std::uint8_t>, how>(which, scale.seed, locks, sections, 0)));
    all[1].points.emplace_back(x, rate(milliseconds<spin_word<std::uint16_t>, how>(
                                      which, scale.seed, locks, sections, 0)));
    all[2].points.emplace_back(
        x, rate(milliseconds<hle_spin, how>(which, scale.seed, locks, sections, 0)));
    all[3].points.emplace_back(x, rate(milliseconds<spin_word<std::uint64_t>, how>(
                                      which, scale.seed, locks, sections, 0)));
  }
  return all;
}

// Appendix C.4 (figure C.7): a hundred HLE locks, each thread on all of them or on a part of its
// own. y: milliseconds. No digitised figure exists.
std::vector<series> figure_c_7(const host::machine& which, const experiment_scale& scale) {
  constexpr std::size_t locks_count = 100;
  std::vector<series> both{{"all locks", {}}, {"partitioned", {}}};
  for (const std::uint64_t sections : {1'000u, 5'500u, 10'000u}) {
    for (const bool partitioned : {false, true}) {
      const auto locks = std::make_unique<hle_spin[]>(locks_count);
      std::vector<std::function<void()>> bodies;
      for (unsigned t = 0; t < spinners; ++t) {
        bodies.emplace_back([&, t] {
          constexpr std::size_t part = locks_count / spinners;
          std::uint64_t state = scale.seed * 1'000 + t;
          for (std::uint64_t i = 0; i < sections * times_longer; ++i) {
            state = state * 6364136223846793005 + 1442695040888963407;
            hle_spin& lock =
                locks[partitioned ? t * part + (state >> 33) % part : (state >> 33) % locks_count];
            lock.lock<spin_on::test_first>();
            lock.unlock();
          }
        });
      }
      const host::report r = host::run(which, {.seed = scale.seed}, bodies);
      both[partitioned ? 1 : 0].points.emplace_back(
          sections, static_cast<double>(r.cycles) /
                        (static_cast<double>(which.megahertz * times_longer) * 1e3));
    }
  }
  return both;
}

// What an abort costs: cycles from begin() to its second return, by lines written before. Beside it
// the same transaction with a commit. No figure of the papers.
std::vector<series> abort_cost(const host::machine& which, const experiment_scale& scale) {
  std::vector<series> both{{"aborted", {}}, {"committed", {}}};
  static std::array<std::array<volatile unsigned char, 64>, 256> lines;
  for (const std::size_t written : {0u, 1u, 4u, 16u, 64u, 256u}) {
    for (const bool commits : {false, true}) {
      double cycles = 0;
      host::run(which, {.seed = scale.seed}, {[&] {
                  constexpr int times = 100;
                  for (auto& one : lines) one[0] = 1;  // its page is there
                  const std::uint64_t begin = host::now();
                  for (int i = 0; i < times; ++i) {
                    if (!htm::begin().started()) continue;
                    for (std::size_t n = 0; n < written; ++n) lines[n][0] = 1;
                    if (!commits) htm::abort<1>();
                    htm::commit();
                  }
                  cycles = static_cast<double>(host::now() - begin) / times;
                }});
      both[commits ? 1 : 0].points.emplace_back(static_cast<double>(written), cycles);
    }
  }
  return both;
}

// Section 3.1: half of the threads take the lock, half run regions. y: updates lost, in per cent.
std::vector<series> necessity(const host::machine& which, const experiment_scale& scale) {
  std::vector<series> both{{"lock in the read set", {}}, {"lock not read", {}}};
  constexpr std::uint64_t updates = 500 * times_longer;
  constexpr std::uint64_t held_cycles = 500;  // chosen: longer than a line takes to change hands
  for (const bool reads_lock : {true, false}) {
    struct alignas(64) shared {
      spin_word<std::uint32_t> lock;
      alignas(64) volatile std::uint64_t counter = 0;
    } data;
    std::vector<std::function<void()>> bodies;
    for (unsigned t = 0; t < spinners; ++t) {
      bodies.emplace_back([&, t] {
        for (std::uint64_t i = 0; i < updates; ++i) {
          if (t % 2 == 0) {
            data.lock.lock<spin_on::test_first>();
            const std::uint64_t seen = data.counter;
            host::spend(held_cycles);
            data.counter = seen + 1;
            data.lock.unlock();
          } else {
            for (bool done = false; !done;) {
              if (!htm::begin().started()) {
                cpu_pause();
                continue;
              }
              if (reads_lock && data.lock.word.load() != 0) {
                htm::abort<htm::code_lock_busy>();
              }
              const std::uint64_t seen = data.counter;
              host::spend(held_cycles);
              data.counter = seen + 1;
              htm::commit();
              done = true;
            }
          }
        }
      });
    }
    host::run(which, {.seed = scale.seed}, bodies);
    const double expected = static_cast<double>(spinners * updates);
    both[reads_lock ? 0 : 1].points.emplace_back(
        0, 100 * (expected - static_cast<double>(data.counter)) / expected);
  }
  return both;
}

}  // namespace

std::vector<experiment> lock_overheads() {
  return {{"S-2.4", figure_2_4, spinners}, {"S-2.5", figure_2_5, spinners},
          {"S-2.6", figure_2_6, spinners}, {"S-2.7", figure_2_7, spinners},
          {"S-3.0", necessity, spinners},
#if defined(ELIDEX_SIMULATED)
          {"S-3.9", figure_3_9},           {"S-3.9b", figure_3_9_workaround},
#endif
          {"S-3.10", figure_3_10},         {"S-C.3", figure_c_3},
          {"S-C.7", figure_c_7, spinners}, {"S-abort", abort_cost}};
}

}  // namespace elidex::bench
