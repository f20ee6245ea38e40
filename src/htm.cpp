#include "elidex/htm.hpp"

#include <array>

#if defined(ELIDEX_HTM_X86)
#  include <cpuid.h>
#endif

namespace elidex::htm {

constinit std::atomic<std::uint8_t> internal::features{0};

namespace {

// An answer is a set of these bits. All sets are constants below, so that references that were
// returned before a retest() stay valid.
constexpr std::size_t bit_commits = 1;
constexpr std::size_t bit_rtm = 2;
constexpr std::size_t bit_always_aborts = 4;
constexpr std::size_t bit_hle = 8;
constexpr std::size_t answer_count = 16;

constexpr const char* reason_for(std::size_t bits) noexcept {
#if defined(ELIDEX_HTM_SIMULATED)
  return (bits & bit_commits) != 0 ? "the simulated machine commits transactions"
                                   : "the simulated machine has no HTM";
#elif defined(ELIDEX_HTM_NONE) && defined(__x86_64__)
  static_cast<void>(bits);
  return "this build runs under ThreadSanitizer, which cannot follow hardware transactions";
#elif defined(ELIDEX_HTM_NONE)
  static_cast<void>(bits);
  return "this CPU architecture has no hardware transactional memory that elidex knows";
#else
  if ((bits & bit_commits) != 0) return "the CPU advertises RTM and a trial transaction committed";
  if ((bits & bit_always_aborts) != 0)
    return "microcode makes every RTM transaction abort (RTM_ALWAYS_ABORT)";
  if ((bits & bit_rtm) != 0) {
    return "the CPU advertises RTM but no trial transaction committed (microcode, kernel or "
           "hypervisor switched TSX off)";
  }
  return "the CPU does not advertise RTM (it has none, or firmware, kernel or hypervisor hide it)";
#endif
}

constexpr std::array<htm_capability, answer_count> answers = [] {
  std::array<htm_capability, answer_count> all{};
  for (std::size_t bits = 0; bits < answer_count; ++bits) {
    all[bits] = {.rtm_commits = (bits & bit_commits) != 0,
                 .rtm_advertised = (bits & bit_rtm) != 0,
                 .rtm_always_aborts = (bits & bit_always_aborts) != 0,
                 .hle_advertised = (bits & bit_hle) != 0,
                 .reason = reason_for(bits)};
  }
  return all;
}();

#if defined(ELIDEX_HTM_X86)

// Stores to a line that is already in the cache. So only the machine itself, or a rare interrupt,
// can cause an abort. Many trials exclude the interrupt.
bool a_trial_commits() noexcept {
  alignas(64) static std::atomic<unsigned> warm_line{0};
  for (unsigned trial = 0; trial < trial_transactions; ++trial) {
    warm_line.store(trial);
    const status entry = native::begin();
    if (entry.started()) {
      // relaxed, without a partner: no thread reads it. The transaction must write something.
      warm_line.store(trial + 1, std::memory_order_relaxed);
      native::commit();
      return true;
    }
  }
  return false;
}

std::size_t look() noexcept {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) == 0) return 0;  // an old CPU without leaf 7
  std::size_t bits = 0;
  if ((ebx >> 4 & 1) != 0) bits |= bit_hle;
  if ((ebx >> 11 & 1) != 0) bits |= bit_rtm;
  if ((edx >> 11 & 1) != 0) bits |= bit_always_aborts;
  const bool may_try = (bits & bit_rtm) != 0 && (bits & bit_always_aborts) == 0;
  if (may_try && a_trial_commits()) bits |= bit_commits;
  return bits;
}

#elif defined(ELIDEX_HTM_SIMULATED)

std::size_t look() noexcept {
  return (elidex_sim_enabled() ? bit_commits | bit_rtm : 0) | (elidex_sim_has_hle() ? bit_hle : 0);
}

#else

std::size_t look() noexcept {
  return 0;
}

#endif

// The result of capability(), as an index into `answers`. The value after the last index means that
// detection has not run.
constinit std::atomic<std::size_t> current_answer{answer_count};

std::size_t look_and_remember() noexcept {
  const std::size_t bits = look();
  std::uint8_t found = internal::feature_known;
  // XTEST is there with either extension, also where all transactions abort.
  if ((bits & (bit_rtm | bit_hle)) != 0) found |= internal::feature_xtest;
  if ((bits & bit_commits) != 0) found |= internal::feature_commits;
  internal::features.store(found);
  current_answer.store(bits);
  return bits;
}

}  // namespace

std::uint8_t internal::detect() noexcept {
  look_and_remember();
  return features.load();
}

const htm_capability& capability() noexcept {
#if defined(ELIDEX_HTM_SIMULATED)
  return retest();  // inside a simulated run, the machine is another one
#endif
  const std::size_t bits = current_answer.load();
  return answers[bits < answer_count ? bits : look_and_remember()];
}

const htm_capability& retest() noexcept {
  return answers[look_and_remember()];
}

}  // namespace elidex::htm
