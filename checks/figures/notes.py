"""What an annotation says, as items with their places in the page."""

import re
from dataclasses import dataclass, field

from pages import BadPage


@dataclass
class Item:
    line: int
    begin: int  # in the page
    text: str


def parts_of(text, marks):
    """(offset, part) between those marks that lie outside of brackets and parentheses, in which
    quotes may hold brackets."""
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
    """A line that ends with an operator, a comma or a bar goes on in the next one."""
    text = CONTINUES.sub(lambda end: end.group()[:-1] + " ", annotation.text)
    found = []
    for offset, part in parts_of(text, ";\n"):
        if part.strip():
            begin = offset + len(part) - len(part.lstrip())
            line = annotation.line + annotation.text.count("\n", 0, begin)
            found.append(Item(line, annotation.begin + begin, part.strip()))
    return found


FILE = re.compile(r"(?:(?P<name>\w+)=)?(?P<file>[\w./-]+\.(?:json|csv))$")


def files_in(item):
    """{name: file} where the item is a list of files, else None."""
    found = [FILE.match(part.strip()) for _, part in parts_of(item.text, ",")]
    return {one["name"] or "": one["file"] for one in found} if all(found) else None


@dataclass
class Note:
    """An annotation's files, and its items without these and without what says `none`."""
    files: dict = field(default_factory=dict)
    items: list = field(default_factory=list)
    none: dict = field(default_factory=dict)  # a figure or column ("": all others) to why
    none_items: dict = field(default_factory=dict)  # likewise to the item


NONE = re.compile(r"none(?:\s+(?P<which>[^:]*))?:\s*(?P<why>.*)", re.DOTALL)


def note_of(annotation):
    note = Note()
    for item in items_of(annotation):
        files, none = files_in(item), NONE.match(item.text)
        if files is not None:
            note.files.update(files)
        elif not none:
            note.items.append(item)
        elif not none["why"]:
            raise BadPage(item.line, "'none' has no reason")
        else:
            for which in re.split(r",\s+", (none["which"] or "").strip()):
                note.none[which], note.none_items[which] = none["why"], item
    return note
