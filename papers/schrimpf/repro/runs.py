"""The thesis's digitised figures, and how a claim about figures is registered.

A judge gets the series of its figure, ours and the thesis's: series name -> [(x, y)]; of several
figures figure -> series.
"""

import csv
import functools
import re
from dataclasses import replace

import machines
from claims import ROOT, read_claims
from curves import distance
from experiments import Judged
from panels import Figure, Panel
from verdicts import CALIBRATION, without_evidence

MACHINE = machines.MACHINES / "haswell-i5-4670t.machine"
DIGITISED = ROOT / "papers" / "schrimpf" / "digitised"
# What the figures call a series, and what the experiments call the same.
SAME_SERIES = {"no synchronization (baseline line)": "no synchronization", "atomic": "TAS"}
with open(ROOT / "papers" / "schrimpf" / "figures.csv", encoding="utf-8") as _lines:
    ROWS = {row["figure"]: row for row in csv.DictReader(_lines)}  # titles and axes
ELISIONS = "counts of elisions"  # which only the simulated machine has
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


def calibrated_from(file, figure):
    """The parameters that the machine file takes from the thesis's figure."""
    source = re.compile(r"(^|; |calibrated from )thesis figure " + re.escape(figure) + r"(?![.\d])")
    return [name for name, (_, said) in machines.parameters(file).items() if source.search(said)]


def notes(file, here, paper):
    """What stands below a judge's own note: how far apart the series are that both have, for
    figures in per cent, and what the machine file takes from a figure."""
    for figure, series in paper.items():
        both = [n for n in series if n in here[figure] and len(series[n]) > 3]
        told = ", ".join(f"{n} {distance(here[figure][n], series[n]):.1f}" for n in both)
        if told and in_per_cent(figure):
            yield f"Mean distance between the curves in percentage points: {told}."
    taken = taken_from(file, here)
    if taken:
        yield f"The machine file takes {' and '.join(taken)} from this figure."


def taken_from(file, figures):
    return [name for figure in figures
            for name in calibrated_from(file, figure.removeprefix("S-"))]


def in_per_cent(figure):
    return "abort" in ROWS[figure]["y"]


def variants(experiment, runs):
    names = runs.variants(experiment.series) if experiment.varied else ()
    return ((name, runs.varied(name)) for name in names)


FAMILY = Judged("structure_sensitivity", (MACHINE,), changes=variants, regions="HLE",
                widths=(32, 66, 8), heading="structures, sensitivity: one thing changed at a time "
                "(a smoke run: the first seed alone)")


def claim(one, *figures, where="", shared=(), varied=False, simulated="", by_prefix=False):
    """Registers a judge of (here, paper). What claims.csv has no claim for is judged by a sentence
    of the thesis's text: the judge's docstring."""
    figures, number = figures or (one,), one.removeprefix("S-")
    where = where or ("appendix " if number.startswith("C") else "Fig ") + number
    where = "" if one in read_claims() else f"paper 004, {where} (no claim of claims.csv)"

    def register(judge):
        @functools.wraps(judge)
        def judged(runs):
            here = {f: runs.curves(f) for f in figures}
            paper = {f: read_figure(f.removeprefix("S-")) for f in figures}
            several = len(figures) > 1
            made = judge(here, paper) if several else judge(*here.values(), *paper.values())
            if runs.flags.host:  # the notes are about the simulated machine
                return replace(made, note="")
            file = runs.flags.machine or MACHINE
            own = (made.note, *notes(file, here, paper))
            made.note = " ".join(note for note in own if note)
            return without_evidence(made, CALIBRATION) if taken_from(file, here) else made

        FAMILY.claim(one, (), *(FIGURES[f] for f in figures), where=where, shared=shared,
                     series=figures, varied=varied, simulated=simulated,
                     by_prefix=by_prefix)(judged)
        return judge
    return register


def overlay(one, runs):
    """Our curves over the thesis's; a pair of bars for each series where each has one point."""
    row, here, paper = ROWS[one], runs.curves(one), read_figure(one.removeprefix("S-"))
    bars = all(len(points) == 1 for points in here.values())
    reach = max(x for points in here.values() for x, _ in points)
    shown = {name: [(x, y) for x, y in points if x <= 1.02 * reach]
             for name, points in paper.items()}
    panel = Panel("", row["x"], row["y"], "pairs" if bars else "lines", here, shown, not bars,
                  overlapping=True, per_cent=in_per_cent(one),
                  x_scale="log" if row["form"] == "log" else "linear")
    return Figure(one, row["title"], [panel], machine=(MACHINE,), data=(here, paper),
                  size=(10.4, 4.6))


# id -> the function of the runs that gives the figure
FIGURES = {one: functools.partial(overlay, one) for one in ROWS}
