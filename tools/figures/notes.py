"""What an annotation says, as items with their places in the page."""

import re
from dataclasses import dataclass

from pages import BadPage


@dataclass
class Item:
    line: int
    begin: int  # in the page
    text: str


def parts_of(text, marks):
    """(offset, part) between the marks that lie outside of brackets, parentheses and, within these, quotes."""
    depth, begin, found, quoted = 0, 0, [], False
    for at, character in enumerate(text):
        if character == '"' and depth > 0:
            quoted = not quoted
        if quoted:
            continue
        if character in "[(":
            depth += 1
        elif character in ")]":
            depth -= 1
        elif character in marks and depth <= 0:
            found.append((begin, text[begin:at]))
            begin = at + 1
    return [*found, (begin, text[begin:])]


CONTINUES = re.compile(r"[,+*/|-][ \t]*\n")


def items_of(annotation):
    """Items lie on lines of their own or have ';' between them; a line that ends with an operator or a comma goes on."""
    text = CONTINUES.sub(lambda end: end.group()[:-1] + " ", annotation.text)
    found = []
    for offset, part in parts_of(text, ";\n"):
        if part.strip():
            begin = offset + len(part) - len(part.lstrip())
            found.append(Item(annotation.line + annotation.text.count("\n", 0, begin), annotation.begin + begin, part.strip()))
    return found


FILE = re.compile(r"(?:(?P<name>\w+)=)?(?P<file>[\w./-]+\.(?:json|csv))$")


def files_in(item):
    """{name: file} where the item is a list of files, else None."""
    found = [FILE.match(part.strip()) for _, part in parts_of(item.text, ",")]
    if not all(found):
        return None
    return {(one["name"] or ""): one["file"] for one in found}


@dataclass
class Note:
    """An annotation: which files it names, and its items without them and without those that say `none`."""
    line: int
    files: dict
    items: list
    none: dict  # what figures of which it says that no file has them ("" all others) to why
    none_items: dict


NONE = re.compile(r"none(?:\s+(?P<which>[^:]*))?:\s*(?P<why>.*)", re.DOTALL)


def note_of(annotation):
    note = Note(annotation.line, {}, [], {}, {})
    for item in items_of(annotation):
        files = files_in(item)
        none = NONE.match(item.text)
        if files is not None:
            note.files.update(files)
        elif none:
            if not none["why"]:
                raise BadPage(item.line, "'none' does not say why")
            for which in re.split(r",\s+", none["which"] or ""):
                note.none[which.strip()] = none["why"]
                note.none_items[which.strip()] = item
        else:
            note.items.append(item)
    return note
