#pragma once
// The commands of the program, each with its flags as they were typed. main.cpp fills the flags in;
// a command checks them, does its work and returns the exit status. It throws bench::bad_input for
// a flag it cannot take: main prints that as one line and exits with status 2.

#include <string>
#include <vector>

namespace elidex::cli {

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

inline constexpr const char* bench_index_default = "ordered_map,absl+mutex";

struct bench_flags : workload_flags {
  std::string threads = "1";
  std::string seconds = "1";
  std::string warm_up;
  std::string repeat = "3";
  bool oversubscribe = false;
  // Of workloads over databases; empty: not given.
  std::string warehouses;
  std::string customers;
  std::string items;
  std::string readers;
  std::string durability;
  std::string folder;
  std::string operations;
  std::string theta;
  std::string isolation;
  std::string hot;
  std::string hot_percent;
};
int bench_command(const bench_flags& flags);

// How long bench runs what, read from the flags.
struct bench_time {
  std::vector<unsigned> threads;
  double seconds = 1;
  double warm_up_seconds = 0.1;
  unsigned rounds = 3;
};

// The kinds of workloads that bench knows. One run of the program has one kind: their results would
// share no table.
enum class workload_family : unsigned { keys, tpcc, ycsb_txn, smallbank };
int tpcc_bench_command(const bench_flags& flags, const bench_time& time);
int ycsb_txn_bench_command(const bench_flags& flags, const bench_time& time);
int smallbank_bench_command(const bench_flags& flags, const bench_time& time);

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

struct column_flags {
  std::string file;
  std::string column;
  std::string type = "auto";
  bool skip_bad = false;
  std::string json;
};

struct column_load_flags : column_flags {
  std::string rows;
  std::string threads = "1";
};
int column_load_command(const column_load_flags& flags);

// Queries with their values; empty where not asked.
struct column_query_flags : column_flags {
  std::vector<std::string> find;   // one value
  std::vector<std::string> range;  // lowest, highest
  std::vector<std::string> count;  // lowest, highest
  bool distinct = false;
  std::string top;
  std::string limit = "20";
};
int column_query_command(const column_query_flags& flags);

struct elide_flags {
  std::vector<std::string> command;  // the program and its arguments
  std::string stats;
  std::string elision;
};
// Returns only by exceptions: the program takes this process's place.
int elide_command(const elide_flags& flags);

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

}  // namespace elidex::cli
