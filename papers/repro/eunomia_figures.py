"""The figures of paper 003 as data: panels of series, ours beside the points that the paper's text names (its curves
are not digitised). A series is drawn when all of its points were run."""

import eunomia_memory
import eunomia_steps
import eunomia_threads
import eunomia_tpcc
from eunomia_runs import (CATEGORIES, DBX, EUNO_DBX, EUNO_LIST, EUNO_TREE, HTM_LIST, HTM_MASSTREE, HTM_TREE, LEAN, LOCK_FREE_LIST,
                          LOCK_LIST, MASSTREE, OUR_DBX, OUR_TREE, OURS, SILO, aborts_by_category, curve, figure_of)
from panels import Figure, Panel, with_something

LABELS = {
    HTM_TREE: "HTM-B+Tree", MASSTREE: "Masstree", HTM_MASSTREE: "HTM-Masstree", EUNO_TREE: "Euno-B+Tree",
    OUR_TREE: OURS, HTM_LIST: "HTM-SkipList", LOCK_LIST: "FGLock-SkipList",
    LOCK_FREE_LIST: "LockFree-SkipList", EUNO_LIST: "Euno-SkipList"
}
# Of the databases, each with its index: they share a look.
DATABASE_LABELS = {DBX: ("DBX", HTM_TREE), EUNO_DBX: ("Euno-DBX", EUNO_TREE), SILO: ("Silo", MASSTREE),
                   OUR_DBX: ("DBX over euno-btree+ (ours)", OUR_TREE)}
LEAN_LABEL = "HTM-B+Tree, no versions"
CAUSES = (*CATEGORIES, "no conflict")
MOPS, ABORTS = "Mops/s", "aborts per operation"
ZIPF, HOT = "Zipf theta (0: uniform)", "theta: hot region's share (0: uniform)"
TREES = (HTM_TREE, MASSTREE, HTM_MASSTREE, EUNO_TREE, OUR_TREE)
LISTS = (HTM_LIST, LOCK_LIST, LOCK_FREE_LIST, EUNO_LIST)


def label(point):
    return LEAN_LABEL if point.knobs == LEAN else LABELS[point.index]


def line(runs, points, x_of, measure="mops"):
    """{label: points}, or nothing where one was not run."""
    if not points or any(p not in runs for p in points):
        return {}
    return {label(points[0]): [(x_of(p), runs[p][measure], runs[p].get(measure + "_min", runs[p][measure]),
                                runs[p].get(measure + "_max", runs[p][measure])) for p in points]}


def over_theta(runs, indexes, measure="mops", lean=True):
    found = {}
    for index in indexes:
        found |= line(runs, curve(index), lambda p: p.theta, measure)
        if lean and index == HTM_TREE:
            found |= line(runs, curve(index, knobs=LEAN), lambda p: p.theta, measure)
    return found


def stack(runs, index):
    """Aborts per operation over theta in the paper's categories; nothing where a point was not run."""
    points = curve(index)
    if any(p not in runs for p in points):
        return {}
    parts = [(p.theta, aborts_by_category(runs[p])) for p in points]
    return {cause: [(theta, part[cause]) for theta, part in parts] for cause in CAUSES}


def figure_2(runs):
    return Figure("E-F2", "Throughput under contention, 16 threads", [
        Panel("HTM-B+Tree", ZIPF, MOPS, "lines", over_theta(runs, [HTM_TREE]), {LABELS[HTM_TREE]: [(0.9, 3, "<")]}),
        Panel("HTM-SkipList", HOT, MOPS, "lines", over_theta(runs, [HTM_LIST]))], 2)


def figure_3(runs):
    return Figure("E-F3", "Why transactions abort, 16 threads", [
        Panel("HTM-B+Tree", ZIPF, ABORTS, "stacks", stack(runs, HTM_TREE)),
        Panel("HTM-SkipList", HOT, ABORTS, "stacks", stack(runs, HTM_LIST)),
        Panel("HTM-B+Tree, wasted", ZIPF, "% of cycles, in aborts", "lines",
              over_theta(runs, [HTM_TREE], "wasted_pct"), {LABELS[HTM_TREE]: [(0.99, 94, ">")]}, per_cent=True),
        Panel("HTM-SkipList, wasted", HOT, "% of cycles, in aborts", "lines",
              over_theta(runs, [HTM_LIST], "wasted_pct"), per_cent=True)], 2)


def figure_10(runs):
    here = over_theta(runs, TREES)
    return Figure("E-F10", "Throughput of B+trees, 16 threads", [
        Panel("", ZIPF, MOPS, "lines", here,
              {LABELS[EUNO_TREE]: [(0.99, 18.6)], LABELS[HTM_TREE]: [(0.99, 1.7)], LABELS[MASSTREE]: [(0.99, 11.3)]})],
                  footnote="Masstree's point is 18.6 / 1.65." if LABELS[MASSTREE] in here else "")


def figure_11(runs):
    return Figure("E-F11", "Why transactions abort in B+trees, 16 threads", [
        Panel("HTM-B+Tree", ZIPF, ABORTS, "stacks", stack(runs, HTM_TREE), {"all": [(0.99, 60.3)]}),
        Panel("Euno-B+Tree", ZIPF, ABORTS, "stacks", stack(runs, EUNO_TREE), {"all": [(0.99, 1.9)]}),
        Panel(OURS, ZIPF, ABORTS, "stacks", stack(runs, OUR_TREE))], 3)


def figure_12(runs):
    return Figure("E-F12", "Throughput of skip lists, 16 threads",
                  [Panel("", HOT, MOPS, "lines", over_theta(runs, LISTS))],
                  footnote="The paper's text gives ratios alone.")


def figure_13(runs):
    return Figure("E-F13", "Why transactions abort in skip lists, 16 threads", [
        Panel("HTM-SkipList", HOT, ABORTS, "stacks", stack(runs, HTM_LIST)),
        Panel("Euno-SkipList", HOT, ABORTS, "stacks", stack(runs, EUNO_LIST))], 2)


def over_threads(runs, indexes, theta):
    found = {}
    for index in indexes:
        found |= line(runs, eunomia_threads.by_threads(index, [theta]), lambda p: p.threads)
    return found


def figure_14(runs):
    marks = {0.99: {LABELS[EUNO_TREE]: [(20, 21.9)], LABELS[MASSTREE]: [(20, 13.1)]}}
    return Figure("E-F14", "B+trees by threads", [
        Panel(f"theta {theta}", "threads", MOPS, "lines", over_threads(runs, TREES, theta), marks.get(theta, {}))
        for theta in eunomia_threads.TREE_THETAS], 2)


def figure_15(runs):
    return Figure("E-F15", "Skip lists by threads", [
        Panel(f"theta {theta}", "threads", MOPS, "lines", over_threads(runs, LISTS, theta))
        for theta in eunomia_threads.LIST_THETAS], 2)


def step_panel(title, runs, points, paper, finished):
    if any(p not in runs for p in points):
        return Panel(title, "", "", "bars", {})
    steps = dict(zip(("baseline", *eunomia_steps.STEPS), (1, *eunomia_steps.over_baseline(runs, points))))
    if finished in runs:
        steps["+adaptive"] = runs[finished]["mops"] / runs[points[0]]["mops"]
    if points is eunomia_steps.TREE:
        for point, name in ((eunomia_steps.OUR_POINT, OURS), (eunomia_steps.LEAN_TREE, "baseline, no versions")):
            if point in runs:
                steps[name] = runs[point]["mops"] / runs[points[0]]["mops"]
    return Panel(title, "", "speed-up over the baseline", "bars", {name: [(n, y)] for n, (name, y)
                                                                       in enumerate(steps.items())},
                 {name: [(n, y)] for n, (name, y) in enumerate(zip(steps, (1, *paper)))})


def figure_16(runs):
    done = eunomia_steps.FINISHED
    return Figure("E-F16", "What each step brings, theta 0.9, 20 threads", [
        step_panel("B+tree", runs, eunomia_steps.TREE, eunomia_steps.PAPER_TREE, done["tree"]),
        step_panel("skip list", runs, eunomia_steps.LIST, eunomia_steps.PAPER_LIST, done["list"])], 2)


def figure_17(runs):
    bars = {}
    for name, points, paper in (("tree", eunomia_steps.TREE, eunomia_steps.PAPER_TREE),
                                ("skip list", eunomia_steps.LIST, eunomia_steps.PAPER_LIST)):
        if all(p in runs for p in points):
            bars[f"{name}, here"] = eunomia_steps.shares(eunomia_steps.over_baseline(runs, points))
            bars[f"{name}, paper"] = eunomia_steps.shares(paper)
    here = {step: [(bar, parts[n]) for bar, parts in bars.items() if parts]
            for n, step in enumerate(eunomia_steps.STEPS)}
    return Figure("E-F17", "Of the reduction of execution time, by step", [
        Panel("", "", "% of the reduction", "stacks", here if bars else {})],
                  footnote="The paper's bars from the numbers of its figure 16.")


def tps(runs, points_of, x_of):
    """In thousands; of the databases all of whose points were run."""
    found = {}
    for database, (name, _) in DATABASE_LABELS.items():
        points = points_of(database)
        if all(p in runs for p in points):
            found[name] = [(x_of(p), *(1000 * runs[p].get(m, runs[p]["mops"]) for m in ("mops", "mops_min", "mops_max")))
                           for p in points]
    return found


def figure_18(runs):
    return Figure("E-F18", "TPC-C, standard mix", [
        Panel("16 threads", "warehouses", "1000 transactions/s", "lines",
              tps(runs, eunomia_tpcc.by_warehouses, lambda p: p.warehouses), even=True),
        Panel("1 warehouse", "threads", "1000 transactions/s", "lines",
              tps(runs, eunomia_tpcc.by_threads, lambda p: p.threads),
              {"Euno-DBX": [(eunomia_tpcc.MOST, eunomia_tpcc.PAPER_TPS / 1000)]})], 2,
                  footnote="The paper's text gives ratios beside the one number.")


def memory_panels(runs, points_of, x_of, x, paper):
    """Tree and list by themselves: their overheads are of different sizes."""
    pairs = {"B+tree": {"B+tree": (EUNO_TREE, HTM_TREE, {}),
                        "B+tree, over no versions": (EUNO_TREE, HTM_TREE, {"knobs": LEAN})},
             "skip list": {"skip list": (EUNO_LIST, HTM_LIST, {})}}
    panels = []
    for title, series in pairs.items():
        here = {}
        for name, (euno, htm, more) in series.items():
            first, second = points_of(euno), points_of(htm, **more)
            if all(p in runs for p in (*first, *second)):
                here[name] = [(x_of(a), eunomia_memory.over(runs, a, b)) for a, b in zip(first, second)]
        panels.append(Panel(title, x, "over the HTM index, in %", "lines", here, paper))
    return panels


def reads_of(point):
    return 50 if point.workload == "a" else int(point.workload.removeprefix("mix:"))


def memory_by_theta(runs):
    return Figure("E-M1", "Memory by skew, 16 threads", memory_panels(
        runs, eunomia_memory.by_theta, lambda p: p.theta, "skew: theta", {
            "B+tree": [(0.5, y) for y in eunomia_memory.PAPER_TREE], "skip list": [(0.5, 0)]}), 2,
                  footnote="The paper's marks: least, average and most over theta.")


def memory_by_mix(runs):
    return Figure("E-M2", "Memory by gets and puts, 16 threads", memory_panels(
        runs, eunomia_memory.by_mix, reads_of, "gets in %",
        {"B+tree": [(50, eunomia_memory.PAPER_MIX)], "skip list": [(50, eunomia_memory.PAPER_MIX_LIST)]}), 2,
                  footnote="The paper's marks: averages over the three ratios.")


FIGURES = {"E-F2": figure_2, "E-F3": figure_3, "E-F10": figure_10, "E-F11": figure_11, "E-F12": figure_12,
           "E-F13": figure_13, "E-F14": figure_14, "E-F15": figure_15, "E-F16": figure_16, "E-F17": figure_17,
           "E-F18": figure_18,
           "E-M1": memory_by_theta, "E-M2": memory_by_mix}


def drawn(ids, runs):
    """The figures of the claims, without panels that have nothing in them."""
    return with_something([FIGURES[f](runs) for f in dict.fromkeys(figure_of(i) for i in ids) if f in FIGURES])
