"""Claims of paper 003 about more threads: figures 14 and 15."""

from eunomia_runs import (EUNO_LIST, EUNO_TREE, HTM_LIST, HTM_MASSTREE, HTM_TREE, LOCK_FREE_LIST, LOCK_LIST, MASSTREE,
                          OUR_TREE, OURS, Point, Test)
from verdicts import AGREES_RATIO, Judgement, number, numbers, of_ratio, of_shape, worst

THREADS = (1, 4, 8, 16, 20)
TREE_THETAS = (0.2, 0.6, 0.9, 0.99)
LIST_THETAS = (0, 0.5, 0.7, 0.99)
LISTS = (HTM_LIST, LOCK_LIST, LOCK_FREE_LIST, EUNO_LIST)


def by_threads(index, thetas):
    return [Point(index, theta, threads=n) for theta in thetas for n in THREADS]


def heights(runs, index, theta):
    """threads -> Mops/s"""
    return {n: runs[Point(index, theta, threads=n)]["mops"] for n in THREADS}


def stops_after(mops, threads):
    """More threads than that bring less than a quarter more; that many bring more than a quarter over one."""
    later = max(m for n, m in mops.items() if n > threads)
    return later < AGREES_RATIO * mops[threads] and mops[threads] > AGREES_RATIO * mops[1]


def still_scales(mops, threads):
    """The most threads bring over a quarter more than that many, and no step on the way loses."""
    later = [m for n, m in mops.items() if n >= threads]
    return later[-1] > AGREES_RATIO * later[0] and all(a < b for a, b in zip(later, later[1:]))


def most_threads(runs):
    """20 threads, theta 0.99: Euno-B+Tree 21.9, Masstree 13.1 Mops/s."""
    here = [runs[Point(index, 0.99, threads=20)]["mops"] for index in (EUNO_TREE, MASSTREE)]
    eight = runs[Point(EUNO_TREE, 0.99, threads=8)]["mops"]
    ours = Point(OUR_TREE, 0.99, threads=20)
    return Judgement("E-F14a", "21.9; 13.1 Mops/s", numbers(here) + " Mops/s",
                     worst([of_ratio(here[0], 21.9), of_ratio(here[1], 13.1)]),
                     f"One over the other: {number(here[0] / here[1])}; in the paper 1.67. With 8 threads, all on "
                     f"one socket, Euno-B+Tree makes {number(eight)} Mops/s: what comes from another socket loses to "
                     "what is near, again and again."
                     + (f" {OURS}: {number(runs[ours]['mops'])} Mops/s." if ours in runs else ""))


def stopping(runs, point):
    return (f"{point.index} with {point.threads} threads at theta {point.theta} has "
            f"{number(runs[point]['aborts_per_op'])} aborts/op.")


def trees_stop(runs):
    """HTM-B+Tree stops scaling after 4 threads at theta 0.6, HTM-Masstree after 8 at theta 0.2."""
    tree, masstree = heights(runs, HTM_TREE, 0.6), heights(runs, HTM_MASSTREE, 0.2)
    holds = stops_after(tree, 4) and stops_after(masstree, 8)
    return Judgement("E-F14b", "after 4; after 8 threads",
                     f"{number(tree[4])} at 4, then at most {number(max(m for n, m in tree.items() if n > 4))}; "
                     f"{number(masstree[8])} at 8, then at most "
                     f"{number(max(m for n, m in masstree.items() if n > 8))} Mops/s", of_shape(holds),
                     f"{stopping(runs, Point(HTM_TREE, 0.6, threads=20))} "
                     f"{stopping(runs, Point(HTM_MASSTREE, 0.2, threads=20))}")


def only_one_scales(runs):
    """Only Euno-SkipList still scales at theta 0.99; the others stop after 4 cores."""
    there = {index: heights(runs, index, 0.99) for index in LISTS}
    stopped = [index for index in LISTS if index != EUNO_LIST and stops_after(there[index], 4)]
    scales = still_scales(there[EUNO_LIST], 4)
    return Judgement("E-F15", "Euno scales; HTM, locks, lock-free stop after 4",
                     "; ".join(f"{index} {number(mops[4])} at 4, {number(mops[20])} at 20"
                               for index, mops in there.items()) + " Mops/s",
                     of_shape(scales and len(stopped) == len(LISTS) - 1),
                     f"Euno-SkipList {'scales' if scales else 'does not scale'}; stopped after 4: "
                     f"{', '.join(stopped) or 'none'}. To stop: no number of threads beyond brings a quarter more. "
                     "Within our hot region two threads seldom want one key, so that locks and atomics hardly wait.")


TESTS = {
    "E-F14a": Test(most_threads, [p for index in (EUNO_TREE, MASSTREE) for p in by_threads(index, TREE_THETAS)],
                   by_threads(OUR_TREE, TREE_THETAS),
                   [Point(index, 0.99, threads=20) for index in (EUNO_TREE, MASSTREE)]),
    "E-F14b": Test(trees_stop, [p for index in (HTM_TREE, HTM_MASSTREE) for p in by_threads(index, TREE_THETAS)],
                   turned=[Point(HTM_TREE, 0.6, threads=20), Point(HTM_MASSTREE, 0.2, threads=20)]),
    "E-F15": Test(only_one_scales, [p for index in LISTS for p in by_threads(index, LIST_THETAS[-1:])],
                  turned=[Point(index, 0.99, threads=20) for index in LISTS],
                  drawn_in_full=[p for index in LISTS for p in by_threads(index, LIST_THETAS[:-1])]),
}
