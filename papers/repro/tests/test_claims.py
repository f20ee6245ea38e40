"""Ids mean what the design says, and verdicts keep to its rules."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import claims  # noqa: E402
import repro  # noqa: E402
import verdicts  # noqa: E402
from verdicts import AGREES, DIFFERS, NEAR  # noqa: E402

KNOWN = ["K-T1", "E-F1", "E-F2a", "E-F2b", "E-F10a", "S-3.1", "S-3.18a", "S-3.18b", "S-2.5"]
BUILT = {"K-T1", "E-F2a", "E-F2b", "S-3.1", "S-2.5"}


class Ids(unittest.TestCase):
    def test_claim_figure_paper_and_all(self):
        self.assertEqual(claims.select(["E-F2a"], KNOWN, BUILT), (["E-F2a"], []))
        self.assertEqual(claims.select(["E-F2"], KNOWN, BUILT), (["E-F2a", "E-F2b"], []))
        self.assertEqual(claims.select(["E"], KNOWN, BUILT), (["E-F2a", "E-F2b"], ["E-F1", "E-F10a"]))
        ids, missing = claims.select(["all"], KNOWN, BUILT)
        self.assertEqual(ids + missing, [*ids, "E-F1", "E-F10a", "S-3.18a", "S-3.18b"])

    def test_each_once_and_in_order(self):
        self.assertEqual(claims.select(["S-3.1", "K-T1", "S-3.1", "K"], KNOWN, BUILT), (["K-T1", "S-3.1"], []))
        self.assertEqual(claims.select(["S-3.1,E-F2a"], KNOWN, BUILT), (["E-F2a", "S-3.1"], []))

    def test_a_number_is_no_prefix(self):
        self.assertEqual(claims.meant_by("E-F1", KNOWN), ["E-F1"])
        self.assertEqual(claims.meant_by("S-3", KNOWN), [])

    def test_figures_of_one_claim(self):
        shared = {"S-2.6": "S-2.5"}
        self.assertEqual(claims.select(["S-2.6"], KNOWN, BUILT, shared), (["S-2.5"], []))

    def test_unknown_and_unbuilt_are_refused_in_one_line(self):
        for wanted, says in (("X-1", "invalid value"), ("", "invalid value"), ("E-F10a", "not built yet"),
                             ("S-3.18", "not built yet")):
            with self.assertRaisesRegex(claims.BadInput, says) as caught:
                claims.select([wanted], KNOWN, BUILT)
            self.assertNotIn("\n", str(caught.exception))
            self.assertIn("(expected a claim", str(caught.exception))

    def test_a_near_match(self):
        with self.assertRaisesRegex(claims.BadInput, r"'E-F2q' .*\) Did you mean 'E-F2[a-z]'\?$"):
            claims.select(["E-F2q"], KNOWN, BUILT)
        with self.assertRaisesRegex(claims.BadInput, r"'e-f2' .*\) Did you mean 'E-F2'\?$"):
            claims.select(["e-f2"], KNOWN, BUILT)

    def test_every_test_has_a_claim(self):
        known = repro.known_claims()
        for name in repro.EXPERIMENTS:
            self.assertIn(name, known)
        self.assertEqual(len(known), len(claims.read_claims()) + 21)  # figures without a claim

    def test_every_test_has_a_wording(self):
        for name in repro.EXPERIMENTS:
            self.assertTrue(repro.known_claims()[name].wording, name)


class Verdicts(unittest.TestCase):
    def test_ratios(self):
        for here, verdict in ((100, AGREES), (125, AGREES), (80, AGREES), (126, NEAR), (79, NEAR), (200, NEAR),
                              (50, NEAR), (201, DIFFERS), (49, DIFFERS), (0, DIFFERS), (-100, DIFFERS)):
            self.assertEqual(verdicts.of_ratio(here, 100), verdict, here)
        self.assertEqual(verdicts.of_ratio(0, 0), AGREES)

    def test_bounds_and_ranges(self):
        self.assertEqual([verdicts.below(n, 3) for n in (2.9, 3, 5.9, 6)], [AGREES, NEAR, NEAR, DIFFERS])
        self.assertEqual([verdicts.above(n, 94) for n in (95, 94, 48, 47)], [AGREES, NEAR, NEAR, DIFFERS])
        self.assertEqual([verdicts.within(n, 6, 10) for n in (8, 12.5, 13, 21, 2)],
                         [AGREES, AGREES, NEAR, DIFFERS, DIFFERS])

    def test_the_worst_counts(self):
        self.assertEqual(verdicts.worst([AGREES, NEAR]), NEAR)
        self.assertEqual(verdicts.worst([DIFFERS, NEAR, AGREES]), DIFFERS)

    def test_numbers(self):
        self.assertEqual([verdicts.number(n) for n in (0, 4.78e-6, 0.0123, 1.5, 99.95, 25049.4)],
                         ["0", "4.78e-06", "0.0123", "1.5", "100", "25049"])


if __name__ == "__main__":
    unittest.main()
