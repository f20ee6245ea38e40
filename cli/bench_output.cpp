#include "cli/bench_output.hpp"

#include <nlohmann/json.hpp>

#include "bench/runner/machine.hpp"
#include "cli/csv/csv_text.hpp"
#include "cli/flags.hpp"
#include "cli/results_json.hpp"

namespace elidex::cli {

bench_output::bench_output(const std::string& json, const std::string& csv)
    : json_(json), csv_(csv, "--csv"), load_at_start_(bench::load_average()) {
  if (!csv.empty() && csv == json) refuse("--csv", csv, "is what --json has", "another file");
}

void bench_output::write(nlohmann::ordered_json document) const {
  const std::optional<double> load_at_end = bench::load_average();
  if (load_at_start_ && load_at_end)
    document["load_average"] = {{"start", *load_at_start_}, {"end", *load_at_end}};
  if (json_.wanted()) json_.write(dump(document));
  if (csv_.wanted()) csv_.write(csv_text(document.at("runs")));
}

}  // namespace elidex::cli
