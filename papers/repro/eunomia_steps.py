"""Claims of paper 003 about what each of its design choices brings: figures 16 and 17, theta 0.9, 20 threads."""

from dataclasses import replace

from eunomia_runs import (EUNO_LIST, EUNO_TREE, HTM_LIST, HTM_TREE, LEAN, LIST_STEPS, OUR_TREE, TREE_STEPS, Point, Test,
                          beside_retries, told_of_ours)
from verdicts import DIFFERS, Judgement, number, numbers, of_gain, of_ratio, within, worst

TREE = [Point(index, 0.9, threads=20) for index in (HTM_TREE, *TREE_STEPS)]
LIST = [Point(index, 0.9, threads=20) for index in (HTM_LIST, *LIST_STEPS)]
# The finished ones, with adaptive control: not in the paper's figure.
FINISHED = {"tree": Point(EUNO_TREE, 0.9, threads=20), "list": Point(EUNO_LIST, 0.9, threads=20)}
OUR_POINT = Point(OUR_TREE, 0.9, threads=20)
LEAN_TREE = replace(TREE[0], knobs=LEAN)
PAPER_TREE, PAPER_LIST = (1.83, 4.58, 11.10), (2.74, 6.55, 7.55)
STEPS = ("+split", "+partition", "+CCM")


def over_baseline(runs, points):
    """Of each step, the baseline's throughput being 1."""
    return [runs[p]["mops"] / runs[points[0]]["mops"] for p in points[1:]]


def shares(speedups):
    """Of the whole reduction of the time for an operation, each step's share in per cent; none if there is none."""
    times = [1, *(1 / s for s in speedups)]
    whole = times[0] - times[-1]
    return [100 * (a - b) / whole for a, b in zip(times, times[1:])] if whole > 0 else None


def finished(runs, which, baseline):
    point = FINISHED[which]
    return f"With adaptive control: {number(runs[point]['mops'] / baseline)}. " if point in runs else ""


def alike(runs, points):
    return "All steps " + beside_retries(lambda change: numbers(over_baseline(runs, [change(p) for p in points])))


def tree_steps(runs):
    """B+tree ablation at theta 0.9, 20 threads: +split 1.83, +partition 4.58, +CCM 11.10 x."""
    here = over_baseline(runs, TREE)
    base = runs[TREE[0]]["mops"]
    lean = [h * base / runs[LEAN_TREE]["mops"] for h in here]
    return Judgement("E-F16a", numbers(PAPER_TREE) + " x", numbers(here) + " x",
                     worst(map(of_gain, here, PAPER_TREE)),
                     f"Over the tree without versions: {numbers(lean)}. "
                     + finished(runs, "tree", base)
                     + alike(runs, TREE) + told_of_ours(runs, OUR_POINT, lambda r: number(r["mops"] / base)))


def list_steps(runs):
    """Skip list ablation at theta 0.9, 20 threads: +split 2.74, +partition 6.55, +CCM 7.55 x."""
    here = over_baseline(runs, LIST)
    return Judgement("E-F16b", numbers(PAPER_LIST) + " x", numbers(here) + " x",
                     worst(map(of_gain, here, PAPER_LIST)), finished(runs, "list", runs[LIST[0]]["mops"])
                     + alike(runs, LIST))


def time_shares(runs):
    """Execution-time reduction: split 50 % (tree) and 70 % (list), partition 25-35 %, CCM 15 % (tree)."""
    tree, skip_list = (shares(over_baseline(runs, points)) for points in (TREE, LIST))
    paper = "split 50, 70; partition 25-35; CCM 15 %"
    if tree is None or skip_list is None:
        return Judgement("E-F17", paper, "no reduction", DIFFERS)
    verdicts = [of_ratio(tree[0], 50), of_ratio(skip_list[0], 70), within(tree[1], 25, 35),
                within(skip_list[1], 25, 35), of_ratio(tree[2], 15)]
    return Judgement("E-F17", paper, f"tree {numbers(tree)}; list {numbers(skip_list)} %", worst(verdicts),
                     "From the runs of figure 16: of the time for an operation, in the order split, partition, CCM.")


TESTS = {
    "E-F16a": Test(tree_steps, [*TREE, LEAN_TREE], [FINISHED["tree"], OUR_POINT], [TREE[0], TREE[-1]],
                   [*TREE, FINISHED["tree"], OUR_POINT]),
    "E-F16b": Test(list_steps, LIST, [FINISHED["list"]], [LIST[0], LIST[-1]], [*LIST, FINISHED["list"]]),
    "E-F17": Test(time_shares, [*TREE, *LIST], retried=[*TREE, *LIST]),
}
