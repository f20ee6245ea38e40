"""The claims of paper 001 that follow from its own models, evaluated again; where the simulated machine can measure the
same, its figure stands beside the model's."""

import models
from figures import at
from verdicts import Judgement, below, number, of_ratio, worst

TRIALS = {"smoke": 10_000, "full": 200_000}
AVERAGE_LINEAR, WORST_LINEAR, AVERAGE_BTREE, AVERAGE_BINARY, WORST_BINARY = 93, 213, 20, 47, 53
CAPACITIES = {"8 ways, 32 KB": (64, 8), "4 ways, 16 KB": (64, 4)}  # sets and ways
PAPER_TABLE_1 = (4.78e-6, 6.39e-6, 5.94e-6, 5.52e-6, 5.14e-6)  # from the root to the leaves
PRINTED_NODES = (1, 16, 496, 15100, 465000)


class Models:
    """What the claims are judged by, computed when first asked for."""

    def __init__(self, scale, seed):
        self.trials, self.seed, self.known = TRIALS[scale], seed, {}
        self.measured = {}  # by the machine, for figure 7: series name -> points

    def overflow(self, name):
        if name not in self.known:
            self.known[name] = models.Overflow(*CAPACITIES[name], self.trials, self.seed)
        return self.known[name]

    def measured_at(self, lines, ways=4):
        """The machine's share of transactions that do not fit, in words; nothing where it was not asked."""
        points = self.measured.get(f"{ways} ways, machine")
        return f" The machine's L1 with {ways} ways: {number(at(points, lines))}." if points else ""

    def average(self, search, inner=models.DELTA_INNER, leaf=models.DELTA_LEAF, dictionary=True):
        return models.average_of(search, inner, leaf, dictionary, self.seed, self.trials)


def table_1(_):
    """Conflict probability P_C per level L4..L0, b=31, height 5: each within 25 %."""
    here = models.conflict_probabilities()
    literal = models.conflict_probabilities(nodes=PRINTED_NODES)
    return Judgement(
        "K-T1", "; ".join(f"{p:.2e}" for p in PAPER_TABLE_1), "; ".join(f"{p:.2e}" for p in here),
        worst(map(of_ratio, here, PAPER_TABLE_1)),
        "The table's probabilities follow from 1 / (0.69 b)^L and from nodes with 16 to 31 children; with the "
        f"node counts that it prints, P_C would be {'; '.join(f'{p:.2e}' for p in literal)}.")


def worst_linear(_):
    """Worst-case cache lines of a delta-index search, linear search: 213."""
    here = models.worst_linear()
    return Judgement("K-FP1", "213 lines", f"{here} lines", of_ratio(here, WORST_LINEAR), "The paper's own formula.")


def average_linear(these):
    """Average cache lines of a delta-index search, linear search: 93."""
    here = these.average(models.linear_search)
    return Judgement("K-FP2", "93 lines", f"{number(here)} lines", of_ratio(here, AVERAGE_LINEAR),
                     "The paper measured its index; here random searches through nodes of the sizes that it names.")


def average_btree(these):
    """Typical cache lines of a B+tree search: 20."""
    here = these.average(models.linear_search, models.BTREE_INNER, models.BTREE_LEAF, dictionary=False)
    return Judgement("K-FP3", "20 lines", f"{number(here)} lines", of_ratio(here, AVERAGE_BTREE),
                     "The paper does not say how long keys are; with 8 bytes chosen.")


def binary(these):
    """Delta-index search with binary search, average and worst: 47 and 53, both within 25 %."""
    average, most = these.average(models.binary_search), models.worst_of(models.binary_search)
    return Judgement("K-FP4", "47; 53 lines", f"{number(average)}; {most} lines",
                     worst([of_ratio(average, AVERAGE_BINARY), of_ratio(most, WORST_BINARY)]))


def overflow_linear(these):
    """Overflow probability at the average lines of a linear search, 4-way half-size cache: about 60 %."""
    here = these.overflow("4 ways, 16 KB").probability(AVERAGE_LINEAR)
    return Judgement("K-F7a", "0.60", f"{here:.3f}", of_ratio(here, 0.60),
                     f"At 93 lines; the 8-way cache overflows with probability "
                     f"{these.overflow('8 ways, 32 KB').probability(AVERAGE_LINEAR):.3f}."
                     + these.measured_at(AVERAGE_LINEAR))


def overflow_binary(these):
    """Overflow probability with binary search, 4-way cache: less than 10 %."""
    cache = these.overflow("4 ways, 16 KB")
    here = cache.probability(AVERAGE_BINARY)
    return Judgement("K-F7b", "< 0.10", f"{here:.3f}", below(here, 0.10),
                     f"At the average of 47 lines; {cache.probability(WORST_BINARY):.3f} at the worst case's 53."
                     + these.measured_at(AVERAGE_BINARY))


MEASURED = ("K-F7a", "K-F7b")
TESTS = {"K-T1": table_1, "K-FP1": worst_linear, "K-FP2": average_linear, "K-FP3": average_btree, "K-FP4": binary,
         "K-F7a": overflow_linear, "K-F7b": overflow_binary}


def table_1_series():
    levels = range(models.TABLE_1_HEIGHT - 1, -1, -1)
    return {"id": "K-T1", "series": [{"name": "P_C", "points": list(zip(levels, models.conflict_probabilities()))}],
            "paper": [{"name": "P_C", "points": list(zip(levels, PAPER_TABLE_1))}]}


def overflow_series(these, lines_max=512, step=2):
    """Figure 7. The paper's curves are not digitised; its text gives points."""
    def curve(name):
        return [(n, these.overflow(name).probability(n)) for n in range(0, lines_max + 1, step)]
    measured = [{"name": name, "points": points} for name, points in these.measured.items()]
    return {"id": "K-F7", "series": [{"name": name, "points": curve(name)} for name in CAPACITIES] + measured,
            "paper": [{"name": "4 ways, 16 KB", "points": [(AVERAGE_LINEAR, 0.60)]}]}


def series_of(ids, these):
    found = []
    if "K-T1" in ids:
        found.append(table_1_series())
    if "K-F7a" in ids or "K-F7b" in ids:
        found.append(overflow_series(these))
    return found
