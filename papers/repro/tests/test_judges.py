"""The judges agree with the papers' own data and notice when a figure is bent: each test can fail."""

import copy
import json
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import curves  # noqa: E402
import fake_worker  # noqa: E402
from asking import Asking  # noqa: E402
from papers.schrimpf.repro import runs as thesis  # noqa: E402
from papers.schrimpf.repro import structures  # noqa: E402

ASKING = Asking(thesis.FAMILY)
TESTS = {name: test for name, test in ASKING.tests.items()
         if not {"S-3.9b", *structures.TITLES, "S-D.1", "S-D.4"} & set(test.series)}


def level(y):
    return lambda points: [(x, y) for x, _ in points]


def times(factor):
    return lambda points: [(x, y * factor) for x, y in points]


def shifted(kb):
    return lambda points: [(x + kb, y) for x, y in points]


# (claim, figure, series, what is done to it, verdict): what the machine must not get away with.
BENT = [
    ("S-3.1", "S-3.1", "initialized", shifted(12), "differs"),  # commits above 32 KB
    ("S-3.1", "S-3.1", "initialized", shifted(-12), "differs"),  # fails below 20 KB
    ("S-3.1", "S-3.1", "uninitialized", level(0), "differs"),
    ("S-3.2", "S-3.2", "initialized", level(100), "differs"),
    ("S-3.5", "S-3.5", "step size 2", shifted(15), "near"),
    ("S-3.5", "S-3.5", "step size 4", shifted(12), "differs"),
    ("S-3.6", "S-3.6", "step size 4", shifted(-12), "differs"),
    ("S-3.7", "S-3.7", "nop loop (RTM)", times(0.6), "differs"),
    ("S-3.7", "S-3.7", "nop loop (RTM)", level(100), "differs"),
    ("S-3.8", "S-3.8", "RTM nesting", shifted(1), "differs"),
    ("S-3.9", "S-3.9", "HLE nested mutexes", times(0.3), "differs"),
    ("S-3.10", "S-3.10", "HLE", times(0.7), "differs"),
    ("S-3.10", "S-3.10", "TAS", times(1.15), "near"),
    ("S-2.2", "S-2.2", "TAS", times(0.4), "differs"),
    ("S-2.3.3", "S-abort", "committed", lambda points: [(x, 8 * y) for x, y in points], "differs"),
    ("S-3.3.3", "S-3.3.3", "read", shifted(400), "near"),
    ("S-3.3.3", "S-3.3.3", "read", shifted(2000), "differs"),
    ("S-3.3.3", "S-3.3.3", "read", shifted(-400), "differs"),
    ("S-3.4", "S-3.4", "lock: transactional of all cycles, %", times(0.6), "near"),
    ("S-3.4", "S-3.4", "lock: aborted transactions, %", level(1), "differs"),
    ("S-3.4", "S-3.4", "try and pause: aborted transactions, %", times(0.3), "differs"),
    ("S-C.7", "S-C.7", "partitioned", times(1.5), "differs"),
    ("S-2.5", "S-2.5", "TAS", times(1.5), "differs"),
    ("S-2.5", "S-2.6", "TAS", times(0.7), "differs"),
    ("S-2.4", "S-2.4", "unsigned(4)", times(0.05), "differs"),
    ("S-2.7", "S-2.7", "HLE TAS", times(3), "differs"),
    ("S-3.0", "S-3.0", "lock not read", level(0), "differs"),
    ("S-C.1", "S-C.1", "stack", level(5), "differs"),
    ("S-C.2", "S-C.2", "random read", level(100), "differs"),
    ("S-C.3", "S-C.3", "POSIX", times(2), "differs"),
]


# What the machine file takes a parameter from.
CALIBRATED = {"S-3.2", "S-3.7", "S-3.8", "S-3.9", "S-3.10"}


class Thesis(unittest.TestCase):
    def setUp(self):
        self.here = ASKING.answers(*TESTS)

    def series(self, figure):
        return {s["name"]: s for s in self.here[figure]["series"]}

    def verdict(self, claim):
        judgement = TESTS[claim].judge(ASKING.runs_of(self.here))
        self.assertTrue(judgement.paper and judgement.here)
        if judgement.verdict == "calibration":  # the note has what the rule gives
            self.assertIn(claim, CALIBRATED)
            return judgement.note.removeprefix("By the rule: ").partition(".")[0]
        self.assertNotIn(claim, CALIBRATED)
        return judgement.verdict

    def test_the_thesis_agrees_with_itself(self):
        for claim in TESTS:
            self.assertEqual(self.verdict(claim), "agrees", claim)

    def test_bent_figures_are_noticed(self):
        whole = copy.deepcopy(self.here)
        for claim, figure, series, bend, verdict in BENT:
            self.here = copy.deepcopy(whole)
            bent = self.series(figure)[series]
            bent["points"] = bend(bent["points"])
            self.assertEqual(self.verdict(claim), verdict, (claim, series))
        self.assertEqual({claim for claim, *_ in BENT}, set(TESTS))

    def test_a_missing_series_never_agrees(self):
        self.here["S-3.6"]["series"].remove(self.series("S-3.6")["step size 4"])
        self.assertEqual(self.verdict("S-3.6"), "near")

    def test_calibration_is_said(self):
        self.assertEqual(thesis.calibrated_from(thesis.MACHINE, "3.8"), ["nesting_max"])
        self.assertEqual(thesis.calibrated_from(thesis.MACHINE, "3.1"), [])  # not 3.10's
        self.assertIn("nesting_max", TESTS["S-3.8"].judge(ASKING.runs_of(self.here)).note)

    def test_figure_3_2_has_its_hidden_part(self):
        self.assertGreater(max(x for x, _ in thesis.read_figure("3.2")["initialized"]), 1000)


class Curves(unittest.TestCase):
    def test_at(self):
        points = [(0, 0), (10, 100), (20, 100)]
        self.assertEqual([curves.at(points, x) for x in (-5, 0, 5, 10, 15, 99)], [0, 0, 50, 100, 100, 100])

    def test_last_below(self):
        self.assertEqual(curves.last_below([(0, 0), (1, 20), (2, 90), (3, 30), (4, 90)], 50), 3)
        self.assertEqual(curves.last_below([(0, 90)], 50), 0)

    def test_distance(self):
        self.assertEqual(curves.distance([(0, 0), (10, 10)], [(0, 2), (10, 10), (50, 90)]), 1)


class FakeWorker(unittest.TestCase):
    def test_it_answers_as_a_program(self):
        program = Path(fake_worker.__file__)
        ran = subprocess.run([sys.executable, program], input='{"experiment": "S-3.8"}', capture_output=True, text=True,
                             check=True)
        self.assertEqual(json.loads(ran.stdout)["id"], "S-3.8")


if __name__ == "__main__":
    unittest.main()
