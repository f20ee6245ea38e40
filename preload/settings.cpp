#include "preload/settings.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "elidex/internal/sync/retry.hpp"
#include "preload/stats_file.hpp"
#include "preload/text.hpp"

namespace elidex::preload {
namespace {

constexpr std::uint64_t retries_max = 1000;
constexpr std::uint64_t sites_max = 1000;

// Empty counts as not set: that is how a script switches one off.
std::string_view variable(const char* name) noexcept {
  const char* const value = ::secure_getenv(name);
  return value == nullptr ? std::string_view() : std::string_view(value);
}

void refuse(const char* name, const char* expected) noexcept {
  text_buffer out(STDERR_FILENO);
  out << "elidex: " << name << ": invalid value (expected " << expected << ")\n";
  out.flush();
}

void read_switch(const char* name, bool& into) noexcept {
  const std::string_view value = variable(name);
  if (value == "on") {
    into = true;
  } else if (value == "off") {
    into = false;
  } else if (!value.empty()) {
    refuse(name, "on or off");
  }
}

void read_number(const char* name, std::uint32_t& into, std::uint64_t least, std::uint64_t most,
                 const char* takes) noexcept {
  const std::string_view value = variable(name);
  if (value.empty()) return;
  std::uint64_t number = 0;
  for (const char c : value) {
    if (c < '0' || c > '9' || number > most) return refuse(name, takes);
    number = number * 10 + static_cast<std::uint64_t>(c - '0');
  }
  if (number < least || number > most) return refuse(name, takes);
  into = static_cast<std::uint32_t>(number);
}

void read_signal(int& into) noexcept {
  const std::string_view value = variable("ELIDEX_SIGNAL");
  if (value == "USR1") {
    into = SIGUSR1;
  } else if (value == "USR2") {
    into = SIGUSR2;
  } else if (value == "none") {
    into = 0;
  } else if (!value.empty()) {
    refuse("ELIDEX_SIGNAL", "USR1, USR2 or none");
  }
}

// Absolute, since programs change their directory; written to later, so it is looked at now.
void read_stats(settings& into) noexcept {
  constexpr const char* takes = "- for standard error, or a file that can be written or made";
  const std::string_view value = variable("ELIDEX_STATS");
  if (value.empty()) return;
  if (value == "-") {
    into.stats = into.to_stderr = true;
    return;
  }
  std::size_t length = 0;
  if (value[0] != '/') {
    if (::getcwd(into.file.data(), into.file.size()) == nullptr)
      return refuse("ELIDEX_STATS", takes);
    length = ::strlen(into.file.data());
    if (length + 1 < into.file.size()) into.file[length++] = '/';
  }
  if (length + value.size() >= into.file.size()) return refuse("ELIDEX_STATS", takes);
  ::memcpy(into.file.data() + length, value.data(), value.size());
  into.file[length + value.size()] = '\0';

  if (!may_become_stats_file(into.file.data())) return refuse("ELIDEX_STATS", takes);
  into.stats = true;
}

}  // namespace

void read_settings(settings& into) noexcept {
  read_stats(into);
  read_switch("ELIDEX_ELISION", into.elision);
  read_switch("ELIDEX_VERBOSE", into.verbose);
  read_signal(into.signal);
  read_number("ELIDEX_RETRIES", into.conflict_retries, 0, retries_max, "a number from 0 to 1000");
  read_number("ELIDEX_SITES", into.sites, 1, sites_max, "a number from 1 to 1000");
}

void say(std::string_view text, std::string_view more, std::string_view still_more) noexcept {
  text_buffer out(STDERR_FILENO);
  out << "elidex: " << text << more << still_more << '\n';
  out.flush();
}

}  // namespace elidex::preload
