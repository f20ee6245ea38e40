#!/usr/bin/env python3
"""Builds the documentation site in build/docs, and checks it. `./dev docs` runs this.

Fails if a link or anchor leads nowhere, a word is misspelt, or a snippet does not compile or prints
something else than its page says.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import claims  # noqa: E402
import links  # noqa: E402
import reference  # noqa: E402
import snippets  # noqa: E402
import stage  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "docs" / "site"
OUT = ROOT / "build" / "docs"


def made_pages(pages):
    """Path in the site -> text, of the pages that are made from the headers and from stored results."""
    made = {f"reference/{page.name}.md": reference.page_text(page, headers) for page, headers in pages}
    made["reference/index.md"] = reference.index_text(pages)
    made["results/claims.md"] = claims.page()
    return made


def build(pages):
    stage.Stage(ROOT / "build" / "docs-src").run(made_pages(pages))
    answer = subprocess.run([sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--config-file", HERE / "mkdocs.yml"],
                            capture_output=True, text=True, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"})
    if answer.returncode != 0:
        sys.exit(f"docs: {(answer.stdout + answer.stderr).strip()}")
    without_network()


SHIM = "https://unpkg.com/iframe-worker/shim"


def without_network():
    """The offline plug-in takes a script from the network. Pages use assets/search_worker.js instead."""
    for path in OUT.rglob("*.html"):
        text = path.read_text()
        if SHIM not in text:
            sys.exit(f"docs: {path.relative_to(OUT)} does not load {SHIM}, which this version of the theme should")
        up = "../" * (len(path.relative_to(OUT).parts) - 1)
        path.write_text(text.replace(SHIM, f"{up}assets/search_worker.js"))


def spelling():
    words = HERE / "words.txt"
    paths = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
    answer = subprocess.run([sys.executable, "-m", "codespell_lib", "--ignore-words", words, *paths],
                            capture_output=True, text=True)
    return [line.replace(f"{ROOT}/", "") for line in answer.stdout.splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", default=ROOT / "build" / "release" / "src" / "libelidex.a",
                        help="the archive with which snippets are linked")
    parser.add_argument("--jobs", type=int, default=snippets.cpus(), help="compilers at a time")
    arguments = parser.parse_args()
    of_headers = reference.read()
    build(of_headers)
    pages, checked, complaints = links.check(OUT)
    complaints += spelling()
    complaints += [f"{name}: a public function without an entry in the reference"
                   for name in reference.missing(reference.names(of_headers))]
    complaints += [f"{name}: a public function without a comment" for name in reference.without_text(of_headers)]
    compiled, wrong = snippets.check(arguments.library, arguments.jobs)
    complaints += wrong
    for line in complaints:
        print(f"docs: {line}", file=sys.stderr)
    print(f"{pages} pages, {checked} links checked, {compiled} snippets compiled")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
