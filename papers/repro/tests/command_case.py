"""What the tests of the whole command share: a directory, a program in place of the real one, and a run of it."""

import contextlib
import io
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import repro  # noqa: E402

PNG = b"\x89PNG\r\n"


class CommandCase(unittest.TestCase):
    FAKE = None  # the script of the stand-in, which runs under the Python that runs the tests

    def setUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.addCleanup(self.directory.cleanup)
        self.out = Path(self.directory.name) / "plots"
        self.program = Path(self.directory.name) / "worker"
        self.program.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{self.FAKE}'\n")
        self.program.chmod(0o755)

    def workers(self):
        return ["--worker", str(self.program)]

    def run_it(self, *arguments, **environment):
        """(status, standard output, standard error)"""
        out, err = io.StringIO(), io.StringIO()
        with (mock.patch.dict(os.environ, environment), contextlib.redirect_stdout(out),
              contextlib.redirect_stderr(err)):
            status = repro.main([*self.workers(), "--out", str(self.out), "--jobs", "2", "--commit", "abc", *arguments])
        return status, out.getvalue(), err.getvalue()

    def plots(self):
        """The pictures; each has its vectors and its numbers beside it."""
        names = {p.name for p in self.out.iterdir()} if self.out.exists() else set()
        pictures = sorted(name for name in names if name.endswith(".png"))
        self.assertEqual(names, {Path(name).with_suffix(suffix).name for name in pictures
                                 for suffix in (".png", ".svg", ".csv")})
        return pictures
