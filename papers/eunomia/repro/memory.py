"""Paper 003 on memory: section 6.5, 16 threads. No knob is turned: none changes what lies in
memory."""

from panels import COLOURS, TEXT_ALONE, Panel, figure
from verdicts import Judgement, below, number, numbers, of_ratio, say, values, worst

from .runs import (EUNO_LIST, EUNO_TREE, FAMILY, HTM_LIST, HTM_TREE, LEAN, MACHINE, PALE,
                   at, facts)

MIX_THETA = 0.5  # of the ratios; the paper does not say which
# What is varied: x -> a function that makes the point of an index, with further arguments of at().
SKEWS = {theta: lambda index, theta=theta, **more: at(index, theta, **more)
         for theta in (0, 0.2, 0.4, 0.5, 0.7, 0.9, 1)}
MIXES = {reads: lambda index, reads=reads, **more: with_mix(index, reads, **more)
         for reads in (20, 50, 80)}  # per cent
PAPER_TREE, PAPER_MIX, PAPER_MIX_LIST = (2.44, 5.64, 7.64), 4.21, 1.2
PAIRS = {"B+tree": (EUNO_TREE, HTM_TREE, {}),
         "B+tree, over no versions": (EUNO_TREE, HTM_TREE, {"knobs": LEAN}),
         "skip list": (EUNO_LIST, HTM_LIST, {})}
LOOKS = dict(zip(PAIRS, ((COLOURS[0], "o"), PALE, (COLOURS[1], "s"))))

COVERS = ("Bytes that the index holds for each key at the end of the run: nodes, conflict control, "
          "garbage that waits. Keys are those that the run has inserted. Only hot leaves of "
          "Euno-B+Tree and hot segments of the list have a control; the list's towers lie on cache "
          "lines of their own.")


def with_mix(index, reads, **more):
    """The index's point with `reads` per cent look-ups, on the workload that it is judged by."""
    return at(index, MIX_THETA, workload=str(reads / 100), **more)


def sides(varied, euno, htm, more):
    return [[point(index, **rest) for point in varied.values()]
            for index, rest in ((euno, {}), (htm, more))]


def all_of(varied):
    return [p for pair in PAIRS.values() for side in sides(varied, *pair) for p in side]


def overheads(runs, varied):
    """name -> memory over the HTM index's, in per cent, where all points were run"""
    both = {name: sides(varied, *pair) for name, pair in PAIRS.items()}
    return {name: [100 * (ratio - 1) for ratio in runs.ratios(*pair, "bytes_per_key")]
            for name, pair in both.items() if runs.has(pair[0] + pair[1])}


def memory_figure(one, title, varied, x, paper, footnote):
    """Tree and list by themselves: their overheads are of different sizes."""
    def panel(of):
        return lambda runs: Panel(of, x, "over the HTM index, in %", "lines", {
            name: list(zip(varied, values)) for name, values in overheads(runs, varied).items()
            if name.startswith(of)}, paper)
    return figure(one, title, [panel("B+tree"), panel("skip list")], 2, footnote=footnote,
                  looks=LOOKS, machine=(MACHINE,), lacking=TEXT_ALONE)


FIGURE_1 = memory_figure("E-M1", "Memory by skew, 16 threads", SKEWS, "skew: theta",
                         {"B+tree": [(0.5, y) for y in PAPER_TREE], "skip list": [(0.5, 0)]},
                         "The paper's marks: least, average and most over theta.")
FIGURE_2 = memory_figure("E-M2", "Memory by gets and puts, 16 threads", MIXES, "gets in %",
                         {"B+tree": [(50, PAPER_MIX)], "skip list": [(50, PAPER_MIX_LIST)]},
                         "The paper's marks: averages over the three ratios.")


def note(runs, lean, point, where):
    sizes = ", ".join(say("{} {}", index, runs[point(index)].bytes_per_key)
                      for index in (EUNO_TREE, HTM_TREE, EUNO_LIST, HTM_LIST))
    return f"{COVERS} Over the tree without versions: {lean} %. Bytes a key at {where}: {sizes}."


@FAMILY.claim("E-M1", all_of(SKEWS), FIGURE_1)
def by_skew(runs):
    tree, lean, skip_list = map(facts, overheads(runs, SKEWS).values())
    # The paper prints 1.75 against 1.75 GB: less than one per cent.
    verdicts = [*map(of_ratio, tree, PAPER_TREE), below(max(map(abs, skip_list)), 1)]
    return Judgement("2.44; 5.64; 7.64; list 0 %", say("{}; list {} %", tree, skip_list[1]),
                     worst(verdicts), note(runs, numbers(lean), SKEWS[0], "theta 0"),
                     values=values("%", (*tree, skip_list[1]), (*PAPER_TREE, 0), (
                         "least", "average", "most", "list")))


@FAMILY.claim("E-M2", all_of(MIXES), FIGURE_2)
def by_ratio(runs):
    tree, lean, skip_list = (facts(v)[1] for v in overheads(runs, MIXES).values())
    return Judgement("4.21; 1.2 %", say("{}; {} %", tree, skip_list),
                     worst([of_ratio(tree, PAPER_MIX), of_ratio(skip_list, PAPER_MIX_LIST)]),
                     note(runs, number(lean), MIXES[50], f"theta {MIX_THETA} and 50 % gets"),
                     values=values("%", (tree, skip_list), (PAPER_MIX, PAPER_MIX_LIST),
                                   ("tree", "list")))
