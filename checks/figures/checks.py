"""Compares a block's figures with what its annotation names (figures.py has the rules)."""

import re

import expressions
import notes
import pages
from expressions import BadExpression
from pages import BadPage


class Found:
    """What is wrong with a page, and what would mend it."""

    def __init__(self, text):
        self.text = text
        self.problems = []  # (line, what)
        self.compared = []  # the numbers of the page that were
        self.edits = []  # (begin, end, new text)

    def problem(self, line, what):
        self.problems.append((line, what))

    def line_of(self, offset):
        return self.text.count("\n", 0, offset) + 1


def as_written(number, value):
    """value as number is written: as many decimals, the same separator of thousands."""
    mantissa, exponential, _ = number.written.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    if exponential:
        return f"{value:.{decimals}e}"
    separator = "," if "," in mantissa else " " if " " in mantissa else ""
    return f"{value:,.{decimals}f}".replace(",", separator)


class BlockCheck:
    def __init__(self, found, block, note, files, names):
        self.found, self.block, self.note = found, block, note
        self.files, self.names = files, names
        self.none_used = False

    def evaluate(self, item, text):
        """A number, a text or a list; None is a problem, which has been told."""
        try:
            return expressions.evaluate(self.files, self.names, text)
        except (BadExpression, TypeError, ValueError) as error:
            self.found.problem(item.line, str(error))
            return None

    def compare(self, number, value, text):
        """None if the number of the page is the value, else what should be written. The value
        is a string if it was found in a text. The page must not round it then."""
        self.found.compared.append(number)
        stored = expressions.as_number(value) if isinstance(value, str) else value
        if number.value() == stored or (not isinstance(value, str) and number.matches(stored)):
            return None
        wanted = value if isinstance(value, str) else as_written(number, stored)
        self.found.problem(self.found.line_of(number.begin),
                           f"{number.written} is {wanted} by {' '.join(text.split())}")
        self.found.edits.append((number.begin, number.end, wanted))
        return wanted

    def uncovered(self, numbers):
        for number in numbers:
            if "" in self.note.none:
                self.none_used = True
            else:
                self.found.problem(self.found.line_of(number.begin),
                                   f"{number.written} has no annotation")


class TextCheck(BlockCheck):
    ITEM = re.compile(r"(?P<quoted>\S(?:[^=]*\S)?)\s+=\s+(?P<of>.*)", re.DOTALL)

    def run(self):
        self.numbers = pages.numbers_of(self.block.text, self.block.begin)
        self.left, self.behind = list(self.numbers), 0
        for item in self.note.items:
            self.check_item(item)
        for which, item in self.note.none_items.items():
            if which and not any(one.written == which for one in self.left):
                self.found.problem(item.line, f"the text above does not have {which}")
        measured = {one.begin for one in pages.figures_of(self.block.text, self.block.begin)}
        self.uncovered([one for one in self.left
                        if one.begin in measured and one.written not in self.note.none])

    def check_item(self, item):
        parsed = self.ITEM.match(item.text)
        if not parsed:
            self.found.problem(item.line, f"'{item.text}' is not QUOTED = EXPRESSION")
            return
        quoted = parsed["quoted"]
        here = [one for one in self.left if one.written == quoted and one.begin >= self.behind]
        if not here:
            where = ", in this order" if any(one.written == quoted for one in self.numbers) else ""
            self.found.problem(item.line, f"the text above does not have {quoted}{where}")
            return
        self.left.remove(here[0])
        self.behind = here[0].end
        value = self.evaluate(item, parsed["of"])
        if isinstance(value, (str, list)):
            self.found.problem(item.line, f"{parsed['of']} is not one figure")
        elif value is not None:
            wanted = self.compare(here[0], value, parsed["of"])
            if wanted is not None:
                self.found.edits.append((item.begin, item.begin + len(quoted), wanted))


class TableCheck(BlockCheck):
    def run(self):
        self.table = pages.table_of(self.block)
        self.columns = {}  # column: (item, what it says)
        self.cells = {}  # (row, column or None for all of them): likewise
        self.keys, self.key_columns = None, set()
        for item in self.note.items:
            self.read_item(item)
        for which, item in self.note.none_items.items():
            for column in self.columns_named(item, which) if which else ():
                self.columns[column] = (item, "none: " + self.note.none[which])
        for row in range(len(self.table.rows)):
            self.check_row(row)

    def read_item(self, item):
        name, colon, rest = (part.strip() for part in item.text.partition(": "))
        if not colon:
            raise BadPage(item.line, f"'{item.text}' is not COLUMN: EXPRESSION, ...")
        if name == "rows":
            self.keys = [key.strip() for key in rest.split("|")]
            if len(self.keys) != len(self.table.rows):
                raise BadPage(item.line, f"{len(self.keys)} names of {len(self.table.rows)} rows")
            return
        self.key_columns |= {int(number) - 1 for number in re.findall(r"\{(\d+)\}", rest)}
        row = re.fullmatch(r"row (\d+)(?:, (.+))?", name)
        if not row:
            for column in self.columns_named(item, name):
                self.columns[column] = (item, rest)
            return
        if not 0 < int(row[1]) <= len(self.table.rows):
            raise BadPage(item.line, f"there is no row {row[1]}")
        for column in self.columns_named(item, row[2]) if row[2] else [None]:
            self.cells[int(row[1]) - 1, column] = (item, rest)

    def columns_named(self, item, name):
        span = re.fullmatch(r"(\d+)(?:-(\d+))?", name)
        if span:
            columns = list(range(int(span[1]) - 1, int(span[2] or span[1])))
        else:
            heads = [cell.plain() for cell in self.table.head]
            columns = [column for column, head in enumerate(heads) if head == name]
        if not columns or columns[-1] >= len(self.table.head):
            raise BadPage(item.line, f"the table above has no column '{name}'")
        return columns

    def cell_text(self, row, column):
        """Of the cell, or where it is empty of the one above it."""
        while row > 0 and not self.table.rows[row][column].plain():
            row -= 1
        return self.table.rows[row][column].plain()

    def fill(self, text, row, column):
        key = self.keys[row] if self.keys else self.cell_text(row, 0)
        first, _, rest = key.partition(" ")
        known = {"": key, "first": first, "rest": rest, "head": self.table.head[column].plain()}
        return re.sub(r"\{(\d*|first|rest|head)\}", lambda name: (
            known[name[1]] if name[1] in known else self.cell_text(row, int(name[1]) - 1)), text)

    def check_row(self, row):
        whole, rest = self.cells.get((row, None)), []
        for column, cell in enumerate(self.table.rows[row]):
            item, text = self.cells.get((row, column)) or self.columns.get(column, (None, ""))
            if text.startswith("none: "):
                continue
            if text and not whole:
                if re.search(r"\w", cell.text):
                    self.check_cells([cell], item, self.fill(text, row, column))
            elif column > 0 and column not in self.key_columns:
                rest.append(cell)
        if not whole:
            self.uncovered([number for cell in rest for number in cell.figures()])
        elif not whole[1].startswith("none: "):
            self.check_cells(rest, whole[0], self.fill(whole[1], row, 0))

    def check_cells(self, cells, item, texts):
        wanted, words, all_numbers = [], [], False
        for _, text in notes.parts_of(texts, ","):
            text = text.strip()
            value = "_" if text == "_" else self.evaluate(item, text)
            if value is None:
                return
            if text == "_" or isinstance(value, (int, float)):
                wanted.append((value, text))
            elif isinstance(value, list):  # of numbers or of points
                wanted += [(one[1] if isinstance(one, list) else one, text) for one in value]
            else:
                found = expressions.numbers_in(value)
                wanted += [(one, text) for one in found]
                words += [] if found else [value]
                all_numbers = True
        numbers = [number for cell in cells
                   for number in (cell.numbers() if all_numbers else cell.figures())]
        if len(numbers) != len(wanted):
            shown = " | ".join(cell.text.strip() for cell in cells)
            self.found.problem(cells[0].line, f"'{shown}' has {len(numbers)} figures, "
                                              f"its annotation {len(wanted)}")
            return
        for number, (value, text) in zip(numbers, wanted):
            if value != "_":
                self.compare(number, value, text)
        self.check_words(cells[0], ", ".join(dict.fromkeys(words)))

    def check_words(self, cell, wanted):
        if wanted and cell.plain() != wanted:
            self.found.problem(cell.line, f"'{cell.plain()}' is '{wanted}'")
            self.found.edits.append((cell.begin, cell.begin + len(cell.text), f" {wanted} "))
