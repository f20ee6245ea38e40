"""The judges agree with the papers' own data and notice when a figure is bent: each test can fail."""

import copy
import json
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))
import fake_worker  # noqa: E402
import figures  # noqa: E402
import machines  # noqa: E402
import thesis_claims  # noqa: E402

FIGURES = {f for test in thesis_claims.TESTS.values() for f in test.figures}


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
    ("S-2.5", "S-2.5", "TAS", times(1.5), "differs"),
    ("S-2.5", "S-2.6", "TAS", times(0.7), "differs"),
    ("S-2.4", "S-2.4", "unsigned(4)", times(0.05), "differs"),
    ("S-2.7", "S-2.7", "HLE TAS", times(3), "differs"),
    ("S-3.0", "S-3.0", "lock not read", level(0), "differs"),
    ("S-C.1", "S-C.1", "stack", level(5), "differs"),
    ("S-C.2", "S-C.2", "random read", level(100), "differs"),
    ("S-C.3", "S-C.3", "POSIX", times(2), "differs"),
]


class Thesis(unittest.TestCase):
    def setUp(self):
        self.here = {f: figures.series_of(fake_worker.experiment(f)) for f in FIGURES}
        self.paper = {f: figures.read_figure(f.removeprefix("S-")) for f in FIGURES}

    def verdict(self, claim):
        judgement = thesis_claims.judge(claim, self.here, self.paper, [])
        self.assertEqual(judgement.id, claim)
        self.assertTrue(judgement.paper and judgement.here)
        return judgement.verdict

    def test_the_thesis_agrees_with_itself(self):
        for claim in thesis_claims.TESTS:
            self.assertEqual(self.verdict(claim), "agrees", claim)

    def test_bent_figures_are_noticed(self):
        whole = copy.deepcopy(self.here)
        for claim, figure, series, bend, verdict in BENT:
            self.here = copy.deepcopy(whole)
            self.here[figure][series] = bend(self.here[figure][series])
            self.assertEqual(self.verdict(claim), verdict, (claim, series))
        self.assertEqual({claim for claim, *_ in BENT}, set(thesis_claims.TESTS))

    def test_a_missing_series_never_agrees(self):
        del self.here["S-3.6"]["step size 4"]
        self.assertEqual(self.verdict("S-3.6"), "near")

    def test_calibration_is_said(self):
        self.assertEqual(machines.calibrated_from(machines.THESIS_MACHINE, "3.8"), ["nesting_max"])
        self.assertEqual(machines.calibrated_from(machines.THESIS_MACHINE, "3.1"), [])  # not 3.10's
        note = thesis_claims.judge("S-3.8", self.here, self.paper, ["nesting_max"]).note
        self.assertIn("nesting_max", note)

    def test_figure_3_2_has_its_hidden_part(self):
        self.assertGreater(max(x for x, _ in self.paper["S-3.2"]["initialized"]), 1000)


class Curves(unittest.TestCase):
    def test_at(self):
        points = [(0, 0), (10, 100), (20, 100)]
        self.assertEqual([figures.at(points, x) for x in (-5, 0, 5, 10, 15, 99)], [0, 0, 50, 100, 100, 100])

    def test_last_below(self):
        self.assertEqual(figures.last_below([(0, 0), (1, 20), (2, 90), (3, 30), (4, 90)], 50), 3)
        self.assertEqual(figures.last_below([(0, 90)], 50), 0)

    def test_distance(self):
        self.assertEqual(figures.distance([(0, 0), (10, 10)], [(0, 2), (10, 10), (50, 90)]), 1)


class FakeWorker(unittest.TestCase):
    def test_it_answers_as_a_program(self):
        program = Path(fake_worker.__file__)
        ran = subprocess.run([sys.executable, program], input='{"experiment": "S-3.8"}', capture_output=True, text=True,
                             check=True)
        self.assertEqual(json.loads(ran.stdout)["id"], "S-3.8")


if __name__ == "__main__":
    unittest.main()
