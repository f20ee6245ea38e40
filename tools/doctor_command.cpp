// elidex doctor: what this machine offers. The facts and their wording are doctor.hpp's.

#include <cstdio>
#include <nlohmann/json.hpp>

#include "tools/commands.hpp"
#include "tools/json_output.hpp"
#include "tools/results_json.hpp"

namespace elidex::tools {

int doctor_command(const doctor_flags& flags) {
  const json_output json(flags.json);
  if (json.wanted()) json.write(results_document().dump(2));
  if (!json.to_stdout()) std::printf("%s\n", machine_line().c_str());
  return 0;
}

}  // namespace elidex::tools
