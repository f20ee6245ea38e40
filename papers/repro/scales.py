"""How much runs.

smoke: few points, in short runs; the verdicts are provisional.
settled: the same points, in long runs. Most figures have settled in them; see docs/EUNOMIA.md for
the one index that has not.
full: all points, several seeds, in the same long runs.

Values that depend on it stand in dictionaries of two keys, "smoke" and "full".
"""

SCALES = ("smoke", "settled", "full")


def lengths(scale):
    """The key for what makes a run long: operations, keys, trials."""
    return "smoke" if scale == "smoke" else "full"


def breadth(scale):
    """The key for how many runs there are: points, seeds, values of knobs."""
    return "full" if scale == "full" else "smoke"
