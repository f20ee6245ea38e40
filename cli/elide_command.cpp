// elidex elide: runs a program with libelidex-preload.so in front of its locks (docs/PRELOAD.md).
//
// Programs on which LD_PRELOAD has no effect are refused instead of run: who asks for elision or
// statistics and gets neither would take the program's speed for their effect.

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <stdexcept>

#include "bench/support/bad_input.hpp"
#include "cli/command_line.hpp"
#include "cli/commands.hpp"
#include "cli/flags.hpp"
#include "cli/installation.hpp"
#include "preload/stats_file.hpp"

namespace elidex::cli {

struct elide_flags {
  std::vector<std::string> command;  // the program and its arguments
  std::string stats;
  std::string elision;
};

namespace {

namespace fs = std::filesystem;

constexpr const char* library_name = "libelidex-preload.so";

// Beside this program, where an installation has it, and where the build has it.
fs::path library() {
  std::error_code error;
  const fs::path here = program_directory();
  constexpr const char* installed = "../" ELIDEX_INSTALL_LIBDIR;
  constexpr const char* by_debian = "../" ELIDEX_INSTALL_LIBDIR "/elidex";
  for (const char* const directory :
       {".", "../lib", "../lib64", installed, by_debian, "../preload"}) {
    const fs::path found = (here / directory / library_name).lexically_normal();
    if (fs::exists(found, error)) return found;
  }
  throw std::runtime_error(std::string(library_name) +
                           " is neither beside this program nor in ../lib");
}

// As the shell would find it; empty if it would not.
fs::path find_program(const std::string& name) {
  std::error_code error;
  const auto runs = [&](const fs::path& path) {
    return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string::npos) return runs(name) ? fs::path(name) : fs::path();
  const char* const path = std::getenv("PATH");
  std::istringstream directories(path == nullptr ? "/usr/bin:/bin" : path);
  for (std::string directory; std::getline(directories, directory, ':');) {
    const fs::path one = fs::path(directory.empty() ? "." : directory) / name;
    if (runs(one)) return one;
  }
  return {};
}

// The parts of a program that the kernel reads before it starts the program.
struct program_file {
  enum class kind : std::uint8_t { other, script, elf } is = kind::other;
  bool other_word_size = false;
  bool cut_off = false;  // an ELF file that ends before its last segment
  // of a script, or the loader of a dynamically linked program; empty: none is named
  std::string interpreter;
};

void read_script(std::ifstream& file, program_file& read) {
  std::string line;
  file.seekg(2);
  std::getline(file, line);
  std::istringstream(line) >> read.interpreter;
}

void read_elf(std::ifstream& file, const ElfW(Ehdr) & header, program_file& read) {
  file.seekg(0, std::ios::end);
  const auto size = static_cast<std::uint64_t>(file.tellg());
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    ElfW(Phdr) segment{};
    file.seekg(static_cast<std::streamoff>(header.e_phoff + i * sizeof segment));
    file.read(reinterpret_cast<char*>(&segment), sizeof segment);
    if (!file || segment.p_filesz > size || segment.p_offset > size - segment.p_filesz) {
      read.cut_off = true;
      return;
    }
    if (segment.p_type != PT_INTERP) continue;
    read.interpreter.assign(std::min<std::size_t>(segment.p_filesz, 4096), '\0');
    file.seekg(static_cast<std::streamoff>(segment.p_offset));
    file.read(read.interpreter.data(), static_cast<std::streamsize>(read.interpreter.size()));
    read.interpreter.erase(std::min(read.interpreter.find('\0'), read.interpreter.size()));
  }
}

program_file read_program(const fs::path& program) {
  using enum program_file::kind;
  program_file read;
  std::ifstream file(program, std::ios::binary);
  ElfW(Ehdr) header{};
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  const bool whole = static_cast<bool>(file);
  file.clear();
  if (header.e_ident[0] == '#' && header.e_ident[1] == '!') {
    read.is = script;
    read_script(file, read);
  } else if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0) {
    constexpr unsigned char our_class = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
    read.is = elf;
    read.other_word_size = whole && header.e_ident[EI_CLASS] != our_class;
    read.cut_off = !whole;
    if (whole && !read.other_word_size && header.e_phentsize == sizeof(ElfW(Phdr)))
      read_elf(file, header, read);
  }
  return read;
}

// Why LD_PRELOAD would do nothing for it; null if it does, or if it is a script, whose interpreter
// decides.
const char* why_no_effect(const fs::path& program, const program_file& read) {
  struct stat about{};
  if (::stat(program.c_str(), &about) == 0) {
    const bool other_user = (about.st_mode & S_ISUID) != 0 && about.st_uid != ::getuid();
    const bool other_group = (about.st_mode & S_ISGID) != 0 && about.st_gid != ::getgid();
    if (other_user || other_group) return "runs with another user's rights";
  }
  if (read.is != program_file::kind::elf || read.cut_off) return nullptr;
  if (read.other_word_size) return "is for another word size";
  if (read.interpreter.empty()) return "is statically linked";
  return read.interpreter.find("musl") == std::string::npos ? nullptr
                                                            : "uses another C library than glibc";
}

constexpr const char* expected_program = "a program that can be run";

// Reports why execv() failed.
[[noreturn]] void refuse_to_run(const std::string& name, const program_file& read, int error) {
  if (error == E2BIG || error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE) {
    throw std::runtime_error("'" + name + "' cannot be run: " + std::strerror(error));
  }
  std::string why = std::strerror(error);
  if (error == ENOENT && !read.interpreter.empty())
    why = "its interpreter '" + read.interpreter + "' does not exist";
  if (error == ENOEXEC)
    why = "it is neither a program for this machine nor a script that begins with #!";
  refuse("PROGRAM", name, "cannot be run: " + why, expected_program);
}

void set(const char* name, const std::string& value) {
  if (::setenv(name, value.c_str(), 1) != 0)
    throw std::runtime_error(std::string(name) + " cannot be set");
}

}  // namespace

static int elide_command(const elide_flags& flags) {
  if (!flags.elision.empty() && flags.elision != "on" && flags.elision != "off") {
    refuse_value("--elision", flags.elision, "on or off");
  }
  if (!flags.stats.empty() && flags.stats != "-") {
    std::string file = fs::absolute(flags.stats).string();
    if (!preload::may_become_stats_file(file.data())) {
      refuse("--stats", flags.stats, "cannot be written", "a file, or - for standard error");
    }
  }
  if (flags.command.empty())
    throw bench::bad_input("a program is missing (expected elidex elide [FLAGS] -- PROGRAM ARGS)");
  const std::string& name = flags.command.front();
  const fs::path program = find_program(name);
  if (program.empty()) {
    std::error_code error;
    const bool is_there = name.find('/') != std::string::npos && fs::exists(name, error);
    refuse("PROGRAM", name, is_there ? "cannot be run" : "does not exist", expected_program);
  }
  const program_file read = read_program(program);
  if (read.cut_off) refuse("PROGRAM", name, "cannot be run: it is truncated", expected_program);
  if (const char* const why = why_no_effect(program, read)) {
    refuse("PROGRAM", name, why + std::string(", so LD_PRELOAD has no effect on it"),
           "a dynamically linked program of this user");
  }
  std::string preload = library().string();
  if (preload.find_first_of(" :") != std::string::npos) {
    throw std::runtime_error("LD_PRELOAD cannot name '" + preload +
                             "': there is a blank or a colon in it");
  }
  if (const char* const others = std::getenv("LD_PRELOAD"); others != nullptr && *others != '\0') {
    preload += std::string(":") + others;
  }
  set("LD_PRELOAD", preload);
  if (!flags.stats.empty()) set("ELIDEX_STATS", flags.stats);
  if (!flags.elision.empty()) set("ELIDEX_ELISION", flags.elision);

  std::vector<char*> arguments;
  arguments.reserve(flags.command.size() + 1);
  for (const std::string& one : flags.command) arguments.push_back(const_cast<char*>(one.c_str()));
  arguments.push_back(nullptr);
  ::execv(program.c_str(), arguments.data());
  refuse_to_run(name, read, errno);
}

void add_elide_command(command_parser& app) {
  const auto flags = std::make_shared<elide_flags>();
  command_parser command = app.add_command(
      "elide",
      "run a program with its locks elided, or counted: elidex elide [FLAGS] -- PROGRAM ARGS");
  command.footer(
      "Without hardware transactions nothing is elided; --stats works everywhere. See "
      "docs/PRELOAD.md.");
  command
      .add_option("--stats", flags->stats,
                  "write a table of the program's locks to FILE at its end; - for standard error")
      .type_name("FILE");
  command.add_option("--elision", flags->elision, "on | off [on]").type_name("S");
  command.add_option("PROGRAM", flags->command, "the program and its arguments, after --")
      .type_name(" ");
  command.runs([flags] { return elide_command(*flags); });
}

}  // namespace elidex::cli
