"""What single operations of a column cost: runs bench/micro/column_benchmark.cpp, whose repetitions it interleaves at random, and keeps
the medians."""

import json
import subprocess

from real_data import BadData

COUNTERS = ("items_per_second", "ns_p50", "ns_p99", "ns_p999", "merges")
NANOSECONDS = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}


def medians(content):
    """One entry for each benchmark, by name and number: repetitions come in any order."""
    kept = []
    for one in content["benchmarks"]:
        if one.get("aggregate_name") != "median":
            continue
        name = one["run_name"].removeprefix("column/")
        for mark in ("/iterations:", "/manual_time", "/real_time", "/repeats:"):
            name = name.split(mark)[0]
        kept.append({"name": name, "ns": one["real_time"] * NANOSECONDS[one["time_unit"]]}
                    | {counter: one[counter] for counter in COUNTERS if counter in one})
    return sorted(kept, key=by_name_and_number)


def by_name_and_number(one):
    name, _, number = one["name"].rpartition("/")
    return (name, int(number)) if number.isdigit() else (one["name"], 0)


def measure(program, rounds):
    command = [program, "--benchmark_filter=^column/", "--benchmark_format=json", f"--benchmark_repetitions={rounds}",
               "--benchmark_enable_random_interleaving=true", "--benchmark_report_aggregates_only=true"]
    try:
        answer = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    except OSError as error:
        raise BadData(f"{program}: {error.strerror}") from None
    try:
        kept = medians(json.loads(answer.stdout))
    except (ValueError, TypeError, KeyError):
        kept = []
    if answer.returncode != 0 or not kept:
        raise BadData(f"{program} printed no results in JSON")
    return kept


def lines(costs):
    """A line for each, for people."""
    width = max(len(one["name"]) for one in costs)
    for one in costs:
        text = f"{one['name'].ljust(width)}  "
        if "ns_p99" in one:
            text += f"p50 {one['ns_p50']:.0f} ns, p99 {one['ns_p99']:.0f} ns, p99.9 {one['ns_p999']:.0f} ns"
            text += f", {one['merges']:.0f} merges"
        else:
            rate = one["items_per_second"]
            speed = f"{rate / 1e9:.2f} G/s" if rate >= 1e9 else f"{rate / 1e6:.2f} M/s"
            took = f"{one['ns'] / 1e6:.2f} ms" if one["ns"] >= 1e5 else f"{one['ns']:.1f} ns"
            text += f"{took.rjust(10)}  {speed.rjust(10)}"
        yield text
