"""--native: the same judges and figures, with a scripted RTM in place of the simulated machine."""

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import fake_native  # noqa: E402
import native  # noqa: E402
import repro  # noqa: E402
from command_case import PNG, CommandCase  # noqa: E402

FAKE = Path(__file__).resolve().parent / "fake_native.py"
PROGRAM = Path(__file__).resolve().parents[3] / "build" / "release" / "bench" / "native" / "elidex-native"


def at_once():
    """Hundreds of runs without a process for each."""
    def ask_all(_, requests, jobs, **__):
        assert jobs == 1, "native runs disturb each other"
        return {key: fake_native.answer(one) for key, one in requests.items()}

    stack = contextlib.ExitStack()
    stack.enter_context(mock.patch.object(native, "host_of", lambda program: native_host(program)))
    stack.enter_context(mock.patch.object(repro, "ask_all", ask_all))
    return stack


native_host_of = native.host_of


def native_host(program):
    return native_host_of(program, lambda _, request: fake_native.answer(request))


class Native(CommandCase):
    FAKE = FAKE

    def workers(self):
        return ["--worker", "/nowhere", "--native-worker", str(self.program), "--native"]

    def test_every_judge_gives_a_verdict_whatever_the_transactions_do(self):
        for script in fake_native.SCRIPTS:
            # The figures depend on the script only through their numbers.
            undrawn = mock.patch("drawing.draw", lambda *_: {".png": PNG, ".svg": b""})
            with self.subTest(script), at_once(), undrawn if script != "conflict" else contextlib.nullcontext():
                status, out, err = self.run_it("all", "--json", "-", FAKE_RTM=script)
                self.assertEqual((status, err), (0, ""))
                content = json.loads(out)
                left = [e for e in repro.EXPERIMENTS.values() if e.simulated or e.formula]
                self.assertEqual({c["id"] for c in content["claims"]},
                                 set(repro.EXPERIMENTS) - {e.id for e in left})
                self.assertEqual(set(content["not_built"]), {e.id for e in left})
                self.assertLessEqual({c["verdict"] for c in content["claims"]}, {"agrees", "near", "differs"})
                self.assertGreater(len(content["claims"]), 50)
                self.assertEqual(content["machine"]["native"], "fake Xeon")
                self.assertEqual(list(content["load_average"]), ["start", "end"])
                self.assertNotIn("simulated", content["machine"])
                # One thing is changed at a time, but nothing of the simulated machine's.
                self.assertLessEqual({row["knob"] for row in content["sensitivity"]},
                                     {"none", "retries", "leaf_version"})

    def test_the_judges_read_what_the_transactions_did(self):
        verdicts = {}
        for script in ("commits", "falls back"):
            with at_once():
                out = self.run_it("K-F9b", "--json", "-", FAKE_RTM=script)[1]
            verdicts[script] = json.loads(out)["claims"][0]["here"]
        self.assertEqual(verdicts, {"commits": "0 %", "falls back": "100 %"})

    def test_a_program_of_its_own(self):
        status, out, err = self.run_it("S-3.12", "S-3.8", FAKE_RTM="conflict")
        self.assertEqual((status, err), (0, ""))
        self.assertTrue(out.startswith("native: fake Xeon, 64 CPUs, medians of 5 rounds; smoke scale, seed 1"), out)
        self.assertRegex(out, r"S-3\.12 .*agrees")
        self.assertRegex(out, r"S-3\.8 .*agrees")  # evidence: no machine file was calibrated from the figure
        self.assertEqual(self.plots(), ["S-3.12-native.png", "S-3.8-native.png"])

    def test_each_seed_runs_all_points_before_the_next(self):
        asked = {}
        with at_once(), mock.patch.object(repro, "ask_all", lambda _, requests, *__, **___: (
                asked.update(requests), {k: fake_native.answer(r) for k, r in requests.items()})[1]):
            self.run_it("K-F5b")
        seeds = [request["seed"] for request in asked.values()]
        self.assertEqual(seeds, sorted(seeds))
        self.assertEqual(len(set(seeds)), native.ROUNDS["smoke"])
        self.assertEqual({r["operations"] for r in asked.values()}, {native.OPERATIONS["smoke"]})

    def test_a_cpu_without_transactions_is_refused_in_one_line(self):
        status, out, err = self.run_it("S-3.12", "--json", "-", FAKE_RTM="absent")
        self.assertEqual((status, out), (1, ""))
        self.assertEqual(err, "elidex: repro: --native: no hardware transaction commits here: "
                              "it is a fake without RTM; see 'elidex doctor'\n")
        self.assertEqual(self.plots(), [])

    def test_too_few_cpus(self):
        with at_once():
            status, out, err = self.run_it("S-3.1", "S-3.12", "K-F3", FAKE_CPUS="2")
        self.assertEqual((status, err), (0, ""))
        self.assertIn("not run natively: K-F3 (it needs 32 CPUs), S-3.12 (it needs 4 CPUs)", out)
        with at_once():
            status, out, err = self.run_it("S-3.12", "E-F3d", FAKE_CPUS="2")
        self.assertEqual((status, out), (2, ""))
        self.assertEqual(err, "elidex: id: no requested experiment runs natively: E-F3d (it needs places of conflicts), "
                              "S-3.12 (it needs 4 CPUs)\n")

    def test_without_hle_its_claims_are_not_judged(self):
        with at_once():
            status, out, err = self.run_it("S-3.8", "S-3.12", "S-3.0", FAKE_NO_HLE="1")
        self.assertEqual((status, err), (0, ""))
        self.assertIn("not run natively: S-3.12 (it needs HLE)", out)
        self.assertRegex(out, r"S-3\.0 ")

    def test_what_fails_is_listed_and_the_others_are_judged(self):
        status, out, err = self.run_it("S-3.8", "S-3.12", FAKE_FAILS="S-3.12", FAKE_RTM="conflict")
        self.assertEqual((status, err), (0, ""))
        self.assertIn("not run natively: S-3.12 (a section did not commit)", out)
        self.assertRegex(out, r"S-3\.8 .*agrees")
        status, out, err = self.run_it("S-3.12", FAKE_FAILS="S-3.12")
        self.assertEqual((status, out, err), (1, "", "elidex: repro: a section did not commit\n"))

    def test_a_claim_needs_its_points_and_what_is_turned_and_not_what_is_drawn_beside(self):
        one = repro.EXPERIMENTS["E-F10a"]
        needed = {*one.points, *one.turned, *one.retried}
        beside = next(point for point in one.beside if point not in needed)
        for point, why in ((one.points[0], "it failed"), (one.turned[0].turned("retries", 16), "it failed"),
                           (one.retried[0].turned("retries", 128), "it failed"), (beside, None)):
            key = point, 1
            self.assertEqual(native.broken(one, {key: {}}, {key: "it failed"}), why)
            self.assertIsNone(native.broken(one, {}, {key: "it failed"}))

    def test_answers_of_another_machine_are_refused(self):
        file = str(Path(self.directory.name) / "answers.jsonl")
        self.assertEqual(self.run_it("S-3.8", "--answers", file)[0], 0)
        self.assertEqual(self.run_it("S-3.8", "--answers", file)[0], 0)
        status, out, err = self.run_it("S-3.8", "--answers", file, FAKE_CPUS="48")
        self.assertEqual((status, out, err.count("\n")), (2, "", 1))
        self.assertIn("another machine", err)

    def test_the_document_says_what_the_machine_is(self):
        out = self.run_it("S-3.8", "--json", "-", "--facts", '{"cpu": "a CPU", "cores": 4}')[1]
        machine = json.loads(out)["machine"]
        self.assertEqual((machine["cpu"], machine["cores"], machine["native"]), ("a CPU", 4, "fake Xeon"))

    def test_another_machine_is_none(self):
        status, out, err = self.run_it("S-3.1", "--machine", "icelake-sp")
        self.assertEqual((status, out, err), (2, "", "elidex: --machine: cannot be combined with --native\n"))


@unittest.skipUnless(PROGRAM.exists(), "build/release has no elidex-native; ./dev build makes it")
class Program(unittest.TestCase):
    """The real program."""

    def ask(self, request):
        ran = subprocess.run([PROGRAM], input=json.dumps(request), capture_output=True, text=True)
        return ran.returncode, ran.stdout, ran.stderr

    def test_it_lists_what_the_scripted_one_lists(self):
        status, out, _ = self.ask({"list": "all"})
        listed, fake = json.loads(out), fake_native.host()
        self.assertEqual(status, 0)
        self.assertEqual(set(listed), set(fake))
        self.assertEqual(listed["experiments"], fake["experiments"])
        lacking = set(fake["indexes"]) - set(listed["indexes"])
        self.assertTrue(all(index.startswith("db/") for index in lacking), lacking)

    def test_its_runs_have_what_the_scripted_ones_have(self):
        for workload, dist, version in (("eunomia:0.9", "zipf:0.9", "head"), ("insert-mix:50", "uniform", "none")):
            status, out, err = self.ask({
                "index": "btree/htm-dbx", "workload": workload, "dist": dist, "keys": 1000, "threads": 1,
                "operations": 1000, "seed": 1, "set": {}, "quantum": 0, "retries": 3, "leaf_version": version})
            self.assertEqual((status, err), (0, ""))
            content = json.loads(out)
            self.assertEqual(tuple(content), fake_native.RUN)
            self.assertGreater(content["mops"], 0)
            self.assertGreater(content["bytes_per_key"], 0)

    def test_it_refuses_in_one_line(self):
        whole = {"index": "masstree", "workload": "a", "dist": "uniform", "keys": 10, "threads": 1, "operations": 1,
                 "seed": 1}
        self.assertEqual(self.ask(whole)[0], 0)
        wrong = [{**whole, name: value} for name, values in (
            ("keys", (0, -1, 10**30, "1", 1.5, True)), ("threads", (0, 100_000, 2**32 + 1, -1)),
            ("operations", (0, 10**12)), ("retries", (-1,)), ("leaf_version", ("foo", 1)), ("index", ("none", 7)),
            ("workload", ("none",)), ("dist", ("none",)), ("seed", (-1,))) for value in values]
        for request in ({}, {"experiment": "S-99"}, {"experiment": "S-3.12", "rounds": 0},
                        {"experiment": "S-3.12", "rounds": -1}, [], {"index": "none"}, *wrong):
            status, out, err = self.ask(request)
            self.assertEqual((status, out, err.count("\n")), (2, "", 1), request)
        if not json.loads(self.ask({"list": "all"})[1])["rtm_commits"]:
            status, out, err = self.ask({"experiment": "S-3.1"})
            self.assertEqual((status, out, err.count("\n")), (2, "", 1))
            self.assertIn("needs hardware transactions", err)


if __name__ == "__main__":
    unittest.main()
