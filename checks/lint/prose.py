#!/usr/bin/env python3
"""Warns of sentences over 30 words, and of turns that a reader stops at, on the pages of docs/.

Prints one line for each. The pages of PLAIN have none: there, a warning is an error (status 1).
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORDS_MAX = 30
# Directories whose pages follow the rules.
PLAIN = ("docs/tutorial/", "docs/cookbook/", "docs/guides/", "docs/ideas/", "docs/results/", "docs/reference/", "docs/index.md",
         "docs/README.md", "docs/decisions/site.md", "docs/decisions/index.md", "README.md",
         *(f"docs/{name}.md" for name in ("ARCHITECTURE", "COLUMN", "CONFORMANCE", "CONTRIBUTING", "DATABASE", "ELISION", "LINKING",
                                          "LOG_FORMAT", "MAPS", "PAPERS", "PRELOAD", "TOOL", "glossary", "VERSIONS", "MACHINE", "THESIS", "EUNOMIA")))
# What a reader stops at -> what to write.
TURNS = {
    r"\bsays how\b": "describes how",
    r"\bwhoever\b": "name the thing",
    r"\bnobody\b": "no thread, no caller",
    r"\bgood for nothing\b": "must not be used again",
    r"\bof its day\b": "older",
    r"\bis none\b": "is not",
    r"\bstands in\b": "is in",
    r"\bhas not said\b": "has not advanced",
    r"\bis the \w+'s doing\b": "subject, verb, object",
    r"\bgoes? on\b": "continues",
    r"^Who ": "name the thing",
}
# Home-made words that the glossary does not have -> the field's word.
WORDS = {"limbo": "retire list", "spine": "inner levels", "governor": "controller", "lab": "bench", "folder": "directory",
         "stretch": "range"}


def sentences(text):
    """(line, sentence) of a page, without code, comments and links' addresses."""
    def blank(found):
        return re.sub(r"[^\n]", " ", found.group(0))
    text = re.sub(r"^```.*?^```$|<!--.*?-->", blank, text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"(?m)^    .*$", blank, text)
    text = re.sub(r"\]\([^)\n]*\)", "]", text)
    text = re.sub(r"`[^`\n]*`", "`code`", text)
    line = 1
    for block in re.split(r"(\n\s*\n|\n(?=\s*(?:[-*|#]|\d+\.) )|\||(?:(?<=[.?!:;])|(?<=[.?!:][)*\"]))\s+(?=[A-Z`*(\[]))", text):
        if block.strip() and block.strip() != "|":
            begins = line + len(block) - len(block.lstrip("\n"))
            yield begins, " ".join(block.split())
        line += block.count("\n")


def warnings(text):
    for line, sentence in sentences(text):
        words = len(re.findall(r"\b[A-Za-z][\w'-]*", sentence))  # numbers do not count
        if words > WORDS_MAX:
            yield line, f"a sentence of {words} words (at most {WORDS_MAX})"
        for turn, better in TURNS.items():
            found = re.search(turn, sentence)
            if found:
                yield line, f"'{found.group(0)}' (write: {better})"
        for word, better in WORDS.items():
            if re.search(rf"\b{word}s?\b", sentence):
                yield line, f"'{word}' (write: {better})"


def main():
    wrong = total = 0
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        name = path.relative_to(ROOT).as_posix()
        for line, message in warnings(path.read_text()):
            plain = name.startswith(PLAIN)
            wrong, total = wrong + plain, total + 1
            print(f"{name}:{line}: {'' if plain else 'warning: '}{message}")
    print(f"prose: {wrong} errors, {total - wrong} warnings", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
