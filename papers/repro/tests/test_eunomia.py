"""Paper 003's judges agree with what the paper says and notice when a run is bent; a claim asks for
what it needs alone."""

import json
import sys
import unittest
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import fake_worker  # noqa: E402
import machines  # noqa: E402
import outputs  # noqa: E402
from asking import Asking, bend  # noqa: E402
from papers.eunomia.repro import runs as er  # noqa: E402
from papers.eunomia.repro import scaling, skew  # noqa: E402
from papers.eunomia.repro.runs import at  # noqa: E402

MACHINE = machines.values(er.MACHINE)
ASKING = Asking(er.FAMILY)
TESTS = ASKING.tests
asked, answers = ASKING.requests, ASKING.answers

HOT, HOTTEST, LIST = at(er.HTM_TREE, 0.9), at(er.HTM_TREE, 0.99), at(er.HTM_LIST, 0.99)


def er_step(number):
    """The tree with so many steps, where figure 16 has it."""
    return at(er.TREE_STEPS[number - 1], 0.9, threads=20)


INNER = [{"where": "inner", "true_sharing": 1, "false_sharing": 0}]

# (claim, point, what is done to its run, verdict): what the machine must not get away with.
BENT = [
    ("E-F2a", HOT, {"mops": 20}, "differs"), ("E-F2a", HOT, {"mops": 4}, "near"),
    ("E-F2b", at(er.HTM_TREE, 0.5), {"mops": 10}, "differs"),
    ("E-F2b", at(er.HTM_LIST, 0.4), {"mops": 5}, "differs"),
    ("E-F3a", at(er.HTM_TREE, 0.5), {"aborts_per_op": 1e-4}, "differs"),
    ("E-F3a", at(er.HTM_TREE, 0.5), {"aborts_per_op": 0}, "differs"),
    ("E-F3b", LIST, {"aborts_per_op": 0.1}, "differs"),
    ("E-F3c", HOTTEST, {"wasted_pct": 60}, "near"),
    ("E-F3d", HOTTEST, {"conflicts": INNER}, "differs"), ("E-F3d", LIST, {"conflicts": INNER}, "differs"),
    ("E-F3e", at(er.HTM_TREE, 0.99, workload=er.APART), {"aborts_per_op": 10}, "differs"),
    ("E-F3e", HOTTEST, {"aborts_per_op": 0}, "differs"), ("E-F3e", HOTTEST, {"conflicts": []}, "agrees"),
    ("E-F3f", LIST, {"conflicts": [{"where": "node head", "true_sharing": 1, "false_sharing": 0}]}, "differs"),
    ("E-F10a", HOTTEST, {"mops": 20}, "differs"), ("E-F10a", HOTTEST, {"mops": 2.5}, "near"),
    ("E-F10b", at(er.MASSTREE, 0.5), {"mops": 14}, "near"),
    ("E-F10b", at(er.MASSTREE, 0.5), {"mops": 30}, "differs"),
    ("E-F10c", at(er.EUNO_TREE, 0.99), {"mops": 0.5}, "differs"),
    ("E-F10d", at(er.MASSTREE, 0.5), {"instructions_per_op": 90}, "differs"),
    ("E-F11", at(er.EUNO_TREE, 0.99), {"aborts_per_op": 9}, "differs"),
    ("E-F12a", at(er.LOCK_LIST, 0), {"mops": 100}, "differs"),
    ("E-F12b", LIST, {"mops": 100}, "differs"),
    ("E-F13", at(er.EUNO_LIST, 0.99), {"aborts_per_op": 1}, "near"),
    ("E-F13", at(er.EUNO_LIST, 0.99), {"aborts_per_op": 9}, "differs"),
    ("E-F14a", at(er.MASSTREE, 0.99, threads=20), {"mops": 20}, "near"),
    ("E-F14b", at(er.HTM_TREE, 0.6, threads=8), {"mops": 4}, "differs"),
    ("E-F14b", at(er.HTM_MASSTREE, 0.2, threads=8), {"mops": 0.6}, "differs"),
    ("E-F15", at(er.EUNO_LIST, 0.99, threads=16), {"mops": 1}, "differs"),
    ("E-F15", at(er.LOCK_LIST, 0.99, threads=16), {"mops": 9}, "differs"),
    ("E-F16a", at(er.TREE_STEPS[1], 0.9, threads=20), {"mops": 1}, "differs"),
    ("E-F16b", at(er.LIST_STEPS[0], 0.9, threads=20), {"mops": 6}, "near"),
    ("E-F17", at(er.TREE_STEPS[0], 0.9, threads=20), {"mops": 1}, "differs"),
    ("E-F17", at(er.TREE_STEPS[2], 0.9, threads=20), {"mops": 1}, "differs"),  # nothing is reduced
    ("E-F18a", er.tpcc(er.DBX, 16), {"mops": 1}, "differs"),
    ("E-F18a", er.tpcc(er.DBX), {"mops": 0.03}, "near"),
    ("E-F18b", er.tpcc(er.SILO, 1), {"mops": 1}, "differs"),
    ("E-F18c", er.tpcc(er.DBX, threads=1), {"mops": 0.1}, "differs"),
    ("E-F18c", er.tpcc(er.SILO, threads=20), {"mops": 0.01}, "differs"),
    ("E-F18d", er.tpcc(er.EUNO_DBX, threads=20), {"mops": 0.2}, "near"),
    ("E-M1", at(er.EUNO_TREE, 0.7), {"bytes_per_key": 150}, "differs"),
    ("E-M1", at(er.EUNO_LIST, 0.7), {"bytes_per_key": 150}, "differs"),
    ("E-M2", at(er.EUNO_LIST, 0.5, workload="0.2"), {"bytes_per_key": 150}, "differs"),
]


class Judges(unittest.TestCase):
    def test_the_paper_agrees_with_itself(self):
        for name, test in TESTS.items():
            judgement = test.judge(ASKING.runs(name))
            self.assertEqual(judgement.verdict, "agrees", (name, judgement.here))
            self.assertTrue(judgement.paper)

    def test_bent_runs_are_noticed(self):
        for name, point, change, verdict in BENT:
            runs = bend(ASKING.runs(name), point, change)
            self.assertEqual(TESTS[name].judge(runs).verdict, verdict, (name, point, change))
        self.assertEqual({name for name, *_ in BENT}, set(TESTS))

    def test_both_baselines_are_told(self):
        runs = ASKING.runs("E-F10a")
        bend(runs, at(er.HTM_TREE, 0.99, knobs=er.LEAN), {"mops": 9.3})
        note = TESTS["E-F10a"].judge(runs).note
        self.assertIn("without versions (9.3 Mops/s): 2 x", note)

    def test_fewer_retries_are_told(self):
        runs = ASKING.runs("E-F10a", "E-F11", "E-F16a")
        bend(runs, er.with_retries(at(er.EUNO_TREE, 0.99), 16), {"mops": 3.4, "aborts_per_op": 7})
        bend(runs, er.with_retries(er_step(3), 16), {"mops": 3.4})
        note = TESTS["E-F10a"].judge(runs).note
        self.assertIn("with 16 retries for all alike 2 x (3.4 over 1.7).", note)
        self.assertIn("with 16 retries for all alike 60; 7.", TESTS["E-F11"].judge(runs).note)
        self.assertRegex(TESTS["E-F16a"].judge(runs).note, r"with 16 retries for all alike 1.83; 4.58; 1.7\.")

    def test_ours_stands_beside(self):
        there = answers("E-F10a", "E-F11", "E-F14a", "E-F16a")
        for name in ("E-F10a", "E-F11", "E-F14a", "E-F16a"):
            self.assertIn(er.OURS, TESTS[name].judge(ASKING.runs_of(there)).note)
            without = {key: run for key, run in there.items() if key[0].index != er.OUR_TREE}
            self.assertNotIn(er.OURS, TESTS[name].judge(ASKING.runs_of(without)).note)

    def test_the_median_of_seeds(self):
        there = answers("E-F2a", scale="full")
        for seed, mops in ((5, 1), (6, 9), (7, 4), (8, 3), (9, 8)):
            there[HOT, seed]["mops"] = mops
        middle = ASKING.runs_of(there, scale="full")[HOT]
        self.assertEqual([middle[n] for n in ("mops", "mops_min", "mops_max", "seed")], [4, 1, 9, 7])

    def test_when_threads_stop_to_pay(self):
        self.assertTrue(scaling.stops_after({1: 1, 4: 4, 8: 4.9, 20: 2}, 4))
        self.assertFalse(scaling.stops_after({1: 1, 4: 4, 8: 5.1, 20: 2}, 4))
        self.assertFalse(scaling.stops_after({1: 1, 4: 1.2, 8: 1, 20: 1}, 4))  # never began
        self.assertTrue(scaling.still_scales({1: 1, 4: 4, 8: 5, 20: 6}, 4))
        self.assertFalse(scaling.still_scales({1: 1, 4: 4, 8: 3, 20: 6}, 4))
        self.assertFalse(scaling.still_scales({1: 1, 4: 4, 8: 4.2, 20: 4.9}, 4))

    def test_shares_of_the_reduction(self):
        self.assertEqual([round(s) for s in scaling.shares((2, 4, 8))], [57, 29, 14])
        self.assertIsNone(scaling.shares((2, 4, 0.9)))

    def test_conflicts_by_category(self):
        run = {"conflicts": [{"where": w, "true_sharing": 1, "false_sharing": 10}
                             for w in ("leaf", "leaf head", "lock", "node head", "node")]}
        self.assertEqual(skew.conflict_counts(run), {"same record": 3, "different records": 30, "shared metadata": 22,
                                                   "leaf level": 33})
        run |= {"aborts_per_op": 6, "aborts": {"conflict": 2, "capacity": 1}}
        self.assertAlmostEqual(skew.aborts_by_category(run)["no conflict"], 2)
        self.assertAlmostEqual(sum(skew.aborts_by_category(run).values()), 6)


class Planning(unittest.TestCase):
    def test_a_claim_asks_for_what_it_needs_alone(self):
        for name, test in TESTS.items():
            asks = test
            meant = {p for p in (*asks.points, *asks.beside, *asks.turned, *asks.retried)}
            plain = {replace(p, knobs=()) for p, _ in asked(name)}
            self.assertEqual(plain, {replace(p, knobs=()) for p in meant}, name)
        self.assertEqual({p.threads for p, _ in asked("E-F10a")}, {16})
        judged = {p for p, _ in asked("E-F10a") if p.workload.startswith("eunomia:")}
        self.assertEqual({p.index for p in judged}, {er.HTM_TREE, er.EUNO_TREE, er.KEY_BITS, er.OUR_TREE})
        self.assertEqual({er.theta_of(p) for p in judged}, set(er.THETAS))
        self.assertLess(len(judged), 30)
        self.assertEqual({p.workload for p, _ in asked("E-F10a")} - {p.workload for p in judged},
                         {"a", *(f"put:{theta}" for theta in er.THETAS)})

    def test_claims_share_runs(self):
        self.assertEqual(asked("E-F16a", "E-F17").keys(), asked("E-F17").keys() | asked("E-F16a").keys())
        self.assertLess(len(asked(*TESTS)), sum(len(asked(name)) for name in TESTS) * 0.8)

    def test_retries_alone_are_turned_at_some(self):
        rows = ASKING.sensitivity(answers("E-F16a"), "E-F16a")
        knobs = {}
        for row in rows:
            knobs.setdefault(row["index"], set()).add(row["knob"])
        self.assertEqual(knobs[er.TREE_STEPS[0]], {"none", "retries"})
        self.assertEqual(knobs[er.OUR_TREE], {"none", "retries"})
        self.assertEqual(knobs[er.TREE_STEPS[2]], {"none", "retries", "jitter_cycles",
                                                "requests_outlive_aborts", "commit_exposed_cycles"})
        self.assertNotIn(er.OUR_TREE, {p.index for p, _ in asked("E-F16a", known=[er.HTM_TREE, *er.TREE_STEPS])})

    def test_every_index_with_regions_has_retries(self):
        every = {p.index for t in TESTS.values() for p in (*t.points, *t.beside)}
        self.assertEqual(set(er.KNOBS_OF["retries"]), every - {er.MASSTREE, er.LOCK_LIST, er.LOCK_FREE_LIST, er.SILO,
                                                           er.COPYING_DBX, er.COPYING_EUNO_DBX})

    def test_requests(self):
        there = asked("E-F10a", scale="full")
        self.assertEqual({seed for _, seed in there}, {5, 6, 7, 8, 9})
        self.assertEqual({er.theta_of(p) for p, _ in there}, set(er.FULL_THETAS))
        for workload in (er.PUT, er.PRELOADED):
            for index in er.TREES:
                for theta in er.FULL_THETAS:
                    self.assertIn((at(index, theta, workload=workload), 5), there)
        self.assertEqual(there[HOTTEST, 5]["operations"], 64_000)
        self.assertEqual((HOTTEST.workload, HOTTEST.dist), ("eunomia:0.99", "zipf:0.99"))
        self.assertEqual(there[at(er.HTM_TREE, 0.99, knobs=(("abort_cycles", 80),)), 5]["set"], {"abort_cycles": 80})
        self.assertEqual(there[at(er.HTM_TREE, 0.99, knobs=(("retries", 8),)), 5]["retries"], 8)
        self.assertNotIn((at(er.EUNO_TREE, 0.99, knobs=(("leaf_version", "line"),)), 5), there)  # has no such knob
        self.assertNotIn((at(er.HTM_TREE, 0.99, knobs=(("abort_cycles", 160),)), 5), there)  # that is the default
        plain, lean = there[HOTTEST, 5], there[at(er.HTM_TREE, 0.99, knobs=er.LEAN), 5]
        self.assertEqual((plain["leaf_version"], lean["leaf_version"]), ("head", "none"))
        self.assertNotIn("retries", plain)  # DBX's own budgets
        self.assertEqual(asked("E-F12b")[LIST, 5]["dist"], "hot:0.99")
        json.dumps(list(there.values()))

    def test_settled_runs_are_the_points_of_smoke_and_as_long_as_full(self):
        there = {scale: asked("E-F10a", scale=scale) for scale in ("smoke", "settled", "full")}
        self.assertEqual(set(there["settled"]), set(there["smoke"]))
        self.assertEqual({r["operations"] for (p, _), r in there["settled"].items() if p.workload == HOTTEST.workload}, {64_000})
        for key, request in there["settled"].items():
            self.assertEqual(request, there["full"][key])

    def test_the_number_of_seeds_can_be_asked_for(self):
        there = asked("E-F2a", seeds=2)
        self.assertEqual({seed for p, seed in there if p == HOT}, {5, 6})
        self.assertEqual({seed for p, seed in there if p.knobs and p.knobs != er.LEAN}, {5})  # a knob is turned once

    def test_a_database_is_asked_for_its_scale(self):
        there = asked("E-F18a")
        plain = there[er.tpcc(er.DBX, 2), 5]
        self.assertEqual({name: plain[name] for name in ("workload", "warehouses", "operations", "customers", "items", "threads")},
                         {"workload": "tpcc", "warehouses": 2, "threads": 16, **er.TPCC_SCALE["smoke"]})
        self.assertEqual(plain["leaf_version"], "head")
        self.assertEqual(asked("E-F18a", scale="settled")[er.tpcc(er.DBX, 2), 5]["items"], 100_000)
        self.assertNotIn("leaf_version", there[er.tpcc(er.EUNO_DBX, 2), 5])
        self.assertEqual({er.warehouses_of(p) for p, _ in asked("E-F18c")}, {1})
        json.dumps(list(there.values()))

    def test_what_is_beside_may_lack(self):
        known = [i for i in fake_worker.indexes() if i != er.OUR_TREE]
        self.assertNotIn(er.OUR_TREE, {p.index for p, _ in asked("E-F10c", known=known)})
        lacking = er.FAMILY.lacking(ASKING.chosen(["E-F10c", "E-F2a"]), [er.HTM_TREE, er.EUNO_TREE])
        self.assertEqual(lacking, {"E-F10c": [er.MASSTREE]})

    def test_sensitivity_has_every_value(self):
        there = answers("E-F10a", "E-F10c", scale="full")
        rows = ASKING.sensitivity(there, "E-F10a", "E-F10c", scale="full")
        values = {(r["knob"], r["value"]) for r in rows if r["index"] == er.HTM_TREE}
        self.assertEqual(values, {("none", None), *((k, v) for k, vs in er.KNOBS.items() for v in vs
                                                    if v != (MACHINE | er.DEFAULTS)[k]
                                                    and er.HTM_TREE in er.KNOBS_OF.get(k, (er.HTM_TREE,)))})
        self.assertEqual(len({(r["index"], r["knob"], r["value"]) for r in rows}), len(rows))
        told = outputs.sensitivity_tables(rows)
        self.assertIn("leaf_version none", told)
        self.assertIn("euno-btree/leaf-lock over btree/htm-dbx", told)


class Figures(unittest.TestCase):
    def test_whole_series_alone(self):
        self.assertEqual(ASKING.figures(ASKING.runs("E-F10d"), "E-F10d"), [])
        made = ASKING.figures(ASKING.runs("E-F10d", "E-F11"), "E-F10d", "E-F11")
        self.assertEqual([f.id for f in made], ["E-F10", "E-F11"])
        self.assertEqual(set(made[0].panels[0].here), {"HTM-B+Tree", "Euno-B+Tree", "Euno-B+Tree, key bits",
                                                       er.OURS})  # Masstree has one point

    def test_every_figure(self):
        made = sorted(ASKING.figures(ASKING.runs()), key=lambda f: [len(f.id), f.id])
        self.assertEqual([f.id for f in made], [
            *(f"E-{n}" for n in ("F2", "F3", "M1", "M2")), *(f"E-F{n}" for n in range(10, 19))])
        self.assertEqual([len(f.panels) for f in made], [2, 4, 2, 2, 3, 4, 1, 2, 4, 1, 2, 1, 2])
        json.dumps([f.series() for f in made], allow_nan=False)
        whole = ASKING.figures(ASKING.runs("E-F15", scale="full"), "E-F15")
        self.assertEqual(len(whole[0].panels), 4)


if __name__ == "__main__":
    unittest.main()
