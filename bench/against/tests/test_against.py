import contextlib
import io
import json
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import against

FAKE = """#!/bin/sh
echo '{"commit": "abc", "machine": {}, "runs": [{"workload": "%s", "mops": %s}]}'
"""


class Against(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)

    def program(self, name, mops, workload="e"):
        path = self.directory / name
        path.write_text(FAKE % (workload, mops))
        path.chmod(0o755)
        return path

    def run_with(self, *more, only="scans of 100", workloads=("e", "e")):
        said = io.StringIO()
        programs = [str(self.program(*one)) for one in zip(("new", "old"), (3, 2), workloads)]
        words = ["--elidex", programs[0], "--other", programs[1], "--other-commit", "def",
                 "--json", str(self.directory / "out.json"), "--only", only, *more]
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            status = against.main(words)
        return status, said.getvalue()

    def test_a_row_is_the_median_of_the_rounds_ratios(self):
        status, said = self.run_with()
        self.assertEqual(status, 0, said)
        content = json.loads((self.directory / "out.json").read_text())
        self.assertEqual([round(row["ratio"], 9) for row in content["rows"]], [1.5, 1.5])
        self.assertEqual(content["against"], {"commit": "def", "allocator": "debian"})
        self.assertEqual(len(content["rows"][0]["raw_mops_other"]), against.ROUNDS)
        self.assertIn("0 of 2 rows reach their goal", said)

    def test_it_does_not_matter_who_runs_first(self):
        calls = self.directory / "calls"
        for name, mops in (("new", 3), ("old", 2)):  # the second of two calls is twice as fast
            counting = f"#!/bin/sh\necho >> {calls}\ntwice=$(( 2 - $(wc -l < {calls}) % 2 ))"
            text = FAKE % ("e", f"'$(( {mops} * twice ))'")
            self.program(name, mops).write_text(text.replace("#!/bin/sh", counting))
        self.program = lambda name, mops, workload: self.directory / name
        status, said = self.run_with()
        self.assertEqual(status, 0, said)
        content = json.loads((self.directory / "out.json").read_text())
        self.assertEqual([round(row["ratio"], 9) for row in content["rows"]], [1.5, 1.5])
        self.assertEqual(set(content["rows"][0]["raw_mops"]), {3, 6})

    def test_the_other_build_loads_key_by_key(self):
        status, said = self.run_with(only="multi-upsert", workloads=("multi-upsert:64", "load"))
        self.assertEqual(status, 0, said)
        row, = json.loads((self.directory / "out.json").read_text())["rows"]
        self.assertEqual((row["workload"], round(row["ratio"], 9)), ("multi-upsert:64", 1.5))

    def test_a_program_that_fails_ends_it_in_one_line(self):
        self.program("old", 0)
        status, said = self.run_with("--other", str(self.directory / "nothing"))
        self.assertEqual((status, said.count("\n")), (2, 1))

    def test_bad_flags_are_named(self):
        for flags in (("--rounds", "2"), ("--rounds", "13"), ("--only", "no such row")):
            with self.assertRaises(SystemExit):
                self.run_with(*flags)

    def test_every_plan_is_a_command_that_loads_first(self):
        for plan in against.PLANS:
            self.assertEqual(plan.command("new")[:2], ["--index", plan.index])
            self.assertNotIn("multi-upsert", " ".join(plan.command("old")))
            self.assertTrue(all(goal > 1 for goal in plan.goals.values()))


if __name__ == "__main__":
    unittest.main()
