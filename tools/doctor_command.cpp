// elidex doctor: what this machine offers. The facts and their wording are doctor.hpp's.

#include <nlohmann/json.hpp>

#include "tools/commands.hpp"
#include "tools/doctor.hpp"
#include "tools/flags.hpp"
#include "tools/json_output.hpp"
#include "tools/results_json.hpp"

namespace elidex::tools {

int doctor_command(const doctor_flags& flags) {
  const json_output json(flags.json);
  if (json.wanted()) json.write(results_document().dump(2));
  if (!json.to_stdout()) print(to_text(collect()));
  return 0;
}

}  // namespace elidex::tools
