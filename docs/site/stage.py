"""Copies the pages to build/docs-src, as MkDocs needs them.

Pages in docs/ are written for a reader of the repository: they link to sources and stored results,
and use GitHub's Markdown. A staged page links to a copy of the source in the site instead, and has
the blank lines and fences that Python-Markdown needs.
"""

import os
import re
import shutil
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
MOVED = {"README.md": "project.md", "CHANGELOG.md": "CHANGELOG.md", "SECURITY.md": "SECURITY.md",
         "docs/README.md": "index.md"}
PAGE_DIRECTORIES = ("tutorial", "guides", "cookbook", "ideas", "reference", "results", "decisions")
LANGUAGES = {".hpp": "cpp", ".cpp": "cpp", ".py": "python", ".json": "json", ".yml": "yaml", ".csv": "text",
             ".txt": "text", ".cmake": "cmake", "": "text", ".md": "markdown"}
# A link, or code, in which nothing is a link.
LINK = re.compile(r"`[^`\n]+`|(!?\[(?:[^\[\]]|\[[^\]]*\])*\])\(([^)\s]+)\)")


def pages():
    """Repository path -> path in the site, of each page."""
    found = dict(MOVED)
    for path in sorted(DOCS.glob("*.md")):
        found.setdefault(f"docs/{path.name}", path.name)
    for directory in PAGE_DIRECTORIES:
        for path in sorted((DOCS / directory).glob("*.md")):
            found[f"docs/{directory}/{path.name}"] = f"{directory}/{path.name}"
    found.pop("docs/index.md", None)
    return found


# Of the first page and of directories. The page of a task comes before the pages that mention it.
FRONT_MATTER = {"index.md": "---\nhide:\n  - navigation\n---\n", "cookbook": "---\nsearch:\n  boost: 3\n---\n",
                "decisions": "---\nsearch:\n  boost: 0.5\n---\n"}


class Stage:
    def __init__(self, out):
        self.out = out
        self.pages = pages()
        self.sources = set()  # repository paths that pages link to

    def run(self, made):
        """Stages all pages. `made` has pages that are made, not stored: path in the site -> text."""
        shutil.rmtree(self.out, ignore_errors=True)
        for repository, site in self.pages.items():
            path = DOCS / "index.md" if repository == "docs/README.md" else ROOT / repository
            shown = "docs/index.md" if repository == "docs/README.md" else repository
            head = FRONT_MATTER.get("index.md" if site == "index.md" else site.partition("/")[0], "")
            self.write(site, head + self.page(path.read_text(), shown, site))
        for site, text in made.items():
            self.write(site, self.page(text, f"docs/{site}", site))
        for directory in ("results", "assets"):
            for path in sorted((DOCS / directory).glob("*")):
                if path.suffix in (".png", ".svg", ".css", ".js", ".json"):
                    self.copy(path, f"{directory}/{path.name}")
        for source in sorted(self.sources):
            self.write_source(source)

    def write(self, site, text):
        path = self.out / site
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def copy(self, path, site):
        (self.out / site).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, self.out / site)

    def page(self, text, repository, site):
        text = re.sub(r"\n?<!--.*?-->", "", text, flags=re.DOTALL)
        parts = re.split(r"(^```.*?^```[^\n]*$)", text, flags=re.DOTALL | re.MULTILINE)
        for at in range(0, len(parts), 2):
            parts[at] = LINK.sub(lambda found: self.link(found, repository, site), for_python_markdown(parts[at]))
        return "".join(parts)

    def link(self, found, repository, site):
        label, target = found.groups()
        if label is None or re.match(r"[a-z]+:", target) or target.startswith("#"):
            return found.group(0)
        path, _, anchor = target.partition("#")
        wanted = os.path.normpath(os.path.join(os.path.dirname(repository), path))
        if wanted.endswith(".svg") and label.startswith("!"):
            # A part of the page, so that the drawing has the colours of the text, in dark mode, too.
            return "\n" + (ROOT / wanted).read_text()
        there = self.in_site(wanted)
        if there is None:
            raise ValueError(f"{repository}: a link to {target}, which does not exist")
        relative = os.path.relpath(there, os.path.dirname(site) or ".")
        return f"{label}({relative}{'#' + anchor if anchor and there in self.pages.values() else ''})"

    def in_site(self, repository):
        if repository in ("docs/index.md", "docs"):
            return "index.md"
        if repository in self.pages:
            return self.pages[repository]
        if repository.startswith("docs/reference/") or repository == "docs/results/claims.md":  # made, not stored
            return repository.removeprefix("docs/")
        path = ROOT / repository
        if path.is_dir() and (DOCS / "decisions") == path:
            return "decisions/index.md"
        if repository.startswith("docs/") and path.suffix in (".png", ".svg", ".json"):
            return repository.removeprefix("docs/")
        if not path.exists():
            return None
        self.sources.add(repository)
        return f"source/{repository}.md" if path.is_file() else f"source/{repository}/index.md"

    def write_source(self, repository):
        """A page with a file's text, or a directory's README and files. The search leaves these out."""
        path = ROOT / repository
        head = f"---\nsearch:\n  exclude: true\nhide:\n  - navigation\n---\n# {repository}\n\n"
        if path.is_file():
            fence = "````" if path.suffix == ".md" else "```"
            text = f"{fence}{LANGUAGES.get(path.suffix, 'text')}\n{path.read_text()}\n{fence}\n"
            self.write(f"source/{repository}.md", head + text)
            return
        files = sorted(one.relative_to(path).as_posix() for one in path.rglob("*")
                       if one.is_file() and "__pycache__" not in one.parts)
        self.write(f"source/{repository}/index.md", head + "```text\n" + "\n".join(files) + "\n```\n")


def for_python_markdown(text):
    """Indented code as fences; a blank line before lists and tables that follow a paragraph."""
    out, code = [], []
    lines = text.split("\n")
    in_list = False
    for number, line in enumerate(lines):
        blank_before = not out or not out[-1].strip()
        if line.startswith("    ") and line.strip() and not in_list and (code or blank_before):
            code.append(line[4:])
            continue
        if code and not line.strip() and number + 1 < len(lines) and lines[number + 1].startswith("    "):
            code.append("")
            continue
        if code:
            out += ["```text", *code, "```"]
            code = []
        item = re.match(r"\s*(?:[-*]|\d+\.) ", line)
        if item:
            if not blank_before and not in_list and not out[-1].startswith("#"):
                out.append("")
            in_list = True
        elif line.strip() and not line.startswith(" ") and blank_before:
            in_list = False
        if line.startswith("|") and not blank_before and not out[-1].startswith("|"):
            out.append("")
        out.append(line)
    if code:
        out += ["```text", *code, "```"]
    return "\n".join(out)
