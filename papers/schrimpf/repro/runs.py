"""The thesis's digitised figures, and how a claim about figures is registered.

A judge gets the series of its figures, ours and the thesis's: figure -> series name -> [(x, y)].
"""

import csv
import functools
import re

import machines
from claims import ROOT
from curves import distance
from experiments import Judged
from panels import Figure, Panel

MACHINE = machines.MACHINES / "haswell-i5-4670t.machine"
DIGITISED = ROOT / "papers" / "schrimpf" / "digitised"
# What the figures call a series, and what the experiments call the same.
SAME_SERIES = {"no synchronization (baseline line)": "no synchronization", "atomic": "TAS"}
with open(ROOT / "papers" / "schrimpf" / "figures.csv", encoding="utf-8") as _lines:
    ROWS = {row["figure"]: row for row in csv.DictReader(_lines)}  # titles and axes
ONE_PLACE = "single-thread"  # in place of an x, where a figure has one bar for each series


def read_figure(figure, directory=DIGITISED):
    """series name -> [(x, y)], by x. Empty where the figure is not digitised."""
    found = {}
    # What figure 3.2 has beyond its right edge is in a file of its own.
    for file in (directory / f"fig_{figure}.csv", directory / f"fig_{figure}_hidden.csv"):
        if not file.exists():
            continue
        with open(file, encoding="utf-8", newline="") as lines:
            for row in csv.DictReader(lines):
                x = 0.0 if row["x"] == ONE_PLACE else float(row["x"])
                name = SAME_SERIES.get(row["series"], row["series"])
                found.setdefault(name, []).append((x, float(row["y"])))
    return {name: sorted(points) for name, points in found.items()}


def number_of(figure):
    return figure.removeprefix("S-")


def calibrated_from(file, figure):
    """The parameters that the machine file takes from the thesis's figure: agreement there is no
    evidence."""
    source = re.compile(r"(^|; |calibrated from )thesis figure " + re.escape(figure) + r"(?![.\d])")
    return [name for name, (_, said) in machines.parameters(file).items() if source.search(said)]


def distances_told(here, paper):
    """How far apart the series are that both have; for figures in per cent."""
    both = [name for name in paper if name in here and len(paper[name]) > 3]
    told = ", ".join(f"{name} {distance(here[name], paper[name]):.1f}" for name in both)
    return f"Mean distance between the curves in percentage points: {told}." if both else ""


def variants(experiment, runs):
    wanted = experiment.requests
    names = runs.variants(wanted.series) if wanted.varied else ()
    return ((name, runs.varied(name)) for name in names)


FAMILY = Judged("structure_sensitivity", (MACHINE,), changes=variants, regions="HLE",
                widths=(32, 66, 8), heading="structures, sensitivity: one thing changed at a time "
                "(a smoke run: the first seed alone)")


def judged(judge, figures, in_per_cent, runs):
    here = {f: runs.curves(f) for f in figures}
    paper = {f: read_figure(number_of(f)) for f in figures}
    made = judge(here, paper)
    notes = [made.note, *(distances_told(here[f], paper[f]) for f in figures if in_per_cent)]
    calibrated = [name for f in figures
                  for name in calibrated_from(runs.flags.machine or MACHINE, number_of(f))]
    if calibrated:
        notes.append(f"The machine file takes {' and '.join(calibrated)} from this figure, so that "
                     "agreement is no evidence.")
    made.note = " ".join(n for n in notes if n)
    return made


def claim(one, *figures, claimed=True, where="", in_per_cent=False, shared=(), varied=False):
    """Registers a judge of (here, paper). Figures that claims.csv has no claim for are judged by a
    sentence of the thesis's text."""
    number = number_of(one)
    where = where or (f"appendix {number}" if number.startswith("C") else f"Fig {number}")
    where = "" if claimed else f"paper 004, {where} (no claim of claims.csv)"

    def register(judge):
        def of_runs(runs):
            return judged(judge, figures, in_per_cent, runs)

        of_runs.__doc__ = judge.__doc__
        FAMILY.claim(one, (), *(FIGURES[f] for f in figures), where=where, shared=shared,
                     series=figures, varied=varied)(of_runs)
        return judge
    return register


def overlay(one, runs):
    """Our curves over the thesis's; a pair of bars for each series where each has one point."""
    row, here, paper = ROWS[one], runs.curves(one), read_figure(number_of(one))
    bars = all(len(points) == 1 for points in here.values())
    reach = max(x for points in here.values() for x, _ in points)
    shown = {name: [(x, y) for x, y in points if x <= 1.02 * reach]
             for name, points in paper.items()}
    panel = Panel("", row["x"], row["y"], "pairs" if bars else "lines", here, shown, not bars,
                  overlapping=True, per_cent="abort" in row["y"],
                  x_scale="log" if row["form"] == "log" else "linear")
    return Figure(one, row["title"], [panel], machine=(MACHINE,), data=(here, paper),
                  size=(10.4, 4.6))


# id -> the function of the runs that gives the figure
FIGURES = {one: functools.partial(overlay, one) for one in ROWS}
