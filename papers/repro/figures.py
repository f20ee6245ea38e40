"""Series of points: the thesis's digitised figures, and what the judges ask of a curve."""

import csv

from claims import ROOT

THESIS = ROOT / "papers" / "schrimpf" / "digitised"

# What the figures call a series, and what the experiments call the same.
SAME_SERIES = {"no synchronization (baseline line)": "no synchronization", "atomic": "TAS"}
ONE_PLACE = "single-thread"  # in place of an x, where a figure has one bar for each series


def read_figure(figure, folder=THESIS):
    """series name -> [(x, y)], by x. Empty where the figure is not digitised."""
    found = {}
    # What figure 3.2 has beyond its right edge stands in a file of its own.
    for file in (folder / f"fig_{figure}.csv", folder / f"fig_{figure}_hidden.csv"):
        if not file.exists():
            continue
        with open(file, encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines):
                x = 0.0 if row["x"] == ONE_PLACE else float(row["x"])
                found.setdefault(SAME_SERIES.get(row["series"], row["series"]), []).append((x, float(row["y"])))
    return {name: sorted(points) for name, points in found.items()}


def series_of(answer):
    """An answer of the machine in the same form."""
    return {s["name"]: [(float(x), float(y)) for x, y in s["points"]] for s in answer["series"]}


def at(points, x):
    """The curve's height there: straight lines between the points, the last point beyond them."""
    before = points[0]
    for point in points:
        if point[0] >= x:
            if point[0] == before[0]:
                return point[1]
            return before[1] + (point[1] - before[1]) * (x - before[0]) / (point[0] - before[0])
        before = point
    return before[1]


def between(points, low, high):
    """The heights at low <= x < high."""
    return [y for x, y in points if low <= x < high]


def mean(values):
    values = list(values)
    return sum(values) / len(values) if values else 0.0


def last_below(points, height):
    """The largest x whose height is less; 0 where there is none."""
    return max((x for x, y in points if y < height), default=0.0)


def distance(here, paper):
    """The mean absolute difference at the paper's points, as far as ours reach."""
    reach = max(x for x, _ in here)
    return mean(abs(at(here, x) - y) for x, y in paper if x <= reach)


def distances_told(here, paper):
    """How far apart the series are that both have; for figures in per cent."""
    both = [name for name in paper if name in here and len(paper[name]) > 3]
    if not both:
        return ""
    told = ", ".join(f"{name} {distance(here[name], paper[name]):.1f}" for name in both)
    return f"Mean distance between the curves in percentage points: {told}."
