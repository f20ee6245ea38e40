"""A figure as data: panels of series, ours beside the paper's."""

from dataclasses import dataclass, field

# Okabe and Ito's colours, told apart by colour-blind readers; the markers tell series apart without
# colour.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#56B4E9", "#E69F00"]
MARKERS = ["o", "s", "D", "^", "v", "P", "X"]


def looks(names, first=0):
    """name -> (colour, marker), in turn."""
    return {name: (COLOURS[(n + first) % len(COLOURS)], MARKERS[(n + first) % len(MARKERS)])
            for n, name in enumerate(names)}


@dataclass
class Panel:
    """kind: lines, stacks (a bar of parts for each x), pairs (a bar of ours and one of the paper's
    for each series) or groups (a bar of each series for each x). here: name -> [(x, y)], of lines
    also (x, y, least, most)."""
    title: str
    x: str
    y: str
    kind: str
    here: dict
    paper: dict = field(default_factory=dict)  # name -> [(x, y)]; a bound's sign may stand third
    digitised: bool = False  # the paper's points are a curve
    overlapping: bool = False  # lines: the first is the widest
    per_cent: bool = False
    even: bool = False  # of lines: places on the x axis stand side by side
    x_scale: str = "linear"
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


def lines(title, x, y, series, x_of, measure="mops", paper=None, of=lambda y: y, **more):
    """A panel of runs, with a line for each label -> points."""
    return lambda runs: Panel(title, x, y, "lines", {
        name: runs.line(points, x_of, measure, of) for name, points in series.items()},
        paper or {}, **more)


def figure(one, title, panels, columns=1, **more):
    """Panels are functions of the runs; what else stands here may be."""
    return lambda runs: Figure(one, title, [panel(runs) for panel in panels], columns, **{
        name: what(runs) if callable(what) else what for name, what in more.items()})
