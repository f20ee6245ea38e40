"""Reads result files (schema 1, as `elidex bench --json` writes them) and sorts the runs for the page."""

import json
import math
from collections import defaultdict
from dataclasses import dataclass, field

WORKLOADS = {
    "a": "50 % read, 50 % update",
    "b": "95 % read, 5 % update",
    "c": "read only",
    "d": "95 % read of the latest, 5 % insert",
    "e": "95 % scan, 5 % insert",
    "f": "50 % read, 50 % read-modify-write",
    "load": "insert every key",
    "delete": "erase every key",
}


class BadResults(Exception):
    """One line for the user."""


@dataclass
class KeySet:
    """The runs over one set of keys on one machine: what may stand in one table."""

    machine: dict
    key_type: str
    keys: int
    works: dict = field(default_factory=lambda: defaultdict(list))  # (workload, dist) -> runs

    @property
    def simulated(self):
        return bool(self.machine.get("simulated"))

    @property
    def title(self):
        kind = "string" if self.key_type == "string" else f"{self.key_type} integer"
        return f"{shorten(self.keys)} {kind} keys"


def shorten(count):
    for size, letter in ((10**6, "M"), (10**3, "K")):
        if count >= size:
            return f"{count / size:.3g} {letter}"
    return str(count)


def theta_of(dist):
    """The skew of `zipf:0.99` or `zipf:0.99:scrambled`, 0 for uniform."""
    parts = dist.split(":")
    return float(parts[1]) if parts[0] == "zipf" and len(parts) > 1 else 0.0


def read_file(path):
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file)
    except OSError as error:
        raise BadResults(f"report: {path}: {error.strerror}") from None
    except (json.JSONDecodeError, UnicodeDecodeError):
        raise BadResults(f"report: {path}: not JSON") from None
    if not isinstance(content, dict) or content.get("schema") != 1 or not isinstance(content.get("runs"), list):
        raise BadResults(f"report: {path}: not a result file of schema 1")
    for run in content["runs"]:
        missing = [name for name in ("index", "workload", "dist", "threads", "mops") if name not in run]
        if missing:
            raise BadResults(f"report: {path}: a run without {missing[0]}")
        run.setdefault("mops_min", run["mops"])
        run.setdefault("mops_max", run["mops"])
        run["file"] = str(path)
    return content


def key_sets(contents):
    """Groups all runs by machine and keys. Of equal runs in several files the last one counts."""
    sets = {}
    for content in contents:
        machine = content.get("machine", {})
        for run in content["runs"]:
            keys = int(run.get("keys", 0))
            key_type = run.get("key_type", "u64")
            identity = (json.dumps(machine, sort_keys=True), key_type, keys)
            one = sets.setdefault(identity, KeySet(machine, key_type, keys))
            runs = one.works[(run["workload"], run["dist"])]
            runs[:] = [r for r in runs if (r["index"], r["threads"]) != (run["index"], run["threads"])]
            runs.append(run)
    return sorted(sets.values(), key=lambda s: (s.simulated, s.key_type != "u64", s.keys))


def work_order(work):
    workload, dist = work
    names = list(WORKLOADS)
    return (names.index(workload) if workload in names else len(names), theta_of(dist), dist)


def work_title(work):
    workload, dist = work
    words = "uniform keys" if dist == "uniform" else f"Zipf {theta_of(dist):g}"
    if dist.startswith("zipf"):
        words += ", hot keys scattered" if dist.endswith("scrambled") else ", hot keys side by side"
    return f"{WORKLOADS.get(workload, workload)}, {words}"


def fastest(runs, threads):
    """The fastest run with that many threads, and by what factor it leads the next one (None: it is alone)."""
    there = sorted((r for r in runs if r["threads"] == threads), key=lambda r: -r["mops"])
    lead = there[0]["mops"] / there[1]["mops"] if len(there) > 1 and there[1]["mops"] > 0 else None
    return there[0], lead


def spread(run):
    """Fastest over slowest round."""
    return run["mops_max"] / run["mops_min"] if run["mops_min"] > 0 else math.inf
