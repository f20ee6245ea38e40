import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import locks


def run(lock, mops, kind="exclusive", threads=2):
    return {"lock": lock, "kind": kind, "writes_pct": 100, "inside": 4, "outside": 0, "threads": threads, "mops": mops}


class Ratios(unittest.TestCase):
    def test_are_medians_of_the_rounds_own(self):
        runs = locks.with_ratios([run("std::mutex", [1, 2, 4]), run("other", [2, 8, 8])])
        self.assertEqual([one["ratio"] for one in runs], [1, 2])
        self.assertEqual([one["median_mops"] for one in runs], [2, 8])

    def test_stay_within_a_situation(self):
        runs = locks.with_ratios([run("std::mutex", [1]), run("other", [3]), run("std::mutex", [10], threads=8),
                                  run("other", [5], threads=8)])
        self.assertEqual([one["ratio"] for one in runs], [1, 3, 1, 0.5])


class Table(unittest.TestCase):
    def test_has_a_line_for_each_situation(self):
        runs = locks.with_ratios([run("std::mutex", [1]), run("other", [3]), run("std::shared_mutex", [7], "shared")])
        lines = list(locks.table(runs, "exclusive"))
        self.assertEqual(len(lines), 2)
        self.assertIn("other", lines[0])
        self.assertIn("3.00x", lines[1])
        self.assertNotIn("7", lines[1])


if __name__ == "__main__":
    unittest.main()
