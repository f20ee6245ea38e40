// What the CPU can do with whole cache lines of keys, found out when the program starts: code for
// it stands beside code that runs anywhere, and is never run where it can't be. Not used where
// threads are checked or simulated: the checker sees no vector loads.
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

// Each of them means those before it, too.
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
// None until static objects are made, which is right, too.
inline const vector_instructions vectors_of_this_cpu = find_vector_instructions();
#else
inline constexpr vector_instructions vectors_of_this_cpu = vector_instructions::none;
#endif

}  // namespace elidex::internal
