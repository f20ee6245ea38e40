"""elidex report: bad input makes nothing, and whatever goes wrong is told in one line."""

import os
import resource
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
TOOL = ROOT / "build" / "release" / "cli" / "elidex"
MIB = 2**20


def limited_to(kind, limit):
    return lambda: resource.setrlimit(kind, (limit, limit))


@unittest.skipUnless(TOOL.exists(), "build/release has no tool; ./dev build makes it")
class Command(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.out = self.directory / "page.html"
        self.good = self.directory / "good.json"
        self.good.write_text((ROOT / "docs" / "results" / "picture-hot-keys.json").read_text())

    def report(self, *arguments, python=sys.executable, **options):
        return subprocess.run([TOOL, "report", *map(str, arguments)], cwd=self.directory,
                              capture_output=True, text=True,
                              env=dict(os.environ, ELIDEX_PYTHON=str(python)), timeout=300,
                              **options)

    def refused(self, answer, statuses=(2,)):
        """One line, the right status, and no file but those that setUp() and the test made."""
        self.assertIn(answer.returncode, statuses, answer)
        self.assertRegex(answer.stderr, r"\Aelidex: [^\n]+\n\Z")
        self.assertEqual(answer.stdout, "")
        self.assertEqual([p for p in self.directory.rglob("*") if p.suffix not in (".json", ".sh")],
                         [])

    def test_a_page_in_new_directories(self):
        out = self.directory / "new" / "deeper" / "page.html"
        answer = self.report(self.good, "--out", out)
        self.assertEqual((answer.returncode, answer.stderr, answer.stdout), (0, "", f"{out}\n"))
        self.assertIn("</html>", out.read_text())

    def test_bad_input_makes_no_directories(self):
        bad = self.directory / "bad.json"
        for content in ("not json", "{}", '{"schema": 1, "runs": [{"index": 3}]}', "[" * 100_000,
                        "\x00"):
            with self.subTest(content=content[:20]):
                bad.write_text(content)
                self.refused(self.report(bad, "--out", self.directory / "nd" / "deeper" / "x.html"))
        self.refused(self.report(self.directory / "none.json", "--out", self.directory / "nd" / "x.html"))
        self.refused(self.report(self.good, "--out", self.good / "x.html"))

    def test_a_full_disk(self):
        self.refused(self.report(self.good, "--out", self.out,
                                 preexec_fn=limited_to(resource.RLIMIT_FSIZE, 2_000)))

    def test_no_traceback_for_want_of_memory(self):
        told = set()
        for size in (40, 48, 64, 96, 128, 160, 256, 4096):  # the tool itself loads in 34 MiB
            with self.subTest(mib=size):
                self.out.unlink(missing_ok=True)
                answer = self.report(self.good, "--out", self.out,
                                     preexec_fn=limited_to(resource.RLIMIT_AS, size * MIB))
                told.add(answer.returncode)
                if answer.returncode == 0:
                    self.assertIn("</html>", self.out.read_text())
                else:
                    self.refused(answer, (1, 2))
        self.assertIn(0, told)
        self.assertTrue(told & {1, 2})

    def test_what_becomes_of_the_script(self):
        script = self.directory / "python.sh"
        for body, text in (("kill -9 $$", "signal 9"),
                           ("echo Traceback >&2; echo 'KeyError: 7' >&2; exit 1", "KeyError: 7"),
                           ("exit 3", "status 3")):
            with self.subTest(body=body):
                script.write_text("#!/bin/sh\n" + body)
                script.chmod(0o755)
                answer = self.report(self.good, "--out", self.out, python=script)
                self.refused(answer, (1,))
                self.assertIn(text, answer.stderr)
        answer = self.report(self.good, "--out", self.out, python="/none/python")
        self.refused(answer, (1,))
        self.assertIn("ELIDEX_PYTHON", answer.stderr)


if __name__ == "__main__":
    unittest.main()
