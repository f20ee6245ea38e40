// Which vector instructions for whole cache lines of keys the CPU has. Found out at program start.
//
// Vector code lies beside code that runs on every CPU. It runs only where the CPU has the
// instructions. It is not used under a thread checker or simulator, which would not see vector
// loads.
#pragma once

#include <cstdint>

#if defined(__x86_64__) && !defined(ELIDEX_SIMULATED) && !defined(__SANITIZE_THREAD__)
#  if defined(__has_feature)
#    if !__has_feature(thread_sanitizer)
#      define ELIDEX_VECTORS 1
#    endif
#  else
#    define ELIDEX_VECTORS 1
#  endif
#endif

#if defined(ELIDEX_VECTORS)
#  include <immintrin.h>
#endif

namespace elidex::internal {

// Each level includes those before it.
enum class vector_instructions : std::uint8_t {
  none,
  avx2,
  avx512,       // the foundation
  avx512_vbmi,  // and bytes moved freely within a register (with DQ and VL)
};

#if defined(ELIDEX_VECTORS)
inline vector_instructions find_vector_instructions() noexcept {
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2")) return vector_instructions::none;
  if (!__builtin_cpu_supports("avx512f")) return vector_instructions::avx2;
  const bool moves_bytes = __builtin_cpu_supports("avx512vbmi") &&
                           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return moves_bytes ? vector_instructions::avx512_vbmi : vector_instructions::avx512;
}
// `none` until static objects are initialized, which is also correct.
inline const vector_instructions vectors_of_this_cpu = find_vector_instructions();
#else
inline constexpr vector_instructions vectors_of_this_cpu = vector_instructions::none;
#endif

}  // namespace elidex::internal
