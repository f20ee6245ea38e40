"""The command as a whole, with a worker that knows the papers' answers: output, files and exit statuses."""

import contextlib
import csv
import fcntl
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "cli" / "report"))
import claims  # noqa: E402
import fake_worker  # noqa: E402
import kept_answers  # noqa: E402
import machines  # noqa: E402
import outputs  # noqa: E402
import repro  # noqa: E402
from command_case import PNG, CommandCase  # noqa: E402
import worker  # noqa: E402
from claims import BadInput  # noqa: E402

FAKE = Path(__file__).resolve().parent / "fake_worker.py"


def answers_at_once():
    """Hundreds of runs without a process for each."""
    return mock.patch.object(repro, "ask_all", lambda _, requests, *__, **___: fake_worker.run_all(requests))


def with_a_claim_more(name):
    """One that nobody has built."""
    known = repro.read_claims()
    return mock.patch.object(repro, "read_claims",
                             lambda: known | {name: claims.Claim(name, "paper 004, Fig 9.9", "invented", "1", "x")})


class Command(CommandCase):
    FAKE = FAKE

    def test_a_claim(self):
        status, out, err = self.run_it("S-3.8")
        self.assertEqual((status, err), (0, ""))
        self.assertRegex(out, r"S-3\.8 .*calibration")
        self.assertIn("0 agrees; 0 near; 0 differs; calibration (no evidence): S-3.8", out)
        self.assertIn("S-3.8.png", out)
        self.assertEqual(self.plots(), ["S-3.8.png"])
        self.assertTrue((self.out / "S-3.8.png").read_bytes().startswith(PNG))

    def test_everything(self):
        file = Path(self.directory.name) / "all.json"
        with answers_at_once(), with_a_claim_more("S-9.9"):
            status, out, err = self.run_it("all", "--json", str(file))
        self.assertEqual((status, err), (0, ""))
        self.assertIn("not built yet: S-9.9", out)
        content = json.loads(file.read_text())
        self.assertEqual({"near", "differs"} & {c["verdict"] for c in content["claims"]}, set())
        self.assertEqual({c["id"] for c in content["claims"] if c["verdict"] == "formula"},
                         {"K-T1", "K-FP1", "K-F7a", "K-F7b"})
        self.assertEqual({c["id"] for c in content["claims"] if c["verdict"] == "calibration"},
                         {"S-3.2", "S-3.7", "S-3.8", "S-3.9", "S-3.10", "S-3.13", "S-D.4"})
        self.assertEqual({len(c) for c in content["claims"]}, {7})
        self.assertGreater(len(content["runs"]), 150)
        self.assertEqual(len({(r["machine"], r["index"], r["workload"], r["dist"], r["threads"], r.get("warehouses"), r.get("think_cycles"))
                              for r in content["runs"]}),
                         len(content["runs"]))
        self.assertEqual(len(self.plots()), len(content["plots"]))
        self.assertEqual(content["not_built"], ["S-9.9"])
        self.assertTrue(content["sensitivity"] and content["series"])
        self.assertTrue(max(map(len, out.split("\n"))) <= 140)

    def test_the_claims_own_numbers_are_drawn_and_stored(self):
        with answers_at_once():
            out = self.run_it("E-F3", "E-F10", "K-FP1", "K-FP2", "S-C.7", "--json", "-")[1]
        claims_of = {c["id"]: c["values"] for c in json.loads(out)["claims"]}
        self.assertEqual([(v["paper"], v["unit"]) for v in claims_of["E-F10a"]], [(11, "x")])
        self.assertAlmostEqual(claims_of["E-F10a"][0]["here"], 18.6 / 1.7)
        self.assertEqual(claims_of["E-F3e"][0]["paper"], [87, 90])
        self.assertEqual(claims_of["S-C.7"], [])
        self.assertEqual(self.plots(), ["E-F10.png", "E-F3.png", "K-FP1.png", "K-FP2.png",
                                        "S-C.7.png"])
        rows = list(csv.DictReader(io.StringIO((self.out / "E-F10.csv").read_text())))
        own = [r for r in rows if r["series"] == "E-F10a"]
        self.assertEqual([(r["whose"], r["x_axis"]) for r in own], [("here", "x"), ("paper", "x")])
        self.assertEqual((float(own[0]["y"]), own[1]["y"]), (18.6 / 1.7, "11"))
        series = {r["series"] for r in rows if r["panel"].startswith("the released benchmark")}
        self.assertIn("Masstree", series)
        ranges = [r for r in csv.DictReader(io.StringIO((self.out / "E-F3.csv").read_text()))
                  if r["series"].startswith("E-F3e different") and r["whose"] == "paper"]
        self.assertEqual([(r["y"], r["y_min"], r["y_max"]) for r in ranges], [("", "87", "90")])

    def test_a_panel_without_data_of_the_paper_says_so(self):
        with answers_at_once():
            self.run_it("S-C.7", "S-3.8", "K-F3", "E-F12", "E-F17")
        said = {name: (self.out / f"{name}.svg").read_text().count("(no data in the paper")
                for name in ("S-C.7", "S-3.8", "K-F3", "E-F12", "E-F17")}
        self.assertEqual(said, {"S-C.7": 1, "S-3.8": 0, "K-F3": 3, "E-F12": 1, "E-F17": 0})
        for line in ("(no data in the paper's text,", "apart from the claims)"):
            self.assertIn(line, (self.out / "E-F12.svg").read_text())

    def test_the_report_reads_it(self):
        import results

        file = Path(self.directory.name) / "r.json"
        self.run_it("E-F2", "K-T1", "--json", str(file))
        content = results.read_file(str(file))
        self.assertEqual({claim["id"] for claim in content["claims"]}, {"K-T1", "E-F2a", "E-F2b"})
        self.assertIn("elidex repro draws them", content["not_shown"][0])

    def test_json_to_standard_output_alone(self):
        status, out, err = self.run_it("K-T1", "E-F2a", "--json", "-")
        self.assertEqual((status, err), (0, ""))
        content = json.loads(out)
        self.assertEqual(content["schema"], 1)
        self.assertEqual([c["id"] for c in content["claims"]], ["K-T1", "E-F2a"])
        self.assertEqual(content["machine"]["simulated"], "haswell-ep-2x10")

    def test_the_machine_beside_a_model_comes_last(self):
        with answers_at_once():
            _, out, _ = self.run_it("K-F7a", "E-F10d", "S-3.8", "--json", "-")
        machine = json.loads(out)["machine"]
        self.assertEqual(list(machine["machines"]),
                         ["haswell-ep-2x10", "haswell-i5-4670t", "haswell-i7-4770"])
        self.assertEqual(machine["sockets"], 2)

    def test_equal_seeds_give_equal_documents(self):
        first, second, other = (self.run_it("K-F7", "--json", "-", "--seed", s)[1] for s in ("3", "3", "4"))
        self.assertEqual(first, second)
        self.assertNotEqual(first, other)

    def test_refusals_leave_nothing(self):
        for wanted in ("X-1", "S-9.9", "S-3.99"):
            with with_a_claim_more("S-9.9"):
                status, out, err = self.run_it(wanted)
            self.assertEqual((status, out, err.count("\n")), (2, "", 1), wanted)
            self.assertEqual("not built yet" in err, wanted == "S-9.9")
        self.assertEqual(self.plots(), [])

    def test_a_worker_that_fails_or_refuses(self):
        status, out, err = self.run_it("S-3.8", "S-3.9", FAKE_FAILS="S-3.9")
        self.assertEqual((status, out, err), (1, "", "elidex: repro: a fiber fell off\n"))
        status, out, err = self.run_it("S-3.8", "S-3.9", FAKE_REFUSES="S-3.8")
        self.assertEqual((status, out, err), (2, "", "elidex: --machine: no such thing\n"))
        self.program.unlink()
        status, out, err = self.run_it("S-3.8")
        self.assertEqual((status, out, err.count("\n")), (1, "", 1))
        self.assertEqual(self.plots(), [])

    def test_answers_are_kept(self):
        file = Path(self.directory.name) / "answers.jsonl"
        kept = "--answers", str(file)
        status, _, err = self.run_it("S-3.8", "S-3.9", *kept, "--jobs", "1", FAKE_FAILS="S-3.9")
        self.assertEqual((status, err), (1, "elidex: repro: a fiber fell off\n"))
        lines = file.read_text().splitlines()
        ended = len(lines) - 1  # the first one names the program
        self.assertGreater(ended, 0)
        # What was written while the machine lost its power is dropped, and run again.
        file.write_text("\n".join(lines) + '\n{"request": {"exper')
        whole = self.run_it("S-3.8", "S-3.9", "--json", "-")[1]
        self.assertEqual(self.run_it("S-3.8", "S-3.9", "--json", "-", *kept), (0, whole, ""))
        self.assertEqual(len(file.read_text().splitlines()), len(lines) + 1)
        # All is there, so that nothing runs.
        again = self.run_it("S-3.8", "S-3.9", "--json", "-", *kept, FAKE_FAILS="S-3.9")
        self.assertEqual(again, (0, whole, ""))
        # With another seed all runs are others.
        status, _, err = self.run_it("S-3.9", *kept, "--seed", "2", FAKE_FAILS="S-3.9")
        self.assertEqual(status, 1)

    def test_the_key_has_what_a_machine_file_says_and_not_its_comments(self):
        def key(name, text):
            file = Path(self.directory.name) / f"{name}.machine"
            file.write_text(text)
            machines.parameters.cache_clear()
            kept_answers.described.cache_clear()
            return kept_answers.key_of({"seed": 1, "machine_file": str(file)})

        first = key("m", "sockets = 2 -- assumed\n")
        self.assertEqual(key("m", "# a better source\n\nsockets = 2 -- a paper\n"), first)
        self.assertNotEqual(key("m", "sockets = 1 -- assumed\n"), first)
        self.assertNotEqual(key("n", "sockets = 2 -- assumed\n"), first)

    def test_an_out_that_cannot_be_made_is_refused_before_the_runs(self):
        status, out, err = self.run_it("S-3.8", "--out", "/proc/plots", FAKE_FAILS="S-3.8")
        self.assertEqual((status, out), (2, ""))
        self.assertEqual(err, "elidex: --out: '/proc/plots' cannot be written (expected a directory for plots)\n")

    def test_damaged_answers_are_refused(self):
        file = Path(self.directory.name) / "answers.jsonl"
        kept = "S-3.8", "--answers", str(file)
        self.assertEqual(self.run_it(*kept)[0], 0)
        whole = file.read_text()
        head, line = whole.splitlines()[:2]
        one = json.loads(line)
        digit = next(i for i, c in enumerate(line) if c.isdigit() and i > line.index('"answer"'))
        flipped = line[:digit] + ("7" if line[digit] != "7" else "8") + line[digit + 1:]
        for damaged in (flipped, json.dumps(one | {"answer": 5}), json.dumps(one | {"answer": {}}), "5", "[" * 200_000):
            file.write_text(f"{head}\n{damaged}\n")
            for more in ((), ("--verify",)) if damaged is flipped else ((),):
                status, _, err = self.run_it(*kept, *more)
                self.assertEqual((status, err.count("\n")), (2, 1), err)
                self.assertIn(f"--answers: '{file}'", err)
        file.write_text(whole)
        self.assertEqual(self.run_it(*kept)[0], 0)

    def test_answers_without_checksums_are_taken(self):
        file = Path(self.directory.name) / "answers.jsonl"
        kept = "S-3.8", "--answers", str(file)
        self.assertEqual(self.run_it(*kept)[0], 0)
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        for one in lines:
            one.pop("crc32", None)
        file.write_text("".join(json.dumps(one) + "\n" for one in lines))
        self.assertEqual(self.run_it(*kept)[0], 0)

    def test_a_file_is_one_process_s(self):
        file = Path(self.directory.name) / "answers.jsonl"
        with open(file, "a+b") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            status, _, err = self.run_it("S-3.8", "--answers", str(file))
        self.assertEqual((status, err), (2, f"elidex: --answers: '{file}': another process uses it\n"))
        self.assertEqual(file.read_text(), "")

    def test_stored_answers_are_verified(self):
        file = Path(self.directory.name) / "answers.jsonl"
        stored = "--answers", str(file), "--verify"
        ids = "S-3.8", "S-3.9", "S-3.10"
        self.assertEqual(self.run_it(*ids, "--answers", str(file))[0], 0)
        lines = file.read_text().splitlines()
        runs = len(lines) - 1
        status, out, err = self.run_it(*ids, *stored)
        self.assertEqual((status, err), (0, ""))
        again = -(-runs // 10)
        self.assertIn(f"verified: {again} of {runs} stored runs repeated, drawn by seed 1; the same program stored them; "
                      "all are equal", out)
        # Another program may have stored them: what it says is compared.
        head = json.dumps({"program_sha256": "0" * 64})
        file.write_text("\n".join([head, *lines[1:], ""]))
        status, out, err = self.run_it(*ids, *stored, "--json", "-")
        self.assertEqual((status, err.count("\n")), (0, 2), err)
        self.assertEqual(json.loads(out)["verified"]["differ"], [])
        self.assertEqual(json.loads(out)["verified"]["stored_by"], "0" * 64)
        self.assertEqual(file.read_text().splitlines()[1:], lines[1:])
        # Other answers: named, and the status says so.
        changed = [json.loads(line) for line in lines[1:]]
        for one in changed:
            one["answer"]["more"] = 1
            del one["crc32"]
        file.write_text("\n".join([head, *map(json.dumps, changed), ""]))
        status, out, _ = self.run_it(*ids, *stored)
        self.assertEqual(status, 1)
        self.assertRegex(out, rf"another program stored them; {again} differ: S-3")

    def test_verified_says_how_far_cycles_are_apart(self):
        found = {"repeated": 3, "runs": 30, "seed": 1, "stored_by": "a", "repeated_by": "b",
                 "differ": ["x", "y"], "cycles_apart_pct": 0.123}
        self.assertTrue(repro.told_of_verified(found).endswith("another program stored them; 2 differ, by up to 0.12 % of their cycles: x; y\n"))
        found["cycles_apart_pct"] = None
        self.assertTrue(repro.told_of_verified(found).endswith("2 differ: x; y\n"))

    def test_what_cannot_be_verified_is_refused(self):
        file = Path(self.directory.name) / "answers.jsonl"
        self.assertEqual(self.run_it("S-3.8", "--answers", str(file))[0], 0)
        whole = file.read_text()
        for arguments, said in ((["S-3.8"], "--verify: --answers is missing (expected --answers FILE)"),
                                (["S-3.8", "S-3.9", "--answers", str(file)], "(expected all with --verify)"),
                                (["S-3.8", "--answers", str(self.out / "none")], "No such file"),
                                (["S-3.8", "--native", "--answers", str(file)], "--verify: cannot be combined with --native")):
            status, out, err = self.run_it("--verify", *arguments)
            self.assertEqual((status, out, err.count("\n")), (2, "", 1), err)
            self.assertIn(said, err)
        file.write_text(whole + '{"key"')
        status, _, err = self.run_it("S-3.8", "--verify", "--answers", str(file))
        self.assertEqual((status, err), (2, f"elidex: --answers: '{file}': not a complete --answers file\n"))
        self.assertEqual(self.plots(), ["S-3.8.png"])

    def test_one_run_in_ten_is_drawn_by_the_seed(self):
        requests = {n: {"experiment": str(n)} for n in range(41)}
        drawn = kept_answers.repeated(requests, 7)
        self.assertEqual(len(drawn), 5)
        self.assertEqual(drawn, kept_answers.repeated(dict(reversed(requests.items())), 7))
        self.assertNotEqual(drawn, kept_answers.repeated(requests, 8))
        self.assertEqual(kept_answers.repeated({}, 1), {})

    def test_answers_of_something_else_are_refused(self):
        file = Path(self.directory.name) / "answers.jsonl"
        for content in ("a recipe", "a recipe\n", "[]\n", "{}\n", '{"program_sha256": "0"}\n'):
            file.write_text(content)
            status, out, err = self.run_it("S-3.8", "--answers", str(file))
            self.assertEqual((status, out, err.count("\n")), (2, "", 1), err)
            self.assertEqual(file.read_text(), content)
        status, _, err = self.run_it("S-3.8", "--answers", str(self.out / "x" / "y"))
        self.assertEqual((status, err.count("\n")), (2, 1))
        self.assertEqual(self.plots(), [])

    def test_answers_of_another_machine_library_are_refused(self):
        file, library = (Path(self.directory.name) / name for name in ("answers.jsonl", "library"))
        library.write_text("a machine")
        once = "S-3.8", "--answers", str(file)
        self.assertEqual(self.run_it(*once, FAKE_LIBRARY=str(library))[0], 0)
        self.assertEqual(self.run_it(*once, FAKE_LIBRARY=str(library))[0], 0)
        library.write_text("a changed machine")
        status, _, err = self.run_it(*once, FAKE_LIBRARY=str(library))
        self.assertEqual(status, 2)
        self.assertIn("written by another build", err)

    def test_a_package_that_is_missing(self):
        for error, said in ((ModuleNotFoundError("x", name="matplotlib"), "matplotlib is missing"),
                            (ImportError("x"), "a package cannot be loaded")):
            with mock.patch.object(repro, "run", side_effect=error):
                status, out, err = self.run_it("S-3.8")
            self.assertEqual((status, out, err),
                             (1, "", f"elidex: repro: {said} (expected python3 with matplotlib, "
                                     "numpy and pandas; set ELIDEX_PYTHON to another Python)\n"))

    def test_an_index_that_is_not_there(self):
        status, out, err = self.run_it("E-F10a", "E-F11", FAKE_LACKS="euno-btree/leaf-lock")
        self.assertEqual((status, out, err.count("\n")), (2, "", 1))
        self.assertRegex(err, "E-F10a, E-F11 .*euno-btree/leaf-lock")
        with answers_at_once():
            status, out, err = self.run_it("E-F3a", "E-F11", FAKE_LACKS="euno-btree/leaf-lock")
        self.assertEqual((status, err), (0, ""))
        self.assertIn("not built yet: E-F11 (needs euno-btree/leaf-lock)", out)
        with answers_at_once():  # euno-btree+ is drawn beside, no more
            status, out, _ = self.run_it("E-F10c", "--json", "-", FAKE_LACKS="euno-btree+")
        self.assertEqual(status, 0)
        self.assertEqual(json.loads(out)["claims"][0]["verdict"], "agrees")

    def test_a_claim_runs_what_it_needs_alone(self):
        status, out, _ = self.run_it("E-F10d", "--json", "-")
        self.assertEqual(status, 0)
        self.assertEqual({(r["index"], r["dist"]) for r in json.loads(out)["runs"]},
                         {(index, "zipf:0.5") for index in ("euno-btree/leaf-lock", "masstree", "btree/htm-dbx")})
        self.assertEqual(self.plots(), ["E-F10.png"])

    def test_another_machine_has_plots_of_its_own(self):
        for machine in ("haswell-ep-2x10", "icelake-sp-2x32"):
            with answers_at_once():
                self.run_it("E-F11", "S-3.8", "--machine", str(machines.MACHINES / f"{machine}.machine"))
        self.assertEqual(self.plots(), ["E-F11-icelake-sp-2x32.png", "E-F11.png", "S-3.8-haswell-ep-2x10.png",
                                        "S-3.8-icelake-sp-2x32.png"])

    def test_outputs_that_cannot_be_written(self):
        self.out.write_text("a file")
        self.assertEqual(self.run_it("K-T1")[0], 2)
        below = str(self.out / "x")
        with mock.patch.object(outputs, "check_directory"):  # as if it could be made
            self.assertEqual(self.run_it("S-3.8", "--out", below),
                             (1, "", f"elidex: repro: --out: '{below}' cannot be made: Not a "
                                     "directory (expected a directory for plots)\n"))
        self.out.unlink()
        for bad in (self.directory.name, self.directory.name + "/none/x.json"):
            status, _, err = self.run_it("K-T1", "--json", bad)
            self.assertEqual((status, err.startswith("elidex: --json:")), (2, True))
        self.assertEqual(self.run_it("S-3.8", "--machine", "/none.machine")[0], 2)


class Files(unittest.TestCase):
    def test_all_or_nothing(self):
        with tempfile.TemporaryDirectory() as directory:
            old = Path(directory) / "old"
            old.write_text("old")
            with self.assertRaises(OSError):
                outputs.write_whole({str(old): b"new", directory: b"a directory"})
            self.assertEqual(old.read_text(), "old")
            self.assertEqual(os.listdir(directory), ["old"])
            link = Path(directory) / "link"
            link.symlink_to(old)
            outputs.write_whole({str(link): b"new"})
            self.assertTrue(link.is_symlink())
            self.assertEqual(old.read_text(), "new")

    def test_no_numbers_that_json_lacks(self):
        with self.assertRaises(ValueError):
            outputs.json_text({"x": float("nan")})


def alive(process):
    """Not merely waiting for its parent to take note of its end."""
    try:
        return "\nState:\tZ" not in Path(f"/proc/{process}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def takes_signals():
    """In a child before its program begins: under nohup, or behind '&', signals are ignored."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)


class EndedBySignal(unittest.TestCase):
    """The script in a process of its own, ended while two simulated runs go on."""

    def end(self, number, *arguments):
        directory = Path(self.enterContext(tempfile.TemporaryDirectory()))
        (directory / "running").mkdir()
        program = directory / "worker"
        program.write_text(f"#!/bin/sh\nexec '{sys.executable}' '{FAKE}'\n")
        program.chmod(0o755)
        script = Path(repro.__file__).resolve()
        command = [sys.executable, script, "--worker", program, "--out", directory / "plots", "--jobs", "2", *arguments,
                   "--json", directory / "results.json"]
        with subprocess.Popen(command, env=os.environ | {"FAKE_HANGS": str(directory / "running")},
                              stderr=subprocess.PIPE, preexec_fn=takes_signals) as ran:
            while len(runs := list((directory / "running").iterdir())) < 2 and ran.poll() is None:
                time.sleep(0.01)
            ran.send_signal(number)
            try:
                _, err = ran.communicate(timeout=60)
            finally:
                ran.kill()  # or the test would wait for it
        left = [run.name for run in runs if alive(run.name)]
        for run in left:
            os.kill(int(run), signal.SIGKILL)
        self.assertEqual((ran.returncode, err, len(runs), left), (-number, b"", 2, []))
        self.assertEqual(sorted(p.name for p in directory.iterdir()), ["running", "worker"])

    def test_no_run_and_no_file_is_left(self):
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
            with self.subTest(number):
                self.end(number, "S-3.8", "S-3.9")

    def test_a_signal_that_comes_while_the_threads_start(self):
        """An exception in Thread.start() makes the pool forget the thread, and so the run that it has begun."""
        with tempfile.TemporaryDirectory() as directory:
            running = Path(directory) / "running"
            running.mkdir()
            program = Path(directory) / "program.py"
            program.write_text(
                f"import os, signal, sys, threading, time\nfrom pathlib import Path\n"
                f"sys.path.insert(0, {str(Path(repro.__file__).parent)!r})\nimport ending, worker\n"
                "start = threading.Thread.start\n"
                "def slow_start(thread):\n"
                "    start(thread)\n"
                f"    while not list(Path({str(running)!r}).iterdir()):\n"
                "        time.sleep(0.01)\n"
                "    os.kill(os.getpid(), signal.SIGTERM)\n"
                "threading.Thread.start = slow_start\n"
                f"sys.exit(ending.by_signal(lambda: worker.ask_all({str(FAKE)!r}, {{'a': {{'experiment': 'S-3.8'}}}}, 1)))\n")
            ran = subprocess.run([sys.executable, program], env=os.environ | {"FAKE_HANGS": str(running)},
                                 stderr=subprocess.PIPE)
            left = [run.name for run in running.iterdir() if Path(f"/proc/{run.name}").exists()]
            for run in left:
                os.kill(int(run), signal.SIGKILL)
            self.assertEqual((ran.returncode, ran.stderr, left), (-signal.SIGTERM, b"", []))

    def test_a_signal_while_files_are_written_comes_behind_them(self):
        with tempfile.TemporaryDirectory() as directory:
            program = Path(directory) / "program.py"
            program.write_text(
                f"import os, signal, sys\nsys.path.insert(0, {str(Path(repro.__file__).parent)!r})\nimport ending\n"
                "def main():\n"
                "    with ending.put_off():\n"
                "        os.kill(os.getpid(), signal.SIGTERM)\n"
                "        print('written', flush=True)\n"
                "    print('not ended')\n"
                "sys.exit(ending.by_signal(main))\n")
            ran = subprocess.run([sys.executable, program], capture_output=True, text=True)
            self.assertEqual((ran.returncode, ran.stdout, ran.stderr), (-signal.SIGTERM, "written\n", ""))


class Worker(unittest.TestCase):
    def test_runs_at_the_same_time(self):
        both = threading.Barrier(2, timeout=20)  # breaks unless two are asked at once
        answers = worker.ask_all("", {n: {"experiment": n} for n in "ab"}, 2,
                                 lambda _, r: (both.wait(), r["experiment"])[1])
        self.assertEqual(answers, {"a": "a", "b": "b"})

    def test_the_first_failure_ends_it(self):
        asked = []

        def ask(_, request):
            asked.append(request["experiment"])
            raise BadInput("no")

        with self.assertRaises(BadInput):
            worker.ask_all("", {n: {"experiment": f"S-{n}"} for n in range(100)}, 1, ask)
        self.assertLess(len(asked), 100)

    def loading(self, **more):
        made = {"index": "delta/rtm", "workload": "insert-mix:5", "dist": "uniform", "threads": 8, "seed": 1,
                "set": {}, "quantum": 0, "keys": 1_000_000, "operations": 2000, "machine_file": "x.machine"}
        return made | more

    def test_runs_of_one_load(self):
        requests = {"a": self.loading(), "b": self.loading(index="delta/hle"),
                    "c": self.loading(threads=4, workload="insert-mix:100", set={"abort_cycles": 80}),
                    "d": self.loading(set={"hle": 0}), "e": self.loading(seed=2), "f": self.loading(retries=4),
                    "g": self.loading(machine_file="y.machine"), "h": self.loading(quantum=200),
                    # hardly longer to load than to run, and a workload that fills the map by itself
                    "i": self.loading(operations=100_000), "j": self.loading(workload="load"),
                    "k": {"experiment": "S-3.8"}}
        alone = [[n] for n in "bdefgijk"]
        self.assertCountEqual(worker.in_groups(requests, True), [["a", "c", "h"], *alone])
        self.assertCountEqual(worker.in_groups(requests, False), [[n] for n in requests])

    def test_they_answer_as_runs_apart(self):
        requests = {n: self.loading(threads=n) for n in (1, 2, 4)} | {"s": {"experiment": "S-3.8"}}
        apart, together = (worker.ask_all(str(FAKE), requests, 2, sharing=sharing) for sharing in (False, True))
        self.assertEqual(apart, together)
        self.assertEqual(list(apart), list(together))

    def test_one_of_them_fails(self):
        requests = {n: self.loading(threads=n) for n in (1, 2)}
        with mock.patch.dict(os.environ, FAKE_FAILS="delta/rtm"), self.assertRaisesRegex(
                worker.WorkerFailed, "^a fiber fell off$"):
            worker.ask_all(str(FAKE), requests, 1, sharing=True)

    def test_each_is_kept_as_it_ends(self):
        requests = {n: self.loading(threads=n) for n in (1, 2, 4)}
        with tempfile.TemporaryDirectory() as directory, mock.patch.object(
                kept_answers, "key_of", lambda r: str(r["threads"])):
            program = Path(directory) / "two_of_three.py"
            program.write_text("#!/usr/bin/env python3\nfor n in 1, 2: print('{\"threads\": %d}' % n)\n")
            program.chmod(0o755)
            with kept_answers.KeptAnswers(Path(directory) / "kept", [FAKE]) as kept:
                with self.assertRaisesRegex(worker.WorkerFailed, "the run gave no JSON"):
                    worker.ask_all(str(program), requests, 1, kept=kept, sharing=True)
            with kept_answers.KeptAnswers(Path(directory) / "kept", [FAKE]) as kept:
                self.assertEqual([kept.answer_of(r) for r in requests.values()], [{"threads": 1}, {"threads": 2}, None])

    def test_a_worker_of_several_that_says_much_or_refuses_early(self):
        with tempfile.TemporaryDirectory() as directory:
            program = Path(directory) / "program.py"
            for says, many, raised, told in (("sys.stderr.write('x' * 200_000)", 2, worker.WorkerFailed, "no JSON"),
                                             ("sys.exit('--keys: too many')", 2000, worker.WorkerFailed, "too many"),
                                             ("print('--keys: no', file=sys.stderr); os._exit(2)", 2000, BadInput, "no")):
                program.write_text(f"#!/usr/bin/env python3\nimport os, sys\n{says}\n")
                program.chmod(0o755)
                requests = {n: self.loading(threads=n + 1, operations=1) for n in range(many)}
                with self.assertRaisesRegex(raised, told):
                    worker.ask_all(str(program), requests, 1, sharing=True)

    def test_a_bar_on_a_terminal_alone(self):
        for terminal, term, drawn in ((True, "xterm", True), (True, "dumb", False), (False, "xterm", False)):
            stream = io.StringIO()
            stream.isatty = lambda t=terminal: t
            with mock.patch.dict(os.environ, {"TERM": term}):
                bar = worker.Progress(2, stream)
                bar.step("S-3.1")
                bar.write("")
            self.assertEqual("50 %" in stream.getvalue(), drawn)


if __name__ == "__main__":
    unittest.main()
