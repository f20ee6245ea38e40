"""Compiles the C++ snippets of the first page, the tutorial, the guides and the cookbook, and runs those whose output a page shows.

A snippet is a block of ```cpp. A block with `int main(` is a whole program. Any other is the body of a
function. Two comments before a block change this:

    <!-- snippet: CODE -->        CODE, which readers do not see, comes before the block
    <!-- snippet: continued -->   the block continues the one before

A block of ```output below a snippet is what it prints. Many snippets are compiled together, and each runs
as a process of its own in an empty directory. `snippets.py --format` puts them into the project's format.
"""

import concurrent.futures
import hashlib
import os
import re
import subprocess
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DIRECTORIES = ("tutorial", "guides", "cookbook")
OBJECTS = ROOT / "build" / "docs-snippets"
FLAGS = ("-std=c++20", "-O0", "-Wall", "-Wextra", "-Werror", "-Wno-unused", f"-I{ROOT / 'include'}")
HEADERS = ("algorithm", "array", "atomic", "cstdint", "filesystem", "fstream", "functional", "iostream", "iterator", "memory",
           "mutex", "numeric", "optional", "ranges", "shared_mutex", "sstream", "string", "string_view", "thread", "utility",
           "vector")
SECONDS_MAX = 60
BLOCK = re.compile(r"((?:^[ \t]*<!-- snippet:.*?-->\n)?)^```(cpp|output)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass
class Snippet:
    page: str
    line: int
    before: str = ""
    pieces: list = field(default_factory=list)  # (line, text)
    output: str = None

    def name(self):
        return f"{self.page}:{self.line}"

    def text(self):
        return "".join(text for _, text in self.pieces)

    def is_program(self):
        return "int main(" in self.text()


def snippets_of(page, text):
    found = []
    for block in BLOCK.finditer(text):
        comment, language, code = block.groups()
        line = text.count("\n", 0, block.start(3)) + 1
        hidden = re.sub(r"^\s*<!-- snippet:\s*|\s*-->\s*$", "", comment)
        if language == "output":
            if not found:
                raise ValueError(f"{page}:{line}: output of no snippet")
            found[-1].output = (found[-1].output or "") + code
        elif hidden == "continued":
            if not found:
                raise ValueError(f"{page}:{line}: continues no snippet")
            found[-1].pieces.append((line, code))
        else:
            found.append(Snippet(page, line, hidden, [(line, code)]))
    return found


def all_snippets():
    return [snippet for path in pages() for snippet in snippets_of(path.relative_to(ROOT).as_posix(), path.read_text())]


def unit(snippets):
    """One translation unit of these snippets. Its program runs the one whose number is its argument."""
    includes = {f"#include <{name}>" for name in HEADERS}
    bodies = []
    for number, snippet in enumerate(snippets):
        code = []
        for line, text in snippet.pieces:
            code.append(f'#line {line} "{snippet.page}"\n')
            for one in text.splitlines(keepends=True):
                if one.startswith("#include"):
                    includes.add(one.strip())
                    code.append("\n")
                else:
                    code.append(one)
        code = "".join(code)
        if snippet.is_program():
            code = code.replace("int main(", f"int snippet_{number}(").rstrip()
            if not code.endswith("}"):
                raise ValueError(f"{snippet.name()}: main() is not the program's last function")
            code = code[:-1] + "return 0;\n}\n"
            # A specialization of a template of elidex must be outside of any namespace.
            if "struct elidex::" not in code:
                code = f"namespace of_{number} {{\n{snippet.before}\n{code}\n}}\nusing of_{number}::snippet_{number};\n"
        else:
            code = f"int snippet_{number}() {{\n{snippet.before}\n{code}\nreturn 0;\n}}\n"
        bodies.append(code)
    cases = "".join(f"    case {number}: return snippet_{number}();\n" for number in range(len(snippets)))
    runner = f"int main(int, char** arguments) {{\n  switch (std::stoi(arguments[1])) {{\n{cases}  }}\n  return 1;\n}}\n"
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
    answer = subprocess.run(["g++", *FLAGS, source, library, "-pthread", "-o", program], cwd=ROOT, capture_output=True,
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
        text = snippet.text() + snippet.before
        key = next((name for name in ("database", "column", "ordered_map", "hash_map") if f"elidex/{name}.hpp" in text), "rest")
        made.setdefault(key, []).append(snippet)
    return list(made.values())


def check(library, jobs, only=""):
    """(number of snippets, complaints)."""
    snippets = [one for one in all_snippets() if only in one.page]
    together = groups(snippets)
    of_headers = headers_hash()
    complaints = []
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
        comment, language, code = block.groups()
        if language != "cpp":
            return block.group(0)
        code = subprocess.run(["clang-format-19", f"--style=file:{ROOT / '.clang-format'}"], input=code, text=True,
                              capture_output=True, check=True).stdout
        return f"{comment}```cpp\n{code}```"
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
