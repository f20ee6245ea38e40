"""Expressions that name a figure in a stored file, as the annotations of the pages write them.

    [ordered_map c 2] / [absl+mutex c 1]      of the file that the annotation names first
    zipf#[hash_map a 2].bytes_per_key         of another one, by the name given there
    claims[E-F10a].here[0]                    the first number of a text
    costs[name=count/1000].items_per_second / 1e9
    series[id=E-F2].series[name="HTM-B+Tree: HTM-B+Tree"].points[0.99]

A path goes down by names with dots between them, and begins at `runs` if it begins with `[`.
`[...]` picks the one record of a list that has all these values: `field=value`, or a bare word,
which is any of the record's texts, or a bare whole number, which is `threads`. Of a list of points
`[x]` is the y there, of a list of numbers or of a text `[n]` the n-th number from 0, and
`["words" "words"]` is a text's first number behind these. `.count` is how many records the `[...]`
before it names. A record that ends a path stands for its `mops`. Operators have a space on each
side. Functions: median(a, b, ...), and rounds(a, b), rounds_low(a, b) and rounds_high(a, b),
the median of the ratios of two lists of rounds and the ends of its 95 % interval, as the gate has
them (bench/gate/ratios.py).
"""

import csv
import json
import re
import shlex
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench" / "gate"))
import ratios  # noqa: E402


class BadExpression(Exception):
    """An expression names something that does not exist, or has a syntax error."""


NUMBER = re.compile(r"(?<!\w)(?<!\w\.)[-+]?(?:\d{1,3}(?:[ ,]\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d+)?"
                    r"(?!\w|\.\d)", re.IGNORECASE)


def numbers_in(text):
    """The numbers of a text, each as it is written there."""
    return [found.group() for found in NUMBER.finditer(text)]


def as_number(written):
    return float(written.replace(",", "").replace(" ", ""))


class Files:
    """The stored files: JSON in one directory, and CSV anywhere below the root. Each is read once."""

    def __init__(self, root):
        self.root = Path(root)
        self.read = {}
        self.asked = set()  # for names, by get(); the caller's to clear

    def path(self, name):
        return self.root / name if "/" in name else self.root / "docs" / "results" / name

    def get(self, name):
        self.asked.add(name)
        if name not in self.read:
            path = self.path(name)
            if not path.is_file():
                raise BadExpression(f"there is no file {name}")
            with open(path, encoding="utf-8", newline="") as file:
                rows = name.endswith(".csv")
                self.read[name] = {"runs": list(csv.DictReader(file))} if rows else json.load(file)
        return self.read[name]

    def commit(self, name):
        return self.get(name).get("commit", "not stored")


def same(value, wanted):
    if value is None:
        return wanted == "none"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return float(value) == float(wanted)
        except ValueError:
            return False
    return str(value) == wanted


def matches(record, word):
    field, equals, wanted = word.partition("=")
    if equals:
        return same(record.get(field), wanted)
    if word.isdigit():
        return same(record.get("threads"), word)
    return any(value == word for value in record.values() if isinstance(value, str))


def all_of(value, selector):
    """The elements of value that the selector, without its brackets, names."""
    words = shlex.split(selector)
    if not words:
        raise BadExpression("an empty [ ]")
    if isinstance(value, str):
        if not selector.isdigit():  # words of the text, in this order: its first number behind them
            for one in words:
                value = value.partition(one)[2]
            selector = "0"
        value = [as_number(number) for number in numbers_in(value)]
        return value[int(selector):][:1]
    if not isinstance(value, list):
        raise BadExpression(f"[{selector}] is of something that is neither a list nor a text")
    if value and isinstance(value[0], list):
        return [point[1] for point in value if same(point[0], words[0])]
    if value and isinstance(value[0], dict):
        return [record for record in value if all(matches(record, word) for word in words)]
    return value[int(words[0]):][:1] if words[0].isdigit() else []


def pick(value, selector):
    found = all_of(value, selector)
    if len(found) != 1:
        raise BadExpression(f"[{selector}] names {f'{len(found)} records' if found else 'nothing'}")
    return found[0]


SEGMENT = re.compile(r"\.?([\w-]+)|\[([^\]]*)\]")


def follow(value, path):
    if path.startswith("["):
        path = "runs" + path
    at = 0
    while at < len(path):
        step = SEGMENT.match(path, at)
        if not step:
            raise BadExpression(f"'{path}' is not a path")
        at = step.end()
        if step.group(2) is not None and path[at:] == ".count":
            return len(all_of(value, step.group(2)))
        if step.group(2) is not None:
            value = pick(value, step.group(2))
        elif isinstance(value, dict) and step.group(1) in value:
            value = value[step.group(1)]
        else:
            raise BadExpression(f"there is no '{step.group(1)}' in {path}")
    if isinstance(value, dict):
        if "mops" not in value:
            raise BadExpression(f"'{path}' is a record, not a figure")
        value = value["mops"]
    if value is None:
        raise BadExpression(f"'{path}' is null")
    return value


TOKEN = re.compile(r"""\s*(?: (?P<number>\d+(?:\.\d+)?(?:e-?\d+)?)(?=[\s),]|$)
                          | (?P<operator>[-+*/](?=\s)|[(),])
                          | (?P<path>(?:[\w.\#-]|\[[^\]]*\])+) )""", re.VERBOSE)


def tokens(text):
    found, at = [], 0
    text = text.rstrip()
    while at < len(text):
        token = TOKEN.match(text, at)
        if not token:
            raise BadExpression(f"'{text[at:].strip()}' is not an expression")
        found.append((token.lastgroup, token.group(token.lastgroup)))
        at = token.end()
    return found


def over_rounds(field):
    """The median of the ratios of two runs' rounds, or an end of its interval."""
    return lambda mine, theirs: getattr(ratios.figure([a / b for a, b in zip(mine, theirs)]), field)


FUNCTIONS = {"median": lambda *of: statistics.median(of), "rounds": over_rounds("median"),
             "rounds_low": over_rounds("low"), "rounds_high": over_rounds("high")}


class Parser:
    """Sums and products of numbers, paths, functions and parentheses."""

    def __init__(self, files, names, text):
        self.files, self.names, self.text = files, names, " ".join(text.split())
        self.tokens = tokens(text)

    def take(self, *wanted):
        if self.tokens and self.tokens[0][0] == "operator" and self.tokens[0][1] in wanted:
            return self.tokens.pop(0)[1]
        return None

    def value(self):
        value = self.sum()
        if self.tokens:
            raise BadExpression(f"'{self.tokens[0][1]}' is superfluous in '{self.text}'")
        return value

    def sum(self):
        value = self.product()
        while operator := self.take("+", "-"):
            other = self.product()
            self.must_be_numbers(value, other)
            value = value + other if operator == "+" else value - other
        return value

    def product(self):
        value = self.one()
        while operator := self.take("*", "/"):
            other = self.one()
            self.must_be_numbers(value, other)
            if operator == "/" and other == 0:
                raise BadExpression(f"'{self.text}' divides by zero")
            value = value * other if operator == "*" else value / other
        return value

    def must_be_numbers(self, *values):
        if not all(isinstance(value, (int, float)) for value in values):
            raise BadExpression(f"'{self.text}' computes with something that is not a number")

    def one(self):
        if self.take("("):
            value = self.sum()
            if not self.take(")"):
                raise BadExpression(f"no ')' in '{self.text}'")
            return value
        if not self.tokens or self.tokens[0][0] == "operator":
            raise BadExpression(f"'{self.text}' ends too early")
        kind, text = self.tokens.pop(0)
        if kind == "number":
            return float(text)
        if text in FUNCTIONS and self.take("("):
            return self.call(text)
        return self.path(text)

    def call(self, name):
        of = [self.sum()]
        while self.take(","):
            of.append(self.sum())
        if not self.take(")"):
            raise BadExpression(f"no ')' in '{self.text}'")
        return FUNCTIONS[name](*of)

    def path(self, text):
        head, hash_mark, path = text.partition("#")
        if "[" in head or not hash_mark:  # a '#' within brackets is a part of a name
            head, path = "", text
        if head not in self.names:
            raise BadExpression(f"the annotation names no file '{head}'")
        return follow(self.files.get(self.names[head]), path)


def evaluate(files, names, text):
    """The number, text or list that an expression names. names: of files, "" for the default."""
    return Parser(files, names, text).value()
