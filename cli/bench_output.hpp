#pragma once
// Where the results of bench go: the document to --json, its runs to --csv.
//
//   const bench_output output(flags);  // before the runs: the load average is read here
//   ...
//   output.write(document);
//
// Thread-safety: none.

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "cli/commands.hpp"
#include "cli/json_output.hpp"

namespace elidex::cli {

class bench_output {
 public:
  /// Throws bench::bad_input where a file could not be written later, or where both are the same.
  explicit bench_output(const bench_flags& flags) : bench_output(flags.json, flags.csv) {}
  explicit bench_output(const std::string& json, const std::string& csv = "");

  [[nodiscard]] bool wanted() const noexcept { return json_.wanted() || csv_.wanted(); }
  [[nodiscard]] bool to_stdout() const noexcept { return json_.to_stdout() || csv_.to_stdout(); }
  /// Adds the machine's load at the start and now, where the kernel tells it.
  void write(nlohmann::ordered_json document) const;

 private:
  json_output json_;
  json_output csv_;
  std::optional<double> load_at_start_;
};

}  // namespace elidex::cli
