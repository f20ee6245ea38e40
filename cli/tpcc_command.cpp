// elidex bench --workload tpcc: databases in place of indexes, warehouses in place of keys.

#include <algorithm>

#include "bench/tpcc/variants.hpp"
#include "cli/commands.hpp"
#include "cli/database_bench.hpp"
#include "cli/flags.hpp"
#include "cli/workload_flags.hpp"

namespace elidex::cli {

using namespace internal;

namespace {

namespace tpcc = bench::tpcc;
namespace store = bench::table_store;

tpcc::settings settings_of(const bench_flags& flags) {
  tpcc::settings settings;
  if (!flags.customers.empty())
    settings.size.customers =
        static_cast<std::uint32_t>(parse_count("--customers", flags.customers, 1, 3'000));
  if (!flags.items.empty())
    settings.size.items =
        static_cast<std::uint32_t>(parse_count("--items", flags.items, tpcc::lines_max, 100'000));
  if (flags.readers == "transactions") {
    settings.how = tpcc::readers::as_transactions;
  } else if (!flags.readers.empty() && flags.readers != "snapshots") {
    refuse_value("--readers", flags.readers, "snapshots or transactions",
                 {"snapshots", "transactions"});
  }
  return settings;
}

std::string_view name_of(tpcc::readers how) {
  return how == tpcc::readers::as_snapshots ? "snapshots" : "transactions";
}

void refuse_warehouses_that_do_not_fit(const store::bench_options& options,
                                       const tpcc::scale& size) {
  const store::growth added{
      .seconds = options.seconds + options.warm_up_seconds,
      .threads = *std::max_element(options.threads.begin(), options.threads.end()),
      .bytes_per_transaction = tpcc::bytes_per_transaction,
      .transactions_per_second_max = tpcc::transactions_per_second_max};
  tpcc::scale none = size;
  none.warehouses = 0;
  tpcc::scale one = size;
  one.warehouses = 1;
  const double items = tpcc::bytes_at_first(none);
  store::refuse_what_does_not_fit("--warehouses", size.warehouses,
                                  "of them, and the orders of --seconds,",
                                  tpcc::bytes_at_first(one) - items, items + added.bytes());
}

told_point told(const tpcc::settings& settings) {
  const std::uint32_t warehouses = settings.size.warehouses;
  return {.point = {.label = std::to_string(warehouses) +
                             (warehouses == 1 ? " warehouse" : " warehouses"),
                    .rows = tpcc::rows_at_first(settings.size),
                    .load =
                        [settings](const store::database_info& in, std::uint64_t seed,
                                   const store::kept_in& where) {
                          return tpcc::load(in, settings, seed, where);
                        }},
          .workload = "tpcc",
          .dist = "nurand",
          .cells = {std::to_string(warehouses)},
          .fields = {{"warehouses", warehouses},
                     {"customers", settings.size.customers},
                     {"items", settings.size.items},
                     {"readers", name_of(settings.how)}}};
}

}  // namespace

int tpcc_bench_command(const bench_flags& flags, const bench_time& time) {
  if (flags.workload != "tpcc") refuse_value("--workload", flags.workload, "tpcc alone", {"tpcc"});
  database_bench bench = read_database_flags(flags, time, "tpcc");
  tpcc::settings settings = settings_of(flags);
  bench.heading = "TPC-C, standard mix, " + std::to_string(settings.size.customers) +
                  " customers in a district, " + count_text(settings.size.items) +
                  " items, no users' pauses; readers as " + std::string(name_of(settings.how));
  bench.kinds = tpcc::kind_names;
  bench.columns = {{"warehouses", table::right}};
  for (const std::string& one :
       list_of("--warehouses", flags.warehouses.empty() ? "1" : flags.warehouses)) {
    settings.size.warehouses =
        static_cast<std::uint32_t>(parse_count("--warehouses", one, 1, tpcc::warehouses_max));
    refuse_warehouses_that_do_not_fit(bench.options, settings.size);
    bench.add_group({told(settings)});
  }
  return run_database_bench(flags, bench);
}

}  // namespace elidex::cli
