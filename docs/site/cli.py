#!/usr/bin/env python3
"""Writes docs/CLI.md from `elidex --help`, or checks it (--check)."""

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "CLI.md"
HEAD = """# The command line of elidex

For people who look up a flag. [TOOL](TOOL.md) shows what the commands are for. This page is made
from the help texts (`docs/site/cli.py`). Bad flags print one line and end with status 2.

"""


def help_of(tool, *command):
    return subprocess.run([tool, *command, "--help"], capture_output=True, text=True, check=True).stdout.strip()


def commands_in(text):
    """The names under "Subcommands:"."""
    return re.findall(r"^  (\w[\w-]*) ", text.partition("Subcommands:\n")[2], re.MULTILINE)


def page_of(tool):
    out = [HEAD + "```text", help_of(tool), "```", ""]
    todo = [[name] for name in commands_in(help_of(tool))]
    while todo:
        command = todo.pop(0)
        text = help_of(tool, *command)
        out += [f"## elidex {' '.join(command)}", "", "```text", text, "```", ""]
        todo[:0] = [[*command, name] for name in commands_in(text)]
    return "\n".join(out)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", default=ROOT / "build" / "release" / "cli" / "elidex", help="the built program")
    parser.add_argument("--check", action="store_true", help="fail if the page differs")
    arguments = parser.parse_args()
    made = page_of(arguments.tool)
    if not arguments.check:
        PAGE.write_text(made)
    elif PAGE.read_text() != made:
        print("docs/CLI.md: differs from the help texts (python3 docs/site/cli.py writes it)", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
