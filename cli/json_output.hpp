#pragma once
// Where --json goes: a file that appears whole or not at all, also where a signal ends the program;
// or standard output.
//
//   json_output out(flags.json);  // throws bench::bad_input now if it could not be written later
//   ...
//   out.write(document.dump(2));  // to a temporary file beside the target, then renamed over it
//
// Thread-safety: none.

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace elidex::cli {

class json_output {
 public:
  /// Empty: nowhere. "-": standard output. `flag` is the one to name in errors.
  explicit json_output(const std::string& file, const std::string& flag = "--json");

  [[nodiscard]] bool wanted() const noexcept { return to_stdout_ || !target_.empty(); }
  [[nodiscard]] bool to_stdout() const noexcept { return to_stdout_; }
  void write(std::string_view text) const;
  /// Calls `writer` with the file to write in place of the target, which it becomes if `writer`
  /// returns. Not for standard output.
  void write_by(const std::function<void(const std::filesystem::path&)>& writer) const;

 private:
  bool to_stdout_ = false;
  bool replace_ = true;  // false for devices and pipes, which are written to directly
  std::filesystem::path target_;
  std::filesystem::path temporary_;
};

}  // namespace elidex::cli
