#!/usr/bin/env python3
"""Checks that each figure of a page is the one that the stored file has which its annotation names.

    figures.py            all pages; one line for each figure that is wrong, uncovered or named for nothing; status 1 if any
    figures.py --write    puts the stored figures where wrong ones are quoted, and brings the lists of files up to date
    figures.py PAGE...    these pages

An annotation is a comment directly below its paragraph, list item or table (docs/CONTRIBUTING.md, "Figures"):

    <!-- figures: repro-eunomia-haswell-ep.json; 1.49 = claims[E-F10a].here[0]; none 11: the paper's -->
    <!-- figures: none: counted by hand with callgrind -->
    <!-- figures: peers-1m.json
         rows: load uniform | c uniform | a uniform
         congee: [congee {} 2] / [absl+mutex {} 1] -->

expressions.py says what may stand behind `=`. In a table `COLUMN:` or `2-4:` has an expression for each figure of a cell, with commas
between them; `{}` is the row's name (its first cell, or as `rows:` has it), `{first}` and
`{rest}` its first word and the others, `{2}` the row's second cell, `{head}` the column's; `_` is
for a number that is no figure. `row 3:` or
`row 3, COLUMN:` is for a row or a cell that is unlike the others. A text counts with all its numbers. The comment
`<!-- figures: sources; FILE; name=FILE -->` below a table of files and commits declares files for the whole page.
"""

import argparse
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import expressions  # noqa: E402
import notes  # noqa: E402
import pages  # noqa: E402
from expressions import BadExpression  # noqa: E402
from pages import BadPage  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", *(f"docs/{name}.md" for name in (
    "EUNOMIA", "PERFORMANCE", "DATABASE", "THESIS", "COLUMN", "ELISION", "PRELOAD", "MACHINE", "PAPERS"))]


def as_written(number, value):
    """value in the way in which number is written: as many decimals, the same thousands' separator."""
    mantissa, exponential, _ = number.written.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    if exponential:
        return f"{value:.{decimals}e}"
    separator = "," if "," in mantissa else " " if " " in mantissa else ""
    return f"{value:,.{decimals}f}".replace(",", separator)


class Page:
    def __init__(self, path, text, files):
        self.path, self.text, self.files = path, text, files
        self.problems = []  # (line, what)
        self.edits = []  # (begin, end, new text)
        self.names = {}  # declared for the whole page
        self.quoted = set()  # files
        self.sources = None  # the table of files and its annotation

    def problem(self, line, what):
        self.problems.append((line, what))

    def replace(self, number, text):
        self.edits.append((number.begin, number.end, text))

    def line_of(self, offset):
        return self.text.count("\n", 0, offset) + 1

    def check(self):
        try:
            blocks = pages.blocks_of(self.text)
            self.find_sources(blocks)
            for block in blocks:
                if self.sources is None or block is not self.sources[0]:
                    self.checked_block(block)
            self.check_sources()
        except BadPage as error:
            self.problem(error.line, str(error))
        return sorted(set(self.problems))

    # --- the list of files ---

    def find_sources(self, blocks):
        for block in blocks:
            if block.annotation and re.match(r"\s*sources\b", block.annotation.text):
                declared = notes.items_of(block.annotation)[1:]
                for item in declared:
                    files = notes.files_in(item)
                    if files is None:
                        raise BadPage(item.line, f"'{item.text}' names no file")
                    self.names.update(files)
                self.sources = (block, block.annotation)

    def check_sources(self):
        stored = sorted(name for name in self.quoted if name.endswith(".json"))
        for name in sorted(set(self.names.values()) - self.quoted):
            self.problem(self.sources[1].line, f"{name} is declared and not quoted")
        if not stored:
            return
        if self.sources is None:
            self.problem(1, "a page that quotes figures lists their files and commits (<!-- figures: sources -->)")
            return
        block = self.sources[0]
        here = "docs/results" if "/" not in self.path else "results"
        wanted = [f"| [`{name}`]({here}/{name}) | {self.files.get(name).get('commit', 'not stored')} |" for name in stored]
        lines = block.text.split("\n")
        if lines[2:] == wanted:
            return
        for line in lines[2:]:
            if line not in wanted:
                self.problem(block.line, f"the list of files has '{line}', which is not quoted or not of that commit")
        for line in wanted:
            if line not in lines:
                self.problem(block.line, f"the list of files lacks '{line}'")
        if sorted(lines[2:]) == wanted:
            self.problem(block.line, "the list of files is not in order")
        self.edits.append((block.begin, block.end, "\n".join([*lines[:2], *wanted])))

    # --- blocks ---

    def checked_block(self, block):
        try:
            self.check_block(block)
        except BadPage as error:
            self.problem(error.line, str(error))

    def check_block(self, block):
        annotation = block.annotation or block.section
        if annotation is None:
            note = notes.Note(block.line, {}, [], {}, {})
        else:
            note = notes.note_of(annotation)
            if annotation is block.section and (note.items or "" not in note.none):
                raise BadPage(annotation.line, "a section's annotation can only be 'none: WHY'")
        names = {**self.names, **note.files}
        check = TableCheck if block.kind == "table" else TextCheck
        before = set(self.files.asked)
        self.files.asked.clear()
        check(self, block, note, names).run()
        for name in sorted(set(note.files.values()) - self.files.asked):
            self.problem(note.line, f"{name} is named and not used")
        self.quoted |= self.files.asked
        self.files.asked |= before
        if block.annotation and "" in note.none and not self.used_none and "" in note.none_items:
            self.problem(note.line, "'none' is said of a block that has no other figure")

    used_none = False


class BlockCheck:
    def __init__(self, page, block, note, names):
        self.page, self.block, self.note, self.names = page, block, note, names
        page.used_none = False

    def evaluate(self, item, text):
        """The value, or None if there is none, which is then a problem."""
        try:
            value = expressions.evaluate(self.page.files, self.names, text)
            if isinstance(value, list) and isinstance(self, TextCheck):
                raise BadExpression(f"'{text}' is no figure but a list")
            return value
        except (BadExpression, TypeError, ValueError) as error:
            self.page.problem(item.line, str(error))
            return None

    def compare(self, number, value, text):
        """Whether the page's number is the value; what it should be is noted. A text's number is a string."""
        stored = expressions.as_number(value) if isinstance(value, str) else value
        if number.matches(stored):
            return None
        wanted = value if isinstance(value, str) else as_written(number, stored)
        by = " ".join(text.split())
        self.page.problem(self.page.line_of(number.begin), f"{number.written} is {wanted} by {by}")
        self.page.replace(number, wanted)
        return wanted

    def uncovered(self, numbers):
        for number in numbers:
            if "" in self.note.none:
                self.page.used_none = True
            else:
                self.page.problem(self.page.line_of(number.begin), f"{number.written} has no annotation")


class TextCheck(BlockCheck):
    ITEM = re.compile(r"(?P<quoted>\S(?:[^=]*\S)?)\s+=\s+(?P<of>.*)", re.DOTALL)

    def run(self):
        numbers = pages.numbers_of(self.block.text, self.block.begin)
        left, behind = list(numbers), 0
        for item in self.note.items:
            parsed = self.ITEM.match(item.text)
            if not parsed:
                self.page.problem(item.line, f"'{item.text}' is not QUOTED = EXPRESSION")
                continue
            quoted = parsed["quoted"]
            number = next((one for one in left if one.begin >= behind and one.written == quoted), None)
            if number is None:
                where = ", in this order" if any(one.written == quoted for one in numbers) else ""
                self.page.problem(item.line, f"the text above does not have {quoted}{where}")
                continue
            left.remove(number)
            behind = number.end
            value = self.evaluate(item, parsed["of"])
            if value is not None:
                self.check(item, number, value, parsed["of"])
        for which in self.note.none:
            if which and not any(one.written == which for one in left):
                self.page.problem(self.note.none_items[which].line, f"the text above does not have {which}")
        figures = {(one.begin, one.end) for one in pages.figures_of(self.block.text, self.block.begin)}
        self.uncovered([one for one in left if (one.begin, one.end) in figures and one.written not in self.note.none])

    def check(self, item, number, value, text):
        if isinstance(value, str):
            found = expressions.numbers_in(value)
            if len(found) != 1:
                self.page.problem(item.line, f"{text} is a text with {len(found)} numbers")
                return
            value = found[0]
        wanted = self.compare(number, value, text)
        if wanted is not None:
            self.page.edits.append((item.begin, item.begin + len(number.written), wanted))


class TableCheck(BlockCheck):
    def run(self):
        self.table = pages.table_of(self.block)
        self.columns, self.rows, self.keys, self.key_columns = {}, {}, None, set()
        for item in self.note.items:
            self.read_item(item)
        for which, item in self.note.none_items.items():
            for column in self.columns_named(item, which) if which else ():
                self.columns[column] = (item, "none: " + self.note.none[which])
        for index in range(len(self.table.rows)):
            self.check_row(index)

    def read_item(self, item):
        name, colon, rest = (part.strip() for part in item.text.partition(": "))
        if not colon:
            self.page.problem(item.line, f"'{item.text}' is not COLUMN: EXPRESSION, ...")
        elif name == "rows":
            self.keys = [key.strip() for key in rest.split("|")]
            if len(self.keys) != len(self.table.rows):
                self.page.problem(item.line, f"{len(self.keys)} names of {len(self.table.rows)} rows")
                self.keys += [""] * len(self.table.rows)
        elif row := re.fullmatch(r"row (\d+)(?:, (.+))?", name):
            if not 0 < int(row[1]) <= len(self.table.rows):
                self.page.problem(item.line, f"there is no row {row[1]}")
            for column in self.columns_named(item, row[2]) if row[2] else [None]:
                self.rows[int(row[1]) - 1, column] = (item, rest)
        else:
            for column in self.columns_named(item, name):
                self.columns[column] = (item, rest)
            self.key_columns |= {int(number) - 1 for number in re.findall(r"\{(\d+)\}", rest)}

    def columns_named(self, item, name):
        span = re.fullmatch(r"(\d+)(?:-(\d+))?", name)
        if span:
            columns = list(range(int(span[1]) - 1, int(span[2] or span[1])))
        else:
            columns = [index for index, cell in enumerate(self.table.head) if cell.plain() == name]
        if not columns or columns[-1] >= len(self.table.head):
            self.page.problem(item.line, f"the table above has no column '{name}'")
            return []
        return columns

    def cell_text(self, row, column):
        """Where a cell is empty, the one above it."""
        while row > 0 and not self.table.rows[row][column].plain():
            row -= 1
        return self.table.rows[row][column].plain()

    def fill(self, text, row, column):
        key = self.keys[row] if self.keys else self.cell_text(row, 0)
        first, _, rest = key.partition(" ")
        known = {"": key, "first": first, "rest": rest, "head": self.table.head[column].plain()}

        def value(found):
            return known[found[1]] if found[1] in known else self.cell_text(row, int(found[1]) - 1)
        return re.sub(r"\{(\d*|first|rest|head)\}", value, text)

    def check_row(self, index):
        rest = []
        for column, cell in enumerate(self.table.rows[index]):
            item, text = self.rows.get((index, column)) or self.columns.get(column, (None, ""))
            if (index, None) in self.rows and not text.startswith("none: "):
                text = ""  # its row's, whatever its column's
            if text and re.search(r"\w", cell.text) and not text.startswith("none: "):
                self.check_cell([cell], item, self.fill(text, index, column))
            elif text == "" and column > 0 and column not in self.key_columns:
                rest.append(cell)
        if (index, None) not in self.rows:
            self.uncovered([number for cell in rest for number in cell.figures()])
        elif not self.rows[index, None][1].startswith("none: "):
            item, text = self.rows[index, None]
            self.check_cell(rest, item, self.fill(text, index, 0))

    def check_cell(self, cells, item, texts):
        wanted, words, whole = [], [], False
        for _, text in notes.parts_of(texts, ","):
            text = text.strip()
            value = None if text == "_" else self.evaluate(item, text)
            if value is None and text != "_":
                return
            if isinstance(value, list):  # of numbers or of points
                wanted += [(one[1] if isinstance(one, list) else one, text) for one in value]
            elif isinstance(value, str):
                found = expressions.numbers_in(value)
                words += [] if found else [value]
                wanted += [(one, text) for one in found]
                whole = True
            else:
                wanted.append((value, text))
        numbers = [number for cell in cells for number in (cell.numbers() if whole else cell.figures())]
        if len(numbers) != len(wanted):
            self.page.problem(cells[0].line, f"'{' | '.join(cell.text.strip() for cell in cells)}' has {len(numbers)} figures, "
                                             f"its annotation {len(wanted)}")
            return
        for number, (value, text) in zip(numbers, wanted):
            if value is not None:
                self.compare(number, value, text)
        self.check_words(cells, words)

    def check_words(self, cells, words):
        wanted = ", ".join(dict.fromkeys(words))
        if words and cells[0].plain() != wanted:
            self.page.problem(cells[0].line, f"'{cells[0].plain()}' is '{wanted}'")
            begin = cells[0].begin
            self.page.edits.append((begin, begin + len(cells[0].text), f" {wanted} "))


def edited(text, edits):
    for begin, end, new in sorted(set(edits), reverse=True):
        text = text[:begin] + new + text[end:]
    return text


def check_page(path, text, files):
    page = Page(path, text, files)
    return page, [f"{path}:{line}: {what}" for line, what in page.check()]


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--write", action="store_true", help="correct the pages")
    parser.add_argument("pages", nargs="*", default=PAGES, metavar="PAGE", help="as its path is from the root [all]")
    options = parser.parse_args(arguments)
    files = expressions.Files(ROOT)
    found = []
    for path in options.pages:
        if not (ROOT / path).is_file():
            parser.error(f"there is no page {path}")
        page, problems = check_page(path, (ROOT / path).read_text(encoding="utf-8"), files)
        if options.write and page.edits:
            (ROOT / path).write_text(edited(page.text, page.edits), encoding="utf-8")
            page, problems = check_page(path, (ROOT / path).read_text(encoding="utf-8"), files)
        found += problems
    print("\n".join(found) if found else "figures: all are as stored")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
