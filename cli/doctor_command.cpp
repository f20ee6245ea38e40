// elidex doctor: what this machine offers. The facts and their wording are doctor.hpp's.

#include <memory>
#include <nlohmann/json.hpp>

#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "cli/doctor.hpp"
#include "cli/flags.hpp"
#include "cli/huge_page_effect.hpp"
#include "cli/json_output.hpp"
#include "cli/results_json.hpp"

namespace elidex::cli {

struct doctor_flags {
  std::string json;
};

static int doctor_command(const doctor_flags& flags) {
  const json_output json(flags.json);
  const huge_page_effect effect = measure_huge_pages();
  if (json.wanted()) {
    nlohmann::ordered_json document = results_document();
    document["machine"]["huge_page_effect"] = {{"bytes", effect.bytes},
                                               {"small_pages_ns", effect.small_ns},
                                               {"huge_pages_ns", effect.huge_ns}};
    json.write(document.dump(2));
  }
  if (!json.to_stdout()) print(to_text(collect()) + to_text(effect));
  return 0;
}

void add_doctor_command(command_parser& app) {
  const auto flags = std::make_shared<doctor_flags>();
  command_parser command = app.add_command(
      "doctor", "show what this machine has: hardware transactions, caches, huge pages");
  command.add_option("--json", flags->json, json_help).type_name("FILE");
  command.runs([flags] { return doctor_command(*flags); });
}

}  // namespace elidex::cli
