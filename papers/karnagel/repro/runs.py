"""The runs that paper 001 is judged by.

The paper's set-up (section 2.1.2): an index of 20 million values. Look-ups search for values that
are there, inserts add others, both uniformly. At smoke scale the index has a million values, so its
trees have one level less. Section 2's machine has two sockets of eight cores, section 4's four cores of two
hardware threads each.
"""

import machines
from experiments import Point, Turned

DELTA, TUNED, BTREE = "delta", "delta-tuned", "btree"
DELTA_RTM, TUNED_RTM, BTREE_RTM = (f"{index}/rtm" for index in (DELTA, TUNED, BTREE))
INSERTS = (0, 1, 2, 5, 20, 50, 100)  # in %
KEYS = {"smoke": 1_000_000, "full": 20_000_000}
OPERATIONS = {"smoke": 2_000, "full": 10_000}  # of each thread
SOCKET = machines.MACHINES / "haswell-i7-4770.machine"
SOCKETS = machines.MACHINES / "sandybridge-ep-2x8.machine"

# The paper does not say how often TSX-R tries again: its number is turned first.
OUR_RETRIES = 8  # after conflicts: retry_budgets in retry.hpp
KNOBS = {"retries": (1, 2, 4, 32, 128), "abort_cycles": (80, 300),
         "instructions_per_100_cycles": (100, 400), "window_instructions": (0,),
         "shared_core_percent": (50, 100), "read_table_sets": (1,), "quantum": (50, 200)}
# read_table_sets 1: a transaction may read little more than what the L1 holds.
SMOKE_KNOBS = {"retries": (1, 2, 4, 32), "abort_cycles": (300,), "window_instructions": (0,),
               "shared_core_percent": (50,), "read_table_sets": (1,)}


def at(index, inserts, threads=8, machine=SOCKET, knobs=()):
    return Point(index, f"insert-mix:{inserts}", "uniform", threads, str(machine), (), knobs)


def by_inserts(index, threads=8, machine=SOCKET):
    return [at(index, i, threads, machine) for i in INSERTS]


def by_threads(index, inserts, threads, machine=SOCKET):
    return [at(index, inserts, n, machine) for n in threads]


def inserts_of(point):
    return int(point.workload.removeprefix("insert-mix:"))


def size(point, scale):
    return {"keys": KEYS[scale], "operations": OPERATIONS[scale]}


def knobs(point, scale):
    turned = SMOKE_KNOBS if scale == "smoke" else KNOBS
    return {name: values for name, values in turned.items()
            if name != "retries" or point.index.endswith("/rtm")}


FAMILY = Turned(
    "sensitivity", (SOCKETS, SOCKET), size, knobs=knobs, listed=True,
    unsimulated="models of paper 001",
    usual=lambda point: {"retries": OUR_RETRIES, "quantum": 0},
    row=lambda claim, point: {"figure": claim, "dist": point.workload, "theta": 0},
    otherwise="8 retries after conflicts, quantum 0",
    beside=("fallback_pct", "% that took the lock"))
