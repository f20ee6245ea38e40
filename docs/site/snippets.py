"""Compiles the C++ programs of the first page, the tutorial, the guides and the cookbook, and runs those whose output a page shows.

A block of ```cpp is a whole program, which a reader can copy as it is printed: it has main(), and it includes
the header of each name of std that it uses. A header may also come from one of elidex's public headers that the
program includes, if that header itself includes it. A block of ```output below a program is what it prints.

Many programs are compiled together, and each runs as a process of its own in an empty directory. Nothing is
included but what the programs include. `snippets.py --format` puts them into the project's format.
"""

import concurrent.futures
import functools
import hashlib
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DIRECTORIES = ("tutorial", "guides", "cookbook")
OBJECTS = ROOT / "build" / "docs-snippets"
FLAGS = ("-std=c++20", "-O0", "-Wall", "-Wextra", "-Werror", "-Wno-unused", f"-I{ROOT / 'include'}")
SECONDS_MAX = 60
BLOCK = re.compile(r"^```(cpp|output)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
INCLUDE = re.compile(r"^#include ([<\"][^>\"]+[>\"])", re.MULTILINE)
# Header -> the names of std for which a program includes it. A name of two headers needs one of them.
NAMES = {
    "algorithm": "min max sort ranges::sort",
    "array": "array",
    "atomic": "atomic",
    "cstddef": "size_t byte",
    "cstdint": "int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t",
    "deque": "deque",
    "functional": "greater less",
    "iostream": "cout cerr",
    "limits": "numeric_limits",
    "memory": "unique_ptr make_unique shared_ptr make_shared",
    "mutex": "mutex recursive_mutex lock_guard unique_lock scoped_lock",
    "new": "bad_alloc",
    "numeric": "accumulate",
    "optional": "optional nullopt",
    "ranges": "views::take",
    "shared_mutex": "shared_mutex shared_lock",
    "sstream": "istringstream",
    "stdexcept": "runtime_error",
    "string": "string getline to_string",
    "string_view": "string_view",
    "thread": "thread this_thread::yield",
    "tuple": "tuple get",
    "utility": "move pair get",
    "variant": "monostate",
    "vector": "vector",
}
HEADERS = {name: {header for header in NAMES if name in NAMES[header].split()}
           for name in " ".join(NAMES.values()).split()}


@dataclass
class Snippet:
    page: str
    line: int
    text: str
    output: str = None

    def name(self):
        return f"{self.page}:{self.line}"


def snippets_of(page, text):
    found = []
    for block in BLOCK.finditer(text):
        language, code = block.groups()
        line = text.count("\n", 0, block.start(2)) + 1
        if language == "cpp":
            found.append(Snippet(page, line, code))
        elif not found:
            raise ValueError(f"{page}:{line}: output of no snippet")
        else:
            found[-1].output = (found[-1].output or "") + code
    return found


def all_snippets():
    return [snippet for path in pages() for snippet in snippets_of(path.relative_to(ROOT).as_posix(), path.read_text())]


@functools.cache
def included_by(header):
    """The headers of std that a public header of elidex includes itself."""
    path = ROOT / "include" / header
    return {one.strip("<>") for one in INCLUDE.findall(path.read_text()) if one[0] == "<"} if path.exists() else set()


def incomplete(snippet):
    """What a reader who copies the program lacks."""
    if "int main(" not in snippet.text:
        yield f"{snippet.name()}: not a whole program: it has no main()"
    code = re.sub(r'//.*|"(?:\\.|[^"\\\n])*"', '""', re.sub(r"^#.*", "", snippet.text, flags=re.MULTILINE))
    headers = {one.strip('<>"') for one in INCLUDE.findall(snippet.text)}
    headers |= {one for header in headers for one in included_by(header)}
    for name in sorted(set(re.findall(r"\bstd::((?:ranges::|views::|this_thread::)?\w+)", code))):
        if name not in HEADERS:
            yield f"{snippet.name()}: std::{name}: add it to NAMES in docs/site/snippets.py"
        elif not HEADERS[name] & headers:
            yield f"{snippet.name()}: std::{name} needs #include <{min(HEADERS[name])}>"


def unit(snippets):
    """One translation unit of these programs. It runs the one whose number is its argument."""
    includes = {f"#include {one}" for snippet in snippets for one in INCLUDE.findall(snippet.text)}
    bodies = []
    for number, snippet in enumerate(snippets):
        code = re.sub(r"^#include .*", "", snippet.text, flags=re.MULTILINE)
        code = code.replace("int main(", f"int snippet_{number}(").rstrip()
        if not code.endswith("}"):
            raise ValueError(f"{snippet.name()}: main() is not the program's last function")
        code = f'#line {snippet.line} "{snippet.page}"\n{code[:-1]}return 0;\n}}\n'
        # A specialization of a template of elidex must be outside of any namespace.
        if "struct elidex::" not in code:
            code = f"namespace of_{number} {{\n{code}}}\nusing of_{number}::snippet_{number};\n"
        bodies.append(code)
    cases = "".join(f"    case {number}: return snippet_{number}();\n" for number in range(len(snippets)))
    runner = ("#include <cstdlib>\nint main(int, char** arguments) {\n"
              f"  switch (std::atoi(arguments[1])) {{\n{cases}  }}\n  return 1;\n}}\n")
    return "\n".join(sorted(includes)) + "\n" + "\n".join(bodies) + '\n#line 1 "runner"\n' + runner


def headers_hash():
    made = hashlib.sha256()
    for path in sorted((ROOT / "include").rglob("*.hpp")):
        made.update(path.read_bytes())
    return made.digest()


def compiled(text, library, of_headers):
    """(program, complaint). A program that was compiled before from the same text and library is used again."""
    made = hashlib.sha256(text.encode() + " ".join(FLAGS).encode() + of_headers + Path(library).read_bytes())
    program = OBJECTS / made.hexdigest()[:24]
    if program.exists():
        return program, None
    OBJECTS.mkdir(parents=True, exist_ok=True)
    source = program.with_suffix(".cpp")
    source.write_text(text)
    answer = subprocess.run(["g++", *FLAGS, source, library, "-lzstd", "-pthread", "-o", program], cwd=ROOT, capture_output=True,
                            text=True)
    if answer.returncode != 0:
        return None, answer.stderr
    return program, None


def difference(program, number, snippet):
    """What is wrong with what a snippet prints, or None."""
    with tempfile.TemporaryDirectory() as directory:
        try:
            answer = subprocess.run([program, str(number)], cwd=directory, capture_output=True, text=True,
                                    timeout=SECONDS_MAX)
        except subprocess.TimeoutExpired:
            return f"{snippet.name()}: runs for more than {SECONDS_MAX} s"
    if answer.returncode != 0:
        return f"{snippet.name()}: ends with status {answer.returncode}: {answer.stderr.strip()}"
    if answer.stdout != snippet.output:
        return f"{snippet.name()}: prints\n{answer.stdout}and the page says\n{snippet.output}"
    return None


def groups(snippets):
    """Snippets that are compiled together: those that include the same of the library's costly headers."""
    made = {}
    for snippet in snippets:
        key = next((name for name in ("database", "column", "ordered_map", "hash_map")
                    if f"elidex/{name}.hpp" in snippet.text), "rest")
        made.setdefault(key, []).append(snippet)
    return list(made.values())


def check(library, jobs, only=""):
    """(number of snippets, complaints)."""
    snippets = [one for one in all_snippets() if only in one.page]
    together = groups(snippets)
    of_headers = headers_hash()
    complaints = [lacking for snippet in snippets for lacking in incomplete(snippet)]
    if complaints:
        return len(snippets), complaints
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        programs = list(pool.map(lambda group: compiled(unit(group), library, of_headers), together))
        runs = []
        for group, (program, complaint) in zip(together, programs):
            if complaint:
                complaints.append(complaint)
                continue
            runs += [pool.submit(difference, program, number, snippet) for number, snippet in enumerate(group)
                     if snippet.output is not None]
        complaints += [found for found in (run.result() for run in runs) if found]
    return len(snippets), complaints


def formatted(page):
    """The text of a page with its C++ in the project's format."""
    def one(block):
        language, code = block.groups()
        if language != "cpp":
            return block.group(0)
        code = subprocess.run(["clang-format-19", f"--style=file:{ROOT / '.clang-format'}"], input=code, text=True,
                              capture_output=True, check=True).stdout
        return f"```cpp\n{code}```"
    return BLOCK.sub(one, page)


def pages():
    return [ROOT / "docs" / "index.md", *(path for directory in DIRECTORIES
                                          for path in sorted((ROOT / "docs" / directory).glob("*.md")))]


def cpus():
    return len(os.sched_getaffinity(0))


if __name__ == "__main__":
    import sys
    if sys.argv[1:] == ["--format"]:
        for one in pages():
            one.write_text(formatted(one.read_text()))
        sys.exit(0)
    total, wrong = check(sys.argv[1], 1, *sys.argv[2:3])
    print(*wrong, f"{total} snippets", sep="\n")
    sys.exit(1 if wrong else 0)
