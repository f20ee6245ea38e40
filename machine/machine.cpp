#include "machine/machine.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <sstream>

namespace elidex::sim {
namespace {

constexpr std::uint64_t cycles_max = 1'000'000'000;

constexpr std::array table{
    parameter{"sockets", &machine::sockets, 1, 4},
    parameter{"cores_per_socket", &machine::cores_per_socket, 1, 64},
    parameter{"threads_per_core", &machine::threads_per_core, 1, 2},
    parameter{"cores_filled_first", &machine::cores_filled_first, 0, 64},
    parameter{"megahertz", &machine::megahertz, 100, 10'000},
    parameter{"l1_sets", &machine::l1_sets, 1, 4096},
    parameter{"l1_ways", &machine::l1_ways, 1, 64},
    parameter{"l2_sets", &machine::l2_sets, 1, 65'536},
    parameter{"l2_ways", &machine::l2_ways, 1, 64},
    parameter{"l3_sets", &machine::l3_sets, 1, 1'048'576},
    parameter{"l3_ways", &machine::l3_ways, 1, 64},
    parameter{"instruction_cycles", &machine::instruction_cycles, 0, 1000},
    parameter{"instructions_per_100_cycles", &machine::instructions_per_100_cycles, 0, 100000},
    parameter{"shared_core_percent", &machine::shared_core_percent, 1, 100},
    parameter{"window_instructions", &machine::window_instructions, 0, 10000},
    parameter{"window_misses", &machine::window_misses, 1, 16},
    parameter{"window_stores", &machine::window_stores, 1, 16},
    parameter{"mispredicted_per_1000_branches", &machine::mispredicted_per_1000_branches, 0, 999},
    parameter{"misprediction_cycles", &machine::misprediction_cycles, 0, 1000},
    parameter{"l1_cycles", &machine::l1_cycles, 1, 1000},
    parameter{"l2_cycles", &machine::l2_cycles, 1, 1000},
    parameter{"l3_cycles", &machine::l3_cycles, 1, 10'000},
    parameter{"dram_cycles", &machine::dram_cycles, 1, 10'000},
    parameter{"dirty_near_cycles", &machine::dirty_near_cycles, 1, 10'000},
    parameter{"dirty_far_cycles", &machine::dirty_far_cycles, 1, 10'000},
    parameter{"l3_far_cycles", &machine::l3_far_cycles, 1, 10'000},
    parameter{"upgrade_near_cycles", &machine::upgrade_near_cycles, 1, 10'000},
    parameter{"upgrade_far_cycles", &machine::upgrade_far_cycles, 1, 10'000},
    parameter{"atomic_cycles", &machine::atomic_cycles, 0, 1000},
    parameter{"line_busy_cycles", &machine::line_busy_cycles, 0, 10'000},
    parameter{"line_order", &machine::line_order, 0, 2},
    parameter{"jitter_cycles", &machine::jitter_cycles, 0, 1000},
    parameter{"pause_cycles", &machine::pause_cycles, 1, 10'000},
    parameter{"page_fault_cycles", &machine::page_fault_cycles, 0, cycles_max},
    parameter{"system_call_cycles", &machine::system_call_cycles, 0, cycles_max},
    parameter{"futex_wait_cycles", &machine::futex_wait_cycles, 0, cycles_max},
    parameter{"futex_wake_cycles", &machine::futex_wake_cycles, 0, cycles_max},
    parameter{"wake_up_cycles", &machine::wake_up_cycles, 0, cycles_max},
    parameter{"slice_cycles", &machine::slice_cycles, 0, 100'000'000'000},
    parameter{"context_switch_cycles", &machine::context_switch_cycles, 0, 10'000'000},
    parameter{"allocate_cycles", &machine::allocate_cycles, 0, cycles_max},
    parameter{"timer_period_cycles", &machine::timer_period_cycles, 10'000, 100 * cycles_max},
    parameter{"timer_cycles", &machine::timer_cycles, 0, 9'999},
    parameter{"stray_interrupt_period_cycles", &machine::stray_interrupt_period_cycles, 10'000,
              100 * cycles_max},
    parameter{"rtm", &machine::rtm, 0, 1},
    parameter{"hle", &machine::hle, 0, 1},
    parameter{"begin_cycles", &machine::begin_cycles, 0, 10'000},
    parameter{"commit_cycles", &machine::commit_cycles, 0, 10'000},
    parameter{"commit_writes_cycles", &machine::commit_writes_cycles, 0, 10'000},
    parameter{"commit_exposed_cycles", &machine::commit_exposed_cycles, 0, 10'000},
    parameter{"abort_cycles", &machine::abort_cycles, 0, 100'000},
    parameter{"aborted_lines_in_l2", &machine::aborted_lines_in_l2, 0, 1},
    parameter{"requests_outlive_aborts", &machine::requests_outlive_aborts, 0, 1},
    parameter{"nesting_max", &machine::nesting_max, 1, 1000},
    parameter{"elided_locks_max", &machine::elided_locks_max, 1, 1},
    parameter{"read_table_sets", &machine::read_table_sets, 1, 1'048'576},
    parameter{"read_table_ways", &machine::read_table_ways, 1, 64},
};

constexpr std::array must_be_powers_of_two{&machine::l1_sets, &machine::l2_sets,
                                           &machine::read_table_sets};

const parameter* find(std::string_view name) noexcept {
  const auto at =
      std::find_if(table.begin(), table.end(), [&](const parameter& p) { return p.name == name; });
  return at == table.end() ? nullptr : &*at;
}

template <class... Parts>
std::string words(const Parts&... parts) {
  std::ostringstream text;
  (text << ... << parts);
  return text.str();
}

// What is wrong with the value, as a clause; empty: nothing.
std::string complaint(const parameter& p, std::uint64_t value) {
  if (value < p.min || value > p.max) {
    return words(p.name, " takes ", p.min, " to ", p.max, ", not ", value);
  }
  const bool must = std::find(must_be_powers_of_two.begin(), must_be_powers_of_two.end(),
                              p.value) != must_be_powers_of_two.end();
  if (must && (value & (value - 1)) != 0) {
    return words(p.name, " takes a power of two, not ", value);
  }
  return "";
}

std::string_view trimmed(std::string_view s) {
  constexpr std::string_view blanks = " \t\r";
  const std::size_t first = s.find_first_not_of(blanks);
  return first == std::string_view::npos ? ""
                                         : s.substr(first, s.find_last_not_of(blanks) - first + 1);
}

}  // namespace

std::span<const parameter> parameters() noexcept {
  return table;
}

void set_parameter(machine& which, std::string_view name, std::uint64_t value) {
  const parameter* const p = find(name);
  if (p == nullptr)
    throw std::invalid_argument("there is no machine parameter " + std::string(name));
  if (const std::string wrong = complaint(*p, value); !wrong.empty())
    throw std::invalid_argument(wrong);
  which.*p->value = value;
}

machine parse_machine(std::string_view text, std::string_view file, std::string_view name) {
  machine result;
  result.name = name;
  std::array<bool, table.size()> seen{};
  std::size_t number = 0;
  const auto refuse = [&](const std::string& why) {
    throw bad_machine(words(file, ':', number, ": ", why));
  };
  while (!text.empty()) {
    ++number;
    const std::size_t end = text.find('\n');
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty() || line.front() == '#') continue;
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos) refuse("expected 'parameter = value -- source'");
    const std::string_view key = trimmed(line.substr(0, equals));
    const std::string_view rest = line.substr(equals + 1);
    const std::size_t dashes = rest.find("--");
    const std::string_view value = trimmed(rest.substr(0, dashes));
    const parameter* const p = find(key);
    if (p == nullptr) refuse(words("there is no parameter '", key, "'"));
    if (dashes == std::string_view::npos || trimmed(rest.substr(dashes + 2)).empty()) {
      refuse(words(key,
                   " has no source; say where the value comes from, or 'assumed', behind ' -- '"));
    }
    bool& before = seen[static_cast<std::size_t>(p - table.data())];
    if (before) refuse(words(key, " is there twice"));
    before = true;
    std::uint64_t parsed = 0;
    const auto [stopped, error] =
        std::from_chars(value.data(), value.data() + value.size(), parsed);
    if (error != std::errc() || stopped != value.data() + value.size()) {
      refuse(words("'", value, "' is no whole number"));
    }
    if (const std::string wrong = complaint(*p, parsed); !wrong.empty()) refuse(wrong);
    result.*p->value = parsed;
  }
  ++number;
  for (std::size_t i = 0; i < table.size(); ++i) {
    if (!seen[i]) refuse(words("the file ends without ", table[i].name));
  }
  if (result.cores() > 64) refuse("more than 64 cores");
  return result;
}

machine read_machine(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::ostringstream text;
  if (!in || !(text << in.rdbuf())) throw bad_machine(file.string() + ":0: cannot be read");
  return parse_machine(text.str(), file.string(), file.stem().string());
}

}  // namespace elidex::sim
