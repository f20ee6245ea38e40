#!/usr/bin/env python3
"""Measures locks under contention (bench/micro/lock_contention.cpp) and prints medians beside the standard's lock.

    locks.py --elidex ELIDEX --benchmark LOCK_CONTENTION --json FILE [--seconds S] [--rounds N]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

BASES = {"exclusive": "std::mutex", "shared": "std::shared_mutex"}


def answer_of(command):
    answer = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True)
    if answer.returncode != 0:
        raise SystemExit(f"locks: {command[0]} ended with status {answer.returncode}")
    return json.loads(answer.stdout)


def situation(run):
    return run["kind"], run["writes_pct"], run["inside"], run["outside"], run["threads"]


def with_ratios(runs):
    """Adds median and ratio: the median of the rounds' ratios, since the locks of a round ran side by side."""
    bases = {situation(run): run["mops"] for run in runs if run["lock"] == BASES[run["kind"]]}
    return [run | {"median_mops": statistics.median(run["mops"]),
                   "ratio": statistics.median(a / b for a, b in zip(run["mops"], bases[situation(run)]))}
            for run in runs]


def table(runs, kind):
    """A line for each situation, a column for each lock: ratios to the standard's, whose rate stands first."""
    mine = [run for run in runs if run["kind"] == kind]
    locks = list(dict.fromkeys(run["lock"] for run in mine))
    head = "inside outside writes threads"
    yield f"{head}  {locks[0]:>17}" + "".join(f"  {lock:>20}" for lock in locks[1:])
    for key in dict.fromkeys(situation(run) for run in mine):
        row = {run["lock"]: run for run in mine if situation(run) == key}
        _, writes, inside, outside, threads = key
        yield (f"{inside:>6} {outside:>7} {writes:>5}% {threads:>7}  {row[locks[0]]['median_mops']:>10.2f} Mops/s"
               + "".join(f"  {row[lock]['ratio']:>19.2f}x" for lock in locks[1:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--elidex", "--benchmark", "--json"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--seconds", default="0.1")
    parser.add_argument("--rounds", default="9")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    where = answer_of([arguments.elidex, "doctor", "--json", "-"])
    measured = answer_of([arguments.benchmark, "--seconds", arguments.seconds, "--rounds", arguments.rounds])
    runs = with_ratios(measured["runs"])
    content = {"schema": 1, "commit": where["commit"], "machine": where["machine"], "runs": runs,
               "load_average": {"start": load, "end": os.getloadavg()[0]}}
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(content, indent=1) + "\n")
    print("Sections a second, medians; ratios to the first lock. The same words are written by all threads.")
    for kind in BASES:
        print()
        print("\n".join(table(runs, kind)))
    print(f"\nAll of it: {arguments.json}")


if __name__ == "__main__":
    sys.exit(main())
