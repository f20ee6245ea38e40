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
    "churn": "replace every key",
}


class BadResults(Exception):
    """One line for the user."""


@dataclass
class KeySet:
    """The runs over one set of keys on one machine: what may stand in one table."""

    machine: dict
    commit: str
    key_type: str
    keys: int
    files: list = field(default_factory=list)
    replaced: int = 0  # runs that a later file measured again
    apart: str = ""  # what tells this set from others with the same keys
    works: dict = field(default_factory=lambda: defaultdict(list))  # (workload, dist) -> runs

    @property
    def simulated(self):
        return bool(self.machine.get("simulated"))

    @property
    def title(self):
        kind = "string" if self.key_type == "string" else f"{self.key_type} integer"
        return f"{shorten(self.keys)} {kind} keys" + (", simulated" if self.simulated else "") + self.apart

    @property
    def indexes(self):
        return {r["index"] for runs in self.works.values() for r in runs}

    @property
    def threads(self):
        return sorted({r["threads"] for runs in self.works.values() for r in runs})


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


COLUMN_NUMBERS = ("rows", "distinct", "insert_mrows_s", "delta_bytes_per_row", "main_bytes_per_row", "vector_bytes_per_row")


def check_columns(path, columns):
    if not isinstance(columns, list) or not all(
            isinstance(one, dict) and all(is_number(one.get(name)) for name in COLUMN_NUMBERS)
            and all(isinstance(one.get(name), str) for name in ("file", "column", "type")) for one in columns):
        raise BadResults(f"report: {path}: columns that are none of elidex column load")


def read_file(path):
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file, parse_constant=no_number)
    except OSError as error:
        raise BadResults(f"report: {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise BadResults(f"report: {path}: not JSON") from None
    if isinstance(content, dict) and ("columns" in content or "queries" in content):  # of elidex column, ./dev columns
        content.setdefault("runs", [])
    if not isinstance(content, dict) or content.get("schema") != 1 or not isinstance(content.get("runs"), list):
        raise BadResults(f"report: {path}: not a result file of schema 1")
    check_columns(path, content.setdefault("columns", []))
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
        run["first"] = content["runs"][0]["index"]
    return content


def lasting(machine):
    """The machine without what changes while it runs."""
    return {name: value for name, value in machine.items() if name not in ("huge_pages", "numa_nodes")}


def machines(contents):
    """The different machines, in the order in which the files name them."""
    different = []
    for content in contents:
        if not any(lasting(content["machine"]) == lasting(m) for m in different):
            different.append(content["machine"])
    return different


def key_sets(contents):
    """Groups all runs by machine, commit and keys. Of equal runs in several files the last one counts."""
    sets, hosts = {}, [lasting(m) for m in machines(contents)]
    for content in contents:
        host, commit = hosts.index(lasting(content["machine"])), str(content.get("commit", "unknown"))
        for run in content["runs"]:
            keys, key_type = int(run.get("keys", 0)), run.get("key_type", "u64")
            one = sets.setdefault((host, commit, key_type, keys), KeySet(content["machine"], commit, key_type, keys))
            if run["file"] not in one.files:
                one.files.append(run["file"])
            runs = one.works[(run["workload"], run["dist"])]
            others = [r for r in runs if (r["index"], r["threads"]) != (run["index"], run["threads"])]
            one.replaced += len(runs) - len(others)
            runs[:] = [*others, run]
    titles = [one.title for one in sets.values()]
    for (host, commit, _, _), one in sets.items():
        if titles.count(one.title) > 1:
            one.apart = f" (elidex {commit}" + (f", machine {host + 1})" if len(hosts) > 1 else ")")
    return sorted(sets.values(), key=lambda s: (s.simulated, s.key_type != "u64", s.keys))


def work_order(work):
    workload, dist = work
    names = list(WORKLOADS)
    return (names.index(workload) if workload in names else len(names), theta_of(dist), dist)


def work_title(work):
    workload, dist = work
    words = f"Zipf {theta_of(dist):g}" if dist.startswith("zipf") else f"{dist} keys"
    if dist.endswith("scrambled"):
        words += " scattered"
    return f"{WORKLOADS.get(workload, workload)}, {words}"


def fastest(runs, threads):
    """The fastest run with that many threads, and the next one (None: it is alone)."""
    there = sorted((r for r in runs if r["threads"] == threads), key=lambda r: -r["mops"])
    return there[0], there[1] if len(there) > 1 else None


def lead(run, other):
    """By what factor `run` is faster; None when that says nothing."""
    return run["mops"] / other["mops"] if other is not None and other["mops"] > 0 else None


def beyond_spread(run, other):
    """Whether the slowest round of `run` beats the fastest one of `other`."""
    return run["mops_min"] > other["mops_max"]


def spread(run):
    """Fastest over slowest round."""
    return run["mops_max"] / run["mops_min"] if run["mops_min"] > 0 else math.inf
