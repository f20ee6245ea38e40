"""A figure as data: panels of series, ours beside the paper's."""

import csv
import io
from dataclasses import dataclass, field

# Okabe and Ito's colours, told apart by colour-blind readers; the markers tell series apart without
# colour.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00"]
# What a panel says that has nothing of papers 001 and 003: only their text is at hand, not the
# curves of their figures.
TEXT_ALONE = "no data in the paper's text"
MARKERS = ["o", "s", "D", "^", "v", "P", "X"]


def looks(names, first=0):
    """name -> (colour, marker), in turn."""
    return {name: (COLOURS[(n + first) % len(COLOURS)], MARKERS[(n + first) % len(MARKERS)])
            for n, name in enumerate(names)}


@dataclass
class Panel:
    """kind: lines, stacks (a bar of parts for each x), pairs (a bar of ours and one of the paper's
    for each series), groups (a bar of each series for each x) or numbers (pairs that lie one below
    the other; the paper's may be a range). here: name -> [(x, y)], of lines also (x, y, least,
    most)."""
    title: str
    x: str
    y: str
    kind: str
    here: dict
    paper: dict = field(default_factory=dict)  # name -> [(x, y)]; a bound's sign may stand third
    digitised: bool = False  # the paper's points are a curve
    overlapping: bool = False  # lines: the first is the widest
    per_cent: bool = False
    x_scale: str = "linear"  # log; symlog: linear up to 1
    elsewhere: bool = False  # what the paper has is among `here`
    names: dict = field(default_factory=dict)  # of places on the x axis
    footprints: tuple = ()  # (x, side, label): dotted lines
    unit: float = 1  # of the y axis
    descending: bool = False  # the x axis


@dataclass
class Figure:
    """said: the footnote, of the machine that ran it and `scale`."""
    id: str
    title: str
    panels: list
    columns: int = 1
    footnote: str = ""
    looks: dict = field(default_factory=dict)  # series name -> (colour, marker)
    machine: object = None  # the paper's own
    said: str = "simulated machine {machine}, {scale}"
    whose: str = "here, simulated"
    size: tuple = ()  # of a panel
    shown: dict = field(default_factory=dict)  # series name -> the legend's
    data: tuple = ()  # (ours, the paper's) series, where that is more than the panels have
    own: list = field(default_factory=list)  # panels of the claims' own numbers
    lacking: str = "no data in the paper"  # what a panel says that has none

    def without_empty_panels(self):
        self.panels = [p for p in self.panels if any(p.here.values())]
        for panel in self.panels:
            panel.here = {name: points for name, points in panel.here.items() if points}
            panel.paper = {name: points for name, points in panel.paper.items()
                           if name in panel.here or name == "all" or panel.digitised}
        return self

    def series(self):
        """For the JSON document; a panel's title is part of its series' names."""
        def listed(whose):
            return [{"name": f"{panel.title}: {name}" if panel.title else name,
                     "points": [list(p[:2]) for p in points]}
                    for panel in self.panels for name, points in getattr(panel, whose).items()]

        here, paper = listed("here"), listed("paper")
        if self.data:
            here, paper = ([{"name": name, "points": points} for name, points in whose.items()]
                           for whose in self.data)
        return {"id": self.id, "series": here, "paper": paper}

    def table(self):
        """What is drawn, as CSV: a row for each point. A range has its ends alone."""
        out = io.StringIO()
        rows = csv.writer(out, lineterminator="\n")
        rows.writerow(("panel", "x_axis", "y_axis", "series", "whose", "x", "y", "y_min", "y_max"))
        for panel in (*self.panels, *self.own):
            for whose in ("here", "paper"):
                for name, points in getattr(panel, whose).items():
                    for x, y, *spread in points:
                        ends = spread if len(spread) == 2 else ("", "")
                        heights = ("", *y) if isinstance(y, tuple) else (y, *ends)
                        rows.writerow((panel.title, panel.x, panel.y, name, whose,
                                       panel.names.get(x, x), *heights))
        return out.getvalue()


def own_panels(judgements):
    """The claims' own numbers beside the paper's: a panel for each unit."""
    by_unit = {}
    for judgement in judgements:
        for value in judgement.values:
            by_unit.setdefault(value.unit, {})[f"{judgement.id} {value.name}".strip()] = value
    return [Panel("the claims' own numbers", unit, "", "numbers",
                  {name: [(0, v.here)] for name, v in those.items()},
                  {name: [(0, v.paper)] for name, v in those.items()})
            for unit, those in by_unit.items()]


def lines(title, x, y, series, x_of, measure="mops", paper=None, of=lambda y: y, **more):
    """A panel of runs, with a line for each label -> points."""
    return lambda runs: Panel(title, x, y, "lines", {
        name: runs.line(points, x_of, measure, of) for name, points in series.items()},
        paper or {}, **more)


def figure(one, title, panels, columns=1, **more):
    """Panels are functions of the runs; what else stands here may be."""
    return lambda runs: Figure(one, title, [panel(runs) for panel in panels], columns, **{
        name: what(runs) if callable(what) else what for name, what in more.items()})
