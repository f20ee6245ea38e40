"""Paper 003 on memory: section 6.5, 16 threads."""

from panels import COLOURS, Figure, Panel
from verdicts import Judgement, below, number, numbers, of_ratio, worst

from .runs import (EUNO_LIST, EUNO_TREE, FAMILY, HTM_LIST, HTM_TREE, KEYS, LEAN, MACHINE, PALE, at,
                   facts, theta_of)

THETAS = (0, 0.2, 0.4, 0.5, 0.7, 0.9, 1)
READS = (20, 50, 80)  # per cent
MIX_THETA = 0.5  # of the ratios; the paper does not say which
PAPER_TREE, PAPER_MIX, PAPER_MIX_LIST = (2.44, 5.64, 7.64), 4.21, 1.2
LOOKS = {"B+tree": (COLOURS[0], "o"), "B+tree, over no versions": PALE,
         "skip list": (COLOURS[1], "s")}
PAIRS = {"B+tree": (EUNO_TREE, HTM_TREE, {}),
         "B+tree, over no versions": (EUNO_TREE, HTM_TREE, {"knobs": LEAN}),
         "skip list": (EUNO_LIST, HTM_LIST, {})}

COVERS = (f"Bytes that the index holds for each of {KEYS:,} keys after they were loaded in random "
          "order and the run: nodes, conflict control, garbage that waits. Updates name keys that "
          "are there: no insert adds memory. A leaf of Euno-B+Tree is as large as the baseline's "
          "and only hot leaves have a control; the list's towers and values lie on cache lines of "
          "their own.")


def by_theta(index, **more):
    return [at(index, theta, **more) for theta in THETAS]


def by_mix(index, **more):
    return [at(index, MIX_THETA, workload="a" if reads == 50 else f"mix:{reads}", **more)
            for reads in READS]


def reads_of(point):
    return 50 if point.workload == "a" else int(point.workload.removeprefix("mix:"))


def overheads(runs, points_of):
    """name -> memory over the HTM index's, in per cent, where all points were run"""
    sides = {name: (points_of(euno), points_of(htm, **more))
             for name, (euno, htm, more) in PAIRS.items()}
    return {name: [100 * (ratio - 1) for ratio in runs.ratios(*both, "bytes_per_key")]
            for name, both in sides.items() if runs.has((*both[0], *both[1]))}


def figure(one, title, points_of, x_of, x, paper, footnote):
    """Tree and list by themselves: their overheads are of different sizes."""
    def made(runs):
        xs = [x_of(p) for p in points_of(EUNO_TREE)]
        here = {name: list(zip(xs, values)) for name, values in overheads(runs, points_of).items()}
        return Figure(one, title, [
            Panel(of, x, "over the HTM index, in %", "lines",
                  {name: points for name, points in here.items() if name.startswith(of)}, paper)
            for of in ("B+tree", "skip list")], 2, footnote, LOOKS, (MACHINE,))
    return made


FIGURE_1 = figure("E-M1", "Memory by skew, 16 threads", by_theta, theta_of, "skew: theta",
                  {"B+tree": [(0.5, y) for y in PAPER_TREE], "skip list": [(0.5, 0)]},
                  "The paper's marks: least, average and most over theta.")
FIGURE_2 = figure("E-M2", "Memory by gets and puts, 16 threads", by_mix, reads_of, "gets in %",
                  {"B+tree": [(50, PAPER_MIX)], "skip list": [(50, PAPER_MIX_LIST)]},
                  "The paper's marks: averages over the three ratios.")


def note(runs, before, lean, theta):
    sizes = ", ".join(f"{index} {number(runs[at(index, theta)]['bytes_per_key'])}"
                      for index in (EUNO_TREE, HTM_TREE, EUNO_LIST, HTM_LIST))
    return (f"{COVERS} {before}Over the tree without versions: {lean} %. Bytes a key at theta "
            f"{theta}: {sizes}.")


# No knob is turned: none of them changes what lies in memory.
def all_of(points):
    return [p for euno, htm, more in PAIRS.values() for p in (*points(euno), *points(htm, **more))]


@FAMILY.claim("E-M1", all_of(by_theta), FIGURE_1)
def by_skew(runs):
    """Memory overhead over the Zipf range: B+tree 2.44, 5.64, 7.64 % (min, avg, max), skip list 0
    %."""
    tree, lean, skip_list = map(facts, overheads(runs, by_theta).values())
    # The paper prints 1.75 against 1.75 GB: less than one per cent.
    verdicts = [*map(of_ratio, tree, PAPER_TREE), below(max(map(abs, skip_list)), 1)]
    return Judgement("2.44; 5.64; 7.64; list 0 %",
                     f"{numbers(tree)}; list {number(skip_list[1])} %", worst(verdicts),
                     note(runs, "", numbers(lean), 0))


@FAMILY.claim("E-M2", all_of(by_mix), FIGURE_2)
def by_ratio(runs):
    """Memory overhead over get/put ratios 0.2/0.8, 0.5/0.5, 0.8/0.2: B+tree 4.21 %, skip list 1.2 %
    on average."""
    tree, lean, skip_list = (facts(v)[1] for v in overheads(runs, by_mix).values())
    return Judgement("4.21; 1.2 %", f"{number(tree)}; {number(skip_list)} %",
                     worst([of_ratio(tree, PAPER_MIX), of_ratio(skip_list, PAPER_MIX_LIST)]),
                     note(runs, f"At theta {MIX_THETA}. ", number(lean), MIX_THETA))
