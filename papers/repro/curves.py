"""Functions of a curve, which is a list of (x, y) in the order of x."""

import statistics


def at(points, x):
    """The curve's height there: straight lines between the points, its ends beyond them."""
    for (x0, y0), (x1, y1) in zip([points[0], *points], points):
        if x1 >= x:
            return y0 + (y1 - y0) * (x - x0) / (x1 - x0) if x1 > x0 else y1
    return points[-1][1]


def between(points, low, high):
    """The heights at low <= x < high."""
    return [y for x, y in points if low <= x < high]


def mean(values):
    values = list(values)
    return statistics.fmean(values) if values else 0.0


def last_below(points, height):
    """The largest x whose height is less; 0 where there is none."""
    return max((x for x, y in points if y < height), default=0.0)


def distance(here, paper):
    """The mean absolute difference at the paper's points, as far as ours reach."""
    reach = max(x for x, _ in here)
    return mean(abs(at(here, x) - y) for x, y in paper if x <= reach)


def rises(values):
    """Each is more than the one before."""
    values = list(values)
    return all(a < b for a, b in zip(values, values[1:]))
