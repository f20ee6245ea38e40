#!/usr/bin/env python3
"""Style that a program can check. Prints one line per violation and exits 1 if there is any.

The rules are the functions called check_*; each takes a file and yields (line number, message).
"""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DIRECTORIES = ("include", "src", "machine", "papers", "bench", "cli", "preload", "checks", "tests", "fuzz", "examples",
               "packaging")
FUNCTION_LINES_MAX = 70
COLUMNS_MAX = 100


@dataclass
class SourceFile:
    path: str  # relative to the root, with forward slashes
    lines: list

    def is_header(self):
        return self.path.endswith(".hpp")

    def in_library(self):
        return self.path.startswith(("include/", "src/"))


def code_of(line):
    """The line without its // comment and without string literals."""
    line = re.sub(r'"(?:[^"\\]|\\.)*"', '""', line)
    return line.split("//")[0]


WEAK_ORDER = re.compile(r"memory_order(_|::)(relaxed|consume|acquire|release|acq_rel)\b")
PARTNER = re.compile(r"pairs? with|partner|ordered by|orders nothing|no ordering|only a hint|one thread|only the holder")


def check_memory_orders(file):
    """An order weaker than seq_cst names its partner, beside it or in the comment above its statement."""
    if file.path.startswith("tests/unit/") and "scripted" in file.path:
        return
    for number, line in enumerate(file.lines, 1):
        if not WEAK_ORDER.search(code_of(line)):
            continue
        above = file.lines[max(0, number - 9):number]
        said = " ".join(text.split("//", 1)[1].strip() for text in above if "//" in text)
        if not PARTNER.search(said):
            yield number, "a memory order weaker than seq_cst without a comment that names its partner"


VECTORS = "include/elidex/internal/tree/key_search.hpp"


def check_hardware_transactions(file):
    if file.path in ("include/elidex/htm.hpp", "src/htm.cpp"):
        return
    for number, line in enumerate(file.lines, 1):
        if re.search(r"\b_?x(begin|end|abort|test)\b", code_of(line)):
            yield number, "only htm.hpp knows about hardware transactions"
        if re.search(r"\bimmintrin\b", code_of(line)) and file.path != VECTORS:
            yield number, "only htm.hpp and key_search.hpp know about the CPU's instructions"


YIELDS = ("src/backoff.cpp", "include/elidex/internal/sync/backoff.hpp")
YIELDS_BEFORE_A_SLEEP = ("include/elidex/internal/sync/parking.hpp", "src/sleeping_lock.cpp", "src/sleeping_shared_lock.cpp")


def check_yields(file):
    """A waiter sleeps on what it waits for. A yield is for a few rounds before that, in these files."""
    if not file.in_library() or file.path in YIELDS:
        return
    for number, line in enumerate(file.lines, 1):
        if re.search(r"\b(sched_yield|yield_processor|this_thread::yield)\b", code_of(line)):
            yield number, "a waiter does not yield: wait_while() of parking.hpp sleeps"
        if "once_or_yield" in code_of(line) and file.path not in YIELDS_BEFORE_A_SLEEP:
            yield number, "once_or_yield() is for the rounds before a sleep"


STANDARD_HEADER = re.compile(r"^[a-z_]+$")
SYSTEM_HEADER = re.compile(r"^(sys/|fcntl\.h|dirent\.h|sched\.h|unistd\.h|pthread\.h|sanitizer/|cpuid\.h|errno\.h|linux/|time\.h|[ei]mmintrin\.h)")


OPTIONAL_HEADER = {"src/log_compression.cpp": "zstd.h"}  # of the CMake option ELIDEX_ZSTD


def check_library_stands_alone(file):
    """include/ and src/ use the standard library and the system, never print and never exit."""
    if not file.in_library():
        return
    for number, line in enumerate(file.lines, 1):
        include = re.match(r'\s*#\s*include\s*[<"]([^">]+)[">]', line)
        if include:
            name = include.group(1)
            if not (name.startswith("elidex/") or STANDARD_HEADER.match(name) or SYSTEM_HEADER.match(name)
                    or OPTIONAL_HEADER.get(file.path) == name):
                yield number, f"the library does not depend on {name}"
            if name in ("iostream", "print"):
                yield number, "the library never prints"
        if re.search(r"\b(std::)?(abort|exit|_exit|quick_exit|terminate|printf|puts)\s*\(", code_of(line)):
            if not re.search(r"htm::|Htm::|\babort\s*\(\s*\)\s*(noexcept|const)|::abort<", code_of(line)):
                yield number, "the library never prints or exits"


OWN_NAMESPACES = re.compile(r"using namespace (internal|papers);$")


def check_headers(file):
    if not file.is_header():
        return
    text = "\n".join(file.lines)
    if "#pragma once" not in text:
        yield 1, "a header without #pragma once"
    first = next((line for line in file.lines if line.strip() and line != "#pragma once"), "")
    if not first.startswith("//"):
        yield 1, "a header opens with a comment that tells its purpose"
    # A paper or a benchmark may take the library's inside into its own namespace, but not further.
    own = not file.path.startswith("include/") and any(line.startswith("namespace elidex::") for line in file.lines)
    for number, line in enumerate(file.lines, 1):
        if re.match(r"\s*using\s+namespace\b", line) and not (own and OWN_NAMESPACES.match(line)):
            yield number, "no `using namespace` in a header"


def check_leftovers(file):
    for number, line in enumerate(file.lines, 1):
        if re.search(r"\b(TODO|FIXME|XXX)\b", line) and "check_leftovers" not in line and "lint" not in file.path:
            yield number, "a leftover: finish it or file it"
        if line != line.rstrip():
            yield number, "white space at the end of the line"


def check_names(file):
    if not re.fullmatch(r"[a-z0-9_]+", Path(file.path).stem):
        yield 1, "file names are snake_case"


NO_FUNCTION = re.compile(r"(template\s*<[^{]*>\s*)?(\[\[.*?\]\]\s*)?(class|struct|union|enum|namespace|extern|using)\b")


def functions(lines):
    """(first line, number of lines) of each function, in clang-format's layout: the closing brace has the
    indentation of the declaration's first line."""
    inside_until = -1
    for at, line in enumerate(lines):
        if at <= inside_until or not code_of(line).rstrip().endswith("{"):
            continue
        first = at
        while first > 0 and not re.search(r"([;{}:>]|^\s*#.*|^)$", code_of(lines[first - 1]).rstrip()):
            first -= 1
        header = " ".join(code_of(text).strip() for text in lines[first:at + 1])
        if "(" not in header or NO_FUNCTION.match(header) or re.search(r"=\s*\{$", header):
            continue
        indent = re.match(r" *", lines[first]).group(0)
        for end in range(at + 1, len(lines)):
            if lines[end].startswith(indent + "}"):
                yield first + 1, end - first + 1
                inside_until = end
                break


def check_function_lengths(file):
    for number, length in functions(file.lines):
        if length > FUNCTION_LINES_MAX:
            yield number, f"a function of {length} lines; {FUNCTION_LINES_MAX} at most"


def check_columns(file):
    for number, line in enumerate(file.lines, 1):
        if len(line) > COLUMNS_MAX and "NOLINT" not in line:
            yield number, f"{len(line)} columns; {COLUMNS_MAX} at most"


# What a program may include; everything else of include/ is in internal/.
PUBLIC_HEADERS = {f"include/elidex/{name}.hpp" for name in (
    "bounds", "column", "condition_variable", "database", "elided", "hash_map", "htm", "key_encoding", "memory_options", "mutex",
    "ordered_map", "shared_mutex", "synchronization", "version")}
# Words of one paper where the field has a general one. The policy that is called after a paper's system may say so.
PAPER_WORDS = re.compile(r"\b(masstree|eunomia|euno_\w+|dsi|delta_storage_index|txbench)\b")
# Which directories the sources of a directory may include, beside their own and the system's.
MAY_INCLUDE = {
    "include": ("elidex/",),
    "src": ("elidex/",),
    "machine": ("machine/",),
    "preload": ("preload/", "elidex/"),
    "examples": ("elidex/", "machine/"),
}
INCLUDE = re.compile(r'\s*#\s*include\s*[<"]([^">]+)[">]')


def check_wall(file):
    """What is public, what is internal, and who may include what."""
    directory = file.path.split("/")[0]
    if directory == "include" and file.is_header() and not file.path.startswith("include/elidex/internal/"):
        if file.path not in PUBLIC_HEADERS:
            yield 1, "a header that is not public belongs in internal/ (PUBLIC_HEADERS)"
    for number, line in enumerate(file.lines, 1):
        include = INCLUDE.match(line)
        if include and "/" in include.group(1):
            name = include.group(1)
            ours = name.split("/")[0] in ("elidex", "machine", "papers", "bench", "cli", "preload", "tests", "checks")
            if ours and directory in MAY_INCLUDE and not name.startswith(MAY_INCLUDE[directory]):
                yield number, f"{directory}/ does not include {name}"
            if directory == "examples" and name.startswith("elidex/internal/"):
                yield number, f"an example includes public headers only, not {name}"
        if file.path.startswith("include/elidex/internal/") and re.match(r"namespace elidex::(?!internal\b)", line):
            yield number, "what internal/ declares is in namespace elidex::internal"
        if file.path.startswith("include/elidex/internal/") and PAPER_WORDS.search(code_of(line)):
            yield number, "a paper's word in internal/: its room is papers/"


CHECKS = (check_memory_orders, check_hardware_transactions, check_yields,
          check_library_stands_alone, check_headers, check_leftovers, check_names, check_function_lengths,
          check_columns, check_wall)


def violations(file):
    for check in CHECKS:
        for number, message in check(file):
            yield f"{file.path}:{number}: {message}"


SHOWN_EXAMPLES = {
    "readme.cpp": "README.md",
    "readme_lock.cpp": "docs/ELISION.md",
    "readme_column.cpp": "docs/COLUMN.md",
    "readme_database.cpp": "docs/DATABASE.md",
}
README_LINES_MAX = 120


def examples_that_differ(root):
    """A page shows its example, which is compiled, word for word: (page, example) where it does not."""
    for name, page in SHOWN_EXAMPLES.items():
        blocks = re.findall(r"```cpp\n(.*?)```", (root / page).read_text(), re.DOTALL)
        if (root / "examples" / name).read_text() not in blocks:
            yield page, name


def main():
    found = []
    for directory in DIRECTORIES:
        for path in sorted((ROOT / directory).rglob("*.[ch]pp")):
            found += violations(SourceFile(path.relative_to(ROOT).as_posix(), path.read_text().split("\n")))
    for page, name in examples_that_differ(ROOT):
        found.append(f"{page}: it does not show examples/{name} as it is")
    lines = (ROOT / "README.md").read_text().count("\n")
    if lines > README_LINES_MAX:
        found.append(f"README.md: {lines} lines; {README_LINES_MAX} at most")
    print("\n".join(found) if found else "style: no violations")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
