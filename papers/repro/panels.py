"""A figure as data: panels of series, ours beside the points that the paper's text names."""

from dataclasses import dataclass, field


@dataclass
class Panel:
    """kind: lines, stacks (a bar of parts for each x) or bars. here: name -> [(x, y)], lines also (x, y, low, high)."""
    title: str
    x: str
    y: str
    kind: str
    here: dict
    paper: dict = field(default_factory=dict)  # name -> [(x, y)]; a bound's sign may stand third
    per_cent: bool = False
    even: bool = False  # of lines: the places on the x axis stand side by side, whatever lies between them


@dataclass
class Figure:
    id: str
    title: str
    panels: list
    columns: int = 1
    footnote: str = ""


def with_something(figures):
    """The figures without panels that have nothing in them, and without those that have no other."""
    for figure in figures:
        figure.panels = [p for p in figure.panels if any(p.here.values())]
        for panel in figure.panels:
            panel.here = {name: points for name, points in panel.here.items() if points}
            panel.paper = {name: points for name, points in panel.paper.items() if name in panel.here or name == "all"}
    return [figure for figure in figures if figure.panels]


def series(figure):
    """The figure for the JSON document; a panel's title is part of its series' names."""
    def listed(whose):
        return [{"name": f"{panel.title}: {name}" if panel.title else name, "points": [list(p[:2]) for p in points]}
                for panel in figure.panels for name, points in getattr(panel, whose).items()]
    return {"id": figure.id, "series": listed("here"), "paper": listed("paper")}
