#pragma once
// Asks the program on the simulated machine as repro does: a request as JSON in, an answer as JSON
// out.
//
//   class mine : public asks_worker { protected: mine() : asks_worker({{"workload", "tpcc"}, ...})
//       {} };
//   const outcome got = ask({{"threads", 4}});      // the rest as usual
//   got.status, got.said, got.answer
//   ask_several({{{"threads", 4}}, {{"threads", 2}}}).answers   // runs that share a load
//
// ELIDEX_SIM_WORKER names the program. Thread-safety: none needed; a directory for each process.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#if defined(ELIDEX_HAS_SIM)

namespace elidex::testing {

class asks_worker : public ::testing::Test {
 protected:
  using json = nlohmann::json;

  explicit asks_worker(json usual)
      : usual_(std::move(usual)),
        directory_(std::filesystem::temp_directory_path() /
                   ("elidex-worker-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(directory_);
  }
  ~asks_worker() override { std::filesystem::remove_all(directory_); }

  struct outcome {
    int status;
    std::string said;
    json answer;
  };
  outcome ask(const json& more = json::object()) const {
    const int status = run(request_of(more));
    return {status, text_of(path("said")), json::parse(text_of(path("answer")), nullptr, false)};
  }

  struct outcomes {
    int status;
    std::string said;
    std::vector<json> answers;  // one for each line
  };
  outcomes ask_several(const std::vector<json>& more) const {
    json requests = json::array();
    for (const json& one : more) requests.push_back(request_of(one));
    outcomes got{run({{"runs", requests}}), text_of(path("said")), {}};
    std::istringstream lines(text_of(path("answer")));
    for (std::string line; std::getline(lines, line);)
      got.answers.push_back(json::parse(line, nullptr, false));
    return got;
  }

 private:
  json request_of(const json& more) const {
    json request = usual_;
    request.update(more);
    return request;
  }
  // Its exit status.
  int run(const json& request) const {
    std::ofstream(path("request")) << request;
    return WEXITSTATUS(std::system(("'" ELIDEX_SIM_WORKER "' <'" + path("request") + "' >'" +
                                    path("answer") + "' 2>'" + path("said") + "'")
                                       .c_str()));
  }
  static std::string text_of(const std::filesystem::path& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }

  json usual_;
  std::filesystem::path directory_;
};

}  // namespace elidex::testing

#endif  // ELIDEX_HAS_SIM
