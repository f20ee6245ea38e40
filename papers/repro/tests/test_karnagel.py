"""Paper 001's judges of runs agree with what the paper says and notice when a run is bent; a claim asks for what it needs
alone."""

import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import machines  # noqa: E402
from asking import Asking, bend  # noqa: E402
from papers.karnagel.repro import indexes  # noqa: E402
from papers.karnagel.repro import runs as kr  # noqa: E402
from papers.karnagel.repro.runs import at  # noqa: E402

ASKING = Asking(kr.FAMILY)
TESTS = {name: test for name, test in ASKING.tests.items() if test.points}
SOCKETS = {"machine": kr.SOCKETS}


# (claim, point, what is done to its run, verdict): what the machine must not get away with.
BENT = [
    ("K-FP2", at("delta/rtm", 0), {"lines_per_commit": 65}, "near"),
    ("K-FP3", at("btree/rtm", 0), {"lines_per_commit": 41}, "differs"),
    ("K-FP4", at("delta-tuned/rtm", 0), {"lines_per_commit": 70}, "near"),
    ("K-F3", at("delta/rw", 100, **SOCKETS), {"mops": 4}, "differs"),
    ("K-F3", at("delta/rw", 0, 16, **SOCKETS), {"mops": 16}, "differs"),
    ("K-F3", at("delta/none", 0, 16, **SOCKETS), {"mops": 9}, "differs"),
    ("K-F4", at("btree/rw", 0, 8, **SOCKETS), {"mops": 9}, "differs"),
    ("K-F5a", at("btree/rtm", 20, 4), {"mops": 0.5}, "differs"),
    ("K-F5b", at("btree/rtm", 0, 8), {"mops": 5}, "differs"),
    ("K-F6a", at("delta/rtm", 0), {"fallback_pct": 0}, "differs"),
    ("K-F6a", at("delta/rtm", 0), {"fallback_pct": 4}, "near"),
    ("K-F6b", at("delta/rtm", 100), {"fallback_pct": 40}, "near"),
    ("K-F6b", at("delta/rtm", 100), {"fallback_pct": 4}, "differs"),
    ("K-F6c", at("delta/rtm", 0), {"mops": 20}, "differs"),
    ("K-F9a", at("delta-tuned/rtm", 100, 4), {"fallback_pct": 5}, "differs"),
    ("K-F9b", at("delta-tuned/rtm", 100), {"fallback_pct": 30}, "differs"),
    ("K-F9c", at("delta-tuned/rtm", 100), {"mops": 20}, "differs"),
    ("K-F10", at("delta-tuned/rtm", 0), {"mops": 9}, "differs"),
    ("K-F10", at("delta-tuned/rtm", 100), {"mops": 2.4}, "differs"),
]


class Judges(unittest.TestCase):
    def test_the_paper_agrees_with_itself(self):
        for name, test in TESTS.items():
            judgement = test.judge(ASKING.runs(name))
            self.assertEqual(judgement.verdict, "agrees", (name, judgement.here, judgement.note))

    def test_bent_runs_are_noticed(self):
        for name, point, change, verdict in BENT:
            bent = bend(ASKING.runs(name), point, change)
            self.assertEqual(TESTS[name].judge(bent).verdict, verdict, (name, point, change))
        self.assertEqual({name for name, *_ in BENT}, set(TESTS))

    def test_where_curves_cross(self):
        self.assertEqual(indexes.crossing([(0, 1.5), (5, 2)]), 0)
        self.assertEqual(indexes.crossing([(0, 0.5), (4, 1.5)]), 2)
        self.assertEqual(indexes.crossing([(0, 0.5), (4, 0.6)]), 4)

    def test_how_far_a_value_is_outside_is_told(self):
        self.assertEqual(indexes.outside("falls", 1.255, 0.8, 1.25), "falls (0.4 % above its bound 1.25)")
        self.assertEqual(indexes.outside("scales", 3.2, 6.4, float("inf")), "scales (50 % below its bound 6.4)")
        bent = bend(ASKING.runs("K-F3"), *next(how[1:3] for how in BENT if how[0] == "K-F3"))
        self.assertRegex(TESTS["K-F3"].judge(bent).note, r"^Not so: .+ \([\d.]+ % (above|below) its bound [\d.]+\)")


class Runs(unittest.TestCase):
    def test_a_claim_asks_for_its_own_machine(self):
        files = {r["machine_file"] for r in ASKING.requests("K-F3").values()}
        self.assertEqual(files, {str(kr.SOCKETS)})
        other = str(machines.MACHINES / "icelake-sp-2x32.machine")
        files = {r["machine_file"] for r in ASKING.requests("K-F3", "K-F9b", machine=other).values()}
        self.assertEqual(files, {other})

    def turned(self, claim, scale):
        test, known = TESTS[claim], ASKING.requests(claim)
        known = {p.index for p, _ in known}
        return [t for *_, t in kr.FAMILY.turns(test, ASKING.flags(scale), known)]

    def test_knobs_are_turned_one_at_a_time(self):
        turned = self.turned("K-F6b", "smoke")
        self.assertEqual(turned[0], at("delta/rtm", 100))
        self.assertTrue(all(len(t.knobs) == 1 for t in turned[1:]))
        self.assertEqual(turned[1].request(None, 1, {})["retries"], 1)
        locked = [t for t in self.turned("K-F9c", "full") if t.index == "delta/rw"]
        self.assertGreater(len(locked), 1)
        self.assertFalse(any(dict(t.knobs).get("retries") for t in locked))
        rows = ASKING.sensitivity(ASKING.answers("K-F6b"), "K-F6b")
        self.assertEqual({r["knob"] for r in rows}, {"none", *kr.SMOKE_KNOBS})

    def test_what_is_missing_is_named(self):
        known = ["delta/rw", "delta-tuned/rtm", "btree/rtm"]
        self.assertEqual(kr.FAMILY.lacking(ASKING.chosen(["K-F5b", "K-F10"]), known),
                         {"K-F5b": ["btree/none"]})


class Figures(unittest.TestCase):
    def test_every_figure_is_drawn_whole(self):
        made = ASKING.figures(ASKING.runs(*TESTS), *TESTS)
        self.assertEqual([f.id for f in made], ["K-F3", "K-F4", "K-F5", "K-F6", "K-F9", "K-F10"])
        json.dumps([f.series() for f in made], allow_nan=False)
        self.assertEqual([len(f.panels) for f in made], [3, 3, 2, 2, 2, 2])
        one = ASKING.figures(ASKING.runs("K-F9b"), "K-F9b")
        self.assertEqual([p.title for p in one[0].panels], ["8 threads"])


if __name__ == "__main__":
    unittest.main()
