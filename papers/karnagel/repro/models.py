"""The analytic models of paper 001: how likely two operations meet in a tree (section 2.2, table
1), how many cache lines a search touches (section 5.1), and how likely so many lines overflow a set
of the cache (figure 7).

    models.conflict_probabilities(31, 5)          # from the root to the leaves
    models.Overflow(64, 4, 10_000, seed=1).probability(93)

The paper leaves open how nodes lie in memory and how full they are. A comment at each constant says
what is chosen here, and why."""

import random
from bisect import bisect_right
from dataclasses import dataclass

BRANCHING = 31
TABLE_1_HEIGHT = 5
FOOTPRINT_HEIGHT = 6
FILL = 0.69  # the average of a B-tree's nodes: ln 2
LINE_BYTES = 64


# --- table 1 ---

def nodes_on_levels(branching, height):
    """Average numbers of nodes, from the root to the leaves.

    A node has between half and all of its children, that is 16 to 31, so 23 on average; the root
    has between 1 and 31, so 16. These are the counts that the paper's P_ACCESS is the reciprocal
    of; the counts that it prints beside it (16, 496, 15100, 465000) take full nodes below the root.
    """
    least = (branching + 1) // 2
    average, root = (least + branching) // 2, (1 + branching) // 2
    counts = [1, root]
    while len(counts) < height:
        counts.append(counts[-1] * average)
    return counts


def split_reaches(branching, level):
    """P_S: the probability that an insert propagates to that level; leaves are level 0.

    The paper prints 1 / (0.69 b^L); its numbers are 1 / (0.69 b)^L, the inserts that fill an
    average node on each level. """
    return 1 / (FILL * branching) ** level


def conflict_probabilities(branching=BRANCHING, height=TABLE_1_HEIGHT, nodes=None):
    """P_C, from the root to the leaves: an insert propagates to a node that another operation is
    at."""
    nodes = nodes or nodes_on_levels(branching, height)
    return [split_reaches(branching, height - 1 - depth) / count
            for depth, count in enumerate(nodes)]


# --- section 5.1: cache lines of a search ---

@dataclass(frozen=True)
class Node:
    """A header, then all keys, then all children (or values); each search reads the header."""

    key_bytes: int
    child_bytes: int
    header_bytes: int = 16

    def lines(self, probes, child):
        touched = {0} | {(self.header_bytes + self.key_bytes * p) // LINE_BYTES for p in probes}
        if self.child_bytes:
            first = self.header_bytes + self.key_bytes * (BRANCHING - 1)
            touched.add((first + self.child_bytes * child) // LINE_BYTES)
        return len(touched)


# 30 ids of 4 bytes and 31 pointers make the paper's 6 lines; without pointers they make its 3 for a
# leaf.
DELTA_INNER, DELTA_LEAF = Node(4, 8), Node(4, 0)
# The B+tree keeps its keys itself: 8 bytes each (chosen), and values of 8 bytes in the leaves.
BTREE_NODE = Node(8, 8)


def linear_search(keys, child):
    """The positions read until the first key that is not less; `child` keys are less."""
    return list(range(min(child + 1, keys)))


def binary_search(keys, child):
    low, high, probes = 0, keys, []
    while low < high:
        middle = (low + high) // 2
        probes.append(middle)
        low, high = (middle + 1, high) if middle < child else (low, middle)
    return probes


def worst_linear(branching=BRANCHING, height=FOOTPRINT_HEIGHT, inner_lines=6, leaf_lines=3):
    """The paper's formula: every line of every node on the path, and a dictionary lookup for each
    of their keys."""
    return inner_lines * (height - 1) + leaf_lines + height * (branching - 1)


def worst_of(search, inner=DELTA_INNER, leaf=DELTA_LEAF, height=FOOTPRINT_HEIGHT):
    """The most lines that a search through full nodes touches, dictionary lookups included."""
    def most(node):
        keys = BRANCHING - 1
        probes = [(search(keys, child), child) for child in range(keys + 1)]
        return max(len(read) + node.lines(read, child) for read, child in probes)
    return most(inner) * (height - 1) + most(leaf)


def average_of(search, inner, leaf, dictionary, seed, trials, height=FOOTPRINT_HEIGHT):
    """The mean over random searches: nodes have between half and all of their keys, the root
    between one and all."""
    chance, lines = random.Random(seed), 0
    most = BRANCHING - 1
    for _ in range(trials):
        for level in range(height):
            keys = chance.randint(1 if level == 0 else most // 2, most)
            child = chance.randint(0, keys)
            probes = search(keys, child)
            node = leaf if level == height - 1 else inner
            lines += node.lines(probes, child) + (len(probes) if dictionary else 0)
    return lines / trials


# --- figure 7: lines into the sets of a cache ---

def lines_until_overflow(sets, ways, chance):
    """Random lines go to random sets; so many until one set has more lines than ways."""
    held, lines = [0] * sets, 0
    while True:
        lines += 1
        at = int(chance.random() * sets)
        held[at] += 1
        if held[at] > ways:
            return lines


class Overflow:
    """The overflow probability as a function of the number of lines, by simulation."""

    def __init__(self, sets, ways, trials, seed):
        chance = random.Random(seed)
        self.firsts = sorted(lines_until_overflow(sets, ways, chance) for _ in range(trials))

    def probability(self, lines):
        return bisect_right(self.firsts, lines) / len(self.firsts)
