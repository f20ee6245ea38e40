// A store that survives its program: text columns, a null, a secondary index, a program that is
// killed in a transaction, and a look at what is left. `./dev example accounts` runs it.
//
//   accounts [DIRECTORY]    default: a new directory in the system's temporary one
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <optional>
#include <string>

#include "elidex/database.hpp"

struct account {
  std::string owner;
  std::int64_t balance = 0;
  std::optional<std::string> note;
};
ELIDEX_ROW(account, owner, balance, note);  // the directory stores these names

struct store {
  explicit store(const std::string& directory)
      : accounts(db.create_table<std::uint64_t, account>("accounts")),
        by(db, accounts),
        owner(by.add_index<std::string>("accounts by owner",
                                        [](std::uint64_t, const account& a) { return a.owner; })) {
    db.open(directory, {.level = elidex::db::durability::sync});
  }

  using table = elidex::database::table<std::uint64_t, account>;
  elidex::database db;
  table& accounts;
  elidex::db::indexed_table<elidex::database, table> by;
  decltype(by)::index_of<std::string> owner;
};

void transfer(store& in, std::uint64_t from, std::uint64_t to, std::int64_t amount) {
  in.db.transact([&](auto& t) {
    in.by.update(t, from, [&](account& a) { a.balance -= amount; });
    in.by.update(t, to, [&](account& a) {
      a.balance += amount;
      a.note = "received " + std::to_string(amount);
    });
  });
}

// Writes until it kills itself in the middle of a transfer.
void run_and_die(const std::string& directory) {
  store in(directory);
  in.db.transact([&](auto& t) {
    in.by.insert(t, 1, {"Ada", 100, std::nullopt});
    in.by.insert(t, 2,
                 {"Bob", 50, "opened with a long note, which takes its own bytes and no more"});
    in.by.insert(t, 3, {"Ada", 0, std::nullopt});
  });
  transfer(in, 1, 2, 30);
  in.db.checkpoint();
  transfer(in, 2, 3, 10);
  in.db.transact([&](auto& t) {
    in.by.update(t, 1, [](account& a) { a.balance -= 70; });
    std::raise(SIGKILL);  // the money has left one account, and has reached no other
  });
}

int main(int argc, char** argv) {
  std::string pattern =
      (std::filesystem::temp_directory_path() / "elidex-accounts-XXXXXX").string();
  const bool given = argc > 1;
  if (!given && mkdtemp(pattern.data()) == nullptr) {
    std::cerr << "accounts: cannot make a directory\n";
    return 1;
  }
  const std::string directory = given ? argv[1] : pattern;

  const pid_t child = fork();
  if (child == 0) run_and_die(directory);
  int status = 0;
  waitpid(child, &status, 0);
  std::cout << (WIFSIGNALED(status) ? "killed in a transfer\n" : "ended\n");

  {
    store in(directory);
    std::int64_t sum = 0;
    in.db.read_only([&](auto& t) {
      t.scan(in.accounts, elidex::all, [&](std::uint64_t number, const account& a) {
        sum += a.balance;
        std::cout << number << ": " << a.owner << ' ' << a.balance
                  << (a.note ? ", " + *a.note : std::string()) << '\n';
      });
      std::cout << "Ada has";
      in.by.find(t, in.owner, "Ada",
                 [](std::uint64_t number, const account&) { std::cout << ' ' << number; });
    });
    std::cout << "; sum " << sum << '\n';
  }
  if (given) {
    std::cout << "elidex db dump " << directory << '\n';
  } else {
    std::filesystem::remove_all(directory);
  }
}
