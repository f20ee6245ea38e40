"""What the claims of paper 004 about txbench (chapter 5) are judged by: runs on the simulated machine, each named by its point.

The thesis has 1 to 64 clients over a network, four cores. The machine has no scheduler, so clients end at its hardware threads: four
on the thesis's, twenty cores and forty hardware threads on `haswell-ep-2x10`, which stands beside it and is no substitute for 64 clients on four
cores.
"""

from dataclasses import dataclass

import machines
from outputs import table

UNMODIFIED, HLE, RETRIED, PTHREAD, LOCK_MUTEX, LATCHES, SHARDED = (
    "db/2pl:" + name for name in ("unmodified", "hle", "retried", "pthread", "lock-mutex", "transaction-latches", "sharded"))
THESIS = (HLE, RETRIED, PTHREAD, LOCK_MUTEX, LATCHES)  # its five
VARIANTS = (UNMODIFIED, *THESIS, SHARDED)
EXCHANGING = {LOCK_MUTEX: LOCK_MUTEX + "-tas-t", LATCHES: LATCHES + "-tas-t"}  # the same with the thesis's own loop
SHORT = {name: name.removeprefix("db/2pl:") for name in (*VARIANTS, *EXCHANGING.values())}

MACHINE, MANY_CORES = str(machines.THESIS_MACHINE), str(machines.EUNOMIA_MACHINE)
CLIENTS = (1, 2, 4)
MANY_CLIENTS = (4, 10, 20, 40)
ROWS = 100_000  # in all three tables, as in the thesis
# The mean. Chosen so that four clients keep each core of the thesis's machine half busy under unmodified latches, as the thesis saw with
# `top`: a transaction takes 152,000 cycles there.
THINK_CYCLES = 150_000
OPERATIONS = {"smoke": 200, "full": 1_000}  # of each client
OPERATIONS_BESIDE = {"smoke": 50, "full": 200}  # with up to ten times as many clients
SEEDS = {"smoke": 3, "full": 9}


@dataclass(frozen=True)
class Point:
    """One run but for its seed. `knobs`: what differs from the defaults, as (name, value)."""
    index: str
    threads: int
    machine: str = MACHINE
    think_cycles: int = THINK_CYCLES
    knobs: tuple = ()


@dataclass(frozen=True)
class Scene:
    """Where a claim is looked at: everything but variant and clients."""
    machine: str = MACHINE
    think_cycles: int = THINK_CYCLES
    knobs: tuple = ()
    exchanging: bool = False  # the thesis's loop in place of the library's, where the thesis has it

    def point(self, variant, clients):
        if self.exchanging:
            variant = EXCHANGING.get(variant, variant)
        return Point(variant, clients, self.machine, self.think_cycles, self.knobs)


USUAL = Scene()
BESIDE = {"thinking": Scene(MANY_CORES), "busy": Scene(MANY_CORES, 0)}  # with more clients than the thesis's machine has cores
# One thing changed at a time.
CHANGES = {
    "nothing": USUAL,
    "no think time: cores always busy": Scene(think_cycles=0),
    "think time four times as long": Scene(think_cycles=4 * THINK_CYCLES),
    "lock-mutex, transaction latches by TAS-T": Scene(exchanging=True),
    "the same without think time": Scene(exchanging=True, think_cycles=0),
    "3,000 rows": Scene(knobs=(("rows", 3_000),)),
    "aborts 80 cycles": Scene(knobs=(("abort_cycles", 80),)),
    "aborts 320 cycles": Scene(knobs=(("abort_cycles", 320),)),
    "system calls 5,000 cycles": Scene(knobs=(("system_call_cycles", 5_000),)),
}


@dataclass
class Test:
    judge: object  # of runs and a scene


def machines_of(machine_file):
    return [machine_file] if machine_file else [MACHINE, MANY_CORES]


def points_of(scene, clients=CLIENTS, variants=VARIANTS):
    return [scene.point(variant, n) for variant in variants for n in clients]


def request(point, machine_file, scale, seed):
    operations = OPERATIONS if machine_file or point.machine == MACHINE else OPERATIONS_BESIDE
    made = {"index": point.index, "workload": "txbench", "dist": "uniform", "keys": 0, "threads": point.threads,
            "operations": operations[scale], "seed": seed, "machine_file": str(machine_file or point.machine), "set": {},
            "quantum": 0, "rows": ROWS, "think_cycles": point.think_cycles}
    for name, value in point.knobs:
        if name in made:
            made[name] = value
        else:
            made["set"][name] = value
    return made


def requests(machine_file, scale, seed, tests):
    """(point, seed) -> request. All claims look at the same runs. On another machine than the thesis's nothing stands beside."""
    if not tests:
        return {}
    seeds = [(seed + n) % 2**64 for n in range(SEEDS[scale])]
    wanted = dict.fromkeys((p, s) for p in points_of(USUAL) for s in seeds)
    if not machine_file:
        for scene in BESIDE.values():
            wanted |= dict.fromkeys((p, seed) for p in points_of(scene, MANY_CLIENTS, (*VARIANTS, EXCHANGING[LOCK_MUTEX])))
    for scene in CHANGES.values():
        wanted |= dict.fromkeys((p, seed) for p in points_of(scene, variants=(UNMODIFIED, *THESIS)))
    return {(p, s): request(p, machine_file, scale, s) for p, s in wanted}


def first_seed(answers, seed):
    return {point: answer for (point, s), answer in answers.items() if s == seed}


def sensitivity(answers, seed, tests):
    """One row for each claim and change, all of the first seed."""
    runs = first_seed(answers, seed)
    rows = []
    for claim, test in tests.items():
        for name, scene in CHANGES.items():
            changed = test.judge(runs, scene)
            rows.append({"claim": claim, "changed": name, "here": changed.here, "verdict": changed.verdict})
    return rows


def sensitivity_told(rows):
    if not rows:
        return ""
    text = "\ntxbench, sensitivity: one thing changed at a time, of the first seed\n"
    for claim in dict.fromkeys(row["claim"] for row in rows):
        text += "\n" + table((claim, "here", "verdict"), [(row["changed"], row["here"], row["verdict"])
                                                          for row in rows if row["claim"] == claim], (34, 64, 8))
    return text


def is_as_it_is(point):
    return not point.knobs and point.think_cycles in (0, THINK_CYCLES)


