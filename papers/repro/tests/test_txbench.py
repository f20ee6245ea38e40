"""txbench's judges agree with what the thesis says and notice what is bent; nothing is said of 64 clients."""

import copy
import json
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))
import fake_worker  # noqa: E402
import machines  # noqa: E402
import panel_drawing  # noqa: E402
import panels  # noqa: E402
import seeds  # noqa: E402
import txbench_claims  # noqa: E402
import txbench_figures  # noqa: E402
import txbench_runs as tr  # noqa: E402

TESTS = txbench_claims.TESTS


def answers(scale="smoke", machine=None):
    return {key: fake_worker.run(request) for key, request in tr.requests(machine, scale, 5, TESTS).items()}


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
        self.runs = seeds.runs_of(answers())

    def test_what_the_thesis_says(self):
        # What cannot be run keeps the claim from agreeing.
        for claim, verdict in (("S-5.4", "near"), ("S-5.5", "agrees")):
            judgement = TESTS[claim].judge(self.runs)
            self.assertEqual((judgement.id, judgement.verdict), (claim, verdict), judgement.here)

    def test_bent_runs_are_noticed(self):
        for claim, variant, clients, change, verdict in BENT:
            bent = copy.deepcopy(self.runs)
            bent[tr.USUAL.point(variant, clients)].update(change)
            self.assertEqual(TESTS[claim].judge(bent).verdict, verdict, (claim, variant, change))
        self.assertEqual({claim for claim, *_ in BENT}, set(TESTS))

    def test_64_clients_are_not_made_up(self):
        judgement = TESTS["S-5.4"].judge(self.runs)
        self.assertIn("64 clients not run", judgement.here)
        self.assertIn("haswell-ep-2x10", judgement.note)
        self.assertEqual({p.threads for p in self.runs if p.machine == tr.MACHINE}, set(tr.CLIENTS))
        for machine, clients in ((tr.MACHINE, tr.CLIENTS), (tr.MANY_CORES, tr.MANY_CLIENTS)):
            has = machines.values(machine)
            self.assertLessEqual(max(clients), has["sockets"] * has["cores_per_socket"] * has["threads_per_core"])

    def test_another_machine_has_nothing_beside(self):
        runs = seeds.runs_of(answers(machine="m"))
        self.assertNotIn("haswell-ep", TESTS["S-5.4"].judge(runs).note)
        self.assertEqual(len(txbench_figures.drawn(["S-5.4"], runs)[0].panels), 1)
        self.assertEqual(len(txbench_figures.drawn(["S-5.5"], runs)[0].panels), 3)


class Sensitivity(unittest.TestCase):
    def test_each_change_is_judged(self):
        bent = answers()
        for (point, _), run in bent.items():
            if point.index == tr.HLE and ("abort_cycles", 320) in point.knobs:
                run["mops"] *= 2
        rows = tr.sensitivity(bent, 5, TESTS)
        self.assertEqual([(r["claim"], r["changed"]) for r in rows], [(c, n) for c in TESTS for n in tr.CHANGES])
        verdicts = {(r["claim"], r["changed"]): r["verdict"] for r in rows}
        self.assertEqual(verdicts["S-5.4", "nothing"], "near")
        self.assertEqual(verdicts["S-5.4", "aborts 320 cycles"], "differs")
        self.assertIn("aborts 320 cycles", tr.sensitivity_told(rows))
        self.assertEqual(tr.sensitivity_told([]), "")

    def test_what_is_changed_is_asked_for(self):
        made = tr.requests(None, "smoke", 1, TESTS)
        asked = {(r["index"], r["rows"], r["think_cycles"], json.dumps(r["set"])) for r in made.values()}
        self.assertIn((tr.HLE, 3_000, tr.THINK_CYCLES, "{}"), asked)
        self.assertIn((tr.HLE, tr.ROWS, tr.THINK_CYCLES, '{"abort_cycles": 80}'), asked)
        self.assertIn((tr.LOCK_MUTEX + "-tas-t", tr.ROWS, 0, "{}"), asked)
        self.assertEqual(tr.requests(None, "smoke", 1, {}), {})


class Plots(unittest.TestCase):
    def test_both_are_drawn(self):
        made = txbench_figures.drawn(TESTS, seeds.runs_of(answers()))
        self.assertEqual([f.id for f in made], list(TESTS))
        for figure in made:
            self.assertTrue(panel_drawing.draw(figure, "footnote").startswith(b"\x89PNG"))
            self.assertTrue(panels.series(figure)["series"])


if __name__ == "__main__":
    unittest.main()
