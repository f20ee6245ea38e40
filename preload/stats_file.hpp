// Tests whether statistics can be written to a file. The test comes before the program runs,
// because an error at its end may go unnoticed.
#pragma once

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

namespace elidex::preload {

// `path` is absolute. The function changes it, and restores it before it returns.
inline bool may_become_stats_file(char* path) noexcept {
  char* const name = ::strrchr(path, '/') + 1;
  if (*name == '\0') return false;
  struct stat about{};
  if (::stat(path, &about) == 0) return !S_ISDIR(about.st_mode) && ::access(path, W_OK) == 0;
  const char first = *name;
  *name = '\0';
  const bool may_create = ::access(path, W_OK | X_OK) == 0;
  *name = first;
  return may_create;
}

}  // namespace elidex::preload
