import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import maps


def run(of, values, what="load", unit="ns"):
    return {"what": what, "of": of, "records": 1, "threads": 1, "unit": unit, "values": values}


class Medians(unittest.TestCase):
    def test_ratios_are_medians_of_the_rounds_own(self):
        runs = maps.with_medians([run("first", [1, 2, 4]), run("other", [2, 8, 8])])
        self.assertEqual([one["median"] for one in runs], [2, 8])
        self.assertEqual([one["ratio"] for one in runs], [1, 2])

    def test_stay_within_a_situation(self):
        runs = maps.with_medians([run("a", [1]), run("b", [3]), run("a", [10], "walk"), run("b", [5], "walk"),
                                  run("a", [0], "memory")])
        self.assertEqual([one["ratio"] for one in runs], [1, 3, 1, 0.5, None])


class Table(unittest.TestCase):
    def test_has_a_line_for_each_run_below_its_situation(self):
        lines = list(maps.table(maps.with_medians([run("a", [1]), run("b", [3]), run("a", [7], unit="bytes")])))
        self.assertEqual(len(lines), 5)
        self.assertIn("3.00x", lines[2])


class Headers(unittest.TestCase):
    def test_each_program_compiles(self):
        runs = maps.compile_times("g++", 1, {"s to check a file": ["-fsyntax-only", "-Werror"]})
        self.assertEqual(len(runs), len(maps.PROGRAMS))
        self.assertTrue(all(run["values"][0] > 0 for run in runs))


if __name__ == "__main__":
    unittest.main()
