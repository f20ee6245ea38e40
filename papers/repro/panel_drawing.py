"""The figures of papers 001 and 003, and those of 004 about databases, as PNG bytes: ours solid, what the paper's text states hollow, in the same
colour."""

from drawing import COLOURS, MARKERS, legend_outside, plt, png
from eunomia_figures import CAUSES, DATABASE_LABELS, LABELS, LEAN_LABEL
from karnagel_figures import LABELS as LOCK_LABELS
from karnagel_figures import MIX_LABELS
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from txbench_figures import CAUSES as TXBENCH_CAUSES
from txbench_figures import LABELS as LATCH_LABELS

GREY = "#777777"
# One look for each index in all figures.
TREE_LOOKS = dict(zip((n for n in LABELS.values() if "SkipList" not in n), zip(COLOURS, MARKERS)))
LIST_LOOKS = dict(zip((n for n in LABELS.values() if "SkipList" in n), zip(COLOURS[1:], MARKERS[1:])))
LOOKS = {**TREE_LOOKS, **LIST_LOOKS, LEAN_LABEL: ("#9BC4DE", "v"), "B+tree": (COLOURS[0], "o"),
         "B+tree, over no versions": ("#9BC4DE", "v"), "skip list": (COLOURS[1], "s"),
         **dict(zip(LOCK_LABELS.values(), zip(COLOURS, MARKERS))), **dict(zip(MIX_LABELS, zip(COLOURS[3:], MARKERS[3:])))}
LOOKS |= {name: LOOKS[LABELS[index]] for name, index in DATABASE_LABELS.values()}
LOOKS |= dict(zip(LATCH_LABELS.values(), zip(COLOURS, MARKERS)))
PARTS = dict(zip((*CAUSES, "+split", "+partition", "+CCM"), ("#D55E00", "#0072B2", "#009E73", "#BBBBBB", "#0072B2",
                                                            "#E69F00", "#009E73")))
PARTS |= dict(zip(TXBENCH_CAUSES, COLOURS))
PANEL_SIZE = (4.9, 3.5)
ONE_PANEL_SIZE = (8, 4.4)
TOLD_SHARE = 0.01  # of the highest bar: what is lower stands without its number


def number_places(axis, places, even=False):
    """even: the n-th place stands at n."""
    axis.xaxis.set_major_locator(FixedLocator(range(len(places)) if even else places))
    axis.xaxis.set_major_formatter(FuncFormatter(lambda x, n: f"{places[n] if even and n is not None else x:g}"))
    axis.xaxis.set_minor_locator(NullLocator())
    # 0.9 and 0.99 lie too close for labels side by side.
    if 0.9 in places and 0.99 in places:
        axis.tick_params(axis="x", labelrotation=60, labelsize=9.5)


def mark(axis, x, y, sign, colour, marker, rightmost=False):
    """Its number stands beside it: on the right at the right edge, where no line passes."""
    side, shift = ("left", 9) if rightmost else ("right", -9)
    axis.plot(x, y, color=colour, marker=marker, markersize=10, markerfacecolor="white", markeredgewidth=2,
              linestyle="none", zorder=5)
    axis.annotate(f"{sign}{y:g}", (x, y), xytext=(shift, 0), textcoords="offset points", ha=side, va="center",
                  fontsize=9.5, zorder=6, bbox={"boxstyle": "round,pad=0.1", "facecolor": "white", "edgecolor": "none",
                                                "alpha": 0.8})


def lines(axis, panel):
    places = sorted({p[0] for points in panel.here.values() for p in points})
    for name, points in panel.here.items():
        colour, marker = LOOKS[name]
        if panel.even:
            points = [(places.index(p[0]), *p[1:]) for p in points]
        xs, ys = [p[0] for p in points], [p[1] for p in points]
        axis.plot(xs, ys, color=colour, marker=marker, linewidth=2.2, markersize=6)
        spread = [p for p in points if len(p) == 4 and p[2] < p[3]]
        if spread:
            axis.vlines(*([p[n] for p in spread] for n in (0, 2, 3)), color=colour, linewidth=1.2)
    for name, points in panel.paper.items():
        for x, y, *sign in points:
            mark(axis, x, y, "".join(sign) + " " if sign else "", *LOOKS[name], rightmost=x == places[-1])
    number_places(axis, places, panel.even)
    lowest = min(p[1] for points in (*panel.here.values(), *panel.paper.values()) for p in points)
    if lowest >= 0:
        zero_marked = any(p[1] == 0 for points in panel.paper.values() for p in points)
        axis.set_ylim(bottom=-0.04 * axis.get_ylim()[1] if zero_marked else 0)
    highest = max(p[1] for points in (*panel.here.values(), *panel.paper.values()) for p in points)
    axis.set_ylim(top=max(axis.get_ylim()[1], 1.04 * highest))
    if panel.per_cent:
        axis.set_ylim(-3, 103)


def stacks(axis, panel):
    """A bar for each place, of parts. Places are evenly spaced."""
    places = list(dict.fromkeys(p[0] for points in panel.here.values() for p in points))
    bottoms, below = [0.0] * len(places), [0.0] * len(places)  # what is negative hangs below zero
    for name, points in panel.here.items():
        heights = [dict(points).get(place, 0) for place in places]
        starts = [b if h >= 0 else down for b, down, h in zip(bottoms, below, heights)]
        axis.bar(range(len(places)), heights, bottom=starts, width=0.7, color=PARTS[name], edgecolor="white",
                 linewidth=0.5)
        bottoms = [b + max(h, 0) for b, h in zip(bottoms, heights)]
        below = [b + min(h, 0) for b, h in zip(below, heights)]
    top = max(bottoms)
    for n, height in enumerate(bottoms):
        if "%" not in panel.y and height > TOLD_SHARE * top:
            axis.annotate(f"{height:.2g}", (n, height), ha="center", va="bottom", fontsize=9)
    for x, y, *sign in panel.paper.get("all", ()):
        mark(axis, places.index(x), y, "".join(sign), "#000000", "D")
        top = max(top, y)
    names = [f"{p:g}" if isinstance(p, (int, float)) else p for p in places]
    axis.set_xticks(range(len(places)), names, fontsize=10 if len(places) > 8 else None)
    axis.set_ylim(1.12 * min(below), 1.12 * top if top else 1)
    axis.grid(axis="x", visible=False)


def bars(axis, panel):
    for n, (name, points) in enumerate(panel.here.items()):
        paper = panel.paper.get(name)
        for shift, value, style in ((-0.2, points[0][1], {"color": COLOURS[0]}),
                                    (0.2, paper and paper[0][1], {"facecolor": "white", "edgecolor": GREY,
                                                                  "hatch": "////"})):
            if value is not None:
                x = n + (shift if paper else 0)
                axis.bar(x, value, width=0.38, **style)
                axis.annotate(f"{value:.2g}" if value < 10 else f"{value:.0f}", (x, value), ha="center", va="bottom",
                              fontsize=8.5)
    if len(panel.here) > 5:  # no room side by side
        axis.set_xticks(range(len(panel.here)), panel.here, fontsize=9, rotation=35, ha="right", rotation_mode="anchor")
    else:
        axis.set_xticks(range(len(panel.here)), [name.replace(" ", "\n") for name in panel.here], fontsize=9)
    axis.grid(axis="x", visible=False)
    axis.set_ylim(0, axis.get_ylim()[1] * 1.08)


KINDS = {"lines": lines, "stacks": stacks, "bars": bars}


def legend(axis, panels):
    """One for all panels: what the colours are, then whose the marks are."""
    handles, labels = [], []
    for name in dict.fromkeys(name for panel in panels if panel.kind == "lines" for name in panel.here):
        colour, marker = LOOKS[name]
        handles.append(Line2D([], [], color=colour, marker=marker, linewidth=2.2, markersize=6))
        labels.append(name)
    for name in reversed(list(dict.fromkeys(n for panel in panels if panel.kind == "stacks" for n in panel.here))):
        handles.append(Patch(facecolor=PARTS[name]))
        labels.append(name)
    if any(panel.kind == "bars" for panel in panels):
        handles += [Patch(facecolor=COLOURS[0]), Patch(facecolor="white", edgecolor=GREY, hatch="////")]
        labels += ["here, simulated", "paper"]
    elif any(panel.paper for panel in panels):
        whole = any("all" in panel.paper for panel in panels)
        handles.append(Line2D([], [], color="#000000" if whole else GREY, marker="D" if whole else "o",
                              markersize=10, markerfacecolor="white", markeredgewidth=2, linestyle="none"))
        labels.append("paper (its text)")
    legend_outside(axis, handles, labels)


def draw(figure, footnote):
    columns = min(figure.columns, len(figure.panels))
    rows = -(-len(figure.panels) // columns)
    width, height = PANEL_SIZE if columns > 1 else ONE_PANEL_SIZE
    drawn, axes = plt.subplots(rows, columns, squeeze=False, layout="constrained",
                               figsize=(width * columns, height * rows))
    drawn.suptitle(f"{figure.id}: {figure.title}", x=0.01, ha="left", fontweight="bold", fontsize=13)
    flat = list(axes.flat)
    for axis, panel in zip(flat, figure.panels):
        KINDS[panel.kind](axis, panel)
        axis.set(xlabel=panel.x, ylabel=panel.y)
        if panel.title:
            axis.set_title(panel.title, loc="left", fontsize=11)
    for axis in flat[len(figure.panels):]:
        axis.set_visible(False)
    legend(flat[columns - 1], figure.panels)
    drawn.text(0.01, -0.03, " ".join(t for t in (footnote + ".", figure.footnote) if t), fontsize=9, color="#555555")
    return png(drawn)
