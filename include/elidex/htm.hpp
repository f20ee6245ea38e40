// Hardware transactional memory: begin, commit and abort transactions, and detect CPU support.
//
//   using namespace elidex;
//   if (htm::enabled()) {
//     const htm::status entry = htm::begin();
//     if (entry.started()) {  // inside the transaction; an abort returns here, not started()
//       balance += amount;
//       htm::commit();
//     } else if (entry.cause() == htm::abort_cause::conflict) { ... }
//   }
//   std::puts(htm::capability().reason);
//
// begin() may run only while enabled() is true, and commit() only while test() is true. Elsewhere
// these instructions fault. abort() and test() are safe everywhere. Nested transactions are flat:
// an abort at any depth returns to the outermost begin(), and only the outermost commit()
// publishes.
//
// Thread-safety: any thread may call any function. The first call of enabled(), test() or
// capability() in a process detects the machine. The detection runs trial transactions, so make
// that call outside of transactions. Later calls of enabled() and test() are allowed inside. Never
// call capability() or retest() inside a transaction.
// Errors: none. Nothing here throws or allocates.
//
// Which machine a build uses:
//   x86-64                    Intel RTM and HLE, after the run-time check behind enabled()
//   ELIDEX_SIMULATED defined  the simulated machine (the elidex_sim_* functions below)
//   other CPUs                none: enabled() and test() are false, and begin() reports an abort
//   ThreadSanitizer           the same, because it does not see transactions and their rollback
// A program must not mix objects built with and without ELIDEX_SIMULATED.
//
// Implementation notes
// This is the only file of the library that knows the instructions. They are written as bytes, so
// that neither the library nor its users need -mrtm or -mhle.
// Order: a transaction is atomic and totally ordered with other transactions. begin() and commit()
// are compiler barriers.
// From: paper 001, sections 3.1 and 3.3.1 (programming interface, abort causes). Detection follows
// Intel's manual. Deviation: the paper's one machine always committed, so it needed no run-time
// check. Today microcode may abort every transaction while CPUID still shows RTM. The trial
// transactions find that out.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#if defined(ELIDEX_SIMULATED)
#  define ELIDEX_HTM_SIMULATED 1
#elif defined(__SANITIZE_THREAD__)
#  define ELIDEX_HTM_NONE 1
#elif defined(__has_feature)
#  if __has_feature(thread_sanitizer)
#    define ELIDEX_HTM_NONE 1
#  endif
#endif
#if !defined(ELIDEX_HTM_SIMULATED) && !defined(ELIDEX_HTM_NONE)
#  if defined(__x86_64__)
#    define ELIDEX_HTM_X86 1
#  else
#    define ELIDEX_HTM_NONE 1
#  endif
#endif

#if defined(ELIDEX_HTM_SIMULATED)
// The simulated machine defines these functions. elidex_sim_begin() must save enough to return a
// second time, as the hardware does.
extern "C" {
bool elidex_sim_enabled() noexcept;
bool elidex_sim_has_hle() noexcept;
std::uint32_t elidex_sim_begin() noexcept;
void elidex_sim_commit() noexcept;
void elidex_sim_abort(std::uint8_t code) noexcept;
bool elidex_sim_test() noexcept;
// HLE: elidex_sim_begin_elision() may return a second time, as elidex_sim_begin() does. With any
// result but `started_word` the caller must make the exchange.
std::uint32_t elidex_sim_begin_elision(std::uint32_t* word, std::uint32_t value) noexcept;
std::uint32_t elidex_sim_value_before_elision() noexcept;
// Returns whether the store ended an elision. Otherwise the caller must make the store.
bool elidex_sim_end_elision(std::uint32_t* word, std::uint32_t value) noexcept;
}
#endif

namespace elidex::htm {

// Why a transaction ended without committing.
enum class abort_cause : std::uint8_t {
  conflict,   // another core accessed a line of the transaction
  capacity,   // the transaction's lines did not fit
  explicit_,  // abort() was called
  // the hardware gave no reason: interrupts, page faults, system calls, instructions that abort
  interrupt,
  other,  // a debugger's breakpoint, or a combination that the manual does not name
};
inline constexpr std::size_t abort_cause_count = 5;

// The names that JSON output uses.
constexpr const char* to_string(abort_cause cause) noexcept {
  switch (cause) {
    case abort_cause::conflict:
      return "conflict";
    case abort_cause::capacity:
      return "capacity";
    case abort_cause::explicit_:
      return "explicit";
    case abort_cause::interrupt:
      return "interrupt";
    case abort_cause::other:
      break;
  }
  return "other";
}

// Codes for abort(). Codes from 0xf0 up belong to the library, all others to the program.

// The elided lock is held.
inline constexpr std::uint8_t code_lock_busy = 0xff;
// A transaction cannot answer a try_lock() correctly.
inline constexpr std::uint8_t code_nested_trylock = 0xfe;
// A transaction cannot replace a section: the section must take its lock.
inline constexpr std::uint8_t code_lock_wanted = 0xfd;

// The result of begin(), laid out as Intel's EAX after XBEGIN.
struct status {
  static constexpr std::uint32_t started_word = 0xffffffff;
  static constexpr std::uint32_t explicit_bit = 1u << 0;
  static constexpr std::uint32_t retry_bit = 1u << 1;
  static constexpr std::uint32_t conflict_bit = 1u << 2;
  static constexpr std::uint32_t capacity_bit = 1u << 3;
  static constexpr std::uint32_t debug_bit = 1u << 4;
  static constexpr std::uint32_t nested_bit = 1u << 5;
  static constexpr unsigned code_shift = 24;

  std::uint32_t word = 0;

  // Returns the status of an abort(code).
  static constexpr status of_abort(std::uint8_t code) noexcept {
    return {explicit_bit | (static_cast<std::uint32_t>(code) << code_shift)};
  }

  // Returns whether the transaction has started, so that the caller is inside it.
  constexpr bool started() const noexcept { return word == started_word; }
  // Returns whether abort() was called.
  constexpr bool is_explicit() const noexcept { return has(explicit_bit); }
  // Returns whether the hardware expects that another attempt may commit.
  constexpr bool may_retry() const noexcept { return has(retry_bit); }
  // Returns whether another core accessed a line of the transaction.
  constexpr bool is_conflict() const noexcept { return has(conflict_bit); }
  // Returns whether the transaction's lines did not fit.
  constexpr bool is_capacity() const noexcept { return has(capacity_bit); }
  // Returns whether a debugger's breakpoint was met.
  constexpr bool is_debug() const noexcept { return has(debug_bit); }
  // Returns whether the abort happened below the outermost transaction.
  constexpr bool is_nested() const noexcept { return has(nested_bit); }
  // Returns the argument of abort(), or 0 unless is_explicit().
  constexpr std::uint8_t code() const noexcept {
    return is_explicit() ? static_cast<std::uint8_t>(word >> code_shift) : std::uint8_t{0};
  }
  // Returns whether abort(code_lock_busy) was called: the elided lock is held.
  constexpr bool is_lock_busy() const noexcept { return is_explicit() && code() == code_lock_busy; }

  // Returns the cause of an abort. If several bits are set, returns the first of explicit, capacity
  // and conflict, because earlier causes in this order are more likely to recur. Returns `other`
  // for a transaction that has started.
  constexpr abort_cause cause() const noexcept {
    if (started()) return abort_cause::other;
    if (is_explicit()) return abort_cause::explicit_;
    if (is_capacity()) return abort_cause::capacity;
    if (is_conflict()) return abort_cause::conflict;
    return (word & ~nested_bit) == 0 ? abort_cause::interrupt : abort_cause::other;
  }

  friend constexpr bool operator==(status, status) noexcept = default;

 private:
  constexpr bool has(std::uint32_t bit) const noexcept { return !started() && (word & bit) != 0; }
};

// The hardware transactions of this machine. Objects of this type are constants of the program, so
// references always stay valid.
struct htm_capability {
  bool rtm_commits;        // transactions commit here
  bool rtm_advertised;     // CPUID.7.EBX[11]
  bool rtm_always_aborts;  // CPUID.7.EDX[11]: microcode aborts every transaction
  bool hle_advertised;     // CPUID.7.EBX[4]: the elision prefixes may have an effect
  const char* reason;      // the same as text: one clause without a full stop
};

// If this many trial transactions all abort, the machine counts as one that never commits. Chosen:
// interrupts may abort a few of them, but not 64 in a row. On a machine that always aborts they
// cost some microseconds, once.
inline constexpr unsigned trial_transactions = 64;

// Detects the machine at the first call, then returns the stored answer.
const htm_capability& capability() noexcept;

// Detects again and returns the new answer, for a process that was migrated live to another CPU.
// Running transactions of other threads stay correct. Transactions begun between the migration and
// this call fault if the new CPU lacks RTM. So call it from the hook that announces the migration.
const htm_capability& retest() noexcept;

namespace internal {

inline constexpr std::uint8_t feature_known = 1;    // detection has run
inline constexpr std::uint8_t feature_xtest = 2;    // XTEST may be executed
inline constexpr std::uint8_t feature_commits = 4;  // XBEGIN may be executed and commits

extern constinit std::atomic<std::uint8_t> features;

std::uint8_t detect() noexcept;

inline std::uint8_t known_features() noexcept {
  // relaxed, without a partner: the byte is the whole answer, and nothing else is published through
  // it.
  const std::uint8_t found = features.load(std::memory_order_relaxed);
  return found != 0 ? found : detect();
}

}  // namespace internal

// The machine on which this program runs, as a type. It is the default of every template with a
// parameter `Htm`. Tests use a scripted machine instead. The free functions below call its members.
struct native {
  // Returns whether begin() may be called. Costs one load and a branch.
  static bool enabled() noexcept {
#if defined(ELIDEX_HTM_SIMULATED)
    return elidex_sim_enabled();
#elif defined(ELIDEX_HTM_X86)
    return (internal::known_features() & internal::feature_commits) != 0;
#else
    return false;
#endif
  }

  [[nodiscard]] static status begin() noexcept {
#if defined(ELIDEX_HTM_SIMULATED)
    return {elidex_sim_begin()};
#elif defined(ELIDEX_HTM_X86)
    std::uint32_t word = status::started_word;
    // XBEGIN with displacement 0: an abort continues after it, with every register but EAX
    // restored.
    asm volatile(".byte 0xc7, 0xf8, 0, 0, 0, 0" : "+a"(word) : : "memory");
    return {word};
#else
    return {};
#endif
  }

  static void commit() noexcept {
#if defined(ELIDEX_HTM_SIMULATED)
    elidex_sim_commit();
#elif defined(ELIDEX_HTM_X86)
    asm volatile(".byte 0x0f, 0x01, 0xd5" : : : "memory");  // XEND
#endif
  }

  // Inside a transaction, control returns to begin(), whose status has `Code`, and abort() never
  // returns. Outside a transaction it has no effect. Its result is for machines that cannot roll
  // back (tests): the status that begin() would have returned.
  template <std::uint8_t Code>
  static status abort() noexcept {
#if defined(ELIDEX_HTM_SIMULATED)
    elidex_sim_abort(Code);
#elif defined(ELIDEX_HTM_X86)
    // XABORT. Outside a transaction it would have no effect on a CPU with RTM, but fault on others.
    if (test()) asm volatile(".byte 0xc6, 0xf8, %c0" : : "i"(Code) : "memory");
#endif
    return status::of_abort(Code);
  }

  // Returns whether the calling thread is inside a transaction.
  static bool test() noexcept {
#if defined(ELIDEX_HTM_SIMULATED)
    return elidex_sim_test();
#elif defined(ELIDEX_HTM_X86)
    if ((internal::known_features() & internal::feature_xtest) == 0) return false;
    bool inside = false;
    asm volatile(".byte 0x0f, 0x01, 0xd6" : "=@ccnz"(inside) : : "memory");  // XTEST
    return inside;
#else
    return false;
#endif
  }
};

// A machine without hardware transactions: basic_mutex<htm::never> is a mutex that never elides.
struct never {
  static bool enabled() noexcept { return false; }
  [[nodiscard]] static status begin() noexcept { return {}; }
  static void commit() noexcept {}
  template <std::uint8_t Code>
  static status abort() noexcept {
    return status::of_abort(Code);
  }
  static bool test() noexcept { return false; }
};

// Returns whether begin() may be called.
inline bool enabled() noexcept {
  return native::enabled();
}
// Begins a transaction. Returns a second time, with the abort's status, if the transaction aborts.
[[nodiscard]] inline status begin() noexcept {
  return native::begin();
}
// Commits the transaction. Call it only inside a transaction.
inline void commit() noexcept {
  native::commit();
}
// Aborts the transaction with Code. Outside of transactions it has no effect.
template <std::uint8_t Code>
status abort() noexcept {
  return native::abort<Code>();
}
// Returns whether the calling thread is in a transaction.
inline bool test() noexcept {
  return native::test();
}

// Hardware lock elision (paper 001, section 3.1): the usual exchange and store, with a prefix that
// CPUs without HLE ignore. A CPU with HLE does not write the word. It begins a transaction at the
// exchange and commits at the store, which must restore the value that the exchange found. Words
// have 4 bytes, because other sizes always aborted in paper 004, figure 2.4.

// Exchanges with acquire order. Pairs with hle_store_release().
inline std::uint32_t hle_exchange_acquire(std::atomic<std::uint32_t>& word,
                                          std::uint32_t value) noexcept {
#if defined(ELIDEX_HTM_X86)
  asm volatile(".byte 0xf2\n\txchgl %0, %1" : "+r"(value), "+m"(word) : : "memory");  // XACQUIRE
  return value;
#else
#  if defined(ELIDEX_HTM_SIMULATED)
  if (elidex_sim_begin_elision(reinterpret_cast<std::uint32_t*>(&word), value) ==
      status::started_word) {
    return elidex_sim_value_before_elision();
  }
#  endif
  // pairs with the release in hle_store_release()
  return word.exchange(value, std::memory_order_acquire);
#endif
}

// Stores with release order. Pairs with hle_exchange_acquire().
inline void hle_store_release(std::atomic<std::uint32_t>& word, std::uint32_t value) noexcept {
#if defined(ELIDEX_HTM_X86)
  asm volatile(".byte 0xf3\n\tmovl %1, %0" : "=m"(word) : "r"(value) : "memory");  // XRELEASE
#else
#  if defined(ELIDEX_HTM_SIMULATED)
  if (elidex_sim_end_elision(reinterpret_cast<std::uint32_t*>(&word), value)) return;
#  endif
  word.store(value, std::memory_order_release);  // pairs with the acquire in hle_exchange_acquire()
#endif
}

}  // namespace elidex::htm
