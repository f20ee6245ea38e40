"""The gate fails for what is slower, and does not for two samples of the same thing. Nothing is measured here: the
rounds are drawn at random, with equal seeds each time."""

import contextlib
import io
import json
import random
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[1]), str(HERE.parents[2] / "against")]
import against  # noqa: E402
import gate  # noqa: E402
import ratios  # noqa: E402
import rounds  # noqa: E402
from shapes import flags_of  # noqa: E402

OURS = {row.index for row in rounds.ROWS}


class FakeBench:
    """Answers the gate's flags as `elidex bench` would on a machine that gets faster and slower as time goes by."""

    def __init__(self, seed, slower=None, slower_calls=None, cpu="Some CPU", wait_pct=0.0):
        self.random = random.Random(seed)
        self.slower = slower or (lambda index, workload, threads, flag: 1.0)
        self.slower_calls = slower_calls  # as many calls are slower, then none
        self.cpu, self.wait_pct = cpu, wait_pct
        self.machine_now = 1.0
        self.calls = []

    def __call__(self, flags):
        words = [word for word in flags if word != "--oversubscribe"]  # the only flag without a value
        flag = dict(zip(words[::2], words[1::2]))
        self.calls.append(flag)
        self.machine_now *= self.random.lognormvariate(0, 0.03)  # what the ratio of a round cancels
        runs = []
        for workload in flag["--workload"].split(","):
            for index in flag["--index"].split(","):
                threads = int(flag["--threads"])
                rate = 2.0 * threads * self.machine_now * self.random.lognormvariate(0, 0.06)
                if index in OURS and (self.slower_calls is None or len(self.calls) <= self.slower_calls):
                    rate *= self.slower(index, workload, threads, flag)
                runs.append({"index": index, "workload": workload, "threads": threads, "key_type": "u64", "seed": 1,
                             "bytes_per_key": 25.0, "mops": rate, "cpu_wait_pct": self.wait_pct}
                            | ({"order": "random"} if workload == "load" else {}))
        return {"schema": 1, "commit": "abc", "machine": {"cpu": self.cpu, "cpu_signature": "1"}, "runs": runs}


CALLS_IN_A_ROUND = sum(len(list(plan.commands())) for plan in rounds.PLANS)


class Intervals(unittest.TestCase):
    def test_ranks_are_those_of_the_sign_test(self):
        # From the binomial distribution; printed tables have the same.
        self.assertEqual([ratios.rank_of_bounds(n) for n in (5, 6, 8, 9, 12, 15, 20, 25)], [0, 1, 1, 2, 3, 4, 6, 8])
        self.assertEqual(ratios.ROUNDS_MIN, 6)

    def test_one_wild_round_moves_nothing(self):
        calm = [1.0 + i / 100 for i in range(12)]
        wild = [0.01, *calm[1:]]
        self.assertEqual(ratios.figure(calm), ratios.figure(wild))

    def test_the_median_lies_inside_as_often_as_promised(self):
        draws = random.Random(1)
        held = 0
        for _ in range(2000):
            found = ratios.figure([draws.lognormvariate(0, 0.5) for _ in range(12)])
            held += found.low <= 1.0 <= found.high
        self.assertGreater(held / 2000, 0.94)

    def test_what_the_noise_hides(self):
        stored, now = ratios.Figure(1.0, 0.9, 1.1), ratios.Figure(1.1, 1.0, 1.2)
        hidden = ratios.drop_found_pct(stored, now)
        self.assertAlmostEqual(hidden, 25.0)
        for pct, words in ((hidden - 1, "same"), (hidden + 1, "slower")):
            left = 1 - pct / 100
            lower = ratios.Figure(now.median * left, now.low * left, now.high * left)
            self.assertEqual(ratios.verdict(stored, lower), words)

    def test_a_peer_without_the_workload_is_asked_for_another(self):
        row = ratios.Row("ordered_map", "1M random u64", "multi-get:32", 2, "absl+mutex")
        runs = {row.series(): [6.0] * 6, ratios.Series("absl+mutex", "1M random u64", "c", 1): [2.0] * 6}
        self.assertEqual(ratios.ratios(runs, row), [3.0] * 6)

    def test_a_row_without_a_peer_is_measured_against_the_machine(self):
        row = ratios.Row("db/silo", "1 warehouse", "tpcc", 2, "")
        self.assertEqual(ratios.ratios({row.series(): [3.0] * 6, ratios.MACHINE: [2.0] * 6}, row), [1.5] * 6)


class Rows(unittest.TestCase):
    def test_no_two_rows_are_the_same(self):
        self.assertEqual(len(set(rounds.ROWS)), len(rounds.ROWS))

    def test_all_rows_of_the_table_of_goals_are_here(self):
        there = {(row.index, *flags_of(row.what), row.workload, row.threads) for row in rounds.ROWS}
        for plan in against.PLANS:
            for workload in plan.goals:
                self.assertIn((plan.index, *flags_of(plan.what), workload, plan.threads), there)


class WholeCommand(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = Path(directory.name)
        self.stored = self.directory / "gate.json"

    def run_gate(self, bench, *more):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = gate.main(["--elidex", "elidex", "--stored", str(self.stored),
                                "--results", str(self.directory / "new"), *more], lambda _elidex: bench)
        return status, out.getvalue(), err.getvalue()

    def save(self, seed=1):
        self.assertEqual(self.run_gate(FakeBench(seed), "--save")[0], 0)

    def change(self, edit):
        content = json.loads(self.stored.read_text())
        edit(content)
        self.stored.write_text(json.dumps(content))

    def assert_refused(self, words):
        bench = FakeBench(2)
        status, out, err = self.run_gate(bench)
        self.assertEqual((status, out, bench.calls), (2, "", []))
        self.assertEqual(err.count("\n"), 1, err)
        self.assertIn(words, err)

    def test_equal_runs_pass(self):
        second_looks = 0
        for seed in range(0, 60, 2):
            self.save(seed)
            status, out, _ = self.run_gate(FakeBench(seed + 1))
            self.assertEqual(status, 0, out)
            second_looks += "look slower" in out
        self.assertLess(second_looks, 3)  # they cost minutes

    def test_canary_a_third_slower_everywhere_fails_everywhere(self):
        self.save()
        status, out, _ = self.run_gate(FakeBench(2, slower=lambda *_: 0.7))
        self.assertEqual(status, 1)
        self.assertEqual(out.count("\nslower: "), len(rounds.ROWS), out)

    def test_canary_ratios_out_of_reach_fail(self):
        self.save()
        self.change(lambda content: [run.update(raw_mops=[10 * rate for rate in run["raw_mops"]])
                                     for run in content["runs"] if run["index"] in OURS])
        status, out, _ = self.run_gate(FakeBench(2))
        self.assertEqual((status, out.count("\nslower: ")), (1, len(rounds.ROWS)), out)

    def test_canary_one_slower_row_is_named_alone(self):
        self.save()
        def slower(index, workload, threads, flag):
            one = index == "ordered_map" and workload == "multi-get:32" and threads == 2 and flag["--keys"] == "10M"
            return 0.7 if one else 1.0
        bench = FakeBench(2, slower=slower)
        status, out, _ = self.run_gate(bench)
        self.assertEqual((status, out.count("\nslower: ")), (1, 1), out)
        self.assertIn("\nslower: ordered_map: 10M random u64, multi-get:32, 2 threads: ", out)
        # The second look takes twice the rounds, of what this row needs and nothing else.
        again = bench.calls[gate.ROUNDS * CALLS_IN_A_ROUND:]
        self.assertEqual(len(again), gate.MORE * gate.ROUNDS * 2)
        self.assertEqual({(call["--keys"], call["--workload"]) for call in again},
                         {("10M", "load,c,multi-get:32")})

    def test_the_second_look_at_a_row_without_a_peer_measures_the_machine(self):
        self.save()
        bench = FakeBench(2, slower=lambda index, *_: 0.7 if index == "db/silo" else 1.0)
        status, out, _ = self.run_gate(bench)
        self.assertEqual((status, out.count("\nslower: db/silo: ")), (1, 2), out)
        again = bench.calls[gate.ROUNDS * CALLS_IN_A_ROUND:]
        self.assertEqual({(call["--index"], call["--workload"]) for call in again},
                         {("db/silo", "tpcc"), ("ordered_map,absl+mutex", "load,c"), ("ordered_map", "load,c")})

    def test_what_is_slower_only_once_passes(self):
        self.save()
        bench = FakeBench(2, slower=lambda *_: 0.7, slower_calls=gate.ROUNDS * CALLS_IN_A_ROUND)
        status, out, _ = self.run_gate(bench)
        self.assertEqual(status, 0, out)
        self.assertIn("same, measured twice", out)

    def test_a_faster_map_passes(self):
        self.save()
        status, out, _ = self.run_gate(FakeBench(2, slower=lambda *_: 1.5))
        self.assertEqual((status, out.count("faster")), (0, len(rounds.ROWS)), out)

    def test_another_machine_and_a_busy_one_are_named(self):
        self.save()
        status, out, _ = self.run_gate(FakeBench(2, cpu="Another CPU", wait_pct=7.0))
        self.assertEqual(status, 0, out)
        self.assertIn("note: stored on another CPU, Some CPU", out)
        self.assertIn("other programs kept the threads waiting", out)

    def test_no_stored_file(self):
        self.assert_refused("does not exist")

    def test_stored_files_of_another_kind(self):
        self.stored.write_text("{")
        self.assert_refused("is not JSON")
        for text in ("[]", "{}", '{"schema": 1, "runs": []}', '{"schema": 1, "gate": {"form": 0}, "runs": []}'):
            self.stored.write_text(text)
            self.assert_refused(f"is not a gate file of form {rounds.FORM}")

    def test_stored_files_with_other_rows_or_rounds(self):
        self.save()
        good = self.stored.read_text()
        self.change(lambda content: content["runs"].pop(0))
        self.assert_refused("no run of 'ordered_map: 1M random u64, load, 1 thread'")
        self.stored.write_text(good)
        self.change(lambda content: content["runs"].append(content["runs"][0] | {"workload": "d"}))
        self.assert_refused("no longer measures, 'ordered_map: 1M random u64, d, 1 thread'")
        self.stored.write_text(good)
        self.change(lambda content: content["runs"][0]["raw_mops"].pop())
        self.assert_refused("has 23 rounds, and its yardstick 'absl+mutex: 1M random u64, load, 1 thread' 24")
        self.stored.write_text(good)
        self.change(lambda content: content["runs"][0]["raw_mops"].__setitem__(0, 0))
        self.assert_refused("not a positive number")
        self.stored.write_text(good)
        self.change(lambda content: [run.update(raw_mops=run["raw_mops"][:5]) for run in content["runs"]])
        self.assert_refused("expected at least 6")

    def test_a_tool_that_fails_or_is_not_there(self):
        self.save()
        for elidex, words in (("/nowhere/elidex", "No such file"), ("false", "status 1"), ("echo", "no results")):
            status, _, err = self.run_gate(rounds.bench_with(elidex))
            self.assertEqual((status, err.count("\n")), (2, 1), err)
            self.assertIn(words, err)

    def test_too_few_rounds_are_refused(self):
        with self.assertRaises(SystemExit) as ended:
            self.run_gate(FakeBench(1), "--rounds", "5")
        self.assertEqual(ended.exception.code, 2)


if __name__ == "__main__":
    unittest.main()
