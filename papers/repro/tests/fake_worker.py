#!/usr/bin/env python3
"""Stands in for the program on the simulated machine: it answers with the thesis's own figures, and with runs that have
what paper 003 says. FAKE_FAILS names an experiment that fails, or the index of a run among several; FAKE_REFUSES an
experiment that is refused, FAKE_LACKS indexes that are not there. FAKE_HANGS names a directory: each run leaves a file with its process's number there and does
not end."""

import json
import os
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[n]) for n in (0, 1, 3)]
import experiments  # noqa: E402
import structure_series  # noqa: E402
from papers.eunomia.repro import runs as er  # noqa: E402
from papers.schrimpf.repro import txbench as tr  # noqa: E402
from papers.schrimpf.repro.runs import read_figure  # noqa: E402

NOT_DIGITISED = {
    "K-F7": {"8 ways, machine": [(20, 0), (320, 1)], "4 ways, machine": [(47, 0.06), (93, 0.66)]},
    "S-2.2": {"TAS": [(2, 75), (3, 88), (4, 94)], "TAS-T": [(2, 5), (3, 20), (4, 30)]},
    "S-abort": {"aborted": [(0, 160), (16, 200), (256, 1000)], "committed": [(0, 12), (16, 40), (256, 500)]},
    "S-3.0": {"lock in the read set": [(0, 0)], "lock not read": [(0, 3)]},
    "S-3.3.3": {name: [(448, 0), (512, 0), (576, 100)] for name in ("read", "written")},
    "S-3.4": {"lock: transactional of all cycles, %": [(1, 75), (2, 75), (4, 75)],
              "lock: aborted transactions, %": [(1, 0), (2, 0), (4, 0)],
              "try and pause: transactional of all cycles, %": [(1, 75), (2, 75), (4, 75)],
              "try and pause: aborted transactions, %": [(1, 0), (2, 60), (4, 96)]},
    "S-C.7": {"all locks": [(1000, 2), (10_000, 20)], "partitioned": [(1000, 1.5), (10_000, 15)]},
    "S-C.1": {"stack": [(16, 0), (256, 0)], "heap, recycled": [(16, 100), (256, 100)],
              "heap, new pages": [(16, 100), (256, 100)]},
    "S-C.2": {"random write": [(0, 0), (64, 100)], "random read": [(0, 0), (64, 0)]},
}


def experiment(name):
    series = NOT_DIGITISED.get(name) or structure_series.experiment(name) or read_figure(name.removeprefix("S-"))
    if name in ("S-3.5", "S-3.6"):
        series["step size 3"] = series["step size 1"]
    return {"id": name, "machine": "fake", "series": [{"name": n, "points": p} for n, p in series.items()]}


LISTS = {er.EUNO_LIST: 1, er.LOCK_LIST: 3.47, er.LOCK_FREE_LIST: 2.10}  # how many times slower than Euno's
STEPS = dict(zip((*er.TREE_STEPS, *er.LIST_STEPS), (2 * 1.83, 2 * 4.58, 2 * 11.1, 3.46 * 2.74, 3.46 * 6.55,
                                                    3.46 * 7.55)))
TREE_ABORTS = {0.5: 0.5, 0.9: 23.5, 0.99: 60}
EXTRA_MEMORY = {0: 2.44, 1: 7.64}
TREE_CONFLICTS = [{"where": "leaf", "true_sharing": 9, "false_sharing": 88},
                  {"where": "leaf head", "true_sharing": 0, "false_sharing": 6}]
LIST_CONFLICTS = [{"where": "node head", "true_sharing": 5, "false_sharing": 78},
                  {"where": "node", "true_sharing": 0, "false_sharing": 17}]


def throughput(index, theta, threads):
    """What the paper says, and what fits between."""
    share, four, eight = threads / 16, min(threads, 4) / 4, min(threads, 8) / 8
    if index in STEPS and (theta, threads) == (0.9, 20):
        return STEPS[index]
    if index in LISTS:
        return 10 / LISTS[index] * (four if theta == 0.99 and index != er.EUNO_LIST else share)
    if index == er.HTM_LIST:
        return 10 * share if theta < 0.6 else 3.46 * four
    if index == er.HTM_TREE:
        return 30 * share if theta < 0.6 else (1.7 if theta == 0.99 else 2) * four
    if index == er.HTM_MASSTREE:
        return 5 * eight
    if index == er.MASSTREE:
        return (19 if theta < 0.6 else 18.6 / 1.65) * share
    return (26 if theta < 0.6 else 18.6) * share


def aborts_of(index, theta, request):
    if index == er.HTM_TREE:  # 11 % less without accesses to one record, 8 % less without versions
        less = 0.89 if request["workload"].startswith("eunomia-apart:") else 1
        return TREE_ABORTS.get(theta, 0.4) * (less if request["leaf_version"] == "head" else 0.92)
    return {er.EUNO_TREE: 1.9, er.HTM_LIST: 2.2 if theta == 0.99 else 0.1, er.EUNO_LIST: 0.1}.get(index, 0)


def memory_of(index, theta, workload):
    if index == er.EUNO_LIST:
        return 101.5 if workload.count(":") > 1 else 100.5
    return 100 + EXTRA_MEMORY.get(theta, 5) if index == er.EUNO_TREE else 100


def karnagel(request):
    """What paper 001 says, and what fits between."""
    index, lock = request["index"].split("/")
    inserts, threads = int(request["workload"].removeprefix("insert-mix:")), request["threads"]
    sockets = "2x8" in request["machine_file"]
    spin = 1.0
    read = {"spin": spin, "none": threads * 1.02, "rtm": 0.95 * min(threads, 8), "hle": 0.8 * min(threads, 8),
            "rtm-noretry": 0.8 * min(threads, 8), "rw": threads if threads <= 8 else 9}[lock]
    if lock == "rw" and index == "btree":
        read *= 0.8 if threads >= 8 else 1
    if lock == "rtm" and index == "btree":
        read = 1.01 * threads
    if lock == "rtm" and index == "delta" and not sockets:
        read *= 0.9
    write = {"spin": spin, "rw": spin, "rtm": 4.6 * threads / 8}.get(lock, 2)
    keeps = (1 - inserts / 100) ** 4 if lock == "rw" else 1 - inserts / 100
    mops = write + (read - write) * keeps
    taken = {("delta", 8): (2.5, 75), ("delta", 4): (1, 3.6), ("delta-tuned", 8): (0.1, 1.3),
             ("delta-tuned", 4): (0.1, 1.7)}.get((index, threads), (0, 0))
    if (index, lock, inserts) == ("delta", "rtm", 2):
        mops = 1.001 * (1 + (threads - 1) * 0.98**4)
    return {"index": request["index"], "workload": request["workload"], "dist": "uniform", "threads": threads,
            "machine": Path(request["machine_file"]).stem, "mops": mops, "aborts_per_op": 0.1, "wasted_pct": 1, "seed": request["seed"], "lines_per_commit": {"delta": 93, "delta-tuned": 47}.get(index, 20),
            "fallback_pct": taken[0] + (taken[1] - taken[0]) * inserts / 100,
            "conflicts": [{"where": "dictionary size", "true_sharing": 3, "false_sharing": 0},
                          {"where": "leaf", "true_sharing": 0, "false_sharing": 1}]}


# Euno-DBX over DBX and Silo, so that least, most and average are the paper's.
OVER_DBX = {"by warehouses": {1: 12.14, 16: 1.07}, "by threads": {1: 1.6, 16: 12.14, 20: 16.26}}
OVER_SILO = {"by warehouses": {1: 2.01, 16: 1.42}, "by threads": {1: 1.78, 16: 2.01, 20: 2.35}}


def tpcc(request):
    """Figure 18 by the paper, and what fits between."""
    index, warehouses, threads = request["index"], request["warehouses"], request["threads"]
    figure, place = ("by threads", threads) if warehouses == 1 else ("by warehouses", warehouses)
    mops = 0.337 * threads / 20 * (1 + (warehouses > 1))
    if "htm-btree" in index:
        mops /= OVER_DBX[figure].get(place, 7.675 if warehouses == 1 else 1.597)
    elif index == er.SILO:
        mops /= OVER_SILO[figure].get(place, 1.905 if warehouses == 1 else 1.607)
    return {"index": index, "workload": "tpcc", "dist": request["dist"], "threads": threads, "warehouses": warehouses,
            "machine": Path(request["machine_file"]).stem, "mops": mops, "aborts_per_op": 1, "wasted_pct": 10,
            "fallback_pct": 1, "seed": request["seed"], "requests": 100, "repeated": 10,
            "commit_regions": {"commits": 0 if index == er.SILO else 90, "fallback_pct": 10},
            "conflicts": [{"where": "leaf", "true_sharing": 1, "false_sharing": 8}]}


# Over unmodified; transactional cycles and those of them that abort, in %.
TXBENCH = {tr.UNMODIFIED: (1, 0, 0), tr.HLE: (0.95, 5, 35), tr.RETRIED: (0.9, 4.9, 35), tr.PTHREAD: (0.94, 2, 49),
           tr.LOCK_MUTEX: (0.98, 1, 4), tr.LATCHES: (1, 0.1, 4), tr.SHARDED: (1.2, 3, 5)}
# By clients: thousands of transactions a second, microseconds of the read-update transaction.
TXBENCH_TPS = {1: 10, 2: 19, 4: 37, 8: 70, 16: 120, 32: 140, 64: 140, 256: 100}
TXBENCH_US = {1: 30, 2: 30, 4: 30, 8: 30, 16: 35, 32: 180, 64: 360, 256: 3600}


def txbench(request):
    """Figures 5.2 to 5.6 by the thesis; its loop and the library's do the same."""
    index, clients = request["index"].removesuffix("-tas-t"), request["threads"]
    over, transactional, aborted = TXBENCH[index]
    if index == tr.LOCK_MUTEX and clients == 64:
        over = 0.29
    misc1 = 12 if clients == 64 else 4
    by_hle = {tr.HLE: (misc1, 100 - misc1), tr.LOCK_MUTEX: (5, 0), tr.LATCHES: (50, 50)}.get(index, (0, 0))
    by_rtm = (90, 10) if index in (tr.RETRIED, tr.PTHREAD, tr.SHARDED) else (0, 0)
    perf = {f"{family}_retired.aborted_misc{n}": 0 for family in ("hle", "rtm") for n in range(1, 6)}
    for family, (conflicts, unfriendly) in (("hle", by_hle), ("rtm", by_rtm)):
        perf |= {f"{family}_retired.aborted_misc1": conflicts, f"{family}_retired.aborted_misc3": unfriendly}
    tps = 1e3 * TXBENCH_TPS[clients] * over
    return {"index": request["index"], "workload": "txbench", "dist": "uniform", "threads": clients,
            "machine": Path(request["machine_file"]).stem, "mops": tps / 1e6, "tps": tps,
            "think_cycles": request["think_cycles"], "seed": request["seed"], "read_only_us": 25 * clients,
            "read_update_us": TXBENCH_US[clients], "perf": perf,
            "aborts_per_op": 1, "wasted_pct": 1, "fallback_pct": 1, "busy_pct": 50, "requests": 100, "repeated": 0,
            "transactional_pct_of_busy": transactional, "aborted_pct_of_transactional": aborted,
            "aborts_by_reason": {"conflict": 60, "system call": 40, "write capacity": 0},
            "conflicts": [{"where": "lock system", "true_sharing": 9, "false_sharing": 1}]}


def run_all(requests):
    """key -> request becomes key -> answer."""
    return {key: experiment(one["experiment"]) if "experiment" in one else run(one)
            for key, one in requests.items()}


def run(request):
    if request["workload"] == "txbench":
        return txbench(request)
    if request["workload"].startswith("insert-mix:"):
        return karnagel(request)
    if request["workload"] == "tpcc":
        return tpcc(request)
    index, theta = request["index"], float(request["dist"].split(":")[1])
    conflicts = LIST_CONFLICTS if "skiplist" in index else TREE_CONFLICTS
    return {"index": index, "workload": request["workload"], "dist": request["dist"], "threads": request["threads"],
            "machine": Path(request["machine_file"]).stem, "mops": throughput(index, theta, request["threads"]), "aborts_per_op": aborts_of(index, theta, request),
            "wasted_pct": 95 if theta > 0.9 else 50, "fallback_pct": 1, "seed": request["seed"],
            "transactional_pct": 60, "aborted_pct_of_all": 50,
            "aborts": {"conflict": 100}, "accesses_per_op": 90,
            "instructions_per_op": 210 if index == er.MASSTREE else 100,
            "bytes_per_key": memory_of(index, theta, request["workload"]), "conflicts": conflicts}


def indexes():
    """All, but those that FAKE_LACKS names."""
    every = {p.index for family in experiments.families() if family.listed
             for e in family.experiments for p in (*e.points, *e.beside)}
    return sorted(every - set(os.environ.get("FAKE_LACKS", "").split(",")))


def main():
    request = json.load(sys.stdin)
    name = request.get("experiment")
    if "FAKE_HANGS" in os.environ:
        (Path(os.environ["FAKE_HANGS"]) / str(os.getpid())).touch()
        time.sleep(3600)
    if name and name == os.environ.get("FAKE_FAILS"):
        print("a fiber fell off", file=sys.stderr)
        return 1
    if name and name == os.environ.get("FAKE_REFUSES"):
        print("--machine: no such thing", file=sys.stderr)
        return 2
    if "runs" in request:
        for one in request["runs"]:
            fails = one["index"] == os.environ.get("FAKE_FAILS")
            print(json.dumps({"failed": "a fiber fell off", "status": 1} if fails else run(one)))
    elif "list" in request:
        print(json.dumps({"indexes": indexes(), "files": [__file__, *filter(None, [os.environ.get("FAKE_LIBRARY")])]}))
    else:
        print(json.dumps(experiment(name) if name else run(request)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
