#!/usr/bin/env python3
"""Checks the prose of the project's pages: sentences, turns, terms, openings and lines.

Prints one line for each violation; status 1 if there is any. Records of decisions get warnings
only, because they were written at their time.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORDS_MAX = 30
COLUMNS_MAX = 100
# Pages on which a violation is a warning.
RECORDS = ("docs/decisions/", "docs/ROADMAP.md")
# Pages that need no paragraph below the title: forms, and recipes whose title is the task.
NO_OPENING = (".github/", ".gitlab/", "docs/cookbook/")
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
    r"\bgo(?:es)? on\b": "continues",
    r"^Who ": "name the thing",
}
# Home-made words that the glossary does not have -> the field's word.
WORDS = {"limbo": "retire list", "spine": "inner levels", "governor": "controller", "lab": "bench",
         "folder": "directory", "stretch": "range"}
# Words that mean something of their own in elidex. A page links the first of them to the glossary.
TERMS = ("canar(?:y|ies)", "retire lists?", "leaf hints?", "separated lea(?:f|ves)",
         "partitioned lea(?:f|ves)", "split regions", "conflict controls?", "fixed-key trees?",
         "commit groups?", "commit clock", "inner levels", "lemming effect",
         r"redistribut(?:e[sd]?|ing|ions?)", "fence keys?", "pin(?:s|ned)?", "epochs?", "regions?",
         "peers?")
ITEM = re.compile(r"\s*(?:[-*]|\d+\.) ")
GLOSSARY_LINK = re.compile(r"\[[^\]]*\]\([^)\s]*\bglossary\.md[^)\s]*\)")


def blank(found):
    return re.sub(r"[^\n]", " ", found.group(0))


def without_code(text):
    """The page with code and comments blanked, each character where it was."""
    text = re.sub(r"\A---\n.*?^---$", blank, text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"^ *```.*?^ *```$|<!--.*?-->", blank, text, flags=re.DOTALL | re.MULTILINE)
    lines = text.split("\n")
    in_list = code = False
    for at, line in enumerate(lines):
        after_blank = at == 0 or not lines[at - 1].strip()
        if line.strip() and not line.startswith(" "):
            in_list = bool(ITEM.match(line)) or (in_list and not after_blank)
        # Four columns are code below a blank line. In a list they belong to an item.
        code = line.startswith("    ") and (code or (after_blank and not in_list))
        if code:
            lines[at] = " " * len(line)
    return "\n".join(lines)


def sentences(text):
    """(line, sentence) of a page, without code, comments and links' addresses."""
    text = re.sub(r"\]\([^)\n]*\)", "]", without_code(text))
    text = re.sub(r"`[^`\n]*`", "`code`", text)
    line = 1
    for block in re.split(r"(\n\s*\n|\n(?=\s*(?:[-*|#]|\d+\.) )|\||"
                          r"(?:(?<=[.?!:;])|(?<=[.?!:][)*\"]))\s+(?=[A-Z`*(\[]))", text):
        if block.strip() and block.strip() != "|":
            begins = line + len(block) - len(block.lstrip("\n"))
            yield begins, " ".join(block.split())
        line += block.count("\n")


def warnings(text):
    """Long sentences, turns and home-made words."""
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


def long_lines(text):
    """Lines of prose and of annotations over the limit. Rows of tables and code cannot be broken."""
    lines, shown = text.split("\n"), without_code(text).split("\n")
    annotations = {text.count("\n", 0, found.start()) + number
                   for found in re.finditer(r"<!--.*?-->", text, re.DOTALL)
                   for number in range(found.group(0).count("\n") + 1)}
    for at, line in enumerate(lines):
        prose = shown[at].strip() and not shown[at].lstrip().startswith("|")
        if len(line) > COLUMNS_MAX and (prose or at in annotations):
            yield at + 1, f"{len(line)} columns (at most {COLUMNS_MAX})"


def torn_items(text):
    """Lines of a paragraph that begin with a number and a period, and so begin a list."""
    before, last = "", 0
    for number, line in enumerate(without_code(text).split("\n"), 1):
        item = re.match(r"(\d+)\. ", line)
        if item:
            mark = int(item.group(1))
            first = not before.strip() or before.startswith("#") or (mark == 1 and before.endswith(":"))
            if not first and (mark == 1 or mark != last + 1):
                yield number, f"'{mark}.' begins a list here (move it)"
            last = mark
        before = line


def unlinked_terms(text):
    """Terms of the glossary whose first use on the page is not a link to it."""
    links = [found.span() for found in GLOSSARY_LINK.finditer(text)]
    shown = re.sub(r"(?m)^#.*$", blank, without_code(text))
    shown = re.sub(r"\]\([^)\n]*\)|`[^`\n]*`", blank, shown)
    for term in TERMS:
        found = re.search(r"\b" + term.replace(" ", r"\s+") + r"\b", shown, re.IGNORECASE)
        if found and not any(begin <= found.start() < end for begin, end in links):
            line = shown.count("\n", 0, found.start()) + 1
            words = " ".join(found.group(0).split())
            yield line, f"the first '{words}' is no link to the glossary"


def opening(text):
    """A page begins with a title, and with a paragraph that tells what it is for."""
    shown = re.sub(r"<!--.*?-->", blank, text, flags=re.DOTALL)
    lines = [(number, line) for number, line in enumerate(shown.split("\n"), 1) if line.strip()]
    if not lines or not lines[0][1].startswith("# "):
        yield 1, "a page begins with its title"
    elif len(lines) < 2 or re.match(r"[-*] |[|#!]|\d+\. |```|    ", lines[1][1]):
        yield lines[0][0], "a paragraph below the title tells what the page is for, and for whom"


def violations(name, text):
    """(line, message) of a page, by its path from the root."""
    found = [*warnings(text), *long_lines(text), *torn_items(text)]
    if not name.startswith(NO_OPENING):
        found += opening(text)
    for_users = name == "README.md" or name.startswith("docs/")
    if for_users and name != "docs/glossary.md" and not name.startswith(RECORDS):
        found += unlinked_terms(text)
    return sorted(set(found))


def page_names():
    answer = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in answer.stdout.splitlines() if (ROOT / name).is_file()]


def main():
    wrong = total = 0
    for name in page_names():
        for line, message in violations(name, (ROOT / name).read_text(encoding="utf-8")):
            record = name.startswith(RECORDS)
            wrong, total = wrong + (not record), total + 1
            print(f"{name}:{line}: {'warning: ' if record else ''}{message}")
    print(f"prose: {wrong} errors, {total - wrong} warnings", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
