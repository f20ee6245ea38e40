"""txbench's judges agree with what the thesis says and notice what is bent."""

import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import drawing  # noqa: E402
from asking import Asking, bend  # noqa: E402
from papers.schrimpf.repro import txbench as tr  # noqa: E402

ASKING = Asking(tr.FAMILY)
TESTS = ASKING.tests


# (claim, variant, clients, what is done to its run, verdict)
BENT = [
    ("S-5.2", tr.UNMODIFIED, 16, {"tps": 90e3}, "differs"),  # not linear
    ("S-5.2", tr.UNMODIFIED, 64, {"tps": 120e3}, "near"),
    ("S-5.2", tr.UNMODIFIED, 64, {"tps": 100e3}, "differs"),
    ("S-5.2", tr.UNMODIFIED, 256, {"tps": 130e3}, "differs"),
    ("S-5.3", tr.UNMODIFIED, 256, {"read_update_us": 2000}, "near"),
    ("S-5.3", tr.UNMODIFIED, 1, {"read_update_us": 100}, "differs"),
    ("S-5.4", tr.HLE, 2, {"mops": 0.0212}, "differs"),  # gains
    ("S-5.4", tr.LATCHES, 1, {"mops": 0.009}, "near"),
    ("S-5.4", tr.LATCHES, 1, {"mops": 0.007}, "differs"),
    ("S-5.4", tr.SHARDED, 4, {"mops": 1}, "agrees"),  # ours may
    ("S-5.4", tr.LOCK_MUTEX, 64, {"mops": 0.08}, "near"),
    ("S-5.4", tr.LOCK_MUTEX, 64, {"mops": 0.14}, "differs"),
    ("S-5.5", tr.RETRIED, 4, {"transactional_pct_of_busy": 5.5}, "differs"),
    ("S-5.5", tr.HLE, 4, {"transactional_pct_of_busy": 8}, "near"),
    ("S-5.5", tr.HLE, 4, {"transactional_pct_of_busy": 40}, "differs"),
    ("S-5.5", tr.HLE, 4, {"aborted_pct_of_transactional": 30}, "near"),
    ("S-5.5", tr.HLE, 4, {"aborted_pct_of_transactional": 10}, "differs"),
    ("S-5.5", tr.PTHREAD, 4, {"aborted_pct_of_transactional": 30}, "near"),
    ("S-5.5", tr.PTHREAD, 4, {"aborted_pct_of_transactional": 20}, "differs"),
]
# The same of events: (claim, variant, clients, event of HLE, its number, verdict).
BENT_EVENTS = [
    ("S-5.6", tr.HLE, 4, "misc1", 7, "near"),
    ("S-5.6", tr.HLE, 64, "misc1", 100, "differs"),
    ("S-5.6", tr.LOCK_MUTEX, 1, "misc3", 1, "differs"),
    ("S-5.6", tr.LOCK_MUTEX, 1, "misc1", 0, "differs"),
    ("S-5.6", tr.LATCHES, 64, "misc3", 0, "differs"),
]


class Judges(unittest.TestCase):
    def setUp(self):
        self.runs = ASKING.runs()

    def test_what_the_thesis_says(self):
        for claim, test in TESTS.items():
            judgement = test.judge(self.runs)
            self.assertEqual(judgement.verdict, "agrees", (claim, judgement.here))

    def test_bent_runs_are_noticed(self):
        bents = [*BENT]
        for claim, variant, clients, event, count, verdict in BENT_EVENTS:
            perf = ASKING.runs()[tr.at(variant, clients)]["perf"]
            bents.append((claim, variant, clients,
                          {"perf": perf | {f"hle_retired.aborted_{event}": count}}, verdict))
        for claim, variant, clients, change, verdict in bents:
            bent = bend(ASKING.runs(), tr.at(variant, clients), change)
            self.assertEqual(TESTS[claim].judge(bent).verdict, verdict, (claim, variant, change))
        self.assertEqual({claim for claim, *_ in bents}, set(TESTS))

    def test_clients_are_the_thesis_s(self):
        self.assertEqual({p.threads for p in self.runs.table.index}, {*tr.CLIENTS, tr.TOO_MANY})


class Sensitivity(unittest.TestCase):
    def test_each_change_is_judged(self):
        bent = ASKING.answers()
        for (point, _), run in bent.items():
            if point.index == tr.HLE and ("rows", 3_000) in point.knobs:
                run["mops"] *= 2
        rows = ASKING.sensitivity(bent)
        changes = {claim: tr.CHANGES if claim >= "S-5.4" else tr.CHANGES_UNMODIFIED for claim in TESTS}
        self.assertEqual([(r["claim"], r["changed"]) for r in rows], [(c, n) for c in TESTS for n in changes[c]])
        verdicts = {(r["claim"], r["changed"]): r["verdict"] for r in rows}
        self.assertEqual(verdicts["S-5.4", "nothing"], "agrees")
        self.assertEqual(verdicts["S-5.4", "3,000 rows"], "differs")
        self.assertIn("3,000 rows", tr.FAMILY.told(rows))
        self.assertEqual(tr.FAMILY.told([]), "")

    def test_what_is_changed_is_asked_for(self):
        made = ASKING.requests()
        asked = {(r["index"], r["rows"], r["think_cycles"], r.get("pages"), json.dumps(r["set"])) for r in made.values()}
        self.assertIn((tr.HLE, 3_000, tr.THINK_CYCLES, None, "{}"), asked)
        self.assertIn((tr.HLE, tr.ROWS, tr.THINK_CYCLES, 0, "{}"), asked)
        self.assertIn((tr.HLE, tr.ROWS, tr.THINK_CYCLES, None,
                       '{"slice_cycles": 30000, "timer_period_cycles": 30000}'), asked)
        self.assertIn((tr.LOCK_MUTEX, tr.ROWS, 0, None, "{}"), asked)
        self.assertIn((tr.LOCK_MUTEX + "-tas-t", tr.ROWS, tr.THINK_CYCLES, None, "{}"), asked)


class Plots(unittest.TestCase):
    def test_all_are_drawn(self):
        made = ASKING.figures(ASKING.runs())
        self.assertEqual([f.id for f in made], list(TESTS))
        for figure in made:
            self.assertTrue(drawing.draw(figure, "footnote")[".png"].startswith(b"\x89PNG"))
            self.assertTrue(figure.series()["series"])


if __name__ == "__main__":
    unittest.main()
