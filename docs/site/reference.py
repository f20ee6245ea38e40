"""Makes the pages of the reference from the public headers.

libclang finds the declarations; the text comes from the comments above them (header_text.py). The
implementation notes of a header are left out: each page links to the header itself.
"""

import fnmatch
import functools
import re
import sys
from dataclasses import dataclass, field
from pathlib import Path

import header_text

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "checks" / "misuse"))
import public_api  # noqa: E402

INCLUDE = ROOT / "include"
BUILTIN_HEADERS = "/usr/lib/llvm-19/lib/clang/19/include"


@dataclass
class Page:
    name: str
    title: str
    headers: tuple
    bases: dict = field(default_factory=dict)  # class -> (header, base class) that it takes members from
    see: str = ""


MAP_FACE = ("elidex/internal/map_face.hpp", "map_face")
SCANS = ("elidex/internal/txn/table_scans.hpp", "table_scans")
PAGES = (
    Page("ordered_map", "ordered_map", ("elidex/ordered_map.hpp",), {"ordered_map": MAP_FACE},
         "Guide: [maps](../MAPS.md). Tested types: [CONFORMANCE](../CONFORMANCE.md)."),
    Page("hash_map", "hash_map", ("elidex/hash_map.hpp",), {"hash_map": MAP_FACE},
         "Guide: [maps](../MAPS.md). Tested types: [CONFORMANCE](../CONFORMANCE.md)."),
    Page("bounds", "Bounds of ranges", ("elidex/bounds.hpp",)),
    Page("map_range", "Ranges", ("elidex/internal/tree/map_range.hpp",)),
    Page("key_encoding", "Keys of your own types", ("elidex/key_encoding.hpp",)),
    Page("memory_options", "Memory options", ("elidex/memory_options.hpp",)),
    Page("column", "column", ("elidex/column.hpp",), {}, "Guide: [columns](../COLUMN.md)."),
    Page("database", "database", ("elidex/database.hpp",), {}, "Guide: [the table store](../DATABASE.md)."),
    Page("transaction", "Transactions",
         ("elidex/internal/txn/transaction.hpp", "elidex/internal/txn/snapshot_transaction.hpp",
          "elidex/internal/txn/two_phase_transaction.hpp"),
         {"transaction": SCANS, "snapshot_transaction": SCANS, "two_phase_transaction": SCANS}),
    Page("table", "Tables", ("elidex/internal/txn/table.hpp",), {},
         "Programs pass a table to [transactions](transaction.md), and call `make_row()`, `columns()` and `name()`. Its other "
         "functions are for the database."),
    Page("schema", "Rows with a schema",
         ("elidex/internal/txn/schema.hpp", "elidex/internal/txn/schema_change.hpp")),
    Page("indexed_table", "Secondary indexes",
         ("elidex/internal/txn/indexed_table.hpp", "elidex/internal/txn/ordered_key.hpp",
          "elidex/internal/txn/sequence.hpp")),
    Page("errors", "Errors of a database", ("elidex/internal/txn/errors.hpp",)),
    Page("two_phase_locking", "Two-phase locking", ("elidex/internal/txn/two_phase_locking.hpp",)),
    Page("mutex", "mutex, recursive_mutex", ("elidex/mutex.hpp",), {}, "Guide: [elision](../ELISION.md)."),
    Page("shared_mutex", "shared_mutex", ("elidex/shared_mutex.hpp",), {}, "Guide: [elision](../ELISION.md)."),
    Page("condition_variable", "condition_variable", ("elidex/condition_variable.hpp",)),
    Page("elided", "elided", ("elidex/elided.hpp",), {}, "Guide: [elision](../ELISION.md)."),
    Page("htm", "Hardware transactions", ("elidex/htm.hpp",)),
    Page("lock_names", "Statistics of named locks", ("elidex/internal/sync/lock_names.hpp", "elidex/internal/sync/lock_stats.hpp")),
    Page("synchronization", "synchronization", ("elidex/synchronization.hpp",)),
    Page("version", "version", ("elidex/version.hpp",)),
)


@dataclass
class Entry:
    name: str  # as users call it: hash_map::get
    kind: str  # "function", "type", "value" or "enum"
    overloads: list  # (signatures, comment): those that have one comment
    section: str = ""

    def comment(self):
        return [line for _, comment in self.overloads for line in comment]


@dataclass
class Class:
    name: str  # as users call it
    declaration: str
    comment: list
    entries: list = field(default_factory=list)


@dataclass
class Header:
    path: str
    opening: list
    classes: list = field(default_factory=list)
    free: Class = None


class Source:
    """The lines of one header."""

    def __init__(self, path):
        self.path = path
        self.lines = path.read_text().split("\n")

    def comment_above(self, line):
        """The lines of the comment that ends above line (from 1)."""
        at = line - 1
        while at > 0 and self.lines[at - 1].strip().startswith("//") and not SECTION.match(self.lines[at - 1]):
            at -= 1
        return header_text.uncommented(self.lines[at:line - 1])

    def section_at(self, line, first):
        """The title of the last `// --- title ---` between the lines first and line."""
        for text in reversed(self.lines[first - 1:line - 1]):
            found = SECTION.match(text)
            if found:
                return found.group(1)
        return ""

    def opening(self):
        lines = []
        for line in self.lines:
            if not line.startswith("//"):
                break
            lines.append(line)
        return header_text.uncommented(lines)

    def declaration(self, first):
        """The text from a line on, up to the function's body, its initializers or its semicolon."""
        text, depth, out = "\n".join(self.lines[first - 1:first + 40]), 0, []
        text = re.sub(r"(?m)\s*//.*$", "", text)
        for at, char in enumerate(text):
            if depth == 0 and char in "{;":
                break
            if depth == 0 and char == ":" and text[at - 1] in " \n" and text[at + 1] == " " and ")" in "".join(out):
                break
            depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(char, 0)
            out.append(char)
        return unindented("".join(out).rstrip())

    def whole(self, first, last):
        return unindented("\n".join(self.lines[first - 1:last]))


SECTION = re.compile(r"^\s*// --- (.*?) -+$")


def unindented(text):
    lines = text.split("\n")
    least = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return "\n".join(line[least:] for line in lines)


def parsed():
    """The translation unit of all headers of the reference."""
    import clang.cindex
    headers = sorted({header for page in PAGES for header in page.headers})
    text = "\n".join(f'#include "{header}"' for header in headers)
    return clang.cindex.Index.create().parse(
        "reference.hpp", ["-x", "c++", "-std=c++20", f"-I{INCLUDE}", "-isystem", BUILTIN_HEADERS],
        unsaved_files=[("reference.hpp", text)],
        options=clang.cindex.TranslationUnit.PARSE_SKIP_FUNCTION_BODIES)


FUNCTIONS = ("CXX_METHOD", "FUNCTION_TEMPLATE", "FUNCTION_DECL", "CONSTRUCTOR", "DESTRUCTOR", "CONVERSION_FUNCTION")
TYPES = ("CLASS_DECL", "STRUCT_DECL", "CLASS_TEMPLATE")
KINDS = {"VAR_DECL": "value", "FIELD_DECL": "value", "ENUM_DECL": "enum"}
ALIASES = ("TYPE_ALIAS_DECL", "TYPE_ALIAS_TEMPLATE_DECL")


class Reader:
    """Finds the declarations of headers, and gives them the names that users write."""

    def __init__(self):
        self.unit = parsed()
        self.sources = {}
        self.by_file = {}
        self.named = {name for header in (INCLUDE / "elidex").glob("*.hpp")
                      for name in re.findall(r"^\s*using internal::(\w+);", header.read_text(), re.MULTILINE)}
        self.collect(self.unit.cursor, [])

    def collect(self, cursor, scope):
        for child in cursor.get_children():
            file = child.location.file
            if file is None or "/elidex/" not in file.name:
                continue
            if child.kind.name == "NAMESPACE":
                self.collect(child, [*scope, child.spelling])
            else:
                header = "elidex/" + file.name.split("/include/elidex/")[-1]
                self.by_file.setdefault(header, []).append((scope, child))

    def source(self, header):
        if header not in self.sources:
            self.sources[header] = Source(INCLUDE / header)
        return self.sources[header]

    def user_name(self, scope, name):
        """How users call a thing of a namespace, or None if it is internal."""
        qualified = "::".join([*scope, name])
        known = public_api.NAMES.get(qualified)
        if known:
            return known if isinstance(known, str) else name
        if "internal" in scope and name not in self.named and not name.startswith("operator"):
            return None
        short = [part for part in scope if part not in ("elidex", "internal", "db")]
        return "::".join([*short, name])

    def header(self, path, bases):
        made = Header(path, self.source(path).opening())
        made.free = Class("", "", [])
        for scope, cursor in self.by_file.get(path, []):
            kind = cursor.kind.name
            if kind in TYPES and cursor.is_definition():
                parent = cursor.semantic_parent
                if parent is not None and parent.kind.name in TYPES:
                    self.add_class(made, f"{parent.spelling}::{cursor.spelling}", cursor, bases)
                elif name := self.user_name(scope, cursor.spelling):
                    self.add_class(made, name, cursor, bases)
            elif kind in FUNCTIONS and is_lexical(cursor):
                if (name := self.user_name(scope, plain(cursor.spelling))) and "internal" not in scope[2:]:
                    self.add(made.free, name, cursor, "function", 1)
            elif kind in (*ALIASES, "ENUM_DECL", "VAR_DECL") and is_lexical(cursor):
                if name := self.user_name(scope, cursor.spelling):
                    self.add(made.free, name, cursor, KINDS.get(kind, "type"), 1)
        made.classes = joined(made.classes)
        return made

    def add_class(self, made, name, cursor, bases, only_members_of=None):
        source = self.source("elidex/" + cursor.location.file.name.split("/include/elidex/")[-1])
        first, last = cursor.extent.start.line, cursor.extent.end.line
        declared = source.declaration(first).split(" :")[0]
        one = Class(name, declared, source.comment_above(first))
        made.classes.append(one)
        if name in bases:
            header, base = bases[name]
            for _, other in self.by_file[header]:
                if other.kind.name in TYPES and other.spelling == base and other.is_definition():
                    self.members(made, one, other, bases)
        self.members(made, one, cursor, bases)
        if not one.entries and last - first > 0 and last - first < 15:
            one.declaration = source.whole(first, last)

    def members(self, made, one, cursor, bases):
        for child in cursor.get_children():
            if child.access_specifier.name != "PUBLIC" or not is_lexical(child):
                continue
            kind = child.kind.name
            if kind in FUNCTIONS:
                if source_says_delete(self, child):
                    continue
                name = plain(child.spelling)
                own = one.name.split("::")[-1]
                if kind == "CONSTRUCTOR" or kind == "FUNCTION_TEMPLATE" and name == cursor.spelling:
                    name = own
                elif kind == "DESTRUCTOR":
                    name = "~" + own
                self.add(one, f"{one.name}::{name}", child, "function", cursor.extent.start.line)
            elif kind in TYPES and child.is_definition():
                self.add_class(made, f"{one.name}::{child.spelling}", child, bases)
            elif kind in (*ALIASES, "FIELD_DECL", "ENUM_DECL"):
                self.add(one, f"{one.name}::{child.spelling}", child, KINDS.get(kind, "type"),
                         cursor.extent.start.line)

    def add(self, one, name, cursor, kind, class_line):
        source = self.source("elidex/" + cursor.location.file.name.split("/include/elidex/")[-1])
        first, last = cursor.extent.start.line, cursor.extent.end.line
        comment = source.comment_above(first)
        if kind == "function":
            signature = source.declaration(first)
        else:
            signature = source.whole(first, last)
            if not comment and last == first and "//" in signature:
                comment = [signature.split("//", 1)[1].strip()]
            if last == first:
                signature = signature.split("//")[0].strip()
        section = source.section_at(first, class_line)
        previous = next((entry for entry in one.entries if entry.name == name), None)
        if previous is not None and kind == "function":
            if comment or not previous.comment():
                previous.overloads.append(([signature], comment))
            else:
                previous.overloads[-1][0].append(signature)
        else:
            one.entries.append(Entry(name, kind, [([signature], comment)], section))


def joined(classes):
    """Specializations and classes that users reach under one name, as one."""
    made = {}
    for one in classes:
        if one.name not in made:
            made[one.name] = one
            continue
        there = made[one.name]
        for entry in one.entries:
            same = next((other for other in there.entries if other.name == entry.name), None)
            if same is None:
                there.entries.append(entry)
            else:
                same.overloads += [overload for overload in entry.overloads if overload not in same.overloads]
    return list(made.values())


def is_lexical(cursor):
    """Whether it is declared where it is written: not a member's definition outside of its class."""
    return cursor.semantic_parent is None or cursor.semantic_parent == cursor.lexical_parent


def source_says_delete(reader, cursor):
    header = "elidex/" + cursor.location.file.name.split("/include/elidex/")[-1]
    return reader.source(header).declaration(cursor.extent.start.line).endswith("= delete")


def plain(name):
    return name if name.startswith("operator") else re.sub(r"<.*>$", "", name)


def anchor(name):
    """Of an entry, in the page's address."""
    name = name.replace("operator()", "operator-call").replace("->", "-arrow").replace("++", "-increment")
    name = name.replace("<<", "-output").replace("*", "-dereference").replace("=", "-assign").replace("~", "destroy-")
    return re.sub(r"[^\w]+", "-", name).strip("-").lower()


@functools.cache
def read():
    """(page, its headers) of each page."""
    reader = Reader()
    return [(page, [reader.header(path, page.bases) for path in page.headers]) for page in PAGES]


def entries_of(header):
    for one in (*header.classes, header.free):
        yield from one.entries


# What comments call a header or a page -> its page.
PAGE_LINKS = {Path(header).name: f"{page.name}.md" for page in PAGES for header in page.headers}
PAGE_LINKS |= {path.name: f"../{path.name}" for path in (ROOT / "docs").glob("*.md") if path.name not in ("index.md", "README.md")}


def page_text(page, headers):
    out = [f"# {page.title}", ""]
    for header in headers:
        links = dict(PAGE_LINKS)
        for entry in sorted(entries_of(header), key=lambda one: one.name.count("::")):
            if entry.kind == "function":
                links.setdefault(entry.name.split("::")[-1], anchor(entry.name))
        shown = public_header(header.path)
        out += [f'`#include "{shown}"`', ""]
        prefix = "" if len(headers) == 1 else Path(header.path).stem + ": "
        if prefix:
            out += [f"## The header {Path(header.path).name}", ""]
        label = "## {}" if not prefix else "### {}"
        out += [header_text.markdown(header.opening, links, label=label), ""]
        notes = any(line.strip() == "Implementation notes" for line in header.opening)
        source = f"../../include/{header.path}"
        out += [f"[The header]({source})" + (", with implementation notes and the proof." if notes else "."), ""]
        main = Path(header.path).stem
        for one in sorted((*header.classes, header.free), key=lambda one: (one.name != main, not one.name)):
            out += class_text(one, links, reachable(header.opening))
    if page.see:
        out += ["## See also", "", page.see, ""]
    return "\n".join(out)


def public_header(path):
    """The header that a program includes."""
    if "/internal/" not in path:
        return path
    if "/txn/" in path:
        return "elidex/database.hpp"
    return "elidex/mutex.hpp" if "/sync/" in path else "elidex/ordered_map.hpp"


def reachable(opening):
    """Links from an entry to the page's own sections."""
    found = []
    for line in header_text.before_notes(opening):
        label = header_text.LABEL.match(line)
        if label and label.group(1) in ("Thread-safety", "Complexity", "Errors", "Lifetime", "Iterator validity"):
            title = label.group(1)
            found.append(f"[{title}](#{title.lower().replace(' ', '-')})")
    return found


def class_text(one, links, reach):
    if not one.entries and not one.declaration:
        return []
    out = [f"## {one.name or 'Functions, types and constants'}", ""]
    if one.declaration:
        out += ["```cpp", one.declaration, "```", ""]
    if one.comment:
        out += [header_text.markdown(one.comment, links, label=None), ""]
    section = ""
    values = [entry for entry in one.entries if entry.kind in ("type", "value")]
    functions = [entry for entry in one.entries if entry.kind == "function"]
    if values:
        out += ["| member | meaning |", "| --- | --- |"] if one.name else ["| name | meaning |", "| --- | --- |"]
        for entry in values:
            text = header_text.inline(" ".join(line.strip() for line in entry.comment()), links).replace("|", "\\|")
            signature = " ".join(" ".join(re.sub(r"//.*", "", line) for line in entry.overloads[0][0][0].split("\n")).split())
            signature = signature.replace("|", "\\|")
            out.append(f"| <a id=\"{anchor(entry.name)}\"></a>`{signature}` | {text} |")
        out.append("")
    for entry in (entry for entry in one.entries if entry.kind == "enum"):
        out += [f"### `{entry.name.split('::')[-1]}` {{ #{anchor(entry.name)} }}", "", "```cpp", entry.overloads[0][0][0], "```", ""]
        out += [header_text.markdown(entry.comment(), links, label=None), ""]
    for entry in functions:
        if entry.section and entry.section != section:
            section = entry.section
            out += [f"<p class=\"group\">{section[0].upper()}{section[1:]}</p>", ""]
        out += [f"### `{entry.name.split('::')[-1]}` {{ #{anchor(entry.name)} }}", ""]
        for signatures, comment in entry.overloads:
            out += ["```cpp", *(signature + ";" for signature in signatures), "```", ""]
            if comment:
                out += [header_text.markdown(comment, links, label=None), ""]
        if reach:
            out += [f"<small markdown=\"span\">{' · '.join(reach)}</small>", ""]
    return out


def is_in_index(page, entry):
    if page.name == "table":  # a handle: its other functions are for the database
        return entry.name in ("table::make_row", "table::columns", "table::name")
    return entry.kind == "function" and "~" not in entry.name


def index_text(pages):
    out = ["# Reference", "",
           "These pages are made from the comments of the public headers. Each entry links to the thread-safety,",
           "complexity and errors of its class. Not only headers: [limits](limits.md), [file formats](../LOG_FORMAT.md), "
           "[the command line](../CLI.md), [misuse](../MISUSE.md).", "",
           "| page | functions |", "| --- | --- |"]
    for page, headers in pages:
        names = [f"[`{entry.name.split('::')[-1]}`]({page.name}.md#{anchor(entry.name)})" for header in headers
                 for entry in entries_of(header) if is_in_index(page, entry)]
        out.append(f"| [{page.title}]({page.name}.md) | {' '.join(dict.fromkeys(names))} |")
    return "\n".join(out) + "\n"


def names(pages):
    return {entry.name for _, headers in pages for header in headers for entry in entries_of(header)
            if entry.kind == "function"}


# What the database alone makes and calls, and the misuse tests' canary.
NO_ENTRY = ("transaction::transaction", "misuse_canary::*", "planted_beside_it")


# Functions that need no text: the standard says what they do, or they are for the database and for tests.
NO_TEXT = ("table::*", "two_phase_locking::*", "htm::native::*", "htm::never::*", "default_hash::*", "map_range::*")


def without_text(pages):
    """The functions, except constructors, destructors and operators, whose entry has no text."""
    for _, headers in pages:
        for entry in (entry for header in headers for entry in entries_of(header)):
            scope, _, own = entry.name.rpartition("::")
            special = own.startswith(("~", "operator")) or own == scope.rpartition("::")[2]
            excused = special or any(fnmatch.fnmatchcase(entry.name, pattern) for pattern in NO_TEXT)
            if entry.kind == "function" and not excused and not any(line.strip() for line in entry.comment()):
                yield entry.name


@functools.cache
def public_names():
    """The public functions, as the misuse tests' check lists them."""
    import public_functions
    headers = public_api.HEADERS
    return public_functions.public_functions(public_functions.dump(headers, ("include", ".")), headers)


def missing(entries):
    """The public functions that have no entry."""
    return [name for name in sorted(public_names()) if name not in entries
            and not any(fnmatch.fnmatchcase(name, pattern) for pattern in NO_ENTRY)]


def write(directory):
    """Writes the pages. Returns their names."""
    pages = read()
    directory.mkdir(parents=True, exist_ok=True)
    for page, headers in pages:
        (directory / f"{page.name}.md").write_text(page_text(page, headers))
    (directory / "index.md").write_text(index_text(pages))
    return names(pages)


if __name__ == "__main__":
    print(*sorted(write(Path(sys.argv[1]))), sep="\n")
