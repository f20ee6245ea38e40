"""txbench's judges agree with what the thesis says and notice what is bent; nothing is said of 64 clients."""

import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import drawing  # noqa: E402
import machines  # noqa: E402
from asking import Asking, bend  # noqa: E402
from papers.schrimpf.repro import txbench as tr  # noqa: E402

ASKING = Asking(tr.FAMILY)
TESTS = ASKING.tests


# (claim, variant, clients, what is done to its run, verdict)
BENT = [
    ("S-5.4", tr.HLE, 2, {"mops": 0.0212}, "differs"),  # gains
    ("S-5.4", tr.LATCHES, 1, {"mops": 0.009}, "near"),
    ("S-5.4", tr.LATCHES, 1, {"mops": 0.007}, "differs"),
    ("S-5.4", tr.SHARDED, 4, {"mops": 1}, "near"),  # ours may
    ("S-5.5", tr.RETRIED, 4, {"transactional_pct_of_busy": 5.5}, "differs"),
    ("S-5.5", tr.HLE, 4, {"transactional_pct_of_busy": 8}, "near"),
    ("S-5.5", tr.HLE, 4, {"transactional_pct_of_busy": 40}, "differs"),
    ("S-5.5", tr.HLE, 4, {"aborted_pct_of_transactional": 30}, "near"),
    ("S-5.5", tr.HLE, 4, {"aborted_pct_of_transactional": 10}, "differs"),
    ("S-5.5", tr.PTHREAD, 4, {"aborted_pct_of_transactional": 30}, "near"),
    ("S-5.5", tr.PTHREAD, 4, {"aborted_pct_of_transactional": 20}, "differs"),
]


class Judges(unittest.TestCase):
    def setUp(self):
        self.runs = ASKING.runs()

    def test_what_the_thesis_says(self):
        # What cannot be run keeps the claim from agreeing.
        for claim, verdict in (("S-5.4", "near"), ("S-5.5", "agrees")):
            judgement = TESTS[claim].judge(self.runs)
            self.assertEqual(judgement.verdict, verdict, (claim, judgement.here))

    def test_bent_runs_are_noticed(self):
        for claim, variant, clients, change, verdict in BENT:
            bent = bend(ASKING.runs(), tr.at(variant, clients), change)
            self.assertEqual(TESTS[claim].judge(bent).verdict, verdict, (claim, variant, change))
        self.assertEqual({claim for claim, *_ in BENT}, set(TESTS))

    def test_64_clients_are_not_made_up(self):
        judgement = TESTS["S-5.4"].judge(self.runs)
        self.assertIn("64 clients not run", judgement.here)
        self.assertIn("haswell-ep-2x10", judgement.note)
        self.assertEqual({p.threads for p in self.runs.table.index if p.machine == str(tr.MACHINE)},
                         set(tr.CLIENTS))
        for machine, clients in ((tr.MACHINE, tr.CLIENTS), (tr.MANY_CORES, tr.MANY_CLIENTS)):
            has = machines.values(machine)
            self.assertLessEqual(max(clients), has["sockets"] * has["cores_per_socket"] * has["threads_per_core"])

    def test_another_machine_has_nothing_beside(self):
        runs = ASKING.runs(machine=str(machines.MACHINES / "icelake-sp-2x32.machine"))
        self.assertNotIn("haswell-ep", TESTS["S-5.4"].judge(runs).note)
        self.assertEqual(len(ASKING.figures(runs, "S-5.4")[0].panels), 1)
        self.assertEqual(len(ASKING.figures(runs, "S-5.5")[0].panels), 3)


class Sensitivity(unittest.TestCase):
    def test_each_change_is_judged(self):
        bent = ASKING.answers()
        for (point, _), run in bent.items():
            if point.index == tr.HLE and ("abort_cycles", 320) in point.knobs:
                run["mops"] *= 2
        rows = ASKING.sensitivity(bent)
        self.assertEqual([(r["claim"], r["changed"]) for r in rows], [(c, n) for c in TESTS for n in tr.CHANGES])
        verdicts = {(r["claim"], r["changed"]): r["verdict"] for r in rows}
        self.assertEqual(verdicts["S-5.4", "nothing"], "near")
        self.assertEqual(verdicts["S-5.4", "aborts 320 cycles"], "differs")
        self.assertIn("aborts 320 cycles", tr.FAMILY.told(rows))
        self.assertEqual(tr.FAMILY.told([]), "")

    def test_what_is_changed_is_asked_for(self):
        made = ASKING.requests()
        asked = {(r["index"], r["rows"], r["think_cycles"], json.dumps(r["set"])) for r in made.values()}
        self.assertIn((tr.HLE, 3_000, tr.THINK_CYCLES, "{}"), asked)
        self.assertIn((tr.HLE, tr.ROWS, tr.THINK_CYCLES, '{"abort_cycles": 80}'), asked)
        self.assertIn((tr.LOCK_MUTEX + "-tas-t", tr.ROWS, 0, "{}"), asked)


class Plots(unittest.TestCase):
    def test_both_are_drawn(self):
        made = ASKING.figures(ASKING.runs())
        self.assertEqual([f.id for f in made], list(TESTS))
        for figure in made:
            self.assertTrue(drawing.draw(figure, "footnote").startswith(b"\x89PNG"))
            self.assertTrue(figure.series()["series"])


if __name__ == "__main__":
    unittest.main()
