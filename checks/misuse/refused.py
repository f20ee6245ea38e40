"""The calls of refused.cpp: what the compiler must say about each, and whether it does.

A comment above a call has the function, and the words of the static_assert that must fail first.
The name of the C++ function around the calls says what is wrong with them.
"""

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(__file__).resolve().parent / "refused.cpp"

AROUND = re.compile(r"^void of_(\w+)\(")
EXPECTED = re.compile(r'^\s*// (\w+::\w+) \| "(.+)"$')
ERROR = re.compile(r"error: (?:static assertion failed: )?(.*)")


@dataclass(frozen=True)
class Call:
    line: int  # its first
    function: str
    misuse: str
    words: str


def calls(text):
    found, around = [], ""
    for number, line in enumerate(text.splitlines(), start=1):
        if match := AROUND.match(line):
            around = match[1].replace("_", " ")
        elif match := EXPECTED.match(line):
            found.append(Call(number + 1, match[1], around, match[2]))
    return found


def first_errors(answer, path):
    """{line of the call: the first error in what it instantiates}, from what GCC prints."""
    found, line = {}, None
    for text in answer.splitlines():
        if match := re.match(rf"{re.escape(str(path))}:(\d+):\d+:\s+required from here", text):
            line = int(match[1])
        elif (match := ERROR.search(text)) and line is not None:
            found.setdefault(line, match[1])
    return found


def complaints(path=SOURCE, compiler="g++"):
    """One line for each call about which the compiler says something else, or nothing."""
    answer = subprocess.run([shutil.which(compiler), "-std=c++20", "-fsyntax-only", f"-I{ROOT / 'include'}", str(path)],
                            capture_output=True, text=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"})
    said = first_errors(answer.stderr, path)
    expected = calls(path.read_text())
    if not expected:
        yield f"{path}: no calls"
    ends = [call.line for call in expected[1:]] + [len(path.read_text().splitlines()) + 1]
    for call, end in zip(expected, ends):
        words = next((said[line] for line in range(call.line, end) if line in said), "nothing")
        if words != call.words:
            yield f'{path.name}:{call.line}: {call.function}: "{call.words}" expected, the compiler says: {words}'
