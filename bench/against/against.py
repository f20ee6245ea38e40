#!/usr/bin/env python3
"""Compares two builds of elidex in the same rounds (`./dev bench --against COMMIT`): how many times faster is this one?

    against.py --elidex NEW --other OLD --json FILE [--rounds N] [--only WORD] [--allocator jemalloc]

Each round starts both programs in turn for each plan. One start measures all workloads of the plan. The next round
starts them in the opposite order, because the second program may reuse memory that the first one has freed. Two rounds
have one ratio, the geometric mean of both, so effects of the order cancel. A row's figure is the median of these
ratios, with its interval (bench/gate/ratios.py). Both programs use jemalloc as Debian configures it, or with huge pages
(--allocator jemalloc).
"""

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "gate"))

import gate
from ratios import ROUNDS_MIN, BadGate, figure
from rounds import bench_with
from shapes import flags_of

ROUNDS = 2 * ROUNDS_MIN
SECONDS = 0.5
# What the other build is asked for: it may lack the call for many keys, or the workload. Each has a plan of its own.
OTHERS_WORKLOAD = {"multi-upsert:64": "load"}
JEMALLOC = Path("/usr/lib/x86_64-linux-gnu/libjemalloc.so.2")


@dataclass(frozen=True, eq=False)
class Plan:
    """What one start of a program measures, and the goal of each workload: its rate over the other build's."""
    what: str  # a name of bench/gate/shapes.py
    index: str
    goals: dict
    threads: int = 2

    def workload_of(self, program):
        """What a program ("new" or "old") is asked for, by the name of the goal."""
        return {name: OTHERS_WORKLOAD.get(name, name) if program == "old" else name for name in self.goals}

    def command(self, program):
        workloads = ",".join(self.workload_of(program).values())
        return ["--index", self.index, "--workload", workloads, "--threads", str(self.threads),
                *flags_of(self.what), "--seconds", str(SECONDS), "--repeat", "1"]


# Each goal is the rate over that of commit b9e5752 (docs/ROADMAP.md).
PLANS = (
    Plan("10M random u64", "ordered_map", {"load": 1.6, "c": 1.8, "multi-get:64": 2.3, "a": 1.75}),
    Plan("10M random u64", "ordered_map", {"multi-upsert:64": 2.2}),
    Plan("10M, Zipf 0.99", "ordered_map", {"a": 1.45}),
    Plan("10M, Zipf 0.99 scrambled", "ordered_map", {"a": 1.8}),
    Plan("10M, Zipf 0.99, 8 threads", "ordered_map", {"a": 1.5}, 8),
    Plan("10M ascending, one end", "ordered_map", {"load": 2.0}),
    Plan("10M ascending, own ranges", "ordered_map", {"load": 2.0}),
    Plan("10M, scans of 100", "ordered_map", {"e": 1.7}),
    Plan("1M, scans of 100", "ordered_map", {"e": 1.8}),
    Plan("20k keys", "ordered_map", {"c": 2.5}, 1),
    Plan("300k keys", "ordered_map", {"c": 2.0}, 1),
    Plan("words", "ordered_map", {"load": 3.6, "c": 1.5}),
    Plan("1M URLs", "ordered_map", {"load": 1.8, "c": 2.1}),
    Plan("10M random u64", "hash_map", {"c": 1.2, "multi-get:16": 1.5, "a": 1.5}),
    Plan("1M random u64", "hash_map", {"c": 1.3, "multi-get:16": 2.0, "a": 1.6}),
    Plan("1 warehouse", "db/silo", {"tpcc": 1.5}),
    Plan("2 warehouses", "db/silo", {"tpcc": 1.35}),
)


def environment(allocator):
    """The variables that give both programs the same allocator and page size."""
    if allocator == "debian":
        return {}
    return {"LD_PRELOAD": str(JEMALLOC), "MALLOC_CONF": "thp:always,metadata_thp:auto"}


def measure(programs, plans, rounds, progress=lambda done, total: None):
    """The runs: for each plan and workload the rates of both programs, one number for each round."""
    runs = {}
    for number in range(rounds):
        progress(number, rounds)
        names = list(programs) if number % 2 == 0 else list(programs)[::-1]
        for plan in plans:
            for name in names:
                content = programs[name](plan.command(name))
                asked = {workload: goal for goal, workload in plan.workload_of(name).items()}
                for one in content["runs"]:
                    runs.setdefault((plan, asked[one["workload"]]), {}).setdefault(name, []).append(one["mops"])
    progress(rounds, rounds)
    return runs


def rows(runs):
    """What the JSON holds, and the table shows."""
    for (plan, workload), rates in runs.items():
        ratios = [new / old for new, old in zip(rates["new"], rates["old"])]
        one = figure([math.sqrt(a * b) for a, b in zip(ratios[::2], ratios[1::2])])
        yield {"index": plan.index, "what": plan.what, "workload": workload, "threads": plan.threads,
               "goal": plan.goals[workload], "ratio": one.median, "ratio_low": one.low, "ratio_high": one.high,
               "mops": statistics.median(rates["new"]), "mops_other": statistics.median(rates["old"]),
               "raw_mops": rates["new"], "raw_mops_other": rates["old"]}


def table(lines):
    return gate.table(("index", "keys", "workload", "threads", "goal", "ratio", "here", "other"),
                      [(row["index"], row["what"], row["workload"], str(row["threads"]), f"{row['goal']:.2f}",
                        f"{row['ratio']:.2f} [{row['ratio_low']:.2f}, {row['ratio_high']:.2f}]", f"{row['mops']:.2f}",
                        f"{row['mops_other']:.2f}") for row in lines])


def parse(words):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--elidex", required=True, type=Path, help="this build's tool")
    parser.add_argument("--other", required=True, type=Path, help="the other build's tool")
    parser.add_argument("--other-commit", default="", help="its commit, for the JSON")
    parser.add_argument("--json", required=True, type=Path, help="where the rows go")
    parser.add_argument("--rounds", default=ROUNDS, type=int, help=f"[{ROUNDS}]")
    parser.add_argument("--only", default="", metavar="WORD", help="rows whose index, keys or workload contain WORD")
    parser.add_argument("--allocator", choices=("debian", "jemalloc"), default="debian",
                        help="of both; debian is jemalloc without huge pages [debian]")
    arguments = parser.parse_args(words)
    if arguments.rounds < 2 * ROUNDS_MIN or arguments.rounds % 2 != 0:
        parser.error(f"--rounds: {arguments.rounds} (expected an even number, at least {2 * ROUNDS_MIN} for an interval)")
    arguments.plans = [plan for plan in PLANS
                       if any(arguments.only in text for text in (plan.index, plan.what, *plan.goals))]
    if not arguments.plans:
        parser.error(f"--only: no row contains '{arguments.only}'")
    if arguments.allocator == "jemalloc" and not JEMALLOC.exists():
        parser.error(f"--allocator: {JEMALLOC} does not exist (expected Debian's libjemalloc2)")
    return arguments


def main(words):
    arguments = parse(words)
    os.environ.update(environment(arguments.allocator))
    programs = {"new": bench_with(arguments.elidex), "old": bench_with(arguments.other)}
    seen = {}

    def remembering(bench):
        def run(flags):
            content = bench(flags)
            seen.setdefault("commit", content["commit"])
            seen.setdefault("machine", content["machine"])
            return content
        return run
    programs["new"] = remembering(programs["new"])
    try:
        runs = measure(programs, arguments.plans, arguments.rounds, gate.progress_on(sys.stderr))
    except BadGate as error:
        print(f"against: {error}", file=sys.stderr)
        return 2
    found = list(rows(runs))
    print(table(found))
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps({"schema": 1, "commit": seen["commit"], "machine": seen["machine"],
                                          "against": {"commit": arguments.other_commit, "allocator": arguments.allocator},
                                          "rows": found}, indent=1) + "\n", encoding="utf-8")
    reached = sum(row["ratio"] >= row["goal"] for row in found)
    print(f"against: {reached} of {len(found)} rows reach their goal; raw data in {arguments.json}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
