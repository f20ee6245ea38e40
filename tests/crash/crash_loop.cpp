// kill -9 in a loop: a child works on a database that it keeps in a directory, is killed at a
// random moment, and what it has left is opened and looked at. Again and again over the same
// directory, at every durability level, with three workloads.
//
//   elidex_crash --runs 100 --seed 7
//
// ledger    threads that move money between accounts, each transaction numbered by one row and
//           written down in a journal of the last 64.
//           Afterwards: money is conserved, the journal has exactly the last numbers (so what
//           survived is a prefix), each as it was written.
//           An index has each account once.
// columns   the ledger, while change_table() changes the columns of its accounts to and fro.
// tpc-c     a small company. Afterwards: its consistency conditions, and no fewer orders than were
//           promised.
//
// In half of the runs the parent follows the directory meanwhile. Each state that a follower sees
// must be whole, and everything in it must survive.
//
// What is promised: at level sync a transaction that has returned; at level async what came before
// a wait_durable() that has returned; with none, that the directory is as it was. Checkpoints are
// written all the while, and some children are killed while they open the directory.
//
// --lose-log cuts the newest file of the log in half before it is looked at: then the loop must
// fail. Ends with 0, 1 if something was lost (the directory stays), 2 for arguments it does not
// take.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "bench/tpcc/consistency.hpp"
#include "bench/tpcc/terminal.hpp"
#include "elidex/database.hpp"
#include "support/random_seed.hpp"

namespace elidex::testing {

using namespace internal;

namespace {

using namespace std::chrono_literals;
using db::durability;

constexpr unsigned threads = 3;

// What child and parent both see.
struct shared_memory {
  std::atomic<bool> ready{false};          // the directory is open, and loaded if it was empty
  std::atomic<std::uint64_t> promised{0};  // the largest number, or the most orders
  std::atomic<std::uint64_t> transactions{0};
  std::atomic<std::uint64_t> checkpoints{0};
  std::atomic<std::uint64_t> own_checkpoints{0};  // that the database wrote by itself
};
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

void raise(std::atomic<std::uint64_t>& value, std::uint64_t to) {
  std::uint64_t seen = value.load();
  while (seen < to && !value.compare_exchange_weak(seen, to)) {
  }
}

// A database with its tables, to work on in the child and to look at in the parent.
class workload {
 public:
  virtual ~workload() = default;
  virtual database& db() = 0;
  virtual void load_if_empty() = 0;
  virtual void change_columns() {}
  // For ever. `life` differs from all before over this directory.
  virtual void work(unsigned thread, unsigned life, durability level, std::uint64_t seed,
                    shared_memory& shared) = 0;
  // Empty, or what is wrong.
  virtual std::string judge(std::uint64_t promised) = 0;
  // What judge() compares with what was promised. Never falls.
  virtual std::uint64_t progress() = 0;
  // Differs if the content does, most probably.
  virtual std::uint64_t digest() = 0;
};

struct entry {
  std::uint32_t thread = 0;
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  std::uint32_t amount = 0;
};

class ledger final : public workload {
  using accounts_table = database::schema_table<std::uint64_t>;
  using indexed = db::indexed_table<database, accounts_table>;
  struct indexed_accounts {
    indexed_accounts(database& db, accounts_table& of) : rows(db, of) {}
    indexed rows;
    indexed::index_of<std::int64_t> index = rows.add_index<std::int64_t>(
        "accounts by money", [](std::uint64_t, const db::row& row) { return money_of(row); });
  };

 public:
  static constexpr std::uint64_t accounts_count = 40;
  static constexpr std::uint64_t journal_length = 64;

  // The accounts have one of two forms, which the directory may have or not.
  explicit ledger(std::size_t form)
      : accounts_before_(
            db_.create_table<std::uint64_t>("accounts", forms()[form], change_to(form))) {
    add_index(accounts_before_);
  }

  database& db() override { return db_; }

  void load_if_empty() override {
    db_.transact([&](auto& t) {
      if (t.get(accounts_before_, 0)) return;
      for (std::uint64_t i = 0; i < accounts_count; ++i) {
        db::row row = accounts_before_.make_row();
        add(row, 1'000);
        by_money().rows.insert(t, i, row);
      }
      t.insert(numbers_, "last", 0);
    });
    db_.wait_durable();
  }

  void change_columns() override {
    auto& now = accounts();
    const std::size_t next = now.columns() == forms()[0] ? 1 : 0;
    db_.change_table(now, forms()[next], change_to(next),
                     [this](accounts_table& made) -> indexed& { return add_index(made); });
  }

  void work(unsigned thread, unsigned, durability level, std::uint64_t seed,
            shared_memory& shared) override {
    random_numbers random(seed + thread);
    for (std::uint64_t since = 0;;) {
      const entry drawn{thread, static_cast<std::uint32_t>(random.below(accounts_count)),
                        static_cast<std::uint32_t>(random.below(accounts_count)),
                        static_cast<std::uint32_t>(random.below(50))};
      const std::uint64_t number = db_.transact([&](auto& t) {
        std::uint64_t mine = 0;
        t.update(numbers_, "last", [&](std::uint64_t& last) { mine = ++last; });
        const indexed& money = by_money().rows;
        money.update(t, drawn.from, [&](db::row& row) { add(row, -std::int64_t{drawn.amount}); });
        money.update(t, drawn.to, [&](db::row& row) { add(row, drawn.amount); });
        t.insert(journal_, mine, drawn);
        if (mine > journal_length) t.erase(journal_, mine - journal_length);
        return mine;
      });
      shared.transactions.fetch_add(1);
      if (level == durability::sync) raise(shared.promised, number);
      if (level == durability::async && ++since % 256 == 0) {
        db_.wait_durable();
        raise(shared.promised, number);
      }
    }
  }

  std::string judge(std::uint64_t promised) override {
    std::int64_t sum = 0;
    std::uint64_t last = 0;
    std::vector<std::uint64_t> numbers;
    std::string wrong;
    std::vector<std::uint64_t> indexed_keys;
    db_.read_only([&](auto& t) {
      if (const auto found = t.get(numbers_, "last")) last = *found;
      std::int64_t least = INT64_MIN;
      by_money().rows.scan(t, by_money().index, all, [&](std::uint64_t key, const db::row& row) {
        indexed_keys.push_back(key);
        if (money_of(row) < least) wrong = "the index has an account with another amount";
        least = money_of(row);
      });
      t.scan(accounts(), std::uint64_t{0}, accounts_count,
             [&](std::uint64_t, const db::row& row) { sum += money_of(row); });
      t.scan(journal_, std::uint64_t{0}, UINT64_MAX, [&](std::uint64_t number, const entry& one) {
        numbers.push_back(number);
        if (one.from >= accounts_count || one.to >= accounts_count || one.thread >= threads)
          wrong = "entry " + std::to_string(number) + " is not what was written";
        return true;
      });
    });
    if (!wrong.empty()) return wrong;
    if (last < promised)
      return std::to_string(promised) + " was promised, and " + std::to_string(last) +
             " is the last";
    std::sort(indexed_keys.begin(), indexed_keys.end());
    const bool once =
        std::adjacent_find(indexed_keys.begin(), indexed_keys.end()) == indexed_keys.end();
    if (indexed_keys.size() != accounts_count || !once)
      return "the index has " + std::to_string(indexed_keys.size()) + " entries";
    if (sum != std::int64_t{1'000} * accounts_count)
      return "the accounts have " + std::to_string(sum);
    const std::uint64_t expected = std::min(last, journal_length);
    if (numbers.size() != expected ||
        (expected != 0 && (numbers.front() != last - expected + 1 || numbers.back() != last)))
      return "the journal has " + std::to_string(numbers.size()) + " entries of " +
             std::to_string(last) + " numbers";
    return {};
  }

  std::uint64_t progress() override {
    return db_.read_only([&](auto& t) { return t.get(numbers_, "last").value_or(0); });
  }

  std::uint64_t digest() override {
    std::uint64_t mixed = 1;
    const auto mix = [&](std::uint64_t value) { mixed = (mixed ^ value) * 0x9E37'79B9'7F4A'7C15u; };
    db_.read_only([&](auto& t) {
      if (const auto found = t.get(numbers_, "last")) mix(*found);
      t.scan(accounts(), std::uint64_t{0}, accounts_count,
             [&](std::uint64_t key, const db::row& row) {
               mix(key);
               mix(static_cast<std::uint64_t>(money_of(row)));
             });
    });
    return mixed;
  }

 private:
  static const std::array<db::schema, 2>& forms() {
    using db::column_type;
    static const std::array<db::schema, 2> both{
        db::schema({{.name = "money", .type = column_type::integer}}),
        db::schema({{.name = "note", .type = column_type::text},
                    {.name = "owed", .type = column_type::integer}})};
    return both;
  }
  static db::schema_change change_to(std::size_t form) {
    if (form == 0) return db::schema_change().rename("owed", "money").drop("note");
    return db::schema_change().rename("money", "owed").add("note", "a note of some length");
  }
  static const char* column_of(const db::row& row) {
    return row.columns() == forms()[0] ? "money" : "owed";
  }
  static std::int64_t money_of(const db::row& row) { return row.integer(column_of(row)); }
  static void add(db::row& row, std::int64_t more) {
    row.set(column_of(row), money_of(row) + more);
  }
  accounts_table& accounts() { return db_.find_table<std::uint64_t>("accounts"); }
  indexed& add_index(accounts_table& of) {
    const std::lock_guard guard(indexes_mutex_);
    return indexes_.emplace_back(db_, of).rows;
  }
  // The index of the table that transactions use.
  const indexed_accounts& by_money() {
    const accounts_table& now = accounts();
    const std::lock_guard guard(indexes_mutex_);
    return *std::find_if(indexes_.begin(), indexes_.end(),
                         [&](const indexed_accounts& one) { return &one.rows.table() == &now; });
  }

  database db_;
  std::mutex indexes_mutex_;
  std::deque<indexed_accounts> indexes_;
  accounts_table& accounts_before_;
  database::table<std::uint64_t, entry>& journal_ =
      db_.create_table<std::uint64_t, entry>("journal");
  database::table<std::string, std::uint64_t>& numbers_ =
      db_.create_table<std::string, std::uint64_t>("numbers");
};

class small_tpcc final : public workload {
 public:
  database& db() override { return db_; }

  void load_if_empty() override {
    const bool empty = db_.transact([&](auto& t) { return !t.get(company_.warehouses, 1); });
    if (empty) company_.load();
    db_.wait_durable();
  }

  void work(unsigned thread, unsigned life, durability level, std::uint64_t seed,
            shared_memory& shared) override {
    // The numbers of terminals are in the keys of payments: those of earlier lives are taken.
    if (thread == 0) {
      for (unsigned i = 0; i < life * threads; ++i) company_terminal(company_, 1, 0);
      numbers_taken_.store(true);
      numbers_taken_.notify_all();
    }
    numbers_taken_.wait(false);
    company_terminal user(company_, 1 + thread % company_.size.warehouses, seed + thread);
    for (std::uint64_t since = 0;;) {
      const std::uint64_t before = orders_.load();
      const auto done = user.step();
      if (done.what == bench::tpcc::kind::new_order && !done.rolled_back) orders_.fetch_add(1);
      shared.transactions.fetch_add(1);
      if (level == durability::sync) raise(shared.promised, before);
      if (level == durability::async && ++since % 256 == 0) {
        db_.wait_durable();
        raise(shared.promised, before);
      }
    }
  }
  void count_orders() { orders_.store(orders()); }

  std::string judge(std::uint64_t promised) override {
    const std::uint64_t there = orders();
    if (there < promised)
      return std::to_string(promised) + " orders were promised, and there are " +
             std::to_string(there);
    const auto wrong = bench::tpcc::violations(company_);
    return wrong.empty() ? std::string() : wrong.front().text;
  }

  std::uint64_t progress() override { return orders(); }

  std::uint64_t digest() override {
    std::uint64_t mixed = orders();
    db_.read_only([&](auto& t) {
      t.scan(company_.districts, std::uint64_t{0}, UINT64_MAX,
             [&](std::uint64_t key, const auto& row) {
               mixed = (mixed ^ key ^ static_cast<std::uint64_t>(row.ytd)) * 0x9E37'79B9'7F4A'7C15u;
               return true;
             });
    });
    return mixed;
  }

 private:
  using company_type = bench::tpcc::company<database>;
  using company_terminal = bench::tpcc::terminal<company_type>;

  std::uint64_t orders() {
    std::uint64_t many = 0;
    db_.read_only([&](auto& t) {
      t.scan(company_.orders, std::uint64_t{0}, UINT64_MAX, [&](std::uint64_t, const auto&) {
        ++many;
        return true;
      });
    });
    return many;
  }

  database db_;
  company_type company_{db_, {.warehouses = 2, .customers = 30, .items = 100}, 1};
  std::atomic<bool> numbers_taken_{false};
  std::atomic<std::uint64_t> orders_{0};
};

enum : std::size_t { ledger_workload, tpcc_workload, columns_workload };
constexpr std::array<const char*, 3> workload_names{"ledger", "tpc-c", "columns"};
constexpr std::array<const char*, 3> level_names{"none", "async", "sync"};

std::unique_ptr<workload> make_workload(std::size_t which, std::size_t form = 0) {
  if (which == tpcc_workload) return std::make_unique<small_tpcc>();
  return std::make_unique<ledger>(form);
}

db::storage_options options_of(durability level) {
  return {.level = level,
          .group_time = 1ms,
          .segment_bytes = std::size_t{256} << 10,
          .checkpoint_bytes = std::uint64_t{128} << 10};
}

[[noreturn]] void child(std::size_t which, const std::string& directory, durability level,
                        unsigned life, std::uint64_t seed, shared_memory& shared) {
  try {
    const auto running = make_workload(which, which == columns_workload ? life % 2 : 0);
    running->db().open(directory, options_of(level));
    running->load_if_empty();
    if (which == tpcc_workload) static_cast<small_tpcc&>(*running).count_orders();
    shared.ready.store(true);
    std::vector<std::jthread> all;
    for (unsigned t = 0; t < threads; ++t)
      all.emplace_back([&, t] { running->work(t, life, level, seed, shared); });
    for (;;) {
      std::this_thread::sleep_for(5ms);
      if (which == columns_workload) running->change_columns();
      if (level == durability::none) continue;
      if (which == columns_workload)
        shared.checkpoints.fetch_add(1);  // which the change has written
      // In every other life the database alone writes checkpoints.
      if (life % 2 == 0) {
        shared.own_checkpoints.store(running->db().automatic_checkpoints().written);
        continue;
      }
      running->db().checkpoint();
      shared.checkpoints.fetch_add(1);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "elidex_crash: the child: %s\n", error.what());
  }
  ::_exit(3);
}

struct settings {
  unsigned runs = 100;
  std::uint64_t seed = 0;
  bool lose_log = false;
};

// Of one level and workload.
struct scenario {
  std::size_t which;
  durability level;
  unsigned runs = 0;
  std::uint64_t transactions = 0;
  std::uint64_t checkpoints = 0;
  std::uint64_t followed = 0;  // states that followers have seen
  unsigned lives = 0;          // over the present directory
  std::filesystem::path directory = {};
};

class loop {
 public:
  loop(const settings& wanted, std::filesystem::path root)
      : wanted_(wanted), root_(std::move(root)), random_(wanted.seed) {
    void* const memory = ::mmap(nullptr, sizeof(shared_memory), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    shared_ = static_cast<shared_memory*>(memory);
    for (const std::size_t which : {ledger_workload, tpcc_workload, columns_workload}) {
      for (const durability level : {durability::none, durability::async, durability::sync})
        scenarios_.push_back({.which = which, .level = level});
    }
  }
  ~loop() { ::munmap(shared_, sizeof(shared_memory)); }
  loop(const loop&) = delete;
  loop& operator=(const loop&) = delete;

  // Empty, or what was lost.
  std::string run() {
    for (unsigned i = 0; i < wanted_.runs; ++i) {
      scenario& now = scenarios_[i % scenarios_.size()];
      const std::string wrong = kill_once(now);
      if (wrong.empty()) continue;
      return std::string("run ") + std::to_string(i) + ", " + workload_names[now.which] +
             " at level " + level_names[static_cast<std::size_t>(now.level)] + ": " + wrong +
             " (directory " + now.directory.string() + ")";
    }
    return {};
  }
  void print() const {
    std::printf("%-8s  %-6s  %5s  %13s  %12s  %9s\n", "workload", "level", "kills", "transactions",
                "checkpoints", "followed");
    for (const scenario& one : scenarios_) {
      if (one.runs == 0) continue;
      std::printf("%-8s  %-6s  %5u  %13llu  %12llu  %9llu\n", workload_names[one.which],
                  level_names[static_cast<std::size_t>(one.level)], one.runs,
                  static_cast<unsigned long long>(one.transactions),
                  static_cast<unsigned long long>(one.checkpoints),
                  static_cast<unsigned long long>(one.followed));
    }
  }

 private:
  static constexpr unsigned lives_per_directory = 8;

  // A directory that is loaded and closed.
  void begin_directory(scenario& now) {
    if (!now.directory.empty()) std::filesystem::remove_all(now.directory);
    now.directory = root_ / (std::to_string(++directories_));
    now.lives = 0;
    // In a child of its own, because it has threads and this process forks.
    const pid_t process = ::fork();
    if (process == 0) {
      try {
        const auto loaded = make_workload(now.which);
        loaded->db().open(now.directory.string(), options_of(durability::async));
        loaded->load_if_empty();
        loaded->db().close();
        ::_exit(0);
      } catch (const std::exception& error) {
        std::fprintf(stderr, "elidex_crash: %s\n", error.what());
        ::_exit(3);
      }
    }
    int status = 0;
    ::waitpid(process, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
      throw std::runtime_error("a directory could not be loaded");
  }

  std::string kill_once(scenario& now) {
    if (now.lives % lives_per_directory == 0) begin_directory(now);
    ++now.lives;
    const std::uint64_t before = now.level == durability::none ? look(now, 0, nullptr) : 0;
    new (shared_) shared_memory;
    const std::uint64_t seed = random_();
    const pid_t process = ::fork();
    if (process == 0)
      child(now.which, now.directory.string(), now.level, now.lives, seed, *shared_);
    const bool while_opening = random_.below(5) == 0;
    const auto begin = std::chrono::steady_clock::now();
    while (!while_opening && !shared_->ready.load() &&
           std::chrono::steady_clock::now() < begin + 60s)
      std::this_thread::sleep_for(1ms);
    const auto until = std::chrono::steady_clock::now() +
                       std::chrono::microseconds(random_.below(while_opening ? 5'000 : 150'000));
    seen_by_follower seen;
    if (!while_opening && now.level != durability::none && random_.below(2) == 0)
      seen = follow(now, until);
    std::this_thread::sleep_until(until);
    ::kill(process, SIGKILL);
    int status = 0;
    ::waitpid(process, &status, 0);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL) return "the child ended by itself";
    ++now.runs;
    now.transactions += shared_->transactions.load();
    now.checkpoints += shared_->checkpoints.load() + shared_->own_checkpoints.load();
    if (!seen.wrong.empty()) return "a follower: " + seen.wrong;
    if (wanted_.lose_log) cut_newest(now.directory);
    std::string wrong;
    try {
      // What a follower has seen was durable.
      const std::uint64_t promised = std::max(shared_->promised.load(), seen.progress);
      const std::uint64_t after = look(now, promised, &wrong);
      if (wrong.empty() && now.level == durability::none && after != before)
        return "the directory has changed";
    } catch (const std::exception& error) {
      return error.what();
    }
    return wrong;
  }

  struct seen_by_follower {
    std::uint64_t progress = 0;
    std::string wrong;
  };
  // Follows the directory, without threads, while the child writes it. Each state must be whole,
  // and none may have less than the one before.
  static seen_by_follower follow(scenario& now, std::chrono::steady_clock::time_point until) {
    seen_by_follower seen;
    std::size_t form = 0;
    while (seen.wrong.empty() && std::chrono::steady_clock::now() < until) {
      const auto follower = make_workload(now.which, form);
      try {
        follower->db().follow(now.directory.string());
        do {
          seen.wrong = follower->judge(seen.progress);
          seen.progress = follower->progress();
          ++now.followed;
          follower->db().catch_up();
        } while (seen.wrong.empty() && std::chrono::steady_clock::now() < until);
      } catch (const db::log_error& error) {
        // A checkpoint has removed what it had not read yet: the next one begins again.
        if (error.problem() != db::log_problem::left_behind) seen.wrong = error.what();
      } catch (const db::schema_mismatch& error) {
        // The columns have changed: the next one has the other form.
        if (now.which != columns_workload) seen.wrong = error.what();
        form = 1 - form;
      } catch (const std::exception& error) {
        seen.wrong = error.what();
      }
    }
    return seen;
  }

  // Opens the directory without writing, and so without threads.
  static std::uint64_t look(const scenario& now, std::uint64_t promised, std::string* wrong) {
    const auto left = make_workload(now.which);
    left->db().open(now.directory.string(), options_of(durability::none));
    if (wrong != nullptr) *wrong = left->judge(promised);
    return left->digest();
  }

  static void cut_newest(const std::filesystem::path& directory) {
    std::filesystem::path newest;
    for (const auto& one : std::filesystem::directory_iterator(directory)) {
      if (one.path().extension() == ".log" && one.path() > newest) newest = one.path();
    }
    if (!newest.empty())
      std::filesystem::resize_file(newest, std::filesystem::file_size(newest) / 2);
  }

  const settings wanted_;
  const std::filesystem::path root_;
  random_numbers random_;
  shared_memory* shared_;
  std::vector<scenario> scenarios_;
  unsigned directories_ = 0;
};

}  // namespace
}  // namespace elidex::testing

int main(int count, char** words) {
  using namespace elidex::testing;
  settings wanted{.seed = seed_or(std::random_device{}())};
  CLI::App app("kill -9 at random moments, and what is left", "elidex_crash");
  app.add_option("--runs", wanted.runs, "kills")
      ->capture_default_str()
      ->check(CLI::Range(1U, 1'000'000U));
  app.add_option("--seed", wanted.seed, "of the moments and of what the children do");
  app.add_flag("--lose-log", wanted.lose_log, "damage the log first: the loop must fail then");
  try {
    app.parse(count, words);
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "elidex_crash: %s (elidex_crash --help)\n", error.what());
    return 2;
  }
  std::string name = (std::filesystem::temp_directory_path() / "elidex-crash-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    std::fprintf(stderr, "elidex_crash: cannot make the directory %s\n", name.c_str());
    return 1;
  }
  std::string wrong;
  try {
    loop all(wanted, name);
    wrong = all.run();
    all.print();
  } catch (const std::exception& error) {
    wrong = error.what();
  }
  if (!wrong.empty()) {
    std::printf("LOST after seed %llu: %s\n", static_cast<unsigned long long>(wanted.seed),
                wrong.c_str());
    return 1;
  }
  std::filesystem::remove_all(name);
  std::printf("%u kills, nothing lost; seed %llu\n", wanted.runs,
              static_cast<unsigned long long>(wanted.seed));
  return 0;
}
