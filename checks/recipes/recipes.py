"""The recipes of docs/CONTRIBUTING.md, as far as a program can follow them.

    for recipe in recipes_of(PAGE.read_text()):
        changed = apply(recipe, copy)    # the paths that it adds or changes
        check(changed, copy)

A recipe is a section below "## Recipes". A block of C++ is a new file; the paragraph in front of it
names the file and ends with a colon. A block of the language `diff` changes files. The hunks must
apply without fuzz, at any line.
"""

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "CONTRIBUTING.md"
DIRECTORIES = ("include", "src", "bench", "papers", "tests", "cli", "machine", "preload")
BLOCK = re.compile(r"`([^`\n]+)`:\n\n```cpp\n(.*?)^```$|```diff\n(.*?)^```$", re.DOTALL | re.MULTILINE)


class Wrong(Exception):
    """A recipe that does not work; the text says why."""


@dataclass
class Recipe:
    title: str
    files: dict = field(default_factory=dict)  # path -> text
    patches: list = field(default_factory=list)


def recipes_of(page):
    """Those that have code."""
    found = []
    for section in re.split(r"^### ", page.partition("\n## Recipes\n")[2], flags=re.MULTILINE)[1:]:
        recipe = Recipe(section.split("\n")[0])
        for path, text, patch in BLOCK.findall(section):
            if patch:
                recipe.patches.append(patch)
            else:
                recipe.files[path] = text
        if recipe.files or recipe.patches:
            found.append(recipe)
    return found


def copy_sources(target):
    for directory in DIRECTORIES:
        shutil.copytree(ROOT / directory, target / directory,
                        ignore=shutil.ignore_patterns("__pycache__"))


def apply(recipe, copy):
    """Applies the recipe, and returns the paths that it has added or changed."""
    changed = [copy / path for path in recipe.files]
    for path, text in recipe.files.items():
        if (copy / path).exists():
            raise Wrong(f"{recipe.title}: {path} is there already")
        (copy / path).write_text(text)
    for patch in recipe.patches:
        answer = subprocess.run(["patch", "-p1", "--fuzz=0", "--batch", "--no-backup-if-mismatch"],
                                cwd=copy, input=patch, capture_output=True, text=True)
        if answer.returncode != 0:
            raise Wrong(f"{recipe.title}: a diff does not apply:\n{answer.stdout}{answer.stderr}")
        changed += [copy / path for path in re.findall(r"^\+\+\+ b/(\S+)", patch, re.MULTILINE)]
    return changed


def compile_one(path, copy):
    """Without code: templates that the file uses are instantiated and checked."""
    command = ["c++", "-std=c++20", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", f"-I{copy}",
               f"-I{copy / 'include'}", f"-I{copy / 'tests'}"]
    source = [path] if path.suffix == ".cpp" else ["-x", "c++", "-"]
    answer = subprocess.run([*command, *source], input=f'#include "{path}"\n',
                            capture_output=True, text=True)
    if answer.returncode != 0:
        raise Wrong(f"{path.relative_to(copy)} does not compile:\n{answer.stderr[:2000]}")


def judge(ids, copy, out):
    """Runs these claims of the copy with a stand-in for the simulated machine."""
    papers = copy / "papers"
    answer = subprocess.run(
        [sys.executable, papers / "repro" / "repro.py", *ids, "--out", out, "--worker",
         papers / "repro" / "tests" / "fake_worker.py"], capture_output=True, text=True)
    if answer.returncode != 0 or not all(one in answer.stdout for one in ids):
        raise Wrong(f"repro {' '.join(ids)}: status {answer.returncode}\n{answer.stdout[-1000:]}"
                    f"{answer.stderr[-1000:]}")


def check(recipe, changed, copy, out):
    for path in changed:
        if path.suffix in (".cpp", ".hpp"):
            compile_one(path, copy)
    added = re.findall(r"^\+([A-Z]+-[\w.]+),", "\n".join(recipe.patches), re.MULTILINE)
    if added:
        judge(added, copy, out)
