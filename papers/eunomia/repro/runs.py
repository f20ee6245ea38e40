"""The runs that paper 003 is judged by, and what its judges and figures share.

A claim lists the points that it needs; several claims share the runs of equal points. 16 threads
unless said otherwise; retries are DBX's.

Trees are judged on the released benchmark (eunomia:THETA, bench/workload/workload.hpp), because
section 6.1's own sentence fixes it: "with theta = 0.99 the hottest tenth is accessed by 41 percent"
holds for Zipf over 20 items and not over a million keys. Two further workloads are shown but not
judged: put (the paper's text) and updates of a million preloaded keys. Skip lists are judged on
eunomia-list:THETA: the same benchmark with one hot front and interleaved keys, as the paper's text
says.

Euno-B+Tree is judged with the released program's policy (euno-btree/leaf-lock), because that
program's logs show the throughput that the paper prints (18.9 and 18.6 Mops/s at theta 0.99). The
policy of the paper's text, which marks hot keys (euno-btree), is drawn and told too. The same holds
for Euno-DBX.
"""

import json

import machines
from experiments import Point, Turned
from panels import COLOURS, TEXT_ALONE, looks
from verdicts import say

MACHINE = machines.MACHINES / "haswell-ep-2x10.machine"
# What the plots and the notes call our own tree.
OURS = "Euno-B+Tree+ (ours)"

HTM_TREE, MASSTREE, HTM_MASSTREE = "btree/htm-dbx", "masstree", "masstree/htm"
EUNO_TREE, KEY_BITS, OUR_TREE = "euno-btree/leaf-lock", "euno-btree", "euno-btree+"
HTM_LIST, LOCK_LIST, LOCK_FREE_LIST = "skiplist/htm", "skiplist/fglock", "skiplist/lockfree"
EUNO_LIST = "euno-skiplist"
SPLIT, PARTITIONED, CONTROLLED = "split", "split+part", "split+part+ccm"
TREE_STEPS = (f"{KEY_BITS}/{SPLIT}", f"{KEY_BITS}/{PARTITIONED}", EUNO_TREE)
KEY_BITS_STEP = f"{KEY_BITS}/{CONTROLLED}"
LIST_STEPS = tuple(f"{EUNO_LIST}/{step}" for step in (SPLIT, PARTITIONED, CONTROLLED))
# Databases, which run TPC-C: the paper's DBX, Euno-DBX and Silo; DBX's commit over our own tree;
# the first two with a commit that copies rows inside its region.
DBX, EUNO_DBX, KEY_BITS_DBX, OUR_DBX = (
    "db/dbx-locking:" + index for index in ("htm-btree", EUNO_TREE, KEY_BITS, OUR_TREE))
SILO = "db/silo:masstree"
COPYING_DBX, COPYING_EUNO_DBX = "db/dbx:htm-btree", "db/dbx:euno-btree"
TREES = (HTM_TREE, MASSTREE, HTM_MASSTREE, EUNO_TREE, KEY_BITS, OUR_TREE)
LISTS = (HTM_LIST, LOCK_LIST, LOCK_FREE_LIST, EUNO_LIST)

THETAS = (0.5, 0.9, 0.99)  # of trees at smoke scale
FULL_THETAS = (0, *(n / 10 for n in range(1, 10)), 0.99)
HOT_THETAS = (0, 0.2, 0.4, 0.5, 0.7, 0.9, 0.99)  # of the skip lists' input
KEYS = 1_000_000
OPERATIONS = {"smoke": 1_000, "full": 4_000}  # of each core
# Operations of each core, for trees on the workloads that begin with an empty tree.
FRONT_OPERATIONS = {"smoke": 8_000, "full": 64_000}
LIST_OPERATIONS = {"smoke": 4_000, "full": 32_000}
PUT, PRELOADED = "put", "a"  # the workloads beside the judged one
APART = "apart"  # eunomia-apart:THETA, on which no two threads access the same record
# TPC-C: transactions of each core, customers of a district, and items. The full ones are the
# specification's customers and items.
TPCC_SCALE = {"smoke": {"operations": 60, "customers": 300, "items": 10_000},
              "full": {"operations": 1_000, "customers": 3_000, "items": 100_000}}

# The paper's HTM-B+Tree has a version number in its nodes, which writes touch (section 3.2): it is
# our baseline. The tree without stands beside it.
DEFAULTS = {"retries": 128, "quantum": 0, "leaf_version": "head", "readers": "snapshots",
            "commit_retries": 128, "deliveries": "warehouse", "suppliers": "any",
            "order_numbers": "district"}
LEAN = (("leaf_version", "none"),)
# Rules under which TPC-C is easier. Two are the released program's: nobody orders or pays at
# another warehouse, and threads number their orders themselves. The specification allows the third:
# DELIVERY is a transaction for each district.
RULES = (("suppliers", "home"), ("order_numbers", "terminal"), ("deliveries", "district"))
FEW_RETRIES = (("commit_retries", 4),)  # otherwise as many as of the indexes
SPEED = "instructions_per_100_cycles"
# What is turned one at a time. The machine's own values and DEFAULTS are what it is otherwise.
KNOBS = {
    "retries": (8, 16, 64, 128, 1000), "abort_cycles": (80, 160, 300), "quantum": (0, 50, 200),
    SPEED: (100, 200, 400), "window_instructions": (0,),
    "requests_outlive_aborts": (0,), "commit_exposed_cycles": (0, 31), "line_order": (0, 1, 2),
    "jitter_cycles": (0, 5, 50),
    "leaf_version": ("none", "head", "line"), "readers": ("transactions",),
    **{name: (value,) for name, value in (*RULES, *FEW_RETRIES)}
}
# One other value of each knob. Only full scale turns the others.
SMOKE_KNOBS = {
    "retries": (16, 128), SPEED: (100,),
    "requests_outlive_aborts": (0,), "commit_exposed_cycles": (31,), "jitter_cycles": (0,),
    "leaf_version": ("none",), "readers": ("transactions",),
    **{name: (value,) for name, value in (*RULES, *FEW_RETRIES)}
}
# Knobs of an index, not of the machine: the others run the same whatever they say.
DATABASES = (DBX, EUNO_DBX, KEY_BITS_DBX, SILO, OUR_DBX)  # whose knobs are turned
VERSIONED = (HTM_TREE, DBX, COPYING_DBX)
KNOBS_OF = {"retries": (HTM_TREE, KEY_BITS, KEY_BITS_STEP, OUR_TREE, *TREE_STEPS, HTM_MASSTREE,
                        HTM_LIST, EUNO_LIST, *LIST_STEPS, DBX, EUNO_DBX, KEY_BITS_DBX,
                        OUR_DBX),
            "leaf_version": VERSIONED, "readers": DATABASES,
            "commit_retries": (DBX, EUNO_DBX, KEY_BITS_DBX, OUR_DBX),
            **{name: DATABASES for name, _ in RULES}}
OUR_RETRIES = 12  # short_region_budgets in split_regions.hpp; the paper's indexes have DBX's 128
# Fewer retries than DBX's, which the notes tell of the claims that hang on them. Runs with more take
# an hour each once the baseline has collapsed: full scale alone has them.
FEWER_RETRIES = 16


def version_of(index):
    return (("leaf_version", DEFAULTS["leaf_version"]),) if index in VERSIONED else ()


def is_list(index):
    return "skiplist" in index


def at(index, theta, threads=16, workload=None, knobs=()):
    """workload: PUT, PRELOADED, APART, or READS[:BYTES] of eunomia:THETA[:READS[:BYTES]]."""
    dist = f"{'hot' if is_list(index) else 'zipf'}:{theta}"
    if workload == PUT:
        workload = f"put:{theta}"
    elif workload == APART:
        workload = f"eunomia-apart:{theta}"
    elif workload != PRELOADED:
        family = "eunomia-list" if is_list(index) else "eunomia"
        workload = f"{family}:{theta}" + (f":{workload}" if workload else "")
    return Point(index, workload, dist, threads, str(MACHINE), version_of(index), knobs)


def tpcc(database, warehouses=1, threads=16, knobs=()):
    more = (*version_of(database), ("warehouses", warehouses))
    return Point(database, "tpcc", "nurand", threads, str(MACHINE), more, knobs)


def curve(index, thetas=None, **more):
    thetas = thetas or (HOT_THETAS if is_list(index) else THETAS)
    return [at(index, theta, **more) for theta in thetas]


def rest_of_curve(*indexes, **more):
    """What full scale adds to the curves of these trees."""
    return [at(index, theta, **more) for index in indexes for theta in FULL_THETAS
            if theta not in THETAS]


def ran(runs, points):
    return [p for p in points if p in runs]


def whole_curve(runs, index, **more):
    """The points of a tree's curve that were run, of all thetas. The default points for a list, and
    for a tree of which a default point was not run."""
    if is_list(index) or not runs.has(curve(index, **more)):
        return curve(index, **more)
    return ran(runs, curve(index, FULL_THETAS, **more))


def theta_of(point):
    """0 of TPC-C's."""
    return json.loads(point.dist.partition(":")[2] or "0")


def warehouses_of(point):
    """None but of TPC-C's."""
    return dict(point.more).get("warehouses")


def size(point, scale):
    if warehouses_of(point):
        return {"keys": 0, **TPCC_SCALE[scale]}
    if point.workload.startswith("eunomia-list:"):
        return {"keys": 1, "operations": LIST_OPERATIONS[scale]}
    if point.workload.startswith(("eunomia:", "eunomia-apart:")):
        return {"keys": 1, "operations": FRONT_OPERATIONS[scale]}
    if point.workload.startswith("put:"):
        return {"keys": KEYS, "operations": FRONT_OPERATIONS[scale]}
    return {"keys": KEYS, "operations": OPERATIONS[scale]}


def knobs(point, scale):
    """Those that the index has. At smoke scale TPC-C turns no parameter of the machine, other
    points below theta 0.6 turn only what instructions cost, and the others all but that."""
    turned = dict(KNOBS if scale == "full" else SMOKE_KNOBS)
    if scale == "smoke" and warehouses_of(point):
        turned = {name: values for name, values in turned.items() if name in DEFAULTS}
    elif scale == "smoke" and theta_of(point) < 0.6:
        turned = {SPEED: turned[SPEED]}
    elif scale == "smoke":
        del turned[SPEED]
    return {name: values for name, values in turned.items()
            if point.index in KNOBS_OF.get(name, (point.index,))}


def usual(point):
    ours = {"retries": OUR_RETRIES} if point.index in (OUR_TREE, OUR_DBX) else {}
    return DEFAULTS | ours


def row(claim, point):
    houses = warehouses_of(point)
    dist = f"TPC-C, {houses} warehouse" + "s" * (houses > 1) if houses else point.dist
    return {"figure": claim.rstrip("abcdefgh"), "dist": dist, "theta": theta_of(point)}


FAMILY = Turned(
    "sensitivity", (MACHINE,), size, {"smoke": 1, "full": 5}, knobs=knobs, usual=usual, row=row,
    spread=("aborts_per_op", "wasted_pct"), kept=("leaf_version",), listed=True,
    otherwise="128 retries, of euno-btree+ 12, quantum 0, a version\nin each leaf of HTM-B+Tree",
    beside=("aborts_per_op", "aborts/op"))


# --- what the judges ask ---

def with_retries(point, retries):
    return point.turned("retries", retries)


def told_of_ours(runs, point, text, values):
    """What there is to say of our own tree, if it ran: with its own number of retries and with
    DBX's."""
    if point not in runs:
        return ""
    own, dbx = ("" if p not in runs else say(text, *values(runs[p]))
                for p in (point, with_retries(point, DEFAULTS["retries"])))
    more = f", with {DEFAULTS['retries']} retries in place of its {OUR_RETRIES} {dbx}"
    return f" {OURS}: {own}{more if dbx else ''}."


def told_of_key_bits(runs, point, text, values):
    """What there is to say of the tree that marks hot keys, if it ran."""
    if point not in runs:
        return ""
    return f" {LABELS[KEY_BITS]}: {say(text, *values(runs[point]))}."


def beside_retries(runs, text, values):
    """What is told of the runs, with fewer retries for all alike."""
    alike = runs.under(lambda p: with_retries(p, FEWER_RETRIES))
    return f"with {FEWER_RETRIES} retries for all alike {say(text, *values(alike))}."


def facts(values):
    """Least, average and most."""
    return min(values), sum(values) / len(values), max(values)


# --- what the figures share ---

LABELS = {
    HTM_TREE: "HTM-B+Tree", MASSTREE: "Masstree", HTM_MASSTREE: "HTM-Masstree",
    EUNO_TREE: "Euno-B+Tree", KEY_BITS: "Euno-B+Tree, key bits", OUR_TREE: OURS,
    HTM_LIST: "HTM-SkipList",
    LOCK_LIST: "FGLock-SkipList", LOCK_FREE_LIST: "LockFree-SkipList", EUNO_LIST: "Euno-SkipList"
}
LEAN_LABEL = "HTM-B+Tree, no versions"
PALE = ("#9BC4DE", "v")
CATEGORIES = ("same record", "different records", "shared metadata")
CONFLICT = "conflict"  # of any category
CAUSES = (*CATEGORIES, CONFLICT, "no conflict")
# One look for each index in all figures.
LOOKS = {**looks(LABELS[index] for index in TREES), **looks([LABELS[i] for i in LISTS], 1),
         LEAN_LABEL: PALE,
         **{cause: (colour, "") for cause, colour in zip(CAUSES, (*COLOURS[1::-1], *COLOURS[2:4],
                                                                  "#BBBBBB"))}}
DRAWN = {"looks": LOOKS, "machine": (MACHINE,), "lacking": TEXT_ALONE}
MOPS = "Mops/s"
