#!/usr/bin/env python3
"""Checks that each figure of a page is the stored one: the one that its annotation names.

    figures.py            all pages; a line for each figure that is wrong or has no annotation,
                          and for each unused annotation; status 1 if there is any
    figures.py --write    corrects the figures, and the pages' lists of files and commits
    figures.py --ages     how many commits ago each quoted file was made
    figures.py PAGE...    these pages

An annotation is a comment directly below its paragraph, list item or table, indented as that is:

    <!-- figures: 1.49 = claims[E-F10a].here[0]; 6.1 = [btree/htm-dbx zipf:0.99 16] -->
    <!-- figures: none: counted by hand with callgrind -->
    <!-- figures: peers-1m.json; 2.14 = [ordered_map load 2] / [absl+mutex load 1]
         none 3.7: the goal -->

Items are separated by a new line or `;`. Figures are named in the order of the text.
expressions.py defines the expressions after `=`. `none: WHY` covers all figures that no file has,
`none 3.7, 4: WHY` only these. Directly below a heading, `none: WHY` is for the section's blocks
that have no annotation. The annotation of a table:

    <!-- figures: peers-1m.json
         rows: load | c | a
         2-4: [{head} {} 2] / [absl+mutex {} 1]
         row 3, congee: [congee a 2] / [absl+mutex a 1], _
         goal: none: a goal -->

A column is named by its head or by its number. It has an expression for each figure of a cell, with
commas between them; `_` is for a number that is no figure. A text or a list means all of its
numbers; a text without numbers is compared as text. `{}` is the row's name: its first cell, or the
name in `rows:`. `{first}` and `{rest}` are the name's first word and its others, `{2}` the row's
second cell (the one above it where it is empty), `{head}` the column's head. `row 3:` is for a
whole row.

A page that quotes figures ends with a list of the files and their commits, and below that names
them for the whole page, one of them without a name: `<!-- figures: sources; FILE; name=FILE -->`.
"""

import argparse
import re
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import checks  # noqa: E402
import expressions  # noqa: E402
import notes  # noqa: E402
import pages  # noqa: E402
from pages import BadPage  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", *(f"docs/{name}.md" for name in (
    "EUNOMIA", "PERFORMANCE", "DATABASE", "THESIS", "COLUMN", "ELISION", "PRELOAD", "MACHINE",
    "PAPERS"))]


class Page:
    def __init__(self, path, text, files):
        self.path, self.text, self.files = path, text, files
        self.found = checks.Found(text)
        self.names = {}  # of files, declared for the whole page
        self.quoted = set()
        self.sources = None  # the block with the list of files
        self.check()

    def problems(self):
        return [f"{self.path}:{line}: {what}" for line, what in sorted(set(self.found.problems))]

    def corrected(self):
        text = self.text
        for begin, end, new in sorted(set(self.found.edits), reverse=True):
            text = text[:begin] + new + text[end:]
        return text

    def check(self):
        try:
            blocks = pages.blocks_of(self.text)
            self.find_sources(blocks)
        except BadPage as error:
            self.found.problem(error.line, str(error))
            return
        for block in blocks:
            try:
                if block is not self.sources:
                    self.check_block(block)
            except BadPage as error:
                self.found.problem(error.line, str(error))
        self.check_sources()

    def check_block(self, block):
        annotation = block.annotation or block.section
        note = notes.note_of(annotation) if annotation else notes.Note()
        if annotation and annotation is block.section and (note.items or "" not in note.none):
            raise BadPage(annotation.line, "a section's annotation can only be 'none: WHY'")
        self.files.asked = set()
        check = checks.TableCheck if block.kind == "table" else checks.TextCheck
        run = check(self.found, block, note, self.files, {**self.names, **note.files})
        run.run()
        self.quoted |= self.files.asked
        if block.annotation is None:
            return
        for name in sorted(set(note.files.values()) - self.files.asked):
            self.found.problem(annotation.line, f"{name} is named and not used")
        if "" in note.none and not run.none_used:
            self.found.problem(annotation.line, "'none' is said of a block without other figures")

    # --- the list of files ---

    def find_sources(self, blocks):
        for block in blocks:
            if not block.annotation or not re.match(r"\s*sources\b", block.annotation.text):
                continue
            self.sources = block
            for item in notes.items_of(block.annotation)[1:]:
                files = notes.files_in(item)
                if files is None:
                    raise BadPage(item.line, f"'{item.text}' names no file")
                self.names.update(files)

    def check_sources(self):
        stored = sorted(name for name in self.quoted if name.endswith(".json"))
        if self.sources is None:
            if stored:
                self.found.problem(1, "a page that quotes figures lists their files and commits "
                                      "above <!-- figures: sources -->")
            return
        for name in sorted(set(self.names.values()) - self.quoted):
            self.found.problem(self.sources.annotation.line, f"{name} is declared and not quoted")
        directory = "results" if "/" in self.path else "docs/results"
        wanted = [f"| [`{name}`]({directory}/{name}) | {self.files.commit(name)} |" for name in stored]
        head, rule, *listed = self.sources.text.split("\n")
        for line in sorted(set(listed) - set(wanted)):
            self.found.problem(self.sources.line, f"the list of files has '{line}' for nothing")
        for line in sorted(set(wanted) - set(listed)):
            self.found.problem(self.sources.line, f"the list of files lacks '{line}'")
        if set(listed) == set(wanted) and listed != wanted:
            self.found.problem(self.sources.line, "the list of files is not in order")
        if listed != wanted:
            new = "\n".join([head, rule, *wanted])
            self.found.edits.append((self.sources.begin, self.sources.end, new))


def age(commit):
    """How many commits were made since, in words."""
    answer = subprocess.run(["git", "rev-list", "--count", f"{commit.partition('-')[0]}..HEAD"],
                            cwd=ROOT, capture_output=True, text=True)
    return f"{answer.stdout.strip()} commits ago" if answer.returncode == 0 else "not known here"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="correct the pages")
    parser.add_argument("--ages", action="store_true", help="how old the quoted files are")
    parser.add_argument("pages", nargs="*", metavar="PAGE", default=PAGES,
                        help="its path from the root [all]")
    options = parser.parse_args(arguments)
    files, found, quoted = expressions.Files(ROOT), [], set()
    for path in options.pages:
        if not (ROOT / path).is_file():
            parser.error(f"there is no page {path}")
        page = Page(path, (ROOT / path).read_text(encoding="utf-8"), files)
        if options.write and page.corrected() != page.text:
            (ROOT / path).write_text(page.corrected(), encoding="utf-8")
            page = Page(path, page.corrected(), files)
        found += page.problems()
        quoted |= page.quoted
    if options.ages:
        for name in sorted(name for name in quoted if name.endswith(".json")):
            print(f"{name:40} {files.commit(name):18} {age(files.commit(name))}")
    print("\n".join(found) if found else "figures: all are as stored")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
