#!/usr/bin/env python3
"""Measures what the maps cost (bench/micro/map_costs.cpp), and what including their headers costs; prints medians.

    maps.py --elidex ELIDEX --benchmark MAP_COSTS --json FILE [--rounds N] [--records N] [--seconds S] [--compiler C]
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# A file that uses a map of u64, for each header.
PROGRAMS = {
    "<map>": ("map", "std::map<unsigned long, unsigned long>"),
    "<unordered_map>": ("unordered_map", "std::unordered_map<unsigned long, unsigned long>"),
    "elidex/ordered_map.hpp": ("elidex/ordered_map.hpp", "elidex::ordered_map<unsigned long, unsigned long>"),
    "elidex/hash_map.hpp": ("elidex/hash_map.hpp", "elidex::hash_map<unsigned long, unsigned long>"),
}
LOOK_UP = {"map": "m[k] = k; return m.count(k + 1);", "unordered_map": "m[k] = k; return m.count(k + 1);"}
WAYS = {"s to check a file": ["-fsyntax-only"], "s to compile a file, -O2": ["-O2", "-c", "-o", "/dev/null"]}


def program(header, name):
    body = LOOK_UP.get(header, "m.insert(k, k); return m.contains(k + 1);")
    return f"#include <{header}>\nunsigned long f({name}& m, unsigned long k) {{ {body} }}\n"


def compile_times(compiler, rounds, ways=WAYS):
    """Runs as map_costs writes them."""
    values = {(unit, of): [] for unit in ways for of in PROGRAMS}
    with tempfile.TemporaryDirectory() as directory:
        for round_number in range(rounds):
            for of, (header, name) in PROGRAMS.items():
                source = Path(directory) / f"{round_number}.cpp"
                source.write_text(program(header, name))
                for unit, flags in ways.items():
                    begin = time.monotonic()
                    subprocess.run([compiler, "-std=c++20", f"-I{ROOT / 'include'}", *flags, str(source)], check=True)
                    values[unit, of].append(time.monotonic() - begin)
    return [{"what": "#include", "of": of, "records": 1, "threads": 1, "unit": unit, "values": times}
            for (unit, of), times in values.items()]


def answer_of(command):
    answer = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True)
    if answer.returncode != 0:
        raise SystemExit(f"maps: {command[0]} ended with status {answer.returncode}")
    return json.loads(answer.stdout)


def situation(run):
    return run["what"], run["records"], run["threads"], run["unit"]


def with_medians(runs):
    """Adds the median, and the median of the rounds' ratios to the first run of the situation."""
    first = {}
    for run in runs:
        first.setdefault(situation(run), run["values"])
    def ratio(values, base):
        pairs = [(a, b) for a, b in zip(values, base) if b > 0]
        return statistics.median(a / b for a, b in pairs) if pairs else None
    return [run | {"median": statistics.median(run["values"]), "ratio": ratio(run["values"], first[situation(run)])}
            for run in runs]


def table(runs):
    for key in dict.fromkeys(situation(run) for run in runs):
        what, records, threads, unit = key
        yield f"{what}, {records} records, {threads} {'thread' if threads == 1 else 'threads'}: {unit}"
        for run in (run for run in runs if situation(run) == key):
            ratio = "" if run["ratio"] is None else f"{run['ratio']:8.2f}x"
            yield f"    {run['of']:38} {run['median']:12.2f} {ratio}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--elidex", "--benchmark", "--json"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--rounds", default="7", help="[7]")
    parser.add_argument("--records", default="1000000", help="of a loaded map [1000000]")
    parser.add_argument("--seconds", default="0.1", help="of a run with a hot key [0.1]")
    parser.add_argument("--compiler", default="g++", help="[g++]")
    arguments = parser.parse_args()
    load = os.getloadavg()[0]
    where = answer_of([arguments.elidex, "doctor", "--json", "-"])
    measured = answer_of([arguments.benchmark, "--rounds", arguments.rounds, "--records", arguments.records,
                          "--seconds", arguments.seconds])
    runs = with_medians(measured["runs"] + compile_times(arguments.compiler, int(arguments.rounds)))
    machine = where["machine"] | {"allocator": "the C library's"}  # map_costs links no other
    content = {"schema": 1, "commit": where["commit"], "machine": machine, "runs": runs,
               "load_average": {"start": load, "end": os.getloadavg()[0]}}
    arguments.json.parent.mkdir(parents=True, exist_ok=True)
    arguments.json.write_text(json.dumps(content, indent=1) + "\n")
    print("Medians; ratios to the first of each group, in the same round.")
    print("\n".join(table(runs)))
    print(f"\nAll of it: {arguments.json}")


if __name__ == "__main__":
    sys.exit(main())
