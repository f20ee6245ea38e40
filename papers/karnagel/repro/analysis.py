"""Paper 001's models: table 1, figure 7 and section 5.1. What the simulated machine can count is
judged by its counts, and the note has the model's value; the rest is `formula`."""

import functools

import scales
from curves import at
from panels import Panel, figure
from verdicts import Judgement, below, compared, of_ratio, say, values, worst

from . import models
from .runs import BTREE_RTM, DELTA_RTM, FAMILY, KEYS, SOCKET, TUNED_RTM
from .runs import at as lookups

TRIALS = {"smoke": 10_000, "full": 200_000}
AVERAGE_LINEAR, AVERAGE_BINARY, WORST_BINARY = 93, 47, 53
EIGHT_WAYS, FOUR_WAYS = "8 ways, 32 KB", "4 ways, 16 KB"
CAPACITIES = {EIGHT_WAYS: (64, 8), FOUR_WAYS: (64, 4)}  # sets and ways
PAPER_TABLE_1 = (4.78e-6, 6.39e-6, 5.94e-6, 5.52e-6, 5.14e-6)  # from the root to the leaves
PRINTED_NODES = (1, 16, 496, 15100, 465000)
FOOTPRINTS = ((47, "right", "binary search:\naverage 47, worst 53"), (53, "left", ""),
              (93, "left", "linear:\naverage 93"), (213, "left", "linear:\nworst 213"))
DRAWN = {"machine": (SOCKET,), "said": "model of paper 001, {scale}", "whose": "here",
         "size": (10.4, 4.6)}


@functools.cache
def overflow(name, scale, seed):
    return models.Overflow(*CAPACITIES[name], TRIALS[scales.lengths(scale)], seed)


def probability(runs, name, lines):
    return overflow(name, runs.flags.scale, runs.flags.seed).probability(lines)


def average(runs, search, nodes=(models.DELTA_INNER, models.DELTA_LEAF), dictionary=True):
    return models.average_of(search, *nodes, dictionary, runs.flags.seed, TRIALS[scales.lengths(runs.flags.scale)])


def levels(values):
    return {"P_C": list(zip(range(models.TABLE_1_HEIGHT - 1, -1, -1), values))}


# The paper's curves of figure 7 are not digitised; its text gives points.
TABLE_1 = figure("K-T1", "Conflict probability by level of the tree", [lambda runs: Panel(
    "", "level (0: leaves, 4: root)", "P_C in millionths", "lines",
    levels(models.conflict_probabilities()), levels(PAPER_TABLE_1), digitised=True,
    overlapping=True, unit=1e-6, descending=True)], **DRAWN)
FIGURE_7 = figure("K-F7", "Overflow of a set of the cache", [lambda runs: Panel(
    "", "random cache lines in the transaction", "overflow probability", "lines",
    {name: [(n, probability(runs, name, n)) for n in range(0, 513, 2)] for name in CAPACITIES}
    | runs.curves("K-F7"), {FOUR_WAYS: [(AVERAGE_LINEAR, 0.60)]}, digitised=True, overlapping=True,
    footprints=FOOTPRINTS)], **DRAWN)


@FAMILY.claim("K-T1", (), TABLE_1, formula=True)
def conflicts_by_level(_):
    """Conflict probability P_C per level L4..L0, b=31, height 5: each within 25 %."""
    here = models.conflict_probabilities()
    told, paper, literal = ("; ".join(f"{p:.2e}" for p in values) for values in (
        here, PAPER_TABLE_1, models.conflict_probabilities(nodes=PRINTED_NODES)))
    return Judgement(paper, told, worst(map(of_ratio, here, PAPER_TABLE_1)),
                     "The table's probabilities follow from 1 / (0.69 b)^L and from nodes with 16 "
                     "to 31 children; with the node counts that it prints, P_C would be "
                     f"{literal}.", values=values("probability", here, PAPER_TABLE_1, [
                         f"L{level}" for level in range(models.TABLE_1_HEIGHT - 1, -1, -1)]))


FAMILY.claim("K-FP1", formula=True, judge=lambda _: compared(
    [models.worst_linear()], [213], " lines", "The paper's own formula."))


def counted(one, index, paper, model):
    """Registers a claim about the lines of a look-up's transaction, on average."""
    point = lookups(index, 0)

    def judge(runs):
        return compared([runs[point]["lines_per_commit"]], [paper], " lines",
                        say("On average, counted with {} million values of the paper's 20. The "
                            "model, random searches through nodes of the sizes that the paper "
                            "names: {}.", KEYS[scales.lengths(runs.flags.scale)] / 1e6, model(runs)))
    FAMILY.claim(one, [point], judge=judge, simulated="counts of lines")


counted("K-FP2", DELTA_RTM, AVERAGE_LINEAR, lambda runs: average(runs, models.linear_search))
# The paper does not say how long a B+tree's keys are; 8 bytes are chosen.
counted("K-FP3", BTREE_RTM, 20, lambda runs: average(
    runs, models.linear_search, (models.BTREE_NODE, models.BTREE_NODE), False))
# The worst case, 53 lines, is the model's alone.
counted("K-FP4", TUNED_RTM, AVERAGE_BINARY, lambda runs: [
    average(runs, models.binary_search), models.worst_of(models.binary_search)])


def measured(runs, lines):
    """The share of transactions that do not fit into a machine's L1 of 4 ways, if they write so many
    random lines; nothing where it was not asked."""
    points = runs.curves("K-F7").get("4 ways, machine")
    return say(" The machine's L1 with 4 ways: {}.", at(points, lines)) if points else ""


@FAMILY.claim("K-F7a", (), FIGURE_7, series=["K-F7"], formula=True)
def overflow_linear(runs):
    four, eight = (probability(runs, name, AVERAGE_LINEAR) for name in (FOUR_WAYS, EIGHT_WAYS))
    return Judgement("0.60", f"{four:.3f}", of_ratio(four, 0.60),
                     f"At 93 lines; the 8-way cache overflows with probability {eight:.3f}."
                     + measured(runs, AVERAGE_LINEAR), values=values("probability", [four], [0.60]))


@FAMILY.claim("K-F7b", (), FIGURE_7, series=["K-F7"], formula=True)
def overflow_binary(runs):
    usual, most = (probability(runs, FOUR_WAYS, n) for n in (AVERAGE_BINARY, WORST_BINARY))
    return Judgement("< 0.10", f"{usual:.3f}", below(usual, 0.10),
                     f"At the average of 47 lines; {most:.3f} at the worst case's 53."
                     + measured(runs, AVERAGE_BINARY),
                     values=values("probability", [usual], [0.10], ["(less than)"]))
