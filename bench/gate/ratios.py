"""What the gate compares: for each row the rate of a map or a database over that of its yardstick, in the same round.

The yardstick is a peer with one thread, measured seconds apart from the map. Rows without a peer use the machine's
speed, from the start of the same round. A row's rate lies in `raw_mops` of the runs, one number for each round. A
machine that is slow for several rounds changes both rates, so their ratio changes little. The median of these ratios
is the row's figure. Its interval needs no assumption about how they are distributed: the true
median lies between the k-th smallest and the k-th largest of n ratios unless fewer than k of them fell on one side of
it, which is a question of tossing a coin n times (the interval that belongs to the sign test).
"""

import math
import statistics
from dataclasses import dataclass

# What the peer is asked for in place of what the map is asked for: it has no call for many keys.
PEERS_WORKLOAD = {"multi-get:16": "c", "multi-get:32": "c", "multi-get:64": "c", "multi-upsert:64": "load"}
CONFIDENCE = 0.95


class BadGate(Exception):
    """One line for the user; nothing was compared."""


@dataclass(frozen=True)
class Series:
    """What has one rate in each round."""
    index: str
    what: str
    workload: str
    threads: int

    def __str__(self):
        threads = "1 thread" if self.threads == 1 else f"{self.threads} threads"
        return f"{self.index}: {self.what}, {self.workload}, {threads}"


# The yardstick of rows without a peer: how fast is the machine?
MACHINE = Series("absl+mutex", "1M random u64", "c", 1)


@dataclass(frozen=True)
class Row:
    """A row's figure: the rate of its series over that of its yardstick in the same round."""
    index: str
    what: str
    workload: str
    threads: int
    peer: str

    def series(self):
        return Series(self.index, self.what, self.workload, self.threads)

    def yardstick(self):
        return Series(self.peer, self.what, PEERS_WORKLOAD.get(self.workload, self.workload), 1) if self.peer else MACHINE

    def __str__(self):
        return str(self.series())


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
    """The row's ratio in each round. `runs` maps a Series to the rates of the rounds."""
    rates, yardstick = (runs.get(one) for one in (row.series(), row.yardstick()))
    if rates is None or yardstick is None:
        raise BadGate(f"no run of '{row.series() if rates is None else row.yardstick()}'")
    if len(rates) != len(yardstick):
        raise BadGate(f"the row '{row}' has {len(rates)} rounds, and its yardstick '{row.yardstick()}' {len(yardstick)}")
    if len(rates) < ROUNDS_MIN:
        raise BadGate(f"the row '{row}' has {len(rates)} rounds (expected at least {ROUNDS_MIN})")
    return [mine / theirs for mine, theirs in zip(rates, yardstick)]


def figures(runs, rows):
    return {row: figure(ratios(runs, row)) for row in rows}


def verdict(stored, now):
    """Only intervals that do not touch tell a difference."""
    return "slower" if now.high < stored.low else "faster" if now.low > stored.high else "same"


def drop_found_pct(stored, now):
    """By how much lower still `now` would have had to be for the verdict `slower`: what the noise hides."""
    return max(0.0, 1 - stored.low / now.high) * 100
