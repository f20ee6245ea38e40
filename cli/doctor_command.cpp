// elidex doctor: what this machine offers. The facts and their wording are doctor.hpp's.

#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/doctor.hpp"
#include "cli/flags.hpp"
#include "cli/json_output.hpp"
#include "cli/results_json.hpp"

namespace elidex::cli {

int doctor_command(const doctor_flags& flags) {
  const json_output json(flags.json);
  if (json.wanted()) json.write(results_document().dump(2));
  if (!json.to_stdout()) print(to_text(collect()));
  return 0;
}

}  // namespace elidex::cli
