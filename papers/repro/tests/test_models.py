"""The models of paper 001 give the paper's numbers and equal results for equal seeds."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from asking import Asking  # noqa: E402
from papers.karnagel.repro import analysis, models  # noqa: E402
from papers.karnagel.repro.runs import FAMILY  # noqa: E402


class Models(unittest.TestCase):
    def test_table_1(self):
        for here, paper in zip(models.conflict_probabilities(), analysis.PAPER_TABLE_1):
            self.assertAlmostEqual(here / paper, 1, places=2)

    def test_searches_find_their_child(self):
        for keys in range(1, 31):
            for child in range(keys + 1):
                linear, binary = models.linear_search(keys, child), models.binary_search(keys, child)
                self.assertEqual(linear, list(range(min(child + 1, keys))))
                self.assertLessEqual(len(binary), keys.bit_length())
                self.assertTrue(all(0 <= p < keys for p in binary))
                # What bounds the child has been read.
                self.assertTrue(child == keys or child in binary)
                self.assertTrue(child == 0 or child - 1 in binary)

    def test_worst_cases(self):
        self.assertEqual(models.worst_linear(), 213)
        self.assertEqual(models.worst_of(models.binary_search), 53)

    def test_no_overflow_before_the_ways_and_always_past_the_capacity(self):
        cache = models.Overflow(64, 4, 2_000, seed=3)
        self.assertEqual(cache.probability(4), 0)
        self.assertEqual(cache.probability(64 * 4 + 1), 1)
        shares = [cache.probability(n) for n in range(0, 260, 5)]
        self.assertEqual(shares, sorted(shares))

    def test_one_set_overflows_at_once(self):
        self.assertEqual(set(models.Overflow(1, 8, 50, seed=1).firsts), {9})

    def test_seeds_replay(self):
        first, second, other = (models.Overflow(64, 4, 500, seed).firsts for seed in (7, 7, 8))
        self.assertEqual(first, second)
        self.assertNotEqual(first, other)

    def test_claims(self):
        asking = Asking(FAMILY, seed=1)
        for name in ("K-T1", "K-FP1", "K-F7a", "K-F7b"):
            judge = asking.tests[name].judge
            judgement = judge(asking.runs_of({}))
            self.assertEqual(judgement.verdict, "formula", name)
            self.assertTrue(judgement.note.startswith("By the rule: agrees."), name)
            measured = judge(asking.runs(name)).note
            self.assertEqual("The machine's L1" in measured, name.startswith("K-F7"), name)


if __name__ == "__main__":
    unittest.main()
