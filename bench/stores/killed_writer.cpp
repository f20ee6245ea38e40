#include "bench/stores/killed_writer.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <system_error>
#include <thread>

namespace elidex::bench::stores {
namespace {

using counts = std::array<std::uint64_t, killed_threads>;

// Stays mapped until the process ends.
counts& map_counts(const std::string& file) {
  const int opened = ::open(file.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  void* at = MAP_FAILED;
  if (opened >= 0 && ::ftruncate(opened, sizeof(counts)) == 0)
    at = ::mmap(nullptr, sizeof(counts), PROT_READ | PROT_WRITE, MAP_SHARED, opened, 0);
  if (at == MAP_FAILED) throw std::system_error(errno, std::generic_category(), file);
  ::close(opened);
  return *static_cast<counts*>(at);
}

std::uint64_t key_of(std::uint64_t rows, unsigned thread, std::uint64_t i) {
  return rows + thread + i * killed_threads;
}
// Row `i` of a thread.
std::uint64_t version_of(std::uint64_t i) {
  return i + 1;
}

}  // namespace

std::vector<std::string> words_of(const std::string& store, const killed_settings& settings) {
  const store_setup& setup = settings.setup;
  return {"--store",        store,
          "--dir",          setup.directory,
          "--durability",   std::string(name_of(setup.level)),
          "--rows",         std::to_string(setup.rows),
          "--value-bytes",  std::to_string(setup.value_bytes),
          "--commits",      std::to_string(settings.commits),
          "--acknowledged", settings.acknowledged};
}

void load_rows(session& into, std::uint64_t rows) {
  for (std::uint64_t first = 0; first < rows; first += load_batch)
    into.append(first, std::min(load_batch, rows - first));
}

void write_until_killed(const store_info& info, const killed_settings& settings) {
  counts& acknowledged = map_counts(settings.acknowledged);
  const std::unique_ptr<store> rows = info.open(settings.setup);
  load_rows(*rows->connect(), settings.setup.rows);
  rows->quiesce();
  std::atomic<std::uint64_t> all{0};
  const auto write = [&](unsigned thread) {
    const std::unique_ptr<session> mine = rows->connect();
    for (std::uint64_t i = 0;; ++i) {
      const std::uint64_t keys[] = {key_of(settings.setup.rows, thread, i)};
      mine->put(keys, version_of(i));
      std::atomic_ref(acknowledged[thread]).store(i + 1);
      if (++all == settings.commits) ::kill(::getpid(), SIGKILL);
    }
  };
  std::vector<std::jthread> threads;
  for (unsigned i = 1; i < killed_threads; ++i) threads.emplace_back(write, i);
  write(0);
  std::abort();  // not reached
}

recovered compare_recovered(const contents& found, const killed_settings& settings) {
  counts acknowledged{};
  std::ifstream(settings.acknowledged, std::ios::binary)
      .read(reinterpret_cast<char*>(acknowledged.data()), sizeof acknowledged);
  const std::uint64_t rows = settings.setup.rows;
  counts there{};
  std::uint64_t loaded = 0;
  std::uint64_t wrong = 0;
  std::uint64_t gaps = 0;
  for (const key_version& row : found.rows) {
    if (row.key < rows) {
      ++loaded;
      if (row.version != 0) ++wrong;
      continue;
    }
    const auto thread = static_cast<unsigned>((row.key - rows) % killed_threads);
    const std::uint64_t i = (row.key - rows) / killed_threads;
    if (row.version != version_of(i)) ++wrong;
    if (i != there[thread]) ++gaps;
    there[thread] = i + 1;
  }
  recovered sum;
  std::uint64_t unknown = 0;
  for (unsigned t = 0; t < killed_threads; ++t) {
    sum.acknowledged += acknowledged[t];
    if (there[t] < acknowledged[t]) sum.lost += acknowledged[t] - there[t];
    if (there[t] > acknowledged[t] + 1) ++unknown;
  }
  const auto add = [&](std::uint64_t many, const std::string& what) {
    if (many != 0) sum.violations.push_back(std::to_string(many) + " " + what);
  };
  add(found.torn, "rows are not whole");
  add(rows - loaded, "loaded rows are missing");
  add(wrong, "rows have another version than the one that was written");
  add(gaps, "rows are there though an earlier row of their thread is missing");
  add(unknown, "threads have rows that they never wrote");
  if (settings.setup.level == durability::sync) add(sum.lost, "acknowledged commits are lost");
  return sum;
}

}  // namespace elidex::bench::stores
