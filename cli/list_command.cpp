// elidex list: what bench can be asked for.

#include <memory>
#include <nlohmann/json.hpp>

#include "bench/indexes/registry.hpp"
#include "bench/table_store/databases.hpp"
#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/json_output.hpp"
#include "cli/machines.hpp"
#include "cli/results_json.hpp"
#include "cli/table.hpp"
#include "cli/workload_families.hpp"

namespace elidex::cli {

struct list_flags {
  std::string json;
};

namespace {

std::string limits_of(const bench::index_info& index) {
  std::string text;
  const auto add = [&](std::string_view limit) {
    text += (text.empty() ? "" : ", ") + std::string(limit);
  };
  if (index.single_thread) add("1 thread");
  if (!index.no_scan.empty()) add("no e");
  if (!index.no_erase.empty()) add("no delete");
  if (!index.no_update.empty()) add("no update");
  if (!index.not_built.empty()) add("not built");
  return text;
}

std::string description_of(const bench::index_info& index) {
  std::string text(index.description);
  if (!index.not_built.empty()) text += "; not built: " + std::string(index.not_built);
  return text;
}

std::string described(const bench::numbered_kind& one) {
  return std::string(one.description) + "; " + std::string(one.numbers);
}

std::string keys_of(const bench::index_info& index) {
  std::string text = index.make_u64 != nullptr ? "u64" : "";
  if (index.make_string != nullptr) text += text.empty() ? "string" : ", string";
  return text;
}

struct named {
  std::string_view name;
  std::string_view description;
};

constexpr named distributions[] = {
    {"uniform", "every key alike"},
    {"zipf:THETA",
     "key of rank k in proportion to k^-THETA, 0 to 1.2; the hot keys are the smallest, next to "
     "each other"},
    {"zipf:THETA:scrambled", "the same with the hot keys scattered over the key space"},
    {"hot:THETA",
     "a share of THETA, 0 to 1, goes to a hot region of one in 10,000 keys (at least 16), "
     "adjacent, in the middle"},
};

}  // namespace

static int list_command(const list_flags& flags) {
  const json_output json(flags.json);
  if (json.wanted()) {
    nlohmann::ordered_json document = results_document();
    for (const bench::index_info& one : bench::indexes()) {
      document["indexes"].push_back({{"name", one.name},
                                     {"description", description_of(one)},
                                     {"u64", one.make_u64 != nullptr},
                                     {"string", one.make_string != nullptr},
                                     {"single_thread", one.single_thread},
                                     {"scan", one.no_scan.empty()},
                                     {"erase", one.no_erase.empty()},
                                     {"update", one.no_update.empty()},
                                     {"built", one.not_built.empty()}});
    }
    for (const bench::workload& one : bench::workloads()) {
      document["workloads"].push_back({{"name", one.name}, {"description", one.description}});
    }
    for (const bench::numbered_kind& one : bench::numbered_kinds()) {
      document["workloads"].push_back({{"name", one.name}, {"description", described(one)}});
    }
    for (const named_workload& one : database_workloads())
      document["workloads"].push_back({{"name", one.name}, {"description", one.description}});
    for (const auto& one : bench::table_store::databases()) {
      document["databases"].push_back({{"name", one.name}, {"description", one.description}});
    }
    for (const named& one : distributions) {
      document["distributions"].push_back({{"name", one.name}, {"description", one.description}});
    }
    document["machines"] = machine_names();
    document["experiments"] = nlohmann::ordered_json::array();
    json.write(document.dump(2));
    if (json.to_stdout()) return 0;
  }

  table indexes({{"index"}, {"keys"}, {"limits"}, {"what it is"}});
  for (const bench::index_info& one : bench::indexes()) {
    indexes.row({std::string(one.name), keys_of(one), limits_of(one), description_of(one)});
  }
  table workloads({{"workload"}, {"what it does"}});
  for (const bench::workload& one : bench::workloads())
    workloads.row({std::string(one.name), std::string(one.description)});
  for (const bench::numbered_kind& one : bench::numbered_kinds())
    workloads.row({std::string(one.name), described(one)});
  for (const named_workload& one : database_workloads()) workloads.row({one.name, one.description});
  table databases({{"database"}, {"what it is (--workload " + database_workload_names() + ")"}});
  for (const auto& one : bench::table_store::databases())
    databases.row({std::string(one.name), std::string(one.description)});
  table where({{"distribution"}, {"which keys"}});
  for (const named& one : distributions)
    where.row({std::string(one.name), std::string(one.description)});
  std::string machines;
  for (const std::string& one : machine_names()) machines += (machines.empty() ? "" : ", ") + one;
  print(indexes.text() + "\n" + databases.text() + "\n" + workloads.text() + "\n" + where.text() +
        "\n  machines: " + machines + "\n");
  return 0;
}

void add_list_command(command_parser& app) {
  const auto flags = std::make_shared<list_flags>();
  command_parser command = app.add_command("list", "list the indexes, workloads and distributions");
  command.add_option("--json", flags->json, json_help).type_name("FILE");
  command.runs([flags] { return list_command(*flags); });
}

}  // namespace elidex::cli
