"""A Markdown page as blocks of text with the annotations that belong to them.

A block is a paragraph, an item of a list, or a table. Its annotation is the comment
`<!-- figures: ... -->` that begins on the line below its last one. Below a heading a comment speaks
for the section's blocks that have none of their own. Code is no block: what it quotes are commands
and what they print.
"""

import re
from dataclasses import dataclass, field

from expressions import NUMBER, as_number


class BadPage(Exception):
    """A line of the page and what is wrong with it."""

    def __init__(self, line, what):
        super().__init__(what)
        self.line = line


@dataclass
class Annotation:
    line: int
    begin: int  # offsets in the page
    end: int
    text: str  # between `<!-- figures:` and `-->`


@dataclass
class Block:
    kind: str  # "text", "table"
    line: int
    begin: int
    end: int
    text: str
    section: "Annotation" = None
    annotation: "Annotation" = None


@dataclass
class Number:
    begin: int  # in the page
    end: int
    written: str

    def value(self):
        return as_number(self.written)

    def matches(self, value):
        """Whether value is this number at as many digits as are written."""
        mantissa, _, exponent = self.written.lower().partition("e")
        decimals = len(mantissa.partition(".")[2])
        unit = 10.0 ** (int(exponent or 0) - decimals)
        return abs(value - self.value()) <= 0.5 * unit * (1 + 1e-9)


OPENING = re.compile(r"\s*<!--\s*figures:")
ITEM = re.compile(r"\s*(?:[-*]|\d+\.)\s")


class Reader:
    """Goes through the lines once."""

    def __init__(self, text):
        self.text = text
        self.blocks = []
        self.section = None
        self.open = None  # the block that the next line may belong to
        self.heading = False  # the line before was one
        self.fenced = False

    def blocks_of(self):
        lines, at, number = self.text.split("\n"), 0, 0
        while number < len(lines):
            line = lines[number]
            if not self.fenced and OPENING.match(line):
                count = self.annotation(lines, number, at)
            else:
                self.line(line, number + 1, at)
                count = 1
            at += sum(len(one) + 1 for one in lines[number:number + count])
            number += count
        return self.blocks

    def annotation(self, lines, number, at):
        end = self.text.find("-->", at)
        if end < 0:
            raise BadPage(number + 1, "a comment that does not end")
        begin = self.text.index("figures:", at) + len("figures:")
        note = Annotation(number + 1, begin, end, self.text[begin:end])
        if self.heading:
            self.section = note
        elif self.open and self.open.annotation is None:
            self.open.annotation = note
        else:
            raise BadPage(number + 1, "an annotation that is not directly below its block")
        return self.text.count("\n", at, end) + 1

    def line(self, line, number, at):
        words = line.strip()
        if words.startswith("```"):
            self.fenced = not self.fenced
        if self.fenced or words.startswith("```") or not words:
            self.open, self.heading = None, False
            return
        self.heading = words.startswith("#")
        if self.heading:
            self.open, self.section = None, None
            return
        kind = "table" if words.startswith("|") else "text"
        starts = (self.open is None or self.open.kind != kind or self.open.annotation
                  or (kind == "text" and ITEM.match(line)))
        if starts and line.startswith("    ") and not self.in_list():
            return  # code
        if starts:
            self.open = Block(kind, number, at, at, "", self.section)
            self.blocks.append(self.open)
        self.open.end = at + len(line)
        self.open.text = self.text[self.open.begin:self.open.end]

    def in_list(self):
        return bool(self.blocks and ITEM.match(self.blocks[-1].text))


def blocks_of(text):
    return Reader(text).blocks_of()


HIDDEN = re.compile(r"`[^`]*`|\]\([^)]*\)|<!--.*?-->|</?[A-Za-z][^>]*>", re.DOTALL)


def visible(text):
    """The text with code, addresses and comments blanked, each character where it was."""
    return HIDDEN.sub(lambda hidden: " " * len(hidden.group()), text)


def numbers_of(text, begin=0):
    return [Number(begin + found.start(), begin + found.end(), found.group())
            for found in NUMBER.finditer(visible(text))]


# A number with one of these behind it was measured, or computed from what was. Shares of operations
# and numbers of keys are parameters.
UNIT = re.compile(
    r"\s*(?:%(?! (?:reads|inserts|updates)\b)|x\b|times\b"
    r"|[kMG](?:/s)?\b(?!\s(?:\w+\s){0,2}(?:keys|values|rows|words|URLs|operations)\b)"
    r"|(?:[mun]?s|tps|[MG]B/s|M?ops/s)\b"
    r"|(?:cycles|instructions|aborts|(?:bytes|lines)\s(?:a|an|per)"
    r"|operations\sa\s(?:milli)?second)\b)", re.ASCII)
# A number with one of these before it is a parameter, a version, or a place in a text.
PLACE = re.compile(
    r"(?:\b(?:theta|Zipf|figures?|sections?|tables?|chapters?|listing|version|GCC|Clang|RFC|Debian"
    r"|papers?)\s(?:[\d.]+(?:,| and| to|;|-)\s?)*|papers?/|zipf:|hot:|[A-Za-z]-)$", re.IGNORECASE)
# A number that one of these joins to a figure is a figure too.
JOINED = re.compile(r"\s*(?:\b(?:to|and|or|over|against|in place of|instead of)\b|;|,|/|->|-)\s*"
                    r"|\s+:\s+", re.ASCII)


def figures_of(text, begin=0):
    """The numbers of a text that look measured: those with decimals or a unit, and those listed
    with such ones."""
    seen, found = visible(text), []
    numbers = numbers_of(text, begin)
    for number, after in zip(reversed(numbers), [None, *reversed(numbers)]):
        before = seen[max(0, number.begin - begin - 40):number.begin - begin]
        behind = seen[number.end - begin:]
        if PLACE.search(re.sub(r"\s+", " ", before)):
            continue
        listed = found and found[0] is after and JOINED.fullmatch(behind[:after.begin - number.end])
        if "." in number.written or UNIT.match(behind) or listed:
            found.insert(0, number)
    return found


@dataclass
class Cell:
    text: str
    begin: int
    line: int

    def plain(self):
        return re.sub(r"[`*]", "", self.text).strip()

    def numbers(self):
        return numbers_of(self.text, self.begin)

    def figures(self):
        """All of its numbers where it begins with one, else those that look measured."""
        shown = visible(self.text)
        if re.match(r"[\s*<>~(+-]*\d", shown) or (not re.search(r"[A-Za-z]{3}", shown)):
            return self.numbers()
        return figures_of(self.text, self.begin)


@dataclass
class Table:
    head: list
    rows: list = field(default_factory=list)


def table_of(block):
    rows, at = [], block.begin
    for offset, line in enumerate(block.text.split("\n")):
        line_end = line.rstrip().removesuffix("|")
        cells, column = [], line.index("|") + 1
        for part in line_end[column:].split("|"):
            cells.append(Cell(part, at + column, block.line + offset))
            column += len(part) + 1
        if rows and len(cells) != len(rows[0]):
            raise BadPage(block.line + offset, f"a row of {len(cells)} cells under {len(rows[0])}")
        rows.append(cells)
        at += len(line) + 1
    return Table(rows[0], rows[2:])
