"""elidex-c++: programs run on the machine, and what it refuses: elidex_cxx_test.py ELIDEX_CXX"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

COMPILER = Path(sys.argv.pop(1)).resolve()


class Programs(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.directory = Path(holder.name)

    def compiler(self, *words):
        return subprocess.run([sys.executable, COMPILER, *words], cwd=self.directory, capture_output=True, text=True)

    def write(self, name, text):
        (self.directory / name).write_text(text)
        return name

    def compile(self, text, *options):
        answer = self.compiler("-O2", *options, self.write("program.cpp", text), "-o", "program")
        self.assertEqual(answer.returncode, 0, answer.stderr)

    def start(self, settings="", arguments=()):
        return subprocess.run([self.directory / "program", *arguments], cwd=self.directory, capture_output=True, text=True,
                              env={**os.environ, "ELIDEX_SIM": settings}, timeout=120)

    def refusal(self, text):
        answer = self.compiler("-O2", self.write("program.cpp", text), "-o", "program")
        self.assertEqual(answer.returncode, 2, answer.stderr)
        self.assertFalse((self.directory / "program").exists())
        return answer.stderr


COUNTER = """
#include <mutex>
#include <thread>
#include <vector>
#include <cstdio>
std::mutex mutex;
struct alignas(64) cell { long value = 0; } cells[64];
int main() {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (unsigned i = 0; i < 500; ++i) {
        std::lock_guard guard(mutex);
        ++cells[(i * 7 + t * 16) % 64].value;
      }
    });
  for (auto& thread : threads) thread.join();
  long sum = 0;
  for (auto& cell : cells) sum += cell.value;
  std::printf("%ld\\n", sum);
}
"""


# One function's data is every thread's, the other one's is its thread's own.
HOT = """
#include <cstdio>
#include <mutex>
#include <thread>
#include <vector>
std::mutex mutex;
struct alignas(64) cell { long value[8] = {}; } cells[5];
[[gnu::noipa]] static void hot(long* value) { for (int i = 0; i < 8; ++i) ++value[i]; }
[[gnu::noipa]] static void cold(long* value) { for (int i = 0; i < 8; ++i) ++value[i]; }
int main() {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (unsigned i = 0; i < 400; ++i) {
        std::lock_guard guard(mutex);
        if (i % 2 == 0) hot(cells[4].value); else cold(cells[t].value);
      }
    });
  for (auto& thread : threads) thread.join();
  std::printf("%ld %ld\\n", cells[4].value[7], cells[0].value[0] + cells[1].value[0] + cells[2].value[0] + cells[3].value[0]);
}
"""


class Runs(Programs):
    def report(self, settings):
        answer = self.start(settings + " report=report.json")
        self.assertEqual((answer.returncode, answer.stdout), (0, "2000\n"), answer.stderr)
        return json.loads((self.directory / "report.json").read_text())

    def test_locks_are_plain_or_elided(self):
        self.compile(COUNTER)
        plain = self.report("machine=haswell-ep-2x10")
        elided = self.report("machine=haswell-ep-2x10 locks=elided")
        self.assertEqual(plain["total"]["begun"], 0)
        self.assertGreater(elided["total"]["committed"], 1500)
        self.assertLess(elided["cycles"], plain["cycles"])

    def test_equal_settings_give_equal_runs(self):
        self.compile(COUNTER)
        self.assertEqual(self.report("locks=elided seed=3"), self.report("locks=elided seed=3"))
        self.assertNotEqual(self.report("locks=elided seed=3"), self.report("locks=elided seed=4"))

    def test_parameters_of_the_machine_can_be_set(self):
        self.compile(COUNTER)
        self.assertLess(self.report("dirty_near_cycles=10")["cycles"], self.report("dirty_near_cycles=900")["cycles"])
        self.assertEqual(self.report("rtm=0 locks=elided")["total"]["begun"], 0)

    def test_wrong_settings_are_named(self):
        self.compile(COUNTER)
        for settings, said in (("machine=pdp11", "unknown machine 'pdp11'"), ("locks=maybe", "unknown value 'maybe'"),
                               ("cpus=0", "expected 1 to 256"), ("cpus=4294967297", "expected 1 to 256"), ("machine=program.cpp", "program.cpp:"),
                               ("cpus=100", "cpus: haswell-ep-2x10 has 40"),
                               ("nonsense", "expected KEY=VALUE"), ("seed=x", "'x' is not a number"),
                               ("no_such_parameter=1", "no_such_parameter"), ("report=/no/such/file", "cannot write")):
            answer = self.start(settings)
            self.assertEqual((answer.returncode, answer.stdout), (2, ""), settings)
            self.assertEqual(answer.stderr.count("\n"), 1, answer.stderr)
            self.assertIn(said, answer.stderr)

    def test_an_abort_undoes_the_references_to_an_exception(self):
        self.compile("""
#include <atomic>
#include <cstdio>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>
std::atomic<long> living{0};
struct counted {
  counted() { ++living; }
  counted(const counted&) { ++living; }
  ~counted() { --living; }
};
std::mutex mutex;
long cells[64];
int main() {
  std::exception_ptr shared = std::make_exception_ptr(counted());
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i) {
        std::lock_guard guard(mutex);
        std::exception_ptr mine = shared;
        for (int k = 0; k < 8; ++k) cells[k * 8] += i;
        mine = nullptr;
      }
    });
  for (auto& one : threads) one.join();
  shared = nullptr;
  std::printf("%ld\\n", living.load());
}
""")
        for locks in ("plain", "elided"):
            answer = self.start(f"locks={locks} machine=haswell-i5-4670t")
            self.assertEqual((answer.returncode, answer.stdout), (0, "0\n"), answer.stderr)

    def test_a_key_is_given_once(self):
        self.compile("int main() {}\n")
        answer = self.start("cpus=4 seed=2 cpus=4")
        self.assertEqual((answer.returncode, answer.stderr), (2, "elidex: ELIDEX_SIM: cpus: given twice\n"))

    def test_aborts_are_reported_by_function(self):
        self.compile(HOT)
        answer = self.start("locks=elided report=report.json")
        self.assertEqual((answer.returncode, answer.stdout), (0, "800 800\n"), answer.stderr)
        report = json.loads((self.directory / "report.json").read_text())
        aborts = {one["function"]: one["aborts"] for one in report["functions"]}
        self.assertEqual(sum(aborts.values()), sum(report["total"]["aborts"].values()))
        self.assertIn("hot(long*)", aborts)
        self.assertGreater(aborts["hot(long*)"], 20 * aborts.get("cold(long*)", 0))
        cycles = [one["aborted_cycles"] for one in report["functions"]]
        self.assertEqual(cycles, sorted(cycles, reverse=True))
        self.assertRegex(answer.stderr, r"(?m)^elidex: +\d+\.\d % of the aborted cycles, \d+ aborts: hot\(long\*\)$")

    def test_a_stripped_program_reports_addresses(self):
        self.compile(HOT, "-s")
        answer = self.start("locks=elided")
        self.assertRegex(answer.stderr, r"(?m)aborts: 0x[0-9a-f]+$")

    def test_functions_that_were_renamed_are_reported_as_in_the_source(self):
        self.compile("""
#include <cstdio>
#include <map>
#include <mutex>
#include <thread>
#include <vector>
std::mutex mutex;
std::map<int, int> numbers;
int main() {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < 200; ++i) {
        std::lock_guard guard(mutex);
        numbers[i * 4 + t] = i;
      }
    });
  for (auto& thread : threads) thread.join();
  std::printf("%zu\\n", numbers.size());
}
""")
        answer = self.start("locks=elided report=report.json")
        self.assertEqual((answer.returncode, answer.stdout), (0, "800\n"), answer.stderr)
        names = [one["function"] for one in json.loads((self.directory / "report.json").read_text())["functions"]]
        self.assertTrue(any(name.startswith("std::_Rb_tree_insert_and_rebalance(bool") for name in names), names)
        self.assertTrue({"pthread_mutex_lock", "pthread_mutex_unlock"} & set(names), names)
        for name in names:
            self.assertNotRegex(name, "^elidex_|^elidex::preload")

    def test_without_aborts_no_function_is_reported(self):
        self.compile(COUNTER)
        self.assertEqual(self.report("locks=plain")["functions"], [])

    def test_a_system_call_aborts_and_is_made_once(self):
        self.compile("""
#include <cstdio>
#include <iostream>
#include <mutex>
std::mutex mutex;
int main() {
  for (int i = 0; i < 3; ++i) {
    std::lock_guard guard(mutex);
    std::printf("%d %s %.1f\\n", i, "x", 0.5);
    std::fflush(stdout);
    std::cout << i << std::endl;
  }
}
""")
        answer = self.start("locks=elided")
        self.assertEqual(answer.stdout, "".join(f"{i} x 0.5\n{i}\n" for i in range(3)), answer.stderr)
        self.assertIn("system call", answer.stderr)

    def test_files_conditions_arguments_and_the_status(self):
        self.compile("""
#include <condition_variable>
#include <fstream>
#include <mutex>
#include <queue>
#include <string>
#include <thread>
std::mutex mutex;
std::condition_variable filled;
std::queue<std::string> lines;
bool done = false;
int main(int argc, char** argv) {
  if (argc != 2) return 9;
  int count = 0;
  std::thread reader([&] {
    std::ifstream in(argv[1]);
    for (std::string line; std::getline(in, line);) {
      std::lock_guard guard(mutex);
      lines.push(line);
      filled.notify_one();
    }
    std::lock_guard guard(mutex);
    done = true;
    filled.notify_all();
  });
  for (;;) {
    std::unique_lock guard(mutex);
    filled.wait(guard, [] { return done || !lines.empty(); });
    if (lines.empty()) break;
    count += static_cast<int>(lines.front().size());
    lines.pop();
  }
  reader.join();
  return count;
}
""")
        self.write("input.txt", "one\nthree\n\nfive\n")
        for locks in ("plain", "elided"):
            answer = self.start("locks=" + locks, ["input.txt"])
            self.assertEqual(answer.returncode, 12, answer.stderr)
        self.assertEqual(self.start().returncode, 9)

    def test_readers_and_writers_share_a_lock(self):
        self.compile("""
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>
std::shared_mutex mutex;
long value = 0;
thread_local long seen = 0;
int main() {
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < std::thread::hardware_concurrency(); ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < 100; ++i) {
        if (t == 0) {
          std::unique_lock guard(mutex);
          ++value;
        } else {
          std::shared_lock guard(mutex);
          if (value < seen) throw 1;
          seen = value;
        }
      }
    });
  for (auto& thread : threads) thread.join();
  return value == 100 && threads.size() == 8 ? 0 : 1;
}
""")
        for locks in ("plain", "elided"):
            answer = self.start(f"cpus=8 locks={locks}")
            self.assertEqual(answer.returncode, 0, answer.stderr)

    def test_a_program_that_waits_for_ever_is_named(self):
        self.compile("""
#include <mutex>
#include <thread>
std::mutex mutex;
int main() {
  mutex.lock();
  std::thread([] { std::lock_guard guard(mutex); }).join();
}
""")
        answer = self.start()
        self.assertEqual(answer.returncode, 1)
        self.assertIn("mutex", answer.stderr)

    def test_the_end_of_main_ends_other_threads(self):
        self.compile("""
#include <atomic>
#include <cstdio>
#include <thread>
std::atomic<bool> stop{false};
int main() {
  std::thread([] { while (!stop) std::this_thread::yield(); }).detach();
  std::puts("end");
  return 5;
}
""")
        answer = self.start()
        self.assertEqual((answer.returncode, answer.stdout), (5, "end\n"))
        self.assertIn("main() returned before 1 other threads ended\n", answer.stderr)

    def test_much_of_the_c_plus_plus_library_at_each_level_of_optimisation(self):
        for level in ("-O0", "-O2"):
            self.compile(LIBRARY, level)
            for locks in ("plain", "elided"):
                answer = self.start("cpus=6 locks=" + locks)
                self.assertEqual((answer.returncode, answer.stdout), (0, "300 13 50 5 caught\n"), answer.stderr)

    def test_an_exception_ends_the_program(self):
        for thrown, said in (('std::invalid_argument("too far")', "too far"), ("42", "the program ended with an exception")):
            self.compile(f"#include <stdexcept>\nint main() {{ throw {thrown}; }}\n")
            answer = self.start()
            self.assertEqual((answer.returncode, answer.stderr.count("\n")), (1, 1), answer.stderr)
            self.assertIn(said, answer.stderr)

    def test_a_stack_that_is_used_up_is_named(self):
        for body in ("volatile char here[2000]; here[0] = 1; return n == 0 ? here[0] : f(n - 1) + here[0];",
                     "volatile char here[1500000]; here[n] = 1; return here[n];"):
            self.compile(f"#include <thread>\n__attribute__((noipa)) int f(int n) {{ {body} }}\n"
                         "int main() { int got = 0; std::thread([&] { got = f(100000); }).join(); return got; }\n")
            answer = self.start("cpus=4")
            self.assertEqual((answer.returncode, answer.stderr), (1, "elidex: a thread has used up its stack of 892 KiB\n"))

    def test_another_segmentation_fault_stays_one(self):
        self.compile("int* volatile nowhere = nullptr;\nint main() { return *nowhere; }\n")
        self.assertEqual(self.start().returncode, -signal.SIGSEGV)

    def test_one_thread_too_many_is_named(self):
        self.compile("""
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>
int main() {
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  bool refused = false;
  for (int t = 0; t < 256; ++t) try {
    threads.emplace_back([&] { stop.wait(false); });
  } catch (const std::system_error&) {
    refused = t == 255;
  }
  stop = true;
  stop.notify_all();
  for (auto& thread : threads) thread.join();
  return refused ? 0 : 1;
}
""")
        answer = self.start()
        self.assertEqual(answer.returncode, 0, answer.stderr)
        self.assertTrue(answer.stderr.startswith("elidex: pthread_create: there are 256 threads already\n"), answer.stderr)

    def test_without_address_space_it_is_named(self):
        self.compile("int main() {}\n")
        answer = subprocess.run(["sh", "-c", "ulimit -v 4000000; ./program"], cwd=self.directory, capture_output=True, text=True, timeout=60)
        self.assertEqual(answer.returncode, 1)
        self.assertEqual(answer.stderr, "elidex: the machine needs 65 GiB of address space from 0x200000000000 on: Cannot allocate memory\n")

    def test_where_the_arguments_lie_does_not_depend_on_the_environment(self):
        self.compile("""
#include <cstdio>
#include <string>
int main(int argc, char** argv) {
  unsigned sum = 0;
  for (int i = 1; i < argc; ++i)
    for (const char c : std::string(argv[i])) sum += static_cast<unsigned char>(c);
  std::printf("%u %d\\n", sum, argv[argc] == nullptr);
}
""")
        shown = set()
        for more in range(0, 64, 4):
            answer = subprocess.run([str(self.directory / "program") if more % 8 else "./program", "a" * 100, "bc" * 70], cwd=self.directory,
                                    capture_output=True, text=True, env={**os.environ, "PADDING": "x" * more})
            self.assertEqual(answer.stdout, "23490 1\n")
            shown.add(answer.stderr)
        self.assertEqual(len(shown), 1, shown)

    def test_kinds_of_mutexes_check_what_glibc_checks(self):
        self.compile("""
#include <pthread.h>
#include <cerrno>
#include <cstdio>
#include <thread>
int main() {
  for (const int kind : {PTHREAD_MUTEX_ERRORCHECK, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_NORMAL}) {
    pthread_mutexattr_t of;
    pthread_mutexattr_init(&of);
    pthread_mutexattr_settype(&of, kind);
    pthread_mutex_t m;
    pthread_mutex_init(&m, &of);
    pthread_cond_t c = PTHREAD_COND_INITIALIZER;
    const int unlocked = pthread_mutex_unlock(&m);
    const int waited = kind == PTHREAD_MUTEX_NORMAL ? 0 : pthread_cond_wait(&c, &m);
    pthread_mutex_lock(&m);
    const int again = kind == PTHREAD_MUTEX_NORMAL ? 0 : pthread_mutex_lock(&m);
    const int tried = pthread_mutex_trylock(&m);
    int by_another = 0;
    if (kind != PTHREAD_MUTEX_NORMAL) std::thread([&] { by_another = pthread_mutex_unlock(&m); }).join();
    int count = 0;
    while (pthread_mutex_unlock(&m) == 0 && kind != PTHREAD_MUTEX_NORMAL) ++count;
    std::printf("%d %d %d %d %d %d\\n", unlocked == EPERM, waited == EPERM, again == EDEADLK, tried == EBUSY, by_another == EPERM, count);
  }
}
""")
        for locks in ("plain", "elided"):
            answer = self.start(f"locks={locks}")
            self.assertEqual((answer.returncode, answer.stdout), (0, "1 1 1 1 1 1\n1 1 0 0 1 3\n0 0 0 1 0 0\n"), answer.stderr)

    def test_a_thread_outside_of_main_is_named(self):
        self.compile("#include <thread>\nstruct pool { std::thread t{[] {}}; ~pool() { t.join(); } } all;\nint main() {}\n")
        answer = self.start()
        self.assertEqual((answer.returncode, answer.stderr), (1, "elidex: a thread cannot start before main() or after it\n"))

    def test_what_is_done_under_a_lock_is_undone_with_it(self):
        self.compile("""
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>
std::mutex mutex;
std::unordered_map<int, int> map;
std::string text;
char number[32] = "1000001";
int (*print)(const char*) = std::puts;
int main() {
  std::vector<std::thread> threads;
  int torn = 0;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        const std::lock_guard guard(mutex);
        map[1000 * t + i] = i;
        text.append("ab");
        if (i % 50 == 0) print("line");
        if (i % 7 == 0) {
          const int now = std::atoi(number);
          torn += now % 1000001 != 0;
          std::snprintf(number, sizeof number, "%d", 1000001 * (t + 1));
        }
      }
    });
  for (auto& thread : threads) thread.join();
  return map.size() == 1200 && map.load_factor() <= map.max_load_factor() && text.size() == 2400 && torn == 0 ? 0 : 1;
}
""")
        for locks in ("plain", "elided"):
            answer = self.start("machine=haswell-i5-4670t locks=" + locks)
            self.assertEqual((answer.returncode, answer.stdout), (0, "line\n" * 24), answer.stderr)

    def test_times_that_have_passed_are_not_waited_for(self):
        self.compile("""
#include <chrono>
#include <condition_variable>
#include <mutex>
using namespace std::chrono_literals;
int main() {
  std::mutex mutex;
  std::timed_mutex timed;
  std::condition_variable never;
  std::unique_lock guard(mutex);
  never.wait_until(guard, std::chrono::steady_clock::now() - 1s);
  never.wait_for(guard, -1s);
  timed.lock();
  return timed.try_lock_until(std::chrono::steady_clock::now() - 1s) ? 1 : 0;
}
""")
        self.assertEqual(self.start().returncode, 0)

    def test_more_of_the_language(self):
        self.compile("""
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <random>
struct base { virtual ~base() = default; };
struct derived : base, std::enable_shared_from_this<derived> {};
std::once_flag once;
int main(int, char**, char** environment) {
  std::mt19937 random(1);
  const double drawn = std::uniform_real_distribution<>(0, 1)(random) + std::normal_distribution<>()(random);
  int calls = 0;
  for (int i = 0; i < 3; ++i) std::call_once(once, [&] { ++calls; });
  const auto made = std::make_shared<derived>();
  base& as_base = *made;
  const bool cast = dynamic_cast<derived*>(&as_base) != nullptr && made->shared_from_this() == made;
  return std::isfinite(drawn) && std::fabs(-1.0) + std::abs(-2) == 3 && std::toupper('a') == 'A' && calls == 1 && cast &&
         environment[0] != nullptr ? 0 : 1;
}
""")
        self.assertEqual(self.start().returncode, 0)

    def test_the_library_runs_there_too(self):
        self.compile("""
#include <elidex/ordered_map.hpp>
#include <thread>
int main() {
  elidex::ordered_map<unsigned, unsigned> map;
  std::thread other([&] { for (unsigned i = 0; i < 100; ++i) map.insert(2 * i, i); });
  for (unsigned i = 0; i < 100; ++i) map.insert(2 * i + 1, i);
  other.join();
  return map.size() == 200 ? 0 : 1;
}
""")
        answer = self.start()
        self.assertEqual(answer.returncode, 0, answer.stderr)


    def test_trees_and_lists_of_the_c_plus_plus_library(self):
        self.compile(CONTAINERS)
        answer = self.start("cpus=1")
        self.assertEqual((answer.returncode, answer.stdout), (0, ""), answer.stderr)


LIBRARY = """
#include <any>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <queue>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_map>
#include <unordered_set>
#include <variant>
#include <vector>
struct shape { virtual ~shape() = default; virtual double area() const = 0; };
struct square : shape {
  double side;
  explicit square(double s) : side(s) {}
  double area() const override { return side * side; }
};
int main() {
  std::mutex mutex;
  std::unordered_map<std::string, int> counts;
  std::map<std::string, std::vector<int>> lists;
  std::unordered_set<int> seen;
  std::priority_queue<int> queue;
  int total = 0, caught = 0;
  const std::shared_ptr<shape> shared = std::make_shared<square>(2.0);
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t)
    threads.emplace_back([&, t, shared] {
      std::mt19937 random(static_cast<unsigned>(t));
      for (int i = 0; i < 50; ++i) {
        try {
          const std::scoped_lock guard(mutex);
          const std::string key = "k" + std::to_string((i * 7 + t) % 13) + std::to_string(shared->area());
          ++counts[key];
          lists[key].push_back(i);
          seen.insert(i);
          queue.push(static_cast<int>(random() % 100));
          ++total;
          if (i == 20) throw std::runtime_error("twenty");
        } catch (const std::runtime_error&) {
          const std::scoped_lock guard(mutex);
          ++caught;
        }
      }
    });
  for (auto& thread : threads) thread.join();
  if (caught != 6 || queue.size() != 300 || lists.size() != counts.size()) return 1;
  std::ostringstream text;
  text << total << ' ' << counts.size() << ' ' << seen.size();
  const std::variant<int, std::string> said = text.str();
  const std::any three = 3;
  const std::function<int(int)> add = [&](int x) { return x + *std::any_cast<int>(&three); };
  std::cout << std::get<std::string>(said) << ' ' << add(2);
  try {
    (void)counts.at("none");
  } catch (const std::out_of_range&) {
    std::cout << " caught" << std::endl;
  }
}
"""

# Against a sorted vector, with the rules of red-black trees; every way round.
CONTAINERS = """
#include <algorithm>
#include <list>
#include <map>
#include <set>
#include <stdexcept>
#include <vector>
using node = std::_Rb_tree_node_base;
void expect(bool holds, int line) { if (!holds) throw line; }
#define EXPECT(...) expect(__VA_ARGS__, __LINE__)
int black_height(const node* x, const node* parent) {
  if (x == nullptr) return 0;
  EXPECT(x->_M_parent == parent);
  const bool red = x->_M_color == std::_S_red;
  for (const node* child : {x->_M_left, x->_M_right})
    EXPECT(!red || child == nullptr || child->_M_color == std::_S_black);
  const int height = black_height(x->_M_left, x);
  EXPECT(black_height(x->_M_right, x) == height);
  return height + (red ? 0 : 1);
}
void check(const std::set<int>& set, const std::vector<int>& sorted) {
  const node* const header = set.end()._M_node;
  if (const node* const root = header->_M_parent; root != nullptr) {
    EXPECT(root->_M_color == std::_S_black);
    black_height(root, header);
  }
  EXPECT(std::equal(set.begin(), set.end(), sorted.begin(), sorted.end()));
  EXPECT(std::equal(set.rbegin(), set.rend(), sorted.rbegin(), sorted.rend()));
}
void trees() {
  unsigned random = 1;
  for (int size : {1, 2, 3, 7, 40, 300}) {
    std::set<int> set;
    std::vector<int> sorted;
    for (int step = 0; step < 8 * size; ++step) {
      random = random * 1664525 + 1013904223;
      const int key = static_cast<int>((random >> 16) % static_cast<unsigned>(size));
      const auto at = std::lower_bound(sorted.begin(), sorted.end(), key);
      if (at != sorted.end() && *at == key) {
        sorted.erase(at);
        EXPECT(set.erase(key) == 1);
      } else {
        sorted.insert(at, key);
        EXPECT(set.insert(key).second);
      }
      if (size <= 40 || step % 50 == 0) check(set, sorted);
    }
    while (!sorted.empty()) {
      const auto at = sorted.begin() + static_cast<long>(sorted.size()) / 3;
      set.erase(*at);
      sorted.erase(at);
      if (size <= 40) check(set, sorted);
    }
    check(set, sorted);
  }
  std::map<int, int> map;
  for (int i = 0; i < 100; ++i) map[(i * 37) % 101] = i;
  EXPECT(map.size() == 100 && map.rbegin()->first == 100 && std::prev(map.end())->first == 100);
}
void lists() {
  std::list<int> a{1, 2, 3, 4}, b{9}, empty, none;
  a.reverse();
  EXPECT(a == std::list<int>{4, 3, 2, 1});
  a.splice(std::next(a.begin()), b);
  EXPECT(a == std::list<int>{4, 9, 3, 2, 1} && b.empty());
  a.splice(a.begin(), a, std::prev(a.end()));
  a.sort();
  EXPECT(a == std::list<int>{1, 2, 3, 4, 9});
  a.swap(empty);
  EXPECT(a.empty() && empty.size() == 5 && empty.back() == 9);
  a.swap(none);
  b.push_back(7);
  b.swap(empty);
  EXPECT(b.front() == 1 && b.back() == 9 && empty == std::list<int>{7});
  b.remove(3);
  b.erase(b.begin());
  EXPECT(b == std::list<int>{2, 4, 9});
  b.reverse();
  none.reverse();
  EXPECT(b == std::list<int>{9, 4, 2} && none.empty());
}
int main() {
  try {
    trees();
    lists();
  } catch (int line) {
    return line % 256;
  }
}
"""


class Commands(Programs):
    def test_objects_are_linked(self):
        self.write("a.cpp", "int twice(int); int main() { return twice(4); }\n")
        self.write("b.cpp", "int twice(int x) { return 2 * x; }\n")
        for name in ("a", "b"):
            self.assertEqual(self.compiler("-c", name + ".cpp").returncode, 0)
        self.assertEqual(self.compiler("a.o", "b.o", "-o", "program").returncode, 0)
        self.assertEqual(self.start().returncode, 8)

    def test_dependencies_are_of_the_object(self):
        self.write("a.cpp", "int main() {}\n")
        self.assertEqual(self.compiler("-MMD", "-c", "a.cpp", "-o", "made.o").returncode, 0)
        self.assertTrue((self.directory / "made.d").read_text().startswith("made.o: a.cpp"))
        self.assertEqual(self.compiler("-MMD", "a.cpp", "-o", "program").returncode, 0)
        self.assertTrue((self.directory / "a.d").read_text().startswith("a.o: a.cpp"))
        self.assertEqual(self.compiler("made.o", "-oprogram").returncode, 0)
        self.assertEqual(self.start().returncode, 0)

    def test_a_foreign_object_is_refused(self):
        self.write("a.cpp", "int main() {}\n")
        subprocess.run(["c++", "-c", "a.cpp", "-o", "a.o"], cwd=self.directory, check=True)
        answer = self.compiler("a.o", "-o", "program")
        self.assertEqual((answer.returncode, answer.stderr), (2, "elidex-c++: a.o: was not compiled by elidex-c++\n"))

    def test_the_compiler_s_errors_are_its_own(self):
        answer = self.compiler(self.write("a.cpp", "int main() { return nothing; }\n"), "-o", "program")
        self.assertEqual(answer.returncode, 1)
        self.assertIn("nothing", answer.stderr)

    def test_wrong_words_are_named(self):
        self.write("a.cpp", "int f() { return 1; }\n")
        for words, said in ((["a.cpp"], "no file has a main()"), (["b.cpp"], "b.cpp: no such file"), (["-o"], "expected a value"),
                            (["a.cpp", "-shared"], "-shared: is not supported"), (["a.txt"], "unknown kind of file"),
                            (["-O2"], "expected a file"), (["a.cpp", "-flto=auto"], "-flto=auto: is not supported"),
                            (["a.cpp", "-fno-plt"], "-fno-plt: is not supported"), (["a.cpp", "-mrtm"], "-mrtm: is not supported"),
                            (["a.cpp", "-fopenmp"], "-fopenmp: is not supported"), (["a.cpp", "-std=c++17"], "expected c++20 or later")):
            answer = self.compiler(*words)
            self.assertEqual((answer.returncode, answer.stderr.count("\n")), (2, 1), answer.stderr)
            self.assertIn(said, answer.stderr)

    def test_what_the_machine_cannot_run_is_named_with_the_reason(self):
        for text, said in (
                ("#include <unistd.h>\nint main() { return fork(); }\n", "cannot run fork: a run has one process"),
                ("#include <cstdlib>\nint main() { std::exit(3); }\n", "cannot run exit: a run ends when main() returns"),
                ("#include <csignal>\nint main() { std::raise(3); }\n", "cannot run raise: a run has no signals"),
                ("#include <cstdlib>\nint main() { return std::malloc(9) != nullptr; }\n", "cannot run malloc: memory must come from new"),
                ("#include <semaphore.h>\nint main() { sem_t s; return sem_wait(&s); }\n", "cannot run sem_wait: the machine has std::"),
                ("#include <cstring>\nint main(int, char** v) { return strncpy(v[0], v[1], 3) != nullptr; }\n",
                 "cannot run strncpy: the machine would not see what it reads and writes"),
                ("#include <cstdlib>\n#include <new>\nvoid* operator new(std::size_t) { throw 1; }\nint main() {}\n",
                 "cannot link operator new(unsigned long): the machine has its own"),
                ("#include <pthread.h>\nint main() { pthread_mutexattr_t a; return pthread_mutexattr_setrobust(&a, PTHREAD_MUTEX_ROBUST); }\n",
                 "cannot run pthread_mutexattr_setrobust: the machine's mutexes are neither robust nor"),
                ("#include <pthread.h>\nint main() { pthread_key_t k; return pthread_key_create(&k, nullptr); }\n",
                 "cannot run pthread_key_create: the machine has thread_local"),
                ("#include <random>\nint main() { return static_cast<int>(std::random_device()()); }\n", "equal runs are equal")):
            self.assertIn(said, self.refusal(text))

    def test_instructions_that_the_machine_does_not_see_are_named_with_their_function(self):
        for body, instruction, why in (
                ('long x = 0; asm volatile("lock incq %0" : "+m"(x)); return x;', "lock incq", "the machine does not see inline assembly"),
                ("return __builtin_ia32_rdtsc();", "rdtsc", "it reads the host's clock"),
                ("unsigned u; return __builtin_ia32_rdtscp(&u);", "rdtscp", "it reads the host's clock")):
            text = f"__attribute__((noipa)) long f() {{ {body} }}\nint main() {{ return f() == 0; }}\n"
            self.assertRegex(self.refusal(text), f"^elidex-c\\+\\+: program.cpp: cannot run '{instruction}.*' in f\\(\\): {why}")
        rtm = ('__attribute__((target("rtm"), noipa)) void f() { if (__builtin_ia32_xbegin() == -1u) __builtin_ia32_xend(); }\n'
               "int main() { f(); }\n")
        self.assertIn("in f(): the program's own transactions are not simulated", self.refusal(rtm))
        self.assertEqual(self.refusal(rtm).count("\n"), 2)  # xbegin and xend
        hle = self.compiler(self.write("hle.cpp", "int w;\nint main() { return __atomic_exchange_n(&w, 1, __ATOMIC_ACQUIRE | __ATOMIC_HLE_ACQUIRE); }\n"))
        self.assertEqual(hle.returncode, 1)
        self.assertIn("__ATOMIC_HLE_ACQUIRE", hle.stderr)
        self.compile('int main() { asm volatile("" ::: "memory"); asm volatile("pause"); __builtin_ia32_pause(); }\n')


if __name__ == "__main__":
    unittest.main()
