"""README.md and docs/*.md: every command is one that CI runs, every whole program one that the
build compiles."""

import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import commands  # noqa: E402
from commands import PAGES, ROOT, ROWS  # noqa: E402

TOOL = ROOT / "build" / "release" / "cli" / "elidex"
LONG = "ELIDEX_TEST_LONG" in os.environ
SECONDS_MAX = 3600 if LONG else 300  # a limit for what hangs


class Pages(unittest.TestCase):
    def test_a_command_is_found_wherever_it_is_shown(self):
        page = ("Text with `./dev lint`, `elidex bench`, `elidex db bench` and `elidex repro\nS-3.7`.\n\n"
                "    ./dev locks    # 2 minutes\n      table\n\n"
                "```\nA=/b/%p C=d prog    # by hand\nint x;\n```\n"
                "```cpp\n./dev no\n```\n    not code\n")
        self.assertEqual(commands.commands_of(page),
                         ["./dev locks", "A=/b/%p C=d prog", "./dev lint",
                          "./dev elidex repro S-3.7"])

    def test_every_command_has_a_row_and_every_row_a_command(self):
        shown = {command for page in PAGES for command in commands.commands_of(page.read_text())}
        rows = [row.command for row in ROWS]
        table = "checks/docs/commands.py"
        self.assertEqual(sorted(shown - set(rows)), [], f"{table} has no row for these")
        self.assertEqual(sorted(set(rows) - shown), [], f"no page shows these of {table}")
        self.assertEqual(len(rows), len(set(rows)))

    def test_replacements_fit(self):
        for row in ROWS:
            for old, _ in (*(row.smaller or ()), *(row.full or ())):
                if (old, _) not in commands.INSTALL:
                    self.assertIn(old, row.command)
            self.assertFalse(row.never and (row.smaller is not None or row.full))

    def test_whole_programs_are_compiled(self):
        compiled = {p.read_text() for p in (ROOT / "examples").rglob("*.cpp")}
        # docs/site/snippets.py compiles the program on the first page of the site.
        programs = [(page.name, program) for page in commands.TOP_PAGES if page.name != "index.md"
                    for program in commands.whole_programs_of(page.read_text())]
        self.assertGreaterEqual(len(programs), 4)
        self.assertEqual([page for page, program in programs if program not in compiled], [],
                         "programs that no file in examples/ has, word for word")


@unittest.skipUnless(TOOL.exists(), "build/release has no tool; ./dev build makes it")
class Commands(unittest.TestCase):
    """One test for each row of the table, in its order."""

    @classmethod
    def setUpClass(cls):
        directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(directory.cleanup)
        cls.directory = Path(directory.name)
        for shared in ("docs", "papers"):  # what the commands name relative to the checkout
            (cls.directory / shared).symlink_to(ROOT / shared)

    def run_row(self, row):
        text = row.command
        for old, new in row.full if LONG and row.full is not None else row.smaller:
            text = text.replace(old, new.format(directory=shlex.quote(str(self.directory)),
                                                root=shlex.quote(str(ROOT))))
        text = re.sub(r"^\./dev elidex\b", shlex.quote(str(TOOL)), text)
        text = re.sub(r"^\./dev\b", shlex.quote(str(ROOT / "dev")), text)
        environment = dict(os.environ, ELIDEX_PYTHON=sys.executable,
                           ELIDEX_RESULTS=str(self.directory / "results"))
        answer = subprocess.run(["bash", "-c", text], cwd=self.directory, env=environment,
                                capture_output=True, text=True,
                                timeout=SECONDS_MAX, stdin=subprocess.DEVNULL)
        said = f"{text}\n{answer.stdout[-2000:]}\n{answer.stderr[-2000:]}"
        self.assertIn(answer.returncode, row.statuses, said)
        self.assertNotIn("Traceback", answer.stderr, said)


def test_of(row):
    def test(self):
        if row.smaller is None and not LONG:
            self.skipTest("only in --long: " + row.command)
        self.run_row(row)
    return test


for number, one in enumerate(ROWS):
    if not one.never:
        name = re.sub(r"\W+", "_", one.command.removeprefix("./dev ")).strip("_")[:60]
        setattr(Commands, f"test_{number:02}_{name}", test_of(one))


if __name__ == "__main__":
    unittest.main()
