#!/usr/bin/env python3
"""Stands in for the program on the simulated machine: it answers with the thesis's own figures, and with runs that have
what paper 003 says. FAKE_FAILS names an experiment that fails, FAKE_REFUSES one that is refused."""

import json
import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import figures  # noqa: E402

NOT_DIGITISED = {
    "K-F7": {"8 ways, machine": [(20, 0), (320, 1)], "4 ways, machine": [(47, 0.06), (93, 0.66)]},
    "S-3.0": {"lock in the read set": [(0, 0)], "lock not read": [(0, 3)]},
    "S-C.1": {"stack": [(16, 0), (256, 0)], "heap, recycled": [(16, 100), (256, 100)],
              "heap, new pages": [(16, 100), (256, 100)]},
    "S-C.2": {"random write": [(0, 0), (64, 100)], "random read": [(0, 0), (64, 0)]},
}


def experiment(name):
    series = NOT_DIGITISED.get(name) or figures.read_figure(name.removeprefix("S-"))
    if name in ("S-3.5", "S-3.6"):
        series["step size 3"] = series["step size 1"]
    return {"id": name, "machine": "fake", "series": [{"name": n, "points": p} for n, p in series.items()]}


def run(request):
    theta = float(request["dist"].split(":")[1])
    aborts = {0.5: 0.5, 0.9: 23.5, 0.99: 60}.get(theta, 0.4)
    return {"index": request["index"], "workload": "a", "dist": request["dist"], "threads": request["threads"],
            "mops": 30 if theta < 0.6 else 2, "aborts_per_op": aborts, "wasted_pct": 95 if theta > 0.9 else 50,
            "fallback_pct": 1, "seed": request["seed"], "aborts": {"conflict": 100},
            "conflicts": [{"where": "leaf", "true_sharing": 9, "false_sharing": 88},
                          {"where": "leaf head", "true_sharing": 0, "false_sharing": 6}]}


def main():
    request = json.load(sys.stdin)
    name = request.get("experiment")
    if name and name == os.environ.get("FAKE_FAILS"):
        print("a fiber fell off", file=sys.stderr)
        return 1
    if name and name == os.environ.get("FAKE_REFUSES"):
        print("--machine: no such thing", file=sys.stderr)
        return 2
    print(json.dumps(experiment(name) if name else run(request)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
