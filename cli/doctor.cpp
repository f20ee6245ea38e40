#include "cli/doctor.hpp"

#include <sched.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

namespace elidex::cli {

namespace {

namespace fs = std::filesystem;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

// The first line of a small file, "" if it cannot be read.
std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return std::string(trimmed(line));
}

std::uint64_t number_in(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// "32K" and "8192 kB" in bytes.
std::uint64_t bytes_in(std::string_view text) {
  const std::size_t unit = text.find_first_not_of("0123456789 ");
  const std::uint64_t value = number_in(text);
  switch (unit == std::string_view::npos ? ' ' : text[unit]) {
    case 'K':
    case 'k':
      return value << 10;
    case 'M':
      return value << 20;
    case 'G':
      return value << 30;
    default:
      return value;
  }
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!(text = trimmed(text)).empty()) {
    const std::size_t end = std::min(text.find_first_of(" \t"), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
  return words;
}

// The choice in brackets of a line such as "always [madvise] never".
std::string bracketed(std::string_view line) {
  const std::size_t open = line.find('[');
  const std::size_t close = line.find(']');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) return {};
  return std::string(line.substr(open + 1, close - open - 1));
}

// Calls use(key, value) for each "key : value" line.
template <class Use>
void for_each_pair(const fs::path& file, Use&& use) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    use(trimmed(std::string_view(line).substr(0, colon)),
        trimmed(std::string_view(line).substr(colon + 1)));
  }
}

// The entries of a directory whose names are `prefix` and then a number, by number.
std::vector<std::pair<std::uint64_t, fs::path>> numbered_entries(const fs::path& directory,
                                                                 std::string_view prefix) {
  std::vector<std::pair<std::uint64_t, fs::path>> found;
  std::error_code failed;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, failed)) {
    const std::string name = entry.path().filename().string();
    if (name.size() <= prefix.size() || !name.starts_with(prefix)) continue;
    const char digit = name[prefix.size()];
    if (digit < '0' || digit > '9') continue;
    found.emplace_back(number_in(std::string_view(name).substr(prefix.size())), entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

void read_cpuinfo(const fs::path& root, doctor_facts& facts) {
  std::string family, model, stepping;
  const auto keep_first = [](std::string& field, std::string_view value) {
    if (field.empty()) field = value;
  };
  bool flags_seen = false;
  for_each_pair(root / "proc/cpuinfo", [&](std::string_view key, std::string_view value) {
    if (key == "processor") ++facts.hardware_threads;
    if (key == "model name" || key == "Processor") keep_first(facts.cpu_model, value);
    if (key == "vendor_id" || key == "CPU implementer") keep_first(facts.cpu_vendor, value);
    if (key == "cpu family") keep_first(family, value);
    if (key == "model" || key == "CPU part") keep_first(model, value);
    if (key == "stepping" || key == "CPU revision") keep_first(stepping, value);
    if (key == "microcode") keep_first(facts.microcode, value);
    if (key == "flags" && !std::exchange(flags_seen, true)) {
      for (const std::string_view flag : words_of(value)) {
        if (flag == "hypervisor") facts.under_hypervisor = true;
        if (flag == "rtm" || flag == "hle" || flag == "rtm_always_abort" ||
            flag == "tsx_force_abort") {
          facts.tsx_flags.emplace_back(flag);
        }
      }
    }
  });
  const auto add_to_signature = [&](const char* name, const std::string& value) {
    if (value.empty()) return;
    if (!facts.cpu_signature.empty()) facts.cpu_signature += ", ";
    facts.cpu_signature.append(name).append(" ").append(value);
  };
  add_to_signature("family", family);
  add_to_signature("model", model);
  add_to_signature("stepping", stepping);
}

// Sockets, cores and caches, as the kernel lays them out. One CPU's caches represent all: where
// cores differ, those of the first are shown.
void read_topology(const fs::path& root, doctor_facts& facts) {
  const fs::path cpus = root / "sys/devices/system/cpu";
  std::set<std::string> sockets;
  std::set<std::string> cores;
  unsigned online = 0;
  for (const auto& [number, cpu] : numbered_entries(cpus, "cpu")) {
    const std::string socket = first_line(cpu / "topology/physical_package_id");
    if (socket.empty()) continue;  // offline
    ++online;
    sockets.insert(socket);
    cores.insert(socket + "/" + first_line(cpu / "topology/die_id") + "/" +
                 first_line(cpu / "topology/core_id"));
  }
  facts.sockets = static_cast<unsigned>(sockets.size());
  facts.cores = static_cast<unsigned>(cores.size());
  if (online != 0) facts.hardware_threads = online;
  if (facts.cores != 0) facts.threads_per_core = facts.hardware_threads / facts.cores;

  for (const auto& [number, index] : numbered_entries(cpus / "cpu0/cache", "index")) {
    cache_facts cache;
    cache.level = static_cast<unsigned>(number_in(first_line(index / "level")));
    cache.type = first_line(index / "type");
    cache.size_bytes = bytes_in(first_line(index / "size"));
    cache.line_bytes = static_cast<unsigned>(number_in(first_line(index / "coherency_line_size")));
    cache.ways = static_cast<unsigned>(number_in(first_line(index / "ways_of_associativity")));
    cache.shared_by = first_line(index / "shared_cpu_list");
    if (cache.level != 0) facts.caches.push_back(std::move(cache));
  }
}

void read_memory(const fs::path& root, doctor_facts& facts) {
  for_each_pair(root / "proc/meminfo", [&](std::string_view key, std::string_view value) {
    if (key == "MemTotal") facts.memory_bytes = bytes_in(value);
  });
  const fs::path mm = root / "sys/kernel/mm";
  facts.transparent_huge_pages = bracketed(first_line(mm / "transparent_hugepage/enabled"));
  facts.transparent_defrag = bracketed(first_line(mm / "transparent_hugepage/defrag"));
  for (const auto& [kilobytes, directory] : numbered_entries(mm / "hugepages", "hugepages-")) {
    facts.huge_pages.push_back({.page_bytes = kilobytes << 10,
                                .reserved = number_in(first_line(directory / "nr_hugepages")),
                                .free = number_in(first_line(directory / "free_hugepages"))});
  }
  for (const auto& [number, directory] :
       numbered_entries(root / "sys/devices/system/node", "node")) {
    numa_node_facts node;
    node.number = static_cast<unsigned>(number);
    node.cpus = first_line(directory / "cpulist");
    for_each_pair(directory / "meminfo", [&node](std::string_view key, std::string_view value) {
      if (key.ends_with("MemTotal")) node.memory_bytes = bytes_in(value);
    });
    facts.numa_nodes.push_back(std::move(node));
  }
}

void read_system(const fs::path& root, doctor_facts& facts) {
  const std::string boot_options = first_line(root / "proc/cmdline");
  for (const std::string_view option : words_of(boot_options)) {
    if (option.starts_with("tsx=") || option.starts_with("tsx_async_abort=")) {
      if (!facts.tsx_boot_option.empty()) facts.tsx_boot_option += ' ';
      facts.tsx_boot_option += option;
    }
  }
  facts.tsx_async_abort =
      first_line(root / "sys/devices/system/cpu/vulnerabilities/tsx_async_abort");

  utsname names{};
  if (::uname(&names) == 0) {
    facts.kernel = std::string(names.sysname) + " " + names.release;
    facts.architecture = names.machine;
  }
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  // Fails where there are more CPUs than the set holds; then all of them count as usable.
  facts.usable_threads = ::sched_getaffinity(0, sizeof allowed, &allowed) == 0
                             ? static_cast<unsigned>(CPU_COUNT(&allowed))
                             : facts.hardware_threads;
#if defined(__clang__)
  facts.compiler.append("clang ").append(trimmed(__clang_version__));
#else
  facts.compiler.append("gcc ").append(__VERSION__);
#endif
}

std::string readable_bytes(std::uint64_t bytes) {
  constexpr std::array units{"B", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  double value = static_cast<double>(bytes);
  while (value >= 1024 && unit + 1 < units.size()) {
    value /= 1024;
    ++unit;
  }
  char text[32];
  const bool whole = value == static_cast<double>(static_cast<std::uint64_t>(value));
  std::snprintf(text, sizeof text, whole ? "%.0f %s" : "%.1f %s", value, units[unit]);
  return text;
}

std::string count_of(std::uint64_t count, const char* thing) {
  return std::to_string(count) + " " + thing + (count == 1 ? "" : "s");
}

std::string cache_name(const cache_facts& cache) {
  std::string name = "L" + std::to_string(cache.level);
  if (cache.type == "Data") name += " data";
  if (cache.type == "Instruction") name += " instructions";
  return name;
}

// Lines "label  value", with the values in one column; a value that is empty leaves its line out.
class table {
 public:
  void add(std::string label, std::string value) {
    if (!value.empty()) lines_.emplace_back(std::move(label), std::move(value));
  }
  std::string text() const {
    std::size_t width = 0;
    for (const auto& [label, value] : lines_) width = std::max(width, label.size());
    std::string all;
    for (const auto& [label, value] : lines_) {
      all.append(label).append(width - label.size() + 2, ' ').append(value).append("\n");
    }
    return all;
  }

 private:
  std::vector<std::pair<std::string, std::string>> lines_;
};

std::string joined(const std::vector<std::string>& parts, const char* between) {
  std::string all;
  for (const std::string& part : parts) {
    if (part.empty()) continue;
    if (!all.empty()) all += between;
    all += part;
  }
  return all;
}

std::string cores_text(const doctor_facts& facts) {
  std::vector<std::string> parts;
  if (facts.sockets != 0) parts.push_back(count_of(facts.sockets, "socket"));
  if (facts.cores != 0) parts.push_back(count_of(facts.cores, "core"));
  if (facts.hardware_threads == 0) return joined(parts, ", ");
  std::string threads = count_of(facts.hardware_threads, "hardware thread");
  if (facts.threads_per_core > 1) threads += " (SMT on)";
  if (facts.threads_per_core == 1) threads += " (no SMT)";
  parts.push_back(threads);
  if (facts.usable_threads != facts.hardware_threads) {
    parts.push_back(std::to_string(facts.usable_threads) + " usable by this process");
  }
  return joined(parts, ", ");
}

// Whether a kernel option could bring hardware transactions: an Intel CPU of a kind that had TSX
// shows the kernel's TAA verdict as "TSX disabled", or RTM bits that never commit.
bool tsx_is_switched_off(const doctor_facts& facts) {
  return !facts.htm.rtm_commits && facts.cpu_vendor == "GenuineIntel" &&
         (facts.tsx_async_abort.find("TSX disabled") != std::string::npos ||
          facts.htm.rtm_advertised);
}

}  // namespace

doctor_facts collect(const std::filesystem::path& root) {
  doctor_facts facts;
  facts.htm = htm::capability();
  read_cpuinfo(root, facts);
  read_topology(root, facts);
  read_memory(root, facts);
  read_system(root, facts);
  return facts;
}

std::string advice(const doctor_facts& facts) {
  if (facts.htm.rtm_commits) {
    return "elidex will run elided locks as hardware transactions on this machine, and take the "
           "lock where "
           "they "
           "keep aborting.";
  }
  std::string text =
      "elidex will use optimistic versions on this machine, and its elided locks take their "
      "fallback, "
      "because " +
      std::string(facts.htm.reason);
  if (facts.htm.rtm_always_aborts) {
    text += "; no kernel option brings transactions back on this CPU";
  } else if (tsx_is_switched_off(facts)) {
    text +=
        "; if this CPU is free of the TAA bug, booting with tsx=auto or tsx=on may bring them back";
  }
  return text + ".";
}

std::string to_text(const doctor_facts& facts) {
  table lines;
  lines.add("CPU", joined({facts.cpu_model, facts.cpu_signature}, ", "));
  lines.add("microcode", facts.microcode);
  lines.add("cores", cores_text(facts));
  for (const cache_facts& cache : facts.caches) {
    lines.add(cache_name(cache),
              joined({readable_bytes(cache.size_bytes),
                      cache.ways != 0 ? std::to_string(cache.ways) + "-way" : "",
                      cache.line_bytes != 0 ? std::to_string(cache.line_bytes) + "-byte lines" : "",
                      cache.shared_by.empty() ? "" : "CPU 0's is shared by CPU " + cache.shared_by},
                     ", "));
  }
  lines.add("hardware transactions",
            std::string(facts.htm.rtm_commits ? "yes: " : "no: ") + facts.htm.reason);
  lines.add("hardware lock elision", facts.htm.hle_advertised ? "advertised" : "no");
  lines.add("TSX flags of the kernel",
            facts.tsx_flags.empty() ? "none" : joined(facts.tsx_flags, ", "));
  lines.add("TSX boot option", facts.tsx_boot_option);
  lines.add("TSX async abort", facts.tsx_async_abort);
  if (facts.memory_bytes != 0) lines.add("memory", readable_bytes(facts.memory_bytes));
  lines.add(
      "transparent huge pages",
      facts.transparent_huge_pages.empty()
          ? ""
          : joined({facts.transparent_huge_pages,
                    facts.transparent_defrag.empty() ? "" : "defrag " + facts.transparent_defrag},
                   ", "));
  for (const huge_page_facts& pages : facts.huge_pages) {
    lines.add(
        "huge pages of " + readable_bytes(pages.page_bytes),
        std::to_string(pages.reserved) + " reserved, " + std::to_string(pages.free) + " free");
  }
  for (const numa_node_facts& node : facts.numa_nodes) {
    lines.add("NUMA node " + std::to_string(node.number),
              joined({node.cpus.empty() ? "no CPUs" : "CPUs " + node.cpus,
                      node.memory_bytes != 0 ? readable_bytes(node.memory_bytes) : ""},
                     ", "));
  }
  lines.add("kernel", joined({facts.kernel, facts.architecture}, ", "));
  lines.add("hypervisor", facts.under_hypervisor ? "yes, a virtual machine" : "none seen");
  lines.add("compiler", facts.compiler);
  return lines.text() + "\n" + advice(facts) + "\n";
}

nlohmann::ordered_json machine_json(const doctor_facts& facts) {
  nlohmann::ordered_json caches = nlohmann::ordered_json::array();
  for (const cache_facts& cache : facts.caches) {
    caches.push_back({{"level", cache.level},
                      {"type", cache.type},
                      {"bytes", cache.size_bytes},
                      {"line_bytes", cache.line_bytes},
                      {"ways", cache.ways},
                      {"shared_by", cache.shared_by}});
  }
  nlohmann::ordered_json huge_pages = nlohmann::ordered_json::array();
  for (const huge_page_facts& pages : facts.huge_pages) {
    huge_pages.push_back(
        {{"page_bytes", pages.page_bytes}, {"reserved", pages.reserved}, {"free", pages.free}});
  }
  nlohmann::ordered_json nodes = nlohmann::ordered_json::array();
  for (const numa_node_facts& node : facts.numa_nodes) {
    nodes.push_back(
        {{"node", node.number}, {"cpus", node.cpus}, {"memory_bytes", node.memory_bytes}});
  }
  return {{"cpu", facts.cpu_model},
          {"cpu_vendor", facts.cpu_vendor},
          {"cpu_signature", facts.cpu_signature},
          {"microcode", facts.microcode},
          {"sockets", facts.sockets},
          {"cores", facts.cores},
          {"hardware_threads", facts.hardware_threads},
          {"usable_threads", facts.usable_threads},
          {"threads_per_core", facts.threads_per_core},
          {"caches", std::move(caches)},
          {"htm",
           {{"rtm_commits", facts.htm.rtm_commits},
            {"rtm_advertised", facts.htm.rtm_advertised},
            {"rtm_always_aborts", facts.htm.rtm_always_aborts},
            {"hle_advertised", facts.htm.hle_advertised},
            {"reason", facts.htm.reason},
            {"flags", facts.tsx_flags},
            {"boot_option", facts.tsx_boot_option},
            {"tsx_async_abort", facts.tsx_async_abort}}},
          {"memory_bytes", facts.memory_bytes},
          {"transparent_huge_pages", facts.transparent_huge_pages},
          {"huge_pages", std::move(huge_pages)},
          {"numa_nodes", std::move(nodes)},
          {"kernel", facts.kernel},
          {"architecture", facts.architecture},
          {"hypervisor", facts.under_hypervisor},
          {"compiler", facts.compiler}};
}

}  // namespace elidex::cli
