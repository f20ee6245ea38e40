#pragma once
// Defines ELIDEX_THREAD_SANITIZER in builds with ThreadSanitizer, by GCC or Clang. Such a build is
// slower, and it reports the races that some canaries have on purpose.

#if defined(__SANITIZE_THREAD__)
#  define ELIDEX_THREAD_SANITIZER 1
#elif defined(__has_feature)
#  if __has_feature(thread_sanitizer)
#    define ELIDEX_THREAD_SANITIZER 1
#  endif
#endif
