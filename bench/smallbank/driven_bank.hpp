#pragma once
// SmallBank as native_run (bench/table_store/native_run.hpp) drives it: a teller for each thread,
// and behind each run all money beside what the tellers took and paid.
//
//   native_run<smallbank::driven_bank<basic_database<db::silo_commit>>> b({.customers = 18'000,
//       .hot = 1'000}, seed, {});
//   // cents; not 0 where the isolation level lets updates be lost
//   b.run({.threads = 2, .seconds = 5}).missing
//
// Money that is missing is a violation where the level promises that no update is lost.
//
// Thread-safety: native_run's. Errors: std::invalid_argument for settings that cannot be.

#include <string>
#include <type_traits>

#include "bench/smallbank/smallbank.hpp"
#include "bench/table_store/workload.hpp"

namespace elidex::bench::smallbank {

using namespace internal;

// Of get(), then upsert(): docs/DATABASE.md has a table for each way to keep transactions apart.
template <class Database>
constexpr bool loses_updates(isolation level) noexcept {
  constexpr bool optimistic = std::is_same_v<typename Database::transaction, db::transaction>;
  return level != isolation::serializable && !(optimistic && level == isolation::repeatable_read);
}

template <class Database>
class driven_bank {
 public:
  using database_type = Database;
  using settings = smallbank::settings;
  using user = teller<bank<Database>>;

  driven_bank(Database& in, const settings& wanted, std::uint64_t) : bank_(in, wanted) {}

  std::size_t shares() const noexcept { return bank_.shares(); }
  void load_share(std::size_t i) { bank_.load_share(i); }

  std::size_t kinds() const noexcept { return kinds_of(bank_.is.what); }
  user make_user(unsigned, std::uint64_t seed) { return user(bank_, seed); }
  table_store::step_result step(user& who) const {
    return {static_cast<std::size_t>(who.step()), false};
  }

  void add(const user& who) noexcept { brought_ += who.brought(); }
  void check(table_store::run_outcome& outcome) {
    outcome.missing = bank_.at_first() + brought_ - bank_.all_money();
    if (outcome.missing != 0 && !loses_updates<Database>(bank_.is.level))
      outcome.violations.push_back(std::to_string(outcome.missing) + " cents are missing");
  }

 private:
  bank<Database> bank_;
  money brought_ = 0;  // by all tellers since the load
};

}  // namespace elidex::bench::smallbank
