// The program itself, as a user runs it: what bad input is told, and what JSON comes out.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "bench/runner/machine.hpp"
#include "bench/workload/key_set.hpp"
#include "elidex/version.hpp"
#include "support/elidex_tool.hpp"

namespace {

namespace fs = std::filesystem;
using elidex::testing::elidex_tool;
using elidex::testing::outcome;
using testing::HasSubstr;

TEST_F(elidex_tool, refuses_unknown_names) {
  refused("bench --index nonsense", "--index: invalid value 'nonsense'",
          "(expected an index that 'elidex list' prints)\n");
  refused("bench --index tbb,", "--index: 'tbb,'");
  refused("bench --index ''", "--index");
  refused("bench --index tbb,tbb", "--index: 'tbb' is given twice");
  refused("bench --workload g", "--workload: invalid value 'g'",
          "a workload that 'elidex list' prints");
  refused("bench --workload a,,b", "--workload");
  refused("bench --dist normal", "--dist: invalid value 'normal'", "zipf:THETA");
  refused("bench --dist zipf:1.3", "--dist");
  refused("bench --dist zipf:-1", "--dist");
  refused("bench --dist zipf", "--dist");
  refused("bench --key-type int", "--key-type", "u64 or string");
  refused("bench --order sideways", "--order", "random, ascending or interleaved");
  refused("bench --dist hot:1.1", "--dist: invalid value 'hot:1.1'",
          "hot:THETA with THETA from 0 to 1");
  refused("bench --workload mix:101", "--workload: invalid value 'mix:101'",
          "mix:N, N from 0 to 100");
  refused("bench --workload eunomia:0.5:2", "--workload: invalid value 'eunomia:0.5:2'",
          "eunomia:THETA[:READS[:BYTES]], THETA from 0 to 1.2, READS from 0 to 1");
  refused("sim --workload put", "--workload: invalid value 'put'", "put:THETA");
  refused("sim --workload eunomia:0.5 --key-type string", "--index",
          "cannot run eunomia:0.5 (expected --key-type u64)");
  refused("bench --workload multi-get:65", "--workload: invalid value 'multi-get:65'",
          "multi-get:N, N from 1 to 64");
  refused("bench --index \"$(printf 'two\\nlines')\"", "--index");
}

TEST_F(elidex_tool, refuses_negative_and_absurd_sizes) {
  for (const char* keys : {"-1", "=-1", "0", "1.5", "abc", "10X", "10MM", "1e6", "''",
                           "99999999999999999999", "5G", "4G"}) {
    if (std::string(keys) == "''") continue;
    refused(std::string("bench --keys") + (keys[0] == '=' ? "" : " ") + keys, "--keys");
  }
  for (const char* seconds : {"-1", "0", "nan", "inf", "1h", "1e9"}) {
    refused(std::string("bench --seconds ") + seconds, "--seconds",
            "expected seconds from 0.01 to 3600");
  }
  refused("bench --warm-up -1", "--warm-up");
  refused("bench --repeat 0", "--repeat");
  refused("bench --repeat 100000", "--repeat");
  refused("bench --seed -1", "--seed");
  refused("bench --scan-length 0", "--scan-length");
  refused("bench --scan-length 10-5", "--scan-length");
  refused("bench --scan-length -5", "--scan-length");
}

TEST_F(elidex_tool, refuses_threads_beyond_the_machine) {
  const std::size_t cpus = elidex::bench::allowed_cpus().size();
  refused("bench --threads 0", "--threads");
  refused("bench --threads -2", "--threads");
  refused("bench --threads 1,x", "--threads: invalid value 'x'");
  refused("bench --threads " + std::to_string(cpus + 1), "--threads", "--oversubscribe");
  refused("bench --oversubscribe --threads " + std::to_string(64 * cpus + 1), "--threads");
  refused("bench --oversubscribe --threads 1000000", "--threads");
  EXPECT_EQ(run("bench --index tbb --keys 1K --seconds 0.02 --repeat 1 --oversubscribe --threads " +
                std::to_string(cpus + 1))
                .status,
            0);
}

TEST_F(elidex_tool, refuses_key_files_that_are_no_good) {
  refused("bench --key-file " + path("missing"), "--key-file", "does not exist");
  refused("bench --key-file .", "--key-file", "is a directory");
  refused("bench --key-file " + file("empty", ""), "--key-file", "is empty");
  refused("bench --key-file " + file("twice", "one\ntwo\nthree\ntwo\n"), "--key-file",
          "repeats line 2 in line 4");
  refused("bench --key-file " + file("nul", std::string("one\nt\0wo\n", 9)), "--key-file",
          "NUL byte in line 2");
  refused("bench --key-file " + file("long", "x\n" + std::string(65537, 'y') + "\n"), "--key-file",
          "more than 65536 bytes in line 2");
  refused("bench --key-type u64 --key-file " + file("good", "a\nb\n"), "--key-file",
          "--key-type string");
  refused("bench --keys 3 --key-file " + path("good"), "--keys", "has 2 keys");
  if (geteuid() != 0) {
    fs::permissions(file("secret", "a\n"), fs::perms::none);
    refused("bench --key-file " + path("secret"), "--key-file", "cannot be read");
  }
}

// Neither ends: what is read is checked, and limited, while it comes.
TEST_F(elidex_tool, refuses_key_files_without_end) {
  refused("bench --key-file /dev/zero", "--key-file: /dev/zero is a device");
  refused("bench --key-file /dev/null", "--key-file: /dev/null is a device");
  piped_refused("yes", "bench --key-file /dev/stdin",
                "--key-file: /dev/stdin repeats line 1 in line 2");
  piped_refused("cat /dev/zero", "bench --key-file /dev/stdin",
                "--key-file: /dev/stdin has a NUL byte in line 1");
  piped_refused("yes | tr -d '\\n'", "bench --key-file /dev/stdin",
                "--key-file: /dev/stdin has more than 65536 bytes in line 1");
}

TEST_F(elidex_tool, takes_keys_from_a_pipe) {
  const outcome got = run_after("printf 'b\\na\\n' | sort |",
                                "bench --index tbb --workload c --seconds 0.02 --repeat 1 "
                                "--key-file /dev/stdin");
  EXPECT_EQ(got.status, 0) << got.err;
  EXPECT_THAT(got.out, HasSubstr("2 string keys"));
}

TEST_F(elidex_tool, refuses_empty_values) {
  for (const char* flags : {"doctor --json",
                            "list --json",
                            "bench --json",
                            "bench --key-file",
                            "bench --index",
                            "bench --keys",
                            "bench --workload tpcc --folder",
                            "bench --warm-up",
                            "sim --json",
                            "sim --trace",
                            "sim --machine",
                            "sim --jobs",
                            "sim --set",
                            "repro E-F2 --json",
                            "repro E-F2 --out",
                            "repro E-F2 --machine",
                            "report x.json --out",
                            "column load t.csv --column a --json",
                            "column load t.csv --column a --rows",
                            "column query t.csv --column a --distinct --json",
                            "elide --elision"}) {
    const std::string text = flags;
    refused(text + " ''", text.substr(text.rfind("--")) + ": value missing (expected ");
  }
  refused("bench --keys ''", "--keys: value missing (expected N)\n");
  refused("bench --index ''", "--index: value missing (expected A,B)\n");
  refused("report ''", "files: value missing (expected FILE)\n");
  refused("column load '' --column a", "FILE: value missing (expected a file)\n");
}

TEST_F(elidex_tool, names_the_nearest_of_many_names) {
  const auto one_line = [&](const std::string& arguments, const std::string& begin,
                            const std::string& meant) {
    refused(arguments, begin, ") Did you mean '" + meant + "'?\n");
    EXPECT_LT(run(arguments).err.size(), 250U) << arguments;
  };
  one_line("bench --index ordred_map", "--index: invalid value 'ordred_map'", "ordered_map");
  one_line("bench --index absl_mutex", "--index: invalid value 'absl_mutex'", "absl+mutex");
  one_line("bench --workload tpcc --index db/slio", "--index: invalid value 'db/slio'", "db/silo");
  one_line("bench --workload multiget:8", "--workload: invalid value", "multi-get");
  one_line("bench --dist unifrom", "--dist: invalid value 'unifrom'", "uniform");
  one_line("bnech", "'bnech' is not a command", "bench");
  one_line("column laod", "'laod' is not a command", "load");
  one_line("bench --thread 1", "'--thread' is not a flag of elidex bench", "--threads");
  one_line("bench --thread=1", "'--thread' is not a flag of elidex bench", "--threads");
  one_line("--verison", "'--verison' is not a flag of elidex", "--version");
  one_line("repro --sede 1", "'--sede' is not a flag of elidex repro", "--seed");
  one_line("sim --machine haswell-ep-2x1", "--machine: invalid value", "haswell-ep-2x10");
  one_line("sim --set abort_cycle=3", "--set: invalid value 'abort_cycle=3'", "abort_cycles");
}

TEST_F(elidex_tool, refuses_an_unwritable_json_before_the_run) {
  for (const std::string& command :
       {std::string("bench --seconds 3600"), std::string("list"), std::string("doctor")}) {
    refused(command + " --json " + path("no/such/directory/x.json"), "--json", "cannot be written");
    refused(command + " --json .", "--json", "is a directory");
    refused(command + " --json /proc/elidex.json", "--json", "cannot be written");
  }
}

TEST_F(elidex_tool, refuses_what_is_no_flag) {
  refused("", "a command is missing", "bench");
  refused("frobnicate", "'frobnicate' is not a command", "bench");
  for (const char* const command :
       {"", " bench", " repro", " column", " column load", " elide", " doctor"}) {
    const std::string name = std::string("elidex") + command;
    for (const char* const flag : {"--frobnicate", "-v"}) {
      refused(std::string(command) + " " + flag, std::string("'") + flag + "' is not a flag of " +
                                                     name + " (expected one that '" + name +
                                                     " --help' lists)\n");
    }
  }
  refused("list extra --foo", "'--foo' is not a flag of elidex list");
  refused("bench extra", "'extra' is one argument too many",
          "(expected what 'elidex bench --help' lists)\n");
}

TEST_F(elidex_tool, names_a_value_or_an_argument_that_is_missing) {
  refused("bench --keys", "--keys: value missing (expected N)\n");
  refused("bench --json=", "--json: value missing (expected FILE)\n");
  refused("bench --seed 1 --seed 2", "--seed: 2 values given (expected N)\n");
  refused("repro", "id is missing (expected ID, as 'elidex repro --help' describes)\n");
  refused("column load", "FILE is missing (expected a file, as 'elidex column load --help'");
}

TEST_F(elidex_tool, fails_where_standard_output_cannot_be_written) {
  for (const char* const arguments : {"--help", "--version", "bench --help", "list"}) {
    const outcome got = run_after("", arguments, ">/dev/full");
    EXPECT_EQ(got.status, 1) << arguments;
    EXPECT_EQ(got.err, "elidex: standard output cannot be written\n") << arguments;
  }
}

TEST_F(elidex_tool, refuses_a_bench_of_which_nothing_can_run) {
  refused("bench --index tbb --workload delete --keys 1K", "--index: tbb has no erase", "erase");
  refused("bench --index libcds --workload e --keys 1K", "--index: libcds has no range scan",
          "scan");
}

TEST_F(elidex_tool, refuses_an_index_that_is_not_built) {
  const auto document = nlohmann::json::parse(run("list --json -").out);
  bool all_built = true;
  for (const auto& one : document.at("indexes")) {
    if (one.at("built")) continue;
    all_built = false;
    const auto name = one.at("name").get<std::string>();
    refused("bench --keys 1K --index " + name, "--index: " + name, "is not built: ");
    EXPECT_THAT(one.at("description").get<std::string>(), HasSubstr("not built: "));
  }
  if (all_built) GTEST_SKIP() << "all of them are built";
}

TEST_F(elidex_tool, a_refused_run_leaves_the_json_file_alone) {
  const std::string target = file("kept.json", "precious");
  refused("bench --index nonsense --json " + target, "--index");
  refused("bench --key-file " + path("missing") + " --json " + target, "--key-file");
  refused("bench --keys 4G --json " + target, "--keys");
  EXPECT_EQ(text_of(target), "precious");
}

TEST_F(elidex_tool, refuses_a_report_without_results) {
  refused("report", "files", "bench --json");
  refused("report missing.json", "files", "missing.json");
  refused("report " + file("some.json", "{}") + " --out .", "--out", "is a directory");
}

TEST_F(elidex_tool, bench_prints_schema_1_and_nothing_else) {
  const outcome got =
      run("bench --index absl+mutex,std+shared_mutex,tbb --workload a --dist zipf:0.99 --keys 10K "
          "--threads 1,2 "
          "--seconds 0.1 --oversubscribe --json -");
  ASSERT_EQ(got.status, 0) << got.err;
  // Notes, on a busy machine, but no progress bar.
  EXPECT_EQ(got.err.find('\r'), std::string::npos) << got.err;
  const auto document = nlohmann::json::parse(got.out);
  EXPECT_EQ(document.at("schema"), 1);
  EXPECT_TRUE(document.at("commit").is_string());
  EXPECT_TRUE(document.at("machine").at("cpu").is_string());
  EXPECT_TRUE(document.at("machine").at("allocator").is_string());
  EXPECT_TRUE(document.at("machine").at("htm").at("reason").is_string());
  EXPECT_TRUE(document.at("claims").empty());
  EXPECT_GE(document.at("load_average").at("start"), 0);
  EXPECT_GE(document.at("load_average").at("end"), 0);
  ASSERT_EQ(document.at("runs").size(), 6U);
  std::vector<std::string> seen;
  for (const auto& run : document.at("runs")) {
    seen.push_back(run.at("index").get<std::string>() + "/" +
                   std::to_string(run.at("threads").get<int>()));
    EXPECT_EQ(run.at("workload"), "a");
    EXPECT_EQ(run.at("dist"), "zipf:0.99");
    EXPECT_GT(run.at("mops"), 0);
    EXPECT_LE(run.at("mops_min"), run.at("mops"));
    EXPECT_LE(run.at("mops"), run.at("mops_max"));
    EXPECT_GT(run.at("ns_p50"), 0);
    EXPECT_LE(run.at("ns_p50"), run.at("ns_p99"));
    EXPECT_LE(run.at("ns_p99"), run.at("ns_p999"));
    EXPECT_GT(run.at("bytes_per_key"), 16);
    EXPECT_LT(run.at("bytes_per_key"), 200);
    EXPECT_EQ(run.at("raw_mops").size(), 3U);
    EXPECT_EQ(run.at("keys"), 10'000);
    EXPECT_EQ(run.at("seed"), 1);
    EXPECT_EQ(run.at("misses"), 0);
    for (const char* field :
         {"aborts_per_op", "fallback_pct", "wasted_pct", "ratio_to_first", "seconds"}) {
      EXPECT_TRUE(run.at(field).is_number()) << field;
    }
    for (const char* cause : {"conflict", "capacity", "explicit", "interrupt", "other"}) {
      EXPECT_TRUE(run.at("aborts").at(cause).is_number()) << cause;
    }
  }
  EXPECT_THAT(seen, testing::ElementsAre("absl+mutex/1", "std+shared_mutex/1", "tbb/1",
                                         "absl+mutex/2", "std+shared_mutex/2", "tbb/2"));
}

TEST_F(elidex_tool, bench_writes_its_runs_as_csv) {
  const std::string command =
      "bench --index absl+mutex,tbb --workload e --keys 10K --seconds 0.05 --repeat 2 ";
  ASSERT_EQ(run(command + "--csv runs.csv --json runs.json").status, 0);
  const auto runs = nlohmann::json::parse(text_of(path("runs.json"))).at("runs");
  std::istringstream lines(text_of(path("runs.csv")));
  const auto cells = [&lines] {
    std::vector<std::string> found;
    std::string line;
    std::getline(lines, line);
    std::istringstream in(line);
    for (std::string cell; std::getline(in, cell, ',');) found.push_back(cell);
    return found;
  };
  const std::vector<std::string> columns = cells();
  EXPECT_THAT(columns, testing::IsSupersetOf({"index", "mops", "ns_p999", "aborts.conflict",
                                              "raw_mops.0", "raw_mops.1", "scan_length.1"}));
  for (const auto& one : runs) {
    const std::vector<std::string> row = cells();
    ASSERT_EQ(row.size(), columns.size());
    for (std::size_t i = 0; i < row.size(); ++i) {
      std::string pointer = "/" + columns[i];
      std::replace(pointer.begin(), pointer.end(), '.', '/');
      const auto& value = one.at(nlohmann::json::json_pointer(pointer));
      EXPECT_EQ(row[i], value.is_string() ? value.get<std::string>() : value.dump()) << columns[i];
    }
  }
  EXPECT_EQ(cells().size(), 0U);
  const outcome alone = run(command + "--csv -");
  EXPECT_TRUE(alone.out.starts_with("index,workload,dist,threads,")) << alone.out;
  EXPECT_EQ(std::count(alone.out.begin(), alone.out.end(), '\n'), 3);
  refused(command + "--csv - --json -", "--csv: '-' is what --json has", "another file");
  refused(command + "--csv .", "--csv", "is a directory");
}

TEST_F(elidex_tool, bench_runs_urls_where_strings_have_no_file) {
  if (!fs::exists(elidex::bench::word_list)) GTEST_SKIP() << "no word list";
  const outcome got =
      run("bench --index ordered_map,absl+mutex --workload load,c --key-type string --keys 2000 "
          "--seconds 0.03 --repeat 1 "
          "--json " +
          path("out.json"));
  ASSERT_EQ(got.status, 0) << got.err;
  EXPECT_THAT(got.out, HasSubstr("2000 URLs"));
  const auto document = nlohmann::json::parse(text_of(path("out.json")));
  ASSERT_EQ(document.at("runs").size(), 4U);
  for (const auto& run : document.at("runs")) {
    EXPECT_EQ(run.at("key_type"), "string");
    EXPECT_EQ(run.at("misses"), 0);
    EXPECT_EQ(run.at("keys"), 2000);
  }
}

TEST_F(elidex_tool, bench_runs_real_string_keys) {
  std::string words;
  for (int i = 0; i < 3000; ++i) words += "word" + std::to_string(i * 7919) + "\n";
  const outcome got =
      run("bench --index ordered_map,absl+mutex,tbb --workload load,c,e --seconds 0.03 --repeat 1 "
          "--key-file " +
          file("words", words) + " --json " + path("out.json"));
  ASSERT_EQ(got.status, 0) << got.err;
  EXPECT_THAT(got.out, HasSubstr("3000 string keys"));
  EXPECT_THAT(got.out, HasSubstr("Mops/s"));
  EXPECT_EQ(got.out.find('\r'), std::string::npos) << "a progress bar in a pipe";
  const auto document = nlohmann::json::parse(text_of(path("out.json")));
  ASSERT_EQ(document.at("runs").size(), 9U);
  for (const auto& run : document.at("runs")) {
    EXPECT_EQ(run.at("key_type"), "string");
    EXPECT_EQ(run.at("misses"), 0);
    EXPECT_EQ(run.at("keys"), 3000);
  }
}

TEST_F(elidex_tool, json_replaces_a_file_whole_and_leaves_nothing_else) {
  const std::string target = file("results.json", std::string(100'000, 'x'));
  fs::create_symlink("results.json", path("link.json"));
  ASSERT_EQ(run("list --json link.json").status, 0);
  EXPECT_TRUE(fs::is_symlink(path("link.json")));
  EXPECT_EQ(nlohmann::json::parse(text_of(target)).at("schema"), 1);
  EXPECT_EQ(run("list --json /dev/null").status, 0);
  std::size_t files = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(target).parent_path())) {
    files += entry.path().filename().string().starts_with('.') ? 0U : 1U;
  }
  EXPECT_EQ(files, 2U);
}

TEST_F(elidex_tool, equal_seeds_do_equal_work) {
  const auto requests = [&] {
    const outcome got =
        run("bench --index tbb --workload load --keys 5K --repeat 1 --seed 9 --json -");
    return nlohmann::json::parse(got.out).at("runs").at(0).at("requests").get<std::uint64_t>();
  };
  EXPECT_EQ(requests(), 5000U);
  EXPECT_EQ(requests(), 5000U);
}

TEST_F(elidex_tool, lists_and_diagnoses) {
  const outcome list = run("list");
  EXPECT_EQ(list.status, 0);
  for (const char* name :
       {"ordered_map", "btree/rtm-noretry", "libcds", "congee", "bplustree", "crossbeam-skiplist",
        "scc-tree", "concurrent-map", "scc-hash", "dashmap", "papaya", "delta/rw", "delete",
        "mix:N", "insert-mix:N", "put:THETA", "eunomia:THETA[:READS[:BYTES]]", "zipf:THETA",
        "hot:THETA"}) {
    EXPECT_THAT(list.out, HasSubstr(name));
  }
  const auto document = nlohmann::json::parse(run("list --json -").out);
  EXPECT_GE(document.at("indexes").size(), 14U);
  EXPECT_EQ(document.at("workloads").size(), 28U);

  EXPECT_EQ(run("doctor").status, 0);
  EXPECT_EQ(nlohmann::json::parse(run("doctor --json -").out).at("schema"), 1);
  EXPECT_EQ(run("--help").status, 0);
  EXPECT_EQ(run("--version").out, std::string("elidex ") + elidex::version + "\n");
  EXPECT_THAT(run("bench --help").out,
              AllOf(HasSubstr("--oversubscribe"), HasSubstr("x first is")));
}

#if defined(ELIDEX_HAS_SIM)

constexpr const char* small_sim =
    "sim --index btree/htm-dbx,btree/optimistic --keys 2000 --dist zipf:0.99 --cores 4 --ops 100";

TEST_F(elidex_tool, simulates_more_threads_than_cores) {
  const auto runs_of = [&](const std::string& flags) {
    const outcome got = run("sim --index btree/spin --keys 1000 --ops 100 --json - " + flags);
    return nlohmann::json::parse(got.out).at("runs");
  };
  const auto both = runs_of("--cores 2 --threads 1,4");
  ASSERT_EQ(both.size(), 2U);
  EXPECT_FALSE(both[0].contains("cpus"));
  EXPECT_EQ(both[1].at("threads"), 4);
  EXPECT_EQ(both[1].at("cpus"), 2);
  EXPECT_GT(both[1].at("ready_pct"), 0);
  EXPECT_EQ(runs_of("--threads 3")[0].at("mops"), runs_of("--cores 3")[0].at("mops"));
}

TEST_F(elidex_tool, simulates_the_same_each_time) {
  ASSERT_EQ(run(std::string(small_sim) + " --json first.json").status, 0);
  ASSERT_EQ(run("sim --json again.json --jobs 1 " + std::string(small_sim).substr(4)).status, 0);
  const auto first = nlohmann::json::parse(text_of(path("first.json")));
  EXPECT_EQ(first.at("runs").size(), 2U);
  EXPECT_EQ(first.at("schema"), 1);
  EXPECT_GT(first.at("runs").at(0).at("aborts_per_op").get<double>(), 0);
  EXPECT_EQ(first.at("runs").at(0).at("misses"), 0);
  EXPECT_EQ(text_of(path("first.json")), text_of(path("again.json")));
}

TEST_F(elidex_tool, simulates_keys_from_a_pipe) {
  const std::string sim =
      "sim --workload c --ops 10 --keys 2 --key-file pipe --index btree/optimistic";
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  const outcome got = run_after("(printf 'a\\nb\\n' >pipe &) ;", sim);
  EXPECT_EQ(got.status, 0) << got.err;
  refused(sim + ",btree/mutex",
          "--key-file: 'pipe' is a pipe, which only the first of several runs could read");
  refused("sim --workload c --key-file /dev/zero", "--key-file: '/dev/zero' is a device");
  piped_refused("yes", "sim --workload c --key-file /dev/stdin",
                "--key-file: '/dev/stdin' is reserved for");
}

TEST_F(elidex_tool, another_seed_gives_another_run) {
  const auto cycles = [&](const std::string& flags) {
    const outcome got = run(std::string(small_sim) + flags + " --json -");
    EXPECT_EQ(got.status, 0) << got.err;
    return nlohmann::json::parse(got.out).at("runs").at(0).at("cycles").get<std::uint64_t>();
  };
  const auto usual = cycles("");
  EXPECT_NE(cycles(" --seed 2"), usual);
  EXPECT_NE(cycles(" --set abort_cycles=400"), usual);
  EXPECT_NE(cycles(" --retries 0"), usual);
}

TEST_F(elidex_tool, refuses_what_a_machine_cannot_do) {
  refused("sim --machine pdp11", "--machine: invalid value 'pdp11'",
          "a machine that 'elidex list' prints, or a machine file");
  refused("sim --cores 0", "--cores: invalid value '0'");
  refused("sim --cores 100000", "--cores: invalid value '100000'");
  refused("sim --threads 257", "--threads: invalid value '257'");
  refused("sim --leaf-version both", "--leaf-version: invalid value 'both'");
  refused("sim --ops none", "--ops: invalid value 'none'");
  refused("sim --index absl+mutex", "--index", "not compiled for the simulated machine");
  refused("sim --set abort_cycles", "--set: invalid value 'abort_cycles'");
  refused("sim --set speed=3", "--set: invalid value 'speed=3'",
          "there is no machine parameter speed");
  refused("sim --set rtm=7", "--set: invalid value 'rtm=7'", "rtm takes 0 to 1");
  refused("sim --trace no/such/directory/t.json", "--trace", "cannot be written");
  refused("sim --cores 1,2 --trace t.json", "--trace: 't.json'", "one run");
  refused("sim --key-type string --key-file missing.txt",
          "--key-file: 'missing.txt' does not exist");
  refused("sim --machine '" + file("bad.machine", "# mine\nsockets = 77 -- assumed\n") + "'",
          "--machine", "bad.machine:2: sockets takes 1 to 4, not 77");
}

TEST_F(elidex_tool, repro_reports_a_missing_python) {
  const outcome got = run_after("ELIDEX_PYTHON=/none/python", "repro S-3.12");
  EXPECT_EQ(got.status, 1);
  EXPECT_EQ(got.out, "");
  EXPECT_EQ(got.err,
            "elidex: repro: /none/python cannot be started (set ELIDEX_PYTHON to another "
            "Python)\n");
}

TEST_F(elidex_tool, the_program_on_the_machine_says_what_it_is) {
  const int status =
      std::system("'" ELIDEX_SIM_WORKER "' </dev/null 2>'" ELIDEX_SIM_WORKER ".said'");
  EXPECT_EQ(WEXITSTATUS(status), 2);
  EXPECT_THAT(text_of(ELIDEX_SIM_WORKER ".said"), HasSubstr("start it with 'elidex sim'"));
  fs::remove(ELIDEX_SIM_WORKER ".said");
}

// Where the request lies in memory is not the simulated program's business.
TEST_F(elidex_tool, a_simulated_run_does_not_depend_on_how_long_names_are) {
  const std::string machine = text_of(ELIDEX_MACHINES "/haswell-ep-2x10.machine");
  nlohmann::json first;
  for (const std::size_t length : {1U, 30U, 200U}) {
    const std::string named = file(std::string(length, 'm'), machine);
    ASSERT_EQ(run("sim --machine '" + named +
                  "' --index delta/rtm --workload insert-mix:100 --keys 1000 --cores 4 --ops 500 "
                  "--json r.json")
                  .status,
              0);
    auto runs = nlohmann::json::parse(text_of(path("r.json"))).at("runs");
    for (auto& one : runs) one.erase("machine");  // its name
    if (first.is_null()) first = runs;
    EXPECT_EQ(runs, first) << "with a name of " << length << " characters";
  }
}

#endif  // ELIDEX_HAS_SIM

}  // namespace
