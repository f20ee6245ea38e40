"""Claims of paper 003 about memory: section 6.5, 16 threads."""

from eunomia_runs import EUNO_LIST, EUNO_TREE, HTM_LIST, HTM_TREE, KEYS, LEAN, Point, Test
from verdicts import Judgement, below, number, numbers, of_ratio, worst

THETAS = (0, 0.2, 0.4, 0.5, 0.7, 0.9, 1)
READS = (20, 50, 80)  # per cent
MIX_THETA = 0.5  # of the ratios; the paper does not say which
PAPER_TREE, PAPER_MIX, PAPER_MIX_LIST = (2.44, 5.64, 7.64), 4.21, 1.2

COVERS = (f"Bytes that the index holds for each of {KEYS:,} keys after they were loaded in random order and the run: "
          "nodes, conflict control, garbage that waits. Updates name keys that are there: no insert adds memory. "
          "A leaf of Euno-B+Tree is as large as the baseline's and only hot leaves have a control; the list's towers "
          "and values lie on cache lines of their own.")


def over(runs, euno, htm):
    """Memory over the HTM index's, in per cent."""
    return 100 * (runs[euno]["bytes_per_key"] / runs[htm]["bytes_per_key"] - 1)


def by_theta(index, **more):
    return [Point(index, theta, **more) for theta in THETAS]


def by_mix(index, **more):
    return [Point(index, MIX_THETA, workload="a" if reads == 50 else f"mix:{reads}", **more) for reads in READS]


def overheads(runs, euno, htm):
    return [over(runs, a, b) for a, b in zip(euno, htm)]


def summary(values):
    return min(values), sum(values) / len(values), max(values)


def per_key(runs, theta):
    return "Bytes a key at theta " + f"{theta}: " + ", ".join(
        f"{index} {number(runs[Point(index, theta)]['bytes_per_key'])}" for index in (EUNO_TREE, HTM_TREE, EUNO_LIST,
                                                                                      HTM_LIST)) + "."


def by_skew(runs):
    """Memory overhead over the Zipf range: B+tree 2.44, 5.64, 7.64 % (min, avg, max), skip list 0 %."""
    tree = summary(overheads(runs, by_theta(EUNO_TREE), by_theta(HTM_TREE)))
    lean = summary(overheads(runs, by_theta(EUNO_TREE), by_theta(HTM_TREE, knobs=LEAN)))
    skip_list = summary(overheads(runs, by_theta(EUNO_LIST), by_theta(HTM_LIST)))
    # The paper prints 1.75 against 1.75 GB: less than one per cent.
    verdicts = [*map(of_ratio, tree, PAPER_TREE), below(max(map(abs, skip_list)), 1)]
    return Judgement("E-M1", "2.44; 5.64; 7.64; list 0 %", f"{numbers(tree)}; list {number(skip_list[1])} %",
                     worst(verdicts), f"{COVERS} Over the tree without versions: {numbers(lean)} %. "
                     + per_key(runs, 0))


def by_ratio(runs):
    """Memory overhead over get/put ratios 0.2/0.8, 0.5/0.5, 0.8/0.2: B+tree 4.21 %, skip list 1.2 % on average."""
    tree = summary(overheads(runs, by_mix(EUNO_TREE), by_mix(HTM_TREE)))
    lean = summary(overheads(runs, by_mix(EUNO_TREE), by_mix(HTM_TREE, knobs=LEAN)))
    skip_list = summary(overheads(runs, by_mix(EUNO_LIST), by_mix(HTM_LIST)))
    return Judgement("E-M2", "4.21; 1.2 %", f"{number(tree[1])}; {number(skip_list[1])} %",
                     worst([of_ratio(tree[1], PAPER_MIX), of_ratio(skip_list[1], PAPER_MIX_LIST)]),
                     f"{COVERS} At theta {MIX_THETA}. Over the tree without versions: {number(lean[1])} %. "
                     + per_key(runs, MIX_THETA))


def all_of(points):
    return [*points(EUNO_TREE), *points(HTM_TREE), *points(HTM_TREE, knobs=LEAN), *points(EUNO_LIST), *points(HTM_LIST)]


# No knob is turned: none of them changes what lies in memory.
TESTS = {"E-M1": Test(by_skew, all_of(by_theta)), "E-M2": Test(by_ratio, all_of(by_mix))}
