// Flags that several files of the program read, as they were typed. command_line.hpp fills them in;
// a command checks them.
#pragma once

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
  std::string csv;
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
  std::string directory;
  std::string operations;
  std::string theta;
  std::string isolation;
  std::string hot;
  std::string hot_percent;
};

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

struct column_flags {
  std::string file;
  std::string column;
  std::string type = "auto";
  bool skip_bad = false;
  std::string json;
};

}  // namespace elidex::cli
