"""The figures as PNG and SVG: ours solid, the paper's dashed or hollow, the same series in the same
colour."""

import io
import re

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.lines import Line2D  # noqa: E402
from matplotlib.patches import Patch  # noqa: E402
from matplotlib.patheffects import Normal, Stroke  # noqa: E402
from matplotlib.ticker import (FixedLocator, FuncFormatter, LogLocator, MaxNLocator,
                               NullLocator)  # noqa: E402
from panels import COLOURS, looks  # noqa: E402

plt.rcParams.update({
    "font.size": 11, "font.family": "DejaVu Sans", "axes.spines.top": False,
    "axes.spines.right": False, "axes.titlesize": 12, "axes.titleweight": "bold",
    "text.parse_math": False, "axes.grid": True, "grid.alpha": 0.3, "grid.linewidth": 0.6,
    "axes.axisbelow": True, "hatch.linewidth": 0.8,
    "svg.fonttype": "none", "svg.hashsalt": "elidex"  # text stays text; equal runs, equal files
})

GREY = "#777777"
MARKED_MAX = 20  # points; more of them would hide the lines
DPI = 130
DASHES = (4, 2)
# Dashes have a white edge, so that they show on a solid line of their own colour.
WHITE_EDGE = [Stroke(linewidth=2.8, foreground="white"), Normal()]
HOLLOW = {"markersize": 10, "markerfacecolor": "white", "markeredgewidth": 2, "linestyle": "none"}
OF_PAPER = {"facecolor": "white", "hatch": "////", "linewidth": 1.4}
PANEL_SIZE = (4.9, 3.5)
ONE_PANEL_SIZE = (8, 4.4)
TOLD_SHARE = 0.01  # of the highest bar: what is lower stands without its number


def plain(value):
    """Thousands apart, millions as such."""
    if abs(value) < 999.5:
        return f"{value:.3g}"
    return (f"{value / 1e6:g} M" if value >= 1e6 and value % 1e5 == 0 else
            f"{value:,.0f}".replace(",", " "))


def number_places(axis, places, x_scale="linear"):
    axis.xaxis.set_major_locator(FixedLocator(places) if len(places) <= 10 else LogLocator()
                                 if x_scale == "log" else
                                 MaxNLocator("auto", integer=True, steps=[1, 2, 5, 10]))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda x, _: plain(x)))
    axis.xaxis.set_minor_locator(NullLocator())
    # 0.9 and 0.99 lie too close for labels side by side.
    if 0.9 in places and 0.99 in places:
        axis.tick_params(axis="x", labelrotation=60, labelsize=9.5)


def mark(axis, x, y, sign, look, rightmost=False):
    """Its number stands beside it: on the right at the right edge, where no line passes."""
    side, shift = ("left", 9) if rightmost else ("right", -9)
    axis.plot(x, y, color=look[0], marker=look[1], zorder=5, **HOLLOW)
    axis.annotate(f"{sign}{y:g}", (x, y), xytext=(shift, 0), textcoords="offset points", ha=side,
                  va="center", fontsize=9.5, zorder=6,
                  bbox={"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none",
                        "alpha": 0.8})


def paper_lines(axis, panel, look_of, last):
    names = list(dict.fromkeys([*panel.here, *panel.paper]))
    for name, points in panel.paper.items():
        colour, marker = look_of[name]
        if panel.digitised:
            # The dashes of neighbours begin elsewhere, so that each shows in the other's gaps.
            axis.plot(*zip(*points), color=colour, linewidth=1.6, path_effects=WHITE_EDGE,
                      linestyle=(3 * names.index(name), DASHES),
                      zorder=4 if name in panel.here else 3, markersize=6,
                      marker=marker if len(points) <= MARKED_MAX else None,
                      markerfacecolor="white")
            continue
        for x, y, *sign in points:
            mark(axis, x, y, "".join(sign) + " " if sign else "", look_of[name], x == last)


def lines(axis, panel, look_of):
    places = sorted({p[0] for points in panel.here.values() for p in points})
    axis.set_xscale(panel.x_scale, **{"linthresh": 1} if panel.x_scale == "symlog" else {})
    for n, (name, points) in enumerate(panel.here.items()):
        colour, marker = look_of[name]
        # Series that lie upon each other stay visible: the first is the widest.
        width = 3 + 0.7 * (len(panel.here) - 1 - n) if panel.overlapping else 2.2
        axis.plot([p[0] for p in points], [p[1] for p in points], color=colour, linewidth=width,
                  marker=marker if len(points) <= MARKED_MAX else None, markersize=6)
        spread = [p for p in points if len(p) == 4 and p[2] < p[3]]
        if spread:
            axis.vlines(*([p[n] for p in spread] for n in (0, 2, 3)), color=colour, linewidth=1.2)
    paper_lines(axis, panel, look_of, places[-1])
    number_places(axis, places, panel.x_scale)
    axis.yaxis.set_major_formatter(FuncFormatter(lambda y, _: plain(y / panel.unit)))
    for x, side, label in panel.footprints:
        axis.axvline(x, color=GREY, linestyle=":", linewidth=1.3)
        axis.annotate(label, (x, 1.01), xytext=(-3 if side == "right" else 0, 0), fontsize=9,
                      ha=side, va="bottom", textcoords="offset points",
                      xycoords=("data", "axes fraction"))
    heights = [p[1] for points in (*panel.here.values(), *panel.paper.values()) for p in points]
    if min(heights) >= 0:
        zero_marked = not panel.digitised and any(p[1] == 0 for points in panel.paper.values()
                                                  for p in points)
        axis.set_ylim(bottom=-0.04 * axis.get_ylim()[1] if zero_marked else 0)
    axis.set_ylim(top=max(axis.get_ylim()[1], 1.04 * max(heights)))
    if panel.descending:
        axis.invert_xaxis()


def are_numbers(places):
    return all(isinstance(p, (int, float)) for p in places)


def least_gap(places):
    return min((b - a for a, b in zip(places, places[1:])), default=1)


def stacks(axis, panel, look_of):
    """A bar for each place, of parts. Places that are no numbers are evenly spaced."""
    places = list(dict.fromkeys(p[0] for points in panel.here.values() for p in points))
    at = sorted(places) if are_numbers(places) else range(len(places))
    places = sorted(places) if are_numbers(places) else places
    # What is negative hangs below zero.
    bottoms, below = [0.0] * len(places), [0.0] * len(places)
    for name, points in panel.here.items():
        heights = [dict(points).get(place, 0) for place in places]
        starts = [b if h >= 0 else down for b, down, h in zip(bottoms, below, heights)]
        axis.bar(at, heights, bottom=starts, width=0.7 * least_gap(at), color=look_of[name][0],
                 edgecolor="white", linewidth=0.5)
        bottoms = [b + max(h, 0) for b, h in zip(bottoms, heights)]
        below = [b + min(h, 0) for b, h in zip(below, heights)]
    top = max(bottoms)
    for x, height in zip(at, bottoms):
        if "%" not in panel.y and height > TOLD_SHARE * top:
            axis.annotate(f"{height:.2g}", (x, height), ha="center", va="bottom", fontsize=9)
    for x, y, *sign in panel.paper.get("all", ()):
        mark(axis, at[places.index(x)], y, "".join(sign), ("#000000", "D"))
        top = max(top, y)
    if are_numbers(places):
        number_places(axis, places)
    else:
        axis.set_xticks(at, places, fontsize=10 if len(places) > 8 else None)
    axis.set_ylim(1.12 * min(below), 1.12 * top if top else 1)


def bars(axis, groups, width, at=None):
    """groups: [(name, [(height or None, style)])]; a group's bars stand side by side above its
    name. at: the groups' places, side by side if not given."""
    at = at or range(len(groups))
    width *= least_gap(at)
    for place, (_, group) in zip(at, groups):
        for k, (height, style) in enumerate(group):
            if height is None:
                continue
            x, upright = place + (k - (len(group) - 1) / 2) * width, len(group) <= 2
            axis.bar(x, height, width=0.92 * width, **style)
            axis.annotate(plain(height), (x, height), ha="center", va="bottom", fontsize=8.5,
                          rotation=0 if upright else 90, xytext=(0, 0 if upright else 3),
                          textcoords="offset points")
    names = [name for name, _ in groups]
    slanted = len(names) > 5 and len(axis.figure.axes) > 1  # no room side by side
    # Long names break at their first space or bracket.
    names = names if slanted else [re.sub(r" |(?=<)", "\n", n, count=1)
                                   if len(n) > 12 and len(names) > 2 else n
                                   for n in names]
    axis.set_xticks(at, names, fontsize=9.5)
    if slanted:
        axis.tick_params(axis="x", labelrotation=35)
        plt.setp(axis.get_xticklabels(), ha="right", rotation_mode="anchor")
    axis.set_ylim(0, axis.get_ylim()[1] * 1.08)


def pairs(axis, panel, look_of):
    def bar(points, style):
        return [(points[0][1], style)] if points else []

    bars(axis, [(name, bar(panel.here.get(name), {"color": look_of[name][0]})
                 + bar(panel.paper.get(name), {**OF_PAPER, "edgecolor": look_of[name][0]}))
                for name in dict.fromkeys([*panel.here, *panel.paper])], 0.4)


def groups(axis, panel, look_of):
    """A bar of ours for each series, and the paper's beside it where there is one."""
    def of(points, x, style):
        return [(dict(points).get(x), style)] if points else []

    xs = sorted({x for points in panel.here.values() for x, _ in points})
    names = list(panel.here)
    bars(axis, [(panel.names.get(x, plain(x)), [
        bar for name in names for bar in (
            *of(panel.here[name], x, {"color": look_of[name][0]}),
            *of(panel.paper.get(name), x, {**OF_PAPER, "edgecolor": look_of[name][0]}))])
        for x in xs], 0.84 / (len(names) + len(panel.paper.keys() & panel.here.keys())),
        None if panel.names else xs)
    axis.set_ylim(0, axis.get_ylim()[1] * 1.08)


def numbers(axis, panel, look_of):
    """Two bars for each name: ours above the paper's."""
    many = len(panel.here) > 8
    for row, name in enumerate(panel.here):
        colour = look_of[name][0]
        for points, shift, style in ((panel.here, -0.19, {"color": colour}),
                                     (panel.paper, 0.19, {**OF_PAPER, "edgecolor": colour})):
            y = points[name][0][1]
            low, high = y if isinstance(y, tuple) else (0, y)
            axis.barh(row + shift, high - low, left=low, height=0.34, **style)
            axis.annotate(f"{plain(low)} to {plain(high)}" if low else plain(high),
                          (max(high, 0), row + shift), xytext=(3, 0), textcoords="offset points",
                          va="center", fontsize=6 if many else 8.5)
    axis.set_yticks(range(len(panel.here)), panel.here, fontsize=7.5 if many else 9)
    axis.set_ylim(len(panel.here) - 0.4, -0.6)
    axis.margins(x=0.2)
    axis.xaxis.set_major_locator(MaxNLocator(4))


KINDS = {"lines": lines, "stacks": stacks, "pairs": pairs, "groups": groups, "numbers": numbers}


def legend(axis, figure, look_of):
    """One for all panels: what the colours are, then whose the lines, bars and marks are."""
    entries, panels = [], figure.panels + figure.own
    here = {n for p in panels for n in p.here}
    digitised = {n for p in panels if p.digitised for n in p.paper}
    for name in dict.fromkeys(n for p in panels if p.kind in ("lines", "groups")
                              for n in (*p.here, *(p.paper if p.digitised else ()))):
        alone = (" (here alone)" if name not in digitised else
                 " (paper alone)" if name not in here else "") if digitised else ""
        entries.append((Line2D([], [], color=look_of[name][0], marker=look_of[name][1],
                               linewidth=2.4, markersize=6), figure.shown.get(name, name) + alone))
    for name in reversed(dict.fromkeys(n for p in panels if p.kind == "stacks" for n in p.here)):
        entries.append((Patch(facecolor=look_of[name][0]), name))
    if any(p.kind in ("pairs", "groups", "numbers") for p in panels if p.paper):
        entries += [(Patch(facecolor=GREY), figure.whose),
                    (Patch(edgecolor=GREY, **OF_PAPER), "paper")]
    if digitised:
        entries += [(Line2D([], [], color=GREY, linewidth=2.2), figure.whose),
                    (Line2D([], [], color=GREY, linewidth=1.6, linestyle=(0, DASHES)), "paper")]
    marked = [p for p in panels if p.paper and p.kind in ("lines", "stacks") and not p.digitised]
    if marked:
        whole = any("all" in p.paper for p in marked)
        entries.append((Line2D([], [], color="#000000" if whole else GREY,
                               marker="D" if whole else "o", **HOLLOW), "paper (its text)"))
    if entries:
        axis.legend(*zip(*entries), loc="upper left", bbox_to_anchor=(1.01, 1), frameon=False)


def lacking(figure, panel):
    """What stands below a panel without anything of the paper."""
    if panel.paper or panel.elsewhere:
        return ""
    # On two lines, because panels are side by side.
    beside = ",\napart from the claims" if figure.own else ""
    return f"({figure.lacking}{beside})"


def draw(figure, footnote):
    """suffix -> bytes"""
    panels = figure.panels + figure.own
    columns = min(figure.columns, len(panels))
    rows = -(-len(panels) // columns)
    width, height = figure.size or (PANEL_SIZE if columns > 1 else ONE_PANEL_SIZE)
    drawn, axes = plt.subplots(rows, columns, squeeze=False, layout="constrained",
                               figsize=(width * columns, height * rows))
    drawn.suptitle(f"{figure.id}: {figure.title}", x=0.01, ha="left", fontweight="bold",
                   fontsize=13)
    names = dict.fromkeys(n for p in figure.panels for n in (*p.here, *p.paper))
    look_of = {**dict.fromkeys((n for p in figure.own for n in p.here), (COLOURS[0], "")),
               **looks(names), **figure.looks}
    flat = list(axes.flat)
    for axis, panel in zip(flat, panels):
        KINDS[panel.kind](axis, panel, look_of)
        axis.set(xlabel="\n".join(filter(None, (panel.x, lacking(figure, panel)))),
                 ylabel=panel.y)
        if panel.kind != "lines":
            axis.grid(axis="y" if panel.kind == "numbers" else "x", visible=False)
        if panel.per_cent:
            axis.set_ylim((0, 118) if panel.kind == "groups" else (-3, 103))
        if panel.title:
            axis.set_title(panel.title, loc="left", fontsize=11)
    for axis in flat[len(panels):]:
        axis.set_visible(False)
    legend(flat[columns - 1], figure, look_of)
    drawn.text(0.01, -0.03, " ".join(t for t in (footnote + ".", figure.footnote) if t), fontsize=9,
               color="#555555")
    files = {}
    for form, metadata in (("png", {"Software": None}), ("svg", {"Date": None, "Creator": None})):
        out = io.BytesIO()
        drawn.savefig(out, format=form, dpi=DPI, bbox_inches="tight", metadata=metadata)
        files["." + form] = out.getvalue()
    plt.close(drawn)
    return files
