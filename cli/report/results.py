"""Reads result files (schema 1) and sorts the runs for the page.

read_file() returns one document in one form, whatever command wrote it: the lists `runs`, `claims`,
`columns`, `locks` and `programs` that the page shows, and `not_shown`, one sentence for each other
thing that the file holds.
"""

import json
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from os.path import basename
from typing import NamedTuple

WORKLOADS = {
    "a": "50 % read, 50 % update",
    "b": "95 % read, 5 % update",
    "c": "read only",
    "d": "95 % read of the latest, 5 % insert",
    "e": "95 % scan, 5 % insert",
    "f": "50 % read, 50 % read-modify-write",
    "multi-get": "read 32 keys with one call",
    "load": "insert every key",
    "bulk-load": "insert every key with one call",
    "delete": "erase every key",
    "churn": "replace every key",
    "ycsb-txn:a": "half reads, half read-modify-writes",
    "ycsb-txn:b": "95 % reads, 5 % read-modify-writes",
    "ycsb-txn:c": "reads only",
    "ycsb-txn:f": "read-modify-writes only",
    "reads": "read a row",
    "updates": "read and write a row in one transaction",
    "scans": "read 100 rows in key order",
    "commits": "overwrite a row in one transaction",
    "ycsb-a": "50 % reads, 50 % overwrites",
    "ycsb-b": "95 % reads, 5 % overwrites",
    "ycsb-c": "reads only",
    "ycsb-d": "95 % reads of the latest rows, 5 % inserts",
    "ycsb-e": "95 % scans, 5 % inserts",
    "ycsb-f": "50 % reads, 50 % read-modify-writes",
    "tpcc": "TPC-C's mix",
    "smallbank": "SmallBank's mix",
    "smallbank:h-store": "H-Store's mix",
}
# Families whose names end in a number.
NUMBERED = {"multi-get": "read {} keys with one call",
            "multi-upsert": "insert every key, {} keys with one call", "mix": "{} % read, the rest update",
            "insert-mix": "{} % insert, the rest read"}

# Settings of a run besides workload and dist. Runs with different settings never share a row. A
# title names a setting unless it has the value given here.
SETTINGS = {"order": "random", "scan_length": None, "retries": None, "leaf_version": "head",
            "readers": "snapshots", "durability": "none", "isolation": "serializable",
            "ops_per_txn": None, "theta": None, "hot": None, "rows_per_commit": 1,
            "hot_percent": None, "items": 100_000, "think_cycles": None}
# The theta and hot part repeat what `dist` says.
IN_DIST = ("theta", "hot", "hot_percent")

# As in the notes of `elidex bench`.
WAIT_PCT_MAX = 5


class BadResults(Exception):
    """One line for the user."""


class Work(NamedTuple):
    """One kind of work: what may share a row of a table."""

    workload: str
    dist: str
    settings: tuple = ()  # (name, value) pairs, the usual values left out


@dataclass
class KeySet:
    """The runs over one set of data on one machine: what may share a table."""

    machine: dict
    commit: str
    simulated: str  # the simulated machine's name; empty for native runs
    data: str  # such as "1 M u64 integer keys"
    size: int
    files: list = field(default_factory=list)
    replaced: int = 0  # runs that a later file measured again
    apart: str = ""  # what tells this set from others with the same data
    works: dict = field(default_factory=lambda: defaultdict(list))  # Work -> runs

    @property
    def title(self):
        return self.data + (f", {self.simulated}" if self.simulated else "") + self.apart

    @property
    def runs(self):
        return [run for runs in self.works.values() for run in runs]

    @property
    def indexes(self):
        return {r["index"] for r in self.runs}

    @property
    def threads(self):
        return sorted({r["threads"] for r in self.runs})

    @property
    def compared_threads(self):
        """The numbers of threads with which two indexes or more did the same work."""
        return sorted({r["threads"] for runs in self.works.values() for r in runs
                       if len({o["index"] for o in runs if o["threads"] == r["threads"]}) > 1})


def shorten(count):
    for size, letter in ((10**6, "M"), (10**3, "K")):
        if count >= size:
            return f"{count / size:.3g} {letter}"
    return str(int(count))


def plural(count, noun):
    return f"{count} {noun}{'' if count == 1 else 's'}"


def sized(count, noun):
    return f"{shorten(count)} {noun}{'' if count == 1 else 's'}"


def theta_of(dist):
    """The skew of `zipf:0.99` or `zipf:0.99:scrambled`, 0 for uniform."""
    parts = dist.split(":")
    return float(parts[1]) if parts[0] == "zipf" and len(parts) > 1 else 0.0


def no_number(text):
    raise ValueError(f"{text} is not a JSON number")


def is_number(value):
    return (isinstance(value, (int, float)) and not isinstance(value, bool)
            and 0 <= value <= sys.float_info.max)


def is_count(value):
    return is_number(value) and value == int(value)


def is_text(value):
    return isinstance(value, str) and value != ""


def is_dist(value):
    try:
        return is_text(value) and is_number(theta_of(value))
    except ValueError:
        return False


def is_spread(value):
    return isinstance(value, dict) and all(is_number(value.get(name))
                                           for name in ("median", "min", "max"))


NEEDED = {"index": is_text, "workload": is_text, "dist": is_dist, "threads": is_count,
          "mops": is_number}
OPTIONAL = {"key_type": is_text, "keys": is_count, "warehouses": is_count, "customers": is_count,
            "rows": is_count, "value_bytes": is_count,
            **dict.fromkeys(("mops_min", "mops_max", "ns_p50", "ns_p99", "ns_p999",
                             "aborts_per_op", "fallback_pct", "bytes_per_key", "ratio_to_first",
                             "cpu_wait_pct"), is_number)}
LOCK_NEEDED = {"lock": is_text, "kind": is_text, "inside": is_count, "outside": is_count,
               "writes_pct": is_number,
               "threads": is_count, "median_mops": is_number}
PROGRAM_NEEDED = {"program": is_text, "load": is_text,
                  "ratios": lambda value: isinstance(value, dict),
                  "cpu_ratios": lambda value: isinstance(value, dict)}
COLUMN_NEEDED = {"file": is_text, "column": lambda value: isinstance(value, str), "type": is_text,
                 **dict.fromkeys(("rows", "distinct", "insert_mrows_s", "delta_bytes_per_row",
                                  "main_bytes_per_row",
                                  "vector_bytes_per_row"), is_number)}


def check(path, entry, kind, needed, optional):
    """Refuses what the page could not draw. A null is treated as not measured."""
    if not isinstance(entry, dict):
        raise BadResults(f"report: {path}: a {kind} that is not an object")
    for name in [name for name in optional if entry.get(name, 0) is None]:
        del entry[name]
    for name, accepts in {**needed, **optional}.items():
        if name not in entry:
            if name in needed:
                raise BadResults(f"report: {path}: a {kind} without {name}")
        elif not accepts(entry[name]):
            raise BadResults(f"report: {path}: a {kind} with {name} {json.dumps(entry[name])[:80]}")


def list_of(path, content, name):
    entries = content.get(name, [])
    if not isinstance(entries, list):
        raise BadResults(f"report: {path}: {name} that are not a list")
    return entries


def disturbed(run, machine):
    """Whether other programs kept the threads of this run waiting. More threads than CPUs wait for
    each other."""
    cpus = machine.get("usable_threads", machine.get("cores"))
    crowded = is_number(cpus) and run["threads"] > cpus
    return run.get("cpu_wait_pct", 0) > WAIT_PCT_MAX and not crowded


def read_runs(path, content):
    runs = list_of(path, content, "runs")
    for run in runs:
        check(path, run, "run", NEEDED, OPTIONAL)
        run.setdefault("mops_min", run["mops"])
        run.setdefault("mops_max", run["mops"])
        run["file"] = str(path)
        run["first"] = runs[0]["index"]
        run["disturbed"] = disturbed(run, content["machine"])
    # A ratio tells nothing when either of its runs was disturbed.
    bad = {(r["workload"], r["dist"], r["threads"]) for r in runs if r["disturbed"]
           and r["index"] == r["first"]}
    for run in runs:
        if run["disturbed"] or (run["workload"], run["dist"], run["threads"]) in bad:
            run.pop("ratio_to_first", None)
    return runs


def read_locks(path, content):
    for run in content["runs"]:
        check(path, run, "run", LOCK_NEEDED, {"ratio": is_number})
    return content["runs"]


def read_programs(path, content):
    programs = list_of(path, content, "programs")
    for one in programs:
        check(path, one, "program", PROGRAM_NEEDED, {})
        for name, spread_of in [*one["ratios"].items(), *one["cpu_ratios"].items()]:
            if not is_spread(spread_of):
                raise BadResults(f"report: {path}: a program with {name} "
                                 f"{json.dumps(spread_of)[:80]}")
    return programs


def read_columns(path, content):
    columns = list_of(path, content, "columns")
    for one in columns:
        check(path, one, "column", COLUMN_NEEDED, {"arrow": lambda value: isinstance(value, dict)})
        bytes_per_row = one.setdefault("arrow", {}).get("dictionary_bytes_per_row", 0)
        if not is_number(bytes_per_row):
            raise BadResults(f"report: {path}: a column with dictionary_bytes_per_row "
                             f"{json.dumps(bytes_per_row)[:80]}")
    return columns


def is_list_of_runs(entries, field_name):
    return isinstance(entries, list) and any(isinstance(one, dict) and field_name in one
                                             for one in entries)


def shape_of(content):
    """Which command wrote the document, by a field that the others lack."""
    for name, shape in (("gate", "gate"), ("queries", "queries"), ("series", "repro"),
                        ("programs", "programs"), ("columns", "columns"),
                        ("long_test", "long_test")):
        if name in content:
            return shape
    runs = content.get("runs")
    if is_list_of_runs(runs, "lock") and not is_list_of_runs(runs, "index"):
        return "locks"
    if is_list_of_runs(runs, "index") or runs == []:
        return "bench"
    if isinstance(runs, list) and not isinstance(runs[0], dict):
        return "bench"  # a faulty one, which read_runs() refuses
    others = [name for name, value in content.items() if isinstance(value, list) and value]
    return "other" if others else None


def read_load(path, content):
    """The load average at the start and at the end; None where it is not recorded."""
    load = content.get("load_average")
    if load is not None:
        check(path, load, "load_average", {"start": is_number, "end": is_number}, {})
    return load


def left_out(content, shape):
    """What the page does not show of a document, one sentence for each part."""
    def count(name):
        value = content.get(name)
        return len(value) if isinstance(value, list) else 0

    if shape == "gate":
        return [f"{plural(count('runs'), 'run')} that ./dev bench --check compares with"]
    if shape == "queries":
        return [f"{plural(count('queries'), 'answer')} of elidex column query"]
    if shape == "repro":
        return [f"{plural(count('runs'), 'run')} and {plural(count('series'), 'figure')} behind "
                "its claims; "
                "elidex repro draws them"]
    if shape == "bench" and count("openings"):
        return [f"{plural(count('openings'), 'opening')} of stores"]
    if shape == "columns" and count("costs"):
        return [f"{plural(count('costs'), 'cost')} of single operations"]
    if shape == "long_test":
        return [f"{plural(count('long_test'), 'part')} of ./dev test --long"]
    if shape == "other":
        return ["no table for: " + ", ".join(name for name in content if count(name))]
    return []


def parse(path):
    try:
        with open(path, encoding="utf-8") as file:
            content = json.load(file, parse_constant=no_number)
    except OSError as error:
        raise BadResults(f"report: {path}: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise BadResults(f"report: {path}: not JSON") from None
    if not isinstance(content, dict) or content.get("schema") != 1 or shape_of(content) is None:
        raise BadResults(f"report: {path}: not a result file of schema 1")
    if not isinstance(content.setdefault("machine", {}), dict):
        raise BadResults(f"report: {path}: a machine that is not an object")
    return content


def read_file(path):
    content = parse(path)
    shape = shape_of(content)
    claims = list_of(path, content, "claims")
    if not all(isinstance(claim, dict) for claim in claims):
        raise BadResults(f"report: {path}: claims that are not objects")
    return {"file": str(path), "commit": str(content.get("commit", "")),
            "machine": content["machine"], "claims": claims,
            "load_average": read_load(path, content),
            "runs": read_runs(path, content) if shape == "bench" else [],
            "locks": read_locks(path, content) if shape == "locks" else [],
            "programs": read_programs(path, content) if shape == "programs" else [],
            "columns": read_columns(path, content) if shape == "columns" else [],
            "not_shown": left_out(content, shape)}


def lasting(machine):
    """The machine without what changes while it runs."""
    return {name: value for name, value in machine.items() if name not in ("huge_pages", "numa_nodes")}


def machines(contents):
    """The different machines, in the order in which the files name them."""
    different = []
    for content in contents:
        if content["machine"] and not any(lasting(content["machine"]) == lasting(m)
                                          for m in different):
            different.append(content["machine"])
    return different


def data_of(run):
    """What a run works on, in words, and its size."""
    if "warehouses" in run:
        return "TPC-C, " + sized(run["warehouses"], "warehouse"), run["warehouses"]
    if "customers" in run:
        return "SmallBank, " + sized(run["customers"], "customer"), run["customers"]
    if "value_bytes" in run and "rows" in run:
        return f"stores, {sized(run['rows'], 'row')} of {run['value_bytes']} bytes", run["rows"]
    if "keys" not in run:
        return "an unrecorded number of keys", 0
    if "ops_per_txn" in run:
        return "YCSB transactions, " + sized(run["keys"], "row"), run["keys"]
    key_type = run.get("key_type", "u64")
    kind = "string" if key_type == "string" else f"{key_type} integer"
    return sized(run["keys"], kind + " key"), run["keys"]


def settings_of(run):
    # Values may be lists: as text they can be compared and looked up.
    told = ((name, run[name]) for name in SETTINGS if name in run and run[name] != SETTINGS[name])
    return tuple((name, value if isinstance(value, str) else json.dumps(value))
                 for name, value in told)


def simulated_name(content, run):
    name = run.get("machine") or content["machine"].get("simulated")
    if not name and not content["machine"].get("simulated"):
        return ""
    return f"simulated {name}" if is_text(name) else "simulated"


def work_of(one, run):
    """The kind of work of this run. Equal simulated runs have equal rates. Where the rates differ,
    the files say too little about the runs' settings, and the file's name tells them apart."""
    work = Work(run["workload"], run["dist"], settings_of(run))
    for other in one.works.get(work, []) if one.simulated else []:
        same = (other["index"], other["threads"]) == (run["index"], run["threads"])
        if same and other["mops"] != run["mops"]:
            return work._replace(settings=(*work.settings, ("file", basename(run["file"]))))
    return work


def key_sets(contents):
    """Groups all runs by machine, commit and data. Of equal runs in several files the last one
    counts."""
    sets, hosts = {}, [lasting(m) for m in machines(contents)]
    for content in contents:
        host = hosts.index(lasting(content["machine"])) if content["machine"] else -1
        for run in content["runs"]:
            data, size = data_of(run)
            simulated = simulated_name(content, run)
            one = sets.setdefault((host, content["commit"], simulated, data),
                                  KeySet(content["machine"], content["commit"], simulated, data,
                                         size))
            if run["file"] not in one.files:
                one.files.append(run["file"])
            runs = one.works[work_of(one, run)]
            others = [r for r in runs if (r["index"], r["threads"]) != (run["index"], run["threads"])]
            one.replaced += len(runs) - len(others)
            runs[:] = [*others, run]
    tell_apart(sets)
    return sorted(sets.values(), key=lambda s: (s.simulated, "integer" not in s.data, s.size))


def tell_apart(sets):
    """Sets with one title get the commit behind it, and the machine's number where the commit is
    not enough."""
    for part in (lambda host, commit: f"elidex {commit or 'of an unrecorded commit'}",
                 lambda host, commit: f"machine {host + 1}"):
        titles = [one.title for one in sets.values()]
        for (host, commit, _, _), one in sets.items():
            if titles.count(one.title) > 1:
                begin = f"{one.apart[:-1]}, " if one.apart else " ("
                one.apart = f"{begin}{part(host, commit)})"


def work_order(work):
    names = list(WORKLOADS)
    return (names.index(work.workload) if work.workload in names else len(names), work.workload,
            theta_of(work.dist),
            work.dist, [(name, len(value), value) for name, value in work.settings])  # 8 before 12


def workload_title(workload):
    family, _, number = workload.partition(":")
    if workload not in WORKLOADS and family in NUMBERED:
        return NUMBERED[family].format(number)
    return WORKLOADS.get(workload, workload)


def dist_title(work):
    """Where the keys are drawn, in words. Work on all keys and a database's own mix say it
    themselves."""
    if work.workload in ("load", "bulk-load", "delete", "churn"):
        return []
    if work.dist.startswith("zipf"):
        return [f"Zipf {theta_of(work.dist):g}"
                + (" scattered" if work.dist.endswith("scrambled") else "")]
    if work.dist.startswith("hot:"):
        return [f"hot region {work.dist[4:]}"]
    if work.workload.startswith("smallbank"):
        return [f"hot: {work.dist}"]
    return [] if work.dist == "nurand" else [f"{work.dist} keys"]


def setting_title(name, value):
    if name == "order":
        return f"in {value} order"
    if name == "scan_length":
        low, _, high = value.strip("[]").partition(", ")
        return f"scans of {low}" + (f" to {high}" if high not in ("", low) else "")
    if name == "ops_per_txn":
        return f"{value} operations each"
    return f"{name.replace('_', ' ')} {value}"


def work_title(work):
    told = [setting_title(name, value) for name, value in work.settings if name not in IN_DIST]
    return ", ".join([workload_title(work.workload), *dist_title(work), *told])


def is_database(runs):
    return any("by_type" in r or "value_bytes" in r for r in runs)


def rate_unit(runs):
    """What a rate counts: a database's run does transactions, an index's operations."""
    return "M transactions/s" if is_database(runs) else "Mops/s"


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
    """Fastest over slowest round; None where the slowest did nothing."""
    return run["mops_max"] / run["mops_min"] if run["mops_min"] > 0 else None
