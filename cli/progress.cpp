#include "cli/progress.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "cli/flags.hpp"

namespace elidex::cli {

progress_bar::progress_bar() : started_(std::chrono::steady_clock::now()) {
  const char* const terminal = std::getenv("TERM");
  on_ = isatty(STDERR_FILENO) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

progress_bar::~progress_bar() {
  if (shown_) std::fputs("\r\033[K", stderr);
}

void progress_bar::show(double done, std::string_view doing) {
  if (!on_) return;
  constexpr std::size_t bar_cells = 24;
  struct winsize window{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 0;
  const std::size_t width = known ? window.ws_col - std::size_t{1} : 79;

  const double share = std::clamp(done, 0.0, 1.0);
  const auto filled = static_cast<std::size_t>(share * bar_cells);
  const double elapsed =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count();
  std::string text = std::string(filled, '#') + std::string(bar_cells - filled, '.') +
                     formatted(" %3.0f %% %4.0f s  ", share * 100, elapsed) + std::string(doing);
  if (text.size() > width) text.resize(width);
  std::fprintf(stderr, "\r%s\033[K", text.c_str());
  std::fflush(stderr);
  shown_ = true;
}

}  // namespace elidex::cli
