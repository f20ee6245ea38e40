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


def no_number(text):
    raise ValueError(f"{text} is no number of JSON")


def is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf


def is_count(value):
    return is_number(value) and value == int(value)


def is_text(value):
    return isinstance(value, str) and value != ""


def is_dist(value):
    try:
        return is_text(value) and is_number(theta_of(value))
    except ValueError:
        return False


NEEDED = {"index": is_text, "workload": is_text, "dist": is_dist, "threads": is_count, "mops": is_number}
OPTIONAL = {"key_type": is_text, "keys": is_count,
            **dict.fromkeys(("mops_min", "mops_max", "ns_p50", "ns_p99", "aborts_per_op", "fallback_pct",
                             "bytes_per_key", "ratio_to_first"), is_number)}


def check_run(path, run):
    """Refuses what the page could not draw. A null stands for what was not measured."""
    if not isinstance(run, dict):
        raise BadResults(f"report: {path}: a run that is no object")
    for name in [name for name in OPTIONAL if run.get(name, 0) is None]:
        del run[name]
    for name, accepts in {**NEEDED, **OPTIONAL}.items():
        if name not in run:
            if name in NEEDED:
                raise BadResults(f"report: {path}: a run without {name}")
        elif not accepts(run[name]):
            raise BadResults(f"report: {path}: a run with {name} {json.dumps(run[name])}")


def read_file(path):
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file, parse_constant=no_number)
    except OSError as error:
        raise BadResults(f"report: {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise BadResults(f"report: {path}: not JSON") from None
    if not isinstance(content, dict) or content.get("schema") != 1 or not isinstance(content.get("runs"), list):
        raise BadResults(f"report: {path}: not a result file of schema 1")
    claims = content.setdefault("claims", [])
    if not isinstance(content.setdefault("machine", {}), dict):
        raise BadResults(f"report: {path}: a machine that is no object")
    if not isinstance(claims, list) or not all(isinstance(claim, dict) for claim in claims):
        raise BadResults(f"report: {path}: claims that are no list of objects")
    for run in content["runs"]:
        check_run(path, run)
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
