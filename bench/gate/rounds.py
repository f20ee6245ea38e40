"""The gate's measurements: what is run, round by round, and the file that the rounds are stored in.

Each round starts `elidex bench` anew, so that what differs from one process to the next (where the allocator put a
map's nodes, which of its pages are huge) is part of the noise that the rounds show. Rounds within one process would
share one such draw and look quieter than two runs of the gate are.
"""

import json
import statistics
import subprocess
from dataclasses import dataclass, replace

from ratios import MACHINE, PEERS_WORKLOAD, BadGate, Row, Series, figures
from shapes import flags_of

# Counts up when the stored numbers get another meaning, such as other seconds or scans of another length.
FORM = 2
SECONDS = 0.4
ABSL, ABSL_HASH = "absl+mutex", "absl-hash+mutex"


@dataclass(frozen=True)
class Plan:
    """Workloads of one map, and of the peer. The peer has one thread, because more only contend for its mutex."""
    what: str  # a name of shapes.py
    workloads: tuple  # load comes first, what changes the map comes last: so no map is loaded twice
    index: str = "ordered_map"
    threads: tuple = (2,)
    peer: str = ""  # none: the rows' yardstick is the machine's speed (ratios.py)

    def rows(self):
        return [Row(self.index, self.what, workload, threads, self.peer)
                for workload in self.workloads for threads in self.threads]

    def part(self, rows):
        """What these rows need, or None. The load stays: it decides how the map lies in memory."""
        wanted = {row.workload for row in rows if row in self.rows()}
        if self.peer == MACHINE.index and self.what == MACHINE.what and not all(row.peer for row in rows):
            wanted.add(MACHINE.workload)
        if not wanted:
            return None
        wanted |= {"load"} | {PEERS_WORKLOAD.get(workload, workload) for workload in wanted}
        return replace(self, workloads=tuple(workload for workload in self.workloads if workload in wanted))

    def commands(self):
        starts = {threads: [self.index] for threads in self.threads}
        if self.peer:
            starts.setdefault(1, []).append(self.peer)
        for threads, indexes in starts.items():
            yield ["--index", ",".join(indexes), "--threads", str(threads), "--workload", ",".join(self.workloads),
                   *flags_of(self.what), "--seconds", str(SECONDS), "--repeat", "1"]


# All rows of the table of goals (bench/against/against.py) are among these.
PLANS = (
    Plan("1M random u64", ("load", "c", "multi-get:32", "a", "e"), threads=(1, 2), peer=ABSL),
    Plan("1M, Zipf 0.99", ("a",), threads=(1, 2), peer=ABSL),
    Plan("10M random u64", ("load", "c", "multi-get:32", "multi-get:64", "a", "e", "multi-upsert:64"),
         threads=(1, 2), peer=ABSL),
    Plan("10M, Zipf 0.99", ("a",)),
    Plan("10M, Zipf 0.99 scrambled", ("a",)),
    Plan("10M, Zipf 0.99, 8 threads", ("a",), threads=(8,)),
    Plan("10M ascending, one end", ("load",), peer=ABSL),
    Plan("10M ascending, own ranges", ("load",), peer=ABSL),
    Plan("20k keys", ("c",), threads=(1,), peer=ABSL),
    Plan("300k keys", ("c",), threads=(1,), peer=ABSL),
    Plan("words", ("load", "c"), peer=ABSL),
    Plan("1M URLs", ("load", "c"), peer=ABSL),
    Plan("1M random u64", ("c", "multi-get:16", "a"), index="hash_map", peer=ABSL_HASH),
    Plan("10M random u64", ("c", "multi-get:16", "a"), index="hash_map", peer=ABSL_HASH),
    Plan("1 warehouse", ("tpcc",), index="db/silo"),
    Plan("2 warehouses", ("tpcc",), index="db/silo"),
)
ROWS = [row for plan in PLANS for row in plan.rows()]


def bench_with(elidex):
    """A function that takes flags of `elidex bench` and returns what it measured."""
    def bench(flags):
        try:
            answer = subprocess.run([str(elidex), "bench", *flags, "--json", "-"], capture_output=True, text=True)
        except OSError as error:
            raise BadGate(f"{elidex}: {error.strerror}") from None
        if answer.returncode != 0:
            said = answer.stderr.strip().splitlines() or [f"status {answer.returncode}"]
            raise BadGate(f"elidex bench failed: {said[-1]}")
        try:
            content = json.loads(answer.stdout)
            if not all(run["mops"] > 0 for run in content["runs"]):
                raise BadGate("elidex bench measured nothing")
            return content
        except (ValueError, TypeError, KeyError):
            raise BadGate("elidex bench printed no results in JSON") from None
    return bench


def measure(bench, plans, rounds, progress=lambda done, total: None):
    """Runs all plans, round by round, and returns the content of a gate file."""
    merged, first = {}, None
    for number in range(rounds):
        progress(number, rounds)
        for plan, flags in ((plan, flags) for plan in plans for flags in plan.commands()):
            content = bench(flags)
            first = first or content
            for run in content["runs"]:
                add(merged, plan.what, run)
    progress(rounds, rounds)
    return {"schema": 1, "commit": first["commit"], "machine": first["machine"], "gate": {"form": FORM},
            "runs": list(merged.values())}


SAME_IN_ALL_ROUNDS = ("index", "workload", "dist", "threads", "keys", "key_type", "order", "seed", "bytes_per_key")


def add(merged, what, run):
    """Puts one round's run to its likes. Its latencies and counters are left out: nothing compares them."""
    lasting = {"what": what} | {name: run[name] for name in SAME_IN_ALL_ROUNDS if name in run}
    one = merged.setdefault((what, *(run[name] for name in ("index", "workload", "threads"))),
                            lasting | {"raw_mops": [], "raw_cpu_wait_pct": []})
    one["raw_mops"].append(run["mops"])
    one["raw_cpu_wait_pct"].append(run["cpu_wait_pct"])
    rates = one["raw_mops"]
    one.update(mops=statistics.median(rates), mops_min=min(rates), mops_max=max(rates))


def runs_of(content):
    """Series -> the rates of the rounds."""
    return {Series(run["index"], run["what"], run["workload"], run["threads"]): run["raw_mops"] for run in content["runs"]}


def waits_of(content):
    return [share for run in content["runs"] for share in run["raw_cpu_wait_pct"]]


def read(path):
    """A stored gate file whose rows are this gate's."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BadGate(f"{path} does not exist (expected the file that './dev bench --check --save' stores)") from None
    except OSError as error:
        raise BadGate(f"{path}: {error.strerror}") from None
    except ValueError:
        raise BadGate(f"{path} is not JSON") from None
    again = "store it anew with './dev bench --check --save'"
    try:
        if content["schema"] != 1 or content["gate"]["form"] != FORM:
            raise KeyError
        runs = runs_of(content)
        sound = all(isinstance(rate, (int, float)) and rate > 0 for rates in runs.values() for rate in rates)
        str(content["commit"]), content["machine"].get
    except (KeyError, TypeError, AttributeError):
        raise BadGate(f"{path} is not a gate file of form {FORM}: {again}") from None
    if not sound:
        raise BadGate(f"{path} has a rate that is not a positive number: {again}")
    wanted = {series for row in ROWS for series in (row.series(), row.yardstick())}
    for series in runs.keys() - wanted:
        if series.index in {row.index for row in ROWS}:
            raise BadGate(f"{path} has a row that the gate no longer measures, '{series}': {again}")
    try:
        figures(runs, ROWS)
    except BadGate as error:
        raise BadGate(f"{path}: {error}: {again}") from None
    return content


def write(path, content):
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    except OSError as error:
        raise BadGate(f"{path}: {error.strerror}") from None
