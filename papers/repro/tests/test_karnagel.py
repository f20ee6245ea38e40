"""Paper 001's judges of runs agree with what the paper says and notice when a run is bent; a claim asks for what it needs
alone."""

import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))
import fake_worker  # noqa: E402
import karnagel_claims  # noqa: E402
import karnagel_figures  # noqa: E402
import karnagel_runs as kr  # noqa: E402
import panels  # noqa: E402
import seeds  # noqa: E402
from karnagel_runs import Point  # noqa: E402

TESTS = karnagel_claims.TESTS
SOCKETS = {"machine": str(kr.SOCKETS)}


def answers(*ids, scale="smoke"):
    asked = kr.requests(None, scale, 5, [TESTS[i] for i in ids])
    return {key: fake_worker.run(request) for key, request in asked.items()}


def runs(*ids):
    return seeds.runs_of(answers(*ids))


# (claim, point, what is done to its run, verdict): what the machine must not get away with.
BENT = [
    ("K-F3", Point("delta/rw", 100, **SOCKETS), {"mops": 4}, "differs"),
    ("K-F3", Point("delta/rw", 0, 16, **SOCKETS), {"mops": 16}, "differs"),
    ("K-F3", Point("delta/none", 0, 16, **SOCKETS), {"mops": 9}, "differs"),
    ("K-F4", Point("btree/rw", 0, 8, **SOCKETS), {"mops": 9}, "differs"),
    ("K-F5a", Point("btree/rtm", 20, 4), {"mops": 0.5}, "differs"),
    ("K-F5b", Point("btree/rtm", 0, 8), {"mops": 5}, "differs"),
    ("K-F6a", Point("delta/rtm", 0), {"fallback_pct": 0}, "differs"),
    ("K-F6a", Point("delta/rtm", 0), {"fallback_pct": 4}, "near"),
    ("K-F6b", Point("delta/rtm", 100), {"fallback_pct": 40}, "near"),
    ("K-F6b", Point("delta/rtm", 100), {"fallback_pct": 4}, "differs"),
    ("K-F6c", Point("delta/rtm", 0), {"mops": 20}, "differs"),
    ("K-F9a", Point("delta-tuned/rtm", 100, 4), {"fallback_pct": 5}, "differs"),
    ("K-F9b", Point("delta-tuned/rtm", 100), {"fallback_pct": 30}, "differs"),
    ("K-F9c", Point("delta-tuned/rtm", 100), {"mops": 20}, "differs"),
    ("K-F10", Point("delta-tuned/rtm", 0), {"mops": 9}, "differs"),
    ("K-F10", Point("delta-tuned/rtm", 100), {"mops": 2.4}, "differs"),
]


class Judges(unittest.TestCase):
    def test_the_paper_agrees_with_itself(self):
        for name, test in TESTS.items():
            judgement = test.judge(runs(name))
            self.assertEqual((judgement.id, judgement.verdict), (name, "agrees"), (judgement.here, judgement.note))

    def test_bent_runs_are_noticed(self):
        for name, point, change, verdict in BENT:
            bent = runs(name)
            bent[point] |= change
            self.assertEqual(TESTS[name].judge(bent).verdict, verdict, (name, point, change))
        self.assertEqual({name for name, *_ in BENT}, set(TESTS))

    def test_where_curves_cross(self):
        self.assertEqual(karnagel_claims.crossing([(0, 1.5), (5, 2)]), 0)
        self.assertEqual(karnagel_claims.crossing([(0, 0.5), (4, 1.5)]), 2)
        self.assertEqual(karnagel_claims.crossing([(0, 0.5), (4, 0.6)]), 4)


class Runs(unittest.TestCase):
    def test_a_claim_asks_for_its_own_machine(self):
        files = {r["machine_file"] for r in kr.requests(None, "smoke", 1, [TESTS["K-F3"]]).values()}
        self.assertEqual(files, {str(kr.SOCKETS)})
        other = str(kr.machines.MACHINES / "icelake-sp-2x32.machine")
        files = {r["machine_file"] for r in kr.requests(other, "smoke", 1, [TESTS["K-F3"], TESTS["K-F9b"]]).values()}
        self.assertEqual(files, {other})

    def test_knobs_are_turned_one_at_a_time(self):
        point = Point("delta/rtm", 100)
        turned = [t for *_, t in kr.turns(point, None, "smoke")]
        self.assertEqual(turned[0], point)
        self.assertTrue(all(len(t.knobs) == 1 for t in turned[1:]))
        self.assertEqual(kr.request(turned[1], None, "smoke", 1)["retries"], 1)
        self.assertFalse(any(dict(t.knobs).get("retries") for *_, t in kr.turns(Point("delta/rw", 0), None, "full")))
        rows = kr.sensitivity(answers("K-F6b"), None, "smoke", 5, {"K-F6b": TESTS["K-F6b"]})
        self.assertEqual({r["knob"] for r in rows}, {"none", *kr.SMOKE_KNOBS})

    def test_what_is_missing_is_named(self):
        self.assertEqual(karnagel_claims.lacking(["K-F5b", "K-F10"], ["delta/rw", "delta-tuned/rtm", "btree/rtm"]),
                         {"K-F5b": ["btree/none"]})


class Figures(unittest.TestCase):
    def test_every_figure_is_drawn_whole(self):
        made = karnagel_figures.drawn(TESTS, runs(*TESTS))
        self.assertEqual([f.id for f in made], list(karnagel_figures.FIGURES))
        json.dumps([panels.series(f) for f in made], allow_nan=False)
        self.assertEqual([len(f.panels) for f in made], [3, 3, 2, 2, 2, 2])
        one = karnagel_figures.drawn(["K-F9b"], runs("K-F9b"))
        self.assertEqual([p.title for p in one[0].panels], ["8 threads"])


if __name__ == "__main__":
    unittest.main()
