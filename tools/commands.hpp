#pragma once
// The commands of the program, each with its flags as they were typed. main.cpp fills the flags in; a command
// checks them, does its work and returns the exit status. It throws lab::bad_input for a flag it cannot take:
// main prints that as one line and exits with status 2.

#include <string>
#include <vector>

namespace elidex::tools {

struct workload_flags {
  std::string index = "ordered_map";
  std::string workload = "a";
  std::string dist = "uniform";
  std::string keys;
  std::string key_type;
  std::string key_file;
  std::string scan_length = "100";
  std::string order = "random";
  std::string seed = "1";
  std::string json;
};

struct bench_flags : workload_flags {
  std::string threads = "1";
  std::string seconds = "1";
  std::string warm_up;
  std::string repeat = "3";
  bool oversubscribe = false;
};
int bench_command(const bench_flags& flags);

struct sim_flags : workload_flags {
  std::string machine = "haswell-ep-2x10";
  std::string cores = "1";
  std::string operations = "2000";
  std::string retries;
  std::string leaf_version = "none";
  std::string quantum = "0";
  std::vector<std::string> set;
  std::string trace;
  std::string jobs;
};
int sim_command(const sim_flags& flags);

struct repro_flags {
  std::vector<std::string> ids;
  std::string scale = "smoke";
  std::string machine;
  std::string seed = "1";
  std::string out = "results";
  std::string jobs;
  std::string json;
};
int repro_command(const repro_flags& flags);

struct list_flags {
  std::string json;
};
int list_command(const list_flags& flags);

struct doctor_flags {
  std::string json;
};
int doctor_command(const doctor_flags& flags);

struct report_flags {
  std::vector<std::string> files;
  std::string out = "results/report.html";
};
int report_command(const report_flags& flags);

}  // namespace elidex::tools
