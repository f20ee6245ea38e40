// The settings that the environment contains.
//
//   ELIDEX_STATS=-|FILE     print the table of call sites at exit, to standard error or at the end
//                           of FILE; %p is the process ID
//   ELIDEX_ELISION=on|off   elide where hardware transactions commit [on]
//   ELIDEX_SIGNAL=USR2|USR1|none   also print the table at this signal [USR2]
//   ELIDEX_RETRIES=N        retries after conflicts, before the lock is taken [8]
//   ELIDEX_SITES=N          rows of the table at most [20]
//   ELIDEX_VERBOSE=on|off   print at the start what the library does [off]
//
// For an invalid value the library prints a line on standard error and uses the default.
//
// Thread-safety: read_settings() runs once, before any thread reads the settings.
#pragma once

#include <linux/limits.h>
#include <signal.h>

#include <array>
#include <cstdint>
#include <string_view>

namespace elidex::preload {

struct settings {
  bool stats = false;
  bool to_stderr = false;
  std::array<char, PATH_MAX> file{};  // absolute, with its %p
  bool elision = true;
  bool verbose = false;
  int signal = SIGUSR2;  // 0: none
  std::uint32_t conflict_retries = 8;
  std::uint32_t sites = 20;
};

// Reads nothing if the program runs with more rights than its user. The environment is not trusted
// then.
void read_settings(settings& into) noexcept;

// One line on standard error, with the library's name before it.
void say(std::string_view text, std::string_view more = {},
         std::string_view still_more = {}) noexcept;

}  // namespace elidex::preload
