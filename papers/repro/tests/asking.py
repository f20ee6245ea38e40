"""What tests of judges share: experiments by id, and runs that the stand-in for the worker answers."""

import sys
from pathlib import Path
from types import SimpleNamespace

sys.path[:0] = [str(Path(__file__).resolve().parents[n]) for n in (0, 1, 3)]
import fake_worker  # noqa: E402
from frame import Runs, frame_of  # noqa: E402


class Asking:
    """The experiments of one family. seed: the first."""

    def __init__(self, family, seed=5):
        self.family, self.seed = family, seed
        self.tests = {e.id: e for e in family.experiments}

    def flags(self, scale="smoke", machine=None, seeds=None):
        return SimpleNamespace(scale=scale, seed=self.seed, seeds=seeds, machine=machine, host=None)

    def chosen(self, ids):
        return [self.tests[i] for i in ids or self.tests]

    def requests(self, *ids, known=None, **how):
        known = fake_worker.indexes() if known is None else known
        return self.family.requests(self.chosen(ids), self.flags(**how), known)

    def answers(self, *ids, **how):
        return fake_worker.run_all(self.requests(*ids, **how))

    def runs_of(self, answers, **how):
        return Runs(frame_of(answers), self.flags(**how), self.family)

    def runs(self, *ids, **how):
        return self.runs_of(self.answers(*ids, **how))

    def sensitivity(self, answers, *ids, scale="smoke"):
        return self.family.sensitivity(self.chosen(ids), self.runs_of(answers, scale=scale),
                                       fake_worker.indexes())

    def figures(self, runs, *ids):
        drawn = dict.fromkeys(f for e in self.chosen(ids) for f in e.figure)
        return [made for f in drawn if (made := f(runs).without_empty_panels()).panels]


def bend(runs, point, change):
    """Changes the run of a point."""
    for name, value in change.items():
        runs.table.at[point, name] = value
    return runs
