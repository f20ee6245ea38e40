"""What the claims of paper 003 are judged by: runs on the simulated machine, each named by its point.

A claim lists the points that it needs (see Test). Several claims share the runs of equal points, and no claim asks for
another's. Section 6.1's set-up: half of the operations updates, 16 threads unless said otherwise; Zipf with hot keys
side by side for trees, a hot region for skip lists. A million integer keys (section 6.5: ten). Retries are DBX's.
"""

import statistics
from dataclasses import dataclass, field, replace
from math import exp, log

from seeds import by_point, of_median_seed

# What the plots and the notes call our own tree.
OURS = "Euno-B+Tree+ (ours)"

HTM_TREE, MASSTREE, HTM_MASSTREE = "btree/htm-dbx", "masstree", "masstree/htm"
EUNO_TREE, OUR_TREE = "euno-btree", "euno-btree+"
TREE_STEPS = tuple("euno-btree/" + step for step in ("split", "split+part", "split+part+ccm"))
HTM_LIST, LOCK_LIST, LOCK_FREE_LIST = "skiplist/htm", "skiplist/fglock", "skiplist/lockfree"
EUNO_LIST = "euno-skiplist"
LIST_STEPS = tuple("euno-skiplist/" + step for step in ("split", "split+part", "split+part+ccm"))
# Databases, which run TPC-C: the paper's DBX, Euno-DBX and Silo; DBX's commit over our own tree; the first two with a commit
# that copies rows inside its region.
DBX, EUNO_DBX, OUR_DBX = ("db/dbx-locking:" + index for index in ("htm-btree", "euno-btree", "euno-btree+"))
SILO = "db/silo:masstree"
COPYING_DBX, COPYING_EUNO_DBX = "db/dbx:htm-btree", "db/dbx:euno-btree"

THETAS = (0, 0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.99)
HOT_THETAS = (0, 0.2, 0.4, 0.5, 0.7, 0.9, 0.99)  # of the skip lists' input
KEYS = 1_000_000
OPERATIONS = {"smoke": 1_000, "full": 4_000}  # of each core
SEEDS = {"smoke": 1, "full": 3}
# TPC-C: transactions of each core; customers of a district and items. The specification has 3,000 and 100,000.
TRANSACTIONS = {"smoke": 60, "full": 400}
TPCC_SCALE = {"customers": 300, "items": 10_000}

# The paper's HTM-B+Tree has a version number in its nodes, which writes touch (section 3.2): it is our baseline. The
# tree without stands beside it.
DEFAULTS = {"retries": 128, "quantum": 0, "leaf_version": "head", "items": TPCC_SCALE["items"], "readers": "snapshots"}
LEAN = (("leaf_version", "none"),)
# What is turned one at a time. The machine's own values and DEFAULTS are what it is otherwise.
KNOBS = {
    "retries": (8, 16, 64, 128, 1000), "abort_cycles": (80, 160, 300), "quantum": (0, 50, 200),
    "instruction_cycles": (1, 3, 6), "leaf_version": ("none", "head", "line"), "items": (100_000,),
    "readers": ("transactions",)
}
# Six minutes are to do for all claims: one value away from the machine's own, but two of the knob that decides most.
SMOKE_KNOBS = {
    "retries": (16, 128, 1000), "abort_cycles": (300,), "quantum": (200,), "instruction_cycles": (6,),
    "leaf_version": ("none",), "items": (100_000,), "readers": ("transactions",)
}
# Knobs of an index, not of the machine: the others run the same whatever they say.
DATABASES = (DBX, EUNO_DBX, SILO, OUR_DBX)  # whose knobs are turned
VERSIONED = (HTM_TREE, DBX, COPYING_DBX)
KNOBS_OF = {"retries": (HTM_TREE, EUNO_TREE, OUR_TREE, *TREE_STEPS, HTM_MASSTREE, HTM_LIST, EUNO_LIST, *LIST_STEPS,
                        DBX, EUNO_DBX, OUR_DBX),
            "leaf_version": VERSIONED, "items": DATABASES, "readers": DATABASES}
OUR_RETRIES = 12  # short_region_budgets in split_regions.hpp; the paper's indexes have DBX's 128
# Fewer and more retries than DBX's, which the notes tell of the claims that hang on them.
OTHER_RETRIES = (16, 1000)
MEASURES = ("mops", "aborts_per_op", "wasted_pct", "fallback_pct")


@dataclass(frozen=True)
class Point:
    """One run but for its seed. `knobs`: what differs from the defaults, as (name, value)."""
    index: str
    theta: float
    threads: int = 16
    workload: str = "a"
    knobs: tuple = ()

    @property
    def dist(self):
        return f"{'hot' if 'skiplist' in self.index else 'zipf'}:{self.theta}"

    @property
    def is_calm(self):
        """Next to nothing aborts."""
        return self.theta < 0.6

    def asks(self, scale):
        """What it says of itself in a request."""
        return {"dist": self.dist, "keys": KEYS, "operations": OPERATIONS[scale]}


@dataclass(frozen=True)
class TpccPoint(Point):
    """A run of TPC-C on a database. Make it with tpcc()."""
    warehouses: int = 1

    @property
    def dist(self):
        return f"TPC-C, {self.warehouses} warehouse" + "s" * (self.warehouses > 1)

    @property
    def is_calm(self):
        return False

    def asks(self, scale):
        return {"dist": "nurand", "keys": 0, "operations": TRANSACTIONS[scale], "warehouses": self.warehouses,
                **TPCC_SCALE}


def tpcc(database, warehouses=1, threads=16, knobs=()):
    return TpccPoint(database, 0, threads, "tpcc", knobs, warehouses)


@dataclass
class Test:
    """A claim's judge, what it looks at, what is drawn beside that if it can run, where all knobs are turned and where
    the number of retries alone."""
    judge: object
    points: list
    beside: list = field(default_factory=list)
    turned: list = field(default_factory=list)
    retried: list = field(default_factory=list)
    drawn_in_full: list = field(default_factory=list)  # at full scale alone, and if it can run

    def turns(self, machine, scale, known):
        """(point, knob, value, the point with that knob turned); what cannot run is left out."""
        for point in dict.fromkeys(p for p in (*self.turned, *self.retried) if p.index in known):
            yield point, "none", None, point
            for name, value, turned in turns(point, machine, scale):
                if name == "retries" or point in self.turned:
                    yield point, name, value, turned


def curve(index, thetas=None, **more):
    thetas = thetas or (HOT_THETAS if "skiplist" in index else THETAS)
    return [Point(index, theta, **more) for theta in thetas]


def request(machine_file, point, scale, seed):
    made = {"index": point.index, "workload": point.workload, "threads": point.threads, "seed": seed,
            "machine_file": str(machine_file), "set": {}, "quantum": 0, **point.asks(scale)}
    if point.index in VERSIONED:
        made["leaf_version"] = DEFAULTS["leaf_version"]
    for name, value in point.knobs:
        if name in DEFAULTS:
            made[name] = value
        else:
            made["set"][name] = value
    return made


def defaults(machine):
    return {**{name: machine[name] for name in KNOBS if name in machine}, **DEFAULTS}


def turns(point, machine, scale):
    """(knob, value, the point with that knob turned): the knobs that this index has, away from their defaults. At low
    contention next to nothing aborts, so that at smoke scale it is turned only what an instruction costs there."""
    knobs = SMOKE_KNOBS if scale == "smoke" else KNOBS
    if scale == "smoke" and point.is_calm:
        knobs = {"instruction_cycles": knobs["instruction_cycles"]}
    usual = defaults(machine) | ({"retries": OUR_RETRIES} if point.index in (OUR_TREE, OUR_DBX) else {})
    for name, values in knobs.items():
        for value in values:
            if point.index in KNOBS_OF.get(name, (point.index,)) and value != usual[name]:
                yield name, value, replace(point, knobs=((name, value),))


def requests(machine_file, machine, scale, seed, tests, known):
    """(point, seed) -> request. `known`: the indexes that can run; nothing else is drawn beside."""
    seeds = [(seed + n) % 2**64 for n in range(SEEDS[scale])]
    wanted = {}
    for test in tests:
        looked_at = (*test.points, *test.beside, *(test.drawn_in_full if scale == "full" else ()))
        wanted |= dict.fromkeys((p, s) for p in looked_at if p.index in known for s in seeds)
        wanted |= dict.fromkeys((turned, seed) for *_, turned in test.turns(machine, scale, known))
    return {(p, s): request(machine_file, p, scale, s) for p, s in wanted}


def runs_of(answers):
    """point -> the run of the median seed, with what these claims ask besides."""
    found = {}
    for point, runs in by_point(answers).items():
        found[point] = of_median_seed(runs)
        if point.index in VERSIONED:
            found[point]["leaf_version"] = dict(point.knobs).get("leaf_version", DEFAULTS["leaf_version"])
        for name in ("aborts_per_op", "wasted_pct"):
            values = [r[name] for r in runs]
            found[point] |= {name: statistics.median(values), f"{name}_min": min(values), f"{name}_max": max(values)}
    return found


def figure_of(claim):
    """E-F10 for E-F10a."""
    return claim.rstrip("abcdefgh")


def sensitivity(answers, machine, scale, seed, tests, known):
    """One row for each figure, turned point and value; "none": the point itself, of the first seed."""
    rows = {}
    for claim, test in tests.items():
        for point, name, value, turned in test.turns(machine, scale, known):
            run = answers[turned, seed]
            rows[figure_of(claim), turned] = {
                "figure": figure_of(claim), "index": point.index, "dist": point.dist, "theta": point.theta,
                "threads": point.threads, "knob": name, "value": value, **{n: run[n] for n in MEASURES}}
    return list(rows.values())


# --- what the judges ask ---

def with_retries(point, retries):
    return replace(point, knobs=(("retries", retries),))


def told_of_ours(runs, point, told):
    """What there is to say of our own tree, if it ran: with its own number of retries and with DBX's."""
    if point not in runs:
        return ""
    usual = DEFAULTS["retries"]
    again = with_retries(point, usual)
    more = f", with {usual} retries in place of its {OUR_RETRIES} {told(runs[again])}" if again in runs else ""
    return f" {OURS}: {told(runs[point])}{more}."


def beside_retries(told):
    """What is told of the runs, `told(change)`, with other retries for all alike: change(point) is the run's point."""
    return "; ".join(f"with {n} retries for all alike {told(lambda p, n=n: with_retries(p, n))}"
                     for n in OTHER_RETRIES) + "."


def geometric_mean(values):
    values = list(values)
    return exp(sum(map(log, values)) / len(values))


def speedup(runs, first, second):
    """How many times as fast the first points are as the second, in the geometric mean."""
    return geometric_mean(runs[a]["mops"] / runs[b]["mops"] for a, b in zip(first, second, strict=True))


CATEGORIES = ("same record", "different records", "shared metadata")
RECORDS = ("leaf", "node", "node head", "value")


def conflict_counts(run):
    """Conflicts by the paper's categories (section 3.2), and those at the leaf level or on a list's records.

    A clash of overlapping bytes is on the same record, one of a line alone on different records, if records lie there;
    anywhere else it is on shared metadata: heads of leaves, locks, inner nodes. The runs insert nothing, so that nobody
    writes a skip list's links, which lie beside its records.
    """
    found = dict.fromkeys((*CATEGORIES, "leaf level"), 0)
    for c in run["conflicts"]:
        where, same, line = c["where"], c["true_sharing"], c["false_sharing"]
        if where.startswith("leaf") or where in ("node head", "value"):
            found["leaf level"] += same + line
        if where in RECORDS:
            found["same record"] += same
            found["different records"] += line
        else:
            found["shared metadata"] += same + line
    return found


def conflict_shares(run):
    """The same in per cent of all conflicts."""
    counts = conflict_counts(run)
    total = sum(counts[name] for name in CATEGORIES)
    return {name: 100 * count / total if total else 0.0 for name, count in counts.items()}


def aborts_by_category(run):
    """Aborts per operation: conflicts by category, then all other causes."""
    shares = conflict_shares(run)
    causes = run["aborts"]
    conflicts = run["aborts_per_op"] * causes["conflict"] / max(sum(causes.values()), 1)
    return {**{name: conflicts * shares[name] / 100 for name in CATEGORIES},
            "no conflict": run["aborts_per_op"] - conflicts}
