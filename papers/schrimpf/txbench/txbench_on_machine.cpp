#include "papers/schrimpf/txbench/txbench_on_machine.hpp"

#include <string>

#include "bench/support/bad_input.hpp"
#include "papers/schrimpf/txbench/txbench_run.hpp"

namespace elidex::bench {

using namespace papers;

std::span<const txbench_variant> txbench_variants_of_the_thesis() {
  static constexpr txbench_variant all[] = {
      {"db/2pl:unmodified", &run_txbench_with<unmodified_latches>},
      {"db/2pl:hle", &run_txbench_with<hle_latches>},
      {"db/2pl:retried", &run_txbench_with<retried_latches>},
      {"db/2pl:pthread", &run_txbench_with<pthread_elision_latches>},
      {"db/2pl:lock-mutex", &run_txbench_with<elided_lock_mutex_latches>},
      {"db/2pl:transaction-latches", &run_txbench_with<elided_transaction_latches>},
  };
  return all;
}

std::vector<std::string_view> lock_variants_on_machine() {
  std::vector<std::string_view> names;
  for (const auto& some : {txbench_variants_of_the_thesis(), txbench_variants_beside()}) {
    for (const txbench_variant& one : some) names.push_back(one.name);
  }
  return names;
}

txbench_result run_txbench_on_machine(const txbench_request& wanted) {
  if (wanted.run.threads == 0 || wanted.run.threads > sim::threads_max) {
    throw bad_input("--cores: expected 1 to " + std::to_string(sim::threads_max) +
                    " clients, not " + std::to_string(wanted.run.threads));
  }
  for (const auto& some : {txbench_variants_of_the_thesis(), txbench_variants_beside()}) {
    for (const txbench_variant& one : some) {
      if (one.name == wanted.run.index) return one.run(wanted);
    }
  }
  std::string names;
  for (const std::string_view one : lock_variants_on_machine())
    names += (names.empty() ? "" : ", ") + std::string(one);
  throw bad_input("--index: '" + wanted.run.index +
                  "' has no latches for txbench (expected one of " + names + ")");
}

}  // namespace elidex::bench
