#!/usr/bin/env python3
"""A substitute for the program that runs on real threads, with an RTM scripted by FAKE_RTM. "commits": regions
commit; the name of a cause: each region aborts for it once and then commits; "falls back": no region commits, and the
fallback does all operations; "absent": the CPU has none. The shares of aborted transactions in the thesis's figures are 0,
the thesis's own, and 100 %. FAKE_CPUS: how many CPUs there are. FAKE_NO_HLE: there is no HLE. FAKE_FAILS names an
experiment that fails."""

import json
import os
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[n]) for n in (0, 1, 3)]
import fake_worker  # noqa: E402
import structure_series  # noqa: E402
from papers.schrimpf.repro.structures import ABORT_RATE, ABORTED_CYCLES, TRANSACTIONAL_CYCLES  # noqa: E402

CAUSES = ("conflict", "capacity", "explicit", "interrupt", "other")
SCRIPTS = ("commits", *CAUSES, "falls back")
# What the program tells of a run (bench/native/main.cpp).
RUN = ("index", "workload", "dist", "threads", "mops", "mops_min", "mops_max", "ns_p50", "ns_p99", "ns_p999",
       "aborts_per_op", "aborts", "fallback_pct", "bytes_per_key", "seed", "keys", "operations_per_thread", "requests", "misses",
       "cpu_wait_pct")
SIMULATED = (ABORT_RATE, ABORTED_CYCLES, TRANSACTIONAL_CYCLES)  # what ends the names of series that it lacks
ONE_THREAD = ("S-3.1", "S-3.2", "S-3.3.3", "S-3.5", "S-3.6", "S-3.7", "S-3.8", "S-3.10", "S-C.1", "S-C.2", "S-C.3",
              "S-D.1", "S-D.2", "S-D.4", "S-abort")
FOUR_THREADS = ("S-2.4", "S-2.5", "S-2.6", "S-2.7", "S-3.0", "S-3.12", "S-3.13", "S-3.14", "S-3.15", "S-3.16",
                "S-3.17", "S-3.18", "S-3.19", "S-C.7", "S-C.10", "S-D.5", "S-D.6")


# Figures whose y is a share of transactions that abort.
ABORTED = ("S-3.0", "S-3.1", "S-3.2", "S-3.3.3", "S-3.5", "S-3.6", "S-3.7", "S-3.8", "S-C.1", "S-C.2")
ABORTED_PCT = {"commits": 0, "falls back": 100}


def script():
    return os.environ.get("FAKE_RTM", "commits")


def host():
    absent = script() == "absent"
    return {"native": "fake Xeon", "cpus": int(os.environ.get("FAKE_CPUS", "64")), "cpu_order": list(range(4)),
            "allocator": "none", "hle_advertised": "FAKE_NO_HLE" not in os.environ, "rtm_commits": not absent,
            "htm": "it is a fake without RTM" if absent else "transactions commit",
            "indexes": fake_worker.indexes(),
            "experiments": {**dict.fromkeys(ONE_THREAD, 1), **dict.fromkeys(FOUR_THREADS, 4)}}


def run(request):
    simulated = fake_worker.run({**request, "machine_file": "native"})
    aborts = 1.0 if script() in CAUSES else 0.0
    told = dict.fromkeys(RUN, 0) | {"mops_min": simulated["mops"], "mops_max": simulated["mops"]} | simulated | {
        "aborts_per_op": aborts, "fallback_pct": 100.0 if script() == "falls back" else 0.0,
        "aborts": {cause: 1000 * (cause == script()) for cause in CAUSES}}
    return {name: told[name] for name in RUN}


def experiment(name):
    answer = fake_worker.experiment(name)
    series = [s for s in answer["series"] if not s["name"].endswith(SIMULATED)]
    if name in ABORTED and script() in ABORTED_PCT:
        series = [{**s, "points": [(x, ABORTED_PCT[script()]) for x, _ in s["points"]]} for s in series]
    return {"id": name, "rounds": 5, "series": series, **{n: host()[n] for n in ("native", "cpus", "htm")}}


def answer(request):
    if "list" in request:
        return host()
    return experiment(request["experiment"]) if "experiment" in request else run(request)


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    if asked.get("experiment", "none") == os.environ.get("FAKE_FAILS"):
        sys.exit("a section did not commit")
    print(json.dumps(answer(asked)))
