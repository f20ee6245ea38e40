#include "preload/report.hpp"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "preload/call_sites.hpp"
#include "preload/symbols.hpp"
#include "preload/text.hpp"

namespace elidex::preload {

using namespace internal;

namespace {

const settings* wanted = nullptr;
const char* elision_in_words = "";
std::uint64_t began_ns = 0;
// of the counts; children by other ways than fork() have them too, but not as theirs
pid_t owner = 0;
struct stat stderr_at_start{};
int copy_of_stderr = -1;
std::atomic<bool> being_written{false};

// --- adding the threads up ---

struct sum {
  std::uint64_t key = site_counts::unused;
  std::array<std::uint64_t, count_kinds> numbers{};

  std::uint64_t operator[](count what) const noexcept {
    return numbers[static_cast<std::size_t>(what)];
  }
  void add(const site_counts& counts) noexcept {
    for (std::size_t kind = 0; kind < count_kinds; ++kind) {
      const std::uint64_t value = counts.get(static_cast<count>(kind));
      numbers[kind] = is_maximum(kind) ? std::max(numbers[kind], value) : numbers[kind] + value;
    }
  }
  void add(const sum& other) noexcept {
    for (std::size_t kind = 0; kind < count_kinds; ++kind) {
      numbers[kind] = is_maximum(kind) ? std::max(numbers[kind], other.numbers[kind])
                                       : numbers[kind] + other.numbers[kind];
    }
  }
  std::uint64_t elided() const noexcept { return (*this)[count::commits] + (*this)[count::joined]; }
  std::uint64_t aborts() const noexcept {
    std::uint64_t all = 0;
    for (std::size_t cause = 0; cause < htm::abort_cause_count; ++cause) {
      all += numbers[static_cast<std::size_t>(count::aborts) + cause];
    }
    return all;
  }
  std::uint64_t attempts() const noexcept { return (*this)[count::commits] + aborts(); }
  // Acquisitions of the real lock: calls that were neither elided nor failed.
  std::uint64_t fallbacks() const noexcept {
    const std::uint64_t others = elided() + (*this)[count::failed];
    return (*this)[count::calls] > others ? (*this)[count::calls] - others : 0;
  }
};

// All places of all threads. Chosen: four times as many as one thread may have.
struct sums {
  static constexpr std::size_t places = 4096;
  std::array<sum, places> all;
  sum rest;  // of what has no room
  std::size_t used;

  void add(const site_counts& counts) noexcept {
    const std::uint64_t key = counts.key();
    if (counts.get(count::calls) == 0) return;
    if (key != site_counts::elsewhere) {
      std::size_t at = (key * 0x9e3779b97f4a7c15) >> 52;
      static_assert(places == 4096);
      for (std::size_t probe = 0; probe < places; ++probe, at = (at + 1) % places) {
        if (all[at].key == site_counts::unused) {
          all[at].key = key;
          ++used;
        }
        if (all[at].key == key) return all[at].add(counts);
      }
    }
    rest.key = site_counts::elsewhere;
    rest.add(counts);
  }

  // Moves the used ones to the front, ordered by waiting time, then by calls.
  void sort() noexcept {
    std::partition(all.begin(), all.end(),
                   [](const sum& one) { return one.key != site_counts::unused; });
    std::make_heap(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(used), comes_first);
    std::sort_heap(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(used), comes_first);
  }
  static bool comes_first(const sum& a, const sum& b) noexcept {
    if (a[count::waited_ns] != b[count::waited_ns])
      return a[count::waited_ns] > b[count::waited_ns];
    if (a[count::calls] != b[count::calls]) return a[count::calls] > b[count::calls];
    return a.key < b.key;
  }
};

// --- the table ---

std::string_view name_of(operation what) noexcept {
  switch (what) {
    case operation::mutex_lock:
      return "mutex";
    case operation::mutex_trylock:
      return "try mutex";
    case operation::mutex_timed:
      return "timed mutex";
    case operation::read:
      return "read";
    case operation::try_read:
      return "try read";
    case operation::timed_read:
      return "timed read";
    case operation::write:
      return "write";
    case operation::try_write:
      return "try write";
    case operation::timed_write:
      break;
  }
  return "timed write";
}

void write_place(text_buffer& out, const sum& row, symbol_files& symbols) noexcept {
  if (row.key == site_counts::elsewhere) {
    out << "other places\n";
    return;
  }
  // The return address may belong to the next line or function already.
  const auto* const call = static_cast<const char*>(site_counts::where(row.key)) - 1;
  const code_place place = symbols.find(call);
  const short_text offset = hexadecimal(place.offset);
  std::string_view name = place.symbol.empty() ? place.module : place.symbol;
  if (name.empty()) {
    out << offset << '\n';
    return;
  }
  // Names of C++ are long; cut off, they could not be decoded, so they may stick out.
  out << name << '+' << offset << '\n';
}

short_text optional_duration(std::uint64_t ns, bool there) noexcept {
  if (there) return duration(ns);
  short_text none;
  return none << '-';
}

void write_rows(text_buffer& out, const sums& found, std::size_t rows,
                symbol_files& symbols) noexcept {
  out << "       calls   contended      waited    longest   held mean   held max  lock         "
         "called from\n";
  const auto row = [&](const sum& one) {
    const bool waits = one[count::waited_ns] != 0;
    const std::uint64_t holds = one[count::holds];
    out.right(decimal(one[count::calls]), 12).right(decimal(one[count::contended]), 12);
    out.right(optional_duration(one[count::waited_ns], waits), 12);
    out.right(optional_duration(one[count::waited_ns_max], waits), 11);
    out.right(optional_duration(holds == 0 ? 0 : one[count::held_ns] / holds, holds != 0), 12);
    out.right(optional_duration(one[count::held_ns_max], holds != 0), 11) << "  ";
    out.left(one.key == site_counts::elsewhere ? "any" : name_of(site_counts::what(one.key)), 13);
    write_place(out, one, symbols);
  };
  for (std::size_t i = 0; i < rows; ++i) row(found.all[i]);
  if (found.rest.key != site_counts::unused) row(found.rest);
}

void write_elision(text_buffer& out, const sums& found, std::size_t rows,
                   symbol_files& symbols) noexcept {
  out << "\n    attempts      elided   conflict  capacity  explicit  interrupt   other   real lock "
         " called from\n";
  for (std::size_t i = 0; i < rows; ++i) {
    const sum& one = found.all[i];
    if (one.attempts() + one.elided() == 0) continue;
    out.right(decimal(one.attempts()), 12).right(decimal(one.elided()), 12);
    out.right(decimal(one[aborts_by(htm::abort_cause::conflict)]), 11);
    out.right(decimal(one[aborts_by(htm::abort_cause::capacity)]), 10);
    out.right(decimal(one[aborts_by(htm::abort_cause::explicit_)]), 10);
    out.right(decimal(one[aborts_by(htm::abort_cause::interrupt)]), 11);
    out.right(decimal(one[aborts_by(htm::abort_cause::other)]), 8);
    out.right(decimal(one.fallbacks()), 12) << "  ";
    write_place(out, one, symbols);
  }
}

void write_table(text_buffer& out, sums& found) noexcept {
  found.sort();
  sum total = found.rest;
  for (std::size_t i = 0; i < found.used; ++i) total.add(found.all[i]);
  const std::size_t rows = std::min<std::size_t>(found.used, wanted->sites);

  out << "elidex: " << program_invocation_short_name << ", process "
      << decimal(static_cast<std::uint64_t>(owner)) << ", " << duration(now_ns() - began_ns) << ": "
      << decimal(total[count::calls]) << " lock calls at " << decimal(found.used) << " places, "
      << decimal(total[count::contended]) << " contended ("
      << percent(total[count::contended], total[count::calls]) << "), waited "
      << duration(total[count::waited_ns]) << '\n';
  out << "elision: " << elision_in_words;
  if (total.attempts() != 0) {
    out << "; " << percent(total.elided(), total[count::calls]) << " of the calls elided, "
        << decimal(total.attempts()) << " attempts, " << decimal(total.aborts()) << " aborts";
  }
  out << '\n';
  if (total[count::calls] == 0) return;
  symbol_files symbols;
  write_rows(out, found, rows, symbols);
  if (rows < found.used) {
    out << "  ... and " << decimal(found.used - rows) << " more places (ELIDEX_SITES shows more)\n";
  }
  if (total.attempts() != 0) write_elision(out, found, rows, symbols);
}

// --- where to ---

void number_into(char*& at, const char* end, std::uint64_t number) noexcept {
  const short_text digits = decimal(number);
  for (const char c : digits.view()) {
    if (at < end) *at++ = c;
  }
}

int open_file() noexcept {
  static std::array<char, PATH_MAX> name;  // one report at a time
  char* at = name.data();
  const char* const end = name.data() + name.size() - 1;
  for (const char* from = wanted->file.data(); *from != '\0' && at < end; ++from) {
    if (from[0] == '%' && from[1] == 'p') {
      number_into(at, end, static_cast<std::uint64_t>(::getpid()));
      ++from;
    } else {
      *at++ = *from;
    }
  }
  *at = '\0';
  return ::open(name.data(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
}

bool is_stderr_of_the_start(const struct stat& one) noexcept {
  return one.st_dev == stderr_at_start.st_dev && one.st_ino == stderr_at_start.st_ino;
}

// Standard error, or the copy of it where the program has closed it (xz and the coreutils do so at
// their end). -1: it has opened something of its own in its place; but what is opened for appending
// is a log that it writes its errors to.
int usable_stderr() noexcept {
  struct stat now{};
  if (::fstat(STDERR_FILENO, &now) != 0) {
    const bool has_copy =
        copy_of_stderr >= 0 && ::fstat(copy_of_stderr, &now) == 0 && is_stderr_of_the_start(now);
    return has_copy ? copy_of_stderr : -1;
  }
  if (is_stderr_of_the_start(now)) return STDERR_FILENO;
  const int flags = ::fcntl(STDERR_FILENO, F_GETFL);
  return flags >= 0 && (flags & O_APPEND) != 0 ? STDERR_FILENO : -1;
}

// False: it could not be written.
bool write_to(int descriptor, occasion why) noexcept {
  // Too large for a signal's stack.
  void* const memory =
      ::mmap(nullptr, sizeof(sums), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  auto& found = *static_cast<sums*>(memory);  // zero is its first state
  for_each_site(
      [](const site_counts& counts, void* into) { static_cast<sums*>(into)->add(counts); }, memory);
  bool written = true;
  if (why == occasion::signal || found.used != 0 || found.rest.key != site_counts::unused) {
    text_buffer out(descriptor);
    write_table(out, found);
    out.flush();
    written = !out.failed();
  }
  ::munmap(memory, sizeof(sums));
  return written;
}

}  // namespace

void prepare_report(const settings& from, const char* elision) noexcept {
  wanted = &from;
  elision_in_words = elision;
  began_ns = now_ns();
  owner = ::getpid();
  if (from.stats && ::fstat(STDERR_FILENO, &stderr_at_start) != 0) stderr_at_start = {};
  if (from.to_stderr) {
    constexpr int out_of_the_way = 200;  // programs like their descriptors small
    copy_of_stderr = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, out_of_the_way);
  }
}

void report_belongs_to_child() noexcept {
  began_ns = now_ns();
  owner = ::getpid();
  being_written.store(false);
}

void write_report(occasion why) noexcept {
  if (wanted == nullptr || !wanted->stats || ::getpid() != owner || being_written.exchange(true))
    return;
  const int error_before = errno;
  if (wanted->to_stderr) {
    if (const int descriptor = usable_stderr(); descriptor >= 0) write_to(descriptor, why);
  } else {
    const int descriptor = open_file();
    const bool written = descriptor >= 0 && write_to(descriptor, why);
    if (!written && usable_stderr() >= 0)
      say("ELIDEX_STATS: the table could not be written to ", wanted->file.data());
    if (descriptor >= 0) ::close(descriptor);
  }
  errno = error_before;
  being_written.store(false);
}

}  // namespace elidex::preload
