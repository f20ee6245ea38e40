"""What the gate compares: for each row ordered_map's rate over absl+mutex's with one thread, in the same round.

A row's rate lies in `raw_mops` of the runs, one number for each round, and the i-th numbers of all runs were measured
seconds apart. So a round has a ratio of its own, which a machine that is slower for a minute does not change. The
median of these ratios is the row's figure. Its interval needs no assumption about how they are distributed: the true
median lies between the k-th smallest and the k-th largest of n ratios unless fewer than k of them fell on one side of
it, which is a question of tossing a coin n times (the interval that belongs to the sign test).
"""

import math
import statistics
from dataclasses import dataclass

MAP, PEER = "ordered_map", "absl+mutex"
# What the peer is asked for in place of what ordered_map is asked for: it has no call for many keys.
PEERS_WORKLOAD = {"multi-get:32": "c"}
CONFIDENCE = 0.95


class BadGate(Exception):
    """One line for the user; nothing was compared."""


@dataclass(frozen=True)
class Row:
    keys: int
    workload: str
    dist: str
    threads: int

    def __str__(self):
        size = f"{self.keys // 10**6}M" if self.keys % 10**6 == 0 else str(self.keys)
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        return f"{size} keys, {self.workload}, {self.dist}, {threads}"


@dataclass(frozen=True)
class Figure:
    median: float
    low: float
    high: float

    def __str__(self):
        return f"{self.median:.2f} [{self.low:.2f}, {self.high:.2f}]"


def rank_of_bounds(count, confidence=CONFIDENCE):
    """The largest k whose k-th smallest and k-th largest number hold the median between them that surely; 0: none."""
    outside, k = 0.0, 0
    while k < count // 2:
        outside += 2 * math.comb(count, k) / 2**count
        if 1 - outside < confidence:
            break
        k += 1
    return k


# With fewer rounds not even the slowest and the fastest one hold the median surely enough.
ROUNDS_MIN = next(n for n in range(1, 100) if rank_of_bounds(n) > 0)


def figure(ratios):
    k = rank_of_bounds(len(ratios))
    if k == 0:
        raise ValueError(f"{len(ratios)} rounds; {ROUNDS_MIN} at least")
    ordered = sorted(ratios)
    return Figure(statistics.median(ordered), ordered[k - 1], ordered[-k])


def ratios(runs, row):
    """The row's ratio in each round. `runs` maps (index, Row) to the rates of the rounds."""
    peer = Row(row.keys, PEERS_WORKLOAD.get(row.workload, row.workload), row.dist, 1)
    rates, yardstick = (runs.get(one) for one in ((MAP, row), (PEER, peer)))
    if rates is None or yardstick is None:
        raise BadGate(f"no run of {MAP if rates is None else PEER} for the row '{row}'")
    if len(rates) != len(yardstick):
        raise BadGate(f"the row '{row}' has {len(rates)} rounds of {MAP} and {len(yardstick)} of {PEER}")
    if len(rates) < ROUNDS_MIN:
        raise BadGate(f"the row '{row}' has {len(rates)} rounds (expected at least {ROUNDS_MIN})")
    return [mine / theirs for mine, theirs in zip(rates, yardstick)]


def figures(runs, rows):
    return {row: figure(ratios(runs, row)) for row in rows}


def rows_of(runs):
    return {row for index, row in runs if index == MAP}


def verdict(stored, now):
    """Only intervals that do not touch tell a difference."""
    return "slower" if now.high < stored.low else "faster" if now.low > stored.high else "same"


def drop_found_pct(stored, now):
    """By how much lower still `now` would have had to be for the verdict `slower`: what the noise hides."""
    return max(0.0, 1 - stored.low / now.high) * 100
