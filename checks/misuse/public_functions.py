#!/usr/bin/env python3
"""Fails if a public function has no row in docs/MISUSE.md, or lacks a kind of misuse.

Which kinds a function needs depends on its class and its parameters (public_api.py). The functions
come from Clang's syntax tree of the headers listed there, so templates, overloads and nested
classes are what the compiler sees. canary.hpp is read with them: the check has to report its
functions, or it does not work.
"""

import argparse
import fnmatch
import functools
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import public_api
import table

ROOT = Path(__file__).resolve().parents[2]
CANARY = "checks/misuse/canary.hpp"
CANARY_FUNCTIONS = ("misuse_canary::planted", "planted_beside_it")

NODE = re.compile(r"^([|`\- ]*)(\w+Decl) (0x[0-9a-f]+) (.*)$")
FILE = re.compile(r"([\w./+\-]+\.(?:hpp|h|cpp|tcc)|<scratch space>|/[\w./+\-]+):\d+:\d+")
LOCATION = re.compile(
    r"^(?:(?:parent|prev) 0x[0-9a-f]+ )*<[^>]*(?:<[^>]*>[^>]*)*> (?:\S+:\d+(?::\d+)? )?")
CLASSES = ("CXXRecordDecl", "ClassTemplateDecl")
FUNCTIONS = ("CXXMethodDecl", "CXXConstructorDecl", "CXXDestructorDecl", "FunctionDecl",
             "FunctionTemplateDecl", "UsingDecl")


@dataclass
class Scope:
    """A namespace or class around the line that is being read."""
    depth: int
    name: str
    access: str = "public"  # of the members that come next; "hidden": of nothing that is public
    is_class: bool = False


@dataclass
class Function:
    name: str  # qualified, as in C++
    file: str
    types: list = field(default_factory=list)  # of its overloads


def plain(name):
    """A name without its template arguments."""
    return re.sub(r"<.*>$", "", name) if not name.startswith("operator") else name


@dataclass
class Node:
    """A declaration in the text of the syntax tree."""
    depth: int
    kind: str
    words: list
    types: str
    flags: list
    address: str
    parent: str  # address of the class to which it belongs, if it is written elsewhere; or ""
    previous: str  # address of its earlier declaration, or ""


def parse_node(line):
    """The declaration of a line, or None."""
    found = NODE.match(line)
    if not found:
        return None
    prefix, kind, address, rest = found.groups()
    elsewhere = dict(re.findall(r"(parent|prev) (0x[0-9a-f]+) ", rest.partition("<")[0]))
    rest = LOCATION.sub("", rest)
    declared, quote, behind = rest.partition(" '")
    types = behind.rpartition("'")[0] if quote else ""
    flags = (behind.rpartition("'")[2] if quote else "").split()
    words = declared.replace("implicit ", "implicit_ ").split()
    return Node(len(prefix) // 2, kind, words, types, flags, address, elsewhere.get("parent", ""),
                elsewhere.get("prev", ""))


class Reader:
    """Lists functions of public classes and of namespaces in the text of `clang -ast-dump`."""

    def __init__(self):
        self.functions = {}
        self.scopes = []
        self.nested = {}  # address of a class that is only declared in another -> its scope
        self.file = ""
        self.template = None  # (depth, name) of a FunctionTemplateDecl whose function comes next

    def read(self, lines):
        for line in lines:
            where = FILE.findall(line)
            node = parse_node(line)
            if where and (node is None or len(where) == 1):
                self.file = where[-1]
            if node is None:
                if line.startswith("Dumping "):
                    self.scopes = [Scope(-1, self.dumped_scope(line))]
                continue
            if where:
                self.file = where[0]
            self.visit(node)
            if where:
                self.file = where[-1]
        return self.functions

    @staticmethod
    def dumped_scope(line):
        return "::".join(line[len("Dumping "):].rstrip(":\n").split("::")[:-1])

    def visit(self, node):
        depth, kind, words = node.depth, node.kind, node.words
        while self.scopes and self.scopes[-1].depth >= depth:
            self.scopes.pop()
        if not self.scopes:
            return
        around = self.scopes[-1]
        inside = depth - around.depth == 1
        if kind == "NamespaceDecl" and inside:
            name = next((word for word in words if word not in ("inline", "nested")), "")
            self.scopes.append(Scope(depth, "::".join(filter(None, (around.name, name)))))
        elif kind == "AccessSpecDecl" and inside and around.access != "hidden":
            around.access = words[-1]
        elif kind == "ClassTemplateDecl" and inside:
            # The class that it makes a template of is its child.
            access = "public" if around.access == "public" else "hidden"
            self.scopes.append(Scope(depth, around.name, access))
        elif kind == "CXXRecordDecl" and inside:
            self.visit_class(node, around)
        elif kind in FUNCTIONS and around.access == "public":
            self.visit_function(node, around, inside)

    def visit_class(self, node, around):
        words = node.words
        if "implicit_" in words or len(words) < 2:
            return
        if words[-1] != "definition":
            if around.is_class:
                self.nested[node.address] = (f"{around.name}::{words[-1]}", around.access)
            return
        tag, name = words[-3], words[-2]
        name, access_of_class = f"{around.name}::{name}", around.access
        if node.parent:
            name, access_of_class = self.nested.get(node.previous, (name, "hidden"))
        access = "public" if tag == "struct" else "private"
        if access_of_class != "public":
            access = "hidden"
        self.scopes.append(Scope(node.depth, name, access, True))

    def visit_function(self, node, around, inside):
        depth, kind, words = node.depth, node.kind, node.words
        if "implicit_" in words or not words:
            return
        if node.parent and not around.is_class:
            return  # the definition, outside of its class, of a member
        if kind == "FunctionTemplateDecl":
            self.template = (depth, around.name) if inside else None
            return
        of_template = self.template is not None and depth == self.template[0] + 1
        if not inside and not of_template:
            return
        if of_template:
            self.template = None  # behind the pattern come its instances
        if "delete" in node.flags:
            return
        name = words[-1] if kind == "UsingDecl" else " ".join(words)
        name = self.name_of(kind, name, around)
        if name is None:
            return
        name = f"{around.name}::{name}"
        self.functions.setdefault((name, self.file), Function(name, self.file)).types.append(node.types)

    @staticmethod
    def name_of(kind, text, around):
        if kind == "UsingDecl":
            return text.split("::")[-1] if around.is_class else None
        if "operator" in text:
            return text[text.index("operator"):]
        if kind == "CXXConstructorDecl":
            return around.name.split("::")[-1]
        if kind == "CXXDestructorDecl":
            return "~" + around.name.split("::")[-1]
        return plain(text.split()[-1])


def dump(headers, include, compiler="clang++-19"):
    """The syntax tree's text of what these headers declare in namespace elidex."""
    text = "".join(f'#include "{header}"\n' for header in headers)
    answer = subprocess.run(
        [compiler, "-std=c++20", *(f"-I{directory}" for directory in include), "-x", "c++",
         "-fsyntax-only", "-fno-color-diagnostics", "-Xclang", "-ast-dump", "-Xclang",
         "-ast-dump-filter=elidex", "-"],
        input=text, capture_output=True, text=True, cwd=ROOT)
    if answer.returncode != 0:
        raise RuntimeError(answer.stderr)
    return answer.stdout.splitlines()


@functools.cache
def named_for_users():
    """What public headers name of namespace elidex::internal."""
    headers = (ROOT / "include" / "elidex").glob("*.hpp")
    return {name for header in headers for name in re.findall(r"^using internal::(\w+);", header.read_text(), re.MULTILINE)}


def users_names(function, headers):
    """How the table calls a function: by no name, if it is not public, or by several."""
    scope, _, name = function.name.rpartition("::")
    around = [one for one in public_api.NAMES if scope == one or scope.startswith(one + "::")]
    of_class = max(around, key=len, default=None)
    if of_class is not None:
        names = public_api.NAMES[of_class]
        return [name_in(of_class, user, scope, name)
                for user in ((names,) if isinstance(names, str) else names)]
    inside = function.name.split("::")[1:]
    if inside[0] == "internal" and inside[1] not in named_for_users() and "operator" not in inside[1]:
        return []
    if not function.file.endswith(tuple(headers)) or "internal" in scope.split("::")[2:]:
        return []
    short = re.sub(r"^elidex(::internal|::db)?(::|$)", "", scope)
    return [f"{short}::{name}" if short else name]


def name_in(of_class, user, scope, name):
    """The name of a function of a class that users reach under another name."""
    scope = user + scope[len(of_class):]
    if name.lstrip("~") == of_class.split("::")[-1]:  # a constructor or destructor
        name = ("~" if name.startswith("~") else "") + scope.split("::")[-1]
    return f"{scope}::{name}"


def public_functions(lines, headers):
    """Name in the table -> types of the overloads."""
    found = {}
    for function in Reader().read(lines).values():
        for name in users_names(function, headers):
            found.setdefault(name, []).extend(function.types)
    return found


def names_internal_type(types):
    """Whether a signature names a type of elidex::internal that has no name for users."""
    return any(f"elidex::internal::{name}" not in public_api.NAMES
               for name in re.findall(r"internal::(\w+)", types))


def reason_for_none(name):
    """Why a function needs no row, or None."""
    for reason, patterns in public_api.NOTHING_TO_MISUSE.items():
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns):
            return reason
    return None


def kinds_wanted(name, types):
    wanted = set()
    scope, _, own = name.rpartition("::")
    if own.lstrip("~") != scope.split("::")[-1]:  # not constructors
        wanted |= public_api.KINDS.get(scope, set())
    arguments = " ".join(one.partition("(")[2] for one in types)
    for parameters, kinds in public_api.KINDS_OF_PARAMETERS.items():
        if any(re.search(rf"\b{parameter}\b(?!::)", arguments) for parameter in parameters):
            wanted |= kinds
    return wanted


def complaints(functions, rows):
    """One line for each function without a row or one of its kinds, and for rows of no function."""
    kinds = {}
    for row in rows:
        kinds.setdefault(row.function, set()).add(row.kind)
    for name in sorted(functions):
        if name not in kinds:
            if reason_for_none(name) is None:
                yield f"{name}: a public function without a row in docs/MISUSE.md"
        elif missing := kinds_wanted(name, functions[name]) - kinds[name]:
            yield f"{name}: no row for: {', '.join(sorted(missing))}"
    for name in sorted(functions):
        if any(names_internal_type(one) for one in functions[name]):
            yield f"{name}: a public signature names an internal type"
    scopes = {name.rpartition("::")[0] for name in functions}
    for name in sorted(set(kinds) - set(functions)):
        scope, _, own = name.rpartition("::")
        if own.startswith("~") and scope in scopes:  # one that the compiler makes
            continue
        yield f"{name}: a row for what is no public function"
    for patterns in public_api.NOTHING_TO_MISUSE.values():
        for pattern in patterns:
            if not any(fnmatch.fnmatchcase(name, pattern) for name in functions):
                yield f"{pattern}: excused in public_api.py, and there is no such public function"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", action="store_true", help="print the public functions instead")
    arguments = parser.parse_args()
    headers = (*public_api.HEADERS, CANARY)
    functions = public_functions(dump(headers, ("include", ".")), headers)
    if arguments.list:
        print(*sorted(functions), sep="\n")
        return 0
    found = list(complaints(functions, table.read_page(table.PAGE.read_text())))
    planted = tuple(f"{name}: " for name in CANARY_FUNCTIONS)
    canaries = [line for line in found if line.startswith(planted)]
    if len(canaries) != len(CANARY_FUNCTIONS):
        print(f"misuse: the check does not find the planted functions of {CANARY}")
        return 1
    found = [line for line in found if line not in canaries]
    for line in found:
        print(f"misuse: {line}")
    number = len(functions) - len(canaries)
    print(f"misuse: {number} public functions, {len(found)} complaints", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
