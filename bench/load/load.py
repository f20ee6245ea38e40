#!/usr/bin/env python3
"""Measures workloads beside programs that compute, and fails where one gets less than half of its fair share.

    python3 bench/load/load.py --elidex build/release/cli/elidex [--rounds 5] [--only db/2pl] [--json FILE]

Each round runs each workload alone and beside busy programs (`--busy`, 4), with 2 threads and with 16. The fair share of T
threads beside B busy programs is T / (T + B) of the processor time that they have alone: all on at most as many processors
as there are. `of fair` is the rate beside the busy programs, divided by the rate alone and by the
fair share (median of the rounds).
A workload whose waiters yield instead of sleeping falls below a half.

Exit status: 0; 1 if a workload falls below `--least` (0.5) or makes no progress; 2 for bad flags.
"""

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

MAPS = [("ordered_map", w) for w in ("a", "b", "c", "d", "e", "f", "load", "delete", "churn")]
HASHES = [("hash_map", w) for w in ("a", "c", "load", "delete")]
DATABASES = [(d, w) for d in ("db/occ", "db/2pl")
             for w in ("tpcc", "ycsb-txn:a", "ycsb-txn:b", "ycsb-txn:f", "smallbank", "smallbank:h-store")]
SMALL = {"tpcc": ["--items", "10000", "--customers", "300"], "map": ["--keys", "100K"], "ycsb": ["--keys", "1000"]}


def flags_of(workload):
    if workload == "tpcc":
        return SMALL["tpcc"]
    if workload.startswith("ycsb"):
        return SMALL["ycsb"]
    return [] if workload.startswith("smallbank") else [*SMALL["map"], "--dist", "zipf:0.99"]


@contextlib.contextmanager
def busy_programs(count):
    """So many processes that compute, each a program of its own."""
    running = []
    try:
        for _ in range(count):
            running.append(subprocess.Popen([sys.executable, "-c", "while True: pass"]))
        yield
    finally:
        for one in running:
            one.kill()
            one.wait()


def fair_share(threads, busy, processors):
    """Of the processor time that `threads` have alone."""
    alone = min(threads, processors)
    beside = processors * threads / (threads + busy) if threads + busy > processors else threads
    return min(1.0, beside / alone)


def rate(elidex, index, workload, threads, seconds):
    command = [elidex, "bench", "--index", index, "--workload", workload, "--threads", str(threads), "--oversubscribe",
               "--seconds", str(seconds), "--repeat", "1", "--json", "-", *flags_of(workload)]
    answer = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)
    if answer.returncode != 0:
        raise RuntimeError(f"{index} {workload}: {answer.stderr.strip() or 'it failed'}")
    return json.loads(answer.stdout)["runs"][0]["mops"]


def judged(alone, beside, share):
    """The median of the rounds' ratios, of the fair share."""
    return statistics.median(b / a if a > 0 else 0.0 for a, b in zip(alone, beside)) / share


def measure(arguments):
    chosen = [(index, workload) for index, workload in MAPS + HASHES + DATABASES if arguments.only in f"{index} {workload}"]
    rates = {(i, w, t): ([], []) for i, w in chosen for t in arguments.threads}
    for round_number in range(arguments.rounds):
        for (index, workload, threads), (alone, beside) in rates.items():
            if sys.stderr.isatty():
                print(f"\r\x1b[Kround {round_number + 1}: {index} {workload}, {threads} threads", end="", file=sys.stderr)
            alone.append(rate(arguments.elidex, index, workload, threads, arguments.seconds))
            with busy_programs(arguments.busy):
                beside.append(rate(arguments.elidex, index, workload, threads, arguments.seconds))
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    processors = len(os.sched_getaffinity(0))
    return [{"index": i, "workload": w, "threads": t, "busy": arguments.busy, "mops_alone": a, "mops_beside": b,
             "of_fair_share": judged(a, b, fair_share(t, arguments.busy, processors))}
            for (i, w, t), (a, b) in rates.items()]


def report(runs, least):
    """Prints the table. Returns the runs that fall below."""
    print(f"{'index':12} {'workload':18} {'threads':>7} {'Mops/s alone':>13} {'beside':>8} {'of fair':>8}")
    for run in runs:
        alone, beside = statistics.median(run["mops_alone"]), statistics.median(run["mops_beside"])
        mark = "  too little" if run["of_fair_share"] < least else ""
        print(f"{run['index']:12} {run['workload']:18} {run['threads']:7} {alone:13.3f} {beside:8.3f} "
              f"{run['of_fair_share']:8.2f}{mark}")
    return [run for run in runs if run["of_fair_share"] < least]


def main(words):
    parser = argparse.ArgumentParser(prog="load.py")
    parser.add_argument("--elidex", required=True, type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--busy", type=int, default=4)
    parser.add_argument("--threads", type=lambda text: [int(n) for n in text.split(",")], default=[2, 16])
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--only", default="", help="a part of 'index workload'")
    parser.add_argument("--least", type=float, default=0.5)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args(words)
    runs = measure(arguments)
    if not runs:
        print(f"load.py: --only: '{arguments.only}' matches no workload "
              "(expected a part of INDEX WORKLOAD)", file=sys.stderr)
        return 2
    if arguments.json:
        arguments.json.write_text(json.dumps({"schema": 1, "load": runs}, indent=1) + "\n")
    return 1 if report(runs, arguments.least) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
