// What this machine offers to elidex: the facts behind `elidex doctor`, and behind "machine" in
// JSON output.
//
//   const elidex::cli::doctor_facts facts = elidex::cli::collect();
//   std::cout << elidex::cli::to_text(facts);
//   report["machine"] = elidex::cli::machine_json(facts);
//
// Facts come from /proc, /sys, uname and htm::capability(). What cannot be read stays empty or 0,
// and is left out of the text: nothing here fails for want of a file.
//
// Thread-safety: plain functions; call them from anywhere.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "elidex/htm.hpp"

namespace elidex::cli {

struct cache_facts {
  unsigned level = 0;
  std::string type;  // "Data", "Instruction" or "Unified"
  std::uint64_t size_bytes = 0;
  unsigned line_bytes = 0;
  unsigned ways = 0;
  std::string shared_by;  // the CPUs that share one of it, as the kernel lists them: "0-1"
};

struct huge_page_facts {
  std::uint64_t page_bytes = 0;
  std::uint64_t reserved = 0;
  std::uint64_t free = 0;
};

struct numa_node_facts {
  unsigned number = 0;
  std::string cpus;  // as the kernel lists them
  std::uint64_t memory_bytes = 0;
};

struct doctor_facts {
  // processor
  std::string cpu_model;
  std::string cpu_vendor;
  std::string cpu_signature;  // "family 6, model 85, stepping 7"
  std::string microcode;
  unsigned sockets = 0;
  unsigned cores = 0;             // of all sockets
  unsigned hardware_threads = 0;  // online
  unsigned usable_threads = 0;    // that this process may run on
  unsigned threads_per_core = 0;  // more than 1: SMT is on
  std::vector<cache_facts> caches;

  // hardware transactions
  htm::htm_capability htm{};
  // of the kernel's list: rtm, hle, rtm_always_abort, tsx_force_abort
  std::vector<std::string> tsx_flags;
  std::string tsx_boot_option;  // "tsx=on", if the kernel was booted with such an option
  std::string tsx_async_abort;  // the kernel's verdict on that vulnerability

  // memory
  std::uint64_t memory_bytes = 0;
  std::string transparent_huge_pages;  // always, madvise or never
  std::string transparent_defrag;
  std::vector<huge_page_facts> huge_pages;
  std::vector<numa_node_facts> numa_nodes;

  // system
  std::string kernel;
  std::string architecture;
  bool under_hypervisor = false;
  std::string compiler;
};

// Reads /proc and /sys below `root`, which tests put elsewhere.
doctor_facts collect(const std::filesystem::path& root = "/");

// A table of aligned lines, then one sentence: what elidex will use on this machine and what would
// change that.
std::string to_text(const doctor_facts& facts);

// That sentence alone.
std::string advice(const doctor_facts& facts);

// The "machine" object of schema 1.
nlohmann::ordered_json machine_json(const doctor_facts& facts);

}  // namespace elidex::cli
