"""What the claims of paper 001 about its indexes are judged by: runs on the simulated machines, each named by its point.

The paper's set-up (section 2.1.2): an index of 20 million values, in which those that are there are looked for and others
are inserted, all alike. Ours has a million at smoke scale, so that its trees have a level less. Section 2's machine has two
sockets of eight cores, section 4's four cores of two hardware threads each.
"""

from dataclasses import dataclass, field, replace

import machines

DELTA, TUNED, BTREE = "delta", "delta-tuned", "btree"
INSERTS = (0, 1, 2, 5, 20, 50, 100)  # in %
KEYS = {"smoke": 1_000_000, "full": 20_000_000}
OPERATIONS = {"smoke": 2_000, "full": 10_000}  # of each thread
SEEDS = {"smoke": 1, "full": 3}
SOCKET, SOCKETS = machines.KARNAGEL_MACHINE, machines.MACHINES / "sandybridge-ep-2x8.machine"

# The paper does not say how often TSX-R tries again: its number is turned first.
OUR_RETRIES = 8  # after conflicts: retry_budgets in retry.hpp
KNOBS = {"retries": (1, 2, 4, 32, 128), "abort_cycles": (80, 300), "instruction_cycles": (1, 6), "quantum": (50, 200)}
SMOKE_KNOBS = {"retries": (1, 2, 4, 32), "abort_cycles": (300,), "instruction_cycles": (6,)}
MEASURES = ("mops", "aborts_per_op", "wasted_pct", "fallback_pct")


@dataclass(frozen=True)
class Point:
    """One run but for its seed. `knobs`: what differs from the defaults, as (name, value)."""
    index: str
    inserts: int
    threads: int = 8
    machine: str = str(SOCKET)
    knobs: tuple = ()

    @property
    def workload(self):
        return f"insert-mix:{self.inserts}"


@dataclass
class Test:
    """A claim's judge, what it looks at, what is drawn beside that, and where all knobs are turned."""
    judge: object
    points: list
    beside: list = field(default_factory=list)
    turned: list = field(default_factory=list)


def by_inserts(index, threads=8, inserts=INSERTS, **more):
    return [Point(index, i, threads, **more) for i in inserts]


def by_threads(index, inserts, threads, **more):
    return [Point(index, inserts, n, **more) for n in threads]


def request(point, machine_file, scale, seed):
    made = {"index": point.index, "workload": point.workload, "dist": "uniform", "keys": KEYS[scale],
            "threads": point.threads, "operations": OPERATIONS[scale], "seed": seed,
            "machine_file": str(machine_file or point.machine), "set": {}, "quantum": 0}
    for name, value in point.knobs:
        if name in ("retries", "quantum"):
            made[name] = value
        else:
            made["set"][name] = value
    return made


def turns(point, machine_file, scale):
    """(knob, value, the point with that knob turned), away from the defaults; first the point itself."""
    usual = machines.values(machine_file or point.machine) | {"retries": OUR_RETRIES, "quantum": 0}
    yield "none", None, point
    for name, values in (SMOKE_KNOBS if scale == "smoke" else KNOBS).items():
        if name == "retries" and not point.index.endswith("/rtm"):
            continue
        for value in values:
            if value != usual[name]:
                yield name, value, replace(point, knobs=((name, value),))


def requests(machine_file, scale, seed, tests):
    """(point, seed) -> request."""
    seeds = [(seed + n) % 2**64 for n in range(SEEDS[scale])]
    wanted = {}
    for test in tests:
        wanted |= dict.fromkeys((p, s) for p in (*test.points, *test.beside) for s in seeds)
        wanted |= dict.fromkeys((t, seed) for p in test.turned for *_, t in turns(p, machine_file, scale))
    return {(p, s): request(p, machine_file, scale, s) for p, s in wanted}


def sensitivity(answers, machine_file, scale, seed, tests):
    """One row for each claim, turned point and value; "none": the point itself, of the first seed."""
    rows = []
    for claim, test in tests.items():
        for point in test.turned:
            for name, value, turned in turns(point, machine_file, scale):
                run = answers[turned, seed]
                rows.append({"figure": claim, "index": point.index, "dist": point.workload, "theta": 0,
                             "threads": point.threads, "knob": name, "value": value,
                             **{n: run[n] for n in MEASURES}})
    return rows
